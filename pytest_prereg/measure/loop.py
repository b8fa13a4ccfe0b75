"""Fills the open slots of a series: launches repeat after repeat and writes down how each ended."""

from __future__ import annotations

import shutil
import statistics
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from pytest_prereg.errors import MeasureError, Problem
from pytest_prereg.evidence.environment import machine_class
from pytest_prereg.evidence.model import Finished, Outcome, Started
from pytest_prereg.evidence.naming import repeat_id, utc_now
from pytest_prereg.evidence.series import attempts_by_repeat
from pytest_prereg.measure.checkpoints import checkpoint_folder
from pytest_prereg.measure.executors.base import Job, Result
from pytest_prereg.measure.executors.local import arm_environment
from pytest_prereg.measure.executors.services import service_of
from pytest_prereg.measure.schedule import Slot, block_order, repeat_seed, sequential_order
from pytest_prereg.measure.source_watch import SourceWatch
from pytest_prereg.registry.uses import metrics_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.evidence.model import Header, Series, Value
    from pytest_prereg.evidence.sessions import SessionWriter
    from pytest_prereg.measure.executors.base import Executor
    from pytest_prereg.registry.model import Experiment, Stopping, Study

CONSECUTIVE_FAULTS = 3
"""So many infrastructure faults in a row are no accident of one repeat."""

FIRST_LOOK = 3
"""No interval has fewer blocks, so nothing can be decided before."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a session is when it is about to launch a repeat; never a value."""

    experiment: str
    arm: str
    index: int
    block: int
    attempt: int
    done: int
    """Slots settled, those of earlier sessions included."""
    planned: int
    blocks: int
    """Planned ones: of a series that may end early the most that there can be."""
    may_end_early: bool
    seconds_per_repeat: float | None
    """Mean over this session so far."""


def measure(
    study: Study,
    experiment: Experiment,
    series: Series | None,
    writer: SessionWriter,
    executor: Executor,
    *,
    header: Header,
    progress: Callable[[Progress], None] | None = None,
    files: Iterable[SessionFile] = (),
    observe: Callable[[Started, Finished], None] | None = None,
    enough: Callable[[int], bool] | None = None,
) -> None:
    """Run every open slot in schedule order, until each has settled, and close the session.

    Under a stopping rule it ends before, at the first look that finds the series decided. A look whose slots
    earlier sessions settled is taken before anything is launched.

    Args:
        study: The study.
        experiment: The experiment to run.
        series: What earlier sessions settled of this series, or ``None`` for a new one.
        writer: The session's file. It is closed whatever happens; an interrupted repeat has no finished line.
        executor: Where to run; started, and left running.
        header: The header that ``writer`` was opened with: it has the plan, the seed and the machine.
        progress: Called before each launch.
        files: The earlier session files of the experiment, for the attempts in them.
        observe: Called after each attempt with its two lines; for pilots, whose values may be seen.
        enough: Asked at each look with the block that is settled: whether the series is decided for good.

    Raises:
        MeasureError: If nothing can be launched any more, or the code is no longer what the header says.
        EvidenceError: If nothing can be written any more.
    """
    with writer:
        session = _Session(study, experiment, header, writer, executor)
        session.progress, session.observe = progress, observe
        session.remember(series, files)
        for block, slots in groupby(schedule(experiment, header), key=lambda slot: slot.block):
            for slot in slots:
                session.settle(slot)
            if enough is not None and is_look(experiment.stopping, block) and enough(block):
                return


def is_look(stopping: Stopping | None, block: int) -> bool:
    """Whether a stopping rule lets a series end after so many blocks."""
    if stopping is None:
        return False
    return block >= FIRST_LOOK if stopping.anytime else block in stopping.looks


def schedule(experiment: Experiment, header: Header) -> list[Slot]:
    """Return all planned slots of a series in the order in which they are to run."""
    planned = header.planned or {}
    if experiment.table.order == "sequential":
        return sequential_order(planned)
    return block_order(planned, header.seed)


def job_for(study: Study, experiment: Experiment, header: Header, slot: Slot) -> Job:
    """Return what an executor needs to run one slot."""
    arm = experiment.arms[slot.arm]
    repeat = repeat_id(experiment.id, header.series, slot.arm, slot.index)
    pilot = header.origin == "pilot"
    return Job(
        repeat=repeat,
        arm=slot.arm,
        index=slot.index,
        seed=repeat_seed(header.seed, slot.block),
        metrics={name: metric.unit for name, metric in experiment.metrics.items()},
        params=arm.params,
        env=arm_environment(experiment, arm),
        timeout=arm.timeout,
        checkpoint=None if pilot else str(checkpoint_folder(study.path, header.seed, repeat)),
        service=service_of(experiment),
        cache=experiment.table.cache,
        exclusive=experiment.table.exclusive,
    )


