from __future__ import annotations

import msgspec
import numpy as np
import pytest
from scipy import stats

from pytest_prereg.judge.chances import chance, plan_of, repeats_for
from pytest_prereg.judge.intervals import clopper_pearson
from pytest_prereg.judge.order_statistics import ranks
from pytest_prereg.judge.power import (
    chance_inside,
    chance_of_proportion,
    chance_of_quantile,
    chance_of_sd,
    n_for_power_t,
    power_t,
)
from pytest_prereg.judge.proportions import counts_inside
from pytest_prereg.registry.regions import contains, parse_region


def messages(report):
    return [f"{problem.code}: {problem.message}" for problem in report.problems]


class TestReach:
    @pytest.mark.parametrize(
        ("more", "n", "why"),
        [
            ({}, 2, "with 2 repeats: a mean needs 3."),
            ({"statistic": "geometric-mean"}, 1, "with 1 repeat: a geometric mean needs 3."),
            ({"statistic": "median"}, 5, "with 5 repeats: a median needs 6."),
            ({"contrast": "a - b"}, 2, "with 2 repeats per arm: a difference of means needs 3 of each arm."),
            ({"contrast": "a / b", "pairing": "block"}, 2, "with 2 blocks: a ratio needs 3."),
        ],
    )
    def test_too_few_repeats_for_any_verdict(self, study, more, n, why):
        made = study(**more)
        made.planned = dict.fromkeys(made.arms, n)
        assert messages(made.design()) == [f'PR034: "p" can never be decided {why}']
        made.planned = dict.fromkeys(made.arms, 6)
        assert made.design().problems == ()

    @pytest.mark.parametrize(
        ("more", "n", "allowed", "why"),
        [
            (
                {},
                5,
                3,
                "can never be decided with 2 repeats: a mean needs 3, and max-excluded = 3 lets 5 repeats become so few.",
            ),
            ({"statistic": "median"}, 7, 2, "decided with 5 repeats: a median needs 6, and max-excluded = 2"),
            (
                {"contrast": "a / b", "pairing": "block"},
                4,
                2,
                "with 2 blocks: a ratio needs 3, and max-excluded",
            ),
            (
                {"contrast": "a - b"},
                4,
                9,
                "with 0 repeats per arm: a difference of means needs 3 of each arm",
            ),
        ],
    )
    def test_rules_may_not_exclude_so_many_that_no_verdict_is_left(self, study, more, n, allowed, why):
        made = study(**more, max_excluded=allowed)
        made.planned = dict.fromkeys(made.arms, n)
        report = made.design()
        assert why in messages(report)[0]
        assert report.problems[0].advice == "Raise repeats, or lower max-excluded."
        made.max_excluded = 1
        assert made.design().problems == ()

    def test_a_verdict_must_stay_in_reach_of_what_rules_leave(self, study):
        made = study(statistic="proportion", quantity="completed", predicts=">= 0.9", falsifier="< 0.5")
        made.planned, made.max_excluded = {"": 37}, 1
        assert made.design().problems == ()
        made.max_excluded = 2
        assert (
            "can never be supported with 35 repeats: a proportion ≥ 0.9 needs 36"
            in messages(made.design())[0]
        )

    def test_the_smaller_arm_is_too_small(self, study):
        made = study(contrast="a - b", planned={"a": 9, "b": 2})
        assert "with 9 and 2 repeats" in messages(made.design())[0]

    def test_a_proportion_out_of_reach_says_how_many_repeats_it_needs(self, study):
        made = study(statistic="proportion", quantity="completed", predicts=">= 0.9", falsifier="< 0.5")
        made.planned = {"": 7}
        report = made.design()
        assert messages(report) == [
            'PR034: "p" can never be supported with 7 repeats: a proportion ≥ 0.9 needs 36.'
        ]
        assert report.problems[0].advice == (
            "Raise repeats, or set one-sided = true to only allow refutation."
        )
        assert report.problems[0].line == 7
        made.planned = {"": 36}
        assert made.design().problems == ()

    def test_per_cent_are_counted_as_such(self, study):
        made = study(statistic="proportion", quantity="completed", predicts=">= 90 %", falsifier="< 50 %")
        made.planned, made.scale = {"": 36}, 100.0
        made.table = {"expected": 99.0}
        report = made.design()
        assert report.problems == ()
        assert report.power.supported == pytest.approx(0.99**36)

    def test_one_sided_asks_only_for_a_refutation(self, study):
        made = study(statistic="proportion", quantity="completed", predicts=">= 0.9", falsifier="< 0.5")
        made.planned, made.table = {"": 7}, {"one_sided": True}
        assert made.design().problems == ()
        made.falsifier = "< 0.01"
        assert messages(made.design()) == [
            'PR034: "p" can never be refuted with 7 repeats: a proportion < 0.01 needs 368.'
        ]

    def test_a_region_around_a_half_needs_the_repeats_that_centre_it(self, study):
        made = study(statistic="proportion", quantity="completed", predicts="[0.4, 0.6]", falsifier="> 0.9")
        made.planned = {"": 50}
        needed = int(messages(made.design())[0].split("needs ")[1].rstrip("."))
        limits = [stats.binomtest(k, needed).proportion_ci() for k in range(needed + 1)]
        assert any(ci.low >= 0.4 and ci.high <= 0.6 for ci in limits)
        limits = [stats.binomtest(k, needed - 1).proportion_ci() for k in range(needed)]
        assert not any(ci.low >= 0.4 and ci.high <= 0.6 for ci in limits)

    def test_no_number_of_repeats_reaches_beyond_a_proportion(self, study):
        made = study(statistic="proportion", quantity="completed", predicts=">= 0.1", falsifier="< 0")
        made.planned = {"": 50}
        assert messages(made.design()) == [
            'PR034: "p" can never be refuted with 50 repeats: a proportion < 0 is out of reach at any number.'
        ]

    def test_a_ratio_is_never_negative(self, study):
        made = study(contrast="a / b", predicts=">= 1", falsifier="<= 0", planned={"a": 5, "b": 5})
        assert "a ratio ≤ 0 does not exist, since it is above 0" in messages(made.design())[0]

    def test_a_single_value_is_reachable_for_exact_metrics_alone(self, study):
        made = study(predicts="[5, 5]", falsifier="outside [5, 5]", planned={"": 5})
        assert "no interval fits in a single value" in messages(made.design())[0]
        made.metrics = {"t": {"unit": "token", "exact": True}}
        assert made.design().problems == ()

    def test_repeats_that_are_not_registered_leave_nothing_to_check(self, study):
        assert study().design().notes == ("the number of repeats is not registered, so power is unknown",)


