"""From a prediction and the series that decide it to its assessment: verdict, standing, words beside it."""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.audit import remarks
from pytest_prereg.audit.conditions import (
    calibrated_by_hand,
    calibrated_foreknown,
    contradicted,
    doubts,
    follows_decided,
    rests_on_amended,
    unmet,
    waits,
    withdrawn_below,
)
from pytest_prereg.audit.deciding import current_subject, is_guard, lacking, of_subject
from pytest_prereg.audit.families import found_in
from pytest_prereg.audit.guards import found_for, history
from pytest_prereg.audit.judging import hindered, judged
from pytest_prereg.audit.pending import why_pending
from pytest_prereg.audit.provenance import are_undeclared
from pytest_prereg.audit.recorded import Evidenced, check_recorded, unmeasured
from pytest_prereg.audit.staleness import changed_since
from pytest_prereg.audit.standing import Assessment, Beside, Found, planned, read_arms, standing
from pytest_prereg.audit.taking_back import after_data
from pytest_prereg.audit.unjudgeable import is_unjudgeable
from pytest_prereg.audit.withdrawn import agrees, remembered, unaltered, unjudged
from pytest_prereg.errors import JudgeError, StudyError
from pytest_prereg.evidence.cost import Account, series_account
from pytest_prereg.evidence.series import evidence_digest
from pytest_prereg.judge.instruments import UNSTATED
from pytest_prereg.judge.model import Verdict
from pytest_prereg.registry.lock import taken_id, wrong_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.staleness import Since
    from pytest_prereg.errors import Problem
    from pytest_prereg.evidence.model import Series
    from pytest_prereg.registry.lock import LockEntry
    from pytest_prereg.registry.model import Experiment, Prediction

FOLLOWS_DECIDED = "follows a decided one"
RESTS_ON_AMENDED = "rests on an amended one"
CONTRADICTED = "calibration contradicted"
BY_HAND = "calibration by hand"
FOREKNOWN = "calibration foreknown"
SECOND = "second series"

_EDITED = "PR104"
"""What check_recorded says of a prediction that is not what the lock has a verdict on."""


def assessment_of(state: StudyState, prediction: Prediction) -> Assessment:
    """Return all that is known of a prediction; what it rests on was assessed before.

    Raises:
        JudgeError: A recorded value is not a number that can be judged, and it is not withdrawn.
        StudyError: Units don't go together, or the subject of a guard is not there.
    """
    found = _found_or_withdrawn(state, prediction)
    terms, order, entry = state.terms(prediction), state.orders[prediction.id], state.entry(prediction)
    evidenced, earlier = _evidenced(found), _earlier(state, prediction, found)
    too_late = follows_decided(state, prediction)
    problems = tuple(_problems(state, prediction, found, evidenced, _evidenced(earlier)))
    kept = entry if entry is not None and entry.withdrawal is not None else None
    if kept is not None:
        found, earlier = remembered(prediction, kept, found, evidenced), None
        evidenced = _evidenced(found) if found.used else None
    deciding = found.used[0] if found.used else None
    return Assessment(
        prediction=prediction,
        predicts=terms.predicts,
        falsifier=terms.falsifier,
        unit=terms.unit,
        order=order,
        standing="exploratory" if too_late else standing(order, prediction),
        judgement=found.judgement,
        pending=found.pending,
        planned=planned(state.study, prediction),
        series=deciding.number if deciding else kept.series if kept else None,
        series_count=len(state.series[prediction.experiment]),
        sessions=tuple(name for one in found.used for name in one.sessions),
        evidence=evidenced.digest if evidenced else kept.evidence if kept else None,
        imported=any(one.origin == "imported" for one in found.used),
        entry=entry,
        flags=_flags(state, prediction, found, too_late=too_late),
        problems=problems,
        replications=() if kept else tuple(_replications(state, prediction, found)),
        subject=next((one.subject for one in found.used if one.subject is not None), None),
        earlier=_beside(earlier),
        history=history(state, prediction) if is_guard(prediction) else (),
        final=found.final,
        account=_account(state, found.used),
    )


