"""How many verdicts a process gives, beside the intervals alone that a user would compute instead.

A verdict is that of ``--prereg-verify``, with the whole record: a Student t interval, drift, machines,
instruments. Every study has its own values, near enough to the edge that some are undecided.
"""

from __future__ import annotations

import random
import time
import tracemalloc
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace
from scipy import stats
from table import Row

from pytest_prereg.evidence.model import Outcome, RecordedRepeat, Series
from pytest_prereg.judge.model import Verdict
from pytest_prereg.judge.verdicts import judge
from pytest_prereg.registry.judging import thresholds
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.units import registered_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_prereg.judge.model import Judgement
    from pytest_prereg.registry.model import Prediction

    Values = Sequence[float]

LIMITS = {7: 20.0, 30: 50.0}
"""Microseconds that a verdict may take, by number of repeats."""
STUDIES, GROUP, ROUNDS = 200, 10, 500
BOOTSTRAPS, FEW_ROUNDS = 5, 5
EDGE, SPREAD = 1.0, 0.03

STUDY = """
[study]
id = "s"

[experiments.e]
repeats = {repeats}
metrics = {{ t = "s" }}

[predictions.p]
claim      = "It takes at most a second."
experiment = "e"
quantity   = "t"
predicts   = "<= 1 s"
falsifier  = "> 1 s"
"""


class Judging:
    """A registered prediction and the series of as many studies as are judged."""

    def __init__(self, repeats: int) -> None:
        study = load_study(Path("predictions.toml"), text=STUDY.format(repeats=repeats))
        self.prediction, self.experiment = study.predictions["p"], study.experiments["e"]
        unit, self.scale = registered_unit(study, self.prediction)
        self.predicts, self.falsifier = thresholds(self.prediction, unit)
        self.constants: dict[str, float] = {}
        self.values = drawn(repeats)
        self.series = [self._series(number, values) for number, values in enumerate(self.values, 1)]

    def judge(self, prediction: Prediction, series: Series) -> Judgement:
        """One verdict, asked for as the audit does."""
        return judge(
            prediction,
            self.experiment,
            series,
            predicts=self.predicts,
            falsifier=self.falsifier,
            scale=self.scale,
            constants=self.constants,
            obstacles=[],
            confidence=None,
        )

    def again(self, series: Series) -> Judgement:
        """A verdict on the one prediction."""
        return self.judge(self.prediction, series)

    def _series(self, number: int, values: Values) -> Series:
        repeats = tuple(
            RecordedRepeat(
                id=f"e/{number}/{index}",
                arm="",
                index=index,
                block=index,
                outcome=Outcome.OK,
                values={"t": value},
                position=index - 1,
                machine="Fast CPU | H200 | 550",
                instruments={"t": "timer"},
            )
            for index, value in enumerate(values, 1)
        )
        return Series(
            experiment="e",
            number=number,
            origin="measured",
            pairing=self.experiment.pairing,
            planned=self.experiment.planned,
            repeats=repeats,
            faults=(),
            complete=True,
            source=None,
            seed="",
            predictions={},
            sessions=(),
        )


def rows() -> list[Row]:
    """Microseconds a verdict, and what the verdicts of all studies hold on to."""
    found = []
    for repeats, limit in LIMITS.items():
        judging = Judging(repeats)
        found += rows_of(judging, repeats, limit)
    return found


def rows_of(judging: Judging, repeats: int, limit: float) -> list[Row]:
    """The same studies judged, and given to others for an interval."""
    ours = microseconds(judging.again, judging.series)
    fresh = of_fresh_predictions(judging)
    others = {
        "scipy BCa bootstrap": microseconds(bootstrap, judging.values[:BOOTSTRAPS], 1, FEW_ROUNDS),
        "scipy ttest_1samp": microseconds(scipy_t, judging.values, rounds=FEW_ROUNDS),
        "scipy t.interval": microseconds(scipy_interval, judging.values, rounds=FEW_ROUNDS),
    }
    what = f"n = {repeats}: {1e6 / ours:,.0f} verdicts a second"
    first = f"n = {repeats}: the first of each prediction, {1e6 / fresh:,.0f} a second"
    bootstrapped, *intervals = others.items()
    return [
        Row(what=what, ours=ours, unit="µs", limit=limit),
        row(what, ours, *bootstrapped, at_least=100),
        *(row(what, ours, *interval) for interval in intervals),
        Row(what=first, ours=fresh, unit="µs"),
        Row(what=f"n = {repeats}: a verdict, kept", ours=kept_bytes(judging), unit="bytes"),
    ]


def row(what: str, ours: float, against: str, other: float, at_least: float | None = None) -> Row:
    """Ours beside one of the others."""
    return Row(what=what, ours=ours, other=other, against=against, unit="µs", at_least=at_least)


def drawn(repeats: int) -> list[list[float]]:
    """Values of every study, about a mean of its own."""
    rng = random.Random(repeats)
    means = [rng.uniform(EDGE - SPREAD, EDGE + SPREAD) for _ in range(STUDIES)]
    return [[rng.gauss(mean, SPREAD) for _ in range(repeats)] for mean in means]


def microseconds(
    function: Callable[[Any], object], items: Sequence[Any], group: int = GROUP, rounds: int = ROUNDS
) -> float:
    """Of one call, on average over the items: they are timed in groups, each at its fastest."""
    groups = [items[first : first + group] for first in range(0, len(items), group)]
    best = [min(seconds(function, some) for _ in range(rounds)) for some in groups]
    return 1e6 * sum(best) / len(items)


def seconds(function: Callable[[Any], object], items: Iterable[Any]) -> float:
    """Of one call for each, all results kept."""
    began = time.perf_counter()
    kept = [function(item) for item in items]
    took = time.perf_counter() - began
    assert kept
    return took


def of_fresh_predictions(judging: Judging) -> float:
    """Microseconds of a verdict on a prediction that none was given on before."""

    def one(asked: tuple[Prediction, Series]) -> Judgement:
        return judging.judge(*asked)

    groups = [judging.series[first : first + GROUP] for first in range(0, STUDIES, GROUP)]
    best = [
        min(seconds(one, [(replace(judging.prediction), series) for series in group]) for _ in range(ROUNDS))
        for group in groups
    ]
    return 1e6 * sum(best) / STUDIES


def kept_bytes(judging: Judging) -> float:
    """Memory of a record, above that of the evidence."""
    judging.again(judging.series[0])
    tracemalloc.start()
    kept = [judging.again(series) for series in judging.series]
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert {judgement.verdict for judgement in kept} == set(Verdict)
    return size / len(kept)


def bootstrap(values: Values) -> object:
    """The interval that is drawn from the data alone, as scipy's own example has it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return stats.bootstrap((values,), np.mean, n_resamples=9999, method="BCa", rng=1).confidence_interval


def scipy_t(values: Values) -> object:
    """Student's t interval, without anything that a verdict adds."""
    return stats.ttest_1samp(values, EDGE).confidence_interval()


def scipy_interval(values: Values) -> object:
    """The same from its parts."""
    return stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
