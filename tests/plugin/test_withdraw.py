"""Withdrawing: a tombstone for good, with the verdict that the evidence gives; a refutation stays counted."""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest
from small_study import Project, new_repository

from pytest_prereg.registry.lock import read_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

TOML, LOCK = "predictions.toml", "predictions.lock"
WHY = ("--reason", "badly worded")
FAST = (1.01, 1.12, 0.93, 1.04, 0.95)
SLOW = (3.01, 3.12, 2.93, 3.04, 3.25)
WIDE = (0.5, 3.5, 1.9, 2.8, 1.1)


GUARD = """\
[study]
id = "guarded"

[experiments.work]
fixture = "work"
repeats = 5
subject = ["subject.txt"]

[predictions.quick]
kind = "guard"
claim = "It takes less than two seconds."
experiment = "work"
quantity = "t"
predicts = "< 2 s"
falsifier = ">= 2 s"
expected = 1.0
detect = 3.0
cv = 0.02
"""
GUARDED = """\
from pytest_prereg import Repeat, experiment


@experiment(metrics={"t": "s"})
def work(repeat: Repeat) -> None:
    repeat.record("t", 3 + repeat.index / 100)
"""


def entry(project: Project, name: str):
    return read_lock(project.path / LOCK).predictions[name]


def refused(project: Project, *arguments: str, status: int = 1) -> str:
    """What ``withdraw`` says when it refuses; the lock stays as it was."""
    before = (project.path / LOCK).read_bytes()
    result = project.prereg("withdraw", *arguments)
    assert result.exit_code == status, result.output
    assert (project.path / LOCK).read_bytes() == before
    return result.output


def deleted(project: Project, name: str) -> None:
    """Takes a prediction's table out of the study."""
    before, _, after = (project.path / TOML).read_text().partition(f"[predictions.{name}]\n")
    following = after.partition("\n[")[2]
    project.write(TOML, before + (f"[{following}" if following else ""))


def next_line(said: str) -> str:
    return said.splitlines()[-1].removeprefix("next:  ")


def experiment(name: str, *lines: str) -> str:
    return "\n".join((f"[experiments.{name}]", 'metrics = { t = "s" }', "repeats = 5", *lines, ""))


def claim(name: str, on: str, *lines: str) -> str:
    table = f'[predictions.{name}]\nclaim = "It takes less than two seconds."\n'
    if not on:
        return "\n".join((table.rstrip(), *lines, ""))
    told = f'experiment = "{on}"\nquantity = "t"\npredicts = "< 2 s"\nfalsifier = ">= 2 s"'
    return "\n".join((table + told, *lines, ""))


class Imported(Project):
    """A study that is fed by import."""

    def take(self, name: str, values: Sequence[float]) -> None:
        own = len(self.evidence("one")) / 1e6  # the same numbers can't count twice
        rows = "".join(f"{index},t,{value + own},s\n" for index, value in enumerate(values, 1))
        self.write(f"{name}.csv", "repeat,metric,value,unit\n" + rows)
        self.done("import", f"{name}.csv", "--experiment", name)
        self.commit("Evidence")

    def record(self) -> None:
        done = self.process("--prereg", "--prereg-verify", "--prereg-record", "-p", "no:cacheprovider")
        assert "recorded" in done.stdout, done.stdout
        self.commit("Record")


@pytest.fixture
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Imported]:
    """``registered(table, …)``: a study of these tables, in a repository where it is committed."""

    def make(*tables: str, study: str = "") -> Imported:
        project = Imported(new_repository(tmp_path / "project").path)
        monkeypatch.chdir(project.path)
        project.write(TOML, "\n".join(('[study]\nid = "small"', study, *tables)))
        project.done("lock")
        project.commit("Register")
        return project

    return make


