"""Sampling completions: against transformers' own loop, against the distribution, and token by token."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace

import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from pytest_prereg.measure.workloads.language.causal_lm import TOY, ModelError, load  # noqa: E402
from pytest_prereg.measure.workloads.language.completions import Completions, Kind, Sampling, Stop, Turn  # noqa: E402
from pytest_prereg.measure.workloads.language.decoding import generate  # noqa: E402
from pytest_prereg.measure.workloads.language.drawing import draw  # noqa: E402
from pytest_prereg.measure.workloads.language.naive_log_probs import naive_log_probs  # noqa: E402
from pytest_prereg.measure.workloads.language.scoring import response_log_probs  # noqa: E402

PAD, PROMPT, RESPONSE, TOOL = Kind
END = 63
GREEDY = Sampling(temperature=0)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Models this small are slower on several, and far slower on a machine that is busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def seeded(seed=0, device="cpu"):
    return torch.Generator(device).manual_seed(seed)


def sharpened(model):
    """Make an untrained model's distribution depend on what it reads, and be far from uniform."""
    with torch.no_grad():
        for weight in model.network.parameters():
            weight.mul_(3 if weight is model.head else 8 if weight.dim() > 1 else 1)
    return model


@pytest.fixture(scope="module")
def model():
    return sharpened(load(TOY, seed=3))


@pytest.fixture(scope="module")
def gpt2():
    torch.manual_seed(1)
    config = transformers.GPT2Config(
        vocab_size=64, n_embd=16, n_layer=2, n_head=2, n_positions=50, initializer_range=0.5, eos_token_id=END
    )
    network = transformers.AutoModelForCausalLM.from_config(config).eval()
    return replace(load(TOY), network=network, decoder=network.base_model, context=50)


PADDED = torch.tensor([[0, 0, 0, 7, 8], [1, 2, 3, 4, 5], [0, 9, 9, 4, 4]])
MASK = torch.tensor([[0, 0, 0, 1, 1], [1, 1, 1, 1, 1], [0, 1, 1, 1, 1]], dtype=torch.bool)


def random_prompts(batch, length=6):
    return torch.randint(END, (batch, length), generator=seeded(9))


@pytest.mark.parametrize("kind", ["model", "gpt2"])
def test_greedy_tokens_are_those_of_transformers_own_loop(kind, request):
    model = request.getfixturevalue(kind)
    found = generate(model, PADDED, new_tokens=30, generator=seeded(), sampling=GREEDY, prompt_mask=MASK)
    theirs = model.network.generate(
        input_ids=PADDED,
        attention_mask=MASK.long(),
        max_new_tokens=30,
        do_sample=False,
        pad_token_id=model.pad,
    )
    assert found.ids[:, 5:].tolist() == theirs[:, 5:].tolist()
    assert len({tuple(row) for row in theirs[:, 5:].tolist()}) > 1


def test_samples_follow_the_model(model):
    """Chi-square against the model's own probabilities, at temperature 1 over the whole vocabulary."""
    drawn = 10_000
    prompts = random_prompts(1, 3).expand(drawn, 3)
    found = generate(model, prompts, new_tokens=1, generator=seeded())
    counts = torch.bincount(found.ids[:, -1], minlength=64)
    with torch.no_grad():
        logits = model.hidden_states(prompts[:1])[:, -1] @ model.head.T
    expected = logits.softmax(-1)[0] * drawn
    seen = expected > 5
    chi_square = ((counts - expected)[seen] ** 2 / expected[seen]).sum()
    degrees = int(seen.sum())
    assert degrees > 5
    assert chi_square < degrees + 5 * (2 * degrees) ** 0.5


