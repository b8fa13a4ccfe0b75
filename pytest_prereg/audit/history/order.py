"""Whether a prediction was registered before its evidence: decided by git's ancestry, never by a date.

For each file of evidence the commits are found that have it while no parent does, and what was registered in
their parents is compared with what the prediction is now. The worst of them on HEAD's ancestry decides; a
worse one on another branch or tag is told beside it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.history.git import blob_id
from pytest_prereg.audit.history.grades import (
    CONTESTED,
    PRECEDING,
    RANK,
    REMOVED,
    Contest,
    EvidenceRef,
    Grade,
    Order,
    short,
)
from pytest_prereg.audit.history.past import NoPast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_prereg.audit.history.committed_sessions import Vanished
    from pytest_prereg.audit.history.past import Introduction, Past
    from pytest_prereg.registry.model import Study

__all__ = ["EvidenceRef", "Grade", "Order", "blob_id", "grade_all"]


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
    graded = {
        name: _without_gone(_order(asked, files), files, asked)
        for name, digest in digests.items()
        for asked, files in [(_Question(name, digest, past), evidence.get(name, ()))]
    }
    orders = {name: _with_removed(order, study, name, past) for name, order in graded.items()}
    return _with_refs(orders, past)


def _with_refs(orders: dict[str, Order], past: Past) -> dict[str, Order]:
    """Orders with the names of the refs that contest them, which are looked up all at once."""
    commits = {each.commit for order in orders.values() for each in order.contests}
    if not commits:
        return orders
    holders = past.holders(commits)
    replace = msgspec.structs.replace
    return {
        name: replace(
            order, contests=tuple(replace(each, refs=holders[each.commit]) for each in order.contests)
        )
        for name, order in orders.items()
    }


@dataclass(frozen=True)
class _Question:
    """Whether one prediction, as it is now, was registered at the commits of a history."""

    prediction: str
    digest: str
    past: Past

    def at(self, commit: str) -> set[str]:
        """Digests under which the prediction was registered in a commit's tree."""
        return self.past.registered(commit, self.prediction)

    def holds(self, commit: str) -> bool:
        """Whether it was registered there as it is now."""
        return self.digest in self.at(commit)


def _with_removed(order: Order, study: Study, name: str, past: Past) -> Order:
    """The order, with the evidence of the prediction's experiments that was committed and is gone."""
    experiments = study.predictions[name].experiments if name in study.predictions else ()
    vanished = [each for each in past.vanished if each.origin != "pilot"]
    gone = [each for each in vanished if each.experiment in experiments]
    if not gone:
        return order
    removed = tuple(f"{each.path} ({short(each.commit)})" for each in gone)
    return msgspec.structs.replace(order, flags=(*order.flags, REMOVED), removed=removed)


def _without_gone(order: Order, files: Sequence[EvidenceRef], asked: _Question) -> Order:
    """The order, which is no better for it that evidence for an earlier registration is gone.

    Evidence for the registration as it is now decides in its place, where there is any.
    """
    known = (*asked.past.vanished, *asked.past.missing)
    others = {each.path: each for each in known if each.origin != "pilot" and _is_of_another(each, asked)}
    names = {Path(path).name for path in others}
    bound = (file for file in files if file.bound == asked.digest and file.path.name not in names)
    if not others or order.grade not in PRECEDING or any(bound):
        return order
    last = next(iter(others.values()))
    detail = f"{last.path} ({short(last.commit)}) was taken for another registration, and is gone or altered"
    instead = frozenset(each.predictions[asked.prediction] for each in others.values())
    return msgspec.structs.replace(order, grade=Grade.MISMATCH, detail=detail, instead=instead)


def _is_of_another(each: Vanished, asked: _Question) -> bool:
    """Whether a session was taken for the prediction as it is not registered any more."""
    return each.predictions.get(asked.prediction, asked.digest) != asked.digest


def _order(asked: _Question, files: Sequence[EvidenceRef]) -> Order:
    head = asked.past.head
    if not asked.at(head):
        detail = f"not in the lock at HEAD ({short(head)})"
        return Order(grade=Grade.UNREGISTERED, detail=detail, commit=head)
    orders = [_of_file(file, asked) for file in files]
    worst = _worst([*orders, _at_head(asked)])
    contests = tuple(each for file in files for each in _contests(file, asked, worst.grade))
    if worst.grade in PRECEDING:
        contests += tuple(each for file in files for each in _rewritten(file, asked.past))
    flags = dict.fromkeys(flag for order in orders for flag in order.flags)
    if contests:
        flags[CONTESTED] = None
    return msgspec.structs.replace(worst, flags=tuple(flags), contests=contests)


def _worst(orders: Sequence[Order]) -> Order:
    """The worst of some orders; something stood in a registration's place only if it did for all bad ones."""
    worst = min(orders, key=lambda order: RANK[order.grade])
    instead = [order.instead for order in orders if order.grade not in PRECEDING]
    return msgspec.structs.replace(worst, instead=frozenset[str]().union(*instead if all(instead) else ()))


