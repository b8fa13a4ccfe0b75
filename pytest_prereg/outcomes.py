"""What a verdict means for the run: pass, fail, skip or error, and the words that say so."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.assess import withdrawn_in
from pytest_prereg.audit.assessing import FOLLOWS_DECIDED
from pytest_prereg.audit.guards import wants_confirmation
from pytest_prereg.audit.history.order import Grade
from pytest_prereg.audit.recordable import is_recordable
from pytest_prereg.audit.remarks import WAS_REFUTED
from pytest_prereg.audit.standing import CONFIRMATORY
from pytest_prereg.audit.withdrawn import repeats_of
from pytest_prereg.errors import PreregError, Problem, one_line
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.evidence.naming import shown
from pytest_prereg.judge.credences import Credence
from pytest_prereg.judge.model import Reason, Verdict
from pytest_prereg.measure.failures import account
from pytest_prereg.registry.digest import USUAL_CONFIDENCE
from pytest_prereg.registry.refusals import quoted, typed
from pytest_prereg.registry.regions import Region
from pytest_prereg.report.failed import ended
from pytest_prereg.report.records import (
    Record,
    judged_record,
    pending_record,
    tombstone_record,
    withdrawn,
)
from pytest_prereg.report.terminal import Shown, verdict_lines, withdrawn_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.standing import Assessment, Beside
    from pytest_prereg.audit.withdrawn import Tombstone
    from pytest_prereg.campaign import Campaign
    from pytest_prereg.judge.model import Judgement
    from pytest_prereg.mode import Mode
    from pytest_prereg.registry.model import Prediction

FAILURES = {
    Reason.INFRASTRUCTURE: Outcome.INFRASTRUCTURE,
    Reason.TASK_FAILED: Outcome.TASK_FAILED,
    Reason.EXCLUDED: Outcome.INVALID,
    Reason.N_TOO_SMALL: Outcome.INVALID,
}
"""How the repeats ended that give a verdict this reason."""


class StudyRun:
    """One study in this session: it measures what an item lacks, then says where the item stands."""

    def __init__(self, state: StudyState, mode: Mode, campaign: Campaign, *, unicode: bool = True) -> None:
        self.state = state
        self.mode = mode
        self.campaign = campaign
        self.unicode = unicode
        """Whether the terminal shows more than ASCII."""
        self.selected: Collection[str] = state.study.predictions
        """Ids of the predictions that this session judges."""
        self._asked: set[str] = set()
        """Those that were measured because another one rests on them."""

    def assess(self, prediction: Prediction) -> Assessment:
        """Measure what the prediction's verdict rests on, if that is due and allowed, then judge.

        What it requires, and what calibrates its instruments, is measured first if it is selected: else a
        prediction that stands above it in the file would wait for another run.
        """
        if self.mode.measure and not self.state.is_withdrawn(prediction.id):
            for name in self.state.before(prediction, self._asked):
                self._asked.add(name)
                if name in self.selected:
                    with suppress(PreregError):  # its own item says so
                        self._measure(self.state.study.predictions[name])
            self._measure(prediction)
        assessment = self._explained(self.state.assess(prediction))
        is_pending = assessment.judgement is None and assessment.withdrawal is None
        if is_pending and (why := self._unbought(assessment)):
            return msgspec.structs.replace(assessment, pending=why)
        return assessment

    def _unbought(self, assessment: Assessment) -> str | None:
        """Why this run has not measured what is pending, if that says more than what is missing."""
        prediction = assessment.prediction
        withheld = self.campaign.withheld(prediction)
        refused = self.campaign.refused.get(prediction.id)
        if refused and not (
            withheld and self.campaign.explore
        ):  # exploring, that would have kept nothing back
            return f"{refused.code}: {refused.message}"
        if withheld and wants_confirmation(self.state, prediction):
            return f"{assessment.pending}; {withheld}"
        return withheld

    def _measure(self, prediction: Prediction) -> None:
        if not any(self.state.spoiled(name) for name in prediction.experiments):
            self.campaign.measure(prediction)

    def _explained(self, assessment: Assessment) -> Assessment:
        """Add to a reason what the first repeat that gave it said of itself: that is known where it ran."""
        judgement = assessment.judgement
        if judgement is None or judgement.reason not in FAILURES:
            return assessment
        failed = next(ended(self.state, assessment, FAILURES[judgement.reason]), None)
        said = account(failed, self.state.files[failed.id.partition("/")[0]]) if failed else None
        if said is None:
            return assessment
        told = msgspec.structs.replace(judgement, detail=f"{judgement.detail} ({said})")
        return msgspec.structs.replace(assessment, judgement=told)

    def record(self, assessment: Assessment) -> Record:
        """What other plugins are told of the prediction."""
        return record_of(assessment)

    def refusals(self, assessment: Assessment) -> list[Problem]:
        """What makes the item an error: altered evidence always, loose ends under ``--prereg-locked``.

        A recorded verdict that does not follow is none where this very run records the one that does.
        """
        mended = self.mode.record and is_recordable(assessment)
        problems = [one for one in assessment.problems if not (mended and one.code == "PR211")]
        if (self.mode.locked or self.mode.record) and (unburied := self._unburied(assessment)):
            problems.append(unburied)
        if self.mode.locked and assessment.withdrawal is None:
            problems.extend(self._loose_ends(assessment))
        return problems

    def _unburied(self, assessment: Assessment) -> Problem | None:
        """A tombstone that HEAD has and somebody took out since: asked for where a lock is relied on."""
        name, there = assessment.prediction.id, set[str]()
        with suppress(PreregError):  # a lock at HEAD that can't be read is told of where it is needed
            there = withdrawn_in(self.state.head_lock)
        if assessment.withdrawal is not None or name not in there:
            return None
        message = f"{quoted(name)} is withdrawn at HEAD, and its tombstone is gone"
        advice = f"It stays: git checkout HEAD -- {typed(shown(self.state.study.lock_path))}"
        return self._problem(assessment, "PR203", message, advice)

    def _loose_ends(self, assessment: Assessment) -> Iterable[Problem]:
        """What ``--prereg-locked`` insists on; a pending prediction has none."""
        name = quoted(assessment.prediction.id)
        if assessment.order.grade is Grade.UNREGISTERED or assessment.entry is None:
            advice = "pytest-prereg lock, and commit"
            yield self._problem(assessment, "PR102", f"{name} is not registered", advice)
            return
        if "reworded" in assessment.flags:
            detail = f"{name} no longer claims it in the words that were registered"
            advice = f"Restore them, or: pytest-prereg amend {typed(assessment.prediction.id)} --reason '…'"
            yield self._problem(assessment, "PR104", detail, advice)
        for file in assessment.order.removed:
            yield self._problem(
                assessment, "PR207", f"evidence {file} was committed, and is gone or altered", None
            )
        if assessment.judgement is None:
            return
        elif assessment.standing == "exploratory":
            detail = f"{name} is exploratory: {why_exploratory(assessment)}"
            yield self._problem(assessment, "PR212", detail, None)
        elif not assessment.is_recorded and assessment.final and not self.mode.record:
            advice = "pytest --prereg-verify --prereg-record, and commit"
            yield self._problem(
                assessment, "PR211", f"{name} has a verdict that the lock does not record", advice
            )

    def _problem(self, assessment: Assessment, code: str, message: str, advice: str | None) -> Problem:
        path = shown(self.state.study.path)
        return Problem(code=code, message=message, path=path, line=assessment.prediction.line, advice=advice)

    def fails(self, assessment: Assessment) -> bool:
        """Whether the verdict, or that a guard has none, fails the run."""
        judgement, table = assessment.judgement, assessment.prediction.table
        if assessment.withdrawal is not None:
            return False
        if table.kind == "guard":
            if judgement is None or judgement.verdict is Verdict.INCONCLUSIVE:
                demanded = table.on_inconclusive == "fail" and (judgement is not None or self.mode.measure)
                return demanded or (judgement is not None and self._was_refuted(assessment))
            return assessment.changed or judgement.verdict is Verdict.REFUTED
        if judgement is None:
            return False
        return assessment.changed or (judgement.verdict is Verdict.REFUTED and assessment.recorded is None)

    def _was_refuted(self, assessment: Assessment) -> bool:
        """Whether only what was said against its evidence keeps it from being refuted."""
        measured = self.state.as_measured
        if measured is self.state:
            return False
        before = measured.assess(assessment.prediction).judgement
        return before is not None and before.verdict is Verdict.REFUTED

    def reason(self, assessment: Assessment) -> str:
        """Reason and detail of an inconclusive verdict, on one line."""
        judgement = assessment.judgement
        return _because(judgement) if judgement is not None and judgement.reason is not None else ""

    def explain(self, assessment: Assessment) -> str:
        """What a failed prediction shows in the failures section."""
        shown = self.shown(assessment)
        lines = [f"claim: {assessment.prediction.claim}", *verdict_lines([shown], 80, unicode=self.unicode)]
        is_guard = assessment.prediction.table.kind == "guard"
        is_undecided = assessment.judgement is None or assessment.judgement.verdict is Verdict.INCONCLUSIVE
        if is_guard and is_undecided:
            is_excused = assessment.judgement is not None and self._was_refuted(assessment)
            excused = "with all that was measured it is refuted; it fails until its subject is mended"
            demanded = 'on-inconclusive = "fail": this guard has to be supported'
            lines.append(excused if is_excused else demanded)
        elif is_guard and not assessment.changed:
            lines.append("a guard that is refuted, and confirmed, fails until its subject is mended")
        elif assessment.standing == "exploratory" and not assessment.recorded:
            why = why_exploratory(assessment)
            lines.append(f"refuted, and exploratory, so it is not recorded: {why}")
        elif assessment.changed:
            lines.append(f"the lock records {assessment.recorded}; the change needs a person's eyes")
        elif not assessment.final:
            lines.append("refuted; it can be recorded once all of its family are measured")
        elif self.mode.record:
            lines.append("refuted, and recorded now; once that is committed, it passes")
        else:
            lines.append("refuted, and not yet recorded: pytest --prereg-verify --prereg-record")
            lines.append("once that is committed, it passes")
        return "\n".join(lines)

    def shown(self, assessment: Assessment) -> Shown:
        """What the terminal report needs of one prediction."""
        if assessment.withdrawal is not None:
            return self._withdrawn(assessment, one_line(assessment.withdrawal.reason))
        judgement = assessment.judgement
        return Shown(
            record=record_of(assessment),
            predicts=assessment.predicts,
            falsifier=assessment.falsifier,
            detail=judgement.detail if judgement else assessment.pending,
            earlier=version_text(assessment),
            wants=assessment.prediction.quantity.text if assessment.prediction.members else "",
            why=why_exploratory(assessment) if assessment.standing == "exploratory" else "",
        )

    def replications(self, assessment: Assessment) -> Iterable[tuple[int, Shown]]:
        """Later series of a claim that is decided, by number: shown beside its verdict, not in its place."""
        for replication in assessment.replications:
            yield replication.series, self._beside(assessment, replication)

    def earlier(self, assessment: Assessment) -> Shown | None:
        """The first series of a claim, where the next one decides."""
        first = assessment.earlier
        if first is None:
            return None
        shown = self._beside(assessment, first)
        return msgspec.structs.replace(shown, detail=f"series {first.series}: {_because(first.judgement)}")

    def _beside(self, assessment: Assessment, other: Beside) -> Shown:
        flags = tuple(flag for flag in assessment.flags if flag == "imported")
        return self.shown(
            msgspec.structs.replace(
                assessment, judgement=other.judgement, series=other.series, entry=None, flags=flags
            )
        )

    def _withdrawn(self, assessment: Assessment, reason: str) -> Shown:
        """A tombstone as the report shows it: without numbers, but never without its verdict."""
        name, entry = assessment.prediction.id, assessment.entry
        return Shown(
            record=record_of(assessment),
            predicts=assessment.predicts,
            falsifier=assessment.falsifier,
            detail=reason,
            repeats=repeats_of(self.state, name, entry) if entry is not None else 0,
        )

    def withdrawn_text(self, assessment: Assessment) -> str:
        """Why a prediction is skipped that was withdrawn."""
        shown = self.shown(assessment)
        return withdrawn_text(shown.record, shown.detail, shown.repeats)


def properties(record: Record) -> list[tuple[str, object]]:
    """JUnit properties of an item."""
    pairs = [
        ("prereg.status", record.status),
        ("prereg.verdict", record.verdict and record.verdict.value),
        ("prereg.reason", record.reason and record.reason.value),
        ("prereg.standing", record.standing),
        ("prereg.order", record.order),
        ("prereg.estimate", record.estimate),
        ("prereg.interval", list(record.interval) if record.interval else None),
        ("prereg.n", record.n if record.verdict else None),
        ("prereg.flags", ", ".join(record.flags) or None),
    ]
    return [(name, value) for name, value in pairs if value is not None]


def shown_tombstone(state: StudyState, tombstone: Tombstone) -> Shown:
    """What the report needs of a prediction that was withdrawn and that the study no longer has."""
    entry = tombstone.entry
    return Shown(
        record=tombstone_record(
            tombstone.id,
            entry,
            kind=tombstone.withdrawal.kind,
            standing=tombstone.standing,
            order=tombstone.order.grade.value,
            sessions=tombstone.sessions,
        ),
        predicts=Region(spans=()),
        falsifier=Region(spans=()),
        detail=one_line(tombstone.withdrawal.reason),
        repeats=repeats_of(state, tombstone.id, entry),
    )


def _because(judgement: Judgement) -> str:
    return f"{judgement.reason}: {one_line(judgement.detail)}" if judgement.detail else str(judgement.reason)


def version_text(assessment: Assessment) -> str:
    """Which version of its subject a guard is judged for, and what it said of another one last.

    ``version 3, supported before``; nothing where there is no other.
    """
    subjects = list(dict.fromkeys(one.subject for one in assessment.history))
    others = [one for one in assessment.history if one.subject != assessment.subject]
    if not others or assessment.subject not in subjects:
        return ""
    return f"version {subjects.index(assessment.subject) + 1}, {others[-1].verdict} before"


def why_exploratory(assessment: Assessment) -> str:
    """Why a verdict is not confirmatory: the order, a level that is too low for it, or what it follows."""
    if FOLLOWS_DECIDED in assessment.flags:
        return f"it follows {quoted(assessment.prediction.table.follows)}, which was decided"
    if assessment.order.grade in CONFIRMATORY:
        return f"its confidence is {assessment.prediction.confidence:g}, and below {USUAL_CONFIDENCE:g}"
    return assessment.order.detail


def unmeasured(assessments: Iterable[Assessment], buried: Iterable[Tombstone] = ()) -> frozenset[str]:
    """Ids of predictions that follow from a model or an identity: no hit for anybody."""
    bases = {one.prediction.id: one.prediction.table.basis for one in assessments}
    bases |= {one.id: one.withdrawal.basis for one in buried}
    return frozenset(name for name, basis in bases.items() if basis != "measured")


def credences(assessments: Iterable[Assessment], buried: Iterable[Tombstone] = ()) -> list[Credence]:
    """What authors gave for *supported* in confirmatory measured claims, with what came of them.

    Those that were withdrawn are among them: else who withdraws what he was wrong about would look wiser.
    """
    of_buried = [
        Credence(one.withdrawal.credence, one.verdict)
        for one in buried
        if one.withdrawal.credence is not None
        and one.verdict is not None
        and one.standing == "confirmatory"
        and (one.withdrawal.basis, one.withdrawal.kind) == ("measured", "claim")
    ]
    return of_buried + [
        Credence(one.prediction.table.credence, one.judgement.verdict)
        for one in assessments
        if one.prediction.table.credence is not None
        and one.judgement is not None
        and one.standing == "confirmatory"
        and one.prediction.table.basis == "measured"
        and one.prediction.table.kind == "claim"
    ]


def record_of(assessment: Assessment) -> Record:
    """The prediction's element of the JSON report."""
    record = _record(assessment)
    return record if assessment.withdrawal is None else withdrawn(record)


def _record(assessment: Assessment) -> Record:
    prediction, judgement = assessment.prediction, assessment.judgement
    if judgement is None:
        return pending_record(
            prediction.id,
            kind=prediction.table.kind,
            standing=assessment.standing,
            order=assessment.order.grade.value,
            statistic=prediction.statistic,
            unit=assessment.unit,
            planned=assessment.planned,
            flags=tuple(flag for flag in assessment.flags if flag == WAS_REFUTED),
        )
    return judged_record(
        msgspec.structs.replace(judgement, flags=assessment.flags),
        kind=prediction.table.kind,
        standing=assessment.standing,
        order=assessment.order.grade.value,
        unit=assessment.unit,
        series=assessment.series or 1,
        sessions=assessment.sessions,
        recorded=Verdict(assessment.recorded) if assessment.recorded else None,
        cost_usd=assessment.account.usd if assessment.account else None,
    )
