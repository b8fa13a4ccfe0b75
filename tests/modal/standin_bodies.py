"""What containers run in the stand-in's tests; they import it from where it is mounted."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path


def where() -> tuple[int, str]:
    """The process and the container that a body runs in."""
    return os.getpid(), os.environ["MODAL_TASK_ID"]


def marked(place: str, seconds: float) -> int:
    """Leaves a mark when it begins, waits, and returns how many marks there are then."""
    with Path(place).open("a") as file:
        file.write(f"{os.getpid()}\n")
    print(f"pid {os.getpid()}, run {len(Path(place).read_text().split())}", flush=True)
    time.sleep(seconds)
    return len(Path(place).read_text().split())


def orphaning(place: str) -> None:
    """Leaves a process behind in a session of its own, and waits."""
    if not os.fork():
        os.setsid()
        if os.fork():
            os._exit(0)
        Path(place).write_text(str(os.getpid()))
    time.sleep(60)


def double(value: int) -> int:
    return 2 * value


def echo(payload: bytes) -> bytes:
    return payload[::-1]


def sleep(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def fail(text: str) -> None:
    raise KeyError(text)


def fail_at(value: int) -> int:
    if not value:
        raise KeyError("nothing")
    return value


def leave(code: int) -> None:
    sys.exit(code)


def die(code: int) -> None:
    os._exit(code)


def environment(name: str) -> str | None:
    return os.environ.get(name)


def version() -> tuple[str, tuple[int, ...]]:
    import platform

    return platform.python_version(), sys.version_info[:2]


def remember(name: str) -> int:
    """Counts in a Dict how often it ran."""
    import modal

    counts = modal.Dict.from_name(name, create_if_missing=True)
    counts["runs"] = counts.get("runs", 0) + 1
    return counts["runs"]
