"""What a run would measure, how long that would take, and what it would cost; shown under ``--co``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.evidence.cost import dollars, rates_of
from pytest_prereg.evidence.series import open_slots
from pytest_prereg.measure.limits import Forecast, duration_text
from pytest_prereg.measure.schedule import warmup_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_prereg.campaign import Campaign, Due
    from pytest_prereg.measure.limits import Need
    from pytest_prereg.registry.model import Experiment, Prediction

EXECUTOR = "local"


def announcements(campaign: Campaign, predictions: Iterable[Prediction]) -> Iterator[str]:
    """Yield a line for each experiment that would be measured, or must not be on this machine; each once."""
    told = set()
    for prediction in predictions:
        for name in prediction.experiments:
            due = None if name in told else campaign.due(prediction, name)
            withheld = campaign.withheld(prediction)
            if due is not None:
                told.add(name)
                yield _announcement(campaign, due)
            elif name not in told and withheld is not None:
                told.add(name)
                yield f"would not measure {name}: {withheld.removeprefix(f'{name}: ')}"


def _announcement(campaign: Campaign, due: Due) -> str:
    experiment = campaign.state.study.experiments[due.experiment]
    most = "at most " if due.may_end_early else ""
    need = _need(campaign, experiment, due)
    about = "time unknown" if need.seconds is None else f"about {most}{duration_text(round(need.seconds))}"
    cost = "cost unknown" if need.usd is None else f"{most if need.usd else ''}{dollars(need.usd)}"
    count = experiment.table.warmup
    warmups = f" after {count} warm-up{'s' * (count != 1)} of each arm" if count else ""
    repeats = f"{most}{due.missing} of {due.planned} repeats{warmups}, {about}, {cost}"
    return f"would measure {due.experiment}: series {due.number}, {repeats}"


def _need(campaign: Campaign, experiment: Experiment, due: Due) -> Need:
    rates = rates_of(campaign.state.study, experiment, EXECUTOR)
    forecast = Forecast(experiment, rates, campaign.state.files[experiment.id])
    planned = (due.series.planned if due.series else experiment.planned) or {}
    warmups = (slot.arm for slot in warmup_order(planned, experiment.table.warmup))
    repeats = (arm for arm, _ in open_slots(due.series, experiment))
    return forecast.whole([*warmups, *repeats])
