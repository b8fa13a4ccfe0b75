"""What is asked of a series: a prediction, resolved into what reading and deciding need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.judge.durations import is_duration
from pytest_prereg.judge.shares import asks_yes_or_no, is_share, limits_of
from pytest_prereg.registry.model import Metric, Node
from pytest_prereg.registry.regions import Region, edges

if TYPE_CHECKING:
    from pytest_prereg.registry.model import Experiment, Prediction


class Question(msgspec.Struct, kw_only=True, frozen=True):
    """One prediction, with its regions in the unit shown."""

    prediction: str
    text: str
    node: Node
    metric: str
    """The metric that a reading is, as it was recorded; empty where it is more than that."""
    divisor: Node | None
    """Denominator of a ratio of sums, or the trials of successes."""
    statistic: str
    q: float | None
    """The argument of ``quantile``."""
    operator: str | None
    paired: bool
    """Whether repeats are read block by block: two arms or more, of blocks."""
    arms: tuple[str, ...]
    treated: bool
    """Whether its arms asked for different hardware: that is then what is compared."""
    levels: tuple[float, ...]
    """The parameter's value in each arm, for a slope."""
    points: tuple[tuple[str, ...], ...]
    """Arms at each value of the swept axes, where those are reduced inside a block."""
    reduction: str | None
    confidence: float
    questions: int
    """How many the prediction asks, of each of its points one: they share the level of the test for drift."""
    anytime: bool
    """Whether the interval has to hold after every repeat at once."""
    metrics: list[Metric]
    scale: float
    """From the quantity's natural unit to the one shown."""
    constants: Mapping[str, float]
    predicts: Region
    falsifier: Region
    edges: tuple[float, ...]
    """Finite ends of both regions, ascending."""
    exact: bool
    """Whether readings that are all equal are taken for what they are."""
    duration: bool
    limits: tuple[float, float] | None
    """Between which the estimand lies whatever is measured, in the unit shown: 0 and 1 for shares."""
    caps: dict[str, float]
    resolutions: dict[str, float]
    bounds: dict[str, tuple[float, float]]
    """Least and greatest value that is physically possible, by metric."""
    counts_failures: bool
    """Whether a repeat that failed or timed out is one of those counted: a proportion of repeats."""
    takes_logs: bool
    """Whether each reading enters as its logarithm."""
    is_logarithmic: bool
    """Whether what is averaged across repeats is a logarithm, whose interval is mapped back."""
    is_plain: bool
    """Whether it is the mean of one metric in one arm, without anything that a reading or interval obeys."""


_KEPT: dict[tuple[int, float | None], tuple[Prediction, Experiment, Question]] = {}
_MOST_KEPT = 1024


def asked(
    prediction: Prediction,
    experiment: Experiment,
    *,
    predicts: Region,
    falsifier: Region,
    scale: float,
    constants: Mapping[str, float],
    confidence: float | None = None,
    questions: int = 1,
) -> Question:
    """What :func:`ask` returns, resolved once: a prediction is judged at each look and with each exclusion.

    What is kept holds on to all that it was asked of, so that an identity is that of one object.
    """
    kept = _KEPT.get((id(prediction), confidence))
    if kept is not None:
        question = kept[2]
        if (
            kept[0] is prediction
            and kept[1] is experiment
            and question.predicts is predicts
            and question.falsifier is falsifier
            and question.scale == scale
            and question.questions == questions
            and question.constants is constants
        ):
            return question
    question = ask(
        prediction,
        experiment,
        predicts=predicts,
        falsifier=falsifier,
        scale=scale,
        constants=constants,
        confidence=confidence,
        questions=questions,
    )
    if len(_KEPT) >= _MOST_KEPT:
        _KEPT.clear()
    _KEPT[id(prediction), confidence] = prediction, experiment, question
    return question


def ask(
    prediction: Prediction,
    experiment: Experiment,
    *,
    predicts: Region,
    falsifier: Region,
    scale: float,
    constants: Mapping[str, float],
    confidence: float | None = None,
    questions: int = 1,
) -> Question:
    """Resolve ``prediction`` against the metrics of its experiment, at its own confidence unless given.

    ``questions`` says how many the prediction asks, where it is one of several.
    """
    quantity, divisor, statistic = prediction.quantity, prediction.divisor, prediction.statistic
    operator = prediction.contrast.operator if prediction.contrast else None
    names = sorted({*quantity.metrics, *(divisor.metrics if divisor else ())})
    metrics = [experiment.metrics[name] for name in names if name in experiment.metrics]
    caps = {metric.name: metric.cap for metric in metrics if metric.cap is not None}
    resolutions = {metric.name: metric.resolution for metric in metrics if metric.resolution is not None}
    is_more = divisor or caps or resolutions or statistic == "proportion"
    metric = quantity.node if quantity.node in names and not is_more else ""
    stopping = experiment.stopping
    anytime = stopping is not None and stopping.anytime
    exact, limits = may_be_equal(prediction, metrics), limits_of(prediction, scale)
    bounds = {name: ends for name, ends in (experiment.table.bounds or {}).items() if name in names}
    return Question(
        prediction=prediction.id,
        text=quantity.text,
        node=quantity.node,
        metric=metric,
        divisor=divisor.node if divisor else None,
        statistic=statistic,
        q=prediction.q,
        operator=operator,
        paired=len(prediction.arms) > 1 and experiment.pairing == "block",
        arms=prediction.arms,
        treated=differ_in_hardware(experiment, prediction.arms),
        levels=prediction.levels,
        points=prediction.points,
        reduction=prediction.reduction,
        confidence=prediction.confidence if confidence is None else confidence,
        questions=questions,
        anytime=anytime,
        metrics=metrics,
        scale=scale,
        constants=constants,
        predicts=predicts,
        falsifier=falsifier,
        edges=tuple(sorted({*edges(predicts), *edges(falsifier)})),
        exact=exact,
        duration=is_duration(quantity.node, experiment.metrics),
        limits=limits,
        caps=caps,
        resolutions=resolutions,
        bounds=bounds,
        counts_failures=counts_failures(statistic, divisor),
        takes_logs=statistic == "geometric-mean" or operator == "exponent",
        is_logarithmic=statistic == "geometric-mean",
        is_plain=(
            statistic == "mean"
            and len(prediction.arms) == questions == 1
            and metric in names
            and not (operator or prediction.points or anytime or exact or limits or bounds)
            and not any(each.exact for each in metrics)
        ),
    )


def counts_failures(statistic: str, divisor: object | None) -> bool:
    """Whether a repeat that failed is an answer: it is no success."""
    return statistic == "proportion" and divisor is None


def differ_in_hardware(experiment: Experiment, arms: Iterable[str]) -> bool:
    """Whether arms of an experiment ask for different ``resources``."""
    asked = [experiment.arms[arm].resources for arm in arms if arm in experiment.arms]
    return any(each != asked[0] for each in asked)


def may_be_equal(prediction: Prediction, metrics: list[Metric]) -> bool:
    """Exact metrics may, but not what a condition makes of them: it hides how much they vary.

    A mean of shares as such is left to the rule for means of 0 and 1.
    """
    if not (metrics and all(metric.exact for metric in metrics)):
        return False
    node = prediction.quantity.node
    plain = prediction.statistic == "mean" and prediction.contrast is None and prediction.divisor is None
    if plain and not prediction.points and is_share(node):
        return True
    return not any(asks_yes_or_no(each.node) for each in (prediction.quantity, prediction.divisor) if each)
