"""What a run would measure, how long that would take, and what it would cost; shown under ``--co``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.evidence.cost import dollars, rates_of
from pytest_prereg.evidence.series import open_slots
from pytest_prereg.measure.limits import Forecast, duration_text
from pytest_prereg.measure.schedule import warmup_order
from pytest_prereg.registry.executors import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_prereg.campaign import Campaign, Due
    from pytest_prereg.measure.limits import Need
    from pytest_prereg.registry.model import Experiment, Prediction


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
    cost = _cost(campaign, experiment, need, most)
    count = experiment.table.warmup
    warmups = f" after {count} warm-up{'s' * (count != 1)} of each arm" if count else ""
    repeats = f"{most}{due.missing} of {due.planned} repeats{warmups}, {about}, {cost}"
    place = campaign.place_of(experiment)
    where = f" on {place}" if place not in (None, LOCAL) else ""
    return f"would measure {due.experiment}{where}: series {due.number}, {repeats}"


def _cost(campaign: Campaign, experiment: Experiment, need: Need, most: str) -> str:
    """What it is likely to cost; what a service without a price in the study takes is known once it runs."""
    place = campaign.place_of(experiment) or LOCAL
    is_priced = place == LOCAL or rates_of(campaign.state.study, experiment, place)
    if need.usd is None or not is_priced:
        return "cost unknown"
    return f"{most if need.usd else ''}{dollars(need.usd)}"


def _need(campaign: Campaign, experiment: Experiment, due: Due) -> Need:
    place = campaign.place_of(experiment) or LOCAL
    rates = rates_of(campaign.state.study, experiment, place)
    parallel = 1 if place == LOCAL else experiment.table.max_parallel
    files = campaign.state.files[experiment.id]
    forecast = Forecast(experiment, rates, files, executor=place, parallel=parallel)
    planned = (due.series.planned if due.series else experiment.planned) or {}
    warmups = (slot.arm for slot in warmup_order(planned, experiment.table.warmup))
    repeats = (arm for arm, _ in open_slots(due.series, experiment))
    return forecast.whole([*warmups, *repeats])
