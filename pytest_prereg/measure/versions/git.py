"""Git as what checks versions out needs it: asked for objects and work trees, never for anything of a user's.

Hooks of the user's are not run, and neither are git's own housekeeping nor what else would be done behind the
back of a measurement.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from pytest_prereg.evidence.git_environment import environment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.commitGraph": "false",
    "core.splitIndex": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "advice.detachedHead": "false",
}


class GitError(Exception):
    """Git refused; the text is what it said."""


def git(
    folder: Path,
    *arguments: str,
    feed: bytes = b"",
    settings: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
) -> bytes:
    """Run git in a folder and return what it answers.

    Args:
        folder: Where.
        arguments: The command and its arguments.
        feed: Its standard input.
        settings: Configuration for this command alone.
        variables: Environment variables beside those of this process.

    Raises:
        GitError: It refused, or there is no git.
    """
    options = [part for pair in (_SETTINGS | dict(settings or {})).items() for part in ("-c", "=".join(pair))]
    try:
        done = subprocess.run(
            ["git", *options, *arguments],
            cwd=folder,
            env=environment(os.environ) | dict(variables or {}),
            input=feed,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise GitError(f"git can't be run: {error.strerror}") from error
    if done.returncode:
        raise GitError(_said(done.stderr) or f"git {arguments[0]} ended with status {done.returncode}")
    return done.stdout


def line(folder: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> str:
    """The one line that git answers."""
    answer = git(folder, *arguments, variables=variables).removesuffix(b"\n")
    return os.fsdecode(answer)


def is_there(folder: Path, name: str) -> bool:
    """Whether the repository has an object of that name, or a revision that leads to one."""
    try:
        git(folder, "cat-file", "-e", name)
    except GitError:
        return False
    return True


def _said(output: bytes) -> str:
    """What git said on one line, the last lines of a long complaint."""
    lines = [part.strip() for part in output.decode("utf-8", "replace").splitlines() if part.strip()]
    return "; ".join(part.removeprefix("fatal: ").removeprefix("error: ") for part in lines[-3:])
