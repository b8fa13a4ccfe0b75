"""``predictions.lock``: what was registered and what was found, one TOML table per prediction.

Written in one form only, sorted and without anything about the file as a whole, so that two branches that
register or judge different predictions merge.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import re
import shlex
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import tomli_w

from pytest_prereg.errors import Problem, StudyError
from pytest_prereg.registry.plain_files import read_plain
from pytest_prereg.registry.refusals import listed, quoted, suggestion, typed
from pytest_prereg.registry.toml import read, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.registry.positions import Positions

VERSION = 1
HEADER = "# Written by pytest-prereg; do not edit by hand.\n"

Digest = Annotated[str, msgspec.Meta(pattern=r"^sha256:[0-9a-f]{64}$")]

VERDICTS = ("supported", "refuted", "inconclusive")
REASONS = (
    "integrity",
    "required",
    "instrument",
    "scope",
    "infrastructure",
    "task-failed",
    "excluded",
    "n-too-small",
    "unbounded",
    "censored",
    "rare-event",
    "resolution",
    "linearisation",
    "drift",
    "straddles",
)
"""As the judge has them, and nothing else: a lock is read aloud in terminals and on pages."""

VerdictWord = Annotated[str, msgspec.Meta(pattern=rf"^(?:{'|'.join(VERDICTS)})\Z")]
ReasonWord = Annotated[str, msgspec.Meta(pattern=rf"^(?:{'|'.join(REASONS)})\Z")]
Code = Annotated[str, msgspec.Meta(pattern=r"^PR[0-9]{3}\Z")]
_CLOSED = {"verdict": VERDICTS, "reason": REASONS}

_POINT = r"[A-Za-z_][A-Za-z0-9_]*=[A-Za-z0-9._+-]+"
ID = re.compile(rf"[a-z0-9][a-z0-9_-]*(?:\[{_POINT}(?:,{_POINT})*\])?")
"""Ids of predictions, those that ``for-each`` makes included."""


class Entry(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Base of the lock's tables: closed, since an unknown key may bind something."""


class Amendment(Entry, kw_only=True, frozen=True):
    """A change of what was registered, and why; entries are only ever appended."""

    old: str
    new: str
    reason: str
    at: str
    """UTC, ISO 8601; for people, never for order."""
    key: Literal["digest", "claim", "experiment"] = "digest"
    """Which of the entry's digests changed."""
    verdict: VerdictWord | None = None
    """The verdict recorded, or given by the evidence, when the digest changed: amended after data."""


class Withdrawal(Entry, kw_only=True, frozen=True):
    """The tombstone of a prediction: what has to be known of it when its text is gone."""

    reason: str
    at: str
    """UTC, ISO 8601; for people, never for order."""
    kind: Literal["claim", "guard"] = "claim"
    basis: Literal["measured", "model", "identity"] = "measured"
    standing: Literal["confirmatory", "replication"] = "confirmatory"
    """Of the verdict, if there is one: what is exploratory is recorded nowhere."""
    credence: float | None = None


class LockEntry(Entry, kw_only=True, frozen=True):
    """What is registered of one prediction, and once judged its verdict."""

    digest: Digest
    """Of the registration."""
    claim: Digest
    """Of the claim's words."""
    experiment: Digest | None = None
    """Source digest of the experiment; ``None`` for one that is fed by import."""
    registered: str
    """UTC, ISO 8601; for people, never for order."""
    unit: str
    """Of the estimate."""
    scale: float = 1.0
    """Factor from the quantity's natural unit to ``unit``."""
    verdict: VerdictWord | None = None
    reason: ReasonWord | None = None
    estimate: float | None = None
    interval: tuple[float, float] | None = None
    n: int | None = None
    series: int | None = None
    evidence: Digest | None = None
    """Of the repeats used."""
    method: str | None = None
    amendments: tuple[Amendment, ...] = msgspec.field(default=(), name="amendment")
    withdrawal: Withdrawal | None = None

    @property
    def was_refuted(self) -> bool:
        """Whether it was refuted when what is registered was amended: nobody amends that away."""
        return any(each.key == "digest" and each.verdict == "refuted" for each in self.amendments)


Cause = Literal["instrument", "subject", "tool", "service"]


