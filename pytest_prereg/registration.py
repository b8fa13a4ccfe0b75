"""Registering a study: what every layer has to say of it, then its lock. Nothing here prints."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.audit.amending import advice_after_data, data_of
from pytest_prereg.audit.citing.behind import cite_first
from pytest_prereg.audit.comparing.changes import Revision
from pytest_prereg.audit.comparing.opposites import clashes
from pytest_prereg.audit.dependencies import rests_on
from pytest_prereg.audit.history import git_commands
from pytest_prereg.audit.history.committed import committed_lock, uncommitted_code
from pytest_prereg.audit.history.git import Repository
from pytest_prereg.audit.history.git_commands import Place, newest
from pytest_prereg.audit.history.tags import tag
from pytest_prereg.audit.namesakes import namesakes
from pytest_prereg.errors import EvidenceError, Problem, StudyError
from pytest_prereg.evidence.naming import shown
from pytest_prereg.evidence.sessions import read_study_evidence
from pytest_prereg.judge.design import DesignReport, check_design
from pytest_prereg.judge.fitness import SMALLEST_N
from pytest_prereg.judge.model import Verdict
from pytest_prereg.registry.digest import registration_digest
from pytest_prereg.registry.judging import thresholds
from pytest_prereg.registry.lock import (
    Lock,
    Registration,
    amend,
    plan_registration,
    read_lock,
    register,
    write_lock,
    wrong_unit,
)
from pytest_prereg.registry.read_formats import unreadable_format
from pytest_prereg.registry.reasons import given_reason
from pytest_prereg.registry.refusals import RefusedError, listed, quoted, typed
from pytest_prereg.registry.regions import Region
from pytest_prereg.registry.relations import predecessor
from pytest_prereg.registry.starter import ATTRIBUTES_FILE
from pytest_prereg.registry.supported import not_yet
from pytest_prereg.registry.units import check_units, registered_unit
from pytest_prereg.registry.uses import arms_of, named
from pytest_prereg.registry.vacuous import is_vacuous

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_prereg.audit.amending import Amended
    from pytest_prereg.audit.history.tags import Tagged
    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.registry.lock import LockEntry
    from pytest_prereg.registry.model import Experiment, Prediction, Study

_NAMED = 3
"""A commit message names up to so many predictions."""


class Design(msgspec.Struct, kw_only=True, frozen=True):
    """How a prediction will be decided: its regions, in ``unit``, and what the design check says."""

    unit: str
    predicts: Region
    falsifier: Region
    report: DesignReport


class Review(msgspec.Struct, kw_only=True, frozen=True):
    """A study held against its lock."""

    lock: Lock | None
    registration: Registration | None
    """``None`` where problems made it impossible to plan."""
    designs: dict[str, Design]
    """Of the predictions that are to be registered."""
    problems: tuple[Problem, ...]


def review(study: Study, *, amended: Collection[str] = ()) -> Review:
    """Check a study in every layer and plan its registration; nothing is written.

    Args:
        study: As loaded.
        amended: Ids of registered predictions that are to be amended: they are checked as if they were new,
            and it is no problem that they have changed.

    Raises:
        StudyError: If the lock can't be read.
    """
    lock = read_lock(study.lock_path)
    problems = [*not_yet(study), *namesakes(Repository.find(study.folder), study), *check_units(study)]
    registration = None
    try:
        registration = plan_registration(study, lock)
        advice = _begin_again(study, lock, {*registration.changed} - {*amended})
        late = advice_after_data(study, lock, {*registration.changed} - {*amended})
        problems += (
            dataclasses.replace(one, advice=advice or late.get(name) or one.advice)
            for name, one in _changed(registration, amended)
        )
    except StudyError as error:
        problems += [problem for problem in error.problems if problem.code != "PR021"]
    registered = lock.predictions if lock else {}
    problems += _of_units(study, registered)
    checked = [name for name in study.predictions if name not in registered or name in amended]
    designs = _designs(study, checked)
    problems += _of_designs(study, designs)
    problems += _late(study, [name for name in study.predictions if name not in registered])
    problems += _opposites(study, designs, registered)
    problems += _on_withdrawn(study, registered, checked)
    problems += _vacuous(study, checked)
    problems += _unreadable(study, checked)
    ordered = sorted(problems, key=lambda problem: problem.line or 0)
    return Review(lock=lock, registration=registration, designs=designs, problems=tuple(ordered))


def _changed(registration: Registration, amended: Collection[str]) -> Iterable[tuple[str, Problem]]:
    return (
        (name, problem)
        for name, problems in registration.changed.items()
        if name not in amended
        for problem in problems
    )


def _begin_again(study: Study, lock: Lock | None, changed: Collection[str]) -> str | None:
    """Return how to register anew what is only in the working lock, which nobody needs an amendment of.

    ``None`` where there is evidence, or the lock has more than HEAD's and new entries.
    """
    repository = Repository.find(study.folder)
    if not changed or lock is None or repository is None or _has_evidence(study):
        return None
    try:
        there = committed_lock(repository, study)
    except StudyError:  # told of where it is needed
        return None
    base = there or Lock(study=study.id)
    new = {name: one for name, one in lock.predictions.items() if name not in base.predictions}
    is_fresh = all(
        one.verdict is None and one.withdrawal is None and not one.amendments for one in new.values()
    )
    known = msgspec.structs.replace(base, predictions={**base.predictions, **new})
    if not is_fresh or not {*changed} <= {*new} or lock != known:
        return None
    path = typed(shown(study.lock_path))
    undo = f"rm {path}" if there is None else f"git checkout HEAD -- {path}"
    return f"What was registered is not committed yet, so begin again: {undo}, then pytest-prereg lock"


def _has_evidence(study: Study) -> bool:
    """Whether there is any, or may be: what can't be seen must not be taken for missing."""
    try:
        return any(read_study_evidence(study).values())
    except EvidenceError:
        return True


