"""Which exclusions came after a verdict was recorded, or went since: then it rests on other repeats than now.

What a verdict rests on is recorded as a digest. Which set of exclusions gives that digest is found by trying
those that the lock can have had.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.audit.exclusions import series_in
from pytest_prereg.errors import PreregError, StudyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.recorded import Evidenced
    from pytest_prereg.registry.lock import LockEntry
    from pytest_prereg.registry.lock_file import Exclusion
    from pytest_prereg.registry.model import Prediction

    Look = Callable[[StudyState], Evidenced | None]

MOST = 64
"""As many sets of exclusions are tried."""


class Since(NamedTuple):
    """How the exclusions differ from those that a verdict was recorded with."""

    added: tuple[str, ...] = ()
    """Ids of repeats that are excluded since."""
    removed: tuple[str, ...] = ()
    """Ids of repeats that the verdict was recorded without, and that the lock no longer excludes."""


def changed_since(state: StudyState, prediction: Prediction, entry: LockEntry, found: Look) -> Since | None:
    """Return the difference in exclusions that explains a recorded digest; ``None`` if none does.

    Args:
        state: The study with its evidence.
        prediction: One of its predictions, recorded with another digest than the evidence gives.
        entry: What is recorded.
        found: What a state of the study gives of the prediction.
    """
    if state.lock is None or state.is_supposed:
        return None
    now = tuple(one for one in state.lock.exclusions if _concerns(one, prediction))
    rest = tuple(one for one in state.lock.exclusions if one not in now)
    for tried, _ in zip(_sets(state, prediction, now), range(MOST), strict=False):
        if _gives(entry, found, state.supposed((*rest, *tried))):
            was, is_ = ({one.repeat for one in several} for several in (tried, now))
            return Since(added=tuple(sorted(is_ - was)), removed=tuple(sorted(was - is_)))
    return None


def _sets(
    state: StudyState, prediction: Prediction, now: tuple[Exclusion, ...]
) -> Iterator[tuple[Exclusion, ...]]:
    """Sets of exclusions that the lock can have had: before the last of them, and before one that is gone."""
    in_time = tuple(sorted(now, key=lambda one: (one.at, one.repeat)))
    gone = _gone(state, prediction, now)
    if gone:
        yield (*now, *gone)
    for count in reversed(range(len(in_time))):
        yield in_time[:count]
        yield (*in_time[:count], *gone)
    for one in in_time:
        yield tuple(other for other in in_time if other is not one)


def _gone(state: StudyState, prediction: Prediction, now: tuple[Exclusion, ...]) -> tuple[Exclusion, ...]:
    """Exclusions that the lock at HEAD has, and that on disk no longer."""
    try:
        committed = state.head_lock
    except StudyError:
        return ()
    known = {one.repeat for one in now}
    every = committed.exclusions if committed else ()
    return tuple(one for one in every if _concerns(one, prediction) and one.repeat not in known)


def _concerns(exclusion: Exclusion, prediction: Prediction) -> bool:
    return series_in(exclusion.repeat).rpartition("/")[0] in prediction.experiments


def _gives(entry: LockEntry, found: Look, supposed: StudyState) -> bool:
    try:
        evidenced = found(supposed)
    except PreregError:
        return False
    return evidenced is not None and (evidenced.series, evidenced.digest) == (entry.series, entry.evidence)
