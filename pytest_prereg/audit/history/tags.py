"""Tags of the lock, ``prereg/<study>/<digest8>``: they keep a commit that has it and no evidence yet.

When a branch is squashed, registration and evidence arrive in one commit. A tag that was made between them
keeps what was there before, and shows that there was an order.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.audit.history.git import Repository
from pytest_prereg.audit.history.past import LOCKS, WITNESSES, NoPast
from pytest_prereg.audit.history.witnessing import TAG, Witnessing
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
    shows: tuple[str, ...] = ()
    """Ids whose evidence the commit has not: of these it can show that they were registered first."""
    late: tuple[str, ...] = ()
    """Ids whose evidence is there already."""


def tag(study: Study, commit_command: str) -> Tagged:
    """Tag HEAD as having a study's lock, unless the same registrations are tagged already.

    The tag is a lightweight one: it needs nobody's name, and says no date.

    Args:
        study: Whose lock it is.
        commit_command: What commits it, for where it is not.

    Raises:
        StudyError: HEAD does not have the lock as it is on disk, the tag is taken, or is on a commit that
            shows less, or HEAD has the evidence of all that it registers (PR107).
        HistoryError: Git can't tell (PR212).
    """
    repository, head, lock = _at_head(study, commit_command)
    name, known = tag_name(lock), _Known(study, lock)
    full = f"refs/tags/{name}"
    target, commit = repository.names([full, f"{full}^{{commit}}"])
    if target is None:
        if known.late(head) and not known.shown(head):
            raise StudyError(_too_late(study, head, known))
        return known.told(_made(study, repository, name, head))
    if commit is None or lock not in _locks_at(repository, commit):
        what = "names something else than these registrations"
        raise StudyError(_problem(study, f"tag {quoted(name)} {what}", f"git tag --delete {name}"))
    if {*known.shown(commit)} < {*known.shown(head)}:
        message = f"tag {quoted(name)} is on {commit[:8]}, which has the evidence already, and shows nothing"
        push = f"git push --force origin {name}"
        raise StudyError(
            _problem(study, message, f"git tag --delete {name} && pytest-prereg lock --tag && {push}")
        )
    if known.late(commit) and not known.shown(commit):
        raise StudyError(_too_late(study, commit, known, name))
    return known.told(Tagged(name=name, commit=commit, is_new=False))


class _Known:
    """What a lock registers, withdrawn predictions apart, and at which commits there is evidence of it."""

    def __init__(self, study: Study, lock: Registered) -> None:
        state = StudyState(study)
        if isinstance(state.past, NoPast):
            raise HistoryError(Problem(code="PR212", path=str(study.lock_path), message=state.past.detail))
        self.witnessing = Witnessing(state, state.past)
        self._late: dict[str, tuple[str, ...]] = {}
        self.digests = {name: one for name, one in lock.digests.items() if not state.is_withdrawn(name)}

    def late(self, commit: str) -> tuple[str, ...]:
        """Ids of which a commit has evidence."""
        if commit not in self._late:
            is_measured, bound = self.witnessing.is_measured, self.witnessing.bound_at(commit)
            self._late[commit] = tuple(
                name
                for name, digest in self.digests.items()
                if digest in bound.get(name, ()) or is_measured(commit, name, digest)
            )
        return self._late[commit]

    def shown(self, commit: str) -> tuple[str, ...]:
        """Ids of which it has none, so that a tag on it shows what came first."""
        late = {*self.late(commit)}
        return tuple(name for name in self.digests if name not in late)

    def told(self, tagged: Tagged) -> Tagged:
        """The tag with what it shows."""
        return replace(tagged, shows=self.shown(tagged.commit), late=self.late(tagged.commit))

    def better(self) -> list[str]:
        """Commits that register something without its evidence."""
        found = (self.witnessing.of(name, digest) for name, digest in self.digests.items())
        return list(dict.fromkeys(one for one in found if one is not None))


def _too_late(study: Study, commit: str, known: _Known, name: str = "") -> Problem:
    """What to tell of a commit that has the evidence of everything, tagged already or not."""
    where = f"tag {quoted(name)} is on {commit[:8]}, which" if name else f"HEAD ({commit[:8]})"
    message = f"{where} has the evidence of all that it registers, so a tag on it shows nothing"
    delete = f"git tag --delete {name} && " if name else ""
    commands = [f"{delete}{TAG.format(commit=one[:_DIGITS])}" for one in known.better()]
    nothing = "No commit that is known here has the registration without the evidence."
    return _problem(study, message, "\n".join(commands) or nothing)


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