class TestPower:
    def test_an_underpowered_falsification_is_refused(self, study):
        made = study(predicts="<= 1", falsifier=">= 1.05", planned={"": 3}, table={"cv": 0.1, "detect": 1.1})
        (message,) = messages(made.design())
        assert message.startswith('PR035: "p" would seldom be refuted: P(refuted) is 0.07 at 1.1, "detect"')
        assert made.design().problems[0].advice.startswith("Raise repeats to 21,")

    def test_the_advised_number_of_repeats_is_enough_and_one_less_is_not(self, study):
        made = study(predicts="<= 1", falsifier=">= 1.05", table={"cv": 0.1, "detect": 1.1})
        for n, problems in ((20, 1), (21, 0)):
            made.planned = {"": n}
            assert len(made.design().problems) == problems

    def test_without_detect_some_value_within_a_factor_of_three_has_to_be_refuted(self, study):
        made = study(predicts="<= 0.25", falsifier=">= 0.5", planned={"": 3}, table={"cv": 0.05})
        assert made.design().problems == ()
        made.table = {"cv": 0.9}
        assert messages(made.design())[0].startswith("PR035")

    def test_a_difference_is_checked_within_three_standard_deviations(self, study):
        made = study(contrast="a - b", predicts="<= 0", falsifier="> 0", table={"sd": 1.0})
        for n, problems in ((3, 0), (2, 1)):
            made.planned = {"a": n, "b": n}
            assert len(made.design().problems) == problems

    def test_detect_itself_may_be_out_of_reach(self, study):
        made = study(contrast="a - b", predicts="<= 0", falsifier="> 0", table={"sd": 1.0, "detect": 0.5})
        made.planned = {"a": 5, "b": 5}
        assert messages(made.design())[0].startswith("PR035")

    def test_cv_says_nothing_about_a_difference(self, study):
        made = study(contrast="a - b", planned={"a": 5, "b": 5}, table={"cv": 0.1})
        assert made.design().notes == ("cv says nothing about a difference of means; give sd",)
        assert made.design().problems == ()

    def test_power_at_expected_is_that_of_the_noncentral_t(self, study):
        made = study(predicts="<= 42", falsifier=">= 46", planned={"": 7}, table={"expected": 40, "cv": 0.05})
        report = made.design()
        shift = 2 / (2 / np.sqrt(7))
        assert report.power.supported == pytest.approx(
            stats.nct.sf(stats.t.ppf(0.975, 6), 6, shift), rel=1e-8
        )
        assert report.power.refuted < 1e-9
        assert report.notes == ("P(supported) is only 0.60 at expected 40; 10 repeats would make it 0.8",)

    def test_an_expectation_that_neither_region_holds_is_noted(self, study):
        made = study(predicts="<= 1", falsifier=">= 2", planned={"": 9}, table={"expected": 1.5, "cv": 0.05})
        assert made.design().notes == ("expected 1.5 lies in neither region",)

    def test_without_cv_power_is_unknown(self, study):
        report = study(planned={"": 9}, table={"expected": 1.0}).design()
        assert report.power is None
        assert report.notes == ("no cv given, power unknown",)

    def test_a_median_on_its_extremes_is_noted(self, study):
        made = study(statistic="median", planned={"": 8}, table={"cv": 0.1})
        assert made.design().notes == ("a median of 8 rests on the extremes; 9 repeats would not",)

    def test_a_skewed_mean_would_need_five(self, study):
        notes = study(planned={"": 4}, table={"cv": 0.1}).design().notes
        assert notes == ("values of one sign with a CV above 0.2 would need 5 repeats",)

    def test_a_proportion_needs_no_cv(self, study):
        made = study(statistic="proportion", quantity="completed", predicts=">= 0.5", falsifier="< 0.4")
        made.planned, made.table = {"": 20}, {"expected": 0.9}
        expected = stats.binom.sf(14, 20, 0.9)
        assert stats.binomtest(15, 20).proportion_ci().low > 0.5 > stats.binomtest(14, 20).proportion_ci().low
        assert made.design().power.supported == pytest.approx(expected)


