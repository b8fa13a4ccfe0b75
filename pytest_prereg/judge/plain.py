"""A shortcut for the commonest case: the mean of one metric in one arm, and nothing to say but where it lies.

It takes the same steps as the general way, and goes through the repeats once. As soon as anything else could
be told (a repeat that is not ok, a skewed sample, a trend, too few distinct values, a second machine, a
condition that did not hold, a fault) it declines, and the general way finds the words. A test holds the two
to one another.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.judge.drift import drifting
from pytest_prereg.judge.findings import place, rounded, straddled
from pytest_prereg.judge.fitness import SMALLEST_N
from pytest_prereg.judge.instruments import UNSTATED
from pytest_prereg.judge.intervals import moments, t_from_moments
from pytest_prereg.judge.locations import is_skewed
from pytest_prereg.judge.model import Judgement, Verdict
from pytest_prereg.judge.resolution import too_few_values

if TYPE_CHECKING:
    from pytest_prereg.evidence.model import Series
    from pytest_prereg.judge.intervals import Moments
    from pytest_prereg.judge.question import Question

_OK = Outcome.OK
_INCONCLUSIVE = Verdict.INCONCLUSIVE


def judge_plain(question: Question, series: Series) -> Judgement | None:
    """The judgement that the general way gives, or ``None`` where it might have more to say.

    Args:
        question: With ``is_plain``.
        series: Without a stopping rule, and nothing known against it from outside.
    """
    values, is_stated = _values(question, series)
    sample = _sample(values) if values else None
    if sample is None:
        return None
    interval = t_from_moments(sample, question.confidence)
    low, high = rounded(interval.low), rounded(interval.high)
    verdict = place(question, low, high)
    reason, detail = straddled(question, low, high) if verdict is _INCONCLUSIVE else (None, None)
    return Judgement(
        prediction=question.prediction,
        verdict=verdict,
        reason=reason,
        detail=detail,
        estimate=rounded(interval.estimate),
        interval=(low, high),
        confidence=interval.level,
        method="Student t",
        statistic="mean",
        n=sample.n,
        planned=sample.n,
        excluded=0,
        flags=() if is_stated or series.origin != "measured" else (UNSTATED,),
        repeats=tuple([repeat.id for repeat in series.repeats]),
    )


def _values(question: Question, series: Series) -> tuple[list[float], bool]:
    """The value of each repeat, if all are in order, and whether an instrument is named for each."""
    n, planned = len(series.repeats), series.planned
    metric, scale, arm = question.metric, question.scale, question.arms[0]
    if n < SMALLEST_N or series.faults or series.outside or planned is None or planned.get(arm) != n:
        return [], False
    machine, before, is_stated = series.repeats[0].machine, -1, True
    values: list[float] = []
    for repeat in series.repeats:
        value = repeat.values.get(metric)
        if (
            repeat.outcome is not _OK
            or type(value) is not float
            or repeat.arm != arm
            or repeat.machine != machine
            or repeat.outside is not None
            or repeat.index > n
            or repeat.position <= before
        ):
            return [], False
        before = repeat.position
        values.append(value * scale)
        if metric not in repeat.instruments:
            is_stated = False
    return values, is_stated


def _sample(values: list[float]) -> Moments | None:
    """Size, mean and variance, where Student's t is all that there is to them."""
    try:
        sample = moments(values)
        unusual = (
            not isfinite(sample.mean)
            or is_skewed(values, sample)
            or too_few_values(values, max(map(abs, values)))
            or drifting([values]) is not None
        )
    except (OverflowError, ValueError):  # squares that are none, or both infinities
        return None
    return None if unusual else sample
