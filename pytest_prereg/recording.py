"""Writing verdicts into the lock, where a review of the commit will see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.assess import withdrawn_in
from pytest_prereg.audit.recordable import is_recordable, recorded_entry
from pytest_prereg.registry.lock import read_lock, write_lock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.audit.standing import Assessment
    from pytest_prereg.outcomes import StudyRun


def record_verdicts(run: StudyRun, assessments: Sequence[Assessment]) -> int:
    """Write the verdict of every complete series to the study's lock; returns how many were not there yet.

    An exploratory verdict is not written: it would read like one that was registered first. The lock is
    read anew, since others may have added to it while this run measured.

    Raises:
        StudyError: the lock can't be read, or not be written.
    """
    path = run.state.study.lock_path
    lock = read_lock(path)
    if lock is None:
        return 0
    buried = withdrawn_in(lock) | withdrawn_in(run.state.head_lock)
    recordable = {
        one.prediction.id: one
        for one in assessments
        if is_recordable(one) and one.prediction.id not in buried
    }
    entries = {
        name: recorded_entry(recordable[name], entry) if name in recordable else entry
        for name, entry in lock.predictions.items()
    }
    changed = sum(entries[name] != entry for name, entry in lock.predictions.items())
    if changed:
        write_lock(path, msgspec.structs.replace(lock, predictions=entries))
    return changed
