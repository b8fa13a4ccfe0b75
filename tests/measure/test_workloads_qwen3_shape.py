"""The decoder against its reference implementation and against itself; the log-probabilities against naive ones."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from pytest_prereg.measure.workloads.log_probs import selective_log_probs  # noqa: E402
from pytest_prereg.measure.workloads.qwen3_shape import (  # noqa: E402
    Cache,
    Shape,
    hidden_states,
    random_decoder,
)

pytestmark = pytest.mark.torch

SMALL = Shape(vocabulary=97, hidden=32, layers=3, heads=4, key_heads=2, head_size=12, feed_forward=40)


def decoder(shape=SMALL, spread=20):
    """Weights and norms far enough from their initial values that every one of them matters."""
    generator = torch.Generator().manual_seed(5)
    made = random_decoder(shape, generator)
    with torch.no_grad():
        for weight in made.parameters():
            noise = torch.empty(weight.shape).normal_(0, 0.02, generator=generator)
            weight.add_(noise * spread if weight.dim() == 1 else weight * 5)
    return made


def ids(batch=2, positions=9):
    return torch.randint(97, (batch, positions), generator=torch.Generator().manual_seed(6))


def test_the_default_is_small_but_has_the_true_vocabulary():
    made = random_decoder(Shape(), torch.Generator())
    assert made.embedding.shape == (151_936, 64)
    assert sum(weight.numel() for weight in made.parameters()) < 10_000_000


def test_reading_one_at_a_time_gives_what_reading_at_once_gives():
    made, tokens = decoder(), ids()
    cache = Cache()
    parts = [hidden_states(made, tokens[:, :4], cache)]
    parts += [hidden_states(made, tokens[:, position : position + 1], cache) for position in range(4, 9)]
    assert cache.length == 9
    torch.testing.assert_close(torch.cat(parts, 1), hidden_states(made, tokens))


def test_no_position_sees_a_later_one():
    made, tokens = decoder(), ids()
    changed = tokens.clone()
    changed[:, 5] = (changed[:, 5] + 1) % 97
    before, after = hidden_states(made, tokens), hidden_states(made, changed)
    torch.testing.assert_close(before[:, :5], after[:, :5])
    assert (before[:, 5:] - after[:, 5:]).abs().max() > 1e-3


def test_hidden_states_are_those_of_qwen3_in_transformers():
    transformers = pytest.importorskip("transformers")
    made, tokens = decoder(), ids()
    config = transformers.Qwen3Config(
        vocab_size=SMALL.vocabulary,
        hidden_size=SMALL.hidden,
        num_hidden_layers=SMALL.layers,
        num_attention_heads=SMALL.heads,
        num_key_value_heads=SMALL.key_heads,
        head_dim=SMALL.head_size,
        intermediate_size=SMALL.feed_forward,
        rope_theta=SMALL.rotary_base,
        rms_norm_eps=SMALL.epsilon,
        tie_word_embeddings=True,
    )
    reference = transformers.Qwen3ForCausalLM(config).eval()
    reference.load_state_dict(reference_names(made), strict=True)
    with torch.no_grad():
        expected = reference(tokens).logits
    found = hidden_states(made, tokens) @ made.embedding.T
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def reference_names(made):
    names = {
        "attention_norm": "input_layernorm",
        "query": "self_attn.q_proj",
        "key": "self_attn.k_proj",
        "value": "self_attn.v_proj",
        "output": "self_attn.o_proj",
        "query_norm": "self_attn.q_norm",
        "key_norm": "self_attn.k_norm",
        "feed_forward_norm": "post_attention_layernorm",
        "gate": "mlp.gate_proj",
        "up": "mlp.up_proj",
        "down": "mlp.down_proj",
    }
    state = {"model.embed_tokens.weight": made.embedding, "model.norm.weight": made.final_norm}
    state["lm_head.weight"] = made.embedding
    for index, layer in enumerate(made.layers):
        for ours, theirs in names.items():
            state[f"model.layers.{index}.{theirs}.weight"] = getattr(layer, ours)
    return state


@pytest.mark.parametrize("rows", [1, 7, 20, 64])
def test_selective_log_probs_and_gradients_are_those_of_log_softmax(rows):
    generator = torch.Generator().manual_seed(8)
    states = torch.randn(20, 6, generator=generator, dtype=torch.float64, requires_grad=True)
    head = torch.randn(31, 6, generator=generator, dtype=torch.float64, requires_grad=True)
    chosen = torch.randint(31, (20,), generator=generator)
    weight = torch.randn(20, generator=generator, dtype=torch.float64)

    naive = (states @ head.T).log_softmax(-1).gather(1, chosen[:, None]).squeeze(1)
    found = selective_log_probs(states, head, chosen, rows=rows)
    torch.testing.assert_close(found, naive)
    expected = torch.autograd.grad((naive * weight).sum(), (states, head))
    torch.testing.assert_close(torch.autograd.grad((found * weight).sum(), (states, head)), expected)


def test_selective_log_probs_never_hold_the_whole_matrix():
    """No tensor that is kept for the backward pass is larger than one chunk or the head itself."""
    states, head = torch.randn(200, 4, requires_grad=True), torch.randn(1000, 4, requires_grad=True)
    kept: list[int] = []

    def keep(tensor):
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        selective_log_probs(states, head, torch.zeros(200, dtype=torch.long), rows=10).sum().backward()
    assert max(kept, default=0) <= 10 * 1000
