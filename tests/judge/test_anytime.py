from __future__ import annotations

import math

import pytest

from pytest_prereg.judge import Reason, Verdict, t_mixture_interval
from pytest_prereg.judge.intervals import Moments, moments

STEADY = [1.00, 1.04, 0.97, 1.02, 0.99, 1.03, 0.98]
HIGHER = [1.31, 1.36, 1.27, 1.35, 1.30, 1.33, 1.29]


def anytime(study, **more):
    return study(most=7, **{"predicts": "<= 1.001", "falsifier": "> 1.9"} | more)


def limits(values, map_=lambda value: value):
    interval = t_mixture_interval(moments(values), 0.95)
    return pytest.approx((map_(interval.low), map_(interval.high)), rel=1e-13)


def test_a_mean_takes_the_confidence_sequence(study):
    judgement = anytime(study).extend(*STEADY).judge()
    assert judgement.reason is Reason.STRADDLES
    assert judgement.interval == limits(STEADY)
    assert (judgement.method, judgement.flags) == ("t-mixture confidence sequence", ("assumes normal",))


def test_so_does_a_difference_in_blocks(study):
    made = anytime(study, contrast="a - b", pairing="block", predicts=">= 0.315")
    judgement = made.blocks(*zip(HIGHER, STEADY, strict=True)).judge()
    assert judgement.interval == limits([a - b for a, b in zip(HIGHER, STEADY, strict=True)])
    assert judgement.method == "paired t-mixture confidence sequence"


def test_a_ratio_in_blocks_takes_it_on_logarithms(study):
    made = anytime(study, contrast="a / b", pairing="block", predicts=">= 1.31")
    judgement = made.blocks(*zip(HIGHER, STEADY, strict=True)).judge()
    logs = [math.log(a) - math.log(b) for a, b in zip(HIGHER, STEADY, strict=True)]
    assert judgement.interval == limits(logs, math.exp)
    assert judgement.method == "paired t-mixture confidence sequence on log ratios"


def test_a_geometric_mean_too(study):
    judgement = anytime(study, statistic="geometric-mean").extend(*STEADY).judge()
    assert judgement.interval == limits([math.log(value) for value in STEADY], math.exp)
    assert judgement.method == "t-mixture confidence sequence on logs"


def test_a_skewed_mean_takes_no_hull(study):
    made = anytime(study, predicts="<= 2", falsifier="> 99").extend(1.0, 2.0, 1.2, 5.0, 1.1, 1.0, 1.3)
    assert made.judge().method == "t-mixture confidence sequence"


def test_so_few_repeats_that_nothing_is_bounded_are_too_few(study):
    made = anytime(study, confidence=0.999999).extend(*STEADY)
    assert math.isinf(t_mixture_interval(Moments(7, 1.0, 1.0), 0.999999).high)
    judgement = made.judge()
    assert (judgement.verdict, judgement.reason) == (Verdict.INCONCLUSIVE, Reason.N_TOO_SMALL)
    assert (judgement.estimate, judgement.interval) == (None, None)
    assert judgement.detail.startswith("7 repeats bound nothing where every look counts")


def test_resolution_is_as_for_any_mean(study):
    made = anytime(study, predicts="<= 2").extend(1.0, 1.1, 1.0, 1.1, 1.0, 1.1, 1.0)
    assert made.judge().reason is Reason.RESOLUTION
