"""Runs a command in place of an experiment's function: once, without a shell, waited for to its end."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

from pytest_prereg.errors import EvidenceError
from pytest_prereg.measure.executors.base import Command
from pytest_prereg.measure.executors.classify import signal_name
from pytest_prereg.measure.executors.ports import free_port
from pytest_prereg.measure.executors.text import file_tail, tail
from pytest_prereg.registry.commands import AT_MOST, BUILT_IN, EXIT_CODE, MAX_RSS, OUT
from pytest_prereg.registry.placeholders import PORT, fill, filled, placeholders

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_prereg.evidence.model import Value
    from pytest_prereg.measure.repeat import Repeat
    from pytest_prereg.registry.model import Experiment, Study

STANDARD_OUTPUT = "-"

NOWHERE = f"{os.devnull}/nothing"
"""Started first, in vain: what a first start takes of a process is then no part of the command's time."""
KIBIBYTE = 1024
"""The kernel tells memory in them."""


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


def command_of(study: Study, experiment: Experiment) -> Command | None:
    """Return what each repeat of an experiment runs in place of a function, or ``None``."""
    from pytest_prereg.registry.uses import metrics_of  # noqa: PLC0415 - a fork server has no use for it

    table, read = experiment.table, experiment.table.read
    if table.command is None:
        return None
    known = {} if read is None else experiment.metrics
    used = {name for one in study.predictions.values() for name in metrics_of(one, experiment.id)}
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
        needed=sorted(BUILT_IN.keys() & {*used, *(table.metrics or {})}),
        status_is_data=EXIT_CODE in (table.metrics or {}),
    )


def optional(command: Command | None) -> frozenset[str]:
    """Return the metrics that a repeat is valid without; none of a function's."""
    return frozenset() if command is None else frozenset(BUILT_IN.keys() - command.needed)


class Ready(NamedTuple):
    """A command whose arguments are filled in, so that nothing but its start is left to do."""

    arguments: list[str]
    program: str
    """The file of its program."""
    environ: dict[str, str]
    actions: list[tuple[Any, ...]]
    """What becomes of its standard input, and of its output where that is read."""
    result: Path | None
    """What is read when it has ended."""
    before: tuple[int, ...] | None
    """State of that file, if it was there before."""
    outputs: list[Path]
    """What has its last words, should it fail."""

    def start(self, program: str) -> int:
        """Start it, or another program in its place; return the pid."""
        restored = (signal.SIGPIPE, signal.SIGXFSZ)  # Python ignores them, and no program expects that
        return os.posix_spawn(
            program, self.arguments, self.environ, file_actions=self.actions, setsigdef=restored
        )


def run(
    repeat: Repeat, command: Command, params: Mapping[str, Any], *, port: int | None, output: Path
) -> None:
    """Run a command and record what it took, and what it left behind; arguments as of :func:`prepared`."""
    prepared(command, params, port=port, output=output, workdir=repeat.workdir)(repeat)


def prepared(
    command: Command, params: Mapping[str, Any], *, port: int | None, output: Path, workdir: Path
) -> Callable[[Repeat], None]:
    """Return what runs a command and records what it took, and what it left behind.

    All is done before that can be: a first start, too, in vain, whose cost is then no part of the command's
    time.

    Args:
        command: What to run.
        params: The values of the arm's parameters.
        port: What takes the place of ``{port}``; ``None`` for any free one.
        output: The file that takes what it prints, whose end is told where it fails.
        workdir: The repeat's own folder; ``{out}`` is in it.

    Returns:
        A function of the repeat. It raises ``CommandError`` where the command could not be started, or did
        not end well.
    """
    try:
        ready = _ready(command, params, port=port, output=output, workdir=workdir)
    except CommandError as error:
        return partial(_raise, error)
    with contextlib.suppress(OSError, ValueError):
        ready.start(NOWHERE)
    return partial(_run, command, ready)


def _raise(error: CommandError, _: Repeat) -> NoReturn:
    raise error


def _run(command: Command, ready: Ready, repeat: Repeat) -> None:
    ended = _wait_for(ready)
    if -ended.status != signal.SIGKILL:
        _record(repeat, command, ended)
    if ended.status < 0 or (ended.status and not command.status_is_data):
        raise _failure(ended.status, ready.outputs)
    if ready.result is not None and command.fields:
        _record_results(repeat, command, ready.result, ready.before)


