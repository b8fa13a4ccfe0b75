"""What to do about a prediction that waits for a calibration of its instrument which has failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.again import is_open
from pytest_prereg.audit.conditions import PENDING, SUPPORTED, finding
from pytest_prereg.audit.dependencies import calibrators
from pytest_prereg.judge.model import Verdict
from pytest_prereg.registry.refusals import quoted
from pytest_prereg.registry.uses import instruments_of
from pytest_prereg.report.explanation import again

if TYPE_CHECKING:
    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.registry.model import Prediction

ANOTHER = "or name another instrument for the metric, with a calibration of its own"
AMEND = "amend this prediction, which has no evidence yet"


def way_on(state: StudyState, prediction: Prediction) -> str | None:
    """Return what may let a pending prediction be measured; ``None`` where no calibration has failed."""
    parts = [prediction, *(state.study.predictions[name] for name in prediction.members)]
    for part in parts:
        for instrument in instruments_of(part, state.study.experiments):
            for name in calibrators(state.study, instrument):
                known = finding(state, name, part)
                if known not in (SUPPORTED, PENDING):
                    said = f"{quoted(name)}, which calibrates {instrument}, {known}"
                    return f"{said}: {_remedy(state, name)}"
    return None


def _remedy(state: StudyState, name: str) -> str:
    if name not in state.study.predictions:
        return f'put it back, or name another in "calibrated-by" and {AMEND}'
    calibration = state.study.predictions[name]
    judgement = state.assess(calibration).judgement
    if judgement is None or judgement.verdict is Verdict.REFUTED:
        return f"{ANOTHER.removeprefix('or ')}, and {AMEND}"
    if judgement.verdict is Verdict.INCONCLUSIVE and is_open(state, calibration):
        return again(judgement, calibration, state.study, state.files)
    if judgement.verdict is Verdict.INCONCLUSIVE:
        successor = f"register a successor of it with follows = {quoted(name)}"
        return f'{successor}, name that in "calibrated-by" and {AMEND}; {ANOTHER}'
    return f'register another before its evidence, name it in "calibrated-by" and {AMEND}'
