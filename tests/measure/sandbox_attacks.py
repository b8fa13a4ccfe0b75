"""Attacks on graders as data: what they try, how it has to end, and how one sees that they succeed elsewhere."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from naive_grader import MARKER, RESULT
from naive_host import FOR_ALL, HOME, Seen

from pytest_prereg.measure.workloads.sandbox.completions import CallTest, Completion, ScriptTest, Test
from pytest_prereg.measure.workloads.sandbox.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_prereg.measure.workloads.sandbox.outcomes import Outcome

LIMITS = Limits(
    deadline=2.0,
    cpu=5.0,
    memory=64 * 2**20,
    processes=12,
    open_files=48,
    file_size=2 * 2**20,
    disk=4 * 2**20,
    files=128,
    output=64 * 2**10,
    answer=64 * 2**10,
)
"""What attacks are held to here; in a pretend host they may use more of each."""

SECRET = "prereg-secret-" + os.urandom(8).hex()
ANSWER = "prereg-answer-" + os.urandom(8).hex()
"""What a hidden test expects, where programs search for that."""

PRELUDE = '''
SECRET, ANSWER = "prereg-secret-[0-9a-f]{16}", "prereg-answer-[0-9a-f]{16}"

def loot(text):
    try:
        with open(LOOT, "a") as file:
            file.write(text + "\\n")
    except OSError:
        pass

def reached(amount):
    loot("reached %d" % amount)

def refused(error):
    """For what some machines allow nobody."""
    loot("refused: %s" % error)

def called(number, *args):
    """A system call, by its number for x86-64."""
    import ctypes, os
    if os.uname().machine != "x86_64":
        raise OSError(38, "another machine than x86-64")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    value = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(each) if isinstance(each, int) else each for each in args])
    if value == -1:
        raise OSError(ctypes.get_errno(), "system call %d" % number)
    return value
'''


class Success(Enum):
    """How an attack on a naive grader is seen to succeed."""

    PASSES = "the grader says that it passed"
    HANGS = "the grader goes on well after its timeout"
    MISLEADS = "the grader says of a right answer that there was none in time"
    BREAKS = "the grader ends without a verdict"
    DISTURBS = "another's process is ended"
    SURVIVES = "a process of its is left"
    CHANGES = "a file of the host is another one"
    READS = "it has told a secret to others"
    EXCEEDS = "it has used more than it would be allowed here"
    SHOWS = "the log has what a terminal would obey"


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One of them."""

    name: str
    program: str
    tests: tuple[Test, ...]
    """Hidden."""
    ends: Outcome
    """As a whole, and how each of its tests does."""
    or_ends: Outcome | None = None
    """Where it depends on which allocation happens to be the one that fails."""
    evidence: str = ""
    """Pattern that is found in the evidence of the first test that didn't pass."""
    succeeds: Success
    judge: str = "status"
    """How the naive grader decides."""
    naive_tests: str | None = None
    """Its tests, if they are not assertions about what ``tests`` call."""
    exceeds: str = ""
    """What of ``LIMITS``."""
    timeout: float = 1.5
    """Of the naive grader, seconds."""
    quick: bool = True
    """Whether it has to be over before the deadline."""

    @property
    def outcomes(self) -> set[Outcome]:
        return {self.ends} if self.or_ends is None else {self.ends, self.or_ends}

    def completion(self, host: dict[str, Any]) -> Completion:
        return Completion(program=self.source(host), tests=self.tests)

    def source(self, host: dict[str, Any]) -> str:
        """Returns the program as an attack on ``host``: where what it tries to reach is."""
        return "".join(f"{name} = {value!r}\n" for name, value in host.items()) + PRELUDE + self.program

    def job(self, host: dict[str, Any]) -> dict[str, Any]:
        """Returns what the naive grader is told."""
        script = next((test for test in self.tests if isinstance(test, ScriptTest)), None)
        return {
            "program": self.source(host),
            "tests": self.assertions() if self.naive_tests is None else self.naive_tests,
            "stdin": script.stdin if script else "",
            "expected": script.expected
            if script
            else [t.expected for t in self.tests if isinstance(t, CallTest)],
            "judge": "output" if script else self.judge,
            "timeout": self.timeout,
            "home": HOME,
        }

    def assertions(self) -> str:
        calls = [test for test in self.tests if isinstance(test, CallTest)]
        if not calls:
            return ""
        if self.judge == "json":
            return f"import json\nprint(json.dumps([{', '.join(map(written, calls))}]))"
        lines = [f"assert {written(test)} == {test.expected!r}" for test in calls]
        lines += [f"print({MARKER!r})", f"open({RESULT!r}, 'w').write({MARKER!r})"]
        return "\n".join(lines)

    def has_succeeded(self, seen: Seen) -> bool:
        if self.succeeds is not Success.EXCEEDS:
            return bool(SEEN[self.succeeds](seen))
        reached = re.findall(r"^reached (\d+)$", seen.loot, re.MULTILINE)
        return max(map(int, reached), default=0) > getattr(LIMITS, self.exceeds)


def written(test: CallTest) -> str:
    return f"{test.function}({', '.join(map(repr, test.args))})"


def call(argument: Any, expected: Any, **keys: Any) -> CallTest:
    return CallTest(function="solve", args=[argument], expected=expected, **keys)


SEEN: dict[Success, Callable[[Seen], object]] = {
    Success.PASSES: lambda seen: seen.report.get("passed"),
    Success.HANGS: lambda seen: seen.hangs,
    Success.MISLEADS: lambda seen: seen.report.get("log") == "timeout",
    Success.BREAKS: lambda seen: not seen.hangs and "passed" not in seen.report,
    Success.DISTURBS: lambda seen: seen.bystander is not None,
    Success.SURVIVES: lambda seen: seen.survivors,
    Success.CHANGES: lambda seen: seen.files[FOR_ALL] != "kept\n" or set(seen.names) != {*seen.files},
    Success.READS: lambda seen: SECRET in seen.loot,
    Success.SHOWS: lambda seen: not str(seen.report.get("log", "")).replace("\n", "").isprintable(),
}

SQUARES = (call(2, 4), call(3, 9))
SQUARE = "\ndef solve(x):\n    return x * x\n"
WRONG = "\ndef solve(x):\n    return x * x + 1\n"
UNHARMED: tuple[Test, ...] = (call(0, []),)
"""For programs that return what of all they tried they could do."""
WITHIN: tuple[Test, ...] = (call(0, expected=True),)
"""For programs that return whether they were held to a limit."""
HIDDEN: tuple[Test, ...] = (call(2, ANSWER),)
