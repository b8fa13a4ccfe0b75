"""Held-out prompts and their evaluation: what is asked, what it cost, and that nothing else moves by it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from pytest_prereg.measure.workloads.language.causal_lm import load  # noqa: E402
from pytest_prereg.measure.workloads.language.completions import Kind, Sampling, Stop  # noqa: E402
from pytest_prereg.measure.workloads.language.decoding import generate  # noqa: E402
from pytest_prereg.measure.workloads.learning.evaluating import Budget, Examination, evaluation_seed  # noqa: E402
from pytest_prereg.measure.workloads.learning.grpo_setting import GrpoSetting  # noqa: E402
from pytest_prereg.measure.workloads.learning.held_out import HeldOut, hold_out  # noqa: E402
from pytest_prereg.measure.workloads.learning.task_training import examination_for, learn_until, training_on  # noqa: E402
from pytest_prereg.measure.workloads.learning.tasks import Toy, task_named  # noqa: E402

pytestmark = pytest.mark.torch

TOY = task_named("toy")


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model():
    return load(TOY.model, seed=1)


def examination(*, samples=3, new_tokens=12, sampling=None, seed=7, prompts=6, task=TOY):
    budget = Budget(samples=samples, new_tokens=new_tokens, sampling=sampling or Sampling(), seed=seed)
    return Examination(task=task, held_out=hold_out(TOY, prompts=prompts, length=4), budget=budget)


def test_the_held_out_prompts_of_the_toy_are_what_they_were():
    """Whoever changes them changes what registered predictions are about."""
    digest = hold_out(TOY, prompts=32, length=8).digest
    assert digest == "0aac76f031aac1b65a501eec023d6380a4ef8dca0d0522426cddfec0f2bd5248"


@pytest.mark.parametrize("other", [[[1, 2], [4, 3]], [[3, 4], [1, 2]], [[1, 2, 3, 4]], [[1, 2]]])
def test_other_prompts_have_another_digest(other):
    digest = HeldOut(torch.tensor([[1, 2], [3, 4]])).digest
    assert HeldOut(torch.tensor(other)).digest != digest
    assert HeldOut(torch.tensor([[1, 2], [3, 4]])).digest == digest


@dataclass(frozen=True)
class Leaking(Toy):
    """Holds out what it trains on."""

    def held_out(self, count, length):
        return self.prompts(0, count, length)


@dataclass(frozen=True)
class Repeating(Toy):
    """Holds out one prompt many times."""

    def held_out(self, count, length):
        return super().held_out(1, length).expand(count, -1)


def test_prompts_that_are_trained_on_are_not_held_out():
    hold_out(Leaking(), prompts=5, length=4, training=TOY.prompts(100, 50, 4, order=2)[:0])
    with pytest.raises(ValueError, match="5 of 5 held-out prompts are trained on"):
        hold_out(Leaking(), prompts=5, length=4, training=TOY.prompts(0, 64, 4))


def test_one_prompt_asked_ten_times_is_not_ten_prompts():
    with pytest.raises(ValueError, match="of 10 held-out prompts 1 are different"):
        hold_out(Repeating(), prompts=10, length=4)


def test_all_that_training_will_be_on_is_held_against_what_is_held_out():
    setting = GrpoSetting(model=TOY.model, task="toy", prompts=4, prompt_tokens=4, new_tokens=2, steps=9)
    with pytest.raises(ValueError, match="held-out prompts are trained on"):
        examination_for(Leaking(), setting, prompts=32, steps=200, seed=3)
    examination_for(TOY, setting, prompts=32, steps=200, seed=3)


def test_an_evaluation_counts_what_its_generator_draws(model):
    asked = examination(samples=3, new_tokens=40)
    found = asked.evaluate(model)
    prompts = asked.held_out.prompts
    drawn = generate(
        model,
        prompts.repeat_interleave(3, 0),
        new_tokens=40,
        generator=torch.Generator().manual_seed(7),
    )
    answers = [
        [token for token, kind in zip(ids, kinds, strict=True) if kind == Kind.RESPONSE]
        for ids, kinds in zip(drawn.ids.tolist(), drawn.kinds.tolist(), strict=True)
    ]
    rewards = [
        TOY.reward(prompt, answer)
        for prompt, answer in zip(prompts.repeat_interleave(3, 0).tolist(), answers, strict=True)
    ]
    assert found.attempts == 18
    assert found.tokens_generated == sum(map(len, answers)) < 18 * 40
    assert found.stops == drawn.stops
    assert found.stops.count(Stop.ENDED) == sum(answer[-1] == 63 for answer in answers) > 0
    assert found.reward_mean == pytest.approx(sum(rewards) / 18)


@dataclass(frozen=True)
class FirstOfPrompt(Toy):
    """Finds an answer right if the prompt begins low: as many successes per prompt as it has samples."""

    def solves(self, prompt_ids, response_ids):
        return prompt_ids[0] < 32 and len(response_ids) > 0


def test_successes_are_counted_by_prompt_and_by_the_grader_of_the_evaluation(model):
    found = examination(samples=2, prompts=4, task=FirstOfPrompt()).evaluate(model)
    assert found.successes_by_prompt == (2, 0, 2, 0)
    assert found.successes == 4
    assert found.accuracy == 0.5
    assert found.reward_mean != 0.5


def test_equal_seeds_give_equal_evaluations_and_others_do_not(model):
    one, same, other = (examination(seed=seed).evaluate(model) for seed in (1, 1, 2))
    assert one == same != other
    assert evaluation_seed(1) != evaluation_seed(2)
    assert evaluation_seed(5) not in {5, 5 % 2**63}


def test_fewer_tokens_are_a_cap_and_a_full_context_is_none(model):
    capped = examination(new_tokens=1, sampling=Sampling(temperature=0)).evaluate(model)
    assert set(capped.stops) == {Stop.CAPPED}
    short = replace(model, context=6)
    truncated = examination(new_tokens=12, sampling=Sampling(temperature=0)).evaluate(short)
    assert set(truncated.stops) == {Stop.TRUNCATED}


def test_an_evaluation_moves_neither_weights_nor_draws(model):
    before = {name: value.clone() for name, value in model.network.state_dict().items()}
    torch.manual_seed(3)
    state = torch.get_rng_state()
    examination().warm_up(model)
    examination().evaluate(model)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in model.network.state_dict().items())
    assert all(parameter.grad is None for parameter in model.network.parameters())
    assert all(parameter.requires_grad for parameter in model.network.parameters())


def trained(*, every):
    setting = GrpoSetting(
        model=TOY.model, task="toy", prompts=2, group=4, prompt_tokens=4, new_tokens=3, learning_rate=3e-3
    )
    training = training_on(TOY, setting, seed=5)
    asked = examination()
    learn_until(2.0, training.loop, lambda: asked.evaluate(training.policy.model), steps=4, every=every)
    return training


def test_training_is_the_same_bit_for_bit_however_often_it_is_evaluated():
    often, never = trained(every=1), trained(every=100)
    assert often.loop.progress.trajectories == never.loop.progress.trajectories
    weights = never.policy.model.network.state_dict()
    assert all(
        torch.equal(value, weights[name]) for name, value in often.policy.model.network.state_dict().items()
    )


def test_other_prompts_or_another_verifier_than_expected_are_refused_at_once():
    asked = examination()
    identity = asked.identity()
    asked.expect(prompts=identity["prompts_digest"][:12], verifier=identity["verifier_digest"])
    asked.expect(prompts="", verifier="")
    with pytest.raises(ValueError, match=r'expect_prompts = "00".*expect_verifier = "11"'):
        asked.expect(prompts="00", verifier="11")
    changed = replace(asked, held_out=HeldOut(asked.held_out.prompts.flip(0)))
    with pytest.raises(ValueError, match="expect_prompts"):
        changed.expect(prompts=identity["prompts_digest"], verifier="")
