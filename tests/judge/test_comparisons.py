from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from pytest_prereg.judge import Reason, Verdict, paired_t, welch
from pytest_prereg.judge.contrasts import (
    confidence_of_pairs,
    confidence_of_steps,
    largest_difference,
    smallest_step,
)

A = [1.00, 1.04, 0.97, 1.02, 0.99, 1.03, 0.98]
B = [1.02, 1.05, 0.99, 1.01, 1.02, 1.06, 0.97]
C = [1.11, 1.17, 1.06, 1.13, 1.10, 1.12, 1.09]
RISING = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]
METHODS = {"block": paired_t, "none": welch}


def limits(interval):
    return pytest.approx((interval.low, interval.high), rel=1e-12)


def several(study, contrast, pairing="block", arms=(A, B, C), **more):
    return study(contrast=contrast, pairing=pairing, **more).blocks(*zip(*arms, strict=True))


@pytest.mark.parametrize("pairing", ["block", "none"])
class TestPlateau:
    def test_the_value_is_the_largest_difference_of_any_two(self, study, pairing):
        made = several(study, "plateau(a, b, c)", pairing, predicts="<= 0.2", falsifier=">= 0.3")
        pairs = list(combinations((A, B, C), 2))
        plain = [METHODS[pairing](*pair) for pair in pairs]
        strict = [METHODS[pairing](*pair, confidence_of_pairs(0.95, 3)) for pair in pairs]
        judgement = made.judge()
        assert judgement.verdict is Verdict.SUPPORTED
        assert judgement.interval == limits(largest_difference(plain, strict))
        assert judgement.estimate == pytest.approx(sum(C) / 7 - sum(A) / 7)

    def test_the_order_of_arms_is_no_matter(self, study, pairing):
        one = several(study, "plateau(a, b, c)", pairing, predicts="<= 0.2", falsifier="> 0.2").judge()
        other = several(
            study, "plateau(a, b, c)", pairing, arms=(C, A, B), predicts="<= 0.2", falsifier="> 0.2"
        ).judge()
        assert other.interval == pytest.approx(one.interval)

    def test_one_arm_that_is_far_off_refutes(self, study, pairing):
        far = [value + 1 for value in C]
        made = several(
            study, "plateau(a, b, c)", pairing, arms=(A, B, far), predicts="<= 0.2", falsifier=">= 0.3"
        )
        assert made.judge().verdict is Verdict.REFUTED


@pytest.mark.parametrize("pairing", ["block", "none"])
class TestIncreasing:
    def test_the_value_is_the_smallest_step_to_the_next(self, study, pairing):
        made = several(study, "increasing(a, b, c)", pairing, predicts="> -0.1", falsifier="<= -0.1")
        steps = [(later, earlier) for earlier, later in pairwise((A, B, C))]
        plain = [METHODS[pairing](*step) for step in steps]
        strict = [METHODS[pairing](*step, confidence_of_steps(0.95, 2)) for step in steps]
        judgement = made.judge()
        assert judgement.verdict is Verdict.SUPPORTED
        assert judgement.interval == limits(smallest_step(plain, strict))
        assert judgement.estimate == pytest.approx(sum(B) / 7 - sum(A) / 7)

    def test_one_step_down_refutes(self, study, pairing):
        made = several(
            study, "increasing(a, b, c)", pairing, arms=(A, C, B), predicts="> 0", falsifier="<= 0"
        )
        assert made.judge().verdict is Verdict.REFUTED


def test_welch_is_approximate_and_paired_t_is_not(study):
    paired = several(study, "plateau(a, b, c)", predicts="<= 0.2", falsifier="> 0.2").judge()
    unpaired = several(study, "plateau(a, b, c)", "none", predicts="<= 0.2", falsifier="> 0.2").judge()
    assert (paired.flags, paired.method) == ((), "paired t, largest of the pairwise differences")
    assert (unpaired.flags, unpaired.method) == (
        ("approximate",),
        "Welch t, largest of the pairwise differences",
    )
    assert (paired.n, len(paired.repeats)) == (7, 21)


def test_a_block_that_misses_any_arm_is_dropped_whole(study):
    made = several(study, "increasing(a, b, c)", predicts="> -0.1", falsifier="<= -0.1")
    complete = made.judge()
    made.add(9.0, arm="a", block=8).add(1.0, arm="b", block=8)
    assert made.judge().interval == complete.interval


