"""Which commits come from which: the shape of a history, asked of git once and answered here from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


class CommitGraph:
    """Commits with their parents, each before its parents."""

    def __init__(self, parents: dict[str, tuple[str, ...]]) -> None:
        self.parents = parents

    @property
    def merges(self) -> dict[str, tuple[str, ...]]:
        """Those with more than one parent, and their parents."""
        return {commit: several for commit, several in self.parents.items() if len(several) > 1}

    def of(self, tips: Iterable[str]) -> frozenset[str]:
        """All commits from which some come, these included."""
        found: set[str] = set()
        open_ = [tip for tip in tips if tip in self.parents]
        while open_:
            commit = open_.pop()
            if commit not in found:
                found.add(commit)
                open_ += self.parents[commit]
        return frozenset(found)

    def holders(self, held: Collection[str], tips: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
        """Which of the named tips have each of some commits in their past, or are it.

        One pass, however many are asked about: of each commit it is kept, a bit for each of ``held``, from
        which of them it comes.

        Args:
            held: Commits that are asked about.
            tips: Commits by the name under which they come back.
        """
        bits = {commit: 1 << number for number, commit in enumerate(held)}
        masks: dict[str, int] = {}
        for commit in reversed(self.parents):
            mask = bits.get(commit, 0)
            for parent in self.parents[commit]:
                mask |= masks[parent]
            masks[commit] = mask
        return {
            commit: tuple(name for name, tip in tips.items() if masks.get(tip, 0) & bit)
            for commit, bit in bits.items()
        }