def reference_probabilities(logits, sampling):
    """One row, by the textbook, in float64 and in plain Python."""
    scaled = [value / sampling.temperature for value in logits.double().tolist()]
    order = sorted(range(len(scaled)), key=lambda token: -scaled[token])
    kept = order[: sampling.top_k or len(order)]

    def normalised(tokens):
        weights = {token: torch.tensor(scaled[token]).double().exp().item() for token in tokens}
        return {token: weight / sum(weights.values()) for token, weight in weights.items()}

    reached, nucleus = 0.0, []
    for token, share in normalised(kept).items():
        if reached >= sampling.top_p:
            break
        nucleus.append(token)
        reached += share
    return normalised(nucleus)


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=0.7),
        Sampling(top_k=3),
        Sampling(top_k=1000),
        Sampling(top_p=0.6),
        Sampling(temperature=1.7, top_k=7, top_p=0.8),
        Sampling(top_p=1e-6),
    ],
)
def test_cut_offs_keep_what_they_say_and_log_probs_are_of_what_is_left(sampling):
    drawn = 4000
    logits = torch.randn(1, 20, generator=seeded(5)) * 2
    ids, log_probs = draw(logits.expand(drawn, 20), sampling, seeded())
    reference = reference_probabilities(logits[0], sampling)
    assert set(ids.tolist()) <= set(reference)
    expected = torch.tensor([reference[token] for token in ids.tolist()], dtype=torch.float64)
    torch.testing.assert_close(log_probs.double(), expected.log(), atol=1e-5, rtol=1e-5)
    for token, share in reference.items():
        deviation = (drawn * share * (1 - share)) ** 0.5
        assert abs(int((ids == token).sum()) - drawn * share) <= 5 * deviation


def test_top_k_keeps_exactly_so_many_of_what_is_equally_likely():
    ids, log_probs = draw(torch.zeros(2000, 10), Sampling(top_k=4), seeded())
    assert len(set(ids.tolist())) == 4
    assert log_probs[0].exp().item() == pytest.approx(0.25)


def test_a_temperature_near_zero_is_greedy_and_overflows_nothing():
    logits = torch.randn(5, 30, generator=seeded()) * 100
    ids, log_probs = draw(logits, Sampling(temperature=1e-3), seeded())
    assert ids.tolist() == logits.argmax(1).tolist()
    assert log_probs.tolist() == [0] * 5


def test_greedy_log_probs_are_those_at_temperature_one():
    logits = torch.randn(5, 30, generator=seeded())
    ids, log_probs = draw(logits, GREEDY, seeded())
    torch.testing.assert_close(log_probs, logits.log_softmax(1).gather(1, ids[:, None])[:, 0])


@pytest.mark.parametrize("sampling", [GREEDY, Sampling()])
def test_logits_of_half_precision_are_normalised_in_full(sampling):
    logits = torch.randn(50, 300, generator=seeded()).bfloat16()
    ids, log_probs = draw(logits, sampling, seeded())
    expected = logits.double().log_softmax(1).gather(1, ids[:, None])[:, 0]
    torch.testing.assert_close(log_probs.double(), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(), Sampling(top_k=2)])
@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_logits_that_are_no_numbers_are_refused(sampling, broken):
    logits = torch.zeros(2, 5)
    logits[1, 3] = broken
    with pytest.raises(ModelError, match='not finite; give dtype = "float32"'):
        draw(logits, sampling, seeded())


def test_sampling_that_does_nothing_or_is_out_of_range_is_refused():
    with pytest.raises(ValueError, match="temperature = 0 takes the likeliest token"):
        Sampling(temperature=0, top_k=5)
    with pytest.raises(ValueError, match=r"temperature = -1.*top_k = 0\.5.*top_p = 0:"):
        Sampling(temperature=-1, top_k=0.5, top_p=0)


def test_behaviour_log_probs_are_what_scoring_finds_under_the_same_weights(model):
    found = generate(model, PADDED, new_tokens=20, generator=seeded(), prompt_mask=MASK)
    scored = response_log_probs(model, found.ids, found.kinds, path=naive_log_probs)
    torch.testing.assert_close(found.log_probs, scored, atol=2e-5, rtol=2e-5)
    scored.sum().backward()  # what was sampled in inference mode may enter autograd
    assert (found.log_probs[found.kinds != RESPONSE] == 0).all()


