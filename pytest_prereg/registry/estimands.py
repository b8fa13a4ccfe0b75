"""What is estimated across repeats, and under which pairing and stopping rule there is an interval for it.

``RULES`` is the one place that says so: whatever is not in it is refused, with what to write instead.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from pytest_prereg.registry.contrasts import FORMS
from pytest_prereg.registry.quantities import is_binary
from pytest_prereg.registry.refusals import RefusedError, listed, quoted, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_prereg.registry.model import Contrast, Operator, Quantity, Stopping
    from pytest_prereg.registry.tables import PredictionTable

Reduction = Literal["geometric-mean", "min", "all"]
Pairing = Literal["block", "none"]
Early = Literal["looks", "anytime"]

STATISTICS = ("mean", "geometric-mean", "median", "proportion", "quantile(q)", "sd", "ratio-of-sums")
REDUCTIONS: tuple[Reduction, ...] = ("geometric-mean", "min", "all")
"""What ``statistic`` may be where ``over`` reduces a sweep; the first is the default."""

IMPLIED = {"ratio-of-sums": ("numerator", "denominator"), "proportion": ("successes", "trials")}
"""Statistics that two keys bring with them in place of ``quantity``."""

_NAMES = tuple(name.partition("(")[0] for name in STATISTICS)
_QUANTILE = re.compile(r"quantile\s*\(\s*([0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*\)")


class Estimand(NamedTuple):
    """A statistic across repeats, of one arm or of a contrast; ``over`` reduces what it is at each point."""

    statistic: str
    operator: Operator | None = None
    reduction: Reduction | None = None


class Rule(NamedTuple):
    """When there is an interval for an estimand."""

    pairings: frozenset[str]
    anytime: frozenset[str] = frozenset()
    """Pairings with which an interval holds after every repeat at once."""
    looks: bool = True


class Combination(NamedTuple):
    """One estimand under one pairing and stopping rule."""

    estimand: Estimand
    pairing: Pairing
    early: Early | None
    refusal: RefusedError | None
    """Why it is refused; ``None`` if it is accepted."""


_EITHER = frozenset({"block", "none"})
_BLOCK = frozenset({"block"})

RULES: Mapping[Estimand, Rule] = {
    Estimand("mean"): Rule(_EITHER, anytime=_EITHER),
    Estimand("geometric-mean"): Rule(_EITHER, anytime=_EITHER),
    Estimand("median"): Rule(_EITHER),
    Estimand("quantile"): Rule(_EITHER),
    Estimand("proportion"): Rule(_EITHER),
    Estimand("sd"): Rule(_EITHER),
    Estimand("ratio-of-sums"): Rule(_EITHER),
    Estimand("mean", "-"): Rule(_EITHER, anytime=_BLOCK),
    Estimand("geometric-mean", "/"): Rule(_EITHER, anytime=_BLOCK),
    Estimand("mean", "/"): Rule(_EITHER),
    Estimand("mean", "plateau"): Rule(_EITHER),
    Estimand("mean", "increasing"): Rule(_EITHER),
    Estimand("mean", "exponent"): Rule(_BLOCK),
    Estimand("geometric-mean", None, "geometric-mean"): Rule(_BLOCK),
    Estimand("geometric-mean", "/", "geometric-mean"): Rule(_BLOCK),
    Estimand("mean", None, "min"): Rule(_BLOCK),
    Estimand("mean", "-", "min"): Rule(_BLOCK),
    Estimand("geometric-mean", "/", "min"): Rule(_BLOCK),
    Estimand("all", None, "all"): Rule(_BLOCK),
    Estimand("all", "-", "all"): Rule(_BLOCK),
    Estimand("all", "/", "all"): Rule(_BLOCK),
    Estimand("formula"): Rule(_EITHER, looks=False),
    Estimand("all"): Rule(_EITHER, looks=False),
}
"""Every estimand that the judge has an interval for. Of one arm the pairing makes no difference."""


def estimand_of(table: PredictionTable, contrast: Contrast | None) -> Estimand:
    """What a prediction estimates, with the defaults filled in.

    Raises:
        RefusedError: PR005 for an unknown statistic, PR004 for one whose keys are missing, PR023 for one that
            has no interval with this contrast, these keys or this reduction.
    """
    operator = contrast.operator if contrast else None
    if table.over is not None:
        return _reduced(table, operator)
    implied = _implied(table)
    statistic = _name(table.statistic or implied or ("geometric-mean" if operator == "/" else "mean"))
    if implied is not None and statistic != implied:
        keys = listed(IMPLIED[implied])
        raise RefusedError("PR023", f"{keys} are judged by {quoted(implied)}, not by {quoted(statistic)}")
    if statistic == "ratio-of-sums" and implied is None:
        keys = listed(IMPLIED[statistic])
        raise RefusedError("PR004", f'statistic {quoted(statistic)} takes {keys} in place of "quantity"')
    estimand = Estimand(statistic, operator)
    if estimand not in RULES:
        raise RefusedError("PR023", _no_interval(estimand, implied))
    return estimand


def quantile_of(table: PredictionTable) -> float | None:
    """The argument of ``quantile(q)``; ``None`` for every other statistic.

    Raises:
        RefusedError: PR005, for anything but one number between 0 and 1.
    """
    written = (table.statistic or "").strip()
    if written.partition("(")[0].strip() != "quantile":
        return None
    match = _QUANTILE.fullmatch(written)
    q = float(match[1]) if match else 0.0
    if not 0 < q < 1:
        raise RefusedError(
            "PR005",
            f'"statistic" is {quoted(table.statistic)}; write "quantile(q)" with q above 0 and below 1',
        )
    return q


def check_binary(
    quantity: Quantity, divisor: Quantity | None, statistic: str, operator: Operator | None
) -> None:
    """Refuse (PR033) a statistic other than a proportion of what is only ever 0 or 1."""
    binary = [each for each in (quantity, divisor) if each is not None and is_binary(each.node)]
    if not binary or statistic == "proportion":
        return
    remedy = 'write statistic = "proportion"'
    if divisor is not None:
        remedy = 'write "successes" and "trials", or predict its proportion apart'
    elif operator is not None:
        remedy += ", one arm at a time"
    what = f"quantity {quoted(binary[0].text)} is 0 or 1, and its {statistic} has no honest interval"
    raise RefusedError("PR033", f"{what}; {remedy}")


def range_of(estimand: Estimand) -> str:
    """The word that says where an estimate must lie: a contrast, or the statistic of each point."""
    if estimand.operator == "plateau":
        return "plateau"
    return "geometric-mean" if estimand == Estimand("all", "/", "all") else estimand.statistic


def early(stopping: Stopping | None) -> Early | None:
    """The kind of a stopping rule."""
    if stopping is None:
        return None
    return "anytime" if stopping.anytime else "looks"


def undecided(estimand: Estimand, pairing: Pairing, may_end: Early | None) -> list[RefusedError]:
    """PR024 for each reason why no interval decides an estimand of ``RULES`` in an experiment so planned.

    Args:
        estimand: A key of ``RULES``.
        pairing: The experiment's.
        may_end: Its stopping rule; ``None`` where every repeat is run.
    """
    rule, what = RULES[estimand], _described(estimand)
    refusals = []
    if pairing not in rule.pairings:
        refusals.append(f'{what} is judged block by block; write pairing = "block" in its experiment')
    if may_end == "anytime" and pairing not in rule.anytime:
        blocks = 'write pairing = "block", or ' if "block" in rule.anytime else ""
        instead = "repeats = { looks = [5, 10] } or a number" if rule.looks else "repeats as a number"
        verb = "" if blocks else "write "
        refusals.append(
            f'{what} has no interval that holds after every repeat (stopping = "anytime"); '
            f"{blocks}{verb}{instead}"
        )
    if may_end == "looks" and not rule.looks:
        refusals.append(f"{what} is judged from complete series, without looks; write repeats as a number")
    return [RefusedError("PR024", refusal) for refusal in refusals]


def combinations() -> Iterator[Combination]:
    """Every statistic with every contrast, reduction, pairing and stopping rule, and what becomes of it.

    What is refused as an estimand (PR023) is so under every pairing and stopping rule.
    """
    operators: tuple[Operator | None, ...] = (None, *FORMS)
    plain = [Estimand(*each) for each in itertools.product((*_NAMES, "formula", "all"), operators)]
    reduced = [_of_reduction(word, operator) for word, operator in itertools.product(REDUCTIONS, operators)]
    pairings: tuple[Pairing, ...] = ("block", "none")
    rules: tuple[Early | None, ...] = (None, "looks", "anytime")
    for estimand, pairing, may_end in itertools.product((*plain, *reduced), pairings, rules):
        if estimand in RULES:
            refusals = undecided(estimand, pairing, may_end)
        else:
            refusals = [RefusedError("PR023", _no_interval(estimand, None))]
        yield Combination(estimand, pairing, may_end, refusals[0] if refusals else None)


def _implied(table: PredictionTable) -> str | None:
    """The statistic that two keys bring with them; with a ``quantity`` beside them nothing is said of it."""
    for statistic, keys in IMPLIED.items():
        if table.quantity is None and any(getattr(table, key) is not None for key in keys):
            return statistic
    return None


def _name(written: str) -> str:
    """A statistic without its argument, which ``quantile`` alone takes."""
    name, bracket, _ = written.strip().partition("(")
    name = name.strip()
    if name in ("min", "all"):
        raise RefusedError("PR023", f'statistic {quoted(name)} reduces a sweep, so it needs "over"')
    if name not in _NAMES or (bracket and name != "quantile"):
        hint = suggestion(written, STATISTICS, "known")
        raise RefusedError("PR005", f'"statistic" is {quoted(written)}{hint}')
    return name


def _reduced(table: PredictionTable, operator: Operator | None) -> Estimand:
    if (implied := _implied(table)) is not None:
        what = f'"over" reduces a "quantity", not {listed(IMPLIED[implied])}'
        raise RefusedError("PR023", f'{what}; write for-each, or a "quantity"')
    written = (table.statistic or REDUCTIONS[0]).strip()
    if written not in REDUCTIONS:
        if written.partition("(")[0] not in _NAMES:
            hint = suggestion(written, REDUCTIONS, 'known with "over"')
            raise RefusedError("PR005", f'"statistic" is {quoted(written)}{hint}')
        what = f'statistic {quoted(written)} can\'t reduce a sweep; with "over" it is'
        raise RefusedError("PR023", f"{what} {listed(REDUCTIONS, 'or')}")
    estimand = _of_reduction(next(word for word in REDUCTIONS if word == written), operator)
    if estimand not in RULES:
        raise RefusedError("PR023", _no_interval(estimand, None))
    return estimand


def _of_reduction(word: Reduction, operator: Operator | None) -> Estimand:
    """What is judged across blocks, where ``word`` reduces the points of each."""
    if word == "min":
        return Estimand("geometric-mean" if operator == "/" else "mean", operator, word)
    return Estimand(word, operator, word)


def _no_interval(estimand: Estimand, implied: str | None) -> str:
    """What to say of an estimand that is not in ``RULES``."""
    statistic, operator, reduction = estimand
    form = f'"{FORMS[operator]}"' if operator else "one arm"
    if implied is not None:
        return f"{listed(IMPLIED[implied])} have no interval for {form}; judge one arm"
    if statistic in ("formula", "all") and reduction is None:
        return f"{quoted(statistic)} takes no contrast; its inputs or members have their own"
    offered = _offered(operator, reduced=reduction is not None)
    if reduction is None:
        return f"statistic {quoted(statistic)} has no interval for {form}; use {offered}, or judge one arm"
    if not offered:
        return f'"over" can\'t reduce {form}; write for-each'
    return f'statistic {quoted(reduction)} with "over" has no interval for {form}; use {offered}'


def _offered(operator: Operator | None, *, reduced: bool) -> str:
    names = {
        each.reduction or each.statistic
        for each in RULES
        if each.operator == operator and (each.reduction is not None) == reduced
    }
    return listed(sorted(names), "or")


def _described(estimand: Estimand) -> str:
    if estimand.reduction is not None:
        return f'statistic {quoted(estimand.reduction)} with "over"'
    if estimand == Estimand("formula"):
        return "a formula"
    if estimand == Estimand("all"):
        return '"all"'
    of = f' of "{FORMS[estimand.operator]}"' if estimand.operator else ""
    return f"statistic {quoted(estimand.statistic)}{of}"
