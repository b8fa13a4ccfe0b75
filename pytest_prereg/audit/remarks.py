"""What is not plain about a confirmatory verdict, one word each: shown beside it, and in the records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.judge.exclusions import is_by_rule
from pytest_prereg.judge.faults import arm_of
from pytest_prereg.registry.digest import USUAL_CONFIDENCE, claim_digest

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pytest_prereg.evidence.model import Series
    from pytest_prereg.judge.model import Judgement
    from pytest_prereg.registry.lock import LockEntry
    from pytest_prereg.registry.model import Prediction

WAS_REFUTED = "was refuted before it was amended"

EARLIER_SUBJECT = "earlier subject"
"""What was measured is no longer what it was."""


def of_series(
    arms: Collection[str],
    deciding: Series,
    every: Sequence[Series],
    source: str | None,
    subject: str | None = None,
) -> list[str]:
    """Remarks on the evidence of a deciding series, and on what was there to be read before it began.

    Args:
        arms: The arms that the prediction reads.
        deciding: The series that it rests on.
        every: All series of the experiment.
        source: Digest of the experiment's code and data as they are now; ``None`` where they are gone.
        subject: Digest of its subject as it is now; ``None`` where it is gone, or none is declared.
    """
    earlier = [one for one in every if one.number != deciding.number and _began_before_the_end(one, deciding)]
    left = [one for one in every if not one.complete and _began_before_the_end(one, deciding)]
    remarks = {
        "imported": deciding.origin == "imported",
        "voided": deciding.voided is not None,
        "versions differ": deciding.mixed_versions,
        "disputed": bool(deciding.disputed),
        "repeats run again": any(arm_of(fault) in arms for fault in deciding.faults),
        "surplus repeats": deciding.surplus > 0,
        "abandoned series": bool(left),
        "earlier data": any(one.complete for one in earlier),
        "earlier code": deciding.source is not None and deciding.source != source,
        EARLIER_SUBJECT: deciding.subject is not None and deciding.subject != subject,
    }
    return [remark for remark, holds in remarks.items() if holds]


def of_repeats(several: Sequence[Series], judgement: Judgement) -> list[str]:
    """Remarks on the repeats that a judgement rests on, and on those that it leaves out.

    Args:
        several: The series that it rests on.
        judgement: What came of them.
    """
    every = [repeat for series in several for repeat in series.repeats]
    resumed = {repeat.id for repeat in every if repeat.resumed}
    aside = frozenset(judgement.set_aside)
    left_out = [repeat for repeat in every if repeat.id in aside] if aside else []
    remarks = {
        "resumed repeats": bool(resumed) and not resumed.isdisjoint(judgement.repeats),
        "invalid repeats": any(repeat.outcome is Outcome.INVALID for repeat in left_out),
        "excluded by rule": any(is_by_rule(repeat) for repeat in left_out),
        "excluded": any(repeat.by_author for repeat in left_out),
    }
    return [remark for remark, holds in remarks.items() if holds]


def _began_before_the_end(other: Series, deciding: Series) -> bool:
    """Whether a series was there to be read before ``deciding`` was complete; sessions are named by time.

    What began in the same second comes after it.
    """
    return other.number < deciding.number or _second(other.sessions[0]) < _second(deciding.sessions[-1])


def _second(session: str) -> str:
    """When a session began, as its file is named: ``20260802T120000Z``."""
    return session.partition("-")[0]


def of_registration(
    prediction: Prediction, entry: LockEntry | None, measured_in: Collection[str]
) -> list[str]:
    """Remarks on what happened to the registration that does not change its standing.

    Args:
        prediction: As it is written now.
        entry: Its table in the lock.
        measured_in: Experiments whose evidence names it.
    """
    amendments = entry.amendments if entry else ()
    remarks = {
        "earlier data": any(name not in prediction.experiments for name in measured_in),
        "amended after data": any(each.key == "digest" and each.verdict for each in amendments),
        WAS_REFUTED: entry is not None and entry.was_refuted,
        "reworded": entry is not None and entry.claim != claim_digest(prediction.claim),
        "low confidence": prediction.confidence < USUAL_CONFIDENCE,
    }
    return [remark for remark, holds in remarks.items() if holds]
