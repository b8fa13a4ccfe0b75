"""What a lock registers, and nothing else of it.

Only a file that is a whole lock registers anything: what the strict reader refuses counts nowhere.
"""

from __future__ import annotations

import msgspec

from pytest_prereg.errors import StudyError
from pytest_prereg.registry.lock_versions import LockReader, may_be_lock


class Registered(msgspec.Struct, kw_only=True, frozen=True):
    """Registration digests of one study, by prediction id."""

    study: str
    digests: dict[str, str]


def registered(data: bytes, reader: LockReader | None = None) -> Registered | None:
    """Return what a lock's bytes register; ``None`` where they are no lock of a study, whatever they are.

    Args:
        data: The whole file.
        reader: Which has read other versions of it, where there are many.
    """
    if not may_be_lock(data):
        return None
    try:
        lock = (reader or LockReader()).read(data, "")
    except StudyError:
        return None
    return Registered(
        study=lock.study, digests={name: entry.digest for name, entry in lock.predictions.items()}
    )
