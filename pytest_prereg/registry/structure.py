"""The shape of a prediction file: which keys there are, and what type each takes.

A file that fits is converted in one step. For one that doesn't, a second, slower pass finds everything that
is wrong, with its line, and drops it, so that what is left can still be checked for the rest.
"""

from __future__ import annotations

import re
import typing
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.errors import Problem
from pytest_prereg.registry.expectations import keys_of, pattern_of, plain, table_of, wanted
from pytest_prereg.registry.meant import COMMANDS, as_it_would_be_written, command_meant
from pytest_prereg.registry.refusals import RefusedError, nearest, quoted, suggestion
from pytest_prereg.registry.tables import PredictionsFile, Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_prereg.registry.positions import Path, Positions

_Read = typing.TypeVar("_Read")
_Kind = typing.TypeVar("_Kind", bound=Table)

PLACEHOLDERS: dict[str, Any] = {
    "study": {"id": "unnamed"},
    "id": "unnamed",
    "unit": "1",
    "value": 0.0,
    "command": [],
}
"""Stand in for required keys that are missing or wrong, so that the rest of their table is still checked."""
RUN = frozenset({"fixture", "command", "read", "params", "arms", "sweep", "service"})
"""Keys of what is run, on which much else rests: misspelt, they are read as what they were meant to be."""


class Complaints:
    """Everything that is wrong with one file, gathered while it is read."""

    def __init__(self, path: str, positions: Positions) -> None:
        self.path = path
        self.positions = positions
        self.problems: list[Problem] = []
        self._told: set[Path] = set()

    def add(self, keys: Path, code: str, message: str, advice: str | None = None) -> None:
        """A problem at the line of ``keys``; what follows from it is not to be told as well."""
        self._told.add(keys)
        line = self.positions.line(*keys)
        self.problems.append(Problem(code=code, path=self.path, line=line, message=message, advice=advice))

    def refuse(self, keys: Path, label: str, refusal: RefusedError) -> None:
        """A refusal at the line of ``keys``; ``label`` says whose it is."""
        self.add(keys, refusal.code, f"{label}: {refusal}", refusal.advice)

    def attempt(self, keys: Path, label: str, read: Callable[..., _Read], *arguments: object) -> _Read | None:
        """What ``read`` returns; ``None`` once its refusal was told at the line of ``keys``."""
        try:
            return read(*arguments)
        except RefusedError as refusal:
            self.refuse(keys, label, refusal)
            return None

    def mute(self, keys: Path) -> None:
        """Note that ``keys`` was meant to be there, so that its absence is not a second problem."""
        self._told.add(keys)

    def told(self, *keys: str | int) -> bool:
        """Whether something was said about these very keys."""
        return keys in self._told


def checked_file(data: dict[str, Any], complaints: Complaints) -> PredictionsFile:
    """The file as tables; whatever does not fit is complained about and left out."""
    try:
        return msgspec.convert(data, PredictionsFile)
    except msgspec.ValidationError:
        return msgspec.convert(_table(PredictionsFile, data, (), complaints), PredictionsFile)


