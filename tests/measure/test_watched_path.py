"""A watched path: seen at whatever size it runs, and the same path for all that."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from pytest_prereg.measure.workloads.language.paths import PATHS  # noqa: E402
from pytest_prereg.measure.workloads.language.reference_check import check_path  # noqa: E402
from pytest_prereg.measure.workloads.language.watched_path import WatchedPath  # noqa: E402

pytestmark = pytest.mark.torch

FUSED, NAIVE = PATHS["fused"], PATHS["naive"]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads that wait for each other on busy cores take a hundred times as long."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def problem(tokens=40, vocabulary=1000, hidden=8):
    generator = torch.Generator().manual_seed(4)
    states = torch.randn(tokens, hidden, generator=generator, requires_grad=True)
    head = torch.randn(vocabulary, hidden, generator=generator, requires_grad=True)
    return states, head, torch.randint(vocabulary, (tokens,), generator=generator)


def run(path, states, head, chosen):
    found = path(states, head, chosen, temperature=0.8)
    return found, *torch.autograd.grad(found.square().sum(), (states, head))


def watched(path, *given):
    seen = WatchedPath(path)
    run(seen, *given)
    return seen


def fused_for_few(states, head, chosen, *, temperature):
    return (NAIVE if len(chosen) > 16 else FUSED)(states, head, chosen, temperature=temperature)


def naive_for_few(states, head, chosen, *, temperature):
    return (FUSED if len(chosen) > 16 else NAIVE)(states, head, chosen, temperature=temperature)


@pytest.mark.parametrize(("path", "declared"), [(fused_for_few, "fused"), (naive_for_few, "naive")])
def test_a_path_that_takes_another_way_for_many_tokens_is_caught(path, declared):
    given = problem()
    assert check_path(path, *given).problems(declared) == []
    (sentence,) = watched(path, *given).problems(declared)
    assert f"the path is declared {declared}" in sentence
    assert "(40 tokens, 1000 of the vocabulary)" in sentence


@pytest.mark.parametrize(
    "size",
    [(1, 64, 64), (40, 64, 64), (64, 64, 64), (64, 1000, 64), (1000, 1000, 8), (512, 1000, 512), (1, 256, 4)],
)
@pytest.mark.parametrize("declared", PATHS)
def test_gradients_are_not_taken_for_logits_whatever_the_shapes(size, declared):
    """Tokens, vocabulary and hidden size: the gradient of the head is the larger one where tokens are few."""
    assert watched(PATHS[declared], *problem(*size)).problems(declared) == []


@pytest.mark.parametrize("declared", PATHS)
def test_it_gives_the_numbers_of_the_path(declared):
    given, path = problem(), PATHS[declared]
    assert all(map(torch.equal, run(WatchedPath(path), *given), run(path, *given)))


def test_each_pass_is_seen_and_told_of_once():
    seen = WatchedPath(NAIVE)
    for tokens in (5, 40, 40):
        run(seen, *problem(tokens))
    assert [each.tokens for each in seen.passes] == [5, 40, 40]
    assert len(seen.problems("fused")) == 2


def test_a_path_that_nothing_goes_through_is_told_of():
    assert WatchedPath(FUSED).problems("fused") == [
        "the path is declared fused, and no log-probability came from it"
    ]


def test_what_else_a_model_holds_is_none_of_the_paths():
    """A large layer in front of it, of the logits' own shape."""
    states, head, chosen = problem()
    seen = WatchedPath(FUSED)
    wide = (states @ head.T).relu()
    seen(wide @ head, head, chosen, temperature=0.8).sum().backward()
    assert seen.problems("fused") == []
