"""Paths that are plausible and wrong, each caught; and right ones, none of which is."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from pytest_prereg.measure.workloads.language.log_probs import selective_log_probs  # noqa: E402
from pytest_prereg.measure.workloads.language.naive_log_probs import naive_log_probs  # noqa: E402
from pytest_prereg.measure.workloads.language.paths import PATHS  # noqa: E402
from pytest_prereg.measure.workloads.language.reference_check import check_path  # noqa: E402

pytestmark = pytest.mark.torch

every_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])


def problem(tokens=40, vocabulary=1000, hidden=8, *, dtype=torch.float32, sharp=1.0):
    generator = torch.Generator().manual_seed(4)
    states = torch.randn(tokens, hidden, generator=generator) * sharp
    head = torch.randn(vocabulary, hidden, generator=generator) * 0.2
    return states.to(dtype), head.to(dtype), torch.randint(vocabulary, (tokens,), generator=generator)


def problems(path, declared, *given, **options):
    return check_path(path, *given, **options).problems(declared)


def one_token_late(states, head, chosen, **options):
    return naive_log_probs(states, head, chosen.roll(1), **options)


def temperature_left_out(states, head, chosen, *, temperature):
    return naive_log_probs(states, head, chosen)


def softmax_taken_for_a_constant(states, head, chosen, *, temperature):
    logits = (states @ head.T).float() / temperature
    return logits.gather(1, chosen[:, None]).squeeze(1) - logits.logsumexp(1).detach()


def head_left_out(states, head, chosen, **options):
    return naive_log_probs(states, head.detach(), chosen, **options)


def states_left_out(states, head, chosen, **options):
    return naive_log_probs(states.detach(), head, chosen, **options)


def last_rows_left_out(states, head, chosen, **options):
    return naive_log_probs(states, torch.cat([head[:-9], head[-9:].detach()]), chosen, **options)


def no_gradient(states, head, chosen, **options):
    return naive_log_probs(states, head, chosen, **options).detach()


def not_a_number(states, head, chosen, **options):
    return naive_log_probs(states, head, chosen, **options) * float("nan")


WRONG = {
    one_token_late: "log-probabilities",
    temperature_left_out: "log-probabilities",
    softmax_taken_for_a_constant: "softmax term",
    head_left_out: "gradient of the head",
    states_left_out: "gradient of the hidden states",
    no_gradient: "gradient of the hidden states",
    not_a_number: "log-probabilities",
}


@every_dtype
@pytest.mark.parametrize("sharp", [1.0, 30.0])
@pytest.mark.parametrize("declared", PATHS)
def test_right_paths_have_no_problems(declared, dtype, sharp):
    given = problem(dtype=dtype, sharp=sharp)
    assert problems(PATHS[declared], declared, *given, temperature=0.8) == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("path", WRONG)
def test_a_wrong_path_is_caught(path, dtype):
    found = problems(path, "naive", *problem(dtype=dtype), temperature=0.8)
    assert any(WRONG[path] in problem for problem in found), found


def test_a_gradient_that_leaves_out_some_rows_of_the_head_is_caught():
    assert "gradient of the head" in problems(last_rows_left_out, "naive", *problem())[0]


def test_a_softmax_in_half_precision_is_caught():
    def narrow(states, head, chosen, *, temperature):
        return (states @ head.T / temperature).log_softmax(-1).gather(1, chosen[:, None]).squeeze(1).float()

    assert "log-probabilities" in problems(narrow, "naive", *problem(dtype=torch.bfloat16, sharp=0.1))[0]


def test_the_softmax_that_is_missing_is_counted():
    found = check_path(softmax_taken_for_a_constant, *problem())
    assert found.softmax_term == pytest.approx(0, abs=1e-3)
    assert check_path(selective_log_probs, *problem()).softmax_term == pytest.approx(1, abs=1e-5)


def test_the_naive_path_under_the_fused_name_is_caught():
    found = check_path(naive_log_probs, *problem())
    assert found.largest == 16 * 1000
    assert found.holds_full_matrix
    (sentence,) = found.problems("fused")
    assert "plausible, too-large training time" in sentence


def test_the_fused_path_under_the_naive_name_is_caught():
    found = check_path(selective_log_probs, *problem())
    assert found.largest == 16 * 63  # a sixteenth of the vocabulary
    assert "never held a whole matrix (16 tokens, 1000 of the vocabulary)" in found.problems("naive")[0]


def test_a_whole_matrix_in_halves_is_a_whole_matrix():
    def in_halves(states, head, chosen, *, temperature):
        halves = [(states @ half.T).float() / temperature for half in head.split(500)]
        normaliser = torch.stack([half.logsumexp(1) for half in halves]).logsumexp(0)
        return (states * head[chosen]).sum(1) / temperature - normaliser

    found = check_path(in_halves, *problem())
    assert found.largest == 16 * 500
    assert len(found.problems("fused")) == 1


def test_a_whole_matrix_in_the_backward_pass_alone_is_seen():
    class Late(torch.autograd.Function):
        @staticmethod
        def forward(ctx, states, head, chosen, temperature):
            ctx.save_for_backward(states, head, chosen)
            ctx.temperature = temperature
            return selective_log_probs(states, head, chosen, temperature=temperature)

        @staticmethod
        def backward(ctx, upstream):
            states, head, chosen = ctx.saved_tensors
            buffer = torch.empty(len(states), len(head))
            torch.mm(states, head.T, out=buffer)
            weights = buffer.div_(ctx.temperature).softmax(1).neg_()
            weights[torch.arange(len(states)), chosen] += 1
            weights *= upstream[:, None] / ctx.temperature
            return weights @ head, weights.T @ states, None, None

    def late(states, head, chosen, *, temperature):
        return Late.apply(states, head, chosen, temperature)

    (sentence,) = problems(late, "fused", *problem())
    assert "held a whole matrix" in sentence


@pytest.mark.parametrize("size", [(16, 64, 64), (40, 64, 16), (40, 1000, 16), (1, 1000, 8), (3, 1000, 3)])
@pytest.mark.parametrize("declared", PATHS)
def test_states_and_gradients_of_any_shape_are_not_taken_for_logits(size, declared):
    """The toy model's vocabulary is as large as its hidden size."""
    assert problems(PATHS[declared], declared, *problem(*size)) == []


