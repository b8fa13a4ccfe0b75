"""The design check: can this many repeats support or refute the prediction, and how likely is either."""

from __future__ import annotations

import math
from itertools import count
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.errors import Problem
from pytest_prereg.judge.chances import Plan, chance, plan_of, repeats_for
from pytest_prereg.judge.findings import number, plural
from pytest_prereg.judge.fitness import SMALLEST_N
from pytest_prereg.judge.locations import SKEWED_CV, SMALLEST_N_FOR_HULL
from pytest_prereg.judge.order_statistics import ranks, smallest_n_for_median, smallest_n_for_quantile
from pytest_prereg.judge.proportions import as_share, needed_n, reachable
from pytest_prereg.judge.question import may_be_equal
from pytest_prereg.judge.shares import limits_of
from pytest_prereg.registry.model import Prediction
from pytest_prereg.registry.refusals import quoted
from pytest_prereg.registry.regions import Region, Span, contains, describe, edges, overlaps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.registry.model import Experiment

ENOUGH_TO_REFUTE = 0.5
ENOUGH_AT_EXPECTED = 0.8
REACH = 3
"""A refutation has to be likely within this factor, or this many standard deviations, of the falsifier."""
_STEPS = 30
_NOUNS = {
    "-": "a difference of means",
    "/": "a ratio",
    "plateau": "a plateau",
    "increasing": "an increase",
    "exponent": "an exponent",
}
_POINTLESS = frozenset({"median", "quantile", "proportion"})
"""Statistics whose interval can have no width whatever the metric."""


class Chances(msgspec.Struct, kw_only=True, frozen=True):
    """Probability of each verdict when ``at`` is the true value."""

    at: float
    supported: float
    refuted: float


class DesignReport(msgspec.Struct, kw_only=True, frozen=True):
    """What is wrong with a design, and what its author should know."""

    problems: tuple[Problem, ...] = ()
    power: Chances | None = None
    """At ``expected``; ``None`` where that or the spread of repeats was not given."""
    notes: tuple[str, ...] = ()
    smallest_n: int | None = None
    """Fewest repeats with which any verdict is possible."""


class Design(msgspec.Struct, kw_only=True, frozen=True):
    """A prediction as the check sees it."""

    prediction: Prediction
    plan: Plan
    predicts: Region
    falsifier: Region
    exact: bool

    def problem(self, code: str, message: str, advice: str) -> Problem:
        """A problem at the prediction's line; the caller knows the file."""
        full = f'"{self.prediction.id}" {message}'
        return Problem(code=code, message=full, line=self.prediction.line, advice=advice)


def check_design(
    prediction: Prediction,
    experiment: Experiment,
    predicts: Region,
    falsifier: Region,
    *,
    scale: float = 1.0,
) -> DesignReport:
    """Check that both verdicts can be reached (PR034) and that a wrong claim would be refuted (PR035).

    A guard has to be likely to be right both where all is well and where it is not (PR037).

    Args:
        prediction: As registered; its ``expected``, ``detect``, ``cv`` and ``sd`` are used.
        experiment: The experiment, with its planned repeats.
        predicts: The predicted region, in the unit shown.
        falsifier: The falsifying region, in the unit shown.
        scale: Factor from the quantity's natural unit to the one shown.
    """
    plan = plan_of(prediction, experiment, scale)
    if plan is None:
        return DesignReport(notes=(_unplanned(prediction),))
    metrics = [experiment.metrics[name] for name in prediction.quantity.metrics if name in experiment.metrics]
    design = Design(
        prediction=prediction,
        plan=plan,
        predicts=predicts,
        falsifier=falsifier,
        exact=may_be_equal(prediction, metrics),
    )
    problems = (
        tuple(_unreachable(design))
        or tuple(_unreachable_after_exclusions(design, experiment.table.max_excluded))
        or (*_underpowered(design), *_unfit_to_guard(design))
    )
    power = _power(design)
    return DesignReport(
        problems=problems, power=power, notes=tuple(_notes(design, power)), smallest_n=smallest_n(plan)
    )


def smallest_n(plan: Plan) -> int:
    """Fewest repeats (of each arm) with which the method gives any verdict."""
    if plan.statistic == "median":
        return smallest_n_for_median(plan.confidence)
    unconditional = plan.statistic == "quantile" or (plan.statistic == "proportion" and not plan.clustered)
    return 1 if unconditional else SMALLEST_N


def _unplanned(prediction: Prediction) -> str:
    if prediction.statistic == "formula":
        return "the power of a formula is not computed"
    return "the number of repeats is not registered, so power is unknown"


