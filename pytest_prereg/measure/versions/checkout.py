"""Versions of the code while an experiment is measured: checked out, built, and removed at its end."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.errors import MeasureError
from pytest_prereg.evidence.git_environment import undirected
from pytest_prereg.measure.executors.classify import signal_name
from pytest_prereg.measure.executors.environment import scrub
from pytest_prereg.measure.executors.text import file_tail
from pytest_prereg.measure.limits import duration_text
from pytest_prereg.measure.versions import environments, submodules, ways, witness
from pytest_prereg.measure.versions.folders import Folder
from pytest_prereg.measure.versions.git import GitError, git, is_there, line
from pytest_prereg.measure.versions.resolving import SHORT, problem_of_arm, resolve
from pytest_prereg.measure.versions.running import run
from pytest_prereg.measure.versions.work_tree import commit_of
from pytest_prereg.registry.refusals import listed, quoted
from pytest_prereg.registry.versions import version_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

    from pytest_prereg.errors import Problem
    from pytest_prereg.evidence.model import Series, Version
    from pytest_prereg.measure.versions.resolving import Resolved
    from pytest_prereg.registry.model import Experiment, Study

DIGITS = 12
"""Of a tree's name, in the names of its folders: as many for every arm, since lengths of paths can tell."""


class Place(NamedTuple):
    """One tree, where it is checked out."""

    tree: Path
    environment: Path
    log: Path
    """What building it printed."""
    witness: Path
    """Modules for Pythons of other environments."""


