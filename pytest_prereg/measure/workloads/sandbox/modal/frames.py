"""What comes out of a sandbox on Modal: a length, a letter, and bytes that the program may have chosen.

It is data, and there is no more of it than a test may write; whatever else comes was not said by what runs
beside the program, and is told as that.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.measure.workloads.sandbox import ends
from pytest_prereg.measure.workloads.sandbox.messages import LENGTH, End

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.measure.workloads.sandbox.limits import Limits

WORKLOAD_VERSION = "1"

BESIDE = 8192
"""Bytes of a frame beside outputs and an answer."""
MOST_SHOWN = 200

_READY = re.compile(rb"(\d{1,3}\.\d{1,3}) ([01])")
_SEEN = re.compile(rb"(\d{1,5}) (\d{1,9}) (\d{1,15}) (\d{1,15}) (\d{1,15}) (\d{1,15})\n")
_OVER = {b"O": End.OUTPUT, b"M": End.MEMORY, b"P": End.SIGNAL}


class GarbledError(ValueError):
    """Bytes that nothing but a program says, or an image without what runs beside it."""


class Ready(NamedTuple):
    """A program can be taken."""

    python: str
    separated: bool
    """Whether programs run as another user than what runs beside them."""


class Told(NamedTuple):
    """How one test ended, before its answer is compared."""

    end: End
    text: bytes
    peak: int = 0


class Stream:
    """Cuts what comes into frames."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.output + limits.answer + BESIDE
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the frames that these bytes complete.

        Raises:
            GarbledError: One would be longer than any that is sent.
        """
        self._bytes += data
        while len(self._bytes) >= LENGTH:
            length = int.from_bytes(self._bytes[:LENGTH], "big")
            if not 0 < length <= self._most:
                raise GarbledError(bytes(self._bytes[:MOST_SHOWN]).decode("utf-8", "replace"))
            if len(self._bytes) < LENGTH + length:
                return
            frame = bytes(self._bytes[LENGTH : LENGTH + length])
            del self._bytes[: LENGTH + length]
            yield frame

    def rest(self) -> str:
        """Return what is no whole frame."""
        return bytes(self._bytes[:MOST_SHOWN]).decode("utf-8", "replace")


def ready(frame: bytes) -> Ready:
    """Return what the first frame says.

    Raises:
        GarbledError: It says something else; the text is that.
    """
    match = _READY.fullmatch(frame[1:]) if frame[:1] == b"R" else None
    if match is None:
        raise GarbledError(frame[1 : MOST_SHOWN + 1].decode("utf-8", "replace"))
    return Ready(match[1].decode(), match[2] == b"1")


def told(frame: bytes, *, is_call: bool, limits: Limits) -> Told:
    """Return how a test ended, as its frame says.

    Raises:
        GarbledError: It is none of a test.
    """
    kind, text = frame[:1], frame[1:]
    if kind == b"K" and (over := _OVER.get(text[:1])) is not None:
        return Told(over, text[1:])
    if kind != b"T":
        raise GarbledError(ends.TAKEN_OVER)
    seen, peak = _seen(text)
    output, errors, answer = len(seen.output), len(seen.errors), len(seen.answer)
    if output + errors > limits.output or answer > limits.answer + BESIDE:
        raise GarbledError(ends.TAKEN_OVER)
    return Told(*ends.ended(seen, is_call=is_call, limits=limits), peak)


def _seen(text: bytes) -> tuple[ends.Seen, int]:
    match = _SEEN.match(text)
    if match is None:
        raise GarbledError(ends.TAKEN_OVER)
    status = ends.status_of(b"%b %b" % (match[1], match[2]))
    output, errors, answer = (int(number) for number in match.groups()[3:])
    body = text[match.end() :]
    if status is None or len(body) != output + errors + answer:
        raise GarbledError(ends.TAKEN_OVER)
    parts = body[:output], body[output : output + errors], body[output + errors :]
    return ends.Seen(*status, *parts), int(match[3])
