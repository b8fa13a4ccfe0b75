"""Whether registration came before evidence: PR212, or PR202 where an amendment says why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.audit.finding import Level
from pytest_prereg.audit.findings.amendments import about as about_amendment
from pytest_prereg.audit.findings.telling import (
    acknowledging,
    committing,
    short,
    told,
    waits_for_commit,
)
from pytest_prereg.audit.history.grades import PRECEDING, Grade
from pytest_prereg.audit.history.past import NoPast
from pytest_prereg.audit.history.witnessing import TAG, Witnessing
from pytest_prereg.evidence.import_commands import next_import
from pytest_prereg.registry.refusals import quoted, typed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.finding import Finding
    from pytest_prereg.audit.history.grades import Contest, Order
    from pytest_prereg.registry.lock import Amendment

ADVICE = {
    Grade.AFTER_EVIDENCE: "It stays exploratory. A successor that is registered and committed first counts.",
    Grade.MISMATCH: "Restore what was registered, or say why it changed: "
    "pytest-prereg amend {name} --reason '…'",
    Grade.UNREGISTERED: "It stays exploratory. Registered first, and committed, a new measurement counts: "
    "pytest-prereg lock",
    Grade.SIMULTANEOUS: "A registration needs a commit of its own, before the evidence. Where both are to be "
    "squashed into one, tag it before measuring: pytest-prereg lock --tag",
    Grade.UNVERIFIABLE: "Ask where the whole history is: git fetch --unshallow --tags, or in CI "
    "fetch-depth: 0 and fetch-tags: true.",
}
"""What to do about a grade that lets nothing count."""


def of_order(state: StudyState) -> Iterator[Finding]:
    """Yield one finding for each prediction whose registration does not precede its evidence, and contests.

    A prediction that was registered first has none, pending or not. Where the lock's amendments list
    everything that stood in its place the finding is theirs.
    """
    past = state.past
    witnessing = None if isinstance(past, NoPast) else Witnessing(state, past)
    for name in state.study.predictions:
        order = state.orders[name]
        if order.grade not in PRECEDING:
            yield from _of_grade(state, name, order, witnessing)
        yield from (_contested(state, name, each) for each in order.contests)


def _of_grade(state: StudyState, name: str, order: Order, witnessing: Witnessing | None) -> Iterator[Finding]:
    if order.grade is Grade.UNREGISTERED and not _has_evidence(state, name):
        yield _not_committed(state, name, order)
    elif amendments := _listed(state, name, order):
        if _is_theirs(state, name, order):
            yield _amended(state, name, order, amendments[-1])
    else:
        yield _wrong(state, name, order, _advice(state, name, order, witnessing))


def _has_evidence(state: StudyState, name: str) -> bool:
    """Whether anything was recorded for a prediction, complete or not, under whatever registration."""
    return bool(state.bases[name]) or bool(state.bound_by_evidence.get(name))


def _listed(state: StudyState, name: str, order: Order) -> list[Amendment]:
    """Return the amendments of all that stood in the place of the registration; none if one is missing."""
    entry = state.lock.predictions.get(name) if state.lock else None
    if entry is None or not order.instead or entry.digest != state.digests[name]:
        return []
    known = [each for each in entry.amendments if each.key == "digest"]
    return known if order.instead <= {each.old for each in known} else []


def _is_theirs(state: StudyState, name: str, order: Order) -> bool:
    """Whether nothing else tells that there were data: none were taken for what the amendments list."""
    return _has_evidence(state, name) and not state.bound_by_evidence.get(name, set()) & order.instead


def _not_committed(state: StudyState, name: str, order: Order) -> Finding:
    message = f"{quoted(name)} is not registered: {order.detail}"
    advice = "Nothing is measured for it before it is: pytest-prereg lock, and commit."
    if waits_for_commit(state, name):
        message = f"{quoted(name)} is in the lock, and that is not committed yet"
        advice = f"Nothing is measured for it before it is: {committing(state)}"
    return told(
        state,
        "PR102",
        name,
        Level.NOTICE,
        message,
        commit=order.commit,
        about=short(state.digests[name]),
        advice=advice,
    )


def _amended(state: StudyState, name: str, order: Order, amendment: Amendment) -> Finding:
    return told(
        state,
        "PR202",
        name,
        Level.REVIEW,
        f"{quoted(name)} was amended when its evidence came in ({order.grade}): {order.detail}",
        commit=order.commit,
        about=f"{order.grade}: {about_amendment(amendment)}",
        acknowledged=f"amended: {amendment.reason}",
    )


def _advice(state: StudyState, name: str, order: Order, witnessing: Witnessing | None) -> str:
    entry = state.lock.predictions.get(name) if state.lock else None
    digest = state.digests[name]
    if entry is not None and entry.withdrawal is not None and entry.digest != digest:
        return "That id was withdrawn, and is never used again: give this one another, and lock it."
    if order.grade is Grade.AFTER_EVIDENCE and digest not in state.bound_by_evidence.get(name, ()):
        return _unmeasured(state, name)
    if order.grade is Grade.SIMULTANEOUS:
        commit = witnessing.of(name, digest) if witnessing else None
        return f"{ADVICE[order.grade]}\n{_tagging(commit)}" if commit is None else _tagging(commit)
    return ADVICE[order.grade].format(name=typed(name))


def _unmeasured(state: StudyState, name: str) -> str:
    """What gives a prediction that is registered, beside a series that was there first, one of its own."""
    experiments = state.study.predictions[name].experiments
    fed = next((one for one in experiments if state.study.experiments[one].kind == "import"), None)
    command = "pytest --prereg"
    if fed is not None:
        command = next_import(state.study.experiments[fed], state.files[fed])
    return f"Nothing was measured for it yet. A series of its own counts: {command}"


def _tagging(commit: str | None) -> str:
    if commit is not None:
        return f"Commit {commit[:8]} has it without the evidence: {TAG.format(commit=commit[:8])}"
    command = TAG.format(commit="COMMIT")
    return f"If a reflog, or another clone, has the commit that registered it alone, tag that: {command}"


def _wrong(state: StudyState, name: str, order: Order, advice: str) -> Finding:
    finding = told(
        state,
        "PR212",
        name,
        Level.ERROR,
        f"{quoted(name)} is {order.grade}: {order.detail}",
        commit=order.commit,
        about=f"{order.grade}: {short(state.digests[name])}",
        advice=advice,
    )
    return replace(finding, untold=order.grade is Grade.UNVERIFIABLE)


def _contested(state: StudyState, name: str, contest: Contest) -> Finding:
    return told(
        state,
        "PR212",
        name,
        Level.REVIEW,
        f"{quoted(name)} is contested: {contest.detail}",
        commit=contest.commit,
        about=contest.about,
        advice=f"Look into it, then say what it was: {acknowledging('PR212', name)}",
    )
