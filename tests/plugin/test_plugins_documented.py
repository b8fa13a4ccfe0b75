"""What the page on plugins shows, each hook of it at work."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from plugged import EXAMPLES, write_package
from real_study import RealStudy, plain_environment

from pytest_prereg import hookspecs

STUDY = """\
[study]
id = "plugged"

[experiments.laps]
metrics = { lap = "s" }
repeats = 3

[experiments.work]
fixture = "work"
repeats = 3
metrics = { moved = { unit = "1", instrument = "switches", exact = false } }

[instruments.switches]
trusted = "the kernel's own count"

[predictions.laps-are-quick]
claim = "A lap takes less than two seconds."
experiment = "laps"
quantity = "lap"
predicts = "< 2 s"
falsifier = ">= 2 s"

[predictions.is-seldom-moved]
claim = "It has the CPU for itself."
experiment = "work"
quantity = "moved"
predicts = "<= 1e6"
falsifier = "> 1e6"
"""
WORK = """\
from pytest_prereg import Repeat, experiment


@experiment(metrics={"moved": "1"})
def work(repeat: Repeat) -> None:
    with repeat.instrument("switches").window("moved"):
        sum(range(1000))
"""


def python(study, *command):
    done = subprocess.run(
        [sys.executable, *command],
        cwd=study.path,
        env=plain_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def plugged(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    for hook in ("importer", "instrument"):
        write_package(folder, EXAMPLES[f"pytest_prereg_{hook}"], hook)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    study = RealStudy(tmp_path / "study")
    study.write("predictions.toml", STUDY)
    study.write("experiments/work.py", WORK)
    study.write("conftest.py", EXAMPLES["pytest_prereg_verdict"])
    study.register()
    return study


def test_every_hook_is_shown():
    assert sorted(EXAMPLES) == sorted(name for name in vars(hookspecs) if name.startswith("pytest_prereg_"))


def test_an_importer_reads_an_instrument_takes_readings_and_a_plugin_is_told(plugged):
    plugged.write("run.json", '{"laps": [1.0, 1.25, 1.5]}')

    imported = python(plugged, "-m", "pytest_prereg", "import", "run.json", "--experiment", "laps")
    status, output = plugged.run("--prereg-json=records.json")

    assert "laps; a repeat is a lap" in imported
    assert status == 0, output
    records = json.loads((plugged.path / "records.json").read_text())["predictions"]
    assert {one["id"]: one["n"] for one in records} == {"laps-are-quick": 3, "is-seldom-moved": 3}
    named = [line["instruments"] for line in plugged.lines("work") if line["type"] == "finished"]
    assert named == [{"moved": "switches"}] * 3
    told = (plugged.path / "verdicts.txt").read_text().splitlines()
    assert sorted(told) == sorted(f"{one['id']} {one['verdict']} 3" for one in records)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("return self.after - self.before", "return float('nan')"), "switches returned nan, which is no reading"),
        (("return self.after - self.before", "return 1 / 0"), "its plugin failed: ZeroDivisionError"),
        (("self.after < self.before", "True"), "the kernel counted backwards"),
    ],
)  # fmt: skip
def test_an_instrument_that_can_not_read_makes_a_repeat_invalid_and_is_named(plugged, tmp_path, change, why):
    module = tmp_path / "site" / "instrument_module.py"
    assert change[0] in module.read_text()
    module.write_text(module.read_text().replace(*change))

    tried = subprocess.run(
        [sys.executable, "-m", "pytest_prereg", "try", "work"],
        cwd=plugged.path, env=plain_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert tried.returncode == 1
    assert f"switches can't be read: {why}" in " ".join((tried.stdout + tried.stderr).split())
