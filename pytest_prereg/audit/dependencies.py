"""On which other predictions one rests, and in what order they are judged: without recursion, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.registry.relations import predecessor
from pytest_prereg.registry.uses import instruments_of, named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytest_prereg.registry.model import Prediction, Study


def required(study: Study, prediction: Prediction) -> list[str]:
    """Ids of the predictions that must be supported: of a ``for-each`` table all."""
    names = prediction.table.requires or ()
    return [each for name in names for each in named(name, study.predictions)]


def calibrators(study: Study, instrument: str) -> list[str]:
    """Ids of the predictions that calibrate an instrument; none for one that is trusted, or built in."""
    table = study.instruments.get(instrument)
    names = (table.calibrated_by or ()) if table else ()
    return [each for name in names for each in named(name, study.predictions)]


def rests_on(study: Study, prediction: Prediction) -> Iterator[str]:
    """Ids of all predictions that have a say in the verdict on one, by the study file alone."""
    yield from required(study, prediction)
    yield from prediction.members
    before = predecessor(prediction, study.predictions)
    if before is not None:
        yield before
    for instrument in instruments_of(prediction, study.experiments):
        yield from calibrators(study, instrument)


def in_order(names: Iterable[str], below: Callable[[str], Iterable[str]]) -> list[str]:
    """Return ``names`` and all that they rest on, each once and after what it rests on itself.

    Of a circle the first that is met comes last, as if nothing rested on it.
    """
    order: list[str] = []
    met: set[str] = set()
    for name in names:
        if name not in met:
            met.add(name)
            _descend(name, below, met, order)
    return order


def _descend(start: str, below: Callable[[str], Iterable[str]], met: set[str], order: list[str]) -> None:
    way = [(start, iter(below(start)))]
    while way:
        name, rest = way[-1]
        other = next((each for each in rest if each not in met), None)
        if other is None:
            order.append(name)
            way.pop()
        else:
            met.add(other)
            way.append((other, iter(below(other))))
