"""Grades completions in sandboxes on Modal: a fresh one for each, and none is left when its block is."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_prereg.errors import MeasureError
from pytest_prereg.measure.workloads.language.settings import count_problem, refuse
from pytest_prereg.measure.workloads.sandbox import verdicts
from pytest_prereg.measure.workloads.sandbox.checking import check_completions, completion_problems
from pytest_prereg.measure.workloads.sandbox.client import MOST, SandboxUnavailableError
from pytest_prereg.measure.workloads.sandbox.limits import Limits
from pytest_prereg.measure.workloads.sandbox.messages import Work
from pytest_prereg.measure.workloads.sandbox.modal.boxes import Recipe, lifetime, this_python
from pytest_prereg.measure.workloads.sandbox.modal.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from typing import Self

    from pytest_prereg.measure.workloads.sandbox.completions import Completion
    from pytest_prereg.measure.workloads.sandbox.messages import Done
    from pytest_prereg.measure.workloads.sandbox.modal.pool import Making
    from pytest_prereg.measure.workloads.sandbox.outcomes import Graded

WORKLOAD_VERSION = "1"

ISOLATION = "modal"
PER_SECOND, BURST = 4.0, 8
"""Creations: accounts have been limited to five a second."""
STOP_SECONDS = 5.0
_LAST_SECONDS = 1.0
"""What is under way may take to notice that it has ended."""
_FASTEST = 1000
_MISSING = (
    "files are limited in size, and not in number and sum",
    "no filter of system calls but Modal's own",
)
_NOT_SEPARATED = (
    "programs run as the same user as what holds them to their limits, since that is not root in the image: "
    "they can end it, and their sandbox, for which there is no verdict then"
)


class _Pending(NamedTuple):
    completion: Completion
    submitted: float
    future: Future[Graded]


class ModalSandbox:
    """Grades completions on Modal; a context manager, as :class:`..client.Sandbox` is.

    Args:
        limits: What each completion may use.
        workers: Completions at a time.
        warm: Sandboxes kept ready ahead, beyond those that run.
        per_second: Sandboxes whose creation may begin in a second.
        burst: Those that may begin at once, after a while without any.

    Raises:
        ValueError: Some of these can't be; all are named.
        SandboxUnavailableError: On entering, where Modal can't be used, or makes no such sandbox.
    """

    isolation = ISOLATION
    missing: tuple[str, ...] = ()
    _loop: asyncio.AbstractEventLoop
    _pool: Pool

    def __init__(
        self,
        *,
        limits: Limits = Limits(),  # noqa: B008  # immutable
        workers: int = 2,
        warm: int = 0,
        per_second: float = PER_SECOND,
        burst: int = BURST,
    ) -> None:
        refuse(
            [
                count_problem("workers", workers) or _most_problem("workers", workers),
                count_problem("warm", warm, least=0) or _most_problem("warm", warm),
                rate_problem("per_second", per_second),
                count_problem("burst", burst),
            ]
        )
        self._limits, self._workers, self._warm = limits, workers, warm
        self._per_second, self._burst = per_second, burst
        self._lock = threading.Lock()
        self._numbers = 0
        self._pending: dict[int, _Pending] = {}
        self._lost: str | None = "the sandbox was not entered"
        self._entered_by = 0
        self._app: Any = None
        self._running = contextlib.ExitStack()
        self.left = 0
        """Sandboxes that Modal has not confirmed to have ended, once the block is left."""
        self.app_id = ""

    def __enter__(self) -> Self:
        self._entered_by = os.getpid()
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        recipe = self._recipe()
        self._loop = asyncio.new_event_loop()
        self._server = threading.Thread(target=_serve, args=(self._loop,), daemon=True)
        self._server.start()
        self._pool = self._ask(self._made_pool(recipe))
        if (problem := self._ask(self._pool.try_one())) is not None:
            raise SandboxUnavailableError(f"Modal could not make a sandbox: {problem}")
        self.missing = _MISSING if self._pool.separated else (*_MISSING, _NOT_SEPARATED)
        self._lost = None

    def _recipe(self) -> Recipe:
        """Return what sandboxes are, in an app that runs from now on and ends with this process.

        Raises:
            SandboxUnavailableError: There is no Modal for that.
        """
        from pytest_prereg.measure.executors.modal import faults, preflight  # noqa: PLC0415

        try:
            self._client_version = preflight.check()
        except MeasureError as error:
            raise SandboxUnavailableError(str(error)) from None
        import modal  # noqa: PLC0415

        self._app = modal.App("prereg-sandboxes")
        try:
            self._running.enter_context(self._app.run())
        except modal.exception.Error as error:
            raise SandboxUnavailableError(f"Modal can't be used: {faults.told(error)}") from None
        self.app_id = self._app.app_id or ""
        image = modal.Image.debian_slim(python_version=this_python())
        return Recipe(app=self._app, image=image, limits=self._limits)

    async def _made_pool(self, recipe: Recipe) -> Pool:
        from pytest_prereg.measure.executors.modal.bucket import Bucket  # noqa: PLC0415

        return Pool(
            recipe,
            workers=self._workers,
            warm=self._warm,
            bucket=Bucket(per_second=self._per_second, burst=self._burst),
            done=self._take,
            given_up=self._give_up,
        )

    def _ask(self, job: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(job, self._loop).result()

    def __exit__(self, *_: object) -> None:
        """End all sandboxes; what is under way has no verdict. In a fork of who entered, end none."""
        if os.getpid() != self._entered_by:
            return
        self._lose("the block of this Sandbox was left before it was graded: grade inside of it")
        if hasattr(self, "_pool"):
            self.left = self._ask(self._pool.close())
        if hasattr(self, "_loop"):
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._server.join(2 * _LAST_SECONDS)
        # What is stuck, since there is no Modal any more, ends with this process.
        stopping = threading.Thread(target=self._stop, daemon=True)
        stopping.start()
        stopping.join(STOP_SECONDS)

    def _stop(self) -> None:
        """Stop the app, which ends whatever is left in it."""
        with contextlib.suppress(Exception):
            self._running.close()

    def submit(self, completion: Completion) -> Future[Graded]:
        """Return the outcome to come.

        Raises:
            ValueError: The completion can't be graded, whatever its program does; all that is wrong is told.
            RuntimeError: This is a fork of the process that entered; no answer would come to it.
        """
        if self._entered_by not in {0, os.getpid()}:
            raise RuntimeError("a Sandbox grades in the process that entered it: enter one in each fork")
        refuse(completion_problems(completion))
        program, inputs = verdicts.sent(completion)
        future: Future[Graded] = Future()
        future.set_running_or_notify_cancel()
        pending = _Pending(completion, time.monotonic(), future)
        with self._lock:
            if self._lost is not None:
                future.set_result(self._no_verdict(pending, self._lost))
                return future
            self._numbers += 1
            self._pending[self._numbers] = pending
            work = Work(number=self._numbers, program=program, inputs=inputs)
            self._loop.call_soon_threadsafe(self._pool.add, work)
        return future

    def grade(self, completions: Sequence[Completion]) -> list[Graded]:
        """Return their outcomes, in order.

        Raises:
            ValueError: As :meth:`submit`; none is run then.
        """
        check_completions(completions)
        return [future.result() for future in [self.submit(each) for each in completions]]

    def creations(self) -> list[tuple[float, float]]:
        """Return when each sandbox made so far was begun and was ready: seconds of the monotonic clock."""
        return [(each.began, each.ready) for each in self.makings()]

    def makings(self) -> list[Making]:
        """Return the same with the moment from which on each waited for its turn."""
        return [*self._pool.makings]

    @property
    def refusals(self) -> int:
        """How many creations Modal refused, for there being too many; each was asked for again."""
        return self._pool.refusals

    def told(self) -> dict[str, object]:
        """Return what evidence says of where programs ran, and of how fast their sandboxes might be made."""
        return {
            "client": self._client_version,
            "app": self.app_id,
            "python": self._pool.python,
            "creations_per_second": self._per_second,
            "creations_at_once": self._burst,
            "lifetime": lifetime(self._limits),
        }

    def alive(self) -> int:
        """Return how many sandboxes may live now."""
        return self._pool.alive

    def _take(self, done: Done) -> None:
        with self._lock:
            pending = self._pending.pop(done.number, None)
        if pending is None:
            return
        try:
            found = verdicts.graded(pending.completion, done, pending.submitted, ISOLATION)
        except Exception as error:  # noqa: BLE001  # whoever waits for it shall hear of it
            pending.future.set_exception(error)
        else:
            pending.future.set_result(found)

    def _give_up(self, work: Work, why: str) -> None:
        with self._lock:
            pending = self._pending.pop(work.number, None)
        if pending is not None:
            pending.future.set_result(self._no_verdict(pending, why))

    def _lose(self, why: str) -> None:
        """Say of all that is under way that there is no verdict."""
        with self._lock:
            self._lost = why
            lost = [*self._pending.values()]
            self._pending.clear()
        for pending in lost:
            pending.future.set_result(self._no_verdict(pending, why))

    def _no_verdict(self, pending: _Pending, why: str) -> Graded:
        return verdicts.no_verdict(pending.completion, pending.submitted, why, ISOLATION)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Be the thread in which a loop runs, until it is stopped."""
    loop.run_forever()
    for task in (tasks := asyncio.all_tasks(loop)):
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=_LAST_SECONDS))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


def _most_problem(name: str, value: int) -> str | None:
    return None if value <= MOST else f"{name} = {value!r}: give a whole number of at most {MOST}"


def rate_problem(name: str, value: float) -> str | None:
    """Return what is wrong with a number of creations a second."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= _FASTEST:
        return None
    return f"{name} = {value!r}: give a number above 0, of at most {_FASTEST}"
