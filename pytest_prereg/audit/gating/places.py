"""The commit by which a registration came in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.registry.lock import LockEntry


def registered_in(state: StudyState, name: str, entry: LockEntry | None = None) -> str | None:
    """Return the commit that registered a prediction as it is now; of several that did so the last.

    ``None`` where no commit did, or where the history is cut before it.

    Args:
        state: The study.
        name: Of the prediction.
        entry: As which it was registered, where that is not what the lock has now.
    """
    entry = entry or state.chronicle.now.predictions.get(name)
    commits = [
        change.commit
        for change in state.chronicle.changes
        if change.id == name
        and entry is not None
        and change.after is not None
        and change.after.digest == entry.digest
        and all(before.digest != entry.digest for before in change.before)
        and not change.version.is_cut
    ]
    return commits[-1] if commits else None
