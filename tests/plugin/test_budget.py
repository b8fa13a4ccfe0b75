"""What a run may spend: it stops before it exceeds that, shows nothing of what it has, and goes on later."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from real_study import RealStudy, complaints, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REPEATS = 14

WORK = """\
import os
import time

from pytest_prereg import Repeat, experiment


@experiment(metrics={"t": "s"})
def work(repeat: Repeat, *, weight: int = 1) -> None:
    with open(os.environ["WITNESS"], "a") as witness:
        print("began", repeat.arm or "-", repeat.index, file=witness)
    time.sleep(float(os.environ.get("WORK_SECONDS", "0.01")))
    repeat.record("t", weight + 0.0625 + repeat.index / 1024)
"""

ARMS = "[experiments.work.arms]\nslow = { weight = 3 }\nfast = { weight = 1 }\n"

RATIO = """\
[predictions.slow-is-slower]
claim = "Slow takes at least twice as long as fast."
experiment = "work"
contrast = "slow / fast"
quantity = "t"
predicts = ">= 2"
falsifier = "< 1"
"""

ALONE = """\
[experiments.other]
fixture = "work"
repeats = 3

[predictions.other-is-quick]
claim = "The other one takes less than two seconds."
experiment = "other"
quantity = "t"
predicts = "< 2 s"
falsifier = ">= 2 s"
"""

GUARDED = 5

GUARD = f"""\
[experiments.guarded]
fixture = "work"
repeats = {GUARDED}
subject = ["kernel.txt"]

