"""Completions in a file of JSON lines, each with a program and its hidden tests."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import msgspec

from pytest_prereg.measure.workloads.sandbox.answers import without_repetition
from pytest_prereg.measure.workloads.sandbox.checking import completion_problems
from pytest_prereg.measure.workloads.sandbox.completions import CallTest, Completion, ScriptTest
from pytest_prereg.measure.workloads.sandbox.grading import printable
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

WORKLOAD_VERSION = "1"

_LARGEST = 2**30
"""Bytes; a file is read as a whole."""
_ROW = 'give "program" (text) and "tests" (a list) alone'
_TEST = (
    'give type "call" with function, args (a list), kwargs (an object), expected, tolerance, or type '
    '"script" with stdin, expected (both text)'
)
_TOLD = 20
"""Problems that are told one by one; of more the number."""


class _CallTest(CallTest, frozen=True, kw_only=True, tag="call", forbid_unknown_fields=True):
    """A test that a file may hold; a misspelt key is no default."""


class _ScriptTest(ScriptTest, frozen=True, kw_only=True, tag="script", forbid_unknown_fields=True):
    """A test that a file may hold; a misspelt key is no default."""


class _Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    program: str
    tests: tuple[_CallTest | _ScriptTest, ...]


class CompletionFile(NamedTuple):
    """What was read, and of which bytes."""

    completions: Sequence[Completion]
    digest: str
    """SHA-256 of the file, in hex."""


def read_completions(path: str) -> CompletionFile:
    """Return the completions of a file of JSON lines; lines without anything but white space are left out.

    Args:
        path: As seen from the working folder, which is the study's.

    Raises:
        ValueError: It can't be read, or some of its lines; each is told with its number and what it holds.
    """
    text = _read(path)
    lines = [(number, line) for number, line in enumerate(text.split(b"\n"), 1) if line.strip()]
    found = [_of_line(line) for _, line in lines]
    wrong = [
        f"{printable(path)}:{number}: {problem}; it holds {printable(line, 80)}"
        for (number, line), (_, problems) in zip(lines, found, strict=True)
        for problem in problems
    ]
    if wrong:
        head = f"file = {quoted(path)} has rows that can't be graded; of each what is wrong:"
        more = [f"and {len(wrong) - _TOLD} more"] if len(wrong) > _TOLD else []
        raise ValueError("\n".join([head, *wrong[:_TOLD], *more]))
    if not lines:
        raise ValueError(
            f'file = {quoted(path)} has no line: write a {{"program": ..., "tests": [...]}} per line'
        )
    completions = [completion for completion, _ in found if completion is not None]
    return CompletionFile(completions, hashlib.sha256(text).hexdigest())


def _read(path: str) -> bytes:
    try:
        if not Path(path).is_file():
            raise FileNotFoundError(0, "it is no file" if Path(path).exists() else "there is no such file")
        size = Path(path).stat().st_size
        text = Path(path).read_bytes() if size <= _LARGEST else b""
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ValueError(
            f"file = {quoted(path)} can't be read: {why}; give the path of a file of JSON lines, as seen "
            "from the study's folder"
        ) from None
    if size > _LARGEST:
        raise ValueError(f"file = {quoted(path)} has {size} bytes: give one of at most {_LARGEST}")
    return text


def _of_line(line: bytes) -> tuple[Completion | None, Sequence[str]]:
    """Return the completion of a line, or all that keeps it from being one."""
    try:
        row = msgspec.convert(_decoded(line), _Row)
    except msgspec.ValidationError as error:
        return None, [f"{error}; {_advice(str(error))}"]
    except UnicodeDecodeError as error:
        return None, [f"its byte {error.start} is no UTF-8"]
    except RecursionError:
        return None, ["it is nested too deeply"]
    except json.JSONDecodeError as error:
        return None, [f"it is no JSON: {error.msg} at character {error.pos + 1}"]
    except ValueError as error:
        return None, [f"it can't be taken: {error}"]
    completion = Completion(program=row.program, tests=row.tests)
    return completion, completion_problems(completion)


def _advice(problem: str) -> str:
    """Return what to write where a row has another form; msgspec counts tests from 0, and outcomes from 1."""
    test = re.search(r"`\$\.tests\[(\d+)\]", problem)
    return _ROW if test is None else f"in test {int(test[1]) + 1}, {_TEST}"


def _decoded(line: bytes) -> Any:
    return json.loads(
        line.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=without_repetition
    )


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
