"""``sandbox_reward``: what it counts and measures of real sandboxes, what it refuses, and what it tells."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
from sandboxes import needs_namespaces

from pytest_prereg import Repeat
from pytest_prereg.measure.workloads import sandbox_reward as module
from pytest_prereg.measure.workloads.sandbox.completions import Completion, ScriptTest
from pytest_prereg.measure.workloads.sandbox.outcomes import Graded, Outcome, TestOutcome
from pytest_prereg.measure.workloads.sandbox_reward import sandbox_reward, seconds_covered

COUNTS = ("passed", "failed", "timed_out", "crashed", "out_of_memory", "output_limited")
TIMES = (
    *("t_batch", "t_reward", "reward_work", "reward_longest", "creation", "creation_rate"),
    *("graded_rate", "overshoot_largest"),
)


def readings(seed: int = 1, **params):
    repeat = Repeat(metrics=sandbox_reward.metrics, seed=seed)
    sandbox_reward(repeat, **params)
    return repeat.readings()


def measured(seed: int = 1, **params) -> dict:
    found = readings(seed, **params)
    assert found.problems == found.missing == []
    return found.values


def counts(values: dict) -> dict:
    return {name: values[name] for name in COUNTS if values[name]}


@needs_namespaces
def test_each_kind_of_completion_is_counted_as_what_it_is():
    found = readings(completions=12, wrong=4, hung=2, crashing=2, deadline=1.0)
    values = found.values
    assert found.problems == found.missing == []
    assert counts(values) == {"passed": 4, "failed": 4, "timed_out": 2, "crashed": 2}
    assert values["infrastructure_faults"] == 0
    assert values["survivors"] == 0
    assert values["credit_mean"] == pytest.approx((4 + 4 * 0.5) / 12)
    assert len(found.diagnostics["endings"]) == 8
    assert sum(": timeout: " in ending for ending in found.diagnostics["endings"]) == 2
    assert sum(": fail: test 1: " in ending for ending in found.diagnostics["endings"]) == 4
    assert values["reward_longest"] >= 1.0
    assert values["overshoot_largest"] == pytest.approx(values["reward_longest"] - 1.0)


@needs_namespaces
@pytest.mark.parametrize("crashing", [5], ids=["each problem's"])
def test_every_crashing_solution_crashes(crashing):
    assert counts(measured(completions=5, crashing=crashing)) == {"crashed": 5}


@needs_namespaces
def test_what_was_timed_fits_together():
    found = readings(completions=6, tests=1)
    values = found.values
    assert len(values["t_reward"]) == 6
    assert values["reward_work"] == pytest.approx(sum(values["t_reward"]))
    assert values["reward_longest"] == max(values["t_reward"])
    assert values["t_batch"] >= values["reward_longest"]
    assert values["graded_rate"] == pytest.approx(6 / values["t_batch"])
    assert len(values["creation"]) >= 6
    assert values["creation_rate"] >= 1 / max(values["creation"])
    assert values["overshoot_largest"] == 0
    assert found.instruments == dict.fromkeys(TIMES, "wall-clock")


@needs_namespaces
def test_a_warm_sandbox_that_nobody_used_is_no_survivor():
    values = measured(completions=4, warm=3, workers=1)
    assert counts(values) == {"passed": 4}
    assert len(values["creation"]) >= 4
    assert values["survivors"] == 0


@needs_namespaces
def test_the_evidence_says_what_isolates_and_what_grades():
    found = readings(completions=1)
    assert found.diagnostics["isolation"] == "namespaces"
    assert found.values["gaps"] == len(found.diagnostics["missing"])
    assert found.diagnostics["verifier"].startswith("sandbox 1, sha256:")
    assert found.diagnostics["bubblewrap"].startswith("bubblewrap ")


def test_the_weaker_mode_is_taken_by_name_alone_and_says_what_is_missing():
    found = readings(completions=4, wrong=1, isolation="processes")
    assert found.problems == found.missing == []
    assert counts(found.values) == {"passed": 3, "failed": 1}
    assert found.diagnostics["isolation"] == "processes"
    assert found.values["gaps"] == len(found.diagnostics["missing"]) > 0


@needs_namespaces
def test_rows_of_a_file_are_graded_and_the_file_is_named_by_its_digest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        {
            "program": f"print({number})",
            "tests": [{"type": "script", "expected": "1"}, {"type": "script", "expected": str(number)}],
        }
        for number in (1, 2, 3)
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = readings(file="rows.jsonl")
    assert counts(found.values) == {"passed": 1, "failed": 2}
    assert found.values["credit_mean"] == pytest.approx(2 / 3)
    assert found.diagnostics["file"].startswith("rows.jsonl, sha256:")
    assert counts(measured(file="rows.jsonl", completions=1)) == {"passed": 1}
    with pytest.raises(ValueError, match=r'completions = 4, and "rows\.jsonl" has 3: give at most'):
        measured(file="rows.jsonl", completions=4)


@needs_namespaces
def test_limits_that_are_given_are_those_that_hold(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    programs = ["while True: pass", "len(bytearray(200 * 2**20))", "print('x' * 5000)"]
    rows = [{"program": program, "tests": [{"type": "script", "expected": ""}]} for program in programs]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = readings(file="rows.jsonl", cpu=1.0, deadline=60.0, memory=100 * 2**20, output=4096)
    assert counts(found.values) == {"timed_out": 1, "out_of_memory": 1, "output_limited": 1}
    assert "of processor time, where 1 s" in found.diagnostics["endings"][0]
    assert found.diagnostics["peak_memory_seen"] > 2**20


@needs_namespaces
def test_programs_may_import_from_a_package_that_is_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / "answers.py").write_text("ANSWER = 42\n")
    row = {
        "program": "import answers\nprint(answers.ANSWER)",
        "tests": [{"type": "script", "expected": "42"}],
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    assert counts(measured(file="rows.jsonl", packages=["wheels"])) == {"passed": 1}
    assert counts(measured(file="rows.jsonl")) == {"crashed": 1}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"completions": -1}, "completions = -1: give a whole number of at least 0"),
        ({"workers": 0}, "workers = 0: give a whole number of at least 1"),
        ({"workers": 10**6}, "workers = 1000000: give a whole number of at most 200"),
        ({"attempts": 0}, "attempts = 0: give a whole number of at least 1"),
        ({"isolation": "auto"}, 'isolation = "auto": give "namespaces" or "processes"'),
        ({"deadline": 0}, "deadline = 0: give seconds above 0"),
        ({"cpu": float("nan")}, "cpu = nan: give seconds above 0"),
        ({"memory": 1}, "memory = 1: give a whole number of bytes from 33554432 on"),
        ({"wrong": 30, "hung": 3}, "hung = 3 . wrong = 30 are more than completions = 32: give fewer"),
        ({"file": "f", "wrong": 1}, 'wrong = 1 with file = "f", which has its own: give 0'),
        ({"file": "f", "tests": 1}, 'tests = 1 with file = "f"'),
        ({"file": "no-such-file"}, 'file = "no-such-file" can\'t be read: there is no such file'),
        ({"file": 3}, "file = 3: give a path, or nothing"),
        ({"packages": "folder"}, "packages = 'folder': give a list of folders"),
        ({"packages": 1}, "packages = 1: give a list of folders"),
        ({"cpu": True}, "cpu = True: give seconds"),
        ({"output": True}, "output = True: give a whole number"),
        ({"packages": ["no-such-folder"]}, 'packages has "no-such-folder", which is no folder'),
    ],
)
def test_what_cannot_be_run_is_refused_with_what_to_write(params, message):
    with pytest.raises(ValueError, match=message):
        measured(**params)


def test_all_that_is_wrong_with_the_parameters_is_told_at_once():
    with pytest.raises(ValueError, match="workers = 0") as caught:
        measured(workers=0, isolation="none", memory=1, processes=1, packages=["no-such-folder"])
    for name in ("workers", "isolation", "memory", "processes", "packages"):
        assert name in str(caught.value)


def graded(outcome: Outcome, evidence: str = "") -> Graded:
    test = TestOutcome(outcome=outcome, seconds=0.1, evidence=evidence)
    return Graded(
        outcome=outcome,
        tests=(test,),
        evidence=evidence,
        seconds=0.1,
        creation=0.1,
        waited=0.0,
        peak_memory=1,
        isolation="namespaces",
    )


def stand_in(script: dict[str, list[Outcome]]):
    """A sandbox in which each program ends as its script says, time after time: faults can't be ordered."""

    def grade(completions):
        return [graded(script[each.program].pop(0), f"{each.program} ended") for each in completions]

    return SimpleNamespace(grade=grade)


