"""Advantages, log-probabilities, loss and gradients beside those of TRL, on the same tensors."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
with warnings.catch_warnings():  # those of others, for each other
    warnings.simplefilter("ignore")
    pytest.importorskip("trl")
    from datasets import Dataset
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast
    from trl import GRPOConfig, GRPOTrainer
    from trl.trainer.utils import selective_log_softmax

from pytest_prereg.measure.workloads.language.causal_lm import TOY, load  # noqa: E402
from pytest_prereg.measure.workloads.language.completions import Kind  # noqa: E402
from pytest_prereg.measure.workloads.language.log_probs import selective_log_probs  # noqa: E402
from pytest_prereg.measure.workloads.language.scoring import response_log_probs  # noqa: E402
from pytest_prereg.measure.workloads.learning.policy_loss import (  # noqa: E402
    group_advantages,
    policy_loss,
    token_weights,
)

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

REDUCTIONS = {"bnpo": "token-mean", "dapo": "token-mean", "grpo": "sequence-mean"}
"""Ours, by TRL's name of the loss."""
PROMPT = 5
COMPLETION = 7
CLIP_LOW, CLIP_HIGH = 0.1, 0.3
TEMPERATURE = 0.7
REWARDS = [1.0, 0.0, 0.0, 1.0, 0.1, 0.1, 0.1, 0.1]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads that wait for each other on busy cores take a hundred times as long."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def trainer(tmp_path_factory):
    """TRL's real trainer of a model that `ours` has the weights of."""
    words = {f"word{index}": index for index in range(62)} | {"<unk>": 62, "<end>": 63}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel(words, unk_token="<unk>")),
        eos_token="<end>",
        pad_token="<end>",
        unk_token="<unk>",
    )
    arguments = GRPOConfig(
        output_dir=str(tmp_path_factory.mktemp("trl")),
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        report_to=[],
        disable_tqdm=True,
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=COMPLETION,
        temperature=TEMPERATURE,
        beta=0.0,
        epsilon=CLIP_LOW,
        epsilon_high=CLIP_HIGH,
    )
    made = GRPOTrainer(
        model=load(TOY, seed=3).network,
        reward_funcs=lambda completions, **_: REWARDS[: len(completions)],
        args=arguments,
        train_dataset=Dataset.from_list([{"prompt": "word1"}] * 2),
        processing_class=tokenizer,
    )
    made.model.train()
    made.current_gradient_accumulation_steps = 1
    return made


@pytest.fixture(scope="module")
def ours():
    return load(TOY, seed=3)


@dataclass(frozen=True, kw_only=True)
class Batch:
    ids: torch.Tensor
    kinds: torch.Tensor
    old: torch.Tensor
    advantages: torch.Tensor

    @property
    def mask(self):
        return self.kinds == Kind.RESPONSE

    def for_trl(self, rows=slice(None)):
        """The same as TRL takes it: prompts and completions apart, tool tokens masked in the latter."""
        kinds = self.kinds[rows]
        return {
            "prompt_ids": self.ids[rows, :PROMPT],
            "prompt_mask": (kinds[:, :PROMPT] != Kind.PAD).int(),
            "completion_ids": self.ids[rows, PROMPT:],
            "completion_mask": (kinds[:, PROMPT:] != Kind.PAD).int(),
            "tool_mask": (kinds[:, PROMPT:] != Kind.TOOL).int(),
            "old_per_token_logps": self.old[rows, PROMPT:],
            "advantages": self.advantages[rows],
            "num_items_in_batch": self.mask.sum(),
        }


@pytest.fixture(scope="module")
def batch(ours):
    """Prompts padded left, answers of a tool in the middle, ends at several lengths, off-policy both ways."""
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(62, (8, PROMPT + COMPLETION), generator=generator)
    kinds = torch.full_like(ids, Kind.RESPONSE, dtype=torch.uint8)
    kinds[:, :PROMPT] = Kind.PROMPT
    kinds[1, :2] = kinds[4, :4] = Kind.PAD
    kinds[2, 7:9] = kinds[5, 6:8] = Kind.TOOL
    kinds[3, -3:] = kinds[5, -1:] = kinds[6, -6:] = Kind.PAD
    with torch.no_grad():
        current = response_log_probs(ours, ids, kinds, temperature=TEMPERATURE)
    drift = 0.3 * torch.randn(ids.shape, generator=generator)
    advantages = group_advantages(torch.rand(8, generator=generator), 4).values
    return Batch(ids=ids, kinds=kinds, old=current + drift, advantages=advantages)


