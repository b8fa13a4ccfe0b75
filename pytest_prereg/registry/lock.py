"""What registering and amending change in a lock; nothing registered is ever overwritten."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pytest_prereg.errors import Problem, StudyError, UsageError, one_line
from pytest_prereg.registry.digest import claim_digest, registration_digest, source_of_all
from pytest_prereg.registry.lock_file import (
    Acknowledgement,
    Amendment,
    Exclusion,
    Lock,
    LockEntry,
    Void,
    Withdrawal,
    parse_lock,
    read_lock,
    render_lock,
    write_lock,
)
from pytest_prereg.registry.refusals import RefusedError, listed, quoted, suggestion, typed
from pytest_prereg.registry.sources import source_digest
from pytest_prereg.registry.toml import shown
from pytest_prereg.registry.units import registered_unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_prereg.registry.model import Prediction, Study

__all__ = [
    "Acknowledgement",
    "Amendment",
    "Exclusion",
    "Lock",
    "LockEntry",
    "Registration",
    "Void",
    "Withdrawal",
    "amend",
    "lock_of",
    "parse_lock",
    "plan_registration",
    "read_lock",
    "refused_unit",
    "register",
    "render_lock",
    "taken_id",
    "write_lock",
    "wrong_unit",
]

Key = Literal["digest", "claim", "experiment"]

_NONE: Mapping[str, str] = {}

CHANGED: dict[Key, tuple[str, str]] = {
    "digest": ("PR104", "is no longer what was registered"),
    "claim": ("PR104", "no longer claims it in the words that were registered"),
    "experiment": ("PR103", "would run other code than was registered: experiment {experiment} changed"),
}
"""Code and wording of a difference between a study and its lock."""


class Registration(msgspec.Struct, kw_only=True, frozen=True):
    """How a study differs from its lock."""

    new: dict[str, LockEntry]
    """Entries to add."""
    unchanged: tuple[str, ...]
    changed: dict[str, tuple[Problem, ...]]
    """What no longer agrees, by prediction: PR104 (text, numbers, settings, or the id of something that was
    withdrawn), PR103 (code)."""
    removed: tuple[str, ...]
    """Registered, not withdrawn, and no longer in the study."""
    withdrawn: tuple[str, ...]
    """Withdrawn, and still in the study."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything in ``changed``, in the order of the study."""
        return tuple(problem for problems in self.changed.values() for problem in problems)


def lock_of(study: Study) -> Lock | None:
    """The study's lock; ``None`` where it has none.

    Raises:
        StudyError: It can't be read, or is another study's (PR011).
    """
    lock = read_lock(study.lock_path)
    _entries(study, lock)
    return lock


def wrong_unit(study: Study, prediction: Prediction, entry: LockEntry) -> Problem | None:
    """PR104, where an entry shows a verdict in another unit, or factor, than its registration gives."""
    unit, scale = registered_unit(study, prediction)
    if (entry.unit, entry.scale) == (unit, scale):
        return None
    has = f"unit {quoted(entry.unit)} and scale {entry.scale:g}"
    message = f"{quoted(prediction.id)} has {has} there, and was registered with {quoted(unit)} and {scale:g}"
    advice = f"Nobody has to edit it: restore it with git checkout HEAD -- {typed(shown(study.lock_path))}"
    return Problem(code="PR104", path=shown(study.lock_path), message=message, advice=advice)


def taken_id(study: Study, prediction: Prediction, entry: LockEntry) -> Problem | None:
    """PR104, where something else stands in the study under the id of what was withdrawn."""
    if entry.withdrawal is None or entry.digest == registration_digest(study, prediction):
        return None
    name = quoted(prediction.id)
    return Problem(
        code="PR104",
        path=shown(study.path),
        line=prediction.line,
        message=f"{name} was withdrawn, and this is not what was: {one_line(entry.withdrawal.reason)}",
        advice="A tombstone keeps its id for life: give this one another, and leave the old one as it was.",
    )


def refused_unit(study: Study, prediction: Prediction, refusal: RefusedError) -> Problem:
    """Return what to tell of a prediction whose units don't go together."""
    return Problem(
        code=refusal.code,
        path=shown(study.path),
        line=prediction.line,
        message=f"prediction {quoted(prediction.id)}: {refusal}",
        advice=refusal.advice,
    )


