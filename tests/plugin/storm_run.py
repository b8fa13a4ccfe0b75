"""One run of a storm, in a process of its own: ``python storm_run.py KIND SEED FOLDER REFERENCE``.

The folder gets a copy of the registered study beside ``REFERENCE``, the record of an undisturbed run. What it
mounts is gone with the process, which therefore runs in a mount namespace of its own. Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import storm_clock
import storm_disks
import storm_files
import storm_rivals
import storm_signals
from storm_sessions import Storm
from storm_study import StormStudy

if TYPE_CHECKING:
    from collections.abc import Callable

KINDS: dict[str, Callable[[Storm], None]] = {
    "pytest killed": storm_signals.kill_pytest,
    "fork server killed": storm_signals.kill_server,
    "repeat killed": storm_signals.kill_repeat,
    "interrupted": storm_signals.interrupt,
    "stopped and continued": storm_signals.stop_and_continue,
    "limit reached": storm_signals.limit,
    "disk full": storm_disks.full_evidence,
    "disk full elsewhere": storm_disks.full_elsewhere,
    "disk read-only": storm_disks.read_only,
    "folder read-only": storm_disks.read_only_folder,
    "clock back between sessions": storm_clock.back_between_sessions,
    "clock back while measuring": storm_clock.back_while_measuring,
    "two sessions at once": storm_rivals.two_sessions,
    "two clones agree": storm_rivals.clones_agree,
    "two clones disagree": storm_rivals.clones_disagree,
    "git in another terminal": storm_rivals.another_terminal,
    "last line torn": storm_files.torn,
    "byte changed": storm_files.byte_changed,
    "line cut": storm_files.line_cut,
    "file removed": storm_files.file_removed,
}

MOUNTS = {"disk full", "disk full elsewhere", "disk read-only"}
HEEDS_MODES = {"folder read-only"}
HEEDS_LIMITS = {"limit reached"}
CLOCKS = {"clock back between sessions", "clock back while measuring"}


def main(kind: str, seed: int, folder: Path, reference: Path) -> None:
    folder.mkdir(exist_ok=True)
    shutil.copytree(reference.with_name("study"), folder / "study")
    storm = Storm(StormStudy(folder / "study"), random.Random(seed))
    try:
        KINDS[kind](storm)
        report = storm.finish(json.loads(reference.read_text()))
    except BaseException:
        print(f"drawn: {', '.join(storm.what)}", file=sys.stderr)
        raise
    finally:
        for pid in storm.study.processes():
            os.kill(pid, signal.SIGKILL)
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]))
