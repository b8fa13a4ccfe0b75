"""The verdict on a claim that several others make together: supported if all are, refuted if any is.

All members are supported at their own confidence, which needs no correction (intersection-union test, Berger
1982). Any of k members may refute by chance, so that takes alpha / k (Bonferroni).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.judge.findings import plural
from pytest_prereg.judge.model import Alternative, Judgement, Reason, Verdict
from pytest_prereg.judge.obstacles import rank_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_prereg.judge.findings import Doubt
    from pytest_prereg.registry.model import Prediction

METHOD = "all of {}"
Pair = tuple[Judgement, Judgement]
"""A member at its own confidence, and at ``alpha / k``."""


def judge_all(prediction: Prediction, members: Sequence[Pair]) -> Judgement:
    """Judge a conjunction from its members.

    Args:
        prediction: The conjunction.
        members: Of each member its judgement at its own confidence, and that at ``alpha / k`` for k members.

    Returns:
        The verdict, without an estimate or an interval of its own. An inconclusive one has the first reason
        that any member has, and names the members that have it.

    Raises:
        ValueError: There are no members.
    """
    if not members:
        raise ValueError("members: a conjunction needs at least one")
    owns = [own for own, _ in members]
    verdict, doubt, detail = _verdict(members)
    set_aside = tuple(dict.fromkeys(repeat for own in owns for repeat in own.set_aside))
    planned = [own.planned for own in owns if own.planned is not None]
    return Judgement(
        prediction=prediction.id,
        verdict=verdict,
        reason=doubt[0] if doubt else None,
        detail=doubt[1] if doubt else detail,
        estimate=None,
        interval=None,
        confidence=min(own.confidence for own in owns),
        method=METHOD.format(len(members)),
        statistic="all",
        n=min(own.n for own in owns),
        planned=min(planned, default=None),
        excluded=len(set_aside),
        flags=tuple(dict.fromkeys(flag for own in owns for flag in own.flags)),
        repeats=tuple(dict.fromkeys(repeat for own in owns for repeat in own.repeats)),
        set_aside=set_aside,
        alternatives=tuple(_alternatives(members, set_aside)),
    )


def _alternatives(members: Sequence[Pair], set_aside: Sequence[str]) -> Iterator[Alternative]:
    """What the members are together with each of the repeats that were set aside, and with all of them.

    A member that none of what is counted belongs to stays as it is.
    """
    for repeat in set_aside:
        yield from _alternative(members, partial(_with_one, repeat))
    if len(set_aside) > 1:
        yield from _alternative(members, _with_all)


def _alternative(
    members: Sequence[Pair], chosen: Callable[[Judgement], Alternative | None]
) -> Iterator[Alternative]:
    pairs = [(_in_place(own, chosen(own)), _in_place(strict, chosen(strict))) for own, strict in members]
    told = [found for own, _ in members if (found := chosen(own)) is not None]
    if told:
        counted = tuple(dict.fromkeys(repeat for found in told for repeat in found.counted))
        yield Alternative(
            counted=counted,
            verdict=_verdict(pairs)[0],
            estimate=None,
            interval=None,
            n=min(own.n for own, _ in pairs),
        )


def _with_one(repeat: str, member: Judgement) -> Alternative | None:
    return next((each for each in member.alternatives if each.counted == (repeat,)), None)


def _with_all(member: Judgement) -> Alternative | None:
    return member.alternatives[-1] if member.alternatives else None


def _in_place(member: Judgement, other: Alternative | None) -> Judgement:
    return member if other is None else replace(member, verdict=other.verdict, n=other.n)


def _verdict(members: Sequence[Pair]) -> tuple[Verdict, Doubt | None, str | None]:
    refuted = [strict.prediction for _, strict in members if strict.verdict is Verdict.REFUTED]
    if refuted:
        return Verdict.REFUTED, None, f"{_listed(refuted)} refuted"
    doubts = [doubt for own, _ in members if (doubt := _doubt(own, len(members)))]
    if not doubts:
        return Verdict.SUPPORTED, None, None
    return Verdict.INCONCLUSIVE, _told(doubts), None


def _doubt(own: Judgement, k: int) -> tuple[Doubt, str] | None:
    """Why a member keeps the others from support, and which it is."""
    if own.verdict is Verdict.SUPPORTED:
        return None
    if own.verdict is Verdict.REFUTED:
        detail = f"is refuted on its own, but not at alpha/{k} as one of {plural(k, 'claim')}"
        return (Reason.STRADDLES, detail), own.prediction
    return (own.reason or Reason.STRADDLES, own.detail or "is undecided"), own.prediction


def _told(doubts: Sequence[tuple[Doubt, str]]) -> Doubt:
    """The first reason, and each member that has it with its own detail."""
    first = min(rank_of(doubt[0]) for doubt, _ in doubts)
    told = [(doubt, name) for doubt, name in doubts if rank_of(doubt[0]) == first]
    return told[0][0][0], "; ".join(f"{name}: {doubt[1]}" for doubt, name in told)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
