"""What a command is to the rest: the metrics that every one has, and what its digest counts."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.registry.model import Metric
from pytest_prereg.registry.placeholders import filled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_prereg.registry.model import Experiment
    from pytest_prereg.registry.tables import ExperimentTable

EXIT_CODE = "exit_code"
WALL = "wall"
MAX_RSS = "max_rss"
AT_MOST = "max_rss_at_most"
"""A diagnostic, in bytes: the command held less than what started it, and nobody can tell how much."""
OUT = "out"
"""Names the folder of one repeat alone."""

_BUILT_IN = (
    Metric(name=WALL, unit="s", instrument="wall-clock"),
    Metric(name="user", unit="s", instrument="cpu-time"),
    Metric(name="system", unit="s", instrument="cpu-time"),
    Metric(name=MAX_RSS, unit="byte", instrument="peak-memory"),
    Metric(name=EXIT_CODE, unit="1", exact=True),
)
BUILT_IN: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _BUILT_IN})
"""Metrics that every command has without declaring them."""


def commanded(table: ExperimentTable) -> dict[str, Any]:
    """What counts of a command in the digest of its source, as plain data: all that says what is run.

    How long the start of a server may take is no part of it: that says when to give up, and no more.
    """
    said = {key: getattr(table, key) for key in ("command", "read", "build", "service")}
    content = {key: msgspec.to_builtins(value) for key, value in said.items() if value is not None}
    if "service" in content:
        del content["service"]["timeout"]
    return content


def texts_of(experiment: Experiment, arm: str) -> list[list[str]]:
    """The arguments of what an arm runs, its server's as well, as far as they are known before it is run."""
    table, params = experiment.table, experiment.arms[arm].params
    commands = [table.command or [], table.service.command if table.service else []]
    return [filled(command, params) for command in commands if command]
