"""Marks of every start of a call, kept by Modal: it begins again what it preempts, and tells nobody.

An attempt has a mark before it is sent off. The first container that writes its call there runs the body; any
other finds that call there. A session opens its marks before it uses one: while that is kept, a mark that is
not there was never written.

Whoever begins a call marks for which repeat. A start is marked in its container before anything else. What a
body has come to is marked, too, before it is answered: who is begun again after that answers the same, and an
answer that got lost is found here. Modal forgets marks after a week in which nobody asks.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.measure.executors.modal.messages import Mark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.measure.executors.modal.messages import Errand

KEPT_BYTES = 1 << 20
"""Of an answer; a larger one is kept nowhere but with its call."""
KEPT_SECONDS = 6 * 24 * 3600.0
"""For so long after a session's start no mark of it can be forgotten."""
LONGEST_NAME = 63


def name_for(study: str) -> str:
    """Return the name of a study's Dict, as long as Modal lets it be."""
    return f"prereg-{study}"[:LONGEST_NAME]


def read(name: str, call: str) -> list[Mark]:
    """Return the starts of a call so far, in order."""
    return _read(_dict(name), call)


def claim(name: str, call: str, whose: str) -> None:
    """Mark for which repeat a call was begun."""
    _dict(name).put(_claimed(call), whose)


def is_of(name: str, call: str, whose: str) -> bool:
    """Return whether a call was begun for that repeat, as who began it or one of its starts has marked."""
    kept = _dict(name)
    return kept.get(_claimed(call)) == whose or any(mark.whose == whose for mark in _read(kept, call))


def opened(name: str) -> str:
    """Open marks of a session's own; return what each of them begins with."""
    session = os.urandom(8).hex()
    _dict(name).put(_opened(session), time.time())
    return session


def is_open(name: str, session: str) -> bool:
    """Return whether all marks of a session are kept that were ever written."""
    written = _dict(name).get(_opened(session))  # asking keeps that entry, and none of its marks
    return isinstance(written, float) and time.time() - written < KEPT_SECONDS


def begun(name: str, mark: str) -> tuple[str, str] | None:
    """Return which call has begun the attempt with that mark, and of which repeat; ``None`` if none has."""
    written = _dict(name).get(mark)
    return None if written is None else _split(written)


def answer_in(marks: Sequence[Mark]) -> bytes | None:
    """Return what one of the starts has answered, ``None`` where none has, or it was too large."""
    answers = (mark.answer for mark in marks)
    return next((answer.encode() for answer in answers if answer is not None), None)


class Start:
    """One start of a call, seen from its container: of the errand's attempt, unless another call has that."""

    def __init__(self, errand: Errand, call: str, container: str) -> None:
        self._dict = _dict(errand.marks)
        self._call = call
        self._own = Mark(container=container, whose=errand.whose)
        self.instead = self._first(errand) if errand.mark else ""
        """The call that has begun the same attempt, "" where that is this one."""
        self.before = [] if self.instead else _read(self._dict, call)
        """Marks of the starts before it."""
        if not self.instead:
            self._write()

    def _first(self, errand: Errand) -> str:
        own = f"{self._call}@{errand.app}"
        if self._dict.put(errand.mark, f"{own} {errand.whose}", skip_if_exists=True):
            return ""
        first, _ = _split(self._dict.get(errand.mark))
        return "" if first == own else first

    def imported(self) -> None:
        """Mark that it comes to its body now."""
        self._own = msgspec.structs.replace(self._own, imported=True)
        self._write()

    def answered(self, answer: bytes) -> None:
        """Mark what its body has come to."""
        if len(answer) <= KEPT_BYTES:
            self._own = msgspec.structs.replace(self._own, answer=answer.decode())
            self._write()

    def _write(self) -> None:
        self._dict.put(self._call, msgspec.json.encode([*self.before, self._own]))


def _opened(session: str) -> str:
    return f"{session} is open"


def _split(written: object) -> tuple[str, str]:
    call, _, whose = str(written).partition(" ")
    return call, whose


def _claimed(call: str) -> str:
    return f"{call} is of"


def _read(kept: Any, call: str) -> list[Mark]:
    written = kept.get(call)
    return [] if written is None else msgspec.json.decode(written, type=list[Mark])


def _dict(name: str) -> Any:
    import modal  # noqa: PLC0415

    return modal.Dict.from_name(name, create_if_missing=True)
