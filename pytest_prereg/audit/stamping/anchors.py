"""Anchors: time-stamps over whole versions of a lock, kept in files beside it.

The name of such a file says nothing. What an anchor is over is found by its digest among all versions of the
lock, so that a lock can't borrow one.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.history.past import LOCKS, NoPast
from pytest_prereg.errors import AnchorError, Problem
from pytest_prereg.evidence.disk import make_folder, put, sync_folder
from pytest_prereg.evidence.naming import shown
from pytest_prereg.registry.registered import registered

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.history.past import Past
    from pytest_prereg.registry.model import Study

SUFFIX = ".tsr"
_SHOWN = 16
"""Hex digits of a digest in the name of a file."""


class Versions(msgspec.Struct, kw_only=True, frozen=True):
    """The versions of a lock by SHA-256 of their bytes, in hex."""

    commits: dict[str, str | None]
    """The first commit that has each, as far as is known; ``None`` for what is on disk alone."""
    is_whole: bool
    """Whether that is the whole history up to HEAD."""


def folder_of(study: Study) -> Path:
    """Return the folder beside the lock that anchors are kept in."""
    return study.lock_path.with_suffix(".anchors")


def anchors_of(study: Study) -> list[Path]:
    """Return the files of all anchors, by name."""
    return sorted(folder_of(study).glob(f"*{SUFFIX}"))


def keep(study: Study, digest: str, answer: bytes) -> Path:
    """Write an authority's answer, as it came, and return the file.

    Args:
        study: Whose lock it is over.
        digest: SHA-256 of that lock, in hex.
        answer: DER, unchanged: the signature is in it.

    Raises:
        AnchorError: It can't be written (PR153).
    """
    own = hashlib.sha256(answer).hexdigest()
    path = folder_of(study) / f"{digest[:_SHOWN]}-{own[:8]}{SUFFIX}"
    try:
        make_folder(path.parent)
        put(path, answer)
        sync_folder(path.parent)
    except OSError as error:
        message = f"the anchor can't be written: {error.strerror}"
        raise AnchorError(Problem(code="PR153", message=message, path=shown(path))) from error
    return path


def versions_of(state: StudyState) -> Versions:
    """Return every version of the study's lock up to HEAD, and the one on disk."""
    past, path = state.past, state.study.lock_path
    on_disk = {hashlib.sha256(path.read_bytes()).hexdigest(): None} if path.is_file() else {}
    if isinstance(past, NoPast):
        return Versions(commits=dict(on_disk), is_whole=past.is_empty)
    committed = dict(_committed(past, state.study.id))
    return Versions(commits={**on_disk, **committed}, is_whole=not past.repository.shallow)


def _committed(past: Past, study: str) -> Iterator[tuple[str, str]]:
    """Yield digest and first commit of each version that is a lock of the study."""
    changes = ((commit.id, change) for commit in past.commits for change in commit.changes)
    # The newest commits come first, so the oldest that has a version stays.
    first = {change.blob: commit for commit, change in changes if change.path.endswith(LOCKS[1:])}
    for commit, data in zip(first.values(), past.repository.contents(first), strict=True):
        lock = None if data is None else registered(data)
        if data is not None and lock is not None and lock.study == study:
            yield hashlib.sha256(data).hexdigest(), commit
