"""Adding to a study what was asked for in one line: checked as a whole before a byte is written."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pytest_prereg.audit.namesakes import ids_taken
from pytest_prereg.errors import Problem, StudyError
from pytest_prereg.evidence.disk import write_synced
from pytest_prereg.registration import review
from pytest_prereg.registry.command_lines import SHELL, CommandLine, split_command
from pytest_prereg.registry.commands import BUILT_IN
from pytest_prereg.registry.load import load_study, study_bytes
from pytest_prereg.registry.model import ONLY_ARM
from pytest_prereg.registry.one_line import NEW, OLD, Asked, asked_wrongly, study_header, study_tables
from pytest_prereg.registry.refusals import RefusedError, quoted
from pytest_prereg.registry.regions import parse_region
from pytest_prereg.registry.starter import add_attributes, study_id
from pytest_prereg.registry.toml import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pytest_prereg.registry.model import Study

_ID = re.compile(r"[a-z0-9][a-z0-9_-]*")
_LONGEST_ID = 100
_UNNAMED = "unnamed"
_NOT_TOML = ("PR001", "PR002")
_TOO_FEW = "PR034"


class Added(NamedTuple):
    """What was written, and where."""

    study: Study
    is_new: bool
    """Whether there was no study in the file before."""
    attributes: bool
    """Whether git was told how to keep locks and evidence, and had not been before."""
    commands: Mapping[str, CommandLine]
    """What is started in each arm."""


def add_to_study(asked: Asked, path: Path) -> Added:
    """Write the tables that were asked for into a new prediction file, or to the end of one.

    Args:
        asked: What was typed.
        path: The file; nothing that it has is touched.

    Raises:
        StudyError: All that is wrong with what was typed, or with the file; nothing is written.
        OSError: If the file can't be read or written.
    """
    if unwritable := list(_unwritable(asked)):
        raise StudyError(unwritable)
    there = study_bytes(path) if path.exists() else b""
    has_study = bool(there.strip())
    known, problems = _load(path) if has_study else (None, [])
    commands, refused = _split(asked)
    problems += [*_of_id(asked.id, known), *refused, *asked_wrongly(asked)]
    if problems:  # and all the rest, beside what has no part in it
        _, others = _checked(_beside(path), study_header(_UNNAMED), _stand_in(asked), commands)
        raise StudyError([*problems, *(_renamed(one, asked.id) for one in others)])
    begin = "" if has_study else study_header(_study_id(path))
    before = ("\n" if there and not there.endswith(b"\n") else "") + begin + "\n"
    study, problems = _checked(path, there.decode() + before, asked, commands, known)
    if study is None or problems:
        raise StudyError(problems)
    _append(path, before + _tables(asked, commands), "\r\n" if b"\r\n" in there else "\n")
    return Added(study, not has_study, not has_study and add_attributes(path.parent), commands)


def _unwritable(asked: Asked) -> Iterator[Problem]:
    """Yield a problem for each text that no file in UTF-8 can hold."""
    for value in msgspec.structs.astuple(asked):
        try:
            str(value).encode()
        except UnicodeEncodeError:
            yield Problem(code="PR009", message=f"{quoted(value)} is not UTF-8, as a prediction file is")


def _load(path: Path) -> tuple[Study | None, list[Problem]]:
    try:
        return load_study(path), []
    except StudyError as error:
        return None, list(error.problems)


def _append(path: Path, text: str, newline: str) -> None:
    """Write the whole text to the end of a file, or nothing of it."""
    is_new = not path.exists()
    with path.open("ab", buffering=0) as stream:
        size = stream.tell()
        try:
            write_synced(stream.fileno(), text.replace("\n", newline).encode())
        except BaseException:
            stream.truncate(size)
            if is_new:
                path.unlink()
            raise


def _study_id(path: Path) -> str:
    """Return an id for a new study: the name of its folder, or of the file where that has one of its own."""
    named = path.parent if path.stem == "predictions" else path.with_suffix("")
    return study_id(named, ids_taken(path.parent))


def _tables(asked: Asked, commands: Mapping[str, CommandLine]) -> str:
    return study_tables(asked, commands[ONLY_ARM if asked.versus is None else NEW], commands.get(OLD))


def _split(asked: Asked) -> tuple[dict[str, CommandLine], list[Problem]]:
    """Return what is started in each arm, and what is wrong with what can't be."""
    first = ONLY_ARM if asked.versus is None else NEW
    commands, problems = dict[str, CommandLine](), list[Problem]()
    for option, arm, text in (("--command", first, asked.command), ("--versus", OLD, asked.versus)):
        try:
            if text is not None:
                commands[arm] = _readable(split_command(text))
        except RefusedError as refusal:
            commands[arm] = CommandLine((SHELL,))
            message = f"{option}: {refusal}"
            problems.append(Problem(code=refusal.code, message=message, advice=refusal.advice))
    if not problems and asked.versus is not None and commands[NEW] == commands[OLD]:
        problems.append(_same(asked.versus))
    return commands, problems


