"""What has the name of a study's file and is none is refused at once: a pipe would be waited for, for ever."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_prereg.cli import main

NEW = ["new", "a", "--command", "true", "--predicts", "<= 1 s", "--falsifier", ">= 2 s"]
STUDY = '[study]\nid = "s"\n[experiments.e]\ncommand = ["true"]\nrepeats = 3\n'


def listen(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path)


ODD = {
    "a pipe": os.mkfifo,
    "a folder": os.mkdir,
    "a device": lambda path: Path(path).symlink_to("/dev/zero"),
    "a socket": listen,
}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def told(*arguments):
    result = CliRunner().invoke(main, arguments)
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 1
    return result.output


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("arguments", [NEW, ["lock"], ["try", "e"]], ids=lambda one: one[0])
def test_it_is_no_prediction_file(kind, arguments):
    ODD[kind]("predictions.toml")
    assert told(*arguments) == f"predictions.toml: PR001: can't be read: it is {kind}, and no file\n"
    assert [path.name for path in Path().iterdir()] == ["predictions.toml"]


@pytest.mark.parametrize("kind", ODD)
def test_nothing_is_begun_beside_it(kind):
    ODD[kind]("predictions.toml")
    assert told("init").startswith("predictions.toml: PR106: is there already")


def test_it_is_no_lock():
    Path("predictions.toml").write_text(STUDY)
    os.mkfifo("predictions.lock")
    assert "predictions.lock: PR011: unreadable lock: can't be read: it is a pipe" in told("lock")


def test_it_says_nothing_of_how_git_keeps_files():
    os.mkfifo(".gitattributes")
    assert told("init") == ".gitattributes: it is a pipe, and no file\n"


@pytest.mark.parametrize("kind", ODD)
def test_it_is_nothing_to_judge(pytester, kind):
    ODD[kind]("predictions.toml")
    result = pytester.runpytest_inprocess("--prereg")
    result.stderr.fnmatch_lines([f"ERROR: */predictions.toml is {kind}, and not a study"])
