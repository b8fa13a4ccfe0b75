"""Asking ``nvidia-smi``, in a process of its own that is left alone if it hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress

REAP_SECONDS = 0.5


class Question:
    """One call of ``nvidia-smi``, begun when it is made."""

    def __init__(self, query: str) -> None:
        self.hung = False
        self.complaint = ""
        self.process: subprocess.Popen[str] | None = None
        command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
        with suppress(OSError):
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                errors="replace",
                start_new_session=True,
            )

    def answer(self, until: float) -> str | None:
        """What it printed by ``until`` (monotonic clock); ``None`` if it failed or was too slow."""
        if self.process is None:
            return None
        try:
            text, _ = self.process.communicate(timeout=max(0.01, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.hung = True
            self._give_up(self.process)
            return None
        except (OSError, ValueError):
            return None
        if self.process.returncode != 0:
            self.complaint = text
            return None
        return text

    def _give_up(self, process: subprocess.Popen[str]) -> None:
        """Kill it, and wait for it no longer than a moment: what hangs in the driver can't be killed."""
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        if process.stdout is not None:
            process.stdout.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(REAP_SECONDS)
