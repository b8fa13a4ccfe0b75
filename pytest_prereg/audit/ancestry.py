"""Which commits lie before which, for a few of them at once and in one pass over the history."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.audit.git import Repository


class Ancestry:
    """Answers for some commits whether they are on the ancestry of others; git is asked once, if at all."""

    def __init__(self, repository: Repository, commits: Iterable[str]) -> None:
        self._repository = repository
        self._bits = {commit: 1 << number for number, commit in enumerate(dict.fromkeys(commits))}

    def leads(self, commit: str, later: str) -> bool:
        """Whether one of the commits asked about is another one, or an ancestor of it.

        Args:
            commit: One of those that this was made for.
            later: Any other; one that is not on HEAD's ancestry comes after none.
        """
        return bool(self._reached.get(later, 0) & self._bits[commit])

    @cached_property
    def _reached(self) -> dict[str, int]:
        """Of every commit on HEAD's ancestry the bits of those before it, and of itself."""
        reached: dict[str, int] = {}
        for commit, parents in self._repository.lineage():
            bits = self._bits.get(commit, 0)
            for parent in parents:
                bits |= reached.get(parent, 0)
            reached[commit] = bits
        return reached
