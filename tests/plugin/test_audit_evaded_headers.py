"""Plans, pairings, seeds and numbers that were written into a session's header before its first commit.

No digest gives that away: whoever edits the file writes its last line anew. Beside them what honest sessions
say, which agrees with what they bind whatever became of the study since.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from audited_study import LINE, STUDY, Audited, Small, Told, new_study
from forged_session import Lines, forge, forge_header
from small_study import Project, copied

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.registry.load import load_study

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_prereg.judge.model import Judgement

HEAD = "repeat,metric,value,unit\n"
WIDE = HEAD + "".join(f"{i},wall,{value},s\n" for i, value in enumerate((1.5, 2.9, 1.4, 4.9, 1.6), 1))
ARMS = """\
[study]
id = "small"

[experiments.rows]
metrics = { wall = "s" }
[experiments.rows.arms]
old = { level = 1, repeats = 3 }
new = { level = 2, repeats = 3 }

[predictions.old-below-two]
claim = "The old one takes less than two seconds."
experiment = "rows"
arm = "old"
quantity = "wall"
predicts = "<= 2 s"
falsifier = ">= 3 s"
"""
OF_OLD = "arm,repeat,metric,value,unit\n" + "".join(
    f"old,{i},wall,{value},s\n" for i, value in enumerate((1.5, 1.4, 1.6), 1)
)


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Small]:
    def make(text: str = STUDY, rows: str = WIDE) -> Small:
        project = new_study(tmp_path / "study", text=text)
        project.write("rows.csv", rows)
        monkeypatch.chdir(project.path)
        project.register()
        return project

    return make


@pytest.fixture(scope="module")
def imported_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Registered with five repeats, which were imported and leave the claim undecided."""
    project = new_study(tmp_path_factory.mktemp("headers") / "study")
    project.write("rows.csv", WIDE)
    project.register()
    project.measure()
    return project.path


@pytest.fixture
def imported(imported_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    folder = copied(Project(imported_once), tmp_path / "study").path
    monkeypatch.chdir(folder)
    return Small(folder, folder)


def judged(project: Small, prediction: str = "below-two") -> Judgement | None:
    state = StudyState(load_study(project.path / "predictions.toml"))
    return state.assess(state.study.predictions[prediction]).judgement


def failing(audit: Audited) -> list[Told]:
    """What is no notice: that a series wants more repeats is one."""
    return [one for one in audit.told if one[1] != "notice"]


def only(project: Small) -> Path:
    (path,) = project.evidence()
    return path


def without(*indices: int) -> Callable[[Lines], Lines]:
    """Leaves out the repeats with these indices, and numbers the others anew."""

    def change(lines: Lines) -> Lines:
        header, *rest = lines
        kept = [line for line in rest if int(line["repeat"].rpartition("/")[2]) not in indices]
        left = sorted({int(line["repeat"].rpartition("/")[2]) for line in kept})
        for line in kept:
            place, _, index = line["repeat"].rpartition("/")
            number = left.index(int(index)) + 1
            line["repeat"] = f"{place}/{number}"
            if line["type"] == "started":
                line.update(index=number, block=number)
        return [header, *kept]

    return change


def test_three_chosen_repeats_of_five_that_were_registered(imported: Small):
    before = judged(imported)
    assert before is not None
    assert (before.verdict.value, before.n) == ("inconclusive", 5)
    forge(only(imported), without(2, 4))
    forge_header(only(imported), planned={"": 3})
    imported.keep("Evidence")

    after = judged(imported)
    audit = imported.audit()

    assert after is not None
    assert (after.verdict.value, after.reason and after.reason.value) == ("inconclusive", "integrity")
    assert (audit.told, audit.exit) == ([("PR207", "error", LINE)], 1)
    assert "plans n = 3, and n = 5 was registered" in audit.message("PR207")


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"planned": None}, "has no planned number of repeats, though one was registered"),
        ({"planned": {"": 50}}, "plans n = 50, and n = 5 was registered"),
        ({"planned": {"x": 1}}, "plans no number of repeats, and n = 5 was registered"),
        ({"pairing": "block"}, 'has pairing "block", and "none" was registered'),
    ],
)
def test_another_plan_than_was_registered(imported: Small, header: dict[str, Any], said: str):
    forge_header(only(imported), **header)
    audit = imported.audit()
    judgement = judged(imported)
    assert (failing(audit), audit.exit) == ([("PR207", "error", LINE)], 1)
    assert said in audit.message("PR207")
    assert judgement is None or (judgement.reason is not None and judgement.reason.value == "integrity")


