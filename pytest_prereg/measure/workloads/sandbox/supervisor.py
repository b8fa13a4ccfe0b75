"""The process that makes sandboxes, hands them programs, and ends them when their time is over.

It has one thread, so that what the kernel kills when a thread ends is killed when the process does, and it
ends with its client, whichever way that goes.
"""

from __future__ import annotations

import marshal
import os
import resource
import select
import socket
import sys
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_prereg.measure.workloads.sandbox import bubblewrap, seccomp, staging, watching
from pytest_prereg.measure.workloads.sandbox.boxes import Box, Recipe
from pytest_prereg.measure.workloads.sandbox.messages import (
    Count,
    Counted,
    Created,
    Done,
    End,
    Opened,
    Setup,
    Stream,
    TestEnd,
    ToSupervisor,
    Work,
    encode,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_prereg.measure.workloads.sandbox.limits import Limits

WORKLOAD_VERSION = "1"

_DRIVER = Path(__file__).with_name("driver.py")
_START = "import marshal,posix;exec(marshal.loads(posix.pread(5,1048576,0)),{'__name__':'driver'})"
_CHUNK = 1 << 18
_LOOK_SECONDS = 0.03
_CREATION_SECONDS = 20.0


class Reactor:
    """Calls back when descriptors can be read."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._calls: dict[int, Callable[[], None]] = {}

    def watch(self, descriptor: int, call: Callable[[], None]) -> None:
        """Call ``call`` whenever ``descriptor`` can be read."""
        self._calls[descriptor] = call
        self._poll.register(descriptor, select.EPOLLIN)

    def forget(self, descriptor: int) -> None:
        """Call no more; does nothing where nothing was watched."""
        if self._calls.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def turn(self, seconds: float) -> None:
        """Wait until something can be read, at most ``seconds``, and call for all that can."""
        for descriptor, _ in self._poll.poll(max(0.0, seconds)):
            if (call := self._calls.get(descriptor)) is not None:
                call()


class Supervisor:
    """Keeps sandboxes ready and running."""

    def __init__(self, client: socket.socket, setup: Setup, recipe: Recipe, users: list[int]) -> None:
        self.reactor = Reactor()
        self.setup, self.recipe, self.users = setup, recipe, users
        self.client = client
        self.stream = Stream(ToSupervisor)
        self.starting: set[Box] = set()
        self.idle: deque[Box] = deque()
        self.busy: set[Box] = set()
        self.ending: set[Box] = set()
        self.waiting: deque[Work] = deque()
        self.failures: list[str] = []
        self.open = True
        self.outgoing = bytearray()

    def run(self) -> None:
        """Serve until the client hangs up, then end all sandboxes."""
        self.client.setblocking(False)
        self.reactor.watch(self.client.fileno(), self._listen)
        handle = os.pidfd_open(self.setup.client)
        self.reactor.watch(handle, self._close)
        looked = 0.0
        while self.open:
            self._assign()
            self.reactor.turn(self._until_next())
            now = time.monotonic()
            self._enforce(now)
            if now - looked > _LOOK_SECONDS:
                looked = now
                for box in [*self.busy]:
                    if now - box.taken_at > _LOOK_SECONDS:
                        box.look()
        for box in self._all():
            box.kill()
        while self._all():
            self.reactor.turn(1.0)

    def _all(self) -> list[Box]:
        return [*self.starting, *self.idle, *self.busy, *self.ending]

    def _until_next(self) -> float:
        if not self.busy and not self.starting:
            return 10.0
        now = time.monotonic()
        nearest = min([box.deadline - now for box in self.busy] + [1.0])
        return min(nearest, _LOOK_SECONDS) if self.busy else nearest

    def _enforce(self, now: float) -> None:
        for box in [*self.busy]:
            if now >= box.deadline and box.cause is None:
                box.stop(End.DEADLINE, f"after {now - box.taken_at:.3f} s")
        for box in [*self.starting]:
            if now - box.began > _CREATION_SECONDS:
                box.stop(End.LOST, f"it was not ready after {_CREATION_SECONDS:g} s")

    def _assign(self) -> None:
        """Give work to ready sandboxes, and make as many as will be wanted."""
        while self.waiting and self.idle and len(self.busy) < self.setup.workers:
            box = self.idle.popleft()
            self.busy.add(box)
            box.take(self.waiting.popleft())
        soon = min(len(self.waiting), self.setup.workers - len(self.busy))
        warm = self.setup.warm if not self.failures or self.waiting else 0
        for _ in range(soon + warm - len(self.idle) - len(self.starting)):
            if self.recipe_users_left():
                self._make()

    def recipe_users_left(self) -> bool:
        return self.users != []

    def _make(self) -> None:
        box = Box(self.recipe, self.users.pop(), self.reactor, self)
        self.starting.add(box)

    def is_ready(self, box: Box) -> None:
        """Take note that a sandbox can take a program."""
        self.failures.clear()
        self.starting.discard(box)
        self.idle.append(box)
        self._send(Created(began=box.began, ready=box.ready_at))

    def is_gone(self, box: Box, status: int) -> None:
        """Take note that nothing is left of a sandbox."""
        self.users.append(box.user)
        if box in self.busy:
            self.busy.discard(box)
            self._send(box.done(status))
            return
        if box in self.idle:
            self.idle.remove(box)
            return
        self.starting.discard(box)
        self.failures.append(box.errors() or (box.cause or ("", f"status {status}"))[1])
        if len(self.failures) > 1 and self.waiting:
            self._give_up(self.waiting.popleft(), self.failures[-1])
            self.failures.clear()

    def _give_up(self, work: Work, why: str) -> None:
        text = f"no sandbox could be made: {why}"
        self._send(
            Done(
                number=work.number,
                tests=tuple(TestEnd(end=End.LOST, text=text.encode()) for _ in work.inputs),
                evidence=text,
                taken=time.monotonic(),
                seconds=0.0,
                creation=0.0,
                peak_memory=0,
            )
        )

    def _listen(self) -> None:
        try:
            data = self.client.recv(_CHUNK)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self._close()
            return
        for message in self.stream.feed(data):
            if isinstance(message, Work):
                self.waiting.append(message)
            elif isinstance(message, Count):
                count = sum(len(watching.family(box.pid)) for box in self._all())
                self._send(Counted(processes=count))

    def _close(self) -> None:
        self.open = False

    def _send(self, message: object) -> None:
        self.client.setblocking(True)
        try:
            self.client.sendall(encode(message))
        except OSError:
            self._close()
        finally:
            self.client.setblocking(False)


def main(descriptor: int) -> None:
    """Serve the client at the other end of a socket."""
    for _ in range(8):  # what sandboxes are handed goes under low numbers, which none of ours may have
        os.dup(0)
    client = socket.socket(fileno=descriptor)
    stream = Stream(ToSupervisor)
    setup = None
    while setup is None:
        for message in stream.feed(client.recv(_CHUNK)):
            setup = message
    recipe, missing = _recipe(setup)
    users = staging.spare_users()
    client.sendall(encode(Opened(isolation="namespaces", missing=tuple(missing))))
    Supervisor(client, setup, recipe, users or [None] * 512).run()


def _recipe(setup: Setup) -> tuple[Recipe, list[str]]:
    missing: list[str] = []
    interpreter = bubblewrap.this_interpreter()
    places = {}
    if os.geteuid() == 0:
        places = staging.stage([*interpreter.folders, interpreter.executable, *setup.packages])
    code = os.memfd_create("driver", os.MFD_CLOEXEC)
    os.write(code, marshal.dumps(compile(_DRIVER.read_text("utf-8"), "<driver>", "exec", dont_inherit=True)))
    filter_ = seccomp.filter_for(networked=True)
    command = bubblewrap.command(
        bubblewrap.installed() or "",
        interpreter,
        packages=setup.packages,
        disk=setup.limits.disk,
        places=places,
        filtered=7,
        information=6,
    )
    command += [str(interpreter.executable), "-I", "-S", "-X", "utf8", "-c", _START]
    return Recipe(
        command=command,
        environment=bubblewrap.ENVIRONMENT,
        code=code,
        filter=filter_,
        setting=_setting(setup.limits, contained=True),
        limits=setup.limits,
        contained=True,
    ), missing


def _setting(limits: Limits, *, contained: bool) -> bytes:
    most = [
        (resource.RLIMIT_AS, limits.memory),
        (resource.RLIMIT_FSIZE, limits.file_size),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 65536),
    ]
    cpu = limits.cpu_seconds
    pairs = [(number, (value, value)) for number, value in most]
    pairs.append((resource.RLIMIT_CPU, (cpu, cpu + 1)))
    return marshal.dumps({"limits": pairs, "alone": contained, "answer": limits.answer})
