"""Setting git up to merge locks by prediction: in this clone, since git takes no driver from a repository."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

from pytest_prereg.audit.history.git import Repository, environment
from pytest_prereg.errors import HistoryError, Problem, StudyError, UsageError
from pytest_prereg.registry.load import find_studies, load_study
from pytest_prereg.registry.starter import ATTRIBUTES_FILE, add_attributes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY = "merge.pytest-prereg.driver"


def set_up(folder: Path) -> list[str]:
    """Have git merge the locks below a folder by prediction, and return what was done, in lines.

    Done twice it changes nothing. Worktrees of a clone share what is set; a submodule is a clone of its own.

    Raises:
        UsageError: The folder is in no git repository (PR101).
        HistoryError: git can't be run, or refuses (PR212).
        OSError: If ``.gitattributes`` can't be read or written.
    """
    repository = Repository.find(folder)
    if repository is None:
        advice = "git init begins one; a clone that merges has to be told by itself."
        message = "there is no git repository here, so nothing is ever merged"
        raise UsageError(Problem(code="PR101", message=message, advice=advice))
    driver = driver_command()
    lines = [_attributes(folder), _configured(folder, driver)]
    if repository.differs(folder.resolve() / ATTRIBUTES_FILE):
        name = shlex.quote(str(folder / ATTRIBUTES_FILE))
        lines.append(f"next:  git add {name} && git commit -m 'Merge locks by prediction'")
    return lines


def driver_command() -> str:
    """The command that git is to run, by the interpreter that runs this: no environment has to be active.

    Git takes any failure for a conflict, and what stands in the file for the merge with its conflicts marked.
    A command that never got so far (it was removed, say) has left one side there, as if it were the merge;
    then git's own merge is put in its place. ``-P`` keeps modules of the work tree, which other people
    write, out of the interpreter.
    """
    python = shlex.join([sys.executable, "-P", "-m", "pytest_prereg"]).replace("%", "%%")
    own = "git merge-file -q -L ours -L base -L theirs %A %O %B"
    marked = "grep -q '^<<<<<<< ' %A"
    return f"{python} merge-lock %O %A %B %P || {{ status=$?; {marked} || {own}; exit $status; }}"


def _attributes(folder: Path) -> str:
    name = folder / ATTRIBUTES_FILE
    if add_attributes(folder, sorted(set(_evidence(folder)))):
        return f"{name} has git merge locks by prediction, and keep evidence to the byte"
    return f"{name} says already how locks are merged and evidence is kept"


def _evidence(folder: Path) -> Iterator[str]:
    """Folders of evidence below a folder that aren't where every study has them unless it says otherwise."""
    for path in find_studies(folder):
        try:
            study = load_study(path)
        except StudyError:  # it is being merged, perhaps; the others are told of all the same
            continue
        place = os.path.relpath(study.evidence_folder, folder)
        if not place.startswith("..") and not f"/{place}".endswith("/experiments/evidence"):
            yield place


def _configured(folder: Path, driver: str) -> str:
    if _git(folder, "--get", KEY).stdout.rstrip("\n") == driver:
        return "this clone has the merge driver already"
    done = _git(folder, "--replace-all", KEY, driver)
    if done.returncode:
        message = f"git config failed: {done.stderr.strip()}"
        raise HistoryError(Problem(code="PR212", message=message))
    return f"this clone has the merge driver now: git config {KEY} {shlex.quote(driver)}"


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "config", "--local", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment(os.environ), capture_output=True, text=True, check=False
    )
