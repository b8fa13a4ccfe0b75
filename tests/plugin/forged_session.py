"""Session files as a text editor leaves them: rewritten, with a last line that fits again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_prereg.evidence.lines import digest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Lines = list[dict[str, Any]]


def forge(path: Path, change: Callable[[Lines], Lines]) -> None:
    """Changes the lines before the last one."""
    *before, footer = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    lines = change(before)
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    last = {**footer, "lines": len(lines), "digest": digest(body)}
    path.write_bytes(body + json.dumps(last).encode() + b"\n")


def forge_header(path: Path, **keys: Any) -> None:
    """Writes something else into the header."""
    forge(path, lambda lines: [{**lines[0], **keys}, *lines[1:]])
