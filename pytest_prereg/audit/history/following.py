"""The files of one kind in the trees of commits, followed from change to change instead of asked of each.

A tree has what its parent's has, but for what the commit changed: so it costs nothing that there are hundreds
of such files, and a commit that touched none of them costs a step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from pytest_prereg.audit.history.changed_files import Commit
    from pytest_prereg.audit.history.commit_graph import CommitGraph

Files = dict[str, str]
"""Contents by path."""


class Following:
    """Files whose names end in one way, at every commit of an ancestry."""

    def __init__(self, graph: CommitGraph, changed: Iterable[Commit], suffix: str) -> None:
        """Take in what commits changed.

        Args:
            graph: The commits, with all from which they come.
            changed: What they changed; of a merge, beside its first parent.
            suffix: How the names of the files end.
        """
        self._graph = graph
        self._updates: dict[str, dict[str, str | None]] = {}
        for commit in changed:
            updates: dict[str, str | None] = {
                each.path: each.blob for each in commit.changes if each.path.endswith(suffix)
            }
            updates |= {each.path: None for each in commit.removals if each.path.endswith(suffix)}
            if updates:
                self._updates[commit.id] = updates

    def at(
        self, commits: Collection[str], only: Collection[str] | None = None
    ) -> Iterator[tuple[str, Files]]:
        """Yield each of some commits with its files; the same dictionary for trees that have the same.

        Args:
            commits: Which are asked about.
            only: Contents that are looked for; files that have another are as good as not there.
        """
        left = self._children()
        trees: dict[str, Files] = {}
        for commit in reversed(self._graph.parents):
            parents = self._graph.parents[commit]
            before = trees[parents[0]] if parents else {}
            trees[commit] = files = _updated(before, self._updates.get(commit), only)
            if commit in commits:
                yield commit, files
            for parent in parents:  # as many trees are held as there are branches open
                left[parent] -= 1
                if not left[parent]:
                    del trees[parent]

    def _children(self) -> dict[str, int]:
        counts = dict.fromkeys(self._graph.parents, 0)
        for parents in self._graph.parents.values():
            for parent in parents:
                counts[parent] += 1
        return counts


def _updated(before: Files, updates: Mapping[str, str | None] | None, only: Collection[str] | None) -> Files:
    if not updates:
        return before
    kept = {
        path: blob for path, blob in updates.items() if blob is not None and (only is None or blob in only)
    }
    if not kept and before.keys().isdisjoint(updates):
        return before
    return {path: blob for path, blob in before.items() if path not in updates} | kept
