"""The built-in GRPO step: what it records, of which it says what, and how it goes on after a kill."""

from __future__ import annotations

import threading

import pytest
import sandboxes

from pytest_prereg import Repeat
from pytest_prereg.measure.workloads.evaluation import evaluation
from pytest_prereg.measure.workloads.grpo import grpo_step
from pytest_prereg.measure.workloads.time_to_target import time_to_target

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from pytest_prereg.measure.workloads.language import paths  # noqa: E402
from pytest_prereg.measure.workloads.language.naive_log_probs import naive_log_probs  # noqa: E402
from pytest_prereg.measure.workloads.language.scoring import response_log_probs  # noqa: E402
from pytest_prereg.measure.workloads.learning import tasks, updates  # noqa: E402
from pytest_prereg.measure.workloads.learning.programs import random_prompts  # noqa: E402
from pytest_prereg.measure.workloads.learning.reward_ledger import RewardUnavailableError  # noqa: E402

pytestmark = pytest.mark.torch

TOY = {"model": "toy-qwen3", "group": 4, "prompt_tokens": 4, "new_tokens": 3, "device": "cpu"}
TIMES = {"t_gen", "t_sample", "t_reward", "t_score", "t_train", "t_sync", "reward_work", "reward_longest"}


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def run(checkpoint=None, **params):
    """The readings of one repeat."""
    repeat = Repeat(metrics=grpo_step.metrics, seed=2**64 - 1, checkpoint=checkpoint)
    grpo_step(repeat, **{**TOY, **params})
    return repeat.readings()


def test_prompts_of_programs_are_where_the_cursor_says_and_differ_by_seed():
    drawn = random_prompts(0, 4, 6, vocabulary=1000, order=1)
    assert drawn.shape == (4, 6)
    assert torch.equal(drawn[2:], random_prompts(2, 2, 6, vocabulary=1000, order=1))
    assert len({tuple(row) for row in drawn.tolist()}) == 4
    assert not torch.equal(drawn, random_prompts(0, 4, 6, vocabulary=1000, order=2))


def test_a_step_over_the_true_vocabulary_accounts_for_every_token_and_reward():
    readings = run(model="tiny-qwen3", prompts=1)
    assert readings.problems == readings.missing == readings.discarded == []
    values = readings.values
    assert set(values) == set(grpo_step.metrics)
    assert values["tokens"] == values["tokens_generated"] == 12
    assert values["tokens_prompt"] == 16
    assert values["completions"] == values["capped"] == 4
    assert values["tokens_discarded"] == values["tokens_tool"] == values["tokens_scored"] == 0
    assert values["timed_out"] == values["ended"] == values["truncated"] == 0
    assert 0 <= values["passed"] <= 4
    assert values["reward_mean"] == values["passed"] / 4
    assert values["groups"] == values["policy_version"] == 1
    assert len(values["t_sample"]) == 3
    assert 0 < sum(values["t_sample"]) < values["t_gen"]
    assert values["reward_longest"] <= values["reward_work"]
    assert values["peak_memory"] > 4 * 151_936 * 64
    assert {name for name, taker in readings.instruments.items() if taker == "wall-clock"} == TIMES
    assert readings.instruments["peak_memory"] == readings.instruments["memory_growth"] == "process-memory"
    assert readings.diagnostics["model"] == f"tiny-qwen3, seed {2**64 - 1}"


@pytest.mark.parametrize(
    "isolation", ["processes", pytest.param("namespaces", marks=sandboxes.needs_namespaces)]
)
def test_completions_that_hang_time_out_and_the_step_goes_on(isolation):
    readings = run(prompts=1, group=2, deadline=0.3, hang_one_in=1, isolation=isolation)
    assert readings.problems == []
    assert readings.diagnostics["isolation"] == isolation
    assert any("no namespaces" in each for each in readings.diagnostics["missing"]) is (
        isolation == "processes"
    )
    values = readings.values
    assert values["timed_out"] == 2
    assert values["passed"] == 0
    assert values["t_reward"] >= 0.3
    assert values["reward_work"] >= 0.6
    assert values["tokens"] == values["tokens_generated"]


