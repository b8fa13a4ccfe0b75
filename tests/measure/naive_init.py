"""Process 1 of a pretend host: sets it up, lets a naive grader run in it, and says what it then looks like.

Reads its orders as JSON from standard input, and writes what it saw as JSON to standard output. As process 1
it is out of reach of what is sent to all processes; what it leaves running ends with it.
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


def main() -> None:
    orders = json.load(sys.stdin)
    home = Path(orders["home"])
    for name, text in orders["files"].items():
        (home / name).write_text(text, encoding="utf-8")
    home.chmod(0o777)
    for path in home.iterdir():
        path.chmod(0o666)
    source, sink = os.pipe()
    if orders["user"] is not None:
        os.fchown(sink, orders["user"], orders["user"])  # as if the user's own shell had made it
    bystander = started(orders, [sys.executable, "-c", "import time; time.sleep(60)"], {}, sink)
    grader = started(orders, [sys.executable, *orders["grader"]], orders["environment"], sink)
    os.close(sink)
    print(json.dumps(observed(orders, grader, bystander, source)), flush=True)
    os._exit(0)


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
    began = time.monotonic()
    output = read_until(grader, source, began + orders["patience"])
    seen = {"hangs": grader.poll() is None, "seconds": time.monotonic() - began}
    time.sleep(SETTLES)
    seen |= {"status": grader.poll(), "bystander": bystander.poll()}
    seen["survivors"] = [name for pid, name in others() if pid not in (bystander.pid, grader.pid)]
    with contextlib.suppress(ProcessLookupError):  # nobody is left
        os.kill(-1, signal.SIGKILL)
    return {
        **seen,
        "output": output.decode("utf-8", "replace"),
        "files": {name: text_of(Path(orders["home"], name)) for name in orders["files"]},
        "names": sorted(path.name for path in Path(orders["home"]).iterdir()),
    }


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


if __name__ == "__main__":
    main()
