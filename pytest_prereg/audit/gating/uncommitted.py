"""What of a study is not in the work tree, or in the index, as a commit has it.

Files are read and compared here: ``git status`` would start what a clone's configuration names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.history.git import blob_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_prereg.audit.history.git import Repository

_EVIDENCE = ".jsonl"


def uncommitted(
    repository: Repository, commit: str, files: Iterable[str], folder: str | None
) -> Iterator[str]:
    """Yield places, from the root, that are not as a commit has them.

    Args:
        repository: With its work tree.
        commit: That is checked out.
        files: Places of files.
        folder: Where evidence is kept: of that it is asked alone whether it is there.
    """
    places = list(dict.fromkeys(files))
    known = repository.names(f"{commit}:{place}" for place in places)
    staged = repository.staged(places)
    for place, blob in zip(places, known, strict=True):
        if staged.get(place) != blob or not _is_as(repository, place, blob):
            yield place
    if folder is not None and _names(repository, folder) != {*repository.blobs_at(commit, folder)}:
        yield folder


def _is_as(repository: Repository, place: str, blob: str | None) -> bool:
    """Whether a file has a content, be it with line ends of another system; where there is none, nothing."""
    try:
        data = (repository.root / place).read_bytes()
    except OSError:
        return blob is None
    texts = (data, data.replace(b"\r\n", b"\n"))
    return blob in [blob_id(text, repository.algorithm) for text in texts]


def _names(repository: Repository, folder: str) -> set[str]:
    root = repository.root
    return {path.relative_to(root).as_posix() for path in (root / folder).rglob(f"*{_EVIDENCE}")}
