from __future__ import annotations

import pytest

from pytest_prereg.judge import Reason, Verdict, chi_square_sd

STEADY = [1.00, 1.04, 0.97, 1.02, 0.99, 1.03, 0.98]
RISING = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]


def spread(study, **more):
    return study(**{"statistic": "sd", "predicts": "<= 0.1", "falsifier": ">= 0.2"} | more)


def test_the_interval_is_that_of_chi_square(study):
    judgement = spread(study).extend(*STEADY).judge()
    expected = chi_square_sd(STEADY)
    assert judgement.verdict is Verdict.SUPPORTED
    assert judgement.interval == pytest.approx((expected.low, expected.high), rel=1e-13)
    assert judgement.estimate == pytest.approx(expected.estimate)
    assert (judgement.method, judgement.flags, judgement.n) == ("chi-square", ("assumes normal",), 7)


def test_a_large_spread_refutes(study):
    assert spread(study).extend(1.0, 3.0, 2.0, 5.0, 1.5, 4.0).judge().verdict is Verdict.REFUTED


def test_two_repeats_are_too_few(study):
    assert spread(study).extend(1.0, 1.1).judge().detail == "needs 3 repeats, has 2"


def test_after_a_trend_no_repeat_alone_can_agree(study):
    judgement = spread(study, predicts="<= 9", falsifier="> 9").extend(*RISING).judge()
    assert (judgement.verdict, judgement.reason) == (Verdict.INCONCLUSIVE, Reason.DRIFT)


def test_equal_values_decide_only_if_they_are_exact(study):
    assert spread(study).extend(1.0, 1.0, 1.0).judge().reason is Reason.RESOLUTION
    exact = spread(study, metrics={"t": {"unit": "token", "exact": True}}).extend(1.0, 1.0, 1.0)
    assert (exact.judge().verdict, exact.judge().interval) == (Verdict.SUPPORTED, (0.0, 0.0))


def test_a_coarse_resolution_widens_by_half_of_it_and_never_below_zero(study):
    plain = spread(study).extend(*STEADY).judge().interval
    coarse = spread(study, metrics={"t": {"unit": "s", "resolution": 0.02}}).extend(*STEADY).judge().interval
    assert coarse == pytest.approx((plain[0] - 0.01, plain[1] + 0.01))
    coarser = spread(study, metrics={"t": {"unit": "s", "resolution": 1.0}}).extend(*STEADY).judge().interval
    assert coarser == pytest.approx((0.0, plain[1] + 0.5))


def test_what_was_cut_off_leaves_it_without_a_value(study):
    made = spread(study).extend(*STEADY).add(outcome="timeout")
    assert (made.judge().reason, made.judge().interval) == (Reason.RARE_EVENT, None)
    assert (
        made.judge().detail
        == "1 timeout or sample at a cap seen: how often and how long decides the standard deviation"
    )
    for _ in range(4):
        made.add(outcome="timeout")
    assert made.judge().reason is Reason.CENSORED


def test_a_failure_is_never_dropped(study):
    made = spread(study).extend(*STEADY).add(outcome="task-failed")
    assert (made.judge().reason, made.judge().interval) == (Reason.TASK_FAILED, None)


def test_a_cap_that_was_never_reached_is_flagged(study):
    judgement = spread(study, metrics={"t": {"unit": "s", "cap": 5.0}}).extend(*STEADY).judge()
    assert judgement.flags == ("assumes normal", "tail-untested")


def test_the_unit_shown_scales_it(study):
    made = spread(study, predicts="<= 100 ms", falsifier=">= 200 ms", scale=1000.0).extend(*STEADY)
    assert made.judge().estimate == pytest.approx(1000 * chi_square_sd(STEADY).estimate)