class TestTheCommand:
    def test_the_verdict_that_the_evidence_gives_is_recorded_with_the_tombstone(self, at_stage):
        project = at_stage("judged")

        said = project.done("withdraw", "above-two", *WHY)

        assert "it was refuted, and stays counted as refuted" in said
        assert "it may be deleted from predictions.toml" in said
        kept = entry(project, "above-two")
        assert (kept.verdict, kept.n, kept.withdrawal.reason) == ("refuted", 5, "badly worded")
        assert entry(project, "below-two").verdict is None

    def test_it_ends_with_the_command_that_commits_it(self, at_stage):
        project = at_stage("judged")

        command = next_line(project.done("withdraw", "above-two", *WHY))

        assert command == "git add predictions.* && git commit -m 'Withdraw above-two'"
        subprocess.run(command, shell=True, cwd=project.path, check=True, capture_output=True)
        assert project.git("status", "--porcelain", "--", LOCK) == ""

    def test_evidence_that_a_tombstone_rests_on_is_committed_with_it(self, at_stage):
        project = at_stage("registered")
        project.done("import", "rows.csv", "--experiment", "rows")

        command = next_line(project.done("withdraw", "above-two", *WHY))

        assert command.startswith("git add predictions.* experiments/evidence && ")

    def test_names_that_it_can_do_nothing_with(self, at_stage):
        project = at_stage("judged")
        text = (project.path / TOML).read_text()
        own = text[text.index("[predictions.not-there]") :]
        project.write(TOML, text + "\n" + own.replace("not-there", "new-one").replace("< 1 s", "< 0.5 s"))

        assert 'PR007: there is no prediction "above-tw"; did you mean "above-two"?' in refused(
            project, "above-tw", *WHY, status=2
        )
        said = refused(project, "new-one", *WHY)
        assert 'predictions.toml:41: PR007: "new-one" is not registered, so there is nothing' in said
        project.done("withdraw", "above-two", *WHY)
        assert 'PR105: "above-two" is withdrawn already: badly worded' in refused(project, "above-two", *WHY)

    def test_it_needs_a_reason(self, at_stage):
        result = at_stage("judged").prereg("withdraw", "above-two", "--reason", " ")

        assert (result.exit_code, "needs a reason" in result.output) == (2, True)

    def test_all_or_none(self, at_stage):
        project = at_stage("judged")

        refused(project, "above-two", "nobody", *WHY, status=2)

        assert entry(project, "above-two").withdrawal is None

    def test_a_for_each_table_stands_for_all_that_it_makes(self, registered):
        swept = claim("fe", "one", 'for-each = "cols"')
        project = registered(experiment("one", "sweep = { cols = [1, 2] }"), swept)

        project.done("withdraw", "fe", *WHY)

        assert entry(project, "fe[cols=1]").withdrawal == entry(project, "fe[cols=2]").withdrawal
        deleted(project, "fe")
        assert "PR105" in refused(project, "fe", *WHY)

    def test_one_that_is_gone_from_the_study_is_mended_by_it(self, at_stage, judge):
        project = at_stage("recorded")
        deleted(project, "not-there")
        judge(project).stdout.fnmatch_lines(["*PR203*not-there*", "*withdraw not-there --reason*"])

        said = project.done("withdraw", "not-there", *WHY)

        assert "predictions.toml no longer has it" in said
        assert judge(project, "--prereg-locked").ret == 0
        project.done("lock", "--check")


