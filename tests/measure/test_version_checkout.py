"""Versions are checked out and built outside of the repository, each alone, and nothing of them stays."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from version_repositories import Repository

from pytest_prereg.errors import MeasureError
from pytest_prereg.measure.executors.base import TRACES
from pytest_prereg.measure.versions import folders, running
from pytest_prereg.measure.versions.folders import Folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.measure.versions.checkout import Checkout

FULL = os.environ.get("PREREG_STORM") == "full"


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where folders for temporary files are made."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A branch whose module ``work`` is another than main's."""
    made = Repository.made(tmp_path_factory.mktemp("template") / "repository", inside="perf")
    made.write_study()
    made.write(".gitignore", "ignored/\n")
    made.write("perf/bench.py", "import work\nprint(work.NAME)\n")
    made.write("work/__init__.py", "NAME = 'base'\n")
    made.commit("Base")
    made.git("checkout", "--quiet", "-b", "topic")
    made.write("work/__init__.py", "NAME = 'head'\n")
    made.commit("Head")
    return made


@pytest.fixture
def repository(template: Repository, tmp_path: Path) -> Repository:
    return template.copy(tmp_path / "repository")


@pytest.fixture
def checked_out(repository: Repository) -> Iterator[Checkout]:
    checkout = repository.checkout()
    checkout.start()
    yield checkout
    checkout.close()


def run(checkout: Checkout, arm: str, command: list[str], traces: Path, **variables: str) -> str:
    """Runs a command as a repeat of the arm would; returns what it printed."""
    folder, own = checkout.place_of(arm)
    environ = {**os.environ, **own, TRACES: str(traces), **variables}
    # A program is looked up by the PATH of whoever starts it: env has the one that it is given.
    done = subprocess.run(
        ["/usr/bin/env", *command], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def failure(checkout: Checkout) -> str:
    with pytest.raises(MeasureError) as caught:
        checkout.start()
    assert [problem.code for problem in caught.value.problems] == ["PR135"]
    return str(caught.value)


def assert_nothing_left(repository: Repository, temporary: Path) -> None:
    assert repository.worktrees() == [repository.path]
    assert list(temporary.iterdir()) == []


def test_each_arm_runs_in_the_studys_folder_of_its_version(
    checked_out: Checkout, repository: Repository, tmp_path: Path
):
    command = [
        "python",
        "-c",
        "import os, sys; sys.path.insert(0, '..'); import work; print(os.getcwd(), work.NAME)",
    ]
    printed = {arm: run(checked_out, arm, command, tmp_path).split() for arm in ("base", "head")}
    folders_of = {arm: Path(folder) for arm, (folder, _) in printed.items()}
    assert [name for _, name in printed.values()] == ["base", "head"]
    assert {folder.name for folder in folders_of.values()} == {"perf"}
    assert not any(folder.is_relative_to(repository.path) for folder in folders_of.values())
    assert len({len(str(folder)) for folder in folders_of.values()}) == 1


def test_python_is_that_of_an_environment_of_the_versions_own(checked_out: Checkout, tmp_path: Path):
    command = ["python", "-c", "import sys; print(sys.prefix, sys.path)"]
    outer = str(tmp_path / "outer")
    printed = {arm: run(checked_out, arm, command, tmp_path, PYTHONSAFEPATH="1") for arm in ("base", "head")}
    assert printed["base"] != printed["head"]
    for arm, text in printed.items():
        _, variables = checked_out.place_of(arm)
        assert text.split()[0] == variables["VIRTUAL_ENV"] != sys.prefix
        assert outer not in text


def test_what_the_user_has_on_pythonpath_is_not_what_is_measured(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "of-the-user"))
    monkeypatch.setenv("PYTHONHOME", str(tmp_path / "nowhere"))
    for more, wanted in (("", []), ('env = { PYTHONPATH = "../src" }', ["../src"])):
        repository.write_study(more=more)
        checkout = repository.checkout()
        checkout.start()
        _, variables = checkout.place_of("head")
        checkout.close()
        *declared, witness = variables["PYTHONPATH"].split(os.pathsep)
        assert (declared, variables["PYTHONHOME"]) == (wanted, "")
        assert not Path(witness).exists()


def test_nothing_is_left_when_it_is_closed(repository: Repository, temporary: Path):
    checkout = repository.checkout()
    checkout.start()
    assert len(repository.worktrees()) == 3
    checkout.close()
    assert_nothing_left(repository, temporary)
    checkout.close()


