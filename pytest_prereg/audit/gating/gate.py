"""The gate: what a pull request brings that a person has to see, from the commits at its two ends.

Both are audited, and what head's audit finds and the merge base's did not is the pull request's. A review
passes once the lock at head answers it, in this very pull request, and somebody has to approve that.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from pytest_prereg.audit.audited import Audited
from pytest_prereg.audit.auditing import exit_of
from pytest_prereg.audit.deciding import is_guard
from pytest_prereg.audit.finding import Finding, Level, by_weight
from pytest_prereg.audit.findings.telling import acknowledging
from pytest_prereg.audit.gating.approving import approved
from pytest_prereg.audit.gating.compared import compared
from pytest_prereg.audit.gating.ends import Ends
from pytest_prereg.audit.gating.judged_here import judged_here, loosened
from pytest_prereg.audit.gating.restoring import restorable
from pytest_prereg.audit.gating.sequence import Sequences
from pytest_prereg.audit.history.grades import Grade

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.gating.approving import Approval
    from pytest_prereg.audit.gating.sides import Base, Side

_STALE = "PR206"
_SHORT = 8
"""Digits of a commit."""


class Gate(msgspec.Struct, kw_only=True, frozen=True):
    """What a gate says."""

    study: str
    ends: Ends
    predictions: tuple[Audited, ...]
    findings: tuple[Finding, ...]
    """What the pull request brings, the weightiest first."""
    standing: tuple[Finding, ...]
    """What fails at the base already, and still does."""
    covered: str | None
    """The file of code owners that covers the lock."""

    @property
    def exit(self) -> int:
        """0 fine, 1 errors or reviews that nobody has acknowledged, 4 it could not be told."""
        return exit_of(self.findings)


def gate(head: Side, base: Base, approval: Approval, *, on_default_branch: bool = False) -> Gate:
    """Return what came between two commits.

    Args:
        head: The study at the later one.
        base: What there was of it at the merge base.
        approval: Who has to approve what the lock at head says.
        on_default_branch: Whether head is what everybody builds on: then no guard may be stale.
    """
    stale = [one for one in head.audit.findings if on_default_branch and _is_stale(one, head.state)]
    every = [one for one in head.audit.findings if one not in stale]
    brought, standing = _told_apart(every, base.findings)
    sequences = Sequences(head.state, approval.ends.base)
    both = list(judged_here(head.state, base, sequences))
    judged = {one.id for one in both}
    kept = [one for one in brought if not (one.id in judged and _is_simultaneous(one))]
    own = [
        _answerable(one, approval.ends)
        for one in (*both, *loosened(head.state, base), *map(_to_review, stale))
    ]
    elsewhere = [
        one for one in base.left if all((one.code, one.id) != (each.code, each.id) for each in every)
    ]
    told = restorable([*kept, *own, *elsewhere], head, base, approval.ends)
    findings = approved(told, head.state.lock, base.lock, approval)
    return Gate(
        study=head.audit.study,
        ends=approval.ends,
        predictions=compared(head, base, approval.ends, sequences),
        findings=tuple(sorted([*findings, *base.unread], key=by_weight)),
        standing=tuple(one for one in standing if one.fails),
        covered=approval.path,
    )


def _told_apart(every: Iterable[Finding], before: Iterable[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Return what head's audit finds and the base's did not, and what both find.

    What is found once more than at the base is new, and so is what fails since its acknowledgement went.
    """
    known = {fails: Counter(_key(one) for one in before if one.fails is fails) for fails in (True, False)}
    brought, standing = [], []
    for one in every:
        key = _key(one)
        found = next((known[fails] for fails in (one.fails, True) if known[fails][key]), None)
        if found is None:
            brought.append(one)
        else:
            found[key] -= 1
            standing.append(one)
    return brought, standing


_Key = tuple[str, str, str, str, bool]
_QUOTED = "PR210"


def _key(finding: Finding) -> _Key:
    """Return what makes a finding the same one, by whatever commit it arrives."""
    what = finding.about or finding.message
    if finding.code == _QUOTED:
        what = f"{finding.path}: {what}"
    return finding.code, finding.id, finding.level, what, finding.untold


def _is_simultaneous(finding: Finding) -> bool:
    return finding.about.startswith(Grade.SIMULTANEOUS)


def _is_stale(finding: Finding, state: StudyState) -> bool:
    """Whether it says that a guard was not measured on its subject as that is now."""
    prediction = state.study.predictions.get(finding.id)
    return finding.code == _STALE and prediction is not None and is_guard(prediction)


def _to_review(finding: Finding) -> Finding:
    return replace(finding, level=Level.REVIEW)


def _answerable(finding: Finding, ends: Ends) -> Finding:
    """Return a review that no audit finds with the command that acknowledges it."""
    if finding.level is not Level.REVIEW:
        return finding
    command = acknowledging(finding.code, finding.id, ends.base[:_SHORT])
    return replace(finding, advice=f"{finding.advice or ''}\nIf it may stand, say why: {command}".strip())
