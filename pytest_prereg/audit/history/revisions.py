"""A study as it was at a commit, from git's objects alone: no file of the work tree is read or touched.

Only what loading needs is written to a temporary folder, the prediction file and the modules that its
experiments may be declared in; these are looked at by their syntax trees, and nothing is imported.
"""

from __future__ import annotations

import posixpath
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import tomli_w
from msgspec.structs import replace

from pytest_prereg.audit.comparing.changes import Revision
from pytest_prereg.audit.history.toml_parts import tables
from pytest_prereg.errors import PreregError
from pytest_prereg.registry.digest import registration_digest
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.refusals import quoted
from pytest_prereg.registry.sources import DEFAULT_FOLDER
from pytest_prereg.registry.tables import StudyTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_prereg.audit.history.chronicle import Chronicle
    from pytest_prereg.audit.history.git import Repository
    from pytest_prereg.audit.history.past import Past
    from pytest_prereg.registry.model import Experiment, Study

_TOML, _LOCK, _MODULE = ".toml", ".lock", ".py"
_SUBMODULE = 0o160000
_ID = re.compile(r"[a-z0-9][a-z0-9_-]*")
_EVIDENCE: str = StudyTable(id="x").evidence


class NoRevision(msgspec.Struct, kw_only=True, frozen=True):
    """A study, or a prediction of it, as it was can't be had any more, and why."""

    why: str
    """One sentence, for people."""


def study_at(repository: Repository, commit: str, study: str, hint: str | None) -> Study | NoRevision:
    """Return a study as a commit has it, or why that can't be had.

    Experiments that are declared through symbolic links, or in a submodule, are not found.

    Args:
        repository: Where to look.
        commit: Its object name.
        study: The study's id.
        hint: Where its prediction file may be, from the root of the repository; else it is looked for.
    """
    files = _files(repository, commit, study, hint, {})
    return files if isinstance(files, NoRevision) else _loaded(files, repository.root)


def place_of(repository: Repository, commit: str, study: str, hint: str | None) -> str | None:
    """Return where a commit has the prediction file of a study; ``None`` where it has none.

    Args:
        repository: Where to look.
        commit: Its object name.
        study: The study's id.
        hint: Where the file may be, from the root of the repository; else it is looked for.
    """
    found = _prediction_file(repository, commit, study, hint)
    return found[0] if found else None


class _Files(msgspec.Struct, kw_only=True, frozen=True):
    """What loading a study takes, as a commit has it."""

    place: str
    """Of the prediction file, from the root of the repository."""
    text: bytes
    table: dict[str, Any]
    """What the prediction file says."""
    modules: dict[str, bytes]


_Texts = dict[str, bytes]
"""What is known of modules, by the name that git has for their content."""


def _files(
    repository: Repository, commit: str, study: str, hint: str | None, known: _Texts
) -> _Files | NoRevision:
    found = _prediction_file(repository, commit, study, hint)
    if found is None:
        return NoRevision(why=f"no prediction file of study {quoted(study)} is there")
    place, text, table = found
    if any(root.startswith("../") for root in _roots(posixpath.dirname(place), _entries(table))):
        return NoRevision(why="its experiments lie outside of the repository")
    modules = _modules(repository, commit, place, table, known)
    return _Files(place=place, text=text, table=table, modules=modules)


def _loaded(files: _Files, to: Path) -> Study | NoRevision:
    """Load a study from a folder of its own, as if that were a work tree."""
    try:
        with tempfile.TemporaryDirectory(prefix="prereg-") as folder:
            root = Path(folder).resolve()
            _write(root, {files.place: files.text, **files.modules})
            return _moved(load_study(root / files.place), root, to)
    except PreregError as error:
        return NoRevision(why=f"it no longer loads: {error.problems[0].message}")
    except OSError as error:
        return NoRevision(why=f"its files can't be written anew: {error.strerror}")


