"""The GRPO loop learns: rewards rise where they reach the trajectory they are for, and nowhere else."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from pytest_prereg.measure.workloads.language.completions import Sampling  # noqa: E402
from pytest_prereg.measure.workloads.learning.grpo_setting import GrpoSetting  # noqa: E402
from pytest_prereg.measure.workloads.learning.task_training import examination_for, training_on  # noqa: E402
from pytest_prereg.measure.workloads.learning.tasks import task_named  # noqa: E402

pytestmark = pytest.mark.torch

STEPS = 50
SETTING = GrpoSetting(
    model="toy-qwen3",
    task="toy",
    prompts=4,
    group=8,
    prompt_tokens=4,
    new_tokens=2,
    steps=STEPS,
    learning_rate=3e-3,
    device="cpu",
)


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def learnt(seed, sabotage=lambda _loop: None):
    """The mean reward on held-out prompts before and after 50 steps, and that of each step."""
    task = task_named("toy")
    asked = examination_for(task, SETTING, prompts=32, steps=STEPS, seed=seed, samples=4, sampling=Sampling())
    training = training_on(task, SETTING, seed=seed)
    sabotage(training.loop)
    before = asked.evaluate(training.policy.model).reward_mean
    rewards = [training.loop.step().samples["reward_mean"][0] for _ in range(STEPS)]
    return before, asked.evaluate(training.policy.model).reward_mean, rewards


def misassign(loop):
    """Pay every trajectory what another got: the same rewards, to others than they are for."""
    draws, receipts = random.Random(1), loop.ledger.receipts

    def shuffled(trajectories):
        found = receipts(trajectories)
        return draws.sample(found, len(found))

    loop.ledger.receipts = shuffled


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_fifty_steps_raise_the_reward_in_training_and_on_held_out_prompts(seed):
    before, after, rewards = learnt(seed)
    assert sum(rewards[-10:]) / 10 - sum(rewards[:10]) / 10 > 0.3
    assert before < 0.6
    assert after > 0.9


def test_misassigned_rewards_teach_nothing():
    before, after, rewards = learnt(1, misassign)
    assert abs(after - before) < 0.15
    assert abs(sum(rewards[-10:]) / 10 - sum(rewards[:10]) / 10) < 0.15
