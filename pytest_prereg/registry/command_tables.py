"""What a ``command`` must say to be run: arguments that can be filled in, and metrics that it yields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_prereg.registry.commands import BUILT_IN, OUT
from pytest_prereg.registry.placeholders import PORT, filled, misplaced, placeholders
from pytest_prereg.registry.refusals import listed, nearest, quoted, typed
from pytest_prereg.registry.structure import label

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytest_prereg.registry.model import Arm, Metric
    from pytest_prereg.registry.positions import Path
    from pytest_prereg.registry.structure import Complaints
    from pytest_prereg.registry.tables import ExperimentTable, MetricTable, ReadTable

CODE = "PR136"
OWN = (OUT, PORT)
_FILLING = (("params",), ("read",), ("read", "file"), ("service",), ("service", "command"))
"""What else a command's names, or those of its parameters, may be of: told of, it says no more."""
OF_A_SHELL = frozenset({"|", "||", "|&", "&", "&&", ">", ">>", ">|", "<", "<<", "2>", "2>>", "2>&1", "&>"})
"""Arguments that only a shell acts on. Not ``;``: it ends the command that ``find -exec`` runs."""
_SHELL = 'Nothing here is read by a shell; where one is wanted: command = ["sh", "-c", "…"].'
_UNNAMED = """\
Write it where its value belongs, or leave it out. If it is registered like that, leave it out and say so:
pytest-prereg amend --experiment {experiment} --reason '…'"""
_READ = 'Say what it is read from: read = { file = "result.json", format = "json" }; or take a built-in one.'


def check_command(
    keys: Path,
    table: ExperimentTable,
    metrics: Mapping[str, Metric],
    arms: Mapping[str, Arm],
    complaints: Complaints,
) -> None:
    """Complain about a command that could not be run for some arm, or would not yield its metrics."""
    if table.command is None or complaints.told(*keys, "command"):
        return
    if not any(complaints.told(*keys, *key) for key in _FILLING):
        _check_filling(keys, table, table.command, arms, complaints)
    _check_unfilled(keys, table, complaints)
    if table.preload:
        message = f'{label(keys)} has "preload", and runs a command: nothing is imported for it'
        complaints.add((*keys, "preload"), CODE, message, "Leave it out.")
    if table.read is not None and not complaints.told(*keys, "read"):
        _check_read(keys, table.read, arms, complaints)
    _check_metrics(keys, table, metrics, complaints)


def _check_filling(
    keys: Path, table: ExperimentTable, command: list[str], arms: Mapping[str, Arm], complaints: Complaints
) -> None:
    """Whether each name in a command has a value, and each value a name that takes its place."""
    for name, arm in arms.items():
        where = f"{label(keys)}, arm {quoted(name)}" if name else label(keys)
        wrong = next(_wrong(command, table, arm), None)
        if wrong is not None:
            what, advice = wrong
            complaints.add((*keys, "command"), CODE, f'{where}: "command" {what}', advice)
            break  # the other arms would say the same
    texts = list(_texts(table, command))
    if all(name in (*arm.params, *OWN) for arm in arms.values() for name in _all_named(texts)):
        _check_labels(keys, table, texts, complaints)  # else what has no place may be what was meant


def _texts(table: ExperimentTable, command: list[str]) -> Iterator[str]:
    """Yield all texts in which a parameter may be named."""
    yield from command
    if table.read is not None:
        yield table.read.file
    if (service := table.service) is not None:
        yield from (*service.command, service.ready or "")


def _wrong(command: list[str], table: ExperimentTable, arm: Arm) -> Iterator[tuple[str, str | None]]:
    """Yield what keeps a command from being run in an arm, and what to do."""
    texts = [*command, *([table.read.file] if table.read else [])]
    for name in OWN:
        if name in arm.params and _names(name, texts):
            yield f"may have {_braced(name)}, which is its own and a parameter", "Rename the parameter."
    for argument in command:
        for _, what in misplaced(argument, arm.params, own=OWN, splices=True):
            yield what, None
    if (service := table.service) is not None and _names(PORT, command) and not _names(PORT, service.command):
        yield f"has {_braced(PORT)}, and the command of its service has not", "Give it to both."
    arguments = filled(command, arm.params)
    if not arguments or not arguments[0].strip():
        yield "names no program to run", None
    for argument in arguments:
        if argument in OF_A_SHELL:
            yield f"has the argument {quoted(argument)}, which only a shell acts on", _SHELL
        if "\0" in argument:
            yield f"has a NUL in {quoted(argument)}, which no program can be given", None


def _names(name: str, texts: Iterable[str]) -> bool:
    return any(name in placeholders(text) for text in texts)


