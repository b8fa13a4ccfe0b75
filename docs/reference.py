"""Tables that follow from the code: keys of a prediction file, options of ``pytest --prereg``, instruments.

``python docs/reference.py`` writes them to ``docs/tables/`` again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg import plugin
from pytest_prereg.registry import tables
from pytest_prereg.registry.arms import RESERVED_IN_ARMS
from pytest_prereg.registry.expectations import keys_of, wanted
from pytest_prereg.registry.instruments import INSTRUMENTS
from pytest_prereg.registry.schema import DESCRIPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.registry.expectations import Key

FOLDER = Path(__file__).parent / "tables"

TABLES: tuple[tuple[str, type[tables.Table]], ...] = (
    ("`[study]`", tables.StudyTable),
    ("`[experiments.ID]`", tables.ExperimentTable),
    ("`service` of `[experiments.ID]`", tables.ServiceTable),
    ("`resources` of `[experiments.ID]` and its arms", tables.ResourcesTable),
    ("A metric: `[experiments.ID.metrics]`, or `@experiment(metrics={...})`", tables.MetricTable),
    ("`[predictions.ID]`", tables.PredictionTable),
    ("`[constants.NAME]`", tables.ConstantTable),
    ("`[instruments.NAME]`", tables.InstrumentTable),
    ("`[executors.modal]`", tables.ModalTable),
)


IDLE: dict[type[tables.Table], frozenset[str]] = {
    tables.ExperimentTable: frozenset({"unit"}),
    tables.MetricTable: frozenset({"from"}),
}
"""Keys that are taken and that nothing acts on yet."""

DEFAULTS = {
    (tables.StudyTable, "experiments"): '`["experiments"]`',
    (tables.ExperimentTable, "repeats"): "**required** unless fed by import",
    (tables.ExperimentTable, "pairing"): '`"block"`; `"none"` if fed by import',
    (tables.PredictionTable, "experiment"): "**required**, but for `formula` and `all`",
    (tables.PredictionTable, "arm"): "the only arm",
    (tables.PredictionTable, "quantity"): "**required**, or what stands in its place",
    (tables.PredictionTable, "predicts"): "**required**",
    (tables.PredictionTable, "falsifier"): "**required**",
    (tables.PredictionTable, "statistic"): '`"mean"`; `"geometric-mean"` for `a / b` and with `over`',
}
"""Defaults that the tables leave to the loader."""

PARTLY = {
    (tables.ExperimentTable, "data"): "Of what is fed by import: *not yet*.",
    (tables.ExperimentTable, "subject"): "Of what is fed by import: *not yet*.",
    (tables.ExperimentTable, "max-parallel"): "On this machine: *not yet*.",
}
"""Keys of which some values are refused."""

NOTES: dict[type[tables.Table], dict[str, str]] = {
    tables.StudyTable: {
        "id": "The study's name for life: registrations and evidence are found by it.",
        "title": "For people.",
        "family": "How several predictions share the risk of a wrong verdict; `none`: each has its own.",
        "registration": "Whether a pull request of its own must bring the registration.",
        "notes": "For people; binds nothing.",
    },
    tables.ExperimentTable: {
        "command": "A command line to run instead of a function.",
        "read": "The file that the command leaves.",
        "sweep": "Values of parameters, crossed with the arms, which are then `new[cols=1024]`.",
        "env": "Environment variables of every repeat.",
        "service": "A server that each repeat talks to, started before it and stopped with it.",
        "build": "What builds an arm that is a version of the code.",
        "data": "Files that are read, as paths or globs; their content is registered.",
        "subject": "Files that are measured, as globs; they may change, and evidence names their version.",
        "order": "Order of the arms; always in random blocks for now.",
        "unit": "What makes two repeats independent; always a process for now.",
        "warmup": "Repeats of every arm at the start of each session that are recorded and not counted.",
        "exclude": "Rules over readings of the machine that exclude a repeat, see [](conditions.md).",
        "max-excluded": "How many repeats of an arm those rules may exclude.",
        "bounds": "Least and greatest value of a metric that is physically possible.",
        "executor": "Where repeats run: `local`, `modal`, or what a plugin brings ([](plugins.md)).",
        "resources": "What each repeat runs on, where the executor has several kinds of machine.",
        "conditions": "On what machine evidence counts, see [](conditions.md).",
        "max-parallel": "How many repeats may overlap.",
        "exclusive": "Whether nothing else may be measured on the machine meanwhile; a GPU is never shared.",
        "preload": "Modules that are imported once, before repeats are forked.",
        "cache": "Whether repeats share compile caches, or each begins with empty ones.",
        "tags": "For people; binds nothing.",
        "notes": "For people; binds nothing.",
    },
    tables.MetricTable: {"instrument": "What takes the reading; `timer` and `bench` name themselves."},
    tables.PredictionTable: {
        "kind": "Decided once, for good; or anew for each version of the subject.",
        "basis": "Where the claim comes from; only `measured` counts in hit rates.",
        "successes": "What is counted in each repeat, of its `trials`; the statistic is then `proportion`.",
        "trials": "How many there were in the repeat.",
        "numerator": "What is summed over repeats; the statistic is then `ratio-of-sums`.",
        "denominator": "What is summed over repeats and divides it.",
        "inputs": "What a formula takes, by name: quantities of experiments, and constants.",
        "formula": "An expression over the names of the inputs.",
        "all": "Predictions that must all be supported.",
        "credence": "Your probability that it will be supported, given a decision; the report scores it.",
        "requires": "Predictions that must be supported first.",
        "assumes": "What is taken for granted, in words.",
        "follows": "The inconclusive prediction that it succeeds.",
        "for-each": "Swept parameters: a prediction for each value, called `faster[cols=4096]`.",
        "over": "Swept parameters whose values are reduced inside each block, by what `statistic` says.",
        "on-inconclusive": "What a guard does when undecided.",
        "tags": "Words to select by: `-k WORD`.",
        "notes": "For people; binds nothing.",
    },
    tables.ConstantTable: {
        "value": "The number.",
        "interval": "Where it may lie; checked, and not used in a quantity.",
        "unit": "Its unit.",
    },
    tables.InstrumentTable: {
        "calibrated-by": "Predictions that calibrate it.",
        "trusted": "Why it may decide uncalibrated, in words.",
    },
}
"""What the schema leaves unsaid."""


def keys() -> str:
    """Every key, one Markdown table for each TOML table."""
    return "\n".join("\n".join(_table(title, table)) for title, table in TABLES)


def _table(title: str, table: type[tables.Table]) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| key | takes | default | |"
    yield "|---|---|---|---|"
    defaults = {field.encode_name: field.default for field in msgspec.structs.fields(table)}
    for name, key in keys_of(table).items():
        cells = (f"`{name}`", _takes(key), _default(table, name, key, defaults[name]), _said(table, name))
        yield f"| {' | '.join(cells)} |"
    if table is tables.ExperimentTable:
        yield from _arms()
    yield ""


def _arms() -> Iterator[str]:
    own = ", ".join(f"`{name}`" for name in RESERVED_IN_ARMS)
    yield f"\nIn an arm's table {own} are keys; every other name is a parameter of the function."


def _takes(key: Key) -> str:
    return wanted(key.type).partition(" of lower-case")[0].replace("|", r"\|")


def _default(table: type[tables.Table], name: str, key: Key, default: Any) -> str:
    if key.required:
        return "**required**"
    if (table, name) in DEFAULTS:
        return DEFAULTS[table, name]
    return "" if default is None else f"`{msgspec.json.encode(default).decode()}`"


def _said(table: type[tables.Table], name: str) -> str:
    """What a key is for, and whether anything acts on it."""
    text = NOTES.get(table, {}).get(name) or DESCRIPTIONS[table.__name__][name]
    if name in IDLE.get(table, ()):
        return f"*No effect yet.* {text}"
    return f"{text} {PARTLY.get((table, name), '')}".rstrip()


class Options:
    """Stands in for pytest's parser, and remembers what it is told."""

    def __init__(self) -> None:
        self.rows: list[str] = []

    def getgroup(self, *_: str) -> Options:
        """The one group."""
        return self

    def addoption(self, flag: str, *, metavar: str = "", **said: Any) -> None:
        """An option as a row."""
        self.rows.append(f"| `{f'{flag} {metavar}'.rstrip()}` | {said['help']} |")


def options() -> str:
    """Every option of the plugin."""
    found: Any = Options()
    plugin.pytest_addoption(found)
    return "\n".join(("| option | effect |", "|---|---|", *found.rows, ""))


UNITS = {"s": "second", "1": "share of the window", "byte": "byte", "J": "joule"}
"""What a unit of an instrument is called."""


def instruments() -> str:
    """Every instrument of the package, and why it may decide as it is, if it may."""
    rows = ["| instrument | unit | what it reads | known bias | may decide |", "|---|---|---|---|---|"]
    for kind in INSTRUMENTS.values():
        decides = f"as it is: {kind.trusted}" if kind.trusted else "once the study calibrates or trusts it"
        cells = (f"`{kind.name}`", UNITS[kind.unit], kind.reads, kind.bias, decides)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join((*rows, ""))


WRITERS = {"keys.md": keys, "options.md": options, "instruments.md": instruments}


if __name__ == "__main__":
    for name, write in WRITERS.items():
        (FOLDER / name).write_text(write(), encoding="utf-8")
