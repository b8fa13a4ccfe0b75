"""What a gate says to type about what was removed or made easier is typed, and the gate then passes."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest
from audited_study import CLAIM
from gated_study import EASIER, LOCK, SUCCESSOR, TOML, PullRequest, pull_request, stages_of_main

from pytest_prereg.report.findings.harmless import advice_parts

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return stages_of_main(tmp_path_factory.mktemp("stages"))


@pytest.fixture
def pull(stages: dict[str, Path], tmp_path: Path) -> PullRequest:
    opened = pull_request(stages["recorded"], tmp_path / "pull")
    opened.owned()
    return opened


def advice_of(pull: PullRequest, code: str) -> list[tuple[str, str]]:
    """Words and commands under an error, as the terminal shows them."""
    said = pull.prereg("gate", "--base", "main", "--format", "github").output
    (line,) = (each for each in said.splitlines() if each.startswith("::error") and f"title={code}" in each)
    _, *advice = line.split("%0A")
    return [part for each in advice for part in advice_parts(each.replace("%25", "%"))]


def typed(pull: PullRequest, command: str) -> None:
    words = shlex.split(command.replace("'…'", "'as it was registered'"))
    if words[0] == "git":
        pull.git(*words[1:])
    else:
        pull.done(*words[1:])


def gone(pull: PullRequest) -> None:
    """Takes the only prediction out of the file and out of the lock, and leaves the study."""
    for name in (TOML, LOCK):
        text = (pull.path / name).read_text(encoding="utf-8")
        start = text.index(f"[predictions.{CLAIM}]")
        end = text.find("\n[", start)
        pull.write(name, text[:start] + (text[end + 1 :] if end >= 0 else ""))


def test_what_was_taken_out_comes_back_by_one_command(pull: PullRequest) -> None:
    gone(pull)
    pull.keep("Tidy up", TOML, LOCK)
    (back, restore), (given_up, withdraw) = advice_of(pull, "PR203")
    assert (back, given_up) == ("Put it back:", "If it is given up, withdraw it then:")
    assert restore.endswith(f" -- {TOML} {LOCK}")
    typed(pull, restore)
    pull.keep("Put it back", TOML, LOCK)
    assert pull.gate().exit == 0
    typed(pull, withdraw)
    pull.keep("Withdraw it", TOML, LOCK)
    assert pull.gate().exit == 0
    assert pull.gate().prediction()["status"] == "withdrawn"


def test_what_was_made_easier_is_restored_and_amended_back(pull: PullRequest) -> None:
    pull.amend(*EASIER)
    (_, restore), (_, amend), (later, record), _ = advice_of(pull, "PR209")
    assert restore.endswith(f" -- {TOML}")  # the lock keeps its amendments
    assert (later, record) == (
        "Once that is committed, record its verdict again and commit that:",
        "pytest --prereg-verify --prereg-record",
    )
    typed(pull, restore)
    typed(pull, amend)
    pull.keep("Restore it", TOML, LOCK)
    assert pull.gate().exit == 0


def test_what_has_to_wait_for_the_commit_is_told_behind_it(pull: PullRequest) -> None:
    pull.amend(*EASIER)
    said = pull.prereg("gate", "--base", "main", "--format", "markdown").output
    steps = [line for line in said.splitlines() if line[:2] in ("1.", "2.", "3.")]
    assert [word in step for word, step in zip(("amend", "git push", "--prereg-record"), steps, strict=True)]
    assert "--prereg-record" not in steps[0]
    assert pull.prereg("gate", "--base", "main").output.splitlines()[-1].startswith("next:  git checkout ")


def test_where_more_changed_nothing_that_was_done_beside_is_thrown_away(pull: PullRequest) -> None:
    gone(pull)
    pull.add(SUCCESSOR)
    pull.register("Tidy up, and register a successor")
    (words, command), _ = advice_of(pull, "PR203")
    base = pull.git("rev-parse", "--short=8", "main").strip()
    line = (pull.git("show", f"main:{TOML}").splitlines()).index(f"[predictions.{CLAIM}]") + 1
    assert words == (
        f"Put [predictions.{CLAIM}] back as {base} has it ({TOML}:{line}); other changes of the same files are "
        "to stay:"
    )
    assert command == f"git diff {base} -- {TOML} {LOCK}"


def test_rows_say_what_was_wanted_and_on_what_days(pull: PullRequest) -> None:
    pull.amend(*EASIER)
    said = pull.prereg("gate", "--base", "main", "--format", "markdown").output
    day = pull.git("log", "-1", "--format=%cs").strip()
    assert "≤ 2 s → ≤ 2.5 s" in said.replace("\N{NO-BREAK SPACE}", " ")
    assert f"({day})" in said


def test_the_words_of_what_is_gone_are_told(pull: PullRequest) -> None:
    gone(pull)
    pull.keep("Tidy up", TOML, LOCK)
    said = pull.prereg("gate", "--base", "main", "--format", "markdown").output
    (row,) = (line for line in said.splitlines() if line.startswith("| ⛔"))
    assert "≤ 2 s" in row.replace("\N{NO-BREAK SPACE}", " ")
    assert f"`{CLAIM}`<br>" in row
    assert "had been registered in " in row