def test_in_bfloat16_behaviour_log_probs_are_visibly_not_those_of_float32(model):
    rounded = sharpened(load(TOY, seed=3, dtype="bfloat16"))
    found = generate(rounded, PADDED, new_tokens=20, generator=seeded(), prompt_mask=MASK)
    assert found.log_probs.dtype == torch.float32
    with torch.no_grad():
        scored = response_log_probs(model, found.ids, found.kinds, path=naive_log_probs)
    apart = (scored - found.log_probs)[found.kinds == RESPONSE].abs()
    assert 1e-3 < apart.mean() < 0.5


def test_equal_generators_draw_equal_completions_and_others_do_not(model):
    one, same, other = (generate(model, PADDED, new_tokens=9, generator=seeded(s)).ids for s in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_a_sequence_draws_the_same_whatever_the_others_hold_and_however_they_are_padded(model):
    """Nor does it matter how long the others' turns are: each turn draws from a generator of its own."""
    quick = replace(model, ends=tuple(range(52, 64)))

    def second(first):
        length = max(len(first), 4)
        ids, mask = torch.zeros(2, length).long(), torch.zeros(2, length).bool()
        for row, prompt in enumerate((first, [4, 3, 2, 1])):
            ids[row, length - len(prompt) :] = torch.tensor(prompt)
            mask[row, length - len(prompt) :] = True
        asked = {"new_tokens": 9, "turns": 2, "tool": lambda _, __: torch.tensor([[7], [7]])}
        found = generate(quick, ids, generator=seeded(1), prompt_mask=mask, **asked)
        return found.ids[1][found.kinds[1] != PAD].tolist(), found.turns[0].positions

    found = [second(first) for first in ([5], [9] * 7, list(range(12)), [1, 1], [2], [30, 8])]
    assert len({tuple(tokens) for tokens, _ in found}) == 1
    assert len({positions for _, positions in found}) > 1


def test_an_end_token_ends_a_sequence_and_is_counted_and_padding_follows(model):
    found = generate(model, random_prompts(40), new_tokens=40, generator=seeded())
    assert 0 < found.counted(Stop.ENDED) < 40
    assert found.counted(Stop.ENDED) + found.counted(Stop.CAPPED) == 40
    for ids, kinds, stop in zip(found.ids.tolist(), found.kinds.tolist(), found.stops, strict=True):
        count = kinds.count(RESPONSE)
        assert kinds == [PROMPT] * 6 + [RESPONSE] * count + [PAD] * (len(kinds) - 6 - count)
        drawn, after = ids[6 : 6 + count], ids[6 + count :]
        assert (END in drawn) == (stop is Stop.ENDED)
        assert END not in drawn[:-1]
        assert stop is Stop.ENDED or count == 40
        assert set(after) <= {model.pad}
    assert found.count(RESPONSE) == sum(row.count(RESPONSE) for row in found.kinds.tolist())


def test_what_has_ended_keeps_no_batch_waiting(model):
    likely = replace(model, ends=tuple(range(60)))
    found = generate(likely, random_prompts(3), new_tokens=500, generator=seeded())
    assert len(found.token_times) == found.ids.shape[1] - 6 < 20
    assert set(found.stops) == {Stop.ENDED}


def test_ends_that_are_ignored_are_tokens_like_others(model):
    found = generate(model, random_prompts(20), new_tokens=30, generator=seeded(), ignore_ends=True)
    assert set(found.stops) == {Stop.CAPPED}
    assert found.count(RESPONSE) == 20 * 30
    assert (found.ids[:, 6:-1] == END).any()


def test_a_full_context_truncates_each_sequence_by_its_own_tokens(model):
    """Not by the padding before it."""
    short = replace(model, ends=(), context=9)
    found = generate(short, PADDED, new_tokens=6, generator=seeded(), prompt_mask=MASK)
    assert found.stops == (Stop.CAPPED, Stop.TRUNCATED, Stop.TRUNCATED)
    assert (found.kinds == RESPONSE).sum(1).tolist() == [6, 4, 5]


def test_a_sequence_that_has_all_its_tokens_as_the_context_fills_is_capped(model):
    found = generate(replace(model, ends=(), context=9), PADDED[1:2], new_tokens=4, generator=seeded())
    assert found.stops == (Stop.CAPPED,)


def test_tools_answer_between_turns_and_the_last_turn_ends_the_completion(model):
    """An end token leads to the tool, as in a tool loop; so does the cap of a turn."""
    asked = []

    def tool(turn, ids):
        asked.append((turn, ids.shape[1]))
        return torch.full((6, 2), 40 + turn)

    found = generate(model, random_prompts(6), new_tokens=12, generator=seeded(), turns=3, tool=tool)
    widths = [turn.positions for turn in found.turns]
    assert asked == [(1, 6 + widths[0]), (2, 6 + widths[0] + 2 + widths[1])]
    assert found.ids.shape[1] == 6 + sum(widths) + 4
    early = 0
    for ids, kinds, stop in zip(found.ids.tolist(), found.kinds.tolist(), found.stops, strict=True):
        held = [(token, kind) for token, kind in zip(ids, kinds, strict=True) if kind != PAD]
        assert [token for token, kind in held if kind == TOOL] == [41, 41, 42, 42]
        places = [place for place, (_, kind) in enumerate(held) if kind == TOOL]
        turns = [held[6 : places[0]], held[places[1] + 1 : places[2]], held[places[3] + 1 :]]
        for turn in turns:
            assert {kind for _, kind in turn} == {RESPONSE}
            assert (turn[-1][0] == END) == (len(turn) < 12 or turn[-1][0] == END)
            assert END not in [token for token, _ in turn[:-1]]
        early += sum(turn[-1][0] == END for turn in turns[:2])
        assert stop is (Stop.ENDED if turns[2][-1][0] == END else Stop.CAPPED)
    assert early > 0
    scored = response_log_probs(model, found.ids, found.kinds, path=naive_log_probs)
    torch.testing.assert_close(found.log_probs, scored, atol=2e-5, rtol=2e-5)


def test_a_completion_to_which_the_tool_has_no_answer_is_over(model):
    """Answers may be of different lengths; the next turn goes on behind the last token of each."""
    answers = torch.tensor([[-1, -1, -1], [11, -1, -1], [12, 13, 14]])
    endless = replace(model, ends=())
    found = generate(
        endless, random_prompts(3), new_tokens=2, generator=seeded(), turns=2, tool=lambda _, __: answers
    )
    assert found.kinds[:, 6:].tolist() == [
        [RESPONSE, RESPONSE, PAD, PAD, PAD, PAD, PAD],
        [RESPONSE, RESPONSE, PAD, PAD, TOOL, RESPONSE, RESPONSE],
        [RESPONSE, RESPONSE, TOOL, TOOL, TOOL, RESPONSE, RESPONSE],
    ]
    assert found.ids[1, 10] == 11
    scored = response_log_probs(model, found.ids, found.kinds, path=naive_log_probs)
    torch.testing.assert_close(found.log_probs, scored, atol=2e-5, rtol=2e-5)


def test_an_answer_that_does_not_fit_truncates_the_completion(model):
    endless = replace(model, ends=(), context=10)
    found = generate(
        endless,
        random_prompts(2),
        new_tokens=2,
        generator=seeded(),
        turns=2,
        tool=lambda _, __: torch.tensor([[5, -1], [5, 6]]),
    )
    assert found.stops == (Stop.TRUNCATED, Stop.TRUNCATED)
    assert (found.kinds == TOOL).sum(1).tolist() == [1, 0]
    assert (found.kinds == RESPONSE).sum(1).tolist() == [3, 2]


def test_times_are_told_apart_by_turn_and_cover_every_position(model):
    found = generate(
        model,
        random_prompts(4),
        new_tokens=5,
        generator=seeded(),
        turns=2,
        tool=lambda _, __: torch.ones(4, 1).long(),
    )
    positions = sum(turn.positions for turn in found.turns)
    assert len(found.token_times) == positions
    assert list(found.token_times) == sorted(found.token_times)
    assert len(found.times_to_first()) == 2
    assert len(found.times_to_next()) == positions - 2
    assert min(found.times_to_first() + found.times_to_next()) > 0
    assert found.turns[1].began >= found.token_times[found.turns[0].positions - 1]


def test_what_a_tool_took_is_in_no_time_of_a_token():
    nothing = torch.zeros(1, 0)
    turns = (Turn(began=0.0, positions=2), Turn(began=7.0, positions=3))
    found = Completions(
        ids=nothing,
        kinds=nothing,
        log_probs=nothing,
        stops=(),
        token_times=(3.0, 4.0, 9.0, 9.5, 10.0),
        turns=turns,
    )
    assert found.times_to_first() == [3, 2]
    assert found.times_to_next() == [1, 0.5, 0.5]


def test_each_draw_is_surrounded_and_nothing_else(model):
    entered = []

    @contextmanager
    def drawing():
        entered.append("in")
        yield
        entered.append("out")

    generate(model, PADDED, new_tokens=4, generator=seeded(), drawing=drawing, ignore_ends=True)
    assert entered == ["in", "out"] * 4


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"new_tokens": 0}, "new_tokens = 0: give a whole number of at least 1"),
        ({"turns": 2}, "without a tool"),
        ({"turns": 2, "tool": print, "compiled": True}, "its cache is of one turn"),
        ({"prompts": torch.tensor([[64]])}, "below 64"),
        ({"prompt_mask": MASK[:, 1:]}, "one for each of"),
        ({"prompt_mask": ~MASK}, "pad prompts on the left"),
        ({"prompts": torch.ones(1, 4096).long()}, "leave no room in a context of 4096"),
    ],
)
def test_what_cannot_be_sampled_is_refused(asked, said, model):
    prompts = asked.pop("prompts", PADDED)
    with pytest.raises(ValueError, match=said):
        generate(model, prompts, **{"new_tokens": 2, "generator": seeded(), **asked})


