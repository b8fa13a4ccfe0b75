"""The study that a gate is about, in the trees of both commits, wherever either has it."""

from __future__ import annotations

import contextlib
import os
import posixpath
import tomllib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.audit.auditing import audit_study
from pytest_prereg.audit.finding import Finding, Level, sound
from pytest_prereg.audit.gating.beside import beside
from pytest_prereg.audit.gating.sides import Base, Side
from pytest_prereg.audit.gating.trees import tree_of
from pytest_prereg.audit.history.git import Repository
from pytest_prereg.audit.history.revisions import place_of
from pytest_prereg.errors import PreregError, Problem, StudyError, UsageError
from pytest_prereg.evidence.naming import shown
from pytest_prereg.judge.findings import plural
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.lock import parse_lock
from pytest_prereg.registry.refusals import quoted, typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from pytest_prereg.audit.gating.ends import Ends
    from pytest_prereg.audit.gating.trees import Tree
    from pytest_prereg.registry.lock import Lock

_ONE, _MANY, _TOML = "predictions.toml", "predictions", ".toml"


class Place(msgspec.Struct, kw_only=True, frozen=True):
    """A commit, and the folder from which its files are looked at."""

    repository: Repository
    commit: str
    refs: Mapping[str, str]
    """Branches and tags that are known of there, by full name."""
    here: str
    """From the root."""

    @contextlib.contextmanager
    def written(self, like: Tree | None = None) -> Iterator[Tree]:
        """Yield a tree of that commit, which shares with another one what both have, while it lasts."""
        with tree_of(self.repository, self.commit, self.refs, like) as tree:
            (tree.folder / self.here).mkdir(parents=True, exist_ok=True)
            yield tree

    def entered(self, tree: Tree) -> AbstractContextManager[None]:
        """Be where the current folder would be in the tree of that commit."""
        return contextlib.chdir(tree.folder / self.here)

    def file(self, place: str) -> Path:
        """A file, by its place from the root, as it is seen from the folder in which this is entered."""
        return Path(posixpath.relpath(place, self.here or "."))


class Wanted(msgspec.Struct, kw_only=True, frozen=True):
    """Which study a gate is asked about: a file, or the only study of a folder, from the root."""

    place: str
    is_file: bool

    def found(self, repository: Repository, commit: str) -> list[str]:
        """Return where a commit has it: more than one place where a folder has several."""
        if self.is_file:
            several = [self.place]
        else:
            folder = posixpath.join(self.place, _MANY)
            beside = (one for one in repository.blobs_at(commit, folder) if one.endswith(_TOML))
            many = sorted(one for one in beside if posixpath.dirname(one) == folder)
            several = [posixpath.join(self.place, _ONE), *many]
        known = repository.names(f"{commit}:{place}" for place in several)
        return [place for place, blob in zip(several, known, strict=True) if blob is not None]


def is_file(repository: Repository, place: str, ends: Ends) -> bool:
    """Whether a place is a file's at head, or was at the base; what is nowhere is taken for one."""
    found = [next(repository.contents([f"{commit}:{place}"])) for commit in (ends.head, ends.base)]
    is_folder = any(repository.blobs_at(commit, place) for commit in (ends.head, ends.base))
    return any(one is not None for one in found) or not is_folder


def places(repository: Repository, wanted: Wanted, ends: Ends) -> tuple[str | None, str | None]:
    """Return where base and head have the study; ``None`` for one that has it nowhere.

    It is known by its id: one that was moved is the same.

    Raises:
        UsageError: There is none at either, or more than one (PR100).
    """
    before, after = wanted.found(repository, ends.base), wanted.found(repository, ends.head)
    if len(several := after or before) != 1:
        raise UsageError(_not_one(several, wanted))
    (place,) = several
    if after:
        return _same(repository, (ends.head, ends.base), place), place
    return place, _same(repository, (ends.base, ends.head), place)


def _same(repository: Repository, commits: tuple[str, str], place: str) -> str | None:
    """Return where the second commit has the study that the first one has at a place."""
    here, there = commits
    study = id_at(repository, here, place)
    if study is not None and (found := place_of(repository, there, study, place)) is not None:
        return found
    is_there = next(repository.names([f"{there}:{place}"])) is not None
    is_unknown = study is None or id_at(repository, there, place) is None
    return place if is_there and is_unknown else None


def id_at(repository: Repository, commit: str, place: str) -> str | None:
    """Return the id of the study that a commit's file is of; ``None`` where it does not say so."""
    try:
        text = (next(repository.contents([f"{commit}:{place}"])) or b"").decode()
        head = tomllib.loads(text).get("study")
    except (ValueError, RecursionError):
        return None
    found = head.get("id") if isinstance(head, dict) else None
    return found if isinstance(found, str) else None


