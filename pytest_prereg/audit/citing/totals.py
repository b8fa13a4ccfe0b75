"""Totals over a study that can be quoted: counted as on the scoreboard, of recorded verdicts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.citing.quotable import CODE, obstacle
from pytest_prereg.audit.withdrawn import tombstones
from pytest_prereg.errors import PreregError
from pytest_prereg.judge.model import Verdict
from pytest_prereg.registry.refusals import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.standing import Assessment


class Totals(msgspec.Struct, kw_only=True, frozen=True):
    """The totals of a study by name, and what forbids to quote those that rest on verdicts."""

    counts: dict[str, int]
    refused: RefusedError | None

    def text(self, name: str) -> str:
        """Return a total as text.

        Raises:
            RefusedError: PR210, a verdict that it counts does not stand.
        """
        if self.refused is not None and name != "registered":
            message = f"it counts a verdict that does not stand: {self.refused}"
            raise RefusedError(CODE, message, self.refused.advice)
        return str(self.counts[name])


def totals_of(state: StudyState) -> Totals:
    """Return the totals of a study.

    What is exploratory, or follows from a model or an identity, is in none that counts verdicts or repeats.
    What is withdrawn stays among the refuted, if it was refuted, and counts no more otherwise. So does what
    was refuted before it was amended, whatever it says by now.
    """
    try:
        assessments = [state.assess(one) for one in state.study.predictions.values()]
    except PreregError as error:
        first = error.problems[0]
        refused = RefusedError(CODE, f"{first.code}: {first.message}", first.advice)
        return Totals(counts={"registered": _registered(state)}, refused=refused)
    valid = [one for one in assessments if one.withdrawal is None]
    counted = [one for one in valid if _counts(one)]
    obstacles = [found for one in counted if (found := obstacle(one, exploratory=False))]
    judgements = [one.judgement for one in counted if one.judgement is not None]
    verdicts = [
        *(one.verdict.value for one in judgements),
        *_buried(state, assessments),
        *_amended(state, assessments),
    ]
    counts = {
        "registered": _registered(state),
        "pending": sum(one.judgement is None for one in valid),
        "repeats": len({repeat for one in judgements for repeat in one.repeats}),
        "excluded": len({repeat for one in judgements for repeat in one.set_aside}),
        **{verdict.value: verdicts.count(verdict.value) for verdict in Verdict},
    }
    return Totals(counts=counts, refused=obstacles[0] if obstacles else None)


def _registered(state: StudyState) -> int:
    return len(state.lock.predictions) if state.lock else 0


def _counts(assessment: Assessment) -> bool:
    """Whether a prediction counts: it was measured and is no exploration, or its record does not stand."""
    is_measured = assessment.prediction.table.basis == "measured"
    is_judged = assessment.judgement is not None and assessment.standing != "exploratory"
    return is_measured and (is_judged or bool(assessment.problems))


def _buried(state: StudyState, assessments: list[Assessment]) -> Iterator[str]:
    """Yield *refuted* for each prediction that was refuted and withdrawn, in the study or no longer in it."""
    for one in assessments:
        is_refuted = one.judgement is not None and one.judgement.verdict is Verdict.REFUTED
        if one.withdrawal is not None and is_refuted and _counts(one):
            yield Verdict.REFUTED.value
    yield from (Verdict.REFUTED.value for one in tombstones(state) if one.is_counted)


def _amended(state: StudyState, assessments: list[Assessment]) -> Iterator[str]:
    """Yield *refuted* for each that was so before it was amended, and is not counted as refuted by itself.

    Of those that the study no longer has their tombstones tell.
    """
    for one in assessments:
        is_refuted = one.judgement is not None and one.judgement.verdict is Verdict.REFUTED
        entry = state.entry(one.prediction)
        if entry is not None and entry.was_refuted and not (is_refuted and _counts(one)):
            yield Verdict.REFUTED.value
