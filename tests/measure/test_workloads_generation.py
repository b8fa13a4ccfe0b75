"""``generation``: what it accounts for, what it refuses, and what it times."""

from __future__ import annotations

import os

import pytest

from pytest_prereg import Repeat
from pytest_prereg.measure.workloads.generation import generation

TINY = {"model": "toy-qwen3", "device": "cpu"}


@pytest.fixture
def torch():
    """It on one thread: a model of this size is slower on several, and far slower on a busy machine."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield torch
    torch.set_num_threads(threads)


def measured(seed=1, **parameters):
    repeat = Repeat(metrics=generation.metrics, seed=seed)
    generation(repeat, **{**TINY, **parameters})
    return repeat.readings()


@pytest.mark.torch
def test_the_default_accounts_for_every_token_and_second(torch):
    readings = measured(seed=2**64 - 1, model="tiny-qwen3", group=2, prompt_tokens=4, new_tokens=3)
    assert readings.problems == []
    values = readings.values
    assert values["tokens_prompt"] == 16
    assert values["tokens_generated"] == 12
    assert values["tokens_tool"] == 0
    assert (values["ended"], values["capped"], values["truncated"]) == (0, 4, 0)
    assert len(values["t_sample"]) == 3
    assert len(values["t_next_token"]) == 2
    assert values["throughput"] == pytest.approx(12 / values["t_gen"])
    parts = values["t_first_token"] + sum(values["t_next_token"])
    assert sum(values["t_sample"]) < parts < values["t_gen"]
    assert 0 <= values["memory_growth"] < values["peak_memory"]
    assert readings.diagnostics["model"] == f"tiny-qwen3, seed {2**64 - 1}"
    assert readings.diagnostics["device"] == "cpu"
    assert readings.diagnostics["torch_threads"] == 1


@pytest.mark.torch
def test_every_time_is_named_as_the_clock_s_and_memory_as_its_instrument_s(torch):
    instruments = measured(new_tokens=2).instruments
    assert {instruments.pop(name) for name in ("peak_memory", "memory_growth")} == {"process-memory"}
    times = ["t_gen", "t_first_token", "t_next_token", "t_sample", "throughput"]
    assert instruments == dict.fromkeys(times, "wall-clock")


@pytest.mark.torch
def test_what_has_one_sample_is_a_number_and_not_a_vector_of_one(torch):
    values = measured(group=1, prompts=1, new_tokens=2, ignore_ends=True).values
    assert {name: len(value) for name, value in values.items() if isinstance(value, list)} == {"t_sample": 2}


@pytest.mark.torch
def test_memory_that_could_not_be_read_has_no_growth_either_and_says_so(torch, monkeypatch):
    from pytest_prereg.measure.instruments.memory import ProcessMemory
    from pytest_prereg.measure.instruments.reading import UnreadableError

    def reading(_):
        raise UnreadableError("swapped out")

    monkeypatch.setattr(ProcessMemory, "reading", reading)
    readings = measured(new_tokens=2)
    assert readings.unreadable == dict.fromkeys(("peak_memory", "memory_growth"), "process-memory")
    assert readings.missing == []


@pytest.mark.torch
def test_batches_are_sampled_one_after_another_and_the_last_may_be_smaller(torch):
    values = measured(prompts=2, group=4, batch=3, new_tokens=4, ignore_ends=True).values
    assert values["tokens_generated"] == 8 * 4
    assert values["tokens_prompt"] == 8 * 16
    assert values["capped"] == 8
    assert len(values["t_first_token"]) == 3
    assert len(values["t_next_token"]) == 3 * 3
    assert len(values["t_sample"]) == 3 * 4


@pytest.mark.torch
def test_what_ended_early_is_counted_for_what_it_drew(torch):
    values = measured(group=20, new_tokens=30).values
    assert values["ended"] > 0
    assert values["ended"] + values["capped"] == 40
    assert 30 * values["capped"] < values["tokens_generated"] < 30 * 40


@pytest.mark.torch
def test_a_tool_s_tokens_are_not_generated(torch):
    values = measured(turns=3, tool_tokens=5, new_tokens=4, ignore_ends=True).values
    assert values["tokens_tool"] == 16 * 2 * 5
    assert values["tokens_generated"] == 16 * 3 * 4
    assert len(values["t_first_token"]) == 3
    assert len(values["t_next_token"]) == 3 * 3


@pytest.mark.torch
def test_equal_seeds_measure_the_same_completions(torch):
    def counts(seed):
        return {
            name: value
            for name, value in measured(seed, new_tokens=40).values.items()
            if name[:2] in ("to", "en")
        }

    assert counts(1) == counts(1) != counts(2)


@pytest.mark.torch
def test_prompts_are_shared_within_a_group_and_differ_between_groups(torch):
    from pytest_prereg.measure.workloads.language.causal_lm import load
    from pytest_prereg.measure.workloads.language.sampled_batches import random_prompts

    asked = {"prompts": 2, "group": 3, "length": 20}
    prompts = random_prompts(load("toy-qwen3"), generator=torch.Generator().manual_seed(1), **asked)
    assert prompts.shape == (6, 20)
    assert (prompts[0] == prompts[1]).all()
    assert (prompts[0] != prompts[3]).any()


@pytest.mark.torch
def test_prompts_that_fill_the_context_are_refused(torch):
    with pytest.raises(
        ValueError, match=r"prompt_tokens = 4095, and the model's context is 4096: give at most 4094"
    ):
        measured(prompt_tokens=4095, prompts=1, group=1)


@pytest.mark.torch
def test_a_repeat_without_a_time_between_two_tokens_is_invalid(torch, monkeypatch):
    from pytest_prereg.measure.workloads.language import causal_lm

    monkeypatch.setattr(causal_lm, "_ends", lambda _: tuple(range(64)))
    readings = measured()
    assert readings.values["ended"] == 16
    assert "every sequence ended with its first token" in readings.problems[0]


@pytest.mark.torch
def test_a_model_that_cannot_be_had_is_one_sentence(torch, tmp_path):
    with pytest.raises(ValueError, match=r"the folder has no config\.json"):
        measured(model=str(tmp_path))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"new_tokens": 0}, "new_tokens = 0: give a whole number of at least 2, since times"),
        ({"new_tokens": 1}, "new_tokens = 1"),
        ({"prompts": True}, "prompts = True: give a whole number"),
        ({"batch": 17}, "batch = 17, and there are 16 sequences"),
        ({"turns": 2}, "turns = 2 with tool_tokens = 0"),
        ({"tool_tokens": 2}, "turns = 1 with tool_tokens = 2"),
        ({"turns": 2, "tool_tokens": 1, "compiled": True}, "its cache is of one turn"),
        ({"temperature": 0, "top_k": 4}, "top_k and top_p change nothing"),
        ({"ignore_ends": 1}, "ignore_ends = 1: give true or false"),
        ({"model": "tiny-quen3", "top_k": -1}, 'no such model; did you mean "tiny-qwen3".*top_k = -1'),
        ({"expect_model": "0" * 12}, "which is drawn: leave it out"),
        ({"dtype": "float8", "device": "gpu", "model": ""}, 'model = .*dtype = "float8".*device = "gpu"'),
    ],
)
def test_what_cannot_be_run_is_refused_all_at_once_and_before_torch_is_asked(asked, said):
    with pytest.raises(ValueError, match=said):
        measured(**asked)


@pytest.mark.torch
@pytest.mark.parametrize("switch", ["TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE"])
def test_a_switch_that_turns_the_compiler_off_is_named_and_nothing_runs(torch, monkeypatch, switch):
    monkeypatch.setenv(switch, "1")
    with pytest.raises(ValueError, match=f"compiled = true, and {switch} is set"):
        measured(compiled=True)


@pytest.mark.torch
@pytest.mark.parametrize("switch", ["disable", "suppress_errors"])
def test_so_is_one_of_torch_s_own(torch, switch):
    with (
        torch._dynamo.config.patch({switch: True}),
        pytest.raises(ValueError, match=f"config.{switch} is set"),
    ):
        measured(compiled=True)


@pytest.mark.torch
def test_what_is_compiled_in_name_alone_is_refused(torch):
    with torch.compiler.set_stance("force_eager"), pytest.raises(ValueError, match="torch compiled nothing"):
        measured(group=1, new_tokens=2, compiled=True)


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.skipif(
    not os.environ.get("PREREG_COMPILE"), reason="set PREREG_COMPILE=1: the compiler takes a minute"
)
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_nothing_is_compiled_while_it_is_timed_or_the_repeat_is_invalid(torch, monkeypatch):
    from pytest_prereg.measure.workloads.language.sampled_batches import Sampler

    asked = {"group": 4, "batch": 3, "new_tokens": 6, "compiled": True}
    assert measured(**asked).problems == []
    monkeypatch.setattr(Sampler, "warm_up", lambda _: torch._dynamo.reset())
    assert measured(**asked).problems == ["torch compiled 2 graphs while generation was timed"]


@pytest.mark.torch
@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("compiled", [False, True])
def test_on_cuda_in_bfloat16_memory_is_that_of_the_device(torch, compiled):
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    readings = measured(device="cuda", dtype="bfloat16", new_tokens=8, model="tiny-qwen3", compiled=compiled)
    assert readings.problems == []
    assert readings.instruments["peak_memory"] == "cuda-memory"
    weights = 151_936 * 64 * 2
    assert weights < readings.values["peak_memory"] < 40 * weights
    assert 0 < readings.values["memory_growth"] <= readings.values["peak_memory"] - weights
    assert readings.values["tokens_generated"] == 16 * 8
    assert readings.diagnostics["device"].startswith("cuda")
