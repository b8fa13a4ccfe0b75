"""Bounded pieces of what a body printed or raised."""

from __future__ import annotations

import os
import re
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TAIL_BYTES = 4096
HEADLINE = 200
"""Characters."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def tail(text: str) -> str:
    """Return the end of ``text``, as text that any encoder takes and that no terminal obeys."""
    end = text.encode("utf-8", "replace")[-TAIL_BYTES:].decode("utf-8", "replace")
    return visible(end.strip())[-TAIL_BYTES:]


def visible(text: str) -> str:
    """Return ``text`` with control characters spelled out, new lines and tabs apart."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def headline(text: str) -> str:
    """Return the first line of ``text``, cut where it is too long for a message."""
    first = visible(text.strip().partition("\n")[0])
    return first if len(first) <= HEADLINE else f"{first[: HEADLINE - 1]}…"


def traceback_tail(error: BaseException, *, skip: int = 0) -> str:
    """Return the end of the traceback of ``error``, without its outermost ``skip`` frames."""
    frames = error.__traceback__
    for _ in range(skip):
        frames = frames.tb_next if frames is not None else None
    return tail("".join(traceback.format_exception(type(error), error, frames)))


def file_tail(path: Path) -> str:
    """Return the end of a file, however large it is; empty if there is none."""
    try:
        # A pipe that took the file's place would never be opened by one who waits.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            return tail(file.read(TAIL_BYTES).decode("utf-8", "replace"))
    except OSError:
        return ""
