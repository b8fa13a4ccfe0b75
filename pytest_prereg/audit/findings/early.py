"""Data of an experiment that were there before a prediction of it was registered: PR216.

Pilots, explorations and series of other claims alike, also those of a copy of the experiment: who registers
after them has seen what comes out. That is no fault where ``data-seen`` says so; with ``"none"``, which is
what it says unless written, a person has to look. What is told anyway is left out: data that decide it are
graded by their order, data for the prediction as it once was are told as amended, and those of the one that
it ``follows`` are what it follows.
"""

from __future__ import annotations

import hashlib
import shlex
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.copies import Copies
from pytest_prereg.audit.findings.places import place_of
from pytest_prereg.audit.findings.telling import acknowledging
from pytest_prereg.audit.history.past import Past
from pytest_prereg.audit.history.preceding import came_first
from pytest_prereg.audit.recorded import short
from pytest_prereg.judge.findings import plural
from pytest_prereg.registry.refusals import quoted
from pytest_prereg.registry.relations import predecessor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.registry.model import Prediction

_SHOWN = 3
"""So many files are named."""


class _Earlier(NamedTuple):
    """A session with data of an experiment that a prediction reads, and that was not measured for it."""

    file: SessionFile
    came_first: bool | None
    """Before the prediction was registered as it is; ``None`` where nothing tells."""


def early(state: StudyState) -> Iterator[Finding]:
    """Yield a review for each prediction with ``data-seen = "none"`` and data that were there before it."""
    copies = Copies(state)
    for prediction in _unseen(state):
        first = [one.file for one in _earlier(copies, prediction) if one.came_first]
        for experiment, files in groupby(first, key=lambda file: file.path.parent.name):
            yield _finding(state, prediction, experiment, list(files))


def untold(state: StudyState) -> int:
    """Return how many sessions may be earlier than a prediction that says that no data were seen."""
    copies = Copies(state)
    every = (one for prediction in _unseen(state) for one in _earlier(copies, prediction))
    return len({one.file.name for one in every if one.came_first is None})


def _unseen(state: StudyState) -> Iterator[Prediction]:
    """Registered predictions that claim that no data were seen; a conjunction leaves that to its members."""
    for prediction in state.study.predictions.values():
        entry = state.entry(prediction)
        if entry is None or entry.withdrawal is not None or prediction.members:
            continue
        if prediction.table.data_seen == "none":
            yield prediction


def _earlier(copies: Copies, prediction: Prediction) -> Iterator[_Earlier]:
    state = copies.state
    if not isinstance(state.past, Past):
        return
    known = _known_anyway(state, prediction)
    deciding = {name for one in (state.bases[prediction.id] or {}).values() for name in one.sessions}
    for experiment in prediction.experiments:
        for file in copies.data_for(prediction, experiment):
            header = file.header
            if header is None or file.path.name in deciding or not known.isdisjoint(header.predictions):
                continue
            yield _Earlier(file, came_first(state, prediction, state.blob(file), header))


def _known_anyway(state: StudyState, prediction: Prediction) -> set[str]:
    """The prediction itself and all that it follows."""
    known = {prediction.id}
    before = predecessor(prediction, state.study.predictions)
    while before is not None and before not in known:
        known.add(before)
        before = predecessor(state.study.predictions[before], state.study.predictions)
    return known


def _finding(state: StudyState, prediction: Prediction, experiment: str, files: list[SessionFile]) -> Finding:
    names = [file.name for file in files]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    path, line = place_of(state, prediction.id)
    return Finding(
        code="PR216",
        id=prediction.id,
        level=Level.REVIEW,
        message=f"{quoted(prediction.id)} was registered when {plural(len(files), 'session')} of "
        f'"{experiment}" had data already, though data-seen is "none": {", ".join(names[:_SHOWN])}{more}',
        path=path,
        line=line,
        advice=_advice(state, prediction.id),
        about=f"{short(state.digests[prediction.id])} {_named(names)}",
    )


def _advice(state: StudyState, name: str) -> str:
    """What to do: as long as nothing was measured for it the prediction itself can say what was known."""
    looked_at = f"{acknowledging('PR216', name)}"
    if state.digests[name] in state.bound_by_evidence.get(name, ()):
        return f"Say why that tells nothing of it: {looked_at}"
    amended = f"pytest-prereg amend {shlex.quote(name)} --reason '…'"
    said = f'Say what was known: write data-seen = "pilot", and amend it: {amended}'
    return f"{said}\nOr why that tells nothing of it: {looked_at}"


def _named(names: list[str]) -> str:
    """The files, in one word: of several how many, and which, as a digest."""
    if len(names) == 1:
        return names[0]
    digest = hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()
    return f"{len(names)} sessions {digest[:8]}"