LOST = Outcome.INFRASTRUCTURE
BATCH = [Completion(program=name, tests=(ScriptTest(expected=""),)) for name in "abc"]


def test_what_was_lost_is_graded_again_and_nothing_else_is():
    script = {"a": [Outcome.FAIL], "b": [LOST, Outcome.PASS], "c": [LOST, LOST, Outcome.CRASH]}
    verdicts, faults = module._graded(stand_in(script), BATCH, 3)
    assert [each.outcome for each in verdicts] == [Outcome.FAIL, Outcome.PASS, Outcome.CRASH]
    assert len(faults) == 3
    assert not any(script.values())


def test_what_stays_lost_has_no_verdict_after_all_attempts():
    script = {"a": [Outcome.PASS], "b": [LOST, LOST], "c": [Outcome.PASS]}
    verdicts, faults = module._graded(stand_in(script), BATCH, 2)
    assert [each.outcome for each in verdicts] == [Outcome.PASS, LOST, Outcome.PASS]
    assert len(faults) == 2


@pytest.mark.parametrize("lost", [1, 3])
def test_a_repeat_with_a_program_without_a_verdict_is_invalid_and_it_counts_as_no_failure(lost):
    outcomes = [LOST] * lost + [Outcome.PASS] * (3 - lost)
    course = module._Course(
        seconds=1.0,
        verdicts=[graded(outcome, "gone") for outcome in outcomes],
        faults=[graded(LOST)] * lost,
        isolation="namespaces",
        missing=(),
        creations=[(0.0, 0.5)],
    )
    repeat = Repeat(metrics=sandbox_reward.metrics)
    module._record(repeat, course, 10.0)
    module._record_counts(repeat, course)
    found = repeat.readings()
    assert found.problems == [f"infrastructure: {lost} of 3 completions have no verdict: gone"]
    assert counts(found.values) == ({"passed": 3 - lost} if lost < 3 else {})
    assert found.values.get("credit_mean") == (1.0 if lost < 3 else None)
    assert found.values["infrastructure_faults"] == lost


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ([(0.0, 1.0)], 1.0),
        ([(0.0, 1.0), (0.5, 2.0)], 2.0),
        ([(5.0, 6.0), (0.0, 1.0)], 2.0),
        ([(0.0, 4.0), (1.0, 2.0), (3.0, 5.0)], 5.0),
    ],
)
def test_time_in_which_several_sandboxes_are_made_counts_once(spans, seconds):
    assert seconds_covered(spans) == seconds


