"""Marks of every start of a call, kept by Modal: it begins again what it preempts, and tells nobody.

They are written in the container before anything else, and read here where a call came to no end of its own.
Modal forgets them after a week in which nobody asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.measure.executors.modal.messages import Mark

if TYPE_CHECKING:
    from collections.abc import Sequence


def name_for(study: str) -> str:
    """Return the name of a study's Dict; Modal takes no more than 64 characters."""
    return f"prereg-{study}"[:63]


def read(name: str, call: str) -> list[Mark]:
    """Return the starts of a call so far, in order."""
    written = _dict(name).get(call)
    return [] if written is None else msgspec.json.decode(written, type=list[Mark])


def begin(name: str, call: str, container: str) -> int:
    """Mark a start; return how many there were before."""
    before = read(name, call)
    _write(name, call, [*before, Mark(container=container)])
    return len(before)


def imported(name: str, call: str, container: str) -> None:
    """Mark that the container's start has come to its body."""
    marks = read(name, call)
    done = [mark for mark in marks if mark.container != container]
    _write(name, call, [*done, Mark(container=container, imported=True)])


def _write(name: str, call: str, marks: Sequence[Mark]) -> None:
    _dict(name).put(call, msgspec.json.encode(list(marks)))


def _dict(name: str):  # type: ignore[no-untyped-def]  # noqa: ANN202 - the client is loaded when it is used
    import modal  # noqa: PLC0415

    return modal.Dict.from_name(name, create_if_missing=True)
