"""Why a prediction without its evidence is pending, in one line for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.deciding import candidates, current_subject, is_guard, lacking
from pytest_prereg.audit.guards import NOT_MEASURED
from pytest_prereg.evidence.import_commands import next_import
from pytest_prereg.registry.refusals import listed

if TYPE_CHECKING:
    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.evidence.model import Series
    from pytest_prereg.registry.model import Prediction


def why_pending(state: StudyState, prediction: Prediction) -> str:
    """Say what is missing: of several experiments, of the first one that lacks something."""
    open_ = (name for name in prediction.experiments if not candidates(state, prediction, name))
    name = next(open_, prediction.experiment)
    missing = _missing(state, prediction, name)
    return missing if len(prediction.experiments) == 1 else f"{name}: {missing}"


def _missing(state: StudyState, prediction: Prediction, name: str) -> str:
    experiment = state.study.experiments[name]
    begun = _begun(state, prediction, name)
    if begun and begun[-1].planned is None:
        wanting = {*experiment.arms} - {one.arm for one in begun[-1].repeats}
        return f"series {begun[-1].number} still wants arm {listed(sorted(wanting))}"
    if begun:
        planned = sum((begun[-1].planned or {}).values())
        most = "at most " if experiment.stopping is not None else ""
        return f"{len(begun[-1].repeats)} of {most}{planned} repeats recorded, none is shown before the last"
    complete = [one for one in state.series[name] if one.complete]
    if complete and (arms := lacking(state, prediction, complete[-1])):
        return f"series {complete[-1].number} has no arm {listed(arms)}"
    if is_guard(prediction):
        return NOT_MEASURED
    if experiment.kind == "import":
        return f"no evidence yet; {next_import(experiment, state.files[name])}"
    return "not measured yet"


def _begun(state: StudyState, prediction: Prediction, name: str) -> list[Series]:
    """Series that are not complete; of a guard those of its subject as it is now."""
    begun = [one for one in state.series[name] if not one.complete and one.voided is None]
    if is_guard(prediction):
        subject = current_subject(state, name)
        return [one for one in begun if one.subject == subject]
    return begun
