"""Contrasts: what is compared across arms, as it is written and as it is read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from pytest_prereg.registry.model import Contrast
from pytest_prereg.registry.refusals import RefusedError, quoted, suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_prereg.registry.model import Operator

FORMS: Mapping[Operator, str] = {
    "-": "a - b",
    "/": "a / b",
    "plateau": "plateau(a, b, c)",
    "increasing": "increasing(a, b, c)",
    "exponent": "exponent(param)",
}
"""How each is written."""

_PAIR = re.compile(r"(\S+)\s+([-/])\s+(\S+)")
_CALL = re.compile(r"([A-Za-z_-]+)\s*\(([^()]*)\)")
_CALLED = ("plateau", "increasing", "exponent")


def contrast_of(text: str | None) -> Contrast | None:
    """The contrast that ``text`` writes; ``None`` where there is none.

    Raises:
        RefusedError: PR005, for anything but two different arms with an operator between spaces, two or more
            different arms of ``plateau`` or ``increasing``, or one parameter of ``exponent``.
    """
    if text is None:
        return None
    if (pair := _PAIR.fullmatch(text.strip())) is not None:
        operator: Literal["-", "/"] = "-" if pair[2] == "-" else "/"
        return Contrast(operator=operator, arms=_different((pair[1], pair[3]), text))
    call = _CALL.fullmatch(text.strip())
    if call is None:
        raise RefusedError("PR005", f'"contrast" is {quoted(text)}; {_ADVICE}')
    arguments = tuple(argument.strip() for argument in call[2].split(","))
    match call[1]:
        case "exponent":
            return Contrast(operator="exponent", arms=(), parameter=_parameter(arguments, text))
        case "plateau" | "increasing" as name:
            return Contrast(operator=name, arms=_several(arguments, text))
    hint = suggestion(call[1], _CALLED, "known")
    raise RefusedError("PR005", f'"contrast" is {quoted(text)}, which calls {quoted(call[1])}{hint}')


_ADVICE = (
    'write "a - b" or "a / b", with the spaces, "plateau(a, b, c)", "increasing(a, b, c)" '
    'or "exponent(param)"'
)


def _different(arms: tuple[str, ...], text: str) -> tuple[str, ...]:
    if len(set(arms)) < len(arms):
        raise RefusedError("PR005", f'"contrast" is {quoted(text)}, an arm against itself')
    return arms


def _several(arms: tuple[str, ...], text: str) -> tuple[str, ...]:
    if len(arms) < 2 or not all(arms):  # noqa: PLR2004
        raise RefusedError("PR005", f'"contrast" is {quoted(text)}; it takes two arms or more')
    return _different(arms, text)


def _parameter(arguments: tuple[str, ...], text: str) -> str:
    if len(arguments) != 1 or not arguments[0].isidentifier():
        raise RefusedError(
            "PR005", f'"contrast" is {quoted(text)}; it takes the name of one parameter, and no arms'
        )
    return arguments[0]
