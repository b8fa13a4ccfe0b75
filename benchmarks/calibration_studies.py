"""Studies simulated at the boundary, each judged as ``--prereg-verify`` judges it; verdicts are counted."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pytest_prereg.evidence.model import Outcome, RecordedRepeat, Series
from pytest_prereg.judge.findings import APPROXIMATE, ASSUMES_NORMAL
from pytest_prereg.judge.model import Reason, Verdict
from pytest_prereg.judge.verdicts import judge
from pytest_prereg.registry.judging import thresholds
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.units import registered_unit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calibration_cases import Case, Data
    from numpy.random import Generator

    from pytest_prereg.evidence.model import Value
    from pytest_prereg.judge.model import Judgement

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


class Registered:
    """A registered prediction, and the slots of its experiment's only series, in run order."""

    def __init__(self, text: str) -> None:
        study = load_study(Path("predictions.toml"), text=text)
        self.prediction = study.predictions["p"]
        self.experiment = study.experiments["e"]
        unit, self.scale = registered_unit(study, self.prediction)
        self.predicts, self.falsifier = thresholds(self.prediction, unit)
        self.slots = list(self._slots())

    def judge(self, repeats: Sequence[RecordedRepeat]) -> Judgement:
        """The verdict on a series that holds these repeats."""
        series = Series(
            experiment="e",
            number=1,
            origin="imported",
            pairing=self.experiment.pairing,
            planned=self.experiment.planned,
            repeats=tuple(repeats),
            faults=(),
            complete=True,
            source=None,
            seed="",
            predictions={},
            sessions=(),
        )
        return judge(
            self.prediction,
            self.experiment,
            series,
            predicts=self.predicts,
            falsifier=self.falsifier,
            scale=self.scale,
        )

    def repeats(self, values: Values) -> list[RecordedRepeat]:
        """The repeats of a simulated study."""
        return [
            RecordedRepeat(
                id=name,
                arm=arm,
                index=index,
                block=index,
                outcome=Outcome.OK,
                values=values[arm][index - 1],
                position=position,
                machine=None,
            )
            for position, (name, arm, index) in enumerate(self.slots)
        ]

    def _slots(self) -> Iterator[tuple[str, str, int]]:
        """Id, arm and index of every repeat; each block runs the arms in turn."""
        arms = self.experiment.arms
        for index in range(1, max(arm.repeats or 0 for arm in arms.values()) + 1):
            for arm in arms:
                yield "/".join(part for part in ("e/1", arm, str(index)) if part), arm, index


def text_of(case: Case, repeats: int | str) -> str:
    """The prediction file of a case; ``repeats`` as TOML."""
    return STUDY.format(
        repeats=repeats,
        pairing=case.pairing,
        metrics=case.metrics,
        experiment=case.experiment,
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
        counted.add(registered.judge(registered.repeats(values)))
    return counted
