"""What keeps a series from deciding, whatever its values are, and which of several reasons is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.judge.bounds import impossible
from pytest_prereg.judge.faults import too_many_faults
from pytest_prereg.judge.findings import plural
from pytest_prereg.judge.model import Reason, Verdict
from pytest_prereg.judge.scope import out_of_scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_prereg.evidence.model import RecordedRepeat
    from pytest_prereg.judge.findings import Doubt
    from pytest_prereg.judge.model import Judgement
    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Sample

_RANK = {reason: rank for rank, reason in enumerate(Reason)}


def rank_of(reason: Reason) -> int:
    """Place of a reason in the order in which they are told, from 0."""
    return _RANK[reason]


def first_of(doubts: Iterable[Doubt]) -> Doubt | None:
    """The doubt whose reason comes first; of several with one reason, the one given first."""
    first = None
    for doubt in doubts:
        if first is None or _RANK[doubt[0]] < _RANK[first[0]]:
            first = doubt
    return first


def against(judgement: Judgement, doubt: Doubt) -> Judgement:
    """The judgement with one doubt more: inconclusive, with whichever reason comes first."""
    reason, detail = doubt
    if judgement.reason is not None and _RANK[judgement.reason] <= _RANK[reason]:
        return judgement
    return replace(judgement, verdict=Verdict.INCONCLUSIVE, reason=reason, detail=detail)


def obstacles_to(
    question: Question, repeats: Sequence[RecordedRepeat], faults: Sequence[str], n: int
) -> list[Doubt]:
    """What keeps these repeats from deciding: impossible readings, machines that differ, faults.

    Args:
        question: What is asked of them.
        repeats: All settled repeats of its arms, also those set aside.
        faults: A repeat id for each infrastructure fault.
        n: Repeats planned of each arm, the smaller arm's.
    """
    doubts: list[Doubt] = []
    if question.bounds and (impossibility := impossible(question, repeats)):
        doubts.append(impossibility)
    if differing := out_of_scope(question, repeats):
        doubts.append((Reason.SCOPE, differing))
    if faults and (count := too_many_faults(faults, question.arms, n)):
        attempts = plural(count, "attempt")
        lost = f"{attempts} lost to infrastructure, of {n} planned repeats"
        doubts.append((Reason.INFRASTRUCTURE, lost))
    return doubts


def failures(question: Question, repeats: Sequence[RecordedRepeat]) -> Iterator[Doubt]:
    """Why repeats that failed keep the others from deciding: unless they are counted, there are too few."""
    failed = [repeat.id for repeat in repeats if repeat.outcome is Outcome.TASK_FAILED]
    if failed and not question.counts_failures:
        detail = f"{plural(len(failed), 'repeat')} failed, first {failed[0]}; none is dropped"
        yield Reason.TASK_FAILED, detail


def losses(sample: Sample, allowed: int) -> Iterator[Doubt]:
    """Why too little is left: more than ``allowed`` of those set aside have no value, or none was kept."""
    lost = len(sample.without_value)
    if lost > allowed:
        detail = f"{plural(lost, 'repeat')} set aside without a value, first {sample.without_value[0].id}"
        yield Reason.EXCLUDED, f"{detail}; max-excluded is {allowed}"
    if not sample.kept and (sample.set_aside or lost):
        yield Reason.EXCLUDED, "every repeat was set aside"