def test_several_steps_have_a_sample_each_and_equal_seeds_are_alike():
    first, again = (run(task="toy", steps=3, mini_batches=2).values for _ in range(2))
    assert len(first["t_sample"]) == 9
    assert all(len(first[name]) == 3 for name in grpo_step.metrics if name != "t_sample")
    assert first["policy_version"] == [2, 4, 6]
    assert first["tokens_scored"] == first["tokens_generated"]
    same = set(grpo_step.metrics) - TIMES - {"peak_memory", "memory_growth"}
    assert {name: first[name] for name in same} == {name: again[name] for name in same}


class Interrupted(BaseException):
    """Ends an attempt as a kill does: nothing handles it."""


def test_a_lost_attempt_is_gone_on_from_and_everything_is_recorded_once(tmp_path, monkeypatch):
    undisturbed = run(task="toy", steps=3)
    toy, asked, lock = tasks.TASKS["toy"], [], threading.Lock()

    class Cut(type(toy)):
        def reward(self, *ids):
            with lock:
                asked.append(ids)
                is_cut = len(asked) == 13
            if is_cut:
                raise Interrupted
            return super().reward(*ids)

    monkeypatch.setitem(tasks.TASKS, "toy", Cut())
    with pytest.raises(Interrupted):
        run(tmp_path, task="toy", steps=3)
    readings = run(tmp_path, task="toy", steps=3)
    assert readings.problems == readings.missing == readings.discarded == []
    assert len(asked) == 3 * 8 + 1  # the one that was cut short
    assert readings.diagnostics["trajectories"] == undisturbed.diagnostics["trajectories"]
    assert readings.diagnostics["attempts_began_after"] == [0, 1]
    assert readings.values["reward_mean"] == undisturbed.values["reward_mean"]
    assert all(len(readings.values[name]) == 3 for name in grpo_step.metrics if name != "t_sample")


def test_a_checkpoint_of_other_parameters_is_refused_by_name(tmp_path):
    run(tmp_path, task="toy", steps=2)
    with pytest.raises(
        ValueError, match=r"is of another run: learning_rate 0\.0001, and here 0\.01; run what"
    ):
        run(tmp_path, task="toy", steps=2, learning_rate=0.01)
    other_seed = Repeat(metrics=grpo_step.metrics, seed=1, checkpoint=tmp_path)
    with pytest.raises(ValueError, match=f"seed {2**64 - 1}, and here 1"):
        grpo_step(other_seed, **{**TOY, "task": "toy", "steps": 2})


@pytest.mark.parametrize("params", [{"steps": 1}, {"steps": 2, "checkpoint_every": 0}])
def test_what_is_not_to_be_kept_writes_nothing(tmp_path, params):
    run(tmp_path, task="toy", **params)
    assert list(tmp_path.iterdir()) == []


def test_a_reward_that_stays_away_makes_the_repeat_invalid_and_is_no_0(monkeypatch):
    class Away(type(tasks.TASKS["toy"])):
        def reward(self, *ids):
            raise RewardUnavailableError(f"connection refused ({len(ids)} given)")

    monkeypatch.setitem(tasks.TASKS, "toy", Away())
    readings = run(task="toy", attempts=2)
    assert "has no reward after 2 attempts: connection refused" in readings.problems[0]
    assert "reward_mean" not in readings.values
    assert len(readings.diagnostics["reward_faults"]) == 16


def test_a_path_that_is_not_what_it_is_called_is_not_timed(monkeypatch):
    monkeypatch.setitem(paths.PATHS, "fused", naive_log_probs)
    readings = run(model="tiny-qwen3", prompts=1)
    assert "declared fused, and held a whole matrix" in readings.problems[0]
    assert readings.values == {}


def test_a_path_that_is_another_for_as_many_tokens_as_are_trained_is_not_timed(monkeypatch):
    fused = paths.PATHS["fused"]

    def fused_for_few(states, head, chosen, **how):
        return (naive_log_probs if len(chosen) > 16 else fused)(states, head, chosen, **how)

    monkeypatch.setitem(paths.PATHS, "fused", fused_for_few)
    readings = run(task="toy", prompts=1, group=8, new_tokens=4)
    assert "held a whole matrix (32 tokens, 64 of the vocabulary)" in readings.problems[0]
    assert readings.values == {}


def hide_the_first_token(monkeypatch):
    """Let training read no prompt's first token, and so give all that follows another probability."""

    def hiding(model, ids, kinds, **how):
        kinds = kinds.clone()
        kinds[:, 0] = 0
        return response_log_probs(model, ids, kinds, **how)

    monkeypatch.setattr(updates, "response_log_probs", hiding)


