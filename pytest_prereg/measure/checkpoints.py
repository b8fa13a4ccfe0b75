"""Where a repeat keeps what its next attempt may go on from: out of the study, one folder per slot."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_prereg.measure.executors import scratch

if TYPE_CHECKING:
    from collections.abc import Collection


def checkpoint_folder(study: Path, seed: str, repeat: str) -> Path:
    """Return the folder of one slot of one series, which need not exist.

    Args:
        study: The study file; a copy of the study elsewhere has folders of its own.
        seed: The series' seed, so that no series finds what another has left.
        repeat: The repeat's id.
    """
    return _series_folder(study, seed) / _key(repeat)


def make_private(folder: Path) -> Path:
    """Make a folder that only its user can enter, where there is none; return it."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def has_content(folder: Path) -> bool:
    """Return whether an attempt has left something in its folder."""
    try:
        return any(folder.iterdir())
    except OSError:
        return False


def discard(folder: Path) -> None:
    """Remove the folder of a slot that has settled, and that of its series after the last."""
    scratch.remove_tree(folder)
    try:
        folder.parent.rmdir()
    except OSError:
        return


def discard_settled(study: Path, seed: str, unsettled: Collection[str]) -> None:
    """Remove what slots of a series have left that settled in a session which was killed right then.

    Args:
        study: The study file.
        seed: The series' seed.
        unsettled: Ids of the repeats that are still to be run.
    """
    kept = {_key(repeat) for repeat in unsettled}
    series = _series_folder(study, seed)
    for folder in list(series.iterdir()) if series.is_dir() else []:
        if folder.name not in kept:
            discard(folder)


def _series_folder(study: Path, seed: str) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "pytest-prereg" / "checkpoints" / _key(str(study.resolve()), seed)


def _key(*words: str) -> str:
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]