def _found_or_withdrawn(state: StudyState, prediction: Prediction) -> Found:
    """Return what was found; of what was withdrawn since nothing of it can be judged, why that is so.

    Raises:
        JudgeError: A recorded value is not a number that can be judged, and that alone makes no difference.
    """
    entry = state.entry(prediction)
    try:
        return found_of(state, prediction)
    except JudgeError as error:
        is_buried = entry is not None and entry.withdrawal is not None and entry.verdict is None
        if not is_buried or not is_unjudgeable(state, prediction):
            raise
        return Found(pending=error.problems[0].message)


def _account(state: StudyState, used: Iterable[Series]) -> Account | None:
    """What some series took; those that were imported nobody can say it of."""
    bought = [one for one in used if one.origin == "measured"]
    accounts = (series_account(state.files[one.experiment], one.number) for one in bought)
    return sum(accounts, Account()) if bought else None


def found_of(state: StudyState, prediction: Prediction) -> Found:
    """Return the verdict that the evidence gives, with the series that it rests on, or why there is none yet.

    Whether the prediction itself is withdrawn makes no difference to that.
    """
    return _still_supported(state, prediction, _found(state, prediction))


def _found(state: StudyState, prediction: Prediction) -> Found:
    basis = state.bases[prediction.id]
    if basis is None:
        return Found(pending=unmet(state, prediction) or why_pending(state, prediction))
    if waiting := waits(state, prediction):
        return Found(pending=waiting)
    if is_guard(prediction):
        return found_for(state, prediction, current_subject(state, prediction.experiment))
    if state.family is not None and prediction.id in state.family.levels:
        return found_in(state, state.family, prediction, basis)
    judgement = judged(state, prediction, basis, partial(doubts, state))
    return Found(judgement=judgement, used=tuple(basis.values()))


def _still_supported(state: StudyState, prediction: Prediction, found: Found) -> Found:
    """Return what was found, without support from what is withdrawn; a refutation stays."""
    if found.judgement is None or found.judgement.verdict is not Verdict.SUPPORTED:
        return found
    below = list(withdrawn_below(state, prediction, found.used))
    return replace(found, judgement=hindered(found.judgement, below)) if below else found


def _earlier(state: StudyState, prediction: Prediction, found: Found) -> Found | None:
    """What the first series says of a prediction that is decided by the next one."""
    basis = state.earlier.get(prediction.id)
    if basis is None or found.judgement is None:
        return None
    judgement = judged(state, prediction, basis, partial(doubts, state))
    first = Found(judgement=judgement, used=tuple(basis.values()))
    return _still_supported(state, prediction, first)


def _beside(found: Found | None) -> Beside | None:
    if found is None or found.judgement is None:
        return None
    return Beside(series=found.used[0].number, judgement=found.judgement)


def _evidenced(found: Found | None) -> Evidenced | None:
    """The verdict with the digest of the repeats that it rests on."""
    if found is None or found.judgement is None:
        return None
    digest = evidence_digest(found.used, found.judgement.repeats)
    return Evidenced(found.used[0].number, found.judgement, digest)


def _problems(
    state: StudyState,
    prediction: Prediction,
    found: Found,
    evidenced: Evidenced | None,
    before: Evidenced | None,
) -> Iterator[Problem]:
    """What shows that evidence, unit or recorded verdict are not what they were."""
    for name in prediction.experiments:
        own = [one for one in found.used or _basis(state, prediction) if one.experiment == name]
        # Of what is pending any series may be the one that somebody kept from its end.
        yield from state.altered(name, *(own or state.series[name]))
    entry = state.entry(prediction)
    is_registered = entry is not None and entry.digest == state.digests[prediction.id]
    if entry is not None and is_registered and (wrong := wrong_unit(state.study, prediction, entry)):
        yield wrong
    if entry is not None and entry.withdrawal is not None:
        yield from _of_tombstone(state, prediction, entry, found)
    else:
        yield from _of_record(state, prediction, found, evidenced, before)
    yield from (problem for experiment, problem in state.misplaced if _is_of(state, prediction, experiment))