@pytest.mark.parametrize(
    ("body", "params"),
    [
        (grpo_step, {"task": "toy"}),
        (evaluation, {"steps": 1}),
        (time_to_target, {"steps": 1, "evaluate_every": 1}),
    ],
)
def test_two_sides_that_disagree_beyond_rounding_have_no_numbers(monkeypatch, body, params):
    hide_the_first_token(monkeypatch)
    repeat = Repeat(metrics=body.metrics, seed=1)
    body(repeat, **{**TOY, **({"held_out": 8} if body is time_to_target else {"prompts": 2}), **params})
    readings = repeat.readings()
    assert "don't read the same tokens" in readings.problems[0]
    assert readings.values == {}


def test_a_step_that_is_lost_to_rounding_says_so():
    exact, rounded = (
        run(**TOY, task="toy", dtype=dtype, learning_rate=1e-6) for dtype in ("float32", "bfloat16")
    )
    assert exact.diagnostics["weights_moved"][0] > 0.9
    assert rounded.diagnostics["weights_moved"][0] < 0.1
    assert [each.diagnostics["dtype"] for each in (exact, rounded)] == ["float32", "bfloat16"]


class Sure(type(tasks.TASKS["toy"])):
    """Pays all answers to some prompts the same."""

    def __init__(self, sure):
        self.sure = sure.tolist()

    def reward(self, prompt_ids, response_ids):
        return 1.0 if prompt_ids in self.sure else super().reward(prompt_ids, response_ids)


@pytest.mark.parametrize("sure", [2, 4])
def test_a_step_without_an_update_has_no_training_time(monkeypatch, sure):
    drawn = tasks.TASKS["toy"].prompts(0, sure, 4, order=2**64 - 1)
    monkeypatch.setitem(tasks.TASKS, "toy", Sure(drawn))
    readings = run(task="toy", prompts=2, group=8, new_tokens=4, steps=2, zero_variance="drop")
    trained = sure == 2
    assert readings.values["updates"] == [0, int(trained)]
    assert readings.values["tokens_scored"][0] == readings.values["tokens_generated"][0]
    assert isinstance(readings.values.get("t_train"), float) is trained
    assert readings.problems == [] if trained else "no update was made" in readings.problems[0]


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """A model with learned positions, of which there are 12."""
    folder = tmp_path_factory.mktemp("gpt2")
    config = transformers.GPT2Config(
        vocab_size=64, n_positions=12, n_embd=32, n_layer=1, n_head=2, eos_token_id=63, bos_token_id=63
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    return str(folder)


def test_positions_end_where_the_context_does(short):
    readings = run(model=short, task="toy", new_tokens=20)
    assert readings.problems == readings.missing == []
    assert readings.values["truncated"] + readings.values["ended"] == 8
    assert readings.values["tokens_generated"] <= 8 * 8


@pytest.mark.parametrize("body", [grpo_step, evaluation, time_to_target])
def test_prompts_that_fill_the_context_are_refused(short, body):
    with pytest.raises(ValueError, match=r"prompt_tokens = 12, and the context of .* is 12: give at most 11"):
        body(Repeat(metrics=body.metrics, seed=1), model=short, task="toy", prompt_tokens=12, device="cpu")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"task": "toi", "prompts": 0}, 'prompts = 0.*task = "toi": .* did you mean "toy"'),
        ({"steps": 0, "group": 0}, "group = 0: give a whole number of at least 2, since .*; steps = 0"),
        ({"log_probs": "fusd"}, "fusd"),
        ({"isolation": "auto"}, 'isolation = "auto": give "namespaces" or "processes"'),
    ],
)
def test_a_parameter_that_cannot_be_run_is_told_with_what_to_write(params, message):
    with pytest.raises(ValueError, match=message):
        run(**params)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_step_on_a_gpu_resumes_and_reads_the_memory_of_the_device(tmp_path):
    shape = {"task": "toy", "device": "cuda", "steps": 2, "rollout_dtype": "bfloat16"}
    first = run(tmp_path, **shape)
    assert first.problems == []
    assert first.instruments["peak_memory"] == "cuda-memory"
    assert min(first.values["mismatch_mean"]) > 1e-5
