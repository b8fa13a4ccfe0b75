"""The built-in training: what it accounts for, what a warm-up leaves, and which path it will not time."""

from __future__ import annotations

import pytest

from pytest_prereg import Repeat
from pytest_prereg.measure.workloads.learning import training_setting
from pytest_prereg.measure.workloads.training import training

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from pytest_prereg.measure.workloads.language import paths  # noqa: E402
from pytest_prereg.measure.workloads.language.causal_lm import TOY, load  # noqa: E402
from pytest_prereg.measure.workloads.language.completions import Kind  # noqa: E402
from pytest_prereg.measure.workloads.language.scoring import response_log_probs  # noqa: E402
from pytest_prereg.measure.workloads.learning import fixed_batches, updates  # noqa: E402
from pytest_prereg.measure.workloads.learning.fixed_batches import (  # noqa: E402
    drawn_batch,
    recompute_layers,
    warm_up,
)
from pytest_prereg.measure.workloads.learning.policy_loss import REDUCTIONS  # noqa: E402
from pytest_prereg.measure.workloads.learning.updates import adamw, update  # noqa: E402

pytestmark = pytest.mark.torch

SMALL = {"model": TOY, "sequences": 5, "prompt_tokens": 3, "new_tokens": 4, "device": "cpu"}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads that wait for each other on busy cores take a hundred times as long."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def trained(*, seed=1, **parameters):
    repeat = Repeat(metrics=training.metrics, seed=seed)
    training(repeat, **{**SMALL, **parameters})
    return repeat.readings()


def setting(**parameters):
    defaults = training.__kwdefaults__
    return training_setting.TrainingSetting(**{**defaults, **SMALL, **parameters})


def test_every_token_is_accounted_for_and_every_stage_timed():
    readings = trained(updates=3, micro_batch=2)
    assert readings.problems == readings.missing == []
    values = readings.values
    assert values["tokens_scored"] == 5 * 4
    assert values["tokens_trained"] == 3 * 5 * 4
    assert values["tokens_prompt"] == 3 * 5 * 3
    counts = {name: len(values[name]) for name in ("t_train", "t_forward", "t_backward", "t_optimiser")}
    assert counts == {"t_train": 3, "t_forward": 9, "t_backward": 9, "t_optimiser": 3}
    stages = sum(sum(values[f"t_{name}"]) for name in ("forward", "backward", "optimiser"))
    assert 0 < stages <= sum(values["t_train"])
    assert values["throughput"] == pytest.approx(60 / sum(values["t_train"]))
    assert 0 <= values["memory_growth"] < values["peak_memory"]
    assert readings.instruments["peak_memory"] == readings.instruments["memory_growth"] == "process-memory"
    assert readings.instruments["throughput"] == readings.instruments["t_train"] == "wall-clock"
    assert readings.diagnostics["model"] == "toy-qwen3, seed 1"
    assert readings.diagnostics["denominator"] == "tokens that bear loss: 20"


def test_what_has_one_sample_is_a_number_and_not_a_vector_of_one():
    values = trained().values
    assert [name for name, value in values.items() if isinstance(value, list)] == []


def test_training_on_the_same_completions_lowers_their_loss():
    losses = trained(updates=4, learning_rate=1e-3)
    first, *others = losses.values["loss"]
    assert first == pytest.approx(0, abs=1e-6)  # at a ratio of 1: minus the mean advantage
    assert sorted(others, reverse=True) == others
    assert others[0] < first
    assert losses.diagnostics["weights_moved"] > 0.9


def test_equal_seeds_train_alike_and_others_do_not():
    norms = [trained(seed=seed, updates=2).values["gradient_norm"] for seed in (1, 1, 2)]
    assert norms[0] == norms[1] != norms[2]


