"""A run's checkpoint: its whole state after a step, and a journal of what was done since.

A state is a file of tensors, named by its digest, and a manifest that says what else belongs to it. The
manifest takes the place of the one before in a single rename, and names the journal that continues it; so
whenever a run is killed, what is found is one state and what was appended after it.

A disk that is full or can't be written to ends no run: that goes on without being kept, says so in
:attr:`Checkpoint.faults`, and what a kill then cuts short is done again from what had been kept before. The
same holds for a folder that somebody put back to an earlier moment, whole: it is gone on from that moment.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import torch

from pytest_prereg.measure.instruments.reading import NOWHERE, Reached
from pytest_prereg.measure.workloads.learning.journal import (
    DamagedError,
    Frames,
    Journal,
    frames,
    read_frames,
    sync_folder,
    write_whole,
)
from pytest_prereg.measure.workloads.learning.reward_ledger import LedgerState, Receipt
from pytest_prereg.measure.workloads.learning.rollouts import TokenAccount, Trajectory

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

WORKLOAD_VERSION = "1"

MANIFEST = "manifest"
_JOURNAL, _TENSORS, _DRAFT = ".journal", ".tensors", ".draft"
_OURS = (_JOURNAL, _TENSORS, _DRAFT)
_CHUNK = 2**22


class CheckpointError(ValueError):
    """A checkpoint that can't be gone on from: damaged, or another run's."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What one step measured."""

    step: int
    samples: dict[str, list[float]]
    """By metric, each in the metric's own unit."""
    notes: dict[str, Any] = {}
    """What else is worth telling, in JSON's types."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """All of a run's state that is no tensor."""

    step: int = 0
    """How many steps are done."""
    version: int = 0
    """How many updates the policy has had."""
    cursor: int = 0
    """Index of the next prompt in the data."""
    trajectories: str = ""
    """Digest over every trajectory and reward so far, in order."""
    account: TokenAccount = TokenAccount()
    ledger: LedgerState = LedgerState()
    measured: list[Measured] = []
    began: list[int] = []
    """Per attempt, how many steps were done when it began."""


class Sampled(msgspec.Struct, frozen=True, kw_only=True, tag="sampled"):
    """A round of rollouts, sampled together."""

    step: int
    round: int
    trajectories: list[Trajectory]
    generator: bytes
    """State of the generator of draws after them."""
    samples: dict[str, list[float]]
    reached: Reached = NOWHERE
    """Peak of memory from the step's beginning to here, in bytes; 0: not read."""


class Settled(msgspec.Struct, frozen=True, kw_only=True, tag="settled"):
    """A reward that was paid."""

    step: int
    receipt: Receipt


class Stepped(msgspec.Struct, frozen=True, kw_only=True, tag="stepped"):
    """A step that was done after the state, and is done again from what it sampled when going on."""

    measured: Measured


class Began(msgspec.Struct, frozen=True, kw_only=True, tag="began"):
    """An attempt that goes on from here."""

    step: int


Record = Sampled | Settled | Stepped | Began


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder holds."""

    identity: dict[str, str]
    tensors: str | None
    """Digest and, with a suffix, name of the file of tensors; ``None`` before the first step."""
    progress: Progress
    journal: str
    """Name of the file that goes on from here."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt goes on from."""

    progress: Progress
    tensors: dict[str, Any] | None
    """``None``: those that the run began with."""
    records: list[Record]


