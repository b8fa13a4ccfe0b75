"""Merging locks by what they say: from three versions of one lock to one, or to what two sides disagree on.

Each prediction, exclusion, voided series and acknowledgement is merged by itself. What merges is what the
commands would have left if they had been typed one after the other, in whichever order; where the order would
matter, or a side takes back what was there, a person decides.
"""

from __future__ import annotations

from collections import defaultdict
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from msgspec.structs import replace

from pytest_prereg.registry.lock_file import (
    Acknowledgement,
    Amendment,
    Exclusion,
    Lock,
    LockEntry,
    Void,
    Withdrawal,
)
from pytest_prereg.registry.refusals import listed, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

T = TypeVar("T")
Timed = TypeVar("Timed", Amendment, Withdrawal, Exclusion, Void, Acknowledgement)
Listed = TypeVar("Listed", Exclusion, Void, Acknowledgement)


class Conflict(NamedTuple):
    """Something that the two sides disagree on."""

    table: str
    """Where in the lock: ``predictions.<id>``, ``exclusion``, ``voided`` or ``acknowledged``."""
    message: str
    """What it is and why nobody but a person can decide; the same whichever side is which."""


class Merged(NamedTuple):
    """Two sides of a lock, merged."""

    ours: Lock
    """All that merges, with every conflict decided for this side."""
    theirs: Lock
    """The same, decided for the other side; equal to ``ours`` where there is no conflict."""
    conflicts: tuple[Conflict, ...]
    remarks: tuple[str, ...]
    """What merged, and what somebody has to do about it all the same."""


def merge_locks(base: Lock | None, ours: Lock, theirs: Lock) -> Merged:
    """Merge two locks of one study that grew out of a common one.

    Args:
        base: What both grew out of; ``None`` where there is none, or it can't be read. Then everything counts
            as added, so that nothing that a side says is lost.
        ours: One side.
        theirs: The other side, of the same study.
    """
    base = base or Lock(study=ours.study)
    conflicts: list[Conflict] = []
    predictions = _merged_predictions(base, ours, theirs, conflicts)
    lists = {
        "exclusions": _merged_list(base.exclusions, ours.exclusions, theirs.exclusions, EXCLUDED, conflicts),
        "voided": _merged_list(base.voided, ours.voided, theirs.voided, VOIDED, conflicts),
        "acknowledged": _merged_list(
            base.acknowledged, ours.acknowledged, theirs.acknowledged, ACKNOWLEDGED, conflicts
        ),
    }
    mine, yours = (
        replace(ours, predictions=predictions[side], **{name: one[side] for name, one in lists.items()})
        for side in (0, 1)
    )
    return Merged(mine, yours, tuple(conflicts), tuple(_remarks(base, ours, theirs)))


class _Choice(NamedTuple, Generic[T]):
    """What becomes of a thing: decided for one side, for the other, and why they differ if they do."""

    ours: T
    theirs: T
    why: str = ""


class _ApartError(Exception):
    """The two sides of an entry don't go together; says why."""


def _merged_predictions(
    base: Lock, ours: Lock, theirs: Lock, conflicts: list[Conflict]
) -> tuple[dict[str, LockEntry], dict[str, LockEntry]]:
    mine: dict[str, LockEntry] = {}
    yours: dict[str, LockEntry] = {}
    for name in sorted(ours.predictions.keys() | theirs.predictions.keys()):
        choice = _entry(*(lock.predictions.get(name) for lock in (base, ours, theirs)))
        for side, entry in ((mine, choice.ours), (yours, choice.theirs)):
            if entry is not None:
                side[name] = entry
        if choice.why:
            conflicts.append(Conflict(f"predictions.{name}", f"{quoted(name)} was {choice.why}"))
    return mine, yours


def _entry(
    base: LockEntry | None, ours: LockEntry | None, theirs: LockEntry | None
) -> _Choice[LockEntry | None]:
    if ours == theirs:
        return _Choice(ours, theirs)
    if ours is None or theirs is None:
        if base is not None:
            return _Choice(ours, theirs, "removed on one side")
        return _Choice(ours or theirs, ours or theirs)
    try:
        merged = _joined(*_at_one_time(base, ours, theirs))
    except _ApartError as apart:
        return _Choice(ours, theirs, str(apart))
    return _Choice(merged, merged)


class _Part(StrEnum):
    """What of an entry is merged as one; the value is what a side did to it."""

    AMENDED = "amended"
    JUDGED = "given a verdict"
    WITHDRAWN = "withdrawn"


_VERDICT = ("verdict", "reason", "estimate", "interval", "n", "series", "evidence", "method")
_OTHERS = {*_VERDICT, "registered", "withdrawal"}
_FIELDS: dict[_Part, tuple[str, ...]] = {
    # All that is no verdict binds, and so does a key that a later release adds.
    _Part.AMENDED: tuple(name for name in LockEntry.__struct_fields__ if name not in _OTHERS),
    _Part.JUDGED: _VERDICT,
    _Part.WITHDRAWN: ("withdrawal",),
}
_BOTH = {
    _Part.AMENDED: "amended in different ways on the two sides",
    _Part.JUDGED: "given different verdicts on the two sides",
    _Part.WITHDRAWN: "withdrawn in different ways on the two sides",
}


