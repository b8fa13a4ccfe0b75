"""What is to be shown of findings, whoever looked for them: the one thing that every format is made from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.audited import Audited
from pytest_prereg.audit.finding import Finding

if TYPE_CHECKING:
    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.auditing import Audit


class Reported(msgspec.Struct, kw_only=True, frozen=True):
    """Findings with where they come from and what they amount to."""

    command: str
    """Who found them: ``audit`` or ``gate``."""
    study: str
    """Its id."""
    subject: str
    """What was looked at, in a few words: ``reward-latency at cdff1b98``."""
    file: Path
    """The prediction file: where a finding is shown that has no place of its own."""
    root: Path | None
    """Of the repository, which machines take paths from; ``None`` outside of one."""
    predictions: tuple[Audited, ...]
    findings: tuple[Finding, ...]
    """The weightiest first."""
    unproven: tuple[str, ...] = ()
    exit: int
    """0 fine, 1 errors or open reviews, 4 it could not be told."""


def reported_audit(audit: Audit, state: StudyState) -> Reported:
    """Return what is shown of the audit of a study."""
    head = getattr(state.past, "head", None)
    return Reported(
        command="audit",
        study=audit.study,
        subject=f"{audit.study} at {head[:8]}" if head else audit.study,
        file=state.study.path,
        root=state.repository.root if state.repository else None,
        predictions=audit.predictions,
        findings=audit.findings,
        unproven=audit.unproven,
        exit=audit.exit,
    )
