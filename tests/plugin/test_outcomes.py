"""What each verdict is to pytest: letter, word, category, exit code, and what other plugins read."""

from __future__ import annotations

from pathlib import Path

import pytest

import pytest_prereg

SCHEMA = Path(pytest_prereg.__file__).with_name("records.schema.json")
FOUR = ["below-two", "above-two", "near-one", "not-there"]


def outcomes(result: pytest.RunResult) -> dict[str, int]:
    return result.parseoutcomes()


# The table of outcomes


def test_a_refuted_prediction_fails_the_run_and_an_undecided_one_does_not(at_stage, judge):
    result = judge(at_stage("judged"))

    result.stdout.fnmatch_lines(["predictions.toml +-[?].*[[]100%[]]"])
    assert outcomes(result) == {"failed": 1, "passed": 1, "inconclusive": 1, "pending": 1}
    assert result.ret == 1


def test_words_name_the_verdicts(at_stage, judge):
    result = judge(at_stage("judged"), "-v")

    result.stdout.fnmatch_lines(
        [
            "predictions.toml::below-two SUPPORTED *",
            "predictions.toml::above-two REFUTED *",
            "predictions.toml::near-one INCONCLUSIVE (inconclusive: straddles*",
            "predictions.toml::not-there PENDING (pending: no evidence yet*",
        ]
    )


def test_a_recorded_refutation_passes(at_stage, judge):
    result = judge(at_stage("recorded"))

    result.stdout.fnmatch_lines(["predictions.toml +r[?].*[[]100%[]]"])
    assert outcomes(result) == {"passed": 2, "inconclusive": 1, "pending": 1}
    assert result.ret == 0


def test_a_recorded_refutation_is_called_so(at_stage, judge):
    result = judge(at_stage("recorded"), "-v", "-k", "above-two")

    result.stdout.fnmatch_lines(["predictions.toml::above-two REFUTED (recorded) *"])


def test_a_verdict_that_a_moved_threshold_turns_fails_as_changed(at_stage, judge, records):
    project = at_stage("recorded")
    project.edit("predictions.toml", '">= 3 s"\nfalsifier = "< 2 s"', '">= 0.5 s"\nfalsifier = "< 0.2 s"')

    result = judge(project, "-v", "-k", "above-two")

    result.stdout.fnmatch_lines(["predictions.toml::above-two CHANGED refuted → supported *"])
    assert (outcomes(result), result.ret) == ({"failed": 1, "deselected": 3}, 1)
    judge(project, "-k", "above-two").stdout.fnmatch_lines(["predictions.toml ! *"])
    record = records(project)["above-two"]
    assert (record["changed"], record["verdict"], record["recorded"]) == (True, "supported", "refuted")
    assert (record["order"], record["standing"]) == ("mismatch", "exploratory")


def test_a_failure_shows_the_claim_and_what_to_do_and_no_traceback(at_stage, judge):
    text = judge(at_stage("judged")).stdout.str()

    assert "claim: It takes more than three seconds." in text
    assert "refuted, and not yet recorded: pytest --prereg-verify --prereg-record" in text
    assert "Traceback" not in text
    assert "collection.py" not in text


# Evidence that was tampered with


def alter(path: Path) -> None:
    data = bytearray(path.read_bytes())
    at = data.index(b"0.93") + 3
    data[at] = ord("2")
    path.write_bytes(data)


@pytest.mark.parametrize("stage", ["judged", "recorded"])
def test_one_changed_byte_of_evidence_is_an_error(at_stage, judge, stage):
    project = at_stage(stage)
    (file,) = project.evidence()
    alter(file)

    result = judge(project)

    result.stdout.fnmatch_lines(["predictions.toml EEE.*", f"*{file.name}*PR207: *"])
    assert outcomes(result) == {"errors": 3, "pending": 1}
    assert result.ret == 1
    assert "Traceback" not in result.stdout.str()


def test_altered_evidence_that_is_committed_is_as_bad(at_stage, judge):
    project = at_stage("recorded")
    alter(*project.evidence())
    project.commit("Tidy up")

    assert outcomes(judge(project)) == {"errors": 3, "pending": 1}


def test_altered_evidence_is_never_recorded(at_stage, judge):
    project = at_stage("judged")
    alter(*project.evidence())
    before = (project.path / "predictions.lock").read_text()

    judge(project, "--prereg-record")

    assert (project.path / "predictions.lock").read_text() == before


def test_evidence_removed_after_recording_is_an_error(at_stage, judge):
    project = at_stage("recorded")
    for file in project.evidence():
        file.unlink()

    result = judge(project)

    result.stdout.fnmatch_lines(['*PR207: the evidence of the recorded verdict of "below-two"*is gone*'])
    assert outcomes(result) == {"errors": 3, "pending": 1}
    assert result.ret == 1


def test_evidence_removed_after_its_commit_is_an_error(at_stage, judge):
    project = at_stage("judged")
    for file in project.evidence():
        file.unlink()

    result = judge(project)

    result.stdout.fnmatch_lines(["*PR207: *"])
    assert outcomes(result) == {"errors": 3, "pending": 1}


def test_a_verdict_edited_in_the_lock_is_an_error(at_stage, judge):
    project = at_stage("recorded")
    project.edit("predictions.lock", 'verdict = "refuted"', 'verdict = "supported"')

    result = judge(project, "-k", "above-two")

    result.stdout.fnmatch_lines(
        [
            '*predictions.lock: PR211: the recorded verdict of "above-two", "supported", does not follow*refuted*'
        ]
    )
    assert (outcomes(result), result.ret) == ({"errors": 1, "deselected": 3}, 1)


def test_a_number_edited_in_the_lock_is_an_error(at_stage, judge):
    project = at_stage("recorded")
    project.edit("predictions.lock", "n = 5", "n = 50")

    result = judge(project, "-k", "below-two")

    result.stdout.fnmatch_lines(["*PR211: *"])
    assert outcomes(result) == {"errors": 1, "deselected": 3}


def test_removing_committed_evidence_does_not_buy_another_try(at_stage, judge):
    project = at_stage("measurable")
    judge(project)
    project.commit("Evidence")
    for file in project.evidence("work"):
        file.unlink()

    result = judge(project)

    result.stdout.fnmatch_lines(
        ["predictions.toml E*", '*PR207: evidence "work/*" is gone', "*git checkout HEAD -- *"]
    )
    assert project.repeats_run() == 6


def test_evidence_rewritten_as_a_whole_is_found_out_by_its_commit(at_stage, judge):
    project = at_stage("judged")
    (file,) = project.evidence()
    text = (project.path / "rows.csv").read_text()
    file.unlink()
    project.git("rm", "-rq", "--cached", "experiments")
    (project.path / "rows.csv").write_text(text.replace("1.12", "9.12"))
    project.done("import", "rows.csv", "--experiment", "rows")
    (again,) = project.evidence()
    again.rename(file)

    result = judge(project, "-k", "below-two")

    result.stdout.fnmatch_lines(['*PR207: evidence "rows/*" is not what was committed'])


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"\x00\xff\xfe binary\n", b"not json\n"])
def test_evidence_that_does_not_say_what_it_is_is_an_error_and_not_missing(at_stage, judge, damage):
    project = at_stage("registered")
    project.done("import", "rows.csv", "--experiment", "rows")
    (file,) = project.evidence()
    _, _, rest = file.read_bytes().partition(b"\n")
    file.write_bytes(damage + rest)

    result = judge(project)

    result.stdout.fnmatch_lines(["predictions.toml EEE.*", "*PR207: *"])
    assert outcomes(result) == {"errors": 3, "pending": 1}
