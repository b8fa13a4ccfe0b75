"""What somebody wrote into a lock, or into a session's header, is shown to others: it acts on nothing there."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest
from audited_study import CLAIM, STUDY, Small, new_study
from forged_session import forge_header
from msgspec.structs import replace
from small_study import Project, copied

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.audit.recordable import recorded_entry
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.lock import write_lock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import click.testing

ACTING = "\x1b]0;title\x07\x1b[31m\u202e\n::error::boo\r\n::warning::boo \x85\u2028 | <b> `x`"
SPELT = json.dumps(ACTING)[1:-1]
CLAIMS = {"below-two": "<= 2 s", "given-up": "<= 1.9 s", "amended": "<= 1.8 s"}
TEXT = STUDY.partition("\n[predictions")[0] + "".join(
    f'\n[predictions.{name}]\nclaim = "It takes less than {name}."\nexperiment = "rows"\nquantity = "wall"\n'
    f'predicts = "{predicts}"\nfalsifier = ">= 3 s"\n'
    for name, predicts in CLAIMS.items()
)
WHY = ("amending", "excluding", "voiding", "withdrawing", "acknowledging")


@pytest.fixture(scope="module")
def hostile_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that a lock gives a reason for, with reasons that would act on a terminal and in a log."""
    project = new_study(tmp_path_factory.mktemp("hostile") / "study", text=TEXT)
    project.register()
    project.edit("predictions.toml", "<= 1.8 s", "<= 1.85 s")
    project.done("amend", "amended", "--reason", "amending")
    project.keep("Amend")
    project.take_in()
    project.record()
    project.done("withdraw", "given-up", "--reason", "withdrawing")
    project.done("exclude", "rows/1/2", "--cause", "tool", "--reason", "excluding")
    project.done("void", "rows/1", "--reason", "voiding")
    recorded_again(project)
    lock = project.path / "predictions.lock"
    text = lock.read_text(encoding="utf-8")
    text += '\n[[acknowledged]]\ncode = "PR213"\nid = "rows\\u001b"\nabout = "\\u001b[1m"\nreason = "acknowledging"\n'
    for word in WHY:
        assert word in text
        text = text.replace(f'"{word}"', f'"{word} {SPELT}"')
    lock.write_text(text, encoding="utf-8")
    project.keep("Hostile")
    return project.path


@pytest.fixture
def hostile(hostile_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    folder = copied(Project(hostile_once), tmp_path / "study").path
    monkeypatch.chdir(folder)
    return Small(folder, folder)


def recorded_again(project: Small) -> None:
    """Records what the evidence gives of what is not withdrawn."""
    state = StudyState(load_study(project.path / "predictions.toml"))
    assert state.lock is not None
    entries = dict(state.lock.predictions)
    for prediction in state.study.predictions.values():
        if not state.is_withdrawn(prediction.id):
            entries[prediction.id] = recorded_entry(state.assess(prediction), entries[prediction.id])
    write_lock(state.study.lock_path, replace(state.lock, predictions=entries))


def is_harmless(text: str) -> bool:
    """Whether each line can be seen as it is, and none is a command to a log."""
    lines = text.split("\n")
    return all(line.isprintable() for line in lines) and not any(line.startswith("::") for line in lines)


COMMANDS = [
    *(("audit", "--all", "--format", form) for form in ("terminal", "markdown")),
    *(("explain", name) for name in CLAIMS),
    ("lock",),
    ("lock", "--check"),
    ("withdraw", "given-up", "--reason", "x"),
    ("exclude", "rows/1/2", "--cause", "tool", "--reason", "x"),
    ("void", "rows/1", "--reason", "x"),
    ("acknowledge", "PR213", "rows", "--reason", "x"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_show_reasons_and_do_nothing_else(hostile: Small, command: tuple[str, ...]):
    result: click.testing.Result = hostile.prereg(*command)
    assert result.exit_code in (0, 1, 2)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert is_harmless(result.output)


@pytest.mark.parametrize("form", ["json", "sarif", "gitlab", "github"])
def test_no_form_of_an_audit_has_a_character_that_acts(hostile: Small, form: str):
    output = hostile.prereg("audit", "--all", "--format", form).output
    lines = output.split("\n")
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("::error::boo") for line in lines)


def test_pytest_shows_reasons_and_does_nothing_else(
    hostile: Small, judge: Callable[..., pytest.RunResult], tmp_path: Path
):
    report = tmp_path / "junit.xml"
    result = judge(hostile, "--prereg-locked", "-rA", "-vv", f"--junitxml={report}", "--color=no")
    assert is_harmless("\n".join(result.outlines))
    assert is_harmless(report.read_text(encoding="utf-8"))
    assert "voiding" in report.read_text(encoding="utf-8")


def test_what_is_to_be_typed_is_quoted(hostile: Small):
    """An id may come from a header that somebody wrote."""
    (path,) = hostile.evidence()
    forge_header(path, predictions={CLAIM: "sha256:0", "x; touch y": "sha256:1"})
    output = hostile.prereg("audit", "--all").output
    assert is_harmless(output)
    commands = {line.strip().removeprefix("next:  ") for line in output.splitlines() if "withdraw" in line}
    (command,) = {command for command in commands if command.startswith("pytest-prereg") and "x;" in command}
    assert shlex.split(command)[:3] == ["pytest-prereg", "withdraw", "x; touch y"]