class _Session:
    """One session's way through the slots of a series."""

    def __init__(
        self, study: Study, experiment: Experiment, header: Header, writer: SessionWriter, executor: Executor
    ) -> None:
        self.study = study
        self.experiment = experiment
        self.header = header
        self.writer = writer
        self.executor = executor
        self.progress: Callable[[Progress], None] | None = None
        self.observe: Callable[[Started, Finished], None] | None = None
        self.settled: set[tuple[str, int]] = set()
        self.attempts: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.durations: list[float] = []
        self.consecutive = 0
        self.restarted = False
        self.machine = machine_class(header.environment)
        self.used = _used_metrics(study, experiment)
        measured = header.origin == "measured"
        self.watch = SourceWatch(study, experiment, header) if measured else None

    def remember(self, series: Series | None, files: Iterable[SessionFile]) -> None:
        """Take in what earlier sessions of the series did."""
        files = [file for file in files if file.header and file.header.origin != "pilot"]
        self.settled.update((repeat.arm, repeat.index) for repeat in (series.repeats if series else ()))
        self.attempts.update(attempts_by_repeat(files))
        ended = ((attempt.repeat, attempt.outcome) for file in files for attempt in file.attempts)
        self.faults.update(repeat for repeat, outcome in ended if outcome is Outcome.INFRASTRUCTURE)

    def settle(self, slot: Slot) -> None:
        """Run a slot until it has its outcome: again in place after a fault, but not for ever."""
        if (slot.arm, slot.index) in self.settled:
            return
        job = job_for(self.study, self.experiment, self.header, slot)
        while self._attempt(slot, job) is Outcome.INFRASTRUCTURE:
            self.faults[job.repeat] += 1
            if self.faults[job.repeat] > max(2, self._planned(slot.arm) / 4):
                break
        self.settled.add((slot.arm, slot.index))
        if job.checkpoint is not None:
            shutil.rmtree(job.checkpoint, ignore_errors=True)

    def _attempt(self, slot: Slot, job: Job) -> Outcome:
        """Launch a slot once, with a line before and a line after; return how it ended."""
        self.attempts[job.repeat] += 1
        self._report(slot, job)
        self.executor.prepare(job)
        started = self._started(slot, job)
        self.writer.started(started)
        result = self.executor.run(job)
        if self.watch is not None:
            self.watch.check()
        finished = self._finished(started, result)
        self.writer.finished(finished)
        self.durations.append(result.seconds.get("total", 0.0))
        if self.observe is not None:
            self.observe(started, finished)
        self._count_faults(result)
        return result.outcome

    def _started(self, slot: Slot, job: Job) -> Started:
        return Started(
            repeat=job.repeat,
            arm=slot.arm,
            index=slot.index,
            attempt=self.attempts[job.repeat],
            block=slot.block,
            seed=job.seed,
            at=utc_now(),
        )

    def _finished(self, started: Started, result: Result) -> Finished:
        values, reduced = _without_unused_vectors(result.values, self.used)
        return Finished(
            repeat=started.repeat,
            attempt=started.attempt,
            outcome=Outcome.PILOT if self.header.origin == "pilot" else result.outcome,
            values=values,
            diagnostics=result.diagnostics,
            instruments={**_declared_instruments(self.experiment, result), **result.instruments},
            cause=result.cause,
            error=result.error,
            machine=self.machine,
            environment=result.environment,
            seconds=result.seconds,
            at=utc_now(),
            samples={**result.samples, **reduced},
            resumed=result.resumed,
        )

    def _count_faults(self, result: Result) -> None:
        """Start the executor anew after several faults in a row, once; then give up."""
        self.consecutive = self.consecutive + 1 if result.outcome is Outcome.INFRASTRUCTURE else 0
        if self.consecutive < CONSECUTIVE_FAULTS:
            return
        if self.restarted:
            raise MeasureError(_given_up(self.experiment.id, result))
        self.restarted, self.consecutive = True, 0
        self.executor.close()
        self.executor.start()

    def _report(self, slot: Slot, job: Job) -> None:
        if self.progress is None:
            return
        self.progress(
            Progress(
                experiment=self.experiment.id,
                arm=slot.arm,
                index=slot.index,
                block=slot.block,
                attempt=self.attempts[job.repeat],
                done=len(self.settled),
                planned=sum((self.header.planned or {}).values()),
                blocks=max((self.header.planned or {}).values(), default=0),
                may_end_early=self.experiment.stopping is not None,
                seconds_per_repeat=statistics.fmean(self.durations) if self.durations else None,
            )
        )

    def _planned(self, arm: str) -> int:
        return (self.header.planned or {}).get(arm, 0)


def _used_metrics(study: Study, experiment: Experiment) -> frozenset[str]:
    """Return the metrics that some registered quantity reads."""
    predictions = study.predictions.values()
    return frozenset(metric for one in predictions for metric in metrics_of(one, experiment.id))


def _declared_instruments(experiment: Experiment, result: Result) -> dict[str, str]:
    recorded = (metric for metric in experiment.metrics.values() if metric.name in result.values)
    return {metric.name: metric.instrument for metric in recorded if metric.instrument is not None}


def _without_unused_vectors(
    values: dict[str, Value], used: frozenset[str]
) -> tuple[dict[str, Value], dict[str, int]]:
    """Return the values, with means in place of vectors that nothing reads, and how many each is of."""
    reduced = {name: value for name, value in values.items() if isinstance(value, list) and name not in used}
    means = {name: statistics.fmean(value) for name, value in reduced.items()}
    return {**values, **means}, {name: len(value) for name, value in reduced.items()}


def _given_up(experiment: str, result: Result) -> Problem:
    times = f"{CONSECUTIVE_FAULTS} repeats in a row, before and after starting anew"
    return Problem(
        code="PR132",
        message=f'experiment "{experiment}": {times}, failed for a reason not its own: {result.cause}',
        advice=f"{result.error or ''}\nNothing more was launched; the same command resumes here.".strip(),
    )
