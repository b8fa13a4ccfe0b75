"""Prediction files for the tests of loading, short to write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_prereg.errors import StudyError
from pytest_prereg.registry.load import load_study

if TYPE_CHECKING:
    from pytest_prereg.registry.model import Study

HEAD = """\
[study]
id = "s"

[constants.deadline]
value = 2.0
unit = "s"
source = "the service's own promise"

[experiments.one]
repeats = 7
metrics = { t_train = "s", t_gen = "s", wait = "ms", tokens = "token", load = "%", passed = "1", speed = "token/s" }

[experiments.two]
repeats = 7
metrics = { t = "s" }
[experiments.two.arms]
new = {}
old = {}

"""
LINES = HEAD.count("\n")


def predicted(**keys: object) -> str:
    """A ``[predictions.p]`` table with these keys over a sound one; ``None`` leaves a key out."""
    sound = {
        "claim": "c",
        "experiment": "one",
        "quantity": "t_train / t_gen",
        "predicts": "<= 0.25",
        "falsifier": ">= 0.5",
    }
    written = {key.replace("_", "-"): value for key, value in keys.items()}
    lines = [f"{key} = {_toml(value)}\n" for key, value in (sound | written).items() if value is not None]
    return HEAD + "[predictions.p]\n" + "".join(lines)


def load(text: str) -> Study:
    """The study in ``text``, as if it lay in a folder of its own."""
    return load_study(Path("/nowhere/predictions.toml"), text=text)


def refusals(text: str) -> list[str]:
    """Everything that is wrong with ``text``: ``line: code: message``."""
    try:
        load(text)
    except StudyError as error:
        return [str(problem).removeprefix("/nowhere/predictions.toml:") for problem in error.problems]
    return []


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
