"""Every version of a study's lock that led to HEAD, and to what is on disk: what each changed, and where.

A lock is known by the study that it names, whatever file it is, and followed from where it is today. In the
order of versions parents come first; dates play no part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pytest_prereg.audit.history.lock_trees import LockTrees
from pytest_prereg.audit.history.past import NoPast
from pytest_prereg.errors import Problem
from pytest_prereg.registry.lock import Lock, LockEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytest_prereg.audit.history.past import Past

EMPTY = Lock(study="")


class Beside(NamedTuple):
    """What another lock of the study says of a prediction, where the study's own never said that."""

    id: str
    own: LockEntry
    other: LockEntry


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
    beside: tuple[Beside, ...] = ()

    @property
    def rivals(self) -> tuple[tuple[str, str], ...]:
        """Prediction and digest, where another lock of the study beside this one registers it otherwise."""
        return tuple((one.id, one.other.digest) for one in self.beside if one.other.digest != one.own.digest)


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
    """It had been taken out of the lock, and no parent has it."""

    @property
    def commit(self) -> str | None:
        """Of the version."""
        return self.version.commit


class Step(NamedTuple):
    """What became of one prediction's table in a version."""

    id: str
    version: Version
    before: dict[str, LockEntry]
    """By the parents that have it; of one from which it had been taken out, by those that had it last."""
    after: LockEntry | None
    change: Change | None
    """``None`` where a parent has it as it is."""


class Unread(msgspec.Struct, kw_only=True, frozen=True):
    """A version that can't be read."""

    commit: str
    """The first that has it."""
    blob: str
    problem: Problem
    before: tuple[Lock, ...]
    """What it was made from."""
    commits: frozenset[str]
    """All that have it."""


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


def chronicle(
    past: Past | NoPast,
    now: Lock | None,
    place: str | None = None,
    written: Mapping[str, str] | None = None,
) -> Chronicle:
    """Return every version of a study's lock.

    Args:
        past: The history up to HEAD; where there is none, what is on disk is the one version.
        now: The lock on disk.
        place: The study's lock, as it is today, from the root of the repository.
        written: Registration digests of what the study says now, by prediction.
    """
    lock = now or EMPTY
    if isinstance(past, NoPast):
        versions, unread = (
            [Version(commit=None, lock=lock, before=(), parents=(), is_cut=not past.is_empty)],
            [],
        )
    else:
        reading = _Reading(past, place, lock, written or {})
        versions, unread = [*reading.versions, *reading.on_disk()], reading.unread
    steps = list(_steps(versions, past))
    changes = tuple(step.change for step in steps if step.change is not None)
    record = Chronicle(versions=tuple(versions), changes=changes, unread=tuple(unread), now=lock, steps={})
    for step in steps:
        record.steps.setdefault(step.id, []).append(step)
    return record


