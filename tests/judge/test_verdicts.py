from __future__ import annotations

import math

import pytest

from pytest_prereg.errors import JudgeError
from pytest_prereg.judge import Reason, Verdict, order_statistic_median, student_t, welch

STEADY = [1.00, 1.04, 0.97, 1.02, 0.99, 1.03, 0.98]
HIGHER = [1.31, 1.36, 1.27, 1.35, 1.30, 1.33, 1.29]
RISING = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]


def test_an_interval_inside_the_predicted_region_supports(study):
    judgement = study(predicts="<= 1.1", falsifier="> 1.1").extend(*STEADY).judge()
    expected = student_t(STEADY)
    assert (judgement.verdict, judgement.reason, judgement.detail) == (Verdict.SUPPORTED, None, None)
    assert judgement.interval == pytest.approx((expected.low, expected.high), rel=1e-14)
    assert (judgement.n, judgement.method, judgement.confidence) == (7, "Student t", 0.95)
    assert judgement.repeats == tuple(f"e/1/{k}" for k in range(1, 8))


def test_an_interval_inside_the_falsifier_refutes(study):
    assert study(predicts="<= 0.5", falsifier=">= 0.9").extend(*STEADY).judge().verdict is Verdict.REFUTED


def test_an_edge_inside_the_interval_leaves_it_undecided(study):
    judgement = study(predicts="<= 1", falsifier="> 1").extend(*STEADY).judge()
    assert (judgement.reason, judgement.detail) == (Reason.STRADDLES, "straddles 1")


def test_an_interval_between_the_regions_says_so(study):
    judgement = study(predicts="<= 0.5", falsifier=">= 2").extend(*STEADY).judge()
    assert judgement.detail == "lies between 0.5 and 2, in neither region"


def test_numbers_are_kept_at_fifteen_digits(study):
    judgement = study().extend(*STEADY).judge()
    for value in (judgement.estimate, *judgement.interval):
        assert float(f"{value:.15g}") == value


def test_the_unit_shown_scales_quantity_and_interval(study):
    judgement = study(predicts="<= 1100", falsifier="> 1100", scale=1000.0).extend(*STEADY).judge()
    assert judgement.verdict is Verdict.SUPPORTED
    assert judgement.estimate == pytest.approx(1000 * sum(STEADY) / 7)


def test_the_quantity_is_evaluated_inside_each_repeat(study):
    ratio = study(
        quantity="train / (gen * constants.k)",
        metrics={"train": {"unit": "s"}, "gen": {"unit": "s"}},
        constants={"k": 2.0},
    )
    for train, gen in ((2.0, 1.0), (4.4, 2.0), (6.9, 3.0)):
        ratio.add({"train": train, "gen": gen})
    assert ratio.judge().estimate == pytest.approx((1.0 + 1.1 + 1.15) / 3)


def test_two_repeats_are_too_few_for_a_mean(study):
    judgement = study().extend(1.0, 1.1).judge()
    assert (judgement.reason, judgement.detail) == (Reason.N_TOO_SMALL, "needs 3 repeats, has 2")
    assert judgement.interval is None
    assert judgement.estimate is None


def test_a_skewed_mean_takes_the_hull_and_is_flagged_approximate(study):
    judgement = study(predicts="<= 100", falsifier="> 100").extend(1.0, 2.0, 1.2, 5.0, 1.1).judge()
    plain = student_t([1.0, 2.0, 1.2, 5.0, 1.1])
    assert judgement.method == "hull of Student t and modified Cox"
    assert judgement.interval[1] > plain.high
    assert judgement.interval[0] == pytest.approx(plain.low)
    assert judgement.flags == ("approximate",)


def test_a_skewed_mean_needs_five_repeats(study):
    judgement = study().extend(1.0, 2.0, 1.2, 5.0).judge()
    assert (judgement.reason, judgement.interval) == (Reason.N_TOO_SMALL, None)
    assert judgement.detail == "needs 5 repeats where the CV is above 0.2, has 4"


def test_values_of_both_signs_keep_students_t(study):
    judgement = study(predicts="[-5, 5]", falsifier="outside [-10, 10]").extend(12.27, -0.33, -10.88).judge()
    assert judgement.method == "Student t"
    assert judgement.reason is Reason.STRADDLES