def _of_units(study: Study, registered: Mapping[str, LockEntry]) -> Iterable[Problem]:
    """Return what the lock has wrong of the units of predictions that are registered as they stand."""
    for name, prediction in study.predictions.items():
        entry = registered.get(name)
        if entry is None or entry.digest != registration_digest(study, prediction):
            continue
        with contextlib.suppress(RefusedError):  # has been told
            if problem := wrong_unit(study, prediction, entry):
                yield problem


def _designs(study: Study, names: Iterable[str]) -> dict[str, Design]:
    """Check the designs of predictions; what is wrong with a unit has been told already."""
    designs = {}
    for name in names:
        prediction = study.predictions[name]
        try:
            unit, scale = registered_unit(study, prediction)
            predicts, falsifier = thresholds(prediction, unit)
        except RefusedError:
            continue
        report = _report(study, prediction, (predicts, falsifier), scale)
        designs[name] = Design(unit=unit, predicts=predicts, falsifier=falsifier, report=report)
    return designs


def _report(
    study: Study, prediction: Prediction, regions: tuple[Region, Region], scale: float
) -> DesignReport:
    """Return what the design check says; a conjunction is as good as its members, which are checked."""
    if prediction.members:
        return DesignReport()
    report = check_design(prediction, study.experiments[prediction.experiment], *regions, scale=scale)
    if prediction.formula is None:
        return report
    return msgspec.structs.replace(report, problems=(*report.problems, *_too_few(study, prediction)))


def _too_few(study: Study, prediction: Prediction) -> Iterable[Problem]:
    """Return PR034 for each experiment of a formula with too few repeats for the mean of an input."""
    for name in prediction.experiments:
        arms = study.experiments[name].arms
        counts = [arms[arm].repeats for arm in arms_of(prediction, name)]
        allowed = study.experiments[name].table.max_excluded
        n = min((count - allowed for count in counts if count is not None), default=SMALLEST_N)
        if n < SMALLEST_N:
            left = f"{max(0, n)} of {quoted(name)}" + (" that max-excluded leaves" if allowed else "")
            message = f"can never be decided with {left}: an input needs {SMALLEST_N} repeats"
            yield _problem(study, prediction.id, "PR034", message, "Raise repeats.")


def _of_designs(study: Study, designs: Mapping[str, Design]) -> Iterable[Problem]:
    """Return what is wrong with the designs; the check knows the line, and not the file."""
    problems = (problem for design in designs.values() for problem in design.report.problems)
    return (dataclasses.replace(problem, path=str(study.path)) for problem in problems)


def _on_withdrawn(
    study: Study, registered: Mapping[str, LockEntry], names: Iterable[str]
) -> Iterable[Problem]:
    """Return a problem for each prediction that would rest on a withdrawn one, which supports nothing."""
    buried = {name for name, entry in registered.items() if entry.withdrawal is not None}
    for name in names if buried else ():
        before = predecessor(study.predictions[name], study.predictions)
        for other in rests_on(study, study.predictions[name]):
            is_open = other == before and registered[other].verdict == Verdict.INCONCLUSIVE
            if other in buried and not is_open:
                message = f"rests on {quoted(other)}, which is withdrawn"
                yield _problem(study, name, "PR007", message, "Let it rest on what stands.")