class Revisions:
    """A study's earlier versions; each is loaded once, when it is asked for."""

    def __init__(self, repository: Repository, study: str, hint: str | None) -> None:
        self.repository = repository
        self.study = study
        self.hint = hint
        self._files: dict[str, _Files | NoRevision] = {}
        self._texts: _Texts = {}
        self._loaded: dict[str, Study | NoRevision] = {}
        self._digests: dict[tuple[str, str], str] = {}

    @classmethod
    def of(cls, past: Past, study: Study) -> Revisions:
        """Return the versions of a study in the history that was read for it."""
        return cls(past.repository, study.id, past.repository.relative(study.path))

    def at(self, commit: str) -> Study | NoRevision:
        """Return the study as a commit has it, as :func:`study_at` does."""
        if commit not in self._loaded:
            files = self._files_at(commit)
            self._loaded[commit] = (
                files if isinstance(files, NoRevision) else _loaded(files, self.repository.root)
            )
        return self._loaded[commit]

    def registered(self, commits: Iterable[str], prediction: str, digest: str) -> Revision | NoRevision:
        """Return a prediction as a digest registers it, from the first of some commits whose text it is of.

        A lock may be committed before its text, after it, or beside another one: that the lock of a commit
        has the digest does not say that its prediction file does.
        """
        missing = NoRevision(why="no commit has it")
        for commit in dict.fromkeys(commits):
            if part := self._in_part(commit, prediction, digest):
                return part
            study = self.at(commit)
            if isinstance(study, NoRevision):
                missing = study
            elif self._digest(commit, study, prediction) == digest:
                return Revision(study=study, prediction=study.predictions[prediction])
            else:
                missing = NoRevision(why="the text committed beside the lock is not what that registers")
        return missing

    def whole(self, commits: Iterable[str], prediction: str, digest: str) -> Study | NoRevision:
        """Return all of the study as the first of some commits has it that has the text of a digest."""
        for commit in dict.fromkeys(commits):
            study = self.at(commit)
            if not isinstance(study, NoRevision) and self._digest(commit, study, prediction) == digest:
                return study
        return NoRevision(why="no commit has it")

    def _in_part(self, commit: str, prediction: str, digest: str) -> Revision | None:
        """Return the prediction with no more of its study than it names, if that gives the very digest.

        Then nothing that binds is missing, and the rest, which may be hundreds of predictions, is not needed.
        """
        files = self._files_at(commit)
        if commit in self._loaded or isinstance(files, NoRevision):
            return None
        study = _loaded(replace(files, text=_part(files.table, prediction)), self.repository.root)
        if isinstance(study, NoRevision) or prediction not in study.predictions:
            return None
        if registration_digest(study, study.predictions[prediction]) != digest:
            return None
        return Revision(study=study, prediction=study.predictions[prediction])

    def _files_at(self, commit: str) -> _Files | NoRevision:
        if commit not in self._files:
            self._files[commit] = _files(self.repository, commit, self.study, self.hint, self._texts)
        return self._files[commit]

    def _digest(self, commit: str, study: Study, prediction: str) -> str | None:
        if prediction not in study.predictions:
            return None
        key = commit, prediction
        if key not in self._digests:
            self._digests[key] = registration_digest(study, study.predictions[prediction])
        return self._digests[key]


def commits_with(record: Chronicle, prediction: str, digest: str) -> list[str]:
    """Return commits whose text may be what a digest registers: those that brought it in, and HEAD.

    A text may have been committed after the lock that registers it.
    """
    changes = (one for one in record.changes if one.id == prediction and one.after is not None)
    found = [one.commit for one in changes if one.commit and one.after and one.after.digest == digest]
    return [*found, "HEAD"]


_Found = tuple[str, bytes, dict[str, Any]]
"""Where a prediction file is, its text, and what that says."""


def _prediction_file(repository: Repository, commit: str, study: str, hint: str | None) -> _Found | None:
    if hint is not None and (found := _of_study(repository, commit, study, [hint])):
        return found
    places = set(repository.files_at(commit))
    beside = sorted(place for place in places if place.endswith(_TOML) and _locked(place) in places)
    return _of_study(repository, commit, study, beside)


def _part(table: dict[str, Any], prediction: str) -> bytes:
    """Return the text of a study with one prediction, and all predictions and experiments that this names.

    Whatever word in it reads like an id is taken for one: too much does no harm.
    """
    predictions, experiments = (_tables(table, kind) for kind in ("predictions", "experiments"))
    words = {prediction.partition("[")[0], *_words(table.get("instruments"))}
    kept: set[str] = set()
    while new := (words & predictions.keys()) - kept:
        kept |= new
        words.update(word for name in new for word in _words(predictions[name]))
    part = {
        **table,
        "predictions": {name: one for name, one in predictions.items() if name in kept},
        "experiments": {name: one for name, one in experiments.items() if name in words},
    }
    return tomli_w.dumps(part).encode()


