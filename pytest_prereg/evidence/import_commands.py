"""The commands that take in more of what an experiment is fed with, as they have to be typed."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from pytest_prereg.registry.refusals import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.registry.model import Experiment

_TYPED = {"arm": "--arm", "asked-format": "--format", "select": "--select"}
"""The options that a header keeps, by what it calls them."""


def typed_options(arm: str | None, form: str | None, select: str | None) -> dict[str, str]:
    """Return what a header keeps of the options that an import was given."""
    given = zip(_TYPED, (arm, form, select), strict=True)
    return {key: value for key, value in given if value is not None}


def import_command(experiment: str, arm: str, options: Mapping[str, str | None]) -> str:
    """Return how a file for an arm is taken in; what is selected in that is another thing in another arm.

    Args:
        experiment: Which one it feeds.
        arm: Which arm of it.
        options: What another file was given with, by option, maybe for another arm.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if "--select" in given and given.get("--arm", arm) != arm:
        given["--select"] = "NAME"
    if "--arm" in given:
        given["--arm"] = arm
    typed = [f"{name} {shlex.quote(value)}" for name, value in given.items()]
    return " ".join(["pytest-prereg import FILE --experiment", experiment, *typed])


def next_import(experiment: Experiment, files: Iterable[SessionFile]) -> str:
    """Return how another series is taken in: with what the files so far were given with, arm by arm.

    Where nothing was taken in, nobody knows whether a file will name its arms, so that is said.
    """
    given = dict(_given(files))
    usual = next(reversed(given.values()), {})
    commands = (import_command(experiment.id, arm, given.get(arm, usual)) for arm in experiment.arms)
    told = " and ".join(dict.fromkeys(commands))
    if given or len(experiment.arms) == 1:
        return told
    return f"{told}, with --arm where FILE names none of {listed(experiment.arms)}"


def _given(files: Iterable[SessionFile]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each arm with the options of an import that brought repeats of it, the newest last."""
    for file in files:
        told: dict[str, Any] = (file.header.imported if file.header else None) or {}
        options = {option: told[key] for key, option in _TYPED.items() if isinstance(told.get(key), str)}
        yield from ((attempt.arm, options) for attempt in file.attempts if told)
