"""What each verdict is to pytest: letter, word, category, exit code, and what other plugins read."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
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


# Locked, recorded, in CI


def test_locked_refuses_what_is_not_registered(at_stage, judge):
    project = at_stage("recorded")
    text = (project.path / "predictions.toml").read_text()
    more = text[text.index("[predictions.below-two]") : text.index("[predictions.above-two]")]
    project.write("predictions.toml", text + "\n" + more.replace("below-two", "below-three"))

    result = judge(project, "--prereg-locked", "-k", "below")

    result.stdout.fnmatch_lines(
        ["predictions.toml +E*", 'predictions.toml:*: PR102: "below-three" is not registered']
    )
    assert (outcomes(result), result.ret) == ({"passed": 1, "errors": 1, "deselected": 3}, 1)


def test_locked_refuses_a_verdict_that_is_not_recorded(at_stage, judge):
    result = judge(at_stage("judged"), "--prereg-locked")

    result.stdout.fnmatch_lines(["predictions.toml EEE.*"])
    result.stdout.fnmatch_lines(['*"below-two" has a verdict that the lock does not record'])
    assert (outcomes(result), result.ret) == ({"errors": 3, "pending": 1}, 1)


def test_locked_refuses_what_is_exploratory(at_stage, judge):
    project = at_stage("registered")
    project.git("update-ref", "-d", "HEAD")
    project.done("import", "rows.csv", "--experiment", "rows")
    project.commit("All at once")

    result = judge(project, "--prereg-locked")

    result.stdout.fnmatch_lines(['*PR212: "below-two" is exploratory: *'])
    assert (outcomes(result), result.ret) == ({"errors": 3, "pending": 1}, 1)


def test_locked_lets_what_is_recorded_or_pending_be(at_stage, judge):
    result = judge(at_stage("recorded"), "--prereg-locked")

    assert (outcomes(result), result.ret) == ({"passed": 2, "inconclusive": 1, "pending": 1}, 0)


def test_ci_verifies_is_locked_and_says_why(at_stage, judge, monkeypatch):
    monkeypatch.setenv("CI", "true")
    project = at_stage("measurable")

    result = judge(project)

    result.stdout.fnmatch_lines(["prereg: verify (CI is set) · locked"])
    assert outcomes(result) == {"pending": 1}
    assert result.ret == 0
    assert project.repeats_run() == 0


def test_an_empty_ci_variable_is_no_ci(at_stage, judge, monkeypatch):
    monkeypatch.setenv("CI", "")

    judge(at_stage("recorded")).stdout.fnmatch_lines(["prereg: measure and judge"])


def test_what_is_typed_outweighs_ci(at_stage, judge, monkeypatch):
    monkeypatch.setenv("CI", "true")

    result = judge(at_stage("measurable"), "--prereg-measure", "--no-prereg-locked")

    result.stdout.fnmatch_lines(["prereg: measure and judge"])
    assert (outcomes(result), result.ret) == ({"passed": 1}, 0)


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--prereg-record", "CI is set: record verdicts where a person commits them, not in CI"),
        ("--prereg-fresh", "CI is set: --prereg-fresh needs --prereg-measure"),
    ],
)
def test_ci_refuses_what_only_a_person_may_do(at_stage, judge, monkeypatch, flag, said):
    monkeypatch.setenv("CI", "1")

    result = judge(at_stage("judged"), flag)

    result.stderr.fnmatch_lines([f"ERROR: *{said}*"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize("flag", ["--prereg-measure", "--prereg-fresh", "--prereg-explore"])
def test_verifying_and_measuring_contradict_each_other(at_stage, judge, flag):
    result = judge(at_stage("judged"), "--prereg-verify", flag)

    result.stderr.fnmatch_lines(["ERROR: --prereg-verify launches nothing*"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_an_executor_that_is_not_there_is_a_usage_error(at_stage, judge):
    result = judge(at_stage("judged"), "--prereg-executor", "modl")

    told = '*PR007: --prereg-executor: no executor is called "modl"; did you mean "modal"?'
    (result.stderr if result.ret == 4 else result.stdout).fnmatch_lines([told])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


def test_recording_in_the_run_that_measures(at_stage, judge):
    project = at_stage("measurable")

    result = judge(project, "--prereg-record")

    result.stdout.fnmatch_lines(
        [
            "recorded 1 verdict in predictions.lock",
            "next:  git add predictions.lock experiments/evidence && git commit -m 'Evidence for measured'",
        ]
    )
    assert 'verdict = "supported"' in (project.path / "predictions.lock").read_text()
    assert outcomes(judge(project, "--prereg-record")) == {"passed": 1}


def test_recording_twice_writes_nothing_new(at_stage, judge):
    project = at_stage("recorded")

    result = judge(project, "--prereg-record")

    result.stdout.fnmatch_lines(["nothing new to record in predictions.lock"])
    assert project.git("status", "--short", "predictions.lock") == ""


def test_an_exploratory_verdict_is_not_recorded(at_stage, judge):
    project = at_stage("registered")
    project.git("update-ref", "-d", "HEAD")
    project.done("import", "rows.csv", "--experiment", "rows")
    project.commit("All at once")

    judge(project, "--prereg-record")

    assert "verdict" not in (project.path / "predictions.lock").read_text()


def test_recording_keeps_what_others_registered_meanwhile(at_stage, judge):
    project = at_stage("judged")
    project.write(
        "conftest.py",
        """
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish():
    from pathlib import Path
    lock = Path("predictions.lock")
    text = lock.read_text()
    table = text[text.index("[predictions.below-two]"):text.index("[predictions.near-one]")]
    lock.write_text(text + "\\n" + table.replace("below-two", "registered-meanwhile"))