def _of_record(
    state: StudyState,
    prediction: Prediction,
    found: Found,
    evidenced: Evidenced | None,
    before: Evidenced | None,
) -> Iterator[Problem]:
    """What shows that a recorded verdict does not follow."""
    entry, then = state.entry(prediction), _when_recorded(state, prediction, found)
    is_registered = entry is not None and entry.digest == state.digests[prediction.id]
    is_recorded = is_registered and entry is not None and entry.verdict is not None
    # No command records a verdict on what was not measured for this very registration.
    if entry and is_recorded and not entry.withdrawal and not _is_measured(state, prediction, then):
        yield unmeasured(prediction, entry, state.study)
        return
    problems = check_recorded(
        state.study,
        prediction,
        entry,
        is_registered=is_registered,
        found=evidenced if then is found else _evidenced(then),
        waiting=None if is_guard(prediction) or not _basis(state, prediction) else then.pending,
        before=before,
        since=partial(_since, state, prediction, entry),
    )
    for problem in problems:
        is_edited = problem.code == _EDITED
        yield dataclasses.replace(problem, advice=after_data(state, prediction.id)) if is_edited else problem


def _is_measured(state: StudyState, prediction: Prediction, found: Found) -> bool:
    """Whether each series that a verdict rests on has a session that was recorded for this registration.

    Of branches that used one number of a series only one may have known it.
    """
    digest = state.digests[prediction.id]
    return all(
        state.binds(series, prediction)
        or any(
            file.path.name in series.sessions and file.header.predictions.get(prediction.id) == digest
            for file in state.files[series.experiment]
            if file.header is not None
        )
        for series in found.used
    )


def _of_tombstone(
    state: StudyState, prediction: Prediction, entry: LockEntry, found: Found
) -> Iterator[Problem]:
    """What shows that a tombstone is not what the evidence gave when it was written.

    What was excluded, voided or withdrawn since changes nothing of it.
    """
    if other := taken_id(state.study, prediction, entry):
        yield other
    elif entry.verdict is None:
        counts = standing(state.orders[prediction.id], prediction) != "exploratory"
        if found.judgement is not None and found.final and counts:
            yield unjudged(state.study, prediction, found.judgement.verdict)
    elif not _was_evidenced(state, prediction, entry, found):
        problems = _of_record(state, prediction, found, _evidenced(found), None)
        yield from unaltered(problems, state.study)


def _was_evidenced(state: StudyState, prediction: Prediction, entry: LockEntry, found: Found) -> bool:
    """Whether a recorded verdict is what the evidence gives, or gave when less was said against it."""
    return (
        _gives(state, prediction, entry, found)
        or (state.as_measured is not state and _gives(state.as_measured, prediction, entry))
        or _since(state, prediction, entry) is not None
    )


def _gives(state: StudyState, prediction: Prediction, entry: LockEntry, found: Found | None = None) -> bool:
    found = found or found_of(state, prediction)
    several = (_when_recorded(state, prediction, found), _earlier(state, prediction, found))
    return any(one is not None and agrees(entry, one) for one in map(_evidenced, several))


def _since(state: StudyState, prediction: Prediction, entry: LockEntry | None) -> Since | None:
    """What was excluded since the verdict was recorded, of the series that it was recorded of."""

    def look(supposed: StudyState) -> Evidenced | None:
        then = _when_recorded(supposed, prediction, found_of(supposed, prediction))
        found = _evidenced(then)
        if entry is None or found is None or found.series == entry.series:
            return found
        return _evidenced(_earlier(supposed, prediction, then))

    return changed_since(state, prediction, entry, look) if entry is not None else None