def checked_table(kind: type[_Kind], data: dict[str, Any], keys: Path, complaints: Complaints) -> _Kind:
    """A table that the file keeps as it is written, such as one inside of an arm, as :func:`checked_file`."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError:
        return msgspec.convert(_table(kind, data, keys, complaints), kind)


def label(keys: Path) -> str:
    """How a message names the table at ``keys``: ``prediction "x"``, ``[study]``."""
    if len(keys) < 2:  # noqa: PLR2004
        return f"[{keys[0]}]" if keys else "the file"
    named = f"{str(keys[0]).removesuffix('s')} {quoted(keys[1])}"
    return f"{named}, {quoted('.'.join(str(key) for key in keys[2:]))}" if len(keys) > 2 else named  # noqa: PLR2004


def _table(kind: type[Table], data: dict[str, Any], keys: Path, complaints: Complaints) -> dict[str, Any]:
    """What is sound of ``data``, with stand-ins for required keys that are not."""
    known, sound = keys_of(kind), {}
    for key, value in data.items():
        if key not in known:
            meant = _unknown(key, list(known), keys, complaints)
            if meant in RUN and meant not in data and _fits(known[meant].type, value):
                sound[meant] = value
        elif (kept := _value(known[key].type, value, (*keys, key), complaints)) is not None:
            sound[key] = kept
    for key, field in known.items():
        if field.required and key not in sound:
            sound[key] = PLACEHOLDERS.get(key, "")
            if not complaints.told(*keys, key):
                complaints.add(
                    (*keys, key), "PR004", f"{label(keys)} lacks {quoted(key if keys else f'[{key}]')}"
                )
    return sound


def _unknown(key: str, known: list[str], keys: Path, complaints: Complaints) -> str | None:
    """Complain about a key; return the one that it was meant to be, if there is such a one."""
    noun = "key" if keys else "table"
    complaints.add(
        (*keys, key), "PR003", f"{label(keys)} has unknown {noun} {quoted(key)}{suggestion(key, known)}"
    )
    if meant := nearest(key, known):
        complaints.mute((*keys, meant))
    return meant


def _fits(kind: Any, value: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _value(kind: Any, value: Any, keys: Path, complaints: Complaints) -> Any:
    """What is sound of the value of one key; ``None`` if nothing is."""
    if isinstance(value, dict):
        for member in plain(kind):
            if table_of(member):
                return _table(member, value, keys, complaints)
            if typing.get_origin(member) is dict:
                return _entries(member, value, keys, complaints)
    if not _fits(kind, value):
        code = "PR006" if pattern_of(kind) and isinstance(value, str) else "PR005"
        written = as_it_would_be_written(str(keys[-1]), value)
        complaints.add(keys, code, _wrong(kind, value, keys), written and f"Write {written}")
        return command_meant(value) if keys[-1] in COMMANDS else None
    return value


def _entries(member: Any, value: dict[str, Any], keys: Path, complaints: Complaints) -> dict[str, Any]:
    """The sound entries of a table whose keys a user chooses."""
    key_kind, kind = typing.get_args(member)
    pattern, sound = pattern_of(key_kind), {}
    for key, inner in value.items():
        kept = _value(kind, inner, (*keys, key), complaints)
        if pattern and not re.search(pattern, key):
            complaints.add((*keys, key), "PR006", _bad_name(key, keys, pattern))
        elif kept is not None:
            sound[key] = kept
    return sound


def _bad_name(key: str, keys: Path, pattern: str) -> str:
    noun = str(keys[-1]).removesuffix("s")
    if not pattern.startswith("^[a-z0-9]"):
        return f"{noun} name {quoted(key)} is no Python identifier, so no quantity could name it"
    better = re.sub(r"[^a-z0-9_-]+", "-", key.lower()).strip("-_")
    hint = f", such as {quoted(better)}" if better else ""
    return f'{noun} id {quoted(key)} must be lower-case letters, digits, "-" and "_"{hint}'


def _wrong(kind: Any, value: Any, keys: Path) -> str:
    owner = label(keys[:-1])
    shown = "a table" if isinstance(value, dict) else "a list" if isinstance(value, list) else quoted(value)
    if keys[-1] in COMMANDS and (others := _no_text(value)):
        shown = f"a list with {others[0]}, which is no text"
    hint = ""
    choices = [choice for member in plain(kind) for choice in _choices(member)]
    if choices and isinstance(value, str) and (meant := nearest(value, choices)):
        hint = f"; did you mean {quoted(meant)}?"
    if isinstance(value, list) and keys[-1] == "gpu":
        hint = "; with a choice the hardware is not fixed, and what is compared may be the hardware"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        hint = f"; write {quoted(f'[{keys[-1]}.NAME]')}, with single brackets"
    return f"{owner}: {quoted(keys[-1])} is {shown}; it must be {wanted(kind)}{hint}"


def _no_text(value: Any) -> list[Any]:
    """Numbers in a list, as they are written."""
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, int | float) and not isinstance(item, bool)]


def _choices(member: Any) -> tuple[Any, ...]:
    return typing.get_args(member) if typing.get_origin(member) is typing.Literal else ()
