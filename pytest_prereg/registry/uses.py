"""What a prediction reads: arms and metrics of each of its experiments, and by which instruments."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_prereg.registry.model import Experiment, Prediction, Quantity, Study

__all__ = ["arms_of", "instruments_of", "metrics_of", "named", "quantities_of", "stated_of_instruments"]


def quantities_of(prediction: Prediction, experiment: str) -> tuple[Quantity, ...]:
    """The quantities that a prediction evaluates in one experiment; a conjunction has none itself."""
    if experiment not in prediction.experiments or prediction.members:
        return ()
    if prediction.formula is not None:
        inputs = (each for each in prediction.formula.inputs if each.experiment == experiment)
        return tuple(each.quantity for each in inputs if each.quantity is not None)
    return (prediction.quantity, prediction.divisor) if prediction.divisor else (prediction.quantity,)


def metrics_of(prediction: Prediction, experiment: str) -> tuple[str, ...]:
    """Names of the metrics that a prediction reads in one experiment, sorted."""
    quantities = quantities_of(prediction, experiment)
    return tuple(sorted({name for quantity in quantities for name in quantity.metrics}))


def arms_of(prediction: Prediction, experiment: str) -> tuple[str, ...]:
    """Names of the arms that a prediction reads in one experiment: as it has them, of a formula sorted."""
    if prediction.formula is None:
        return prediction.arms if experiment in prediction.experiments else ()
    return tuple(sorted({each.arm for each in prediction.formula.inputs if each.experiment == experiment}))


def instruments_of(prediction: Prediction, experiments: Mapping[str, Experiment]) -> tuple[str, ...]:
    """Names of the instruments that read what a prediction uses, sorted."""
    used = (
        experiments[name].metrics[metric].instrument
        for name in prediction.experiments
        if name in experiments
        for metric in metrics_of(prediction, name)
    )
    return tuple(sorted({name for name in used if name is not None}))


def stated_of_instruments(study: Study) -> dict[str, list[str]]:
    """What a study says of its instruments: names that calibrate each, sorted; none if it is trusted."""
    return {name: sorted({*(table.calibrated_by or ())}) for name, table in study.instruments.items()}


def named(name: str, predictions: Mapping[str, Prediction]) -> tuple[str, ...]:
    """Ids that ``name`` stands for: of that prediction, or of all that a for-each table of that name makes.

    Empty where there is none.
    """
    if name in predictions:
        return (name,)
    return tuple(each.id for each in predictions.values() if each.name == name)
