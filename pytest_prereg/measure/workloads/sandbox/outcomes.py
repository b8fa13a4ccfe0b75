"""How completions ended, each with the evidence for it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

WORKLOAD_VERSION = "1"


class Outcome(StrEnum):
    """How a test, or a completion as a whole, ended; only what happened outside the program decides it."""

    PASS = "pass"  # noqa: S105  # no secret
    """The answer was the expected one."""
    FAIL = "fail"
    """There was an answer, and it was another one; or the program ended by itself without giving one."""
    TIMEOUT = "timeout"
    """The deadline passed, or the processor time was used up."""
    CRASH = "crash"
    """An exception, a signal, a program that doesn't compile."""
    MEMORY = "out-of-memory"
    OUTPUT = "output-limit"
    """It wrote more, to its output, its answer or its disk, than it may."""
    INFRASTRUCTURE = "infrastructure"
    """Not the program's doing: no sandbox was made, or something outside ended it. There is no verdict."""


class TestOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One hidden test."""

    __test__ = False

    outcome: Outcome
    seconds: float
    """From the moment the input was sent to the answer, or to the end of the sandbox."""
    evidence: str
    """What was seen, printable: ``status 1``, ``SIGSEGV``, ``answered 4, expected 5``."""


class Graded(msgspec.Struct, frozen=True, kw_only=True):
    """A completion's outcome."""

    outcome: Outcome
    """``pass`` if all tests passed, else that of the first that did not."""
    tests: tuple[TestOutcome, ...]
    """One per test, in order; those that were never reached have the outcome of what ended the sandbox."""
    evidence: str
    """What was seen of the sandbox as a whole, printable."""
    seconds: float
    """From the moment the ready sandbox was handed the program until nothing of it was left."""
    creation: float
    """Seconds from the start of the sandbox until it was ready; of a warm one, that was before."""
    waited: float
    """Seconds from submission until a sandbox took the program."""
    peak_memory: int
    """Largest sum, in bytes, of resident anonymous memory that was seen of its processes."""
    isolation: str
    """Name of the isolation that held: ``namespaces`` or ``processes``."""

    @property
    def credit(self) -> float:
        """Share of the tests that passed, 0 to 1.

        Raises:
            ValueError: The outcome is ``infrastructure``: there is no verdict, and no credit either.
        """
        if self.outcome is Outcome.INFRASTRUCTURE:
            raise ValueError(f"no verdict: {self.evidence}")
        return sum(test.outcome is Outcome.PASS for test in self.tests) / len(self.tests)
