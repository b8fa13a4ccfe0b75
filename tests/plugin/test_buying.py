"""What a measuring run buys for verdicts with rules of their own: looks, guards, requirements, several experiments."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from real_study import RealStudy, complaints, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WORK = """\
import json
import os
import time
from pathlib import Path

from pytest_prereg import Repeat, experiment

HERE = Path(__file__).parents[1]


@experiment(metrics={"t": "s"})
def scripted(repeat: Repeat) -> None:
    with open(os.environ["WITNESS"], "a") as witness:
        print("began", repeat.arm or "-", repeat.index, file=witness)
    values = json.loads((HERE / "values.json").read_text())
    if repeat.index == values.get("stop_at"):
        time.sleep(60)
    repeat.record("t", values[repeat.arm or "t"][repeat.index - 1])


@experiment(metrics={"t": "s"})
def subject(repeat: Repeat) -> None:
    with open(os.environ["WITNESS"], "a") as witness:
        print("began", repeat.arm or "-", repeat.index, file=witness)
    level = (HERE / "kernel.txt").read_text().split()
    turn = len(Path(os.environ["WITNESS"]).read_text().splitlines()) - 1
    repeat.record("t", float(level[turn // 5 % len(level)]) + repeat.index / 100)


@experiment(metrics={"t": "s"})
def quick(repeat: Repeat) -> None:
    repeat.record("t", 1 + repeat.index / 100)


@experiment(metrics={"t": {"unit": "s", "instrument": "clock"}})
def read(repeat: Repeat) -> None:
    repeat.record("t", 1 + repeat.index / 100)


@experiment(metrics={"t": "s"})
def handled(repeat: Repeat) -> None:
    level = float((HERE / "kernel.txt").read_text())
    repeat.instrument("clock").record("t", level + repeat.index / 100)
"""

CLAIM = """\
[predictions.{name}]
claim = "It takes less than two seconds."
experiment = "{on}"
quantity = "t"
predicts = "< 2 s"
falsifier = ">= 2 s"
"""


def claim(name: str, on: str, *lines: str) -> str:
    return "\n".join((CLAIM.format(name=name, on=on), *lines, "", ""))


def experiment(name: str, *lines: str, fixture: str = "quick", repeats: str = "3") -> str:
    return "\n".join(
        (f"[experiments.{name}]", f'fixture = "{fixture}"', f"repeats = {repeats}", *lines, "", "")
    )


@pytest.fixture
def registered(tmp_path: Path) -> Callable[..., RealStudy]:
    """``registered(table, …)``: a study of these tables, registered and committed."""

    def make(*tables: str, values: dict[str, Any] | None = None, kernel: str = "1") -> RealStudy:
        study = RealStudy(tmp_path / "study")
        study.write("predictions.toml", "\n".join(('[study]\nid = "bought"\n', *tables)))
        study.write("experiments/work.py", WORK)
        study.write("values.json", json.dumps(values or {}))
        study.write("kernel.txt", kernel)
        study.register()
        return study

    return make


def judged(study: RealStudy, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Exit status, records by id, and output of a run."""
    status, output = study.run("--prereg-json=records.json", *arguments)
    assert not list(complaints(output)), output
    records = json.loads((study.path / "records.json").read_text())["predictions"]
    return status, {one["id"]: one for one in records}, output


class TestStopping:
    """The values are scripted: 1 s, or too scattered to decide."""

    CLEAR = (1.0, 1.1, 0.9, 1.05, 0.95, 1.02)
    LATE = (0.2, 5.0, 1.0, 1.1, 0.9, 1.05, 0.95, 1.02, 1.0, 1.1, 0.9, 1.0, 1.0, 1.1)

    def study(self, registered, repeats: str, values, *more: str) -> RealStudy:
        table = experiment("work", fixture="scripted", repeats=repeats)
        return registered(table, claim("quick", "work"), *more, values=values)

    def test_the_first_look_that_decides_ends_the_series(self, registered):
        study = self.study(registered, "{ looks = [3, 6, 9] }", {"t": self.CLEAR})

        status, records, output = judged(study)

        assert (status, len(study.seen("began"))) == (0, 3)
        assert (records["quick"]["verdict"], records["quick"]["n"]) == ("supported", 3)
        assert "work: measuring at most 9 of 9 repeats" in output
        assert judged(study)[1]["quick"] == records["quick"]
        assert len(study.seen("began")) == 3

    def test_it_goes_on_until_every_prediction_of_the_series_is_decided(self, registered):
        tighter = claim("tighter", "work").replace("< 2 s", "< 1.2 s").replace(">= 2 s", ">= 1.2 s")
        study = self.study(registered, "{ looks = [3, 6] }", {"t": self.CLEAR}, tighter)

        _, records, _ = judged(study)

        assert len(study.seen("began")) == 6
        assert {name: record["n"] for name, record in records.items()} == {"quick": 3, "tighter": 6}

    def test_an_anytime_series_that_was_interrupted_goes_on_and_ends_where_it_would_have(self, registered):
        rule = '{ max = 40, stopping = "anytime" }'
        values = {"t": (*self.CLEAR[:2], 1.9, *self.CLEAR, *self.CLEAR), "stop_at": 4}
        study = self.study(registered, rule, values)
        process = study.start()
        wait_until(lambda: len(study.seen("began")) == 4, what="the fourth repeat")
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
        kept = study.slots("work", "finished")
        study.write("values.json", json.dumps({"t": values["t"]}))

        _, records, _ = judged(study)

        n = records["quick"]["n"]
        assert sum(kept.values()) == 3
        assert records["quick"]["verdict"] == "supported"
        assert 4 <= n < 40
        assert sorted(study.slots("work", "finished").values()) == [1] * n


class TestGuards:
    GUARD = "\n".join(
        (
            claim("stays-quick", "work", 'kind = "guard"'),
            "expected = 1.0",
            "detect = 3.0",
            "cv = 0.05",
        )
    )

    def study(self, registered, kernel: str, *lines: str) -> RealStudy:
        table = experiment("work", 'subject = ["kernel.txt"]', fixture="subject", repeats="5")
        return registered(table, "\n".join((self.GUARD, *lines)), kernel=kernel)

    def test_a_refutation_is_confirmed_in_the_same_run_and_fails_recorded_or_not(self, registered):
        study = self.study(registered, "3")

        status, records, _ = judged(study, "--prereg-record")
        assert (status, records["stays-quick"]["verdict"]) == (1, "refuted")
        assert "before" not in judged(study, "--prereg-verify")[2]
        assert len(study.seen("began")) == 10

        status, records, output = judged(study)
        assert (status, records["stays-quick"]["recorded"]) == (1, "refuted")
        assert "\n - stays-quick " in output
        assert "refuted, confirmed by series 2" in output
        assert len(study.seen("began")) == 10

    def test_it_is_judged_anew_for_each_version_and_remembers_the_old_ones(self, registered):
        study = self.study(registered, "1")
        assert judged(study, "--prereg-record")[0] == 0
        study.write("kernel.txt", "3")
        status, records, output = judged(study, "--prereg-record")
        assert (status, records["stays-quick"]["verdict"], records["stays-quick"]["series"]) == (
            1,
            "refuted",
            2,
        )
        assert "version 2, supported before" in " ".join(output.split())

        study.write("kernel.txt", "1")
        status, records, output = judged(study)

        assert (status, records["stays-quick"]["verdict"], records["stays-quick"]["series"]) == (
            0,
            "supported",
            1,
        )
        assert "version 1, refuted before" in " ".join(output.split())
        assert len(study.seen("began")) == 15

    def test_without_measuring_a_new_version_is_pending(self, registered):
        study = self.study(registered, "1")
        judged(study, "--prereg-record")
        study.write("kernel.txt", "3")

        status, records, output = judged(study, "--prereg-verify")

        assert (status, records["stays-quick"]["status"]) == (0, "pending")
        assert "not measured for this version of its subject" in output

    @pytest.mark.parametrize(("lines", "exit_status"), [((), 0), (('on-inconclusive = "fail"',), 1)])
    def test_what_a_second_series_does_not_confirm_is_inconclusive(self, registered, lines, exit_status):
        study = self.study(registered, "3 1", *lines)

        status, records, output = judged(study)

        assert (status, records["stays-quick"]["verdict"]) == (exit_status, "inconclusive")
        assert "series 1 refuted, series 2 did not confirm it (supported)" in " ".join(output.split())

    def test_one_that_must_not_be_undecided_fails_a_run_that_could_not_measure_it(self, registered):
        study = self.study(registered, "1", 'on-inconclusive = "fail"')
        text = (study.path / "predictions.toml").read_text()
        study.write("predictions.toml", text.replace("detect = 3.0", "detect = 3.5"))

        status, records, output = judged(study)

        assert (status, records["stays-quick"]["status"]) == (1, "pending")
        assert 'on-inconclusive = "fail": this guard has to be supported' in output
        assert judged(study, "--prereg-verify")[0] == 0


def test_a_claim_that_is_measured_again_after_five_edits_of_its_subject_has_one_verdict(registered):
    table = experiment("work", 'subject = ["kernel.txt"]', fixture="subject", repeats="5")
    study = registered(table, claim("quick", "work"), kernel="1")
    first = judged(study, "--prereg-record")[1]["quick"]

    for edit in range(5):
        study.write("kernel.txt", f"{3 + edit}")
        status, records, output = judged(study, "--prereg-fresh")

    assert (status, first["verdict"]) == (0, "supported")
    assert records["quick"] == {
        **first,
        "flags": [*first["flags"], "earlier subject"],
        "recorded": "supported",
    }
    assert "series 6, a replication:" in output
    assert "1 registered · 1 judged · 1 supported" in output


class TestNextSeries:
    """The values are scripted: all within the bounds of what can be read, or one that is not."""

    FINE = (1.0, 1.1, 0.9)

    @pytest.fixture
    def study(self, registered) -> RealStudy:
        table = experiment("work", "bounds = { t = [0, 60] }", fixture="scripted")
        return registered(table, claim("quick", "work"), values={"t": [1.0, 1.1, 99.0]})

    def test_an_impossible_reading_leaves_it_to_the_next_series_that_has_to_be_asked_for(self, study):
        first = judged(study, "--prereg-record")[1]["quick"]
        study.write("values.json", json.dumps({"t": self.FINE}))
        assert judged(study)[1]["quick"] == {**first, "recorded": "inconclusive"}
        assert len(study.seen("began")) == 3

        status, records, output = judged(study, "--prereg-fresh")

        found = records["quick"]
        assert (first["verdict"], first["reason"]) == ("inconclusive", "instrument")
        assert (found["verdict"], found["series"], found["standing"]) == ("supported", 2, "confirmatory")
        assert (status, found["changed"]) == (1, True)
        assert "CHANGED inconclusive → supported" in output

    def test_what_a_third_says_is_a_replication(self, study):
        judged(study)
        study.write("values.json", json.dumps({"t": self.FINE}))
        judged(study, "--prereg-fresh")
        study.write("values.json", json.dumps({"t": (3.0, 3.1, 3.2)}))

        status, records, output = judged(study, "--prereg-fresh")

        assert (status, records["quick"]["verdict"], records["quick"]["series"]) == (0, "supported", 2)
        assert "series 3, a replication:" in output


class TestLaterArms:
    ARMS = "[experiments.work.arms]\nnew = {}\n"
    VALUES = dict.fromkeys(("new", "late"), (1.0, 1.1, 0.9))

    def test_an_arm_that_came_later_gets_a_series_of_its_own(self, registered):
        table = experiment("work", self.ARMS, fixture="scripted")
        study = registered(table, claim("quick", "work", 'arm = "new"'), values=self.VALUES)
        first = judged(study, "--prereg-record")[1]["quick"]
        text = (study.path / "predictions.toml").read_text()
        more = claim("late", "work", 'arm = "late"')
        study.write("predictions.toml", text.replace("new = {}\n", "new = {}\nlate = {}\n") + "\n" + more)
        study.register()

        _, records, output = judged(study, "--prereg-verify")
        assert records["late"]["status"] == "pending"
        assert 'pending: series 1 has no arm "late"' in output

        status, records, _ = judged(study)

        assert (status, records["late"]["verdict"], records["late"]["series"]) == (0, "supported", 2)
        assert records["quick"] == {**first, "recorded": "supported"}
        assert judged(study)[1] == records

    def test_an_open_series_goes_on_without_it(self, registered):
        table = experiment("work", self.ARMS, fixture="scripted")
        values = {**self.VALUES, "stop_at": 3}
        study = registered(table, claim("quick", "work", 'arm = "new"'), values=values)
        process = study.start()
        wait_until(lambda: len(study.seen("began")) == 3, what="the third repeat")
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
        study.write("values.json", json.dumps(self.VALUES))
        text = (study.path / "predictions.toml").read_text()
        more = claim("late", "work", 'arm = "late"')
        study.write("predictions.toml", text.replace("new = {}\n", "new = {}\nlate = {}\n") + "\n" + more)
        study.register()

        records = judged(study)[1]

        assert (records["quick"]["verdict"], records["late"]["status"]) == ("supported", "pending")
        assert "surplus repeats" not in records["quick"]["flags"]
        assert judged(study)[1]["late"]["series"] == 2


class TestOrder:
    def test_what_is_required_and_what_calibrates_is_measured_first_wherever_it_stands(self, registered):
        study = registered(
            '[instruments.clock]\ncalibrated-by = ["true-clock"]\n',
            experiment("one"),
            experiment("two", fixture="read"),
            claim("second", "two", 'requires = ["first"]'),
            claim("first", "one"),
            experiment("wave", fixture="scripted"),
            claim("true-clock", "wave"),
            values={"t": TestStopping.CLEAR},
        )

        status, records, _ = judged(study)

        assert status == 0
        assert {name: record["verdict"] for name, record in records.items()} == dict.fromkeys(
            ("second", "first", "true-clock"), "supported"
        )

    def test_nothing_is_bought_for_what_lacks_support(self, registered):
        study = registered(
            experiment("one", fixture="scripted"),
            claim("second", "two", 'requires = ["first"]'),
            experiment("two"),
            claim("first", "one"),
            values={"t": (3.0, 3.1, 3.05)},
        )

        _, records, output = judged(study)

        assert (records["first"]["verdict"], records["second"]["status"]) == ("refuted", "pending")
        assert 'requires "first", which is refuted' in output
        assert study.files("two") == {}


def test_a_formula_and_a_conjunction_buy_every_experiment_that_they_need(registered):
    formula = """\
[predictions.sum]
claim = "Together they take less than three seconds."
inputs = { a = "one:t", b = "two:t" }
formula = "a + b"
predicts = "< 3 s"
falsifier = ">= 3 s"
"""
    both = '[predictions.both]\nclaim = "Both are quick."\nall = ["is-one", "is-two"]\n'
    members = claim("is-one", "one") + claim("is-two", "two")
    study = registered(experiment("one"), experiment("two"), formula, both, members)

    status, records, _ = judged(study, "--prereg-record")
    again = judged(study, "--prereg-verify")[1]

    assert status == 0
    assert {name: (one["verdict"], one["order"]) for name, one in records.items()} == dict.fromkeys(
        ("sum", "both", "is-one", "is-two"), ("supported", "registered")
    )
    assert records["sum"]["estimate"] == pytest.approx(2.04)
    assert {name: one["recorded"] for name, one in again.items()} == dict.fromkeys(again, "supported")
    for name in ("one", "two"):
        (header,) = (line for line in study.lines(name) if line["type"] == "header")
        assert {"sum", "both"} <= set(header["predictions"])


class TestLateCalibration:
    def test_a_calibration_that_was_asked_for_once_the_verdict_was_known_opens_none(self, registered):
        trusted, calibrated = 'trusted = "It is the one on the wall."', 'calibrated-by = ["true-clock"]'
        tables = (experiment("read", fixture="handled"), experiment("wave"))
        claims = (claim("quick", "read"), claim("true-clock", "wave"))
        study = registered(*tables, *claims, f"[instruments.clock]\n{trusted}\n", kernel="3")
        assert judged(study)[1]["quick"]["verdict"] == "refuted"
        study.write("kernel.txt", "1")
        judged(study, "--prereg-fresh")
        text = (study.path / "predictions.toml").read_text(encoding="utf-8")
        study.write("predictions.toml", text.replace(trusted, calibrated))

        _, records, _ = judged(study, "--prereg-verify")

        found = records["quick"]
        assert (found["verdict"], found["reason"], found["series"]) == ("inconclusive", "instrument", 1)