def _opposites(study: Study, new: Collection[str], registered: Mapping[str, LockEntry]) -> Iterable[Problem]:
    """Return a problem for each new prediction whose refutation would support another one that stands."""
    buried = {name for name, entry in registered.items() if entry.withdrawal is not None}
    standing = (one for one in study.predictions.values() if one.id not in buried)
    several = sorted(standing, key=lambda one: one.id in new)
    advice = "Whatever is found would support one of them; register the one that you expect."
    for other, one, how in clashes(Revision(study=study, prediction=each) for each in several):
        if how == "opposite" and one.prediction.id in new:
            message = f"predicts the opposite of {quoted(other.prediction.id)}"
            yield _problem(study, one.prediction.id, "PR036", message, advice)


def _vacuous(study: Study, names: Iterable[str]) -> Iterable[Problem]:
    """Return a problem for each prediction of what is the same whatever is measured."""
    advice = "Estimate what a measurement can change."
    for name in names:
        if is_vacuous(study.predictions[name]):
            yield _problem(study, name, "PR038", "is about a quantity that no measurement can change", advice)


def _unreadable(study: Study, names: Collection[str]) -> Iterable[Problem]:
    """Return a problem for each experiment that is now registered, or is nobody's yet, and can't be read."""
    new = {name for one in names for name in study.predictions[one].experiments}
    known = {name for one in study.predictions.values() for name in one.experiments}
    asked = (each for name, each in study.experiments.items() if name in new or name not in known)
    return (problem for each in asked if (problem := unreadable_format(study, each)))


def _late(study: Study, new: Iterable[str]) -> Iterable[Problem]:
    """Return PR025 for each claim that would join a family under Holm's procedure once it has evidence."""
    claims = [name for name in new if study.predictions[name].table.kind == "claim"]
    if study.table.family != "holm" or not claims:
        return
    seals = (file.name for files in read_study_evidence(study).values() for file in files if _seals(file))
    if first := next(seals, None):
        advice = "Give it a study of its own: a family is complete when its first series begins."
        message = f"can't join the family: evidence {quoted(first)} of a member is there"
        yield from (_problem(study, name, "PR025", message, advice) for name in claims)


def _seals(file: SessionFile) -> bool:
    """Whether a session serves registered predictions, as pilots and explorations do not."""
    return file.header is not None and bool(file.header.predictions) and bool(file.attempts)


def register_new(study: Study) -> Review:
    """Add what is new to the study's lock and return what was found.

    Raises:
        StudyError: All that is wrong with the study, or differs from what is registered; nothing is written.
    """
    found = review(study)
    problems = [*found.problems, *(removed(study, found.registration) if found.registration else ())]
    if problems or found.registration is None:
        raise StudyError(problems)
    if found.registration.new:
        write_lock(study.lock_path, register(study, found.lock, found.registration))
    return found


def unregistered(study: Study) -> list[Problem]:
    """Return everything in which a study and its lock differ, and all that ``lock`` would refuse."""
    found = review(study)
    registration = found.registration
    if registration is None:
        return list(found.problems)
    advice = "pytest-prereg lock"
    new = (_problem(study, name, "PR102", "is not registered", advice) for name in registration.new)
    return [*found.problems, *new, *removed(study, registration)]


def tag_registrations(study: Study) -> Tagged:
    """Tag HEAD as having all that a study registers now; an earlier tag of the same is left where it is.

    Raises:
        StudyError: Something is not registered as it stands, or HEAD does not have the lock (PR107).
        HistoryError: Git can't tell (PR212).
    """
    command = commit_command(study, list(study.predictions), "Register")
    if problems := unregistered(study):
        message = "not all is registered as it stands, so nothing was tagged"
        advice = f"pytest-prereg lock && {command}"
        last = Problem(code="PR107", path=str(study.lock_path), message=message, advice=advice)
        raise StudyError([*problems, last])
    return tag(study, command)


def tried(study: Study, names: Iterable[str]) -> dict[str, list[str]]:
    """Return which of some predictions say that no data were seen, by the experiment that has pilots."""
    pilots = {
        name
        for name, files in read_study_evidence(study).items()
        if any(file.header is not None and file.header.origin == "pilot" for file in files)
    }
    unsaid = [study.predictions[name] for name in names if study.predictions[name].table.data_seen == "none"]
    by_experiment = {name: [one.id for one in unsaid if name in one.experiments] for name in sorted(pilots)}
    return {name: ids for name, ids in by_experiment.items() if ids}


