"""How an attempt ended, told from what its supervisor saw. Pure."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.executors.exhaustion import ABORTED

if TYPE_CHECKING:
    from pytest_prereg.measure.executors.messages import Report


STARVED = "it failed, and meanwhile the kernel, out of memory, killed a process"
"""Its own most likely: bodies and what they start are preferred as victims."""


class End(Enum):
    """What the supervisor saw first."""

    REPORTED = auto()
    DIED = auto()
    GARBLED = auto()
    """What came from the body is no report: only the body, or what it started, can have sent it."""
    LATE = auto()
    STUCK = auto()
    """The body never began."""
    FOREIGN = auto()
    """Something else computes on its GPU; there was no body."""
    UNSERVED = auto()
    """Its service did not start; there was no body."""
    STOPPED = auto()
    """The supervisor was told to stop; there is no result."""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """All that a supervisor knows about a body that has ended."""

    end: End
    began: bool
    report: Report | None = None
    garbled: str = ""
    """Why what the body sent is no report."""
    status: int | None = None
    """Exit status, negative for a signal; ``None`` if it was the supervisor that killed it."""
    out_of_memory: bool = False
    """The kernel killed something for want of memory meanwhile."""
    output: str = ""
    """The end of what the body printed."""
    recorded: bool = False
    """Whether a declared metric had a value; told only of a body that has a service."""
    unserved: str | None = None
    """What became of its service, if that no longer runs."""


class Verdict(NamedTuple):
    """An outcome, its cause in a word or a sentence, and the tail of the evidence for it."""

    outcome: Outcome
    cause: str | None = None
    error: str | None = None


def classify(ending: Ending) -> Verdict:
    """Return the outcome: a report decides whatever happened to the process afterwards."""
    if ending.end is End.FOREIGN:
        return Verdict(Outcome.INFRASTRUCTURE, "foreign process", "another process computes on the GPU")
    if ending.unserved is not None and (verdict := _unserved(ending, ending.unserved)):
        return verdict
    if ending.end is End.LATE:
        return Verdict(Outcome.TIMEOUT, "deadline", ending.output or None)
    if ending.report is not None:
        return _reported(ending.report, starved=ending.out_of_memory)
    return _unreported(ending)


def _unserved(ending: Ending, what: str) -> Verdict | None:
    """Return the outcome of a body whose service died, ``None`` if that changes nothing.

    It is excused if it has finished nothing: it did not return, and no declared metric had a value. Else
    whoever sees a bad value could stop the service and have another go.
    """
    if _has_returned(ending) or (ending.recorded and ending.end is End.LATE):
        return None
    if ending.recorded:
        return _task_failed("service", what, _last_words(ending))
    return Verdict(Outcome.INFRASTRUCTURE, "service", what)


def _has_returned(ending: Ending) -> bool:
    return ending.report is not None and ending.report.ended == "returned"


def _last_words(ending: Ending) -> str:
    return (ending.report.error if ending.report is not None else None) or ending.output


def _reported(report: Report, *, starved: bool) -> Verdict:
    if report.ended != "returned":
        if starved and report.ended != "oom":
            return _task_failed("oom", STARVED, report.error or "")
        if report.ended == "killed":
            return Verdict(Outcome.INFRASTRUCTURE, "killed", "killed from outside (SIGKILL)")
        return Verdict(Outcome.TASK_FAILED, report.ended, report.error)
    readings = report.readings
    problems = readings.problems + readings.discarded + readings.missing
    if problems:
        return Verdict(Outcome.INVALID, "; ".join(problems))
    return Verdict(Outcome.OK)


def _unreported(ending: Ending) -> Verdict:
    if ending.end is End.GARBLED:
        what = f"what it reported can't be read: {ending.garbled}"
        return _task_failed("report", what, ending.output)
    if not ending.began:
        return Verdict(Outcome.INFRASTRUCTURE, "start", ending.output or "the body never began")
    return _died(ending)


def _died(ending: Ending) -> Verdict:
    status = ending.status or 0
    if ending.out_of_memory:
        what = STARVED if status >= 0 else "killed by the kernel, which was out of memory"
        return _task_failed("oom", what, ending.output)
    if status >= 0:
        return _task_failed("exit", f"exited with status {status} and without a result", ending.output)
    if -status == signal.SIGKILL:
        return Verdict(Outcome.INFRASTRUCTURE, "killed", "killed from outside (SIGKILL)")
    cause = "oom" if -status == signal.SIGABRT and ABORTED.search(ending.output) else "signal"
    return _task_failed(cause, f"killed by {signal_name(-status)}", ending.output)


def signal_name(number: int) -> str:
    """Return a signal's name; of those for real time most have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _task_failed(cause: str, what: str, output: str) -> Verdict:
    return Verdict(Outcome.TASK_FAILED, cause, f"{what}\n{output}".strip())
