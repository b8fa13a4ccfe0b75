"""A prediction with all that is known of it: verdict, order, standing, and what the lock records."""

from __future__ import annotations

from typing import Literal

import msgspec

from pytest_prereg.audit.history.order import Grade, Order
from pytest_prereg.errors import Problem
from pytest_prereg.evidence.cost import Account
from pytest_prereg.evidence.model import Series
from pytest_prereg.judge.model import Judgement, Verdict
from pytest_prereg.registry.digest import USUAL_CONFIDENCE
from pytest_prereg.registry.lock import LockEntry, Withdrawal
from pytest_prereg.registry.model import Prediction, Study
from pytest_prereg.registry.regions import Region
from pytest_prereg.registry.uses import arms_of

CONFIRMATORY = frozenset({Grade.REGISTERED, Grade.REGISTERED_ONE_SIDE, Grade.WITNESSED})

Standing = Literal["confirmatory", "replication", "exploratory"]


class Beside(msgspec.Struct, kw_only=True, frozen=True):
    """Another series of a claim, judged by itself: listed beside its verdict, never in its place."""

    series: int
    judgement: Judgement


class Found(msgspec.Struct, kw_only=True, frozen=True):
    """The verdict on a prediction and the series that it rests on, or why there is none yet."""

    judgement: Judgement | None = None
    pending: str | None = None
    used: tuple[Series, ...] = ()
    """The one whose number the verdict goes by first."""
    final: bool = True
    """Whether nothing that is still to be measured can change its numbers."""


class Version(msgspec.Struct, kw_only=True, frozen=True):
    """What one series says of a guard, for one version of its subject."""

    subject: str | None
    series: int
    verdict: Verdict


class Assessment(msgspec.Struct, kw_only=True, frozen=True):
    """A prediction, judged or pending, with its standing and the record that the lock holds."""

    prediction: Prediction
    predicts: Region
    """In ``unit``."""
    falsifier: Region
    unit: str
    order: Order
    standing: Standing
    """Of the evidence, or while pending of the registration alone."""
    judgement: Judgement | None
    pending: str | None
    """Why there is no verdict yet, and what would change that."""
    planned: int | None
    """Registered repeats, the smaller arm's."""
    series: int | None
    series_count: int
    sessions: tuple[str, ...]
    """Names of the evidence files of the deciding series."""
    evidence: str | None
    """Digest of the repeats used, as the lock records it."""
    imported: bool
    entry: LockEntry | None
    flags: tuple[str, ...]
    problems: tuple[Problem, ...]
    """Evidence altered or gone (PR207), or a recorded verdict that does not follow (PR211)."""
    replications: tuple[Beside, ...]
    """Later series."""
    earlier: Beside | None = None
    """The first series, where that left it to the next one to decide."""
    subject: str | None = None
    """Digest of what was measured, where the experiment declares it: the verdict is about that."""
    history: tuple[Version, ...] = ()
    """Of a guard, what every complete series says by itself, in order."""
    final: bool = True
    """Whether the verdict can be recorded: of a family that is not complete the levels may still rise."""
    account: Account | None = None
    """What the series that decide it took, with all that was run again; ``None`` where none was measured."""

    @property
    def withdrawal(self) -> Withdrawal | None:
        """Its tombstone; the judgement is then what the lock keeps, and never given anew."""
        return self.entry.withdrawal if self.entry is not None else None

    @property
    def recorded(self) -> str | None:
        """The verdict in the lock; of a guard only if it is about the same version of its subject."""
        if self.entry is None or (self.prediction.table.kind == "guard" and self.entry.series != self.series):
            return None
        return self.entry.verdict

    @property
    def is_recorded(self) -> bool:
        """Whether the lock has the verdict of the series that decides, or one that it contradicts."""
        first = (
            self.earlier is not None and self.entry is not None and self.entry.series == self.earlier.series
        )
        return self.recorded is not None and (self.changed or not first)

    @property
    def changed(self) -> bool:
        """Whether a recorded verdict is no longer what the evidence gives."""
        return bool(self.judgement and self.recorded and self.recorded != self.judgement.verdict)


class Terms(msgspec.Struct, kw_only=True, frozen=True):
    """What a prediction is judged by, in the unit that its verdict is shown in."""

    unit: str
    scale: float
    """From the quantity's own unit to ``unit``."""
    predicts: Region
    falsifier: Region


def standing(order: Order, prediction: Prediction) -> Standing:
    """Confirmatory only where the registration precedes the evidence and the data were not seen.

    An interval below the usual level is for exploring, however early it was registered.
    """
    if order.grade not in CONFIRMATORY or prediction.confidence < USUAL_CONFIDENCE:
        return "exploratory"
    return "replication" if prediction.table.data_seen == "full" else "confirmatory"


def planned(study: Study, prediction: Prediction) -> int | None:
    """Registered repeats of the smallest arm that is read; ``None`` where no number was registered."""
    counts = [
        study.experiments[name].arms[arm].repeats
        for name in prediction.experiments
        for arm in read_arms(study, prediction, name)
    ]
    known = [count for count in counts if count is not None]
    return min(known, default=None) if len(known) == len(counts) else None


def read_arms(study: Study, prediction: Prediction, experiment: str) -> frozenset[str]:
    """Arms of an experiment that a prediction reads, or the members of a conjunction read."""
    parts = [prediction, *(study.predictions[name] for name in prediction.members)]
    return frozenset(arm for one in parts for arm in arms_of(one, experiment))