def _tables(table: dict[str, Any], kind: str) -> dict[str, Any]:
    found = table.get(kind)
    return found if isinstance(found, dict) else {}


def _words(value: object) -> Iterator[str]:
    """Yield what may be an id in any text below a value."""
    if isinstance(value, str):
        yield from _ID.findall(value)
    elif isinstance(value, dict):
        yield from (word for each in value.values() for word in _words(each))
    elif isinstance(value, list):
        yield from (word for each in value for word in _words(each))


def _locked(place: str) -> str:
    return place.removesuffix(_TOML) + _LOCK


def _of_study(repository: Repository, commit: str, study: str, places: Sequence[str]) -> _Found | None:
    """Return the first of some files that is one of the study's."""
    texts = repository.contents(f"{commit}:{place}" for place in places)
    for place, text in zip(places, texts, strict=True):
        table = _table(text)
        head = table.get("study")
        if text is not None and isinstance(head, dict) and head.get("id") == study:
            return place, text, table
    return None


def _table(text: bytes | None) -> dict[str, Any]:
    """Return what a TOML file says; nothing where it is none."""
    try:
        return tables((text or b"").decode("utf-8"))
    except (ValueError, RecursionError):
        return {}


def _modules(
    repository: Repository, commit: str, place: str, table: dict[str, Any], known: _Texts
) -> dict[str, bytes]:
    """Return the modules that a study's experiments may be declared in, by path; few commits change any."""
    experiments = table.get("experiments")
    several = experiments.values() if isinstance(experiments, dict) else ()
    if not any(isinstance(one, dict) and "fixture" in one for one in several):
        return {}
    folder = posixpath.dirname(place)
    head = table["study"]
    roots = set(_roots(folder, _entries(table)))
    folders = tuple(root for root in roots if root.endswith("/") or not root)
    evidence = f"{posixpath.normpath(posixpath.join(folder, str(head.get('evidence', _EVIDENCE))))}/"
    found = {
        path: blob
        for path, mode, blob in repository.tree(commit)
        if mode != _SUBMODULE
        and (
            path in roots
            or (path.endswith(_MODULE) and path.startswith(folders) and not path.startswith(evidence))
        )
    }
    new = {blob: path for path, blob in found.items() if blob not in known}
    texts = repository.contents(f"{commit}:{path}" for path in new.values())
    known.update((blob, text) for blob, text in zip(new, texts, strict=True) if text is not None)
    return {path: known[blob] for path, blob in found.items() if blob in known}


def _entries(table: dict[str, Any]) -> object:
    return table["study"].get("experiments", [DEFAULT_FOLDER])


def _roots(folder: str, entries: object) -> Iterator[str]:
    """Yield the files, and beginnings of paths, that entries of ``[study].experiments`` may mean."""
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, str):
            dotted = posixpath.join(folder, *entry.split("."))
            places = (posixpath.join(folder, entry), dotted)
            yield f"{dotted}{_MODULE}"
            for place in map(posixpath.normpath, places):
                yield from (f"{place}/", place) if place != "." else ("",)


def _write(root: Path, files: dict[str, bytes]) -> None:
    """Write files below a folder; one whose path would lead out of it is none of a repository's."""
    for place, text in files.items():
        path = root / place
        if ".." not in path.parts and path.is_relative_to(root):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)


def _moved(study: Study, root: Path, to: Path) -> Study:
    """Return a study as if it had been loaded from the work tree, where its files may not be any more."""
    experiments = {name: _with_source(one, root, to) for name, one in study.experiments.items()}
    return replace(study, path=to / study.path.relative_to(root), experiments=experiments)


def _with_source(experiment: Experiment, root: Path, to: Path) -> Experiment:
    source = experiment.source
    if source is None or source.path is None:
        return experiment
    return replace(experiment, source=replace(source, path=to / source.path.relative_to(root)))