def _braced(name: str) -> str:
    return quoted(f"{{{name}}}")


def _all_named(texts: Iterable[str]) -> set[str]:
    return {name for text in texts for name in placeholders(text)}


def _check_labels(keys: Path, table: ExperimentTable, texts: list[str], complaints: Complaints) -> None:
    """Whether each parameter has a place, and arms that differ by one run anything different.

    Where arms set variables or a version, what they differ by may be no more than a label, as of a trend.
    """
    arms, named = table.arms or {}, _all_named(texts)
    places: list[tuple[Path, Iterable[str]]] = [((*keys, "params"), (table.params or {}).keys() - named)]
    if not any(key in arm for arm in arms.values() for key in ("env", "ref")):
        reserved = {"resources", "timeout", "repeats", *named}
        places.append(((*keys, "sweep"), (table.sweep or {}).keys() - reserved))
        places += [((*keys, "arms", name), arm.keys() - reserved) for name, arm in arms.items()]
    for here, unnamed in places:
        for name in sorted(unnamed):
            message = f'{label(here)}: "command" names no {_braced(name)}, so {quoted(name)} changes nothing'
            complaints.add((*here, name), CODE, message, _UNNAMED.format(experiment=typed(str(keys[-1]))))


def _check_unfilled(keys: Path, table: ExperimentTable, complaints: Complaints) -> None:
    """Whether a text has the name of what each repeat has of its own where nothing takes its place."""
    places: list[tuple[Path, Mapping[str, Any]]] = [
        (("params",), table.params or {}),
        (("env",), table.env or {}),
    ]
    for arm, written in (table.arms or {}).items():
        own = written.get("env")
        places += [(("arms", arm), written), (("arms", arm, "env"), own if isinstance(own, dict) else {})]
    for here, values in places:
        for name, value in values.items():
            if isinstance(value, str) and (unfilled := [own for own in placeholders(value) if own in OWN]):
                what = f"has {_braced(unfilled[0])} in {quoted(value)}, and nothing is filled in there"
                advice = "Write it in the command, or in a list that is spliced into it."
                complaints.add((*keys, *here, name), CODE, f"{label(keys)}: {quoted(name)} {what}", advice)


def _check_read(keys: Path, read: ReadTable, arms: Mapping[str, Arm], complaints: Complaints) -> None:
    here, whose = (*keys, "read"), f'{label(keys)}: "read"'
    if not complaints.told(*here, "file"):
        if not read.file.strip() or "\0" in read.file:
            message = f'{whose} has "file" {quoted(read.file)}; write a path below {_braced(OUT)}, or "-"'
            complaints.add((*here, "file"), CODE, message)
        every = (misplaced(read.file, arm.params, own=OWN, splices=False) for arm in arms.values())
        for what in dict.fromkeys(what for several in every for _, what in several):
            complaints.add((*here, "file"), CODE, f'{whose}: "file" {what}')


def _check_metrics(
    keys: Path, table: ExperimentTable, metrics: Mapping[str, Metric], complaints: Complaints
) -> None:
    """Whether each metric is a command's own, or read from what it leaves behind."""
    for name, written in (table.metrics or {}).items():
        if name in BUILT_IN:
            _check_built_in(keys, name, written, complaints)
    read = [name for name in metrics if name not in BUILT_IN]
    if table.read is None:
        for name in read if not complaints.told(*keys, "read") else ():
            near = nearest(name, BUILT_IN)
            hint = f"; did you mean {quoted(near)}?" if near else f"; built in: {listed(BUILT_IN)}"
            message = f"{label(keys)}: metric {quoted(name)} is neither built in nor read from a file{hint}"
            complaints.add((*keys, "metrics", name), CODE, message, _READ)
    elif not read and not complaints.told(*keys, "metrics"):
        message = f'{label(keys)} has "read", and declares no metric that is read'
        complaints.add((*keys, "read"), CODE, message, "Declare it, with its unit, or leave it out.")


def _check_built_in(keys: Path, name: str, written: str | MetricTable, complaints: Complaints) -> None:
    """Whether what is said of a built-in metric leaves it what it is."""
    if isinstance(written, str):
        return
    own = BUILT_IN[name].instrument
    whose = f"{label(keys)}: metric {quoted(name)}, which every command has,"
    here = (*keys, "metrics", name)
    if written.from_ is not None:
        message = f"{whose} is read from no file"
        complaints.add(here, CODE, message, 'Leave "from" out, or give what is read another name.')
    if written.instrument not in (None, own):
        taker = "counted" if own is None else f"read by {own}"
        message = f"{whose} is {taker}, not by {quoted(written.instrument)}"
        complaints.add(here, CODE, message, 'Leave "instrument" out.')
