"""What loading a study costs, beside ``tomllib`` alone, and how that grows with the number of predictions."""

from __future__ import annotations

import tempfile
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from table import Row

from pytest_prereg.registry.load import load_study

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (1_000, 10_000)
ROUNDS = 5

HEAD = """\
[study]
id = "s"

[experiments.step]
repeats = 7
metrics = { t_train = "s", t_gen = "s" }
"""
PREDICTION = """
[predictions.p{index}]
claim      = "Training takes at most a quarter of the time that generation takes."
experiment = "step"
quantity   = "t_train / t_gen"
predicts   = "<= 0.25"
falsifier  = ">= 0.5"
"""


def rows() -> list[Row]:
    """CPU time, fastest of some rounds, both ways in turns."""
    costs = [cost(size) for size in SIZES]
    (ours, other), (tenfold, other_tenfold) = costs
    each = [
        Row(
            what=f"{size:,} predictions",
            ours=seconds,
            other=tomllib_seconds,
            against="tomllib",
            at_least=0.2,
        )
        for size, (seconds, tomllib_seconds) in zip(SIZES, costs, strict=True)
    ]
    growth = Row(
        what="ten times as many take",
        ours=tenfold / ours,
        other=other_tenfold / other,
        against="tomllib",
        unit="×",
        limit=12,
    )
    return [*each, growth]


def cost(size: int) -> tuple[float, float]:
    """CPU seconds that the study takes to load, and that its text takes to parse."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.toml"
        path.write_text(HEAD + "".join(PREDICTION.format(index=index) for index in range(size)))
        assert len(load_study(path).predictions) == size
        pairs = [
            (seconds(lambda: load_study(path)), seconds(lambda: tomllib.loads(path.read_text())))
            for _ in range(ROUNDS)
        ]
    ours, other = (min(column) for column in zip(*pairs, strict=True))
    return ours, other


def seconds(action: Callable[[], object]) -> float:
    """CPU time that the action takes."""
    began = time.process_time()
    action()
    return time.process_time() - began