def plan_registration(study: Study, lock: Lock | None, *, at: str | None = None) -> Registration:
    """What registering a study would add to its lock, and what it would leave as it is.

    Args:
        study: The study as it is written now.
        lock: Its lock, if it has one.
        at: Time of registration, UTC, ISO 8601; now unless given.

    Raises:
        StudyError: The lock is another study's (PR011); units of a new prediction don't agree (PR021); the
            subject or the data of one that is not decided are not there (PR042, PR043).
    """
    entries = _entries(study, lock)
    current = _Current(study, at or _now())
    known = {name: each for name, each in study.predictions.items() if name in entries}
    withdrawn = tuple(name for name in known if entries[name].withdrawal is not None)
    differing = {
        name: current.differences(prediction, entries[name])
        for name, prediction in known.items()
        if name not in withdrawn
    }
    gone = (name for name in entries if name not in study.predictions and entries[name].withdrawal is None)
    changed = {name: current.problems(known[name], keys) for name, keys in differing.items() if keys}
    taken = {name: (found,) for name in withdrawn if (found := taken_id(study, known[name], entries[name]))}
    return Registration(
        new=current.entries(each for name, each in study.predictions.items() if name not in entries),
        unchanged=tuple(name for name, keys in differing.items() if not keys),
        changed={name: (changed | taken)[name] for name in known if name in changed or name in taken},
        removed=tuple(sorted(gone)),
        withdrawn=withdrawn,
    )


def register(study: Study, lock: Lock | None, registration: Registration) -> Lock:
    """The lock with the new entries of a registration."""
    lock = lock or Lock(study=study.id)
    return msgspec.structs.replace(lock, predictions={**lock.predictions, **registration.new})


def amend(
    lock: Lock,
    study: Study,
    ids: Iterable[str],
    reason: str,
    *,
    at: str | None = None,
    verdicts: Mapping[str, str] = _NONE,
) -> Lock:
    """The lock with the study's current digests of some predictions, each change entered with its reason.

    A verdict that stood there is kept in the amendment and taken out of the entry where the registration
    itself changed: it was about something else. New words, or new code, leave it in place.

    Args:
        lock: The study's.
        study: As it is written now.
        ids: Which predictions.
        reason: Why, in the author's words.
        at: Time of the amendment, UTC, ISO 8601; now unless given.
        verdicts: What the evidence gives of what was registered, by id, where the lock records nothing yet.

    Raises:
        UsageError: There is no prediction of an id (PR007).
        StudyError: One is not registered, or withdrawn (PR007); nothing changed (PR105).
    """
    _entries(study, lock)
    names = list(dict.fromkeys(ids))
    if unknown := [_unknown(name, study) for name in names if name not in study.predictions]:
        raise UsageError(unknown)
    current = _Current(study, at or _now())
    changed: dict[str, LockEntry] = {}
    problems = []
    for name in names:
        if wrong := _not_amendable(name, study, lock):
            problems.append(wrong)
            continue
        entry = lock.predictions[name]
        keys = current.changed(study.predictions[name], entry)
        if not keys:
            message = f"{quoted(name)} is what was registered, so there is nothing to amend"
            problems.append(Problem(code="PR105", path=shown(study.path), message=message))
        stood = entry.verdict or verdicts.get(name)
        changed[name] = current.amended(study.predictions[name], entry, keys, reason, stood)
    if problems:
        raise StudyError(problems)
    return msgspec.structs.replace(lock, predictions={**lock.predictions, **changed})


def _unknown(name: str, study: Study) -> Problem:
    message = f"there is no prediction {quoted(name)}{suggestion(name, study.predictions, 'there are')}"
    return Problem(code="PR007", path=shown(study.path), message=message)


def _not_amendable(name: str, study: Study, lock: Lock) -> Problem | None:
    if name not in lock.predictions:
        message = f"{quoted(name)} is not registered yet, so there is nothing to amend"
    elif lock.predictions[name].withdrawal is not None:
        message = f"{quoted(name)} is withdrawn; register a new prediction instead"
    else:
        return None
    return Problem(code="PR007", path=shown(study.path), message=message)


