"""Recorded verdicts that became others in the lock's history: PR205.

The lock records each of them, so what a change is acknowledged by is itself: where the evidence gives what is
recorded now, and something that the lock tells of as well explains why it was not what was recorded before.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from pytest_prereg.audit.deciding import is_guard
from pytest_prereg.audit.finding import Level
from pytest_prereg.audit.findings.amendments import leads
from pytest_prereg.audit.findings.telling import acknowledging, in_commit, told
from pytest_prereg.audit.history.past import Past
from pytest_prereg.audit.history.revisions import NoRevision, Revisions, commits_with
from pytest_prereg.audit.recordable import recorded_entry
from pytest_prereg.errors import PreregError
from pytest_prereg.judge.model import Verdict
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.finding import Finding
    from pytest_prereg.audit.history.chronicle import Step, Version
    from pytest_prereg.registry.lock import Amendment, LockEntry


class Record(NamedTuple):
    """What a lock records of a prediction's verdict; equal if nothing was changed."""

    verdict: str | None
    reason: str | None
    estimate: float | None
    interval: tuple[float, float] | None
    n: int | None
    series: int | None
    evidence: str | None


class _Kept(NamedTuple):
    """A record, with the version that has it first and the registration that it is of."""

    record: Record
    version: Version
    digest: str


def record_of(entry: LockEntry) -> Record:
    """Return the record of an entry of a lock; all ``None`` where it has none."""
    return Record(
        verdict=entry.verdict,
        reason=entry.reason,
        estimate=entry.estimate,
        interval=entry.interval,
        n=entry.n,
        series=entry.series,
        evidence=entry.evidence,
    )


def records(state: StudyState) -> Iterator[Finding]:
    """Yield a review for each change of a recorded verdict, or its numbers, that no amendment tells of."""
    ever = dict.fromkeys(one.id for one in state.chronicle.changes if one.after and one.after.verdict)
    revisions = Revisions.of(state.past, state.study) if isinstance(state.past, Past) else None
    for name in ever:
        yield from _Records(state, name, revisions).findings()