def removed(study: Study, registration: Registration) -> list[Problem]:
    """Return a problem for each prediction that is registered and no longer in the study."""
    message = "is registered and no longer here"
    return [_problem(study, name, "PR203", message, put_back(name)) for name in registration.removed]


def put_back(name: str) -> str:
    """Return what to do about a prediction that is registered and that the study no longer has."""
    withdraw = f"pytest-prereg withdraw {shlex.quote(name)} --reason '…'"
    return (
        f"Put it back, or say why it goes: {withdraw}\n"
        "Under another name it is another prediction, beside it."
    )


def _problem(study: Study, name: str, code: str, message: str, advice: str) -> Problem:
    prediction = study.predictions.get(name)
    return Problem(
        code=code,
        path=str(study.path),
        line=prediction.line if prediction else None,
        message=f"{quoted(name)} {message}",
        advice=advice,
    )


def amend_registered(study: Study, names: Collection[str], reason: str) -> list[Amended]:
    """Register predictions as they stand now in place of what was registered, with the reason in the lock.

    Returns:
        What data there were for each of them, in their order.

    Raises:
        UsageError: There is no reason (PR005), or no prediction of an id (PR007).
        StudyError: If one is unregistered or unchanged, or could not be registered as it stands; if evidence
            is gone that may be of one (PR207), or refutes what the lock has another verdict on (PR211).
    """
    reason = given_reason(reason)
    found = review(study, amended=names)
    if found.lock is None:
        message = f"nothing is registered yet, so {listed(names)} can't be amended"
        raise StudyError(Problem(code="PR007", path=str(study.lock_path), message=message))
    amend(found.lock, study, names, reason)  # what is wrong with the names is told before all else
    own = [problem for problem in found.problems if problem.code not in ("PR103", "PR104")]
    if own:
        raise StudyError(own)
    data = data_of(study, found.lock, names)
    verdicts = {one.prediction: one.verdict for one in data if one.verdict is not None}
    write_lock(study.lock_path, amend(found.lock, study, names, reason, verdicts=verdicts))
    return data


def changed_of(study: Study, experiment: Experiment) -> list[str]:
    """Return the registered predictions of an experiment that are no longer what was registered.

    Raises:
        StudyError: PR105, if there is none.
    """
    changed = plan_registration(study, read_lock(study.lock_path)).changed
    names = [name for name in changed if experiment.id in study.predictions[name].experiments]
    if not names:
        message = f"no registered prediction of {quoted(experiment.id)} has changed"
        raise StudyError(Problem(code="PR105", path=str(study.path), message=message))
    return names


def changed_under(study: Study, names: Iterable[str]) -> list[str]:
    """Return the ids that names stand for: of a for-each table those that are no longer what was registered.

    A name of which nothing has changed is returned as all that it stands for; one that is unknown as it is.
    """
    changed = plan_registration(study, read_lock(study.lock_path)).changed
    stood_for = ((name, named(name, study.predictions)) for name in names)
    chosen = ([one for one in ids if one in changed] or ids or (name,) for name, ids in stood_for)
    return list(dict.fromkeys(one for several in chosen for one in several))


def bound_predictions(study: Study, experiment: Experiment) -> dict[str, str]:
    """Return the digests that evidence of an experiment is bound to: those in the lock, by prediction.

    Raises:
        StudyError: No prediction of the experiment is registered, or all are withdrawn (PR102); one has
            changed (PR104).
    """
    lock = read_lock(study.lock_path)
    registered = lock.predictions if lock else {}
    names = [each.id for each in study.predictions.values() if experiment.id in each.experiments]
    known = {name: registered[name] for name in names if name in registered}
    bound = {name: entry.digest for name, entry in known.items() if entry.withdrawal is None}
    if not bound:
        every = "every prediction of {} is withdrawn" if known else "no prediction of {} is registered"
        message = f"{every.format(quoted(experiment.id))}, so nothing was taken in"
        advice = "First what is expected, then the data: pytest-prereg lock, and commit."
        raise StudyError(Problem(code="PR102", path=str(study.path), message=message, advice=advice))
    changed = plan_registration(study, lock).changed
    if problems := [problem for name in bound for problem in changed.get(name, ())]:
        raise StudyError(problems)
    return bound