@pytest.mark.parametrize(
    "header",
    [
        {"planned": {}},
        {"planned": {"": -1}},
        {"series": 0},
        {"series": -3},
        {"series": 1 << 40},
        {"version": 0},
        {"head": "HEAD"},
        {"predictions": {"below-two; x": "sha256:0"}},
    ],
)
def test_what_no_header_ever_said_is_told_and_not_passed_over(imported: Small, header: dict[str, Any]):
    forge_header(only(imported), **header)
    audit = imported.audit()
    assert audit.exit == 1
    assert ("PR207", "error") in {(code, level) for code, level, _ in failing(audit)}
    assert any("its header was never written so" in one["message"] for one in audit.findings)
    judgement = judged(imported)
    assert judgement is None or (judgement.reason is not None and judgement.reason.value == "integrity")


def test_as_it_was_written_it_is_fine(imported: Small):
    imported.keep("Evidence")
    assert (imported.audit().told, imported.audit().exit) == ([], 0)


# Honest histories in which a plan is another one than the study has now


def test_sessions_of_an_amended_registration_keep_their_plan(begun: Callable[..., Small]):
    project = begun()
    project.take_in()
    project.edit("predictions.toml", "repeats = 5", "repeats = 7")
    project.done("amend", "below-two", "--reason", "five were too few")
    project.keep("Amend", "predictions.toml", "predictions.lock")
    assert "PR207" not in {code for code, _, _ in project.audit().told}


def test_an_arm_that_was_added_later_was_not_planned(begun: Callable[..., Small]):
    project = begun(ARMS, OF_OLD)
    project.take_in()
    project.edit("predictions.toml", "new = {", "newer = { level = 3, repeats = 9 }\nnew = {")
    project.edit("predictions.toml", "level = 2, repeats = 3", "level = 2, repeats = 8")
    assert failing(project.audit()) == []


def test_a_series_that_is_gone_on_with_keeps_its_plan_for_what_is_registered_meanwhile(
    begun: Callable[..., Small],
):
    project = begun(ARMS, OF_OLD)
    project.take_in()
    text = (project.path / "predictions.toml").read_text(encoding="utf-8")
    claim = text.partition("\n[predictions")[2].replace("old", "newer")
    project.edit("predictions.toml", "new = {", "newer = { level = 3, repeats = 9 }\nnew = {")
    project.write(
        "predictions.toml", f"{project.path.joinpath('predictions.toml').read_text()}\n[predictions{claim}"
    )
    project.register("Register another")
    project.write("new.csv", OF_OLD.replace("old", "new").replace("1.", "2."))
    project.measure("new.csv")
    project.keep("More evidence")
    assert [header_of(path)["series"] for path in project.evidence()] == [1, 1]
    assert project.audit().told == []


def header_of(path: Path) -> dict[str, Any]:
    with path.open(encoding="utf-8") as lines:
        return dict(json.loads(next(lines)))


def test_without_a_registered_number_there_is_no_plan(begun: Callable[..., Small]):
    project = begun(STUDY.replace("repeats = 5\n", ""))
    project.take_in()
    assert project.audit().told == []
    judgement = judged(project)
    assert judgement is not None
    assert judgement.n == 5


@pytest.mark.parametrize("repeats", ["{ looks = [3, 5] }", '{ max = 5, stopping = "anytime" }'])
def test_where_a_rule_may_end_it_the_most_is_planned(begun: Callable[..., Small], repeats: str):
    project = begun(STUDY.replace("repeats = 5", f"repeats = {repeats}"))
    project.take_in()
    assert project.audit().told == []


# A number of one's own beside arms that have none


UNNUMBERED = ARMS.replace("new = { level = 2, repeats = 3 }", "new = { level = 2 }")


def test_an_arm_without_a_number_does_not_free_those_that_have_one(begun: Callable[..., Small]):
    """Else whoever adds such an arm, which changes no other registration, stops when it fits."""
    lines = OF_OLD.splitlines(keepends=True)
    project = begun(UNNUMBERED, "".join(lines[:-1]))
    project.take_in()
    assert judged(project, "old-below-two") is None
    project.write("rest.csv", lines[0] + lines[-1].replace("1.6", "1.7") + lines[-1].replace("3,", "4,"))
    project.measure("rest.csv")
    project.keep("The rest")
    assert [header_of(path)["series"] for path in project.evidence()] == [1, 1]
    judgement = judged(project, "old-below-two")
    assert judgement is not None
    assert judgement.n == 3
    assert project.audit().told == []
