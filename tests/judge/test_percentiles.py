from __future__ import annotations

import math

import pytest

from pytest_prereg.judge import Reason, Verdict, order_statistic_quantile
from pytest_prereg.judge.percentiles import repeats_to_hold
from pytest_prereg.registry.regions import parse_region

FORTY = [1.0 + (7 * k % 40) / 100 for k in range(40)]
SEVEN = FORTY[:7]


def upper(study, **more):
    return study(statistic="quantile", q=0.9, predicts="<= 2", falsifier=">= 3", **more)


def test_the_interval_is_that_of_order_statistics(study):
    judgement = upper(study).extend(*FORTY).judge()
    expected = order_statistic_quantile(FORTY, 0.9)
    assert judgement.verdict is Verdict.SUPPORTED
    assert judgement.interval == pytest.approx((expected.low, expected.high), rel=1e-14)
    assert judgement.estimate == pytest.approx(expected.estimate, rel=1e-14) == 1.35
    assert judgement.confidence == pytest.approx(expected.level, rel=1e-14)
    assert (judgement.method, judgement.n) == ("exact order statistics", 40)


def test_a_side_that_cannot_be_bounded_is_open_and_the_other_may_decide_alone(study):
    judgement = upper(study).extend(*[value + 3 for value in SEVEN]).judge()
    assert judgement.verdict is Verdict.REFUTED
    assert judgement.interval[0] >= 4
    assert judgement.interval[1] == math.inf


def test_what_so_few_repeats_could_never_have_told_is_too_small(study):
    judgement = upper(study, confidence=0.95).extend(*SEVEN).judge()
    assert (judgement.reason, judgement.detail) == (
        Reason.N_TOO_SMALL,
        "needs 36 to support, 2 to refute",
    )
    assert judgement.interval[1] == math.inf
    assert judgement.estimate is not None


def test_p99_of_seven_says_how_many_it_needs(study):
    made = study(statistic="quantile", q=0.99, predicts="<= 30", falsifier="> 60").extend(*SEVEN)
    assert made.judge().detail == "needs 368 to support, 1 to refute"


def test_without_any_side_there_is_no_interval(study):
    judgement = upper(study).add(1.0).judge()
    assert (judgement.reason, judgement.interval, judgement.estimate) == (Reason.N_TOO_SMALL, None, None)
    assert judgement.detail == "needs 36 to support, 2 to refute"


def test_with_enough_repeats_an_edge_inside_straddles(study):
    made = study(statistic="quantile", q=0.9, predicts="<= 1.36", falsifier="> 1.36").extend(*FORTY)
    assert (made.judge().reason, made.judge().detail) == (Reason.STRADDLES, "straddles 1.36")


def test_a_timeout_ranks_above_all_durations(study):
    made = upper(study).extend(*FORTY).add(outcome="timeout")
    assert made.judge().interval[1] == math.inf
    assert made.judge().reason is Reason.STRADDLES
    low = study(statistic="quantile", q=0.9, predicts=">= 1.1", falsifier="< 1").extend(*FORTY)
    assert low.add(outcome="timeout").judge().verdict is Verdict.SUPPORTED


def test_a_timeout_of_anything_else_ranks_at_both_ends(study):
    made = study(
        statistic="quantile",
        q=0.1,
        quantity="loss",
        metrics={"loss": {"unit": "nat"}},
        predicts=">= 0.5",
        falsifier="< 0.5",
    )
    for value in FORTY:
        made.add({"loss": value})
    assert made.judge().verdict is Verdict.SUPPORTED
    judgement = made.add(outcome="timeout").judge()
    assert judgement.interval[0] == -math.inf
    assert judgement.reason is Reason.STRADDLES


def test_a_drift_forbids_a_verdict_unless_all_repeats_agree(study):
    rising = sorted(FORTY)
    inside = study(statistic="quantile", q=0.5, predicts="<= 1.3", falsifier="> 1.3").extend(*rising)
    assert inside.judge().reason is Reason.DRIFT
    assert upper(study).extend(*rising).judge().verdict is Verdict.SUPPORTED


def test_a_drift_that_only_shows_with_what_was_cut_off_at_the_low_end_counts_too(study):
    metrics = {"loss": {"unit": "nat"}}
    made = study(statistic="median", quantity="loss", metrics=metrics, predicts="<= 9", falsifier="> 9")
    for value in (0.001, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0):
        made.add({"loss": value})
    assert made.add(outcome="timeout").add(outcome="timeout").judge().reason is Reason.DRIFT


@pytest.mark.parametrize(
    ("text", "needed"),
    [("<= 5", 36), (">= 5", 2), ("[4, 5]", 36), ("outside [4, 5]", 2), ("> 0", 2)],
)
def test_a_region_asks_for_the_sides_that_it_ends_at(text, needed):
    assert repeats_to_hold(parse_region(text), 0.9, 0.95) == needed


def test_no_repeats_at_all_are_too_few(study):
    judgement = upper(study).judge()
    assert (judgement.reason, judgement.n) == (Reason.N_TOO_SMALL, 0)
