"""Whether a prediction was registered before its evidence: decided by git's ancestry, never by a date.

For each file of evidence the commits are found that have it while no parent does, and what was registered in
their parents is compared with what the prediction is now. The worst of them decides.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.git import blob_id
from pytest_prereg.audit.past import Introduction, NoPast, Past

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_prereg.registry.model import Study

__all__ = ["EvidenceRef", "Grade", "Order", "blob_id", "grade_all"]


class Grade(StrEnum):
    """How registration and evidence follow each other, the worst first."""

    AFTER_EVIDENCE = "after-evidence"
    """The evidence was there first, or does not name the registration as what it was measured for."""
    MISMATCH = "mismatch"
    """Something else was registered."""
    UNREGISTERED = "unregistered"
    """Not in the committed lock."""
    SIMULTANEOUS = "simultaneous"
    """Both came in with one commit."""
    UNVERIFIABLE = "unverifiable"
    """No git, or the history is cut."""
    WITNESSED = "witnessed"
    """Simultaneous, but a tag of the lock holds a commit with the registration and without the evidence."""
    REGISTERED_ONE_SIDE = "registered-one-side"
    """The evidence came in with a merge, and only some of its sides had the registration."""
    REGISTERED = "registered"


_RANK = {grade: rank for rank, grade in enumerate(Grade)}

PRECEDING = frozenset({Grade.WITNESSED, Grade.REGISTERED_ONE_SIDE, Grade.REGISTERED})
"""Grades that the evidence's own words can still overturn."""


class Order(msgspec.Struct, kw_only=True, frozen=True):
    """The grade of a prediction, and what it rests on."""

    grade: Grade
    detail: str
    """One sentence, for people."""
    commit: str | None = None
    """The commit that decided."""
    flags: tuple[str, ...] = ()
    """``unbound``: measured at a commit that is not here; ``imported early``; ``evidence removed``."""
    removed: tuple[str, ...] = ()
    """Evidence of the experiment that was committed and is gone or altered: its path, and the commit."""


REMOVED = "evidence removed"


class EvidenceRef(msgspec.Struct, kw_only=True, frozen=True):
    """A file of evidence, as far as one prediction is concerned."""

    path: Path
    blob: str
    """Git's name for its bytes as they are in the work tree."""
    head: str | None
    """The commit that its header says it was measured at."""
    origin: str
    """``measured`` or ``imported``."""
    bound: str | None
    """The digest that its header names for the prediction."""


def grade_all(
    past: Past | NoPast,
    study: Study,
    digests: Mapping[str, str],
    evidence: Mapping[str, Sequence[EvidenceRef]],
) -> dict[str, Order]:
    """Grades predictions by a history that was read once.

    Args:
        past: The history of the study, with every file of ``evidence`` looked for.
        study: The study; its id is what locks are found by.
        digests: Registration digest of each prediction, as it is written now.
        evidence: The files that each prediction is judged from.

    Returns:
        The order of every prediction in ``digests``; without evidence it is the lock's state at HEAD.
    """
    if isinstance(past, NoPast):
        grade = Grade.UNREGISTERED if past.is_empty else Grade.UNVERIFIABLE
        return {name: Order(grade=grade, detail=past.detail) for name in digests}
    orders = {name: _order(name, digest, evidence.get(name, ()), past) for name, digest in digests.items()}
    return {name: _with_removed(order, study, name, past) for name, order in orders.items()}


def _with_removed(order: Order, study: Study, name: str, past: Past) -> Order:
    """The order, with the evidence of the prediction's experiments that was committed and is gone."""
    experiments = study.predictions[name].experiments if name in study.predictions else ()
    vanished = [each for each in past.vanished if each.origin != "pilot"]
    gone = [each for each in vanished if each.experiment in experiments]
    if not gone:
        return order
    removed = tuple(f"{each.path} ({_short(each.commit)})" for each in gone)
    return msgspec.structs.replace(order, flags=(*order.flags, REMOVED), removed=removed)


