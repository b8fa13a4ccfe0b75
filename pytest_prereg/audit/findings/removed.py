"""Evidence that is gone or altered, now or in any commit: PR207. And what only evidence still names."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.places import place_of
from pytest_prereg.audit.findings.problems import finding_of
from pytest_prereg.audit.history.past import Past
from pytest_prereg.audit.recorded import short
from pytest_prereg.judge.findings import plural
from pytest_prereg.registry.refusals import listed, quoted, typed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.history.committed_sessions import Vanished
    from pytest_prereg.errors import Problem
    from pytest_prereg.evidence.files import SessionFile

GONE = "PR207"


def removed(state: StudyState) -> Iterator[Finding]:
    """Yield an error for each file of evidence that is gone or altered, and for each other flaw of a file.

    A file is told once, by the first of: a commit that had it otherwise; git's HEAD, or a later session, that
    know it otherwise; its own last line.
    """
    told: set[str] = set()
    for name, finding in _every(state):
        if finding.code != GONE or name not in told:
            yield finding
        if finding.code == GONE:
            told.add(name)


def _every(state: StudyState) -> Iterator[tuple[str, Finding]]:
    """Yield what is wrong with each file, with ``experiment/file``."""
    present = {file.name for several in state.files.values() for file in several}
    for each in _vanished(state):
        name = _name(each.path)
        yield name, _was_committed(state, each, name, is_here=name in present)
    for problem in state.broken:
        name = _name(problem.path or "")
        yield name, _of_file(state, problem, name)
    for several in state.files.values():
        for file in several:
            for problem in file.problems:
                yield file.name, _of_file(state, problem, file.name)


def _name(path: str) -> str:
    return "/".join(Path(path).parts[-2:])


def _vanished(state: StudyState) -> Iterator[Vanished]:
    """Yield files that a commit had, and that HEAD has nowhere, the newest version of each."""
    if isinstance(state.past, Past):
        gone = (each for each in reversed(state.past.vanished) if each.kept is None)
        yield from {_name(each.path): each for each in gone}.values()


def _was_committed(state: StudyState, each: Vanished, name: str, *, is_here: bool) -> Finding:
    became = "is no longer what was committed" if is_here else "was committed, and is gone"
    path, line = place_of(state, each.experiment)
    place = os.path.relpath(state.repository.root / each.path) if state.repository else each.path
    return Finding(
        code=GONE,
        id=each.experiment,
        level=Level.ERROR,
        message=f"evidence {quoted(name)} {became}",
        path=path,
        line=line,
        commit=each.commit,
        advice=f"Bring it back, and commit it: git checkout {each.commit[:8]} -- {shlex.quote(place)}\n"
        "What must not count is excluded with a reason, never removed.",
        about=name,
    )


def _of_file(state: StudyState, problem: Problem, name: str) -> Finding:
    """Return a problem of a file; the message names it, as what is shown may be a place in the study."""
    finding = finding_of(state, problem, name.partition("/")[0])
    if Path(name).name not in problem.message:
        finding = replace(finding, message=f"evidence {quoted(name)}: {problem.message}")
    return replace(finding, about=name if problem.line is None else f"{name}:{problem.line}")


def unknown(state: StudyState) -> Iterator[Finding]:
    """Yield what evidence names and neither the study nor its lock has: predictions (PR203), experiments.

    A session binds only what the commit at HEAD registered, an import only what its lock did.
    """
    registered = {*state.study.predictions, *(state.lock.predictions if state.lock else ())}
    lost = {*state.bound_by_evidence} - registered
    if lost:  # the history of the lock says of those that it had when they went
        lost -= {one.id for one in state.chronicle.changes}
    for name in sorted(lost):
        yield _unregistered(state, name)
    for experiment, files in state.files.items():
        if experiment not in state.study.experiments:
            yield from _of_unknown(state, experiment, files)


def _unregistered(state: StudyState, name: str) -> Finding:
    digests = sorted(map(short, state.bound_by_evidence[name]))
    path, line = place_of(state, name)
    return Finding(
        code="PR203",
        id=name,
        level=Level.ERROR,
        message=f"evidence was taken for {quoted(name)} ({listed(digests)}), which neither the study nor its "
        "lock has any more",
        path=path,
        line=line,
        advice="Bring its entry of the lock back; what is no longer meant is withdrawn: "
        f"pytest-prereg withdraw {typed(name)} --reason '…'",
        about=" ".join(digests),
    )


def _of_unknown(state: StudyState, experiment: str, files: list[SessionFile]) -> Iterator[Finding]:
    count = sum(file.header is not None and bool(file.attempts) for file in files)
    path, line = place_of(state, experiment)
    if count:
        yield Finding(
            code=GONE,
            id=experiment,
            level=Level.NOTICE,
            message=f"there is evidence ({plural(count, 'session')}) of experiment {quoted(experiment)}, "
            "which the study does not have",
            path=path,
            line=line,
            about=experiment,
        )
