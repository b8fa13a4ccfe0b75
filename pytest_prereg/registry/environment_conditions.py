"""Conditions: on what machine, and in what state of it, evidence counts for a claim.

Those on the machine are held against what :func:`pytest_prereg.evidence.environment.describe_machine` wrote
into the header of a session; the others against what was read of the machine during each repeat. Evidence
outside of them is evidence for another claim: it decides nothing.
"""

from __future__ import annotations

import fnmatch
import math
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.registry.refusals import RefusedError, quoted, suggestion
from pytest_prereg.registry.regions import Region, Span, contains, parse_region, parsed
from pytest_prereg.registry.rules import FLAGS, NUMBERS, Reading, reading_of, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MACHINE_TEXTS = (
    "cpu",
    "cpu_governor",
    "gpu",
    "driver",
    "os",
    "kernel",
    "python",
    "torch",
    "cuda",
    "container",
    "region",
)
"""What is recorded of a machine in words."""
MACHINE_NUMBERS = ("cores", "memory_gib", "cpu_max_mhz")
"""What is recorded of a machine in numbers."""
MACHINE = (*MACHINE_TEXTS, *MACHINE_NUMBERS)
KEYS = (*MACHINE, *NUMBERS, *FLAGS)
"""All that a condition may name."""
NOTHING = "none"
"""What a machine has where it is known to have no such thing; only this very word matches it."""


Wanted = str | bool | Region
"""A pattern, a flag, or a region of numbers."""
Found = list[str] | Reading
"""What there is: texts, each of which has to match, a number, or a flag."""


class Condition(msgspec.Struct, kw_only=True, frozen=True):
    """What one reading has to be: text that matches, a number in a region, or a flag."""

    key: str
    text: str
    """What is wanted, as messages have it."""
    wanted: Wanted


def parse_conditions(conditions: Mapping[str, Any] | None) -> tuple[Condition, ...]:
    """The conditions of an experiment (``experiment.table.conditions``), by key.

    Raises:
        RefusedError: PR044 (a :class:`ValueError`) at the first that can't be read or names what the tool
            does not record.
    """
    return tuple(parse_condition(key, value) for key, value in sorted((conditions or {}).items()))


def parse_condition(key: str, value: object) -> Condition:
    """One condition, from its key and the value that the file has.

    Raises:
        RefusedError: PR044 (a :class:`ValueError`): unknown key, wrong kind of value, no region of numbers.
    """
    if key in MACHINE_TEXTS:
        return _of_text(key, value)
    if key in FLAGS:
        return _of_flag(key, value)
    if key in MACHINE_NUMBERS or key in NUMBERS:
        return _of_number(key, value)
    hint = suggestion(key, KEYS, "a condition may name")
    raise RefusedError("PR044", f"{quoted(key)} is nothing that the tool records of a machine{hint}")


def machine_outside(conditions: Mapping[str, Any] | None, machine: Mapping[str, Any]) -> str | None:
    """Which conditions a machine does not meet, such as ``gpu is "none", and the conditions want "*H100*"``.

    Args:
        conditions: As registered (``experiment.table.conditions``).
        machine: What ``describe_machine`` returned (``Header.environment``).

    ``None`` if it meets all that are about the machine. What is unknown meets none.
    """
    named = (each for each in parse_conditions(conditions) if each.key in MACHINE)
    return _unmet((each, _described(each.key, machine)) for each in named)


def repeat_outside(conditions: Mapping[str, Any] | None, environment: Mapping[str, Any]) -> str | None:
    """Which conditions did not hold for a repeat: ``load_average is 5.2, and the conditions want "<= 4"``.

    Args:
        conditions: As registered (``experiment.table.conditions``).
        environment: What was recorded when the repeat ended (``Finished.environment``).

    ``None`` if all held that are about a repeat. What could not be read did not hold.
    """
    named = (each for each in parse_conditions(conditions) if each.key not in MACHINE)
    return _unmet((each, reading_of(each.key, environment)) for each in named)


def canonical_conditions(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """The conditions as a digest holds them: parsed, so that two ways of writing one are one."""
    return {each.key: _canonical(each.wanted) for each in parse_conditions(conditions)}


def _canonical(wanted: Wanted) -> Any:
    return parsed(wanted) if isinstance(wanted, Region) else wanted


def _of_text(key: str, value: object) -> Condition:
    if not isinstance(value, str) or not value.strip():
        raise RefusedError("PR044", _wrong(key, value, 'text, with "*" for any: "*H100*"'))
    return Condition(key=key, text=quoted(value), wanted=value.strip().casefold())


def _of_flag(key: str, value: object) -> Condition:
    if not isinstance(value, bool):
        raise RefusedError("PR044", _wrong(key, value, "true or false"))
    return Condition(key=key, text=shown(value), wanted=value)


def _of_number(key: str, value: object) -> Condition:
    if isinstance(value, str):
        return Condition(key=key, text=quoted(value), wanted=_region(key, value))
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise RefusedError("PR044", _wrong(key, value, 'a number, or a region of numbers: "<= 4"'))
    edge = float(f"{value:.15g}")
    span = Span(low=edge, high=edge, low_closed=True, high_closed=True)
    return Condition(key=key, text=shown(value), wanted=Region(spans=(span,)))


def _region(key: str, text: str) -> Region:
    try:
        region = parse_region(text)
    except RefusedError as refusal:
        raise RefusedError("PR044", f"{quoted(key)}: {refusal}") from None
    if region.unit is not None:
        message = f"{quoted(key)}: {quoted(text)} has a unit, {quoted(region.unit)}"
        raise RefusedError("PR044", message, "Write the number alone: its unit is part of the name.")
    if not any(span.high > 0 or (span.high == 0 and span.high_closed) for span in region.spans):
        raise RefusedError("PR044", f"{quoted(key)}: {quoted(text)} holds no reading: none is negative")
    return region


def _wrong(key: str, value: object, wanted: str) -> str:
    written = "a table" if isinstance(value, dict) else "a list" if isinstance(value, list) else quoted(value)
    return f"{quoted(key)} is {written}; it must be {wanted}"


def _described(key: str, machine: Mapping[str, Any]) -> list[str] | float | None:
    """What a header says of its machine; ``None`` if that is nothing."""
    value = machine.get(key)
    if key in MACHINE_NUMBERS:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return value if number else None
    if key == "gpu" and isinstance(value, list | tuple):
        return [str(name) for name in value] or [NOTHING]
    return [value] if isinstance(value, str) and value else None


def _unmet(found: Iterable[tuple[Condition, Found | None]]) -> str | None:
    unmet = [
        f"{condition.key} is {_told(value)}, and the conditions want {condition.text}"
        for condition, value in found
        if not _meets(condition.wanted, value)
    ]
    return "; ".join(unmet) or None


def _meets(wanted: Wanted, value: Found | None) -> bool:
    if value is None:
        return False
    if isinstance(value, list):
        return all(_matches(str(wanted), each.casefold()) for each in value)
    if isinstance(wanted, Region):
        return contains(wanted, value, value)
    return value is wanted


def _matches(pattern: str, value: str) -> bool:
    if NOTHING in (value, pattern):
        return value == pattern
    return fnmatch.fnmatchcase(value, pattern)


def _told(value: Found | None) -> str:
    if value is None:
        return "unknown"
    return " and ".join(map(quoted, dict.fromkeys(value))) if isinstance(value, list) else shown(value)