@pytest.mark.slow
@pytest.mark.skipif(
    not os.environ.get("PREREG_COMPILE"), reason="set PREREG_COMPILE=1: the compiler takes a minute"
)
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("batch", [1, 3])
def test_a_compiled_step_draws_the_same_and_is_compiled_once(batch, model):
    from torch._dynamo.utils import counters

    asked = {"new_tokens": 12, "prompt_mask": MASK[:batch], "ignore_ends": True}
    plain = generate(model, PADDED[:batch], generator=seeded(), **asked)
    before = counters["stats"]["unique_graphs"]
    found = [generate(model, PADDED[:batch], generator=seeded(), compiled=True, **asked) for _ in range(2)]
    assert counters["stats"]["unique_graphs"] == before + 1
    for each in found:
        assert torch.equal(each.ids, plain.ids)
        torch.testing.assert_close(each.log_probs, plain.log_probs, atol=1e-4, rtol=1e-4)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_on_cuda_in_bfloat16_sampling_accounts_for_the_same(compiled):
    model = load(TOY, seed=3, dtype="bfloat16", device="cuda")
    asked = {"new_tokens": 6, "prompt_mask": MASK.cuda(), "compiled": compiled}
    found = [generate(model, PADDED.cuda(), generator=seeded(1, "cuda"), **asked) for _ in range(2)]
    assert torch.equal(found[0].ids, found[1].ids)
    assert found[0].ids.is_cuda
    assert found[0].log_probs.dtype == torch.float32
    with torch.no_grad():
        scored = response_log_probs(model, found[0].ids, found[0].kinds, path=naive_log_probs)
    apart = (scored - found[0].log_probs)[found[0].kinds == RESPONSE].abs()
    assert apart.max() < 0.1
