"""Tags of the lock, ``prereg/<study>/<digest8>``: they keep a commit that has it and no evidence yet.

When a branch is squashed, registration and evidence arrive in one commit. A tag that was made between them
keeps what was there before, and shows that there was an order.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.git import Repository
from pytest_prereg.audit.past import LOCKS, WITNESSES
from pytest_prereg.errors import HistoryError, Problem, StudyError
from pytest_prereg.registry.canonical import canonical_json
from pytest_prereg.registry.refusals import quoted
from pytest_prereg.registry.registered import Registered, registered
from pytest_prereg.registry.toml import shown

if TYPE_CHECKING:
    from pytest_prereg.registry.model import Study

_DIGITS = 8


class Tagged(msgspec.Struct, kw_only=True, frozen=True):
    """A tag of a lock."""

    name: str
    commit: str
    """What it names: an earlier commit than HEAD where the same was tagged before, the better witness."""
    is_new: bool


def tag(study: Study, commit_command: str) -> Tagged:
    """Tag HEAD as having a study's lock, unless the same registrations are tagged already.

    The tag is a lightweight one: it needs nobody's name, and says no date.

    Args:
        study: Whose lock it is.
        commit_command: What commits it, for where it is not.

    Raises:
        StudyError: HEAD does not have the lock as it is on disk, or the tag is taken (PR107).
        HistoryError: Git can't tell (PR212).
    """
    repository, head, lock = _at_head(study, commit_command)
    name = tag_name(lock)
    full = f"refs/tags/{name}"
    target, commit = repository.names([full, f"{full}^{{commit}}"])
    if target is None:
        return _made(study, repository, name, head)
    if commit is None or lock not in _locks_at(repository, commit):
        what = "names something else than these registrations"
        raise StudyError(_problem(study, f"tag {quoted(name)} {what}", f"git tag --delete {name}"))
    return Tagged(name=name, commit=commit, is_new=False)


def tag_name(lock: Registered) -> str:
    """Name of the tag of what a lock registers, whatever else it records.

    Its last part are the first eight hex digits of SHA-256 over the canonical JSON (RFC 8785) of the list of
    ``[id, registration digest]``, sorted by id.
    """
    pairs = sorted(lock.digests.items())
    digest = hashlib.sha256(canonical_json(pairs)).hexdigest()
    return f"{WITNESSES.format(study=lock.study).removeprefix('refs/tags/')}{digest[:_DIGITS]}"


def _at_head(study: Study, commit_command: str) -> tuple[Repository, str, Registered]:
    """Return the repository, its HEAD, and what the lock there registers: the one that is on disk."""
    path = study.lock_path
    repository = Repository.find(study.folder)
    head = repository.head() if repository is not None else None
    if repository is None or head is None:
        raise StudyError(_problem(study, "nothing is committed yet, so nothing was tagged", commit_command))
    there = repository.file_at(head, path)
    lock = registered(there) if there is not None else None
    if lock is None or not path.is_file() or path.read_bytes() != there:
        message = f"{shown(path)} is not what HEAD ({head[:8]}) has, so nothing was tagged"
        raise StudyError(_problem(study, message, commit_command))
    return repository, head, lock


def _made(study: Study, repository: Repository, name: str, commit: str) -> Tagged:
    try:
        repository.make_tag(name, commit)
    except HistoryError as error:
        message = f"tag {quoted(name)} can't be made: {error.problems[0].message}"
        raise StudyError(_problem(study, message, "git tag --list 'prereg*'")) from error
    return Tagged(name=name, commit=commit, is_new=True)


def _locks_at(repository: Repository, commit: str) -> list[Registered]:
    """Return what the locks in a commit's tree register, wherever they lie."""
    places = [path for path in repository.files_at(commit) if path.endswith(LOCKS)]
    texts = repository.contents(f"{commit}:{place}" for place in places)
    return [lock for text in texts if text is not None and (lock := registered(text)) is not None]


def _problem(study: Study, message: str, advice: str) -> Problem:
    return Problem(code="PR107", path=str(study.lock_path), message=message, advice=advice)
