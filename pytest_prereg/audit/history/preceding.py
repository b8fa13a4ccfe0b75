"""Whether data were there before a prediction was registered as it stands: by headers, and by ancestry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.history.past import Past

if TYPE_CHECKING:
    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.history.past import Introduction
    from pytest_prereg.evidence.model import Header
    from pytest_prereg.registry.model import Prediction


def came_first(state: StudyState, prediction: Prediction, blob: str, header: Header) -> bool | None:
    """Return whether a session was there before a prediction was registered; ``None`` where nothing tells.

    Its own header tells, as long as no commit contradicts it: where the commit that it names is not here,
    only those that came after the registration's can be told from those that may have been there before.

    Args:
        state: The study with its history.
        prediction: One of its predictions.
        blob: What git calls the session's file.
        header: What that begins with.
    """
    past, digest = state.past, state.digests[prediction.id]
    if not isinstance(past, Past):
        return None
    is_bound = header.head in past.here
    if is_bound and header.head and digest not in past.registered(header.head, prediction.id):
        return True
    came = past.introductions.get(blob, past.known.get(blob, ()))
    if any(is_before(past, each, prediction.id, digest, is_bound=is_bound) for each in came):
        return True
    return False if is_bound else None


def is_before(past: Past, each: Introduction, prediction: str, digest: str, *, is_bound: bool) -> bool:
    """Return whether a commit that brought a file in had no registration before it; if bound, nor with it."""
    if each.cut or any(digest in past.registered(parent, prediction) for parent in each.parents):
        return False
    return not is_bound or digest not in past.registered(each.commit, prediction)