def _part(entry: LockEntry, part: _Part) -> tuple[Any, ...]:
    return tuple(getattr(entry, field) for field in _FIELDS[part])


def _at_one_time(
    base: LockEntry | None, ours: LockEntry, theirs: LockEntry
) -> tuple[LockEntry, LockEntry, LockEntry]:
    """The three versions, where what both sides did alike was done at one time, the earlier.

    What both have registered without having it from each other counts as common.

    Raises:
        _ApartError: The sides have registered something else, or the time of the registration was edited.
    """
    known = len(base.amendments) if base else 0
    mine, yours = _timed(known, ours.amendments, theirs.amendments)
    ours, theirs = replace(ours, amendments=mine), replace(theirs, amendments=yours)
    if ours.withdrawal and theirs.withdrawal and not (base and base.withdrawal):
        (one,), (other,) = _timed(0, (ours.withdrawal,), (theirs.withdrawal,))
        ours, theirs = replace(ours, withdrawal=one), replace(theirs, withdrawal=other)
    if base is not None:
        if ours.registered != theirs.registered:
            raise _ApartError("edited: one side changed the time of its registration")
        return base, ours, theirs
    if _part(ours, _Part.AMENDED) != _part(theirs, _Part.AMENDED):
        raise _ApartError("registered in different ways on the two sides")
    first = min(ours.registered, theirs.registered)
    ours, theirs = replace(ours, registered=first), replace(theirs, registered=first)
    unjudged: dict[str, Any] = dict.fromkeys((*_VERDICT, "withdrawal"))
    return replace(ours, **unjudged), ours, theirs


def _timed(
    known: int, ours: Sequence[Timed], theirs: Sequence[Timed]
) -> tuple[tuple[Timed, ...], tuple[Timed, ...]]:
    """Both lists, where what both say is said at the earlier time; what was known before is left as it is."""
    mine, yours = list(ours), list(theirs)
    for index in range(known, min(len(mine), len(yours))):
        earlier = _earlier(mine[index], yours[index])
        if earlier is not None:
            mine[index] = yours[index] = earlier
    return tuple(mine), tuple(yours)


def _earlier(one: Timed, other: Timed) -> Timed | None:
    """The earlier of two that say the same; ``None`` if they don't."""
    if replace(one, at="") != replace(other, at=""):
        return None
    return min(one, other, key=lambda each: each.at)


def _joined(base: LockEntry, ours: LockEntry, theirs: LockEntry) -> LockEntry:
    """The entry with what each side did to it.

    Raises:
        _ApartError: The two don't go together, or a side took something back.
    """
    alike = {part for part in _Part if _part(ours, part) == _part(theirs, part)}
    mine, yours = (
        {part for part in _Part if _part(side, part) != _part(base, part)} - alike for side in (ours, theirs)
    )
    for part in sorted(mine & yours):
        raise _ApartError(_BOTH[part])
    for side, parts in ((ours, mine), (theirs, yours)):
        if taken := _taken_back(base, side, parts):
            raise _ApartError(taken)
    if mine and yours and not _in_any_order(base, (ours, mine), (theirs, yours)):
        one, other = sorted(" and ".join(sorted(parts)) for parts in (mine, yours))
        raise _ApartError(f"{one} on one side and {other} on the other")
    changes = {field: getattr(theirs, field) for part in yours for field in _FIELDS[part]}
    return replace(ours, **changes)


def _taken_back(base: LockEntry, side: LockEntry, parts: set[_Part]) -> str | None:
    """What of the common entry a side no longer says: no command takes anything back."""
    new = side.amendments[len(base.amendments) :]
    if _Part.WITHDRAWN in parts and base.withdrawal is not None:
        return "withdrawn, and one side changed that"
    if _Part.AMENDED in parts:
        if side.amendments[: len(base.amendments)] != base.amendments:
            return "amended, and one side removed or changed that"
        if not _explained(base, side, new):
            return "registered anew on one side, without an amendment that says so"
    if parts & {_Part.AMENDED, _Part.JUDGED} and not _kept(base, side, new):
        return f'found "{base.verdict}", and one side no longer says so'
    return None


def _kept(base: LockEntry, side: LockEntry, new: Sequence[Amendment]) -> bool:
    """Whether a verdict that stood there still stands, or in an amendment of what it was about."""
    if side.verdict is not None and side.digest == base.digest:
        return True
    return base.verdict is None or base.verdict in {each.verdict for each in new}


