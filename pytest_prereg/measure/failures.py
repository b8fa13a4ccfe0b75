"""What a repeat that failed said of itself, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.evidence.model import Finished
from pytest_prereg.measure.executors.text import headline

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.evidence.model import RecordedRepeat

_RAISED = frozenset({"exception", "oom"})
_FRAME = '  File "'


def account(repeat: RecordedRepeat, files: Iterable[SessionFile]) -> str | None:
    """Return why a repeat failed or is invalid, as the session ``files`` have it: a line, not a traceback."""
    for file in files:
        if any(_settled(repeat, attempt.repeat, attempt.outcome) for attempt in file.attempts):
            return next(
                said(line)
                for line in file.lines
                if isinstance(line, Finished) and _settled(repeat, line.repeat, line.outcome)
            )
    return None


def said(finished: Finished) -> str | None:
    """Return the exception that ended an attempt, else the first line of what is known of its end."""
    text = finished.error or finished.cause
    if not text:
        return None
    lines = text.splitlines()
    if finished.cause in _RAISED and any(line.startswith(_FRAME) for line in lines):
        last = max(place for place, line in enumerate(lines) if line.startswith("  "))
        return headline(lines[last + 1] if last + 1 < len(lines) else lines[-1])
    return headline(text)


def _settled(repeat: RecordedRepeat, name: str, outcome: str) -> bool:
    return (name, outcome) == (repeat.id, repeat.outcome)
