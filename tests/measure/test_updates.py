"""One update: its gradient however it is cut up, AdamW step by step, and what it tells of itself."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from pytest_prereg.measure.workloads.language.causal_lm import TINY, TOY, load  # noqa: E402
from pytest_prereg.measure.workloads.language.completions import Kind  # noqa: E402
from pytest_prereg.measure.workloads.language.naive_log_probs import naive_log_probs  # noqa: E402
from pytest_prereg.measure.workloads.learning.policy_loss import token_weights  # noqa: E402
from pytest_prereg.measure.workloads.learning.updates import (  # noqa: E402
    MiniBatch,
    adamw,
    old_log_probs,
    update,
)

pytestmark = pytest.mark.torch

REDUCTIONS = ("token-mean", "sequence-mean")


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads that wait for each other on busy cores take a hundred times as long."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model():
    return load(TOY, seed=2, dtype=torch.float64)


def drawn(model, reduction="token-mean", *, drift=0.0, sequences=5):
    """A mini-batch with padding on both sides, a tool's answer, and a sequence without loss."""
    generator = torch.Generator().manual_seed(4)
    ids = torch.randint(model.vocabulary, (sequences, 9), generator=generator)
    kinds = torch.full_like(ids, Kind.RESPONSE, dtype=torch.uint8)
    kinds[:, :3] = Kind.PROMPT
    kinds[1, :2] = kinds[2, -3:] = Kind.PAD
    kinds[3, 5:7] = Kind.TOOL
    kinds[-1, 3:] = Kind.PAD
    old = old_log_probs(model, ids, kinds)
    return MiniBatch(
        ids=ids,
        kinds=kinds,
        old=old + drift * torch.randn(old.shape, generator=generator),
        advantages=torch.randn(sequences, generator=generator),
        weights=token_weights(kinds == Kind.RESPONSE, reduction),
    )


def still(model, learning_rate=0.0):
    """An optimiser that leaves the gradients to be looked at."""
    return torch.optim.SGD(model.network.parameters(), lr=learning_rate)


def gradient(model):
    return torch.cat([each.grad.flatten() for each in model.network.parameters()]).clone()


