"""Buying what is registered and missing: which series is due, and running it into the evidence.

Nothing is launched that the lock at HEAD does not register, unless exploring was asked for.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.conditions import unmet
from pytest_prereg.audit.deciding import candidates
from pytest_prereg.audit.guards import wants_confirmation
from pytest_prereg.errors import PreregError, Problem, UsageError
from pytest_prereg.evidence.environment import describe_machine, describe_versions
from pytest_prereg.evidence.holds import ExperimentHold
from pytest_prereg.evidence.model import Finished, Header, Series
from pytest_prereg.evidence.naming import shown, utc_now
from pytest_prereg.evidence.parsing import FORMAT_VERSION
from pytest_prereg.evidence.series import is_current, next_number
from pytest_prereg.evidence.sessions import SessionWriter, known_digests
from pytest_prereg.measure.executors.local import LocalExecutor
from pytest_prereg.measure.interrupts import sigterm_interrupts
from pytest_prereg.measure.loop import measure
from pytest_prereg.measure.schedule import seed_base
from pytest_prereg.permission import refusal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.progress import Progress
    from pytest_prereg.registry.model import Experiment, Prediction


class Due(msgspec.Struct, kw_only=True, frozen=True):
    """A series that is to be opened, or gone on with."""

    experiment: str
    number: int
    series: Series | None
    """What earlier sessions settled of it."""
    predictions: dict[str, str]
    """Registration digests that it binds."""
    missing: int
    planned: int
    """The most that there can be, where a stopping rule may end the series early."""
    may_end_early: bool = False


def check_executor(name: str | None) -> None:
    """Refuse an executor that is not built.

    Raises:
        UsageError: PR008.
    """
    if name not in (None, "local"):
        message = f'executor "{name}" is not there yet; only "local" is'
        raise UsageError(Problem(code="PR008", message=message))


class Campaign:
    """Measures for one study, each experiment once in a run, and once more to confirm that a guard fails."""

    def __init__(
        self,
        state: StudyState,
        *,
        fresh: bool = False,
        explore: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self.state = state
        self.fresh = fresh
        self.explore = explore
        self.progress = progress
        self.measured: dict[str, list[Due]] = {}
        self.refused: dict[str, Problem] = {}
        self.outputs: list[Path] = []
        self._failed: dict[str, PreregError] = {}
        self._announced: set[str] = set()

    def measure(self, prediction: Prediction) -> None:
        """Measure what the prediction lacks, if it is registered at HEAD; ``refused`` says where it is not.

        Raises:
            MeasureError: nothing could be launched, or no more.
            EvidenceError: nothing could be written.
            KeyboardInterrupt: the run was interrupted, also by SIGTERM; what had finished is kept.
        """
        for name in prediction.experiments:
            self._measure(prediction, name)
            if wants_confirmation(self.state, prediction):
                self._measure(prediction, name)

    def _measure(self, prediction: Prediction, name: str) -> None:
        failed = self._failed.get(name)
        confirming = wants_confirmation(self.state, prediction)
        if (name in self.measured and failed is None and not confirming) or not self.due(prediction, name):
            return
        if failed is not None:
            raise failed
        try:
            self._run(prediction, name)
        except PreregError as error:
            self._failed[name] = said_before(error)
            raise

    def due(self, prediction: Prediction, name: str) -> Due | None:
        """The series of an experiment that a prediction waits for; ``None`` if none is, or may be run."""
        experiment = self.state.study.experiments[name]
        if experiment.kind != "fixture":
            return None
        complete = candidates(self.state, prediction, name)
        bound = any(self.state.binds(one, prediction) for one in complete)
        if bound and not self.fresh and not wants_confirmation(self.state, prediction):
            return None
        if unmet(self.state, prediction):
            return None
        problem = refusal(self.state, prediction)
        if problem is not None:
            consequence = "its verdict is exploratory" if self.explore else "nothing was measured for it"
            self.refused[prediction.id] = replace(problem, message=f"{problem.message}, so {consequence}.")
            if not self.explore or (complete and not self.fresh):
                return None
        return self._next(experiment, self.state.series[experiment.id])

    def announce(self, prediction: Prediction) -> list[str]:
        """What a run would measure for this prediction, for ``--co``; an experiment is named once."""
        lines = []
        for name in prediction.experiments:
            due = None if name in self._announced else self.due(prediction, name)
            if due is not None:
                self._announced.add(name)
                lines.append(self._announcement(due))
        return lines

    def _announcement(self, due: Due) -> str:
        took = self._seconds_per_repeat(due.experiment)
        most = "at most " if due.may_end_early else ""
        about = f", about {most}{took * due.missing:.0f} s" if took else ", time unknown"
        repeats = f"{most}{due.missing} of {due.planned} repeats{about}, $0.00"
        return f"would measure {due.experiment}: series {due.number}, {repeats}"

    def advice(self, *, interrupted: bool, recorded: bool) -> list[str]:
        """What was kept, and the command that comes next."""
        study = self.state.study
        lines = [str(replace(problem, advice=None)) for problem in self.refused.values()]
        lines.extend(f"    {advice}" for advice in dict.fromkeys(one.advice for one in self.refused.values()))
        files, repeats = self._kept()
        if files:
            lines.append(f"evidence: {files} file{'s' * (files != 1)}, {repeats} repeats kept")
        lines.extend(f"output of repeats that failed: {folder}" for folder in self.outputs)
        if interrupted:
            fresh = " --prereg-fresh" if self.fresh else ""
            return [*lines, f"resume:  pytest --prereg{fresh}   (what is kept is not run again)"]
        changed = self._uncommitted(recorded=recorded)
        if changed:
            lines.append(f"next:  git add {' '.join(changed)} && git commit -m 'Evidence for {study.id}'")
        return lines

    def _uncommitted(self, *, recorded: bool) -> list[str]:
        """Lock and evidence, where there is something new in them that a clone would lack."""
        study, repository = self.state.study, self.state.repository
        if repository is None:
            return []
        evidence = study.evidence_folder
        lock = [shown(study.lock_path)] if recorded and repository.differs(study.lock_path) else []
        return [*lock, *([shown(evidence)] if evidence.is_dir() and repository.differs(evidence) else [])]

    # What may run

    def bound(self, experiment: Experiment) -> dict[str, str]:
        """Registration digests of those predictions of the experiment that HEAD registers as they stand."""
        state = self.state
        every = state.study.predictions.values()
        predictions = (one for one in every if experiment.id in one.experiments)
        return {one.id: state.digests[one.id] for one in predictions if refusal(state, one) is None}

    def _next(self, experiment: Experiment, every: Sequence[Series]) -> Due:
        """Go on with the open series that binds what is registered, else open a new one."""
        bound = self.bound(experiment)
        source = self.state.source(experiment)
        opened = (one for one in every if not one.complete and one.seed and serves(one, bound))
        opened = (one for one in opened if {*(one.planned or {})} <= {*experiment.arms})
        versions = self.state.subject(experiment), self.state.data(experiment)
        started = next((one for one in opened if is_current(one, source, bound, versions)), None)
        planned = sum(((started or experiment).planned or {}).values())
        return Due(
            experiment=experiment.id,
            number=started.number if started else next_number(every),
            series=started,
            predictions=dict(started.predictions) if started else bound,
            missing=planned - len(started.repeats) if started else planned,
            planned=planned,
            may_end_early=experiment.stopping is not None,
        )

    # Running it

    def _run(self, prediction: Prediction, name: str) -> None:
        """Take the experiment, look again what is due, and measure it."""
        state = self.state
        experiment = state.study.experiments[name]
        with ExperimentHold.take(state.study.evidence_folder, experiment.id) as hold:
            state.reread()
            due = self.due(prediction, name)
            if due is None:
                return
            executor = LocalExecutor(state.study, experiment)
            try:
                with sigterm_interrupts():
                    executor.start()
                    self.measured.setdefault(experiment.id, []).append(due)
                    header = self._header(experiment, due, executor)
                    writer = SessionWriter.open(state.study.evidence_folder, header, hold=hold)
                    if self.progress:
                        self.progress.start(
                            experiment.id, due.missing, due.planned, may_end_early=due.may_end_early
                        )
                    measure(
                        state.study,
                        experiment,
                        due.series,
                        writer,
                        executor,
                        header=header,
                        progress=self.progress.repeat if self.progress else None,
                        files=state.files[experiment.id],
                        enough=lambda _block: state.is_enough(experiment, due.number),
                    )
            finally:
                executor.close()
                self.outputs.extend(executor.outputs)
                state.reread()

    def _header(self, experiment: Experiment, due: Due, executor: LocalExecutor) -> Header:
        state = self.state
        repository = state.repository
        digests = due.predictions.values() or [state.digests[one] for one in sorted(state.digests)]
        return Header(
            version=FORMAT_VERSION,
            study=state.study.id,
            experiment=experiment.id,
            series=due.number,
            origin="measured",
            planned=due.series.planned if due.series else experiment.planned,
            pairing=experiment.pairing,
            seed=due.series.seed if due.series else seed_base(digests, due.number),
            source=state.source(experiment),
            subject=state.subject(experiment),
            data=state.data(experiment),
            predictions=due.predictions,
            head=repository.head() if repository else None,
            dirty=repository.dirty() if repository else None,
            session=os.urandom(8).hex(),
            created=utc_now(),
            executor=executor.name,
            environment={**describe_machine(), "scrubbed": list(executor.scrubbed)},
            versions=describe_versions(),
            known=known_digests(file for files in state.files.values() for file in files),
        )

    def _seconds_per_repeat(self, experiment: str) -> float | None:
        """Mean duration of the repeats that are recorded, pilots included."""
        lines = (line for file in self.state.files[experiment] for line in file.lines)
        finished = (line for line in lines if isinstance(line, Finished))
        totals = [line.seconds["total"] for line in finished if "total" in line.seconds]
        return sum(totals) / len(totals) if totals else None

    def _kept(self) -> tuple[int, int]:
        """Files and settled repeats of the series measured in this run."""
        series = [
            one
            for several in self.measured.values()
            for due in several
            for one in self.state.series[due.experiment]
            if one.number == due.number
        ]
        return sum(len(one.sessions) for one in series), sum(len(one.repeats) for one in series)


def serves(series: Series, bound: Mapping[str, str]) -> bool:
    """Whether going on with a series decides what is registered; an exploratory one never does."""
    return not series.predictions if not bound else any(name in bound for name in series.predictions)


def said_before(error: PreregError) -> PreregError:
    """Return the error for the experiment's other predictions: what is wrong, without the advice again."""
    return type(error)([replace(problem, advice=None) for problem in error.problems])
