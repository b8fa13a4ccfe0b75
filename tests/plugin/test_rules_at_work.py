"""Registered rules and conditions where a study is measured: what is excluded, and what is never bought."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from real_study import RealStudy, complaints, plain_environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WORK = """\
import os

from pytest_prereg import Repeat, experiment


@experiment(metrics={"t": "s"})
def work(repeat: Repeat) -> None:
    with open(os.environ["WITNESS"], "a") as witness:
        print("began", repeat.arm or "-", repeat.index, file=witness)
    if os.environ.get("FAILS"):
        raise RuntimeError("it went wrong")
    repeat.record("t", 1 + repeat.index / 100)
"""

CLAIM = """\
[predictions.{name}]
claim = "It takes less than two seconds."
experiment = "{on}"
quantity = "t"
predicts = "< 2 s"
falsifier = ">= 2 s"
"""

NOWHERE = 'conditions = { gpu = "*Z80*", cores = "<= 1e6" }'
ALWAYS = 'exclude = ["load_average < 100000"]'
NEVER = 'exclude = ["load_average > 100000"]'


def experiment(name: str, *keys: str) -> str:
    table = "\n".join((f"[experiments.{name}]", 'fixture = "work"', "repeats = 4", *keys, ""))
    return f"{table}\n{CLAIM.format(name=f'{name}-is-quick', on=name)}"


@pytest.fixture
def registered(tmp_path: Path) -> Callable[..., RealStudy]:
    def make(*tables: str) -> RealStudy:
        study = RealStudy(tmp_path / "study")
        study.write("predictions.toml", "\n".join(('[study]\nid = "ruled"\n', *tables)))
        study.write("experiments/work.py", WORK)
        study.register()
        return study

    return make


def judged(study: RealStudy, *arguments: str, **variables: str) -> tuple[dict[str, Any], str]:
    status, output = study.run("--prereg-json=records.json", *arguments, **variables)
    assert status == 0, output
    assert not list(complaints(output)), output
    records = json.loads((study.path / "records.json").read_text())["predictions"]
    return {one["id"]: one for one in records}, " ".join(output.split())


def finished(study: RealStudy, name: str) -> list[dict[str, Any]]:
    return [line for line in study.lines(name) if line["type"] == "finished"]


class TestRules:
    def test_what_breaks_one_is_kept_with_the_reading_and_not_run_again(self, registered):
        study = registered(experiment("work", ALWAYS))

        records, _ = judged(study)

        lines = finished(study, "work")
        assert {line["outcome"] for line in lines} == {"excluded"}
        assert all(line["cause"].startswith("load_average < 100000 (was ") for line in lines)
        assert all("t" in line["values"] for line in lines)
        assert len(study.seen("began")) == 4
        record = records["work-is-quick"]
        assert (record["verdict"], record["reason"]) == ("inconclusive", "excluded")

    def test_one_that_nothing_breaks_changes_nothing(self, registered):
        records, _ = judged(registered(experiment("work", NEVER)))

        assert (records["work-is-quick"]["verdict"], records["work-is-quick"]["n"]) == ("supported", 4)

    def test_a_failure_is_never_dropped_by_one(self, registered):
        study = registered(experiment("work", ALWAYS))

        records, _ = judged(study, FAILS="1")

        assert {line["outcome"] for line in finished(study, "work")} == {"task-failed"}
        assert records["work-is-quick"]["reason"] == "task-failed"


class TestConditions:
    def test_nothing_is_bought_on_another_machine(self, registered):
        study = registered(experiment("work", NOWHERE), experiment("other"))

        records, output = judged(study)

        assert records["work-is-quick"]["status"] == "pending"
        assert records["other-is-quick"]["verdict"] == "supported"
        assert "pending: this machine is outside its conditions: gpu is " in output
        assert '"*Z80*"' in output
        assert study.files("work") == {}

    def test_registering_says_it_before_anything_is_committed(self, registered):
        study = registered(experiment("work", NOWHERE))
        study.write(
            "predictions.toml",
            (study.path / "predictions.toml").read_text() + "\n" + experiment("more", NOWHERE),
        )
        done = subprocess.run(
            [sys.executable, "-m", "pytest_prereg", "lock"],
            cwd=study.path,
            env=plain_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "this machine is outside the conditions of more: gpu is" in done.stdout
        assert "conditions of work" not in done.stdout

    def test_collecting_says_it_too(self, registered):
        _, output = registered(experiment("work", NOWHERE)).run("--co")

        assert "would not measure work: this machine is outside its conditions: gpu is " in output
        assert "would measure" not in output

    def test_exploring_measures_and_what_it_yields_does_not_decide(self, registered):
        study = registered(experiment("work", NOWHERE))

        records, _ = judged(study, "--prereg-explore")

        assert len(finished(study, "work")) == 4
        assert (records["work-is-quick"]["verdict"], records["work-is-quick"]["reason"]) == (
            "inconclusive",
            "scope",
        )

    def test_a_repeat_that_ran_outside_of_them_says_so(self, registered):
        study = registered(experiment("work", 'conditions = { load_average = ">= 100000" }'))

        records, _ = judged(study)

        assert all("load_average is " in line["outside"] for line in finished(study, "work"))
        assert records["work-is-quick"]["reason"] == "scope"