def _unreachable(design: Design) -> Iterator[Problem]:
    """PR034 for each verdict that no data could give."""
    plan, n = design.plan, min(design.plan.n)
    if n < smallest_n(plan):
        noun = f"{_noun(plan)} needs {smallest_n(plan)}{' of each arm' if len(plan.n) > 1 else ''}"
        yield design.problem("PR034", f"can never be decided with {_count(plan)}: {noun}.", "Raise repeats.")
        return
    if not design.prediction.table.one_sided and (why := _out_of_reach(design, design.predicts)):
        advice = "Raise repeats, or set one-sided = true to only allow refutation."
        yield design.problem("PR034", f"can never be supported with {_count(plan)}: {why}.", advice)
    if why := _out_of_reach(design, design.falsifier):
        advice = "Raise repeats, or choose a falsifier that wrong results would reach."
        yield design.problem("PR034", f"can never be refuted with {_count(plan)}: {why}.", advice)


def _unreachable_after_exclusions(design: Design, allowed: int) -> Iterator[Problem]:
    """PR034 where no verdict is left once rules have excluded as many repeats as they may."""
    if not allowed:
        return
    plan = msgspec.structs.replace(design.plan, n=tuple(max(0, n - allowed) for n in design.plan.n))
    for problem in _unreachable(msgspec.structs.replace(design, plan=plan)):
        message = problem.message.removesuffix(".").removeprefix(f'"{design.prediction.id}" ')
        yield design.problem(
            "PR034",
            f"{message}, and max-excluded = {allowed} lets {_count(design.plan)} become so few.",
            "Raise repeats, or lower max-excluded.",
        )


def _out_of_reach(design: Design, region: Region) -> str | None:
    """Why no interval lies inside ``region``, or ``None``."""
    plan, what = design.plan, f"{_noun(design.plan)} {describe(region)}"
    if plan.statistic == "quantile":
        return _out_of_reach_of_quantile(plan, region)
    if plan.statistic == "proportion" and not plan.clustered:
        share = as_share(region, plan.scale)
        if reachable(share, plan.n[0], plan.confidence):
            return None
        needed = needed_n(share, plan.confidence)
        return f"{what} needs {needed}" if needed else f"{what} is out of reach at any number"
    if why := _out_of_range(design, region):
        return f"{what} does not exist, since it is {why}"
    points = all(span.low == span.high for span in region.spans)
    if points and plan.statistic not in _POINTLESS and not design.exact:
        return f"no interval fits in a single value, as {describe(region)} is"
    return None


def _out_of_range(design: Design, region: Region) -> str | None:
    """Where the estimand lies whatever is measured, if ``region`` is elsewhere."""
    if design.plan.logarithmic and all(span.high <= 0 for span in region.spans):
        return "above 0"
    limits = limits_of(design.prediction, design.plan.scale)
    if limits is None or overlaps(region, _between(*limits)):
        return None
    return f"from {number(limits[0])} to {number(limits[1])}"


def _between(least: float, greatest: float) -> Region:
    return Region(spans=(Span(low=least, high=greatest, low_closed=True, high_closed=True),))


def _out_of_reach_of_quantile(plan: Plan, region: Region) -> str | None:
    """Why no span of ``region`` holds the sides that so many repeats can bound."""
    from_below, from_above = smallest_n_for_quantile(plan.q or 0.5, plan.confidence)
    needs = [
        max(from_below if math.isfinite(span.low) else 1, from_above if math.isfinite(span.high) else 1)
        for span in region.spans
    ]
    if plan.n[0] >= min(needs):
        return None
    span = region.spans[needs.index(min(needs))]
    side = "an upper" if math.isfinite(span.high) and from_above == min(needs) else "a lower"
    return f"{side} bound on {_noun(plan).removeprefix('a ')} needs {min(needs)}"


def _underpowered(design: Design) -> Iterator[Problem]:
    """PR035 where even a value well inside the falsifier would seldom be refuted."""
    table = design.prediction.table
    if table.cv is None and table.sd is None:
        return
    values = [table.detect] if table.detect is not None else sorted(set(_within_reach(design)))
    chances = [(got, value) for value in values if (got := _refuted(design, value)) is not None]
    if not chances:
        return
    best, at = max(chances)
    if best >= ENOUGH_TO_REFUTE:
        return
    where = '"detect"' if table.detect is not None else "the best within reach of the falsifier"
    odds = f"P(refuted) is {best:.2f} at {number(at)}, {where}"
    message = f"would seldom be refuted: {odds}, with {_count(design.plan)}."
    needed = repeats_for(design.plan, design.falsifier, at, ENOUGH_TO_REFUTE)
    raised = f"Raise repeats to {needed}" if needed else "Raise repeats"
    yield design.problem("PR035", message, f"{raised}, or choose a falsifier that leaves less undecided.")