class Checkout:
    """The versions that an experiment's arms are, each distinct tree once; closed, it may start anew."""

    def __init__(
        self,
        study: Study,
        experiment: Experiment,
        resolved: Resolved,
        *,
        say: Callable[[str], None] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.study = study
        self.experiment = experiment
        self.root = resolved.root
        self.versions = resolved.versions
        self.say = say or (lambda _: None)
        self.environ = scrub(undirected(os.environ if environ is None else environ))[0]
        self._inside = study.folder.resolve().relative_to(self.root)
        self._folder: Folder | None = None
        self._places: dict[str, Place] = {}
        self._built: dict[str, dict[str, tuple[int, ...] | None]] = {}
        """States of the files of each tree when it had been built."""
        self._provided: dict[str, witness.Provided] = {}
        """By tree."""
        self.seconds = 0.0
        """What checking out and building have taken so far."""

    def start(self) -> None:
        """Check out and build every tree, each once.

        Raises:
            MeasureError: PR135, if one can't be; then nothing of any is left.
        """
        began = time.monotonic()
        try:
            self._folder = self._made()
            for tree, arms in self._arms().items():
                self._check_out(tree, arms)
                self._check_untouched(tree, arms[0])
        except BaseException:
            self.close()
            raise
        self.seconds += time.monotonic() - began

    def place_of(self, arm: str) -> tuple[str, dict[str, str]]:
        """Return the folder that an arm is run in, and the variables to set for it."""
        place = self._places[self._version(arm).tree]
        return str(place.tree / self._inside), self._variables(place, self._declared(arm))

    def problem_of(self, arm: str, workdir: Path) -> str | None:
        """Return why a repeat that has ended is none of its version; ``None`` if nothing shows that.

        ``workdir`` is the folder that ``PREREG_TRACES`` named to all that the repeat ran.
        """
        version = self._version(arm)
        others = [one for tree, one in self._provided.items() if tree != version.tree]
        own = self._provided[version.tree]
        return witness.strayed(workdir, own, others, self.root)

    def close(self) -> None:
        """Remove all that was checked out and built; a second call does nothing."""
        folder, self._folder = self._folder, None
        self._places.clear()
        self._provided.clear()
        self._built.clear()
        if folder is not None:
            folder.remove(self.root)

    def _version(self, arm: str) -> Version:
        return self.versions[version_name(self.experiment.arms[arm])]

    def _arms(self) -> dict[str, list[str]]:
        """Return the arms of each distinct tree."""
        found: dict[str, list[str]] = {}
        for arm, version in self.versions.items():
            found.setdefault(version.tree, []).append(arm)
        return found

    def _made(self) -> Folder:
        try:
            return Folder.make(self.root)
        except OSError as error:
            arm = next(iter(self.versions))
            raise MeasureError(self._problem(arm, f"there is no folder for it: {error.strerror}")) from error

    def _check_out(self, tree: str, arms: list[str]) -> None:
        assert self._folder is not None
        above, name, arm = self._folder.path, tree[:DIGITS], arms[0]
        place = Place(above / name, above / f"{name}.env", above / f"{name}.log", above / f"{name}.witness")
        try:
            self._add(place, self.versions[arm])
            files = [os.fsdecode(path) for path in git(place.tree, "ls-files", "-z").split(b"\0")]
            self._make_environment(place, arm)
        except GitError as error:
            raise MeasureError(self._problem(arm, f"it can't be checked out: {error}")) from error
        except OSError as error:
            raise MeasureError(self._problem(arm, f"it can't be checked out: {error.strerror}")) from error
        if not (place.tree / self._inside).is_dir():
            message = f"it has no folder {quoted(self._inside)}, where the study is, to run anything in"
            raise MeasureError(self._problem(arm, message))
        self._check_ways(arms, files)
        self._places[tree] = place
        names = witness.provided(files, self._inside.as_posix())
        self._provided[tree] = witness.Provided(arm=arm, folder=place.tree, names=names)
        self._build(place, arms)
        self._built[tree] = _states(place.tree, files)

    def _check_untouched(self, built: str, arm: str) -> None:
        """Refuse a build that has changed files of another version, which was built before."""
        for tree, states in self._built.items():
            if tree != built:
                now = _states(self._places[tree].tree, states)
                if changed := [file for file, state in states.items() if now[file] != state]:
                    what = f"{quoted(changed[0])} of {self._provided[tree].arm}"
                    raise MeasureError(self._problem(arm, f"build changed {what}; nothing was measured"))

    def _check_ways(self, arms: Collection[str], files: Collection[str]) -> None:
        """Refuse to run a file of the work tree as if it were that of a version."""
        for name, arm in self.experiment.arms.items():
            if version_name(arm) in arms:
                text = ways.leading_back(self.experiment, name, self.root, frozenset(files))
                if text is not None:
                    message = f"{quoted(text)} is in the work tree, whichever version is meant"
                    advice = "Name it from the study's folder: each version has its own."
                    raise MeasureError(self._problem(version_name(arm), message, advice))

    def _add(self, place: Place, version: Version) -> None:
        """Make a work tree of a version, with its submodules."""
        commit = version.commit
        has_it = is_there(self.root, commit)
        if not has_it or line(self.root, "rev-parse", f"{commit}^{{tree}}") != version.tree:
            commit = commit_of(self.root, version.tree, commit if has_it else None)
        git(self.root, "worktree", "add", "--quiet", "--detach", str(place.tree), commit)
        if paths := submodules.check_out(place.tree, self.root):
            noun = f"submodule{'s' * (len(paths) != 1)}"
            self.say(f"checked out {noun} {listed(paths)} of {version.tree[:SHORT]}")
        if left_out := git(place.tree, "ls-files", "-t", "-z").count(b"S "):
            self.say(f"{version.tree[:SHORT]} is as sparse as the work tree: without {left_out} files")

    def _make_environment(self, place: Place, arm: str) -> None:
        table = self.experiment.table
        with_pip = environments.wants_pip(table.build, table.command)
        try:
            packages = environments.make(place.environment, with_pip=with_pip, log=place.log)
        except subprocess.CalledProcessError as error:
            message = f"{error.cmd} ended with status {error.returncode}"
            raise MeasureError(self._problem(arm, message, file_tail(place.log) or None)) from error
        except subprocess.TimeoutExpired as error:
            raise MeasureError(self._too_long(arm, "python -m venv", error, place)) from error
        witness.install(packages, tree=place.tree, environment=place.environment, others=place.witness)

    def _build(self, place: Place, arms: list[str]) -> None:
        """Run ``build`` in a version, once, with what all arms of the experiment have of variables."""
        command = self.experiment.table.build
        if not command:
            return
        what = f"{' and '.join(arms)} ({self.versions[arms[0]].tree[:SHORT]})"
        self.say(f"building {what}: {shlex.join(command)}")
        declared = self.experiment.table.env or {}
        environ = {**self.environ, **declared, **self._variables(place, declared)}
        program, began = _found(command[0], environ["PATH"]), time.monotonic()
        try:
            status = run([program, *command[1:]], place.tree / self._inside, environ, place.log)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            message = f"build can't be started: {shlex.join(command)}: {why}"
            raise MeasureError(self._problem(arms[0], message)) from error
        except subprocess.TimeoutExpired as error:
            problem = self._too_long(arms[0], f"build: {shlex.join(command)}", error, place)
            raise MeasureError(problem) from error
        if status:
            ended = f"status {status}" if status > 0 else signal_name(-status)
            message = f"build ended with {ended}: {shlex.join(command)}; nothing was measured"
            raise MeasureError(self._problem(arms[0], message, file_tail(place.log) or None))
        self.say(f"built {what} in {duration_text(time.monotonic() - began)}")

    def _too_long(self, arm: str, what: str, error: subprocess.TimeoutExpired, place: Place) -> Problem:
        message = f"{what} was stopped after {duration_text(error.timeout)}; nothing was measured"
        advice = "It printed nothing: does it wait for something?"
        return self._problem(arm, message, file_tail(place.log) or advice)

    def _declared(self, arm: str) -> dict[str, str]:
        return {**(self.experiment.table.env or {}), **self.experiment.arms[arm].env}

    def _variables(self, place: Place, declared: Mapping[str, str]) -> dict[str, str]:
        """Return an environment's variables; what the study declares of Python's own stays as declared."""
        environ = {**self.environ, **declared}
        environ["PATH"] = ways.path_within(environ.get("PATH") or os.defpath, self.root, place.tree)
        found = environments.variables(place.environment, environ)
        found |= {name: declared[name] for name in ("PYTHONPATH", "PYTHONHOME") if name in declared}
        paths = [path for path in (found["PYTHONPATH"], str(place.witness)) if path]
        return found | {"PYTHONPATH": os.pathsep.join(paths)}

    def _problem(self, arm: str, message: str, advice: str | None = None) -> Problem:
        tree = self.versions[arm].tree
        return problem_of_arm(
            self.study, self.experiment, arm, message, code="PR135", advice=advice, tree=tree
        )


def checkout_of(
    study: Study,
    experiment: Experiment,
    series: Series | None = None,
    *,
    say: Callable[[str], None] | None = None,
    kept: bool = True,
    arms: Collection[str] | None = None,
) -> Checkout | None:
    """Resolve the versions that an experiment's arms are, without checking any out; else ``None``.

    Args:
        study: The study.
        experiment: One of its experiments.
        series: The series that is gone on with, whose arms stay what they were.
        say: Takes what a person should know of it, line by line.
        kept: Whether a work tree that no commit has is kept for later sessions.
        arms: Those that are to run, unless all are.

    Raises:
        MeasureError: PR134, all refs that can't be resolved at once.
    """
    resolved = resolve(study, experiment, series, kept=kept, arms=arms)
    if resolved is None:
        return None
    checkout = Checkout(study, experiment, resolved, say=say)
    for note in resolved.notes:
        checkout.say(note)
    return checkout


def _states(tree: Path, files: Iterable[str]) -> dict[str, tuple[int, ...] | None]:
    """Return what tells that a file was touched; ``None`` for one that is not there."""
    found: dict[str, tuple[int, ...] | None] = {}
    for file in files:
        try:
            state = os.lstat(tree / file)
            found[file] = (state.st_ino, state.st_size, state.st_mtime_ns, state.st_mode)
        except OSError:
            found[file] = None
    return found


def _found(program: str, path: str) -> str:
    """Return a program as a version's own path has it: left to itself, this process would look on its own."""
    return shutil.which(program, path=path) or program
