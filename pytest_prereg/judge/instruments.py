"""Whether it is known what took the readings that a verdict rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_prereg.evidence.model import RecordedRepeat
    from pytest_prereg.registry.model import Metric

UNSTATED = "instrument-unstated"


def are_unstated(metrics: Iterable[Metric], repeats: Sequence[RecordedRepeat]) -> bool:
    """Whether a repeat has a value that no instrument is named for; exact metrics are counted, not read."""
    read = [metric.name for metric in metrics if not metric.exact]
    return any(
        name in repeat.values and name not in repeat.instruments for repeat in repeats for name in read
    )