def uncommitted(study: Study, bound: Mapping[str, str]) -> list[Problem]:
    """Return a problem for registrations that the commit at HEAD does not have: evidence would come first."""
    repository = Repository.find(study.folder)
    if repository is None or repository.head() is None:
        return []
    lock = committed_lock(repository, study)
    there = {name: entry.digest for name, entry in lock.predictions.items()} if lock else {}
    missing = [name for name, digest in bound.items() if there.get(name) != digest]
    if not missing:
        return []
    message = (
        f"{listed(missing)}: registered, but not committed; its verdict will say that the data came first"
    )
    advice = f"Commit it by itself, first: {commit_command(study, missing, 'Register')}"
    return [Problem(code="PR102", path=str(study.path), message=message, advice=advice)]


def commit_command(
    study: Study,
    names: Collection[str],
    verb: str,
    *,
    also: Iterable[Path] = (),
    pages: Sequence[Path] = (),
) -> str:
    """Return the git command that commits the registration of predictions, as typed in the current folder.

    Args:
        study: Theirs.
        names: Their ids; the message names those of them that the commit touches.
        verb: What the message begins with.
        also: More that belongs to the commit.
        pages: Those that cite the study and are written anew first.
    """
    shown = _touched(study, names) or list(names)
    what = ", ".join(shown) if len(shown) <= _NAMED else f"{len(shown)} predictions of {study.id}"
    places = [
        Place(study.path.with_name(f"{study.path.stem}."), "*"),
        *(Place(folder, "/*.py") for folder in _modules(study, names)),
        *(Place(path) for path in (*_attributes(study), *also, *pages)),
    ]
    evidence = newest(read_study_evidence(study)) if also else []
    needed = [study.lock_path, *evidence]
    command = git_commands.commit_command(study.folder, places, f"{verb} {what}", needed=needed)
    return f"{cite_first(study, pages)}{command}"


def _touched(study: Study, names: Iterable[str]) -> list[str]:
    """Return the predictions that HEAD's lock has otherwise than here, or not; else those with other code."""
    with contextlib.suppress(StudyError):  # a lock that can't be read is told of where it is needed
        there, here = committed_lock(Repository.find(study.folder), study), read_lock(study.lock_path)
        before, after = (lock.predictions if lock else {} for lock in (there, here))
        several = [*names]
        touched = [one for one in several if not _is_there(study, one, before.get(one), after.get(one))]
        return touched or [one for one in several if _has_loose_code(study, one)]
    return []


def _has_loose_code(study: Study, name: str) -> bool:
    """Whether HEAD lacks code of a prediction that is registered there."""
    repository, prediction = Repository.find(study.folder), study.predictions.get(name)
    if repository is None or prediction is None:
        return False
    used = (study.experiments[one] for one in prediction.experiments)
    return any(_uncommitted(repository, study, one) for one in used)


def _is_there(study: Study, name: str, before: LockEntry | None, after: LockEntry | None) -> bool:
    """Whether HEAD's lock registers a prediction as the lock here does, and that as it is written."""
    if before is None or after is None or _registers(before) != _registers(after):
        return False
    prediction = study.predictions.get(name)
    return prediction is None or registration_digest(study, prediction) == after.digest


def _registers(entry: LockEntry) -> tuple[Any, ...]:
    """What of an entry is no verdict."""
    return entry.digest, entry.claim, entry.experiment, entry.amendments, entry.withdrawal


def _attributes(study: Study) -> list[Path]:
    """Return what tells git how to merge locks, as long as a commit would not have it."""
    path = study.folder / ATTRIBUTES_FILE
    repository = Repository.find(study.folder)
    is_news = path.is_file() and (repository is None or repository.differs(path.resolve()))
    return [path] if is_news else []


def _modules(study: Study, names: Iterable[str]) -> list[Path]:
    """Return the folders of the predictions' experiments, and of what these import and HEAD does not have."""
    known = [study.predictions[name] for name in names if name in study.predictions]
    used = [study.experiments[each] for each in sorted({each for one in known for each in one.experiments})]
    paths = (each.source.path for each in used if each.source is not None)
    own = {path.parent for path in paths if path is not None}
    repository = Repository.find(study.folder)
    imported = {
        path.parent
        for each in used
        if repository is not None
        for path in _uncommitted(repository, study, each)
    }
    return sorted({*own, *(imported - {folder.resolve() for folder in own})})


def _uncommitted(repository: Repository, study: Study, experiment: Experiment) -> list[Path]:
    """Return the modules that HEAD lacks; where the subject is not there, which has been told, none."""
    with contextlib.suppress(StudyError):
        return uncommitted_code(repository, study, experiment)
    return []
