"""What an audit says to do: one command at the end, one that works, and none that another finding forbids."""

from __future__ import annotations

import shutil

import pytest
from audited_study import CLAIM, new_study

from pytest_prereg.audit.acknowledging import CODES
from pytest_prereg.report.findings.rules import RULES

REASON = ("--reason", "looked at it")


@pytest.fixture
def measured(tmp_path):
    """Registered, measured and committed; the verdict is not recorded."""
    project = new_study(tmp_path / "study")
    project.register()
    project.take_in()
    return project


def said(project):
    return project.prereg("audit").output.splitlines()


def ease(project, new="<= 2.5 s"):
    project.edit("predictions.toml", 'predicts = "<= 2 s"', f'predicts = "{new}"')


class TestRestoring:
    def test_what_was_made_easier_after_the_data_is_restored_and_never_amended(self, measured):
        ease(measured)
        lines = said(measured)
        assert lines[-1] == "next:  git checkout HEAD -- predictions.toml"
        assert not [line for line in lines if " amend " in line]
        measured.git("checkout", "HEAD", "--", "predictions.toml")
        assert measured.audit().exit == 0

    def test_committed_it_is_brought_back_from_where_it_was_registered(self, measured):
        registered = measured.git("rev-parse", "--short=8", "HEAD^")
        ease(measured)
        measured.keep("Ease")
        assert said(measured)[-1] == f"next:  git checkout {registered} -- predictions.toml"
        measured.git("checkout", registered, "--", "predictions.toml")
        assert measured.audit().exit == 0

    def test_no_command_is_given_that_would_lose_what_was_written_since(self, measured):
        ease(measured)
        text = (measured.path / "predictions.toml").read_text()
        another = text[text.index("[predictions") :].replace(CLAIM, "another").replace("2.5 s", "1.5 s")
        measured.write("predictions.toml", f"{text}\n{another}")
        output = measured.prereg("audit").output
        assert "Restore it as it is registered." in output
        assert "git checkout" not in output
        assert " amend " not in output

    def test_what_was_made_stricter_may_still_be_amended(self, measured):
        ease(measured, "<= 1.9 s")
        assert said(measured)[-1] == f"next:  pytest-prereg amend {CLAIM} --reason '…'"


class TestHistory:
    def test_without_a_repository_nothing_is_fetched(self, measured):
        shutil.rmtree(measured.path / ".git")
        lines = said(measured)
        assert lines[-1] == "next:  git init"
        assert not [line for line in lines if "unshallow" in line]

    def test_a_clone_that_is_cut_is_told_how_to_be_whole(self, measured, tmp_path):
        cut = measured.cloned(tmp_path / "cut", "--depth=1")
        assert said(cut)[-1].startswith("next:  git fetch --unshallow")


def test_where_evidence_was_is_a_command_with_no_word_behind_it(measured):
    measured.record()
    measured.git("rm", "-r", "--quiet", "experiments")
    measured.keep("Remove the evidence")
    lines = [line.strip() for line in said(measured)]
    assert "git log --oneline -- experiments/evidence" in lines
    assert "git log --oneline -- predictions.lock" in lines


class TestCommitting:
    def test_a_lock_that_waits_for_its_commit_is_told_once_with_the_command(self, tmp_path):
        project = new_study(tmp_path / "study")
        project.lock()
        audit = project.audit()
        assert [(one["code"], one["level"]) for one in audit.content["findings"]] == [("PR102", "notice")]
        assert audit.message("PR102") == f'"{CLAIM}" is in the lock, and that is not committed yet'
        command = said(project)[-1].removeprefix("next:  ")
        assert command == "git add predictions.toml predictions.lock && git commit -m 'Register small'"
        assert audit.content["predictions"][0]["status"] == "unregistered"
        project.keep("Register", "predictions.toml", "predictions.lock")
        assert project.audit().content["predictions"][0]["status"] == "registered"

    def test_so_is_an_amendment(self, tmp_path):
        project = new_study(tmp_path / "study")
        project.register()
        ease(project)
        project.done("amend", CLAIM, "--reason", "a slip")
        lines = said(project)
        assert [line for line in lines if line.startswith("notice  PR102")]
        assert lines[-1].startswith("next:  git add predictions.toml predictions.lock && git commit")


def test_who_tried_first_says_so_as_long_as_nothing_was_measured(at_stage):
    project = at_stage("measurable")
    project.git("rm", "--quiet", "--cached", "predictions.lock")
    (project.path / "predictions.lock").unlink()
    project.commit("Not registered")
    project.done("try", "work")
    project.done("lock")
    project.commit("Register")
    assert said(project)[-1] == "next:  pytest-prereg amend quick-is-quicker --reason '…'"


class TestAcknowledging:
    def test_a_code_that_there_is_not_is_refused_with_those_that_there_are(self, at_stage):
        result = at_stage("recorded").prereg("acknowledge", "PR999", "above-two", *REASON)
        assert result.exit_code == 2
        assert 'nothing that is found has the code "PR999"; there are PR201 to PR216' in result.output

    def test_arguments_the_other_way_round_are_told_with_the_right_command(self, at_stage):
        result = at_stage("recorded").prereg("acknowledge", "above-two", "pr214", *REASON)
        assert result.exit_code == 2
        assert "pytest-prereg acknowledge PR214 above-two --reason" in result.output

    def test_the_codes_are_those_of_findings(self):
        assert {*CODES} == {code for code in RULES if code.startswith("PR2")}


def test_certificates_that_are_not_there_are_an_error_even_without_anchors(measured):
    audit = measured.audit("--anchor-roots", "nope.pem")
    assert (audit.exit, audit.told) == (4, [("PR153", "error", None)])
    assert audit.message("PR153") == "the certificates can't be read: No such file or directory"