class _Records:
    """The records of one prediction, one after the other."""

    def __init__(self, state: StudyState, name: str, revisions: Revisions | None) -> None:
        self._state = state
        self._name = name
        self._revisions = revisions
        self._kept: list[_Kept] = []
        """Every record that a version had first, in order."""

    def findings(self) -> Iterator[Finding]:
        """Yield the changes; one that is made again is another one, which nobody has acknowledged yet."""
        made: Counter[str] = Counter()
        for step in self._state.chronicle.steps[self._name]:
            for one in self._of_step(step, step.after) if step.after is not None else ():
                made[one.about] += 1
                times = made[one.about]
                yield one if times == 1 else replace(one, about=f"{one.about}, time {times}")

    def _of_step(self, step: Step, after: LockEntry) -> Iterator[Finding]:
        now = record_of(after)
        before = {record_of(entry): entry for entry in step.before.values() if entry.verdict is not None}
        if len(step.version.before) > 1:
            before = {one: entry for one, entry in before.items() if not self._is_outdated(one, now, step)}
        elif now.verdict is not None and not before and (last := self._taken_out(after)):
            before = {last.record: after}
        for record, entry in before.items():
            if (
                record != now
                and not _is_amended(entry, after)
                and not self._is_nothing(record, now, step.version)
            ):
                if now.verdict is None and self._comes_back(record, entry.digest, step):
                    yield self._put_back(record, step.version)
                else:
                    yield self._changed(record, now, step.version, _amended_aside(entry, after, step))
        if now.verdict is not None and all(record_of(entry) != now for entry in step.before.values()):
            self._kept.append(_Kept(now, step.version, after.digest))

    def _is_outdated(self, record: Record, now: Record, step: Step) -> bool:
        """Whether a merge took the side on which a record had been followed by another one."""
        leads = self._state.timeline.leads
        had = [one.version.commit for one in self._kept if one.record == record]
        sides = [parent for parent, entry in step.before.items() if record_of(entry) == now]
        return any(commit is not None and leads(commit, side) for commit in had for side in sides)

    def _taken_out(self, after: LockEntry) -> _Kept | None:
        """What was recorded last of the same registration, where that is recorded no more."""
        return self._kept[-1] if self._kept and self._kept[-1].digest == after.digest else None

    def _comes_back(self, record: Record, digest: str, step: Step) -> bool:
        """Whether nothing but what a version took out was recorded ever after, and is recorded now."""
        steps = self._state.chronicle.steps[self._name]
        place = next(index for index, one in enumerate(steps) if one is step)
        now = self._state.chronicle.now.predictions.get(self._name)
        later = [one.after for one in steps[place + 1 :] if one.after and one.after.verdict is not None]
        return now is not None and all(
            (record_of(each), each.digest) == (record, digest) for each in (now, *later)
        )

    def _put_back(self, record: Record, version: Version) -> Finding:
        return told(
            self._state,
            "PR205",
            self._name,
            Level.NOTICE,
            f"the record of {quoted(self._name)} ({record.verdict}) was taken out of the lock"
            f"{in_commit(version.commit)}, and put back as it was",
            commit=version.commit,
            about=f"put back {record.verdict} {_numbers(record)}",
        )

    def _is_nothing(self, before: Record, now: Record, version: Version) -> bool:
        """Whether only numbers changed, and the lock tells why."""
        return (
            before.verdict == now.verdict
            and self._why(before, now, version) is not None
            and self._holds(now, version)
        )

    def _why(self, before: Record, now: Record, version: Version) -> str | None:
        """Return what explains a change, as far as the lock tells."""
        if None not in (before.series, now.series) and before.series != now.series:
            return f"series {now.series}" if (now.series or 0) > (before.series or 0) else None
        first = next((one.version.lock for one in self._kept if one.record == before), None)
        if first is None:
            return None
        now_said = ({*version.lock.exclusions}, {*version.lock.voided})
        return "what was set aside" if now_said != ({*first.exclusions}, {*first.voided}) else None

    def _holds(self, record: Record, version: Version) -> bool:
        """Whether the evidence gives what a version recorded, with what was set aside by then."""
        entry, then = version.lock.predictions[self._name], self._then(version)
        if then is None:
            return False
        prediction = then.study.predictions[self._name]
        try:
            known = then.assess(prediction)
        except PreregError:
            return False
        if is_guard(prediction):
            return (record.series, record.verdict) in {
                (one.series, str(one.verdict)) for one in known.history
            }
        given = record_of(recorded_entry(known, entry)) if known.judgement else None
        return given == record and not any(problem.code == "PR207" for problem in known.problems)

    def _then(self, version: Version) -> StudyState | None:
        """Return the study with what a version said; as it was then, if the prediction is another one now.

        ``None`` where that can't be had any more.
        """
        state, name = self._state, self._name
        entry = version.lock.predictions[name]
        if state.lock is not None and state.digests.get(name) == entry.digest:
            said = {"exclusions": version.lock.exclusions, "voided": version.lock.voided}
            entries = {**state.lock.predictions, name: entry}
            return state.with_lock(replace(state.lock, predictions=entries, **said))
        if self._revisions is None:
            return None
        commits = commits_with(state.chronicle, name, entry.digest)
        known = [version.commit] if version.commit is not None else []
        study = self._revisions.whole([*known, *commits], name, entry.digest)
        return None if isinstance(study, NoRevision) else state.as_registered(study, version.lock)

    def _is_return(self, before: Record, now: Record) -> bool:
        """Whether a verdict is what had been recorded of the same series before the one that it replaces."""
        earlier = (one.record for one in self._kept if one.record != before)
        return any((one.verdict, one.series) == (now.verdict, now.series) for one in earlier)

    def _changed(
        self, before: Record, now: Record, version: Version, amendment: Amendment | None = None
    ) -> Finding:
        name = self._name
        explained = self._why(before, now, version) if now.verdict is not None else None
        is_fine = explained is not None and not self._is_return(before, now) and self._holds(now, version)
        acknowledged = f"recorded as {now.verdict} ({explained})" if is_fine else None
        if amendment is not None:
            explained = acknowledged = f"amended: {amendment.reason}"
        if before.verdict != now.verdict:
            what = f"{before.verdict} -> {now.verdict or 'none'}"
            message = f"the recorded verdict of {quoted(name)} was changed: {what}"
        else:
            what = f"{now.verdict}, {_numbers(before)} -> {_numbers(now)}"
            message = (
                f"the recorded numbers of {quoted(name)} were changed, and it stays {now.verdict} "
                f"({_estimate(before)} -> {_estimate(now)})"
            )
        why = f" ({explained})" if explained else "; nothing in the lock says why"
        return told(
            self._state,
            "PR205",
            name,
            Level.REVIEW,
            f"{message}{why}{in_commit(version.commit)}",
            commit=version.commit,
            about=what,
            advice=f"Say why: {acknowledging('PR205', name)}",
            acknowledged=acknowledged,
        )


def _is_amended(before: LockEntry, after: LockEntry) -> bool:
    """Whether an amendment that came in with a change keeps the verdict that had stood."""
    if before.digest == after.digest:
        return False
    new = [one for one in after.amendments if one not in before.amendments]
    return any(one.key == "digest" and one.verdict == before.verdict for one in new)


def _amended_aside(before: LockEntry, after: LockEntry, step: Step) -> Amendment | None:
    """Return the amendment on the side that a merge took whole, of what the other side had a verdict on.

    A refutation is not got rid of so: who takes the side that has it can amend after it, and that keeps it.
    """
    is_side = len(step.version.before) > 1 and after in step.before.values()
    if not is_side or before.verdict == Verdict.REFUTED or before.digest == after.digest:
        return None
    new = tuple(one for one in after.amendments if one.key == "digest" and one not in before.amendments)
    return new[-1] if leads(new, "digest", before.digest, after.digest) else None


def _numbers(record: Record) -> str:
    """The numbers of a record, so that others have another name."""
    told = repr((record.reason, record.estimate, record.interval, record.n, record.series, record.evidence))
    return hashlib.sha256(told.encode()).hexdigest()[:8]


def _estimate(record: Record) -> str:
    return "none" if record.estimate is None else f"{record.estimate:.6g}"
