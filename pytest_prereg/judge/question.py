"""What is asked of a series: a prediction, resolved into what reading and deciding need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.judge.durations import is_duration
from pytest_prereg.registry.model import Metric, Node
from pytest_prereg.registry.regions import Region

if TYPE_CHECKING:
    from pytest_prereg.registry.model import Experiment, Prediction


class Question(msgspec.Struct, kw_only=True, frozen=True):
    """One prediction, with its regions in the unit shown."""

    prediction: str
    text: str
    node: Node
    statistic: str
    operator: str | None
    paired: bool
    arms: tuple[str, ...]
    confidence: float
    metrics: list[Metric]
    scale: float
    """From the quantity's natural unit to the one shown."""
    constants: Mapping[str, float]
    predicts: Region
    falsifier: Region
    exact: bool
    duration: bool
    caps: dict[str, float]
    resolutions: dict[str, float]


def ask(
    prediction: Prediction,
    experiment: Experiment,
    *,
    predicts: Region,
    falsifier: Region,
    scale: float,
    constants: Mapping[str, float],
) -> Question:
    """Resolve ``prediction`` against the metrics of its experiment."""
    quantity, contrast = prediction.quantity, prediction.contrast
    metrics = [experiment.metrics[name] for name in quantity.metrics if name in experiment.metrics]
    return Question(
        prediction=prediction.id,
        text=quantity.text,
        node=quantity.node,
        statistic=prediction.statistic,
        operator=contrast.operator if contrast else None,
        paired=contrast is not None and experiment.pairing == "block",
        arms=prediction.arms,
        confidence=prediction.confidence,
        metrics=metrics,
        scale=scale,
        constants=constants,
        predicts=predicts,
        falsifier=falsifier,
        exact=all(metric.exact for metric in metrics),
        duration=is_duration(quantity.node, experiment.metrics),
        caps={metric.name: metric.cap for metric in metrics if metric.cap is not None},
        resolutions={metric.name: metric.resolution for metric in metrics if metric.resolution is not None},
    )
