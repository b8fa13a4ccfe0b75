"""A pretend host, in which attacks may succeed against a naive grader, and nothing else is harmed.

It has its own processes, IPC, mounts and one small folder in memory, and shares the network of loopback; what
runs in it is an unprivileged user's, and together it may use what a control group allows. Where none can
be made, limits of each process have to do, and attacks that go beyond those are not run.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Iterator

USER = 3_000_000
PYTHON = os.path.realpath(sys.executable)  # no environment of its own: nothing but what comes with it
MEMORY = 512 * 2**20
PROCESSES = 64
FOLDER = 64 * 2**20
HOME = "/home/grader"
PATIENCE = 2.2
"""Seconds beyond its own timeout that a grader may take before it is said to hang."""
EACH = {"RLIMIT_AS": 384 * 2**20, "RLIMIT_NPROC": PROCESSES, "RLIMIT_FSIZE": FOLDER // 2}
"""Limits of each process where there are no control groups."""
LOOT = "loot.txt"
FOR_ALL = "notes.txt"
SECRETS = "credentials.txt"


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A pretend host, after a grader has run in it."""

    output: str = ""
    hangs: bool = False
    seconds: float = 0.0
    status: int | None = None
    """Of the grader; ``None``: nothing was left to say it."""
    bystander: int | None = None
    """Status of a process of another's, if it has ended."""
    survivors: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)

    @property
    def report(self) -> dict[str, Any]:
        """First thing that the grader said, if it said anything that can be understood."""
        with contextlib.suppress(ValueError, IndexError):
            said = json.loads(self.output.splitlines()[0])
            return said if isinstance(said, dict) else {}
        return {}

    @property
    def loot(self) -> str:
        return self.files.get(LOOT, "")


def unavailable() -> str | None:
    """Returns why there can't be a pretend host here."""
    if not shutil.which("bwrap"):
        return "bubblewrap is not installed"
    command = [*namespaces(), PYTHON, "-I", "-c", ""]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"no namespaces: {ended.stderr.strip()}" if ended.returncode else None


class PretendHost:
    """One of them; graders visit it one after another."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._process: subprocess.Popen[str] | None = None
        self._kept = contextlib.ExitStack()
        self._limited = False

    def __enter__(self) -> Self:
        group = self._kept.enter_context(control_group())
        self._limited = bool(group)
        here = Path(__file__).parent
        host = ["--ro-bind", str(here), "/grader", PYTHON, "-I", "-S", "/grader/naive_init.py"]
        enter = f"echo $$ | tee {' '.join(group)} >/dev/null; " if group else ""
        command = ["sh", "-c", f'{enter}exec "$@"', "sh", *namespaces(), *host]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        with self._process:
            self._process.kill()
        self._kept.close()

    def visit(self, job: dict[str, Any]) -> Seen:
        """Returns what the host looks like after a naive grader has done its job in it."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(self._orders(job)) + "\n")
        self._process.stdin.flush()
        seen = self._process.stdout.readline()
        if not seen:  # even process 1 is gone
            self.__exit__()
            self.__enter__()
        return Seen(**json.loads(seen)) if seen else Seen()

    def _orders(self, job: dict[str, Any]) -> dict[str, Any]:
        secrets = f"token = {self._secret}\n"
        return {
            "home": HOME,
            "user": USER if os.geteuid() == 0 else None,
            "limits": {} if self._limited else EACH,
            "files": {LOOT: "", FOR_ALL: "kept\n", SECRETS: secrets, "job.json": json.dumps(job)},
            "grader": ["/grader/naive_grader.py", f"{HOME}/job.json", f"--token={self._secret}"],
            "environment": {"GRADER_TOKEN": self._secret},
            "patience": job["timeout"] + PATIENCE,
        }


def namespaces() -> list[str]:
    """Returns the command that makes a pretend host, to be followed by what runs in it."""
    prefix = Path(sys.base_prefix)
    command = ["bwrap", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--as-pid-1"]
    command += ["--cap-add", "ALL"] if os.geteuid() == 0 else ["--unshare-user"]
    for top in map(Path, ("/usr", "/bin", "/lib", "/lib64", "/etc")):
        shown = ["--symlink", str(top.readlink())] if top.is_symlink() else ["--ro-bind-try", str(top)]
        command += [*shown, str(top)]
    if not prefix.is_relative_to("/usr"):
        for parent in list(reversed(prefix.parents))[1:]:
            command += ["--perms", "0755", "--dir", str(parent)]
        command += ["--ro-bind", str(prefix), str(prefix)]
    command += ["--proc", "/proc", "--dev", "/dev", "--perms", "0755", "--dir", "/home"]
    command += ["--size", str(FOLDER), "--tmpfs", HOME, "--clearenv", "--chdir", "/"]
    return command


@contextlib.contextmanager
def control_group() -> Iterator[list[str]]:
    """Yields the files that a process writes itself to, to be held to ``MEMORY`` and ``PROCESSES``; maybe none."""
    name = f"prereg-pretend-{uuid4().hex[:12]}"
    made: list[Path] = []
    try:
        for parent, limits in parents().items():
            made.append(parent / name)
            (parent / name).mkdir()
            for file, value in limits.items():
                (parent / name / file).write_text(str(value))
    except OSError:
        remove(made)
        made = []
    try:
        yield [str(folder / "cgroup.procs") for folder in made]
    finally:
        remove(made)


def parents() -> dict[Path, dict[str, int]]:
    """Returns folders of control groups in which groups are to be made, and what is to be written in those."""
    own = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        own.update({each: path.lstrip("/") for each in controllers.split(",")})
    root = Path("/sys/fs/cgroup")
    if "memory" in own:
        return {
            root / "memory" / own["memory"]: {"memory.limit_in_bytes": MEMORY},
            root / "pids" / own.get("pids", ""): {"pids.max": PROCESSES},
        }
    beside = (root / own.get("", "")).parent  # processes may only be in leaves
    return {beside if own.get("") else root: {"memory.max": MEMORY, "pids.max": PROCESSES}}


def remove(groups: list[Path]) -> None:
    for folder in groups:
        for _ in range(100):
            with contextlib.suppress(FileNotFoundError):
                try:
                    folder.rmdir()
                except OSError:  # the last of it is still ending
                    time.sleep(0.02)
                    continue
            break
