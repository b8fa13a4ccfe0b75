"""What anchors prove, and which prove nothing: PR153. No grade depends on them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.stamping.anchors import Versions, anchors_of, versions_of
from pytest_prereg.audit.stamping.time_stamps import Stamp, read, roots_of, verify
from pytest_prereg.errors import AnchorError
from pytest_prereg.evidence.naming import shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cryptography.x509 import Certificate

    from pytest_prereg.audit.assess import StudyState

CODE = "PR153"
_SHORT = 8


def of_anchors(state: StudyState) -> Iterator[Finding]:
    """Yield a notice for each anchor that holds, and an error for each that does not."""
    paths = anchors_of(state.study)
    if not paths:
        yield from _missing(state.anchor_roots)
        return
    try:
        roots = roots_of(state.anchor_roots)
    except AnchorError as error:
        problem = error.problems[0]
        many = f"{len(paths)} anchors" if len(paths) > 1 else "an anchor"
        message = f"{many} could not be verified: {problem.message}"
        yield Finding(
            code=CODE,
            id="",
            level=Level.ERROR,
            message=message,
            path=problem.path or shown(paths[0].parent),
            advice=problem.advice,
            untold=True,
        )
        return
    versions = versions_of(state)
    for path in paths:
        yield _of_one(path, roots, versions)


def _missing(roots: Path | None) -> Iterator[Finding]:
    """Yield that certificates were named that can't be read, though there is nothing to verify with them."""
    if roots is None:
        return
    try:
        roots.read_bytes()
    except OSError as error:
        message = f"the certificates can't be read: {error.strerror}"
        yield Finding(code=CODE, id="", level=Level.ERROR, message=message, path=shown(roots), untold=True)


def _of_one(path: Path, roots: list[Certificate], versions: Versions) -> Finding:
    """Return what one anchor comes to; whose lock it is over is told before who signed it."""
    try:
        answer = path.read_bytes()
    except OSError as error:
        return _finding(path, Level.ERROR, f"the anchor can't be read: {error.strerror}", untold=True)
    about = hashlib.sha256(answer).hexdigest()[:_SHORT]
    try:
        stamp = read(answer)
        if stamp.digest not in versions.commits:
            return _of_none(path, stamp, versions, about)
        stamp = verify(answer, roots)
    except AnchorError as error:
        problem = error.problems[0]
        return _finding(
            path, Level.ERROR, f"this anchor proves nothing: {problem.message}", problem.advice, about
        )
    return _finding(path, Level.NOTICE, _proven(stamp, versions.commits[stamp.digest]), about=about)


def _proven(stamp: Stamp, commit: str | None) -> str:
    which = f"the lock of {commit[:_SHORT]}" if commit else "the lock as it is on disk, not committed,"
    return f"{which} {stamp.statement}"


def _of_none(path: Path, stamp: Stamp, versions: Versions, about: str) -> Finding:
    digest = f'a file with digest "{stamp.digest[:16]}…"'
    if not versions.is_whole:
        message = f"this anchor is over {digest}, which is no version of the lock that is known here"
        advice = "Fetch the whole history: fetch-depth: 0, or git fetch --unshallow --tags"
        return _finding(path, Level.ERROR, message, advice, about, untold=True)
    message = f"this anchor is over {digest}, which no commit up to HEAD has as the lock of this study"
    advice = "Bring back the commit that has it; a squash loses those between. Or remove the anchor."
    return _finding(path, Level.ERROR, message, advice, about)


def _finding(
    path: Path,
    level: Level,
    message: str,
    advice: str | None = None,
    about: str = "",
    *,
    untold: bool = False,
) -> Finding:
    return Finding(
        code=CODE,
        id="",
        level=level,
        message=message,
        path=shown(path),
        advice=advice,
        about=about,
        untold=untold,
    )
