"""How a test ended, read from what was seen from outside of it."""

from __future__ import annotations

import os
import re
import signal
from typing import TYPE_CHECKING

from pytest_prereg.measure.workloads.sandbox.messages import End

if TYPE_CHECKING:
    from pytest_prereg.measure.workloads.sandbox.limits import Limits

WORKLOAD_VERSION = "1"

_STATUS = re.compile(rb"(\d{1,5}) (\d{1,9})")
_TAIL = 500
_TOLD = {b"E": End.EXCEPTION, b"M": End.MEMORY, b"N": End.REFUSED, b"L": End.OUTPUT, b"D": End.OUTPUT}


def status_of(line: bytes) -> tuple[int, float] | None:
    """Return the status, as from ``waitpid``, and seconds of processor time of a test; ``None`` if garbled."""
    match = _STATUS.fullmatch(line)
    return (int(match[1]), int(match[2]) / 1000) if match else None


def ended(
    status: int, cpu: float, output: bytes, errors: bytes, answer: bytes, *, is_call: bool, limits: Limits
) -> tuple[End, bytes]:
    """Return how a test ended, and the answer or the evidence.

    Args:
        status: As from ``waitpid``.
        cpu: Seconds of processor time that its process used.
        output: Standard output.
        errors: Standard error.
        answer: What came through the pipe for answers; a letter says what.
        is_call: Whether the answer is what a function returned; else it is the output.
        limits: What it was held to.
    """
    if os.WIFSIGNALED(status):
        return _killed(os.WTERMSIG(status), cpu, limits)
    kind, text = answer[:1], answer[1:]
    if kind in _TOLD:
        return _TOLD[kind], text or b"MemoryError"
    if code := os.WEXITSTATUS(status):
        return End.STATUS, b"status %d; %b" % (code, errors[-_TAIL:]) if errors else b"status %d" % code
    if is_call and kind != b"A":
        return End.NO_ANSWER, b"ended with status 0 and no answer"
    return End.ANSWER, text if is_call else output


def _killed(number: int, cpu: float, limits: Limits) -> tuple[End, bytes]:
    if number == signal.SIGXCPU or (number == signal.SIGKILL and cpu >= limits.cpu_seconds):
        return End.CPU, f"{cpu:.1f} s of processor time, where {limits.cpu:g} s are the most".encode()
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return End.SIGNAL, name.encode()


def of_sandbox(status: int, errors: str, *, contained: bool) -> tuple[End, str]:
    """Return what ended a sandbox that nobody here ended."""
    code = os.waitstatus_to_exitcode(status)
    if contained:
        return End.LOST, f"the sandbox was ended from outside (status {code}) {errors}".strip()
    return End.SIGNAL, f"the sandbox was ended (status {code}) {errors}".strip()
