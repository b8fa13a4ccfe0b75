"""Repeats that were set aside: what their author did decides nothing, a registered rule takes them out.

With and without each repeat that its author excluded, or that its body declared invalid, the verdict must
agree. Those that a rule took out as soon as they ended are left out, and what they say is told beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.judge.model import Alternative, Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_prereg.evidence.model import RecordedRepeat
    from pytest_prereg.judge.findings import Doubt
    from pytest_prereg.judge.model import Judgement, Verdict

Choice = tuple[str, ...]
"""Ids of repeats that are counted although they were set aside."""
NONE: Choice = ()
TOLD = 16
"""As many repeats of a rule are counted back one by one; of more only all together."""


def is_by_author(repeat: RecordedRepeat) -> bool:
    """Whether a repeat was set aside by somebody who could know its values: its body, or its author."""
    return repeat.outcome is Outcome.INVALID or (repeat.outcome is Outcome.EXCLUDED and repeat.by_author)


def is_by_rule(repeat: RecordedRepeat) -> bool:
    """Whether a registered rule excluded a repeat when it ended."""
    return repeat.outcome is Outcome.EXCLUDED and not repeat.by_author


def by_author(repeats: Iterable[RecordedRepeat]) -> frozenset[str]:
    """Ids of the repeats with which the verdict must agree."""
    return frozenset([repeat.id for repeat in repeats if is_by_author(repeat)])


def choices(set_aside: Sequence[str], own: frozenset[str]) -> Iterator[Choice]:
    """Each repeat that was set aside alone, those of its author together, and all of them together.

    Args:
        set_aside: Ids, in run order.
        own: Those of them that :func:`by_author` returned.
    """
    several = len(set_aside) - len(own) > TOLD
    for repeat in set_aside:
        if repeat in own or not several:
            yield (repeat,)
    if 1 < len(own) < len(set_aside):
        yield tuple([repeat for repeat in set_aside if repeat in own])
    if len(set_aside) > 1:
        yield tuple(set_aside)


def alternatives(others: Iterable[tuple[Choice, Judgement]]) -> tuple[Alternative, ...]:
    """What the verdict would be with each choice, as far as what is chosen has a say in it."""
    told = []
    for choice, other in others:
        used = frozenset(other.repeats)
        if counted := tuple([repeat for repeat in choice if repeat in used]):
            told.append(
                Alternative(
                    counted=counted,
                    verdict=other.verdict,
                    estimate=other.estimate,
                    interval=other.interval,
                    n=other.n,
                )
            )
    return tuple(told)


def disagreement(
    without: Judgement, others: Iterable[tuple[Choice, Judgement]], earlier: Mapping[Verdict, str]
) -> Doubt | None:
    """How the verdict hangs on what its author set aside.

    Args:
        without: The judgement on what was kept.
        others: The judgement with each choice of what its author set aside.
        earlier: When each verdict was first reached at an earlier look, by any choice: there the series
            would have ended.
    """
    for choice, other in others:
        names = " and ".join(choice)
        if other.verdict is not without.verdict:
            return Reason.EXCLUDED, f"{without.verdict} without {names}, {other.verdict} with it"
        if without.reason is Reason.N_TOO_SMALL and other.reason is not Reason.N_TOO_SMALL:
            return Reason.EXCLUDED, f"too few repeats without {names}"
    for verdict, words in earlier.items():
        if verdict is not without.verdict:
            return Reason.EXCLUDED, f"{verdict} {words}, but {without.verdict} in the end"
    return None


def when(look: str | None, choice: Choice) -> str:
    """At which look, and with what, a verdict was first reached."""
    names = f"with {' and '.join(choice)}" if choice else "without what was set aside"
    return f"{look} {names}" if look else names