@pytest.mark.parametrize(
    "other",
    [{"log_probs": "naive"}, {"micro_batch": 2}, {"checkpointing": True}],
)
@pytest.mark.parametrize("loss", training_setting.LOSSES)
def test_how_the_loss_is_worked_off_changes_its_cost_alone(other, loss):
    same = {"lengths": "spread", "updates": 2, "learning_rate": 1e-3, "loss": loss}
    plain, changed = trained(**same).values, trained(**same, **other).values
    for name in ("loss", "gradient_norm"):
        assert changed[name] == pytest.approx(plain[name], rel=1e-4, abs=1e-6)
    assert changed["tokens_trained"] == plain["tokens_trained"]


def test_spread_lengths_are_padded_and_padding_bears_no_loss():
    model = load(TOY, seed=1)
    batch = drawn_batch(model, setting(lengths="spread", sequences=40), seed=1)
    lengths = (batch.kinds == Kind.RESPONSE).sum(1)
    assert set(lengths.tolist()) == {1, 2, 3, 4}
    assert (batch.kinds == Kind.PROMPT).sum() == 40 * 3
    for row, length in zip(batch.kinds[:, 3:], lengths, strict=True):
        assert (row[:length] == Kind.RESPONSE).all()
        assert (row[length:] == Kind.PAD).all()
    assert batch.weights.tokens == lengths.sum()


def test_a_warm_up_moves_nothing_and_leaves_an_optimiser_as_new():
    model = load(TOY, seed=1)
    batch = drawn_batch(model, setting(), seed=1)
    fresh = load(TOY, seed=1)
    new, warmed = (adamw(each.network.parameters(), learning_rate=1e-3) for each in (fresh, model))
    warm_up(warmed, lambda: update(model, warmed, batch))
    assert all(map(torch.equal, fresh.network.parameters(), model.network.parameters()))
    for each, optimiser in ((fresh, new), (model, warmed)):
        update(each, optimiser, batch)
        update(each, optimiser, batch)
    assert all(map(torch.equal, fresh.network.parameters(), model.network.parameters()))


def test_layers_that_are_computed_again_run_twice_and_have_no_dropout():
    model = load(TOY, seed=1)
    runs = []
    model.network.model.layers[0].mlp.register_forward_pre_hook(lambda *_: runs.append(1))
    batch = drawn_batch(model, setting(), seed=1)
    recompute_layers(model.network)
    update(model, adamw(model.network.parameters()), batch)
    assert len(runs) == 2
    assert not model.network.model.layers[0].self_attn.training


def test_in_bfloat16_a_small_step_is_lost_on_most_weights_and_told_to_be():
    narrow, wide = trained(dtype="bfloat16"), trained()
    assert narrow.diagnostics["weights_moved"] < 0.1
    assert wide.diagnostics["weights_moved"] > 0.9


def test_a_path_that_holds_all_logits_is_not_timed_as_fused(monkeypatch):
    monkeypatch.setitem(paths.PATHS, "fused", paths.PATHS["naive"])
    readings = trained(model="tiny-qwen3")
    assert "fused" in readings.problems[0]
    assert "t_train" not in readings.values


def test_a_path_that_gives_other_numbers_is_not_timed(monkeypatch):
    def plausible(states, head, chosen, *, temperature):
        return paths.PATHS["naive"](states, head, chosen, temperature=temperature) * 1.01

    monkeypatch.setitem(paths.PATHS, "fused", plausible)
    readings = trained()
    assert readings.problems != []
    assert readings.values["log_prob_error"] > 1e-3
    assert "t_train" not in readings.values


def test_what_is_compiled_in_name_alone_is_not_timed_as_compiled(monkeypatch):
    monkeypatch.setattr(torch.nn.Module, "compile", lambda _: None)
    with pytest.raises(ValueError, match="torch compiled nothing"):
        trained(compiled=True)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_nothing_is_compiled_while_an_update_is_timed_or_the_repeat_is_invalid(monkeypatch):
    def compiling(*asked, **named):
        torch.compile(lambda: torch.ones(1), backend="eager")()
        return update(*asked, **named)

    monkeypatch.setattr(updates, "update", compiling)
    torch.compiler.reset()
    assert trained(updates=2).problems == []  # the lambda is compiled while warming up

    def forgotten(*asked):
        done = warm_up(*asked)
        torch.compiler.reset()
        return done

    monkeypatch.setattr(fixed_batches, "warm_up", forgotten)
    assert trained(updates=2).problems == ["torch compiled 1 graph while it was timed"]


