"""Imported data that were there before the prediction that they are for was registered: PR216."""

from __future__ import annotations

import hashlib
from itertools import groupby
from typing import TYPE_CHECKING

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.telling import acknowledging, told
from pytest_prereg.audit.foreknown import Foreknown, Twins, foreknown
from pytest_prereg.audit.recorded import short
from pytest_prereg.audit.standing import CONFIRMATORY
from pytest_prereg.judge.findings import plural
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.registry.model import Prediction


def known(state: StudyState) -> Iterator[Finding]:
    """Yield a review for each prediction, and each of its experiments, with such data.

    What is exploratory for its order counts for nothing, and is told of already.
    """
    twins = Twins(state)
    for prediction in state.study.predictions.values():
        entry = state.entry(prediction)
        if entry is None or entry.withdrawal is not None or prediction.members:
            continue
        if state.orders[prediction.id].grade not in CONFIRMATORY:
            continue
        found = foreknown(state, twins, prediction)
        for _, several in groupby(found, key=lambda one: one.file.path.parent.name):
            yield _finding(state, prediction, list(several))


def _finding(state: StudyState, prediction: Prediction, several: list[Foreknown]) -> Finding:
    first = several[0]
    names = [one.file.name for one in several]
    which = quoted(names[0])
    about = first.file.path.name
    if len(several) > 1:
        digest = hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()
        which, about = (
            f"{which} and {plural(len(several) - 1, 'more session')}",
            f"{len(several)} {digest[:8]}",
        )
    return told(
        state,
        "PR216",
        prediction.id,
        Level.REVIEW,
        f"the data of {which} were there before {quoted(prediction.id)} was registered as it stands: they "
        f"{first.where}",
        commit=first.commit,
        about=f"{short(state.digests[prediction.id])} data of {about}",
        advice="Say why that tells nothing of what was to come out: " + acknowledging("PR216", prediction.id),
    )
