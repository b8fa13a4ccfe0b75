"""Studies simulated at the boundary, each judged as ``--prereg-verify`` judges it; verdicts are counted."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pytest_prereg.evidence.model import Outcome, RecordedRepeat, Series
from pytest_prereg.judge.findings import APPROXIMATE, ASSUMES_NORMAL
from pytest_prereg.judge.formulas import judge_formula
from pytest_prereg.judge.model import Reason, Verdict
from pytest_prereg.judge.verdicts import judge
from pytest_prereg.registry.judging import thresholds
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.units import registered_unit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calibration_cases import Case, Data
    from numpy.random import Generator

    from pytest_prereg.evidence.model import Value
    from pytest_prereg.judge.model import Judgement
    from pytest_prereg.registry.model import Experiment

SEED = 20260801
"""Every random number follows from it and from the name of what is simulated."""

BATCH = 500
"""Studies drawn at once: the first studies of a longer run are those of a shorter one."""

WARNINGS = frozenset({APPROXIMATE, ASSUMES_NORMAL})

STUDY = """
[study]
id = "calibration"

[experiments.e]
repeats = {repeats}
pairing = "{pairing}"
metrics = {{ {metrics} }}
{experiment}
[predictions.p]
claim = "The true value lies below the edge, on which it lies."
{prediction}
predicts = "< {truth!r}"
falsifier = "> {truth!r}"
"""

Values = dict[str, list[dict[str, "Value"]]]
"""One simulated study: by arm, the metrics of every repeat."""
Evidence = dict[str, list[RecordedRepeat]]
"""By experiment."""
FIRST = "e"
"""The experiment whose arms are keys of the values; another one is a key itself, and has no arms."""


@dataclass
class Tally:
    """Verdicts of the studies of one cell."""

    studies: int = 0
    supported: int = 0
    refuted: int = 0
    warned: int = 0
    """How many of the verdicts that decide say that they may be off."""
    reasons: Counter[Reason] = field(default_factory=Counter)
    """Why the others do not."""

    def add(self, judgement: Judgement) -> None:
        """Count one verdict."""
        self.studies += 1
        if judgement.reason is not None:
            self.reasons[judgement.reason] += 1
            return
        self.supported += judgement.verdict is Verdict.SUPPORTED
        self.refuted += judgement.verdict is Verdict.REFUTED
        self.warned += not WARNINGS.isdisjoint(judgement.flags)

    @property
    def wrong(self) -> tuple[float, float]:
        """Shares of studies whose verdict is a false *supported*, a false *refuted*."""
        return self.supported / self.studies, self.refuted / self.studies

    @property
    def flagged(self) -> float | None:
        """Share of the verdicts that decide which say that they may be off."""
        decided = self.supported + self.refuted
        return self.warned / decided if decided else None

    def share(self, reason: Reason) -> float:
        """Share of studies without a verdict for that reason."""
        return self.reasons[reason] / self.studies


class Slot(NamedTuple):
    """Where one repeat belongs: its id, and its place in the values of a study."""

    id: str
    arm: str
    index: int
    values: str
    """The key of its arm."""


class Registered:
    """A registered prediction, and the slots of its experiments' only series, in run order."""

    def __init__(self, text: str) -> None:
        study = load_study(Path("predictions.toml"), text=text)
        self.prediction = study.predictions["p"]
        self.experiments = {name: study.experiments[name] for name in self.prediction.experiments}
        unit, self.scale = registered_unit(study, self.prediction)
        self.predicts, self.falsifier = thresholds(self.prediction, unit)
        self.slots = {name: list(slots_of(one)) for name, one in self.experiments.items()}

    def judge(self, evidence: Evidence) -> Judgement:
        """The verdict on series that hold these repeats."""
        series = {name: series_of(self.experiments[name], evidence[name]) for name in self.experiments}
        asked = {"predicts": self.predicts, "falsifier": self.falsifier, "scale": self.scale}
        if self.prediction.formula is not None:
            return judge_formula(self.prediction, self.experiments, series, constants={}, **asked)
        name = self.prediction.experiment
        return judge(self.prediction, self.experiments[name], series[name], **asked)

    def evidence(self, values: Values) -> Evidence:
        """The repeats of a simulated study."""
        return {
            name: [
                RecordedRepeat(
                    id=slot.id,
                    arm=slot.arm,
                    index=slot.index,
                    block=slot.index,
                    outcome=Outcome.OK,
                    values=values[slot.values][slot.index - 1],
                    position=position,
                    machine=None,
                )
                for position, slot in enumerate(slots)
            ]
            for name, slots in self.slots.items()
        }


def slots_of(experiment: Experiment) -> Iterator[Slot]:
    """The slots of an experiment: each block runs the arms in turn."""
    for index in range(1, max(arm.repeats or 0 for arm in experiment.arms.values()) + 1):
        for arm in experiment.arms:
            name = "/".join(part for part in (experiment.id, "1", arm, str(index)) if part)
            yield Slot(name, arm, index, arm if experiment.id == FIRST else experiment.id)


def series_of(experiment: Experiment, repeats: list[RecordedRepeat]) -> Series:
    """The only series of an experiment, complete."""
    return Series(
        experiment=experiment.id,
        number=1,
        origin="imported",
        pairing=experiment.pairing,
        planned=experiment.planned,
        repeats=tuple(repeats),
        faults=(),
        complete=True,
        source=None,
        seed="",
        predictions={},
        sessions=(),
    )


def text_of(case: Case, repeats: int | str) -> str:
    """The prediction file of a case; ``repeats`` as TOML."""
    return STUDY.format(
        repeats=repeats,
        pairing=case.pairing,
        metrics=case.metrics,
        experiment=case.experiment.replace("{repeats}", str(repeats)),
        prediction=case.prediction,
        truth=case.truth,
    )


def generator(name: str) -> Generator:
    """Random numbers of what has that name, whatever else is simulated, in whatever order."""
    digest = hashlib.sha256(name.encode()).digest()
    return np.random.default_rng([SEED, int.from_bytes(digest[:8], "big")])


def simulated(case: Case, n: int, studies: int) -> Iterator[Values]:
    """Studies of n repeats an arm."""
    rng = generator(f"{case.key}, n = {n}")
    for first in range(0, studies, BATCH):
        drawn = case.draw(rng, BATCH, n)
        yield from in_studies(drawn, min(BATCH, studies - first))


def in_studies(drawn: Data, studies: int) -> Iterator[Values]:
    """Arrays over studies, taken apart."""
    columns = {
        arm: (list(metrics), [array[:studies].tolist() for array in metrics.values()])
        for arm, metrics in drawn.items()
    }
    for index in range(studies):
        yield {
            arm: [
                dict(zip(names, row, strict=True)) for row in zip(*(one[index] for one in lists), strict=True)
            ]
            for arm, (names, lists) in columns.items()
        }


def tally(case: Case, n: int, studies: int) -> Tally:
    """One cell of the calibration."""
    registered, counted = Registered(text_of(case, n)), Tally()
    for values in simulated(case, n, studies):
        counted.add(registered.judge(registered.evidence(values)))
    return counted
