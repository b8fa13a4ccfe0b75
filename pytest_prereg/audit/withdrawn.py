"""What a tombstone says of a prediction, with its text in the study or without: nothing is judged anew."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.history.order import Order, grade_all
from pytest_prereg.audit.recorded import follows
from pytest_prereg.audit.standing import CONFIRMATORY, Found, Standing
from pytest_prereg.errors import Problem, one_line
from pytest_prereg.evidence.model import RERUN, Outcome
from pytest_prereg.evidence.naming import shown
from pytest_prereg.judge.model import Judgement, Reason, Verdict
from pytest_prereg.registry.lock import LockEntry, Withdrawal
from pytest_prereg.registry.refusals import quoted, typed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.recorded import Evidenced
    from pytest_prereg.evidence.sessions import SessionFile
    from pytest_prereg.registry.model import Prediction, Study

_UNCOUNTED = frozenset({*RERUN, Outcome.PILOT, Outcome.WARMUP})


class Tombstone(msgspec.Struct, kw_only=True, frozen=True):
    """A prediction that was withdrawn and whose text is no longer in the study."""

    id: str
    entry: LockEntry
    withdrawal: Withdrawal
    order: Order
    standing: Standing
    sessions: tuple[str, ...]
    """Names of the evidence files that were taken for it."""
    problems: tuple[Problem, ...]
    """What shows that these were altered."""

    @property
    def verdict(self) -> Verdict | None:
        """The verdict that it was withdrawn with."""
        return Verdict(self.entry.verdict) if self.entry.verdict is not None else None

    @property
    def reason(self) -> Reason | None:
        """Why that was inconclusive."""
        return Reason(self.entry.reason) if self.entry.reason is not None else None

    @property
    def is_counted(self) -> bool:
        """Whether it counts as refuted: no withdrawal takes that back."""
        return counts_as_refuted(self.entry, self.standing)


def counts_as_refuted(entry: LockEntry, standing: Standing | None) -> bool:
    """Whether what was withdrawn, with its text in the study or without, stays counted as refuted.

    What was refuted before it was amended does, whatever it says by now.
    """
    if entry.withdrawal is None or entry.was_refuted:
        return entry.withdrawal is not None
    is_measured = entry.withdrawal.basis == "measured"
    return is_measured and standing != "exploratory" and entry.verdict == Verdict.REFUTED


def tombstones(state: StudyState) -> list[Tombstone]:
    """Return what the lock has withdrawn and the study no longer has, by id."""
    entries = state.lock.predictions if state.lock else {}
    gone = {name: entries[name] for name in sorted(entries) if name not in state.study.predictions}
    gone = {name: entry for name, entry in gone.items() if entry.withdrawal is not None}
    if not gone:
        return []
    files = {name: list(files_of(state, name, digests_of(entry))) for name, entry in gone.items()}
    evidence = {
        name: [reference for file in several if (reference := state.reference(file, name))]
        for name, several in files.items()
    }
    digests = {name: entry.digest for name, entry in gone.items()}
    orders = grade_all(state.past, state.study, digests, evidence)
    return [_tombstone(state, name, gone[name], orders[name]) for name in gone]


def _tombstone(state: StudyState, name: str, entry: LockEntry, order: Order) -> Tombstone:
    files = list(files_of(state, name, digests_of(entry)))
    experiments = sorted({file.path.parent.name for file in files})
    withdrawal = entry.withdrawal
    assert withdrawal is not None
    return Tombstone(
        id=name,
        entry=entry,
        withdrawal=withdrawal,
        order=order,
        standing=withdrawal.standing if order.grade in CONFIRMATORY else "exploratory",
        sessions=tuple(file.path.name for file in files),
        problems=(
            *(problem for file in files for problem in file.problems),
            *(problem for experiment in experiments for problem in state.gone(experiment)),
        ),
    )


def digests_of(entry: LockEntry) -> set[str]:
    """Return the registration digests that a prediction has or had."""
    return {entry.digest, *(each.old for each in entry.amendments if each.key == "digest")}


def files_of(state: StudyState, name: str, digests: set[str]) -> Iterator[SessionFile]:
    """Yield the sessions that were taken for a prediction under one of some digests, pilots left out."""
    for several in state.files.values():
        for file in several:
            header = file.header
            if header and header.origin != "pilot" and header.predictions.get(name) in digests:
                yield file


def repeats_of(state: StudyState, name: str, entry: LockEntry) -> int:
    """Return how many repeats were recorded for a prediction, under whatever it was registered as."""
    return repeats_in(files_of(state, name, digests_of(entry)))


def repeats_in(files: Iterable[SessionFile]) -> int:
    """Return how many repeats some sessions recorded, without pilots, warm-ups and what was run again."""
    attempts = (attempt for file in files for attempt in file.attempts)
    return len({attempt.repeat for attempt in attempts if attempt.outcome not in _UNCOUNTED})


def remembered(prediction: Prediction, entry: LockEntry, found: Found, evidenced: Evidenced | None) -> Found:
    """Return what is told of a withdrawn prediction that is still in the study.

    The verdict that it was withdrawn with, whatever was said of its evidence since; without one what its
    evidence gives: that is exploratory, or it could not have been withdrawn.
    """
    if entry.verdict is None:
        reason = one_line(entry.withdrawal.reason) if entry.withdrawal else ""
        return found if found.judgement else Found(pending=f"withdrawn: {reason}")
    if evidenced is not None and agrees(entry, evidenced):
        return found
    return Found(judgement=_judgement(prediction, entry, Verdict(entry.verdict)))


def agrees(entry: LockEntry, evidenced: Evidenced) -> bool:
    """Whether a recorded verdict is what the evidence gives, of the same repeats."""
    same = (entry.series, entry.evidence) == (evidenced.series, evidenced.digest)
    return same and follows(entry, evidenced.judgement)


def _judgement(prediction: Prediction, entry: LockEntry, verdict: Verdict) -> Judgement:
    """Return the verdict of an entry as far as the entry tells it."""
    return Judgement(
        prediction=prediction.id,
        verdict=verdict,
        reason=Reason(entry.reason) if entry.reason is not None else None,
        detail=None,
        estimate=entry.estimate,
        interval=entry.interval,
        confidence=prediction.confidence,
        method=entry.method or "",
        statistic=prediction.statistic,
        n=entry.n or 0,
        planned=None,
        excluded=0,
        flags=(),
        repeats=(),
    )


def unjudged(study: Study, prediction: Prediction, verdict: Verdict) -> Problem:
    """Return PR211: a tombstone without the verdict that the evidence gave."""
    name = quoted(prediction.id)
    withdraw = f"pytest-prereg withdraw {shlex.quote(prediction.id)} --reason '…'"
    return Problem(
        code="PR211",
        path=shown(study.lock_path),
        message=f"{name} was withdrawn without the verdict that its evidence gives, {quoted(verdict)}",
        advice="Restore the lock as it was before, and record that: pytest --prereg --prereg-verify "
        f"--prereg-record\nThen withdraw it: {withdraw}",
    )


def unaltered(problems: Iterable[Problem], study: Study) -> Iterator[Problem]:
    """Yield what is wrong with a recorded verdict, with what to do where it can't be recorded again."""
    advice = f"It is withdrawn, and never judged anew: git checkout HEAD -- {typed(shown(study.lock_path))}"
    for problem in problems:
        yield replace(problem, advice=advice) if problem.code == "PR211" else problem
