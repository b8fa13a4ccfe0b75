"""What a repeat that failed said of itself, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.evidence.model import Finished
from pytest_prereg.measure.executors.text import headline, visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.evidence.model import RecordedRepeat

_RAISED = frozenset({"exception", "oom"})
_UNTOLD = frozenset({"oom"})
"""Causes that whoever reads what was raised may not see."""
_FRAME = '  File "'
_ENDED = ("exited with status ", "killed by ")
"""How it is told that a command ended, before what it had printed."""


def account(repeat: RecordedRepeat, files: Iterable[SessionFile]) -> str | None:
    """Return why a repeat failed or is invalid, as the session ``files`` have it: a line, not a traceback."""
    line = settling(repeat, files)
    return said(line) if line is not None else None


def settling(repeat: RecordedRepeat, files: Iterable[SessionFile]) -> Finished | None:
    """Return the line that tells how a repeat ended, of the session that settled it."""
    for file in files:
        if any(_settled(repeat, attempt.repeat, attempt.outcome) for attempt in file.attempts):
            return next(
                line
                for line in file.lines
                if isinstance(line, Finished) and _settled(repeat, line.repeat, line.outcome)
            )
    return None


def said(finished: Finished) -> str | None:
    """Return what :func:`reason` does, cut to a line, after the cause where that would not be seen.

    ``oom: RuntimeError: [enforce fail at alloc_cpu.cpp:127] …``
    """
    text = reason(finished)
    if text is None:
        return None
    return headline(f"{finished.cause}: {text}" if finished.cause in _UNTOLD and finished.error else text)


def reason(finished: Finished) -> str | None:
    """Return what :func:`words` does; of a command the last line that it printed as well, which says why.

    ``exited with status 1: gzip: data.txt: No such file or directory``
    """
    text, lines = words(finished), (finished.error or "").strip().splitlines()
    if text is None or finished.cause in _RAISED or len(lines) == 1 or not text.startswith(_ENDED):
        return text
    return f"{text}: {visible(lines[-1].strip())}"


def words(finished: Finished) -> str | None:
    """Return the exception that ended an attempt, else the first line of what is known of its end; uncut."""
    text = finished.error or finished.cause
    if not text:
        return None
    lines = text.strip().splitlines()
    if finished.cause in _RAISED and any(line.startswith(_FRAME) for line in lines):
        last = max(place for place, line in enumerate(lines) if line.startswith("  "))
        return visible(lines[last + 1] if last + 1 < len(lines) else lines[-1])
    return visible(lines[0])


def _settled(repeat: RecordedRepeat, name: str, outcome: str) -> bool:
    return (name, outcome) == (repeat.id, repeat.outcome)