class TestNoWayRoundARefutation:
    def test_a_text_that_is_gone_comes_back_before_its_evidence_is_given_up(self, at_stage):
        project = at_stage("judged")
        text = (project.path / TOML).read_text()
        deleted(project, "above-two")

        said = refused(project, "above-two", *WHY)

        assert 'PR203: "above-two" is no longer in the study, and has evidence whose verdict nobody' in said
        assert "Put it back, then pytest --prereg --prereg-verify --prereg-record, then withdraw it." in said
        project.write(TOML, text)
        project.process("--prereg-verify", "--prereg-record", "-p", "no:cacheprovider")
        deleted(project, "above-two")
        project.done("withdraw", "above-two", *WHY)
        assert entry(project, "above-two").verdict == "refuted"

    def test_so_does_one_that_was_changed(self, at_stage):
        project = at_stage("judged")
        project.edit(TOML, 'predicts = ">= 3 s"', 'predicts = ">= 0.5 s"')
        project.edit(TOML, 'falsifier = "< 2 s"', 'falsifier = "< 0.2 s"')

        assert 'PR104: "above-two" is no longer what was registered, and has' in refused(
            project, "above-two", *WHY
        )

    @pytest.mark.parametrize("text", ["there", "gone"])
    @pytest.mark.parametrize("committed", [True, False])
    def test_evidence_that_is_gone_comes_back_first(self, at_stage, text, committed):
        project = at_stage("judged")
        for path in project.evidence():
            path.unlink()
        if committed:
            project.commit("Clean up")
        if text == "gone":
            deleted(project, "above-two")

        assert "PR207" in refused(project, "above-two", *WHY)

    def test_what_was_changed_from_refuted_is_recorded_by_itself_first(self, at_stage):
        project = at_stage("recorded")
        project.done("withdraw", "near-one", *WHY)
        text = (project.path / LOCK).read_text()
        project.write(LOCK, text.replace('verdict = "refuted"', 'verdict = "supported"', 1))

        assert 'PR211: the recorded verdict of "above-two", "supported"' in refused(
            project, "above-two", *WHY
        )

    def test_a_shallow_clone_can_not_tell_and_withdraws_nothing(self, at_stage, tmp_path):
        origin = at_stage("judged")
        subprocess.run(
            ["git", "clone", "--quiet", "--depth=1", f"file://{origin.path}", tmp_path / "clone"], check=True
        )

        said = refused(Project(tmp_path / "clone"), "above-two", *WHY, status=4)

        assert 'PR212: whether the verdict on "above-two" counts can\'t be told: history is cut' in said
        assert "git fetch --unshallow --tags" in said.splitlines()[-1]

    def test_a_tombstone_by_hand_without_the_verdict_is_found_out(self, at_stage, judge):
        project = at_stage("judged")
        project.edit(
            LOCK,
            "[predictions.below-two]",
            '[predictions.above-two.withdrawal]\nreason = "oops"\nat = "2026"\n\n[predictions.below-two]',
        )

        result = judge(project)

        said = '*PR211: "above-two" was withdrawn without the verdict that its evidence gives, "refuted"'
        result.stdout.fnmatch_lines([said])
        assert result.ret == 1

    def test_so_is_another_verdict_in_a_tombstone(self, at_stage, judge):
        project = at_stage("judged")
        project.done("withdraw", "above-two", *WHY)
        project.edit(LOCK, 'verdict = "refuted"', 'verdict = "supported"')

        judge(project).stdout.fnmatch_lines(
            [
                '*PR211: the recorded verdict of "above-two", "supported", does not follow*',
                "*git checkout HEAD*",
            ]
        )

    def test_an_exploratory_verdict_is_not_recorded_and_the_repeats_are_told_for_good(self, at_stage, judge):
        project = at_stage("registered")
        project.git("update-ref", "-d", "HEAD")
        project.done("import", "rows.csv", "--experiment", "rows")
        project.commit("All at once")

        said = project.done("withdraw", "above-two", *WHY)

        assert "it has no verdict that counts, after 5 repeats" in said
        assert entry(project, "above-two").verdict is None
        judge(project).stdout.fnmatch_lines(["*above-two*withdrawn, exploratory, was refuted: badly worded"])
        deleted(project, "above-two")
        judge(project).stdout.fnmatch_lines(["*above-two*withdrawn after 5 repeats, never judged: badly*"])

    def test_a_registration_that_was_amended_after_the_data_hides_no_repeats(self, at_stage, judge):
        project = at_stage("judged")
        project.edit(TOML, 'predicts = ">= 3 s"', 'predicts = ">= 2.9 s"')
        project.done("amend", "above-two", *WHY)

        project.done("withdraw", "above-two", *WHY)

        judge(project).stdout.fnmatch_lines(
            ["*above-two*withdrawn, counted as refuted (was refuted before it was amended):"]
        )

    def test_a_family_that_is_not_complete_has_no_verdict_to_withdraw(self, registered, records):
        project = registered(
            experiment("one"),
            experiment("two"),
            claim("here", "one"),
            claim("there", "two"),
            study='family = "holm"',
        )
        project.take("one", SLOW)

        assert 'PR211: "here" belongs to a family that is not complete' in refused(project, "here", *WHY)
        project.done("withdraw", "there", *WHY)
        said = project.done("withdraw", "here", *WHY)
        assert "the levels of its family rest on its evidence" in " ".join(said.split())
        assert records(project)["here"]["verdict"] == "refuted"

    def test_a_guard_that_was_refuted_is_confirmed_first_and_stays_refuted(self, tmp_path, monkeypatch):
        project = Imported(new_repository(tmp_path / "guarded").path)
        monkeypatch.chdir(project.path)
        project.write(TOML, GUARD)
        project.write("experiments/work.py", GUARDED)
        project.write("subject.txt", "one\n")
        project.write(".gitignore", "__pycache__/\n")
        project.done("lock")
        project.commit("Register")
        assert project.process("--prereg", "-p", "no:cacheprovider").returncode == 1
        _, second = project.evidence("work")
        kept = second.read_text()
        second.unlink()

        said = refused(project, "quick", *WHY)

        assert 'PR211: "quick" has its evidence, and its verdict is still to come: refuted once' in said
        second.write_text(kept)
        project.commit("Evidence")
        project.write("subject.txt", "two\n")
        project.commit("Change the subject")
        said = project.done("withdraw", "quick", *WHY)
        assert "stays counted as refuted" in said
        again = project.process("--prereg", "--prereg-locked", "-p", "no:cacheprovider")
        assert (again.returncode, len(project.evidence("work"))) == (0, 2)
        assert "1 refuted (1 withdrawn)" in again.stdout