LEAVES_ONE = """
import os, signal, time
from pytest_prereg.measure.executors import processes
from pytest_prereg.measure.workloads.sandbox_reward import _processes

processes.become_subreaper()
before = _processes()
reading, writing = os.pipe()
child = os.fork()
if not child:
    os.setsid()
    if left := os.fork():
        os.write(writing, str(left).encode())
        os._exit(0)
    time.sleep(60)
    os._exit(0)
os.waitpid(child, 0)
left = int(os.read(reading, 20))
print(_processes() - before == {left})
os.kill(left, signal.SIGKILL)
"""


def test_what_was_left_in_a_session_of_its_own_is_seen_as_a_survivor():
    """In a process of its own, which adopts orphans as what runs a repeat does."""
    done = subprocess.run([sys.executable, "-c", LEAVES_ONE], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")


STUDY = """
[study]
id = "sandboxes"

[experiments.grading]
fixture = "sandbox_reward"
repeats = 1
params  = { completions = 6, hung = 1, wrong = 1, deadline = 1.0, warm = 1 }

[predictions.nothing-is-left]
claim      = "When a batch is graded, none of its processes is left."
experiment = "grading"
quantity   = "survivors"
predicts   = "<= 0"
falsifier  = ">= 1"
"""


@needs_namespaces
def test_a_study_can_run_it_and_its_evidence_says_what_isolated_and_what_graded(tmp_path):
    (tmp_path / "predictions.toml").write_text(STUDY)
    command = [sys.executable, "-m", "pytest_prereg", "try", "grading"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed 4   failed 1" in " ".join(done.stdout.split("\n"))
    (file,) = tmp_path.glob("experiments/evidence/grading/*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    (finished,) = [line for line in lines if line["type"] == "finished"]
    values, told = finished["values"], finished["diagnostics"]
    assert (values["timed_out"], values["survivors"], values["gaps"]) == (1, 0, len(told["missing"]))
    assert told["isolation"] == "namespaces"
    assert told["verifier"].startswith("sandbox 1, sha256:")


def test_where_no_sandbox_can_be_made_a_repeat_fails_and_says_what_to_install(tmp_path):
    (tmp_path / "predictions.toml").write_text(STUDY)
    command = [sys.executable, "-m", "pytest_prereg", "try", "grading"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert "FAILED: exception" in done.stdout
    assert "SandboxUnavailableError: " in done.stderr
    assert "bubblewrap" in done.stderr
    assert 'isolation = "processes"' in done.stderr
