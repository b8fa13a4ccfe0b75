"""``over``: the points of a sweep, reduced to one number inside each block."""

from __future__ import annotations

import math

import pytest

from pytest_prereg.judge import Reason, Verdict, log_t, student_t

SINGLE = (("x[n=1]",), ("x[n=2]",), ("x[n=4]",))
PAIRS = (("new[n=1]", "old[n=1]"), ("new[n=2]", "old[n=2]"))
ROWS = [(1.0, 2.1, 4.0), (1.1, 2.0, 4.3), (0.9, 2.2, 3.9), (1.05, 1.9, 4.1), (0.95, 2.05, 4.2)]
PAIRED = [(1.3, 1.0, 4.0, 2.0), (1.4, 1.1, 4.3, 2.1), (1.2, 0.9, 4.1, 1.9), (1.5, 1.0, 3.9, 2.0)]


def limits(interval):
    return pytest.approx((interval.low, interval.high), rel=1e-13)


def swept(study, reduction, **more):
    return study(pairing="block", reduction=reduction, **more)


def test_the_geometric_mean_of_the_points_of_each_block(study):
    made = swept(study, "geometric-mean", points=SINGLE, statistic="geometric-mean")
    made.predicts, made.falsifier = "<= 3", "> 3"
    judgement = made.blocks(*ROWS).judge()
    assert judgement.interval == limits(log_t([math.prod(row) ** (1 / 3) for row in ROWS]))
    assert judgement.verdict is Verdict.SUPPORTED
    assert judgement.method == "Student t on logs, geometric-mean of 3 points in each block"
    assert (judgement.n, len(judgement.repeats)) == (5, 15)


def test_the_geometric_mean_of_ratios(study):
    made = swept(
        study, "geometric-mean", points=PAIRS, contrast="new / old", predicts=">= 1", falsifier="< 1"
    )
    judgement = made.blocks(*PAIRED).judge()
    expected = log_t([math.sqrt(a / b * c / d) for a, b, c, d in PAIRED])
    assert judgement.interval == limits(expected)
    assert judgement.verdict is Verdict.SUPPORTED


def test_the_least_of_the_points_of_each_block(study):
    made = swept(study, "min", points=SINGLE, predicts="<= 3", falsifier="> 3").blocks(*ROWS)
    assert made.judge().interval == limits(student_t([min(row) for row in ROWS]))


def test_the_least_difference(study):
    made = swept(study, "min", points=PAIRS, contrast="new - old", predicts="> 0", falsifier="<= 0")
    judgement = made.blocks(*PAIRED).judge()
    assert judgement.interval == limits(student_t([min(a - b, c - d) for a, b, c, d in PAIRED]))
    assert judgement.method == "paired t, min of 2 points in each block"


def test_the_least_ratio_has_a_geometric_mean(study):
    made = swept(study, "min", points=PAIRS, contrast="new / old", predicts="> 1", falsifier="<= 1")
    assert made.blocks(*PAIRED).judge().interval == limits(
        log_t([min(a / b, c / d) for a, b, c, d in PAIRED])
    )


def test_a_skewed_mean_of_the_least_takes_the_hull_as_any_mean_does(study):
    made = swept(study, "min", points=SINGLE, predicts="<= 99", falsifier="> 99")
    judgement = made.blocks(*[(value, 50.0, 60.0) for value in (1.0, 2.0, 1.2, 5.0, 1.1)]).judge()
    assert judgement.method == "hull of Student t and modified Cox"
    made.repeats = made.repeats[:12]
    assert made.judge().detail == "needs 5 blocks where the CV is above 0.2, has 4"


def test_a_block_that_misses_a_point_is_dropped_whole(study):
    made = swept(study, "min", points=SINGLE, predicts="<= 3", falsifier="> 3").blocks(*ROWS)
    complete = made.judge()
    made.add(0.001, arm="x[n=1]", block=6).add(0.001, arm="x[n=4]", block=6)
    assert made.judge().interval == complete.interval


def test_a_value_that_is_not_positive_has_no_logarithm(study):
    made = swept(study, "geometric-mean", points=SINGLE, statistic="geometric-mean")
    judgement = made.blocks(*ROWS, (1.0, -2.0, 4.0)).judge()
    assert (judgement.reason, judgement.interval) == (Reason.UNBOUNDED, None)


def test_drift_is_one_of_the_reduced_number(study):
    made = swept(study, "min", points=SINGLE, predicts="<= 1.55", falsifier="> 1.55")
    made.blocks(*[(1 + step / 10, 9 - step, 20.0 + step) for step in range(7)])
    judgement = made.judge()
    assert judgement.interval[1] < 1.55
    assert judgement.reason is Reason.DRIFT


def test_one_point_is_the_plain_question(study):
    made = swept(study, "min", points=(("x[n=1]",),), predicts="<= 3", falsifier="> 3")
    judgement = made.extend(*[row[0] for row in ROWS]).judge()
    assert judgement.interval == limits(student_t([row[0] for row in ROWS]))