def test_half_precision_of_a_wide_head_is_not_taken_for_logits():
    """Its tiles, widened for the sums, are larger than the logits of so few tokens."""
    given = problem(16, 8_000, 256, dtype=torch.bfloat16)
    assert problems(selective_log_probs, "fused", *given) == []


def test_a_path_is_checked_within_no_grad():
    with torch.no_grad():
        assert problems(selective_log_probs, "fused", *problem()) == []


def test_the_model_is_left_as_it_was():
    states, head, chosen = problem()
    head.requires_grad_()
    check_path(naive_log_probs, states, head, chosen)
    assert head.grad is None


def test_there_must_be_a_token():
    with pytest.raises(ValueError, match="give one at least"):
        check_path(selective_log_probs, *problem(tokens=0))


def test_one_number_per_token_is_asked_for():
    def logits(states, head, chosen, *, temperature):
        return states @ head.T / temperature

    with pytest.raises(ValueError, match=r"the path returned \(16, 1000\)"):
        check_path(logits, *problem())


def test_only_known_paths_can_be_declared():
    with pytest.raises(ValueError, match="declared = 'fast': give 'fused' or 'naive'"):
        problems(selective_log_probs, "fast", *problem())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("declared", PATHS)
def test_on_a_gpu_the_backward_pass_is_seen_too(declared, dtype):
    given = (each.cuda() for each in problem(40, 151_936, 64, dtype=dtype))
    found = check_path(PATHS[declared], *given)
    assert found.problems(declared) == []
    assert found.holds_full_matrix == (declared == "naive")
