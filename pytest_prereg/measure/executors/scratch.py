"""The temporary folder of a fork server: its log, output and a working folder for every repeat."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

LOG = "server.log"
CACHES = "caches"


def make() -> Path:
    """Return a new folder."""
    return Path(tempfile.mkdtemp(prefix="prereg-"))


def remove(folder: Path) -> None:
    """Remove the folder; the output of repeats that failed stays, for someone to look at."""
    (folder / LOG).unlink(missing_ok=True)
    for workdir in (*folder.glob("work-*"), folder / CACHES):
        shutil.rmtree(workdir, ignore_errors=True)
    with contextlib.suppress(OSError):
        folder.rmdir()