class TestContrasts:
    def two(self, study, contrast="a - b", pairing="block", **more):
        made = study(contrast=contrast, pairing=pairing, **more)
        for block, (left, right) in enumerate(zip(HIGHER, STEADY, strict=True), 1):
            made.add(left, arm="a", block=block).add(right, arm="b", block=block)
        return made

    def test_blocks_pair_the_arms(self, study):
        made = self.two(study, predicts=">= 0.2", falsifier="< 0.2")
        judgement = made.judge()
        expected = student_t([a - b for a, b in zip(HIGHER, STEADY, strict=True)])
        assert judgement.interval == pytest.approx((expected.low, expected.high))
        assert (judgement.method, judgement.n, len(judgement.repeats)) == ("paired t", 7, 14)

    def test_pairing_goes_by_block_not_by_order(self, study):
        made = study(contrast="a - b", pairing="block", predicts=">= 0.2", falsifier="< 0.2")
        for block in (3, 1, 2):
            made.add(block + 0.3 + block / 100, arm="a", block=block)
        for block in (1, 2, 3):
            made.add(float(block), arm="b", block=block)
        judgement = made.judge()
        assert judgement.verdict is Verdict.SUPPORTED
        assert judgement.interval[1] - judgement.interval[0] < 0.1

    def test_without_blocks_the_interval_is_welchs(self, study):
        judgement = self.two(study, pairing="none", predicts=">= 0.2", falsifier="< 0.2").judge()
        expected = welch(HIGHER, STEADY)
        assert judgement.interval == pytest.approx((expected.low, expected.high))
        assert (judgement.method, judgement.flags) == ("Welch t", ("approximate",))

    @pytest.mark.parametrize("pairing", ["block", "none"])
    def test_a_ratio_is_one_of_geometric_means(self, study, pairing):
        made = self.two(study, contrast="a / b", pairing=pairing, predicts=">= 1.2", falsifier="< 1.2")
        judgement = made.judge()
        logs = sum(map(math.log, HIGHER)) / 7 - sum(map(math.log, STEADY)) / 7
        assert judgement.estimate == pytest.approx(math.exp(logs))
        assert judgement.verdict is Verdict.SUPPORTED

    def test_a_block_that_misses_an_arm_is_dropped_whole(self, study):
        made = self.two(study, predicts=">= 0.2", falsifier="< 0.2").add(99.0, arm="a", block=8)
        judgement = made.judge()
        assert judgement.n == 7
        assert "e/1/a/8" not in judgement.repeats
        assert judgement.verdict is Verdict.SUPPORTED

    def test_two_repeats_of_an_arm_in_one_block_are_an_error(self, study):
        with pytest.raises(JudgeError, match=r"PR141: repeats e/1/a/7 and e/1/a/8 are in one block"):
            self.two(study).add(1.0, arm="a", block=7).judge()

    def test_the_smaller_arm_counts(self, study):
        made = study(contrast="a - b", planned={"a": 5, "b": 3}).extend(*HIGHER[:5], arm="a")
        judgement = made.extend(*STEADY[:3], arm="b").judge()
        assert (judgement.n, judgement.planned) == (3, 3)

    def test_an_arm_of_two_is_too_small(self, study):
        judgement = study(contrast="a / b").extend(*HIGHER, arm="a").extend(1.0, 1.1, arm="b").judge()
        assert judgement.detail == "needs 3 repeats per arm, has 2"

    def test_other_arms_are_not_looked_at(self, study):
        made = self.two(study, predicts=">= 0.2", falsifier="< 0.2").add(arm="c", outcome="task-failed")
        assert made.judge().verdict is Verdict.SUPPORTED


