"""What one pull request registered and measured as well: PR204; and a rule against that, which went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.order import ADVICE
from pytest_prereg.audit.findings.telling import short, told
from pytest_prereg.audit.gating.places import measured_in, registered_in
from pytest_prereg.audit.history.grades import PRECEDING, Grade
from pytest_prereg.audit.withdrawn import files_of
from pytest_prereg.evidence.naming import shown
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.gating.sides import Base

_SEPARATE = "separate"
_SQUASH = (
    "Ask whether the expectation was there before the numbers. Merge it with its commits: a squash makes one "
    "commit of both. Whoever has to squash tags the registration first: pytest-prereg lock --tag"
)
_TAGGED = "Ask whether the expectation was there before the numbers. A tag holds the registration by itself."


def judged_here(state: StudyState, base: Base) -> Iterator[Finding]:
    """Yield one finding for each registration that is not the base's, and that evidence was taken for.

    Where evidence came first, or something else was registered, that is told as the order that it is.
    """
    for name in state.study.predictions:
        if is_registered_here(state, base, name) and _is_measured(state, name):
            grade = state.orders[name].grade
            if grade is Grade.SIMULTANEOUS:
                yield _in_one_commit(state, name)
            elif grade in PRECEDING:
                yield _in_order(
                    state, name, separate=_is_separate(state, base), tagged=grade is Grade.WITNESSED
                )


def is_registered_here(state: StudyState, base: Base, name: str) -> bool:
    """Whether the lock registers a prediction as it is now, and the base's did not."""
    entry, before = state.lock.predictions.get(name) if state.lock else None, base.entry(name)
    is_known = before is not None and entry is not None and before.digest == entry.digest
    if base.unread and base.lock is None:  # nobody can read it there, and the history tells all the same
        commit = registered_in(state, name)
        is_known = commit is not None and state.timeline.leads(commit, base.commit)
    return entry is not None and entry.digest == state.digests[name] and not is_known


def loosened(state: StudyState, base: Base) -> Iterator[Finding]:
    """Yield a review if the study asked for pull requests of their own, and does so no more."""
    if base.table is None or base.table.registration != _SEPARATE or _asks(state):
        return
    yield Finding(
        code="PR209",
        id=state.study.id,
        level=Level.REVIEW,
        message=f"{quoted(state.study.id)} no longer wants registrations in a pull request of their own",
        path=shown(state.study.path),
        line=1,
        about="registration: separate -> any",
        advice='Put registration = "separate" back, or say why it goes.',
    )


def _is_measured(state: StudyState, name: str) -> bool:
    return any(file.attempts for file in files_of(state, name, {state.digests[name]}))


def _asks(state: StudyState) -> bool:
    return state.study.table.registration == _SEPARATE


def _is_separate(state: StudyState, base: Base) -> bool:
    """Whether registrations need a pull request of their own: what the base asks can't be lifted beside."""
    return _asks(state) or (base.table is not None and base.table.registration == _SEPARATE)


def _in_one_commit(state: StudyState, name: str) -> Finding:
    order = state.orders[name]
    where = f", {order.commit[:8]}" if order.commit else ""
    message = f"{quoted(name)} is registered and measured in one commit{where}"
    return _finding(state, name, Level.ERROR, message, ADVICE[Grade.SIMULTANEOUS])


def _in_order(state: StudyState, name: str, *, separate: bool, tagged: bool) -> Finding:
    registered, measured = registered_in(state, name), measured_in(state, name)
    message = (
        f"{quoted(name)} is registered{_in(registered)} and measured{_in(measured)}, in the same pull request"
    )
    if separate:
        advice = (
            "Its study asks for two: one that registers it and, once that is merged, one with the evidence."
        )
        return _finding(
            state, name, Level.ERROR, f'{message}, and its study says registration = "separate"', advice
        )
    finding = _finding(state, name, Level.REVIEW, message, _TAGGED if tagged else _SQUASH)
    return replace(finding, commit=measured)


def _in(commit: str | None) -> str:
    return f" in {commit[:8]}" if commit else ""


def _finding(state: StudyState, name: str, level: Level, message: str, advice: str) -> Finding:
    commit, about = measured_in(state, name), short(state.digests[name])
    return told(state, "PR204", name, level, message, commit=commit, about=about, advice=advice)