def test_a_path_that_is_another_for_as_many_tokens_as_are_trained_is_not_timed(monkeypatch):
    fused = paths.PATHS["fused"]

    def fused_for_few(states, head, chosen, **how):
        return (paths.PATHS["naive"] if len(chosen) > 16 else fused)(states, head, chosen, **how)

    monkeypatch.setitem(paths.PATHS, "fused", fused_for_few)
    readings = trained(log_probs="fused")
    assert "held a whole matrix (20 tokens, 64 of the vocabulary)" in readings.problems[0]
    assert "t_train" not in readings.values


def padding_read(model, ids, kinds, **how):
    padded, read = (torch.nn.functional.pad(each, (2, 0), value=int(Kind.PROMPT)) for each in (ids, kinds))
    return response_log_probs(model, padded, read, **how)[:, 2:]


def one_token_late(model, ids, kinds, **how):
    return response_log_probs(model, ids, kinds, **how).roll(1, 1)


def first_token_hidden(model, ids, kinds, **how):
    kinds = kinds.clone()
    kinds[:, 0] = Kind.PAD
    return response_log_probs(model, ids, kinds, **how)


@pytest.mark.parametrize("wrong", [padding_read, one_token_late, first_token_hidden])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_wrong_numbers_around_a_right_path_are_not_timed(monkeypatch, wrong, dtype):
    monkeypatch.setattr(updates, "response_log_probs", wrong)
    readings = trained(lengths="spread", sequences=8, new_tokens=12, dtype=dtype)
    assert "of its sequences on their own" in readings.problems[0]
    assert readings.diagnostics["error_beside_sequences_alone"] > 0.1
    assert "t_train" not in readings.values


def test_what_cannot_be_run_is_told_all_at_once():
    with pytest.raises(ValueError, match="give") as refused:
        trained(
            sequences=1,
            loss="tokens-mean",
            log_probs="fusd",
            learning_rate=0,
            dtype="float31",
            compiled="yes",
            lengths="even",
        )
    told = str(refused.value)
    assert "sequences = 1: give a whole number of at least 2" in told
    assert 'loss = "tokens-mean"' in told
    assert 'log_probs = "fusd": give "fused" or "naive"' in told
    assert "learning_rate = 0: give a finite number above 0" in told
    assert 'dtype = "float31"' in told
    assert "compiled = 'yes': give true or false" in told
    assert 'lengths = "even"' in told


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"dtype": "float16"}, 'dtype = "float16": AdamW.s epsilon is 0 in it'),
        ({"micro_batch": 6}, "micro_batch = 6, and sequences = 5: give at most as many"),
        ({"new_tokens": 4094}, 'the context of "toy-qwen3" is 4096: give less by 1'),
    ],
)
def test_two_things_that_do_not_go_together_are_refused(parameters, said):
    with pytest.raises(ValueError, match=said):
        trained(**parameters)


def test_words_are_those_that_the_parts_know():
    assert set(training_setting.LOSSES) == set(REDUCTIONS)
    assert set(training_setting.LOG_PROBS) <= set(paths.PATHS)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_it_trains_on_a_device(dtype):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    readings = trained(model="tiny-qwen3", device="cuda", dtype=dtype, updates=2, micro_batch=2)
    assert readings.problems == readings.missing == []
    assert readings.instruments["peak_memory"] == "cuda-memory"
    assert readings.values["tokens_trained"] == 2 * 5 * 4
    here = trained(model="tiny-qwen3", dtype=dtype, updates=2, micro_batch=2).values
    assert readings.values["gradient_norm"] == pytest.approx(here["gradient_norm"], rel=0.05)
