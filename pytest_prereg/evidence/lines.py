"""Session lines as bytes: one JSON object a line, each ended by a newline."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from pytest_prereg.evidence.model import Footer, Header, Launched, Started
from pytest_prereg.evidence.sidecars import WrittenFinished

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.evidence.model import SessionLine
    from pytest_prereg.evidence.sidecars import Read

_CHUNK = 1 << 22
_decoder = msgspec.json.Decoder(Header | Started | Launched | WrittenFinished | Footer)


def encode(line: object) -> bytes:
    """Return ``line``, or part of one, as it is written.

    Whatever the body of an experiment put among its diagnostics must not cost the repeat: objects that JSON
    does not know are written as their ``repr``, lone surrogates as question marks.
    """
    try:
        return msgspec.json.encode(line, enc_hook=_other) + b"\n"
    except UnicodeEncodeError:
        return msgspec.json.encode(_printable(msgspec.to_builtins(line, enc_hook=_other))) + b"\n"


def _other(thing: object) -> object:
    item = getattr(thing, "item", None)  # numpy and torch scalars
    if callable(item) and getattr(thing, "size", None) == 1:
        return item()
    return repr(thing)


def _printable(thing: Any) -> Any:
    if isinstance(thing, str):
        return thing.encode("utf-8", "replace").decode("utf-8")
    if isinstance(thing, dict):
        return {_printable(key): _printable(value) for key, value in thing.items()}
    if isinstance(thing, list):
        return [_printable(value) for value in thing]
    return thing


def digest(data: bytes) -> str:
    """Return ``sha256:…`` of ``data``."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def whole_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield blocks of whole lines; what follows the last newline comes last, alone."""
    rest = b""
    while chunk := stream.read(_CHUNK):
        data = rest + chunk
        cut = data.rfind(b"\n") + 1
        rest = data[cut:]
        if cut:
            yield data[:cut]
    if rest:
        yield rest


def decode_lines(stream: BinaryIO, read: Read) -> Iterator[SessionLine]:
    """Yield the whole lines of a session file with all that they hold; ``read`` gives its sidecars.

    Raises:
        msgspec.MsgspecError: a line can't be read.
        SidecarError: a vector is not there as it was written.

    """
    for block in whole_lines(stream):
        if block.endswith(b"\n"):
            for line in _decoder.decode_lines(block):
                yield line.whole(read) if isinstance(line, WrittenFinished) else line
