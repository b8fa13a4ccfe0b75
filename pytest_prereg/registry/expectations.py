"""What a key takes, in words, from its type annotation."""

from __future__ import annotations

import functools
import types
import typing
from typing import Any, NamedTuple

import msgspec

from pytest_prereg.registry.refusals import listed
from pytest_prereg.registry.tables import Table

if typing.TYPE_CHECKING:
    from collections.abc import Iterator


class Key(NamedTuple):
    """One key that a table may have."""

    type: Any
    required: bool


_WORDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "a table",
}


@functools.cache
def keys_of(table: type[Table]) -> dict[str, Key]:
    """The keys that ``table`` may have, as they are written."""
    hints = typing.get_type_hints(table, include_extras=True)
    return {
        field.encode_name: Key(hints[field.name], field.required) for field in msgspec.structs.fields(table)
    }


def plain(kind: Any) -> Iterator[Any]:
    """The types that a union offers, without ``None`` and annotations."""
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        yield from plain(typing.get_args(kind)[0])
    elif origin in (typing.Union, types.UnionType):
        for member in typing.get_args(kind):
            yield from plain(member)
    elif kind is not type(None):
        yield kind


def table_of(kind: Any) -> bool:
    """Whether ``kind`` is a closed table."""
    return isinstance(kind, type) and issubclass(kind, Table)


def pattern_of(kind: Any) -> str | None:
    """The pattern that text of this kind must match, if there is one."""
    return next((meta.pattern for meta in _metas(kind) if meta.pattern), None)


def wanted(kind: Any) -> str:
    """``"a whole number of at least 1 or a table"``: what a value of this kind looks like."""
    words = list(dict.fromkeys(_words(member) for member in _members(kind)))
    if "a number" in words and "a whole number" in words:
        words.remove("a whole number")
    return " or ".join(words)


def _members(kind: Any) -> Iterator[Any]:
    """The types that a union offers, without ``None``, annotations kept."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        for member in typing.get_args(kind):
            yield from _members(member)
    elif kind is not type(None):
        yield kind


def _words(kind: Any) -> str:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        limits = " and ".join(limit for meta in _metas(kind) for limit in _limits(meta))
        return f"{_words(arguments[0])} {limits}"
    if origin is typing.Literal:
        return listed((str(choice) for choice in arguments), "or")
    if origin is list:
        return f"a list of {_WORDS.get(next(plain(arguments[0])), 'values').removeprefix('a ')}"
    if origin is tuple:
        return "two numbers, [low, high]"
    return "a table" if origin is dict or table_of(kind) else _WORDS.get(kind, "a value")


def _metas(kind: Any) -> Iterator[msgspec.Meta]:
    for part in typing.get_args(kind):
        if isinstance(part, msgspec.Meta):
            yield part
        elif typing.get_origin(part) is typing.Annotated:
            yield from _metas(part)


def _limits(meta: msgspec.Meta) -> Iterator[str]:
    if meta.pattern:
        yield 'of lower-case letters, digits, "-" and "_", not starting with "-" or "_"'
    if meta.ge is not None:
        yield f"of at least {meta.ge}"
    if meta.gt is not None:
        yield f"above {meta.gt}"
    if meta.lt is not None:
        yield f"below {meta.lt}"