ZERO = (0.0, *FAST[1:])
SHARE = claim("share", "one").replace('"t"', '"1 / t"').replace(' s"', ' s**-1"')


def appended(project: Project, rows: Sequence[float]) -> None:
    """Takes in ``one`` again: another series of it."""
    project.write(
        "again.csv", "repeat,metric,value,unit\n" + "".join(f"{k},t,{v},s\n" for k, v in enumerate(rows, 1))
    )
    project.done("import", "again.csv", "--experiment", "one")
    project.commit("More evidence")


class TestWhatCanNotBeJudged:
    """A repeat has no value where one number is needed: no verdict will ever be built on it."""

    def test_it_is_withdrawn_for_good_without_a_verdict(self, registered, judge):
        project = registered(experiment("one"), SHARE, claim("time", "one"))
        project.take("one", ZERO)
        told = project.prereg("explain", "share")
        assert "PR140" in told.output
        assert "pytest-prereg withdraw share --reason" in told.output

        said = project.done("withdraw", "share", *WHY)

        project.commit("Withdraw")
        assert "it has no verdict that counts, after 5 repeats" in said
        assert entry(project, "share").verdict is None
        result = judge(project)
        result.stdout.fnmatch_lines(["*share*withdrawn after 5 repeats, never judged: badly worded"])
        assert result.ret == 0
        assert "PR140" not in project.prereg("audit").output

    def test_a_refutation_is_not_lifted_by_a_later_series_that_can_not_be(self, registered):
        project = registered(experiment("one"), SHARE)
        project.take("one", (0.1, 0.11, 0.09, 0.1, 0.12))
        appended(project, ZERO)

        assert "amend it, commit that, then withdraw it" in refused(project, "share", *WHY)
        project.edit(TOML, '"< 2 s**-1"', '"< 1 s**-1"')
        project.done("amend", "share", *WHY)
        assert entry(project, "share").amendments[-1].verdict == "refuted"

    def test_nor_by_another_member_of_a_conjunction(self, registered):
        both = 'all = ["share", "time"]'
        project = registered(experiment("one"), SHARE, claim("time", "one"), claim("both", "", both))
        project.take("one", (0.0, *SLOW[1:]))

        assert "PR140" in refused(project, "both", *WHY)

    def test_of_a_guard_no_version_may_have_a_verdict_and_the_next_one_changes_nothing(
        self, tmp_path, monkeypatch, judge
    ):
        project = Imported(new_repository(tmp_path / "guarded").path)
        monkeypatch.chdir(project.path)
        project.write(TOML, GUARD)
        project.write("experiments/work.py", GUARDED.replace("3 + repeat.index / 100", "[1, 2]"))
        project.write("subject.txt", "one")
        project.done("lock")
        project.commit("Register")
        assert "PR140" in project.process("--prereg", "-p", "no:cacheprovider").stdout
        project.commit("Evidence")

        project.done("withdraw", "quick", *WHY)

        project.write("subject.txt", "two")
        project.commit("Withdraw; another version")
        judge(project).stdout.fnmatch_lines(["*quick*withdrawn after 5 repeats, never judged: badly worded"])

    def test_evidence_that_is_altered_comes_back_first(self, registered):
        project = registered(experiment("one"), SHARE)
        project.take("one", ZERO)
        (path,) = project.evidence("one")
        path.write_text(path.read_text().replace("1.12", "1.13"))

        assert "PR207" in refused(project, "share", *WHY)


