"""Evidence that is committed, and lies where the study does not read it: PR207, as if it were gone.

Who moves a session elsewhere, or names another folder in ``[study].evidence``, has removed it from the study
as well as who deletes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.places import place_of
from pytest_prereg.audit.past import SESSION, Past
from pytest_prereg.evidence.model import Header
from pytest_prereg.evidence.naming import shown
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_prereg.audit.assess import StudyState


def hidden(state: StudyState) -> Iterator[Finding]:
    """Yield an error for each session of the study at HEAD that is in another place than its evidence."""
    past = state.past
    if not isinstance(past, Past):
        return
    for path, commit in _unread(state, past).items():
        place = past.repository.root / path
        if (header := _header(place)) is not None and header.study == state.study.id:
            yield _hidden(state, header.experiment, place, commit)


def _unread(state: StudyState, past: Past) -> dict[str, str]:
    """Sessions that HEAD has and the study does not, under whatever name; each with what brought it there."""
    files = [file for several in state.files.values() for file in several]
    names, blobs = {file.path.name for file in files}, {state.blob(file) for file in files if file.header}
    brought = {
        change.path: commit.id
        for commit in reversed(past.commits)
        for change in commit.changes
        if SESSION.search(change.path)
        and change.blob not in blobs
        and change.path.rpartition("/")[2] not in names
    }
    now = past.repository.names(f"{past.head}:{path}" for path in brought)
    return {
        path: commit
        for (path, commit), blob in zip(brought.items(), now, strict=True)
        if blob is not None and blob not in blobs
    }


def _header(path: Path) -> Header | None:
    """First line of a session, if it is one, and in the work tree."""
    try:
        with path.open("rb") as stream:
            return msgspec.json.decode(stream.readline(), type=Header)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _hidden(state: StudyState, experiment: str, place: Path, commit: str) -> Finding:
    path, line = place_of(state, experiment)
    return Finding(
        code="PR207",
        id=experiment,
        level=Level.ERROR,
        message=f"evidence {quoted(shown(place))} is committed, and not below "
        f"{quoted(state.study.table.evidence)}, where the study reads it",
        path=path,
        line=line,
        commit=commit,
        advice=f"Bring it back: git mv {shown(place)} {shown(state.study.evidence_folder / experiment)}/",
        about=place.name,
    )
