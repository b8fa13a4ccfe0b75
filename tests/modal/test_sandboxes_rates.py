"""How fast sandboxes are asked for on Modal, how many are ready ahead, and what ``sandbox_reward`` measures there."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from modal_sandboxes import RIGHT, asking, nothing_is_left, opened
from standin_handle import TOKEN_ID, TOKEN_SECRET

from pytest_prereg import Repeat
from pytest_prereg.measure.workloads.sandbox.client import SandboxUnavailableError
from pytest_prereg.measure.workloads.sandbox.modal import boxes, pool
from pytest_prereg.measure.workloads.sandbox.outcomes import Outcome
from pytest_prereg.measure.workloads.sandbox_reward import sandbox_reward

if TYPE_CHECKING:
    from pathlib import Path

    from standin_handle import Service

COUNTS = ("passed", "failed", "timed_out", "crashed", "out_of_memory", "output_limited")
PROGRAMS = {
    "passed": "def f(x): return 2 * x",
    "failed": "def f(x): return x",
    "timed_out": "import time\ndef f(x): time.sleep(60)",
    "crashed": "def f(x): return x / 0",
}


@pytest.fixture(autouse=True)
def _interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "PYTHON", sys.executable)


@pytest.fixture
def batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """``batch(passed=3, ...)``: a file of so many programs that end so."""
    monkeypatch.chdir(tmp_path)

    def write(**counts: int) -> str:
        test = {"type": "call", "function": "f", "args": [21], "expected": 42}
        names = [name for name, count in counts.items() for _ in range(count)]
        rows = [{"program": PROGRAMS[name], "tests": [test]} for name in names]
        (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
        return "rows.jsonl"

    return write


def readings(**params):
    repeat = Repeat(metrics=sandbox_reward.metrics, seed=1)
    sandbox_reward(repeat, where="modal", **params)
    found = repeat.readings()
    assert found.problems == found.missing == []
    return found


def starts(service: Service) -> list[float]:
    return sorted(event["at"] for event in service.events("sandbox_started"))


def most_alive(service: Service) -> int:
    """How many sandboxes lived at once, at most."""
    steps = {"sandbox_started": 1, "sandbox_ended": -1}
    alive = most = 0
    for event in service.state()["events"]:
        alive += steps.get(event["event"], 0)
        most = max(most, alive)
    return most


def test_two_hundred_completions_take_as_many_sandboxes_no_faster_than_eight_a_second(
    service: Service, batch
):
    file = batch(passed=180, failed=12, crashed=8)
    found = readings(file=file, workers=12, creations_per_second=8, creations_at_once=120, deadline=30)
    values = found.values
    assert {name: values[name] for name in COUNTS if values[name]} == {
        "passed": 180,
        "failed": 12,
        "crashed": 8,
    }
    assert (values["infrastructure_faults"], values["creation_refusals"], values["survivors"]) == (0, 0, 0)
    at = starts(service)
    assert len(at) == len(values["creation"]) == 201
    for first in range(0, 201, 20):
        for last in range(first + 20, 201, 20):
            # 120 at once, and 8 a second; half a second for what a loaded machine does late.
            assert last - first <= 120 + 8 * (at[last] - at[first] + 0.5)
    # Those that wait for their turn count as being made, but for the first, which was there before the batch.
    assert values["creation_rate"] >= 200 / (values["t_batch"] + max(values["creation"]))
    assert values["graded_rate"] == pytest.approx(200 / values["t_batch"])
    assert max(Counter(event["sandbox"] for event in service.events("executed")).values()) == 1
    assert most_alive(service) <= 12
    assert nothing_is_left(service)


def test_a_batch_is_counted_and_told_as_on_this_machine(service: Service, batch):
    file = batch(passed=3, failed=2, timed_out=1, crashed=2)
    found = readings(
        file=file, workers=4, warm=2, deadline=1.5, creations_per_second=50, creations_at_once=50
    )
    values, told = found.values, found.diagnostics
    assert {name: values[name] for name in COUNTS if values[name]} == {
        "passed": 3,
        "failed": 2,
        "timed_out": 1,
        "crashed": 2,
    }
    assert values["credit_mean"] == 3 / 8
    assert 0 <= values["overshoot_largest"] < 1
    assert values["gaps"] == len(told["missing"]) > 0
    assert (told["isolation"], told["bubblewrap"]) == ("modal", "not used")
    assert told["modal"]["creations_per_second"] == 50
    assert told["modal"]["python"] == ".".join(map(str, sys.version_info[:2]))
    assert sum(": timeout: test 1: no end after 1.5" in each for each in told["endings"]) == 1
    assert not {TOKEN_ID, TOKEN_SECRET} & set(json.dumps([values, told]).split('"'))
    assert nothing_is_left(service)


def test_creations_that_are_refused_are_asked_for_again_later_and_counted(
    service: Service, batch, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pool, "BACKOFF", (0.3, 0.6, 1.2, 2.4))
    service.limit("SandboxCreateV2", per_second=5, burst=2)
    found = readings(file=batch(passed=8), workers=4, creations_per_second=20, creations_at_once=8)
    assert found.values["passed"] == 8
    assert found.values["creation_refusals"] > 0
    assert found.values["infrastructure_faults"] == 0
    refused = service.state()["requests"]["SandboxCreateV2"] - len(service.events("sandbox_started"))
    assert found.values["creation_refusals"] == refused


def test_creations_that_are_refused_for_good_are_told(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pool, "BACKOFF", (0.1, 0.1))
    service.limit("SandboxCreateV2", per_second=0.001, burst=0)
    with pytest.raises(SandboxUnavailableError, match=r"Modal makes no more: .*rate limit"), opened():
        pass
    assert service.state()["requests"]["SandboxCreateV2"] == 3


def test_as_many_are_ready_ahead_as_is_stated(service: Service):
    with opened(workers=1, warm=3) as sandbox:
        service.wait_for(lambda: len(service.state()["sandboxes"]) == 3)
        time.sleep(0.5)
        assert sandbox.alive() == len(service.state()["sandboxes"]) == 3
        found = sandbox.grade([asking(RIGHT)] * 3)
        assert [each.outcome for each in found] == [Outcome.PASS] * 3
        assert found[0].waited < found[0].creation
        service.wait_for(lambda: len(service.state()["sandboxes"]) == 3)
    assert most_alive(service) <= 4
    assert nothing_is_left(service)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"where": "there"}, 'where = "there": give "here" or "modal"'),
        ({"where": "modal", "isolation": "processes"}, 'isolation = "processes" with where = "modal": leave'),
        ({"where": "modal", "packages": ["."]}, 'packages with where = "modal"'),
        ({"creations_per_second": 9.0}, 'creations_per_second = 9.0 with where = "here"'),
        ({"where": "modal", "creations_per_second": 0}, "creations_per_second = 0: give a number above 0"),
        (
            {"where": "modal", "creations_at_once": 0},
            "creations_at_once = 0: give a whole number of at least 1",
        ),
    ],
)
def test_what_can_not_be_is_refused(params: dict, message: str):
    with pytest.raises(ValueError, match=message):
        sandbox_reward(Repeat(metrics=sandbox_reward.metrics, seed=1), **params)
