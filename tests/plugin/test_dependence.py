"""Verdicts that rest on more than their own repeats: on other predictions, several experiments, a family."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from small_study import Project, new_repository

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

FAST = (1.01, 1.12, 0.93, 1.04, 0.95)
SLOW = (3.01, 3.12, 2.93, 3.04, 3.25)
WIDE = (0.5, 3.5, 1.9, 2.8, 1.1)
"""Straddles every edge that is used here."""


def experiment(name: str, *lines: str, repeats: str = "5", metric: str = '"s"') -> str:
    return "\n".join(
        (f"[experiments.{name}]", f"metrics = {{ t = {metric} }}", f"repeats = {repeats}", *lines, "")
    )


def claim(name: str, on: str, *lines: str) -> str:
    return "\n".join(
        (
            f"[predictions.{name}]",
            'claim = "It takes less than two seconds."',
            f'experiment = "{on}"',
            'quantity = "t"',
            'predicts = "< 2 s"',
            'falsifier = ">= 2 s"',
            *lines,
            "",
        )
    )


class Imported(Project):
    """A study that is fed by import, registered and committed."""

    def take(self, name: str, values: Sequence[float], machine: str = "") -> str:
        """Imports one repeat for each value; returns what is said."""
        own = sum(map(ord, name)) / 1e9  # the same numbers can't count for two experiments
        lines = (f"{index},t,{value + own},s,{machine}\n" for index, value in enumerate(values, 1))
        self.write(f"{name}.csv", "repeat,metric,value,unit,machine\n" + "".join(lines))
        return self.done("import", f"{name}.csv", "--experiment", name)


@pytest.fixture
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Imported]:
    """``registered(table, …)``: a study of these tables, in a repository where it is committed."""

    def make(*tables: str, study: str = "") -> Imported:
        project = Imported(new_repository(tmp_path / "project").path)
        monkeypatch.chdir(project.path)
        project.write("predictions.toml", "\n".join(('[study]\nid = "small"', study, *tables)))
        project.done("lock")
        project.commit("Register")
        return project

    return make


class TestRequires:
    @pytest.fixture
    def project(self, registered) -> Imported:
        second = claim("second", "two", 'requires = ["first"]')
        return registered(experiment("one"), experiment("two"), second, claim("first", "one"))

    def test_without_evidence_it_is_pending_and_says_for_what(self, project, judge):
        project.take("one", SLOW)

        judge(project, "-rs").stdout.fnmatch_lines(['*pending: requires "first", which is refuted'])

    @pytest.mark.parametrize(
        ("first", "verdict", "reason"),
        [(FAST, "supported", None), (SLOW, "inconclusive", "required"), (WIDE, "inconclusive", "required")],
        ids=["supported", "refuted", "inconclusive"],
    )
    def test_it_is_decided_only_if_what_it_requires_is_supported(
        self, project, records, first, verdict, reason
    ):
        project.take("two", FAST)
        project.take("one", first)

        found = records(project)["second"]

        assert (found["verdict"], found["reason"]) == (verdict, reason)

    def test_while_that_is_pending_nothing_is_shown(self, project, records):
        project.take("two", FAST)

        assert records(project).each("status") == {"second": "pending", "first": "pending"}

    def test_a_recorded_verdict_does_not_outlive_what_it_requires(self, project, judge):
        project.take("one", FAST)
        project.take("two", FAST)
        judge(project, "--prereg-record")
        project.write("predictions.lock", (project.path / "predictions.lock").read_text())
        project.evidence("one")[0].unlink()

        judge(project).stdout.fnmatch_lines(
            ['*PR211: the recorded verdict of "second", "supported", does not follow*requires "first"*']
        )

    @pytest.mark.parametrize("evidence", [True, False], ids=["when it had data", "before it had any"])
    def test_what_it_requires_is_not_made_easier_unseen(self, project, records, evidence):
        project.take("two", FAST)
        if evidence:
            project.take("one", SLOW)
        project.edit("predictions.toml", *easier("first", "one"))
        project.done("amend", "first", "--reason", "It was too hard.")
        project.commit("Amend")
        project.take("one", [value + 0.01 for value in SLOW])

        found = records(project)["second"]

        assert (found["verdict"], found["standing"]) == ("supported", "confirmatory")
        assert found["flags"] == ["imported", *["rests on an amended one"] * evidence]


def easier(name: str, on: str) -> tuple[str, str]:
    """A claim as it is registered, and a weaker one in its place."""
    before = claim(name, on)
    return before, before.replace("2 s", "4 s")


def test_a_refutation_reaches_the_end_of_a_chain(registered, records):
    links = [claim(f"p{i:02}", "one", f'requires = ["p{i - 1:02}"]') for i in range(1, 30)]
    project = registered(experiment("one"), *reversed(links), claim("p00", "one"))
    project.take("one", SLOW)

    found = records(project).each("reason")

    assert (found["p00"], found["p01"], found["p29"]) == (None, "required", "required")


class TestSuccessors:
    @pytest.fixture
    def project(self, registered) -> Imported:
        again = claim("again", "two", 'follows = "first"')
        return registered(experiment("one"), experiment("two"), claim("first", "one"), again)

    def test_it_waits_for_its_predecessor(self, project, judge):
        project.take("two", FAST)

        judge(project, "-rs").stdout.fnmatch_lines(['*pending: follows "first", which is pending'])

    @pytest.mark.parametrize(
        ("first", "standing"), [(WIDE, "confirmatory"), (SLOW, "exploratory")], ids=["open", "decided"]
    )
    def test_it_counts_only_if_something_was_left_to_decide(self, project, records, first, standing):
        project.take("one", first)
        project.take("two", FAST)

        found = records(project)["again"]

        assert (found["verdict"], found["standing"]) == ("supported", standing)
        assert ("follows a decided one" in found["flags"]) is (standing == "exploratory")

    def test_the_data_that_decided_nothing_are_not_judged_again(self, registered, records):
        again = claim("again", "one", 'follows = "first"')
        project = registered(experiment("one"), claim("first", "one"), again)
        project.take("one", WIDE)

        assert records(project).each("status") == {"first": "judged", "again": "pending"}

        project.take("one", FAST)
        assert records(project)["again"]["series"] == 2


def test_an_arm_that_came_later_reopens_nothing_where_no_number_is_registered(registered, judge, records):
    table = '[experiments.a]\nmetrics = { t = "s" }\n[experiments.a.arms]\nnew = {}\n'
    project = registered(table, claim("is-new", "a", 'arm = "new"'))
    rows = "arm,repeat,metric,value,unit\n"
    project.write("new.csv", rows + "".join(f"new,{i},t,{value},s\n" for i, value in enumerate(FAST)))
    project.done("import", "new.csv", "--experiment", "a")
    judge(project, "--prereg-record")
    project.commit("Record")
    project.edit("predictions.toml", "new = {}\n", "new = {}\nlate = {}\n")
    project.edit("predictions.toml", "[predictions.", claim("late", "a", 'arm = "late"') + "[predictions.")
    project.done("lock")
    project.commit("Register")

    judge(project).assert_outcomes(passed=1)
    project.write(
        "late.csv", rows + "".join(f"late,{i},t,{value + 0.01},s\n" for i, value in enumerate(FAST))
    )
    assert "into series 2" in project.done("import", "late.csv", "--experiment", "a")
    judge(project, "-rs").stdout.fnmatch_lines(['*pending: series 2 still wants arm "new"'])
    project.edit("new.csv", "1.01", "1.02")
    project.done("import", "new.csv", "--experiment", "a")
    late = records(project)["late"]

    assert (late["verdict"], late["standing"], late["series"]) == ("supported", "confirmatory", 2)
    assert records(project)["is-new"]["series"] == 1


class TestInstruments:
    CLOCK = '[instruments.clock]\ncalibrated-by = ["true-clock"]\n'
    READ = '{ unit = "s", instrument = "clock" }'

    @pytest.fixture
    def project(self, registered) -> Imported:
        read = experiment("read", metric=self.READ)
        return registered(
            self.CLOCK, experiment("wave"), read, claim("quick", "read"), claim("true-clock", "wave")
        )

    def verdict(self, project, records):
        found = records(project)["quick"]
        return found["verdict"], found["reason"]

    def test_a_calibration_that_came_before_lets_it_decide(self, project, records):
        project.take("wave", FAST, "A")
        project.take("read", FAST, "A")

        assert self.verdict(project, records) == ("supported", None)

    def test_one_that_came_later_does_not(self, project, records, judge):
        project.take("read", FAST)
        project.take("wave", FAST)

        assert self.verdict(project, records) == ("inconclusive", "instrument")
        judge(project, "-rs").stdout.fnmatch_lines(["*yet when this was measured (series 1 of*"])

    def test_nor_one_on_another_machine(self, project, records):
        project.take("wave", FAST, "A")
        project.take("read", FAST, "B")

        assert self.verdict(project, records) == ("inconclusive", "instrument")

    @pytest.mark.parametrize("values", [SLOW, WIDE], ids=["refuted", "inconclusive"])
    def test_nor_one_that_failed(self, project, records, values):
        project.take("wave", values)
        project.take("read", FAST)

        assert self.verdict(project, records) == ("inconclusive", "instrument")

    def test_without_evidence_it_says_what_has_to_come_first(self, project, judge):
        judge(project, "-rs").stdout.fnmatch_lines(
            ['* quick * pending: instrument "clock" is calibrated by "true-clock", which*']
        )

    def test_one_that_is_trusted_decides(self, registered, records):
        trusted = '[instruments.clock]\ntrusted = "It is the one on the wall."\n'
        project = registered(trusted, experiment("read", metric=self.READ), claim("quick", "read"))
        project.take("read", FAST)

        assert self.verdict(project, records) == ("supported", None)


class TestFamily:
    STUDY = 'family = "holm"'
    FAINT = (1.57, 1.83, 1.45, 1.95, 1.7)
    """Decides at 5 % and not at a third of it."""

    @pytest.fixture
    def project(self, registered) -> Imported:
        tables = [text for name in ("a", "b", "c") for text in (experiment(name), claim(f"is-{name}", name))]
        return registered(*tables, study=self.STUDY)

    def test_alone_the_faint_one_is_decided(self, registered, records):
        project = registered(experiment("a"), claim("is-a", "a"))
        project.take("a", self.FAINT)

        assert records(project)["is-a"]["verdict"] == "supported"

    def test_a_member_waits_until_all_are_there_unless_its_level_decides_it_before(self, project, records):
        project.take("a", self.FAINT)
        project.take("b", FAST)

        found = records(project)

        assert found.each("verdict") == {"is-a": None, "is-b": "supported", "is-c": None}
        assert found["is-b"]["confidence"] == pytest.approx(1 - 0.05 / 3)

    def test_nothing_is_recorded_before_the_family_is_complete(self, project, judge):
        project.take("b", FAST)
        judge(project, "--prereg-record")
        assert "verdict" not in (project.path / "predictions.lock").read_text()
        assert judge(project, "--prereg-verify", "--prereg-locked").parseoutcomes() == {
            "passed": 1,
            "pending": 2,
        }

        project.take("a", self.FAINT)
        project.take("c", SLOW)
        judge(project, "--prereg-record")
        assert (project.path / "predictions.lock").read_text().count("verdict") == 3
        judge(project, "--prereg-verify", "--prereg-locked").assert_outcomes(passed=3)

    def test_once_all_are_there_what_its_level_does_not_decide_is_inconclusive(self, project, records, judge):
        for name, values in (("a", self.FAINT), ("b", FAST), ("c", WIDE)):
            project.take(name, values)

        found = records(project)

        assert found.each("verdict") == {"is-a": "inconclusive", "is-b": "supported", "is-c": "inconclusive"}
        assert found["is-a"]["reason"] == "straddles"
        judge(project, "-rs").stdout.fnmatch_lines(["*straddles*; family of 3: Holm's procedure stopped*"])

    def test_nobody_joins_once_there_is_evidence(self, project):
        project.take("a", FAST)
        project.edit("predictions.toml", "[experiments.b]", claim("late", "b") + "\n[experiments.b]")

        result = project.prereg("lock")

        assert result.exit_code == 1
        assert 'PR025: "late" can\'t join the family: evidence "a/' in result.output

    def test_losers_that_are_struck_out_of_study_and_lock_still_count(self, project, records):
        for name, values in (("a", self.FAINT), ("b", FAST)):
            project.take(name, values)
        project.commit("Evidence")
        project.edit("predictions.toml", claim("is-c", "c"), "")
        lock = (project.path / "predictions.lock").read_text(encoding="utf-8")
        kept = [part for part in lock.split("\n[") if not part.startswith("predictions.is-c]")]
        project.write("predictions.lock", "\n[".join(kept))
        project.commit("Strike the one out that would be refuted")

        found = records(project)

        assert found.each("verdict") == {"is-a": "inconclusive", "is-b": "supported"}
        assert found["is-b"]["confidence"] == pytest.approx(1 - 0.05 / 3)

    def test_a_loser_that_is_made_easy_is_told_of_the_others(self, project, records):
        for name, values in (("a", self.FAINT), ("b", FAST), ("c", WIDE)):
            project.take(name, values)
        project.edit("predictions.toml", *easier("is-c", "c"))
        project.done("amend", "is-c", "--reason", "It was too hard.")
        project.commit("Amend")

        assert "rests on an amended one" in records(project)["is-a"]["flags"]


class TestSeveralExperiments:
    ALL = '[predictions.both]\nclaim = "Both are quick."\nall = ["is-a", "is-b"]\n'

    @pytest.fixture
    def project(self, registered) -> Imported:
        tables = [text for name in ("a", "b") for text in (experiment(name), claim(f"is-{name}", name))]
        return registered(*tables, self.ALL)

    @pytest.mark.parametrize(
        ("values", "verdict"), [(FAST, "supported"), (SLOW, "refuted"), (WIDE, "inconclusive")]
    )
    def test_a_conjunction_is_what_its_members_are(self, project, records, values, verdict):
        project.take("a", FAST)
        assert records(project)["both"]["status"] == "pending"
        project.take("b", values)

        found = records(project)["both"]

        assert (found["verdict"], found["order"]) == (verdict, "registered")
        assert {repeat.partition("/")[0] for repeat in found["repeats"]} == {"a", "b"}

    def test_its_record_follows_from_the_evidence_of_each(self, project, judge):
        project.take("a", FAST)
        project.take("b", FAST)
        judge(project, "--prereg-record")
        project.commit("Record")
        judge(project, "--prereg-locked").assert_outcomes(passed=3)

        project.evidence("b")[0].unlink()
        judge(project).stdout.fnmatch_lines(['*PR207: the evidence of the recorded verdict of "both"*'])


class TestLooks:
    @pytest.fixture
    def project(self, registered) -> Imported:
        return registered(experiment("a", repeats="{ looks = [3, 6] }"), claim("is-a", "a"))

    def test_a_look_that_decides_completes_the_series(self, project, records):
        project.take("a", FAST[:3])

        found = records(project)["is-a"]

        assert (found["verdict"], found["n"], found["planned"]) == ("supported", 3, 6)

    def test_an_import_that_came_after_that_look_is_told_that_it_counts_for_nothing(self, project):
        assert "series 1 still wants 5 repeats" in project.take("a", FAST[:1])
        assert "still wants" not in project.take("a", FAST[1:3])
        said = project.take("a", SLOW[:2])

        assert "series 1 was decided before: these are surplus, kept, and left out" in said
        assert "still wants" not in said
        assert said.endswith("next:  pytest --prereg-verify --prereg-record\n")

    def test_what_may_be_wrong_is_counted_over_all_looks(self, project, judge):
        project.take("a", FAST[:3])

        judge(project).stdout.fnmatch_lines(["*about 0.025 wrong by chance"])

    def test_other_looks_than_those_of_a_recorded_verdict_are_no_lost_evidence(self, project, judge):
        project.take("a", FAST[:3])
        judge(project, "--prereg-record")
        project.edit("predictions.toml", "[3, 6]", "[4, 6]")

        judge(project).stdout.fnmatch_lines(
            [
                '*PR104: "is-a" is no longer what was registered, and the lock has a verdict on that, "supported"'
            ]
        )

    def test_a_look_that_was_edited_until_it_decides_nothing_is_told(self, project, judge):
        project.take("a", SLOW[:3])
        (file,) = project.evidence("a")
        file.write_text(file.read_text(encoding="utf-8").replace('"t":3.0', '"t":0.0'), encoding="utf-8")

        result = judge(project)

        assert result.parseoutcomes()["errors"] == 1
        result.stdout.fnmatch_lines(["*PR207: the lines are not those that were written*"])

    def test_that_a_session_says_it_finished_completes_nothing(self, project, records, judge):
        project.take("a", WIDE[:3])

        assert records(project)["is-a"]["status"] == "pending"
        judge(project, "-rs").stdout.fnmatch_lines(
            ["*pending: 3 of at most 6 repeats recorded, none is shown before the last"]
        )

    def test_more_repeats_than_it_took_change_nothing(self, project, judge, records):
        project.take("a", FAST[:3])
        judge(project, "--prereg-record")
        before = records(project)["is-a"]
        project.take("a", SLOW[:3])

        judge(project).assert_outcomes(passed=1)
        assert {**records(project)["is-a"], "sessions": before["sessions"]} == before


class TestNextSeries:
    """After a first series that a machine, an instrument or the machinery left open, the next decides, once."""

    ARMS = "[experiments.a.arms]\nnew = {}\nold = {}\n"
    RATIO = claim("is-a", "a", 'contrast = "new / old"').replace("2 s", "2")
    NEXT = "first series, which left it to the next to decide:"

    @pytest.fixture
    def project(self, registered) -> Imported:
        return registered(experiment("a", self.ARMS), self.RATIO)

    def take(self, project: Imported, new: float, *, machines: str = "AA") -> None:
        """Imports five blocks of both arms."""
        number = len(project.evidence("a"))
        rows = (
            f"{arm},{index},t,{value + index / 100 + number / 1000},s,{machine}\n"
            for arm, value, machine in zip(("new", "old"), (new, 1.0), machines, strict=True)
            for index in range(1, 6)
        )
        project.write("a.csv", "arm,repeat,metric,value,unit,machine\n" + "".join(rows))
        project.done("import", "a.csv", "--experiment", "a")

    def test_it_decides_and_the_first_stays_to_be_seen(self, project, records, judge):
        self.take(project, 1.0, machines="AB")
        assert records(project)["is-a"]["reason"] == "scope"
        self.take(project, 1.0)

        found = records(project)["is-a"]

        assert (found["verdict"], found["series"], found["standing"]) == ("supported", 2, "confirmatory")
        assert "second series" in found["flags"]
        judge(project).stdout.fnmatch_lines([self.NEXT, "*is-a*", "*series 1: scope:*"])
        explained = project.done("explain", "is-a")
        assert "series 1: inconclusive (scope)" in explained
        assert "second series: " in explained

    def test_a_third_never_does(self, project, records):
        self.take(project, 1.0, machines="AB")
        self.take(project, 1.0, machines="AB")
        self.take(project, 1.0)

        found = records(project)["is-a"]

        assert (found["verdict"], found["reason"], found["series"]) == ("inconclusive", "scope", 2)
        assert 'follows = "is-a"' in " ".join(project.done("explain", "is-a").split())

    def test_what_the_claim_itself_left_open_stays_open(self, project, records):
        self.take(project, 1.999)
        assert records(project)["is-a"]["reason"] == "straddles"
        self.take(project, 1.0)

        found = records(project)["is-a"]

        assert (found["verdict"], found["series"]) == ("inconclusive", 1)
        assert "second series" not in found["flags"]

    def test_a_recorded_first_verdict_is_changed_until_it_is_recorded_again(self, project, judge):
        self.take(project, 1.0, machines="AB")
        judge(project, "--prereg-record").assert_outcomes(errors=0)
        assert 'verdict = "inconclusive"' in (project.path / "predictions.lock").read_text(encoding="utf-8")
        self.take(project, 3.0)

        changed = judge(project)
        changed.assert_outcomes(failed=1)
        changed.stdout.fnmatch_lines(["*CHANGED inconclusive*refuted*"])

        judge(project, "--prereg-record")
        judge(project, "--prereg-locked").assert_outcomes(passed=1)

    def test_a_record_that_the_first_never_gave_is_told(self, project, judge):
        self.take(project, 1.0, machines="AB")
        judge(project, "--prereg-record")
        project.edit("predictions.lock", 'verdict = "inconclusive"', 'verdict = "supported"')
        self.take(project, 1.0)

        result = judge(project)

        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines(["*PR211*does not follow from the evidence, which gave inconclusive*"])

    def test_the_first_undecided_again_is_to_be_recorded_under_locked(self, project, judge):
        self.take(project, 1.0, machines="AB")
        judge(project, "--prereg-record")
        self.take(project, 1.0, machines="AB")

        judge(project, "--prereg-locked").stdout.fnmatch_lines(["*PR211*that the lock does not record*"])

        judge(project, "--prereg-record")
        assert judge(project, "--prereg-locked").parseoutcomes() == {"inconclusive": 1}

    def test_edited_evidence_of_the_first_opens_nothing(self, project, records):
        self.take(project, 3.0)
        (file,) = project.evidence("a")
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace('"A"', '"B"', 1), encoding="utf-8")
        self.take(project, 1.0)

        found = records(project)["is-a"]

        assert (found["verdict"], found["reason"]) == ("inconclusive", "integrity")

    def test_an_instrument_calibrated_late_lets_the_next_decide(self, registered, records):
        read = experiment("read", metric=TestInstruments.READ)
        quick, true = claim("quick", "read"), claim("true-clock", "wave")
        project = registered(TestInstruments.CLOCK, experiment("wave"), read, quick, true)
        project.take("read", FAST)
        project.take("wave", FAST)
        assert records(project)["quick"]["reason"] == "instrument"
        project.take("read", [value + 0.001 for value in FAST])

        found = records(project)["quick"]

        assert (found["verdict"], found["series"]) == ("supported", 2)

    def test_a_calibration_that_was_amended_reopens_nothing_that_it_was_in_force_for(
        self, registered, records
    ):
        read = experiment("read", metric=TestInstruments.READ)
        quick, true = claim("quick", "read"), claim("true-clock", "wave")
        project = registered(TestInstruments.CLOCK, experiment("wave"), read, quick, true)
        project.take("wave", FAST)
        project.take("read", SLOW)
        assert records(project)["quick"]["verdict"] == "refuted"
        project.edit("predictions.toml", *easier("true-clock", "wave"))
        project.done("amend", "true-clock", "--reason", "It was too hard.")
        project.commit("Amend")
        project.take("wave", [value + 0.001 for value in FAST])
        project.take("read", FAST)

        found = records(project)["quick"]

        assert (found["verdict"], found["reason"], found["series"]) == ("inconclusive", "instrument", 1)
        explained = " ".join(project.done("explain", "quick").split())
        assert "a successor would be exploratory" in explained
        assert 'follows = "quick"' not in explained

    def test_of_a_conjunction_only_what_was_left_open_is_taken_anew(self, registered, records):
        both = '[predictions.both]\nclaim = "Both."\nall = ["is-a", "is-b"]\n'
        tables = (experiment("a", self.ARMS), self.RATIO, experiment("b"), claim("is-b", "b"), both)
        project = registered(*tables)
        project.take("b", FAST)
        self.take(project, 1.0, machines="AB")
        assert records(project)["both"]["reason"] == "scope"
        self.take(project, 1.0)

        found = records(project)

        assert found.each("verdict") == dict.fromkeys(("is-a", "is-b", "both"), "supported")
        assert "second series" in found["both"]["flags"]
        assert "second series" not in found["is-b"]["flags"]

    def test_a_member_of_a_family_has_it_too(self, registered, records, judge):
        tables = (experiment("a", self.ARMS), self.RATIO, experiment("b"), claim("is-b", "b"))
        project = registered(*tables, study=TestFamily.STUDY)
        project.take("b", FAST)
        self.take(project, 1.0, machines="AB")
        judge(project, "--prereg-record")
        assert records(project)["is-a"]["reason"] == "scope"
        self.take(project, 1.0)

        found = records(project)

        assert found.each("verdict") == {"is-a": "supported", "is-b": "supported"}
        assert found.each("changed") == {"is-a": True, "is-b": False}
        judge(project, "--prereg-record")
        judge(project, "--prereg-locked").assert_outcomes(passed=2)

    def test_a_successor_does_not_rest_on_the_series_that_decided_its_predecessor(self, registered, records):
        again = claim("again", "a", 'contrast = "new / old"', 'follows = "is-a"').replace("2 s", "2")
        project = registered(experiment("a", self.ARMS), self.RATIO, again)
        self.take(project, 1.0, machines="AB")
        assert records(project)["again"]["status"] == "pending"
        self.take(project, 1.0)

        assert records(project).each("status") == {"is-a": "judged", "again": "pending"}