class TestMedian:
    def test_the_level_achieved_is_the_confidence(self, study):
        judgement = study(statistic="median", predicts="<= 1.1", falsifier="> 1.1").extend(*STEADY).judge()
        assert judgement.confidence == 0.984375
        assert judgement.interval == (0.97, 1.04)
        assert judgement.estimate == 1.0
        assert judgement.verdict is Verdict.SUPPORTED

    def test_five_repeats_are_too_few(self, study):
        judgement = study(statistic="median").extend(*STEADY[:5]).judge()
        assert (judgement.reason, judgement.detail) == (Reason.N_TOO_SMALL, "needs 6 repeats, has 5")

    def test_a_timeout_ranks_above_all_durations(self, study):
        judgement = study(statistic="median", predicts=">= 0.9", falsifier="< 0.9").extend(*STEADY)
        judgement = judgement.add(outcome="timeout").judge()
        assert judgement.interval == (0.97, math.inf)
        assert judgement.verdict is Verdict.SUPPORTED

    def test_a_timeout_of_anything_else_ranks_at_both_ends(self, study):
        made = study(
            statistic="median",
            quantity="loss",
            metrics={"loss": {"unit": "nat"}},
            predicts="[0.9, 1.1]",
            falsifier="outside [0.5, 2]",
        )
        for value in [*STEADY, 1.01]:
            made.add({"loss": value})
        assert made.judge().verdict is Verdict.SUPPORTED
        # At nine the second and the eighth bound the median, so one timeout at either end is survived.
        assert made.add(outcome="timeout").judge().interval == (0.97, 1.04)
        assert made.add(outcome="timeout").judge().interval == (-math.inf, math.inf)

    def test_a_capped_duration_is_known_to_be_at_least_its_cap(self, study):
        made = study(
            statistic="median",
            metrics={"t": {"unit": "s", "cap": 5.0}},
            predicts="<= 10",
            falsifier="> 10",
        )
        judgement = made.extend(*[5.0] * 7).judge()
        assert judgement.interval == (5.0, math.inf)
        assert judgement.reason is Reason.STRADDLES

    def test_a_drifting_median_decides_nothing_unless_all_repeats_agree(self, study):
        rising = study(statistic="median", predicts="<= 1.6", falsifier="> 1.6").extend(*RISING)
        assert rising.judge().verdict is Verdict.SUPPORTED
        assert study(statistic="median", predicts="<= 1.5", falsifier="> 1.5").extend(
            *RISING
        ).judge().reason is (Reason.DRIFT)

    def test_it_agrees_with_the_function_on_its_own(self, study):
        judgement = (
            study(statistic="median", predicts="<= 9", falsifier="> 9").extend(*HIGHER, *STEADY).judge()
        )
        expected = order_statistic_median([*HIGHER, *STEADY])
        assert judgement.interval == (expected.low, expected.high)
        assert judgement.estimate == pytest.approx(expected.estimate)


class TestProportion:
    def test_failures_and_timeouts_count(self, study):
        made = study(statistic="proportion", quantity="completed", predicts=">= 0.5", falsifier="< 0.5")
        made.extend(*STEADY[:6]).add(outcome="task-failed").add(outcome="timeout")
        judgement = made.judge()
        assert (judgement.estimate, judgement.n) == (0.75, 8)
        assert judgement.interval == pytest.approx((0.3491, 0.9681), abs=5e-5)
        assert judgement.reason is Reason.STRADDLES

    def test_a_comparison_that_a_timeout_never_reached_is_a_failure(self, study):
        made = study(statistic="proportion", quantity="t <= 30", predicts=">= 0.1", falsifier="< 0.1")
        judgement = made.extend(10.0, 20.0, 40.0).add({"t": 1.0}, outcome="timeout").judge()
        assert judgement.estimate == 0.5

    def test_a_timeout_is_longer_than_any_bound(self, study):
        made = study(statistic="proportion", quantity="t > 30", predicts="<= 0.1", falsifier="> 0.1")
        assert made.extend(10.0, 20.0, 40.0).add(outcome="timeout").judge().estimate == 0.5

    def test_a_quantity_that_counts_failures_counts_them(self, study):
        made = study(statistic="proportion", quantity="1 - completed", predicts="<= 0.1", falsifier="> 0.1")
        assert made.extend(1.0, 1.0, 1.0).add(outcome="task-failed").judge().estimate == 0.25

    def test_one_repeat_can_refute(self, study):
        made = study(statistic="proportion", quantity="completed", predicts=">= 0.99", falsifier="< 0.99")
        assert made.add(outcome="task-failed").judge().verdict is Verdict.REFUTED

    def test_too_few_repeats_ever_to_support_are_named(self, study):
        made = study(statistic="proportion", quantity="completed", predicts=">= 0.9", falsifier="< 0.5")
        judgement = made.extend(*STEADY).judge()
        assert (judgement.reason, judgement.detail) == (Reason.N_TOO_SMALL, "needs 36 to support, has 7")
        assert judgement.interval == pytest.approx((0.590, 1.0), abs=5e-4)

    def test_it_may_be_shown_in_per_cent(self, study):
        made = study(statistic="proportion", quantity="completed", predicts=">= 50 %", falsifier="< 50 %")
        made.scale = 100.0
        judgement = made.extend(*STEADY, 1.0).judge()
        assert (judgement.verdict, judgement.estimate) == (Verdict.SUPPORTED, 100.0)
        assert judgement.interval == pytest.approx((63.06, 100.0), abs=5e-3)
        made.predicts = ">= 90 %"
        assert made.judge().detail == "needs 36 to support, has 8"

    def test_drift_is_not_tested(self, study):
        made = study(statistic="proportion", quantity="t <= 1.35", predicts=">= 0.01", falsifier="< 0.01")
        assert made.extend(*RISING).judge().verdict is Verdict.SUPPORTED

    def test_other_values_than_0_and_1_are_an_error(self, study):
        made = study(statistic="proportion").extend(1.0, 0.5)
        with pytest.raises(JudgeError, match=r"e/1/2: a proportion counts 0 and 1, and it is 0\.5"):
            made.judge()


