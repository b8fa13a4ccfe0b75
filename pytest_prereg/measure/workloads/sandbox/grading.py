"""What grades an answer, outside the sandbox: data against data, and nothing of the program's is run.

An answer arrives as bytes, so no class of the program's own, with comparisons of its own, can take part.
"""

from __future__ import annotations

import hashlib
import json
import math
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from pytest_prereg.measure.workloads.sandbox.answers import AnswerError, extent, read_answer
from pytest_prereg.measure.workloads.sandbox.completions import CallTest
from pytest_prereg.measure.workloads.sandbox.outcomes import Outcome
from pytest_prereg.registry.trees import tree_digest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.measure.workloads.sandbox.completions import ScriptTest, Test

WORKLOAD_VERSION = "1"

_SHORT = 80
"""Characters that are shown of a value."""
_SPACE = b" \t\r\v\f"
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\"}
_UNDECODABLE = range(0xDC80, 0xDD00)
"""What Python stands in for a byte that is no UTF-8."""


def compare(test: Test, answer: bytes) -> tuple[Outcome, str]:
    """Return whether an answer is the expected one, and printable evidence of the first difference.

    A truth value is equal to itself alone, numbers are compared by value, exactly unless there is a
    tolerance, lists in order, objects by their keys. What isn't finite equals nothing.

    Args:
        test: What is expected, as :func:`.completion_problems` has found nothing against it.
        answer: Of a function JSON, of a script its standard output; whatever is in it.
    """
    difference = _of_call(test, answer) if isinstance(test, CallTest) else _of_script(test, answer)
    if difference is None:
        return Outcome.PASS, f"answered {printable(answer, _SHORT)}"
    return Outcome.FAIL, difference


def printable(text: bytes | str, most: int = 200) -> str:
    r"""Return a text as a terminal or a page may show it, at most ``most`` characters of it, on one line.

    Control characters, what reorders or hides a text, what is no character at all and backslashes are
    written as escapes, bytes that are no UTF-8 as ``\xff``; what is cut ends with ``...``.
    """
    if isinstance(text, bytes):
        text = text[: 4 * most + 4].decode("utf-8", "surrogateescape")
    shown = [_escaped(each) for each in text[: most + 1]]
    if sum(map(len, shown)) <= most:
        return "".join(shown)
    return "".join(_within(shown, most - 3)) + "..."


@cache
def verifier_digest() -> str:
    """Return version and digest of the sandbox: of every module of it, without comments and docstrings.

    Grading, limits, isolation and supervision all decide how a completion ends, so all of them count.
    """
    modules = sorted(Path(__file__).parent.glob("*.py"))
    lines = "\n".join(f"{module.name} {tree_digest(module.read_bytes())}" for module in modules)
    return f"sandbox {WORKLOAD_VERSION}, sha256:{hashlib.sha256(lines.encode()).hexdigest()}"


def _of_call(test: CallTest, answer: bytes) -> str | None:
    try:
        value = read_answer(answer, extent(test.expected))
    except AnswerError as error:
        return f"answered {printable(answer, _SHORT)}: {error}"
    return _difference(value, test.expected, test.tolerance)


def _difference(answer: Any, expected: Any, tolerance: float, place: str = "") -> str | None:
    """Return what the first difference is, and where; ``None`` if there is none."""
    if isinstance(expected, list | tuple) and isinstance(answer, list) and len(answer) == len(expected):
        keys: Any = range(len(expected))
    elif isinstance(expected, dict) and isinstance(answer, dict) and answer.keys() == expected.keys():
        keys = expected
    else:
        return None if _same(answer, expected, tolerance) else _told(answer, expected, place)
    differences = (
        _difference(answer[key], expected[key], tolerance, f"{place}[{json.dumps(key)}]") for key in keys
    )
    return next((each for each in differences if each is not None), None)


def _same(answer: Any, expected: Any, tolerance: float) -> bool:
    if _is_number(answer) and _is_number(expected):
        return _near(answer, expected, tolerance)
    if isinstance(answer, str) and isinstance(expected, str):
        return answer == expected
    return answer is expected and (expected is None or isinstance(expected, bool))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _near(answer: float, expected: float, tolerance: float) -> bool:
    if isinstance(answer, float) and not math.isfinite(answer):
        return False
    if answer == expected or not tolerance:
        return answer == expected
    wanted = Fraction(expected)  # whole numbers may be larger than any float
    allowed: Fraction = Fraction(tolerance) * max(Fraction(1), abs(wanted))
    return abs(Fraction(answer) - wanted) <= allowed


def _told(answer: Any, expected: Any, place: str) -> str:
    where = f"at {printable(place, _SHORT)}: " if place else ""
    return f"{where}answered {_shown(answer)}, expected {_shown(expected)}"


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except ValueError:  # a number of more digits than Python writes
        text = "a number of thousands of digits, or something with one"
    return printable(text, _SHORT)


def _of_script(test: ScriptTest, answer: bytes) -> str | None:
    wrote, expected = _lines(answer), _lines(test.expected.encode("utf-8", "surrogatepass"))
    if wrote == expected:
        return None
    longest = max(len(wrote), len(expected))
    number = next(at for at in range(longest) if wrote[at : at + 1] != expected[at : at + 1])
    return f"line {number + 1}: wrote {_line(wrote, number)}, expected {_line(expected, number)}"


def _lines(text: bytes) -> list[bytes]:
    """Return lines without the white space at their ends, and without empty lines at the end."""
    lines = [line.rstrip(_SPACE) for line in text.split(b"\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _line(lines: list[bytes], number: int) -> str:
    return f'"{printable(lines[number], _SHORT)}"' if number < len(lines) else "nothing"


def _within(pieces: list[str], most: int) -> Iterator[str]:
    for piece in pieces:
        most -= len(piece)
        if most < 0:
            return
        yield piece


def _escaped(character: str) -> str:
    code = ord(character)
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    if code in _UNDECODABLE:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:  # noqa: PLR2004
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"  # noqa: PLR2004
