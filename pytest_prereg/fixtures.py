"""What the ``prereg`` fixture gives to ordinary tests: experiments to run, and committed verdicts to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.audit.withdrawn import tombstones
from pytest_prereg.errors import Problem, UsageError
from pytest_prereg.measure.commands import command_of
from pytest_prereg.measure.executors.base import Job
from pytest_prereg.measure.executors.local import LocalExecutor, arm_environment
from pytest_prereg.measure.executors.scratch import remove_tree
from pytest_prereg.measure.executors.services import service_of
from pytest_prereg.measure.pilot import tried_arms
from pytest_prereg.measure.schedule import block_order, repeat_seed, seed_base
from pytest_prereg.measure.versions.checkout import checkout_of
from pytest_prereg.outcomes import record_of, shown_tombstone
from pytest_prereg.registry.load import find_studies, load_study
from pytest_prereg.registry.refusals import quoted, suggestion

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_prereg.measure.executors.base import Result
    from pytest_prereg.registry.model import Experiment, Study
    from pytest_prereg.report.records import Record


class Prereg:
    """The experiments and verdicts of the studies at rootdir; nothing is loaded before it is used."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._states: list[StudyState] | None = None
        self._executors: dict[str, LocalExecutor] = {}

    def __call__(self, experiment: str) -> Runner:
        """Return a handle on an experiment, by its id or the name of its function.

        Raises:
            UsageError: no study here has it.
        """
        known: dict[str, tuple[Study, Experiment]] = {}
        for state in self._studies():
            for one in state.study.experiments.values():
                if one.source is not None:
                    known.setdefault(one.source.function, (state.study, one))
                if one.kind != "import":
                    known[one.id] = (state.study, one)
        if experiment not in known:
            raise UsageError(_unknown("experiment", experiment, list(known)))
        study, found = known[experiment]
        return Runner(study, found, self._executor(study, found))

    def verdict(self, prediction: str) -> Record:
        """Return the record of a prediction from the recorded evidence; nothing is launched.

        Raises:
            UsageError: no study here has it.
        """
        names: list[str] = []
        for state in self._studies():
            if prediction in state.study.predictions:
                return record_of(state.assess(state.study.predictions[prediction]))
            buried = (one for one in tombstones(state) if one.id == prediction)
            if tombstone := next(buried, None):
                return shown_tombstone(state, tombstone).record
            names.extend(state.study.predictions)
        raise UsageError(_unknown("prediction", prediction, names))

    def close(self) -> None:
        """Stop whatever still runs, and keep nothing: results have the end of what was printed."""
        for executor in self._executors.values():
            executor.close()
            for folder in executor.outputs:
                remove_tree(folder)

    def _studies(self) -> list[StudyState]:
        if self._states is None:
            self._states = [StudyState(load_study(path)) for path in find_studies(self._root)]
        return self._states

    def _executor(self, study: Study, experiment: Experiment) -> LocalExecutor:
        key = f"{study.path}:{experiment.id}"
        if key not in self._executors:
            checkout = checkout_of(study, experiment, kept=False)
            self._executors[key] = LocalExecutor(study, experiment, checkout=checkout)
            self._executors[key].start()
        return self._executors[key]


class Runner:
    """Runs an experiment as a pilot: real repeats in fresh processes, kept nowhere and never judged."""

    def __init__(self, study: Study, experiment: Experiment, executor: LocalExecutor) -> None:
        self.study = study
        self.experiment = experiment
        self._executor = executor

    def run(self, n: int = 1, arm: str | None = None) -> list[Result]:
        """Run ``n`` repeats of every arm, or of one, in randomised blocks; returns how each ended.

        Raises:
            UsageError: the experiment has no such arm.
        """
        arms = tried_arms(self.experiment, arm)
        seed = seed_base([self.study.id, self.experiment.id], 0)
        return [
            self._executor.run(self._job(slot.arm, slot.index, repeat_seed(seed, slot.block)))
            for slot in block_order(dict.fromkeys(arms, n), seed)
        ]

    def _job(self, arm: str, index: int, seed: int) -> Job:
        setting = self.experiment.arms[arm]
        return Job(
            repeat=f"{self.experiment.id}/pilot/{arm}/{index}",
            arm=arm,
            index=index,
            seed=seed,
            metrics={name: metric.unit for name, metric in self.experiment.metrics.items()},
            params=setting.params,
            env=arm_environment(self.experiment, setting),
            timeout=setting.timeout,
            service=service_of(self.experiment),
            command=command_of(self.study, self.experiment),
            cache=self.experiment.table.cache,
            exclusive=self.experiment.table.exclusive,
        )


def _unknown(kind: str, name: str, names: list[str]) -> Problem:
    return Problem(code="PR007", message=f"unknown {kind} {quoted(name)}{suggestion(name, names)}")
