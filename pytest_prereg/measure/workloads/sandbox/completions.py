"""What is graded: a program, and hidden tests of which it only ever sees the inputs, one at a time."""

from __future__ import annotations

from typing import Any

import msgspec

WORKLOAD_VERSION = "1"


class CallTest(msgspec.Struct, frozen=True, kw_only=True, tag="call"):
    """The program is run, then its function is called in the same process; a fresh one for each test."""

    function: str
    args: list[Any] = []
    """Plain JSON."""
    kwargs: dict[str, Any] = {}
    expected: Any
    """Plain JSON, never sent to the sandbox; tuples count as lists."""
    tolerance: float = 0.0
    """By how much numbers may differ from the expected ones, relative or absolute, whichever allows more."""


class ScriptTest(msgspec.Struct, frozen=True, kw_only=True, tag="script"):
    """The program is run as a script that reads ``stdin``; its standard output is the answer."""

    stdin: str = ""
    expected: str
    """Standard output; white space at the ends of lines and of the whole does not count."""


Test = CallTest | ScriptTest


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """What a model wrote, and what it is held against."""

    program: str
    """Source in Python; if it does not compile, that is a crash of the program's own."""
    tests: tuple[Test, ...]
    """At least one."""