class TestDrift:
    def test_a_drifting_mean_decides_nothing(self, study):
        judgement = study(predicts="<= 1.55", falsifier="> 1.55").extend(*RISING).judge()
        assert (judgement.verdict, judgement.reason) == (Verdict.INCONCLUSIVE, Reason.DRIFT)
        assert judgement.interval[1] < 1.55

    def test_it_decides_where_every_repeat_lies_in_the_deciding_region(self, study):
        assert (
            study(predicts="<= 1.6", falsifier="> 1.6").extend(*RISING).judge().verdict is Verdict.SUPPORTED
        )
        assert study(predicts="< 1", falsifier=">= 1").extend(*RISING).judge().verdict is Verdict.REFUTED

    def test_order_is_the_run_order_not_the_order_of_lines(self, study):
        shuffled = study(predicts="<= 1.55", falsifier="> 1.55")
        for value, position in zip(RISING, (3, 0, 6, 1, 5, 2, 4), strict=True):
            shuffled.add(value, position=position)
        assert shuffled.judge().verdict is Verdict.SUPPORTED

    def test_a_drift_that_both_arms_share_is_none_of_a_paired_contrast(self, study):
        made = study(contrast="a - b", pairing="block", predicts=">= 0.2", falsifier="< 0.2")
        for block, (drift, noise) in enumerate(zip(RISING, STEADY, strict=True), 1):
            made.add(drift + 0.3, arm="a", block=block).add(drift + noise / 50, arm="b", block=block)
        assert made.judge().verdict is Verdict.SUPPORTED

    def test_without_blocks_each_arm_is_tested(self, study):
        made = study(contrast="a - b", predicts="<= 0.5", falsifier="> 0.5")
        judgement = made.extend(*RISING, arm="a").extend(*STEADY, arm="b").judge()
        assert judgement.reason is Reason.DRIFT

    def test_without_blocks_every_pair_has_to_agree(self, study):
        made = study(contrast="a / b", predicts=">= 0.9", falsifier="< 0.9")
        judgement = made.extend(*RISING, arm="a").extend(*STEADY, arm="b").judge()
        assert judgement.verdict is Verdict.SUPPORTED
        made.predicts, made.falsifier = ">= 0.97", "< 0.97"
        assert made.judge().reason is Reason.DRIFT


class TestCutOff:
    def test_one_timeout_in_a_mean_is_a_rare_event(self, study):
        judgement = study().extend(*STEADY[:6]).add(outcome="timeout").judge()
        assert (judgement.reason, judgement.interval, judgement.n) == (Reason.RARE_EVENT, None, 7)

    @pytest.mark.parametrize(("timeouts", "reason"), [(4, Reason.RARE_EVENT), (5, Reason.CENSORED)])
    def test_five_timeouts_are_a_censored_mean(self, study, timeouts, reason):
        made = study().extend(*STEADY)
        for _ in range(timeouts):
            made.add(outcome="timeout")
        assert made.judge().reason is reason

    def test_timeouts_of_both_arms_count_together(self, study):
        made = study(contrast="a / b", predicts=">= 1", falsifier="< 1")
        for arm in ("a", "b"):
            made.extend(*STEADY, arm=arm)
            for _ in range(3):
                made.add(arm=arm, outcome="timeout")
        assert made.judge().reason is Reason.CENSORED

    def test_a_block_with_a_timeout_is_not_a_block_that_misses_an_arm(self, study):
        made = study(contrast="a - b", pairing="block")
        for block in range(1, 5):
            made.add(STEADY[block], arm="a", block=block).add(HIGHER[block], arm="b", block=block)
        made.add(arm="a", block=5, outcome="timeout").add(1.0, arm="b", block=5)
        assert made.judge().reason is Reason.RARE_EVENT

    def test_samples_at_the_cap_count_as_cut_off(self, study):
        made = study(quantity="mean(t)", metrics={"t": {"unit": "s", "cap": 5.0}})
        made.extend([1.0, 1.1], [1.2, 1.3], [1.4, 5.0])
        assert made.judge().reason is Reason.RARE_EVENT
        assert made.extend([5.0] * 4).judge().reason is Reason.CENSORED

    def test_a_cap_that_was_never_reached_is_flagged_with_its_rate(self, study):
        judgement = study(metrics={"t": {"unit": "s", "cap": 5.0}}).extend(*STEADY).judge()
        assert judgement.verdict is Verdict.SUPPORTED
        assert judgement.flags == ("tail-untested",)
        assert judgement.detail == "no repeat reached the cap: up to 41 % of repeats still may"

    def test_timeouts_leave_a_proportion_alone(self, study):
        made = study(
            statistic="proportion",
            quantity="t <= 3",
            metrics={"t": {"unit": "s", "cap": 5.0}},
            predicts=">= 0.05",
            falsifier="< 0.05",
        )
        judgement = made.extend(*STEADY).add(outcome="timeout").judge()
        assert (judgement.verdict, judgement.flags) == (Verdict.SUPPORTED, ())


