"""Being scheduled before all programs, however many of them there are that never wait."""

from __future__ import annotations

import os
from contextlib import suppress

WORKLOAD_VERSION = "1"


def come_first(pid: int = 0) -> None:
    """Let a process, or this one, come before all that have no real-time priority, if that is allowed.

    What it starts has none.
    """
    with suppress(OSError):
        os.sched_setscheduler(pid, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