def test_it_can_be_started_again(repository: Repository, temporary: Path, tmp_path: Path):
    checkout = repository.checkout()
    checkout.start()
    checkout.close()
    checkout.start()
    assert run(checkout, "head", ["sh", "-c", "pwd"], tmp_path)
    checkout.close()
    assert_nothing_left(repository, temporary)


def test_a_changed_work_tree_is_checked_out_with_its_changes(repository: Repository, tmp_path: Path):
    repository.write("work/__init__.py", "NAME = 'changed'\n")
    repository.write("work/new.py", "")
    repository.write("ignored/file.py", "")
    checkout = repository.checkout()
    checkout.start()
    printed = run(checkout, "head", ["sh", "-c", "cat ../work/__init__.py; ls .. ../work"], tmp_path)
    checkout.close()
    assert "changed" in printed
    assert "new.py" in printed
    assert "ignored" not in printed


def test_arms_of_one_tree_are_built_once(repository: Repository, tmp_path: Path):
    witness = tmp_path / "witness"
    repository.write_study(
        {"base": "HEAD", "head": "topic", "old": "main"}, more=f'build = ["sh", "-c", "pwd >> {witness}"]'
    )
    repository.commit("Study")
    repository.write_study(
        {"base": "HEAD", "head": "HEAD", "old": "main"}, more=f'build = ["sh", "-c", "pwd >> {witness}"]'
    )
    said: list[str] = []
    checkout = repository.checkout(said)
    checkout.start()
    places = [checkout.place_of(arm)[0] for arm in ("base", "head", "old")]
    checkout.close()
    assert places[0] == places[1] != places[2]
    assert witness.read_text().splitlines() == [places[0], places[2]]
    each = ["building base and head", "built base and head", "building old", "built old"]
    assert [line.split(":")[0].split(" (")[0] for line in said] == each


def test_a_build_that_fails_is_told_with_its_end_and_leaves_nothing(repository: Repository, temporary: Path):
    repository.write_study(more='build = ["sh", "-c", "echo the compiler is gone; exit 7"]')
    told = failure(repository.checkout())
    assert "predictions.toml:9: PR135" in told
    assert 'arm "base"' in told
    assert (
        "build ended with status 7: sh -c 'echo the compiler is gone; exit 7'; nothing was measured" in told
    )
    assert "    the compiler is gone" in told
    assert_nothing_left(repository, temporary)


def test_a_build_that_hangs_is_stopped_and_leaves_nothing(
    repository: Repository, temporary: Path, monkeypatch: pytest.MonkeyPatch
):
    seconds = f"60.{os.getpid()}"
    repository.write_study(more=f'build = ["sh", "-c", "echo waiting; sleep {seconds} & wait"]')
    checkout = repository.checkout()
    monkeypatch.setattr(running, "run", partial(running.run, seconds=0.3))
    monkeypatch.setattr("pytest_prereg.measure.versions.checkout.run", running.run)
    told = failure(checkout)
    assert f"build: sh -c 'echo waiting; sleep {seconds} & wait' was stopped after 0.3 s; nothing was" in told
    assert "    waiting" in told
    assert_nothing_left(repository, temporary)
    assert not any(seconds in place.read_text() for place in Path("/proc").glob("[0-9]*/cmdline"))


def test_what_building_took_is_told_and_counted(repository: Repository):
    repository.write_study({"base": "HEAD", "head": "HEAD"}, more='build = ["sleep", "0.3"]')
    said: list[str] = []
    checkout = repository.checkout(said)
    checkout.start()
    checkout.close()
    assert re.fullmatch(r"built base and head \(\w{7}\) in 0\.[3-9]\d* s", said[-1])
    assert 0.3 <= checkout.seconds < 10


@pytest.mark.parametrize(
    ("build", "wanted"),
    [
        ('["no-such-program"]', "build can't be started: no-such-program: No such file"),
        ('["sh", "-c", "kill -SEGV $$"]', "build ended with SIGSEGV"),
    ],
)
def test_a_build_that_does_not_even_run_is_told(repository: Repository, build: str, wanted: str):
    repository.write_study(more=f"build = {build}")
    assert wanted in failure(repository.checkout())


def test_without_pip_being_named_no_other_pip_is_found(checked_out: Checkout, tmp_path: Path):
    assert "this environment has no pip" in run(checked_out, "head", ["pip", "--version"], tmp_path)
    assert "No module named pip" in run(checked_out, "head", ["python", "-m", "pip"], tmp_path)