class TestResolution:
    def test_two_distinct_values_decide_nothing(self, study):
        judgement = study().extend(1.0, 1.0, 1.1, 1.1).judge()
        assert judgement.reason is Reason.RESOLUTION
        assert judgement.interval is not None

    def test_equal_values_decide_nothing(self, study):
        assert study().extend(1.0, 1.0, 1.0).judge().reason is Reason.RESOLUTION

    def test_exact_metrics_may_be_equal(self, study):
        judgement = study(metrics={"t": {"unit": "token", "exact": True}}).extend(1.0, 1.0, 1.0).judge()
        assert (judgement.verdict, judgement.interval) == (Verdict.SUPPORTED, (1.0, 1.0))

    def test_a_count_that_is_0_throughout_is_below_1(self, study):
        exact = {"t": {"unit": "1", "exact": True}}
        made = study(metrics=exact, predicts="<= 0", falsifier=">= 1").extend(*[0.0] * 10)
        assert made.judge().verdict is Verdict.SUPPORTED

    @pytest.mark.parametrize("values", [[0.0] * 10, [0.0] * 29 + [1.0]], ids=["all 0", "both"])
    def test_a_mean_of_yes_and_no_decides_nothing(self, study, values):
        exact = {"t": {"unit": "1", "exact": True}}
        made = study(metrics=exact, predicts="<= 0.2", falsifier=">= 0.4").extend(*values)
        judgement = made.judge()
        assert (judgement.verdict, judgement.reason) == (Verdict.INCONCLUSIVE, Reason.RESOLUTION)
        assert judgement.detail == 'every value is 0 or 1; that is for statistic = "proportion"'

    def test_all_metrics_have_to_be_exact(self, study):
        metrics = {"t": {"unit": "token", "exact": True}, "u": {"unit": "s"}}
        made = study(quantity="t / u", metrics=metrics)
        for _ in range(3):
            made.add({"t": 1.0, "u": 1.0})
        assert made.judge().reason is Reason.RESOLUTION

    def test_rounding_is_no_variation(self, study):
        made = study(contrast="a - b", pairing="block", predicts="[0, 1]", falsifier="outside [0, 1]")
        for block, left in enumerate((0.3, 0.2, 0.7, 0.4), 1):
            made.add(left, arm="a", block=block).add(left - 0.1, arm="b", block=block)
        assert len({0.3 - 0.2, 0.2 - 0.1, 0.7 - 0.6, 0.4 - 0.3}) > 2
        assert made.judge().reason is Reason.RESOLUTION

    def test_each_arm_without_blocks_needs_three_values(self, study):
        made = study(contrast="a - b").extend(*STEADY, arm="a").extend(1.0, 1.0, 1.1, arm="b")
        assert made.judge().reason is Reason.RESOLUTION

    def test_a_coarse_resolution_widens_by_half_of_it(self, study):
        plain = study().extend(*STEADY).judge().interval
        coarse = study(metrics={"t": {"unit": "s", "resolution": 0.02}}).extend(*STEADY).judge().interval
        assert coarse == pytest.approx((plain[0] - 0.01, plain[1] + 0.01))

    def test_a_fine_resolution_changes_nothing(self, study):
        plain = study().extend(*STEADY).judge().interval
        assert (
            study(metrics={"t": {"unit": "s", "resolution": 0.01}}).extend(*STEADY).judge().interval == plain
        )

    def test_the_resolution_of_a_metric_is_carried_through_the_quantity(self, study):
        metrics = {"t": {"unit": "s", "resolution": 0.02}}
        plain = study(quantity="3 * t").extend(*STEADY).judge().interval
        coarse = study(quantity="3 * t", metrics=metrics).extend(*STEADY).judge().interval
        assert coarse == pytest.approx((plain[0] - 0.03, plain[1] + 0.03))

    def test_the_resolution_of_a_ratio_is_relative(self, study):
        metrics = {"t": {"unit": "s", "resolution": 0.2}}
        made = {
            name: study(contrast="a / b", predicts=">= 1", falsifier="< 1") for name in ("plain", "coarse")
        }
        made["coarse"].metrics = metrics
        for each in made.values():
            each.extend(10.0, 10.1, 9.9, 10.05, arm="a").extend(5.0, 5.1, 4.9, 5.05, arm="b")
        plain, coarse = (made[name].judge().interval for name in ("plain", "coarse"))
        assert math.log(coarse[1] / plain[1]) == pytest.approx(0.1 / 9.9 + 0.1 / 4.9, rel=1e-6)