""",
    )

    judge(project, "--prereg-record")

    text = (project.path / "predictions.lock").read_text()
    assert "registered-meanwhile" in text
    assert text.count("verdict = ") == 3


@pytest.mark.parametrize("spoil", ["lock.write_text('<<<<<<< ours')", "lock.unlink(); lock.mkdir()"])
def test_a_lock_that_cannot_be_written_is_said_and_the_verdicts_are_shown(at_stage, judge, spoil):
    project = at_stage("judged")
    project.write(
        "conftest.py",
        f"""
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish():
    from pathlib import Path
    lock = Path("predictions.lock")
    {spoil}
""",
    )

    result = judge(project, "--prereg-record", "-k", "below-two")

    result.stdout.fnmatch_lines([" + below-two*1.01*", "predictions.lock*PR01[01]: *"])
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    assert result.ret != 0


# What is selected


def test_without_a_study_the_run_says_how_to_begin(at_stage, judge):
    project = at_stage("written")
    (project.path / "predictions.toml").unlink()
    project.write("test_ordinary.py", "def test_it(): raise AssertionError")

    result = judge(project)

    result.stdout.fnmatch_lines(["no study here: pytest-prereg init writes one, or name a predictions.toml"])
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_study_named_without_the_flag_is_skipped_with_the_reason(at_stage, judge):
    result = judge(at_stage("judged"), "predictions.toml", "-rs", asked=False)

    result.stdout.fnmatch_lines(["*needs --prereg: pytest --prereg predictions.toml*"])
    assert (outcomes(result), result.ret) == ({"skipped": 4}, 0)


def test_another_toml_file_is_none_of_our_business(at_stage, judge):
    project = at_stage("judged")
    project.write("pyproject.toml", "[project]\nname = 'x'\n")

    result = judge(project, "pyproject.toml", asked=False)

    result.stderr.fnmatch_lines(["ERROR: not found: *pyproject.toml*"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_a_test_file_beside_the_flag_is_a_usage_error(at_stage, judge):
    project = at_stage("judged")
    project.write("test_ordinary.py", "def test_it(): pass")

    result = judge(project, "test_ordinary.py")

    result.stderr.fnmatch_lines(
        ["ERROR: test_ordinary.py is not a study: --prereg collects predictions only.*"]
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_a_file_that_is_not_there_is_a_usage_error(at_stage, judge):
    result = judge(at_stage("judged"), "prediction.toml")

    result.stderr.fnmatch_lines(["ERROR: *prediction.toml*"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_a_folder_selects_the_studies_below_it(at_stage, judge):
    project = at_stage("judged")
    for folder in ("studies/one", "studies/build/two", "elsewhere"):
        text = (project.path / "predictions.toml").read_text()
        project.write(f"{folder}/predictions.toml", text.replace('"small"', f'"{folder.rpartition("/")[2]}"'))
    project.write("studies/test_ordinary.py", "raise AssertionError('imported')")

    result = judge(project, "studies")

    result.stdout.fnmatch_lines(
        ["studies/build/two/predictions.toml ....*", "studies/one/predictions.toml ....*"]
    )
    assert (outcomes(result), result.ret) == ({"pending": 8}, 0)


def test_a_study_is_found_through_a_symbolic_link(at_stage, judge, tmp_path):
    project = at_stage("judged")
    link = tmp_path / "link"
    link.symlink_to(project.path, target_is_directory=True)

    result = judge(project, str(link / "predictions.toml"))

    assert outcomes(result) == {"failed": 1, "passed": 1, "inconclusive": 1, "pending": 1}


def test_a_node_id_selects_one_prediction(at_stage, judge):
    result = judge(at_stage("judged"), "predictions.toml::below-two", "-v")

    result.stdout.fnmatch_lines(["predictions.toml::below-two SUPPORTED *"])
    assert outcomes(result) == {"passed": 1}


def test_an_unknown_node_id_is_a_usage_error(at_stage, judge):
    result = judge(at_stage("judged"), "predictions.toml::below-twoo")

    result.stderr.fnmatch_lines(["ERROR: *below-twoo*"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize(
    ("option", "value"),
    [("-k", "below-two"), ("-k", "speed"), ("-m", 'prereg(experiment="rows") and prereg(kind="claim")')],
)
def test_predictions_are_selected_by_id_tag_and_experiment(at_stage, judge, option, value):
    result = judge(at_stage("recorded"), option, value, "-v")

    chosen = 3 if option == "-m" else 1
    result.stdout.fnmatch_lines(["predictions.toml::below-two SUPPORTED *"])
    assert outcomes(result)["deselected"] == 4 - chosen


# Other flags of pytest


def test_collecting_says_what_would_be_measured_and_measures_nothing(at_stage, judge):
    project = at_stage("measurable")

    result = judge(project, "--co")

    result.stdout.fnmatch_lines(
        [
            "*<PredictionItem quick-is-quicker>",
            "would measure work: series 1, 6 of 6 repeats, time unknown, $0.00",
        ]
    )
    assert result.ret == 0
    assert (project.repeats_run(), project.evidence("work")) == (0, [])


def test_collecting_imports_no_experiment(at_stage, judge):
    project = at_stage("measurable")
    project.write(
        "experiments/work.py",
        "raise AssertionError('imported')\n" + (project.path / "experiments/work.py").read_text(),
    )

    assert judge(project, "--co").ret == 0


def test_collecting_overwrites_no_records(at_stage, judge, tmp_path):
    out = tmp_path / "out.json"
    out.write_text("kept")

    judge(at_stage("judged"), "--co", f"--prereg-json={out}")

    assert out.read_text() == "kept"


def test_a_plan_measures_nothing(at_stage, judge):
    project = at_stage("measurable")

    judge(project, "--setup-plan")

    assert project.repeats_run() == 0


def test_stopping_at_the_first_failure_leaves_the_rest(at_stage, judge):
    result = judge(at_stage("judged"), "-x")

    assert (outcomes(result), result.ret) == ({"passed": 1, "failed": 1}, 1)
    result.stdout.fnmatch_lines(["*stopping after 1 failures*"])


def test_last_failed_runs_the_refuted_one_again(at_stage, judge):
    project = at_stage("judged")
    judge(project, "-p", "cacheprovider")

    result = judge(project, "--lf")

    assert outcomes(result) == {"failed": 1, "deselected": 3}


def test_quiet_output_keeps_the_verdicts(at_stage, judge):
    result = judge(at_stage("judged"), "-q")

    result.stdout.fnmatch_lines(
        ["+-[?].*", " + below-two *", " - above-two *", "*1 failed, 1 passed, 1 inconclusive, 1 pending in *"]
    )


@pytest.mark.parametrize("extra", [[], ["--co"], ["--prereg-record"]])
def test_it_works_without_the_terminal(at_stage, judge, extra, tmp_path):
    project = at_stage("measurable")

    result = judge(project, "-p", "no:terminal", *extra)

    assert result.ret == 0
    assert project.repeats_run() == (0 if "--co" in extra else 6)


def test_the_plugin_can_be_left_out(at_stage, judge):
    project = at_stage("judged")
    project.write("test_ordinary.py", "def test_it(): pass")

    result = judge(project, "-p", "no:prereg", "--strict-markers", asked=False)

    assert (outcomes(result), result.ret) == ({"passed": 1}, 0)


def test_junit_carries_the_verdict_and_counts_the_undecided_as_skipped(at_stage, judge, tmp_path):
    out = tmp_path / "junit.xml"

    judge(at_stage("judged"), f"--junitxml={out}")

    suite = ET.parse(out).getroot()[0]
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "4", "failures": "1", "errors": "0", "skipped": "2"}
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    told = {one.get("name"): one.get("value") for one in cases["above-two"].iter("property")}
    assert told["prereg.verdict"] == "refuted"
    assert told["prereg.standing"] == "confirmatory"
    assert json.loads(told["prereg.interval"]) == pytest.approx([0.9158, 1.1042], abs=1e-4)
    (skipped,) = cases["near-one"].iter("skipped")
    assert skipped.get("message").startswith("inconclusive: straddles")


def test_reports_are_serialised_with_the_record(at_stage, judge):
    project = at_stage("judged")
    project.write(
        "conftest.py",
        """
