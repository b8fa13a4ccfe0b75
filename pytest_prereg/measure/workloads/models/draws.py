"""Random durations of rewards, and of the slowest of a batch.

Whether a completion times out is decided on sixteen random bits, and on 53 more in the one case of 65,536
in which these leave it open: exact to 2**-69 of probability, at a quarter of the random bits that a float
each would take. What is drawn depends on the state of the generator alone: two draws from the same state
share their randomness, so that what times out at a low rate does so at every higher one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pytest_prereg.measure.workloads.models.blocks import Array, blocks
from pytest_prereg.measure.workloads.models.checks import check_count
from pytest_prereg.measure.workloads.models.laws import check_law, wait_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

WORKLOAD_VERSION = "1"

_STATES = 2**16


class _Streams(NamedTuple):
    """A stream each for what is drawn, so that no parameter shifts another's draws."""

    timeouts: np.random.Generator
    ties: np.random.Generator
    factors: np.random.Generator


def draw_durations(
    generator: np.random.Generator,
    steps: int,
    completions: int,
    *,
    timeout_rate: float,
    reward: float,
    deadline: float,
    spread: float = 0.0,
) -> Array:
    """Return the seconds that the reward of each completion takes, [steps, completions].

    ``reward``, times a log-normal factor of median 1 and that spread, cut at the deadline; with probability
    ``timeout_rate`` the deadline itself. The first steps of a longer draw are those of a shorter one.

    Raises:
        ValueError: The parameters make no law, there is no completion, or the steps are no count.
    """
    check_law(timeout_rate, reward=reward, deadline=deadline, spread=spread)
    check_count(completions=completions)
    check_count(least=0, steps=steps)
    streams = _streams(generator)
    durations = np.empty((steps, completions))
    for block in blocks(steps, completions):
        _fill(durations[block], streams, rate=timeout_rate, reward=reward, deadline=deadline, spread=spread)
    return durations


def simulate(
    model: Callable[[Array], Array],
    generator: np.random.Generator,
    steps: int,
    completions: int,
    *,
    timeout_rate: float,
    reward: float,
    deadline: float,
    spread: float = 0.0,
) -> Array:
    """Return what ``model`` makes of `draw_durations`, [steps], a block at a time.

    Equal to ``model(draw_durations(...))`` for a model that takes each step by itself, in the memory of a
    block: ``simulate(batch_waits, default_rng(1), 10**6, 128, timeout_rate=0.01, reward=2, deadline=30)``.

    Raises:
        ValueError: The parameters make no law, there is no completion, or the steps are no count.
    """
    check_law(timeout_rate, reward=reward, deadline=deadline, spread=spread)
    check_count(completions=completions)
    check_count(least=0, steps=steps)
    streams = _streams(generator)
    found = np.empty(steps)
    for block in blocks(steps, completions):
        durations = np.empty((block.stop - block.start, completions))
        _fill(durations, streams, rate=timeout_rate, reward=reward, deadline=deadline, spread=spread)
        found[block] = model(durations)
    return found


def draw_maxima(
    generator: np.random.Generator,
    shape: int | tuple[int, ...],
    completions: int,
    *,
    timeout_rate: float,
    reward: float,
    deadline: float,
    spread: float = 0.0,
) -> Array:
    """Return draws of the slowest of ``completions`` rewards, in seconds, of the given shape.

    They follow the exact law of the maximum, without drawing what it is the maximum of: the quantile at a
    random share, whose logarithm is an exponential value. Shape ``(steps, groups)`` and the size of a
    group give the slowest of each group, which ``grouped_steps(..., group=1)`` takes.

    Raises:
        ValueError: The parameters make no law, there is no completion, or the steps are no count.
    """
    check_law(timeout_rate, reward=reward, deadline=deadline, spread=spread)
    check_count(completions=completions)
    for axis in shape if isinstance(shape, tuple) else (shape,):
        check_count(least=0, shape=axis)
    log_share = -generator.standard_exponential(shape)
    return wait_at(log_share, timeout_rate, completions, reward=reward, deadline=deadline, spread=spread)


def _streams(generator: np.random.Generator) -> _Streams:
    """Three independent streams, seeded by 256 bits of the generator."""
    words = generator.integers(0, 2**64, size=4, dtype=np.uint64)
    seeds = np.random.SeedSequence(words.tolist()).spawn(len(_Streams._fields))
    return _Streams(*(np.random.Generator(np.random.SFC64(seed)) for seed in seeds))


def _fill(
    durations: Array, streams: _Streams, *, rate: float, reward: float, deadline: float, spread: float
) -> None:
    """Draw into a block of whole steps."""
    if spread:
        streams.factors.standard_normal(out=durations)
        durations *= spread
        # A huge factor becomes the deadline, as does one that overflows.
        with np.errstate(over="ignore"):
            np.exp(durations, out=durations)
        durations *= reward
        np.minimum(durations, deadline, out=durations)
    else:
        durations.fill(reward)
    late = _timeouts(streams, durations.size, rate).reshape(durations.shape)
    # Nothing else is later than the deadline; assigning under a mask would depend on what a branch guesses.
    np.maximum(durations, late * deadline, out=durations)


def _timeouts(streams: _Streams, count: int, rate: float) -> NDArray[np.bool_]:
    """Which of ``count`` completions time out, each with probability ``rate``.

    Scaling by a power of two is exact, so ``whole / 65536 + part / 65536`` is the rate to its last bit.
    """
    words = streams.timeouts.integers(0, 2**64, size=-(-count // 4), dtype=np.uint64)
    bits = words.view(np.uint16)[:count]
    whole, part = divmod(rate * _STATES, 1)
    late = bits < int(whole)
    tied = np.flatnonzero(bits == int(whole))
    late[tied] = streams.ties.random(len(tied)) < part
    return late