class Exclusion(Entry, kw_only=True, frozen=True):
    """A repeat that its author takes out when its values could be seen, and why."""

    repeat: str
    """Its id."""
    reason: str
    cause: Cause
    """What failed."""
    at: str
    """UTC, ISO 8601; for people, never for order."""


class Void(Entry, kw_only=True, frozen=True):
    """A series that its author declares broken, and why; what it says stays to be seen."""

    series: str
    """``experiment/number``."""
    reason: str
    at: str
    """UTC, ISO 8601; for people, never for order."""


class Acknowledgement(Entry, kw_only=True, frozen=True):
    """A finding that a person has looked at, and why it may stand; of that very finding, not of its kind."""

    code: Code
    id: str
    about: str = ""
    """What exactly: see ``Finding.about``."""
    reason: str
    at: str = ""
    """UTC, ISO 8601; for people, never for order."""


class Lock(Entry, kw_only=True, frozen=True):
    """A whole ``predictions.lock``."""

    version: int = VERSION
    study: str
    predictions: dict[str, LockEntry] = {}
    exclusions: tuple[Exclusion, ...] = msgspec.field(default=(), name="exclusion")
    voided: tuple[Void, ...] = ()
    acknowledged: tuple[Acknowledgement, ...] = ()


def render_lock(lock: Lock) -> str:
    """The lock's text: predictions by id, keys in a fixed order, what says nothing left out."""
    tables: dict[str, Any] = {"version": lock.version, "study": lock.study}
    tables["predictions"] = {name: _stated(lock.predictions[name]) for name in sorted(lock.predictions)}
    lists: dict[str, list[dict[str, Any]]] = {
        "exclusion": [_stated(entry) for entry in lock.exclusions],
        "voided": [_stated(entry) for entry in lock.voided],
        "acknowledged": [_stated(entry) for entry in lock.acknowledged],
    }
    for name, entries in lists.items():
        if entries:
            tables[name] = sorted(entries, key=lambda entry: json.dumps(entry, sort_keys=True))
    return HEADER + tomli_w.dumps(tables)


def _stated(entry: msgspec.Struct) -> dict[str, Any]:
    stated = {}
    for name, key, default in _keys(type(entry)):
        value = getattr(entry, name)
        if value == default:
            continue
        if isinstance(value, tuple):
            value = [_stated(each) if isinstance(each, msgspec.Struct) else each for each in value]
        stated[key] = _stated(value) if isinstance(value, msgspec.Struct) else value
    return stated


@cache
def _keys(kind: type[msgspec.Struct]) -> list[tuple[str, str, Any]]:
    """Attribute, key and default of every field of a table, in the order in which they are written."""
    return [(field.name, field.encode_name, field.default) for field in msgspec.structs.fields(kind)]


