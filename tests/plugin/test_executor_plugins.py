"""Executors that other packages bring: real sessions whose repeats run elsewhere, each told by itself."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest
from plugged import EXAMPLES, write_package
from real_study import RealStudy, complaints, plain_environment, wait_until

PROCESSES = EXAMPLES["pytest_prereg_executor"]
WORK = """\
import os
import time

from pytest_prereg import Repeat, experiment


@experiment(metrics={"t": "s"})
def work(repeat: Repeat, *, weight: int = 1) -> None:
    with open(os.environ["WITNESS"], "a") as witness:
        print("began", repeat.arm, repeat.index, file=witness)
    time.sleep(float(os.environ.get("WORK_SECONDS", "0.1")))
    repeat.record("t", weight + 0.0625 + repeat.index / 1024)
"""
STUDY = """\
[study]
id = "away"
{study}

[experiments.work]
fixture = "work"
repeats = 3
executor = "processes"
max-parallel = 3
exclusive = false
{keys}
[experiments.work.arms]
slow = {{ weight = 3 }}
fast = {{ weight = 1 }}

[predictions.slow-is-slower]
claim = "Slow takes at least twice as long as fast."
experiment = "work"
contrast = "slow / fast"
quantity = "t"
predicts = ">= 2"
falsifier = "< 1"
"""
ON = ("--prereg-executor", "processes")


@pytest.fixture
def away(tmp_path, monkeypatch):
    """``away(keys=…, change=…)``: a registered study, and the documented executor, installed and changed."""

    def make(*, keys="", study="", change=("", "")):
        source = PROCESSES.replace(*change) if change[0] else PROCESSES
        assert source != PROCESSES or not change[0]
        monkeypatch.setenv("PYTHONPATH", str(write_package(tmp_path / "site", source)))
        made = RealStudy(tmp_path / "study")
        made.write("predictions.toml", STUDY.format(keys=keys, study=study))
        made.write("experiments/work.py", WORK)
        made.register()
        return made

    return make


def judged(study, *arguments, **variables):
    status, output = study.run("--prereg-json=records.json", *arguments, **variables)
    assert status == 0, output
    assert not list(complaints(output)), output
    (record,) = json.loads((study.path / "records.json").read_text())["predictions"]
    return record, " ".join(output.split())


def of(lines, kind):
    return [line for line in lines if line["type"] == kind]


def test_repeats_run_elsewhere_and_the_evidence_says_where_and_not_what_this_machine_is(away):
    study = away()
    waiting, output = judged(study)
    assert waiting["status"] == "pending"
    why = "needs executor processes (pytest --prereg --prereg-executor processes)"
    assert why in output
    study.write(
        "predictions.toml",
        (study.path / "predictions.toml").read_text().replace('claim = "', 'claim = "No: '),
    )
    assert why in judged(study, "--prereg-explore")[1], (
        "that it is not registered keeps nobody from exploring"
    )
    subprocess.run(["git", "checkout", "-q", "predictions.toml"], cwd=study.path, check=True)

    record, output = judged(study, *ON)

    assert record["verdict"] == "supported"
    assert "prereg: measure and judge · processes" in output
    assert len(study.seen("began")) == 6
    header, *lines = study.lines("work")
    assert header["executor"] == "processes"
    assert header["environment"] == {"backend": "processes", "scrubbed": []}
    assert sorted(header["versions"]) == ["instruments", "pytest-prereg"]
    assert header["rates"] == {"fast": 0.36, "slow": 0.36}
    ended = of(lines, "finished")
    assert {line["machine"].rpartition(" | ")[2] for line in ended} == {"processes"}
    assert all(line["environment"]["cpu"] in line["machine"] for line in ended)
    assert [line["type"] for line in lines[:3]] == ["started"] * 3  # side by side
    paid = sum(line["seconds"]["total"] for line in ended) * 0.36 / 3600
    assert record["cost_usd"] == pytest.approx(paid)


def test_a_budget_is_held_by_what_repeats_cost_and_by_what_runs_still(away):
    """A repeat is 0.1 s and a bit, at 10 USD a second: an amount that is typed is leave to spend it."""
    study = away(change=("0.36 for", "36000 for"), keys='timeout = "20 s"')

    record, output = judged(study, "--prereg-budget", "100")
    assert record["status"] == "pending"
    assert "the next repeat is likely to cost $200.00" in output
    assert study.files("work") == {}

    record, output = judged(study, "--prereg-budget", "406")
    begun = len(study.seen("began"))
    assert begun == 2
    assert "pytest --prereg --prereg-budget 406" in output
    record, output = judged(study, "--prereg-budget", "406")
    assert record["verdict"] == "supported"
    assert len(study.seen("began")) == 6


@pytest.mark.parametrize("price", [None, 0.5])
def test_what_nobody_knows_the_price_of_is_not_bought_within_a_budget(away, price):
    """The study's own price is for executors that know none."""
    prices = f"[study.prices]\nprocesses = {price}" if price else ""
    study = away(change=("{arm: 0.36 for arm in self.experiment.arms}", "None"), study=prices)

    record, output = judged(study, *ON, "--prereg-budget", "5")

    if price:
        assert study.lines("work")[0]["rates"] == {"fast": 0.5, "slow": 0.5}
        assert record["verdict"] == "supported"
    else:
        assert record["status"] == "pending"
        assert (
            "nobody knows what processes costs, so --prereg-budget can't be kept: [study.prices] processes"
            in output
        )
        assert study.files("work") == {}


