"""Experiments of a few lines of Python that run on the stand-in, each with a record of its bodies of its own."""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING, Any

from pytest_prereg.measure.executors.base import Job
from pytest_prereg.measure.executors.modal.executor import ModalExecutor
from pytest_prereg.registry.model import ONLY_ARM, Arm, Experiment, Metric, Source, Study
from pytest_prereg.registry.tables import ExecutorsTable, ExperimentTable, ModalTable, StudyTable

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_prereg.registry.model import Resources

MODULE = """
import os, signal, sys, time
from pathlib import Path
{top}
def trial(repeat, **params):
    with open({record!r}, 'a') as file:
        file.write(f'{{os.getpid()}}\\n')
{body}
"""
GOOD = "repeat.record('t', 0.5)"


class Workshop:
    """Writes studies, starts executors for them, and closes what it has started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "study"
        self.record = folder / "bodies"
        self.executors: list[ModalExecutor] = []

    def study(
        self,
        body: str = GOOD,
        *,
        top: str = "",
        timeout: float | None = 20.0,
        resources: dict[str, Resources] | None = None,
        modal: ModalTable | None = None,
        env: dict[str, str] | None = None,
        **keys: Any,
    ) -> tuple[Study, Experiment]:
        path = self.folder / "experiments" / "lab.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = MODULE.format(top=top, body=indent(body, "    "), record=str(self.record))
        path.write_text(text, encoding="utf-8")
        experiment = Experiment(
            id="lab",
            kind="fixture",
            table=ExperimentTable(fixture="trial", repeats=3, **keys),
            arms={
                arm: Arm(name=arm, params={}, env=env or {}, timeout=timeout, repeats=3, **asked)
                for arm, asked in _asked(resources).items()
            },
            metrics={"t": Metric(name="t", unit="s")},
            pairing="block",
            source=Source(function="trial", path=path, module="experiments.lab"),
            line=1,
        )
        study = Study(
            id="study",
            table=StudyTable(id="study"),
            path=self.folder / "predictions.toml",
            executors=ExecutorsTable(modal=modal),
            experiments={"lab": experiment},
            predictions={},
        )
        return study, experiment

    def executor(self, *arguments: Any, **keys: Any) -> ModalExecutor:
        executor = ModalExecutor(*self.study(*arguments, **keys))
        self.executors.append(executor)
        return executor

    def started(self, *arguments: Any, **keys: Any) -> ModalExecutor:
        executor = self.executor(*arguments, **keys)
        executor.start()
        return executor

    def run(self, body: str, **keys: Any) -> Any:
        """How one repeat of a body ends."""
        executor = self.started(body, **keys)
        executor.launch(self.job(executor))
        return executor.collect()[1]

    def job(self, executor: Any, index: int = 1, arm: str | None = None, **more: Any) -> Job:
        name = arm or next(iter(executor.experiment.arms))
        planned = executor.experiment.arms[name]
        asked = {"timeout": planned.timeout, "env": planned.env, "metrics": {"t": "s"}, "seed": 7, **more}
        return Job(repeat=f"lab/1/{name}/{index}", arm=name, index=index, **asked)

    def bodies(self) -> list[int]:
        """Process of every body that began, in order, as each wrote it down itself."""
        return [int(line) for line in self.record.read_text().split()] if self.record.exists() else []

    def close(self) -> None:
        for executor in self.executors:
            executor.close()


def _asked(resources: dict[str, Resources] | None) -> dict[str, dict[str, Any]]:
    if resources is None:
        return {ONLY_ARM: {}}
    return {arm: {"resources": asked} for arm, asked in resources.items()}
