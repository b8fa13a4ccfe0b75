"""Amending after the data: a refutation stays counted, and ``amend`` says what becomes of what is there."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from pytest_prereg.registry.lock import read_lock

if TYPE_CHECKING:
    from small_study import Project

TOML, LOCK = "predictions.toml", "predictions.lock"
WHY = ("--reason", "it was too easy")
REFUTED_BEFORE = "was refuted before it was amended"


def stricter(project: Project) -> None:
    """``above-two``, which is refuted, wants more than it did."""
    project.edit(TOML, 'predicts = ">= 3 s"\nfalsifier = "< 2 s"', 'predicts = ">= 4 s"\nfalsifier = "< 3 s"')


def amended(project: Project) -> str:
    stricter(project)
    said = project.done("amend", "above-two", *WHY)
    project.commit("Amend")
    return " ".join(said.split())


def amend_here(project: Project) -> str:
    return " ".join(project.done("amend", "above-two", *WHY).split())


def report(result: pytest.RunResult) -> str:
    """What a run prints, without line breaks and rules."""
    return " ".join(re.sub(r"-{5,}", "", result.stdout.str()).split())


def kept(project: Project) -> str | None:
    (amendment,) = read_lock(project.path / LOCK).predictions["above-two"].amendments
    return amendment.verdict


def cited(project: Project) -> list[str]:
    names = ("supported", "refuted", "inconclusive")
    citations = (f"{one} <!-- prereg: study.{one} -->?<!-- /prereg -->" for one in names)
    page = project.write("page.md", "\n\n".join(citations) + "\n")
    project.done("cite", "page.md")
    return [line.split(">")[1].partition("<")[0] for line in page.read_text().splitlines() if line]


@pytest.mark.parametrize("text", ["there", "gone"])
@pytest.mark.parametrize("stage", ["recorded", "judged"])
def test_a_refutation_is_not_lost_by_amending_and_withdrawing(at_stage, records, judge, stage, text):
    project = at_stage(stage)
    amended(project)

    said = project.done("withdraw", "above-two", *WHY)
    if text == "gone":
        before, _, after = (project.path / TOML).read_text().partition("[predictions.above-two]\n")
        project.write(TOML, before + "[" + after.partition("\n[")[2])
    project.commit("Withdraw")

    assert "it was refuted before it was amended, and stays counted as refuted" in " ".join(said.split())
    assert kept(project) == "refuted"
    found = records(project)["above-two"]
    assert (found["status"], found["recorded"]) == ("withdrawn", None)
    assert REFUTED_BEFORE in found["flags"]
    shown = report(judge(project))
    assert "1 refuted (1 withdrawn, 1 amended)" in shown
    assert f"withdrawn, counted as refuted ({REFUTED_BEFORE}): it was too easy" in shown
    if stage == "recorded":
        assert cited(project) == ["1", "1", "1"]
    assert "withdrawn (counted as refuted)" in project.prereg("audit").output


def test_one_that_stays_says_so_and_stays_counted(at_stage, judge):
    project = at_stage("recorded")
    amended(project)

    shown = report(judge(project))

    assert REFUTED_BEFORE in shown
    assert "1 refuted (1 amended)" in shown
    assert cited(project) == ["1", "1", "1"]
    assert REFUTED_BEFORE in project.done("explain", "above-two")


def test_one_without_evidence_for_what_it_is_now_says_so_while_it_is_pending(at_stage, judge):
    project = at_stage("recorded")
    project.edit(
        TOML,
        '[predictions.above-two]\nclaim = "It takes more than three seconds."\nexperiment = "rows"',
        '[predictions.above-two]\nclaim = "It takes more than three seconds."\nexperiment = "elsewhere"',
    )
    project.done("amend", "above-two", *WHY)
    project.commit("Amend")

    shown = report(judge(project))

    assert "pending: no evidence yet" in shown
    assert REFUTED_BEFORE in shown


def test_taken_back_it_is_counted_once(at_stage, judge):
    project = at_stage("recorded")
    before = (project.path / TOML).read_text()
    amended(project)
    project.write(TOML, before)
    project.done("amend", "above-two", "--reason", "taken back")
    project.commit("Take back")

    shown = report(judge(project))

    assert "1 supported · 1 refuted · 1 inconclusive" in shown


class TestWhatAmendSays:
    def test_before_the_data_nothing_but_the_id(self, at_stage):
        project = at_stage("registered")
        stricter(project)

        said = project.done("amend", "above-two", *WHY)

        assert said.splitlines()[0] == "amended  above-two"
        assert said.splitlines()[1].startswith("next:  ")
        assert kept(project) is None

    def test_after_a_recorded_verdict(self, at_stage):
        said = amended(at_stage("recorded"))

        assert "there are data for what was registered (5 repeats)" in said
        assert (
            'the lock recorded "refuted": this amendment keeps that, and the lock records it no more' in said
        )
        assert "exploratory (mismatch)" in said
        assert "git checkout HEAD -- predictions.toml predictions.lock" in said

    def test_a_verdict_that_nobody_recorded(self, at_stage):
        assert 'they give "refuted": this amendment keeps that' in amended(at_stage("judged"))

    def test_data_that_can_not_be_judged(self, at_stage):
        project = at_stage("registered")
        project.write("one.csv", "repeat,metric,value,unit\n1,wall,1.01,s\n")
        project.done("import", "one.csv", "--experiment", "rows")
        project.commit("Evidence")

        said = amended(project)

        assert "(1 repeat), and no verdict on them that could be kept: it is pending: 1 of 5 repeats" in said
        assert kept(project) is None


class TestWhereItComesBackFrom:
    """The edit may be committed: then HEAD brings back what was edited."""

    def test_an_earlier_commit_is_named_where_head_has_the_edited_text(self, at_stage):
        project = at_stage("recorded")
        text = (project.path / TOML).read_text()
        stricter(project)
        project.commit("Edit")

        said = amend_here(project)
        command = re.search(r"take it back \((.*?)\)", said)[1]
        subprocess.run(command, shell=True, cwd=project.path, check=True, capture_output=True)

        assert command.endswith("-- predictions.toml && git checkout HEAD -- predictions.lock")
        assert (project.path / TOML).read_text() == text
        assert project.prereg("lock", "--check").exit_code == 0

    def test_the_table_is_named_where_the_file_has_changed_otherwise_too(self, at_stage):
        project = at_stage("recorded")
        _, _, table = (project.path / TOML).read_text().partition("[predictions.below-two]\n")
        own = table.partition("\n\n")[0]
        stricter(project)
        project.write(TOML, f"{(project.path / TOML).read_text()}\n[predictions.again]\n{own}\n")
        project.commit("Edit")

        said = amend_here(project)

        assert re.search(r"\[predictions.above-two\] as [0-9a-f]{8} has it \(git diff ", said)


class TestWhatIsAdvisedBeforeAmending:
    @pytest.mark.parametrize("stage", ["judged", "recorded"])
    def test_a_successor_comes_first_once_there_are_data(self, at_stage, stage):
        project = at_stage(stage)
        stricter(project)

        said = " ".join(project.prereg("lock").output.split())

        assert (
            "There are data for what was registered. Take it back: git checkout HEAD -- predictions.toml"
            in said
        )
        assert said.index("a successor") < said.index("pytest-prereg amend above-two")

    def test_pytest_says_so_as_well(self, at_stage, judge):
        project = at_stage("measurable")
        judge(project)
        project.commit("Evidence")
        project.edit(TOML, '"<= 0.5"', '"<= 0.4"')
        project.commit("Edit")

        said = report(judge(project))

        assert re.search(r"Take it back: git checkout [0-9a-f]{8} -- predictions.toml Register what", said)
        assert "pytest-prereg amend quick-is-quicker" in said

    def test_before_the_data_it_is_amended(self, at_stage):
        project = at_stage("registered")
        stricter(project)
        project.commit("Edit")

        assert "successor" not in project.prereg("lock").output


class TestNoWayRound:
    @pytest.mark.parametrize("committed", [True, False])
    def test_evidence_that_is_put_away_comes_back_first(self, at_stage, committed):
        project = at_stage("judged")
        for path in project.evidence():
            path.unlink()
        if committed:
            project.commit("Clean up")
        stricter(project)

        result = project.prereg("amend", "above-two", *WHY)

        assert (result.exit_code, "PR207" in result.output) == (1, True)

    def test_another_verdict_by_hand_is_not_kept_in_place_of_the_refutation(self, at_stage):
        project = at_stage("recorded")
        project.edit(LOCK, 'verdict = "refuted"', 'verdict = "supported"')
        stricter(project)

        result = project.prereg("amend", "above-two", *WHY)

        assert result.exit_code == 1
        assert 'PR211: "above-two" is recorded as supported, and its evidence refutes it' in result.output

    def test_nor_by_renaming_its_experiment(self, at_stage):
        project = at_stage("judged")
        text = (project.path / TOML).read_text().replace("experiments.rows", "experiments.lines")
        project.write(TOML, text.replace('"rows"', '"lines"'))

        project.done("amend", "--experiment", "lines", *WHY)

        assert kept(project) == "refuted"


def test_a_name_that_is_unknown_and_a_reason_that_says_nothing_are_usage(at_stage):
    project = at_stage("recorded")
    commands = {
        "amend": ("nobody",),
        "withdraw": ("nobody",),
        "exclude": ("rows/1/nobody/1", "--cause", "tool"),
        "void": ("rows/9",),
        "acknowledge": ("PR202", "nobody"),
    }
    known = {**commands, "amend": ("above-two",), "withdraw": ("above-two",)}
    empty = set()
    for name, arguments in commands.items():
        result = project.prereg(name, *arguments, *WHY)
        assert (name, result.exit_code, "PR007" in result.output) == (name, 2, True)
        result = project.prereg(name, *known[name], "--reason", "…")
        assert (name, result.exit_code) == (name, 2)
        empty.add(result.output)
    assert len(empty) == 1
    assert "PR005: this needs a reason" in empty.pop()


class TestWhatAnAuditAdvises:
    def test_a_claim_beside_a_series_that_was_first_is_measured_by_the_next_run(self, at_stage, judge):
        project = at_stage("measurable")
        judge(project)
        project.commit("Evidence")
        text = (project.path / TOML).read_text()
        _, _, table = text.partition("[predictions.quick-is-quicker]\n")
        project.write(TOML, f"{text}\n[predictions.again]\n{table.replace('<= 0.5', '<= 0.4')}")
        project.done("lock")
        project.commit("Register another")

        said = " ".join(project.prereg("audit").output.split())
        judge(project)
        project.commit("More evidence")

        assert "Nothing was measured for it yet. A series of its own counts: pytest --prereg" in said
        assert "PR212" not in project.prereg("audit").output

    def test_one_that_is_fed_by_import_is_imported_for(self, at_stage):
        project = at_stage("judged")
        text = (project.path / TOML).read_text()
        _, _, table = text.partition("[predictions.below-two]\n")
        own = table.partition("\n\n")[0].replace("<= 2 s", "<= 1.9 s")
        project.write(TOML, f"{text}\n[predictions.again]\n{own}\n")
        project.done("lock")
        project.commit("Register another")

        said = " ".join(project.prereg("audit").output.split())

        assert "A series of its own counts: pytest-prereg import FILE --experiment rows" in said

    def test_an_id_that_was_withdrawn_is_not_amended(self, at_stage):
        project = at_stage("recorded")
        project.done("withdraw", "above-two", *WHY)
        stricter(project)
        project.commit("Withdraw, and use the id again")

        said = " ".join(project.prereg("audit").output.split())

        assert "That id was withdrawn, and is never used again: give this one another" in said
        assert "amend above-two" not in said
