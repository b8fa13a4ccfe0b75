"""Where a repeat keeps what its next attempt may go on from: out of the study, one folder per slot."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def checkpoint_folder(study: Path, seed: str, repeat: str) -> Path:
    """Return the folder of one slot of one series, which need not exist.

    Args:
        study: The study file; a copy of the study elsewhere has folders of its own.
        seed: The series' seed, so that no series finds what another has left.
        repeat: The repeat's id.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    key = hashlib.sha256("\n".join([str(study.resolve()), seed, repeat]).encode()).hexdigest()
    return cache / "pytest-prereg" / "checkpoints" / key[:16]
