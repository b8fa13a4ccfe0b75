"""An audit: all that the history, the evidence and the lock say of a study, and what they can't say."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.advising import advised
from pytest_prereg.audit.audited import Audited, Recorded, Status
from pytest_prereg.audit.finding import Finding, Level, by_weight, sound
from pytest_prereg.audit.findings.anchors import of_anchors
from pytest_prereg.audit.findings.evidence import of_evidence
from pytest_prereg.audit.findings.history import of_history
from pytest_prereg.audit.findings.order import of_order
from pytest_prereg.audit.findings.problems import guarded
from pytest_prereg.audit.findings.unproven import unproven
from pytest_prereg.audit.findings.weakening import of_weakening
from pytest_prereg.audit.history.grades import Grade
from pytest_prereg.audit.standing import standing
from pytest_prereg.audit.withdrawn import counts_as_refuted, tombstones
from pytest_prereg.errors import PreregError
from pytest_prereg.evidence.naming import shown
from pytest_prereg.registry.reasons import has_words
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.standing import Standing
    from pytest_prereg.registry.lock import Lock, LockEntry
    from pytest_prereg.registry.model import Prediction

FINDERS = (of_order, of_history, of_weakening, of_evidence, of_anchors)

_TEXTS = ("code", "id", "message", "path", "advice", "about", "acknowledged")
_OF_THE_GATE = frozenset({"PR204", "PR206"})
"""Acknowledged in the lock as well, and reviews to the gate alone."""

FINE, FAILED, UNTOLD = 0, 1, 4


class Audit(msgspec.Struct, kw_only=True, frozen=True):
    """What an audit says."""

    study: str
    predictions: tuple[Audited, ...]
    findings: tuple[Finding, ...]
    """The weightiest first."""
    unproven: tuple[str, ...]
    """What no history can prove, a sentence each."""

    @property
    def exit(self) -> int:
        """0 fine, 1 errors or reviews that nobody has acknowledged, 4 it could not be told."""
        return exit_of(self.findings)


def exit_of(findings: Iterable[Finding]) -> int:
    """Return the exit status that findings amount to: 0, 1, or 4 where all that fails could not be told."""
    failing = [one for one in findings if one.fails]
    if not failing:
        return FINE
    return UNTOLD if all(one.untold for one in failing) else FAILED


def audit_study(state: StudyState) -> Audit:
    """Audit a study as it is on disk, with all of its history up to HEAD.

    What is wrong with one prediction is a finding about it, and hides nothing else.
    """
    found = advised(state, _distinct(one for finder in FINDERS for one in guarded(finder, state)))
    findings = acknowledged(map(_sound, found), state.lock)
    return Audit(
        study=state.study.id,
        predictions=tuple(_audited(state)),
        findings=tuple(sorted([*findings, *map(_sound, _unmatched(findings, state))], key=by_weight)),
        unproven=tuple(map(sound, unproven(state))),
    )


def _sound(finding: Finding) -> Finding:
    """Return a finding with text that can be written everywhere."""
    texts = {name: getattr(finding, name) for name in _TEXTS}
    return msgspec.structs.replace(finding, **{name: sound(text) for name, text in texts.items() if text})


def _unmatched(findings: Iterable[Finding], state: StudyState) -> Iterator[Finding]:
    """Yield what the lock acknowledges and nobody finds: it may have been written in advance."""
    found = {(one.code, one.id, one.about) for one in findings}
    for one in state.lock.acknowledged if state.lock else ():
        if (one.code, one.id, one.about) not in found and one.code not in _OF_THE_GATE:
            about = f", {quoted(one.about)}," if one.about else ""
            message = f"{one.code} of {quoted(one.id)}{about} is acknowledged, and not found: {one.reason}"
            path = shown(state.study.lock_path)
            yield Finding(
                code="PR152", id=one.id, level=Level.NOTICE, message=message, path=path, about=one.about
            )


def acknowledged(findings: Iterable[Finding], lock: Lock | None) -> list[Finding]:
    """Return the findings, with the reason for each review that the lock acknowledges; an error stays one."""
    entries = [one for one in (lock.acknowledged if lock else ()) if has_words(one.reason)]
    known = {(one.code, one.id, one.about): one.reason for one in entries}
    return [
        msgspec.structs.replace(one, acknowledged=reason)
        if one.level is Level.REVIEW
        and one.acknowledged is None
        and (reason := known.get((one.code, one.id, one.about))) is not None
        else one
        for one in findings
    ]


def _distinct(findings: Iterable[Finding]) -> list[Finding]:
    """Return each finding once; what stopped a finder is left out where it is told of a prediction."""
    found = list(dict.fromkeys(findings))
    known = {(one.code, one.message) for one in found if one.id}
    return [one for one in found if one.id or (one.code, one.message) not in known]


def _audited(state: StudyState) -> Iterable[Audited]:
    before = _at_head(state)
    now = state.lock.predictions if state.lock else {}
    orders = {name: str(order.grade) for name, order in state.orders.items()}
    standings = {name: _standing(state, one) for name, one in state.study.predictions.items()}
    for tombstone in tombstones(state):
        orders[tombstone.id] = str(tombstone.order.grade)
        standings[tombstone.id] = tombstone.standing
    for name in sorted({*state.study.predictions, *before, *now}):
        entry, prediction = now.get(name), state.study.predictions.get(name)
        withdrawal = entry.withdrawal if entry else None
        yield Audited(
            id=name,
            status=_status(prediction, entry, orders.get(name)),
            order=orders.get(name),
            standing=standings.get(name),
            base=recorded(before.get(name)),
            head=recorded(entry),
            withdrawal=sound(withdrawal.reason) if withdrawal else None,
            is_counted=entry is not None and counts_as_refuted(entry, standings.get(name)),
            claim=sound(prediction.claim) if prediction else "",
        )


def _at_head(state: StudyState) -> Mapping[str, LockEntry]:
    """Entries of HEAD's lock; none where that can't be read, which is a finding of its own."""
    with suppress(PreregError):
        return state.head_lock.predictions if state.head_lock else {}
    return {}


def _status(prediction: Prediction | None, entry: LockEntry | None, order: str | None) -> Status:
    if entry is not None and entry.withdrawal is not None:
        return "withdrawn"
    if prediction is None:
        return "removed"
    return "unregistered" if entry is None or order == Grade.UNREGISTERED else "registered"


def _standing(state: StudyState, prediction: Prediction) -> Standing:
    with suppress(PreregError):
        return state.assess(prediction).standing
    return standing(state.orders[prediction.id], prediction)


def recorded(entry: LockEntry | None) -> Recorded | None:
    """Return what an entry of a lock records; ``None`` where that is nothing."""
    if entry is None or entry.verdict is None:
        return None
    return Recorded(
        verdict=entry.verdict,
        reason=entry.reason,
        estimate=entry.estimate,
        interval=entry.interval,
        unit=entry.unit,
        n=entry.n,
        series=entry.series,
    )