class TestChances:
    """Against simulated studies; 20 000 of each, so the standard error is at most 0.0035."""

    @pytest.fixture
    def normal(self):
        return np.random.default_rng(20240607).normal(1.0, 0.1, (20000, 10))

    def test_a_t_interval_inside_two_ends(self, normal):
        half = stats.t.ppf(0.975, 9) * normal.std(1, ddof=1) / np.sqrt(10)
        inside = (normal.mean(1) - half >= 0.9) & (normal.mean(1) + half <= 1.1)
        expected = chance_inside((0.9, 1.1), mean=1.0, se=0.1 / np.sqrt(10), df=9, confidence=0.95)
        assert inside.mean() == pytest.approx(expected, abs=0.014)

    @pytest.mark.parametrize("ends", [(0.9, 1.2), (-np.inf, 1.05), (0.95, np.inf)])
    def test_a_median_inside_two_ends(self, normal, ends):
        ordered = np.sort(normal, axis=1)
        inside = (ordered[:, 1] >= ends[0]) & (ordered[:, 8] <= ends[1])
        expected = chance_of_quantile(ends, q=0.5, mean=1.0, sd=0.1, n=10, confidence=0.95)
        assert inside.mean() == pytest.approx(expected, abs=0.014)

    def test_a_ratio_by_blocks(self, study):
        made = study(contrast="a / b", pairing="block", planned={"a": 7, "b": 7}, table={"cv": 0.15})
        plan = plan_of(made.prediction, made.experiment)
        sigma = np.sqrt(np.log1p(0.15**2))
        logs = np.random.default_rng(3).normal(np.log(1.7), sigma, (20000, 7))
        low = logs.mean(1) - stats.t.ppf(0.975, 6) * logs.std(1, ddof=1) / np.sqrt(7)
        assert (np.exp(low) >= 1.5).mean() == pytest.approx(
            chance(plan, parse_region(">= 1.5"), 1.7), abs=0.014
        )
        # From the prototype's own noncentral t: 17 blocks for 0.9.
        assert repeats_for(plan, parse_region(">= 1.5"), 1.7, 0.9) == 17

    def test_two_arms_without_blocks(self, study):
        made = study(contrast="a - b", planned={"a": 20, "b": 20}, table={"sd": 1.0})
        plan = plan_of(made.prediction, made.experiment)
        assert chance(plan, parse_region("> 0"), 1.0) == pytest.approx(power_t(20, 1.0))

    def test_a_proportion_is_summed_over_its_counts(self):
        region = parse_region(">= 0.9")
        assert chance_of_proportion(0.95, 36, region, 0.95) == pytest.approx(0.95**36)
        assert chance_of_proportion(1.0, 36, region, 0.95) == 1.0

    @pytest.mark.parametrize("text", [">= 0.9", "< 0.2", "[0.3, 0.8]", "outside [0.1, 0.7]", "<= 0.0", "> 0"])
    @pytest.mark.parametrize("n", [1, 7, 40])
    def test_the_counts_of_a_proportion_are_those_whose_interval_lies_inside(self, text, n):
        region, limits = parse_region(text), [clopper_pearson(count, n) for count in range(n + 1)]
        inside = [k for k, each in enumerate(limits) if contains(region, each.low, each.high)]
        assert list(counts_inside(region, n, 0.95)) == sorted(inside)

    def test_power_holds_where_scipys_noncentral_t_is_not_a_number(self):
        assert power_t(7, 5.0, samples=1) == pytest.approx(1.0)
        assert 0.9 < power_t(3, 5.0, samples=1) < 1.0

    def test_no_n_has_the_power_to_find_nothing(self):
        with pytest.raises(ValueError, match="not reached"):
            n_for_power_t(0.9, 0.0)


