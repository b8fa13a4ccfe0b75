"""No way to measure another version than the one that is meant is silent, and no build reaches out of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from version_repositories import Repository

from pytest_prereg.errors import MeasureError
from pytest_prereg.measure.executors.base import TRACES
from pytest_prereg.measure.executors.processes import stat_of
from pytest_prereg.measure.versions.folders import Folder
from pytest_prereg.measure.versions.ways import path_within

if TYPE_CHECKING:
    from pytest_prereg.measure.versions.checkout import Checkout


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where folders for temporary files are made."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A branch whose module ``work`` is another than main's."""
    made = Repository.made(tmp_path / "repository")
    made.write_study()
    made.write("work.py", "NAME = 'base'\n")
    made.commit("Base")
    made.git("checkout", "--quiet", "-b", "topic")
    made.commit("Head", work_py="NAME = 'head'\n")
    return made


def problem(checkout: Checkout, arm: str, command: list[str], traces: Path) -> str | None:
    """What is said of a repeat of an arm that ran a command."""
    folder, own = checkout.place_of(arm)
    traces.mkdir()
    environ = {**os.environ, **own, TRACES: str(traces)}
    subprocess.run(["/usr/bin/env", *command], cwd=folder, env=environ, check=True)
    return checkout.problem_of(arm, traces)


def refusal(repository: Repository) -> str:
    checkout = repository.checkout()
    with pytest.raises(MeasureError) as caught:
        checkout.start()
    assert len(repository.worktrees()) == 1
    return str(caught.value)


def test_a_program_that_another_python_runs_is_looked_at_as_well(repository: Repository, tmp_path: Path):
    """As of a tool on ``PATH`` that the environment around pytest has: its packages are no version's."""
    outer = tmp_path / "outer"
    (outer / "lib").mkdir(parents=True)
    (outer / "lib" / "work.py").touch()
    tool = outer / "tool"
    tool.write_text(f"#!{sys.executable}\nimport sys\nsys.path.insert(0, sys.argv[1])\nimport work\n")
    tool.chmod(0o755)
    checkout = repository.checkout()
    checkout.start()
    said = problem(checkout, "base", [str(tool), str(outer / "lib")], tmp_path / "one")
    assert said == f"the version of base has module work, and it came from elsewhere: {outer}/lib/work.py"
    said = problem(checkout, "base", [str(tool), str(repository.path)], tmp_path / "two")
    assert "module work came from the work tree" in str(said)
    assert problem(checkout, "base", [str(tool), "."], tmp_path / "three") is None
    checkout.close()


def test_a_link_out_of_a_version_is_followed(repository: Repository, tmp_path: Path):
    (repository.path / "linked").symlink_to(repository.path)
    repository.commit("A link")
    checkout = repository.checkout()
    checkout.start()
    code = "import sys; sys.path.insert(0, 'linked'); import work"
    said = problem(checkout, "head", ["python", "-c", code], tmp_path / "traces")
    checkout.close()
    assert "module work came from the work tree" in str(said)


def test_a_python_that_stays_in_its_version_leaves_no_note(repository: Repository, tmp_path: Path):
    """Whose writing would be part of what is measured."""
    (repository.path / "other.py").symlink_to("work.py")
    checkout = repository.checkout()
    checkout.start()
    code = "import sys; sys.path.insert(0, '.'); import work, other, json"
    assert problem(checkout, "head", ["python", "-c", code], tmp_path / "traces") is None
    checkout.close()
    assert list((tmp_path / "traces").iterdir()) == []


def test_what_is_on_path_in_the_work_tree_is_the_versions_own(repository: Repository, tmp_path: Path):
    """But for virtual environments, whose tools a build may need."""
    root, tree = repository.path, tmp_path / "tree"
    (root / "venv" / "bin").mkdir(parents=True)
    (root / "venv" / "pyvenv.cfg").touch()
    (tmp_path / "link").symlink_to(root)
    path = ["/usr/bin", f"{root}/bin", f"{root}/venv/bin", "bin", "", f"{tmp_path}/link/tools"]
    kept = ["/usr/bin", f"{tree}/bin", f"{root}/venv/bin", "bin", "", f"{tree}/tools"]
    assert path_within(os.pathsep.join(path), root, tree).split(os.pathsep) == kept


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (["{root}/built/program"], "built/program"),
        (["python", "{root}/work.py"], "work.py"),
        (["tool", "--script={root}/work.py"], "work.py"),
        (["sh", "-c", "cd /; python '{root}/./work.py'|cat"], "work.py"),
        (["python", "{root}/data/ignored.bin"], None),
        (["python", "work.py"], None),
    ],
)
def test_a_command_that_names_a_file_of_the_work_tree_is_refused(
    repository: Repository, command: list[str], named: str | None
):
    filled = [text.replace("{root}", str(repository.path)) for text in command]
    repository.write_study(command=str(filled))
    if named is None:
        checkout = repository.checkout()
        checkout.start()
        checkout.close()
    else:
        assert f'"{repository.path}/{named}" is in the work tree, whichever version' in refusal(repository)


