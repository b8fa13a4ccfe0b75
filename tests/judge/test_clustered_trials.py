"""A proportion of successes among trials, of which each repeat counts its own."""

from __future__ import annotations

import math

import pytest

from pytest_prereg.errors import JudgeError
from pytest_prereg.judge import Reason, Verdict, korn_graubard

METRICS = {"passed": {"unit": "1", "exact": True}, "tried": {"unit": "1", "exact": True}}
PASSED = [18, 17, 19, 16, 18, 20, 17]


def share(study, **more):
    return study(
        **{
            "statistic": "proportion",
            "quantity": "passed",
            "divisor": "tried",
            "metrics": METRICS,
            "predicts": ">= 0.7",
            "falsifier": "< 0.7",
        }
        | more
    )


def fill(made, passed=PASSED, tried=20):
    for count in passed:
        made.add({"passed": float(count), "tried": float(tried)})
    return made


def test_the_interval_is_that_of_korn_and_graubard(study):
    judgement = fill(share(study)).judge()
    expected = korn_graubard(PASSED, [20] * 7)
    assert judgement.verdict is Verdict.SUPPORTED
    assert judgement.interval == pytest.approx((expected.low, expected.high), rel=1e-13)
    assert judgement.estimate == pytest.approx(sum(PASSED) / 140)
    assert (judgement.method, judgement.flags, judgement.n) == ("Korn-Graubard", ("approximate",), 7)


def test_few_successes_refute(study):
    assert fill(share(study), [3, 4, 2, 5]).judge().verdict is Verdict.REFUTED


def test_it_may_be_shown_in_per_cent(study):
    judgement = fill(share(study, predicts=">= 70 %", falsifier="< 70 %", scale=100.0)).judge()
    expected = korn_graubard(PASSED, [20] * 7)
    assert judgement.verdict is Verdict.SUPPORTED
    assert judgement.interval == pytest.approx((100 * expected.low, 100 * expected.high), rel=1e-13)


def test_two_repeats_are_too_few_however_many_trials_they_made(study):
    judgement = fill(share(study), [900, 910], tried=1000).judge()
    assert (judgement.reason, judgement.detail) == (Reason.N_TOO_SMALL, "needs 3 repeats, has 2")


def test_equal_shares_are_as_good_as_one_trial_a_repeat(study):
    assert fill(share(study), [1000] * 5, tried=1000).judge().interval == pytest.approx(
        (0.478176, 1.0), abs=1e-6
    )


@pytest.mark.parametrize(
    ("passed", "tried"), [(21.0, 20.0), (-1.0, 20.0), (2.5, 20.0), (2.0, 20.5), (0.0, 0.0), (1.0, math.nan)]
)
def test_what_is_no_count_names_the_repeat(study, passed, tried):
    made = fill(share(study)).add({"passed": passed, "tried": tried})
    with pytest.raises(JudgeError, match=rf"PR140: .*in repeat e/1/8: .*they are {passed:g} of {tried:g}"):
        made.judge()


def test_a_repeat_that_failed_has_no_trials_and_is_never_dropped(study):
    judgement = fill(share(study)).add(outcome="task-failed").judge()
    assert (judgement.reason, judgement.interval) == (Reason.TASK_FAILED, None)


def test_a_repeat_that_timed_out_never_made_its_trials(study):
    judgement = fill(share(study)).add(outcome="timeout").judge()
    assert (judgement.reason, judgement.interval) == (Reason.CENSORED, None)
    assert judgement.detail == "1 timeout: trials that were never made"


def test_drift_is_not_tested(study):
    assert fill(share(study), [14, 15, 16, 17, 18, 19, 20]).judge().verdict is Verdict.SUPPORTED
