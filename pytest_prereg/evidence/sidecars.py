"""Large vectors lie beside the session files, compressed, and are named by what they hold.

The line of the repeat has their digest and their length in place of the numbers, so that a file of vectors
can be neither exchanged nor shortened unnoticed. It is on disk before the line is: what a line names is
there, and what no line names, for a crash came between, does no harm.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import math
import sys
import zlib
from array import array
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import field
from msgspec.structs import asdict

from pytest_prereg.evidence.disk import make_folder, put, sync_file, sync_folder
from pytest_prereg.evidence.model import Finished, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    Read = Callable[[str], bytes | None]
    """Gives what is in a sidecar, by its name below the experiment's folder; ``None`` if it is gone."""

INLINE = 1024
"""So many numbers of a vector are kept in its line; more are not."""

FOLDER = "vectors"
SUFFIX = ".f64.gz"
_WIDTH = 8
_GZIP = 16 + zlib.MAX_WBITS


class Reference(msgspec.Struct, kw_only=True, frozen=True, gc=False, forbid_unknown_fields=True):
    """What a line has in place of a large vector."""

    sidecar: Annotated[str, msgspec.Meta(pattern=r"^sha256:[0-9a-f]{64}\Z")]
    """Digest of the numbers as little-endian 64-bit floats."""
    count: Annotated[int, msgspec.Meta(ge=0)]
    """How many they are."""

    @property
    def name(self) -> str:
        """``vectors/<digest>.f64.gz``: where they are, below the folder of the experiment."""
        return f"{FOLDER}/{self.sidecar.removeprefix('sha256:')}{SUFFIX}"


class SidecarError(ValueError):
    """A vector is not there as it was written; the text says which, and what became of it."""


class WrittenFinished(Finished, kw_only=True, frozen=True, tag="finished"):
    """A finished line as it is in the file: large vectors are only named."""

    values: dict[str, Value | Reference] = field(default_factory=dict)  # type: ignore[assignment]
    """Only until what is named has been read is it another type."""

    def whole(self, read: Read) -> Finished:
        """Return the line with all its numbers.

        Raises:
            SidecarError: A vector is not there as it was written.
        """
        return Finished(**asdict(self) | {"values": resolved(self.values, read)})


@contextlib.contextmanager
def needed_by(session: Path) -> Iterator[None]:
    """Take away the vectors that were written meanwhile if the session file naming them is not there then.

    They would do no harm, but be in the way: on a full disk, and of whoever commits the folder.
    """
    folder = session.parent / FOLDER
    before = {*folder.glob(f"*{SUFFIX}")}
    try:
        yield
    finally:
        if not session.exists():
            for path in {*folder.glob(f"*{SUFFIX}")} - before:
                path.unlink(missing_ok=True)


def beside(session: Path) -> Read:
    """Return what gives the sidecars of the session file at this path."""

    def read(name: str) -> bytes | None:
        try:
            return (session.parent / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise SidecarError(f'vector "{name}" can\'t be read: {error.strerror}') from error

    return read


def resolved(values: Mapping[str, Value | Reference], read: Read | None) -> dict[str, Value]:
    """Return the values with the numbers in place of what names them.

    Args:
        values: By metric.
        read: Gives what is in a sidecar, by its name; ``None`` where nothing can.

    Raises:
        SidecarError: A vector is not there as it was written.
    """
    return {
        metric: vector(value, read) if isinstance(value, Reference) else value
        for metric, value in values.items()
    }


def vector(reference: Reference, read: Read | None) -> list[float]:
    """Return the numbers that ``reference`` stands for; ``read`` is as for :func:`resolved`.

    Raises:
        SidecarError: They are not there as they were written.
    """
    if read is None:
        raise SidecarError(f'vector "{reference.name}" was not read')
    packed = read(reference.name)
    if packed is None:
        raise SidecarError(f'vector "{reference.name}" is gone')
    data = _unpacked(packed, reference.count * _WIDTH)
    if data is None or _digest(data) != reference.sidecar:
        raise SidecarError(f'vector "{reference.name}" is not what was written')
    if len(data) != reference.count * _WIDTH:
        raise SidecarError(
            f'vector "{reference.name}" has {len(data) // _WIDTH} numbers, the line says {reference.count}'
        )
    numbers = _numbers(data)
    if not all(map(math.isfinite, numbers)):
        raise SidecarError(f'vector "{reference.name}" holds what is no finite number')
    return numbers


def is_intact(name: str, packed: bytes) -> bool:
    """Whether a sidecar with this file name holds the numbers that the name is made of."""
    data = _unpacked(packed)
    return data is not None and f"{_digest(data).removeprefix('sha256:')}{SUFFIX}" == name


def keep(folder: Path, line: Finished) -> Finished:
    """Put the large vectors of ``line`` on disk, and return it as it is to be written.

    Args:
        folder: Of the experiment.
        line: How an attempt ended; its values are finite.

    Raises:
        OSError: A vector could not be written.
    """
    large = {
        metric: value
        for metric, value in line.values.items()
        if isinstance(value, list) and len(value) > INLINE
    }
    if not large:
        return line
    named = {metric: _kept(folder, value) for metric, value in large.items()}
    return WrittenFinished(**asdict(line) | {"values": {**line.values, **named}})


def _kept(folder: Path, numbers: Sequence[float]) -> Reference:
    data = _data(numbers)
    reference = Reference(sidecar=_digest(data), count=len(numbers))
    path = folder / reference.name
    make_folder(path.parent)
    if path.is_file() and _unpacked(path.read_bytes(), len(data)) == data:
        sync_file(path)  # whoever put it there may not have waited for the disk
    else:
        put(path, gzip.compress(data, mtime=0))
    sync_folder(path.parent)
    return reference


def _data(numbers: Sequence[float]) -> bytes:
    packed = array("d", numbers)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def _numbers(data: bytes) -> list[float]:
    packed = array("d", data)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tolist()


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _unpacked(packed: bytes, length: int | None = None) -> bytes | None:
    """Return what was packed; ``None`` if it is torn, no such thing, or longer than it should be."""
    unpacker = zlib.decompressobj(_GZIP)
    try:
        data = unpacker.decompress(packed, 0 if length is None else length + 1)
    except zlib.error:
        return None
    return data if unpacker.eof and not unpacker.unused_data else None
