"""From the ``ref`` of each arm to a commit and a tree, once for a series: later the ref may mean another."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.errors import MeasureError, Problem
from pytest_prereg.evidence.model import Version
from pytest_prereg.evidence.naming import shown
from pytest_prereg.measure.versions.git import GitError, is_there, line
from pytest_prereg.measure.versions.work_tree import KEPT, UntakenError, keep, snapshot
from pytest_prereg.registry.refusals import quoted, typed
from pytest_prereg.registry.toml import positions_of
from pytest_prereg.registry.versions import MERGE_BASE, WORK_TREE, refs_of, version_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pytest_prereg.evidence.model import Series
    from pytest_prereg.registry.model import Experiment, Study

SHORT = 7
"""Digits of a name that people are shown."""
FIRST = "git add --all && git commit -m 'Begin'"
"""How there is a commit, of which a version can be."""


class Resolved(NamedTuple):
    """What the arms of an experiment are, and what a person should know of that."""

    root: Path
    """Of the work tree of the repository."""
    versions: dict[str, Version]
    """By the arm's name in the file."""
    notes: list[str]


def resolve(
    study: Study,
    experiment: Experiment,
    series: Series | None = None,
    *,
    kept: bool = True,
    arms: Collection[str] | None = None,
) -> Resolved | None:
    """Say which version of the code each arm is; ``None`` where arms are no versions.

    Args:
        study: The study.
        experiment: One of its experiments.
        series: The series that is gone on with: its arms are what they were when it began.
        kept: Whether a work tree that no commit has is kept for later sessions.
        arms: Those that are to run, unless all are.

    Raises:
        MeasureError: PR134, all refs that can't be resolved at once.
    """
    refs = refs_of(experiment)
    if arms is not None:
        wanted = {version_name(experiment.arms[arm]) for arm in arms}
        refs = {name: ref for name, ref in refs.items() if name in wanted}
    if not refs:
        return None
    resolver = _Resolver(study, experiment)
    versions = resolver.again(series) if series else resolver.all(refs, kept=kept)
    return Resolved(resolver.root, versions, [*resolver.notes, *_same(versions)])


