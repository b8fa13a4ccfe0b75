"""The grader that is written first: the completion and its tests in one file, run with a timeout.

What attacks are shown to succeed against. Never to be run but in a pretend host (``naive_host.py``).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

MARKER = "ALL TESTS PASSED"
RESULT = "result.txt"


def main() -> None:
    with Path(sys.argv[1]).open(encoding="utf-8") as file:  # stays open, as files of graders do
        job = json.load(file)
        began = time.monotonic()
        with TemporaryDirectory(dir=job["home"]) as name:
            passed, log = graded(job, Path(name))
        line = {"passed": passed, "seconds": time.monotonic() - began, "log": log}
        print(json.dumps(line), flush=True)


def graded(job: dict[str, Any], folder: Path) -> tuple[bool, str]:
    (folder / "candidate.py").write_text(job["program"] + "\n\n" + job["tests"], encoding="utf-8")
    try:
        ended = subprocess.run(
            [sys.executable, "-S", "candidate.py"],
            input=job["stdin"].encode(),
            capture_output=True,
            timeout=job["timeout"],
            check=False,
            cwd=folder,
        )
    except subprocess.TimeoutExpired:
        return False, "timeout"
    passed = PASSED[job["judge"]](ended, job["expected"], folder)
    (folder / "verdict.txt").write_text(f"passed: {passed}\n", encoding="utf-8")
    return passed, (ended.stdout + ended.stderr)[-2000:].decode("utf-8", "replace")


def by_status(ended: subprocess.CompletedProcess[bytes], expected: Any, folder: Path) -> bool:
    return ended.returncode == 0


def by_marker(ended: subprocess.CompletedProcess[bytes], expected: Any, folder: Path) -> bool:
    return MARKER.encode() in ended.stdout


def by_file(ended: subprocess.CompletedProcess[bytes], expected: Any, folder: Path) -> bool:
    result = folder / RESULT
    return result.exists() and result.read_text(encoding="utf-8").strip() == MARKER


def by_output(ended: subprocess.CompletedProcess[bytes], expected: Any, folder: Path) -> bool:
    return ended.stdout.decode("utf-8", "replace").strip() == expected


def by_json(ended: subprocess.CompletedProcess[bytes], expected: Any, folder: Path) -> bool:
    return ended.returncode == 0 and json.loads(ended.stdout) == expected


PASSED = {
    "status": by_status,
    "marker": by_marker,
    "file": by_file,
    "output": by_output,
    "json": by_json,
}

if __name__ == "__main__":
    main()
