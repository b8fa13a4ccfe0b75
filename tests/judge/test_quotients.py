from __future__ import annotations

import math

import pytest

from pytest_prereg.judge import Reason, Verdict, paired_fieller, unpaired_fieller

LEFT = [1.31, 1.36, 1.27, 1.35, 1.30, 1.33, 1.29]
RIGHT = [1.00, 1.04, 0.97, 1.02, 0.99, 1.03, 0.98]
RISING = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]
SHARED = {"idle": {"unit": "s"}, "step": {"unit": "s"}}


def limits(interval):
    return pytest.approx((interval.low, interval.high), rel=1e-13)


def ratio(study, pairing="block", **more):
    made = study(
        **{
            "statistic": "mean",
            "contrast": "a / b",
            "pairing": pairing,
            "predicts": ">= 1.2",
            "falsifier": "< 1.2",
        }
        | more
    )
    return made.blocks(*zip(LEFT, RIGHT, strict=True))


def sums(study, **more):
    return study(
        **{
            "statistic": "ratio-of-sums",
            "quantity": "idle",
            "divisor": "step",
            "metrics": SHARED,
            "predicts": ">= 1.2",
            "falsifier": "< 1.2",
        }
        | more
    )


def fill(made, above=LEFT, below=RIGHT):
    for idle, step in zip(above, below, strict=True):
        made.add({"idle": idle, "step": step})
    return made


