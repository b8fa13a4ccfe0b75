"""Work that another process does meanwhile, where one can be had; without it the answer is the same."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import tempfile
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

_THREADS = "/proc/self/task"


@contextlib.contextmanager
def beside(work: Callable[[], T]) -> Iterator[Callable[[], T]]:
    """Yield how to have what ``work`` returns, with another process at it, which is gone afterwards.

    Where no process can be had, or it ends without an answer, the work is done here once that is asked for.
    So what an error says, and who raises it, is as if there had been no other process.

    Args:
        work: What can be done twice, and returns what can be pickled. Its temporary files go as well.
    """
    with tempfile.TemporaryDirectory(prefix="prereg-", ignore_cleanup_errors=True) as folder:
        other = _started(work, folder)
        if other is None:
            yield work
            return
        try:
            yield lambda: _answered(other, work)
        finally:
            os.close(other.answer)
            os.kill(other.process, signal.SIGKILL)
            os.waitpid(other.process, 0)


class _Other(NamedTuple):
    """A process, and the end of a pipe from which its answer is read."""

    process: int
    answer: int


def _started(work: Callable[[], object], folder: str) -> _Other | None:
    # What other threads hold when a process forks is held for ever in the new one.
    if len(os.listdir(_THREADS)) > 1:  # noqa: PTH208 - a count
        return None
    answer, said = os.pipe()
    try:
        process = os.fork()
    except OSError:
        os.close(answer)
        os.close(said)
        return None
    if process == 0:
        os.close(answer)  # so that it ends where nobody is left to read
        _do(work, folder, said)
    os.close(said)
    return _Other(process, answer)


def _do(work: Callable[[], object], folder: str, said: int) -> NoReturn:
    """Do it and say what came of it; nothing of what the first process has to put away is touched."""
    status = 1
    try:
        tempfile.tempdir = folder
        data = pickle.dumps(work())
        with os.fdopen(said, "wb") as pipe:
            pipe.write(data)
        status = 0
    finally:
        os._exit(status)


def _answered(other: _Other, work: Callable[[], T]) -> T:
    with os.fdopen(os.dup(other.answer), "rb") as pipe:
        data = pipe.read()
    try:
        found: T = pickle.loads(data)  # noqa: S301 - what this very program wrote
    except (EOFError, pickle.UnpicklingError):
        return work()
    return found
