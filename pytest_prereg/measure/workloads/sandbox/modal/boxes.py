"""One sandbox on Modal, from its creation to when Modal says that it has ended.

How a test ended is read from what comes out of it in time; what ended a sandbox is asked of Modal, and never
read off an exit status, of which its client gives several for the same end.
"""

from __future__ import annotations

import asyncio
import marshal
import math
import resource
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pytest_prereg.measure.executors.modal import faults
from pytest_prereg.measure.workloads.sandbox.messages import LENGTH, Done, End, TestEnd
from pytest_prereg.measure.workloads.sandbox.modal import frames
from pytest_prereg.measure.workloads.sandbox.verdicts import MARSHAL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Sequence

    from pytest_prereg.measure.workloads.sandbox.limits import Limits
    from pytest_prereg.measure.workloads.sandbox.messages import Work

WORKLOAD_VERSION = "1"

PYTHON = "python3"
"""What programs run on, by the path of the image."""
SPARE_SECONDS = 300.0
"""How long a sandbox may wait for its program: after that and its deadline Modal ends it by itself."""
START_SECONDS = 60
"""Within so long of its creation it hears from its client for the first time, or ends."""
LINGER_SECONDS = 5
"""How long it stays after that, for whoever asks whether it was ended or what runs in it."""
BEAT_SECONDS = 5.0
ALONE_SECONDS = 20.0
"""A sandbox that hears nothing from its client for so long ends: so far apart there is no verdict either."""
CONTACT_SECONDS = 5.0
"""What the question whether a sandbox lives may take."""
GRACE_SECONDS = 2.0
"""How long Modal may take to notice that a sandbox has ended."""
END_SECONDS = 10.0
END_TRIES = 3

_MEBIBYTE = 1 << 20
_BESIDE = 64
"""MiB of a sandbox beside its program."""
_AT_ONCE = 1 << 20
"""Bytes that are sent at a time."""
_WAITING = 4
"""Frames that may wait; there is one for each that is asked for."""
_HELD = 'mkfifo -m 600 held && { (sleep "$0"; : > held) & cat held; }; sleep "$1"'
"""What a sandbox runs itself: it ends soon after what runs beside the program has, or has not come to run."""
_START = 'exec env -i PATH="$PATH" LANG=C.UTF-8 "$0" -I -S -X utf8 -c "$1" "$2" 2>&1'
_BOOT = """
import _signal, marshal, posix, sys
_signal.alarm(int(sys.argv[1]))
def read(wanted):
    found = b""
    while len(found) < wanted:
        some = posix.read(0, wanted - len(found))
        if not some:
            raise SystemExit
        found += some
    return found
texts = marshal.loads(read(int.from_bytes(read(4), "big")))
driver = type(sys)("driver_beside")
exec(compile(texts[0], "<driver>", "exec", dont_inherit=True), driver.__dict__)
exec(compile(texts[1], "<inside>", "exec", dont_inherit=True), {"__name__": "inside", "driver": driver})
"""
"""What is sent first is run, unless it does not come: then the signal ends it."""

T = TypeVar("T")


class NoSandboxError(RuntimeError):
    """A sandbox could not be made; the text says why."""

    def __init__(self, why: str, *, silent: bool = False) -> None:
        super().__init__(why)
        self.silent = silent
        """Whether it is Modal that could not be asked."""


class Recipe(NamedTuple):
    """How all sandboxes of a batch are made."""

    app: Any
    image: Any
    limits: Limits


class _Lost(NamedTuple):
    """Nothing more will come."""

    why: str


async def within(seconds: float, job: Coroutine[Any, Any, T]) -> T:
    """Return what comes of a job in so much time.

    What has not ended then is told to, and not waited for: it may not be able to.

    Raises:
        TimeoutError: It took longer.
    """
    task = asyncio.ensure_future(job)
    try:
        await asyncio.wait({task}, timeout=max(0.0, seconds))
    finally:
        if not task.done():
            task.cancel()
            task.add_done_callback(_forget)
    if not task.done():
        raise TimeoutError
    return task.result()


def _forget(task: asyncio.Future[Any]) -> None:
    """Take note of how it ended, so that nobody complains that none did."""
    if not task.cancelled():
        task.exception()


