"""The files of two commits in folders of their own: what both have is on disk once, and each has its own."""

from __future__ import annotations

import os
import subprocess
import tempfile
from typing import TYPE_CHECKING

import pytest

from pytest_prereg.audit.gating import trees
from pytest_prereg.audit.gating.trees import MEMORY, USUAL, tree_of
from pytest_prereg.audit.history.git import Repository

if TYPE_CHECKING:
    from pathlib import Path


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@example.invalid", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def ends(tmp_path: Path) -> tuple[Repository, str, str]:
    """Between two commits one file changes, and one can be run from then on."""
    folder = tmp_path / "repository"
    (folder / "sub").mkdir(parents=True)
    for name in ("kept", "sub/kept", "changed", "run"):
        (folder / name).write_text(name)
    (folder / "link").symlink_to("kept")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Begin")
    (folder / "changed").write_text("anew")
    (folder / "run").chmod(0o755)
    git(folder, "commit", "--quiet", "--all", "--message", "Change")
    repository = Repository.find(folder)
    assert repository is not None
    return repository, git(folder, "rev-parse", "HEAD~1"), git(folder, "rev-parse", "HEAD")


def test_what_both_have_is_on_disk_once(ends: tuple[Repository, str, str]):
    repository, base, head = ends
    with tree_of(repository, base, {}) as first, tree_of(repository, head, {}, first) as last:
        shared = {
            path for path in ("kept", "sub/kept", "changed", "run") if same(first.folder, last.folder, path)
        }
        assert shared == {"kept", "sub/kept"}
        assert (first.folder / "changed").read_text() == "changed"
        assert (last.folder / "changed").read_text() == "anew"
        assert os.access(last.folder / "run", os.X_OK)
        assert not os.access(first.folder / "run", os.X_OK)
        assert (last.folder / "link").readlink().name == "kept"
        assert not git(last.folder, "status", "--porcelain")
        assert not git(first.folder, "status", "--porcelain")
    assert not first.folder.exists()
    assert not last.folder.exists()


def test_what_cannot_be_shared_is_written(ends: tuple[Repository, str, str]):
    """As between disks, or where a file has as many names as it can have."""
    repository, base, head = ends
    with tree_of(repository, base, {}) as first:
        (first.folder / "kept").unlink()
        with tree_of(repository, head, {}, first) as last:
            assert (last.folder / "kept").read_text() == "kept"


def same(one: Path, other: Path, name: str) -> bool:
    return (one / name).samefile(other / name)


@pytest.mark.skipif(not os.access(MEMORY, os.W_OK), reason="there is no folder in memory here")
def test_they_lie_in_memory_where_there_is_room_and_nobody_named_a_folder(
    ends: tuple[Repository, str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    repository, base, head = ends

    def places() -> set[Path]:
        with tree_of(repository, base, {}) as first, tree_of(repository, head, {}, first) as last:
            return {first.folder.parent, last.folder.parent}

    monkeypatch.setattr(tempfile, "tempdir", str(USUAL))
    assert places() == {MEMORY}
    monkeypatch.setattr(trees, "_TIMES", 1 << 40)
    assert places() == {USUAL.resolve()}
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert places() == {tmp_path.resolve()}
