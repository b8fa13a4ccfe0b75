"""What a verdict depends on beside its data: predictions that must be supported, or decided, before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.audit.calibration import calibrators_of, uncalibrated
from pytest_prereg.audit.dependencies import calibrators, required
from pytest_prereg.audit.judging import judged
from pytest_prereg.audit.provenance import declared_in, instruments_in
from pytest_prereg.audit.standing import standing
from pytest_prereg.errors import PreregError
from pytest_prereg.judge.instruments import UNSTATED
from pytest_prereg.judge.model import Reason, Verdict
from pytest_prereg.registry.refusals import quoted
from pytest_prereg.registry.relations import predecessor
from pytest_prereg.registry.uses import instruments_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.deciding import Basis
    from pytest_prereg.evidence.model import Series
    from pytest_prereg.judge.findings import Doubt
    from pytest_prereg.registry.model import Prediction

SUPPORTED = "is supported"
PENDING = "is pending"
WITHDRAWN = "is withdrawn"


class Lack(NamedTuple):
    """Something that a prediction depends on, and that is not there."""

    text: str
    """One line for people."""
    may_come: bool
    """Whether it is pending, so that a verdict has to wait for it."""


def finding(state: StudyState, name: str, reader: Prediction) -> str:
    """Return what is known of prediction ``name``, as a verb: ``is supported``, ``is pending``.

    An exploratory verdict counts for nothing but what is exploratory itself.
    """
    try:
        found = state.assess(state.study.predictions[name])
    except PreregError:
        return "can't be judged"
    if found.judgement is None:
        return PENDING if found.withdrawal is None else WITHDRAWN
    if found.standing == "exploratory" and standing(state.orders[reader.id], reader) != "exploratory":
        return "is exploratory"
    return f"is {found.judgement.verdict}"


def lacks(state: StudyState, prediction: Prediction) -> Iterator[Lack]:
    """What a prediction lacks to be judged: the support that it requires, and its predecessor's verdict."""
    for name in required(state.study, prediction):
        known = finding(state, name, prediction)
        if known != SUPPORTED:
            yield Lack(f"requires {quoted(name)}, which {known}", known == PENDING)
    before = predecessor(prediction, state.study.predictions)
    found = finding(state, before, prediction) if before is not None else None
    if found == PENDING:
        yield Lack(f"follows {quoted(before)}, which is pending", may_come=True)
    if found == WITHDRAWN:
        yield Lack(f"follows {quoted(before)}, which is withdrawn without a verdict", may_come=False)


def unmet(state: StudyState, prediction: Prediction) -> str | None:
    """Why nothing is bought for the prediction: evidence that can't decide it would be in vain."""
    for one in _parts(state, prediction):
        for lack in lacks(state, one):
            return lack.text
        for text in _not_calibrated(state, one):
            return text
    for _, text in withdrawn_below(state, prediction):
        return text
    if follows_decided(state, prediction):
        return f"follows {quoted(prediction.table.follows)}, which is decided"
    return None


def withdrawn_below(
    state: StudyState, prediction: Prediction, used: Iterable[Series] = ()
) -> Iterator[Doubt]:
    """What a prediction rests on and somebody has withdrawn: it is never supported, but still refuted.

    Else who withdraws what a claim requires would be free of its refutation.

    Args:
        state: The study with its evidence.
        prediction: One of its predictions.
        used: The series that it is judged from, whose repeats may name other instruments than its metrics.
    """
    for one in _parts(state, prediction):
        for name in required(state.study, one):
            if state.is_withdrawn(name):
                yield Reason.REQUIRED, f"requires {quoted(name)}, which is withdrawn"
        for instrument, names in _calibrations(state, one, used):
            for name in names:
                if state.is_withdrawn(name):
                    what = f"instrument {quoted(instrument)} is calibrated by {quoted(name)}"
                    yield Reason.INSTRUMENT, f"{what}, which is withdrawn"
    for name in prediction.members:
        if state.is_withdrawn(name):
            yield Reason.REQUIRED, f"has {quoted(name)} as a member, which is withdrawn"


def contradicted(state: StudyState, prediction: Prediction, used: Iterable[Series]) -> bool:
    """Whether a later series refutes what calibrates an instrument of a verdict: that stands, and says so."""
    return any(_is_refuted_later(state, name) for name in _calibrators(state, prediction, used))


def calibrated_by_hand(state: StudyState, prediction: Prediction, used: Iterable[Series]) -> bool:
    """Whether what calibrates an instrument of a verdict has a number that no instrument is named for."""
    several = _calibrators(state, prediction, used)
    return any(UNSTATED in _flags(state, name) for name in several if name in state.study.predictions)


