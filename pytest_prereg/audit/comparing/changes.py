"""A change of one key of what is registered: how it is worded, and the plainest things that it can mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from pytest_prereg.registry.model import Prediction, Study
from pytest_prereg.registry.quantities import node_text
from pytest_prereg.registry.refusals import listed, quoted


class Weakening(msgspec.Struct, kw_only=True, frozen=True):
    """One way in which a registration asks less than it did, or something else."""

    what: str
    """What changed, in a word or two: ``predicts``, ``repeats``, ``question``."""
    message: str
    """From what to what, and what that makes easier; for people."""


class Revision(msgspec.Struct, kw_only=True, frozen=True):
    """A prediction as it was registered at one time, in the study that it was part of."""

    study: Study
    prediction: Prediction


class Change(msgspec.Struct, kw_only=True, frozen=True):
    """A key of what is registered, on both sides; ``None`` where it says nothing, or is at its default."""

    key: str
    before: Any
    after: Any
    old: Revision
    new: Revision
    experiment: str = ""
    """Whose key it is; empty for the prediction's own."""
    default: Any = None
    """What a missing value stands for."""
    of: str = ""
    """Whose key it is within the experiment: a metric, an arm."""


Rule = Callable[[Change], Iterable[Weakening]]

QUESTION = "question"
"""``Weakening.what`` where something else is asked than was: all such changes are told as one."""


def harmless(change: Change) -> Iterable[Weakening]:  # noqa: ARG001 - a rule like the others
    """Nothing that a verdict depends on."""
    return ()


def question(change: Change) -> Iterable[Weakening]:
    """Something else is asked than was."""
    yield Weakening(what=QUESTION, message=moved(change))


def told(effect: str) -> Rule:
    """Whatever the change is, it may serve to get another verdict."""
    return lambda change: [_weakening(change, effect)]


def lowered(effect: str) -> Rule:
    """A lower number, or none where there was one, asks less."""
    return lambda change: [_weakening(change, effect)] if _less(_after(change), _before(change)) else []


def raised(effect: str) -> Rule:
    """A higher number, or none where there was one, asks less."""
    return lambda change: [_weakening(change, effect)] if _less(_before(change), _after(change)) else []


def became(value: object, effect: str) -> Rule:
    """This very value asks less than any other."""
    return lambda change: [_weakening(change, effect)] if _after(change) == value else []


def left_out(effect: str) -> Rule:
    """Names of a list that are no longer in it."""

    def rule(change: Change) -> Iterator[Weakening]:
        for name in change.before or ():
            if name not in (change.after or ()):
                message = f"{change.key} no longer names {quoted(name)}: {effect}"
                yield Weakening(what=f"{change.key} {name}", message=message)

    return rule


def added(effect: str) -> Rule:
    """Names of a list that were not in it."""

    def rule(change: Change) -> Iterator[Weakening]:
        for name in change.after or ():
            if name not in (change.before or ()):
                message = f"{change.key} names {quoted(name)}, too: {effect}"
                yield Weakening(what=f"{change.key} {name}", message=message)

    return rule


def ceased(value: object, effect: str) -> Rule:
    """This very value asked more than any other."""
    return lambda change: [_weakening(change, effect)] if _before(change) == value else []


def both(*rules: Rule) -> Rule:
    """All that several rules tell."""
    return lambda change: [one for rule in rules for one in rule(change)]


def _weakening(change: Change, effect: str) -> Weakening:
    return Weakening(what=_label(change), message=f"{moved(change)}: {effect}")


def moved(change: Change) -> str:
    """``repeats from 7 to 5``."""
    before, after = (_worded(change.key, value) for value in (_before(change), _after(change)))
    return f"{_label(change)} from {before} to {after}"


def _label(change: Change) -> str:
    return f"{change.key}{of(change.of)}"


def of(name: str) -> str:
    """Whose something is, to follow it; empty where that need not be said."""
    return f" of {name}" if name else ""


def _before(change: Change) -> Any:
    return change.default if change.before is None else change.before


def _after(change: Change) -> Any:
    return change.default if change.after is None else change.after


def _less(left: float | None, right: float | None) -> bool:
    """Whether a number is below another one; no number is below any."""
    return right is not None and (left is None or left < right)


def _worded(key: str, value: Any) -> str:
    if value is None:
        return "none"
    return quoted(_TEXTS[key](value)) if key in _TEXTS else words(value)


def _contrast(value: list[str]) -> str:
    operator, *operands = value
    return f" {operator} ".join(operands) if operator in "-/" else f"{operator}({', '.join(operands)})"


_TEXTS: dict[str, Callable[[Any], str]] = {
    "quantity": node_text,
    "divisor": node_text,
    "formula": node_text,
    "contrast": _contrast,
}
"""Keys whose values a digest has in parsed form, and how they are written."""


def words(value: Any) -> str:
    """A value as a file has it, in one line."""
    if value is None or value in ([], {}):
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:.15g}"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return listed(value)
    return quoted(json.dumps(value, ensure_ascii=False, sort_keys=True).replace('"', "'"))
