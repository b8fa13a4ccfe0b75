"""Servers that repeats talk to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.measure.executors.base import Service
from pytest_prereg.registry.durations import parse_duration

if TYPE_CHECKING:
    from pytest_prereg.registry.model import Experiment


def service_of(experiment: Experiment) -> Service | None:
    """Return the server that each repeat of an experiment needs, or ``None``."""
    table = experiment.table.service
    if table is None:
        return None
    return Service(command=table.command, ready=table.ready, seconds=parse_duration(table.timeout))