@pytest.mark.skipif(not FULL, reason="it takes pip many seconds to come")
def test_pip_is_that_of_the_environment_where_it_is_named(repository: Repository, tmp_path: Path):
    repository.write_study({"base": "HEAD", "head": "HEAD"}, more='build = ["pip", "--version"]')
    checkout = repository.checkout()
    checkout.start()
    _, variables = checkout.place_of("head")
    assert variables["VIRTUAL_ENV"] in run(checkout, "head", ["pip", "--version"], tmp_path)
    checkout.close()


def test_a_version_without_the_studys_folder_is_refused(repository: Repository, temporary: Path):
    repository.git("checkout", "--quiet", "--orphan", "bare")
    repository.git("rm", "--quiet", "-r", "--cached", ".")
    repository.git("commit", "--quiet", "--allow-empty", "--message", "Empty")
    repository.git("checkout", "--quiet", "--force", "topic")
    repository.write_study({"base": "bare", "head": "worktree"})
    assert 'it has no folder "perf", where the study is' in failure(repository.checkout())
    assert_nothing_left(repository, temporary)


def test_hooks_of_the_user_are_not_run(repository: Repository, tmp_path: Path):
    hook = repository.write(".git/hooks/post-checkout", f"#!/bin/sh\ntouch {tmp_path / 'ran'}\nexit 1\n")
    hook.chmod(0o755)
    checkout = repository.checkout()
    checkout.start()
    checkout.close()
    assert not (tmp_path / "ran").exists()


def test_submodules_come_along_and_are_said(repository: Repository, tmp_path: Path):
    """Also at a commit that only the user has, and one within another; no shared configuration is written."""
    innermost = Repository.made(tmp_path / "innermost")
    innermost.commit(deep_py="1")
    inner = Repository.made(tmp_path / "inner")
    inner.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../innermost", "deep")
    inner.commit(lib_py="1")
    repository.git("remote", "add", "origin", str(tmp_path / "elsewhere"))
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../inner", "lib")
    repository.git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive"
    )
    own = Repository(repository.path / "lib")
    own.write("lib.py", "2")
    own.git(
        "-c",
        "user.name=T",
        "-c",
        "user.email=t@example.invalid",
        "commit",
        "--quiet",
        "--all",
        "-m",
        "Unpushed",
    )
    config = (repository.path / ".git" / "config").read_text()
    said: list[str] = []
    checkout = repository.checkout(said)
    checkout.start()
    printed = run(checkout, "head", ["sh", "-c", "cat ../lib/lib.py ../lib/deep/deep.py"], tmp_path)
    checkout.close()
    assert printed == "21"
    assert said[0].startswith('checked out submodule "lib" of ')
    assert (repository.path / ".git" / "config").read_text() == config


def test_a_linked_work_tree_has_submodules_of_its_own(repository: Repository, tmp_path: Path):
    inner = Repository.made(tmp_path / "inner")
    inner.commit(lib_py="1")
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.path), "lib")
    repository.commit("With a submodule")
    repository.git("worktree", "add", "--quiet", "-b", "other", str(tmp_path / "linked"))
    linked = Repository(tmp_path / "linked", repository.inside)
    linked.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
    own = Repository(linked.path / "lib")
    own.git("config", "user.name", "T")
    own.git("config", "user.email", "t@example.invalid")
    own.commit("Unpushed", lib_py="2")
    checkout = linked.checkout()
    checkout.start()
    printed = run(checkout, "head", ["cat", "../lib/lib.py"], tmp_path)
    checkout.close()
    assert printed == "2"


def test_a_submodule_that_is_nowhere_is_told(repository: Repository, tmp_path: Path, temporary: Path):
    inner = Repository.made(tmp_path / "inner")
    inner.commit(lib_py="1")
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.path), "lib")
    repository.commit("A submodule")
    inner.path.rename(tmp_path / "moved")
    (repository.path / ".git" / "modules").rename(tmp_path / "modules")
    repository.git("config", "--remove-section", "submodule.lib")
    (repository.path / "lib" / ".git").unlink()
    (repository.path / "lib" / "lib.py").unlink()
    told = failure(repository.checkout())
    assert "it can't be checked out" in told
    assert "lib" in told
    assert_nothing_left(repository, temporary)


# What a repeat imports


def test_modules_of_the_version_are_no_problem(checked_out: Checkout, tmp_path: Path):
    traces = tmp_path / "traces"
    traces.mkdir()
    printed = run(
        checked_out, "base", ["python", "-c", "import sys; sys.path[0] = '..'; import work, json"], traces
    )
    assert printed == ""
    assert checked_out.problem_of("base", traces) is None


