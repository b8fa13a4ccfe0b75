"""What is to be shown of findings, whoever looked for them: the one thing that every format is made from."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.audited import Audited
from pytest_prereg.audit.auditing import FAILED, UNTOLD
from pytest_prereg.audit.finding import Finding, Level, sound
from pytest_prereg.audit.history.git import Repository
from pytest_prereg.audit.history.past import Past
from pytest_prereg.errors import HistoryError, PreregError
from pytest_prereg.evidence.naming import shown

if TYPE_CHECKING:
    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.auditing import Audit
    from pytest_prereg.errors import Problem


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
    compared: str | None = None
    """What the predictions' ``base`` is: ``HEAD`` for an audit; ``None`` without anything to compare."""
    is_loaded: bool = True
    """Whether the study and its lock could be read; else there are no predictions."""
    unproven: tuple[str, ...] = ()
    base: str | None = None
    """The whole hash of the merge base that a gate compares with; ``None`` for an audit, as all below."""
    head: str | None = None
    """The whole hash of the commit that a gate looks at."""
    standing: tuple[Finding, ...] = ()
    """What fails at the base already, and is not this pull request's."""
    covered: str | None = None
    """The file of code owners at the base that covers the lock; ``None`` where nobody has to approve it."""
    uncommitted: tuple[str, ...] = ()
    """Files of the study that are not here as the commit has them that a gate looks at."""
    exit: int
    """0 fine, 1 errors or open reviews, 4 it could not be told."""


def reported_audit(audit: Audit, state: StudyState) -> Reported:
    """Return what is shown of the audit of a study."""
    head = state.past.head if isinstance(state.past, Past) else None
    return Reported(
        command="audit",
        study=audit.study,
        subject=f"{audit.study} at {head[:8]}" if head else audit.study,
        file=state.study.path,
        root=state.repository.root if state.repository else None,
        compared="HEAD" if head else None,
        predictions=audit.predictions,
        findings=audit.findings,
        unproven=audit.unproven,
        exit=audit.exit,
    )


def reported_refusal(error: PreregError, file: Path, command: str = "audit") -> Reported:
    """Return what is shown where a study or its lock can't be read at all: why, each problem as an error.

    Whoever collects reports gets one all the same, in the format and the file that were asked for.
    """
    untold = isinstance(error, HistoryError)
    return Reported(
        command=command,
        study=file.stem,
        subject=sound(shown(file)),
        file=file,
        root=_root(file.absolute().parent),
        predictions=(),
        findings=tuple(_refused(one, untold=untold) for one in error.problems),
        is_loaded=False,
        exit=UNTOLD if untold else FAILED,
    )


def _root(folder: Path) -> Path | None:
    with suppress(PreregError):
        repository = Repository.find(folder)
        return repository.root if repository else None
    return None


def _refused(problem: Problem, *, untold: bool) -> Finding:
    return Finding(
        code=problem.code,
        id="",
        level=Level.ERROR,
        message=sound(problem.message),
        path=problem.path and sound(shown(Path(problem.path))),
        line=problem.line,
        advice=problem.advice and sound(problem.advice),
        untold=untold,
    )