class TestOtherEstimands:
    """Chances against simulation, and what can never be reached."""

    @pytest.mark.parametrize("ends", [(0.0, 1.5), (0.8, np.inf), (-np.inf, 1.4), (0.7, 1.6)])
    def test_a_standard_deviation_inside_two_ends(self, ends):
        sd = np.random.default_rng(5).normal(0.0, 1.0, (20000, 12)).std(1, ddof=1)
        low, high = (sd * np.sqrt(11 / stats.chi2.ppf(p, 11)) for p in (0.975, 0.025))
        inside = (low >= ends[0]) & (high <= ends[1])
        expected = chance_of_sd(ends, sd=1.0, n=12, confidence=0.95)
        assert inside.mean() == pytest.approx(expected, abs=0.014)

    @pytest.mark.parametrize("region", ["<= 3.0", ">= 0.6", "[0.2, 3.0]"])
    def test_a_quantile(self, study, region):
        made = study(statistic="quantile", q=0.75, planned={"": 20}, table={"sd": 1.0})
        plan = plan_of(made.prediction, made.experiment)
        values = np.sort(np.random.default_rng(6).normal(0.5, 1.0, (20000, 20)), axis=1)
        lower, upper = ranks(20, 0.75, 0.95)
        span = parse_region(region).spans[0]
        inside = (values[:, lower - 1] >= span.low) & (values[:, upper - 1] <= span.high)
        true = 0.5 + stats.norm.ppf(0.75)
        assert inside.mean() == pytest.approx(chance(plan, parse_region(region), true), abs=0.014)

    def test_an_upper_bound_on_a_quantile_takes_many_repeats(self, study):
        made = study(statistic="quantile", q=0.99, predicts="<= 30", falsifier="> 40", planned={"": 7})
        assert messages(made.design()) == [
            'PR034: "p" can never be supported with 7 repeats: an upper bound on quantile(0.99) needs 368.'
        ]
        made.table = {"one_sided": True}
        assert made.design().problems == ()

    def test_an_interval_that_holds_after_every_repeat_is_wider(self, study):
        fixed = study(planned={"": 20}, table={"sd": 1.0})
        plan = plan_of(fixed.prediction, fixed.experiment)
        region = parse_region("<= 1")
        whole = chance(msgspec.structs.replace(plan, anytime=True), region, 0.0)
        values = np.random.default_rng(7).normal(0.0, 1.0, (20000, 20))
        squares = values.var(1)
        c2, n = 0.1, 20
        q = (0.05**2 * c2 / (n + c2)) ** (1 / n)
        reach = np.sqrt((n + c2) * (1 - q) / (q * (n + c2) - c2) * squares)
        assert (values.mean(1) + reach <= 1).mean() == pytest.approx(whole, abs=0.014)
        assert whole < chance(plan, region, 0.0)

    def test_a_guard_has_to_be_right_both_ways(self, study):
        table = {"kind": "guard", "expected": 0.9, "detect": 1.3, "cv": 0.05}
        made = study(predicts="<= 1", falsifier="> 1.1", planned={"": 3}, table=table)
        assert "PR037" in messages(made.design())[0]
        assert "P(supported) is" in messages(made.design())[0]
        made.planned = {"": 10}
        assert made.design().problems == ()
        made.table = {**table, "cv": None}
        assert [problem.code for problem in made.design().problems] == ["PR037", "PR037"]
