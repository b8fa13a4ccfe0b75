"""One GRPO step: its parts against closed forms, and the fixture as a whole."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from pytest_prereg import Repeat
from pytest_prereg.measure.workloads.grpo import grpo_step, program
from pytest_prereg.measure.workloads.reward import Outcome, run_programs

HANGS_NEVER = 10**9


def test_a_completion_passes_if_its_median_token_is_even():
    programs = [program(ids, hang_one_in=HANGS_NEVER) for ids in ([9, 4, 1], [9, 5, 2])]
    assert run_programs(programs, deadline=10, parallel=2) == [Outcome.PASSED, Outcome.FAILED]


def test_a_completion_hangs_if_its_tokens_add_up_to_a_multiple():
    programs = [program([2, 2, 3], hang_one_in=7), program([2, 2, 4], hang_one_in=7)]
    assert run_programs(programs, deadline=0.5, parallel=2) == [Outcome.TIMED_OUT, Outcome.PASSED]


@pytest.fixture
def policies():
    pytest.importorskip("torch")
    from pytest_prereg.measure.workloads import policy

    return policy


@pytest.fixture
def policy(policies):
    return policies.random_policy(7, policies.Shape(vocabulary=50), learning_rate=1e-2)


@pytest.mark.torch
def test_advantages_are_normalised_within_their_group(policies):
    found = policies.group_advantages([1, 0, 0, 1, 0, 0, 0, 2], group=4).view(2, 4)
    assert found.mean(1).tolist() == pytest.approx([0, 0], abs=1e-6)
    assert found.std(1).tolist() == pytest.approx([1, 1], abs=1e-3)
    assert found[0, 0] == found[0, 3] > 0 > found[0, 1]


@pytest.mark.torch
def test_a_group_of_equal_rewards_has_no_advantage(policies):
    assert policies.group_advantages([1, 1, 1, 1, 0, 0], group=2).tolist() == [0] * 6


@pytest.mark.torch
def test_prompts_are_shared_within_a_group_and_differ_between_groups(policies, policy):
    prompts = policies.random_prompts(policy, prompts=2, group=3, length=20)
    assert prompts.shape == (6, 20)
    assert (prompts[0] == prompts[1]).all()
    assert (prompts[0] != prompts[3]).any()


@pytest.mark.torch
def test_equal_seeds_draw_equal_completions_and_others_do_not(policies):
    def completions(seed):
        policy = policies.random_policy(seed, policies.Shape(vocabulary=1000))
        prompts = policies.random_prompts(policy, prompts=1, group=4, length=5)
        return policies.sample(policy, prompts, 6, nullcontext).tolist()

    assert completions(1) == completions(1) != completions(2)


@pytest.mark.torch
def test_samples_follow_the_policy(policies, policy):
    """Chi-square against the model's own probabilities, at temperature 1 over the whole vocabulary."""
    torch = pytest.importorskip("torch")
    drawn = 20_000
    prompts = policies.random_prompts(policy, prompts=1, group=drawn, length=3)
    policy.decoder.embedding.data.mul_(6)  # far from uniform
    counts = torch.bincount(policies.sample(policy, prompts, 1, nullcontext).flatten(), minlength=50)
    tokens = torch.arange(50)[:, None]
    expected = policies.completion_log_probs(policy, prompts[:50], tokens).exp().flatten().detach() * drawn
    seen = expected > 5
    chi_square = ((counts - expected)[seen] ** 2 / expected[seen]).sum()
    degrees = int(seen.sum())
    assert degrees > 5
    assert chi_square < degrees + 5 * (2 * degrees) ** 0.5


@pytest.mark.torch
def test_training_makes_what_was_rewarded_likelier(policies, policy):
    prompts = policies.random_prompts(policy, prompts=1, group=4, length=5)
    completions = policies.sample(policy, prompts, 6, nullcontext)
    before = policies.completion_log_probs(policy, prompts, completions).sum(1)
    advantages = policies.group_advantages([1, 0, 0, 0], 4)
    assert policies.train(policy, prompts, completions, advantages) == 24
    gain = policies.completion_log_probs(policy, prompts, completions).sum(1) - before
    assert gain[0] > 0
    assert gain[0] == gain.max()


@pytest.mark.torch
def test_a_step_accounts_for_every_token_and_reward():
    pytest.importorskip("torch")
    repeat = Repeat(metrics=grpo_step.metrics, seed=2**64 - 1)
    grpo_step(repeat, prompts=1, group=4, prompt_tokens=4, new_tokens=3)
    readings = repeat.readings()
    assert readings.problems == []
    values = readings.values
    assert values["tokens"] == 12
    assert values["completions"] == 4
    assert values["timed_out"] == 0
    assert 0 <= values["passed"] <= 4
    assert len(values["t_sample"]) == 3
    assert 0 < sum(values["t_sample"]) < values["t_gen"]


@pytest.mark.torch
def test_completions_that_hang_time_out_and_the_step_goes_on():
    pytest.importorskip("torch")
    repeat = Repeat(metrics=grpo_step.metrics, seed=1)
    grpo_step(repeat, prompts=1, group=2, prompt_tokens=2, new_tokens=2, deadline=0.3, hang_one_in=1)
    values = repeat.readings().values
    assert values["timed_out"] == 2
    assert values["t_reward"] >= 0.3
    assert values["tokens"] == 4
