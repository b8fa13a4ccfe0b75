"""What every area's tests share: pytester, a quiet environment, throw-away git repositories."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import FrameType

pytest_plugins = ["pytester"]

GIT_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")


def pytest_configure(config: pytest.Config) -> None:
    """A busy machine is slow, and that is no property of the code.

    ``pytest --prereg`` reads this file too, where nothing but the package itself may be installed.
    """
    if config.pluginmanager.hasplugin("hypothesispytest"):
        from hypothesis import HealthCheck, settings

        settings.register_profile("busy-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
        settings.load_profile("busy-machine")
        # --hypothesis-profile=thorough, which is heeded after this
        settings.register_profile("thorough", settings.get_profile("busy-machine"), max_examples=2000)


@pytest.fixture
def count_calls() -> Callable[[Callable[[], object]], int]:
    """Counts the calls that an action makes, of Python's functions and C's: work that no busy machine changes."""

    def count(action: Callable[[], object]) -> int:
        made = 0

        def note(frame: FrameType, event: str, argument: object) -> None:
            nonlocal made
            made += event in ("call", "c_call")

        before = sys.getprofile()
        sys.setprofile(note)
        try:
            action()
        finally:
            sys.setprofile(before)
        return made

    return count


@pytest.fixture(scope="session", autouse=True)
def _machine_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Sessions that measure wait for each other where they share ``TMPDIR``; tests wait for nobody outside."""
    temporary = str(tmp_path_factory.mktemp("tmp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", temporary)
        patch.setattr(tempfile, "tempdir", temporary)
        yield


@dataclass(frozen=True)
class GitRepository:
    """A repository with an identity of its own, out of reach of the user's settings."""

    path: Path

    def git(self, *arguments: str) -> str:
        """Runs git here and returns what it printed, stripped; a failure shows what git said."""
        done = subprocess.run(["git", *arguments], cwd=self.path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr}"
        return done.stdout.strip()

    def write(self, name: str, text: str) -> Path:
        """Writes a file, making its folders, and commits nothing."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def commit(self, message: str, *names: str) -> str:
        """Commits the files named, or else everything there, and returns the commit's hash."""
        self.git("add", "--all", "--", *(names or (".",)))
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture(scope="session", autouse=True)
def _outside_ci() -> Iterator[None]:
    """``CI`` changes what ``--prereg`` does, and a git hook's variables redirect git: tests set what they mean.

    For the whole session, as fixtures that are shared by it run pytest as well.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CI", "PYTEST_ADDOPTS", *GIT_VARIABLES):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture
def git_repository(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., GitRepository]:
    """Makes repositories: ``git_repository()`` in a new folder, ``git_repository(path)`` in that one."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")

    def make(path: Path | None = None) -> GitRepository:
        repository = GitRepository(path or tmp_path_factory.mktemp("repository"))
        repository.git("init", "--quiet", "--initial-branch=main")
        settings = {"user.name": "Test", "user.email": "test@example.invalid", "commit.gpgsign": "false"}
        for key, value in settings.items():
            repository.git("config", key, value)
        return repository

    return make