import json
import shutil

def pytest_runtest_logreport(report):
    import pytest
    data = CONFIG.hook.pytest_report_to_serializable(config=CONFIG, report=report)
    with open("log.jsonl", "a") as log:
        print(json.dumps(data), file=log)

def pytest_configure(config):
    global CONFIG
    CONFIG = config
""",
    )

    judge(project)

    reports = [json.loads(line) for line in (project.path / "log.jsonl").read_text().splitlines()]
    told = {one["nodeid"]: one["prereg"]["verdict"] for one in reports if one["when"] == "call"}
    assert told["predictions.toml::above-two"] == "refuted"
    assert told["predictions.toml::not-there"] is None


def test_a_plugin_is_told_every_record_once(at_stage, judge):
    project = at_stage("judged")
    project.write(
        "conftest.py",
        "def pytest_prereg_verdict(record):\n    print('told', record.id, record.verdict, record.interval is None)\n",
    )

    result = judge(project, "-s")

    told = [line.partition("told ")[2] for line in result.outlines if "told " in line]
    assert told == [
        "below-two supported False",
        "above-two refuted False",
        "near-one inconclusive False",
        "not-there None True",
    ]


def test_a_plugin_cannot_change_a_record(at_stage, judge):
    project = at_stage("judged")
    project.write("conftest.py", "def pytest_prereg_verdict(record):\n    record.verdict = 'supported'\n")

    result = judge(project)

    assert outcomes(result) == {"errors": 4}
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()


# Records


@pytest.mark.parametrize("stage", ["registered", "judged", "recorded"])
def test_records_fit_the_schema_that_is_shipped(at_stage, records, stage):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")

    written = records(at_stage(stage)).content

    jsonschema.validate(written, json.loads(SCHEMA.read_text()))
    assert [one["id"] for one in written["predictions"]] == FOUR


def test_a_record_says_what_the_verdict_rests_on(at_stage, records):
    record = records(at_stage("recorded"))["above-two"]

    assert record["status"] == "judged"
    assert (record["verdict"], record["recorded"], record["changed"]) == ("refuted", "refuted", False)
    assert (record["unit"], record["n"], record["planned"], record["series"]) == ("s", 5, 5, 1)
    assert record["repeats"] == [f"rows/1/{number}" for number in range(1, 6)]
    assert record["interval"] == pytest.approx([0.9158, 1.1042], abs=1e-4)


def test_records_are_written_into_a_folder_that_is_made_for_them(at_stage, judge, tmp_path):
    out = tmp_path / "a" / "b" / "records.json"

    result = judge(at_stage("judged"), f"--prereg-json={out}")

    assert result.ret == 1
    assert len(json.loads(out.read_text())["predictions"]) == 4


def test_records_that_cannot_be_written_are_said(at_stage, judge, tmp_path):
    result = judge(at_stage("recorded"), f"--prereg-json={tmp_path}")

    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    assert str(tmp_path) in result.stdout.str() + result.stderr.str()
    assert result.ret != 0


def test_without_evidence_the_grade_is_that_of_the_registration(at_stage, records):
    project = at_stage("registered")
    text = (project.path / "predictions.toml").read_text()
    more = text[text.index("[predictions.below-two]") : text.index("[predictions.above-two]")]
    project.write("predictions.toml", text + "\n" + more.replace("below-two", "new-one"))

    orders = records(project).each("order")

    assert orders == {**dict.fromkeys(FOUR, "registered"), "new-one": "unregistered"}


def test_registered_in_a_commit_before_the_evidence(at_stage, records):
    project = at_stage("judged")

    assert set(records(project).each("order").values()) == {"registered"}
    assert set(records(project).each("standing").values()) == {"confirmatory"}


def test_evidence_that_is_not_committed_yet_follows_what_is_committed(at_stage, records):
    project = at_stage("registered")
    project.done("import", "rows.csv", "--experiment", "rows")

    assert records(project).each("order")["below-two"] == "registered"


def test_registration_and_evidence_in_one_commit_are_simultaneous(at_stage, records):
    project = at_stage("registered")
    project.git("update-ref", "-d", "HEAD")
    project.done("import", "rows.csv", "--experiment", "rows")
    project.commit("All at once")

    record = records(project)["below-two"]

    assert (record["order"], record["standing"]) == ("simultaneous", "exploratory")


def test_evidence_committed_before_the_registration(at_stage, records):
    project = at_stage("registered")
    project.done("import", "rows.csv", "--experiment", "rows")
    project.git("update-ref", "-d", "HEAD")
    project.git("rm", "-q", "--cached", "predictions.lock")
    project.git("commit", "-qm", "Evidence", "--allow-empty")
    project.git("add", "experiments")
    project.git("commit", "-qm", "Evidence")
    project.commit("Register")

    record = records(project)["below-two"]

    assert (record["order"], record["standing"]) == ("after-evidence", "exploratory")


def test_nothing_committed_is_unregistered(at_stage, records):
    project = at_stage("registered")
    project.git("update-ref", "-d", "HEAD")

    assert set(records(project).each("order").values()) == {"unregistered"}


def test_without_git_nothing_can_be_verified(at_stage, records):
    project = at_stage("judged")
    shutil.rmtree(project.path / ".git")

    written = records(project)

    assert set(written.each("order").values()) == {"unverifiable"}
    assert set(written.each("standing").values()) == {"exploratory"}


# Measuring


def test_nothing_is_measured_that_is_not_committed(at_stage, judge):
    project = at_stage("measurable")
    project.git("update-ref", "-d", "HEAD")

    result = judge(project)

    result.stdout.fnmatch_lines(["*PR102: *", "*git add predictions.* experiments/*.py && git commit*"])
    assert (outcomes(result), result.ret) == ({"pending": 1}, 0)
    assert project.repeats_run() == 0


def test_exploring_measures_what_is_not_committed_and_never_counts(at_stage, records, capsys):
    project = at_stage("measurable")
    project.git("update-ref", "-d", "HEAD")

    record = records(project, "--prereg-explore")["quick-is-quicker"]

    assert (record["verdict"], record["standing"]) == ("supported", "exploratory")
    assert project.repeats_run() == 6
    assert "nothing was measured" not in capsys.readouterr().out
    project.commit("Register, too late")
    assert records(project, "--prereg-verify")["quick-is-quicker"]["standing"] == "exploratory"


def test_what_is_measured_is_not_measured_again(at_stage, judge):
    project = at_stage("measurable")

    assert outcomes(judge(project)) == {"passed": 1}
    assert outcomes(judge(project)) == {"passed": 1}
    assert project.repeats_run() == 6


def test_a_replication_is_shown_and_never_changes_the_verdict(at_stage, judge, records):
    project = at_stage("measurable")
    judge(project, "--prereg-record")
    project.commit("Evidence")
    project.edit("experiments/work.py", "spin * 0.25", "9 + spin * 0.2")
    project.done("amend", "quick-is-quicker", "--reason", "Only to have other numbers")
    project.commit("Amend")

    result = judge(project, "--prereg-fresh")

    result.stdout.fnmatch_lines(
        [" + quick-is-quicker *0.25*", "series 2, a replication:", " - quick-is-quicker *0.9*"]
    )
    assert (outcomes(result), result.ret) == ({"passed": 1}, 0)
    assert project.repeats_run() == 12
    record = records(project)["quick-is-quicker"]
    assert (record["verdict"], record["series"]) == ("supported", 1)


def test_code_that_changed_after_a_claim_was_decided_is_no_complaint(at_stage, judge):
    project = at_stage("measurable")
    judge(project, "--prereg-record")
    project.edit("experiments/work.py", "spin * 0.25", "2.0")

    result = judge(project)

    assert outcomes(result) == {"passed": 1}
    assert "PR103" not in result.stdout.str()
    assert project.repeats_run() == 6


def test_an_amendment_that_is_not_committed_has_to_be_committed_and_not_made_again(at_stage, judge):
    project = at_stage("measurable")
    project.edit("predictions.toml", '"<= 0.5"', '"<= 0.4"')
    project.done("amend", "quick-is-quicker", "--reason", "Stricter")

    result = judge(project)

    result.stdout.fnmatch_lines(["*PR104: *", "    git add predictions.* experiments/*.py && git commit *"])
    assert "pytest-prereg amend" not in result.stdout.str()


def test_a_broken_lock_at_head_is_said_and_nothing_is_measured(at_stage, judge):
    project = at_stage("measurable")
    good = (project.path / "predictions.lock").read_bytes()
    (project.path / "predictions.lock").write_bytes(b"\xff\x00")
    project.commit("Oops")
    (project.path / "predictions.lock").write_bytes(good)

    for extra in ([], ["--co"]):
        result = judge(project, *extra)

        result.stdout.fnmatch_lines(["HEAD:predictions.lock: PR011: unreadable lock: *not UTF-8*"])
        assert "Traceback" not in result.stdout.str()
    assert project.repeats_run() == 0


# What the terminal shows


def test_measuring_is_announced_on_a_line_of_its_own(at_stage, judge):
    result = judge(at_stage("halfway"))

    result.stdout.fnmatch_lines(
        ["predictions.toml +-[?].", "work: measuring 6 of 6 repeats", "predictions.toml + * [[]100%[]]"],
        consecutive=True,
    )


def test_on_a_terminal_a_line_is_rewritten_and_no_verdict_is_erased(at_stage):
    said = on_a_terminal(at_stage("halfway"), "--prereg", "-k", "quick or below")

    line = next(line for line in said.split("\r\n") if line.startswith("work: measuring"))
    shown = line.split("\r\x1b[K")
    assert len(shown) == 8
    assert re.fullmatch(r"work  block 1 of 3  (quick|slow)  1 of 6   \$0\.00", shown[1])
    assert re.fullmatch(r"work  block 3 of 3  (quick|slow)  6 of 6   \d+ s left   \$0\.00", shown[6])
    assert shown[0] == shown[7] == "work: measuring 6 of 6 repeats"
    before, _, after = said.partition(line)
    assert re.search(r"predictions.toml \x1b\[32m\+\x1b\[0m\r\n$", before)
    assert re.match(r"\r\npredictions.toml \x1b\[32m\+\x1b\[0m", after)


def on_a_terminal(project, *arguments: str) -> str:
    """What pytest prints on a terminal of its own."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pytest", *arguments]
    with subprocess.Popen(command, cwd=project.path, stdout=theirs, stderr=theirs, stdin=theirs) as run:
        os.close(theirs)
        said = bytearray()
        with contextlib.suppress(OSError):  # the other end is closed
            while data := os.read(ours, 65536):
                said += data
        os.close(ours)
    assert run.returncode == 0, said
    return said.decode()


