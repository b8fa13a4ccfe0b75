"""What a sandbox is sent of a completion, and what its tests come to, the same wherever it stands."""

from __future__ import annotations

import marshal
import time
from typing import TYPE_CHECKING

from pytest_prereg.measure.workloads.sandbox import grading
from pytest_prereg.measure.workloads.sandbox.completions import CallTest
from pytest_prereg.measure.workloads.sandbox.messages import End, Input
from pytest_prereg.measure.workloads.sandbox.outcomes import Graded, Outcome, TestOutcome

if TYPE_CHECKING:
    from pytest_prereg.measure.workloads.sandbox.completions import Completion, Test
    from pytest_prereg.measure.workloads.sandbox.messages import Done, TestEnd

WORKLOAD_VERSION = "1"

MARSHAL = 2
"""The format without references between parts."""

_OUTCOMES = {
    End.NO_ANSWER: Outcome.FAIL,
    End.REFUSED: Outcome.FAIL,
    End.EXCEPTION: Outcome.CRASH,
    End.STATUS: Outcome.CRASH,
    End.SIGNAL: Outcome.CRASH,
    End.DEADLINE: Outcome.TIMEOUT,
    End.CPU: Outcome.TIMEOUT,
    End.MEMORY: Outcome.MEMORY,
    End.OUTPUT: Outcome.OUTPUT,
    End.LOST: Outcome.INFRASTRUCTURE,
}


def sent(completion: Completion) -> tuple[bytes, tuple[Input, ...]]:
    """Return the program and the inputs of its tests as the driver takes them; never what is expected."""
    return marshal.dumps(completion.program, MARSHAL), tuple(map(_input, completion.tests))


def _input(test: Test) -> Input:
    if isinstance(test, CallTest):
        call = ("call", test.function, list(test.args), test.kwargs)
        return Input(is_call=True, sent=marshal.dumps(call, MARSHAL))
    return Input(is_call=False, sent=marshal.dumps(("script", test.stdin), MARSHAL))


def graded(completion: Completion, done: Done, submitted: float, isolation: str) -> Graded:
    """Return what a completion came to, its answers compared with those expected."""
    tests = tuple(map(_outcome, completion.tests, done.tests))
    return Graded(
        outcome=next((test.outcome for test in tests if test.outcome is not Outcome.PASS), Outcome.PASS),
        tests=tests,
        evidence=grading.printable(done.evidence),
        seconds=done.seconds,
        creation=done.creation,
        waited=done.taken - submitted,
        peak_memory=done.peak_memory,
        isolation=isolation,
    )


def _outcome(test: Test, end: TestEnd) -> TestOutcome:
    if end.end is End.ANSWER:
        outcome, evidence = grading.compare(test, end.text)
    else:
        outcome, evidence = _OUTCOMES[end.end], grading.printable(end.text)
    return TestOutcome(outcome=outcome, seconds=end.seconds, evidence=evidence)


def no_verdict(completion: Completion, submitted: float, why: str, isolation: str) -> Graded:
    """Return that nothing is known of a completion submitted at that moment of the monotonic clock."""
    test = TestOutcome(outcome=Outcome.INFRASTRUCTURE, seconds=0.0, evidence=why)
    return Graded(
        outcome=Outcome.INFRASTRUCTURE,
        tests=(test,) * len(completion.tests),
        evidence=why,
        seconds=0.0,
        creation=0.0,
        waited=time.monotonic() - submitted,
        peak_memory=0,
        isolation=isolation,
    )
