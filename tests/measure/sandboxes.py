"""Programs for sandboxes, what became of them, and what a sandbox left behind."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from pytest_prereg.measure.executors import processes
from pytest_prereg.measure.workloads.sandbox.client import Sandbox, SandboxUnavailableError
from pytest_prereg.measure.workloads.sandbox.completions import CallTest, Completion, ScriptTest, Test
from pytest_prereg.measure.workloads.sandbox.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_prereg.measure.workloads.sandbox.outcomes import Graded

MEBIBYTE = 2**20
SMALL = Limits(
    deadline=5.0,
    cpu=2.0,
    memory=128 * MEBIBYTE,
    processes=8,
    file_size=2 * MEBIBYTE,
    disk=4 * MEBIBYTE,
    files=50,
    output=10_000,
    answer=10_000,
)
"""Enough for any test here; whatever goes over is noticed soon, and takes little of the machine."""

ORDINARY = 12345
"""A user who is not root and of whom nobody is."""


def _why_none() -> str | None:
    try:
        with Sandbox(limits=SMALL):
            return None
    except SandboxUnavailableError as error:
        return str(error)


_none = _why_none()
needs_namespaces = pytest.mark.skipif(
    _none is not None and "CI" not in os.environ, reason=f"no sandboxes here: {_none}"
)
"""Skips where no namespaces can be made; but not in continuous integration, which has to be able to."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes other users")


def calling(program: str, *args: object, expected: object = True, function: str = "f") -> Completion:
    """A completion with one test, that calls a function of it."""
    test = CallTest(function=function, args=list(args), expected=expected)
    return Completion(program=dedent(program), tests=(test,))


def completion(program: str, *tests: Test) -> Completion:
    return Completion(program=dedent(program), tests=tests)


def script(program: str, *, stdin: str = "", expected: str = "") -> Completion:
    return Completion(program=dedent(program), tests=(ScriptTest(stdin=stdin, expected=expected),))


def graded(sandbox: Sandbox, program: str, *args: object, expected: object = True) -> Graded:
    """What became of a program whose ``f(*args)`` should answer ``expected``."""
    (result,) = sandbox.grade([calling(program, *args, expected=expected)])
    return result


def supervisor_of(sandbox: Sandbox) -> int:
    return sandbox._process.pid


def members_of(sandbox: Sandbox) -> list[int]:
    """Pids of the supervisor and of all processes of its sandboxes, as the machine numbers them."""
    return [supervisor_of(sandbox), *processes.descendants(supervisor_of(sandbox))]


def inits_of(sandbox: Sandbox) -> list[int]:
    """Pids of the first process in each sandbox."""
    return [pid for pid in members_of(sandbox) if is_init(pid)]


def is_init(pid: int) -> bool:
    numbers = status_of(pid).get("NSpid", "").split()
    return len(numbers) > 1 and numbers[-1] == "1"


def status_of(pid: int) -> dict[str, str]:
    """The fields of ``/proc/PID/status``; none if it is gone."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text("utf-8", errors="replace").splitlines()
        return dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return {}


def living(pids: list[int]) -> list[int]:
    """Those that live; zombies do not."""
    return [pid for pid in pids if (status := status_of(pid)) and status["State"][0] not in "ZX"]


def wait_until_gone(pids: list[int], seconds: float = 10.0) -> list[int]:
    """Those of some processes that live even after that time."""
    deadline = time.monotonic() + seconds
    while (left := living(pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return left


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.01)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