def test_what_ran_outside_of_its_conditions_decides_nothing(away):
    study = away(keys='conditions = { gpu = "*H100*" }')
    record, _ = judged(study, *ON)
    assert (record["verdict"], record["reason"]) == ("inconclusive", "scope")
    (told,) = {line["outside"] for line in of(study.lines("work"), "finished")}
    assert told == 'gpu is "none", and the conditions want "*H100*"'


def test_arms_that_ran_on_unlike_hardware_are_not_compared(away):
    study = away(change=("backend=self.name)", "gpu=['L4' if job.arm == 'slow' else 'T4'])"))
    record, output = judged(study, *ON)
    assert (record["verdict"], record["reason"]) == ("inconclusive", "scope")
    assert "ran on different machines" in output


def test_hardware_that_the_arms_ask_for_is_what_is_compared_where_conditions_hold(away):
    told = "gpu=[self.experiment.arms[job.arm].resources.gpu], region='lab-1')"
    study = away(change=("backend=self.name)", told), keys='conditions = { region = "lab-*", gpu = "*4" }')
    text = (study.path / "predictions.toml").read_text()
    text = text.replace("weight = 3 }", 'weight = 3, resources = { gpu = "T4" } }')
    study.write("predictions.toml", text.replace("weight = 1 }", 'weight = 1, resources = { gpu = "L4" } }'))
    for command in (
        (sys.executable, "-m", "pytest_prereg", "amend", "slow-is-slower", "--reason", "hardware"),
        ("git", "commit", "--all", "--quiet", "--message", "Amend"),
    ):
        subprocess.run(command, cwd=study.path, env=plain_environment(), check=True, capture_output=True)
    record, _ = judged(study, *ON)
    assert record["verdict"] == "supported"


def test_ctrl_c_leaves_nothing_running_and_the_same_command_goes_on(away):
    """Each that ran is lost: of three repeats an arm no more than two may be."""
    study = away(change=("parallel = 4", "parallel = 2"))
    process = study.start(*ON, WORK_SECONDS="30")
    wait_until(lambda: len(study.seen("began")) == 2, what="two repeats")
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert "resume:  pytest --prereg --prereg-executor processes" in output
    wait_until(lambda: not study.processes(), seconds=5, what="the end of all processes")
    (footer,) = of(study.lines("work"), "footer")
    assert footer["ended"] == "interrupted"
    record, _ = judged(study, *ON)
    assert record["verdict"] == "supported"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("self.about = ", "1 / 0 #"), "ZeroDivisionError"),
        (("    def start(self):\n", "    def __init__(self, *_, checkout):\n        1 / 0\n\n    def start(self):\n"),
         'PR127: plugin "plugged" could not make executor "processes": ZeroDivisionError: division by zero'),
    ],
)  # fmt: skip
def test_what_an_executor_raises_is_told_with_its_line(away, change, why):
    study = away(change=change)
    _, output = study.run(*ON)
    assert why in " ".join(output.split())
    assert "plugged_module.py:" in output


def test_registering_needs_the_plugin_and_says_so(away, monkeypatch):
    study = away()
    (study.path / "predictions.lock").unlink()
    lock = [sys.executable, "-m", "pytest_prereg", "lock"]
    monkeypatch.delenv("PYTHONPATH")
    done = subprocess.run(
        lock, cwd=study.path, env=plain_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert (
        'PR007: experiment "work": no executor is called "processes"; there is "local" and "modal"'
        in done.stderr
    )
    status, output = study.run(*ON)
    assert status == 4
    assert 'PR007: --prereg-executor: no executor is called "processes"' in output


def test_a_plugin_that_brings_no_executor_is_named(away, tmp_path):
    study = away()
    module = tmp_path / "site" / "plugged_module.py"
    module.write_text(PROCESSES.replace("return Processes\n", "return object()\n"))
    status, output = study.run(*ON)
    assert status == 4
    assert 'plugin "plugged" returned' in output
    assert "pytest_prereg_executor, which has no" in output