def _at_head(asked: _Question) -> Order:
    head = asked.past.head
    if asked.holds(head):
        return Order(grade=Grade.REGISTERED, detail=f"registered at HEAD ({short(head)})", commit=head)
    detail = f"the lock at HEAD ({short(head)}) registers something else under this id"
    return Order(grade=Grade.MISMATCH, detail=detail, commit=head, instead=frozenset(asked.at(head)))


def _of_file(file: EvidenceRef, asked: _Question) -> Order:
    """The order of one file: its worst introduction, then what its header says."""
    orders = [_introduced(each, file, asked) for each in asked.past.came_in(file.blob)]
    if not asked.past.introductions.get(file.blob):
        orders.append(_at_head(asked))
    order = _worst(orders)
    flags = _remarks(file, asked)
    if order.grade in PRECEDING and (objection := _objection(file, asked)):
        instead = frozenset({file.bound}) if file.bound not in (None, asked.digest) else frozenset[str]()
        return Order(
            grade=Grade.AFTER_EVIDENCE, detail=objection, commit=order.commit, flags=flags, instead=instead
        )
    return msgspec.structs.replace(order, flags=flags)


def _contests(file: EvidenceRef, asked: _Question, decided: Grade) -> list[Contest]:
    """The worst that other refs say of a file, where the verdict would not count if HEAD were there.

    Where their history is cut they say nothing.
    """
    orders = [
        _introduced(each, file, asked) for each in asked.past.elsewhere.get(file.blob, ()) if not each.cut
    ]
    worse = [
        order
        for order in orders
        if order.grade not in PRECEDING and RANK[order.grade] < RANK[decided] and order.commit is not None
    ]
    if not worse:
        return []
    worst = min(worse, key=lambda order: RANK[order.grade])
    assert worst.commit is not None
    return [Contest(name=file.path.name, blob=file.blob, grade=worst.grade, commit=worst.commit, refs=())]


def _rewritten(file: EvidenceRef, past: Past) -> list[Contest]:
    """What other refs have of the same session, written otherwise: one of the two was changed."""
    return [
        Contest(name=file.path.name, blob=each.blob, grade=None, commit=each.commit, refs=())
        for each in past.altered.get(file.blob, ())
    ]


def _remarks(file: EvidenceRef, asked: _Question) -> tuple[str, ...]:
    """What the commit that a header names says beside the grade: an import is bound when it is taken in."""
    is_here = file.head in asked.past.here
    if file.origin != "imported":
        return () if is_here else ("unbound",)
    is_early = file.head is None or (is_here and not asked.holds(file.head))
    return ("imported early",) if is_early else ()


def _introduced(each: Introduction, file: EvidenceRef, asked: _Question) -> Order:
    """The order of one introduction, by what the trees before it and its own register."""
    grade = _grade(each, asked)
    came = f"{file.path.name} came in with {short(each.commit)}"
    match grade:
        case Grade.REGISTERED:
            detail = f"registered before {came}"
        case Grade.REGISTERED_ONE_SIDE:
            sides = Counter(asked.holds(parent) for parent in each.parents)
            detail = f"{came}, a merge of which {sides[True]} of {sides.total()} sides had the registration"
        case Grade.UNVERIFIABLE:
            cut = f"history is cut at {short(each.commit)}, which already has {file.path.name}"
            detail = f"{cut}: fetch all of it (fetch-depth: 0, or git fetch --unshallow --tags)"
        case Grade.SIMULTANEOUS:
            detail = f"{came}, and so did the registration"
            if witness := asked.past.witness(file.blob, asked.prediction, asked.digest):
                tag, commit = witness
                grade = Grade.WITNESSED
                detail += f"; tag {tag} ({short(commit)}) has it without the evidence"
        case Grade.MISMATCH:
            detail = f"something else was registered when {came}"
        case _:
            detail = f"{came}, before anything was registered"
    return Order(grade=grade, detail=detail, commit=each.commit, instead=_instead(each, grade, asked))


def _grade(each: Introduction, asked: _Question) -> Grade:
    if each.cut:
        return Grade.UNVERIFIABLE
    before = [asked.holds(parent) for parent in each.parents]
    if before and all(before):
        return Grade.REGISTERED
    if any(before):
        return Grade.REGISTERED_ONE_SIDE
    if asked.holds(each.commit):
        return Grade.SIMULTANEOUS
    known = any(asked.at(commit) for commit in (each.commit, *each.parents))
    return Grade.MISMATCH if known else Grade.AFTER_EVIDENCE


def _instead(each: Introduction, grade: Grade, asked: _Question) -> frozenset[str]:
    """What stood before the evidence in the place of what is registered now."""
    if grade not in (Grade.MISMATCH, Grade.SIMULTANEOUS):
        return frozenset()
    return frozenset(digest for parent in each.parents for digest in asked.at(parent))


def _objection(file: EvidenceRef, asked: _Question) -> str | None:
    """Why a file itself says that it was not measured for this registration."""
    if file.bound != asked.digest:
        names = "another registration" if file.bound else "no registration"
        return f"{file.path.name} names {names} of this prediction as what it was recorded for"
    if file.origin == "imported" or file.head not in asked.past.here:
        return None
    assert file.head is not None
    if asked.holds(file.head):
        return None
    return f"{file.path.name} was measured at {short(file.head)}, where this was not registered"
