"""Runs a command in place of an experiment's function: once, without a shell, waited for to its end."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.errors import EvidenceError
from pytest_prereg.measure.executors.base import Command
from pytest_prereg.measure.executors.classify import signal_name
from pytest_prereg.measure.executors.text import file_tail, tail
from pytest_prereg.registry.commands import BUILT_IN, EXIT_CODE, OUT
from pytest_prereg.registry.placeholders import PORT, fill, filled, placeholders

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any, Literal

    from pytest_prereg.evidence.model import Value
    from pytest_prereg.measure.repeat import Repeat
    from pytest_prereg.registry.model import Experiment

STANDARD_OUTPUT = "-"
RESTORED = (signal.SIGPIPE, signal.SIGXFSZ)
"""What Python ignores, and a program expects not to find ignored."""

NOWHERE = f"{os.devnull}/nothing"
"""Started first, in vain: what a first start takes of a process is then no part of the command's time."""
_IMPORTED_EARLY = (resource,)
"""Or waiting for a child would."""


class CommandError(Exception):
    """A command did not end as it should: that is the outcome of its repeat."""

    def __init__(self, ended: Literal["exit", "signal", "killed"], told: str) -> None:
        super().__init__(told)
        self.ended = ended
        """What it came to, as the body's report has it."""


class Ended(NamedTuple):
    """How a command ended, and what it took."""

    status: int
    """Negative for a signal."""
    wall: float
    """Seconds from just before its start."""
    user: float
    system: float
    max_rss: int
    """Bytes."""


def command_of(experiment: Experiment) -> Command | None:
    """Return what each repeat of an experiment runs in place of a function, or ``None``."""
    table, read = experiment.table, experiment.table.read
    if table.command is None:
        return None
    known = {} if read is None else experiment.metrics
    return Command(
        arguments=table.command,
        file=None if read is None else read.file,
        form="" if read is None else read.format,
        select=None if read is None else read.select,
        fields={
            name: (metric.source or name, metric.unit)
            for name, metric in known.items()
            if name not in BUILT_IN
        },
        status_is_data=EXIT_CODE in (table.metrics or {}),
    )


def run(
    repeat: Repeat, command: Command, params: Mapping[str, Any], *, port: int | None, output: Path
) -> None:
    """Run a command and record what it took, and what it left behind.

    Args:
        repeat: Where its metrics are recorded; its folder holds ``{out}``.
        command: What to run.
        params: The values of the arm's parameters.
        port: What takes the place of ``{port}``.
        output: The file that takes what it prints, whose end is told where it fails.

    Raises:
        CommandError: It could not be started, or did not end well.
    """
    out = repeat.workdir / OUT
    if _uses_folder(command, params):
        out.mkdir()
    values = _values(params, {OUT: str(out), PORT: port})
    printed = repeat.workdir / "stdout" if command.file == STANDARD_OUTPUT else None
    ended = _wait_for(filled(command.arguments, values), command, printed)
    for name, value in ended._asdict().items():
        if name in BUILT_IN:
            repeat._take(name, value, BUILT_IN[name].instrument)  # noqa: SLF001
    if ended.status >= 0:
        repeat.record(EXIT_CODE, ended.status)
    if ended.status < 0 or (ended.status and not command.status_is_data):
        raise _failure(ended.status, [file for file in (printed, output) if file is not None])
    if command.file is not None and command.fields:
        _record_results(repeat, command, printed or out / fill(command.file, values))


def _uses_folder(command: Command, params: Mapping[str, Any]) -> bool:
    spliced = (item for value in params.values() if isinstance(value, list) for item in value)
    texts = (*command.arguments, *(item for item in spliced if isinstance(item, str)))
    return command.file not in (None, STANDARD_OUTPUT) or any(OUT in placeholders(text) for text in texts)


def _values(params: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return what takes the place of each name; what lists splice in is filled, too."""
    spliced = {
        name: [fill(item, own) if isinstance(item, str) else item for item in value]
        for name, value in params.items()
        if isinstance(value, list)
    }
    return {**params, **spliced, **own}


def _wait_for(arguments: list[str], command: Command, printed: Path | None) -> Ended:
    """Start a program in this process's group, and wait for it."""
    if command.folder is not None:
        os.chdir(command.folder)
    environ = {**os.environ, **command.env}
    program = _program(arguments[0], environ.get("PATH", os.defpath))
    actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
    if printed is not None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        actions.append((os.POSIX_SPAWN_OPEN, 1, str(printed), flags, 0o600))

    def start(program: str) -> int:
        return os.posix_spawn(program, arguments, environ, file_actions=actions, setsigdef=RESTORED)

    with contextlib.suppress(OSError, ValueError):
        start(NOWHERE)
    began = time.monotonic()
    try:
        pid = start(program)
    except (OSError, ValueError) as error:
        raise _not_started(arguments[0], getattr(error, "strerror", None) or str(error)) from None
    _, status, usage = os.wait4(pid, 0)
    return Ended(
        status=os.waitstatus_to_exitcode(status),
        wall=time.monotonic() - began,
        user=usage.ru_utime,
        system=usage.ru_stime,
        max_rss=usage.ru_maxrss * 1024,
    )


def _program(name: str, path: str) -> str:
    """Return the file of a program, as a shell finds it."""
    if "/" in name:
        return name
    found = None
    for folder in path.split(os.pathsep):
        file = f"{folder or '.'}/{name}"
        if os.path.isfile(file):  # noqa: PTH113 - faster than a Path, and every repeat asks it
            if os.access(file, os.X_OK):
                return file
            found = found or file
    if found is None:
        raise _not_started(name, "no such program on PATH")
    return found


def _not_started(name: str, why: str) -> CommandError:
    return CommandError("exit", f'"{name}" could not be started: {why}')


def _failure(status: int, files: list[Path]) -> CommandError:
    output = tail("\n".join(file_tail(file) for file in files))
    if status >= 0:
        return CommandError("exit", f"exited with status {status}\n{output}".strip())
    ended: Literal["killed", "signal"] = "killed" if -status == signal.SIGKILL else "signal"
    return CommandError(ended, f"killed by {signal_name(-status)}\n{output}".strip())


def _record_results(repeat: Repeat, command: Command, path: Path) -> None:
    """Record what the command left behind; what can't be read makes the repeat invalid."""
    from pytest_prereg.evidence.importers.results import read_result  # noqa: PLC0415

    try:
        read: dict[str, Value] = read_result(path, command.form, command.fields, select=command.select)
    except EvidenceError as error:
        for problem in error.problems:
            repeat.invalidate(problem.message)
        return
    for name, value in read.items():
        repeat.record(name, value)
