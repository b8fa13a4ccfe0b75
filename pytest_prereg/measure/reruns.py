"""What had to be run again in some sessions, why, and how long it had taken; in one line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytest_prereg.evidence.model import Finished, Outcome, Started
from pytest_prereg.measure.failures import said

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.evidence.files import SessionFile

MOST = 3
"""So many different causes are named."""


def reruns_text(files: Iterable[SessionFile]) -> str | None:
    """Say how many repeats the sessions ran again, or ``None`` if there was none.

    ``2 repeats run again (infrastructure: killed from outside (SIGKILL); 3.1 s lost)``. One that an earlier
    session had lost counts in the session that ran it again.
    """
    lines = [line for file in files if not file.problems for line in file.lines]
    again = sum(isinstance(line, Started) and line.attempt > 1 and not line.warmup for line in lines)
    if not again:
        return None
    faults = [line for line in lines if isinstance(line, Finished) and line.outcome is Outcome.INFRASTRUCTURE]
    causes = dict.fromkeys(said(line) or "unknown" for line in faults)
    named = [f"infrastructure: {', '.join([*causes][:MOST])}{', …' * (len(causes) > MOST)}"] if causes else []
    interrupted = again - len(faults)
    lost = [f"{interrupted} lost with an earlier session"] if interrupted > 0 else []
    seconds = math.fsum(line.seconds.get("total", 0.0) for line in faults)
    took = [f"{seconds:.1f} s lost"] if faults else []
    return f"{again} repeat{'s' * (again != 1)} run again ({'; '.join([*named, *lost, *took])})"