def side_of(place: Place, file: str, roots: Path | None) -> Side:
    """Return a study as a commit has it, and what an audit says of it there; to be called inside of it.

    Raises:
        PreregError: It can't be loaded, or its lock can't be read.
    """
    state = StudyState(load_study(place.file(file)))
    state.anchor_roots = roots
    audit = audit_study(state)
    assert state.repository is not None
    tree = f"{state.repository.root}/"
    return Side(
        state=state, audit=replace(audit, findings=tuple(_from_here(one, tree) for one in audit.findings))
    )


def _from_here(finding: Finding, tree: str) -> Finding:
    """Return a finding without the folder of a tree, which is another one each time, and soon gone."""
    path = finding.path
    if path is not None and Path(path).is_absolute():
        path = os.path.relpath(path)
    texts = {
        name: text.replace(tree, "")
        for name in ("message", "about", "advice")
        if (text := getattr(finding, name))
    }
    return replace(finding, path=path, **texts)


@contextlib.contextmanager
def base_of(
    place: Place, file: str | None, roots: Path | None
) -> Iterator[tuple[Tree | None, Callable[[], Base]]]:
    """Yield the tree of the merge base, and how to have what there was of a study, which takes a while."""
    if file is None:
        yield None, Base
        return
    with place.written() as tree, beside(partial(_base, place, tree, file, roots)) as base:
        yield tree, base


def _base(place: Place, tree: Tree, file: str, roots: Path | None) -> Base:
    """Return what there was of a study at the merge base; of one that can't be audited what its lock says."""
    with place.entered(tree):
        try:
            return Base.of(side_of(place, file, roots))
        except PreregError as error:
            lock = _lock(place.repository, place.commit, file)
            return Base(commit=place.commit, lock=lock, unread=(_unread(error),))


def _lock(repository: Repository, commit: str, place: str) -> Lock | None:
    data = next(repository.contents([f"{commit}:{_lock_of(place)}"]))
    with contextlib.suppress(PreregError):
        return None if data is None else parse_lock(data, place)
    return None


def _unread(error: PreregError) -> Finding:
    problem = error.problems[0]
    message = f"the study at the base can't be looked at, so all that stands is told: {problem.message}"
    return Finding(code=problem.code, id="", level=Level.NOTICE, message=sound(message))


def removed(repository: Repository, commit: str, place: str) -> PreregError:
    """Return PR203: the study that a commit has at a place is nowhere any more.

    One of which nothing was ever registered may go; there is nothing to gate then (PR100).
    """
    name = quoted(id_at(repository, commit, place) or place)
    if not _has_lock(repository, commit, place):
        message = f"study {name} is gone, and nothing of it was registered: there is nothing to gate"
        return UsageError(Problem(code="PR100", message=message, advice="Take its gate out of the workflow."))
    message, advice = _gone(repository, commit, place)
    path = shown(repository.root / place)
    return StudyError(Problem(code="PR203", path=path, message=message, advice=advice))


def left(repository: Repository, wanted: Wanted, ends: Ends, study: str) -> Iterator[Finding]:
    """Yield what became of each study that the base has where one was looked for, and another was found.

    Args:
        repository: That has both commits.
        wanted: What was looked for.
        ends: The commits.
        study: The id of what is compared.
    """
    for place in wanted.found(repository, ends.base):
        other = id_at(repository, ends.base, place)
        if other in (None, study) or not _has_lock(repository, ends.base, place):
            continue
        now = place_of(repository, ends.head, other, place)
        if now is not None and now in wanted.found(repository, ends.head):
            continue
        if now is None:
            message, advice = _gone(repository, ends.base, place)
        else:
            message = f"study {quoted(other)} is no longer where it is looked for: it lies at {quoted(now)}"
            advice = f"It has a gate of its own: --study {typed(now)}"
        path = shown(Path(place))
        yield Finding(
            code="PR203", id=other, level=Level.ERROR, message=sound(message), path=path, advice=advice
        )


def _gone(repository: Repository, commit: str, place: str) -> tuple[str, str]:
    """Return that a study is nowhere any more, and how to bring it back."""
    lock = _lock(repository, commit, place)
    count = plural(len(lock.predictions), "registered prediction") if lock else "its predictions"
    name = quoted(id_at(repository, commit, place) or place)
    files = f"{typed(place)} {typed(_lock_of(place))}"
    advice = (
        "Put it back: what is given up is withdrawn with a reason, never removed. "
        f"git checkout {commit[:8]} -- {files}"
    )
    return f"study {name} is gone, and {count} with it", advice


def _has_lock(repository: Repository, commit: str, place: str) -> bool:
    return next(repository.names([f"{commit}:{_lock_of(place)}"])) is not None


def _lock_of(place: str) -> str:
    return f"{posixpath.splitext(place)[0]}.lock"


def _not_one(found: list[str], wanted: Wanted) -> Problem:
    if found:
        names = ", ".join(found)
        message = f"there are {len(found)} studies here; name one with --study: {names}"
        return Problem(code="PR100", message=message)
    what = wanted.place if wanted.is_file else posixpath.join(wanted.place, "predictions.toml")
    advice = "A file that was committed: --study FILE."
    return Problem(code="PR100", message=f"neither commit has {quoted(what)}", advice=advice)
