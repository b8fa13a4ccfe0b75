"""What evidence had been taken for a registration when the lock was changed, decided by ancestry."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.history.past import NoPast

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.history.past import Past


class Bound(msgspec.Struct, kw_only=True, frozen=True):
    """A session that was recorded for one registration of a prediction."""

    file: str
    """``experiment/name``."""
    digest: str
    commits: tuple[str, ...]
    """Those that brought it in, or an earlier part of it; none while it is not committed."""
    head: str | None
    """The commit that its header says it was measured at."""


class Timeline:
    """Commits that changed the lock, and those that brought evidence in, in the order that git gives them."""

    def __init__(self, state: StudyState) -> None:
        past = state.past
        self.bound: dict[str, list[Bound]] = defaultdict(list)
        """Sessions with repeats by prediction, those as well that are gone or altered; pilots are none."""
        for name, one in _bound(state, {} if isinstance(past, NoPast) else _brought(past)):
            self.bound[name].append(one)
        self._parents = {} if isinstance(past, NoPast) else past.graph.parents
        locks = (version.commit for version in state.chronicle.versions if version.commit is not None)
        brought = (commit for several in self.bound.values() for one in several for commit in one.commits)
        self._bits = {commit: 1 << number for number, commit in enumerate(dict.fromkeys((*locks, *brought)))}

    def seen(
        self, prediction: str, digests: Collection[str], commit: str | None, replaced: Collection[str] = ()
    ) -> str | None:
        """Return which evidence was there when a commit changed what a prediction was, in words.

        Args:
            prediction: Its id.
            digests: Under which it had been registered up to then.
            commit: ``None`` for what is not committed yet.
            replaced: Those of ``digests`` that it was never registered under again. What was taken for one of
                them counts even if it came in later: it may have been there and kept back.

        Returns:
            ``None`` where nothing says that there was any.
        """
        known = [one for one in self.bound.get(prediction, ()) if one.digest in digests]
        for one in known:
            if commit is None or not (one.commits or self._is_of_later(one, commit, replaced)):
                return f"{one.file} is there"
            if before := next((each for each in one.commits if self.leads(each, commit)), None):
                return f"{one.file} had come in with {before[:8]}"
        later = next((one for one in known if one.digest in replaced), None)
        return None if later is None else f"{later.file} is for what was replaced, and came in later"

    def leads(self, commit: str, later: str) -> bool:
        """Whether a commit that touched the lock, or brought evidence in, is another or an ancestor of it."""
        return bool(self._reached.get(later, 0) & self._bits.get(commit, 0))

    @cached_property
    def _reached(self) -> dict[str, int]:
        """Of every commit the bits of those that it comes from, and its own; found when first asked for."""
        reached: dict[str, int] = {}
        for commit in reversed(self._parents):
            bits = self._bits.get(commit, 0)
            for parent in self._parents[commit]:
                bits |= reached.get(parent, 0)
            reached[commit] = bits
        return reached

    def _is_of_later(self, one: Bound, commit: str, replaced: Collection[str]) -> bool:
        """Whether a session says that it was measured where the change had been made already, and can be."""
        return one.head is not None and one.digest not in replaced and self.leads(commit, one.head)


def _bound(state: StudyState, brought: dict[str, tuple[str, ...]]) -> Iterator[tuple[str, Bound]]:
    for file in (file for several in state.files.values() for file in several):
        header = file.header
        if header is None or header.origin == "pilot" or not file.attempts:
            continue
        came = () if isinstance(state.past, NoPast) else state.past.came_in(state.blob(file))
        commits = tuple(dict.fromkeys((*brought.get(file.path.name, ()), *(each.commit for each in came))))
        for name, digest in header.predictions.items():
            yield name, Bound(file=file.name, digest=digest, commits=commits, head=header.head)
    for gone in () if isinstance(state.past, NoPast) else (*state.past.vanished, *state.past.missing):
        if gone.origin != "pilot":
            path = PurePosixPath(gone.path)
            commits = tuple(dict.fromkeys((*brought.get(path.name, ()), gone.commit)))
            for name, digest in gone.predictions.items():
                yield name, Bound(file="/".join(path.parts[-2:]), digest=digest, commits=commits, head=None)


def _brought(past: Past) -> dict[str, tuple[str, ...]]:
    """Commits by the name of a session's file that they brought in."""
    found: dict[str, list[str]] = defaultdict(list)
    for commit in past.commits:
        for change in commit.changes:
            if change.path.endswith(".jsonl"):
                found[change.path.rpartition("/")[2]].append(commit.id)
    return {name: tuple(commits) for name, commits in found.items()}
