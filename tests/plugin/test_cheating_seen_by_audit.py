"""How an author would bend a study once the answer is known, and what an audit says of it.

Each beside what an honest author does, which an audit lets pass. The first verdict is a refutation.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest
from audited_study import LINE, STUDY, Small, new_study
from small_study import Project, copied

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.registry.load import load_study

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HEAD = "repeat,metric,value,unit\n"
SLOW = HEAD + "".join(f"{i},wall,{value},s\n" for i, value in enumerate((3.91, 4.12, 3.93, 4.04, 3.95), 1))
QUICK = HEAD + "".join(f"{i},wall,{value},s\n" for i, value in enumerate((1.01, 1.12, 0.93, 1.04, 0.95), 1))
REASON = "for a good reason"


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Small]:
    def make(text: str = STUDY) -> Small:
        project = new_study(tmp_path / "study", text=text)
        project.write("rows.csv", SLOW)
        monkeypatch.chdir(project.path)
        return project

    return make


@pytest.fixture(scope="module")
def refuted_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = new_study(tmp_path_factory.mktemp("refuted") / "study")
    project.write("rows.csv", SLOW)
    project.register()
    project.take_in()
    project.record()
    return project.path


@pytest.fixture
def refuted(refuted_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    """Registered, measured, refuted and recorded."""
    folder = copied(Project(refuted_once), tmp_path / "study").path
    monkeypatch.chdir(folder)
    return Small(folder, folder)


def verdict(project: Small, prediction: str = "below-two") -> str:
    """The verdict that the evidence gives now, with all that was said against it."""
    state = StudyState(load_study(project.path / "predictions.toml"))
    judgement = state.assess(state.study.predictions[prediction]).judgement
    assert judgement is not None
    return judgement.verdict.value


def test_a_refutation_that_is_recorded_is_fine(refuted: Small):
    audit = refuted.audit()
    assert audit.order() == ("registered", "confirmatory")
    assert (audit.told, audit.exit) == ([], 0)


# Run again until it fits


def again(project: Small, rows: str) -> None:
    project.write("more.csv", rows)
    project.measure("more.csv")
    project.keep("More evidence", "experiments", "more.csv")


def test_a_second_session_decides_nothing_and_is_told(refuted: Small):
    again(refuted, QUICK)
    audit = refuted.audit()
    assert audit.told == [("PR205", "review", LINE)]
    assert audit.exit == 1
    assert verdict(refuted) == "refuted"


def test_a_second_session_that_agrees_is_a_replication(refuted: Small):
    again(refuted, SLOW.replace("3.91", "3.92").replace("4.12", "4.11"))
    assert refuted.audit().told == []


def test_a_voided_series_stays_the_first(refuted: Small):
    refuted.done("void", "rows/1", "--reason", REASON)
    refuted.keep("Void")
    again(refuted, QUICK)
    audit = refuted.audit()
    codes = {(code, level) for code, level, _ in audit.told}
    assert ("PR213", "review") in codes
    assert ("PR205", "review") in codes
    assert verdict(refuted) == "refuted"


def test_runs_in_another_clone_can_not_be_seen_and_that_is_said(refuted: Small):
    said = " ".join(refuted.audit().content["unproven"])
    assert "never committed" in said


# Drop what does not fit


def test_repeats_cut_out_of_committed_evidence(refuted: Small):
    (file,) = refuted.evidence()
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(line for line in lines if b"4.12" not in line))
    refuted.keep("Tidy up")
    audit = refuted.audit()
    assert ("PR207", "error") in {(code, level) for code, level, _ in audit.told}
    assert audit.exit == 1


def test_evidence_deleted_with_its_verdict(refuted: Small):
    (file,) = refuted.evidence()
    file.unlink()
    lock = (refuted.path / "predictions.lock").read_text()
    kept = lock.partition("verdict = ")[0]
    refuted.write("predictions.lock", kept)
    again(refuted, QUICK)
    audit = refuted.audit()
    codes = {(code, level) for code, level, _ in audit.told}
    assert ("PR207", "error") in codes
    assert ("PR205", "review") in codes
    assert audit.exit == 1


def test_the_slow_repeats_excluded(refuted: Small):
    refuted.done("exclude", "rows/1/2", "--cause", "instrument", "--reason", REASON)
    refuted.keep("Exclude")
    audit = refuted.audit()
    assert ("PR208", "review") in {(code, level) for code, level, _ in audit.told}
    assert any(REASON in (one["acknowledged"] or "") for one in audit.findings if one["code"] == "PR208")


def test_an_exclusion_taken_back(refuted: Small):
    refuted.done("exclude", "rows/1/2", "--cause", "instrument", "--reason", REASON)
    refuted.keep("Exclude")
    refuted.git("checkout", "--quiet", "HEAD~1", "--", "predictions.lock")
    refuted.keep("Never mind", "predictions.lock")
    audit = refuted.audit()
    assert ("PR208", "error") in {(code, level) for code, level, _ in audit.told}


# Delete or rename the prediction


def test_a_prediction_deleted_with_its_entry(refuted: Small):
    head, _, _ = STUDY.partition("[predictions")
    other = (
        head
        + '[predictions.other]\nclaim = "x"\nexperiment = "rows"\nquantity = "wall"\npredicts = "<= 9 s"\nfalsifier = "> 10 s"\n'
    )
    refuted.write("predictions.toml", other)
    (refuted.path / "predictions.lock").unlink()
    refuted.lock()
    refuted.keep("Another study altogether")
    audit = refuted.audit()
    found = [one for one in audit.findings if one["id"] == "below-two"]
    assert ("PR203", "error") in {(one["code"], one["level"]) for one in found}
    assert audit.exit == 1


def test_a_prediction_deleted_from_the_text_alone(refuted: Small):
    head, _, _ = STUDY.partition("[predictions")
    refuted.write("predictions.toml", head)
    refuted.keep("Delete")
    audit = refuted.audit()
    assert [(one["code"], one["level"], one["id"]) for one in audit.findings if one["level"] == "error"] == [
        ("PR203", "error", "below-two")
    ]


def test_a_prediction_renamed(refuted: Small):
    refuted.edit("predictions.toml", "below-two", "under-two")
    assert refuted.prereg("lock").exit_code == 1
    refuted.edit("predictions.lock", "below-two", "under-two")
    refuted.keep("Rename")
    audit = refuted.audit()
    codes = {(one["code"], one["level"], one["id"]) for one in audit.findings}
    assert ("PR203", "error", "below-two") in codes
    assert audit.exit == 1


def test_a_prediction_withdrawn_after_its_refutation(refuted: Small):
    refuted.done("withdraw", "below-two", "--reason", REASON)
    refuted.keep("Withdraw")
    audit = refuted.audit()
    assert audit.exit == 0
    assert verdict_in_lock(refuted) == "refuted"


def test_a_tombstone_removed(refuted: Small):
    refuted.done("withdraw", "below-two", "--reason", REASON)
    refuted.keep("Withdraw")
    refuted.git("checkout", "--quiet", "HEAD~1", "--", "predictions.lock")
    refuted.keep("Undo", "predictions.lock")
    audit = refuted.audit()
    assert ("PR203", "error") in {(code, level) for code, level, _ in audit.told}


def verdict_in_lock(project: Small) -> str:
    return str(
        tomllib.loads((project.path / "predictions.lock").read_text())["predictions"]["below-two"]["verdict"]
    )


# Ask another question


TWO_METRICS = STUDY.replace('metrics = { wall = "s" }', 'metrics = { wall = "s", cpu = "s" }')
WITH_TWO = SLOW + "".join(f"{i},cpu,{value},s\n" for i, value in enumerate((1.01, 1.12, 0.93, 1.04, 0.95), 1))

CHANGES = {
    "the metric": ('quantity = "wall"', 'quantity = "cpu"'),
    "the predicted region": ('predicts = "<= 2 s"', 'predicts = "<= 2.9 s"'),
    "the falsifier": ('falsifier = ">= 3 s"', 'falsifier = ">= 30 s"'),
    "the direction": (
        'predicts = "<= 2 s"\nfalsifier = ">= 3 s"',
        'predicts = ">= 3 s"\nfalsifier = "<= 2 s"',
    ),
    "the statistic": ('quantity = "wall"', 'quantity = "wall"\nstatistic = "geometric-mean"'),
    "the confidence": ('id = "small"', 'id = "small"\nconfidence = 0.8'),
    "the number of repeats": ("repeats = 5", "repeats = 4"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changed_once_the_data_were_there(begun: Callable[..., Small], change: tuple[str, str]):
    project = begun(TWO_METRICS)
    project.write("rows.csv", WITH_TWO)
    project.register()
    project.take_in()
    project.record()
    project.edit("predictions.toml", *change)
    project.done("amend", "below-two", "--reason", REASON)
    project.keep("Amend")
    audit = project.audit()
    codes = {(code, level) for code, level, _ in audit.told}
    assert {("PR202", "review"), ("PR209", "error")} <= codes
    assert audit.order() == ("mismatch", "exploratory")
    assert audit.exit == 1


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changed_before_there_were_data(begun: Callable[..., Small], change: tuple[str, str]):
    project = begun(TWO_METRICS)
    project.register()
    project.edit("predictions.toml", *change)
    project.done("amend", "below-two", "--reason", REASON)
    project.keep("Amend")
    audit = project.audit()
    levels = {(code, level) for code, level, _ in audit.told}
    assert ("PR202", "notice") in levels
    assert all(REASON in (one["acknowledged"] or "") for one in audit.findings if one["level"] == "review")
    assert audit.exit == 0


# Edit the record


def test_another_verdict_recorded(refuted: Small):
    refuted.edit("predictions.lock", '"refuted"', '"supported"')
    refuted.keep("Fix the verdict")
    audit = refuted.audit()
    codes = {(code, level) for code, level, _ in audit.told}
    assert {("PR205", "review"), ("PR211", "error")} <= codes
    assert audit.exit == 1


def test_another_verdict_recorded_and_put_back(refuted: Small):
    refuted.edit("predictions.lock", '"refuted"', '"supported"')
    refuted.keep("Fix the verdict")
    refuted.git("checkout", "--quiet", "HEAD~1", "--", "predictions.lock")
    refuted.keep("Put it back", "predictions.lock")
    audit = refuted.audit()
    assert ("PR205", "review") in {(code, level) for code, level, _ in audit.told}
    assert "PR211" not in {code for code, _, _ in audit.told}


def test_evidence_and_lock_edited_together(refuted: Small):
    """A forged study that is consistent in itself: what was committed before gives it away."""
    (file,) = refuted.evidence()
    file.unlink()
    (refuted.path / "predictions.lock").unlink()
    refuted.lock()
    refuted.keep("Begin anew")
    refuted.write("rows.csv", QUICK)
    refuted.take_in()
    refuted.record()
    audit = refuted.audit()
    assert ("PR207", "error") in {(code, level) for code, level, _ in audit.told}
    assert audit.exit == 1


# Bet on both sides


def test_a_claim_and_its_opposite(begun: Callable[..., Small]):
    opposite = '\n[predictions.above]\nclaim = "It takes longer."\nexperiment = "rows"\nquantity = "wall"\npredicts = ">= 3.5 s"\nfalsifier = "<= 2.5 s"\n'
    project = begun(STUDY + opposite)
    project.register()
    audit = project.audit()
    assert "PR214" in {code for code, _, _ in audit.told}
    assert audit.exit == 1


def test_a_successor_with_a_stricter_claim_is_no_opposite(begun: Callable[..., Small]):
    stricter = '\n[predictions.below-one]\nclaim = "It takes less."\nexperiment = "rows"\nquantity = "wall"\npredicts = "<= 1 s"\nfalsifier = ">= 3 s"\n'
    project = begun(STUDY + stricter)
    project.register()
    assert project.audit().told == []


# Quote what does not count


def test_a_quoted_number_that_no_longer_follows(refuted: Small):
    refuted.write("notes.md", "It took <!-- prereg: below-two.estimate -->1.0<!-- /prereg --> s.\n")
    refuted.keep("Quote")
    audit = refuted.audit()
    (finding,) = audit.findings
    assert (finding["code"], finding["level"], finding["line"]) == ("PR210", "error", 1)
    refuted.done("cite")
    assert refuted.audit().told == []


def test_a_verdict_changed_to_and_fro_is_acknowledged_each_time(refuted: Small):
    """Who acknowledged the first change has not seen the third."""
    honest = (refuted.path / "predictions.lock").read_text()
    changed = honest.replace('"refuted"', '"supported"')
    for text in (changed, honest):
        refuted.write("predictions.lock", text)
        refuted.keep("Change it", "predictions.lock")
    refuted.done("acknowledge", "PR205", "below-two", "--reason", REASON)
    refuted.keep("Acknowledge")
    assert refuted.audit().exit == 0
    acknowledged = (refuted.path / "predictions.lock").read_text()
    for text in (acknowledged.replace('"refuted"', '"supported"'), acknowledged):
        refuted.write("predictions.lock", text)
        refuted.keep("Change it again", "predictions.lock")
    audit = refuted.audit()
    assert audit.exit == 1
    assert [one["about"] for one in audit.findings if one["acknowledged"] is None] == [
        "refuted -> supported, time 2",
        "supported -> refuted, time 2",
    ]


def test_a_withdrawn_prediction_keeps_its_order_without_its_text(refuted: Small):
    refuted.done("withdraw", "below-two", "--reason", REASON)
    head, _, _ = STUDY.partition("[predictions")
    refuted.write("predictions.toml", head)
    refuted.keep("Withdraw and delete")
    audit = refuted.audit()
    assert audit.order() == ("registered", "confirmatory")
    (one,) = audit.content["predictions"]
    assert one["head"]["verdict"] == "refuted"