def test_a_terminal_that_knows_only_ascii_gets_only_ascii(at_stage):
    done = at_stage("judged").process("--prereg", PYTHONIOENCODING="ascii", PYTHONUTF8="0")

    assert "above-two" in done.stdout
    assert "\\u" not in done.stdout


def test_code_that_is_not_committed_is_not_measured(at_stage, judge):
    project = at_stage("measurable")
    project.git("rm", "-q", "--cached", "experiments/work.py")
    project.git("commit", "-qm", "Forget the code")

    result = judge(project)

    result.stdout.fnmatch_lines(["*PR102: *the code of experiment*is not committed*"])
    assert project.repeats_run() == 0


def test_an_import_before_the_registration_was_committed_is_told_for_good(at_stage, records):
    project = at_stage("registered")
    project.git("update-ref", "-d", "HEAD")
    project.done("import", "rows.csv", "--experiment", "rows")
    project.git("reset", "-q")
    project.git("add", "predictions.toml", "predictions.lock")
    project.git("commit", "-qm", "Register")
    project.commit("Evidence")

    record = records(project)["below-two"]

    assert record["order"] == "registered"
    assert "imported early" in record["flags"]


def test_in_a_folder_below_the_study_it_says_where_the_study_is(at_stage, pytester):
    project = at_stage("judged")
    below = project.path / "below"
    below.mkdir()
    os.chdir(below)

    result = pytester.runpytest_inprocess("--prereg", "--rootdir", str(below))

    result.stdout.fnmatch_lines(
        ["no study here, but there is ../predictions.toml: pytest --prereg --rootdir .."]
    )
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_verdict_on_code_that_has_changed_since_is_told(at_stage, records):
    project = at_stage("measurable")
    assert "earlier code" not in records(project, "--prereg-record")["quick-is-quicker"]["flags"]
    code = (project.path / "experiments/work.py").read_text(encoding="utf-8")
    project.write("experiments/work.py", code.replace("0.001", "0.002"))

    assert "earlier code" in records(project, "--prereg-verify")["quick-is-quicker"]["flags"]


def test_a_claim_that_lost_its_verdict_is_told_as_changed_and_is_no_guard(at_stage, judge):
    project = at_stage("recorded")
    project.edit("predictions.toml", 'predicts = "<= 2 s"', 'predicts = "<= 1 s"')

    said = judge(project, "-k", "below-two").stdout.str()

    assert "the lock records supported; the change needs a person's eyes" in said
    assert "guard" not in said
