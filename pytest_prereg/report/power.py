"""What ``pytest-prereg power`` says: the chance of each verdict, by true value and by repeats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.errors import StudyError
from pytest_prereg.judge.chances import chance, plan_of, repeats_for
from pytest_prereg.judge.numbers import short, suffix
from pytest_prereg.judge.power import inner_count
from pytest_prereg.registry.judging import thresholds
from pytest_prereg.registry.lock import refused_unit
from pytest_prereg.registry.refusals import RefusedError, typed
from pytest_prereg.registry.regions import contains, edges
from pytest_prereg.registry.units import registered_unit
from pytest_prereg.report.columns import wrapped
from pytest_prereg.report.commands import decision_rule, estimand

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_prereg.judge.chances import Plan
    from pytest_prereg.registry.model import Prediction, Study
    from pytest_prereg.registry.regions import Region
    from pytest_prereg.registry.tables import PredictionTable

ENOUGH = 0.8
OF_ONE_POINT = (
    "chances are those of one point; that all are supported is rarer, and any can refute at alpha / k"
)
NO_VALUE = "-n asks about a true value: name one with --at, or in predictions.toml as expected or detect"
_MULTIPLES = (0.5, 1, 1.5, 2, 3, 5)
"""Of the registered repeats, where no number is asked for."""
_VERDICTS = ("supported", "refuted", "undecided")
_HEADER = "".join(f"{f'P({word})':>14}" for word in _VERDICTS)


def outlook(
    study: Study,
    prediction: Prediction,
    *,
    values: Sequence[float] = (),
    repeats: Sequence[int] = (),
    cv: float | None = None,
    sd: float | None = None,
    width: int = 80,
) -> list[str]:
    """Return what there is to say of a prediction's power.

    Args:
        study: The study.
        prediction: One of its predictions.
        values: True values to look at beside those that it names.
        repeats: Numbers of repeats to try; some around the planned number unless given.
        cv: Spread of repeats over their mean, in place of the registered one.
        sd: Spread of repeats in the unit shown, in place of the registered one.
        width: Of the text, in characters.

    Raises:
        StudyError: The units of the prediction don't go together (PR021).
    """
    lines = list(wrapped(f"{prediction.id}: {estimand(prediction, study.experiments)}", width))
    if prediction.members:
        return [*lines, *(f"see  pytest-prereg power {typed(name)}" for name in prediction.members)]
    try:
        unit, scale = registered_unit(study, prediction)
        predicts, falsifier = thresholds(prediction, unit)
    except RefusedError as refusal:
        raise StudyError(refused_unit(study, prediction, refusal)) from refusal
    lines += wrapped(decision_rule(prediction, predicts, falsifier), width)
    plan = plan_of(prediction, study.experiments[prediction.experiment], scale)
    if plan is None:
        return [*lines, *_unplanned(prediction)]
    if cv is not None or sd is not None:
        plan = replace(plan, cv=cv, sd=sd)
    named = values_of_interest(prediction.table, predicts, falsifier, values)
    if prediction.reduction == "all":
        lines += wrapped(OF_ONE_POINT, width)
    if repeats and not any(named.values()):
        lines += wrapped(NO_VALUE, width)
    if not any(chance(plan, predicts, value) is not None for value in named):
        return [*lines, "", *wrapped(_unknown(plan), width)]
    return [*lines, "", *power_lines(plan, predicts, falsifier, unit=unit, values=named, repeats=repeats)]


def _unplanned(prediction: Prediction) -> list[str]:
    """Return why a prediction without a plan has no power."""
    formula = prediction.formula is not None
    return ["power of a formula is not computed" if formula else "no number of repeats is registered"]


def samples_line(*, run_cost: float, sample_cost: float, run_sd: float, sample_sd: float) -> str:
    """Return how many samples to take in a repeat, so that what is spent gives the narrowest interval."""
    best = inner_count(run_cost, sample_cost, run_sd, sample_sd)
    return f"{max(1, round(best))} samples a repeat are worth their cost (Kalibera and Jones: {best:.3g})"


def power_lines(
    plan: Plan,
    predicts: Region,
    falsifier: Region,
    *,
    unit: str,
    values: Mapping[float, str],
    repeats: Sequence[int] = (),
) -> list[str]:
    """Return two tables: chances by true value at the planned repeats, and by repeats at each named value.

    Args:
        plan: How it will be judged.
        predicts: The predicted region, in the unit shown.
        falsifier: The falsifying region, in the unit shown.
        unit: The unit shown.
        values: True values and what to call each: ``expected``, ``detect``, or nothing.
        repeats: Numbers of repeats to tabulate; some around the planned number unless given.
    """
    lines = list(_by_value(plan, (predicts, falsifier), unit, values))
    for value, name in values.items():
        if name:
            label = f"at {short(value)}{suffix(unit)} ({name})"
            lines += _by_repeats(plan, (predicts, falsifier), value, label, repeats or around(plan))
    return lines


def values_of_interest(
    table: PredictionTable, predicts: Region, falsifier: Region, asked: Sequence[float] = ()
) -> dict[float, str]:
    """Return true values worth a look, ascending, with their names: those that are named, and all edges."""
    named = dict.fromkeys((*edges(predicts), *edges(falsifier)), "")
    named |= dict.fromkeys(asked, "asked")
    named |= {value: key for key in ("detect", "expected") if (value := getattr(table, key)) is not None}
    return dict(sorted(named.items()))


def around(plan: Plan) -> list[int]:
    """Return numbers of repeats around those that are planned."""
    n = max(plan.n)
    return sorted({max(1, round(multiple * n)) for multiple in _MULTIPLES})


def chances(plan: Plan, regions: tuple[Region, Region], value: float) -> tuple[float, float, float] | None:
    """Return P(supported), P(refuted) and P(neither) at a true value; ``None`` where they are not known."""
    supported, refuted = (chance(plan, region, value) for region in regions)
    if supported is None or refuted is None:
        return None
    return supported, refuted, max(0.0, 1 - supported - refuted)


def probability(value: float) -> str:
    """Return a probability to two digits, never as a certainty."""
    text = f"{value:.2f}"
    return {"1.00": "> 0.99", "0.00": "< 0.01"}.get(text, text)


def _unknown(plan: Plan) -> str:
    if plan.clustered:
        return "power is unknown: it hangs on how alike the trials of a repeat are"
    if plan.operator in ("plateau", "increasing"):
        return f"power of {plan.operator} is not computed"
    needed = "--cv or --sd" if plan.relative else "--sd"
    return f"power is unknown: say how much repeats vary, with {needed} or in predictions.toml"


def _by_value(
    plan: Plan, regions: tuple[Region, Region], unit: str, values: Mapping[float, str]
) -> Iterator[str]:
    yield f"{'if it is truly':>20}{_HEADER}"
    for value, name in values.items():
        label = f"{short(value)}{suffix(unit)}" + (f" ({name})" if name else "")
        yield f"{label:>20}{_cells(chances(plan, regions, value))}"


def _by_repeats(
    plan: Plan, regions: tuple[Region, Region], value: float, label: str, repeats: Sequence[int]
) -> Iterator[str]:
    yield ""
    yield label
    yield f"{'blocks' if plan.paired else 'repeats':>20}{_HEADER}"
    for n in repeats:
        marked = f"{n} (planned)" if (n,) * len(plan.n) == plan.n else str(n)
        yield f"{marked:>20}{_cells(chances(replace(plan, n=(n,) * len(plan.n)), regions, value))}"
    for word, region in zip(_VERDICTS, regions, strict=False):
        needed = repeats_for(plan, region, value, ENOUGH) if contains(region, value, value) else None
        if needed is not None:
            yield f"{'':>20}  from {needed} on, P({word}) is at least {ENOUGH}"


def _cells(found: tuple[float, float, float] | None) -> str:
    return "".join(f"{'?' if found is None else probability(found[at]):>14}" for at in range(3))