def _record(repeat: Repeat, command: Command, ended: Ended) -> None:
    """Record what a command took, under the name of what read it."""
    for name in ("wall", "user", "system"):
        repeat._take(name, getattr(ended, name), BUILT_IN[name].instrument)  # noqa: SLF001
    if ended.status >= 0:
        repeat.record(EXIT_CODE, ended.status)
    instrument = str(BUILT_IN[MAX_RSS].instrument)
    # Of a process that it starts, the kernel counts what this one held as well (exec_mmap, fs/exec.c).
    least = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIBIBYTE
    if ended.max_rss > least:
        repeat._take(MAX_RSS, ended.max_rss, instrument)  # noqa: SLF001
    elif MAX_RSS not in command.needed:
        repeat.record(AT_MOST, least)
    else:
        why = f"the command held no more than the {least / 1e6:.0f} MB of the process that started it"
        repeat._tell_unreadable(MAX_RSS, instrument, why)  # noqa: SLF001


def _ready(
    command: Command, params: Mapping[str, Any], *, port: int | None, output: Path, workdir: Path
) -> Ready:
    """Fill the arguments, and make what they name."""
    if command.folder is not None:
        os.chdir(command.folder)
    out, environ = workdir / OUT, {**os.environ, **command.env}
    named = _named(command, params)
    if OUT in named or command.file not in (None, STANDARD_OUTPUT):
        out.mkdir()
    values = _values(params, {OUT: str(out), PORT: free_port() if PORT in named and port is None else port})
    arguments = filled(command.arguments, values)
    actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
    result, outputs = _result(command, values, workdir), [output]
    if command.file == STANDARD_OUTPUT:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        actions.append((os.POSIX_SPAWN_OPEN, 1, str(result), flags, 0o600))
        outputs = [*([result] if result else []), output]
    return Ready(
        arguments=arguments,
        program=_program(arguments[0], environ.get("PATH", os.defpath)),
        environ=environ,
        actions=actions,
        result=result,
        before=None if result is None or command.file == STANDARD_OUTPUT else _state(result),
        outputs=outputs,
    )


def _named(command: Command, params: Mapping[str, Any]) -> set[str]:
    """Return the placeholders in what a command is started with, lists that are spliced in included."""
    spliced = (item for value in params.values() if isinstance(value, list) for item in value)
    texts = (*command.arguments, *(item for item in spliced if isinstance(item, str)), command.file or "")
    return {name for text in texts for name in placeholders(text)}


def _values(params: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return what takes the place of each name; what lists splice in is filled, too."""
    spliced = {
        name: [fill(item, own) if isinstance(item, str) else item for item in value]
        for name, value in params.items()
        if isinstance(value, list)
    }
    return {**params, **spliced, **own}


def _result(command: Command, values: Mapping[str, Any], workdir: Path) -> Path | None:
    """Return the file that is read, which is below ``{out}`` unless it begins otherwise."""
    if command.file is None:
        return None
    if command.file == STANDARD_OUTPUT:
        return workdir / "stdout"
    path = Path(fill(command.file, values))
    begins_with_name = command.file.startswith("{") and not command.file.startswith("{{")
    return path.absolute() if begins_with_name else workdir / OUT / path


def _state(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _wait_for(ready: Ready) -> Ended:
    """Start a program in this process's group, and wait for it."""
    began = time.monotonic()
    try:
        pid = ready.start(ready.program)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        if getattr(error, "errno", None) == errno.ENOEXEC:
            why += "; a script begins with #! and its interpreter, or is given to one"
        raise _not_started(ready.arguments[0], why) from None
    _, status, usage = os.wait4(pid, 0)
    return Ended(
        status=os.waitstatus_to_exitcode(status),
        wall=time.monotonic() - began,
        user=usage.ru_utime,
        system=usage.ru_stime,
        max_rss=usage.ru_maxrss * KIBIBYTE,
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


def _record_results(repeat: Repeat, command: Command, path: Path, before: tuple[int, ...] | None) -> None:
    """Record what the command left behind; what can't be read makes the repeat invalid."""
    if before is not None and _state(path) == before:
        repeat.invalidate(f'"{path}" was there before, and the command left it as it was')
        return
    from pytest_prereg.evidence.importers.results import read_result  # noqa: PLC0415

    try:
        read: dict[str, Value] = read_result(path, command.form, command.fields, select=command.select)
    except EvidenceError as error:
        for problem in error.problems:
            repeat.invalidate(problem.message)
        return
    for name, value in read.items():
        repeat.record(name, value)
