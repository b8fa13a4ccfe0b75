"""Two sessions at once: the second is told, and nothing is left behind by a kill."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest
from evidence_samples import header

from pytest_prereg.errors import EvidenceError
from pytest_prereg.evidence.holds import ExperimentHold
from pytest_prereg.evidence.sessions import SessionWriter

HOLD_FOR_EVER = """
import sys, time
from pathlib import Path
from pytest_prereg.evidence.holds import ExperimentHold
hold = ExperimentHold.take(Path(sys.argv[1]), "gate-a")
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def other_session(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_FOR_EVER, str(tmp_path)], stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        yield process
        process.kill()


def test_the_second_session_is_told_which_process_has_the_experiment(tmp_path, other_session):
    with pytest.raises(EvidenceError) as caught:
        SessionWriter.open(tmp_path, header())

    assert f'PR120: another session is measuring or importing "gate-a" (process {other_session.pid})' in str(
        caught.value
    )
    assert not (tmp_path / "gate-a").exists()


def test_a_killed_session_holds_nothing(tmp_path, other_session):
    other_session.send_signal(signal.SIGKILL)
    other_session.wait()

    ExperimentHold.take(tmp_path, "gate-a").release()


def test_another_experiment_and_another_study_are_free(tmp_path, other_session):
    ExperimentHold.take(tmp_path, "barrier").release()
    ExperimentHold.take(tmp_path / "elsewhere", "gate-a").release()


def test_a_writer_lets_go_when_it_is_closed(tmp_path):
    SessionWriter.open(tmp_path, header()).close("finished")

    ExperimentHold.take(tmp_path, "gate-a").release()


def test_a_writer_that_was_given_a_hold_leaves_it_to_its_owner(tmp_path):
    with ExperimentHold.take(tmp_path, "gate-a") as hold:
        SessionWriter.open(tmp_path, header(), hold=hold).close("finished")

        with pytest.raises(EvidenceError, match=f"process {os.getpid()}"):
            ExperimentHold.take(tmp_path, "gate-a")


def test_the_lock_file_lies_in_the_git_folder_and_not_among_the_evidence(git_repository):
    repository = git_repository()
    evidence = repository.path / "experiments" / "evidence"
    with ExperimentHold.take(evidence, "gate-a"):
        assert list((repository.path / ".git" / "pytest-prereg").iterdir())
    assert repository.git("status", "--porcelain") == ""


def test_a_worktree_has_its_lock_where_its_git_folder_is(git_repository, tmp_path):
    repository = git_repository()
    repository.commit("Begin")
    repository.git("worktree", "add", "--quiet", str(tmp_path / "tree"))
    with ExperimentHold.take(tmp_path / "tree" / "evidence", "gate-a"):
        assert list((repository.path / ".git" / "worktrees" / "tree" / "pytest-prereg").iterdir())


def test_without_git_the_lock_file_lies_in_the_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    with ExperimentHold.take(tmp_path / "study" / "evidence", "gate-a"):
        assert list((tmp_path / "temporary").glob("pytest-prereg-*/*-gate-a.lock"))
    assert not (tmp_path / "study").exists()


def test_one_folder_reached_by_two_paths_is_one_hold(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with ExperimentHold.take(tmp_path / "real", "gate-a"), pytest.raises(EvidenceError, match="PR120"):
        ExperimentHold.take(tmp_path / "link", "gate-a")


WITHOUT_PRIVILEGE = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
"""Root, to whom the modes of files apply as to anybody."""

TAKE = """
import sys
from pathlib import Path
from pytest_prereg.errors import EvidenceError
from pytest_prereg.evidence.holds import ExperimentHold
try:
    ExperimentHold.take(Path(sys.argv[1]), "gate-a")
except EvidenceError as error:
    sys.exit(str(error))
"""


@pytest.mark.skipif(
    WITHOUT_PRIVILEGE and not shutil.which("setpriv"), reason="root can't do without its privileges"
)
def test_a_git_folder_that_became_read_only_meanwhile_still_has_the_lock(git_repository):
    repository = git_repository()
    evidence, folder = repository.path / "evidence", repository.path / ".git" / "pytest-prereg"

    def take() -> str:
        command = [*WITHOUT_PRIVILEGE, sys.executable, "-c", TAKE, str(evidence)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stderr

    with ExperimentHold.take(evidence, "gate-a"):
        (lock,) = folder.iterdir()
        lock.chmod(0o400)
        folder.chmod(0o500)
        assert f'PR120: another session is measuring or importing "gate-a" (process {os.getpid()})' in take()
    assert take() == ""


def test_without_any_place_for_a_lock_nothing_is_measured(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))

    with pytest.raises(EvidenceError, match="PR120: no lock can be had: Not a directory"):
        ExperimentHold.take(tmp_path / "study" / "evidence", "gate-a")