def calibrated_foreknown(state: StudyState, prediction: Prediction, used: Iterable[Series]) -> bool:
    """Whether the author of what calibrates an instrument of a verdict had seen such data before.

    It is in force all the same: who calibrates anew, after a release, has seen how that went before. But its
    region may have been chosen by what was seen.
    """
    several = _calibrators(state, prediction, used)
    known = (state.study.predictions[name] for name in several if name in state.study.predictions)
    return any(part.table.data_seen == "full" for one in known for part in _parts(state, one))


def _calibrators(state: StudyState, prediction: Prediction, used: Iterable[Series]) -> list[str]:
    """Ids of all predictions that calibrate an instrument of a verdict, each once."""
    used = tuple(used)
    parts = _parts(state, prediction)
    calibrations = (_calibrations(state, one, used) for one in parts)
    return [*dict.fromkeys(name for several in calibrations for _, names in several for name in names)]


def _flags(state: StudyState, name: str) -> tuple[str, ...]:
    try:
        return state.assess(state.study.predictions[name]).flags
    except PreregError:
        return ()


def _is_refuted_later(state: StudyState, name: str) -> bool:
    if name not in state.study.predictions:
        return False
    try:
        later = state.assess(state.study.predictions[name]).replications
    except PreregError:
        return False
    return any(one.judgement.verdict is Verdict.REFUTED for one in later)


def _calibrations(
    state: StudyState, prediction: Prediction, used: Iterable[Series]
) -> Iterator[tuple[str, list[str]]]:
    """Instruments of a prediction, each with the predictions that calibrate it."""
    for instrument in instruments_of(prediction, state.study.experiments):
        yield instrument, calibrators(state.study, instrument)
    for series in used:
        if series.experiment in prediction.experiments:
            declared = declared_in(state, prediction, series)
            for instrument in sorted(instruments_in(state, prediction, series) - declared):
                yield instrument, calibrators_of(state, prediction, series, instrument) or []


def waits(state: StudyState, prediction: Prediction) -> str | None:
    """What a prediction that has its evidence still waits for; until then no value is shown."""
    every = (lack for one in _parts(state, prediction) for lack in lacks(state, one))
    return next((lack.text for lack in every if lack.may_come), None)


def doubts(state: StudyState, prediction: Prediction, basis: Basis) -> list[Doubt]:
    """Return what speaks against a verdict from this evidence, without a look at its values."""
    lacking = uncalibrated(state, prediction, basis, lambda name: finding(state, name, prediction))
    return [
        *((Reason.REQUIRED, lack.text) for lack in lacks(state, prediction)),
        *((Reason.INSTRUMENT, text) for text in lacking),
    ]


def follows_decided(state: StudyState, prediction: Prediction) -> bool:
    """Whether it follows a prediction that was decided: then nothing was left for a successor to decide.

    One that was refuted by what was measured stays decided, whatever was said against that evidence since:
    else who excludes enough repeats, voids what it requires, or calibrates an instrument anew, would be free
    of the refutation.
    """
    before = predecessor(prediction, state.study.predictions)
    if before is None:
        return False
    verdict = _verdict(state, before)
    if verdict is None or verdict is Verdict.INCONCLUSIVE:
        return was_refuted(state, state.study.predictions[before])
    return True


def was_refuted(state: StudyState, prediction: Prediction) -> bool:
    """Whether what was measured refutes a prediction, if nothing had been done since about what it rests on.

    Nothing excluded, voided or withdrawn, that is; and where something that it rests on was amended when
    there was evidence for it, what its own evidence says by itself.
    """
    before = state.as_measured
    if _verdict(before, prediction.id) is Verdict.REFUTED:
        return True
    basis = before.bases[prediction.id]
    if basis is None or not rests_on_amended(before, prediction):
        return False
    try:
        return judged(before, prediction, basis, lambda _one, _on: ()).verdict is Verdict.REFUTED
    except PreregError:
        return False


def _verdict(state: StudyState, name: str) -> Verdict | None:
    try:
        judgement = state.assess(state.study.predictions[name]).judgement
    except PreregError:
        return None
    return judgement.verdict if judgement is not None else None


def rests_on_amended(state: StudyState, prediction: Prediction) -> bool:
    """Whether something that has a say in its verdict was changed when there was evidence for it.

    Its own registration names what it requires, and not how that was registered.
    """
    return bool(state.amended) and not state.amended.isdisjoint(state.before(prediction))


def _parts(state: StudyState, prediction: Prediction) -> list[Prediction]:
    """The prediction, and the members of a conjunction, which are judged in it."""
    return [prediction, *(state.study.predictions[name] for name in prediction.members)]


def _not_calibrated(state: StudyState, prediction: Prediction) -> Iterator[str]:
    for instrument in instruments_of(prediction, state.study.experiments):
        for name in calibrators(state.study, instrument):
            known = finding(state, name, prediction)
            if known != SUPPORTED:
                yield f"instrument {quoted(instrument)} is calibrated by {quoted(name)}, which {known}"