class Box:
    """A sandbox that is there, and takes one program."""

    def __init__(self, sandbox: Any, recipe: Recipe, began: float) -> None:
        self.sandbox, self._recipe, self.began = sandbox, recipe, began
        self.ready_at = 0.0
        self.python, self.separated = "", False
        self._process: Any = None
        self._pump: asyncio.Task[None] | None = None
        self._pulse: asyncio.Task[None] | None = None
        self._senders: set[asyncio.Task[None]] = set()
        self._frames: asyncio.Queue[bytes | _Lost] = asyncio.Queue()
        self._peak = 0
        self._sent_at = 0.0
        self.gone = False
        """Whether Modal has said that it has ended."""

    async def start(self) -> None:
        """Start what runs beside a program.

        Raises:
            NoSandboxError: It can't be, or is not what was expected.
        """
        try:
            command = ("sh", "-c", _START, PYTHON, _BOOT, str(START_SECONDS))
            self._process = await self.sandbox.exec.aio(*command, text=False)
        except Exception as error:  # noqa: BLE001
            raise refused(error) from None
        self._pump = asyncio.ensure_future(self._read())
        self._send(_sources(), marshal.dumps(_setting(self._recipe.limits), MARSHAL))
        frame = await self._frames.get()
        if isinstance(frame, _Lost):
            raise NoSandboxError(frame.why)
        try:
            self.python, self.separated = frames.ready(frame)
        except frames.GarbledError as error:
            raise NoSandboxError(str(error)) from None
        if self.python != this_python():
            raise NoSandboxError(f"its Python is {self.python}, and here it is {this_python()}")
        self.ready_at = time.monotonic()
        self._pulse = asyncio.ensure_future(self._beat())

    @property
    def is_fresh(self) -> bool:
        """Whether it lives, as far as is known, and will for long enough to take a program."""
        left = self.began + SPARE_SECONDS - time.monotonic()
        return self._frames.empty() and left > SPARE_SECONDS / 10

    async def run(self, work: Work) -> Done:
        """Run all tests of ``work``, and end; return when nothing is left of it."""
        taken = time.monotonic()
        tests, cause = await self._run(work, taken + self._recipe.limits.deadline)
        await self.end()
        now = time.monotonic()
        if cause is not None:
            end, text = cause
            left = len(work.inputs) - len(tests)
            tests = [*tests, *[TestEnd(end=end, text=text.encode(), seconds=now - self._sent_at)] * left]
            if end is End.LOST:
                tests = [TestEnd(end=end, text=text.encode(), seconds=test.seconds) for test in tests]
        evidence = cause[1] if cause is not None else "all tests ended"
        return Done(
            number=work.number,
            tests=tuple(tests),
            evidence=evidence if self.gone else f"{evidence}; Modal did not confirm that its sandbox ended",
            taken=taken,
            seconds=now - taken,
            creation=self.ready_at - self.began,
            peak_memory=self._peak,
        )

    async def _run(self, work: Work, deadline: float) -> tuple[list[TestEnd], tuple[End, str] | None]:
        """Return how the tests ended that did, and what kept the others from it."""
        tests: list[TestEnd] = []
        self._send(work.program)
        for each in work.inputs:
            self._sent_at = time.monotonic()
            self._send(each.sent)
            frame = await self._next(deadline)
            if frame is None:
                return tests, await self._late(deadline - self._recipe.limits.deadline)
            if isinstance(frame, _Lost):
                return tests, await self._ended(frame.why)
            try:
                told = frames.told(frame, is_call=each.is_call, limits=self._recipe.limits)
            except frames.GarbledError as error:
                return tests, (End.STATUS, str(error))
            if frame[:1] == b"K":
                return tests, (told.end, told.text.decode("utf-8", "replace"))
            self._peak = max(self._peak, told.peak)
            tests.append(TestEnd(end=told.end, text=told.text, seconds=time.monotonic() - self._sent_at))
        return tests, None

    async def _next(self, deadline: float) -> bytes | _Lost | None:
        """Return what comes next, ``None`` if nothing does in time."""
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                found = await self._frames.get()
        except TimeoutError:
            return None
        return found if time.monotonic() < deadline else None

    async def _late(self, taken: float) -> tuple[End, str]:
        """Return what it means that the deadline is over: a timeout only if the sandbox can be heard then."""
        seconds = time.monotonic() - taken
        try:
            await within(CONTACT_SECONDS, self._process.poll.aio())
        except Exception as error:  # noqa: BLE001
            return End.LOST, f"no contact to the sandbox at its deadline: {faults.told(error)}"
        return End.DEADLINE, f"no end after {seconds:.3f} s"

    async def _ended(self, why: str) -> tuple[End, str]:
        """Return whose doing it is that nothing more comes.

        It is the program's only if what runs beside it has ended, and its sandbox lives on.
        """
        deadline = time.monotonic() + GRACE_SECONDS
        try:
            while time.monotonic() < deadline:
                if await within(CONTACT_SECONDS, self.sandbox.poll.aio()) is not None:
                    return End.LOST, f"the sandbox was ended from outside ({why})"
                await asyncio.sleep(GRACE_SECONDS / 10)
            if await within(CONTACT_SECONDS, self._process.poll.aio()) is None:
                return End.LOST, f"there is no contact to the sandbox: {why}"
        except Exception as error:  # noqa: BLE001
            return End.LOST, f"the sandbox could not be asked for: {faults.told(error)} ({why})"
        return End.SIGNAL, f"what runs beside the program was ended ({why})"

    async def end(self) -> None:
        """End it."""
        for task in (self._pump, self._pulse, *self._senders):
            if task is not None:
                task.cancel()
        self.gone = self.gone or await ended(self.sandbox)
        with suppress(Exception):
            await within(1.0, self.sandbox.detach.aio())

    async def _beat(self) -> None:
        """Tell it from time to time that there is somebody."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            if not self._senders:
                self._send(b"")

    def _send(self, *bodies: bytes) -> None:
        """Send, after all that was sent before; that it can't be is told where an answer is waited for."""
        before = tuple(self._senders)
        task = asyncio.ensure_future(self._sent(before, bodies))
        self._senders.add(task)
        task.add_done_callback(self._senders.discard)

    async def _sent(self, before: Sequence[asyncio.Task[None]], bodies: Sequence[bytes]) -> None:
        if before:
            await asyncio.wait(before)
        data = b"".join(len(body).to_bytes(LENGTH, "big") + body for body in bodies)
        try:
            for at in range(0, len(data), _AT_ONCE):
                self._process.stdin.write(data[at : at + _AT_ONCE])
                await self._process.stdin.drain.aio()
        except Exception as error:  # noqa: BLE001
            self._frames.put_nowait(_Lost(faults.told(error)))

    async def _read(self) -> None:
        stream, source = frames.Stream(self._recipe.limits), aiter(self._process.stdout)
        try:
            async for data in source:
                for frame in stream.feed(data):
                    self._frames.put_nowait(frame)
                if self._frames.qsize() > _WAITING:
                    raise frames.GarbledError("more than was asked for")  # noqa: TRY301
            why = stream.rest() or "without a word"
        except frames.GarbledError as error:
            why = str(error) if self.ready_at else str(error) + await _what_follows(source)
            self._frames.put_nowait(b"?" + why.encode())
        except Exception as error:  # noqa: BLE001
            why = faults.told(error)
        self._frames.put_nowait(_Lost(why))