def _explained(base: LockEntry, side: LockEntry, new: Sequence[Amendment]) -> bool:
    """Whether amendments lead from one registration to the other."""
    steps = defaultdict(list)
    for each in new:
        steps[each.key].append(each)
    for key in ("digest", "claim", "experiment"):
        now = getattr(base, key) or "none"
        for each in steps[key]:
            if each.old != now:
                return False
            now = each.new
        if now != (getattr(side, key) or "none"):
            return False
    unbound = {"digest", "claim", "experiment", "amendments"}
    rest = (field for field in _FIELDS[_Part.AMENDED] if field not in unbound)
    return bool(steps["digest"]) or all(getattr(base, field) == getattr(side, field) for field in rest)


def _in_any_order(base: LockEntry, *sides: tuple[LockEntry, set[_Part]]) -> bool:
    """Whether what two sides did comes to the same in either order.

    New words for a claim leave its registration and its verdict as they are, and a verdict is on neither
    words: whoever rewords after the verdict, or records it after the new words, is left with this very entry.
    """
    did = [
        "reworded" if part is _Part.AMENDED and _only_words(base, side) else part.value
        for side, parts in sides
        for part in parts
    ]
    return sorted(did) == ["given a verdict", "reworded"]


def _only_words(base: LockEntry, side: LockEntry) -> bool:
    return all(each.key == "claim" for each in side.amendments[len(base.amendments) :])


class _Kind(NamedTuple, Generic[Listed]):
    """A list of the lock: what one entry of it is about, in words and as a key."""

    table: str
    named: Callable[[Listed], str]
    key: Callable[[Listed], tuple[str, ...]]


EXCLUDED: _Kind[Exclusion] = _Kind(
    "exclusion", lambda one: f"the exclusion of {quoted(one.repeat)}", lambda one: (one.repeat,)
)
VOIDED: _Kind[Void] = _Kind(
    "voided", lambda one: f"the voiding of {quoted(one.series)}", lambda one: (one.series,)
)
# Two people may look at one finding, each for a reason of their own.
ACKNOWLEDGED: _Kind[Acknowledgement] = _Kind(
    "acknowledged",
    lambda one: f"the acknowledgement of {one.code} of {quoted(one.id)}",
    lambda one: (one.code, one.id, one.about, one.reason),
)


def _merged_list(
    base: Iterable[Listed],
    ours: Iterable[Listed],
    theirs: Iterable[Listed],
    kind: _Kind[Listed],
    conflicts: list[Conflict],
) -> tuple[tuple[Listed, ...], tuple[Listed, ...]]:
    before, mine, yours = _by_key(base, kind), _by_key(ours, kind), _by_key(theirs, kind)
    kept: list[Listed] = []
    others: list[Listed] = []
    for key in sorted(mine.keys() | yours.keys()):
        choice = _listed(before[key], mine[key], yours[key])
        kept += choice.ours
        others += choice.theirs
        if choice.why:
            named = kind.named((mine[key] or yours[key])[0])
            conflicts.append(Conflict(kind.table, f"{named} was {choice.why}"))
    return tuple(kept), tuple(others)


def _by_key(several: Iterable[Listed], kind: _Kind[Listed]) -> defaultdict[tuple[str, ...], list[Listed]]:
    found: defaultdict[tuple[str, ...], list[Listed]] = defaultdict(list)
    for one in several:
        found[kind.key(one)].append(one)
    return found


def _listed(
    base: Sequence[Listed], ours: Sequence[Listed], theirs: Sequence[Listed]
) -> _Choice[Sequence[Listed]]:
    """What becomes of the entries about one thing, of which there is hardly ever more than one."""
    if ours == theirs:
        return _Choice(ours, theirs)
    if base:
        return _Choice(ours, theirs, "removed or changed on one side")
    if not (ours and theirs):
        return _Choice(ours or theirs, ours or theirs)
    mine, yours = _timed(0, ours, theirs)
    return _Choice(mine, yours, "" if mine == yours else "entered on both sides, and not alike")


def _remarks(base: Lock, ours: Lock, theirs: Lock) -> Iterable[str]:
    """What has to be told of sides that merge: a verdict on repeats that the other side set aside."""
    for judging, setting_aside in ((ours, theirs), (theirs, ours)):
        judged = _judged(base, judging) - _judged(base, setting_aside)
        aside = _set_aside(setting_aside) - _set_aside(judging)
        if judged and aside:
            yield (
                f"{listed(sorted(aside))} set aside on one side, and the verdict of {listed(sorted(judged))} "
                "recorded on the other, which does not know it"
            )


def _judged(base: Lock, side: Lock) -> set[str]:
    known = {name: _part(entry, _Part.JUDGED) for name, entry in base.predictions.items()}
    entries = ((name, entry) for name, entry in side.predictions.items() if entry.verdict is not None)
    return {name for name, entry in entries if known.get(name) != _part(entry, _Part.JUDGED)}


def _set_aside(lock: Lock) -> set[str]:
    return {*(one.repeat for one in lock.exclusions), *(one.series for one in lock.voided)}