def _same(command: str) -> Problem:
    message = f"--versus: {quoted(command)} is what --command starts, a command against itself"
    return Problem(code="PR005", message=message, advice="Give it what is to be compared.")


def _readable(command: CommandLine) -> CommandLine:
    """Return a command that a shell can read, if one has to; nothing of it is run."""
    if command.sign is None:
        return command
    text = command.arguments[-1]
    done = subprocess.run([SHELL, "-n", "-c", text], capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["it says no more"])[-1]
        raise RefusedError("PR136", f"{quoted(text)} can't be read by a shell: {said}")
    return command


def _of_id(name: str, known: Study | None) -> Iterator[Problem]:
    """Say whether an id can't be one, or is not free."""
    if not _ID.fullmatch(name):
        better = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-_")
        hint = f", such as {quoted(better)}" if better else ""
        message = f'id {quoted(name)} must be lower-case letters, digits, "-" and "_"{hint}'
        yield Problem(code="PR006", message=message)
    elif len(name) > _LONGEST_ID:
        message = f"id {quoted(name)} has {len(name)} characters, too many for what files are called"
        yield Problem(code="PR006", message=message, advice=f"Take one of at most {_LONGEST_ID}.")
    elif known is not None:
        taken = {"an experiment": known.experiments.get(name), "a prediction": known.predictions.get(name)}
        if there := {what: table for what, table in taken.items() if table is not None}:
            line = min(table.line for table in there.values())
            message = f"there is {' and '.join(there)} {quoted(name)} already"
            path = shown(known.path)
            yield Problem(code="PR002", path=path, line=line, message=message, advice="Take another id.")


def _beside(path: Path) -> Path:
    """Return where a study would lie that has no lock yet."""
    return path.with_name(f"{_UNNAMED}.toml")


def _stand_in(asked: Asked) -> Asked:
    """Return what was asked for, with something sound for what was found to be wrong with id and metric."""
    return msgspec.structs.replace(
        asked,
        id=_UNNAMED,
        file=asked.file or "-",
        form=asked.form or "json",
        unit=asked.unit or _unit_of(asked),
    )


def _renamed(problem: Problem, name: str) -> Problem:
    """Return a problem of the stand-in under the name that was typed."""
    return dataclasses.replace(problem, message=problem.message.replace(quoted(_UNNAMED), quoted(name)))


def _unit_of(asked: Asked) -> str:
    """Return the unit that a region names, for a metric whose own is not known."""
    try:
        return (asked.versus is None and parse_region(asked.predicts or "").unit) or "1"
    except RefusedError:
        return "1"


def _checked(
    path: Path, before: str, asked: Asked, commands: Mapping[str, CommandLine], known: Study | None = None
) -> tuple[Study | None, list[Problem]]:
    """Return a study with the tables added, and all that is wrong with these.

    Args:
        path: The study's file.
        before: What comes before the tables.
        asked: What they are made of.
        commands: What is started in each arm.
        known: The study as it is.
    """
    try:
        study = load_study(path, text=before + _tables(asked, commands))
    except StudyError as error:
        lines = before.count("\n")
        found = [_of_load(problem, lines, path) for problem in error.problems]
        return None, [*found, *_too_few(path, asked, commands)]
    old = {(one.code, one.message) for one in review(known).problems} if known else set()
    return study, [_unseen(one) for one in review(study).problems if (one.code, one.message) not in old]


def _of_load(problem: Problem, lines: int, path: Path) -> Problem:
    """Return a problem as it is told: of the tables, which are sound TOML, or of the lines before them."""
    if problem.code in _NOT_TOML:
        message = f"can't be added to: {problem.message}"
        advice = "Write its tables under headers of their own: [experiments.NAME], [predictions.NAME]."
        return Problem(code=problem.code, path=shown(path), message=message, advice=advice)
    return _unseen(problem) if (problem.line or 0) > lines else problem


def _unseen(problem: Problem) -> Problem:
    """Return a problem without its line, which is in no file yet."""
    return dataclasses.replace(problem, path=None if problem.line else problem.path, line=None)


def _too_few(path: Path, asked: Asked, commands: Mapping[str, CommandLine]) -> list[Problem]:
    """Return whether the repeats are too few, for what can't be checked with the regions that it has."""
    own = asked.unit if asked.is_read else BUILT_IN[asked.metric].unit
    unit = f" {own}" if asked.versus is None and own != "1" else ""
    sound = msgspec.structs.replace(asked, predicts=f"<= 1{unit}", falsifier=f">= 2{unit}", timeout=None)
    try:
        study = load_study(_beside(path), text=study_header(_UNNAMED) + _tables(sound, commands))
    except StudyError:
        return []  # then that is told
    return [_unseen(problem) for problem in review(study).problems if problem.code == _TOO_FEW]
