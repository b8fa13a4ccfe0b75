"""A study in a repository of its own, and the commands that a person runs on it, each a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Slot = tuple[str, int]
"""Arm and index."""

PYTEST = (sys.executable, "-m", "pytest", "--prereg", "-p", "no:cacheprovider", "-p", "no:hypothesispytest")
"""Hypothesis' plugin imports the whole of it at the end of every session, which takes longer than the session."""

ON_TERMINAL = (
    sys.executable,
    "-c",
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])",
)
"""Takes standard input as the terminal that Ctrl-C is typed on, then becomes the command that follows."""


def plain_environment() -> dict[str, str]:
    """The variables of this process without those that change what git, pytest or ``--prereg`` do."""
    steering = ("CI", "GIT_", "PYTEST_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(steering)}
    return {**kept, "GIT_CONFIG_GLOBAL": os.devnull}


@dataclass(frozen=True)
class RealStudy:
    """A study whose processes can all be found again, and whose experiments can write to ``witness``."""

    path: Path
    mark: str = field(default_factory=lambda: f"PREREG_TEST_HERD={time.monotonic_ns()}")

    @property
    def witness(self) -> Path:
        return self.path.with_name(f"{self.path.name}.witness")

    @property
    def temporary(self) -> Path:
        return self.path.with_name(f"{self.path.name}.tmp")

    def left_over(self) -> list[Path]:
        """What temporary files there are, but for the locks, which stay."""
        return [path for path in self.temporary.iterdir() if path.name != "pytest-prereg-devices"]

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def register(self) -> None:
        """Makes a repository of the folder, registers every prediction and commits all."""
        self.write(".gitignore", "__pycache__/\n")
        for command in (
            ("git", "init", "--quiet"),
            ("git", "config", "user.name", "Test"),
            ("git", "config", "user.email", "test@example.invalid"),
            ("git", "config", "commit.gpgsign", "false"),
            (sys.executable, "-m", "pytest_prereg", "lock"),
            ("git", "add", "--all"),
            ("git", "commit", "--quiet", "--message", "Register"),
        ):
            done = subprocess.run(
                command, cwd=self.path, env=plain_environment(), capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr

    def copy(self, path: Path) -> RealStudy:
        shutil.copytree(self.path, path)
        return RealStudy(path)

    def start(self, *arguments: str, terminal: int | None = None, **variables: str) -> subprocess.Popen[str]:
        """Starts ``pytest --prereg`` as a shell would: leading a group of its own, which Ctrl-C goes to."""
        out = subprocess.PIPE if terminal is None else terminal
        self.temporary.mkdir(exist_ok=True)
        name, _, value = self.mark.partition("=")
        own = {name: value, "WITNESS": str(self.witness), "TMPDIR": str(self.temporary), **variables}
        return subprocess.Popen(
            [*(ON_TERMINAL if terminal is not None else ()), *PYTEST, *arguments],
            cwd=self.path,
            env={**plain_environment(), **own},
            stdin=terminal,
            stdout=out,
            stderr=out if terminal is not None else subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=heed_signals,  # noqa: PLW1509 - the tests have no threads
        )

    def run(self, *arguments: str, **variables: str) -> tuple[int, str]:
        """Runs ``pytest --prereg`` to its end; returns exit code and output."""
        process = self.start(*arguments, **variables)
        output, _ = process.communicate(timeout=120)
        return process.returncode, output

    def processes(self) -> list[int]:
        """Pids of all that this study's commands started and that still runs; a zombie doesn't."""
        folders = (entry for entry in Path("/proc").iterdir() if entry.name.isdigit())
        return [int(entry.name) for entry in folders if self._is_ours(entry)]

    def _is_ours(self, entry: Path) -> bool:
        with suppress(OSError):
            return self.mark.encode() in (entry / "environ").read_bytes().split(b"\0")
        return False

    def files(self, experiment: str) -> dict[str, bytes]:
        """Evidence of an experiment, in order."""
        folder = self.path / "experiments" / "evidence" / experiment
        return {file.name: file.read_bytes() for file in sorted(folder.glob("*.jsonl"))}

    def lines(self, experiment: str) -> list[dict[str, Any]]:
        """All whole lines of the evidence of an experiment."""
        return [
            json.loads(line)
            for content in self.files(experiment).values()
            for line in content.splitlines(keepends=True)
            if line.endswith(b"\n")
        ]

    def slots(self, experiment: str, kind: str) -> Counter[Slot]:
        """How many lines of a kind, ``started`` or ``finished``, there are for each slot."""
        lines = self.lines(experiment)
        place = {line["repeat"]: (line["arm"], line["index"]) for line in lines if line["type"] == "started"}
        return Counter(place[line["repeat"]] for line in lines if line["type"] == kind)

    def seen(self, word: str) -> list[Slot]:
        """The slots, in order, of which the experiment itself said ``began`` or ``ended``."""
        if not self.witness.exists():
            return []
        said = (line.split() for line in self.witness.read_text().splitlines())
        return [(arm, int(index)) for what, arm, index in said if what == word]


def heed_signals() -> None:
    """In a new process: interrupts count, even where the tests were started in the background or by nohup."""
    for signum in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(signum, signal.SIG_DFL)


def wait_until(condition: Callable[[], object], *, seconds: float = 30.0, what: str = "it") -> float:
    """Waits for a condition and returns how long that took; fails after ``seconds``."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"waited {seconds:g} s for {what}"
        time.sleep(0.005)
    return time.monotonic() - began


def complaints(output: str) -> Iterator[str]:
    """What nobody should ever see in the output of a run."""
    for word in (
        "Traceback",
        "INTERNALERROR",
        "During handling",
        "direct cause",
        "Exception ignored",
        "\x1b",
    ):
        if word in output:
            yield word
