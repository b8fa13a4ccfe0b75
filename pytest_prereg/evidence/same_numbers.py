"""Whether two sets of repeats are the same measurements: in another order, format, selection or place."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from pytest_prereg.evidence.model import Value
    from pytest_prereg.registry.model import Experiment

_TELLING = 3
_TELLING_IN_PART = 5
_MOSTLY = 0.75
"""So many of the fewer repeats, and this share of them, must come again for their numbers to identify them:
distinct ones, for what is counted coarsely comes again by chance; more where not all of them do."""


class Repeat(Protocol):
    """What has an arm and values."""

    @property
    def arm(self) -> str:
        """Its name."""

    @property
    def values(self) -> Mapping[str, Value]:
        """By metric."""


def exact_metrics(experiment: Experiment) -> frozenset[str]:
    """Return the metrics whose values come out the same again: they tell no measurement from another."""
    return frozenset(name for name, metric in experiment.metrics.items() if metric.exact)


def numbers_by_arm(repeats: Iterable[Repeat], *, without: Container[str] = ()) -> Counter[str]:
    """Return how often each set of values comes in each arm, ``without`` those of some metrics."""
    pairs = ((one.arm, _numbers(one, without)) for one in repeats)
    return Counter(f"{arm} {numbers}" for arm, numbers in pairs if numbers)


def numbers_of(repeats: Iterable[Repeat], *, without: Container[str] = ()) -> Counter[str]:
    """Return how often each set of values comes, in whatever arm, ``without`` those of some metrics."""
    return Counter(filter(None, (_numbers(one, without) for one in repeats)))


def _numbers(repeat: Repeat, without: Container[str]) -> str:
    """Single values, if there are any: where a vector is the same, so are they, and it would be long."""
    single = {
        name: value
        for name, value in repeat.values.items()
        if name not in without and not isinstance(value, list)
    }
    if single:
        return repr(sorted((name, _rounded(value)) for name, value in single.items()))
    vectors = {
        name: (len(value), _rounded(math.fsum(value)))
        for name, value in repeat.values.items()
        if name not in without and isinstance(value, list)
    }
    return repr(sorted(vectors.items())) if vectors else ""


def _rounded(value: float) -> str:
    """A number without the digits that get lost, or are changed unseen, when a file is written anew."""
    return f"{value:.6g}"


def holds_the_same(new: Counter[str], old: Counter[str]) -> bool:
    """Whether one holds all or most of the other, and that is no accident: coarse readings may come again."""
    fewer = min(new.total(), old.total())
    shared = new & old
    least = _TELLING if shared.total() == fewer else _TELLING_IN_PART
    return len(shared) >= max(least, _MOSTLY * fewer)
