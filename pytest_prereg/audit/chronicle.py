"""Every version of a study's lock that led to HEAD, and to what is on disk: what each changed, and where.

A lock is known by the study that it names, whatever file it is. In the order of versions parents come first;
dates play no part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pytest_prereg.audit.lock_trees import LockTrees
from pytest_prereg.audit.past import NoPast
from pytest_prereg.errors import Problem
from pytest_prereg.registry.lock import Lock, LockEntry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_prereg.audit.lock_trees import Files
    from pytest_prereg.audit.past import Past

EMPTY = Lock(study="")


class Version(msgspec.Struct, kw_only=True, frozen=True):
    """The lock as a commit has it, or as it is on disk, beside the locks that it was made from."""

    commit: str | None
    """``None`` for what is on disk and not committed."""
    lock: Lock
    """Without entries where there is none (any more)."""
    before: tuple[Lock, ...]
    """Those of its parents; instead of one that can't be read those of its parents. None where it is the
    first, or where the history is cut."""
    parents: tuple[str, ...]
    """Commits that have ``before``, in the same order."""
    is_cut: bool = False
    """Nothing is known of what came before."""
    rivals: tuple[tuple[str, str], ...] = ()
    """Prediction and digest, where another lock of the study beside this one registers it otherwise."""


class Change(msgspec.Struct, kw_only=True, frozen=True):
    """What a version changed of one prediction's table: it is as none of its parents has it."""

    id: str
    version: Version
    before: tuple[LockEntry, ...]
    """As its parents have it, or the last that had it before it was taken out."""
    parents: tuple[str, ...]
    """Commits that have ``before``, in the same order."""
    after: LockEntry | None
    """``None`` where a parent has it, and this version does not."""
    restored: bool = False
    """It had been taken out of the lock."""

    @property
    def commit(self) -> str | None:
        """Of the version."""
        return self.version.commit


class Step(NamedTuple):
    """What became of one prediction's table in a version."""

    id: str
    version: Version
    before: dict[str, LockEntry]
    """By the parents that have it."""
    after: LockEntry | None
    change: Change | None
    """``None`` where a parent has it as it is."""


class Unread(msgspec.Struct, kw_only=True, frozen=True):
    """A version that can't be read."""

    commit: str
    problem: Problem


class Amended(msgspec.Struct, kw_only=True, frozen=True):
    """A registration that was replaced, whether or not the lock says so."""

    id: str
    old: str
    """Registration digest."""
    new: str
    before: tuple[str, ...]
    """Commits that have the old one: the nearest before the change."""
    after: str | None
    """The commit that has the new one first; ``None`` if that is not committed."""


class Chronicle(msgspec.Struct, kw_only=True, frozen=True):
    """The history of a study's lock, the oldest version first."""

    versions: tuple[Version, ...]
    """Those that differ from a parent's; the last is the one on disk, if that is not HEAD's."""
    changes: tuple[Change, ...]
    unread: tuple[Unread, ...]
    now: Lock
    """As it is on disk."""

    steps: dict[str, list[Step]]
    """By prediction, those versions of which a parent has it otherwise: merges that chose a side as well."""

    def of(self, name: str) -> list[Change]:
        """Return the changes of one prediction, in order."""
        return [change for step in self.steps.get(name, ()) if (change := step.change) is not None]


def chronicle(past: Past | NoPast, now: Lock | None, place: str | None = None) -> Chronicle:
    """Return every version of a study's lock.

    Args:
        past: The history up to HEAD; where there is none, what is on disk is the one version.
        now: The lock on disk.
        place: The study's lock from the root of the repository: it goes before others of the same study.
    """
    lock = now or EMPTY
    if isinstance(past, NoPast):
        versions, unread = (
            [Version(commit=None, lock=lock, before=(), parents=(), is_cut=not past.is_empty)],
            [],
        )
    else:
        reading = _Reading(past, place)
        versions, unread = [*reading.versions, *reading.on_disk(lock)], reading.unread
    steps = _steps(versions)
    changes = tuple(step.change for step in steps if step.change is not None)
    record = Chronicle(versions=tuple(versions), changes=changes, unread=tuple(unread), now=lock, steps={})
    for step in steps:
        record.steps.setdefault(step.id, []).append(step)
    return record


