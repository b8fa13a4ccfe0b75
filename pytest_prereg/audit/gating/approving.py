"""Whether a review passes: the lock answers it in this pull request, and somebody has to approve the lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.gating.code_owners import code_owners
from pytest_prereg.audit.gating.ends import Ends
from pytest_prereg.errors import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_prereg.audit.history.git import Repository
    from pytest_prereg.registry.lock import Acknowledgement, Lock


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
    known = {*(before.acknowledged if before else ())}
    entries = lock.acknowledged if lock else ()
    new = {_key(one): one.reason for one in entries if one not in known}
    old = {_key(one): one.reason for one in entries if one in known}
    for finding in findings:
        yield _approved(finding, new, old, approval) if finding.level is Level.REVIEW else finding


_Key = tuple[str, str, str]


def _key(one: Acknowledgement | Finding) -> _Key:
    return one.code, one.id, one.about


def _approved(finding: Finding, new: dict[_Key, str], old: dict[_Key, str], approval: Approval) -> Finding:
    key = _key(finding)
    is_own = finding.acknowledged is not None and finding.acknowledged not in (old.get(key), new.get(key))
    reason = finding.acknowledged if is_own else new.get(key)
    if reason is None:
        return _in_advance(finding, old[key]) if key in old else replace(finding, acknowledged=None)
    if approval.path is not None or approval.is_trusted:
        return replace(finding, acknowledged=reason)
    return _unapproved(finding, reason, approval)


def _in_advance(finding: Finding, reason: str) -> Finding:
    """Return a review that the base's lock acknowledged before it was there to be looked at."""
    message = f"{finding.message}; the lock acknowledged that before it came: {one_line(reason)}"
    return replace(finding, acknowledged=None, message=message)


def _unapproved(finding: Finding, reason: str, approval: Approval) -> Finding:
    """Return a review that the lock answers, and nobody has to approve."""
    said = one_line(reason)
    message = finding.message if said in finding.message else f"{finding.message}; the lock says: {said}"
    advice = (
        f"No CODEOWNERS at the base covers {approval.lock}, so nobody has to approve that reason: whoever "
        "agrees merges over the red check."
    )
    return replace(finding, acknowledged=None, unapproved=True, message=message, advice=advice)
