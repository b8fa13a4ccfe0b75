"""The unit of a quantity, from the units of its metrics, and the unit that its verdict is shown in.

Resolved once, at ``lock``, and stored there; nothing here runs while judging.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from pytest_prereg.registry.dimensions import convert, ratio, root
from pytest_prereg.registry.judging import refuse_overlap, thresholds
from pytest_prereg.registry.model import Metric, Quantity
from pytest_prereg.registry.quantities import COMPARISONS, node_text
from pytest_prereg.registry.refusals import RefusedError, quoted
from pytest_prereg.registry.regions import describe, edges, scaled
from pytest_prereg.registry.structure import Complaints, label
from pytest_prereg.registry.toml import positions_of, shown
from pytest_prereg.registry.unit_text import Powers, normal_unit, parse_unit, raised, times, unit_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_prereg.errors import Problem
    from pytest_prereg.registry.model import Experiment, Input, Node, Prediction, Study
    from pytest_prereg.registry.regions import Region
    from pytest_prereg.registry.tables import ConstantTable

__all__ = ["check_units", "convert", "estimated_unit", "natural_unit", "registered_unit", "resolve_unit"]

_PURE: Powers = {}
_SAME_UNIT = frozenset({"+", "-", "min", "max", *COMPARISONS.values()})
_KEEPS_UNIT = frozenset({"-", "abs", "min", "max", "mean", "median", "sum", "std", "quantile"})
_PURE_CONTRASTS = {"/": "the ratio of two arms", "exponent": "the exponent"}
_LARGEST_EXPONENT = 20


def natural_unit(node: Node, metrics: Mapping[str, Metric], constants: Mapping[str, ConstantTable]) -> str:
    """The unit that ``node`` has when metrics are in their declared units.

    Raises:
        RefusedError: PR021, where units don't go together: a sum of seconds and tokens, of s and ms.
    """
    return unit_text(_powers(node, metrics, constants) or _PURE)


def resolve_unit(
    quantity: Quantity,
    metrics: Mapping[str, Metric],
    constants: Mapping[str, ConstantTable],
    wanted: str | None,
) -> tuple[str, float]:
    """The unit shown, and the factor that a value in natural units is multiplied by to be in it.

    Without a wish it is the natural unit, and ``1`` for a pure number: of ``ms / s`` the factor is 0.001.

    Raises:
        RefusedError: PR021, where units don't go together or ``wanted`` measures something else.
    """
    natural = natural_unit(quantity.node, metrics, constants)
    try:
        return _shown(natural, wanted)
    except RefusedError as refusal:
        raise RefusedError(
            "PR021",
            f"quantity {quoted(quantity.text)} is in {_spelt(natural)}; it can't be in {quoted(wanted)}",
        ) from refusal


def registered_unit(study: Study, prediction: Prediction) -> tuple[str, float]:
    """The unit that a prediction is registered in, and the factor from its natural unit.

    The unit is the prediction's ``unit``, else the one that a region names, else the natural one. ``a / b``
    and ``exponent`` are registered as pure numbers whatever is written: a factor on all values would cancel.
    A conjunction has no values of its own, and is registered as a pure number, too.
    """
    if prediction.members:
        return "1", 1.0
    if _is_pure(prediction):
        estimated_unit(study, prediction)
        return "1", 1.0
    wanted = prediction.table.unit or prediction.predicts.unit or prediction.falsifier.unit
    return resolve_unit(_measured(prediction), _operands(study, prediction), study.constants, wanted)


def estimated_unit(study: Study, prediction: Prediction) -> str:
    """The natural unit of what is estimated: of the quantity, or of numerator over denominator.

    ``a / b`` and ``exponent`` are pure numbers, and so is a proportion of successes among trials.

    Raises:
        RefusedError: PR021, where units don't go together, or successes are no part of the trials.
    """
    natural = natural_unit(_measured(prediction).node, _operands(study, prediction), study.constants)
    if prediction.divisor is not None and prediction.statistic == "proportion":
        _check_counts(study, prediction, natural)
    return "1" if _is_pure(prediction) else natural


def check_units(study: Study) -> list[Problem]:
    """Everything that is wrong with the units of a study; ``lock`` refuses it. Imports pint."""
    complaints = Complaints(shown(study.path), positions_of(study.path))
    for experiment in study.experiments.values():
        for metric in experiment.metrics.values():
            _check_metric(experiment, metric, complaints)
    for prediction in study.predictions.values():
        unsound = any(complaints.told("experiments", name) for name in prediction.experiments)
        if not unsound and not prediction.members:
            _check_prediction(study, prediction, complaints)
    return sorted(complaints.problems, key=lambda problem: problem.line or 0)


def _is_pure(prediction: Prediction) -> bool:
    """Whether what is compared across arms has no unit, whatever is measured in each."""
    return _operator(prediction) in _PURE_CONTRASTS


def _operator(prediction: Prediction) -> str:
    return prediction.contrast.operator if prediction.contrast is not None else ""


def _has(prediction: Prediction, key: str) -> bool:
    return getattr(prediction.table, key) is not None


def _measured(prediction: Prediction) -> Quantity:
    """The quantity, or what is divided as one expression."""
    top, bottom = prediction.quantity, prediction.divisor
    if bottom is None:
        return top
    metrics = tuple(sorted({*top.metrics, *bottom.metrics}))
    text = f"sum({top.text}) / sum({bottom.text})"
    return Quantity(text=text, node=["/", top.node, bottom.node], metrics=metrics)


def _check_counts(study: Study, prediction: Prediction, natural: str) -> None:
    """Refuse (PR021) successes that are counted in another unit than the trials."""
    if prediction.divisor is None or root(parse_unit(natural)) == root(_PURE):
        return
    metrics = study.experiments[prediction.experiment].metrics
    successes, trials = (
        f"{quoted(key)} is in {_spelt(natural_unit(each.node, metrics, study.constants))}"
        for key, each in (("successes", prediction.quantity), ("trials", prediction.divisor))
    )
    raise RefusedError("PR021", f"{successes} and {trials}; count both in one unit")


def _operands(study: Study, prediction: Prediction) -> dict[str, Metric]:
    """What the names in a quantity stand for: the metrics of its experiment, or the inputs of a formula."""
    if prediction.formula is None:
        return study.experiments[prediction.experiment].metrics
    return {each.name: _operand(study, each) for each in prediction.formula.inputs}


def _operand(study: Study, source: Input) -> Metric:
    if source.experiment is None or source.quantity is None:
        unit = study.constants[source.constant or ""].unit
    else:
        metrics = study.experiments[source.experiment].metrics
        unit = natural_unit(source.quantity.node, metrics, study.constants)
    return Metric(name=source.name, unit=unit)


def needs_name(natural: str) -> bool:
    """Whether a bare number leaves open what it counts: it does in ``s`` or ``%``, not in ``1``, ``ms/s``."""
    powers = parse_unit(natural)
    factor, base = root(powers)
    return bool(base) or (len(powers) == 1 and factor != 1.0)


def _check_metric(experiment: Experiment, metric: Metric, complaints: Complaints) -> None:
    keys = ("experiments", experiment.id, "metrics", metric.name)
    try:
        _, base = root(parse_unit(metric.unit))
    except RefusedError as refusal:
        complaints.mute(keys[:2])
        complaints.refuse(keys, label(keys), refusal)
        return
    if metric.exact and "second" in base:
        what = "a time" if base == {"second": 1} else "measured against time"
        complaints.add(keys, "PR005", f'{label(keys)} is {what}, which is never "exact"')


def _check_prediction(study: Study, prediction: Prediction, complaints: Complaints) -> None:
    keys = ("predictions", prediction.name or prediction.id)
    key = next(key for key in ("quantity", "formula", "numerator", "successes") if _has(prediction, key))
    try:
        natural = estimated_unit(study, prediction)
        key = "predicts"
        _check_region(key, prediction.predicts, prediction.table.predicts, natural, prediction)
        if (prediction.table.falsifier or "").strip() != "otherwise":
            key = "falsifier"
            _check_region(key, prediction.falsifier, prediction.table.falsifier, natural, prediction)
        unit, _ = registered_unit(study, prediction)
        refuse_overlap(prediction.table, *thresholds(prediction, unit))
    except RefusedError as refusal:
        if not complaints.told(*keys, key):  # once for all that a for-each table makes
            complaints.add((*keys, key), refusal.code, str(refusal), refusal.advice)


def _check_region(key: str, region: Region, text: str | None, natural: str, prediction: Prediction) -> None:
    unit = region.unit or prediction.table.unit
    noun = "quantity" if prediction.formula is None else "formula"
    quantity = f"{noun} {quoted(_measured(prediction).text)}"
    if unit is None and needs_name(natural) and any(edges(region)):
        better = quoted(f"{text} {natural}") + _or_as_a_share(region, natural)
        raise RefusedError(
            "PR021", f"{quantity} is in {natural}, but {quoted(key)} has no unit; write {better}"
        )
    if unit is not None:
        try:
            ratio(parse_unit(natural), parse_unit(unit), natural, unit)
        except RefusedError:
            what = _PURE_CONTRASTS.get(_operator(prediction), quantity)
            message = f"{what} is in {_spelt(natural)}, but {quoted(key)} is in {unit}"
            raise RefusedError("PR021", message.replace("is in no unit", "has no unit")) from None


def _or_as_a_share(region: Region, natural: str) -> str:
    """The other thing that was possibly meant: of percents, numbers up to 1 may be shares."""
    factor, base = root(parse_unit(natural))
    numbers = edges(region)
    if base or not math.isclose(factor, 0.01) or max(map(abs, numbers)) > 1:
        return ""
    share = describe(scaled(region, 100, natural)).replace("≤", "<=").replace("≥", ">=")
    number = f"a share of {numbers[0]:g}" if len(numbers) == 1 else "shares"
    return f" if that is meant, or {quoted(share)} for {number}"


def _shown(natural: str, wanted: str | None) -> tuple[str, float]:
    if wanted is not None:
        return normal_unit(wanted), ratio(parse_unit(natural), parse_unit(wanted), natural, wanted)
    return (natural, 1.0) if needs_name(natural) else ("1", root(parse_unit(natural))[0])


def _powers(
    node: Node, metrics: Mapping[str, Metric], constants: Mapping[str, ConstantTable]
) -> Powers | None:
    """Unit of ``node``; ``None`` for a bare number, which takes the unit of what it is added to."""
    if isinstance(node, str):
        return _PURE if node == "completed" else parse_unit(metrics[node].unit)
    if not isinstance(node, list):
        return None
    name, operands = node[0], node[1:]
    if name == "constant":
        return parse_unit(constants[operands[0]].unit)
    units = [_powers(operand, metrics, constants) for operand in operands]
    if len(units) > 1 and name in _SAME_UNIT:
        common = _common(operands, units)
        return _PURE if name in COMPARISONS.values() else common
    if name in _KEEPS_UNIT:
        return units[0]
    return _derived(name, operands, [unit or _PURE for unit in units])


def _derived(name: str, operands: list[Node], units: list[Powers]) -> Powers:
    if name in ("*", "/"):
        return times(units[0], units[1], 1 if name == "*" else -1)
    if name == "sqrt":
        return raised(units[0], Fraction(1, 2))
    if name == "**":
        return _power(operands, units)
    if name != "count" and units[0]:
        operand = quoted(node_text(operands[0]))
        raise RefusedError(
            "PR021", f"{quoted(name)} takes a pure number, but {operand} is in {unit_text(units[0])}"
        )
    return _PURE


def _power(operands: list[Node], units: list[Powers]) -> Powers:
    base, exponent = operands
    if not units[0] and not units[1]:
        return _PURE
    if not isinstance(exponent, float) or abs(exponent) > _LARGEST_EXPONENT:
        written = f"{quoted(node_text(base))} is in {unit_text(units[0])}"
        raise RefusedError("PR021", f"{written}: raise it to a plain, small number only")
    return raised(units[0], Fraction(exponent).limit_denominator(100))


def _common(operands: list[Node], units: list[Powers | None]) -> Powers | None:
    """The one unit of all operands; bare numbers take it."""
    named = [(operand, unit) for operand, unit in zip(operands, units, strict=True) if unit is not None]
    if not named:
        return None
    first, common = named[0]
    for operand, unit in named[1:]:
        if unit != common and root(unit) != root(common):
            same_kind = root(unit)[1] == root(common)[1]
            raise RefusedError(
                "PR021",
                f"{quoted(node_text(first))} is in {_spelt(unit_text(common))}, "
                f"{quoted(node_text(operand))} in {_spelt(unit_text(unit))}; "
                + ("declare both metrics in one unit" if same_kind else "they can't be added or compared"),
            )
    return common


def _spelt(unit: str) -> str:
    return "no unit" if unit == "1" else unit
