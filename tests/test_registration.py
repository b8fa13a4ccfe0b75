"""Registering what rests on several experiments, or on other predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_prereg.errors import StudyError
from pytest_prereg.registration import bound_predictions, changed_of, commit_command, register_new, review
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.lock import read_lock

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_prereg.registry.model import Study

STUDY = """\
[study]
id = "s"

[experiments.one]
repeats = 7
metrics = { t = "s" }

[experiments.two]
repeats = 7
metrics = { t = "s" }

[predictions.a]
claim = "c"
experiment = "one"
quantity = "t"
predicts = "<= 1 s"
falsifier = "> 2 s"

[predictions.b]
claim = "c"
experiment = "two"
quantity = "t"
predicts = "<= 1 s"
falsifier = "> 2 s"

[predictions.share]
claim = "c"
inputs = { x = "one:t", y = "two:t" }
formula = "x / (x + y)"
predicts = "<= 0.25"
falsifier = "> 0.5"

[predictions.both]
claim = "c"
all = ["a", "b"]

[predictions.again]
claim = "c"
all = ["b", "share"]
"""


def study(folder: Path, text: str = STUDY) -> Study:
    path = folder / "predictions.toml"
    path.write_text(text)
    return load_study(path)


def codes(folder: Path, text: str) -> list[str]:
    return [problem.code for problem in review(study(folder, text)).problems]


def test_formulas_and_conjunctions_are_registered_with_what_they_rest_on(tmp_path: Path) -> None:
    found = register_new(study(tmp_path))
    assert [*found.designs] == ["a", "b", "share", "both", "again"]
    assert found.designs["both"].report.notes == ()
    lock = read_lock(tmp_path / "predictions.lock")
    assert lock is not None
    assert {name: entry.unit for name, entry in lock.predictions.items()} == {
        "a": "s",
        "again": "1",
        "b": "s",
        "both": "1",
        "share": "1",
    }


def test_they_are_bound_to_each_of_their_experiments(tmp_path: Path) -> None:
    loaded = study(tmp_path)
    register_new(loaded)
    assert [*bound_predictions(loaded, loaded.experiments["one"])] == ["a", "share", "both", "again"]
    assert [*bound_predictions(loaded, loaded.experiments["two"])] == ["b", "share", "both", "again"]
    changed = study(
        tmp_path, STUDY.replace("[experiments.two]\nrepeats = 7", "[experiments.two]\nrepeats = 8")
    )
    assert changed_of(changed, changed.experiments["one"]) == ["share", "both", "again"]
    with pytest.raises(StudyError, match="PR104"):
        bound_predictions(changed, changed.experiments["one"])


def test_a_formula_with_too_few_repeats_of_an_input_is_refused(tmp_path: Path) -> None:
    few = STUDY.replace("[experiments.two]\nrepeats = 7", "[experiments.two]\nrepeats = 2")
    problems = [each for each in review(study(tmp_path, few)).problems if '"share"' in each.message]
    assert [(each.code, each.line) for each in problems] == [("PR034", 26)]
    assert problems[0].message == '"share" can never be decided with 2 of "two": an input needs 3 repeats'


def test_the_opposite_of_a_formula_is_found_and_two_conjunctions_are_no_opposites(tmp_path: Path) -> None:
    assert codes(tmp_path, STUDY) == []
    table = STUDY[STUDY.index("[predictions.share]") : STUDY.index("[predictions.both]")]
    opposite = (
        table.replace("share", "rest").replace("<= 0.25", "> 0.5", 1).replace('r = "> 0.5', 'r = "<= 0.25')
    )
    assert codes(tmp_path, STUDY + opposite) == ["PR036"]
    other = opposite.replace('y = "two:t"', 'y = "one:2 * t"')
    assert codes(tmp_path, STUDY + other) == []


def test_the_commit_holds_the_code_of_all_experiments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = STUDY
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        code = f'from pytest_prereg import experiment\n\n@experiment(metrics={{"t": "s"}})\ndef {name}_(repeat): ...\n'
        (tmp_path / name / "code.py").write_text(code)
        old = f'[experiments.{name}]\nrepeats = 7\nmetrics = {{ t = "s" }}'
        text = text.replace(old, f'[experiments.{name}]\nrepeats = 7\nfixture = "{name}_"')
    loaded = study(tmp_path, text.replace('id = "s"', 'id = "s"\nexperiments = ["one", "two"]'))
    assert "one/*.py two/*.py" in commit_command(loaded, ["share"], "Register")
    assert "two/*.py" not in commit_command(loaded, ["a"], "Register")