class TestUnbounded:
    @pytest.mark.parametrize("value", [0.0, -1.0])
    def test_no_ratio_of_what_is_not_positive(self, study, value):
        made = study(contrast="a / b", predicts=">= 1", falsifier="< 1")
        judgement = made.extend(1.0, 2.0, 3.0, arm="a").extend(1.0, 2.0, value, arm="b").judge()
        assert (judgement.reason, judgement.interval) == (Reason.UNBOUNDED, None)
        assert judgement.detail == f"repeat e/1/b/3 is {value:g}, which has no logarithm"

    def test_a_geometric_mean_is_taken_on_logs(self, study):
        made = study(statistic="geometric-mean", predicts="<= 9", falsifier="> 9").extend(1.0, 2.0, 4.0)
        assert made.judge().estimate == pytest.approx(2.0)


class TestNotFinite:
    @pytest.mark.parametrize("value", [math.nan, math.inf])
    def test_the_repeat_is_named(self, study, value):
        with pytest.raises(JudgeError, match=r'PR140: "t" of prediction "p" has no value in repeat e/1/3'):
            study().extend(1.0, 2.0, value).judge()

    def test_a_division_by_zero_names_the_repeat(self, study):
        with pytest.raises(JudgeError, match="e/1/2: float division by zero"):
            study(quantity="1 / t").extend(1.0, 0.0, 2.0).judge()

    def test_numbers_whose_differences_vanish_when_squared_are_an_error_too(self, study):
        with pytest.raises(JudgeError, match="too close together, to judge"):
            study(predicts=">= 1e-200", falsifier="<= 0").extend(1e-190, 1.1e-190, 0.9e-190).judge()

    def test_numbers_that_overflow_are_an_error_too(self, study):
        with pytest.raises(JudgeError, match="too large, or too close together, to judge"):
            study().extend(1e300, 2e300, 3e300).judge()


class TestObstacles:
    def test_integrity_comes_first_and_the_interval_is_shown(self, study):
        made = study(predicts="<= 1.1", falsifier="> 1.1").extend(*STEADY)
        judgement = made.add(outcome="task-failed").judge(
            obstacles=[(Reason.INTEGRITY, "two branches used series 1")]
        )
        assert (judgement.reason, judgement.detail) == (Reason.INTEGRITY, "two branches used series 1")
        assert judgement.interval is not None

    def test_arms_on_different_machines_are_out_of_scope(self, study):
        made = study(contrast="a - b", predicts=">= 0.2", falsifier="< 0.2")
        judgement = (
            made.extend(*HIGHER, arm="a", machine="H100").extend(*STEADY, arm="b", machine="A100").judge()
        )
        assert judgement.reason is Reason.SCOPE
        assert judgement.detail == "the arms ran on different machines: a on H100; b on A100"
        assert judgement.interval[0] > 0.2

    def test_an_unknown_machine_is_like_any_other(self, study):
        made = study(contrast="a - b", predicts=">= 0.2", falsifier="< 0.2")
        made.extend(*HIGHER, arm="a", machine="H100").extend(*STEADY, arm="b")
        assert made.judge().verdict is Verdict.SUPPORTED

    def test_a_series_over_two_machines_is_out_of_scope(self, study):
        made = study().extend(*STEADY, machine="H100").add(1.0, machine="A100")
        assert made.judge().reason is Reason.SCOPE

    def test_blocks_may_run_on_different_machines_if_each_runs_on_one(self, study):
        made = study(contrast="a - b", pairing="block", predicts=">= 0.2", falsifier="< 0.2")
        for block, (left, right) in enumerate(zip(HIGHER, STEADY, strict=True)):
            machine = "H100" if block < 4 else "A100"
            made.add(left, arm="a", block=block, machine=machine)
            made.add(right, arm="b", block=block, machine=machine)
        assert made.judge().verdict is Verdict.SUPPORTED
        made.add(1.3, arm="a", block=9, machine="H100").add(1.0, arm="b", block=9, machine="A100")
        assert made.judge().reason is Reason.SCOPE

    @pytest.mark.parametrize(("faults", "verdict"), [(2, Verdict.SUPPORTED), (3, Verdict.INCONCLUSIVE)])
    def test_more_than_two_faults_of_seven_are_too_many(self, study, faults, verdict):
        made = study(planned={"": 7}, faults=("e/1/1",) * faults).extend(*STEADY)
        assert made.judge().verdict is verdict

    def test_a_quarter_of_many_repeats_may_fail(self, study):
        made = study(planned={"": 14}, faults=("e/1/1",) * 3).extend(*STEADY, *STEADY)
        assert made.judge().verdict is Verdict.SUPPORTED

    def test_faults_of_other_arms_do_not_count(self, study):
        made = study(contrast="a - b", faults=("e/1/c/1",) * 9, predicts=">= 0.2", falsifier="< 0.2")
        made.extend(*HIGHER, arm="a").extend(*STEADY, arm="b")
        assert made.judge().verdict is Verdict.SUPPORTED
        made.faults = ("e/1/a/1", "e/1/b/2", "e/1/b/2")
        assert made.judge().reason is Reason.INFRASTRUCTURE

    @pytest.mark.parametrize("statistic", ["mean", "median", "geometric-mean"])
    def test_a_failure_is_never_dropped(self, study, statistic):
        judgement = study(statistic=statistic).extend(*STEADY).add(outcome="task-failed").judge()
        assert (judgement.reason, judgement.interval) == (Reason.TASK_FAILED, None)
        assert judgement.detail == "1 repeat failed, first e/1/8; none is dropped"