class Checkpoint:
    """The checkpoint of one run in a folder of its own.

    Args:
        folder: Nobody else writes there.
        identity: What makes the run what it is, by name: nothing is gone on from under another.
    """

    def __init__(self, folder: Path, identity: Mapping[str, object]) -> None:
        self._folder = folder
        self._identity = {name: str(value) for name, value in identity.items()}
        self._lock: int | None = None
        """Descriptor of the folder, from opening to closing."""
        self._journal: Journal | None = None
        self._is_gapped = False
        """Whether what was appended is not all there."""
        self._faults: list[str] = []

    @property
    def faults(self) -> tuple[str, ...]:
        """What could not be kept and why, a sentence each."""
        return tuple(self._faults)

    def open(self) -> Found:
        """Begin an attempt; return what it goes on from. The folder is its own until it ends.

        Raises:
            CheckpointError: What is there is damaged, is another run's, or is open already; the message says
                which, and what to do.
        """
        self._take_folder()
        try:
            return self._found()
        except BaseException:
            self.close()
            raise

    def append(self, record: Record) -> None:
        """Write down what was done: it is on disk when this returns, or is another fault.

        After a fault nothing more is appended until a state is saved: what would follow a gap is no help.
        """
        if self._lock is None:
            raise RuntimeError("a checkpoint is opened before anything is appended to it")
        if self._journal is None or self._is_gapped:
            return
        try:
            self._journal.append(msgspec.msgpack.encode(record))
        except OSError as error:
            self._is_gapped = True
            self._note(f"what was done next, a record of {type(record).__name__}", error)

    def save(self, progress: Progress, tensors: Mapping[str, Any]) -> bool:
        """Put a state in the place of the one before, whose journal ends with it.

        Returns:
            Whether it could be kept. If not, it is another fault, and what was there before goes on.
        """
        try:
            self._put(self._put_tensors(tensors), progress)
        except OSError as error:
            self._note(f"the state after step {progress.step}", error)
            self._make_room()
            return False
        _, manifest = self._manifest()
        self._continue(manifest, self._journal_of(manifest))
        return True

    def close(self) -> None:
        """End the attempt."""
        self._close_journal()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _take_folder(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise CheckpointError(
                f"the checkpoint in {self._folder} is open already, and two that go on from it would undo "
                "each other's work; end the other first"
            ) from None
        except OSError:  # a file system without locks
            pass
        self._lock = descriptor

    def _found(self) -> Found:
        if not self._path(MANIFEST).exists():
            self._check_nothing_is_there()
            try:
                self._put(None, Progress())
            except OSError as error:
                self._note("the beginning of the run", error)
                return Found(progress=Progress(), tensors=None, records=[Began(step=0)])
        payload, manifest = self._manifest()
        self._check_identity(manifest.identity)
        tensors = self._load(manifest.tensors) if manifest.tensors else None
        found = self._journal_of(manifest)
        first, *payloads = found.payloads
        if first != _digest(payload):
            raise CheckpointError(self._damaged(f"{manifest.journal} goes on from another state"))
        records = [self._decoded(each, Record) for each in payloads]
        self._continue(manifest, found)
        done = manifest.progress.step + sum(isinstance(each, Stepped) for each in records)
        records.append(Began(step=done))
        self.append(records[-1])
        return Found(progress=manifest.progress, tensors=tensors, records=records)

    def _check_nothing_is_there(self) -> None:
        """Refuse what only ever stands beside a manifest.

        The first journal, with nothing in it yet, may be there without one: that is put in place right after.
        """
        for file in sorted(self._folder.iterdir()):
            begun = file.name == _journal_name(0) and len(self._read(file.name).payloads) == 1
            if file.suffix in (_JOURNAL, _TENSORS) and not begun:
                raise CheckpointError(self._damaged(f"{MANIFEST} is missing, and {file.name} is there"))

    def _put_tensors(self, tensors: Mapping[str, Any]) -> str:
        """Keep tensors; return their digest."""
        draft = self._path("tensors.draft")
        with draft.open("wb") as file:
            try:
                torch.save(dict(tensors), file)
            except RuntimeError as error:
                if isinstance(
                    error.__context__, OSError
                ):  # torch finds less than it wrote, and says only that
                    raise error.__context__ from None
                raise
            file.flush()
            os.fsync(file.fileno())
        digest = _digest_of(draft)
        draft.replace(self._path(f"{digest}{_TENSORS}"))
        sync_folder(self._folder)
        return digest

    def _put(self, tensors: str | None, progress: Progress) -> None:
        journal = _journal_name(progress.step)
        manifest = Manifest(identity=self._identity, tensors=tensors, progress=progress, journal=journal)
        payload = msgspec.msgpack.encode(manifest)
        write_whole(self._path(journal), frames(_digest(payload)))
        write_whole(self._path(MANIFEST), frames(payload))

    def _continue(self, manifest: Manifest, found: Frames) -> None:
        self._close_journal()
        try:
            self._remove_but(_OURS, manifest.journal, f"{manifest.tensors}{_TENSORS}")
            self._journal, self._is_gapped = Journal(self._path(manifest.journal), found), False
        except OSError as error:
            self._note(f"what is done after step {manifest.progress.step}", error)

    def _make_room(self) -> None:
        """Leave nothing on a full disk that takes what the journal needs."""
        with suppress(OSError, CheckpointError):
            _, manifest = self._manifest()
            self._remove_but((_TENSORS, _DRAFT), f"{manifest.tensors}{_TENSORS}")

    def _remove_but(self, suffixes: Collection[str], *kept: str) -> None:
        for file in self._folder.iterdir():
            if file.suffix in suffixes and file.name not in kept and file.is_file():
                file.unlink()

    def _close_journal(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _note(self, what: str, error: OSError) -> None:
        self._faults.append(f"{what}, could not be kept: {error.strerror or error}")

    def _manifest(self) -> tuple[bytes, Manifest]:
        payloads = self._read(MANIFEST).payloads
        if len(payloads) != 1:
            raise CheckpointError(self._damaged(f"{MANIFEST} holds {len(payloads)} manifests and not one"))
        return payloads[0], self._decoded(payloads[0], Manifest)

    def _journal_of(self, manifest: Manifest) -> Frames:
        found = self._read(manifest.journal)
        if not found.payloads:
            raise CheckpointError(self._damaged(f"{manifest.journal} is empty"))
        return found

    def _load(self, digest: str) -> dict[str, Any]:
        file = self._path(f"{digest}{_TENSORS}")
        try:
            found = _digest_of(file)
        except OSError as error:
            raise CheckpointError(self._unreadable(file.name, error)) from None
        if found != digest:
            raise CheckpointError(self._damaged(f"{file.name} was changed"))
        loaded: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
        return loaded

    def _read(self, name: str) -> Frames:
        try:
            return read_frames(self._path(name))
        except OSError as error:
            raise CheckpointError(self._unreadable(name, error)) from None
        except DamagedError as error:
            raise CheckpointError(self._damaged(str(error))) from None

    def _unreadable(self, name: str, error: OSError) -> str:
        if isinstance(error, FileNotFoundError):
            return self._damaged(f"{name} is missing")
        return self._damaged(f"{name} can't be read ({error.strerror})")

    def _decoded(self, payload: bytes, kind: Any) -> Any:
        try:
            return msgspec.msgpack.decode(payload, type=kind)
        except msgspec.MsgspecError as error:
            raise CheckpointError(self._damaged(f"a record is none of this version's ({error})")) from None

    def _check_identity(self, found: Mapping[str, str]) -> None:
        names = sorted({*found, *self._identity})
        differing = [
            f"{name} {found.get(name, 'not there')}, and here {self._identity.get(name, 'not there')}"
            for name in names
            if found.get(name) != self._identity.get(name)
        ]
        if differing:
            raise CheckpointError(
                f"the checkpoint in {self._folder} is of another run: {'; '.join(differing)}; "
                "run what it is of, or remove it"
            )

    def _damaged(self, how: str) -> str:
        return f"the checkpoint in {self._folder} is damaged: {how}; remove it, and the run begins anew"

    def _path(self, name: str) -> Path:
        return self._folder / name


def _journal_name(step: int) -> str:
    return f"{step}{_JOURNAL}"


def _digest(payload: bytes) -> bytes:
    return hashlib.sha256(payload).digest()


def _digest_of(file: Path) -> str:
    found = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()
