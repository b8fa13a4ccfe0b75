"""What is asked of a series: a prediction, resolved into what reading and deciding need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.judge.durations import is_duration
from pytest_prereg.judge.shares import asks_yes_or_no, is_share, limits_of
from pytest_prereg.registry.model import Metric, Node
from pytest_prereg.registry.regions import Region

if TYPE_CHECKING:
    from pytest_prereg.registry.model import Experiment, Prediction


class Question(msgspec.Struct, kw_only=True, frozen=True):
    """One prediction, with its regions in the unit shown."""

    prediction: str
    text: str
    node: Node
    divisor: Node | None
    """Denominator of a ratio of sums, or the trials of successes."""
    statistic: str
    q: float | None
    """The argument of ``quantile``."""
    operator: str | None
    paired: bool
    """Whether repeats are read block by block: two arms or more, of blocks."""
    arms: tuple[str, ...]
    levels: tuple[float, ...]
    """The parameter's value in each arm, for a slope."""
    points: tuple[tuple[str, ...], ...]
    """Arms at each value of the swept axes, where those are reduced inside a block."""
    reduction: str | None
    confidence: float
    anytime: bool
    """Whether the interval has to hold after every repeat at once."""
    metrics: list[Metric]
    scale: float
    """From the quantity's natural unit to the one shown."""
    constants: Mapping[str, float]
    predicts: Region
    falsifier: Region
    exact: bool
    """Whether readings that are all equal are taken for what they are."""
    duration: bool
    limits: tuple[float, float] | None
    """Between which the estimand lies whatever is measured, in the unit shown: 0 and 1 for shares."""
    caps: dict[str, float]
    resolutions: dict[str, float]
    bounds: dict[str, tuple[float, float]]
    """Least and greatest value that is physically possible, by metric."""

    @property
    def counts_failures(self) -> bool:
        """Whether a repeat that failed or timed out is one of those counted: a proportion of repeats."""
        return self.statistic == "proportion" and self.divisor is None

    @property
    def takes_logs(self) -> bool:
        """Whether each reading enters as its logarithm."""
        return self.statistic == "geometric-mean" or self.operator == "exponent"

    @property
    def is_logarithmic(self) -> bool:
        """Whether what is averaged across repeats is a logarithm, whose interval is mapped back."""
        return self.statistic == "geometric-mean"


def ask(
    prediction: Prediction,
    experiment: Experiment,
    *,
    predicts: Region,
    falsifier: Region,
    scale: float,
    constants: Mapping[str, float],
    confidence: float | None = None,
) -> Question:
    """Resolve ``prediction`` against the metrics of its experiment, at its own confidence unless given."""
    quantity, divisor, contrast = prediction.quantity, prediction.divisor, prediction.contrast
    names = sorted({*quantity.metrics, *(divisor.metrics if divisor else ())})
    metrics = [experiment.metrics[name] for name in names if name in experiment.metrics]
    stopping = experiment.stopping
    return Question(
        prediction=prediction.id,
        text=quantity.text,
        node=quantity.node,
        divisor=divisor.node if divisor else None,
        statistic=prediction.statistic,
        q=prediction.q,
        operator=contrast.operator if contrast else None,
        paired=len(prediction.arms) > 1 and experiment.pairing == "block",
        arms=prediction.arms,
        levels=prediction.levels,
        points=prediction.points,
        reduction=prediction.reduction,
        confidence=prediction.confidence if confidence is None else confidence,
        anytime=stopping is not None and stopping.anytime,
        metrics=metrics,
        scale=scale,
        constants=constants,
        predicts=predicts,
        falsifier=falsifier,
        exact=may_be_equal(prediction, metrics),
        duration=is_duration(quantity.node, experiment.metrics),
        limits=limits_of(prediction, scale),
        caps={metric.name: metric.cap for metric in metrics if metric.cap is not None},
        resolutions={metric.name: metric.resolution for metric in metrics if metric.resolution is not None},
        bounds={name: ends for name, ends in (experiment.table.bounds or {}).items() if name in names},
    )


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
