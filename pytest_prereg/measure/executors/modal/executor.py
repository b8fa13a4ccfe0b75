"""Runs repeats on Modal, side by side, each in a container of its own."""

from __future__ import annotations

import contextlib
import itertools
import platform
import queue
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from pytest_prereg.errors import MeasureError, Problem
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.executors import wire
from pytest_prereg.measure.executors.base import Result
from pytest_prereg.measure.executors.local import arm_environment
from pytest_prereg.measure.executors.modal import answers, calls, faults, marks, preflight, rates
from pytest_prereg.measure.executors.modal.app import App, longest, longest_body, refusal
from pytest_prereg.measure.executors.modal.bucket import Bucket
from pytest_prereg.measure.executors.modal.calls import Call, Gone, Lost
from pytest_prereg.measure.executors.modal.image import files_for
from pytest_prereg.measure.executors.modal.messages import Errand, Look, whose
from pytest_prereg.registry.toml import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from pytest_prereg.measure.executors.base import Checkout, Job
    from pytest_prereg.measure.executors.modal.calls import End
    from pytest_prereg.registry.model import Arm, Experiment, Study

Asked = TypeVar("Asked")

CLOSE_SECONDS = 4.5
MOST_AT_ONCE = 100
RATES_SECONDS = 10.0
MARKS_SECONDS = 10.0


class Flight(NamedTuple):
    """A repeat that was launched or attached, and whose end nobody has seen."""

    job: Job
    whose: str
    call: Call
    launched: float | None
    """When, by this process; ``None`` of one that an earlier session launched."""
    first: bool = False
    """Whether it was found by another call for the same attempt, which it came before."""


