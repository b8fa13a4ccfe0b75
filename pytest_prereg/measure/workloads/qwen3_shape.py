"""A decoder of Qwen3's shape in plain torch: the true vocabulary on a body that two cores can train.

Plain functions over tensors: RMS norms, grouped-query attention with normed queries and keys, rotary
positions, SwiGLU, tied embeddings and a key-value cache, as in the Qwen3 technical report (arXiv 2505.09388).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch.nn import functional

WORKLOAD_VERSION = "1"
VOCABULARY = 151_936


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Sizes of the decoder; the defaults keep Qwen3's proportions and vocabulary at a hidden size of 64."""

    vocabulary: int = VOCABULARY
    hidden: int = 64
    layers: int = 2
    heads: int = 4
    key_heads: int = 2
    head_size: int = 16
    feed_forward: int = 192
    rotary_base: float = 1e6
    epsilon: float = 1e-6


@dataclass(frozen=True, kw_only=True)
class Layer:
    """Weights of one layer; matrices are (out, in)."""

    attention_norm: torch.Tensor
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    output: torch.Tensor
    query_norm: torch.Tensor
    key_norm: torch.Tensor
    feed_forward_norm: torch.Tensor
    gate: torch.Tensor
    up: torch.Tensor
    down: torch.Tensor


@dataclass(frozen=True, kw_only=True)
class Decoder:
    """All weights; ``embedding`` (vocabulary, hidden) is also the output head."""

    shape: Shape
    embedding: torch.Tensor
    layers: tuple[Layer, ...]
    final_norm: torch.Tensor

    def parameters(self) -> list[torch.Tensor]:
        """Return every tensor that an optimiser moves."""
        inner = [tensor for layer in self.layers for tensor in vars(layer).values()]
        return [self.embedding, *inner, self.final_norm]


@dataclass
class Cache:
    """Keys and values of what was read so far: a pair per layer, each (batch, heads, positions, size)."""

    pairs: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Positions read so far."""
        return self.pairs[0][0].shape[2] if self.pairs else 0

    def extend(self, index: int, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Append one layer's new positions and return all of them."""
        if index == len(self.pairs):
            self.pairs.append((key, value))
        else:
            old_key, old_value = self.pairs[index]
            self.pairs[index] = (torch.cat((old_key, key), 2), torch.cat((old_value, value), 2))
        return self.pairs[index]


def random_decoder(shape: Shape, generator: torch.Generator) -> Decoder:
    """Return freshly drawn float32 weights: normal with standard deviation 0.02, norms at one."""

    def drawn(*size: int) -> torch.Tensor:
        return torch.empty(size).normal_(0, 0.02, generator=generator).requires_grad_()

    def ones(size: int) -> torch.Tensor:
        return torch.ones(size, requires_grad=True)

    queries, keys = shape.heads * shape.head_size, shape.key_heads * shape.head_size
    embedding = drawn(shape.vocabulary, shape.hidden)
    layers = tuple(
        Layer(
            attention_norm=ones(shape.hidden),
            query=drawn(queries, shape.hidden),
            key=drawn(keys, shape.hidden),
            value=drawn(keys, shape.hidden),
            output=drawn(shape.hidden, queries),
            query_norm=ones(shape.head_size),
            key_norm=ones(shape.head_size),
            feed_forward_norm=ones(shape.hidden),
            gate=drawn(shape.feed_forward, shape.hidden),
            up=drawn(shape.feed_forward, shape.hidden),
            down=drawn(shape.hidden, shape.feed_forward),
        )
        for _ in range(shape.layers)
    )
    return Decoder(shape=shape, embedding=embedding, layers=layers, final_norm=ones(shape.hidden))


def hidden_states(decoder: Decoder, ids: torch.Tensor, cache: Cache | None = None) -> torch.Tensor:
    """Return the last hidden states (batch, positions, hidden) of ``ids`` (batch, positions).

    With a cache the ids continue what it holds, and it takes them up: many at once into an empty cache,
    then one at a time.
    """
    shape = decoder.shape
    first = cache.length if cache else 0
    rotation = _rotation(shape, first, ids.shape[1])
    states = functional.embedding(ids, decoder.embedding)
    for index, layer in enumerate(decoder.layers):
        normed = _norm(states, layer.attention_norm, shape)
        query, key, value = _projected(layer, shape, normed, rotation)
        if cache is not None:
            key, value = cache.extend(index, key, value)
        states = states + _attention(shape, query, key, value) @ layer.output.T
        normed = _norm(states, layer.feed_forward_norm, shape)
        states = states + (functional.silu(normed @ layer.gate.T) * (normed @ layer.up.T)) @ layer.down.T
    return _norm(states, decoder.final_norm, shape)


def _norm(states: torch.Tensor, weight: torch.Tensor, shape: Shape) -> torch.Tensor:
    return functional.rms_norm(states, (states.shape[-1],), weight, shape.epsilon)


def _projected(
    layer: Layer, shape: Shape, states: torch.Tensor, rotation: tuple[torch.Tensor, torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return queries, keys and values, each (batch, heads, positions, size)."""
    query = _rotated(_norm(_heads(states @ layer.query.T, shape), layer.query_norm, shape), rotation)
    key = _rotated(_norm(_heads(states @ layer.key.T, shape), layer.key_norm, shape), rotation)
    return query, key, _heads(states @ layer.value.T, shape)


def _attention(shape: Shape, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Return what each position attends to, (batch, positions, heads x size)."""
    group = shape.heads // shape.key_heads
    mixed = functional.scaled_dot_product_attention(
        query,
        key.repeat_interleave(group, 1),
        value.repeat_interleave(group, 1),
        is_causal=query.shape[2] > 1,
    )
    return mixed.transpose(1, 2).flatten(2)


def _heads(states: torch.Tensor, shape: Shape) -> torch.Tensor:
    """(batch, positions, heads x size) to (batch, heads, positions, size)."""
    batch, positions, _ = states.shape
    return states.view(batch, positions, -1, shape.head_size).transpose(1, 2)


def _rotation(shape: Shape, first: int, positions: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines (positions, size) of the rotary embedding, both halves of a head alike."""
    exponents = torch.arange(0, shape.head_size, 2) / shape.head_size
    angles = torch.outer(torch.arange(first, first + positions), shape.rotary_base**-exponents).repeat(1, 2)
    return angles.cos(), angles.sin()


def _rotated(states: torch.Tensor, rotation: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    cosines, sines = rotation
    left, right = states.chunk(2, -1)
    return states * cosines + torch.cat((-right, left), -1) * sines