def _unfit_to_guard(design: Design) -> Iterator[Problem]:
    """PR037 where a guard would often miss what it is there for, or cry wolf."""
    table = design.prediction.table
    if table.kind != "guard":
        return
    for key, word, region, value in (
        ("expected", "supported", design.predicts, table.expected),
        ("detect", "refuted", design.falsifier, table.detect),
    ):
        got = None if value is None else chance(design.plan, region, value)
        if value is not None and (got is None or got < ENOUGH_AT_EXPECTED):
            odds = "unknown" if got is None else f"{got:.2f}"
            needed = None if got is None else repeats_for(design.plan, region, value, ENOUGH_AT_EXPECTED)
            message = (
                f"is no reliable guard: P({word}) is {odds} at {number(value)}, {quoted(key)}, with "
                f"{_count(design.plan)}; it has to be {ENOUGH_AT_EXPECTED}."
            )
            remedy = f"Raise repeats to {needed}" if needed else "Raise repeats, or give cv or sd"
            yield design.problem("PR037", message, f"{remedy}, or choose regions that leave less undecided.")


def _within_reach(design: Design) -> Iterator[float]:
    """Values within a factor 3, or 3 ``sd``, of the falsifier's edges."""
    plan = design.plan
    for edge in edges(design.falsifier):
        for step in range(-_STEPS, _STEPS + 1):
            if plan.cv and edge and plan.relative:
                yield edge * REACH ** (step / _STEPS)
            elif plan.sd:
                yield edge + REACH * plan.sd * step / _STEPS


def _refuted(design: Design, value: float) -> float | None:
    return chance(design.plan, design.falsifier, value)


def _power(design: Design) -> Chances | None:
    expected = design.prediction.table.expected
    if expected is None:
        return None
    supported = chance(design.plan, design.predicts, expected)
    refuted = _refuted(design, expected)
    if supported is None or refuted is None:
        return None
    return Chances(at=expected, supported=supported, refuted=refuted)


def _notes(design: Design, power: Chances | None) -> Iterator[str]:
    plan = design.plan
    if design.prediction.reduction == "all":
        yield "chances are those of one point"
    yield from _notes_on_stopping(plan)
    yield from _notes_on_spread(design)
    if power is not None:
        yield from _notes_on_power(design, power)
    if plan.statistic == "median" and ranks(plan.n[0], 0.5, plan.confidence)[0] == 1:
        inner = (n for n in count(plan.n[0]) if ranks(n, 0.5, plan.confidence)[0] != 1)
        yield f"a median of {plan.n[0]} rests on the extremes; {next(inner)} repeats would not"
    if plan.statistic == "mean" and plan.operator is None and SMALLEST_N <= plan.n[0] < SMALLEST_N_FOR_HULL:
        yield f"values of one sign with a CV above {SKEWED_CV} would need {SMALLEST_N_FOR_HULL} repeats"


def _notes_on_stopping(plan: Plan) -> Iterator[str]:
    if plan.looks > 1:
        yield f"{plan.looks} looks, each at {100 * plan.confidence:.4g} %; chances are the last one's alone"
    if plan.anytime:
        yield f"may stop after any block from {SMALLEST_N} on; chances are those after the last alone"


def _notes_on_spread(design: Design) -> Iterator[str]:
    plan = design.plan
    if plan.clustered:
        yield "power is unknown: it hangs on how alike the trials of a repeat are"
    elif plan.operator in ("plateau", "increasing"):
        yield f"the power of {_noun(plan)} is not computed"
    elif plan.statistic in ("proportion", "sd"):
        return
    elif plan.cv is None and plan.sd is None:
        yield "no cv given, power unknown" if plan.relative else "no sd given, power unknown"
    elif plan.sd is None and not plan.relative:
        yield f"cv says nothing about {_noun(plan)}; give sd"
    elif plan.sd is None and edges(design.falsifier) == (0.0,):
        yield "cv says nothing about a falsifier at 0; give sd"


def _notes_on_power(design: Design, power: Chances) -> Iterator[str]:
    for word, region, got in (
        ("supported", design.predicts, power.supported),
        ("refuted", design.falsifier, power.refuted),
    ):
        if contains(region, power.at, power.at):
            if got < ENOUGH_AT_EXPECTED:
                remedy = _remedy(design, region, power.at)
                yield f"P({word}) is only {got:.2f} at expected {number(power.at)}{remedy}"
            return
    yield f"expected {number(power.at)} lies in neither region"


def _remedy(design: Design, region: Region, at: float) -> str:
    needed = repeats_for(design.plan, region, at, ENOUGH_AT_EXPECTED)
    return f"; {needed} repeats would make it {ENOUGH_AT_EXPECTED}" if needed else ""


def _noun(plan: Plan) -> str:
    if plan.operator is not None:
        return _NOUNS[plan.operator]
    if plan.q is not None:
        return f"a quantile({plan.q:g})"
    return {"sd": "a standard deviation"}.get(plan.statistic, f"a {plan.statistic.replace('-', ' ')}")


def _count(plan: Plan) -> str:
    if len(set(plan.n)) > 1:
        return " and ".join(map(str, plan.n)) + " repeats"
    return plural(plan.n[0], "block" if plan.paired else "repeat") + (" per arm" if len(plan.n) > 1 else "")
