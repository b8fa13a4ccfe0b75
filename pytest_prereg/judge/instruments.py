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
    for metric in metrics:
        if not metric.exact:
            name = metric.name
            for repeat in repeats:
                if name not in repeat.instruments and name in repeat.values:
                    return True
    return False
