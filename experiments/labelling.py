"""Whether a grader says of a program what became of it: programs that end in known ways, and two graders."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from experiments.left_behind import TAKE_NAME, end, new_name
from pytest_prereg import experiment
from pytest_prereg.measure.workloads.sandbox.client import Sandbox
from pytest_prereg.measure.workloads.sandbox.completions import CallTest, Completion
from pytest_prereg.measure.workloads.sandbox.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg import Repeat

PASS, FAIL, CRASH, TIMEOUT = "pass", "fail", "crash", "timeout"
MEMORY, OUTPUT = "out-of-memory", "output-limit"
TEST = "\nassert solve(21) == 42\n"

DEFINED = {
    "right": (PASS, "return 2 * n"),
    "unhurried": (PASS, "time.sleep(0.2); return n + n"),
    "talkative": (PASS, "print('the answer is', n); return n << 1"),
    "wrong": (FAIL, "return 3 * n"),
    "says that it passed": (FAIL, "print(42); print('ALL TESTS PASSED'); return 0"),
    "equal to everything": (FAIL, "return type('Any', (), {'__eq__': lambda *_: True})()"),
    "leaves": (FAIL, "raise SystemExit"),
    "divides by zero": (CRASH, "return n / 0"),
    "no Python": (CRASH, "return 2 *"),
    "reads nowhere": (CRASH, "ctypes.string_at(0)"),
    "more processes than are allowed": (
        CRASH,
        "[os.fork() or time.sleep(60) for _ in range(40)]; return 2 * n",
    ),
    "looks its test up": (CRASH, "return int(sys.orig_argv[-1].rpartition('== ')[2])"),
    "spins": (TIMEOUT, "while True: pass"),
    "sleeps": (TIMEOUT, "time.sleep(60)"),
    "waits for itself": (TIMEOUT, "lock = threading.Lock(); lock.acquire(); lock.acquire()"),
    "ignores SIGTERM": (TIMEOUT, "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"),
    "sleeps in a session of its own": (TIMEOUT, "os.fork() or os.setsid(); time.sleep(60)"),
    "more memory than is allowed": (MEMORY, "kept = bytearray(256 * 2**20); return 2 * n"),
    "more output than is allowed": (OUTPUT, "[print('x' * 2**16) for _ in range(64)]; return 2 * n"),
}
"""What is the matter, what the sandbox's documentation says that becomes of it, and the body of ``solve``."""

OTHERWISE = {"leaves before": (FAIL, "sys.exit(0)"), "leaves at once": (FAIL, "os._exit(0)")}
"""The same, of programs that never come to define ``solve``."""

IMPORTS = "import ctypes, os, signal, sys, threading, time\n"
KNOWN = [(outcome, f"{IMPORTS}def solve(n):\n    {body}\n") for outcome, body in DEFINED.values()]
KNOWN += [(outcome, f"{IMPORTS}{program}\n") for outcome, program in OTHERWISE.values()]
"""Outcome and program."""


@experiment(
    metrics={
        "programs": {"unit": "1", "exact": True},
        "named": {"unit": "1", "exact": True},
        "undeserving": {"unit": "1", "exact": True},
        "passed_wrongly": {"unit": "1", "exact": True},
        "late": {"unit": "1", "exact": True},
        "late_misnamed": {"unit": "1", "exact": True},
    },
)
def labelling(repeat: Repeat, *, grader: str = "status", deadline: float = 1.0, workers: int = 2) -> None:
    """Grade ``programs`` whose outcomes are known, and count what the grader says of them.

    ``named`` were given their own outcome. Of the ``undeserving``, which are all but those that pass,
    ``passed_wrongly`` were passed; of the ``late``, which never end, ``late_misnamed`` were given another
    outcome than a timeout. The order of the programs is the same in all repeats.
    """
    grade = {"status": by_status, "sandbox": in_sandboxes}[grader]
    said = grade([program for _, program in KNOWN], deadline, workers)
    pairs = [(outcome, given) for (outcome, _), given in zip(KNOWN, said.outcomes, strict=True)]
    repeat.record("programs", len(pairs))
    repeat.record("named", sum(outcome == given for outcome, given in pairs))
    undeserving = [given for outcome, given in pairs if outcome != PASS]
    repeat.record("undeserving", len(undeserving))
    repeat.record("passed_wrongly", undeserving.count(PASS))
    late = [given for outcome, given in pairs if outcome == TIMEOUT]
    repeat.record("late", len(late))
    repeat.record("late_misnamed", len(late) - late.count(TIMEOUT))
    repeat.record("isolation", said.isolation)
    repeat.record("said", [f"{outcome}: {given}" for outcome, given in pairs])


class Said(NamedTuple):
    """What a grader says of programs, in order, and what isolated them."""

    outcomes: list[str]
    isolation: str = "none"


def in_sandboxes(programs: Sequence[str], deadline: float, workers: int) -> Said:
    """Return what the sandbox says of each program."""
    limits = Limits(deadline=deadline, memory=128 * 2**20)
    test = CallTest(function="solve", args=[21], expected=42)
    with Sandbox(limits=limits, workers=workers, isolation="auto") as sandbox:
        graded = sandbox.grade([Completion(program=each, tests=(test,)) for each in programs])
    return Said([each.outcome.value for each in graded], sandbox.isolation)


def by_status(programs: Sequence[str], deadline: float, workers: int) -> Said:
    """Return what the usual recipe says: the test behind the program, a timeout, and the exit status."""
    name = new_name()
    try:
        with ThreadPoolExecutor(workers) as pool:
            return Said(list(pool.map(partial(_status, deadline=deadline, name=name), programs)))
    finally:
        end(name)


def _status(program: str, *, deadline: float, name: bytes) -> str:
    # exec leaves a syntax error to the program, and the name to whatever it starts.
    begin = f"{TAKE_NAME.format(name=name)}; import sys; exec(sys.orig_argv[-1])"
    command = [sys.executable, "-I", "-S", "-c", begin, program + TEST]
    try:
        ended = subprocess.run(command, capture_output=True, timeout=deadline, check=False)
    except subprocess.TimeoutExpired:
        return TIMEOUT
    return FAIL if ended.returncode else PASS