def _is_of(state: StudyState, prediction: Prediction, experiment: str) -> bool:
    """Whether a prediction has to tell what is wrong with an experiment; of an unknown one all have to."""
    return experiment in prediction.experiments or experiment not in state.study.experiments


def _basis(state: StudyState, prediction: Prediction) -> tuple[Series, ...]:
    return tuple((state.bases[prediction.id] or {}).values())


def _when_recorded(state: StudyState, prediction: Prediction, found: Found) -> Found:
    """What is to be held against the lock: of a guard what it says of the version that was recorded last."""
    entry = state.entry(prediction)
    if entry is None or entry.series is None or not is_guard(prediction):
        return found
    every = state.series[prediction.experiment]
    recorded = next((one for one in every if one.number == entry.series), None)
    if recorded is None:
        return Found(pending="gone")
    return _still_supported(state, prediction, found_for(state, prediction, recorded.subject))


def _replications(state: StudyState, prediction: Prediction, found: Found) -> Iterator[Beside]:
    """Later series, each judged by itself; of several experiments those that come next of each together."""
    last = {one.experiment: one for one in found.used}
    later = [
        [one for one in _comparable(state, prediction, series) if one.number > series.number]
        for series in last.values()
    ]
    for several in zip(*later, strict=False):
        basis = dict(zip(last, several, strict=True))
        judgement = judged(state, prediction, basis, partial(doubts, state))
        later_found = _still_supported(state, prediction, Found(judgement=judgement, used=tuple(several)))
        if beside := _beside(later_found):
            yield beside


def _comparable(state: StudyState, prediction: Prediction, series: Series) -> list[Series]:
    """Complete series of the same experiment; of a guard those of the same version of its subject."""
    if is_guard(prediction):
        return of_subject(state, series.experiment, series.subject)
    complete = [one for one in state.series[series.experiment] if one.complete]
    return [one for one in complete if not lacking(state, prediction, one)]


def _flags(state: StudyState, prediction: Prediction, found: Found, *, too_late: bool) -> tuple[str, ...]:
    first = {one.experiment: one for one in reversed(found.used)}
    experiments = state.measured_in.get(prediction.id, set())
    return tuple(
        dict.fromkeys(
            (
                *(found.judgement.flags if found.judgement else ()),
                *([UNSTATED] if any(are_undeclared(state, prediction, one) for one in found.used) else []),
                *(flag for one in first.values() for flag in _of_series(state, prediction, one)),
                *(remarks.of_repeats(found.used, found.judgement) if found.judgement else ()),
                *state.orders[prediction.id].flags,
                *remarks.of_registration(prediction, state.entry(prediction), experiments),
                *([SECOND] if prediction.id in state.earlier else []),
                *([FOLLOWS_DECIDED] if too_late else []),
                *([CONTRADICTED] if contradicted(state, prediction, found.used) else []),
                *([BY_HAND] if calibrated_by_hand(state, prediction, found.used) else []),
                *([FOREKNOWN] if calibrated_foreknown(state, prediction, found.used) else []),
                *([RESTS_ON_AMENDED] if rests_on_amended(state, prediction) else []),
            )
        )
    )


def _of_series(state: StudyState, prediction: Prediction, series: Series) -> Sequence[str]:
    experiment = state.study.experiments[series.experiment]
    every = state.series[experiment.id]
    if is_guard(prediction):
        every = [one for one in every if one.subject == series.subject]
    arms = read_arms(state.study, prediction, experiment.id)
    return remarks.of_series(
        arms, series, every, _now(state.source, experiment), _now(state.subject, experiment)
    )


def _now(digest: Callable[[Experiment], str | None], experiment: Experiment) -> str | None:
    """A digest, or ``None``: a verdict stands, though the files that it is about are no longer here."""
    with suppress(StudyError):
        return digest(experiment)
    return None