@pytest.mark.parametrize(
    ("place", "wanted"),
    [
        ("work tree", "module work came from the work tree, and not from the version of base: "),
        ("other arm", "module work came from the version of head, and not from the version of base: "),
        ("elsewhere", "the version of base has module work, and it came from elsewhere: "),
        ("elsewhere, another name", None),
    ],
)
def test_a_module_from_outside_of_its_version_is_told_with_its_file(
    checked_out: Checkout, repository: Repository, tmp_path: Path, place: str, wanted: str | None
):
    (tmp_path / "elsewhere" / "work").mkdir(parents=True)
    (tmp_path / "elsewhere" / "work" / "__init__.py").touch()
    (tmp_path / "elsewhere" / "else.py").touch()
    other = Path(checked_out.place_of("head")[0]).parent
    found = {"work tree": repository.path, "other arm": other}.get(place, tmp_path / "elsewhere")
    name = "else" if wanted is None else "work"
    traces = tmp_path / "traces"
    traces.mkdir()
    code = f"import sys; sys.path.insert(0, {str(found)!r}); __import__({name!r})"
    assert run(checked_out, "base", ["python", "-c", code], traces) == ""
    expected = None if wanted is None else f"{wanted}{found / 'work' / '__init__.py'}"
    assert checked_out.problem_of("base", traces) == expected


# What is left by others


def test_what_a_dead_session_left_is_removed_and_a_living_ones_is_not(
    repository: Repository, temporary: Path
):
    living = repository.checkout()
    living.start()
    code = (
        "import os, sys, tempfile; sys.path[:0] = sys.argv[2:]; from pathlib import Path;"
        "from version_repositories import Repository;"
        "tempfile.tempdir = sys.argv[1];"
        f"Repository(Path({str(repository.path)!r}), 'perf').checkout().start(); os.kill(os.getpid(), 9)"
    )
    here = [str(temporary), str(Path(__file__).parent)]
    assert subprocess.run([sys.executable, "-c", code, *here], check=False).returncode == -signal.SIGKILL
    assert len(repository.worktrees()) == 5

    third = repository.checkout()
    third.start()

    assert len(repository.worktrees()) == 5
    places = [Path(each.place_of("base")[0]) for each in (living, third)]
    assert all(place.is_dir() for place in places)
    third.close()
    living.close()
    assert_nothing_left(repository, temporary)


def test_what_git_remembers_of_a_folder_that_is_gone_is_forgotten(repository: Repository, temporary: Path):
    gone = temporary / "prereg-versions-0badcafe" / "tree"
    repository.git("worktree", "add", "--quiet", "--detach", str(gone))
    users = temporary.parent / "of-the-user"
    repository.git("worktree", "add", "--quiet", "--detach", str(users))
    subprocess.run(["rm", "-r", gone.parent, users], check=True)
    folder = Folder.make(repository.path)
    assert repository.worktrees() == [repository.path, users]  # which may be on a disk that is unplugged
    folder.remove(repository.path)


def test_a_folder_that_was_made_read_only_is_removed_all_the_same(repository: Repository, temporary: Path):
    folder = Folder.make(repository.path)
    deep = folder.path / "cache" / "module"
    deep.mkdir(parents=True)
    (deep / "file").touch()
    (folder.path / "link").symlink_to("/etc")
    mode = Path("/etc").stat().st_mode
    for path in (deep, deep.parent):
        path.chmod(0o500)
    folders._make_writable(folder.path)
    assert deep.stat().st_mode & 0o700 == 0o700
    folder.remove(repository.path)
    assert list(temporary.iterdir()) == []
    assert Path("/etc").stat().st_mode == mode


def test_folders_are_outside_of_a_repository_that_holds_the_temporary_files(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    inside = repository.path / "tmp"
    inside.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(inside))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = Folder.make(repository.path)
    assert folder.path.is_relative_to(tmp_path / "cache")
    folder.remove(repository.path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(repository.path / "cache"))
    assert "inside of the repository" in failure(repository.checkout())


def test_what_is_interrupted_while_it_builds_is_killed_with_all_that_it_started(tmp_path: Path):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    command = ["sh", "-c", "setsid sleep 600 & echo $!; sleep 600 & echo $!; wait"]
    try:
        with pytest.raises(KeyboardInterrupt):
            running.run(command, tmp_path, dict(os.environ), tmp_path / "log")
    finally:
        signal.signal(signal.SIGALRM, before)
    time.sleep(0.1)
    for pid in (tmp_path / "log").read_text().split():
        state = Path(f"/proc/{pid}/stat")
        assert not state.exists() or state.read_text().split()[2] == "Z"
