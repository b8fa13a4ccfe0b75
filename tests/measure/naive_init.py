"""Process 1 of a pretend host: lets naive graders run in it, one after another, and says what it then looks like.

Reads an order a line, as JSON, from standard input, and answers with a line of what it saw. As process 1 it is
out of reach of what is sent to all processes; what is left running ends with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SETTLES = 0.1
"""Seconds that what a grader has ended has for being gone."""
STARTS = 20.0
"""Seconds that a grader may take to start."""


def main() -> None:
    for line in sys.stdin:
        orders = json.loads(line)
        home = Path(orders["home"])
        subprocess.run(["rm", "-rf", *map(str, home.iterdir())], check=True)
        for name, text in orders["files"].items():
            (home / name).write_text(text, encoding="utf-8")
            (home / name).chmod(0o666)
        home.chmod(0o777)
        print(json.dumps(visited(orders)), flush=True)


def visited(orders: dict[str, Any]) -> dict[str, Any]:
    source, sink = os.pipe()
    if orders["user"] is not None:
        os.fchown(sink, orders["user"], orders["user"])  # as if the user's own shell had made it
    bystander = started(orders, ["sleep", "60"], {}, sink)
    grader = started(orders, [sys.executable, "-S", *orders["grader"]], orders["environment"], sink)
    os.close(sink)
    try:
        return observed(orders, grader, bystander, source)
    finally:
        os.close(source)
        end_all()


def started(
    orders: dict[str, Any], command: list[str], environment: dict[str, str], sink: int
) -> subprocess.Popen[bytes]:
    user = orders["user"]
    who: dict[str, Any] = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sink,
        stderr=subprocess.STDOUT,
        env={"HOME": orders["home"], "PATH": "/usr/bin:/bin", **environment},
        cwd=orders["home"],
        preexec_fn=lambda: limit(orders["limits"]),  # noqa: PLW1509  # there are no threads
        **who,
    )


def limit(limits: dict[str, int]) -> None:
    for name, value in limits.items():
        resource.setrlimit(getattr(resource, name), (value, value))


def observed(
    orders: dict[str, Any], grader: subprocess.Popen[bytes], bystander: subprocess.Popen[bytes], source: int
) -> dict[str, Any]:
    wait_for_a_folder(grader, Path(orders["home"]))
    began = time.monotonic()
    output = read_until(grader, source, began + orders["patience"])
    seen = {"hangs": grader.poll() is None, "seconds": time.monotonic() - began}
    time.sleep(SETTLES)
    seen |= {"status": grader.poll(), "bystander": bystander.poll()}
    seen["survivors"] = [name for pid, name in others() if pid not in (bystander.pid, grader.pid)]
    return {
        **seen,
        "output": output.decode("utf-8", "replace"),
        "files": {name: text_of(Path(orders["home"], name)) for name in orders["files"]},
        "names": sorted(path.name for path in Path(orders["home"]).iterdir()),
    }


def wait_for_a_folder(grader: subprocess.Popen[bytes], home: Path) -> None:
    """Waits until a grader has made one to work in: how long a busy machine takes to start it doesn't count."""
    deadline = time.monotonic() + STARTS
    while time.monotonic() < deadline and grader.poll() is None and not any(home.glob("tmp*")):
        time.sleep(0.01)


def read_until(grader: subprocess.Popen[bytes], source: int, deadline: float) -> bytes:
    """Returns what is written until the grader has ended, or until the deadline."""
    output = b""
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        while time.monotonic() < deadline:
            ended = grader.poll() is not None
            piece = os.read(source, 65536) if selector.select(0.02) else b""
            output += piece
            if ended and not piece:
                break
    return output


def text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def others() -> list[tuple[int, str]]:
    """Returns processes that live, and their names."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or folder.name == "1":
            continue
        try:
            stat = (folder / "stat").read_text("utf-8", "replace")
        except OSError:
            continue
        name, state = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2]
        if state not in "ZX":
            found.append((int(folder.name), name))
    return found


def end_all() -> None:
    """Leaves nobody but this process, to which all orphans come."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


if __name__ == "__main__":
    main()
