"""Experiments made of a few lines of Python, what runs them, and the processes that come of it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from textwrap import indent

from pytest_prereg.measure.executors.base import Job, Result
from pytest_prereg.measure.executors.local import LocalExecutor, arm_environment
from pytest_prereg.measure.executors.services import service_of
from pytest_prereg.registry.model import ONLY_ARM, Arm, Experiment, Metric, Source, Study
from pytest_prereg.registry.tables import ExperimentTable, ServiceTable, StudyTable

METRICS = {"t": "s"}

MODULE = """
import os, signal, subprocess, sys, time
from pathlib import Path
{top}
def trial(repeat, **params):
{body}
"""


class Laboratory:
    """Writes an experiment, runs it for real, and cleans up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.executors: list[LocalExecutor] = []

    def study(
        self,
        body: str,
        *,
        top: str = "",
        metrics: dict[str, str] = METRICS,
        arms: dict[str, dict[str, str]] | None = None,
        timeout: float | None = 20.0,
        repeats: int = 3,
        preload: tuple[str, ...] = (),
        name: str = "experiments.lab",
        order: str = "interleaved",
        service: dict[str, object] | None = None,
        **keys: object,
    ) -> tuple[Study, Experiment]:
        """Writes the module ``name``, whose function is ``body``; ``arms`` are environments by name.

        ``keys`` are further keys of the experiment's table.
        """
        path = self.folder.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MODULE.format(top=top, body=indent(body, "    ")), encoding="utf-8")
        experiment = Experiment(
            id="lab",
            kind="fixture",
            table=ExperimentTable(
                fixture="trial",
                repeats=repeats,
                order=order,
                service=ServiceTable(**service) if service else None,
                **keys,
            ),
            arms={
                arm: Arm(name=arm, params={}, env=env, timeout=timeout, repeats=repeats)
                for arm, env in (arms or {ONLY_ARM: {}}).items()
            },
            metrics={metric: Metric(name=metric, unit=unit) for metric, unit in metrics.items()},
            pairing="block",
            source=Source(function="trial", path=path, module=name, preload=preload),
            line=1,
        )
        file = self.folder / "predictions.toml"
        table = StudyTable(id="study")
        return Study(
            id="study", table=table, path=file, experiments={"lab": experiment}, predictions={}
        ), experiment

    def executor(
        self, body: str, *, environ: dict[str, str] | None = None, **options: object
    ) -> LocalExecutor:
        """An executor for an experiment like that, not yet started; closed after the test."""
        executor = LocalExecutor(*self.study(body, **options), environ=environ)
        self.executors.append(executor)
        return executor

    def run(self, body: str, **options: object) -> Result:
        """How one repeat of an experiment like that ends."""
        executor = self.executor(body, **options)
        executor.start()
        try:
            return executor.run(job(executor))
        finally:
            executor.close()

    def close(self) -> None:
        for executor in self.executors:
            executor.close()


def job(executor: LocalExecutor, *, arm: str | None = None, index: int = 1, **fields: object) -> Job:
    """A job for the executor's experiment, as the loop would make it."""
    experiment = executor.experiment
    chosen = experiment.arms[arm] if arm is not None else next(iter(experiment.arms.values()))
    made = {
        "repeat": f"lab/1/{index}",
        "arm": chosen.name,
        "index": index,
        "seed": 7,
        "metrics": {name: metric.unit for name, metric in experiment.metrics.items()},
        "env": arm_environment(experiment, chosen),
        "timeout": chosen.timeout,
        "service": service_of(experiment),
        "cache": experiment.table.cache,
        "exclusive": experiment.table.exclusive,
    }
    return Job(**{**made, **fields})


class Herd:
    """The processes that a test starts, known by a variable in their environment."""

    def __init__(self) -> None:
        self.mark = f"LAB={time.monotonic_ns()}"
        self.environ = dict([*os.environ.items(), self.mark.split("=")])

    def pids(self) -> list[int]:
        return [
            int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and self._has(entry)
        ]

    def _has(self, entry: Path) -> bool:
        try:
            return self.mark.encode() in (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            return False
