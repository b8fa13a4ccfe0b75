"""Graded sandboxes a second, how far hung ones overshoot their deadline, and what thousands leave behind.

Side by side with what most code rewards do: one ``subprocess.run(timeout=)`` for program and tests, which is
no sandbox. Both have two cores, and as many programs at a time; medians of some rounds, in turns.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from table import Row

from pytest_prereg.measure.workloads.sandbox.client import Sandbox
from pytest_prereg.measure.workloads.sandbox.completions import CallTest, Completion
from pytest_prereg.measure.workloads.sandbox.limits import Limits
from pytest_prereg.measure.workloads.sandbox.outcomes import Outcome

CORES = 2
PARALLEL = 4
ROUNDS, BATCH = 5, 300
DEADLINES = (0.5, 2.0)
HUNG = (2, 8, 16, 64)
"""At a time; each is two processes that spin."""
PROMISED = 16
"""More are told, not promised: all are killed on time, but each dies on its turn, behind what still spins."""
MANY = 10_000

PROGRAM = """\
def total(numbers):
    return sum(numbers)
"""
TESTS = tuple(CallTest(function="total", args=[[number, 2, 3]], expected=number + 5) for number in range(2))
CHECKS = "".join(f"assert total({test.args[0]}) == {test.expected}\n" for test in TESTS)
HANGS = """\
import os, signal
for number in range(1, 32):
    if number not in (9, 19):
        signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
while True:
    pass
"""


def rows() -> list[Row]:
    """All of it."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    late = [overshoot(deadline, hung) for deadline in DEADLINES for hung in HUNG]
    return [*graded(), *late, *left_behind()]


def graded() -> list[Row]:
    """Seconds that one right program with two tests takes, of many."""
    ours, others = [], []
    with Sandbox(workers=PARALLEL, warm=PARALLEL) as sandbox:
        sandbox.grade([Completion(program=PROGRAM, tests=TESTS)] * PARALLEL)
        for _ in range(ROUNDS):
            ours.append(in_sandboxes(sandbox))
            others.append(in_plain_processes())
    return [
        Row(
            what="a graded sandbox",
            ours=statistics.median(ours),
            other=statistics.median(others),
            against="subprocess.run",
            limit=1 / 60,
        )
    ]


def in_sandboxes(sandbox: Sandbox) -> float:
    """Seconds for each."""
    began = time.perf_counter()
    found = sandbox.grade([Completion(program=PROGRAM, tests=TESTS)] * BATCH)
    seconds = time.perf_counter() - began
    assert {each.outcome for each in found} == {Outcome.PASS}
    return seconds / BATCH


def in_plain_processes() -> float:
    """Seconds for each."""
    began = time.perf_counter()
    with ThreadPoolExecutor(PARALLEL) as pool:
        passed = list(pool.map(naively, [PROGRAM + CHECKS] * BATCH))
    assert all(passed)
    return (time.perf_counter() - began) / BATCH


def naively(program: str) -> bool:
    """Grade as most do: program and tests in one process, which passes by ending with status 0."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], check=False, timeout=10, capture_output=True
    )
    return done.returncode == 0


def overshoot(deadline: float, hung: int) -> Row:
    """How much longer than its deadline the last of many hung programs took until nothing of it was left."""
    completion = Completion(program=HANGS, tests=TESTS[:1])
    with Sandbox(workers=hung, warm=0, limits=Limits(deadline=deadline)) as sandbox:
        found = sandbox.grade([completion] * hung)
    assert {each.outcome for each in found} == {Outcome.TIMEOUT}
    return Row(
        what=f"overshoot of {deadline:g} s, {hung} hung at a time",
        ours=max(each.seconds for each in found) - deadline,
        limit=min(0.2, 0.2 * deadline) if hung <= PROMISED else None,
    )


def left_behind() -> list[Row]:
    """What is there after ten thousand, hung and crashed ones among them, that was not before."""
    right, hung = (Completion(program=program, tests=TESTS) for program in (PROGRAM, HANGS))
    crashed = Completion(program="import os; os.mkdir('left'); os.fork(); os.abort()", tests=TESTS)
    batch = [hung if place % 50 == 0 else crashed if place % 10 == 0 else right for place in range(MANY)]
    before, taken = traces(), memory_in_use()
    with Sandbox(workers=PARALLEL, warm=PARALLEL, limits=Limits(deadline=0.2)) as sandbox:
        found = sandbox.grade(batch)
    after, grown = traces(), memory_in_use() - taken
    assert not [each for each in found if each.outcome is Outcome.INFRASTRUCTURE]
    print({str(outcome): sum(each.outcome is outcome for each in found) for outcome in Outcome})
    return [
        Row(what=f"{what} left by {MANY:,}", ours=len(after[what] - before[what]), unit="", limit=0)
        for what in after
    ] + [Row(what=f"memory left by {MANY:,}", ours=max(0, grown) / 2**20, unit="MB", limit=100)]


def traces() -> dict[str, set[str]]:
    """Processes, mounts and temporary files of this machine; nothing else should be going on."""
    time.sleep(1)  # the kernel frees namespaces a little later
    return {
        "processes": {path.name for path in Path("/proc").glob("[0-9]*") if is_program(path)},
        "mounts": set(Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()),
        "temporary files": {path.name for path in Path(tempfile.gettempdir()).iterdir()},
    }


def is_program(folder: Path) -> bool:
    """Whether a process is alive and none of the kernel's own."""
    try:
        return bool((folder / "cmdline").read_bytes())
    except OSError:
        return False


def memory_in_use() -> int:
    """Bytes of the whole machine, the kernel's included, that could not be had for something else."""
    lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    sizes = {name: int(rest.split()[0]) * 1024 for name, rest in (line.split(":") for line in lines)}
    return sizes["MemTotal"] - sizes["MemAvailable"]
