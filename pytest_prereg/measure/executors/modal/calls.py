"""Calls of the session's functions: begun, found again, waited for and cancelled."""

from __future__ import annotations

import builtins
import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_prereg.measure.executors.modal import faults, marks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_prereg.measure.executors.modal.bucket import Bucket
    from pytest_prereg.measure.executors.modal.messages import Mark

PER_SECOND, BURST = 4.0, 8.0
"""Calls that are begun: accounts have been limited to five a second."""
BACKOFF = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Waits after a refusal for there being too many; then it is a fault."""
POLL_SECONDS = 10.0
"""What one question for an answer waits; Modal's client asks anew by itself."""
RETRY_SECONDS = 1.0
SILENCE_SECONDS = 300.0
"""After so long without contact the service counts as gone."""
LOST_SECONDS = 120.0
"""How long after its container must have ended an answer may still come."""


class Call(NamedTuple):
    """A call, as evidence writes it: ``fc-…@ap-…``."""

    id: str
    app: str

    def __str__(self) -> str:
        return f"{self.id}@{self.app}"

    @classmethod
    def parsed(cls, text: str) -> Call:
        """Return the call that a text names."""
        return cls(*text.partition("@")[::2])


class Gone(NamedTuple):
    """Nobody could be asked any more; of the call that says nothing."""

    why: str


class Lost(NamedTuple):
    """The container must have ended long ago, and no answer has come."""

    seconds: float


End = bytes | BaseException | Gone | Lost
"""What a call comes to: its answer, or why there is none."""


def begin(function: Any, payload: bytes, bucket: Bucket) -> str:
    """Begin a call and return its id; wait where there are too many.

    Raises:
        modal.exception.Error: It could not be begun.
    """
    for wait in (*BACKOFF, None):
        bucket.take()
        try:
            return str(function.spawn(payload).object_id)
        except Exception as error:
            if wait is None or not faults.is_refused_for_now(error):
                raise
            bucket.empty()
            time.sleep(wait)
    raise AssertionError("unreachable")


def find(call: Call) -> End | None:
    """Return what a call has come to by now, ``None`` while it runs."""
    import modal  # noqa: PLC0415

    try:
        return _answer(modal.FunctionCall.from_id(call.id).get(timeout=0))
    except builtins.TimeoutError:
        return None
    except BaseException as error:  # noqa: BLE001 - what a container raised is raised here, whatever it was
        return error


def watch(call: Call, limit: float, name: str, ended: Callable[[End], None]) -> None:
    """Have ``ended`` called, in a thread of its own, with what a call comes to.

    Args:
        call: The call.
        limit: Seconds after which Modal ends its container.
        name: The Dict in which its starts are marked.
        ended: Called once.
    """
    threading.Thread(target=lambda: ended(_wait(call, limit, name)), daemon=True).start()


def _wait(call: Call, limit: float, name: str) -> End:
    import modal  # noqa: PLC0415

    handle = modal.FunctionCall.from_id(call.id)
    contact = time.monotonic()
    age = _Age(call, limit, name)
    while True:
        asked = time.monotonic()
        try:
            return _answer(handle.get(timeout=POLL_SECONDS))
        except BaseException as error:  # noqa: BLE001
            now = time.monotonic()
            if _is_pending(error, now - asked):
                contact = now
                if (lost := age.lost()) is not None:
                    return lost
            elif not faults.is_silence(error):
                return error
            elif now - contact > SILENCE_SECONDS:
                return Gone(faults.told(error))
            else:
                time.sleep(RETRY_SECONDS)


def _is_pending(error: BaseException, seconds: float) -> bool:
    """Whether there is no answer yet; a request that nobody took raises the same, but later."""
    return type(error) is builtins.TimeoutError and seconds < POLL_SECONDS + 5


def _answer(answer: object) -> End:
    return answer if isinstance(answer, bytes) else TypeError(f"an answer that is {type(answer).__name__}")


class _Age:
    """Tells by its marks for how long the latest start of a call must have been over."""

    def __init__(self, call: Call, limit: float, name: str) -> None:
        self._call, self._limit, self._name = call, limit, name
        self._seen: dict[int, float] = {}
        self._looked = time.monotonic()

    def lost(self) -> Lost | None:
        """Return that the answer is lost, once that is sure."""
        now = time.monotonic()
        if now - self._looked < LOST_SECONDS / 2:
            return None
        self._looked = now
        starts = len(starts_of(self._call, self._name))
        since = now - self._seen.setdefault(starts, now)
        return Lost(since) if starts and since > self._limit + LOST_SECONDS else None


def starts_of(call: Call, name: str) -> list[Mark]:
    """Return the marks of a call's starts, none where they can't be had."""
    with contextlib.suppress(Exception):
        return marks.read(name, call.id)
    return []


def cancel(calls: Sequence[Call], deadline: float) -> None:
    """End calls and their containers, all at once; wait for that until ``deadline`` at most."""
    threads = [threading.Thread(target=_cancel, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))


def _cancel(call: Call) -> None:
    import modal  # noqa: PLC0415

    with contextlib.suppress(Exception):
        modal.FunctionCall.from_id(call.id).cancel(terminate_containers=True)
