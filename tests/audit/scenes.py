"""Repositories with the lock and the evidence of a study, one commit after another, and what order that gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_prereg.audit.history.git import Repository
from pytest_prereg.audit.history.order import EvidenceRef, Order, blob_id, grade_all
from pytest_prereg.audit.history.past import NoPast, Past
from pytest_prereg.registry.lock import Lock, LockEntry, render_lock
from pytest_prereg.registry.model import Study
from pytest_prereg.registry.tables import StudyTable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from conftest import GitRepository

FIRST, OTHER, CLAIM = (f"sha256:{digit * 64}" for digit in "123")


@dataclass
class Scene:
    """A repository with a study of one prediction, ``p``, in a folder of it."""

    repository: GitRepository
    folder: str = ""
    study: str = "latency"

    def register(self, digest: str = FIRST, prediction: str = "p", **others: str) -> None:
        """Writes the lock, and commits nothing."""
        entries = {prediction: digest, **others}
        lock = Lock(
            study=self.study,
            predictions={
                name: LockEntry(digest=each, claim=CLAIM, registered="2026-01-01", unit="1")
                for name, each in entries.items()
            },
        )
        self.repository.write(f"{self.folder}predictions.lock", render_lock(lock))

    def measure(self, name: str = "a.jsonl", text: str = "one\n") -> Path:
        """Writes a file of evidence, and commits nothing."""
        return self.repository.write(f"{self.folder}experiments/evidence/{name}", text)

    def commit(self, message: str = "x") -> str:
        return self.repository.commit(message)

    def grade(self, *files: Path | EvidenceRef, digest: str = FIRST, prediction: str = "p") -> Order:
        path = self.repository.path / self.folder / "predictions.toml"
        study = Study(
            id=self.study, table=StudyTable(id=self.study), path=path, experiments={}, predictions={}
        )
        repository = Repository.find(path.parent)
        evidence = {
            prediction: [file if isinstance(file, EvidenceRef) else evidence_of(file) for file in files]
        }
        past = past_of(repository, self.study, evidence[prediction])
        return grade_all(past, study, {prediction: digest}, evidence)[prediction]


def past_of(repository: Repository | None, study: str, files: Iterable[EvidenceRef]) -> Past | NoPast:
    """The history, read for these files."""
    files = list(files)
    heads = {file.head for file in files if file.head is not None}
    return Past.read(repository, study, {file.blob: file.path for file in files}, heads)


def evidence_of(
    path: Path, *, head: str | None = None, bound: str | None = FIRST, origin: str = "measured"
) -> EvidenceRef:
    """A file whose header names ``bound`` and was written at ``head``."""
    return EvidenceRef(path=path, blob=blob_id(path.read_bytes()), head=head, origin=origin, bound=bound)