def _order(prediction: str, digest: str, files: Sequence[EvidenceRef], past: Past) -> Order:
    registered = past.registered(past.head, prediction)
    if not registered:
        detail = f"not in the lock at HEAD ({_short(past.head)})"
        return Order(grade=Grade.UNREGISTERED, detail=detail, commit=past.head)
    orders = [_of_file(file, prediction, digest, past) for file in files]
    worst = min([*orders, _at_head(digest, registered, past)], key=lambda order: _RANK[order.grade])
    flags = dict.fromkeys(flag for order in orders for flag in order.flags)
    return msgspec.structs.replace(worst, flags=tuple(flags))


def _at_head(digest: str, registered: set[str], past: Past) -> Order:
    if digest in registered:
        detail = f"registered at HEAD ({_short(past.head)})"
        return Order(grade=Grade.REGISTERED, detail=detail, commit=past.head)
    detail = f"the lock at HEAD ({_short(past.head)}) registers something else under this id"
    return Order(grade=Grade.MISMATCH, detail=detail, commit=past.head)


def _of_file(file: EvidenceRef, prediction: str, digest: str, past: Past) -> Order:
    """The order of one file: its worst introduction, then what its header says."""
    introductions = past.introductions.get(file.blob, ())
    if introductions:
        orders = [_introduced(each, file, prediction, digest, past) for each in introductions]
        order = min(orders, key=lambda order: _RANK[order.grade])
    else:
        order = _at_head(digest, past.registered(past.head, prediction), past)
    flags = _remarks(file, prediction, digest, past)
    if order.grade in PRECEDING and (objection := _objection(file, prediction, digest, past)):
        return Order(grade=Grade.AFTER_EVIDENCE, detail=objection, commit=order.commit, flags=flags)
    return msgspec.structs.replace(order, flags=flags)


def _remarks(file: EvidenceRef, prediction: str, digest: str, past: Past) -> tuple[str, ...]:
    """What the commit that a header names says beside the grade: an import is bound when it is taken in."""
    if file.origin != "imported":
        return () if file.head in past.here else ("unbound",)
    is_early = file.head is None or (
        file.head in past.here and digest not in past.registered(file.head, prediction)
    )
    return ("imported early",) if is_early else ()


def _introduced(each: Introduction, file: EvidenceRef, prediction: str, digest: str, past: Past) -> Order:
    """The order of one introduction, by what the trees before it and its own register."""
    grade = _grade(each, prediction, digest, past)
    came = f"{file.path.name} came in with {_short(each.commit)}"
    match grade:
        case Grade.REGISTERED:
            detail = f"registered before {came}"
        case Grade.REGISTERED_ONE_SIDE:
            sides = Counter(digest in past.registered(parent, prediction) for parent in each.parents)
            detail = f"{came}, a merge of which {sides[True]} of {sides.total()} sides had the registration"
        case Grade.UNVERIFIABLE:
            cut = f"history is cut at {_short(each.commit)}, which already has {file.path.name}"
            detail = f"{cut}: fetch all of it (fetch-depth: 0, or git fetch --unshallow)"
        case Grade.SIMULTANEOUS:
            detail = f"{came}, and so did the registration"
        case Grade.MISMATCH:
            detail = f"something else was registered when {came}"
        case _:
            detail = f"{came}, before anything was registered"
    return Order(grade=grade, detail=detail, commit=each.commit)


def _grade(each: Introduction, prediction: str, digest: str, past: Past) -> Grade:
    if each.cut:
        return Grade.UNVERIFIABLE
    before = [past.registered(parent, prediction) for parent in each.parents]
    with_it = past.registered(each.commit, prediction)
    if before and all(digest in registered for registered in before):
        return Grade.REGISTERED
    if any(digest in registered for registered in before):
        return Grade.REGISTERED_ONE_SIDE
    if digest in with_it:
        return Grade.SIMULTANEOUS
    return Grade.MISMATCH if with_it or any(before) else Grade.AFTER_EVIDENCE


def _objection(file: EvidenceRef, prediction: str, digest: str, past: Past) -> str | None:
    """Why a file itself says that it was not measured for this registration."""
    if file.bound != digest:
        names = "another registration" if file.bound else "no registration"
        return f"{file.path.name} names {names} of this prediction as what it was recorded for"
    if file.origin == "imported" or file.head not in past.here:
        return None
    assert file.head is not None
    if digest in past.registered(file.head, prediction):
        return None
    return f"{file.path.name} was measured at {_short(file.head)}, where this was not registered"


def _short(commit: str) -> str:
    return commit[:8]