def test_a_build_that_changes_another_version_is_refused(repository: Repository):
    repository.write_study(more='build = ["sh", "-c", "for one in ../*/; do echo >> $one/work.py; done"]')
    assert 'arm "head"' in (said := refusal(repository))
    assert 'build changed "work.py" of base; nothing was measured' in said


def test_what_a_build_leaves_running_is_ended(repository: Repository, tmp_path: Path):
    left = f"setsid sh -c 'echo $$ >> {tmp_path}/pids; exec sleep 600' > /dev/null 2>&1 &"
    repository.write_study(more=f'build = ["sh", "-c", """{left} sleep 0.1"""]')
    checkout = repository.checkout()
    checkout.start()
    checkout.close()
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_what_a_build_runs_whose_session_was_killed_is_ended_by_the_next(
    repository: Repository, tmp_path: Path, temporary: Path
):
    pid_file = tmp_path / "pid"
    line = f"sleep 600 & echo $! > {pid_file}.new; mv {pid_file}.new {pid_file}; wait"
    repository.write_study(more=f'build = ["sh", "-c", "{line}"]')
    code = (
        "import sys, tempfile; sys.path[:0] = sys.argv[2:]; from pathlib import Path;"
        "from version_repositories import Repository; tempfile.tempdir = sys.argv[1];"
        f"Repository(Path({str(repository.path)!r})).checkout().start()"
    )
    session = subprocess.Popen([sys.executable, "-c", code, str(temporary), str(Path(__file__).parent)])
    while not pid_file.exists():
        assert session.poll() is None
        time.sleep(0.01)
    session.kill()
    session.wait()
    left = int(pid_file.read_text())
    assert is_running(left)
    Folder.make(repository.path).remove(repository.path)
    until = time.monotonic() + 10
    while is_running(left):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert list(temporary.iterdir()) == []
    assert len(repository.worktrees()) == 1


def is_running(pid: int) -> bool:
    fields = stat_of(pid)
    return fields is not None and fields[0] != b"Z"


def test_a_name_of_two_things_is_refused_and_the_work_trees_is_no_branch(repository: Repository):
    repository.git("tag", "v1", "main")
    repository.git("branch", "v1", "topic")
    repository.git("branch", "worktree", "main")
    repository.write_study({"base": "merge-base:v1~0", "head": "worktree"})
    with pytest.raises(MeasureError, match=re.escape('"v1" is 2 things: refs/tags/v1 and refs/heads/v1')):
        repository.resolved()
    repository.write_study({"base": "refs/tags/v1", "head": "worktree"})
    found = repository.resolved()
    assert found.notes == ["head is the work tree, not refs/heads/worktree"]
    assert found.versions["base"].commit == repository.git("rev-parse", "main")


def test_a_sparse_checkout_is_said(repository: Repository):
    repository.git("sparse-checkout", "set", "--no-cone", "/predictions.toml")
    said: list[str] = []
    checkout = repository.checkout(said)
    checkout.start()
    checkout.close()
    assert [line.partition(" ")[2] for line in said] == ["is as sparse as the work tree: without 1 files"] * 2


def test_versions_outlast_a_forced_push_and_a_collection_of_garbage(repository: Repository, tmp_path: Path):
    checkout = repository.checkout()
    checkout.start()
    repository.git("checkout", "--quiet", "--orphan", "other")
    repository.commit("Other")
    repository.git("branch", "--quiet", "-D", "main", "topic")
    repository.git("reflog", "expire", "--expire=now", "--all")
    repository.git("gc", "--quiet", "--prune=now")
    for arm in ("base", "head"):
        folder, _ = checkout.place_of(arm)
        shown = subprocess.run(["git", "show", "HEAD:work.py"], cwd=folder, capture_output=True, check=True)
        assert arm.encode() in shown.stdout
    checkout.close()
    assert len(repository.worktrees()) == 1