class TestSetAside:
    """Invalid and excluded repeats: with and without them the verdict must agree."""

    @pytest.mark.parametrize("outcome", ["invalid", "excluded"])
    def test_an_exclusion_that_changes_the_verdict_decides_nothing(self, study, outcome):
        made = study(predicts="<= 1.1", falsifier="> 1.1").extend(*STEADY).add(3.0, outcome=outcome)
        judgement = made.judge()
        assert (judgement.verdict, judgement.reason) == (Verdict.INCONCLUSIVE, Reason.EXCLUDED)
        assert judgement.detail == "supported without e/1/8, inconclusive with it"
        assert judgement.excluded == 1

    def test_one_that_changes_nothing_leaves_the_verdict(self, study):
        made = study(predicts="<= 1.1", falsifier="> 1.1").extend(*STEADY).add(1.01, outcome="invalid")
        judgement = made.judge()
        assert (judgement.verdict, judgement.n, judgement.excluded) == (Verdict.SUPPORTED, 7, 1)
        assert "e/1/8" not in judgement.repeats

    def test_exclusions_may_not_hide_behind_each_other(self, study):
        made = study(predicts="[0.9, 1.1]", falsifier="outside [0.9, 1.1]").extend(*STEADY)
        made.add(1.3, outcome="excluded").add(0.7, outcome="excluded")
        assert made.judge().reason is Reason.EXCLUDED

    def test_an_undecided_verdict_keeps_its_own_reason(self, study):
        made = study(predicts="<= 1", falsifier="> 1").extend(*STEADY).add(1.0, outcome="invalid")
        assert made.judge().reason is Reason.STRADDLES

    @pytest.mark.parametrize("outcome", ["invalid", "excluded"])
    def test_without_a_value_no_verdict_agrees_whatever_max_excluded_says(self, study, outcome):
        made = study(planned={"": 8}, max_excluded=8).extend(*STEADY).add(outcome=outcome)
        judgement = made.judge()
        assert (judgement.verdict, judgement.reason) == (Verdict.INCONCLUSIVE, Reason.EXCLUDED)
        assert (judgement.planned, judgement.n) == (8, 7)
        assert judgement.detail == (
            "1 repeat set aside without a value, first e/1/8: with it the verdict could be another"
        )
        assert judgement.alternatives == ()

    @pytest.mark.parametrize(("many", "verdict"), [(9, Verdict.INCONCLUSIVE), (19, Verdict.SUPPORTED)])
    def test_a_median_is_weighed_with_what_has_no_value_at_either_end(self, study, many, verdict):
        values = [1 + 0.01 * (number * 7 % many) for number in range(many)]
        made = study(statistic="median", predicts="<= 1.15", falsifier="> 1.15").extend(*values)
        assert made.judge().verdict is Verdict.SUPPORTED
        judgement = made.add(outcome="invalid").add(outcome="invalid").judge()
        assert judgement.verdict is verdict
        assert [each.counted for each in judgement.alternatives][-1] == (f"e/1/{many + 1}", f"e/1/{many + 2}")

    @pytest.mark.parametrize(("many", "verdict"), [(15, Verdict.INCONCLUSIVE), (30, Verdict.SUPPORTED)])
    def test_a_proportion_is_weighed_with_what_has_no_value_as_failure_and_success(
        self, study, many, verdict
    ):
        made = study(statistic="proportion", quantity="t < 2", predicts=">= 0.75", falsifier="< 0.75")
        made.extend(*[1.0] * many)
        assert made.judge().verdict is Verdict.SUPPORTED
        assert made.add(outcome="invalid").judge().verdict is verdict

    def test_what_a_rule_takes_out_is_left_out_and_told(self, study):
        made = study(predicts="<= 1.1", falsifier="> 1.1", max_excluded=1).extend(*STEADY)
        judgement = made.add(3.0, outcome="excluded", by_author=False).judge()
        assert (judgement.verdict, judgement.n, judgement.excluded) == (Verdict.SUPPORTED, 7, 1)
        (other,) = judgement.alternatives
        assert (other.counted, other.verdict, other.n) == (("e/1/8",), Verdict.INCONCLUSIVE, 8)

    def test_more_than_max_excluded_of_an_arm_forbid_a_verdict(self, study):
        made = study(contrast="a / b", max_excluded=1, predicts="<= 2", falsifier="> 2")
        made.extend(*STEADY, arm="a").extend(*STEADY, arm="b")
        made.add(1.0, arm="a", outcome="excluded", by_author=False)
        made.add(1.0, arm="b", outcome="excluded", by_author=False)
        assert made.judge().verdict is Verdict.SUPPORTED
        judgement = made.add(1.0, arm="b", outcome="excluded", by_author=False).judge()
        assert (judgement.reason, judgement.detail) == (
            Reason.EXCLUDED,
            "2 repeats of arm b excluded by rule; max-excluded is 1",
        )

    def test_a_rule_excuses_no_exclusion_by_hand(self, study):
        made = study(predicts="<= 1.1", falsifier="> 1.1", max_excluded=2).extend(*STEADY)
        made.add(3.0, outcome="excluded", by_author=False).add(2.9, outcome="excluded")
        judgement = made.judge()
        assert judgement.detail == "supported without e/1/9, inconclusive with it"
        assert [each.counted for each in judgement.alternatives] == [
            ("e/1/8",),
            ("e/1/9",),
            ("e/1/8", "e/1/9"),
        ]

    def test_conditions_that_did_not_hold_are_another_scope(self, study):
        hot = study(predicts="<= 1.1", falsifier="> 1.1").extend(*STEADY)
        hot.add(1.0, outside='load_average is 9, and the conditions want "<= 4"')
        judgement = hot.judge()
        assert (judgement.verdict, judgement.reason) == (Verdict.INCONCLUSIVE, Reason.SCOPE)
        assert judgement.detail.startswith("repeat e/1/8 ran outside of the conditions: load_average is 9")
        taken_out = study(predicts="<= 1.1", falsifier="> 1.1").extend(*STEADY)
        taken_out.add(1.0, outside="load_average is 9", outcome="excluded")
        assert taken_out.judge().reason is Reason.SCOPE
        elsewhere = study(predicts="<= 1.1", falsifier="> 1.1", outside='gpu is "none"').extend(*STEADY)
        assert elsewhere.judge().detail == 'series 1 ran outside of the conditions: gpu is "none"'

    def test_a_block_is_put_back_whole(self, study):
        made = study(contrast="a - b", pairing="block", predicts=">= 0.2", falsifier="< 0.2")
        for block, (left, right) in enumerate(zip(HIGHER, STEADY, strict=True), 1):
            made.add(left, arm="a", block=block).add(right, arm="b", block=block)
        made.add(0.5, arm="a", block=8, outcome="invalid").add(1.0, arm="b", block=8)
        assert made.judge().detail == "supported without e/1/a/8, inconclusive with it"

    def test_an_invalid_repeat_has_not_completed(self, study):
        made = study(statistic="proportion", quantity="completed", predicts=">= 0.6", falsifier="< 0.6")
        made.extend(*STEADY, *STEADY[:3])
        assert made.judge().verdict is Verdict.SUPPORTED
        assert made.add(1.0, outcome="invalid").judge().reason is Reason.EXCLUDED


def test_a_reading_that_nothing_is_named_for_is_flagged_unless_it_is_exact(study):
    values = [1.0, 1.1, 1.2, 1.05]
    unstated = study().extend(*values, instruments={})
    assert "instrument-unstated" in unstated.judge().flags
    stated = study().extend(*values)
    assert "instrument-unstated" not in stated.judge().flags


def test_a_mean_of_two_values_of_an_exact_metric_says_that_it_is_approximate(study):
    metrics = {"t": {"unit": "1", "exact": True}}
    made = study(metrics=metrics, predicts="<= 20", falsifier="> 20").extend(10, 11, 10, 11, 11)
    assert made.judge().flags == ("approximate",)
    assert (
        "approximate" not in study(metrics=metrics, predicts="<= 20").extend(10, 11, 12, 11, 11).judge().flags
    )
    assert "approximate" not in study(metrics=metrics, predicts="<= 20").extend(*[10] * 5).judge().flags