def our_loss(ours, batch, reduction):
    current = response_log_probs(ours, batch.ids, batch.kinds, temperature=TEMPERATURE)
    return policy_loss(
        current,
        batch.old,
        batch.advantages,
        token_weights(batch.mask, reduction),
        clip_low=CLIP_LOW,
        clip_high=CLIP_HIGH,
    )


def gradients(network, loss):
    network.zero_grad()
    loss.backward()
    return {name: parameter.grad.clone() for name, parameter in network.named_parameters()}


def test_advantages_are_those_that_trl_gives_the_same_rewards(trainer):
    found = trainer._generate_and_score_completions([{"prompt": "word1"}] * 4 + [{"prompt": "word2"}] * 4)
    mine = group_advantages(torch.tensor(REWARDS), 4)
    torch.testing.assert_close(mine.values, found["advantages"], rtol=1e-6, atol=1e-6)
    assert mine.zero_variance == (False, True)
    assert trainer._metrics["train"]["frac_reward_zero_std"][-1] == 1 / 2


def test_log_probabilities_are_those_of_trl_token_by_token(ours, batch):
    with torch.no_grad():
        states = ours.hidden_states(batch.ids, batch.kinds != Kind.PAD)[:, :-1]
        theirs = selective_log_softmax(states @ ours.head.T / TEMPERATURE, batch.ids[:, 1:])
        mine = selective_log_probs(
            states.flatten(0, 1), ours.head, batch.ids[:, 1:].flatten(), temperature=TEMPERATURE
        )
    torch.testing.assert_close(mine.view_as(theirs), theirs, rtol=1e-5, atol=1e-5)


def test_scored_tokens_are_those_of_trl_with_padding_and_tools_about(ours, trainer, batch):
    mask = batch.for_trl()
    with torch.no_grad():
        theirs, *_ = trainer._get_per_token_logps_and_entropies(
            trainer.model,
            batch.ids,
            torch.cat([mask["prompt_mask"], mask["completion_mask"]], 1),
            COMPLETION,
        )
        mine = response_log_probs(ours, batch.ids, batch.kinds, temperature=TEMPERATURE)
    scored = batch.mask[:, PROMPT:]
    torch.testing.assert_close(mine[:, PROMPT:][scored], theirs[scored], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("loss_type", REDUCTIONS)
def test_loss_and_gradients_are_those_of_trl(trainer, ours, batch, loss_type):
    trainer.loss_type = loss_type
    theirs = trainer._compute_loss(trainer.model, batch.for_trl())
    mine = our_loss(ours, batch, REDUCTIONS[loss_type])
    assert mine.loss.item() == pytest.approx(theirs.item(), rel=1e-5, abs=1e-6)
    assert 0 < mine.clipped == pytest.approx(trainer._metrics["train"]["clip_ratio/region_mean"][-1])
    for side in ("low", "high"):
        assert trainer._metrics["train"][f"clip_ratio/{side}_mean"][-1] > 0

    expected = gradients(trainer.model, theirs)
    for name, gradient in gradients(ours.network, mine.loss).items():
        error = (gradient - expected[name]).norm() / expected[name].norm()
        assert error < 1e-5, name


def test_the_parts_of_a_mini_batch_have_the_denominator_of_the_whole_as_trl_counts_it(trainer, ours, batch):
    trainer.loss_type = "dapo"
    parts = [
        trainer._compute_loss(trainer.model, batch.for_trl(rows)).item()
        for rows in (slice(0, 3), slice(3, None))
    ]
    assert sum(parts) == pytest.approx(our_loss(ours, batch, "token-mean").loss.item(), rel=1e-5, abs=1e-6)