def read_lock(path: Path) -> Lock | None:
    """The lock at ``path``; ``None`` where there is none.

    Raises:
        StudyError: As :func:`parse_lock`.
    """
    try:
        data = read_plain(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StudyError(_unreadable(shown(path), None, f"can't be read: {error.strerror}")) from error
    return parse_lock(data, shown(path))


def parse_lock(data: str | bytes, path: str) -> Lock:
    """The lock that ``data`` holds.

    Args:
        data: The whole file, as text or as git or the disk has it.
        path: The file, for messages.

    Raises:
        StudyError: Everything that is wrong: conflict markers (PR010), a key or an id given twice (PR002),
            else PR011: no TOML, an unknown version or key, a value of the wrong kind.
    """
    try:
        text = (data if isinstance(data, str) else data.decode("utf-8")).removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise StudyError(_unreadable(path, None, "can't be read: it is not UTF-8 text")) from None
    try:
        lock = msgspec.convert(tomllib.loads(text), Lock)
    except (ValueError, RecursionError):
        raise StudyError(_problems(text, shown(Path(path)))) from None
    is_legible = all(map(ID.fullmatch, lock.predictions)) and not any(map(_odd, lock.predictions.values()))
    if lock.version != VERSION or not is_legible:
        raise StudyError(_problems(text, shown(Path(path))))
    return lock


def write_lock(path: Path, lock: Lock) -> None:
    """Writes the lock in one step: who reads meanwhile, or after a crash, has the old one or the new one.

    Raises:
        StudyError: It can't be written (PR011); the old one is untouched.
    """
    target = path.resolve()
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(render_lock(lock))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        message = f"the lock can't be written: {error.strerror}"
        raise StudyError(Problem(code="PR011", path=shown(path), message=message)) from error


def _sync_folder(folder: Path) -> None:
    """Makes the folder's entries last, which syncing a file in it does not."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unreadable(path: str, line: int | None, message: str, advice: str | None = None) -> Problem:
    advice = advice or f"Nobody has to edit it: restore it with git checkout HEAD -- {typed(path)}"
    return Problem(code="PR011", path=path, line=line, message=f"unreadable lock: {message}", advice=advice)


def _problems(text: str, path: str) -> list[Problem]:
    """Everything that is wrong with a lock that could not be read in one go."""
    try:
        data, positions, _ = read(text, path)
    except StudyError as error:
        return [_of_text(error.problems[0], path)]
    version = data.get("version", VERSION)
    if version != VERSION:
        message = (
            f"it is in version {quoted(version)} of the format, and this release reads version {VERSION}"
        )
        advice = "A newer pytest-prereg wrote it; install that one."
        return [_unreadable(path, positions.line("version"), message, advice)]
    entries = data.get("predictions")
    if not isinstance(entries, dict):
        return list(_of_table(data, Lock, (), positions, path))
    problems = list(_of_table(data | {"predictions": {}}, Lock, (), positions, path))
    for name, table in entries.items():
        if not ID.fullmatch(name):
            line = positions.line("predictions", name)
            problems.append(_unreadable(path, line, f"{quoted(name)} is no id of a prediction"))
        problems += _of_table(table, LockEntry, ("predictions", name), positions, path)
    return problems or list(_odd_numbers(text, positions, path))


def _odd(entry: LockEntry) -> str | None:
    """The key of a number that no verdict has: it would be told as if it were one."""
    numbers = {"estimate": (entry.estimate or 0.0,), "interval": entry.interval or ()}
    return next((key for key, several in numbers.items() if any(map(math.isnan, several))), None)


def _odd_numbers(text: str, positions: Positions, path: str) -> Iterator[Problem]:
    for name, entry in msgspec.convert(tomllib.loads(text), Lock).predictions.items():
        if key := _odd(entry):
            line = positions.line("predictions", name, key)
            yield _unreadable(path, line, f"prediction {quoted(name)}: {quoted(key)}: nan is no number")


def _of_text(problem: Problem, path: str) -> Problem:
    if problem.code == "PR010":
        name = shlex.quote(path)
        advice = (
            "In a clone that knows how, locks are merged by prediction:\n"
            f"pytest-prereg init --merge-driver && git checkout -m -- {name} && git add {name}\n"
            "What still stands between markers then, both sides changed: keep one side of it whole."
        )
        return dataclasses.replace(problem, advice=advice)
    return problem if problem.code == "PR002" else _unreadable(path, problem.line, problem.message)


def _of_table(
    table: Any, kind: type[Entry], keys: tuple[str, ...], positions: Positions, path: str
) -> Iterator[Problem]:
    """What is wrong with one table; ``keys`` lead to it, and are empty for the whole file."""
    whose = f"prediction {quoted(keys[-1])}: " if keys else ""
    known = [field.encode_name for field in msgspec.structs.fields(kind)]
    unknown = [key for key in table if key not in known] if isinstance(table, dict) else []
    for key in unknown:
        message = f"{whose}unknown key {quoted(key)}{suggestion(key, known)}"
        yield _unreadable(path, positions.line(*keys, key), message)
    if unknown:
        return
    try:
        msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        key = re.match(r"\.(\w+)", place)
        label = f"{quoted(place[1:-1])}: " if key else ""
        if key and key[1] in _CLOSED and isinstance(value := table[key[1]], str):
            message = f"{quoted(value)} is none of {listed(_CLOSED[key[1]])}"
        line = positions.line(*keys, *(key.groups() if key else ()))
        yield _unreadable(path, line, f"{whose}{label}{message[0].lower()}{message[1:]}")