class TestExplained:
    def test_one_whose_text_is_gone_is_shown_with_what_was_recorded(self, at_stage):
        project = at_stage("recorded")
        project.done("withdraw", "above-two", "--reason", "it was badly worded")
        deleted(project, "above-two")
        project.commit("Withdraw")

        said = project.done("explain", "above-two")
        shows = re.search(r"git show [0-9a-f]{8}:predictions.toml", said)

        assert said.startswith("above-two: withdrawn, refuted\n")
        assert "it was badly worded" in said
        assert "it stays counted as refuted" in " ".join(said.split())
        assert "1.010 [0.916, 1.104] s, from n 5" in said
        assert "[predictions.above-two]" in project.git(*shows[0].split()[1:])

    def test_one_that_was_never_measured_says_so(self, at_stage):
        project = at_stage("registered")
        project.done("withdraw", "above-two", "--reason", "it was badly worded")
        deleted(project, "above-two")

        assert "it was never measured" in project.done("explain", "above-two")

    def test_an_id_that_nobody_ever_had_is_none(self, at_stage):
        assert "there is no prediction" in at_stage("recorded").prereg("explain", "nobody").output


class TestNeverAgain:
    def test_nothing_is_measured_for_it_in_any_mode(self, at_stage, judge):
        project = at_stage("measurable")
        project.done("withdraw", "quick-is-quicker", *WHY)
        for flags in ((), ("--prereg-explore",), ("--prereg-fresh",)):
            assert judge(project, *flags).parseoutcomes() == {"withdrawn": 1}
        project.commit("Withdraw")
        project.write(LOCK, project.git("show", "HEAD~:predictions.lock") + "\n")

        result = judge(project, "--prereg-explore")

        result.stdout.fnmatch_lines(['*PR102: "quick-is-quicker" is withdrawn (badly worded)*'])
        result.stdout.fnmatch_lines(["*Its tombstone stays: git checkout HEAD -- predictions.lock"])
        assert project.repeats_run() == 0

    def test_no_evidence_is_taken_in_for_it(self, at_stage, records):
        project = at_stage("registered")
        project.done("withdraw", "above-two", "near-one", *WHY)
        project.commit("Withdraw")
        project.done("import", "rows.csv", "--experiment", "rows")

        header = json.loads(project.evidence()[0].read_text().splitlines()[0])
        assert header["predictions"].keys() == {"below-two"}
        found = records(project)
        assert (found["above-two"]["verdict"], found["above-two"]["order"]) == (None, "registered")
        assert found["below-two"]["verdict"] == "supported"

    def test_where_all_are_withdrawn_nothing_is_taken_in(self, at_stage):
        project = at_stage("registered")
        project.done("withdraw", "not-there", *WHY)

        result = project.prereg("import", "rows.csv", "--experiment", "elsewhere")

        assert 'PR102: every prediction of "elsewhere" is withdrawn' in result.output

    def test_a_series_that_was_open_goes_on_without_it(self, at_stage, records):
        project = at_stage("registered")
        header, *rows = (project.path / "rows.csv").read_text().splitlines()
        for number, part in enumerate((rows[:2], rows[2:])):
            project.write("some.csv", "\n".join([header, *part]))
            project.done("import", "some.csv", "--experiment", "rows")
            project.commit("Evidence")
            if number == 0:
                project.done("withdraw", "above-two", *WHY)
                project.commit("Withdraw")

        found = records(project).each("verdict")

        assert (found["below-two"], found["above-two"]) == ("supported", None)

    def test_what_is_said_against_its_evidence_later_changes_nothing(self, at_stage, judge, records):
        project = at_stage("recorded")
        project.done("withdraw", "above-two", *WHY)
        before = records(project)["above-two"]
        project.done("exclude", "rows/1/1", "--cause", "tool", "--reason", "the door was open")

        after = records(project)["above-two"]

        numbers = ("verdict", "estimate", "interval", "n", "recorded", "changed", "status")
        assert {key: after[key] for key in numbers} == {key: before[key] for key in numbers}
        assert after["status"] == "withdrawn"
        judge(project, "-k", "above-two").stdout.no_fnmatch_line("*PR211*")
        project.process("--prereg-verify", "--prereg-record", "-p", "no:cacheprovider")
        assert entry(project, "above-two").n == 5
        assert entry(project, "below-two").n == 4

    def test_a_tombstone_that_was_taken_out_is_missed_and_nothing_recorded_for_it(self, at_stage, judge):
        project = at_stage("judged")
        before = (project.path / LOCK).read_text()
        project.done("withdraw", "above-two", *WHY)
        project.commit("Withdraw")
        project.write(LOCK, before)

        result = judge(project, "--prereg-record", "-k", "above-two")

        said = '*PR203: "above-two" is withdrawn at HEAD, and its tombstone is gone'
        result.stdout.fnmatch_lines([said, "*git checkout HEAD -- predictions.lock"])
        assert (result.ret, entry(project, "above-two").verdict) == (1, None)

    def test_its_id_is_its_own_for_life(self, at_stage, judge):
        project = at_stage("recorded")
        project.done("withdraw", "above-two", *WHY)
        assert "nothing new" in project.done("lock")
        project.edit(TOML, 'predicts = ">= 3 s"', 'predicts = ">= 4 s"')

        result = project.prereg("lock")

        assert (
            'predictions.toml:20: PR104: "above-two" was withdrawn, and this is not what was' in result.output
        )
        assert "give this one another" in result.output
        assert 'PR007: "above-two" is withdrawn' in project.prereg("amend", "above-two", *WHY).output
        judge(project).stdout.fnmatch_lines(['*PR104: "above-two" was withdrawn, and this is not*'])

    @pytest.mark.parametrize(
        ("lines", "on", "is_refused"),
        [
            (['requires = ["slow"]'], "two", True),
            (['all = ["slow", "other"]'], "", True),
            (['follows = "slow"'], "one", True),
            (['follows = "wide"'], "three", False),
        ],
        ids=["requires", "member", "follows a decided one", "follows an open one"],
    )
    def test_nothing_new_rests_on_it(self, registered, lines, on, is_refused):
        tables = [*map(experiment, ("one", "two", "three")), claim("slow", "one"), claim("wide", "three")]
        project = registered(*tables, claim("other", "two", 'tags = ["x"]'))
        project.take("one", SLOW)
        project.take("three", WIDE)
        project.done("withdraw", "slow", "wide", *WHY)
        text = (project.path / TOML).read_text()
        project.write(TOML, text + claim("new", on, *lines).replace("< 2 s", "< 1.5 s"))

        result = project.prereg("lock")

        assert ('PR007: "new" rests on "slow", which is withdrawn' in result.output) is is_refused
        assert (result.exit_code == 1) is is_refused, result.output


