"""The reward stage: every trajectory graded, beside the accelerator or while that waits.

What is generated doesn't depend on when a reward arrives, nor does a reward on which other came first.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, wait
from time import perf_counter
from typing import TYPE_CHECKING, Protocol, Self

from pytest_prereg.measure.workloads.language.completions import Kind
from pytest_prereg.measure.workloads.learning.reward_ledger import (
    Fault,
    Grade,
    Receipt,
    RewardUnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    from pytest_prereg.measure.workloads.learning.reward_ledger import Ledger
    from pytest_prereg.measure.workloads.learning.rollouts import Trajectory
    from pytest_prereg.measure.workloads.learning.tasks import Task

WORKLOAD_VERSION = "1"


_MOST = 200
"""Sandboxes at a time that there can be."""


def graded_at_once() -> int:
    """Return how many trajectories are graded at a time: one per processor that this process may use."""
    return min(len(os.sched_getaffinity(0)), _MOST)


class Grader(Protocol):
    """What gives rewards; several threads ask it at a time."""

    def grade(self, trajectory: Trajectory) -> Grade:
        """Return what a trajectory is worth.

        Raises:
            RewardUnavailableError: There is no verdict, for no reason of the trajectory's own.
            OSError: As well: no answer came, no process could be started, something else ended it.
        """

    def close(self) -> None:
        """Cut short what is being graded; nothing is asked of it afterwards, but this again."""


class TaskGrader:
    """Grades by the function that a task trains on, which needs nothing from outside."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def grade(self, trajectory: Trajectory) -> Grade:
        """Return what the task pays for the response."""
        prompt, response = trajectory.tokens(Kind.PROMPT), trajectory.tokens(Kind.RESPONSE)
        return Grade(reward=float(self._task.reward(prompt, response)))

    def close(self) -> None:
        """Nothing takes long."""


class RewardStage:
    """Grades trajectories, ``workers`` at a time, and settles them; of one step.

    Args:
        grader: What grades.
        ledger: Where what is graded was opened, and is settled.
        workers: How many are graded at a time.
        attempts: How often one is graded at most, until there is no fault.
        settled: Called with each new receipt, one at a time, in a thread that no grading waits for.
        waited: For how long the accelerator has stood still for this step's rewards before, in seconds.
    """

    def __init__(
        self,
        grader: Grader,
        ledger: Ledger,
        *,
        workers: int,
        attempts: int,
        settled: Callable[[Receipt], object] = lambda _: None,
        waited: float = 0.0,
    ) -> None:
        self._grader = grader
        self._ledger = ledger
        self._attempts = attempts
        self._settled = settled
        self._waited = waited
        self._waiting_since: float | None = None
        self._workers = ThreadPoolExecutor(workers, thread_name_prefix="reward")
        self._clerk = ThreadPoolExecutor(1, thread_name_prefix="ledger")
        """Settles and writes down, so that a worker goes on to the next one at once."""
        self._graded: list[Future[Future[None]]] = []
        self._written: list[Future[object]] = []
        self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        # After an exception some may still be graded: they are cut short, not waited for or tried again.
        self._is_over = True
        self._workers.shutdown(wait=False, cancel_futures=True)
        if error is not None:
            self._grader.close()
        self._workers.shutdown()
        self._clerk.shutdown()

    def write(self, write: Callable[[], object]) -> None:
        """Have something written down before whatever is settled later, and return at once.

        The accelerator doesn't wait for the disk while rewards are given, which would shorten the wait for
        them by whatever the disk takes.
        """
        self._written.append(self._clerk.submit(write))

    def start(self, trajectories: Sequence[Trajectory]) -> None:
        """Begin to grade those that aren't settled, and return at once."""
        unsettled = [each for each in trajectories if not self._ledger.is_settled(each)]
        self._graded += [self._workers.submit(self._grade, each) for each in unsettled]

    def wait(self) -> None:
        """Wait until all that was started has been graded."""
        self._waiting_since = perf_counter()
        wait(self._graded)

    def settle(self) -> None:
        """Wait until all that was graded is settled and written down.

        Raises:
            RewardUnavailableError: No attempt had a verdict on some; the others are settled.
            Exception: What else a grader raised, or writing down.
        """
        for written in self._written:
            written.result()
        faults: list[RewardUnavailableError] = []
        for each in self._graded:
            try:
                each.result().result()
            except RewardUnavailableError as error:
                faults.append(error)
        if faults:
            raise RewardUnavailableError("; ".join(map(str, faults)))

    def _grade(self, trajectory: Trajectory) -> Future[None]:
        began, reason = perf_counter(), ""
        for attempt in range(1, self._attempts + 1):
            tried = perf_counter()
            try:
                grade = self._graded_once(trajectory)
            except (RewardUnavailableError, OSError) as error:
                reason = str(error) or type(error).__name__
                seconds = perf_counter() - tried
                self._ledger.note(
                    Fault(trajectory=trajectory.id, attempt=attempt, seconds=seconds, reason=reason)
                )
                if self._is_over:
                    break
                continue
            receipt = Receipt(
                trajectory=trajectory.id,
                digest=trajectory.digest,
                attempt=attempt,
                grade=grade,
                seconds=perf_counter() - began,
                waited=self._waited_by_now(),
            )
            return self._clerk.submit(self._settle, receipt)
        raise RewardUnavailableError(
            f"trajectory {trajectory.id} has no reward after {self._attempts} attempts: {reason}"
        )

    def _graded_once(self, trajectory: Trajectory) -> Grade:
        grade = self._grader.grade(trajectory)
        if not isinstance(grade, Grade):
            raise TypeError(f"the grader returned {grade!r} for trajectory {trajectory.id}: return a Grade")
        return grade

    def _settle(self, receipt: Receipt) -> None:
        if self._ledger.settle(receipt):
            self._settled(receipt)

    def _waited_by_now(self) -> float:
        since = self._waiting_since
        return self._waited + (0.0 if since is None else perf_counter() - since)
