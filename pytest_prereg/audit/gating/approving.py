"""Whether a review passes: the lock answers it in this pull request, and somebody has to approve the lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from pytest_prereg.audit.finding import Finding, Level, sound
from pytest_prereg.audit.findings.telling import acknowledging
from pytest_prereg.audit.gating.code_owners import code_owners
from pytest_prereg.audit.gating.ends import Ends
from pytest_prereg.errors import one_line
from pytest_prereg.registry.reasons import has_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_prereg.audit.history.git import Repository
    from pytest_prereg.registry.lock import Acknowledgement, Amendment, Exclusion, Lock, Void


_SHORT = 8
"""Digits of a commit."""


class Approval(msgspec.Struct, kw_only=True, frozen=True):
    """Who has to approve what a pull request's lock says."""

    ends: Ends
    lock: str
    """The lock, from the root of the repository."""
    path: str | None = None
    """The file of code owners at the base by which its owners have to; ``None`` where there is none."""
    is_trusted: bool = False
    """Whether the lock's word is enough, since whoever set the gate up said so."""


def covering(repository: Repository, commit: str, lock: str) -> str | None:
    """Return the file of code owners at a commit by which a lock has owners; ``None`` where it has none."""
    owners = code_owners(repository, commit)
    return owners.path if owners is not None and owners.owners(lock) else None


def approved(
    findings: Iterable[Finding], lock: Lock | None, before: Lock | None, approval: Approval
) -> Iterator[Finding]:
    """Yield the findings; those that are acknowledged only where that counts.

    Args:
        findings: Of a pull request.
        lock: At head.
        before: The lock at the base: what that acknowledged was said before anybody could have looked.
        approval: Who has to approve it.
    """
    answers = _Answers(lock, before)
    for finding in findings:
        yield _approved(finding, answers, approval) if finding.level is Level.REVIEW else finding


_Key = tuple[str, str, str]


def _key(one: Acknowledgement | Finding) -> _Key:
    return one.code, one.id, one.about


class _Answers:
    """What a lock answers reviews with: what it says since the base, and what that said already."""

    def __init__(self, lock: Lock | None, before: Lock | None) -> None:
        known = {*(before.acknowledged if before else ())}
        entries = [one for one in (lock.acknowledged if lock else ()) if has_words(one.reason)]
        self.new = {_key(one): one.reason for one in entries if one not in known}
        self.old = {_key(one): one.reason for one in entries if one in known}
        said = {*_own(before)}
        self._said = {
            (name, reason) for name, entry, reason in _own(lock) if (name, entry, reason) not in said
        }
        recorded = before.predictions if before else {}
        self._recorded = {
            name for name, entry in (lock.predictions if lock else {}).items() if recorded.get(name) != entry
        }

    def own(self, finding: Finding) -> str | None:
        """Return the reason that the lock had for what it does: of an amendment, an exclusion, a record."""
        reason, key = finding.acknowledged, _key(finding)
        if reason is None or reason in (self.old.get(key), self.new.get(key)):
            return None
        said = reason if reason.startswith(_RECORDED) else reason.partition(": ")[2]
        return reason if has_words(said) else None

    def is_new(self, finding: Finding, reason: str) -> bool:
        """Whether the lock at the base did not have that yet."""
        if reason.startswith(_RECORDED):
            return finding.id in self._recorded
        return (finding.id, reason) in self._said


_RECORDED = "recorded as "


def _own(lock: Lock | None) -> Iterator[tuple[str, Amendment | Exclusion | Void, str]]:
    """Yield what a lock does for a reason of its own: about what, the entry, and how an audit tells it."""
    if lock is None:
        return
    for name, entry in lock.predictions.items():
        yield from ((name, each, sound(f"amended: {each.reason}")) for each in entry.amendments)
    for one in lock.exclusions:
        yield one.repeat.partition("/")[0], one, sound(f"excluded: {one.reason}")
    for void in lock.voided:
        yield void.series.partition("/")[0], void, sound(f"voided: {void.reason}")


def _approved(finding: Finding, answers: _Answers, approval: Approval) -> Finding:
    key, own = _key(finding), answers.own(finding)
    is_new = own is not None and answers.is_new(finding, own)
    reason = own if is_new else answers.new.get(key)
    if reason is None:
        old = own or answers.old.get(key)
        return replace(finding, acknowledged=None) if old is None else _in_advance(finding, old, approval)
    if approval.path is not None or approval.is_trusted:
        return replace(finding, acknowledged=reason)
    return _unapproved(finding, reason, approval)


def _in_advance(finding: Finding, reason: str, approval: Approval) -> Finding:
    """Return a review that the base's lock acknowledged before it was there to be looked at."""
    message = f"{finding.message}; the lock acknowledged that before it came: {one_line(reason)}"
    command = acknowledging(finding.code, finding.id, approval.ends.base[:_SHORT])
    return replace(finding, acknowledged=None, message=message, advice=f"Say it anew: {command}")


def _unapproved(finding: Finding, reason: str, approval: Approval) -> Finding:
    """Return a review that the lock answers, and nobody has to approve."""
    said = one_line(reason)
    is_told = finding.message.endswith(said.partition(": ")[2] or said)
    message = finding.message if is_told else f"{finding.message}; the lock says: {said}"
    advice = (
        f"No CODEOWNERS at the base covers {approval.lock}, so nobody has to approve that reason: whoever "
        "agrees merges over the red check."
    )
    return replace(finding, acknowledged=None, unapproved=True, message=message, advice=advice)