def test_logits_are_those_of_the_whole_model_with_padding_on_the_left(model):
    ids = drawn(model).ids
    mask = torch.ones_like(ids, dtype=torch.bool)
    mask[1, :2] = mask[2, :5] = False
    with torch.no_grad():
        logits = model.hidden_states(ids, mask) @ model.head.T
        whole = model.network(input_ids=ids, attention_mask=mask.long()).logits
        for row, kept in enumerate(mask):
            alone = model.network(input_ids=ids[row : row + 1, kept]).logits[0]
            torch.testing.assert_close(logits[row, kept], alone, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(logits[mask], whole[mask], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_on_policy_the_gradient_is_that_of_the_weighted_log_probabilities(model, reduction):
    """REINFORCE: at a ratio of 1 the loss has the derivative of - sum of weight x advantage x log p."""
    batch = drawn(model, reduction)
    update(model, still(model), batch)
    found = gradient(model)

    model.network.zero_grad()
    mask = (batch.kinds != Kind.PAD).long()
    logits = model.network(input_ids=batch.ids, attention_mask=mask).logits[:, :-1]
    log_probs = logits.log_softmax(-1).gather(2, batch.ids[:, 1:, None]).squeeze(2)
    (-log_probs * batch.weights.values[:, 1:] * batch.advantages[:, None]).sum().backward()
    expected = gradient(model)
    assert (found - expected).norm() / expected.norm() < 1e-5


@pytest.mark.parametrize("reduction", REDUCTIONS)
@given(micro_batch=st.integers(0, 6))
@settings(max_examples=7, deadline=None)
def test_cutting_a_mini_batch_changes_nothing_but_rounding(model, reduction, micro_batch):
    batch = drawn(model, reduction, drift=0.4)
    whole = update(model, still(model), batch)
    expected = gradient(model)
    cut = update(model, still(model), batch, micro_batch=micro_batch)
    assert (gradient(model) - expected).norm() / expected.norm() < 1e-12
    assert cut.loss == pytest.approx(whole.loss, rel=1e-12)
    assert cut.gradient_norm == pytest.approx(whole.gradient_norm, rel=1e-12)
    assert (cut.tokens, cut.clipped, cut.denominator_is) == (
        whole.tokens,
        whole.clipped,
        whole.denominator_is,
    )
    assert 0 < whole.clipped < 1 < whole.ratio_largest


@pytest.mark.parametrize("micro_batch", [0, 1, 2])
def test_old_log_probabilities_are_those_of_each_sequence(model, micro_batch):
    batch = drawn(model)
    found = old_log_probs(model, batch.ids, batch.kinds, micro_batch=micro_batch)
    torch.testing.assert_close(found, batch.old)
    assert not found.requires_grad


def test_without_old_log_probabilities_the_pass_itself_is_on_policy(model):
    batch = drawn(model)
    known, unknown = (update(model, still(model), each) for each in (batch, replace(batch, old=None)))
    assert unknown.loss == pytest.approx(known.loss, rel=1e-12)
    assert unknown.ratio_largest == 1
    torch.testing.assert_close(unknown.log_probs, batch.old)


def test_the_norm_is_told_as_it_was_and_the_gradient_cut_down_to_the_largest(model):
    batch = drawn(model)
    free = update(model, still(model), batch)
    whole = gradient(model)
    assert free.gradient_norm == pytest.approx(whole.norm().item())

    largest = free.gradient_norm / 3
    held = update(model, still(model), batch, largest_norm=largest)
    assert held.gradient_norm == free.gradient_norm
    torch.testing.assert_close(gradient(model), whole / 3)

    update(model, still(model), batch, largest_norm=free.gradient_norm * 2)
    torch.testing.assert_close(gradient(model), whole)


def test_an_update_makes_what_has_an_advantage_likelier():
    model = load(TOY, seed=2)
    batch = replace(drawn(model), advantages=torch.tensor([1.0, -1.0, 1.0, -1.0, 0.0]))
    optimiser = adamw(model.network.parameters(), learning_rate=1e-3)
    update(model, optimiser, batch)
    gain = old_log_probs(model, batch.ids, batch.kinds).sum(1) - batch.old.sum(1)
    assert (gain[:4].sign() == batch.advantages[:4]).all()


def test_two_steps_of_adamw_are_those_worked_out_by_pen():
    weight = torch.nn.Parameter(torch.tensor([1.0], dtype=torch.float64))
    optimiser = adamw(
        [weight], learning_rate=0.1, first_decay=0.5, second_decay=0.75, epsilon=1.0, weight_decay=0.2
    )
    weight.grad = torch.tensor([2.0], dtype=torch.float64)
    optimiser.step()
    # decay: 1 (1 - 0.1 x 0.2) = 0.98; mean 1 / (1 - 0.5) = 2; square 1 / (1 - 0.75) = 4, root 2
    first = 0.98 - 0.1 * 2 / (2 + 1)
    assert weight.item() == pytest.approx(first)
    weight.grad = torch.tensor([-4.0], dtype=torch.float64)
    optimiser.step()
    # mean 0.5 x 1 - 0.5 x 4 = -1.5, over 1 - 0.25; square 0.75 x 1 + 0.25 x 16 = 4.75, over 1 - 0.5625
    step = -1.5 / 0.75 / ((4.75 / 0.4375) ** 0.5 + 1)
    assert weight.item() == pytest.approx(first * 0.98 - 0.1 * step)


def test_weights_too_narrow_for_epsilon_are_refused():
    weight = torch.nn.Parameter(torch.ones(1, dtype=torch.float16))
    with pytest.raises(ValueError, match=r"epsilon = 1e-08 is 0 in torch\.float16"):
        adamw([weight])


def test_what_is_not_finite_updates_nothing(model):
    batch = drawn(model)
    broken = replace(batch, old=torch.full_like(batch.old, -torch.inf), advantages=-torch.ones(5))
    before = [each.detach().clone() for each in model.network.parameters()]
    with pytest.raises(FloatingPointError, match=r"gradient's norm is (nan|inf).*nothing was updated"):
        update(model, still(model, learning_rate=1.0), broken)
    assert all(map(torch.equal, before, model.network.parameters()))


def test_a_mini_batch_without_loss_is_refused(model):
    batch = drawn(model)
    nothing = token_weights(torch.zeros_like(batch.kinds, dtype=torch.bool), "token-mean")
    with pytest.raises(ValueError, match="no token of the mini-batch bears loss"):
        update(model, still(model), replace(batch, weights=nothing))


def test_each_stage_is_entered_in_its_turn(model):
    entered = []
    update(
        model,
        still(model),
        drawn(model),
        micro_batch=3,
        stage=lambda name: entered.append(name) or nullcontext(),
    )
    assert entered == ["forward", "backward"] * 2 + ["optimiser"]


class Largest(TorchDispatchMode):
    """Sees the size of every tensor that an operator returns, the backward pass included."""

    size = 0

    def __torch_dispatch__(self, function, types, arguments=(), known=None):
        out = function(*arguments, **(known or {}))
        for each in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(each, torch.Tensor):
                self.size = max(self.size, each.numel())
        return out


def test_an_update_never_holds_the_logits_unless_its_path_does():
    model = load(TINY, seed=0)
    ids = torch.randint(100, (8, 14))
    kinds = torch.full_like(ids, Kind.RESPONSE, dtype=torch.uint8)
    kinds[:, :2] = Kind.PROMPT
    batch = MiniBatch(
        ids=ids,
        kinds=kinds,
        old=None,
        advantages=torch.ones(8),
        weights=token_weights(kinds == Kind.RESPONSE, "token-mean"),
    )
    logits = batch.weights.tokens * model.vocabulary
    with Largest() as seen:
        update(model, still(model), batch)
    assert model.head.numel() <= seen.size < logits
    with Largest() as seen:
        update(model, still(model), batch, path=naive_log_probs)
    assert seen.size == logits


@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-4), (torch.bfloat16, 0.05)])
def test_on_a_device_the_fused_gradient_is_the_naive_one(dtype, bound):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    model = load(TINY, seed=1, dtype=dtype, device="cuda")
    here = drawn(load(TOY, seed=2))
    batch = MiniBatch(
        ids=here.ids.cuda(),
        kinds=here.kinds.cuda(),
        old=None,
        advantages=here.advantages.cuda(),
        weights=token_weights((here.kinds == Kind.RESPONSE).cuda(), "token-mean"),
    )
    update(model, still(model), batch)
    fused = gradient(model).double()
    update(model, still(model), batch, path=naive_log_probs)
    naive = gradient(model).double()
    assert (fused - naive).norm() / naive.norm() < bound
