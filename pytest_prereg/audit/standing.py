"""A prediction with all that is known of it: verdict, order, standing, and what the lock records."""

from __future__ import annotations

from typing import Literal

import msgspec

from pytest_prereg.audit.order import Grade, Order
from pytest_prereg.errors import Problem
from pytest_prereg.judge.model import Judgement
from pytest_prereg.registry.digest import USUAL_CONFIDENCE
from pytest_prereg.registry.lock import LockEntry
from pytest_prereg.registry.model import Experiment, Prediction
from pytest_prereg.registry.regions import Region

CONFIRMATORY = frozenset({Grade.REGISTERED, Grade.REGISTERED_ONE_SIDE, Grade.WITNESSED})

Standing = Literal["confirmatory", "replication", "exploratory"]


class Replication(msgspec.Struct, kw_only=True, frozen=True):
    """A later series of a claim that is decided: listed beside it, never the verdict."""

    series: int
    judgement: Judgement


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
    replications: tuple[Replication, ...]

    @property
    def recorded(self) -> str | None:
        """The verdict in the lock."""
        return self.entry.verdict if self.entry else None

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


def planned(experiment: Experiment, prediction: Prediction) -> int | None:
    """Registered repeats of the prediction's smaller arm; ``None`` where no number was registered."""
    counts = [experiment.arms[arm].repeats for arm in prediction.arms]
    known = [count for count in counts if count is not None]
    return min(known) if len(known) == len(counts) else None