def test_three_of_each_arm_are_needed(study):
    made = study(contrast="plateau(a, b)", pairing="block").blocks((1.0, 1.1), (1.2, 1.1))
    assert made.judge().detail == "needs 3 blocks, has 2"
    made.pairing = "none"
    assert made.judge().detail == "needs 3 repeats per arm, has 2"


def test_a_timeout_of_any_arm_is_a_rare_event(study):
    made = several(study, "plateau(a, b, c)", "none").add(arm="c", outcome="timeout")
    assert made.judge().reason is Reason.RARE_EVENT


def test_a_difference_with_two_distinct_values_decides_nothing(study):
    arms = ([1.0, 2.0, 3.0, 4.0], [1.5, 2.5, 3.5, 4.5], [0.5, 2.5, 2.25, 5.0])
    assert several(study, "plateau(a, b, c)", arms=arms).judge().reason is Reason.RESOLUTION


def test_a_coarse_resolution_widens_each_difference(study):
    regions = {"predicts": "<= 0.2", "falsifier": "> 0.2"}
    plain = several(study, "plateau(a, b)", arms=(A, C), **regions).judge().interval
    metrics = {"t": {"unit": "s", "resolution": 0.05}}
    coarse = several(study, "plateau(a, b)", arms=(A, C), metrics=metrics, **regions).judge().interval
    assert coarse == pytest.approx((plain[0] - 0.05, plain[1] + 0.05))


class TestDrift:
    def test_blocks_test_each_difference(self, study):
        shared = [[value + rise for value, rise in zip(arm, RISING, strict=True)] for arm in (A, B, C)]
        regions = {"predicts": "<= 0.2", "falsifier": "> 0.2"}
        assert several(study, "plateau(a, b, c)", arms=shared, **regions).judge().verdict is Verdict.SUPPORTED
        one = [A, B, [value + rise for value, rise in zip(C, RISING, strict=True)]]
        regions = {"predicts": "<= 1.65", "falsifier": "> 1.65"}
        judgement = several(study, "plateau(a, b, c)", arms=one, **regions).judge()
        assert judgement.interval[1] < 1.65
        assert judgement.reason is Reason.DRIFT

    def test_without_blocks_each_arm_is_tested(self, study):
        one = [A, B, RISING]
        regions = {"predicts": "<= 0.55", "falsifier": "> 0.55"}
        judgement = several(study, "plateau(a, b, c)", "none", arms=one, **regions).judge()
        assert judgement.interval[1] < 0.55
        assert judgement.reason is Reason.DRIFT

    @pytest.mark.parametrize("pairing", ["block", "none"])
    def test_it_decides_where_every_contrast_agrees(self, study, pairing):
        one = [A, B, [value + rise for value, rise in zip(C, RISING, strict=True)]]
        plateau = several(study, "plateau(a, b, c)", pairing, arms=one, predicts="<= 2", falsifier="> 2")
        assert plateau.judge().verdict is Verdict.SUPPORTED
        increasing = several(
            study, "increasing(a, b, c)", pairing, arms=one, predicts=">= -0.5", falsifier="< -0.5"
        )
        assert increasing.judge().verdict is Verdict.SUPPORTED

    def test_the_level_is_shared_among_the_differences(self, study):
        # Three falls among eight: p = 0.0055, which 0.01 catches and a third of it does not.
        zero = [0.0, 0.11, 0.03, 0.08, 0.01, 0.05, 0.02, 0.07]
        rising = [4.0, 1.0, 2.0, 3.0, 5.0, 6.0, 7.0, 8.0]
        first = [low + high for low, high in zip(zero, rising, strict=True)]
        two = several(study, "plateau(a, b)", arms=(zero, first), predicts="<= 7", falsifier="> 7")
        assert two.judge().reason is Reason.DRIFT
        third = [
            value + shift
            for value, shift in zip(zero, (0.2, 0.1, 0.4, 0.3, 0.15, 0.35, 0.25, 0.05), strict=True)
        ]
        three = several(
            study, "increasing(a, c, b)", arms=(zero, third, first), predicts=">= -7", falsifier="< -7"
        )
        assert three.judge().reason is not Reason.DRIFT
