"""Whether it is known what took the readings that a verdict rests on, and whether there are any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.judge.model import Reason
from pytest_prereg.registry.instruments import needs_calibration
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_prereg.evidence.model import RecordedRepeat, Series
    from pytest_prereg.judge.findings import Doubt
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


def is_unread(repeat: RecordedRepeat) -> bool:
    """Whether a repeat is invalid for want of a reading alone: nobody set it aside."""
    return repeat.outcome is Outcome.INVALID and bool(repeat.unreadable)


def never_read(
    metrics: Iterable[Metric], repeats: Sequence[RecordedRepeat], series: Series
) -> Iterator[Doubt]:
    """Metrics that no repeat of a whole series has a reading of, since their instrument could not be read.

    Nothing was seen of them then, so that the next series is no second try. Where an instrument took any
    reading in the series, of whatever metric, its body may have chosen when not to: such repeats are set
    aside, by somebody who could know their values.

    Args:
        metrics: Those that are judged.
        repeats: All settled repeats of the arms that are judged.
        series: Which they are of.
    """
    if not repeats or not all(map(is_unread, repeats)):
        return
    read = {taker for repeat in series.repeats for taker in repeat.instruments.values()}
    for metric in metrics:
        takers = {repeat.unreadable.get(metric.name) for repeat in repeats}
        names = {taker for taker in takers if taker is not None and _is_meant(taker, metric)}
        has_values = any(metric.name in repeat.values for repeat in series.repeats)
        if names == takers and names.isdisjoint(read) and not has_values:
            what = f"{' and '.join(sorted(names))} could be read in no repeat, so that nothing is known of"
            yield Reason.INSTRUMENT, f"{what} {quoted(metric.name)}: {repeats[0].cause}"


def _is_meant(taker: str, metric: Metric) -> bool:
    """Whether an instrument that could not be read is the one to read a metric, as far as that says."""
    declared = metric.instrument
    return declared is None or declared == taker or not needs_calibration(declared)
