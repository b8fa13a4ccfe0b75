"""A study from one line: the tables that ``new`` writes for two commands, or for one, and a metric."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.errors import Problem, one_line
from pytest_prereg.registry.command_lines import as_written
from pytest_prereg.registry.commands import BUILT_IN, EXIT_CODE
from pytest_prereg.registry.formats import FORMATS
from pytest_prereg.registry.refusals import quoted, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_prereg.registry.command_lines import CommandLine

NEW, OLD = "new", "old"
"""The arms, where two commands are compared."""

_WIDTH = 100
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Asked(msgspec.Struct, kw_only=True, frozen=True):
    """What was typed; ``None`` for what was not."""

    id: str
    command: str
    versus: str | None = None
    metric: str = "wall"
    predicts: str | None = None
    falsifier: str | None = None
    repeats: int = 10
    claim: str | None = None
    timeout: str | None = None
    unit: str | None = None
    """Of a metric that is read from a file."""
    file: str | None = None
    """Which the command leaves behind; ``-`` is what it prints."""
    form: str | None = None
    select: str | None = None
    source: str | None = None
    """The name that the metric has in the file, where that is another."""

    @property
    def is_read(self) -> bool:
        """Whether the metric is read from what the command leaves behind."""
        return self.file is not None and self.metric not in BUILT_IN


def study_header(study: str) -> str:
    """Return the table that a study begins with."""
    return f"[study]\nid = {_text(study)}\n"


def study_tables(asked: Asked, command: CommandLine, versus: CommandLine | None) -> str:
    """Return an experiment and a prediction, both called as asked, as text to be added to a study."""
    lines = [*_experiment(asked, command, versus), "", *_prediction(asked)]
    return "".join(f"{line}\n" for line in lines)


def _experiment(asked: Asked, command: CommandLine, versus: CommandLine | None) -> Iterator[str]:
    table = f"experiments.{_key(asked.id)}"
    yield f"[{table}]"
    started = "[" + _text("{argv}") + "]" if versus else _texts(command.arguments)
    yield from _commented(f"command = {started}", "once per repeat, in a process of its own")
    if asked.is_read:
        keys = {"file": asked.file, "format": asked.form, "select": asked.select}
        yield f"read    = {_inline(keys)}"
    if asked.timeout is not None:
        yield f"timeout = {_text(asked.timeout)}"
    yield from _commented(f"repeats = {asked.repeats}", "of each arm" if versus else "")
    if asked.is_read or asked.metric == EXIT_CODE:
        yield f"[{table}.metrics]"
        yield f"{_key(asked.metric)} = {_declared(asked)}"
    if versus:
        yield f"[{table}.arms]"
        yield f"{NEW} = {{ argv = {_texts(command.arguments)} }}"
        yield f"{OLD} = {{ argv = {_texts(versus.arguments)} }}"


def _declared(asked: Asked) -> str:
    """A metric's declaration; that of a command's status says that any status is an answer."""
    if asked.source is None or not asked.is_read:
        return _text((asked.unit or "") if asked.is_read else BUILT_IN[asked.metric].unit)
    return _inline({"from": asked.source, "unit": asked.unit})


def _prediction(asked: Asked) -> Iterator[str]:
    yield f"[predictions.{_key(asked.id)}]"
    yield f"claim      = {_text(asked.claim if asked.claim is not None else _claim(asked))}"
    yield f"experiment = {_text(asked.id)}"
    if asked.versus is not None:
        yield f'contrast   = "{NEW} / {OLD}"'
    yield f"quantity   = {_text(asked.metric)}"
    for key, region in (("predicts", asked.predicts), ("falsifier", asked.falsifier)):
        if region is not None:
            yield f"{key:<10} = {_text(region)}"
    yield from _commented('data-seen  = "pilot"', "it may be tried before it is registered")


def _claim(asked: Asked) -> str:
    what = f"{asked.metric} of `{one_line(asked.command)}`"
    if asked.versus is not None:
        what += f", over that of `{one_line(asked.versus)}`,"
    return f"{what} is {asked.predicts}."


def asked_wrongly(asked: Asked) -> list[Problem]:
    """Return what is wrong with a metric and where it is read, before anything is made of it."""
    return [Problem(code=code, message=message, advice=advice) for code, message, advice in _wrong(asked)]


def _wrong(asked: Asked) -> Iterator[tuple[str, str, str | None]]:
    of_file = {"--unit": asked.unit, "--format": asked.form, "--select": asked.select, "--from": asked.source}
    if asked.file is None:
        if asked.metric not in BUILT_IN:
            hint = suggestion(asked.metric, BUILT_IN, "recorded of every command")
            advice = "What the command leaves behind is read with --read FILE --format FORMAT --unit UNIT."
            yield "PR007", f"--metric: unknown metric {quoted(asked.metric)}{hint}", advice
        elif given := [option for option, value in of_file.items() if value is not None]:
            yield "PR005", f"{' and '.join(given)} without --read: no file is read", _unit_advice(asked)
        return
    if asked.metric in BUILT_IN:
        message = f"--read: {quoted(asked.metric)} is recorded of every command, and read from no file"
        yield "PR005", message, "Name what is to be read: --metric NAME"
        return
    for option in ("--unit", "--format"):
        if of_file[option] is None:
            advice = "One of: " + ", ".join(FORMATS) if option == "--format" else "1 for a pure number."
            yield "PR004", f"--read {quoted(asked.file)} needs {option}", advice


def _unit_advice(asked: Asked) -> str:
    known = (
        "" if asked.unit is None else f" {quoted(asked.metric)} is in {quoted(BUILT_IN[asked.metric].unit)}."
    )
    return f"Leave it out.{known}"


def _commented(line: str, comment: str) -> Iterator[str]:
    whole = f"{line:<37} # {comment}"
    yield whole if comment and len(whole) <= _WIDTH else line


def _inline(keys: dict[str, str | None]) -> str:
    return (
        "{ " + ", ".join(f"{key} = {_text(value)}" for key, value in keys.items() if value is not None) + " }"
    )


def _texts(arguments: Sequence[str]) -> str:
    return "[" + ", ".join(_text(as_written(argument)) for argument in arguments) + "]"


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    """A string of TOML, which is one of JSON but for one control character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