class _Resolver:
    """Resolves the refs of one experiment."""

    def __init__(self, study: Study, experiment: Experiment) -> None:
        self.study = study
        self.experiment = experiment
        self.notes: list[str] = []
        self._problems: list[Problem] = []
        self.root = self._root()

    def all(self, refs: Mapping[str, str], *, kept: bool) -> dict[str, Version]:
        """Return the version that each ref means now."""
        versions: dict[str, Version] = {}
        by_ref: dict[str, Version] = {}
        for arm, ref in refs.items():
            try:
                versions[arm] = by_ref.get(ref) or self._version(arm, ref, kept=kept)
                by_ref[ref] = versions[arm]
            except _UnresolvedError as error:
                self._problems.append(self._problem(arm, str(error), error.advice))
        self._raise()
        return versions

    def again(self, series: Series) -> dict[str, Version]:
        """Return the versions that a series began with, whatever their refs mean by now."""
        for arm, version in series.trees.items():
            if not is_there(self.root, f"{version.tree}^{{tree}}"):
                message = f"tree {version.tree[:SHORT]}, with which series {series.number} began, is not here"
                self._problems.append(self._problem(arm, message, _gone(series, version)))
        self._raise()
        return series.trees

    def _version(self, arm: str, ref: str, *, kept: bool) -> Version:
        head = self._commit("HEAD", "there is no commit yet", FIRST)
        if ref == WORK_TREE:
            self.notes += [f"{arm} is the work tree, not {name}" for name in self._named(WORK_TREE)]
            return self._work_tree(arm, head, kept=kept)
        revision = ref.removeprefix(MERGE_BASE)
        self._refuse_several(revision)
        commit = self._commit(
            revision, f"{quoted(ref)} names no commit of this repository", _fetched(revision)
        )
        if revision != ref:
            commit = self._merge_base(arm, ref, head, commit)
        tree = self._asked("rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}")
        return Version(ref=ref, commit=commit, tree=tree)

    def _work_tree(self, arm: str, head: str, *, kept: bool) -> Version:
        try:
            found = snapshot(self.root, self.study)
        except GitError as error:
            raise _UnresolvedError(f"what is in the work tree can't be taken down: {error}") from error
        except UntakenError as error:
            raise _UnresolvedError(str(error), error.advice) from error
        for path in found.unkept:
            self.notes.append(f"new files in {quoted(path)} are left out: it is a repository of its own")
        if not found.differing:
            tree = self._asked("rev-parse", "--verify", "--quiet", f"{head}^{{tree}}")
            return Version(ref=WORK_TREE, commit=head, tree=tree)
        if kept:
            self._kept(found.tree, head)
        count = f"{found.differing} file{'s' * (found.differing != 1)}"
        self.notes.append(f"{arm} is the work tree, which differs from {head[:SHORT]} in {count}")
        return Version(ref=WORK_TREE, commit=head, tree=found.tree, dirty=True)

    def _kept(self, tree: str, head: str) -> None:
        try:
            keep(self.root, tree, head)
        except GitError as error:
            raise _UnresolvedError(f"what is in the work tree can't be kept: {error}") from error

    def _merge_base(self, arm: str, ref: str, head: str, other: str) -> str:
        """Return the commit at which HEAD left another; of several the one that ``git merge-base`` takes."""
        try:
            bases = line(self.root, "merge-base", "--all", head, other).split()
        except GitError:
            bases = []
        if not bases:
            raise _UnresolvedError(
                f"{quoted(ref)}: HEAD and it have no commit in common here", self._shallow()
            )
        best = self._asked("merge-base", head, other)
        if len(bases) > 1:
            several = f"HEAD and {ref.removeprefix(MERGE_BASE)} have {len(bases)} merge bases"
            self.notes.append(f"{arm} is {best[:SHORT]}: {several}, and git merge-base takes that one")
        return best

    def _refuse_several(self, revision: str) -> None:
        """Refuse a name that a branch and a tag both have: git would take the tag, and tell nobody here."""
        name = re.split(r"[~^]|@\{", revision, maxsplit=1)[0]
        several = self._named(name)
        if len(several) > 1:
            message = f"{quoted(name)} is {len(several)} things: {' and '.join(several)}"
            raise _UnresolvedError(message, "Write the one that is meant in full.")

    def _named(self, name: str) -> list[str]:
        """Return the full names of tags and branches, those of remotes as well, that a name may mean."""
        places = [f"refs/{kind}/{name}" for kind in ("tags", "heads", "remotes")]
        found = self._asked("for-each-ref", "--format=%(refname)", *places).split("\n")
        return [place for place in places if place in found]

    def _commit(self, revision: str, otherwise: str, advice: str | None = None) -> str:
        try:
            return line(self.root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        except GitError as error:
            raise _UnresolvedError(otherwise, self._shallow() or advice) from error

    def _asked(self, *arguments: str) -> str:
        try:
            return line(self.root, *arguments)
        except GitError as error:
            raise _UnresolvedError(str(error)) from error

    def _shallow(self) -> str | None:
        """Return how to have what a shallow clone lacks; ``None`` for a whole one."""
        try:
            is_shallow = line(self.root, "rev-parse", "--is-shallow-repository") == "true"
        except GitError:
            return None
        return "This clone is shallow: git fetch --unshallow (in CI: fetch-depth: 0)" if is_shallow else None

    def _root(self) -> Path:
        try:
            return Path(line(self.study.folder.resolve(), "rev-parse", "--show-toplevel"))
        except GitError as error:
            arm = next(iter(refs_of(self.experiment)))
            message = f'"ref" needs a git repository around the study: {error}'
            advice = None if found_above(self.study.folder) else f"git init\n{FIRST}"
            raise MeasureError(self._problem(arm, message, advice)) from error

    def _problem(self, arm: str, message: str, advice: str | None) -> Problem:
        return problem_of_arm(self.study, self.experiment, arm, message, code="PR134", advice=advice)

    def _raise(self) -> None:
        if self._problems:
            raise MeasureError(self._problems)


def found_above(folder: Path) -> bool:
    """Whether there is a repository, though git says nothing of it."""
    here = folder.resolve()
    return any((place / ".git").exists() for place in (here, *here.parents))


def problem_of_arm(
    study: Study,
    experiment: Experiment,
    arm: str,
    message: str,
    *,
    code: str,
    advice: str | None = None,
    tree: str | None = None,
) -> Problem:
    """A problem at the line of an arm's ``ref``, with the ``tree`` that it is, as soon as that is known."""
    version = f" ({tree[:SHORT]})" if tree else ""
    where = f"experiment {quoted(experiment.id)}, arm {quoted(arm)}{version}"
    return Problem(
        code=code,
        path=shown(study.path),
        line=positions_of(study.path).line("experiments", experiment.id, "arms", arm, "ref"),
        message=f"{where}: {message}",
        advice=advice,
    )


class _UnresolvedError(Exception):
    """Why a ref can't be resolved."""

    def __init__(self, message: str, advice: str | None = None) -> None:
        super().__init__(message)
        self.advice = advice


def _same(versions: Mapping[str, Version]) -> Iterator[str]:
    """Say which arms are one tree, as they are in a trial of what the machine makes of no difference."""
    by_tree: dict[str, list[str]] = {}
    for arm, version in versions.items():
        by_tree.setdefault(version.tree, []).append(arm)
    for arms in by_tree.values():
        if len(arms) > 1:
            yield f"{', '.join(arms[:-1])} and {arms[-1]} are one tree"


def _fetched(revision: str) -> str | None:
    """Return how to have a branch of a remote, if it looks like one."""
    remote, _, branch = revision.partition("/")
    return f"git fetch {typed(remote)} {typed(branch)}" if branch else None


def _gone(series: Series, version: Version) -> str:
    """Return how to have a tree again, or to do without it."""
    name = f"{KEPT}{version.tree}" if version.dirty else version.commit
    return (
        f"Fetch it from the clone that began the series: git fetch REPOSITORY {name}\n"
        f"or give the series up: pytest-prereg void {series.experiment}/{series.number} --reason '…'"
    )