class TestMeans:
    def test_blocks_pair_the_arms(self, study):
        judgement = ratio(study).judge()
        assert judgement.interval == limits(paired_fieller(LEFT, RIGHT))
        assert judgement.estimate == pytest.approx(sum(LEFT) / sum(RIGHT))
        assert (judgement.verdict, judgement.method) == (Verdict.SUPPORTED, "Fieller, paired")
        assert (judgement.flags, judgement.n, len(judgement.repeats)) == (("approximate",), 7, 14)

    def test_without_blocks_the_degrees_of_freedom_are_satterthwaites(self, study):
        judgement = ratio(study, "none").judge()
        assert judgement.interval == limits(unpaired_fieller(LEFT, RIGHT))
        assert (judgement.verdict, judgement.method) == (Verdict.SUPPORTED, "Fieller")

    def test_it_is_no_ratio_of_geometric_means(self, study):
        assert ratio(study).judge().estimate != ratio(study, statistic="geometric-mean").judge().estimate

    def test_a_region_beyond_it_refutes(self, study):
        assert ratio(study, predicts=">= 1.5", falsifier="< 1.5").judge().verdict is Verdict.REFUTED

    def test_values_that_are_not_positive_have_a_ratio_of_means(self, study):
        made = study(statistic="mean", contrast="a / b", pairing="block", predicts="<= 1", falsifier="> 1")
        above, below = [-0.1, 0.0, 0.2, 0.1, -0.2], [2.0, 2.1, 1.9, 2.05, 1.95]
        judgement = made.blocks(*zip(above, below, strict=True)).judge()
        assert judgement.verdict is Verdict.SUPPORTED
        assert judgement.interval == limits(paired_fieller(above, below))

    @pytest.mark.parametrize("pairing", ["block", "none"])
    def test_a_negative_denominator_turns_the_sign_and_no_region(self, study, pairing):
        positive = ratio(study, pairing, predicts="<= -1.2", falsifier="> -1.2")
        assert positive.judge().verdict is Verdict.REFUTED
        negative = study(
            statistic="mean", contrast="a / b", pairing=pairing, predicts="<= -1.2", falsifier="> -1.2"
        )
        negative.blocks(*[(left, -right) for left, right in zip(LEFT, RIGHT, strict=True)])
        judgement = negative.judge()
        assert judgement.verdict is Verdict.SUPPORTED
        low, high = positive.judge().interval
        assert judgement.interval == pytest.approx((-high, -low))

    @pytest.mark.parametrize("pairing", ["block", "none"])
    def test_a_denominator_that_could_be_zero_leaves_it_unbounded(self, study, pairing):
        made = study(statistic="mean", contrast="a / b", pairing=pairing, predicts="<= 9", falsifier="> 9")
        judgement = made.blocks((1.0, 0.1), (1.1, -0.2), (1.2, 0.3)).judge()
        assert (judgement.reason, judgement.interval) == (Reason.UNBOUNDED, (-math.inf, math.inf))
        assert judgement.detail == "the mean of the denominator cannot be told from 0"

    def test_a_denominator_of_zero_has_no_estimate_either(self, study):
        made = study(statistic="mean", contrast="a / b", pairing="block", predicts="<= 9", falsifier="> 9")
        judgement = made.blocks((1.0, 1.0), (1.1, -1.0), (1.3, 0.0)).judge()
        assert (judgement.reason, judgement.estimate) == (Reason.UNBOUNDED, None)

    def test_two_blocks_are_too_few(self, study):
        made = study(statistic="mean", contrast="a / b", pairing="block", predicts="<= 9", falsifier="> 9")
        assert made.blocks((1.0, 1.0), (1.1, 1.0)).judge().detail == "needs 3 blocks, has 2"
        made.pairing = "none"
        assert made.judge().detail == "needs 3 repeats per arm, has 2"

    def test_a_block_that_misses_an_arm_is_dropped_whole(self, study):
        judgement = ratio(study).add(99.0, arm="a", block=8).judge()
        assert judgement.interval == limits(paired_fieller(LEFT, RIGHT))

    def test_a_timeout_is_a_rare_event(self, study):
        made = ratio(study, "none").add(arm="b", outcome="timeout")
        assert (made.judge().reason, made.judge().interval) == (Reason.RARE_EVENT, None)
        for _ in range(4):
            made.add(arm="a", outcome="timeout")
        assert made.judge().reason is Reason.CENSORED
        assert made.judge().detail.endswith("the ratio has no value without what was cut off")

    def test_two_distinct_contrasts_decide_nothing(self, study):
        made = study(statistic="mean", contrast="a / b", pairing="block", predicts="<= 9", falsifier="> 9")
        made.blocks((2.0, 1.0), (4.0, 2.0), (6.0, 3.0), (8.0, 4.0))
        assert made.judge().reason is Reason.RESOLUTION
        made.metrics = {"t": {"unit": "token", "exact": True}}
        assert (made.judge().verdict, made.judge().interval) == (Verdict.SUPPORTED, (2.0, 2.0))

    def test_without_blocks_each_arm_needs_three_values(self, study):
        made = study(statistic="mean", contrast="a / b", predicts="<= 9", falsifier="> 9")
        made.extend(*LEFT, arm="a").extend(1.0, 1.0, 1.0, 1.1, arm="b")
        assert made.judge().reason is Reason.RESOLUTION


class TestDrift:
    def test_what_both_arms_share_is_no_drift_of_a_paired_ratio(self, study):
        made = study(
            statistic="mean", contrast="a / b", pairing="block", predicts=">= 1.29", falsifier="< 1.29"
        )
        made.blocks(*[(rise * 1.3 * noise, rise) for rise, noise in zip(RISING, RIGHT, strict=True)])
        assert made.judge().reason is not Reason.DRIFT
        made.pairing = "none"
        made.predicts, made.falsifier = ">= 0.85", "< 0.85"
        assert made.judge().reason is Reason.DRIFT

    def test_a_trend_of_the_block_ratio_forbids_a_verdict_unless_each_block_agrees(self, study):
        made = study(
            statistic="mean", contrast="a / b", pairing="block", predicts=">= 1.05", falsifier="< 1.05"
        )
        made.blocks(*zip(RISING, RIGHT, strict=True))
        ratios = [a / b for a, b in zip(RISING, RIGHT, strict=True)]
        assert min(ratios) < 1.05 < made.judge().interval[0]
        assert made.judge().reason is Reason.DRIFT
        made.predicts, made.falsifier = ">= 0.99", "< 0.99"
        assert made.judge().verdict is Verdict.SUPPORTED

    def test_without_blocks_every_pair_has_to_agree(self, study):
        made = study(statistic="mean", contrast="a / b", predicts=">= 0.97", falsifier="< 0.97")
        made.extend(*RISING, arm="a").extend(*RIGHT, arm="b")
        assert made.judge().interval[0] > 0.97 > min(RISING) / max(RIGHT)
        assert made.judge().reason is Reason.DRIFT
        made.predicts, made.falsifier = ">= 0.95", "< 0.95"
        assert made.judge().verdict is Verdict.SUPPORTED

    def test_where_a_denominator_may_be_zero_no_block_can_agree(self, study):
        made = study(statistic="mean", contrast="a / b", pairing="block", predicts=">= -9", falsifier="< -9")
        below = [2.0, 2.1, 1.9, -0.1, 2.05, 1.95, 2.02, 2.08]
        above = [0.1 * k * k for k in range(1, 9)]
        judgement = made.blocks(*zip(above, below, strict=True)).judge()
        assert judgement.interval[0] > -9
        assert judgement.reason is Reason.DRIFT


