"""Trajectories that nobody sampled, and graders that fail, dawdle or lie, for tests of what is done with them."""

from __future__ import annotations

import threading
import time

from pytest_prereg.measure.workloads.language.completions import Kind, Sampling, Stop
from pytest_prereg.measure.workloads.learning.reward_ledger import Grade, Receipt, RewardUnavailableError
from pytest_prereg.measure.workloads.learning.rollouts import Trajectory


def trajectory(name: str = "0/0/0", *, prompt=(1, 2), response=(3, 4), **fields) -> Trajectory:
    ids = (*prompt, *response)
    made = {
        "id": name,
        "group": name.rpartition("/")[0],
        "prompt": 0,
        "version": 0,
        "ids": ids,
        "kinds": bytes([Kind.PROMPT] * len(prompt) + [Kind.RESPONSE] * len(response)),
        "log_probs": (0.0,) * len(prompt) + (-0.5,) * len(response),
        "stop": Stop.CAPPED,
        "sampling": Sampling(),
    }
    return Trajectory(**{**made, **fields})


def several(count: int) -> list[Trajectory]:
    """Trajectories of a group; no two are alike."""
    return [trajectory(f"0/0/{member}", response=(member,)) for member in range(count)]


def receipt(of: Trajectory, reward: float = 1.0, **fields) -> Receipt:
    made = {
        "trajectory": of.id,
        "digest": of.digest,
        "attempt": 1,
        "grade": Grade(reward=reward),
        "seconds": 0.1,
    }
    return Receipt(**{**made, **fields})


class Grades:
    """Pays a trajectory its last token, after what ``delay`` gives for it; faults come first."""

    def __init__(self, *, delay=lambda _: 0.0, faults: dict[str, int] | None = None):
        self.delay = delay
        self.faults = dict(faults or {})
        self.asked: list[str] = []
        self._lock = threading.Lock()

    def grade(self, each: Trajectory) -> Grade:
        time.sleep(self.delay(each))
        with self._lock:
            self.asked.append(each.id)
            if self.faults.get(each.id, 0):
                self.faults[each.id] -= 1
                raise RewardUnavailableError(f"no answer about {each.id}")
        return Grade(reward=float(each.ids[-1]))

    def close(self) -> None: ...
