"""What keeps a series from deciding, whatever its values are, and which of several reasons is told."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.judge.bounds import impossible
from pytest_prereg.judge.exclusions import NONE, is_by_author, is_by_rule
from pytest_prereg.judge.faults import too_many_faults
from pytest_prereg.judge.findings import plural
from pytest_prereg.judge.instruments import is_unread, never_read
from pytest_prereg.judge.model import Reason, Verdict
from pytest_prereg.judge.scope import out_of_conditions, out_of_scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_prereg.evidence.model import RecordedRepeat, Series
    from pytest_prereg.judge.exclusions import Choice
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
    question: Question, series: Series, repeats: Sequence[RecordedRepeat], faults: Sequence[str], n: int
) -> list[Doubt]:
    """What keeps these repeats from deciding: no readings, or impossible ones, conditions, machines, faults.

    Args:
        question: What is asked of them.
        series: Which they are of.
        repeats: All settled repeats of its arms, also those set aside.
        faults: A repeat id for each infrastructure fault.
        n: Repeats planned of each arm, the smaller arm's.
    """
    doubts: list[Doubt] = [*never_read(question.metrics, repeats, series)]
    if question.bounds and (impossibility := impossible(question, repeats)):
        doubts.append(impossibility)
    if elsewhere := out_of_conditions(series, repeats):
        doubts.append((Reason.SCOPE, elsewhere))
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
        every = "all " * (len(failed) == len(repeats) > 1)
        detail = f"{every}{plural(len(failed), 'repeat')} failed, first {failed[0]}; none is dropped"
        yield Reason.TASK_FAILED, detail


def losses(sample: Sample, allowed: int, choice: Choice = NONE) -> Iterator[Doubt]:
    """Why too little is left of what was set aside, where some of it is counted after all.

    Args:
        sample: The readings, and what has none.
        allowed: As many of an arm may be excluded by rules that were registered.
        choice: Ids of repeats that count although they were set aside.

    What its author set aside without a value could have been anything: no verdict agrees with that.
    """
    lost = [repeat for repeat in sample.without_value if is_by_author(repeat)]
    if lost:
        detail = f"{plural(len(lost), 'repeat')} set aside without a value, first {lost[0].id}"
        yield Reason.EXCLUDED, f"{detail}: with it the verdict could be another"
    every = [*(reading.repeat for reading in sample.set_aside), *sample.without_value]
    chosen = frozenset(choice)
    ruled = [repeat for repeat in every if is_by_rule(repeat) and repeat.id not in chosen]
    for arm, count in Counter(repeat.arm for repeat in ruled).items():
        if count > allowed:
            of = f" of arm {arm}" if arm else ""
            yield (
                Reason.EXCLUDED,
                f"{plural(count, 'repeat')}{of} excluded by rule; max-excluded is {allowed}",
            )
    if every and not sample.kept:
        yield Reason.EXCLUDED, _none_kept(every)


def _none_kept(repeats: Sequence[RecordedRepeat]) -> str:
    unread = next((repeat for repeat in repeats if is_unread(repeat)), None)
    if unread is None or not all(map(is_unread, repeats)):
        return "every repeat was set aside"
    return f"every repeat is invalid for want of a reading: {unread.cause}"
