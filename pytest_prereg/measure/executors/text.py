"""Bounded pieces of what a body printed or raised."""

from __future__ import annotations

import os
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TAIL_BYTES = 4096


def tail(text: str) -> str:
    """Return the last ``TAIL_BYTES`` bytes of ``text``, as text that any encoder takes."""
    return text.encode("utf-8", "replace")[-TAIL_BYTES:].decode("utf-8", "replace").strip()


def traceback_tail(error: BaseException, *, skip: int = 0) -> str:
    """Return the end of the traceback of ``error``, without its outermost ``skip`` frames."""
    frames = error.__traceback__
    for _ in range(skip):
        frames = frames.tb_next if frames is not None else None
    return tail("".join(traceback.format_exception(type(error), error, frames)))


def file_tail(path: Path) -> str:
    """Return the end of a file, however large it is; empty if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            return tail(file.read(TAIL_BYTES).decode("utf-8", "replace"))
    except OSError:
        return ""
