"""Fills the open slots of a series: launches repeat after repeat and writes down how each ended."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.errors import MeasureError, Problem
from pytest_prereg.evidence.environment import machine_class, machine_elsewhere
from pytest_prereg.evidence.model import Finished, Launched, Outcome, Started
from pytest_prereg.evidence.naming import repeat_id, utc_now
from pytest_prereg.evidence.series import attempts_by_repeat, running
from pytest_prereg.measure.checkpoints import discard, discard_settled
from pytest_prereg.measure.executors.base import Result
from pytest_prereg.measure.limits import Forecast, Limits, Meter
from pytest_prereg.measure.planning import is_look, job_for, schedule, settled_slots, warmups
from pytest_prereg.measure.progress import Progress
from pytest_prereg.measure.source_watch import SourceWatch
from pytest_prereg.registry.environment_conditions import machine_outside, repeat_outside
from pytest_prereg.registry.instruments import INSTRUMENTS, SELF_BOUND
from pytest_prereg.registry.rules import rule_broken
from pytest_prereg.registry.uses import metrics_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_prereg.evidence.files import Attempt, SessionFile
    from pytest_prereg.evidence.model import Header, Series, Value
    from pytest_prereg.evidence.sessions import SessionWriter
    from pytest_prereg.measure.executors.base import Executor, Job
    from pytest_prereg.measure.schedule import Slot
    from pytest_prereg.registry.model import Experiment, Study

PREEMPTED = "preempted"
FAULTS_BEFORE_RESTART = 2
"""A small series may lose two attempts and still decide: what was broken for a moment costs no third."""

CONSECUTIVE_FAULTS = 3
"""So many infrastructure faults in a row are no accident of one repeat."""


class _LimitReached(Exception):  # noqa: N818 - it is no error
    """The run may buy no more."""


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
    limits: Limits | None = None,
) -> str | None:
    """Run every open slot in schedule order, until each has settled, and close the session.

    Under a stopping rule it ends before, at the first look that finds the series decided. A look whose slots
    earlier sessions settled is taken before anything is launched. Warm-ups come before the first repeat that
    is launched: a session that has nothing to launch runs none.

    Args:
        study: The study.
        experiment: The experiment to run.
        series: What earlier sessions settled of this series, or ``None`` for a new one.
        writer: The session's file. It is closed whatever happens; an interrupted repeat has no finished line.
        executor: Where to run; started, and left running.
        header: The header that ``writer`` was opened with: it has the plan, the seed and the machine.
        progress: Called before each launch, and while one has to wait.
        files: The earlier session files of the experiment, for the attempts in them, and what they took.
        observe: Called after each attempt with its two lines; for pilots, whose values may be seen, and for
            whoever tells of failures alone.
        enough: Asked at each look with the block that is settled: whether the series is decided for good.
        limits: What the run may spend.

    Returns:
        What the limit is that stopped it before all is settled, or ``None``.

    Raises:
        MeasureError: If nothing can be launched any more, or the code is no longer what the header says.
        EvidenceError: If nothing can be written any more.
    """
    with writer:
        session = _Session(study, experiment, header, writer, executor)
        session.progress, session.observe = progress, observe
        session.remember(series, files)
        limits = session.limits = limits or Limits()
        session.meter = limits.meter(header.rates, before=header.built, elsewhere=header.elsewhere)
        try:
            session.run(enough)
        except _LimitReached:
            writer.close("stopped")
            return limits.reached
        finally:
            session.meter.stop()
    return None


class _Flight:
    """A repeat that was launched, and whose end nobody has seen yet."""

    def __init__(self, slot: Slot, job: Job, started: Started) -> None:
        self.slot = slot
        self.job = job
        self.started = started
        self.began = time.monotonic()
        self.call: str | None = None
        """What finds it again in another session."""


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
        self.warmups = warmups(experiment, header)
        self.left: Counter[str] = Counter()
        self.attempts: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.limits = Limits()
        self.meter = Meter(header.rates)
        self.forecast = Forecast(experiment, header.rates)
        self.flights: dict[str, _Flight] = {}
        """What runs, by repeat."""
        self.running: list[Attempt] = []
        """What earlier sessions began that may run still."""
        self.unbegun: dict[str, Attempt] = {}
        """What they began and no service has, by repeat: it is launched now, and is the same attempt."""
        self.unsent: dict[str, str | None] = {}
        """Marks of launches that failed: what failed can have been the answer alone."""
        self.parallel = min(executor.parallel, experiment.table.max_parallel)
        self.consecutive = 0
        self.restarted = self.parallel > 1
        """What runs beside the one that failed must not be stopped for it."""
        self.is_pilot = header.origin == "pilot"
        self.machine = None if header.elsewhere else machine_class(header.environment)
        """Where every repeat runs; ``None`` where each says that for itself."""
        self.used = _used_metrics(study, experiment)
        measured = header.origin == "measured"
        self.watch = SourceWatch(study, experiment, header) if measured else None

    def remember(self, series: Series | None, files: Iterable[SessionFile]) -> None:
        """Take in what earlier sessions of the series did, and how long any of the experiment took."""
        files = list(files)
        self.forecast = Forecast(
            self.experiment,
            self.header.rates,
            files,
            executor=self.header.executor,
            parallel=self.parallel,
        )
        measured = [file for file in files if file.header and file.header.origin != "pilot"]
        self.settled = settled_slots(series)
        self.left = Counter(self.header.planned or {}) - Counter(arm for arm, _ in self.settled)
        self.attempts.update(attempts_by_repeat(measured))
        self.running = running(measured)
        last = {attempt.repeat: attempt for file in measured for attempt in file.attempts}
        faults = (one for one in last.values() if one.outcome is Outcome.INFRASTRUCTURE)
        # What was begun again by the service has ended under the mark that it began with.
        left = (one for one in faults if one.call is None or one.cause == PREEMPTED)
        self.unsent.update((one.repeat, one.mark) for one in left)
        ended = ((attempt.repeat, attempt.outcome) for file in measured for attempt in file.attempts)
        self.faults.update(repeat for repeat, outcome in ended if outcome is Outcome.INFRASTRUCTURE)

    def run(self, enough: Callable[[int], bool] | None) -> None:
        """Settle all slots, or those up to the look that finds the series decided."""
        planned = schedule(self.experiment, self.header)
        self._discard_checkpoints(planned)
        self._take_up(planned)
        try:
            for block, slots in groupby(planned, key=lambda slot: slot.block):
                for slot in slots:
                    self.settle(slot)
                if enough is not None and is_look(self.experiment.stopping, block):
                    self._land_all()
                    if enough(block):
                        return
        except _LimitReached:
            self._land_all(again=False)
            raise
        self._land_all()

    def _take_up(self, planned: Iterable[Slot]) -> None:
        """Wait again for what an earlier session had launched, where it is still known."""
        opened = {self._job(slot).repeat: slot for slot in planned if not self._is_settled(slot)}
        for attempt in self.running:
            slot = opened.get(attempt.repeat)
            if slot is not None and attempt.repeat not in self.flights:
                job = replace(self._job(slot), mark=attempt.mark)
                call = self._attached(job, attempt)
                if call is not None:
                    self.unbegun.pop(job.repeat, None)
                    self._note(_Flight(slot, job, self._started_before(slot, job, attempt)), call)

    def _attached(self, job: Job, attempt: Attempt) -> str | None:
        """Return under which call an attempt was taken up: by what its mark says, or evidence.

        The service is asked for the mark in any case. Evidence may have lost, or never had, what finds it;
        and what nobody asks for is forgotten, while that there were marks would not be.
        """
        is_known = attempt.mark is not None and self.executor.remembers(attempt.mark)
        begun = self.executor.find(job) if is_known else None
        for call in dict.fromkeys((begun, attempt.call)):
            if call is not None and self.executor.attach(job, call):
                return call
        if is_known and begun is None:
            self.unbegun[job.repeat] = attempt
        return None

    def _discard_checkpoints(self, planned: Iterable[Slot]) -> None:
        """Remove what slots have left that settled in a session which was killed before it could do so."""
        opened = (slot for slot in planned if (slot.arm, slot.index) not in self.settled)
        names = {repeat_id(self.experiment.id, self.header.series, slot.arm, slot.index) for slot in opened}
        discard_settled(self.study.path, self.header.seed, names)

    def settle(self, slot: Slot) -> None:
        """Run a slot; where only one can run at a time until it has its outcome."""
        if self._is_settled(slot) or self._job(slot).repeat in self.flights:
            return
        self._warm_up(slot)
        self._launch(slot, self._job(slot), slot.block)
        while len(self.flights) >= self.parallel:
            self._land()

    def _is_settled(self, slot: Slot) -> bool:
        return (slot.arm, slot.index) in self.settled

    def _job(self, slot: Slot) -> Job:
        return job_for(self.study, self.experiment, self.header, slot)

    def _warm_up(self, first: Slot) -> None:
        """Run the warm-ups before the first repeat of the session, if what is left suffices for that, too.

        None is run again, however it ended; three faults in a row are no accident even so.
        """
        warmups, self.warmups = self.warmups, []
        self._check_limits(*(slot.arm for slot in warmups), first.arm)
        for slot in warmups:
            self._launch(slot, self._job(slot), first.block)
            while any(flight.slot.is_warmup for flight in self.flights.values()):
                self._land()

    def _launch(self, slot: Slot, job: Job, block: int) -> None:
        """Launch a slot once, with a line before and, if a service runs it, a line after."""
        self._get_ready(slot, job, block)
        started = self._begun(slot, job)
        self.writer.started(started)
        job = replace(job, mark=started.mark)
        flight = _Flight(slot, job, started)
        self.flights[job.repeat] = flight
        call = self.executor.launch(job)
        if call is None:
            self.unsent[job.repeat] = job.mark
        else:
            self._keep(flight, call)

    def _begun(self, slot: Slot, job: Job) -> Started:
        """Return the line of what is launched now: a new attempt, or one that never reached a service."""
        left = self.unbegun.pop(job.repeat, None)
        if left is not None:
            return self._started_before(slot, replace(job, mark=left.mark), left)
        self.attempts[job.repeat] += 1
        mark = self.unsent.pop(job.repeat, None)
        if mark is None or not self.executor.remembers(mark):
            mark = self.executor.mark_for(job)
        return self._started(slot, replace(job, mark=mark))

    def _note(self, flight: _Flight, call: str) -> None:
        """Write down that a repeat runs which another session, or the service by itself, has begun."""
        self.writer.started(flight.started)
        self.flights[flight.job.repeat] = flight
        self._keep(flight, call)

    def _keep(self, flight: _Flight, call: str) -> None:
        flight.call = call
        self.writer.launched(
            Launched(repeat=flight.started.repeat, attempt=flight.started.attempt, call=call)
        )

    def _land_all(self, *, again: bool = True) -> None:
        """Wait until all that was launched has settled; of what failed by a fault only if ``again``."""
        while self.flights:
            self._land(again=again)

    def _land(self, *, again: bool = True) -> None:
        """Wait until one repeat has ended, and write down how; after a fault run it again, but not for ever.

        A pilot fills no slot, and whoever tries sees what failed: nothing of it is run again.
        """
        job, result = self.executor.collect()
        flight = self.flights.pop(job.repeat)
        for _ in range(result.restarts):
            flight = self._begun_again(flight, result)
        outcome = self._end(flight, result)
        slot, is_pilot = flight.slot, self.is_pilot
        if outcome is Outcome.INFRASTRUCTURE and not is_pilot and not slot.is_warmup:
            self.faults[job.repeat] += 1
            if self.faults[job.repeat] <= max(2, self._planned(slot.arm) / 4):
                if again:
                    self._launch(slot, job, slot.block)
                return
        if not slot.is_warmup:
            self._settled(slot, job)

    def _settled(self, slot: Slot, job: Job) -> None:
        self.settled.add((slot.arm, slot.index))
        self.left[slot.arm] -= 1
        if job.checkpoint is not None:
            discard(Path(job.checkpoint))

    def _begun_again(self, flight: _Flight, result: Result) -> _Flight:
        """Write down that the service took a repeat from its machine, and began it again on another."""
        preempted = Result(
            outcome=Outcome.INFRASTRUCTURE,
            cause=PREEMPTED,
            error="the service began the repeat again without a word",
            environment=result.environment,
        )
        self.writer.finished(self._finished(flight.started, preempted, 0.0))
        self.faults[flight.job.repeat] += 1
        self.attempts[flight.job.repeat] += 1
        again = _Flight(flight.slot, flight.job, self._started(flight.slot, flight.job))
        self._note(again, flight.call or "")
        return self.flights.pop(flight.job.repeat)

    def _end(self, flight: _Flight, result: Result) -> Outcome:
        """Write down how an attempt ended; return that."""
        arm, took = flight.slot.arm, self._took(flight, result)
        if self.watch is not None:
            self.watch.check()
        finished = self._finished(flight.started, result, took)
        self.writer.finished(finished)
        self.meter.add(arm, took)
        self.forecast.learn(arm, took)
        if self.observe is not None:
            self.observe(flight.started, finished)
        self._count_faults(result)
        return result.outcome

    def _took(self, flight: _Flight, result: Result) -> float:
        """Return what an attempt took; where it doesn't say, all since its launch but for the queue."""
        since = time.monotonic() - flight.began - result.seconds.get("queue", 0.0)
        return result.seconds.get("total", max(0.0, since))

    def _get_ready(self, slot: Slot, job: Job, block: int) -> None:
        """Wait until the repeat may be launched, unless a limit is reached before."""
        now = partial(self._report, slot, job, block)
        waited = False

        def waiting() -> None:
            nonlocal waited
            waited = True
            self._check_limits(slot.arm)
            now(waiting=True)

        self._check_limits(slot.arm)
        now()
        self.executor.waiting = waiting
        self.executor.prepare(job)
        if waited:
            self._check_limits(slot.arm)
            now()

    def _check_limits(self, *arms: str) -> None:
        running = (flight.slot.arm for flight in self.flights.values())
        if self.limits.are_set and self.limits.refuses(self.forecast.of((*running, *arms))):
            raise _LimitReached

    def _started(self, slot: Slot, job: Job) -> Started:
        return Started(
            repeat=job.repeat,
            arm=slot.arm,
            index=slot.index,
            attempt=self.attempts[job.repeat],
            block=None if slot.is_warmup else slot.block,
            seed=job.seed,
            at=utc_now(),
            warmup=slot.is_warmup,
            mark=job.mark,
        )

    def _started_before(self, slot: Slot, job: Job, attempt: Attempt) -> Started:
        return replace(self._started(slot, job), attempt=attempt.number, attached=True)

    def _finished(self, started: Started, result: Result, took: float) -> Finished:
        outcome, cause = self._ended(started, result)
        values, reduced = _without_unused_vectors(result.values, self.used)
        return Finished(
            repeat=started.repeat,
            attempt=started.attempt,
            outcome=outcome,
            values=values,
            diagnostics=result.diagnostics,
            instruments={**_declared_instruments(self.experiment, result), **result.instruments},
            cause=cause,
            error=result.error,
            machine=self.machine or machine_elsewhere(result.environment),
            environment=result.environment,
            seconds={**result.seconds, "total": took},
            at=utc_now(),
            samples={**result.samples, **reduced},
            outside=self._outside(result),
            resumed=result.resumed,
            unreadable=result.unreadable,
        )

    def _outside(self, result: Result) -> str | None:
        """Return which conditions did not hold; of a repeat that a service ran those on its machine, too."""
        conditions, environment = self.experiment.table.conditions, result.environment
        has_begun = self.header.elsewhere and result.outcome is not Outcome.INFRASTRUCTURE
        machine = machine_outside(conditions, environment) if has_begun else None
        return "; ".join(filter(None, (machine, repeat_outside(conditions, environment)))) or None

    def _ended(self, started: Started, result: Result) -> tuple[Outcome, str | None]:
        """Return outcome and cause as they are written: a rule excludes only what would have counted."""
        if self.is_pilot:
            return Outcome.PILOT, result.cause
        if started.warmup:
            how = None if result.outcome is Outcome.OK else f"{result.outcome}: {result.cause}"
            return Outcome.WARMUP, how
        broken = rule_broken(self.experiment.table.exclude, result.environment)
        if broken is None or result.outcome is not Outcome.OK:
            return result.outcome, result.cause
        return Outcome.EXCLUDED, broken

    def _count_faults(self, result: Result) -> None:
        """Start the executor anew after two faults in a row, once; after three more in a row give up.

        Of repeats that run side by side nothing is started anew.
        """
        self.consecutive = self.consecutive + 1 if result.outcome is Outcome.INFRASTRUCTURE else 0
        if self.consecutive >= FAULTS_BEFORE_RESTART and not self.restarted:
            self.restarted, self.consecutive = True, 0
            self.executor.close()
            self.executor.start()
        elif self.consecutive >= CONSECUTIVE_FAULTS:
            raise MeasureError(self._given_up(result))

    def _given_up(self, result: Result) -> Problem:
        """Say so, and what comes of it: a series that has lost too much can only be inconclusive."""
        name = self.experiment.id
        times = f"{CONSECUTIVE_FAULTS} repeats in a row, after starting anew"
        what = f'experiment "{name}": {times}, failed for a reason not its own: {result.cause}'
        if self.is_pilot:  # it belongs to no series, and what failed was told when it did
            return Problem(code="PR132", message=what, advice="Nothing more was launched.")
        lost = f"{sum(self.faults.values()) + 1} attempts are lost so far"
        void = f"pytest-prereg void {name}/{self.header.series} --reason '…'"
        lines = (
            result.error,
            "Nothing more was launched; the same command resumes here.",
            f"{lost}. Where that is more than max(2, n/4) the series can only be inconclusive: {void}",
            "closes it, and the next run opens another.",
        )
        return Problem(code="PR132", message=what, advice="\n".join(line for line in lines if line))

    def _report(self, slot: Slot, job: Job, block: int, *, waiting: bool = False) -> None:
        if self.progress is None:
            return
        self.progress(
            Progress(
                experiment=self.experiment.id,
                arm=slot.arm,
                index=slot.index,
                block=block,
                attempt=self.attempts[job.repeat],
                done=len(self.settled),
                planned=sum((self.header.planned or {}).values()),
                blocks=max((self.header.planned or {}).values(), default=0),
                may_end_early=self.experiment.stopping is not None,
                seconds_left=self.forecast.whole(self.left).seconds,
                usd=self.meter.usd,
                warmup=slot.is_warmup,
                waiting=waiting,
            )
        )

    def _planned(self, arm: str) -> int:
        return (self.header.planned or {}).get(arm, 0)


def _used_metrics(study: Study, experiment: Experiment) -> frozenset[str]:
    """Return the metrics that some registered quantity reads."""
    predictions = study.predictions.values()
    return frozenset(metric for one in predictions for metric in metrics_of(one, experiment.id))


def _declared_instruments(experiment: Experiment, result: Result) -> dict[str, str]:
    """Return what took the values by the declaration alone; the package's instruments say it themselves."""
    declared = {
        name: metric.instrument for name, metric in experiment.metrics.items() if name in result.values
    }
    own = {*INSTRUMENTS, *SELF_BOUND}
    return {name: taker for name, taker in declared.items() if taker is not None and taker not in own}


def _without_unused_vectors(
    values: dict[str, Value], used: frozenset[str]
) -> tuple[dict[str, Value], dict[str, int]]:
    """Return the values, with means in place of vectors that nothing reads, and how many each is of."""
    reduced = {name: value for name, value in values.items() if isinstance(value, list) and name not in used}
    means = {name: statistics.fmean(value) for name, value in reduced.items()}
    return {**values, **means}, {name: len(value) for name, value in reduced.items()}
