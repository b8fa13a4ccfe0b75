"""Tasks to learn: prompts for training and for evaluation are apart, and a changed grader shows."""

from __future__ import annotations

import importlib.util
from functools import wraps
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from pytest_prereg.measure.workloads.learning import verifiers
from pytest_prereg.measure.workloads.learning.grader_source import source_digest, verifier_digest
from pytest_prereg.measure.workloads.learning.tasks import (
    DATA_SET,
    MOST_HELD_OUT,
    TASKS,
    task_named,
)

pytestmark = pytest.mark.torch

END = verifiers.END
TOY = task_named("toy")


@pytest.fixture(params=sorted(TASKS))
def task(request):
    return task_named(request.param)


def rows(prompts):
    return list(map(tuple, prompts.tolist()))


@pytest.mark.parametrize("length", [2, 3, 8, 64])
def test_no_held_out_prompt_is_in_the_data_set(task, length):
    training = set(rows(task.prompts(0, DATA_SET, length)))
    held_out = rows(task.held_out(MOST_HELD_OUT, length))
    assert len(set(held_out)) == MOST_HELD_OUT
    assert training.isdisjoint(held_out)


def test_a_cursor_goes_on_where_it_stood_whatever_was_asked_for_at_once(task):
    whole = task.prompts(DATA_SET - 3, 7, 4, order=5)
    parts = [
        task.prompts(DATA_SET - 3 + start, count, 4, order=5) for start, count in ((0, 2), (2, 4), (6, 1))
    ]
    assert whole.tolist() == [row for part in parts for row in part.tolist()]


def test_the_seed_draws_the_order_and_not_the_prompts(task):
    one, other = (rows(task.prompts(0, DATA_SET, 8, order=order)) for order in (1, 2))
    assert one != other
    assert sorted(one) == sorted(other)
    again = rows(task.prompts(DATA_SET, DATA_SET, 8, order=1))
    assert again != one
    assert sorted(again) == sorted(one)


def test_fewer_held_out_prompts_are_the_first_of_more(task):
    assert rows(task.held_out(32, 8)) == rows(task.held_out(64, 8))[:32]


@pytest.mark.parametrize("length", [0, 1, True, 2.5])
def test_a_length_that_holds_nothing_out_is_refused(task, length):
    with pytest.raises(ValueError, match=f"prompt_tokens = {length}: .* whole number of at least 2"):
        task.prompts(0, 1, length)
    with pytest.raises(ValueError, match=f"prompt_tokens = {length}: .* whole number of at least 2"):
        task.held_out(1, length)


@pytest.mark.parametrize("count", [0, MOST_HELD_OUT + 1])
def test_more_held_out_prompts_than_there_are_at_every_length_are_refused(task, count):
    with pytest.raises(ValueError, match=f"{count}: .* 1 to {MOST_HELD_OUT}"):
        task.held_out(count, 2)


def test_a_task_that_is_not_there_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match='task = "tou": there is no such task here; did you mean "toy"'):
        task_named("tou")


@pytest.mark.parametrize(
    ("prompt", "response", "reward", "solved"),
    [
        ([3, 31], [32, 62], 1.0, True),
        ([32, 62], [0, 31], 1.0, True),
        ([3, 31], [32, 31], 0.5, False),
        ([32, 62], [32, 62], 0.0, False),
        ([3, 31], [40, END], 0.5, False),
        ([3, 31], [END], 0.0, False),
        ([3, 31], [], 0.0, False),
        ([3, 31], [64, 40], 0.5, False),
        ([32, 62], [64, 4, 5, 6], 0.75, False),
    ],
)
def test_an_answer_of_the_toy_lies_in_the_other_half(prompt, response, reward, solved):
    toy = task_named("toy")
    assert toy.reward(prompt, response) == reward
    assert toy.solves(prompt, response) is solved


def test_what_answers_all_prompts_alike_is_right_for_half_of_them():
    toy = task_named("toy")
    for answer in ([5] * 4, [40] * 4):
        assert sum(toy.solves(prompt, answer) for prompt in rows(toy.held_out(32, 8))) == 16


def changed(tmp_path, old, new):
    """The verifiers' module with something else in a place of its source."""
    source = tmp_path / "changed.py"
    text = Path(verifiers.__file__).read_text()
    assert old in text
    source.write_text(text.replace(old, new))
    spec = importlib.util.spec_from_file_location("changed", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def digest_of(module):
    return source_digest(module.share_in_other_half, module.all_in_other_half)


def test_the_digest_is_of_what_grades():
    assert source_digest(verifiers.share_in_other_half) != source_digest(verifiers.all_in_other_half)


@pytest.mark.parametrize("name", ["share_in_other_half", "all_in_other_half", "HALF"])
def test_what_is_put_in_place_of_what_grades_shows(monkeypatch, name):
    digest = verifier_digest(TOY)
    monkeypatch.setattr(verifiers, name, 7 if name == "HALF" else lambda _prompt, _response: True)
    assert verifier_digest(TOY) != digest


@pytest.mark.parametrize("name", ["reward", "solves"])
def test_so_does_a_method_whether_of_the_class_of_another_or_of_the_task_alone(monkeypatch, name):
    digest = verifier_digest(TOY)
    mild = type("Mild", (type(TOY),), {name: lambda *_: 1.0})()
    own = type(TOY)()
    object.__setattr__(own, name, lambda *_: 1.0)
    monkeypatch.setattr(verifiers.OtherHalf, name, wraps(getattr(TOY, name))(lambda *_: 1.0))
    assert digest not in map(verifier_digest, (mild, own, TOY))


def test_a_subclass_that_grades_alike_and_says_another_name_has_the_digest_of_its_graders():
    assert verifier_digest(type("Same", (type(TOY),), {"verifier_digest": "0" * 64})()) == verifier_digest(
        TOY
    )


def test_what_a_grader_calls_belongs_to_it(tmp_path):
    helpers = changed(tmp_path, "HALF = 32", "HALF = 31")

    def calling(helper):
        def reward(_self, prompt, response):
            return helper(prompt, response)

        return verifier_digest(type("Calling", (type(TOY),), {"reward": reward})())

    assert calling(helpers.share_in_other_half) != calling(verifiers.share_in_other_half)


@pytest.mark.parametrize(
    ("old", "new"),
    [("HALF = 32", "HALF = 31"), ("len(response) > 0 and ", ""), ("token < min", "token <= min")],
)
def test_a_changed_grader_has_another_digest(tmp_path, old, new):
    assert digest_of(changed(tmp_path, old, new)) != digest_of(verifiers)


def test_another_comment_is_no_other_grader(tmp_path):
    assert digest_of(changed(tmp_path, "HALF = 32", "# half of 64\nHALF = 32")) == digest_of(verifiers)