class TestWhatRestsOnIt:
    @pytest.fixture
    def project(self, registered) -> Imported:
        second = claim("second", "two", 'requires = ["first"]')
        return registered(experiment("one"), experiment("two"), claim("first", "one"), second)

    def test_it_loses_its_support_and_withdrawing_says_so(self, project, records):
        project.take("one", FAST)
        project.take("two", FAST)
        project.record()

        said = project.done("withdraw", "first", *WHY)

        assert 'leave it in predictions.toml: "second" rests on it' in said
        assert "second: supported, " in said
        assert "→ inconclusive (required)," in " ".join(said.split())
        assert next_line(said).startswith("pytest --prereg --prereg-verify --prereg-record; git add ")
        found = records(project)["second"]
        assert (found["verdict"], found["reason"], found["changed"]) == ("inconclusive", "required", True)

    def test_and_keeps_its_refutation(self, project, records, judge):
        project.take("one", FAST)
        project.take("two", SLOW)
        project.record()

        project.done("withdraw", "first", *WHY)

        assert records(project)["second"]["verdict"] == "refuted"
        assert judge(project).ret == 0

    def test_before_its_evidence_it_says_what_it_rests_on(self, project, judge):
        project.take("one", FAST)
        project.done("withdraw", "first", *WHY)

        judge(project).stdout.fnmatch_lines(['*second*pending: requires "first", which is withdrawn'])

    @pytest.mark.parametrize(("values", "verdict"), [(FAST, "inconclusive"), (SLOW, "refuted")])
    def test_a_conjunction_is_not_supported_without_a_member(self, registered, records, values, verdict):
        both = claim("both", "", 'all = ["a", "b"]')
        project = registered(experiment("one"), experiment("two"), claim("a", "one"), claim("b", "two"), both)
        project.take("one", FAST)
        project.take("two", values)

        project.done("withdraw", "a", *WHY)

        assert records(project)["both"]["verdict"] == verdict

    @pytest.mark.parametrize(
        ("first", "expected"),
        [
            (WIDE, ("supported", "confirmatory")),
            (SLOW, ("supported", "exploratory")),
            (None, ("inconclusive", "confirmatory")),
        ],
        ids=["undecided", "refuted", "never measured"],
    )
    def test_a_successor_counts_only_if_it_was_inconclusive(self, registered, records, first, expected):
        again = claim("again", "two", 'follows = "first"')
        project = registered(experiment("one"), experiment("two"), claim("first", "one"), again)
        if first:
            project.take("one", first)
        project.done("withdraw", "first", *WHY)
        project.commit("Withdraw")
        project.take("two", FAST)

        found = records(project)["again"]

        assert (found["verdict"], found["standing"]) == expected

    def test_who_excludes_and_withdraws_is_not_free_of_a_refutation(self, registered, records):
        again = claim("again", "two", 'follows = "first"')
        project = registered(experiment("one"), experiment("two"), claim("first", "one"), again)
        project.take("one", (2.2, 2.3, 2.25, 2.3, 2.9))
        project.done("exclude", "one/1/5", "--cause", "tool", "--reason", "looked slow")
        project.done("withdraw", "first", *WHY)
        project.commit("Withdraw")
        project.take("two", FAST)

        assert records(project)["again"]["standing"] == "exploratory"

    def test_in_a_family_it_keeps_its_place(self, registered, records):
        tables = [*map(experiment, ("one", "two")), claim("a", "one"), claim("b", "two")]
        project = registered(*tables, study='family = "holm"')
        project.done("withdraw", "b", *WHY)
        project.commit("Withdraw")
        project.take("one", FAST)

        found = records(project)["a"]

        assert (found["verdict"], found["confidence"]) == ("supported", 0.975)


