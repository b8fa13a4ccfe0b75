"""Whether the work tree still has the evidence that HEAD has: it may have grown since, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.git import blob_id
from pytest_prereg.errors import Problem
from pytest_prereg.evidence.naming import SUFFIX, shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_prereg.audit.git import Repository


def check_committed(repository: Repository | None, folder: Path) -> list[Problem]:
    """Return a problem for each session file that HEAD has below ``folder`` and that is gone or altered.

    Without a repository or a commit there is nothing to compare with.
    """
    if repository is None or repository.head() is None:
        return []
    place = repository.relative(folder)
    blobs = repository.blobs_at("HEAD", place) if place is not None else {}
    committed = {repository.root / path: blob for path, blob in blobs.items() if path.endswith(SUFFIX)}
    return list(_altered(repository, committed))


def _altered(repository: Repository, committed: dict[Path, str]) -> Iterator[Problem]:
    present = {path: path.read_bytes() for path in committed if path.is_file()}
    other = {
        path: blob
        for path, blob in committed.items()
        if path not in present or blob_id(present[path], repository.algorithm) != blob
    }
    for path, before in zip(other, repository.contents(other.values()), strict=True):
        if path not in present:
            yield _problem(path, "is gone")
        elif before is None or not present[path].startswith(before):
            yield _problem(path, "is not what was committed")


def _problem(path: Path, what: str) -> Problem:
    return Problem(
        code="PR207",
        message=f'evidence "{path.parent.name}/{path.name}" {what}',
        path=shown(path),
        advice=f"Bring it back: git checkout HEAD -- {shown(path)}\n"
        "What must not count is excluded with a reason, never removed.",
    )
