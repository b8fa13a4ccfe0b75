"""How usual recipes, and the sandbox, hold a deadline against a program whose grandchild got away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from experiments.left_behind import TAKE_NAME, alive, end, new_name
from pytest_prereg import experiment
from pytest_prereg.measure.workloads.sandbox.client import Sandbox
from pytest_prereg.measure.workloads.sandbox.completions import Completion, ScriptTest
from pytest_prereg.measure.workloads.sandbox.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from pytest_prereg import Repeat

ENDS = "assert sorted([3, 1, 2]) == [1, 2, 3]"

NEVER_ENDS = (
    TAKE_NAME
    + """
import os, time
if os.fork() == 0:
    os.setsid()  # out of reach of a signal to the program's process group
    time.sleep({hold})  # with the program's standard output open
    os._exit(0)
while True:
    pass
"""
)


@experiment(
    metrics={
        "t_batch": "s",
        "overshoot": {"unit": "s", "instrument": "program-clock"},
        "survivors": {"unit": "1", "exact": True},
    },
)
def hung_rewards(
    repeat: Repeat,
    *,
    recipe: str = "run",
    hung: int = 4,
    ending: int = 12,
    deadline: float = 1.0,
    hold: float = 3.0,
) -> None:
    """Run ``hung`` programs that never end beside ``ending`` others, all at once, each by the same recipe.

    A program that never ends spins; its child leaves the process group and holds the program's output open
    for ``hold`` seconds. ``t_batch`` runs until the recipe has answered for all, and ``survivors`` are the
    processes of the programs that never end and that live right then. ``overshoot`` is how much longer than
    the deadline the recipe took for one of these programs, at most. What is left is killed afterwards.
    """
    name = new_name()
    programs = [NEVER_ENDS.format(name=name, hold=hold)] * hung + [ENDS] * ending
    try:
        with grader(recipe, deadline=deadline, at_once=len(programs)) as grade:
            with repeat.timer("t_batch"):
                seconds = grade.run(programs)
            repeat.record("survivors", len(alive(name)))
            repeat.record("isolation", grade.isolation)
    finally:
        end(name)
    repeat.instrument("program-clock").record("overshoot", max(seconds[:hung]) - deadline)
    if min(seconds[:hung]) < deadline:
        repeat.invalidate("a program that never ends did not reach its deadline")


class Grader(NamedTuple):
    """What runs programs at once."""

    run: Callable[[Sequence[str]], list[float]]
    """Returns after how many seconds it had the answer for each, in order."""
    isolation: str = "none"


@contextmanager
def grader(recipe: str, *, deadline: float, at_once: int) -> Generator[Grader]:
    """Make ready what runs ``at_once`` programs by a recipe, each for at most ``deadline`` seconds."""
    if recipe == "sandbox":
        with Sandbox(limits=Limits(deadline=deadline), workers=at_once, isolation="auto") as sandbox:
            yield Grader(lambda programs: _graded(sandbox, programs), sandbox.isolation)
        return

    def timed(program: str) -> float:
        began = time.monotonic()
        RECIPES[recipe](_command(program), deadline)
        return time.monotonic() - began

    with ThreadPoolExecutor(at_once) as pool:
        yield Grader(lambda programs: list(pool.map(timed, programs)))


def _graded(sandbox: Sandbox, programs: Sequence[str]) -> list[float]:
    tests = (ScriptTest(expected=""),)
    return [
        each.seconds for each in sandbox.grade([Completion(program=each, tests=tests) for each in programs])
    ]


def _command(program: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", program]


def run(command: list[str], deadline: float) -> None:
    """Take ``subprocess.run`` with a timeout, and its output."""
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(command, capture_output=True, timeout=deadline, check=False)


def kill_and_read(command: list[str], deadline: float) -> None:
    """Do as the documentation of ``Popen.communicate`` does: kill, then read what is left."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        process.communicate(timeout=deadline)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def kill_group_and_read(command: list[str], deadline: float) -> None:
    """Do the same in a session of its own, and kill its process group."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        process.communicate(timeout=deadline)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def kill_group(command: list[str], deadline: float) -> None:
    """Do the same with a file for the output, which nobody has to wait for."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
        try:
            process.wait(timeout=deadline)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


RECIPES = {
    "run": run,
    "kill-and-read": kill_and_read,
    "kill-group-and-read": kill_group_and_read,
    "kill-group": kill_group,
}
"""By the name that an arm gives."""
