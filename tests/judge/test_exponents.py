from __future__ import annotations

import pytest

from pytest_prereg.judge import Reason, Verdict, log_log_slope, student_t

LEVELS = {"x1": 1.0, "x2": 2.0, "x4": 4.0}
NOISE = [
    (1.00, 1.03, 0.98),
    (1.02, 0.97, 1.01),
    (0.99, 1.01, 1.02),
    (1.01, 1.00, 0.97),
    (0.98, 1.02, 1.00),
    (1.03, 0.99, 1.04),
]


def rows(exponent=1.5):
    """Blocks that share a factor of their own, of values that rise with the level's power."""
    return [
        tuple(size * noise * level**exponent for noise, level in zip(block, LEVELS.values(), strict=True))
        for size, block in zip((1, 3, 0.5, 2, 10, 1.5), NOISE, strict=True)
    ]


def slope(study, **more):
    return study(
        **{
            "contrast": "exponent(x)",
            "levels": LEVELS,
            "pairing": "block",
            "predicts": "[1.4, 1.6]",
            "falsifier": "outside [1.2, 1.8]",
        }
        | more
    )


def test_each_block_has_a_slope_and_students_t_bounds_their_mean(study):
    judgement = slope(study).blocks(*rows()).judge()
    expected = student_t([log_log_slope([1, 2, 4], row) for row in rows()])
    assert judgement.verdict is Verdict.SUPPORTED
    assert judgement.interval == pytest.approx((expected.low, expected.high), rel=1e-13)
    assert (judgement.method, judgement.n, judgement.flags) == ("Student t on log-log slopes", 6, ())


def test_another_exponent_is_refuted(study):
    assert slope(study).blocks(*rows(0.5)).judge().verdict is Verdict.REFUTED


def test_a_block_that_misses_a_level_is_dropped_whole(study):
    made = slope(study).blocks(*rows())
    complete = made.judge()
    assert made.add(9.0, arm="x1", block=7).judge().interval == complete.interval


def test_two_blocks_are_too_few(study):
    assert slope(study).blocks(*rows()[:2]).judge().detail == "needs 3 blocks, has 2"


def test_a_value_that_is_not_positive_has_no_slope(study):
    judgement = slope(study).blocks(*rows(), (1.0, 0.0, 2.0)).judge()
    assert (judgement.reason, judgement.interval) == (Reason.UNBOUNDED, None)
    assert judgement.detail == "repeat e/1/x2/7 is 0, which has no logarithm"


def test_slopes_of_one_sign_that_vary_keep_students_t(study):
    made = slope(study, predicts=">= -9", falsifier="< -9")
    judgement = made.blocks(*[row for e in (0.5, 2.0, 0.1) for row in rows(e)[:1]]).judge()
    assert judgement.method == "Student t on log-log slopes"


def test_slopes_that_do_not_vary_decide_nothing(study):
    made = slope(study).blocks(*[(size, size * 2**1.5, size * 8) for size in (1.0, 3.0, 7.0)])
    assert made.judge().reason is Reason.RESOLUTION


def test_a_trend_of_the_slope_forbids_a_verdict_unless_every_block_agrees(study):
    rising = [rows(1.5 + step / 100)[0] for step in range(6)]
    judgement = slope(study, predicts="<= 1.53", falsifier="> 1.9").blocks(*rising).judge()
    assert judgement.reason is Reason.DRIFT
    assert slope(study, predicts="<= 1.6", falsifier="> 1.9").blocks(*rising).judge().verdict is (
        Verdict.SUPPORTED
    )


def test_a_resolution_widens_by_what_it_does_to_the_slope(study):
    plain = slope(study).blocks(*rows()).judge().interval
    metrics = {"t": {"unit": "s", "resolution": 0.5}}
    coarse = slope(study, metrics=metrics).blocks(*rows()).judge().interval
    worst = max(0.5 / row[0] for row in rows()) + max(0.5 / row[2] for row in rows())
    by = worst / (2 * 2 * 0.6931471805599453)
    assert coarse == pytest.approx((plain[0] - by, plain[1] + by))


def test_a_timeout_is_a_rare_event(study):
    made = slope(study).blocks(*rows(), (1.0, 2.0, 4.0))
    made.repeats.pop()
    assert made.add(arm="x4", block=7, outcome="timeout").judge().reason is Reason.RARE_EVENT
