"""Log-probabilities of chosen tokens, by pen, against float64, and by what must hold for any numbers."""

from __future__ import annotations

from math import log

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from pytest_prereg.measure.workloads.language import log_probs  # noqa: E402
from pytest_prereg.measure.workloads.language.log_probs import selective_log_probs  # noqa: E402
from pytest_prereg.measure.workloads.language.naive_log_probs import naive_log_probs  # noqa: E402
from pytest_prereg.measure.workloads.language.paths import PATHS, path_named  # noqa: E402

pytestmark = pytest.mark.torch

every_path = pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
sizes = st.tuples(st.integers(1, 9), st.integers(2, 40), st.integers(1, 6))
seeds = st.integers(0, 2**31)


def problem(tokens, vocabulary, hidden, *, seed=3, dtype=torch.float64, device="cpu"):
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(tokens, hidden, generator=generator).to(device, dtype)
    head = torch.randn(vocabulary, hidden, generator=generator).to(device, dtype)
    chosen = torch.randint(vocabulary, (tokens,), generator=generator).to(device)
    return states.requires_grad_(), head.requires_grad_(), chosen


def gradients(path, states, head, chosen, **options):
    """With an upstream gradient that differs from token to token, in float64."""
    found = path(states, head, chosen, **options)
    upstream = torch.linspace(-1, 2, len(found), dtype=found.dtype, device=found.device)
    return found.detach().double(), *(
        each.double() for each in torch.autograd.grad(found, (states, head), upstream)
    )


def in_float64(states, head, chosen, **options):
    """What is asked for, by the plain way."""
    wide = (each.detach().double().requires_grad_() for each in (states, head))
    return gradients(naive_log_probs, *wide, chosen, **options)


def error(found, expected):
    return float((found - expected).norm() / expected.norm())