[predictions.stays-quick]
kind = "guard"
claim = "It takes less than half a second."
experiment = "guarded"
quantity = "t"
predicts = "< 0.5 s"
falsifier = ">= 1 s"
expected = 0.1
detect = 3.0
cv = 0.05
"""

PRICED = "[study.prices]\nlocal = 360\n"
"""Ten cents a second."""


@pytest.fixture
def registered(tmp_path: Path) -> Callable[..., RealStudy]:
    """``registered(table, …)``: an experiment of seven repeats of two arms, and what else is given."""

    def make(*more: str, prices: str = PRICED, keys: str = "repeats = 7") -> RealStudy:
        study = RealStudy(tmp_path / "study")
        work = f'[experiments.work]\nfixture = "work"\n{keys}\n{ARMS}'
        study.write("predictions.toml", "\n".join(('[study]\nid = "priced"\n', prices, work, RATIO, *more)))
        study.write("experiments/work.py", WORK)
        study.write("kernel.txt", "1")
        study.register()
        return study

    return make


def judged(study: RealStudy, *arguments: str, **variables: str) -> tuple[dict[str, Any], str]:
    """Records by id and output of a run that ends well."""
    status, output = study.run("--prereg-json=records.json", *arguments, **variables)
    assert status == 0, output
    assert not list(complaints(output)), output
    records = json.loads((study.path / "records.json").read_text())["predictions"]
    return {one["id"]: one for one in records}, " ".join(output.split())


def kept(output: str, experiment_repeats: int = REPEATS) -> int:
    """How many repeats a stopped run says that it has."""
    (number,) = set(re.findall(rf"(\d+) of {experiment_repeats} repeats are kept", output))
    return int(number)


class TestBudget:
    def test_it_stops_in_time_shows_nothing_and_says_how_to_go_on(self, registered):
        study = registered()

        records, output = judged(study, "--prereg-budget", "0.1", WORK_SECONDS="0.2")

        *_, last = study.lines("work")
        assert (last["type"], last["ended"]) == ("footer", "stopped")
        assert 1 <= kept(output) == study.slots("work", "finished").total() < REPEATS
        assert re.search(r"pending: stopped: .*the budget of \$0\.10 (are|is) spent", output)
        assert "resume: pytest --prereg --prereg-budget 0.1 (what is kept is not run again)" in output
        record = records["slow-is-slower"]
        assert (record["status"], record["estimate"], record["interval"]) == ("pending", None, None)
        assert not re.search(r"\b[13]\.06\d", output), "a value was shown"

    def test_the_same_command_goes_on_until_all_is_there(self, registered):
        study = registered()
        judged(study, "--prereg-budget", "0.1", WORK_SECONDS="0.2")
        before = study.slots("work", "finished").total()

        records, _ = judged(study, "--prereg-budget", "100")

        assert before < REPEATS
        assert len(study.seen("began")) == REPEATS  # none was bought twice
        assert records["slow-is-slower"]["verdict"] == "supported"
        assert records["slow-is-slower"]["sessions"] == list(study.files("work"))

    def test_every_session_that_paid_is_in_the_cost_of_the_verdict(self, registered):
        study = registered()
        judged(study, "--prereg-budget", "0.1", WORK_SECONDS="0.2")
        records, _ = judged(study)

        seconds = [line["seconds"]["total"] for line in study.lines("work") if line["type"] == "finished"]
        assert records["slow-is-slower"]["cost_usd"] >= 0.99 * sum(seconds) * 360 / 3600

    def test_what_comes_after_it_was_reached_is_not_begun(self, registered):
        study = registered(ALONE)

        records, output = judged(study, "--prereg-budget", "0.1", WORK_SECONDS="0.2")

        assert records["other-is-quick"]["status"] == "pending"
        assert "0 of 3 repeats are kept" in output
        assert study.files("other") == {}

    def test_nothing_is_begun_that_a_pilot_has_shown_to_cost_more(self, registered):
        study = registered()
        tried(study, WORK_SECONDS="0.5")

        _, output = judged(study, "--prereg-budget", "0.01")

        assert "stopped: $0.00 of the budget of $0.01 are spent, and the next repeat is" in output
        assert ", 0 of 14 repeats are kept" in output
        assert len(study.files("work")) == 1  # the pilot

    def test_a_look_that_was_not_reached_is_not_taken(self, registered):
        study = registered(keys="repeats = { looks = [3, 7] }")

        records, output = judged(study, "--prereg-budget", "0.05", WORK_SECONDS="0.2")

        assert kept(output) < 6
        assert records["slow-is-slower"]["status"] == "pending"

    def test_where_nothing_has_a_price_it_says_that_it_stops_nothing(self, registered):
        study = registered(prices="")

        records, output = judged(study, "--prereg-budget", "0")

        assert records["slow-is-slower"]["verdict"] == "supported"
        assert "nothing that was measured has a price, so --prereg-budget stops nothing" in output

    def test_a_replication_that_it_stops_is_resumed_by_the_command_that_is_named(self, registered):
        study = registered()
        judged(study)

        records, output = judged(study, "--prereg-fresh", "--prereg-budget", "0.1", WORK_SECONDS="0.2")

        assert records["slow-is-slower"]["verdict"] == "supported"  # of the first series
        assert re.search(r"stopped: .*the budget of \$0\.10 (are|is) spent", output)
        assert "resume: pytest --prereg --prereg-fresh --prereg-budget 0.1" in output

    def test_it_hides_no_guard_that_was_refuted_once_and_is_not_confirmed(self, registered):
        study = registered(GUARD)
        process = study.start("-k", "stays-quick", WORK_SECONDS="0.3")
        wait_until(lambda: len(study.seen("began")) > GUARDED, what="the series that would confirm it")
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=60)

        records, output = judged(study, "-k", "stays-quick", "--prereg-budget", "0")

        assert records["stays-quick"]["status"] == "pending"
        assert re.search(
            r"refuted once, by series 1, to be confirmed by series \d; stopped: the budget", output
        )


class TestTime:
    def test_it_stops_in_time_and_goes_on_later(self, registered):
        study = registered(prices="")

        _, output = judged(study, "--prereg-max-time", "3 s", WORK_SECONDS="0.5")

        assert kept(output) == study.slots("work", "finished").total() < REPEATS
        assert re.search(r"pending: stopped: .*the time of 3 s (are|is) spent", output)
        assert "resume: pytest --prereg --prereg-max-time '3 s' (what is kept is not run again)" in output
        assert judged(study, "--prereg-max-time", "600")[0]["slow-is-slower"]["verdict"] == "supported"


class TestUsage:
    @pytest.mark.parametrize(
        ("option", "value", "advice"),
        [
            ("budget", "five", "no amount of money; write US dollars as a number: --prereg-budget 2.50"),
            ("budget", "-1", "no amount of money"),
            ("budget", "nan", "no amount of money"),
            ("budget", "inf", "no amount of money"),
            ("budget", "", "no amount of money"),
            (
                "max-time",
                "soon",
                'no duration; write seconds, or a number with s, min or h: --prereg-max-time "90 min"',
            ),
            ("max-time", "0", "no duration"),
            ("max-time", "-5 min", "no duration"),
            ("max-time", "2 days", "no duration"),
        ],
    )
    def test_what_can_not_be_read_says_what_to_type(self, at_stage, judge, option, value, advice):
        result = judge(at_stage("measurable"), f"--prereg-{option}={value}")

        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert f'--prereg-{option} "{value}" is {advice}' in result.stderr.str()

    @pytest.mark.parametrize("option", ["--prereg-budget=5", "--prereg-max-time=2 h"])
    def test_where_nothing_is_bought_there_is_nothing_to_stop(self, at_stage, judge, monkeypatch, option):
        project = at_stage("measurable")
        verifying = judge(project, "--prereg-verify", option)
        monkeypatch.setenv("CI", "1")
        in_ci = judge(project, option)
        measuring = judge(project, "--prereg-measure", "--co", option)

        assert verifying.ret == in_ci.ret == pytest.ExitCode.USAGE_ERROR
        assert "--prereg-verify buys nothing, so --prereg-" in verifying.stderr.str()
        assert "CI is set, so nothing is bought: --prereg-" in in_ci.stderr.str()
        assert measuring.ret == 0

    def test_a_price_below_nothing_would_hide_what_others_cost(self, at_stage, judge):
        project = at_stage("measurable")
        project.edit("predictions.toml", 'id = "measured"', 'id = "measured"\nprices = { local = -1.0 }')

        result = judge(project)

        result.stdout.fnmatch_lines(
            ['*PR005: study "prices": "local" is "-1*; it must be a number of at least 0']
        )

    @pytest.mark.parametrize("value", ["90 min", "2 h", "600", "1.5 h", "500ms"])
    def test_durations_are_written_as_in_a_study_or_in_seconds(self, at_stage, judge, value):
        assert judge(at_stage("measurable"), "--co", f"--prereg-max-time={value}").ret == 0


class TestAnnouncement:
    def test_collecting_tells_the_cost_of_what_is_missing(self, registered):
        study = registered()
        tried(study, WORK_SECONDS="0.5")

        _, output = study.run("--co")

        (cost,) = re.findall(
            r"would measure work: series 1, 14 of 14 repeats, about \d+ s, \$(\d+\.\d\d)", output
        )
        assert float(cost) >= 14 * 0.5 * 0.1

    def test_before_anything_is_known_the_cost_is_unknown_unless_it_is_free(self, registered):
        _, output = registered().run("--co")

        assert "14 of 14 repeats, time unknown, cost unknown" in output


def tried(study: RealStudy, **variables: str) -> None:
    """Runs one pilot of each arm."""
    environment = {**os.environ, "WITNESS": str(study.witness), **variables}
    command = [sys.executable, "-m", "pytest_prereg", "try", "work"]
    done = subprocess.run(
        command, cwd=study.path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
