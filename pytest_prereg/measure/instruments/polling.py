"""Reads again and again over a window, from a thread that ends with it."""

from __future__ import annotations

import threading
from time import monotonic
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from pytest_prereg.measure.instruments.reading import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 10.0
"""Seconds that one read may still take once the window has ended: a driver that hangs holds up nobody."""

T = TypeVar("T")


class Read(NamedTuple, Generic[T]):
    """What was read, and when: seconds of the monotonic clock, at the end of the read."""

    at: float
    what: T


class Poller(Generic[T]):
    """Calls ``read`` when it is started, every ``seconds`` from then on, and when it is stopped.

    A read that fails is the last one: what was seen until then tells nothing of the rest of the window.
    """

    def __init__(self, read: Callable[[], T], *, seconds: float) -> None:
        self._read = read
        self._seconds = seconds
        self._reads: list[Read[T]] = []
        self._error: UnreadableError | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="prereg-poller", daemon=True)

    def start(self) -> None:
        """Read once, and go on in a thread.

        Raises:
            UnreadableError: The first read failed; there is no thread then.
        """
        self._take()
        if self._error is not None:
            raise self._error
        self._thread.start()

    def stop(self) -> None:
        """Read once more, and end the thread.

        Raises:
            UnreadableError: A read hangs, and the thread with it.
        """
        self._ended.set()
        self._thread.join(PATIENCE)
        if self._thread.is_alive():
            raise UnreadableError(f"a read gave no answer within {PATIENCE:g} s after the window")

    def reads(self) -> list[Read[T]]:
        """Return all reads in order; two at least once it has been stopped.

        Raises:
            UnreadableError: One of them failed.
        """
        if self._error is not None:
            raise self._error
        return self._reads

    def _run(self) -> None:
        while self._error is None and not self._ended.wait(self._seconds):
            self._take()
        if self._error is None:
            self._take()

    def _take(self) -> None:
        try:
            found = self._read()
        except UnreadableError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001  # lost with the thread otherwise
            self._error = UnreadableError(f"a read failed: {type(error).__name__}: {error}")
        else:
            self._reads.append(Read(monotonic(), found))
