"""Rules by which a repeat is excluded: over what the tool itself records of the machine, never over a value.

A rule is registered before there is any data, and is applied by the tool when a repeat ends. What it may name
is closed: whoever could name a metric could drop the repeats that they don't like.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.registry.refusals import RefusedError, listed, quoted, suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Reading = float | bool

NUMBERS = ("gpu_clock_mhz", "gpu_temp_c", "gpu_foreign_processes", "load_average")
"""Readings of a repeat's machine that are numbers; none is ever negative."""
FLAGS = ("gpu_throttled", "cpu_throttled", "swapped")
"""Readings that are true or false."""
READINGS = (*NUMBERS, *FLAGS)
"""All that a rule may name."""

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_RULE = re.compile(
    r"\s*(?:(?P<negated>not)\s+)?(?P<name>[A-Za-z_][\w-]*)\s*(?:(?P<operator>[<>=!]+)\s*(?P<value>.*?))?\s*",
    re.DOTALL,
)


class Rule(msgspec.Struct, kw_only=True, frozen=True):
    """A repeat is excluded if the reading ``name`` stands in this relation to ``value``."""

    text: str
    """As it was written."""
    name: str
    operator: str
    """A comparison; of a flag always ``==``."""
    value: Reading


@functools.lru_cache(maxsize=1024)
def parse_rule(text: str) -> Rule:
    """The rule that ``text`` states: ``name``, ``not name`` or ``name OP number``.

    Raises:
        RefusedError: PR044 (a :class:`ValueError`) when it can't be read, names what the tool does not
            record, or would exclude every repeat or none.
    """
    match = _RULE.fullmatch(text)
    if match is None:
        advice = 'Write a flag, "not" and a flag, or a reading compared with a number: "load_average > 4".'
        raise RefusedError("PR044", f"{quoted(text)} is no rule", advice)
    name = match["name"]
    if name not in READINGS:
        hint = suggestion(name, READINGS, "a rule may name")
        message = f"{quoted(text)} names {quoted(name)}, which the tool does not record of a repeat's machine"
        raise RefusedError("PR044", message + hint)
    return _of_flag(text, match) if name in FLAGS else _of_number(text, match)


def rule_broken(rules: Iterable[str] | None, environment: Mapping[str, Any]) -> str | None:
    """The first rule that a repeat breaks, with the reading: ``load_average > 4 (was 5.2)``; or ``None``.

    Args:
        rules: As registered (``experiment.table.exclude``); they have been loaded, so each can be read.
        environment: What was recorded when the repeat ended (``Finished.environment``).

    A reading that isn't there breaks no rule: what can't be read excludes nothing.
    """
    for rule in map(parse_rule, rules or ()):
        reading = reading_of(rule.name, environment)
        if reading is not None and _COMPARISONS[rule.operator](reading, rule.value):
            return f"{rule.text} (was {shown(reading)})"
    return None


def follows_from_rules(rules: Iterable[str] | None, cause: str | None) -> bool:
    """Whether the ``cause`` of an ``excluded`` repeat is a registered rule: alone, or with what broke it.

    Rules are compared as parsed: a study may be written anew without a word of it changing. Any other cause
    was written by somebody else.
    """
    text, _, reading = (cause or "").partition(" (")
    try:
        rule = parse_rule(text)
    except RefusedError:
        return False
    if canonical_rules([text])[0] not in canonical_rules(rules or ()):
        return False
    value = _written(rule.name, reading.removeprefix("was ").removesuffix(")"))
    return not reading or (value is not None and _COMPARISONS[rule.operator](value, rule.value))


def canonical_rules(rules: Iterable[str]) -> list[list[str | Reading]]:
    """The rules as a digest holds them: parsed, each once, in an order of their own."""
    parsed = {(rule.name, rule.operator, rule.value) for rule in map(parse_rule, rules)}
    return [list(rule) for rule in sorted(parsed)]


def reading_of(name: str, environment: Mapping[str, Any]) -> Reading | None:
    """One reading of a repeat's machine; ``None`` where it wasn't taken, or is not what it should be."""
    value = environment.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value if isinstance(value, bool) and name in FLAGS else None
    return value if math.isfinite(value) and name in NUMBERS else None


def shown(reading: Reading) -> str:
    """A reading as a message has it: ``5.2``, ``true``."""
    return str(reading).lower() if isinstance(reading, bool) else repr(reading).removesuffix(".0")


def _written(name: str, text: str) -> Reading | None:
    """The reading that :func:`shown` wrote."""
    if name in FLAGS:
        return {"true": True, "false": False}.get(text)
    return float(text) if _NUMBER.fullmatch(text) else None


def _of_flag(text: str, match: re.Match[str]) -> Rule:
    name = match["name"]
    if match["operator"]:
        message = f"{quoted(text)} compares {quoted(name)}, which is true or false"
        raise RefusedError("PR044", message, f'Write "{name}" or "not {name}".')
    return Rule(text=text, name=name, operator="==", value=match["negated"] is None)


def _of_number(text: str, match: re.Match[str]) -> Rule:
    name, sign = match["name"], match["operator"]
    if match["negated"] or sign is None:
        message = f"{quoted(text)} takes {quoted(name)}, which is a number, for a flag"
        raise RefusedError("PR044", message, f'Compare it, as in "{name} > 4".')
    if sign not in _COMPARISONS:
        message = f"{quoted(text)} has {quoted(sign)}, which is no comparison"
        raise RefusedError("PR044", message, f"Comparisons are {listed(_COMPARISONS)}.")
    value = _number(text, match["value"])
    if why := _pointless(sign, value):
        raise RefusedError("PR044", f"{quoted(text)} {why}, since {quoted(name)} is never negative")
    return Rule(text=text, name=name, operator=sign, value=value)


def _number(text: str, written: str) -> float:
    value = float(written) if _NUMBER.fullmatch(written) else math.nan
    if not math.isfinite(value):
        message = f"{quoted(text)} compares with {quoted(written)}, which is no finite number"
        raise RefusedError("PR044", message, "Write a number alone, without a unit.")
    return value + 0.0  # -0.0 and 0.0 are one rule


def _pointless(sign: str, value: float) -> str | None:
    """What is wrong with a rule that no reading, or every reading, breaks; ``None`` if some do."""
    every = {"<=": False, "<": False, ">=": value <= 0, ">": value < 0, "==": False, "!=": value < 0}
    none = {"<=": value < 0, "<": value <= 0, ">=": False, ">": False, "==": value < 0, "!=": False}
    if every[sign]:
        return "would exclude every repeat"
    return "would never exclude a repeat" if none[sign] else None
