"""What completions that never end cost a batch of rewards, and what they leave behind."""

from __future__ import annotations

from concurrent.futures import wait
from typing import TYPE_CHECKING

from experiments.left_behind import TAKE_NAME, alive, end, new_name
from pytest_prereg import experiment
from pytest_prereg.measure.workloads.sandbox.client import Sandbox
from pytest_prereg.measure.workloads.sandbox.completions import Completion, ScriptTest
from pytest_prereg.measure.workloads.sandbox.limits import Limits
from pytest_prereg.measure.workloads.sandbox.outcomes import Outcome

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pytest_prereg import Repeat
    from pytest_prereg.measure.workloads.sandbox.outcomes import Graded

ENDS = "print(sorted([3, 1, 2]))"
TESTS = (ScriptTest(expected="[1, 2, 3]"),)

NEVER_ENDS = (
    TAKE_NAME
    + """
import os, time
if os.fork() == 0:
    os.setsid()  # out of reach of a signal to the program's process group
    time.sleep(600)
while True:
    pass
"""
)


@experiment(
    metrics={
        "t_batch": "s",
        "timed_out": {"unit": "1", "exact": True},
        "survivors": {"unit": "1", "exact": True},
    },
)
def reward_deadline(
    repeat: Repeat,
    *,
    completions: int = 16,
    hung: int = 0,
    deadline: float = 1.0,
    isolation: str = "processes",
) -> None:
    """Reward one batch, all at once, whose first ``hung`` programs spin for ever beside an escaped child.

    Each has a sandbox of its own, and the ``deadline`` counts from when that is handed the program.
    ``t_batch`` runs from handing in the batch, the making of sandboxes included, until the last verdict is
    known and everything has been killed. ``survivors`` counts what of the programs that never end is alive
    right after that, by the name that they gave themselves, wherever it moved to. A repeat in which none was
    seen while they ran is invalid: the count would say nothing.
    """
    name = new_name()
    programs = [NEVER_ENDS.format(name=name)] * hung + [ENDS] * (completions - hung)
    limits = Limits(deadline=deadline, cpu=deadline + 1)
    try:
        with Sandbox(limits=limits, workers=completions, isolation=isolation) as sandbox:
            with repeat.timer("t_batch"):
                verdicts = [sandbox.submit(Completion(program=each, tests=TESTS)) for each in programs]
                seen = _most_alive(name, verdicts, every=deadline / 4)
                outcomes = [each.result().outcome for each in verdicts]
            survivors = len(alive(name))
    finally:
        end(name)
    repeat.record("timed_out", outcomes.count(Outcome.TIMEOUT))
    repeat.record("survivors", survivors)
    repeat.record("isolation", sandbox.isolation)
    repeat.record("missing", list(sandbox.missing))
    if Outcome.INFRASTRUCTURE in outcomes:
        repeat.invalidate("a completion has no verdict, for no reason of its own")
    if hung and not seen:
        repeat.invalidate(
            "no program that never ends was seen while it ran, so none seen afterwards is no news"
        )


def _most_alive(name: bytes, verdicts: list[Future[Graded]], *, every: float) -> int:
    """Wait for all verdicts; return how many processes of a name were seen alive meanwhile, at most."""
    most = 0
    while wait(verdicts, timeout=every).not_done:
        most = max(most, len(alive(name)))
    return most