async def _what_follows(source: AsyncIterator[bytes]) -> str:
    """Return what else is said at once by an image in which nothing can run."""
    found = b""
    with suppress(Exception):
        async with asyncio.timeout(0.5):
            async for data in source:
                found += data
                if len(found) > frames.MOST_SHOWN:
                    break
    return found[: frames.MOST_SHOWN].decode("utf-8", "replace")


async def made(recipe: Recipe) -> Box:
    """Have Modal make a sandbox.

    Raises:
        modal.exception.ResourceExhaustedError: There are too many.
        NoSandboxError: It can't be made.
    """
    import modal  # noqa: PLC0415

    began = time.monotonic()
    try:
        sandbox = await modal.Sandbox.create.aio(
            *("sh", "-c", _HELD, str(START_SECONDS), str(LINGER_SECONDS)),
            app=recipe.app,
            image=recipe.image,
            timeout=lifetime(recipe.limits),
            cpu=1.0,
            # What is asked for, and no limit: where that ended a sandbox, a program could have it ended.
            memory=math.ceil(recipe.limits.memory / _MEBIBYTE) + _BESIDE,
            block_network=True,
        )
    except modal.exception.ResourceExhaustedError:
        raise
    except Exception as error:  # noqa: BLE001
        raise refused(error) from None
    return Box(sandbox, recipe, began)


def lifetime(limits: Limits) -> int:
    """Return the seconds after which Modal ends a sandbox by itself."""
    return math.ceil(SPARE_SECONDS + limits.deadline)


def refused(error: BaseException) -> NoSandboxError:
    """Return why there is no sandbox."""
    return NoSandboxError(faults.told(error), silent=faults.is_silence(error))


async def ended(sandbox: Any) -> bool:
    """End a sandbox; return whether Modal says that it has ended."""
    import modal.exception as said  # noqa: PLC0415

    gone = (said.NotFoundError, said.SandboxTimeoutError, said.SandboxTerminatedError)
    for attempt in range(END_TRIES):
        try:
            await within(END_SECONDS, sandbox.terminate.aio(wait=True))
        except gone:
            return True
        except Exception:  # noqa: BLE001
            await asyncio.sleep(0.2 * attempt)
        else:
            return True
    return False


def this_python() -> str:
    """Return the version that runs here, without its last number."""
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


@cache
def _sources() -> bytes:
    here = Path(__file__).parent
    texts = [(here.parent / "driver.py").read_text("utf-8"), (here / "inside.py").read_text("utf-8")]
    return marshal.dumps(texts, MARSHAL)


def _setting(limits: Limits) -> dict[str, Any]:
    """Return what is told first of all."""
    cpu = limits.cpu_seconds
    held = [
        (resource.RLIMIT_AS, limits.memory),
        (resource.RLIMIT_FSIZE, limits.file_size),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_CORE, 0),
    ]
    return {
        "answer": limits.answer,
        "output": limits.output,
        "memory": limits.memory,
        "processes": limits.processes,
        "alone_seconds": ALONE_SECONDS,
        "limits": [*((number, (most, most)) for number, most in held), (resource.RLIMIT_CPU, (cpu, cpu + 1))],
    }
