"""Sweeps: parameters whose values are crossed with the arms of an experiment."""

from __future__ import annotations

import itertools
import math
import re
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.registry.canonical import number
from pytest_prereg.registry.refusals import listed, quoted
from pytest_prereg.registry.structure import label

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_prereg.registry.model import Arm, Experiment
    from pytest_prereg.registry.positions import Path
    from pytest_prereg.registry.structure import Complaints
    from pytest_prereg.registry.tables import ExperimentTable

Point = dict[str, Any]
"""One value of each of some axes, by name of the axis in alphabetical order."""

RESERVED_IN_ARMS = ("ref", "env", "resources", "timeout", "repeats")
"""Keys of an arm's table that are no parameters."""

LARGEST = 1000
"""Arms that a sweep may make; more would be a mistake, and slow to say so."""

_TEXT = re.compile(r"[A-Za-z0-9._-]+")
_VALUES = 'a number, true, false, or text of letters, digits, ".", "_" and "-"'


def cross(keys: Path, table: ExperimentTable, arms: dict[str, Arm], complaints: Complaints) -> dict[str, Arm]:
    """Each arm at each point of the sweep; the arms themselves where there is none, or none that is sound."""
    axes = _axes(keys, table, complaints)
    if not axes:
        return arms
    made = len(arms) * math.prod(len(values) for values in axes.values())
    if made > LARGEST:
        message = f'{label(keys)}: "sweep" makes {made} arms; it may make {LARGEST}'
        complaints.add((*keys, "sweep"), "PR005", message)
        return arms
    crossed = [_crossed(arm, point) for arm in arms.values() for point in points(axes)]
    return {arm.name: arm for arm in crossed}


def points(axes: Mapping[str, Sequence[Any]]) -> Iterator[Point]:
    """Every combination of the values of ``axes``; one empty point without any."""
    names = sorted(axes)
    for values in itertools.product(*(axes[name] for name in names)):
        yield dict(zip(names, values, strict=True))


def crossed_name(base: str, point: Point) -> str:
    """``new[cols=1024,rows=2]``: axes in alphabetical order, since a table of TOML has none of its own."""
    if not point:
        return base
    return f"{base}[{','.join(f'{name}={value_text(point[name])}' for name in sorted(point))}]"


def value_text(value: Any) -> str | None:
    """How a swept value is named; ``None`` for what can't be one. 2 and 2.0 are one value."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        try:
            return number(value)
        except ValueError:
            return None
    return value if isinstance(value, str) and _TEXT.fullmatch(value) else None


def swept(experiment: Experiment) -> dict[str, list[Any]]:
    """The sound values of each axis of an experiment, numbers in ascending order, then text."""
    values: dict[str, dict[str | None, Any]] = {}
    for arm in experiment.arms.values():
        for name, value in arm.point.items():
            values.setdefault(name, {}).setdefault(value_text(value), value)
    return {name: sorted(values[name].values(), key=_rank) for name in sorted(values)}


def _rank(value: Any) -> tuple[bool, float, str]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return False, float(value), ""
    return True, 0.0, value_text(value) or ""


def _crossed(arm: Arm, point: Point) -> Arm:
    return msgspec.structs.replace(
        arm, name=crossed_name(arm.name, point), params=arm.params | point, base=arm.name, point=point
    )


def _axes(keys: Path, table: ExperimentTable, complaints: Complaints) -> dict[str, list[Any]]:
    """The sound values of each axis; what is wrong with any is complained about."""
    here = (*keys, "sweep")
    if table.sweep is not None and not table.sweep and not complaints.told(*here):
        complaints.add(here, "PR004", f'{label(keys)}: "sweep" names no parameter')
    axes = {}
    for name, values in (table.sweep or {}).items():
        _check_axis((*here, name), table, complaints)
        if sound := _sound((*here, name), values, complaints):
            axes[name] = sound
    return axes


def _check_axis(keys: Path, table: ExperimentTable, complaints: Complaints) -> None:
    name, where = keys[-1], f"{label(keys[:-2])}: {quoted(keys[-1])} is swept"
    owners = [key for key, arm in (table.arms or {}).items() if name in arm]
    if name in RESERVED_IN_ARMS:
        complaints.add(keys, "PR005", f"{where}, but it is a key of arms and no parameter")
    elif name in (table.params or {}):
        complaints.add(keys, "PR005", f'{where} and set by "params"; keep one')
    elif owners:
        arms = f"arm{'s' * (len(owners) > 1)} {listed(owners)}"
        complaints.add(keys, "PR005", f"{where} and set by {arms}; keep one")


def _sound(keys: Path, values: list[Any], complaints: Complaints) -> list[Any]:
    """The values that can be crossed, each once."""
    where = f"{label(keys[:-2])}: sweep of {quoted(keys[-1])}"
    if not values:
        complaints.add(keys, "PR005", f"{where} has no values")
    sound: dict[str, Any] = {}
    for value in values:
        text = value_text(value)
        if text is None:
            if isinstance(value, str | list | dict):  # the others were told when the text was read
                shown = quoted(value) if isinstance(value, str) else "a list or table"
                complaints.add(keys, "PR005", f"{where} has {shown}; a value is {_VALUES}")
        elif text in sound:
            complaints.add(keys, "PR005", f"{where} has {quoted(text)} twice; keep one")
        else:
            sound[text] = value
    return list(sound.values())
