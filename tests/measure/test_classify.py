"""Which outcome an attempt gets, from what its supervisor saw."""

from __future__ import annotations

import signal

import pytest

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.executors import memory
from pytest_prereg.measure.executors.classify import End, Ending, classify
from pytest_prereg.measure.executors.messages import Report
from pytest_prereg.measure.repeat import Readings


def report(ended="returned", **readings):
    return Report(ended=ended, at=0.0, readings=Readings(**readings))


@pytest.mark.parametrize(
    ("ending", "outcome", "cause"),
    [
        (Ending(end=End.REPORTED, began=True, report=report()), Outcome.OK, None),
        (Ending(end=End.REPORTED, began=True, report=report("exception")), Outcome.TASK_FAILED, "exception"),
        (Ending(end=End.REPORTED, began=True, report=report("oom")), Outcome.TASK_FAILED, "oom"),
        (Ending(end=End.REPORTED, began=True, report=report("exit")), Outcome.TASK_FAILED, "exit"),
        (Ending(end=End.REPORTED, began=True, report=report(problems=["a"])), Outcome.INVALID, "a"),
        (
            Ending(end=End.REPORTED, began=True, report=report(problems=["a"], missing=["b"])),
            Outcome.INVALID,
            "a; b",
        ),
        (Ending(end=End.REPORTED, began=True, report=report(discarded=["a"])), Outcome.INVALID, "a"),
        (
            Ending(end=End.REPORTED, began=True, report=report("exception", discarded=["a"])),
            Outcome.TASK_FAILED,
            "exception",
        ),
        (Ending(end=End.DIED, began=True, status=0), Outcome.TASK_FAILED, "exit"),
        (Ending(end=End.DIED, began=True, status=-signal.SIGSEGV), Outcome.TASK_FAILED, "signal"),
        (Ending(end=End.DIED, began=True, status=-signal.SIGKILL), Outcome.INFRASTRUCTURE, "killed"),
        (Ending(end=End.DIED, began=False, status=70), Outcome.INFRASTRUCTURE, "start"),
        (Ending(end=End.STUCK, began=False), Outcome.INFRASTRUCTURE, "start"),
        (Ending(end=End.LATE, began=True), Outcome.TIMEOUT, "deadline"),
    ],
)
def test_each_ending_has_its_outcome(ending, outcome, cause):
    verdict = classify(ending)
    assert (verdict.outcome, verdict.cause) == (outcome, cause)


def test_a_kill_while_the_kernel_was_out_of_memory_is_the_body_s_own():
    ending = Ending(end=End.DIED, began=True, status=-signal.SIGKILL, out_of_memory=True)
    assert classify(ending)[:2] == (Outcome.TASK_FAILED, "oom")


def test_a_value_that_came_in_time_survives_a_kill():
    ending = Ending(end=End.REPORTED, began=True, report=report(values={"t": 1.0}), status=-signal.SIGKILL)
    assert classify(ending).outcome is Outcome.OK


def test_a_value_that_came_too_late_is_a_timeout():
    ending = Ending(end=End.LATE, began=True, report=report(values={"t": 1.0}), status=0)
    assert classify(ending).outcome is Outcome.TIMEOUT


def test_a_failure_outranks_an_invalidation():
    ending = Ending(end=End.REPORTED, began=True, report=report("exception", problems=["never mind"]))
    assert classify(ending).outcome is Outcome.TASK_FAILED


@pytest.mark.parametrize(
    ("cgroup", "file", "text"),
    [
        ("0::/box\n", "box/memory.events", "low 0\noom 4\noom_kill 3\noom_group_kill 0\n"),
        ("0::/host/path\n", "memory.events", "oom_kill 3\n"),
        (
            "4:memory:/box\n0::/\n",
            "memory/box/memory.oom_control",
            "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
        ),
        (
            "4:cpu,memory:/box\n",
            "memory/box/memory.oom_control",
            "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
        ),
        ("", "vmstat", "nr_free_pages 7\noom_kill 3\n"),
    ],
)
def test_kills_are_counted_wherever_the_kernel_counts_them(tmp_path, monkeypatch, cgroup, file, text):
    (tmp_path / "cgroup").write_text(cgroup)
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    monkeypatch.setattr(memory, "GROUPS", tmp_path)
    monkeypatch.setattr(memory, "MEMBERSHIP", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "MACHINE", tmp_path / "vmstat")
    assert memory.oom_kills() == 3


def test_a_system_that_counts_nothing_has_killed_nothing(tmp_path, monkeypatch):
    for name in ("GROUPS", "MEMBERSHIP", "MACHINE"):
        monkeypatch.setattr(memory, name, tmp_path / "none")
    assert memory.oom_kills() == 0
