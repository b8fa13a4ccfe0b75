"""The study that a storm strikes: 14 repeats, and a log of its own that the tool knows nothing about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from real_study import RealStudy

if TYPE_CHECKING:
    from pathlib import Path

ARMS = ("slow", "fast")
PER_ARM = 7
REPEATS = PER_ARM * len(ARMS)

STUDY = """\
[study]
id = "storm"

[experiments.work]
fixture = "work"
repeats = 7
[experiments.work.arms]
slow = { weight = 3 }
fast = { weight = 1 }

[predictions.slow-is-slower]
claim = "Slow takes at least twice as long as fast."
experiment = "work"
contrast = "slow / fast"
quantity = "t"
predicts = ">= 2"
falsifier = "< 1"
"""

WORK = """\
import hashlib
import json
import os
import time

from pytest_prereg import Repeat, experiment

LOG = os.open(os.environ["WITNESS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)


def say(event: str, repeat: Repeat, **more: float) -> None:
    place = {"arm": repeat.arm, "index": repeat.index, "seed": repeat.seed, "pid": os.getpid()}
    line = {"event": event, "session": os.environ["STORM_SESSION"], **place, **more}
    os.write(LOG, json.dumps(line).encode() + b"\\n")
    os.fsync(LOG)


@experiment(metrics={"t": "s"})
def work(repeat: Repeat, *, weight: int) -> None:
    say("began", repeat)
    time.sleep(float(os.environ.get("WORK_SECONDS", "0.05")))
    noise = int.from_bytes(hashlib.sha256(f"{repeat.seed} {repeat.arm}".encode()).digest()[:4], "big") / 2**32
    value = weight * (1 + noise / 50) + float(os.environ.get("STORM_OFFSET", "0"))
    repeat.record("t", value)
    repeat.samples("padding", [value] * int(os.environ.get("STORM_PADDING", "0")))
    say("returned", repeat, value=value)
"""


@dataclass(frozen=True)
class StormStudy(RealStudy):
    """A study whose clones write into one log, which lies beside the first of them."""

    first: Path | None = None

    @property
    def witness(self) -> Path:
        return (self.first or self.path).with_name("log")

    def clone_at(self, path: Path) -> StormStudy:
        """The clone at ``path``, whose processes are found together with those of this one."""
        return replace(self, path=path, first=self.first or self.path)


def registered(path: Path) -> StormStudy:
    """Makes the study in a repository of its own, with everything registered and committed."""
    study = StormStudy(path)
    study.write("predictions.toml", STUDY)
    study.write("experiments/work.py", WORK)
    study.register()
    return study
