"""What a repeat of a command costs beside the command: everything up to its line in the evidence, synced.

Beside it stands what ``hyperfine`` and ``pyperf command`` need for the same, where they are on ``PATH`` (each
from a place of its own: ``apt-get install hyperfine``, ``pip install pyperf`` in a virtual environment). They
keep their runs in memory, in no process or session of their own, and write one file at the end.
"""

from __future__ import annotations

import json
import shlex
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from table import Row

from pytest_prereg.measure.executors.local import LocalExecutor
from pytest_prereg.measure.pilot import pilot
from pytest_prereg.registry.load import load_study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_prereg.evidence.model import Finished, Started

COMMANDS = ("true", "sleep 0.05")
REPEATS = 100
MOST = 10.0
"""Milliseconds."""
STUDY = '[study]\nid = "overhead"\n[experiments.e]\nrepeats = 1\ncommand = {}\n'


def rows() -> list[Row]:
    """Our own cost of a repeat, beside that of each other tool that is here."""
    return [row for command in COMMANDS for row in _compared(command, repeat_of(command))]


def _compared(command: str, ours: float) -> Iterator[Row]:
    here = [name for name in TOOLS if shutil.which(name)]
    for name in here or [""]:
        yield Row(
            what=f"a repeat of {command}, less the command",
            ours=ours,
            other=measured(TOOLS[name], command) if name else None,
            against=name,
            unit="ms",
            limit=MOST,
        )


def repeat_of(command: str) -> float:
    """Run a command as repeats; return the median of what each took beyond it, in milliseconds.

    From its launch, before its started line is written, until its finished line is synced.
    """
    launched = 0.0
    beyond: list[float] = []

    def launch(_: object) -> None:
        nonlocal launched
        launched = time.perf_counter()

    def observe(_: Started, finished: Finished) -> None:
        wall = finished.values["wall"]
        assert isinstance(wall, float)
        beyond.append(time.perf_counter() - launched - wall)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "predictions.toml")
        path.write_text(STUDY.format(json.dumps(shlex.split(command))), encoding="utf-8")
        study = load_study(path)
        experiment = study.experiments["e"]
        with LocalExecutor(study, experiment) as executor:
            pilot(
                study,
                experiment,
                executor,
                planned={"": REPEATS},
                head=None,
                dirty=None,
                observe=observe,
                progress=launch,
            )
    return statistics.median(beyond) * 1e3


def measured(tool: Callable[[str, Path], float], command: str) -> float:
    """Return what another tool took for a run beyond the command, the mean of all, in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        wall = tool(command, Path(folder, "result.json"))
        return ((time.perf_counter() - began) / REPEATS - wall) * 1e3


def hyperfine(command: str, result: Path) -> float:
    """Measure a command with hyperfine, without a shell; return its mean in seconds."""
    options = ["-N", "--warmup=0", f"--runs={REPEATS}", "--style=none", f"--export-json={result}"]
    subprocess.run(["hyperfine", *options, command], check=True, capture_output=True)
    return float(json.loads(result.read_bytes())["results"][0]["mean"])


def pyperf(command: str, result: Path) -> float:
    """Measure a command with pyperf, once in each of its processes; return the mean in seconds."""
    options = [f"--processes={REPEATS}", "--values=1", "--warmups=0", "--loops=1", f"--output={result}"]
    subprocess.run(
        ["pyperf", "command", *options, "--", *shlex.split(command)], check=True, capture_output=True
    )
    runs = json.loads(result.read_bytes())["benchmarks"][0]["runs"]
    return statistics.fmean(run["values"][0] for run in runs if "values" in run)


TOOLS: dict[str, Callable[[str, Path], float]] = {"hyperfine": hyperfine, "pyperf": pyperf}