@every_path
def test_three_tokens_by_pen(path):
    """Logits 0, log 2 and log 5: probabilities 1/8, 2/8 and 5/8."""
    states = torch.tensor([[1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    head = torch.tensor([[0.0, 7], [log(2), 0], [log(5), 0]], dtype=torch.float64, requires_grad=True)
    found = path(states, head, torch.tensor([2]))
    found.backward()
    mean = 2 / 8 * log(2) + 5 / 8 * log(5)
    assert found.tolist() == pytest.approx([log(5 / 8)])
    assert states.grad.flatten().tolist() == pytest.approx([log(5) - mean, -7 / 8])
    assert head.grad.flatten().tolist() == pytest.approx([-1 / 8, 0, -2 / 8, 0, 3 / 8, 0])


@every_path
def test_a_temperature_of_a_half_by_pen(path):
    """Logits double: 0, log 4 and log 25, of which gradients are double, too."""
    states = torch.tensor([[1.0]], dtype=torch.float64)
    head = torch.tensor([[0.0], [log(2)], [log(5)]], dtype=torch.float64, requires_grad=True)
    found = path(states, head, torch.tensor([0]), temperature=0.5)
    found.backward()
    assert found.tolist() == pytest.approx([log(1 / 30)])
    assert head.grad.flatten().tolist() == pytest.approx([2 * 29 / 30, -2 * 4 / 30, -2 * 25 / 30])


@pytest.mark.parametrize("hidden", [64, 257])
def test_gradients_over_the_true_vocabulary_are_those_of_float64(hidden):
    states, head, chosen = problem(12, 151_936 if hidden == 64 else 20_000, hidden, dtype=torch.float32)
    with torch.no_grad():
        head.mul_(0.02)
    found, expected = gradients(selective_log_probs, states, head, chosen), in_float64(states, head, chosen)
    assert [error(*pair) < 1e-6 for pair in zip(found, expected, strict=True)] == [True, True, True]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_half_precision_is_rounded_once_at_the_end(dtype, temperature):
    """Log-probabilities are float32 to the last digit or two; gradients have the dtype of what they are of."""
    states, head, chosen = problem(20, 1000, 7, dtype=dtype)
    found = gradients(selective_log_probs, states, head, chosen, temperature=temperature)
    expected = in_float64(states, head, chosen, temperature=temperature)
    assert selective_log_probs(states, head, chosen).dtype == torch.float32
    torch.testing.assert_close(found[0], expected[0], rtol=2e-6, atol=2e-6)
    assert max(map(error, found[1:], expected[1:])) < torch.finfo(dtype).eps + 1e-6


def test_gradients_are_those_of_finite_differences():
    states, head, chosen = problem(4, 11, 3)
    assert torch.autograd.gradcheck(
        lambda *given: selective_log_probs(*given, chosen, temperature=1.3), (states, head)
    )


@pytest.mark.parametrize("parts", [1, 5, 97])
def test_tiles_do_not_show_in_the_result(parts, monkeypatch):
    states, head, chosen = problem(20, 97, 6)
    monkeypatch.setattr(log_probs, "FEWEST", parts)
    found = gradients(selective_log_probs, states, head, chosen)
    torch.testing.assert_close(found, in_float64(states, head, chosen))


@settings(max_examples=30, deadline=None)
@given(size=sizes, seed=seeds, temperature=st.floats(0.05, 20))
def test_both_paths_agree_and_a_temperature_is_a_scale_of_the_states(size, seed, temperature):
    states, head, chosen = problem(*size, seed=seed)
    found = gradients(selective_log_probs, states, head, chosen, temperature=temperature)
    torch.testing.assert_close(found, in_float64(states, head, chosen, temperature=temperature))
    again = selective_log_probs(states / temperature, head, chosen)
    torch.testing.assert_close(again.detach(), found[0])


@settings(max_examples=30, deadline=None)
@given(size=sizes, seed=seeds, shift=st.floats(-1000, 1000))
def test_what_is_added_to_every_logit_changes_nothing(size, seed, shift):
    """Nor does it overflow; and probabilities of all tokens sum to 1."""
    states, head, chosen = problem(*size, seed=seed, dtype=torch.float64)
    moved = head + shift * head[0]
    torch.testing.assert_close(
        selective_log_probs(states, moved, chosen),
        selective_log_probs(states, head, chosen),
        rtol=1e-8,
        atol=1e-8,
    )
    everything = selective_log_probs(states[:1].expand(len(head), -1), moved, torch.arange(len(head)))
    assert float(everything.exp().sum().detach()) == pytest.approx(1)


def test_a_certain_token_has_no_gradient_and_an_impossible_one_a_full_one():
    states = torch.tensor([[200.0], [200.0]], requires_grad=True)
    head = torch.tensor([[1.0], [-1.0]], requires_grad=True)
    found, of_states, of_head = gradients(selective_log_probs, states, head, torch.tensor([0, 1]))
    assert found.tolist() == pytest.approx([0, -400], rel=1e-6)
    assert of_states.flatten().tolist() == pytest.approx([0, -4])
    assert of_head.flatten().tolist() == pytest.approx([-400, 400])


@pytest.mark.parametrize("frozen", [0, 1])
def test_what_is_frozen_gets_no_gradient(frozen):
    given = problem(5, 30, 4)
    expected = gradients(selective_log_probs, *given)[2 - frozen]
    given[frozen].requires_grad_(requires_grad=False)
    found = selective_log_probs(*given)
    found.backward(torch.linspace(-1, 2, 5, dtype=torch.float64))
    assert given[frozen].grad is None
    torch.testing.assert_close(given[1 - frozen].grad, expected)


def test_no_graph_is_kept_where_no_gradient_is_wanted():
    given = problem(5, 30, 4)
    with torch.no_grad():
        assert not selective_log_probs(*given).requires_grad


def test_a_kept_graph_can_be_used_twice():
    states, head, chosen = problem(5, 30, 4)
    found = selective_log_probs(states, head, chosen).sum()
    first = torch.autograd.grad(found, (states, head), retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(found, (states, head)), first)


def test_a_second_derivative_is_refused():
    states, head, chosen = problem(5, 30, 4)
    found = selective_log_probs(states, head, chosen).sum()
    with pytest.raises(RuntimeError, match="no second derivative: leave out create_graph=True"):
        torch.autograd.grad(found, states, create_graph=True)


def test_strided_inputs_are_read_as_they_are():
    states, head, chosen = problem(6, 40, 4)
    given = (each.detach().T.contiguous().T.requires_grad_() for each in (states, head))
    strided = chosen.repeat_interleave(2)[::2]
    expected = gradients(selective_log_probs, states, head, chosen)
    torch.testing.assert_close(gradients(selective_log_probs, *given, strided), expected)


@every_path
def test_no_tokens_have_no_log_probabilities_and_a_gradient_of_zero(path):
    states, head, chosen = problem(0, 30, 4)
    found = path(states, head, chosen)
    found.sum().backward()
    assert found.shape == (0,)
    assert states.grad.shape == (0, 4)
    assert not head.grad.any()


@every_path
@pytest.mark.parametrize("wrong", [0, -0.5, float("inf"), float("nan"), True, "warm"])
def test_a_temperature_is_a_finite_number_above_zero(path, wrong):
    with pytest.raises(ValueError, match=r"temperature = .*: give a finite number above 0"):
        path(*problem(2, 3, 2), temperature=wrong)


@every_path
@pytest.mark.parametrize("wrong", [-1, -100, 30])
def test_an_id_outside_of_the_vocabulary_is_named(path, wrong):
    states, head, chosen = problem(5, 30, 4)
    chosen[3] = wrong
    with pytest.raises(ValueError, match=rf"chosen\[3\] = {wrong} is outside .*: give 0 to 29"):
        path(states, head, chosen)


@every_path
def test_everything_that_is_wrong_is_said_at_once(path):
    states, head, chosen = problem(5, 30, 4)
    with pytest.raises(ValueError, match="same hidden size") as caught:
        path(states[:, :3], head.float(), chosen[:4].int(), temperature=0)
    for part in ("(5, 3)", "torch.float64 and head torch.float32", "chosen is torch.int32", "(4,)", "temper"):
        assert part in str(caught.value)


def test_a_path_is_named_and_a_misspelt_one_is_guessed():
    assert path_named("fused") is selective_log_probs
    with pytest.raises(ValueError, match=r"path = 'navie': give one of fused, naive; did you mean 'naive'\?"):
        path_named("navie")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_on_a_gpu_it_is_the_same(dtype):
    states, head, chosen = problem(200, 151_936, 64, dtype=dtype, device="cuda")
    with torch.no_grad():
        head.mul_(0.02)
    found = gradients(selective_log_probs, states, head, chosen, temperature=0.9)
    expected = in_float64(states, head, chosen, temperature=0.9)
    torch.testing.assert_close(found[0], expected[0], rtol=1e-5, atol=1e-5)
    assert max(map(error, found[1:], expected[1:])) < 2 * torch.finfo(dtype).eps + 1e-6