@pytest.fixture(params=["in the study", "gone"])
def withdrawn(request, at_stage) -> Project:
    """A study with a refuted prediction that is withdrawn, and one that was never measured."""
    project = at_stage("recorded")
    project.done("withdraw", "above-two", "not-there", *WHY)
    if request.param == "gone":
        deleted(project, "above-two")
        deleted(project, "not-there")
    project.commit("Withdraw")
    return project


class TestInPytest:
    def test_it_is_skipped_in_words_of_its_own_and_the_refutation_is_counted(self, withdrawn, judge):
        result = judge(withdrawn, "--prereg-locked", "-v")

        assert result.ret == 0
        assert result.parseoutcomes() == {"passed": 1, "inconclusive": 1, "withdrawn": 2}
        result.stdout.fnmatch_lines(["predictions.toml::above-two WITHDRAWN*"])
        result.stdout.fnmatch_lines(["4 registered · 3 judged · 1 supported · 1 refuted (1 withdrawn) · *"])
        result.stdout.fnmatch_lines([" . above-two  withdrawn, counted as refuted: badly worded"])
        result.stdout.fnmatch_lines([" . not-there  withdrawn: badly worded"])
        result.stdout.fnmatch_lines(["3 of 3 confirmatory · 1 withdrawn, not counted · *"])

    def test_its_record_has_the_status_and_the_numbers_of_the_lock(self, withdrawn, records, tmp_path):
        out = tmp_path / "junit.xml"

        written = records(withdrawn, f"--junitxml={out}")

        found, kept = written["above-two"], entry(withdrawn, "above-two")
        assert (found["status"], found["verdict"], found["recorded"]) == ("withdrawn", "refuted", "refuted")
        assert (found["order"], found["standing"]) == ("registered", "confirmatory")
        assert (found["estimate"], found["n"], found["series"]) == (kept.estimate, kept.n, kept.series)
        assert found["interval"] == list(kept.interval)
        assert found["sessions"] == [path.name for path in withdrawn.evidence()]
        assert (written["not-there"]["status"], written["not-there"]["verdict"]) == ("withdrawn", None)
        cases = {case.get("name"): case for case in ET.parse(out).getroot()[0].iter("testcase")}
        told = {one.get("name"): one.get("value") for one in cases["above-two"].iter("property")}
        assert (told["prereg.status"], told["prereg.verdict"]) == ("withdrawn", "refuted")
        (skipped,) = cases["above-two"].iter("skipped")
        assert skipped.get("message") == "withdrawn, counted as refuted: badly worded"

    def test_what_is_cited_agrees_with_the_scoreboard(self, withdrawn):
        names = ("registered", "supported", "refuted", "inconclusive", "pending")
        citations = (f"{one} <!-- prereg: study.{one} -->?<!-- /prereg -->" for one in names)
        page = withdrawn.write("page.md", "\n\n".join(citations) + "\n")
        withdrawn.done("cite", "page.md")

        assert [line.split(">")[1].partition("<")[0] for line in page.read_text().splitlines() if line] == [
            "4", "1", "1", "1", "0",
        ]  # fmt: skip

    def test_it_is_collected_and_selected_like_any_other(self, withdrawn, judge):
        judge(withdrawn, "--co", "-q", "--prereg-measure").stdout.fnmatch_lines(
            ["predictions.toml::above-two"]
        )
        assert judge(withdrawn, "-k", "above-two").parseoutcomes() == {"withdrawn": 1, "deselected": 3}
        assert judge(withdrawn, f"{TOML}::not-there").parseoutcomes() == {"withdrawn": 1}

    def test_its_altered_evidence_is_an_error(self, withdrawn, judge):
        (path,) = withdrawn.evidence()
        path.write_text(path.read_text().replace("1.12", "1.13"))

        result = judge(withdrawn, "-k", "above-two")

        assert result.ret == 1
        result.stdout.fnmatch_lines(["*PR207*"])

    def test_a_test_can_ask_for_it(self, withdrawn, judge):
        withdrawn.write(
            "test_it.py",
            "def test_it(prereg):\n    assert prereg.verdict('above-two').status == 'withdrawn'\n",
        )

        assert judge(withdrawn, "test_it.py", asked=False).parseoutcomes() == {"passed": 1}


def test_nobody_looks_wiser_for_what_he_withdrew(registered, judge):
    sure = claim("sure", "one", "credence = 0.9")
    project = registered(
        experiment("one"), experiment("two"), sure, claim("doubted", "two", "credence = 0.5")
    )
    project.take("one", SLOW)
    project.take("two", FAST)
    project.done("withdraw", "sure", *WHY)

    for how in (list, lambda _: deleted(project, "sure")):
        how("")
        said = " ".join(judge(project).stdout.str().split())
        assert "Brier score 0.53 of 2 credences, 0 % inconclusive" in said


def test_a_model_that_was_refuted_and_withdrawn_is_a_miss_of_nobody(registered, judge):
    project = registered(experiment("one"), claim("model", "one", 'basis = "model"'))
    project.take("one", SLOW)
    project.done("withdraw", "model", *WHY)
    deleted(project, "model")

    judge(project).stdout.fnmatch_lines(["*1 registered · 0 judged · 0 supported · 0 refuted · *"])