class _Reading:
    """Goes through the commits that touched a lock, the oldest first."""

    def __init__(self, past: Past, place: str | None) -> None:
        self._past = past
        self._trees = LockTrees(past, place)
        self._instead: dict[Files, dict[str, Lock]] = {}
        """Of a tree whose lock can't be read: the locks that it was made from, by commit."""
        self.unread: list[Unread] = []
        self.versions = [
            one for commit, parents in self._trees.lineage for one in self._version(commit, parents)
        ]

    def _version(self, commit: str, parents: tuple[str, ...]) -> Iterator[Version]:
        tree = self._trees.tree(commit)
        before, now = self._before(parents), tree.lock or EMPTY
        if tree.problem is not None:
            self._instead.setdefault(self._trees.files(commit), {}).update(before)
            self.unread.append(Unread(commit=commit, problem=tree.problem))
        elif tree.rivals or any(lock != now for lock in before.values()) or not (before or now == EMPTY):
            yield Version(
                commit=commit,
                lock=now,
                before=tuple(before.values()),
                parents=tuple(before),
                is_cut=commit in self._past.repository.shallow,
                rivals=tree.rivals,
            )

    def _before(self, parents: tuple[str, ...]) -> dict[str, Lock]:
        """The locks of some commits; of one that can't be read those that it was made from."""
        found: dict[str, Lock] = {}
        for parent in parents:
            tree = self._trees.tree(parent)
            instead = self._instead.get(self._trees.files(parent), {})
            found |= {parent: tree.lock or EMPTY} if tree.problem is None else instead
        return found

    def on_disk(self, lock: Lock) -> Iterator[Version]:
        """Yield what is on disk as the last version, unless HEAD has it."""
        before = self._before((self._past.head,))
        if any(one != lock for one in before.values()):
            yield Version(commit=None, lock=lock, before=tuple(before.values()), parents=tuple(before))


def _steps(versions: list[Version]) -> list[Step]:
    gone: dict[str, Change] = {}
    return [_step(version, name, gone) for version in versions for name in _differing(version)]


def _differing(version: Version) -> dict[str, None]:
    """Predictions that a parent has otherwise; of a version without parents all."""
    now = version.lock.predictions
    found: dict[str, None] = {} if version.before else dict.fromkeys(now)
    for before in (lock.predictions for lock in version.before):
        for name, entry in now.items():
            known = before.get(name)
            if known is not entry and known != entry:
                found[name] = None
        found |= dict.fromkeys(name for name in before if name not in now)
    return found


def _step(version: Version, name: str, gone: dict[str, Change]) -> Step:
    """What a version made of one table; ``gone`` holds those that were taken out, and not put back yet."""
    after = version.lock.predictions.get(name)
    before = {
        commit: lock.predictions[name]
        for lock, commit in zip(version.before, version.parents, strict=True)
        if name in lock.predictions
    }
    if after is not None and after in before.values():
        return Step(name, version, before, after, None)
    change = Change(
        id=name, version=version, before=tuple(before.values()), parents=tuple(before), after=after
    )
    if after is None:
        gone.setdefault(name, change)
    elif not before and name in gone:
        last = gone.pop(name)
        change = msgspec.structs.replace(change, before=last.before, parents=last.parents, restored=True)
    return Step(name, version, before, after, change)


def amended(record: Chronicle) -> list[Amended]:
    """Return every replaced registration, the oldest first; by an amendment, by hand, or by registering anew.

    In a merge only what none of its sides had is one.
    """
    return [
        Amended(id=one.id, old=old, new=one.after.digest, before=tuple(commits), after=one.commit)
        for one in record.changes
        if one.after is not None
        for old, commits in _digests(one).items()
        if one.after.digest not in {entry.digest for entry in one.before}
    ]


def _digests(change: Change) -> Mapping[str, list[str]]:
    """Digests before a change, each with the commits that have it."""
    found: dict[str, list[str]] = {}
    for entry, commit in zip(change.before, change.parents, strict=True):
        found.setdefault(entry.digest, []).append(commit)
    return found
