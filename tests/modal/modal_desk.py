"""A registered study on the stand-in, the commands that a person types there, and what its bodies wrote down."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from standin_handle import Service

BODY = """
import random
import time
from pathlib import Path
from pytest_prereg import experiment

def say(what, repeat):
    with open({record!r}, "a") as file:
        file.write(f"{{what}} {{repeat.arm}}/{{repeat.index}} {{time.time()}}\\n")

@experiment(metrics={{"t": "s", "done": {{"unit": "1", "exact": True}}}})
def lab(repeat, *, weight: float = 1.0) -> None:
    say("began", repeat)
    time.sleep(float(Path({pace!r}).read_text()))
    repeat.record("done", 1)
    repeat.record("t", weight * (1 + random.Random(f"{{repeat.seed}} {{repeat.arm}}").random() / 100))
    say("ended", repeat)
"""
STUDY = """
[study]
id = "storm"
[experiments.lab]
fixture = "lab"
executor = "modal"
max-parallel = 7
repeats = 7
timeout = "1 min"
[experiments.lab.arms]
fast = { weight = 0.1 }
slow = { weight = 0.4 }
[predictions.faster]
claim = "Fast is faster than slow."
experiment = "lab"
contrast = "fast / slow"
quantity = "t"
predicts = "<= 0.5"
falsifier = ">= 0.8"
"""
HERE_OR_THERE = STUDY.replace('executor = "modal"\nmax-parallel = 7\n', "")
"""The same where it is asked to run, one repeat at a time."""
AUTHOR = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class Said(NamedTuple):
    """What a body wrote down: that it ``began`` or ``ended``, of which slot, and when."""

    what: str
    slot: str
    at: float


class StormDesk:
    """A study in a repository of its own; its bodies take as long as ``pace`` says when they begin."""

    def __init__(self, service: Service, folder: Path, text: str = STUDY) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.environ = folder / "study", {**service.environment, **AUTHOR}
        self.record, self._pace = folder / "bodies", folder / "pace"
        self.pace(0.0)
        path = self.folder / "experiments" / "lab.py"
        path.parent.mkdir(parents=True)
        path.write_text(BODY.format(record=str(self.record), pace=str(self._pace)))
        (self.folder / "predictions.toml").write_text(text)
        lock = [sys.executable, "-m", "pytest_prereg", "lock"]
        for command in (["git", "init", "-q"], lock, ["git", "add", "."], ["git", "commit", "-qm", "x"]):
            done = subprocess.run(
                command, cwd=self.folder, env=self.environ, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr

    def pace(self, seconds: float) -> None:
        self._pace.write_text(str(seconds))

    def begin(self, *options: str, executor: str = "modal") -> subprocess.Popen[str]:
        """As a shell would: leading a group of its own, which Ctrl-C goes to."""
        command = [sys.executable, "-m", "pytest", "--prereg", "--prereg-executor", executor]
        return subprocess.Popen(
            [*command, "-p", "no:cacheprovider", "-p", "no:hypothesispytest", *options],
            cwd=self.folder,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=_heed_signals,  # noqa: PLW1509 - nothing that it does needs a lock
        )

    def run(self, *options: str, executor: str = "modal", status: int = 0) -> str:
        process = self.begin(*options, executor=executor)
        output = process.communicate(timeout=180)[0]
        assert process.returncode == status, output
        return output

    def said(self) -> list[Said]:
        if not self.record.exists():
            return []
        rows = [line.split() for line in self.record.read_text().splitlines()]
        return [Said(what, slot, float(at)) for what, slot, at in rows]

    def begun(self) -> Counter[str]:
        """How often the body of each slot has begun, as it wrote down itself."""
        return Counter(each.slot for each in self.said() if each.what == "began")

    def lines(self) -> list[dict[str, Any]]:
        """All whole lines of the evidence, in the order of their files."""
        files = sorted((self.folder / "experiments" / "evidence" / "lab").glob("*.jsonl"))
        whole = [raw for file in files for raw in file.read_bytes().splitlines(keepends=True)]
        return [json.loads(raw) for raw in whole if raw.endswith(b"\n")]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.lines() if line["type"] == kind]

    def records(self, output: Path) -> dict[str, Any]:
        (only,) = json.loads(output.read_text())["predictions"]
        return only

    def written(self) -> str:
        files = [path for path in self.folder.rglob("*") if path.is_file() and ".git" not in path.parts]
        return "\n".join(path.read_text(errors="replace") for path in files)


def slot_of(repeat: str) -> str:
    """Arm and index of ``experiment/series/arm/index``."""
    return "/".join(repeat.split("/")[-2:])


def unwritten(lines: list[dict[str, Any]]) -> Counter[str]:
    """How many attempts of each slot a session began without having written what finds them again."""
    begun = Counter(slot_of(line["repeat"]) for line in lines if line["type"] == "started")
    begun.subtract(slot_of(line["repeat"]) for line in lines if line["type"] == "launched")
    return +begun


def _heed_signals() -> None:
    """Interrupts count, even where the tests were started in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