def _entries(study: Study, lock: Lock | None) -> dict[str, LockEntry]:
    if lock is not None and lock.study != study.id:
        message = f"it registers study {quoted(lock.study)}, and this is study {quoted(study.id)}"
        advice = "A study keeps its id for life: the order of registration and evidence is kept by it."
        raise StudyError(Problem(code="PR011", path=shown(study.lock_path), message=message, advice=advice))
    return lock.predictions if lock is not None else {}


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class _Current:
    """A study's predictions as they would be registered now; what sources digest to is worked out once."""

    def __init__(self, study: Study, at: str) -> None:
        self.study = study
        self.at = at
        self.sources: dict[str, str | None] = {}

    def digests(self, prediction: Prediction) -> dict[Key, str | None]:
        """What an entry would hold for a prediction."""
        for name in prediction.experiments:
            if name not in self.sources:
                self.sources[name] = source_digest(self.study, self.study.experiments[name])
        sources = {name: self.sources[name] for name in prediction.experiments}
        return {**self.words(prediction), "experiment": source_of_all(sources)}

    def words(self, prediction: Prediction) -> dict[Key, str | None]:
        """What an entry would hold of the prediction itself."""
        return {
            "digest": registration_digest(self.study, prediction),
            "claim": claim_digest(prediction.claim),
        }

    def entries(self, predictions: Iterable[Prediction]) -> dict[str, LockEntry]:
        """New entries, by id."""
        entries: dict[str, LockEntry] = {}
        problems: list[Problem] = []
        for prediction in predictions:
            try:
                unit, scale = registered_unit(self.study, prediction)
                digests: dict[str, Any] = dict(self.digests(prediction).items())
            except RefusedError as refusal:
                problems.append(refused_unit(self.study, prediction, refusal))
                continue
            except StudyError as error:
                problems += (each for each in error.problems if each not in problems)
                continue
            entries[prediction.id] = LockEntry(**digests, registered=self.at, unit=unit, scale=scale)
        if problems:
            raise StudyError(problems)
        return entries

    def differences(self, prediction: Prediction, entry: LockEntry) -> list[Key]:
        """Which of an entry's digests are no longer those of the study.

        A claim that is decided stays decided whatever the code does later: then the code is no difference,
        and neither is it that the code's subject or data are gone.
        """
        if entry.verdict is None:
            return self.changed(prediction, entry)
        return [key for key, now in self.words(prediction).items() if now != getattr(entry, key)]

    def changed(self, prediction: Prediction, entry: LockEntry) -> list[Key]:
        """Which of an entry's digests are other ones now, decided or not."""
        return [key for key, now in self.digests(prediction).items() if now != getattr(entry, key)]

    def problems(self, prediction: Prediction, keys: Iterable[Key]) -> tuple[Problem, ...]:
        """What to tell of the differences, and what can be done about them."""
        experiment = listed(prediction.experiments, "or")
        advice = (
            f"Restore it, or say why it changed: pytest-prereg amend {typed(prediction.id)} --reason '...'"
        )
        return tuple(
            Problem(
                code=code,
                message=f"{quoted(prediction.id)} {difference.format(experiment=experiment)}",
                path=shown(self.study.path),
                line=prediction.line,
                advice=advice,
            )
            for code, difference in (CHANGED[key] for key in keys)
        )

    def amended(
        self, prediction: Prediction, entry: LockEntry, keys: list[Key], reason: str, stood: str | None
    ) -> LockEntry:
        """An entry with the digests of now and the change entered, without a verdict on what was claimed.

        ``stood`` is that verdict.
        """
        now = self.digests(prediction)
        new: dict[str, Any] = {key: now[key] for key in keys}
        amendments = [
            Amendment(
                old=getattr(entry, key) or "none",
                new=new[key] or "none",
                reason=reason,
                at=self.at,
                key=key,
                verdict=stood if key == "digest" else None,
            )
            for key in keys
        ]
        if "digest" in keys:
            entry_now = self.entries([prediction])[prediction.id]
            new = {"registered": entry.registered}
        else:
            entry_now = entry
        return msgspec.structs.replace(entry_now, **new, amendments=(*entry.amendments, *amendments))
