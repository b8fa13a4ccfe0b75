"""``{name}`` in the arguments of a command, and what takes its place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_prereg.registry.refusals import quoted, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

PORT = "port"
"""Names the free port that a repeat has."""

_PLACEHOLDER = re.compile(r"\{(\{\w+\})\}|\{([A-Za-z_]\w*)\}")
"""``{{name}}`` is the text ``{name}``; all other braces, as in JSON, are taken as they are."""


def placeholders(argument: str) -> list[str]:
    """Return the names in an argument, in the order in which they come."""
    return [name for _, name in _PLACEHOLDER.findall(argument) if name]


def misplaced(
    text: str, params: Mapping[str, Any], *, own: Iterable[str], splices: bool
) -> Iterator[tuple[str, str]]:
    """Yield code and message for each placeholder in ``text`` that nothing can take the place of.

    Args:
        text: An argument, a path or an address.
        params: The values of an arm's parameters.
        own: Names beside these that have a value.
        splices: Whether the value may be a list, where its name stands alone.
    """
    for name in placeholders(text):
        if name in own:
            continue
        shown, value = quoted("{" + name + "}"), params.get(name)
        if name not in params:
            yield "PR007", f"has unknown {shown}{suggestion(name, [*params, *own], 'it may name')}"
        elif isinstance(value, dict):
            yield "PR005", f"has {shown}, which is a table; a command takes text and numbers"
        elif isinstance(value, list) and (not splices or text != "{" + name + "}"):
            yield "PR005", f"has {shown}, a list, within {quoted(text)}; it must stand alone"


def filled(arguments: Iterable[str], values: Mapping[str, Any]) -> list[str]:
    """Return a command's arguments with ``values`` in place of their names; a name without a value stays.

    An argument that is the name of a list and nothing else becomes as many arguments as the list has items.
    """
    return [part for argument in arguments for part in _spliced(argument, values)]


def fill(text: str, values: Mapping[str, Any]) -> str:
    """Return ``text`` with values in place of their names; a name without a value stays."""

    def put(found: re.Match[str]) -> str:
        literal, name = found.groups()
        if literal:
            return str(literal)
        return as_argument(values[name]) if name in values else found[0]

    return _PLACEHOLDER.sub(put, text)


def as_argument(value: object) -> str:
    """Return a parameter as commands take it: ``true`` and ``false`` as in TOML, numbers in full."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _spliced(argument: str, values: Mapping[str, Any]) -> list[str]:
    match = _PLACEHOLDER.fullmatch(argument)
    value = values.get(match[2]) if match and match[2] else None
    return [as_argument(item) for item in value] if isinstance(value, list) else [fill(argument, values)]