class TestSums:
    def test_numerator_and_denominator_are_summed_over_repeats(self, study):
        judgement = fill(sums(study)).judge()
        assert judgement.estimate == pytest.approx(sum(LEFT) / sum(RIGHT))
        assert judgement.interval == limits(paired_fieller(LEFT, RIGHT))
        assert (judgement.verdict, judgement.n, judgement.method) == (
            Verdict.SUPPORTED,
            7,
            "Fieller, paired",
        )

    def test_the_unit_shown_scales_it(self, study):
        made = fill(sums(study, predicts=">= 120 %", falsifier="< 120 %", scale=100.0))
        expected = paired_fieller(LEFT, RIGHT)
        assert made.judge().verdict is Verdict.SUPPORTED
        assert made.judge().interval == pytest.approx((100 * expected.low, 100 * expected.high), rel=1e-13)

    def test_a_denominator_that_is_not_finite_names_the_repeat(self, study):
        made = fill(sums(study)).add({"idle": 1.0, "step": math.inf})
        with pytest.raises(Exception, match="e/1/8: its denominator is inf"):
            made.judge()

    def test_a_resolution_of_either_part_widens(self, study):
        plain = fill(sums(study)).judge().interval
        coarse = SHARED | {"step": {"unit": "s", "resolution": 0.02}}
        low, high = fill(sums(study, metrics=coarse)).judge().interval
        mean = sum(RIGHT) / 7
        assert low == pytest.approx(plain[0] - plain[0] * 0.01 / (mean - 0.01))
        assert high == pytest.approx(plain[1] + plain[1] * 0.01 / (mean - 0.01))
        coarse = SHARED | {"idle": {"unit": "s", "resolution": 0.03}}
        low, high = fill(sums(study, metrics=coarse)).judge().interval
        assert (low, high) == pytest.approx((plain[0] - 0.015 / mean, plain[1] + 0.015 / mean))

    def test_a_resolution_that_could_make_the_denominator_zero_leaves_it_unbounded(self, study):
        coarse = SHARED | {"step": {"unit": "s", "resolution": 3.0}}
        assert fill(sums(study, metrics=coarse)).judge().reason is Reason.UNBOUNDED

    def test_a_cap_that_was_never_reached_is_flagged(self, study):
        capped = SHARED | {"step": {"unit": "s", "cap": 5.0}}
        judgement = fill(sums(study, metrics=capped)).judge()
        assert judgement.flags == ("approximate", "tail-untested")
        made = fill(sums(study, metrics=capped)).add({"idle": 1.0, "step": 5.0})
        assert made.judge().reason is Reason.RARE_EVENT

    def test_a_drift_is_one_of_the_ratio_in_each_repeat(self, study):
        steady = fill(sums(study, predicts=">= 0.9", falsifier="< 0.9"), RISING, [*RISING[:6], 1.59])
        assert steady.judge().reason is not Reason.DRIFT
        rising = fill(sums(study, predicts=">= 1.05", falsifier="< 1.05"), RISING, RIGHT)
        assert rising.judge().reason is Reason.DRIFT
