"""How a test ended, read from what was seen from outside of it."""

from __future__ import annotations

import os
import re
import signal
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.measure.workloads.sandbox.messages import End

if TYPE_CHECKING:
    from pytest_prereg.measure.workloads.sandbox.limits import Limits
    from pytest_prereg.measure.workloads.sandbox.messages import TestEnd

WORKLOAD_VERSION = "1"

TAKEN_OVER = "the driver beside the program was made to say something else"

NEAR = 0.8
"""Share of a limit on memory at which a program is held to have run out of it."""

_STATUS = re.compile(rb"(\d{1,5}) (\d{1,9})")
_TAIL = 500
_COUNTED = 0.5
"""Share of the limit from which on it was the limit: the kernel counts ticks first, and time afterwards."""
_TOLD = {b"E": End.EXCEPTION, b"M": End.MEMORY, b"N": End.REFUSED, b"L": End.OUTPUT, b"D": End.OUTPUT}
_KILLED = b"SIGKILL"


class Seen(NamedTuple):
    """What is seen of a test that ended."""

    status: int
    """As from ``waitpid``."""
    cpu: float
    """Seconds of processor time."""
    output: bytes
    errors: bytes
    answer: bytes
    """What came through the pipe for answers; its first letter says what it is."""


def status_of(line: bytes) -> tuple[int, float] | None:
    """Return the status, as from ``waitpid``, and the seconds of processor time; ``None`` if garbled."""
    match = _STATUS.fullmatch(line)
    if match is None or not (os.WIFEXITED(status := int(match[1])) or os.WIFSIGNALED(status)):
        return None
    return status, int(match[2]) / 1000


def ended(seen: Seen, *, is_call: bool, limits: Limits) -> tuple[End, bytes]:
    """Return how a test ended, and the answer or the evidence.

    Args:
        seen: What was seen of it.
        is_call: Whether the answer is what a function returned; else it is the output.
        limits: What it was held to.
    """
    if os.WIFSIGNALED(seen.status):
        return _killed(os.WTERMSIG(seen.status), seen.cpu, limits)
    kind, text = seen.answer[:1], seen.answer[1:]
    if kind in _TOLD:
        return _TOLD[kind], text or b"MemoryError"
    if code := os.waitstatus_to_exitcode(seen.status):
        return End.STATUS, (b"status %d %b" % (code, seen.errors[-_TAIL:])).strip()
    if is_call and kind != b"A":
        return End.NO_ANSWER, b"ended with status 0 and no answer"
    return End.ANSWER, text if is_call else seen.output


def _killed(number: int, cpu: float, limits: Limits) -> tuple[End, bytes]:
    if number in {signal.SIGXCPU, signal.SIGKILL} and cpu >= _COUNTED * limits.cpu_seconds:
        return End.CPU, f"{cpu:.1f} s of processor time, where {limits.cpu_seconds} s are the most".encode()
    try:
        return End.SIGNAL, signal.Signals(number).name.encode()
    except ValueError:
        return End.SIGNAL, b"signal %d" % number


def was_killed(test: TestEnd) -> bool:
    """Whether it ended by the one signal that the kernel sends for want of memory."""
    return test.end in {End.SIGNAL, End.LOST} and _KILLED in test.text


def of_sandbox(status: int, errors: str, *, contained: bool) -> tuple[End, str]:
    """Return what ended a sandbox that nobody here ended.

    Nothing inside can kill the init of a namespace; where there is none, a program can kill the driver.
    """
    code = os.waitstatus_to_exitcode(status)
    how = _KILLED.decode() if code in {-signal.SIGKILL, 128 + signal.SIGKILL} else f"status {code}"
    if contained and how != f"status {code}":
        return End.LOST, f"the sandbox was ended from outside ({how})"
    return End.SIGNAL, f"the driver beside the program was ended ({how}) {errors[-_TAIL:]}".strip()
