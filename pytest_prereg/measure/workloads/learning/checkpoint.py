"""A run's checkpoint: its whole state after a step, and a journal of what was done since.

A state is a file of tensors, named by its digest, and a manifest that says what else belongs to it. The
manifest takes the place of the one before in a single rename, and names the journal that continues it; so
whenever a run is killed, what is found is one state and what was appended after it.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

import msgspec
import torch

from pytest_prereg.measure.workloads.learning.journal import (
    DamagedError,
    Journal,
    frame,
    read_frames,
    sync_folder,
    write_whole,
)
from pytest_prereg.measure.workloads.learning.reward_ledger import LedgerState, Receipt
from pytest_prereg.measure.workloads.learning.rollouts import TokenAccount, Trajectory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

WORKLOAD_VERSION = "1"

MANIFEST = "manifest"
_OURS = (".journal", ".tensors", ".draft")
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
        self._journal: Journal | None = None

    def open(self) -> Found:
        """Begin an attempt; return what it goes on from.

        Raises:
            CheckpointError: What is there is damaged, or is another run's; the message says which, and what
                to do.
        """
        if not self._path(MANIFEST).exists():
            self._begin()
        payload, manifest = self._manifest()
        self._check_identity(manifest.identity)
        tensors = self._load(manifest.tensors) if manifest.tensors else None
        (first, *payloads), whole = self._journal_of(manifest)
        if first != _digest(payload):
            raise CheckpointError(self._damaged(f"{manifest.journal} goes on from another state"))
        records = [self._decoded(each, Record) for each in payloads]
        self._continue(manifest, whole)
        done = manifest.progress.step + sum(isinstance(each, Stepped) for each in records)
        records.append(Began(step=done))
        self.append(records[-1])
        return Found(progress=manifest.progress, tensors=tensors, records=records)

    def append(self, record: Record) -> None:
        """Write down what was done; it is on disk when this returns."""
        if self._journal is None:
            raise RuntimeError("a checkpoint is opened before anything is appended to it")
        self._journal.append(msgspec.msgpack.encode(record))

    def save(self, progress: Progress, tensors: Mapping[str, Any]) -> None:
        """Put a state in the place of the one before, whose journal ends with it."""
        draft = self._path("tensors.draft")
        with draft.open("wb") as file:
            torch.save(dict(tensors), file)
            file.flush()
            os.fsync(file.fileno())
        digest = _digest_of(draft)
        draft.replace(self._path(f"{digest}.tensors"))
        sync_folder(self._folder)
        self._put(digest, progress)
        _, manifest = self._manifest()
        _, whole = self._journal_of(manifest)
        self._continue(manifest, whole)

    def close(self) -> None:
        """End the attempt."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _begin(self) -> None:
        # The first journal may be there without a manifest: that is put in place right after it.
        if any(file.suffix == ".tensors" for file in self._folder.iterdir()):
            raise CheckpointError(self._damaged(f"{MANIFEST} is missing"))
        self._put(None, Progress())

    def _put(self, tensors: str | None, progress: Progress) -> None:
        journal = f"{progress.step}.journal"
        manifest = Manifest(identity=self._identity, tensors=tensors, progress=progress, journal=journal)
        payload = msgspec.msgpack.encode(manifest)
        write_whole(self._path(journal), frame(_digest(payload)))
        write_whole(self._path(MANIFEST), frame(payload))

    def _continue(self, manifest: Manifest, whole: int) -> None:
        self.close()
        kept = {manifest.journal, f"{manifest.tensors}.tensors"}
        for file in self._folder.iterdir():
            if file.suffix in _OURS and file.name not in kept:
                file.unlink()
        self._journal = Journal(self._path(manifest.journal), whole=whole)

    def _manifest(self) -> tuple[bytes, Manifest]:
        payloads, _ = self._read(MANIFEST)
        if len(payloads) != 1:
            raise CheckpointError(self._damaged(f"{MANIFEST} holds {len(payloads)} manifests and not one"))
        return payloads[0], self._decoded(payloads[0], Manifest)

    def _journal_of(self, manifest: Manifest) -> tuple[list[bytes], int]:
        payloads, whole = self._read(manifest.journal)
        if not payloads:
            raise CheckpointError(self._damaged(f"{manifest.journal} is empty"))
        return payloads, whole

    def _load(self, digest: str) -> dict[str, Any]:
        file = self._path(f"{digest}.tensors")
        if not file.exists():
            raise CheckpointError(self._damaged(f"{file.name} is missing"))
        if _digest_of(file) != digest:
            raise CheckpointError(self._damaged(f"{file.name} was changed"))
        loaded: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
        return loaded

    def _read(self, name: str) -> tuple[list[bytes], int]:
        try:
            return read_frames(self._path(name))
        except FileNotFoundError:
            raise CheckpointError(self._damaged(f"{name} is missing")) from None
        except DamagedError as error:
            raise CheckpointError(self._damaged(str(error))) from None

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


def _digest(payload: bytes) -> bytes:
    return hashlib.sha256(payload).digest()


def _digest_of(file: Path) -> str:
    found = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()
