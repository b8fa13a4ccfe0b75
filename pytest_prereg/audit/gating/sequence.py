"""In what sequence a prediction was registered, measured and changed: as far as git's ancestry shows it.

Dates play no part, and neither does the order of any list: of two commits one came first if the other has it
in its past, and else nothing is said of which did.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from pytest_prereg.audit.audited import Came, What
from pytest_prereg.audit.history.grades import Grade
from pytest_prereg.audit.history.past import Past
from pytest_prereg.audit.history.revisions import NoRevision, Revisions
from pytest_prereg.audit.withdrawn import digests_of, files_of
from pytest_prereg.errors import PreregError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.history.changed_files import Commit
    from pytest_prereg.audit.history.chronicle import Change
    from pytest_prereg.audit.history.grades import EvidenceRef

_MODULE = ".py"
_LOOKED_INTO = 20
"""Most commits that are looked into for where a text was edited."""


class Sequence(msgspec.Struct, kw_only=True, frozen=True):
    """What became of one prediction, each but the first with whether it came after the one before it."""

    registered: str | None = None
    """The commit of the registration that its evidence was taken for; without evidence, of it as it is."""
    measured: str | None = None
    """The commit by which the last of the evidence that decides it came in."""
    came: tuple[Came, ...] = ()


class Sequences:
    """Those of all predictions of a study: commits are put in order in one pass over the history."""

    def __init__(self, state: StudyState, base: str) -> None:
        self._state, self._base = state, base

    def of(self, name: str) -> Sequence:
        """Return the sequence of one prediction; an empty one where no history can be read."""
        life = self._lives.get(name)
        return life.told(self._ancestry) if life is not None else Sequence()

    @cached_property
    def _lives(self) -> dict[str, _Life]:
        state = self._state
        if not isinstance(state.past, Past):
            return {}
        locked = state.lock.predictions if state.lock else {}
        texts = _Texts(state, state.past, self._base)
        names = {*state.study.predictions, *locked}
        return {name: _Life(state, state.past, name, texts) for name in names}

    @cached_property
    def _ancestry(self) -> _Ancestry:
        assert isinstance(self._state.past, Past)
        commits = {commit for life in self._lives.values() for commit in life.commits}
        return _Ancestry(self._state.past, commits, self._base)


class _Ancestry:
    """Which of some commits come from which."""

    def __init__(self, past: Past, commits: Collection[str], base: str) -> None:
        self._after = past.graph.holders(commits, {one: one for one in commits})
        self._at_base = past.graph.of([base])

    def leads(self, one: str, other: str) -> bool:
        """Whether the second comes from the first, or is it."""
        return other in self._after.get(one, ())

    def precedes(self, one: str, other: str) -> bool:
        """Whether the second comes from the first, and is another."""
        return one != other and self.leads(one, other)

    def first(self, commits: Iterable[str]) -> list[str]:
        """Those that come from none of the others."""
        several = list(dict.fromkeys(commits))
        return [one for one in several if not any(self.precedes(other, one) for other in several)]

    def last(self, commits: Iterable[str]) -> list[str]:
        """Those from which none of the others comes."""
        several = list(dict.fromkeys(commits))
        return [one for one in several if not any(self.precedes(one, other) for other in several)]

    def in_order(self, several: Iterable[Came]) -> tuple[Came, ...]:
        """Return what came so that nothing stands before what it comes from."""
        left, found = list(several), list[Came]()
        while left:
            free = (
                one for one in left if not (one.commit and any(self._precedes(other, one) for other in left))
            )
            one = next(free)
            left.remove(one)
            follows = bool(found) and self._precedes(found[-1], one)
            found.append(replace(one, follows=follows, is_at_base=self.is_at_base(one.commit)))
        return tuple(found)

    def is_at_base(self, commit: str | None) -> bool:
        """Whether the merge base comes from a commit, or is it."""
        return commit in self._at_base

    def _precedes(self, one: Came, other: Came) -> bool:
        return one.commit is not None and other.commit is not None and self.precedes(one.commit, other.commit)


class _Texts:
    """What a pull request made of the text of a study; each version is loaded once, for all predictions."""

    def __init__(self, state: StudyState, past: Past, base: str) -> None:
        self._state, self._past, self._base = state, past, base
        self._revisions = Revisions.of(past, state.study)

    def began(self, name: str, digest: str) -> str | None:
        """Return the commit, of those since the base, as of which a prediction has a digest by its text."""
        for commit in self._changed:
            at, *before = (self._has(one, name, digest) for one in (commit.id, *commit.parents))
            if at and not any(before):
                return commit.id
        return None

    @cached_property
    def _changed(self) -> list[Commit]:
        brought = self._past.graph.of([self._past.head]) - self._past.graph.of([self._base])
        commits = [one for one in self._past.graph.parents if one in brought]
        files = (self._state.study.path.name, _MODULE)
        return list(islice(self._past.repository.history(commits, files), _LOOKED_INTO))

    def _has(self, commit: str, name: str, digest: str) -> bool:
        return not isinstance(self._revisions.whole([commit], name, digest), NoRevision)


class _Life:
    """One prediction: what its lock said in which commit, and by which its evidence came in."""

    def __init__(self, state: StudyState, past: Past, name: str, texts: _Texts) -> None:
        self._state, self._past, self._name, self._texts = state, past, name, texts
        entry = state.lock.predictions.get(name) if state.lock else None
        self._digest = entry.digest if entry else None
        self._evidence = _evidence(state, name)
        self._changes = [one for one in state.chronicle.of(name) if _registers(one)]
        self._edits = list(self._edited())
        self._tags = list(self._tagged())

    @property
    def commits(self) -> Iterator[str]:
        """All that have to be put in order."""
        told = (*self._edits, *self._tags)
        yield from filter(None, (*(one.commit for one in self._changes), *(one.commit for one in told)))
        yield from self._came(self._evidence)

    def told(self, ancestry: _Ancestry) -> Sequence:
        """Return what came in which order.

        Of evidence for several registrations the last to come in has the say of which is told.
        """
        came = list(self._came(self._evidence))
        last = ancestry.last(came)[-1:]
        bound = next((one.bound for one in self._evidence if {*last} & {*self._came([one])}), None)
        digest = bound if any(_digest(one) == bound for one in self._changes) else self._digest
        own = list(self._came(one for one in self._evidence if one.bound == bound))
        registered = self._registration(digest, own, ancestry)
        events = [
            *(
                self._change(one, ancestry)
                for one in (registered, self._now(registered, own, ancestry))
                if one
            ),
            *self._measured(ancestry, registered, came, last),
            *self._edits,
        ]
        return Sequence(
            registered=registered.commit if registered else None,
            measured=last[0] if last else None,
            came=(*ancestry.in_order(events), *self._tags),
        )

    def _came(self, files: Iterable[EvidenceRef]) -> Iterator[str]:
        yield from (each.commit for file in files for each in self._past.came_in(file.blob))

    def _registration(self, digest: str | None, own: list[str], ancestry: _Ancestry) -> Change | None:
        """Return what registered a digest last before evidence came in, or if nothing did, first."""
        known = {one.commit: one for one in self._changes if one.commit and _digest(one) == digest}
        before = [one for one in known if not own or any(ancestry.leads(one, each) for each in own)]
        several = ancestry.last(before) or ancestry.first(known)
        chosen = next((one for one in several if ancestry.is_at_base(one)), next(iter(several), None))
        return known[chosen] if chosen is not None else None

    def _now(self, registered: Change | None, own: list[str], ancestry: _Ancestry) -> Change | None:
        """Return what registered it as the lock has it now, where that is another change, and came later."""
        known = {one.commit: one for one in self._changes if one.commit and _digest(one) == self._digest}
        if registered is not None and registered.commit in known:
            known = {
                commit: one
                for commit, one in known.items()
                if commit != registered.commit
                and own
                and not any(ancestry.leads(commit, each) for each in own)
                and ancestry.precedes(registered.commit or "", commit)
            }
        last = ancestry.last(known)
        return known[last[0]] if last else None

    def _change(self, change: Change, ancestry: _Ancestry) -> Came:
        return Came(what=self._what(change, ancestry), commit=change.commit)

    def _what(self, change: Change, ancestry: _Ancestry) -> What:
        digest = _digest(change)
        others = {one.digest for one in change.before} - {digest}
        if not others:
            return "registered again" if change.restored else "registered"
        same = (one.commit for one in self._changes if one.commit and _digest(one) == digest)
        if any(ancestry.precedes(one, change.commit or "") for one in same):
            return "amended back"
        amendments = change.after.amendments if change.after else ()
        return "amended" if others & {one.old for one in amendments} else "changed"

    def _measured(
        self, ancestry: _Ancestry, registered: Change | None, came: list[str], last: list[str]
    ) -> Iterator[Came]:
        """Yield by what evidence came in first and last; of several first ones one that came no later."""
        several = ancestry.first(came)
        commit = registered.commit if registered else None
        early = [one for one in several if commit is None or not ancestry.leads(commit, one)]
        is_imported = all(one.origin == "imported" for one in self._evidence)
        for one in (early or several)[:1]:
            yield Came(what="imported" if is_imported else "measured", commit=one)
            if last[0] != one:
                yield Came(what="last imported" if is_imported else "last measured", commit=last[0])

    def _edited(self) -> Iterator[Came]:
        """Yield in which commit the text became another than what the lock registers, if it did."""
        written = self._state.digests.get(self._name)
        if written is None or self._digest is None or written == self._digest:
            return
        yield Came(what="edited", commit=self._texts.began(self._name, written))

    def _tagged(self) -> Iterator[Came]:
        """Yield the commit that a tag keeps, where that alone shows what came first."""
        order, digest = self._state.orders.get(self._name), self._state.digests.get(self._name)
        if order is None or digest is None or order.grade is not Grade.WITNESSED:
            return
        for file in self._evidence:
            if witness := self._past.witness(file.blob, self._name, digest):
                yield Came(what="tagged", commit=witness[1])
                return


def _registers(change: Change) -> bool:
    """Whether a version registers a prediction as none of its parents has it."""
    if change.after is None or change.commit is None or change.version.is_cut:
        return False
    return change.restored or all(one.digest != change.after.digest for one in change.before)


def _digest(change: Change) -> str | None:
    return change.after.digest if change.after else None


def _evidence(state: StudyState, name: str) -> list[EvidenceRef]:
    """Return the evidence that decides a prediction; where nothing does, all that was taken for it."""
    if name in state.study.predictions:
        with suppress(PreregError):
            if deciding := state.references(state.study.predictions[name]):
                return deciding
    entry = state.lock.predictions.get(name) if state.lock else None
    files = files_of(state, name, digests_of(entry)) if entry else ()
    return [reference for file in files if file.attempts and (reference := state.reference(file, name))]
