"""The experiments that evaluate: what they record, refuse, and leave without a value."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from pytest_prereg import Repeat  # noqa: E402
from pytest_prereg.measure.workloads.evaluation import evaluation  # noqa: E402
from pytest_prereg.measure.workloads.grpo import grpo_step  # noqa: E402
from pytest_prereg.measure.workloads.language.causal_lm import tiny_qwen3  # noqa: E402
from pytest_prereg.measure.workloads.learning.evaluating import Evaluation  # noqa: E402
from pytest_prereg.measure.workloads.learning.task_training import learn_until  # noqa: E402
from pytest_prereg.measure.workloads.time_to_target import time_to_target  # noqa: E402

pytestmark = pytest.mark.torch

SMALL = {"prompts": 6, "samples": 2, "prompt_tokens": 4, "new_tokens": 5}
QUICK = {"prompts": 2, "group": 4, "prompt_tokens": 4, "new_tokens": 2, "held_out": 8, "device": "cpu"}


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def readings(body, *, seed=1, **parameters):
    repeat = Repeat(metrics=body.metrics, seed=seed)
    body(repeat, **parameters)
    return repeat.readings()


def refused(body, **parameters):
    with pytest.raises(ValueError, match=" = ") as told:
        body(Repeat(metrics=body.metrics), **parameters)
    return str(told.value)


def test_an_evaluation_records_every_attempt_and_token():
    found = readings(evaluation, device="cpu", **SMALL)
    assert found.problems == found.missing == []
    values, told = found.values, found.diagnostics
    assert values["attempts"] == 12
    assert values["successes"] == sum(told["successes_by_prompt"]) <= 12
    assert values["accuracy"] == values["successes"] / 12
    assert values["ended"] + values["capped"] + values["truncated"] == 12
    assert 12 <= values["tokens_generated"] <= 60
    assert 0 < values["reward_mean"] < 1
    assert found.instruments == {
        "t_eval": "wall-clock",
        "peak_memory": "process-memory",
        "memory_growth": "process-memory",
    }
    assert told["model"] == "toy-qwen3, seed 1"
    assert told["torch_threads"] == 1
    assert told["budget"] == {
        "prompts": 6,
        "samples": 2,
        "new_tokens": 5,
        "temperature": 1.0,
        "top_k": 0,
        "top_p": 1.0,
        "seed": told["budget"]["seed"],
        "batch": 0,
    }


def test_batches_of_likeliest_answers_change_nothing_and_all_are_counted():
    greedy = {**SMALL, "samples": 1, "temperature": 0, "device": "cpu"}
    whole, cut = (readings(evaluation, batch=batch, **greedy) for batch in (0, 4))
    assert cut.diagnostics["successes_by_prompt"] == whole.diagnostics["successes_by_prompt"]
    exact = ("attempts", "successes", "reward_mean", "tokens_generated", "ended", "capped")
    assert [cut.values[name] for name in exact] == [whole.values[name] for name in exact]
    drawn = readings(evaluation, batch=5, device="cpu", **SMALL).values
    assert drawn["attempts"] == drawn["ended"] + drawn["capped"] == 12


def test_repeats_draw_anew_and_are_asked_the_same():
    one, other = (readings(evaluation, seed=seed, device="cpu", **SMALL) for seed in (1, 2))
    assert one.values["reward_mean"] != other.values["reward_mean"]
    assert one.diagnostics["budget"]["seed"] != other.diagnostics["budget"]["seed"]
    for digest in ("prompts_digest", "verifier_digest"):
        assert one.diagnostics[digest] == other.diagnostics[digest]
        readings(evaluation, device="cpu", expect_prompts=one.diagnostics["prompts_digest"], **SMALL)


def test_training_first_changes_what_is_evaluated_and_not_on_what():
    before = readings(evaluation, device="cpu", **SMALL)
    after = readings(evaluation, device="cpu", steps=2, train_prompts=2, group=4, **SMALL)
    assert before.diagnostics["prompts_digest"] == after.diagnostics["prompts_digest"]
    assert before.diagnostics["budget"] == after.diagnostics["budget"]
    assert before.values["reward_mean"] != after.values["reward_mean"]


def test_all_that_cannot_be_evaluated_is_refused_at_once():
    told = refused(
        evaluation,
        prompts=0,
        samples=True,
        steps=-1,
        train_prompts=0,
        group=0,
        new_tokens=0,
        temperature=-1,
        top_p=2,
        dtype="int8",
        expect_verifier="none",
    )
    for name in (
        "prompts = 0",
        "samples = True",
        "steps = -1",
        "train_prompts = 0",
        "group = 0",
        "new_tokens = 0",
        "temperature = -1",
        "top_p = 2",
        'dtype = "int8"',
        'expect_verifier = "none"',
    ):
        assert sum(each.startswith(f"{name}:") for each in told.split("; ")) == 1, told


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"samples": 2, "temperature": 0}, "samples = 2 with temperature = 0: all would be the same answer"),
        ({"samples": 8, "top_k": 1}, "samples = 8 with top_k = 1: all would be the same answer"),
        ({"prompts": 129}, "prompts = 129: give at most 128, which is how many prompts are held out"),
        ({"samples": 2**31}, "samples = 2147483648: give a whole number of at most 2147483647"),
        ({"temperature": 1e-320}, "temperature = 1e-320: give a number of at least 0.001"),
        ({"temperature": 10**30}, f"temperature = {10**30}: give a number of at most 1000"),
        ({"learning_rate": 1e30}, "learning_rate = 1e+30: give a number of at most 1"),
        ({"device": "cuda:" + "9" * 20}, 'give "auto", "cpu", "cuda" or "cuda:0"'),
        ({"model": "-" * 300}, "is no folder, and too long for a name on Hugging Face's hub"),
        ({"model": "~nobody-is-called-so/model"}, "there is no such folder"),
        ({"prompt_tokens": 1}, "prompt_tokens = 1: give a whole number of at least 2"),
        ({"task": "toys", "steps": -1}, 'no such task here; did you mean "toy"?; steps = -1: give a whole'),
        ({"task": "programs"}, 'task = "programs": there is no such task here; valid: "toy"'),
        ({"learning_rate": 0}, "learning_rate = 0: give a finite number above 0"),
        ({"group": 1}, "group = 1: give a whole number of at least 2, since a completion is compared"),
        ({"batch": 129}, "batch = 129, and there are 128 answers (prompts x samples)"),
        ({"expect_prompts": "0" * 12}, f'expect_prompts = "{"0" * 12}", and the digest here is'),
        ({"expect_verifier": "0" * 64}, f'expect_verifier = "{"0" * 64}", and the digest here is'),
        ({"expect_prompts": ""} | {"expect_verifier": "0" * 11}, "first 12 hex digits or more"),
    ],
)
def test_what_would_say_something_else_than_it_seems_is_refused(parameters, words):
    assert words in refused(evaluation, **parameters)


def test_a_model_that_is_not_trained_needs_no_dtype_to_train_in():
    assert readings(evaluation, device="cpu", dtype="float16", **SMALL).problems == []


@pytest.mark.parametrize("body", [evaluation, grpo_step])
def test_a_model_that_lacks_a_task_s_tokens_is_refused(body, tmp_path):
    config = tiny_qwen3(40, None)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    told = refused(body, model=str(tmp_path), task="toy", device="cpu")
    assert told == (
        'task = "toy" has prompts of 63 tokens, and the model\'s vocabulary is 40: give another model, such '
        'as "toy-qwen3"'
    )


@pytest.mark.parametrize(
    ("held_out", "why"), [(7, "at least 8: on fewer it may be luck"), (129, "at most 128, which is")]
)
def test_a_target_is_not_reached_by_luck_on_a_few_prompts(held_out, why):
    told = refused(time_to_target, held_out=held_out)
    assert told.startswith(f"held_out = {held_out}: give ")
    assert why in told


def test_a_target_that_is_reached_has_a_time_and_tokens():
    found = readings(time_to_target, target=0.1, steps=40, evaluate_every=4, **QUICK)
    curve = found.diagnostics["curve"]
    assert found.problems == found.missing == []
    assert found.values == {
        "t_to_target": curve["seconds"][-1],
        "tokens_to_target": curve["tokens_generated"][-1],
        "steps_to_target": curve["step"][-1],
    }
    assert found.instruments == {"t_to_target": "wall-clock"}
    assert curve["accuracy"][-1] >= 0.1 > max(curve["accuracy"][:-1], default=0)
    assert curve["step"] == list(range(0, len(curve["step"]) * 4, 4))
    assert sorted(curve["seconds"]) == curve["seconds"]
    assert curve["tokens_generated"][0] == curve["seconds"][0] == 0
    assert found.diagnostics["budget"]["temperature"] == 0


def test_a_target_that_is_not_reached_has_no_number_and_says_how_far_it_got():
    found = readings(time_to_target, target=1, steps=3, evaluate_every=2, **QUICK)
    curve = found.diagnostics["curve"]
    assert curve["step"] == [0, 2, 3]
    assert found.values == {}
    assert found.diagnostics["reached"] is False
    assert found.diagnostics["censored"] == {
        "t_to_target": [curve["seconds"][-1]],
        "tokens_to_target": [curve["tokens_generated"][-1]],
        "steps_to_target": [3],
    }
    assert len(found.problems) == 3


def test_discarded_tokens_were_generated_all_the_same():
    kept, dropped = (
        readings(
            time_to_target, target=1, steps=2, evaluate_every=1, zero_variance=zero_variance, **QUICK
        ).diagnostics["curve"]["tokens_generated"][1]
        for zero_variance in ("keep", "drop")
    )
    assert kept == dropped > 0


def test_all_that_has_no_time_to_a_target_is_refused_at_once():
    told = refused(time_to_target, target=1.2, steps=0, evaluate_every=0, held_out=0, prompts=0, loss="sum")
    for name in (
        "target = 1.2",
        "steps = 0",
        "evaluate_every = 0",
        "held_out = 0",
        "prompts = 0",
        'loss = "sum"',
    ):
        assert sum(each.startswith(f"{name}:") for each in told.split("; ")) == 1, told
    told = refused(time_to_target, steps=4, evaluate_every=5)
    assert "evaluate_every = 5, and steps = 4: give at most as many" in told


class Counting:
    """As much of a loop as is asked for here: each step generates ten tokens."""

    def __init__(self):
        self.steps = 0
        self.progress = self
        self.account = self

    @property
    def generated(self):
        return 10 * self.steps

    def step(self):
        self.steps += 1


def scored(*accuracies):
    """Evaluations that find so many of ten prompts answered right."""
    found = iter(accuracies)

    def evaluate():
        right = round(10 * next(found))
        by_prompt = (1,) * right + (0,) * (10 - right)
        return Evaluation(
            successes_by_prompt=by_prompt, samples=1, reward_mean=0.0, tokens_generated=0, stops=()
        )

    return evaluate


@pytest.mark.parametrize(
    ("accuracies", "step", "tokens"),
    [
        ((0.9,), 0, 0),
        ((0.0, 0.8, 0.9, 0.0), 6, 60),
        ((0.0, 0.95, 0.1), 3, 30),
        ((0.0, 0.1, 0.2, 0.9), 8, 80),
        ((0.0, 0.1, 0.2, 0.3), 8, 80),
    ],
)
def test_the_first_evaluation_at_the_target_ends_it_and_the_last_is_at_the_end(accuracies, step, tokens):
    loop = Counting()
    curve = learn_until(0.9, loop, scored(*accuracies), steps=8, every=3)
    assert curve.last.step == loop.steps == step
    assert curve.last.tokens_generated == tokens
    assert len(curve.points) <= len(accuracies)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_an_evaluation_on_cuda_answers_as_one_on_the_cpu():
    greedy = {**SMALL, "samples": 1, "temperature": 0}
    here, there = (readings(evaluation, device=device, **greedy) for device in ("cpu", "cuda"))
    assert there.problems == there.missing == []
    assert there.instruments["peak_memory"] == "cuda-memory"
    assert there.values["tokens_generated"] == here.values["tokens_generated"]
    assert there.diagnostics["successes_by_prompt"] == here.diagnostics["successes_by_prompt"]
    assert there.diagnostics["prompts_digest"] == here.diagnostics["prompts_digest"]
    trained = readings(evaluation, device="cuda", steps=2, train_prompts=2, group=4, **SMALL)
    assert trained.problems == trained.missing == []
    assert trained.values["reward_mean"] != here.values["reward_mean"]