class _Reading:
    """Goes through the commits up to HEAD, the oldest first."""

    def __init__(self, past: Past, place: str | None, now: Lock, written: Mapping[str, str]) -> None:
        self._past = past
        self._now = now
        self._counting = {
            *written.items(),
            *((name, entry.digest) for name, entry in now.predictions.items()),
        }
        """Predictions with the digests that evidence is looked at for."""
        self._trees = LockTrees(past, place)
        self._instead: dict[str, dict[str, Lock]] = {}
        """Of a commit whose lock can't be read: the locks that it was made from, by commit."""
        self._had: dict[str, dict[int, LockEntry]] = {}
        """Every entry that the lock has had up to now, by prediction."""
        self._broken: dict[str, Unread] = {}
        self.versions = [
            one for commit, parents in self._trees.commits.items() for one in self._version(commit, parents)
        ]

    @property
    def unread(self) -> list[Unread]:
        """Versions that can't be read, each once."""
        return list(self._broken.values())

    def _version(self, commit: str, parents: tuple[str, ...]) -> Iterator[Version]:
        tree = self._trees.tree(commit)
        if tree.problem is not None:
            self._pass_over(commit, self._before(parents))
        elif self._trees.is_changed(commit):
            before, now = self._before(parents), tree.lock or EMPTY
            beside = tuple(self._beside(now, tree.others))
            if beside or any(lock != now for lock in before.values()) or not (before or now == EMPTY):
                yield Version(
                    commit=commit,
                    lock=now,
                    before=tuple(before.values()),
                    parents=tuple(before),
                    is_cut=commit in self._past.repository.shallow,
                    beside=beside,
                )

    def _pass_over(self, commit: str, before: dict[str, Lock]) -> None:
        tree = self._trees.tree(commit)
        assert tree.blob is not None
        assert tree.problem is not None
        self._instead[commit] = before
        known = self._broken.get(tree.blob)
        self._broken[tree.blob] = Unread(
            commit=known.commit if known else commit,
            blob=tree.blob,
            problem=tree.problem,
            before=(*(known.before if known else ()), *(() if known else before.values())),
            commits=(known.commits if known else frozenset()) | {commit},
        )

    def _before(self, parents: tuple[str, ...]) -> dict[str, Lock]:
        """The locks of some commits; of one that can't be read those that it was made from."""
        found: dict[str, Lock] = {}
        for parent in parents:
            tree = self._trees.tree(parent)
            found |= {parent: tree.lock or EMPTY} if tree.problem is None else self._instead[parent]
        return found

    def _beside(self, lock: Lock, others: Iterable[Lock]) -> Iterator[Beside]:
        """Yield what others say and the lock never said, and also what it said if that is registered now."""
        for name, entry in lock.predictions.items():
            self._had.setdefault(name, {}).setdefault(id(entry), entry)
        for name, other in (each for one in others for each in one.predictions.items()):
            own = lock.predictions[name]
            is_chosen = other.digest != own.digest and (name, other.digest) in self._counting
            if other != own and (is_chosen or other not in self._had[name].values()):
                yield Beside(name, own, other)

    def on_disk(self) -> Iterator[Version]:
        """Yield what is on disk as the last version, unless HEAD has it."""
        before = self._before((self._past.head,))
        if any(one != self._now for one in before.values()) or not (before or self._now == EMPTY):
            yield Version(commit=None, lock=self._now, before=tuple(before.values()), parents=tuple(before))


def _steps(versions: list[Version], past: Past | NoPast) -> Iterator[Step]:
    gone = _Gone(past)
    for version in versions:
        for name in _differing(version):
            step = _step(version, name, gone.of(version, name))
            if step.change is not None and step.after is None:
                gone.add(step.change)
            yield step


class _Gone:
    """What was taken out of the lock, and where."""

    def __init__(self, past: Past | NoPast) -> None:
        self._past = past
        self._changes: dict[str, list[Change]] = {}
        self._behind: dict[str, frozenset[str]] = {}

    def add(self, change: Change) -> None:
        """Take in that a version does not have what a parent has."""
        self._changes.setdefault(change.id, []).append(change)

    def of(self, version: Version, name: str) -> dict[str, LockEntry]:
        """Return what parents of a version, that don't have it any more, had last; by the commits with it."""
        if name not in self._changes:
            return {}
        lacking = [
            parent
            for lock, parent in zip(version.before, version.parents, strict=True)
            if name not in lock.predictions
        ]
        last = (change for parent in lacking for change in self._last(parent, name))
        return {
            commit: entry
            for change in last
            for commit, entry in zip(change.parents, change.before, strict=True)
        }

    def _last(self, commit: str, name: str) -> list[Change]:
        """The changes that a commit comes from, and no later one of them does."""
        out = [change for change in self._changes[name] if self._leads(change, commit)]
        return [
            one for one in out if not any(self._leads(one, later.commit) for later in out if later is not one)
        ]

    def _leads(self, change: Change, later: str | None) -> bool:
        if change.commit is None or later is None or isinstance(self._past, NoPast):
            return False
        if later not in self._behind:
            self._behind[later] = self._past.graph.of([later])
        return change.commit in self._behind[later]


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


def _step(version: Version, name: str, gone: dict[str, LockEntry]) -> Step:
    """What a version made of one table; ``gone`` is what parents had that don't have it any more."""
    after = version.lock.predictions.get(name)
    there = {
        commit: lock.predictions[name]
        for lock, commit in zip(version.before, version.parents, strict=True)
        if name in lock.predictions
    }
    before = {**gone, **there} if after is not None else there
    if after is not None and after in there.values():
        return Step(name, version, before, after, None)
    change = Change(
        id=name,
        version=version,
        before=tuple(before.values()),
        parents=tuple(before),
        after=after,
        restored=bool(gone) and not there,
    )
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
