"""``pytest-prereg audit`` as it is typed: what it prints, writes and exits with, and that it changes nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from audited_study import CLAIM, STUDY, new_study

FORMATS = ("terminal", "markdown", "github", "gitlab", "sarif", "json")
BROKEN = """
[constants.second]
value = 1
unit = "s"
source = "by definition"

[predictions.broken]
claim = "It has no logarithm."
experiment = "rows"
quantity = "log(0 - wall / constants.second)"
predicts = "<= 2"
falsifier = ">= 3"
"""


def audited(project, *arguments):
    """The JSON of an audit, whatever it exits with."""
    result = project.prereg("audit", "--format", "json", *arguments)
    document = json.loads(result.stdout)
    assert document["exit"] == result.exit_code
    return document


def found(project, code):
    return [one for one in audited(project)["findings"] if one["code"] == code]


def test_an_honest_study_is_fine_and_nobody_is_asked_for_anything(at_stage):
    project = at_stage("measurable")
    result = project.prereg("audit")
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0].startswith("audit of measured at ")
    assert "1 prediction: 1 confirmatory (1 registered)" in lines
    assert "can't be proven:" in lines
    assert lines[-1] == "audit: nothing is wrong, nothing waits for a person (exit 0: fine)"


def test_an_open_review_fails_with_its_line_and_the_command_that_acknowledges_it(at_stage):
    project = at_stage("recorded")
    result = project.prereg("audit")
    assert result.exit_code == 1
    assert "REVIEW  PR214  above-two  predictions.toml:20" in result.output
    assert result.output.splitlines()[-1].startswith(
        "next:  pytest-prereg acknowledge PR214 above-two --reason"
    )


def test_the_document_says_where_every_prediction_stands(at_stage):
    document = audited(at_stage("recorded"))
    stands = {one["id"]: one for one in document["predictions"]}
    assert list(stands) == ["above-two", "below-two", "near-one", "not-there"]
    assert stands["below-two"]["order"] == "registered"
    assert stands["below-two"]["standing"] == "confirmatory"
    assert stands["below-two"]["base"] == stands["below-two"]["head"]
    assert stands["below-two"]["head"]["verdict"] == "supported"
    assert stands["not-there"]["head"] is None


def test_without_a_repository_it_can_not_be_told(at_stage):
    project = at_stage("measurable")
    shutil.rmtree(project.path / ".git")
    result = project.prereg("audit")
    assert result.exit_code == 4
    assert "UNKNOWN PR212  quick-is-quicker  predictions.toml:11" in result.output
    assert "audit: 1 could not be told (exit 4: could not tell)" in result.output.splitlines()


def test_one_prediction_that_can_not_be_judged_hides_nothing_else(at_stage):
    project = at_stage("registered")
    project.write("predictions.toml", (project.path / "predictions.toml").read_text() + BROKEN)
    project.done("lock")
    project.commit("Register another")
    project.done("import", "rows.csv", "--experiment", "rows")
    project.commit("Evidence")
    (broken,) = found(project, "PR140")
    assert (broken["id"], broken["level"], broken["line"]) == ("broken", "error", 46)
    assert [one["id"] for one in found(project, "PR214")] == ["above-two", "above-two"]
    assert len(audited(project)["predictions"]) == 5


def test_a_study_that_can_not_be_loaded_is_a_report_of_errors(at_stage):
    project = at_stage("registered")
    project.edit("predictions.toml", 'quantity = "wall"', 'quantity = "wal"')
    document = audited(project)
    assert [(one["code"], one["level"], one["line"]) for one in document["findings"]] == [
        ("PR007", "error", line) for line in (15, 23, 30, 37)
    ]
    assert (document["predictions"], document["exit"]) == ([], 1)
    result = project.prereg("audit")
    assert "ERROR   PR007  predictions.toml:15" in result.stdout
    assert "no prediction was looked at" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("predictions.toml", "[study\n", "PR001"),
        ("predictions.lock", "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n", "PR010"),
        ("predictions.lock", "nothing that is known", "PR011"),
    ],
)
def test_every_format_tells_what_can_not_be_read_and_is_written(at_stage, name, text, code):
    project = at_stage("registered")
    project.write(name, text)
    for form in FORMATS:
        result = project.prereg("audit", "--format", form, "--output", "out.txt")
        assert result.exit_code == 1
        assert result.stdout.splitlines()[-1].startswith("audit: 1 error (exit 1: to be mended)")
        said = (project.path / "out.txt").read_text()
        assert code in said
        assert name in said
        (project.path / "out.txt").unlink()


def test_a_lock_at_head_that_can_not_be_read_hides_nothing_else(at_stage):
    project = at_stage("recorded")
    good = (project.path / "predictions.lock").read_bytes()
    project.write("predictions.lock", "nothing that is known")
    project.commit("Break the lock")
    (project.path / "predictions.lock").write_bytes(good)
    document = audited(project)
    assert document["exit"] == 1
    assert len(document["predictions"]) == 4
    assert {"PR011", "PR214"} <= {one["code"] for one in document["findings"]}


@pytest.mark.parametrize("arguments", [("--format", "html"), ("--study", ".."), ("--al",)])
def test_what_makes_no_sense_is_a_usage_error(at_stage, arguments):
    assert at_stage("registered").prereg("audit", *arguments).exit_code == 2


def test_every_format_says_it_and_writes_nothing(at_stage):
    project = at_stage("recorded")
    for form in FORMATS:
        result = project.prereg("audit", "--format", form)
        assert result.exit_code == 1
        assert "PR214" in result.stdout
    assert project.git("status", "--porcelain") == ""


def test_a_file_gets_all_of_it_and_the_terminal_what_it_amounts_to(at_stage):
    project = at_stage("recorded")
    result = project.prereg("audit", "--format", "sarif", "--output", "audit.sarif")
    assert result.exit_code == 1
    assert result.output == "audit: 2 open reviews (exit 1: to be acknowledged)\n"
    log = json.loads((project.path / "audit.sarif").read_bytes())
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "predictions.toml"


def test_a_file_that_can_not_be_written_is_refused_by_a_code(at_stage):
    result = at_stage("recorded").prereg("audit", "--output", "no/such/folder")
    assert result.exit_code == 2
    assert result.stderr.startswith("no/such/folder: PR108: the report can't be written: No such file")


def test_what_is_withdrawn_is_counted_by_itself_with_its_text_or_without(tmp_path):
    project = new_study(
        tmp_path / "study", text=STUDY.replace("<= 2 s", "<= 0.5 s").replace(">= 3 s", ">= 0.7 s")
    )
    project.register()
    project.take_in()
    project.record()
    project.done("withdraw", CLAIM, "--reason", "it was a bad question")
    withdrawn = project.keep("Withdraw")
    project.write(
        "predictions.toml", project.path.joinpath("predictions.toml").read_text().partition("[predictions")[0]
    )
    for _ in range(2):
        lines = project.prereg("audit").output.splitlines()
        assert "1 prediction: 1 withdrawn, counted as refuted" in lines
        assert "  below-two  withdrawn (counted as refuted): it was a bad question" in lines
        audit = project.audit()
        assert audit.content["predictions"][0]["status"] == "withdrawn"
        (notice,) = (one for one in audit.findings if one["code"] == "PR203")
        assert notice["message"] == (
            f'"below-two" was withdrawn in {withdrawn[:8]}: it was a bad question; counted as refuted'
        )
        assert (notice["level"], notice["commit"]) == ("notice", withdrawn)
        assert notice["about"].startswith("withdrawn ")
        project.git("checkout", "HEAD", "--", "predictions.toml")


def test_machines_get_paths_from_the_root_and_people_from_where_they_are(at_stage):
    project = at_stage("registered")
    (project.path / "sub").mkdir()
    for name in ("predictions.toml", "predictions.lock", "rows.csv"):
        project.git("mv", name, f"sub/{name}")
    project.commit("Move")
    inside = type(project)(project.path / "sub")
    assert "REVIEW  PR214  above-two  predictions.toml:20" in inside.prereg("audit").output
    assert (
        "::warning file=sub/predictions.toml,line=20," in inside.prereg("audit", "--format", "github").output
    )


def test_names_of_files_act_on_nothing(at_stage):
    project = at_stage("registered")
    (project.path / "predictions.toml").rename(project.path / "a|b\n::error::x.toml")
    (project.path / "predictions.lock").rename(project.path / "a|b\n::error::x.lock")
    for form in FORMATS:
        said = project.prereg("audit", "--study", "a|b\n::error::x.toml", "--format", form).stdout
        assert not [line for line in said.splitlines() if line.lstrip().startswith("::error")]
        assert "x.toml" in said


def test_an_audit_imports_neither_an_experiment_nor_what_is_heavy(at_stage):
    project = at_stage("recorded")
    project.write("experiments/boom.py", "raise SystemExit('imported')\n")
    program = (
        "import sys\nfrom pytest_prereg.cli import main\n"
        "try:\n    main(['audit'])\nexcept SystemExit as end:\n    assert end.code == 1, end\n"
        "print(*({'torch', 'scipy', 'pint', 'numpy', 'pytest', 'markdown_it'} & set(sys.modules)), sep=',')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=project.path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == ""


def test_a_terminal_without_unicode_gets_ascii(at_stage):
    project = at_stage("recorded")
    project.edit("predictions.toml", "It takes less than two seconds.", "It takes ≤ 2 s.")
    done = subprocess.run(
        [sys.executable, "-m", "pytest_prereg", "audit"],
        cwd=project.path,
        env={"PATH": "/usr/bin:/bin", "PYTHONIOENCODING": "ascii", "COLUMNS": "40"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout.isascii()
    wide = [line for line in done.stdout.decode().splitlines() if len(line) > 40]
    assert all(line.lstrip().startswith(("pytest-prereg", "git", "next:")) for line in wide)
