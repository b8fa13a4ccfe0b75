"""Runs of GRPO steps on a toy: small enough for a test, real in every stage, and told apart to the last bit."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

import msgspec
import torch

from pytest_prereg.measure.workloads.language.causal_lm import TOY, load
from pytest_prereg.measure.workloads.learning.checkpoint import (
    MANIFEST,
    Checkpoint,
    Manifest,
    Record,
    Sampled,
    Settled,
)
from pytest_prereg.measure.workloads.learning.grpo_setting import GrpoSetting
from pytest_prereg.measure.workloads.learning.journal import read_frames
from pytest_prereg.measure.workloads.learning.loop import GrpoLoop
from pytest_prereg.measure.workloads.learning.policy_state import Policy
from pytest_prereg.measure.workloads.learning.programs import random_prompts
from pytest_prereg.measure.workloads.learning.reward_ledger import Grade

SEED = 11
OPEN: dict[Path, Checkpoint] = {}
"""What a run that was left without closing it has open; a process that is killed leaves nothing open."""
SMALL = {
    "prompts": 2,
    "group": 4,
    "prompt_tokens": 4,
    "new_tokens": 5,
    "model": TOY,
    "learning_rate": 1e-2,
    "device": "cpu",
}


class Parity:
    """Pays for even tokens, and notes whom it was asked about."""

    def __init__(self, *, delay=lambda _: 0.0, log: Path | None = None):
        self.delay = delay
        self.log = log
        self.asked = []

    def grade(self, each):
        self.asked.append(each)
        if self.log is not None:
            note(self.log, reward=each.id)
        time.sleep(self.delay(each))
        return Grade(reward=sum(token % 2 == 0 for token in each.ids[4:]) / len(each.ids[4:]))

    def close(self): ...


class Data:
    """Random prompts, and a note of each that was asked for."""

    def __init__(self, log: Path | None = None, length: int = SMALL["prompt_tokens"]):
        self.asked: list[int] = []
        self.log = log
        self.length = length

    def __call__(self, start: int, count: int):
        self.asked += range(start, start + count)
        if self.log is not None:
            note(self.log, prompt=start)
        return random_prompts(start, count, self.length, vocabulary=63, order=SEED)


def setting(**fields: Any) -> GrpoSetting:
    return GrpoSetting(**{**SMALL, **fields})


def policy(made: GrpoSetting, *, context: int | None = None) -> Policy:
    torch.manual_seed(SEED)
    model = load(made.model, seed=SEED, dtype=made.dtype)
    if context is not None:
        object.__setattr__(model, "context", context)
    return Policy(model, seed=SEED, learning_rate=made.learning_rate, rollout_dtype=made.rollout_dtype)


def loop_of(
    made: GrpoSetting, *, grader=None, data=None, folder: Path | None = None, context: int | None = None
) -> GrpoLoop:
    kept = None
    if folder is not None:
        folder.mkdir(exist_ok=True)
        if folder in OPEN:
            OPEN.pop(folder).close()
        kept = OPEN[folder] = Checkpoint(folder, {**made.identity(), "seed": SEED})
    return GrpoLoop(
        made,
        policy(made, context=context),
        prompts=data or Data(length=made.prompt_tokens),
        grader=grader or Parity(),
        checkpoint=kept,
    )


def train(steps: int = 1, *, grader=None, data=None, folder=None, context=None, **fields) -> GrpoLoop:
    """Train for so many steps; what was done before in the folder counts."""
    loop = loop_of(setting(**fields), grader=grader, data=data, folder=folder, context=context)
    while loop.progress.step < steps:
        loop.step()
    return loop


def weights(loop: GrpoLoop):
    return list(loop._policy.model.network.parameters())


def digest(loop: GrpoLoop) -> str:
    """Of all that a run came to: weights, moments, draws, trajectories and rewards, and what is known of it."""
    found = hashlib.sha256()
    found.update(loop.progress.trajectories.encode())
    found.update(repr((loop.progress.version, loop.progress.cursor, loop.progress.account)).encode())
    for each in _tensors(loop._policy.tensors()):
        found.update(each.contiguous().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value.reshape(-1)
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from _tensors(value[key])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _tensors(each)


def note(log: Path, **what: object) -> None:
    line = json.dumps({"pid": os.getpid(), **what}) + "\n"
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line.encode())
    os.close(descriptor)


def noted(log: Path, what: str, pid: int | None = None) -> list:
    lines = map(json.loads, log.read_text().splitlines()) if log.exists() else ()
    return [line[what] for line in lines if what in line and pid in {None, line["pid"]}]


class Kept(msgspec.Struct):
    """What a folder has of prompts that were sampled from, and trajectories that were paid for."""

    prompts: set[int]
    paid: set[str]


def kept(folder: Path) -> Kept:
    found = Kept(prompts=set(), paid=set())
    if not (folder / MANIFEST).exists():
        return found
    manifest = msgspec.msgpack.decode(read_frames(folder / MANIFEST).payloads[0], type=Manifest)
    for name, entry in manifest.progress.ledger.entries.items():
        found.prompts.add(int(name.split("/")[1]))
        found.paid |= {name} if entry.receipt else set()
    for payload in read_frames(folder / manifest.journal).payloads[1:]:
        match msgspec.msgpack.decode(payload, type=Record):
            case Sampled(trajectories=trajectories):
                found.prompts |= {each.prompt for each in trajectories}
            case Settled(receipt=receipt):
                found.paid.add(receipt.trajectory)
    return found


def run_to_the_end(folder: str, result: str, log: str, fields: dict[str, Any], steps: int) -> None:
    """What a process of its own does; whoever kills it may start it again."""
    torch.set_num_threads(1)
    grader = Parity(delay=lambda each: 0.002 * (each.ids[-1] % 4), log=Path(log))
    data = Data(Path(log))
    loop = train(steps, grader=grader, data=data, folder=Path(folder), **fields)
    Path(result).write_text(
        json.dumps({"digest": digest(loop), "steps": [m.step for m in loop.progress.measured]})
    )
