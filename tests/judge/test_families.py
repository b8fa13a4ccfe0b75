from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_prereg.judge import Verdict
from pytest_prereg.judge.families import SMALLEST_ALPHA, holm, smallest_alpha

VALUES = [1.00, 1.04, 0.97, 1.02, 0.99, 1.03, 0.98]
P = st.floats(1e-9, 0.5) | st.sampled_from([0.01, 0.0125, 0.025, 0.05])


class TestHolm:
    @pytest.mark.parametrize("seed", range(12))
    def test_it_decides_what_statsmodels_rejects(self, seed):
        multitest = pytest.importorskip("statsmodels.stats.multitest")
        rng, alpha = np.random.default_rng(seed), [0.05, 0.01][seed % 2]
        values = [float(value) for value in rng.choice([*rng.uniform(0, 0.03, 9), 0.0125, 0.025, 0.05], 12)]
        p = {f"p{k}": value for k, value in enumerate(values[: 1 + seed])}
        rejected = multitest.multipletests([*p.values()], alpha=alpha, method="holm")[0]
        levels = holm(p, alpha)
        assert [levels[name] is not None for name in p] == list(rejected)
        assert all(value <= levels[name] for name, value in p.items() if levels[name] is not None)

    def test_levels_step_down_until_one_fails(self):
        levels = holm({"a": 0.04, "b": 0.001, "c": 0.02, "d": 0.012}, 0.05)
        assert levels == {"b": 0.05 / 4, "d": 0.05 / 3, "c": 0.05 / 2, "a": 0.05}
        levels = holm({"a": 0.01, "b": 0.03, "c": 0.04}, 0.05)
        assert levels == {"a": 0.05 / 3, "b": None, "c": None}

    def test_a_member_without_a_verdict_counts_and_makes_no_other_easier(self):
        assert holm({"a": 0.03, "b": 0.03, "c": None}, 0.05) == {"a": None, "b": None, "c": None}
        assert holm({"a": 0.02, "b": 0.02, "c": None}, 0.05) == dict.fromkeys("abc")
        assert holm({"a": 0.01, "b": None}, 0.05) == {"a": 0.025, "b": None}

    @given(st.dictionaries(st.sampled_from("abcdefg"), P | st.none(), min_size=1), P)
    def test_filling_in_a_pending_member_takes_no_verdict_away(self, p, value):
        before = holm(p, 0.05)
        after = holm({name: value if one is None else one for name, one in p.items()}, 0.05)
        assert all(after[name] is not None for name, level in before.items() if level is not None)

    def test_members_that_tie_are_judged_alike_in_any_order(self):
        assert holm({"a": 0.01, "b": 0.01, "c": 0.01}, 0.05) == dict.fromkeys("abc", 0.05 / 3)
        assert holm({"b": 0.02, "a": 0.02}, 0.05) == dict.fromkeys("ab", 0.025)

    def test_one_member_is_judged_as_without_a_family(self):
        assert holm({"a": 0.05}, 0.05) == {"a": 0.05}
        assert holm({}, 0.05) == {}


class TestSmallestAlpha:
    @pytest.mark.parametrize(("predicts", "falsifier"), [("<= 1.03", "> 1.03"), (">= 1.02", "< 1.02")])
    def test_it_is_the_p_value_of_a_t_test(self, study, predicts, falsifier):
        made = study(predicts=predicts, falsifier=falsifier).extend(*VALUES)
        expected = stats.ttest_1samp(VALUES, float(predicts.split()[1])).pvalue
        assert smallest_alpha(at(made)) == pytest.approx(expected, rel=2e-6)

    def test_the_rule_decides_there_and_not_below(self, study):
        verdict_at = at(study(predicts="<= 1.03", falsifier="> 1.03").extend(*VALUES))
        p = smallest_alpha(verdict_at)
        assert verdict_at(p) is Verdict.SUPPORTED
        assert verdict_at(p * (1 - 2e-6)) is Verdict.INCONCLUSIVE

    def test_a_median_jumps(self, study):
        made = study(statistic="median", predicts="< 1.1", falsifier="> 1.1").extend(*VALUES)
        assert smallest_alpha(at(made)) == pytest.approx(2 / 2**7, rel=2e-6)

    def test_a_proportion_is_decided_at_the_binomial_test(self, study):
        made = study(statistic="proportion", quantity="completed", predicts="> 0.5", falsifier="< 0.5")
        p = smallest_alpha(at(made.extend(*VALUES)))
        assert p == pytest.approx(2 * stats.binomtest(7, 7, 0.5, "greater").pvalue, rel=2e-6)

    def test_a_doubt_that_no_confidence_lifts_leaves_none(self, study):
        rising = study(predicts="<= 1.55", falsifier="> 1.55").extend(*[1 + k / 10 for k in range(7)])
        assert smallest_alpha(at(rising)) is None
        failed = study().extend(*VALUES).add(outcome="task-failed")
        assert smallest_alpha(at(failed)) is None

    def test_the_clearest_of_verdicts_has_the_smallest_there_is(self):
        assert smallest_alpha(lambda _: Verdict.REFUTED) == SMALLEST_ALPHA

    @given(st.floats(math.log(2e-12), math.log(0.49)))
    def test_it_finds_any_threshold(self, log_threshold):
        threshold = math.exp(log_threshold)
        found = smallest_alpha(lambda a: Verdict.SUPPORTED if a >= threshold else Verdict.INCONCLUSIVE)
        assert threshold <= found <= threshold * (1 + 2e-6)


def at(made):
    return lambda alpha: made.judge(confidence=1 - alpha).verdict
