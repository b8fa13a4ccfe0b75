"""A process of the stand-in's, and its output, which is kept: a container, a sandbox or what is executed in one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grpclib import GRPCError, Status

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

KEEPER = Path(__file__).with_name("standin_keeper.py")
CHUNK = 1 << 20


class Process:
    """A process with a keeper above it, so that it ends with everything that it started."""

    def __init__(self, keeper: asyncio.subprocess.Process, pid: int) -> None:
        self.keeper, self.pid = keeper, pid
        self.code: int | None = None
        """As ``subprocess`` has it: negative where a signal ended it."""
        self.output = {1: b"", 2: b""}
        self.open = {1, 2}
        self.changed = asyncio.Condition()
        self._jobs = [
            asyncio.create_task(job)
            for job in (self._read(1, keeper.stdout), self._read(2, keeper.stderr), self._wait())
        ]

    @classmethod
    async def start(cls, command: list[str], folder: str, environment: Mapping[str, str]) -> Process:
        reading, writing = os.pipe()
        pipe = asyncio.subprocess.PIPE
        head = [sys.executable, "-I", "-S", str(KEEPER), str(os.getpid()), str(writing)]
        try:
            keeper = await asyncio.create_subprocess_exec(
                *head,
                *command,
                cwd=folder,
                env=environment,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                start_new_session=True,
                pass_fds=(writing,),
            )
        finally:
            os.close(writing)
        pid, _, problem = (await asyncio.to_thread(_read_all, reading)).partition("\n")
        if problem or not pid:
            await keeper.wait()
            raise GRPCError(Status.INVALID_ARGUMENT, problem or "the process could not be started")
        return cls(keeper, int(pid))

    def kill(self) -> None:
        self._signal(signal.SIGTERM)

    def interrupt(self) -> None:
        self._signal(signal.SIGINT)

    def _signal(self, number: int) -> None:
        if self.keeper.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.keeper.send_signal(number)

    async def feed(self, data: bytes, *, end: bool) -> None:
        assert self.keeper.stdin
        if data:
            self.keeper.stdin.write(data)
            await self.keeper.stdin.drain()
        if end:
            self.keeper.stdin.close()

    async def follow(self, channel: int, offset: int = 0) -> AsyncIterator[tuple[int, bytes]]:
        """What it writes there from ``offset`` on, in pieces with their offsets, until it has ended."""
        while True:
            await self._until(lambda at=offset: len(self.output[channel]) > at or channel not in self.open)
            if len(self.output[channel]) <= offset:
                return
            piece = self.output[channel][offset : offset + CHUNK]
            yield offset, piece
            offset += len(piece)

    async def exited(self) -> int:
        await self._until(lambda: self.code is not None and not self.open)
        assert self.code is not None
        return self.code

    async def _until(self, condition: Callable[[], Any]) -> None:
        async with self.changed:
            await self.changed.wait_for(condition)

    async def _notify(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def _read(self, channel: int, stream: asyncio.StreamReader | None) -> None:
        assert stream
        while piece := await stream.read(CHUNK):
            self.output[channel] += piece
            await self._notify()
        self.open.discard(channel)
        await self._notify()

    async def _wait(self) -> None:
        self.code = await self.keeper.wait()
        await self._notify()


def _read_all(descriptor: int) -> str:
    with os.fdopen(descriptor, encoding="utf-8") as pipe:
        return pipe.read()