class ModalExecutor:
    """The executor ``modal``, for one experiment."""

    name = "modal"
    parallel = MOST_AT_ONCE

    def __init__(
        self,
        study: Study,
        experiment: Experiment,
        *,
        environ: Mapping[str, str] | None = None,  # noqa: ARG002 - a container has its own
        checkout: Checkout | None = None,
    ) -> None:
        _check(experiment, checkout)
        self.study = study
        self.experiment = experiment
        self.scrubbed: Sequence[str] = ()
        self.outputs: list[Path] = []
        self.waiting: Callable[[], None] | None = None
        self._about: dict[str, Any] = {}
        self._marks = marks.name_for(study.id)
        self._session, self._numbers = "", itertools.count(1)
        """What marks of attempts begin with, "" where none can be used."""
        self._open: dict[str, bool] = {}
        """Of earlier sessions, whether their marks are all there."""
        self._bucket = Bucket(per_second=calls.PER_SECOND, burst=calls.BURST)
        self._app: App | None = None
        self._flights: dict[str, Flight] = {}
        self._ended: queue.SimpleQueue[tuple[Job, Result | Gone]] = queue.SimpleQueue()
        self._is_gone = False
        """Whether Modal has not answered for long: what runs there is left to a later session."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Build the image, begin the app, and import the experiment in a container of it.

        Raises:
            MeasureError: PR130, PR131, PR137, PR138 or PR139; then nothing is left running.
        """
        version = preflight.check()
        self._ended, self._is_gone = queue.SimpleQueue(), False
        try:
            self._app = App(self.study, self.experiment, files_for(self.study, self.experiment))
            self._app.start()
            self._about = self._described(self._app, version)
            self._session = _within(MARKS_SECONDS, lambda: marks.opened(self._marks)) or ""
            self._open = {self._session: True}
        except BaseException:
            self.close()
            raise

    @property
    def about(self) -> Mapping[str, Any]:
        """What the session runs on, once it is started: backend, image, versions, and how long that took."""
        return self._about

    def prepare(self, job: Job) -> None:
        """Wait for nothing: every repeat has a container for itself."""

    def launch(self, job: Job) -> str | None:
        """Begin a repeat; return what finds it again, or ``None`` where it could not be begun."""
        import modal  # noqa: PLC0415

        app, whose = self._started(), self._whose(job)
        try:
            payload = _encoded(self._errand(app, job))
            call = Call(calls.begin(app.functions[job.arm], payload, self._bucket), app.id)
        except modal.exception.Error as error:
            self._flights[job.repeat] = Flight(job, whose, Call("", app.id), None)
            never = msgspec.structs.replace(faults.result_of(error, []), seconds={"total": 0.0})
            self._ended.put((job, never))
            return None
        self._watch(Flight(job, whose, call, time.monotonic()))
        with contextlib.suppress(modal.exception.Error):  # then its container says so, once it has begun
            marks.claim(self._marks, call.id, whose)
        return str(call)

    def attach(self, job: Job, call: str) -> bool:
        """Take up what an earlier session began for this very repeat, unless its body came to no end.

        Evidence may name any call: one that is not known to be of this repeat is let alone, and never ended.

        Raises:
            MeasureError: PR137: Modal can't be asked, so the call is left to a later session.
        """
        flight = Flight(job, self._whose(job), Call.parsed(call), None)
        end = calls.find(flight.call)
        if isinstance(end, BaseException):
            if faults.is_silence(end):
                raise MeasureError(self._out_of_reach(faults.told(end)))
            end = marks.answer_in(calls.starts_of(flight.call, self._marks))
            if end is None:
                return False
        if end is None:
            if not self._is_known(flight):
                return False
            self._watch(flight)
        elif not answers.is_of(end, flight.whose):
            return False
        else:
            self._flights[job.repeat] = flight
            self._end(flight, end)
        return True

    def mark_for(self, job: Job) -> str | None:  # noqa: ARG002 - any will do that no other has
        """Return a mark of this session's; ``None`` where Modal could not be told of them."""
        return f"{self._session}/{next(self._numbers)}" if self._session else None

    def remembers(self, mark: str) -> bool:
        """Return whether Modal keeps the marks of that session: not after a week, nor in another workspace.

        Raises:
            MeasureError: PR137: Modal can't be asked.
        """
        session = mark.partition("/")[0]
        if session not in self._open:
            self._open[session] = self._asked(lambda: marks.is_open(self._marks, session))
        return self._open[session]

    def find(self, job: Job) -> str | None:
        """Return the call whose container was the first to begin the attempt, ``None`` where none was yet.

        Raises:
            MeasureError: PR137: Modal can't be asked.
        """
        found = self._asked(lambda: marks.begun(self._marks, job.mark or ""))
        if found is None:
            return None
        call, whose = found
        if whose == self._whose(job):  # its container may not have said so yet
            self._asked(lambda: marks.claim(self._marks, Call.parsed(call).id, whose))
        return call

    def _is_known(self, flight: Flight) -> bool:
        return self._asked(lambda: marks.is_of(self._marks, flight.call.id, flight.whose))

    def _asked(self, ask: Callable[[], Asked]) -> Asked:
        import modal  # noqa: PLC0415

        try:
            return ask()
        except modal.exception.Error as error:
            raise MeasureError(self._out_of_reach(faults.told(error))) from None

    def collect(self) -> tuple[Job, Result]:
        """Wait until one of those that were launched has ended.

        Raises:
            LookupError: None was launched.
            MeasureError: PR137: Modal has not answered for too long; what runs there goes on.
        """
        if not self._flights:
            raise LookupError
        job, result = self._ended.get()
        if isinstance(result, Gone):
            raise MeasureError(self._out_of_reach(result.why))
        self._flights.pop(job.repeat, None)
        return job, result

    def close(self) -> None:
        """End all that runs on Modal, this session's app included; return within five seconds."""
        flights, app = list(self._flights.values()), self._app
        self._flights.clear()
        self._app = None
        if app is None:
            return
        if self._is_gone:
            _within(CLOSE_SECONDS, app.leave)
            return
        deadline = time.monotonic() + CLOSE_SECONDS
        calls.cancel([flight.call for flight in flights if flight.call.id], deadline - 1)
        _within(max(0.5, deadline - time.monotonic()), app.stop)

    def rates(self) -> dict[str, float] | None:
        """Return USD an hour by arm, as the workspace pays now; ``None`` where that can't be had."""
        live = _within(RATES_SECONDS, rates.live_rates)
        arms = self.experiment.arms.values()
        found = {arm.name: rates.usd_per_hour(arm.resources, live) for arm in arms} if live else {}
        known = {name: rate for name, rate in found.items() if rate is not None}
        return known if known and len(known) == len(found) else None

    def _started(self) -> App:
        if self._app is None:
            raise RuntimeError("the executor is not started")
        return self._app

    def _described(self, app: App, version: str) -> dict[str, Any]:
        """Look whether the experiment can run in a container; return what the session runs on."""
        found = self._probe(app)
        told = ("backend", "image_id", "kernel", "torch", "cuda")
        return {
            **{name: found.environment[name] for name in told if name in found.environment},
            **found.versions,
            "modal": version,
            "app_id": app.id,
            "image_seconds": round(app.seconds, 3),
        }

    def _probe(self, app: App) -> Look:
        """Return what a container says of itself that has imported the experiment.

        Raises:
            MeasureError: PR130, PR131 or PR138.
        """
        try:
            answer = app.probe.remote(_encoded(self._errand(app, None)))
            found: Look = wire.decode(answer, Look)
        except Exception as error:  # noqa: BLE001 - what is raised there is raised here: no msgspec, say
            raise MeasureError(_unfit(error, self.experiment)) from None
        if problem := _mismatch(found, self.experiment):
            raise MeasureError(problem)
        if found.problem is not None:
            raise MeasureError(_at_home(found.problem, app.files.ground))
        return found

    def _errand(self, app: App, job: Job | None) -> Errand:
        arm = self.experiment.arms[job.arm] if job else next(iter(self.experiment.arms.values()))
        return Errand(
            experiment=self.experiment.id,
            setup=app.files.setup,
            folder=str(app.files.folder),
            env=arm_environment(self.experiment, arm) if job is None else job.env,
            fresh=self.experiment.table.cache == "fresh",
            marks=self._marks,
            job=None if job is None else self._job(job),
            whose="" if job is None else self._whose(job),
            mark="" if job is None else job.mark or "",
            app=app.id,
        )

    def _whose(self, job: Job) -> str:
        return whose(self.study.id, self.experiment.id, self._job(job))

    def _job(self, job: Job) -> Job:
        """Return a repeat as its container gets it: with a deadline, and no folder of this machine."""
        timeout = longest_body(self.experiment) if job.timeout is None else job.timeout
        return msgspec.structs.replace(job, timeout=timeout, checkpoint=None, mark=None)

    def _watch(self, flight: Flight) -> None:
        self._flights[flight.job.repeat] = flight
        arm, ended = self.experiment.arms[flight.job.arm], self._ended
        limit = longest(self.experiment, arm)
        calls.watch(flight.call, limit, self._marks, lambda end: self._end(flight, end, ended))

    def _end(
        self, flight: Flight, end: End, ended: queue.SimpleQueue[tuple[Job, Result | Gone]] | None = None
    ) -> None:
        if instead := self._instead(flight, end):
            self._watch(instead)
            return
        (ended or self._ended).put((flight.job, end if isinstance(end, Gone) else self._result(flight, end)))

    def _instead(self, flight: Flight, end: End) -> Flight | None:
        """Return where the body runs of a call that has found it begun by another, if it is waited for still.

        An earlier session had sent that off, and was killed before it could write so down. That is followed
        once: whoever was the first never finds another.
        """
        call = Call.parsed(answers.instead_of(end, flight.whose))
        is_awaited = self._flights.get(flight.job.repeat) is flight
        if not call.id or flight.first or not is_awaited:
            return None
        return flight._replace(call=call, launched=None, first=True)

    def _result(self, flight: Flight, end: bytes | BaseException | Lost) -> Result:
        """Return how an attempt ended: as its body did, whatever has befallen the container since."""
        if isinstance(end, bytes):
            return answers.result_in(end, flight.whose, flight.launched)
        starts = calls.starts_of(flight.call, self._marks)
        if (answer := marks.answer_in(starts)) is not None:
            return answers.result_in(answer, flight.whose, flight.launched)
        if isinstance(end, BaseException):
            return faults.result_of(end, starts)
        what = f"no answer {end.seconds:.0f} s after its container had begun"
        restarts = max(0, len(starts) - 1)
        return Result(outcome=Outcome.INFRASTRUCTURE, cause="answer", error=what, restarts=restarts)

    def _out_of_reach(self, why: str) -> Problem:
        self._is_gone = bool(self._flights)  # left to a later session, as is said here
        running = f"{len(self._flights)} repeats may run there still"
        advice = f"What runs there goes on, and is paid for: {running}. The same command takes them up again."
        return Problem(code=preflight.CODE, message=f"Modal does not answer any more: {why}", advice=advice)


