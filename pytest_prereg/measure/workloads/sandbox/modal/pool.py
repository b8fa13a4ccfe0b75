"""All sandboxes of a batch on Modal: which are made, no faster than may be, and which run what."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.measure.workloads.sandbox.modal.boxes import NoSandboxError, made, within

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from pytest_prereg.measure.executors.modal.bucket import Bucket
    from pytest_prereg.measure.workloads.sandbox.messages import Done, Work
    from pytest_prereg.measure.workloads.sandbox.modal.boxes import Box, Recipe

WORKLOAD_VERSION = "1"

BACKOFF = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Waits after a refusal for there being too many; then it is a failure."""
FIRST_SECONDS = 900.0
"""What the first sandbox may take: the image may have to be built."""
CREATION_SECONDS = 120.0
"""What each other may take."""
CLOSE_SECONDS = 5.0
_TRIES = 2
"""How often a sandbox may fail to be made, in a row, before a completion is given up."""


class Making(NamedTuple):
    """One sandbox that was made; moments of the monotonic clock."""

    wanted: float
    """When it was wanted: from then on it waited for its turn."""
    began: float
    ready: float


class Pool:
    """Makes sandboxes as they are wanted, and tells what comes of them; lives in one event loop.

    Args:
        recipe: What they are.
        workers: How many programs run at a time.
        warm: How many sandboxes are kept ready beyond those.
        bucket: What creations take from.
        done: Called with what a program came to.
        given_up: Called with a program for which there is no sandbox, and why.
    """

    def __init__(
        self,
        recipe: Recipe,
        *,
        workers: int,
        warm: int,
        bucket: Bucket,
        done: Callable[[Done], None],
        given_up: Callable[[Work, str], None],
    ) -> None:
        self._recipe, self._workers, self._warm = recipe, workers, warm
        self._bucket, self._done, self._given_up = bucket, done, given_up
        self._waiting: deque[Work] = deque()
        self._idle: deque[Box] = deque()
        self._busy: set[Box] = set()
        self._starting = 0
        self._tasks: set[asyncio.Future[Any]] = set()
        self._creating: set[asyncio.Future[Box]] = set()
        self._given_up_on: set[asyncio.Future[Box]] = set()
        self._unconfirmed: set[Box] = set()
        self._failures: list[str] = []
        self._seconds = FIRST_SECONDS
        self._open = True
        self.makings: list[Making] = []
        self.refusals = 0
        """Creations that Modal refused for there being too many."""
        self.python, self.separated = "", False

    @property
    def alive(self) -> int:
        """How many sandboxes may live."""
        return len(self._unconfirmed)

    def add(self, work: Work) -> None:
        """Run ``work`` when its turn comes."""
        self._waiting.append(work)
        self._tend()

    async def try_one(self) -> str | None:
        """Make a sandbox, and return what was wrong with it; it is kept only if some are to be kept."""
        box = await self._make(time.monotonic())
        if box is None:
            return self._failures.pop()
        self._seconds = CREATION_SECONDS
        self.python, self.separated = box.python, box.separated
        if self._warm:
            self._idle.append(box)
        else:
            await self._end(box)
        self._tend()
        return None

    async def close(self) -> int:
        """End all sandboxes; return how many have not been confirmed to have ended in time."""
        self._open = False
        self._waiting.clear()
        for task in [*self._tasks]:
            task.cancel()
        for box in [*self._unconfirmed]:
            self._begin(self._end(box))
        deadline = time.monotonic() + CLOSE_SECONDS
        while (pending := [*self._tasks, *self._creating]) and (left := deadline - time.monotonic()) > 0:
            await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        return len(self._unconfirmed) + len(self._creating)

    def _tend(self) -> None:
        """Give work to ready sandboxes, and make as many as will be wanted."""
        if not self._open:
            return
        while self._waiting and self._idle and len(self._busy) < self._workers:
            box = self._idle.popleft()
            if not box.is_fresh:
                self._begin(self._end(box))
                continue
            self._busy.add(box)
            self._begin(self._run(box, self._waiting.popleft()))
        wanted = min(len(self._waiting), self._workers - len(self._busy))
        if self._waiting or not self._failures:  # else nothing shows that another would be made
            wanted += self._warm
        for _ in range(wanted - len(self._idle) - self._starting):
            self._starting += 1
            self._begin(self._make_one())

    def _begin(self, job: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.ensure_future(job)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, box: Box, work: Work) -> None:
        try:
            done = await box.run(work)
            self._note_end(box)
            self._done(done)
        except Exception as error:  # noqa: BLE001
            self._given_up(work, f"what grades it failed: {type(error).__name__}: {error}")
            await self._end(box)
        finally:
            self._busy.discard(box)
            self._tend()

    async def _end(self, box: Box) -> None:
        await box.end()
        self._note_end(box)

    def _note_end(self, box: Box) -> None:
        if box.gone:
            self._unconfirmed.discard(box)

    async def _make_one(self) -> None:
        try:
            box = await self._make(time.monotonic())
        finally:
            self._starting -= 1
        if box is not None:
            self._idle.append(box)
        self._tend()

    async def _make(self, wanted: float) -> Box | None:
        """Return a sandbox that is ready, ``None`` if none could be made."""
        try:
            box = await self._created()
            await self._started(box)
        except NoSandboxError as error:
            self._failed(error)
            return None
        self._failures.clear()
        self.makings.append(Making(wanted, box.began, box.ready_at))
        return box

    async def _created(self) -> Box:
        """Return a sandbox, as soon as there may be one more.

        Raises:
            NoSandboxError: Modal refused it again and again, or it failed.
        """
        import modal  # noqa: PLC0415

        for wait in (*BACKOFF, None):
            await self._take_turn()
            try:
                return await self._create()
            except modal.exception.ResourceExhaustedError as error:
                self.refusals += 1
                self._bucket.empty()
                if wait is None:
                    raise NoSandboxError(f"Modal makes no more: {error}") from None
            await asyncio.sleep(wait)
        raise AssertionError("unreachable")

    async def _take_turn(self) -> None:
        # Others may take it meanwhile.
        while wait := self._bucket.seconds_to_one():  # noqa: ASYNC110
            await asyncio.sleep(wait)
        self._bucket.take()

    async def _create(self) -> Box:
        """Return a sandbox; one that comes too late is ended when it does: none can be told not to come."""
        creation = asyncio.ensure_future(made(self._recipe))
        self._creating.add(creation)
        creation.add_done_callback(self._note_creation)
        done, _ = await asyncio.wait({creation}, timeout=self._seconds)
        if not done:
            self._given_up_on.add(creation)
            raise NoSandboxError(f"none was there after {self._seconds:g} s", silent=True)
        return creation.result()

    def _note_creation(self, creation: asyncio.Future[Box]) -> None:
        self._creating.discard(creation)
        if creation.cancelled() or creation.exception() is not None:
            return
        self._unconfirmed.add(creation.result())
        if creation in self._given_up_on or not self._open:
            self._begin(self._end(creation.result()))

    async def _started(self, box: Box) -> None:
        """Wait until a sandbox can take a program.

        Raises:
            NoSandboxError: It can't, and is ended.
        """
        try:
            await within(self._seconds, box.start())
        except TimeoutError:
            await self._end(box)
            raise NoSandboxError(f"it was not ready after {self._seconds:g} s", silent=True) from None
        except NoSandboxError:
            await self._end(box)
            raise

    def _failed(self, error: NoSandboxError) -> None:
        """Take note of a failure; where Modal can't be asked there is nothing to be had for any that wait."""
        self._failures.append(str(error))
        if len(self._failures) < _TRIES or not self._waiting:
            return
        count = len(self._waiting) if error.silent else 1
        for work in [self._waiting.popleft() for _ in range(count)]:
            self._given_up(work, f"no sandbox could be made: {error}")
        self._failures.clear()
