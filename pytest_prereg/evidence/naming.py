"""What things are called: repeats, session files, and paths as people see them."""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pytest_prereg.registry.model import ONLY_ARM

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX = ".jsonl"
_STAMP = "%Y%m%dT%H%M%SZ"
_WARMUP = "warmup-"


def repeat_id(experiment: str, series: int, arm: str, index: int) -> str:
    """Return ``experiment/series/arm/index``, without the arm where there is only one unnamed."""
    middle = "" if arm == ONLY_ARM else f"{arm}/"
    return f"{experiment}/{series}/{middle}{index}"


def warmup_id(experiment: str, series: int, arm: str, number: int) -> str:
    """Return the id of a repeat that is run before the planned ones: its last part is ``warmup-<number>``."""
    return f"{repeat_id(experiment, series, arm, number).rpartition('/')[0]}/{_WARMUP}{number}"


def names_warmup(repeat: str) -> bool:
    """Return whether the id is one that :func:`warmup_id` gives."""
    return repeat.rpartition("/")[2].startswith(_WARMUP)


def utc_now() -> str:
    """Return the time as session files state it: UTC, ISO 8601, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def session_file_name(folder: Path, header: bytes) -> str:
    """Return ``<UTC time>-<8 hex>.jsonl`` for a new file of ``folder``; the hex digits are the header's.

    The names of a folder are the order in which its sessions began. A clock that was set back, or two
    sessions within one second, would break it: then the time is one second after that of the last file.
    """
    stamp = datetime.now(UTC).replace(microsecond=0)
    latest = max(filter(None, map(_stamp, folder.glob(f"*{SUFFIX}"))), default=None)
    if latest is not None and stamp <= latest:
        stamp = latest + timedelta(seconds=1)
    return f"{stamp.strftime(_STAMP)}-{hashlib.sha256(header).hexdigest()[:8]}{SUFFIX}"


def _stamp(path: Path) -> datetime | None:
    try:
        return datetime.strptime(path.name.partition("-")[0], _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None


def blob_id(data: bytes, algorithm: str = "sha1") -> str:
    """Return the name under which git keeps a file of these bytes, by the hash that a repository uses."""
    return hashlib.new(algorithm, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def shown(path: Path) -> str:
    """Return ``path`` as a message names it: relative to the current folder where it lies below it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith(os.pardir) else relative
