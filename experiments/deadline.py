"""What completions that never end cost a batch of rewards, and what they leave behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg import experiment
from pytest_prereg.measure.workloads.reward import Outcome, marked_processes, new_mark, run_programs

if TYPE_CHECKING:
    from pytest_prereg import Repeat

ENDS = "assert sorted([3, 1, 2]) == [1, 2, 3]"

NEVER_ENDS = """\
import os, time
if os.fork() == 0:
    os.setsid()  # out of reach of a signal to the program's process group
    time.sleep(600)
while True:
    pass
"""


@experiment(
    metrics={
        "t_batch": "s",
        "timed_out": {"unit": "1", "exact": True},
        "survivors": {"unit": "1", "exact": True},
    },
)
def reward_deadline(repeat: Repeat, *, completions: int = 16, hung: int = 0, deadline: float = 1.0) -> None:
    """Reward one batch, all at once, whose first ``hung`` programs spin for ever beside an escaped child.

    ``t_batch`` runs until the last outcome is known and everything has been killed; ``survivors`` counts what
    of the batch is alive right after that.
    """
    programs = [NEVER_ENDS] * hung + [ENDS] * (completions - hung)
    mark = new_mark()
    with repeat.timer("t_batch"):
        outcomes = run_programs(programs, deadline=deadline, parallel=completions, mark=mark)
    repeat.record("timed_out", outcomes.count(Outcome.TIMED_OUT))
    repeat.record("survivors", len(marked_processes(mark)))