def _check(experiment: Experiment, checkout: Checkout | None) -> None:
    """Refuse what no container of Modal's can run."""
    if checkout is not None:
        message = f'arms of experiment "{experiment.id}" are versions of the code, which are built here alone'
        raise MeasureError(Problem(code="PR139", message=message, advice='executor = "local"'))
    if experiment.source is None and experiment.kind != "command":
        raise MeasureError(Problem(code="PR008", message=f'experiment "{experiment.id}" has nothing to run'))
    most = longest_body(experiment)
    for arm in experiment.arms.values():
        if arm.timeout is not None and arm.timeout > most:
            raise MeasureError(_too_long(experiment, arm, most))


def _too_long(experiment: Experiment, arm: Arm, most: float) -> Problem:
    hours = f"{most / 3600:.1f} h"
    message = f'arm "{arm.name}" of experiment "{experiment.id}" may take {arm.timeout:g} s'
    return Problem(code="PR139", message=f"{message}, and Modal has room for {hours}")


def _encoded(errand: Errand) -> bytes:
    return wire.encode(errand)[wire.LENGTH :]


def _unfit(error: BaseException, experiment: Experiment) -> Problem:
    """Return why a container came to no answer about itself."""
    if faults.is_silence(error):
        return refusal(error, experiment)
    message = (
        f'no container of experiment "{experiment.id}" comes so far as to import it: {faults.told(error)}'
    )
    advice = "Does its image have what pytest-prereg needs (msgspec, numpy, …)? See docs/modal.md."
    return Problem(code="PR138", message=message, advice=advice)


def _mismatch(found: Look, experiment: Experiment) -> Problem | None:
    """Return how what is installed there is none that may stand for what is installed here."""
    here, there = platform.python_version(), found.versions["python"]
    if _minor(there) != _minor(here):
        message = f'the image of experiment "{experiment.id}" has Python {there}, and here is {here}'
        return Problem(code="PR138", message=message, advice="Build it with this one, or run this one here.")
    return None


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]


def _at_home(problem: Problem, ground: Path) -> Problem:
    """Return what could not be imported there, with its file here, and what to do about that."""
    file = ground / problem.path if problem.path is not None else None
    where = "That was in a container on Modal. What is missing there belongs into its image."
    return Problem(
        code=problem.code,
        message=problem.message,
        path=shown(file) if file is not None and file.is_file() else problem.path,
        line=problem.line,
        advice=f"{problem.advice or ''}\n{where}".strip(),
    )


def _within(seconds: float, do: Callable[[], Any]) -> Any:
    """Return what ``do`` returns, ``None`` where it takes longer, as Modal's client may, or fails."""
    found: list[Any] = []

    def run() -> None:
        with contextlib.suppress(Exception):
            found.append(do())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return found[0] if found else None
