"""Five ways to the same log-probabilities: that they are the same, and what a repeat of each records."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from experiments.log_softmax import NOTHING, forms_of, inputs, log_softmax_form, once, problem_with  # noqa: E402
from pytest_prereg import Repeat  # noqa: E402

pytestmark = pytest.mark.torch

FORMS = ["naive", "gather", "rows", "chunked", "fused"]
SMALL = {"sequences": 2, "positions": 6, "vocabulary": 300, "hidden": 8, "chunk": 5}


@pytest.mark.parametrize("backward", [True, False])
@pytest.mark.parametrize("form", [NOTHING, *FORMS])
def test_a_repeat_records_its_peak_and_its_time(form, backward):
    repeat = Repeat(metrics=log_softmax_form.metrics, seed=3)
    log_softmax_form(repeat, form=form, backward=backward, **SMALL)
    readings = repeat.readings()
    assert readings.problems == readings.missing == []
    assert readings.instruments == {"peak": "process-memory", "t_pass": "wall-clock"}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_torchs_log_probabilities_and_gradients_of_both_inputs(form):
    forms, (states, head, chosen) = forms_of(5), inputs(3, 2, 6, 300, 8)
    found = once(forms[form], states, head, chosen, backward=True)
    mine = states.grad, head.grad
    states.grad = head.grad = None
    right = torch.log_softmax(states @ head.T, -1).gather(-1, chosen[..., None]).flatten()
    right.sum().backward()
    torch.testing.assert_close(found, right.detach())
    torch.testing.assert_close(mine, (states.grad, head.grad))


def test_without_a_backward_pass_nothing_is_kept_for_one():
    for form in FORMS:
        states, head, chosen = inputs(3, 2, 6, 300, 8)
        assert not once(forms_of(5)[form], states, head, chosen, backward=False).requires_grad
        assert states.grad is head.grad is None


def test_a_form_that_is_wrong_is_told(monkeypatch):
    def off(states, head, chosen):
        return forms_of(5)["naive"](states, head, chosen) * 1.001

    forms = {**forms_of(5), "gather": off}
    assert problem_with("gather", forms, backward=True).startswith("gather is off by ")
    monkeypatch.setattr("experiments.log_softmax.forms_of", lambda _chunk: forms)
    repeat = Repeat(metrics=log_softmax_form.metrics)
    log_softmax_form(repeat, form="gather", **SMALL)
    assert "off by" in repeat.readings().problems[0]
    assert not repeat.readings().values


def test_chunks_are_computed_again_in_the_backward_pass(monkeypatch):
    calls = []
    real = forms_of(5)["chunked"].func.__globals__["_of_chunk"]
    monkeypatch.setattr("experiments.log_softmax._of_chunk", lambda *given: calls.append(1) or real(*given))
    once(forms_of(5)["chunked"], *inputs(3, 2, 6, 300, 8), backward=True)
    assert len(calls) == 2 * 3
