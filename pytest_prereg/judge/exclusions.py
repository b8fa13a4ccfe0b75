"""Repeats that were set aside decide nothing: with and without each of them the verdict must agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.judge.model import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_prereg.judge.findings import Doubt
    from pytest_prereg.judge.model import Judgement, Verdict

Choice = tuple[str, ...]
"""Ids of repeats that are counted although they were set aside."""
NONE: Choice = ()


def choices(set_aside: Sequence[str]) -> Iterator[Choice]:
    """Each repeat that was set aside alone, and all of them together."""
    for repeat in set_aside:
        yield (repeat,)
    if len(set_aside) > 1:
        yield tuple(set_aside)


def disagreement(
    without: Judgement, others: Iterable[tuple[Choice, Judgement]], earlier: Mapping[Verdict, str]
) -> Doubt | None:
    """How the verdict hangs on what was set aside.

    Args:
        without: The judgement on what was kept.
        others: The judgement with each choice of what was set aside.
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
