"""Which commits can show that a prediction was registered before its evidence: those to tag."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.history.past import LOCKS
from pytest_prereg.evidence.model import Header
from pytest_prereg.registry.registered import registered

if TYPE_CHECKING:
    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.history.past import Past

_EVIDENCE = ".jsonl"
TAG = "git switch --detach {commit} && pytest-prereg lock --tag && git switch -"


class Witnessing:
    """The commits that register something of a study, and what evidence each of them comes from."""

    def __init__(self, state: StudyState, past: Past) -> None:
        self._state = state
        self._past = past
        self._behind: dict[str, frozenset[str]] = {}
        self._came: dict[tuple[str, str], set[str]] = {}

    def is_measured(self, commit: str, prediction: str, digest: str) -> bool:
        """Whether a commit has, or had, evidence that was taken for what a digest registers."""
        return not self._brought(prediction, digest).isdisjoint(self._from(commit))

    def bound_at(self, commit: str) -> dict[str, set[str]]:
        """Return what the evidence in a commit's tree was taken for: digests, by prediction.

        It need not be on disk.
        """
        repository = self._past.repository
        places = [path for path in repository.files_at(commit) if path.endswith(_EVIDENCE)]
        found: dict[str, set[str]] = {}
        for text in repository.contents(f"{commit}:{place}" for place in places):
            header = _header(text or b"")
            is_own = header is not None and header.study == self._state.study.id
            for name, digest in header.predictions.items() if header and is_own else ():
                found.setdefault(name, set()).add(digest)
        return found

    def of(self, prediction: str, digest: str) -> str | None:
        """Return the earliest commit that registers a prediction and has no evidence of it.

        It may be on any ref, or on none: one that evidence names is known as long as git keeps it.
        """
        found = (commit for commit, digests in self._registering if digests.get(prediction) == digest)
        return next((one for one in found if not self.is_measured(one, prediction, digest)), None)

    @cached_property
    def _registering(self) -> list[tuple[str, dict[str, str]]]:
        """Commits that brought in locks of the study, with what these register; parents come first."""
        repository, own = self._past.repository, self._state.study.id
        changes = [
            (commit.id, change.blob)
            for commit in repository.history(self._past.graph.parents, (LOCKS,))
            for change in commit.changes
        ]
        texts = repository.contents(blob for _, blob in changes)
        locks = ((commit, registered(text or b"")) for (commit, _), text in zip(changes, texts, strict=True))
        known = [(commit, lock.digests) for commit, lock in locks if lock is not None and lock.study == own]
        return known[::-1]

    def _brought(self, prediction: str, digest: str) -> set[str]:
        """Commits that brought in evidence of a registration."""
        key = prediction, digest
        if key not in self._came:
            files = (file for several in self._state.files.values() for file in several)
            blobs = [
                self._state.blob(file)
                for file in files
                if file.header and file.header.predictions.get(prediction) == digest
            ]
            self._came[key] = {
                each.commit
                for blob in blobs
                for each in (*self._past.came_in(blob), *self._past.elsewhere.get(blob, ()))
            }
        return self._came[key]

    def _from(self, commit: str) -> frozenset[str]:
        if commit not in self._behind:
            self._behind[commit] = self._past.graph.of([commit])
        return self._behind[commit]


def _header(text: bytes) -> Header | None:
    """The first line of a session; ``None`` where it is none, and so was taken for nothing."""
    try:
        return msgspec.json.decode(text.partition(b"\n")[0], type=Header)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
