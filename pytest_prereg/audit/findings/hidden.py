"""Evidence that is committed, and lies where the study does not read it: PR207, as if it were gone.

Who moves a session elsewhere, or names another folder in ``[study].evidence``, has removed it from the study
as well as who deletes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.places import place_of
from pytest_prereg.audit.history.past import Past
from pytest_prereg.evidence.naming import shown
from pytest_prereg.registry.refusals import quoted, typed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_prereg.audit.assess import StudyState


def hidden(state: StudyState) -> Iterator[Finding]:
    """Yield an error for each session of the study at HEAD that is in another place than its evidence."""
    past = state.past
    if not isinstance(past, Past):
        return
    found = {each.kept: each for each in past.vanished if each.kept is not None}
    brought = {each.path: each.commit for each in past.vanished}
    for path, each in found.items():
        yield _hidden(state, each.experiment, past.repository.root / path, brought.get(path, each.commit))


def _hidden(state: StudyState, experiment: str, place: Path, commit: str) -> Finding:
    path, line = place_of(state, experiment)
    home = state.study.evidence_folder / experiment
    return Finding(
        code="PR207",
        id=experiment,
        level=Level.ERROR,
        message=f"evidence {quoted(shown(place))} is committed, and not below "
        f"{quoted(state.study.table.evidence)}, where the study reads it",
        path=path,
        line=line,
        commit=commit,
        advice=f"Bring it back: git mv {typed(shown(place))} {typed(shown(home))}/",
        about=place.name,
    )
