from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from pytest_prereg.judge import Reason, Verdict, student_t, t_mixture_e_value
from pytest_prereg.judge.sequential import MIXTURE_G

STEADY = [1.00, 1.04, 0.97, 1.02, 0.99, 1.03, 0.98, 1.01, 1.02, 0.98]
LOOKS = [4, 7, 10]


@pytest.fixture
def looked(study):
    """``looked(values)``: a study of a mean <= 1.1 with three looks."""

    def make(values, **more):
        more = {"predicts": "<= 1.1", "falsifier": "> 1.1", "looks": LOOKS, **more}
        return study(**more).extend(*values)

    return make


class TestRegisteredLooks:
    def test_the_first_decisive_look_is_final(self, looked):
        made = looked(STEADY)
        judgement = made.judge()
        expected = student_t(STEADY[:4], 1 - 0.05 / 3)
        assert (judgement.verdict, judgement.detail) == (Verdict.SUPPORTED, "decided at look 1 of 3")
        assert judgement.interval == pytest.approx((expected.low, expected.high), rel=1e-12)
        assert judgement.confidence == pytest.approx(1 - 0.05 / 3)
        assert (judgement.n, judgement.planned, judgement.repeats[-1]) == (4, 10, "e/1/4")
        assert made.is_final()

    def test_what_comes_after_it_changes_nothing(self, looked):
        short = looked(STEADY[:4])
        long = looked([*STEADY[:4], 9.0, 9.0, 9.0])
        broken = looked([*STEADY[:4], math.nan]).add(outcome="task-failed")
        assert short.judge() == long.judge() == broken.judge()
        assert short.is_final()
        assert broken.is_final()

    def test_a_repeat_beyond_those_registered_changes_nothing(self, looked, study):
        values = [1.0, 1.2, 1.1, 1.15, 0.9, 1.3, 1.0, 1.2, 1.1, 1.15]
        assert looked(values).judge() == looked([*values, 9.0]).judge()
        plain = study(planned={"": 7}).extend(*STEADY[:7]).judge()
        assert study(planned={"": 7}).extend(*STEADY[:7], 99.0).judge() == plain

    def test_an_undecided_look_is_followed_by_the_next(self, looked):
        values = [0.9, 1.3, 0.8, 1.2, 0.6, 0.7, 0.5, 0.6, 0.7, 0.55]
        judgement = looked(values).judge()
        assert (judgement.detail, judgement.n) == ("decided at look 3 of 3", 10)
        assert judgement.verdict is Verdict.SUPPORTED

    def test_the_last_look_tells_why_it_is_undecided(self, looked):
        made = looked([1.0, 1.2, 1.1, 1.15, 1.05, 1.12, 1.08, 1.1, 1.13, 1.07])
        judgement = made.judge()
        assert (judgement.reason, judgement.detail, judgement.n) == (Reason.STRADDLES, "straddles 1.1", 10)
        assert made.is_final()

    def test_a_look_with_a_doubt_is_not_decisive(self, looked):
        coarse = looked([1.0, 1.0, 1.1, 1.0, 0.9, 1.05, 0.95, 1.0], predicts="<= 2", falsifier="> 2")
        assert coarse.judge().detail == "decided at look 2 of 3"

    def test_a_look_before_the_smallest_n_is_not_decisive(self, looked):
        judgement = looked(STEADY[:5], looks=[2, 5]).judge()
        assert (judgement.detail, judgement.n) == ("decided at look 2 of 2", 5)

    @pytest.mark.parametrize("statistic", ["median", "geometric-mean", "proportion"])
    def test_any_estimand_may_have_looks(self, study, statistic):
        made = study(statistic=statistic, looks=[9, 12, 40], predicts="> 0.5", falsifier="< 0.5")
        made.quantity = "completed" if statistic == "proportion" else "t"
        judgement = made.extend(*STEADY, *STEADY).judge()
        assert judgement.verdict is Verdict.SUPPORTED
        assert judgement.n == {"median": 9, "geometric-mean": 9, "proportion": 9}[statistic]
        assert judgement.confidence >= 1 - 0.05 / 3 - 1e-9

    def test_they_find_what_a_loop_of_t_intervals_finds(self, looked):
        rng = np.random.default_rng(11)
        found = set()
        for _ in range(60):
            values = [float(value) for value in rng.normal(1.05, 0.05, 10)]
            expected = _by_a_loop(values, 1.1)
            judgement = looked(values).judge()
            assert (judgement.verdict.value, judgement.n) == expected
            found.add(expected)
        assert len(found) >= 4

    def test_arms_are_looked_at_together(self, study):
        made = study(contrast="a - b", predicts=">= 0.2", falsifier="< 0.2", looks=[4, 8])
        made.extend(*[value + 0.5 for value in STEADY[:8]], arm="a").extend(*STEADY[:3], arm="b")
        assert not made.is_final()
        assert made.judge().reason is Reason.N_TOO_SMALL
        made.add(STEADY[3], arm="b")
        assert made.is_final()
        assert (made.judge().n, made.judge().detail) == (4, "decided at look 1 of 2")

    def test_blocks_are_counted_by_their_number(self, study):
        made = study(contrast="a - b", pairing="block", predicts=">= 0.2", falsifier="< 0.2", looks=[4, 6])
        for block, value in enumerate(STEADY[:6], 1):
            made.add(value + 0.5 + 0.01 * (-1) ** block * block, arm="a", block=block)
            made.add(value, arm="b", block=block)
        assert made.judge().repeats == tuple(f"e/1/{arm}/{k}" for arm in "ab" for k in range(1, 5))

    def test_blocks_that_others_numbered_are_counted_in_their_order(self, study):
        made = study(contrast="a - b", pairing="block", predicts=">= 0.2", falsifier="< 0.2", looks=[4, 6])
        for number, value in enumerate(STEADY[:6]):
            made.add(value + 0.5 + 0.01 * (-1) ** number * number, arm="a", block=number * 10)
        for number, value in reversed([*enumerate(STEADY[:6])]):
            made.add(value, arm="b", block=number * 10)
        judgement = made.judge()
        assert judgement.n == 4
        assert set(judgement.repeats) == {
            *(f"e/1/a/{k}" for k in (1, 2, 3, 4)),
            *(f"e/1/b/{k}" for k in (6, 5, 4, 3)),
        }


class TestEndedEarly:
    def test_a_series_that_ended_before_it_was_decided_decides_nothing(self, looked):
        made = looked([1.0, 1.2, 1.1, 1.15, 0.5])
        judgement = made.judge()
        assert (judgement.verdict, judgement.reason) == (Verdict.INCONCLUSIVE, Reason.N_TOO_SMALL)
        assert judgement.detail == (
            "the series ended after 5 of 10 repeats, before it was decided; the next look is at look 2 of 3"
        )
        assert judgement.n == 4
        assert not made.is_final()

    def test_no_look_at_all_shows_what_there_is_and_decides_nothing(self, looked):
        judgement = looked(STEADY[:3]).judge()
        assert (judgement.verdict, judgement.reason) == (Verdict.INCONCLUSIVE, Reason.N_TOO_SMALL)
        assert "after 3 of 10 repeats" in judgement.detail

    def test_an_empty_series_decides_nothing(self, looked):
        assert looked([]).judge().reason is Reason.N_TOO_SMALL
        assert not looked([]).is_final()

    def test_a_gap_keeps_a_look_from_being_reached(self, looked):
        made = looked(STEADY[:5])
        del made.repeats[1]
        assert not made.is_final()
        assert made.judge().reason is Reason.N_TOO_SMALL

    def test_a_reason_that_comes_first_is_told(self, looked):
        made = looked(STEADY[:3]).add(outcome="task-failed")
        assert made.judge().reason is Reason.TASK_FAILED


class TestObstaclesAtLooks:
    def test_a_failure_keeps_every_look_from_deciding(self, looked):
        made = looked(STEADY[:3]).add(outcome="task-failed").extend(*STEADY[:5])
        assert not made.is_final()
        made.extend(*STEADY[:1])
        assert made.is_final()
        judgement = made.judge()
        assert (judgement.reason, judgement.interval) == (Reason.TASK_FAILED, None)

    def test_a_failure_after_the_deciding_look_is_of_no_account(self, looked):
        assert looked(STEADY[:4]).add(outcome="task-failed").judge().verdict is Verdict.SUPPORTED

    def test_another_machine_counts_from_the_look_that_sees_it(self, looked):
        early = looked(STEADY[:3], looks=[4, 5]).add(1.0, machine="A").add(1.0, machine="B")
        assert early.judge().detail == "decided at look 1 of 2"
        late = looked(STEADY[:2], looks=[4, 5]).add(1.03, machine="A").add(1.0, machine="B").add(1.02)
        assert late.judge().reason is Reason.SCOPE

    def test_faults_count_from_the_look_that_sees_them(self, looked):
        made = looked(STEADY, faults=("e/1/5",) * 3)
        assert made.judge().detail == "decided at look 1 of 3"
        made.faults = ("e/1/4",) * 3
        assert made.judge().reason is Reason.INFRASTRUCTURE

    def test_faults_are_many_or_few_for_the_repeats_that_a_look_sees(self, looked):
        made = looked([*STEADY, *STEADY], looks=[4, 20], faults=("e/1/4",) * 3)
        assert made.judge().detail == "decided at look 2 of 2"

    def test_what_is_known_from_outside_forbids_every_look(self, looked):
        made = looked(STEADY[:4])
        obstacles = [(Reason.SCOPE, "it was too hot"), (Reason.REQUIRED, "it needs another")]
        judgement = made.judge(obstacles=obstacles)
        assert (judgement.reason, judgement.detail) == (Reason.REQUIRED, "it needs another")
        assert not made.is_final(obstacles=obstacles)


class TestSetAsideAtLooks:
    def test_with_and_without_it_the_deciding_look_must_agree(self, looked):
        made = looked(STEADY[:3]).add(3.0, outcome="invalid").extend(*STEADY[:6])
        judgement = made.judge()
        assert (judgement.reason, judgement.n) == (Reason.EXCLUDED, 9)
        assert judgement.detail == "supported without e/1/4, inconclusive with it"

    def test_one_that_changes_nothing_leaves_the_look(self, looked):
        made = looked(STEADY[:3], predicts="<= 2", falsifier="> 2").add(1.01, outcome="excluded")
        judgement = made.judge()
        assert (judgement.detail, judgement.n, judgement.excluded) == ("decided at look 1 of 3", 3, 1)

    def test_a_verdict_that_it_would_have_ended_the_series_with_is_not_forgotten(self, looked):
        """With the repeat that was set aside, the first look refutes and would have ended the series."""
        late = [1.0, 0.97, 1.04, 0.95, 1.02, 0.99] * 5
        made = looked([1.13, 1.16], looks=[4, 30]).add(1.155, outcome="invalid").extend(1.17, *late[:26])
        judgement = made.judge()
        assert judgement.reason is Reason.EXCLUDED
        assert judgement.detail == "refuted at look 1 of 2 with e/1/3, but supported in the end"
        harmless = looked([1.13, 1.16], looks=[4, 30]).add(1.0, outcome="invalid").extend(1.17, *late[:26])
        assert harmless.judge().detail == "decided at look 2 of 2"

    def test_every_repeat_set_aside_is_no_lack_of_repeats(self, study):
        for outcome in ("invalid", "excluded"):
            made = study().extend(*STEADY[:5], outcome=outcome)
            assert made.judge().reason is Reason.EXCLUDED
        assert study().extend(1.0, 1.1, outcome="invalid").judge().detail == "every repeat was set aside"

    def test_repeats_that_are_too_few_only_without_it_are_excluded(self, study):
        made = study(predicts="<= 1", falsifier="> 1").extend(*STEADY[:2]).add(0.97, outcome="invalid")
        judgement = made.judge()
        assert (judgement.reason, judgement.detail) == (Reason.EXCLUDED, "too few repeats without e/1/3")


class TestAnytime:
    def test_the_first_repeat_that_decides_ends_the_series(self, looked):
        values = [value + 0.04 for value in STEADY]
        made = looked(values, looks=None, most=30)
        n = _first_by_e_value(values, 1.1)
        judgement = made.judge()
        assert 3 < n < 10
        assert judgement.detail == f"decided after {n} of at most 30 repeats"
        assert (judgement.n, judgement.planned, judgement.confidence) == (n, 30, 0.95)
        assert "assumes normal" in judgement.flags
        assert made.is_final()
        assert not looked(values[: n - 1], looks=None, most=30).is_final()

    def test_later_repeats_that_contradict_it_change_nothing(self, looked):
        values = [value + 0.04 for value in STEADY]
        contrary = looked([*values, *[50.0, 51.0, 52.0, 49.0] * 5], looks=None, most=30)
        assert contrary.judge() == looked(values, looks=None, most=30).judge()

    def test_never_decided_is_undecided_at_the_end(self, looked):
        made = looked([1.0, 1.2, 1.1, 1.15, 1.05, 1.12], looks=None, most=6)
        judgement = made.judge()
        assert (judgement.reason, judgement.n) == (Reason.STRADDLES, 6)
        assert made.is_final()

    def test_ended_early_says_when_the_next_look_is(self, looked):
        judgement = looked([1.0, 1.2, 1.1, 1.15], looks=None, most=6).judge()
        assert judgement.reason is Reason.N_TOO_SMALL
        assert judgement.detail.endswith("the next look is after 5 of at most 6 repeats")


class TestWithoutARule:
    def test_a_series_is_final_with_its_last_repeat(self, study):
        made = study(planned={"": 4}).extend(*STEADY[:3])
        assert not made.is_final()
        assert made.add(1.0).is_final()

    def test_the_arms_of_the_prediction_alone_count(self, study):
        made = study(contrast="a - b", planned={"a": 3, "b": 3, "c": 9})
        assert made.extend(1, 2, 3, arm="a").extend(1, 2, 4, arm="b").is_final()


class TestPeeking:
    """False verdicts at the boundary, where half of all true values would be supported."""

    STUDIES = 2000

    def test_three_looks_hold_their_level(self):
        assert self.wrong(_looks_decide, 30) <= 0.025 + 4 * math.sqrt(0.025 * 0.975 / self.STUDIES)

    def test_looking_after_every_repeat_holds_it_too(self):
        assert self.wrong(_anytime_decides, 30) <= 0.025

    def test_a_fresh_t_interval_after_every_repeat_does_not(self):
        assert self.wrong(_naive_decides, 30) > 0.1

    def wrong(self, decides, n):
        rng = np.random.default_rng(20260801)
        return sum(decides(rng.normal(0, 1, n)) for _ in range(self.STUDIES)) / self.STUDIES


def test_peeking_as_judged_is_peeking_as_simulated(study):
    """The judge decides as the loops do that the two tests above count."""
    rng = np.random.default_rng(5)
    counts = {"looks": 0, "anytime": 0}
    for _ in range(25):
        values = [float(value) for value in rng.normal(-0.45, 1, 30)]
        kinds = {"looks": {"looks": [10, 20, 30]}, "anytime": {"most": 30}}
        for (kind, rule), decides in zip(kinds.items(), (_looks_decide, _anytime_decides), strict=True):
            made = study(predicts="<= 0", falsifier="> 0", **rule).extend(*values)
            supported = made.judge().verdict is Verdict.SUPPORTED
            if made.judge().reason is not Reason.DRIFT:
                assert supported == decides(np.array(values))
            counts[kind] += supported
    assert all(0 < count < 25 for count in counts.values())


def _by_a_loop(values, edge):
    for n in LOOKS:
        mean, error = np.mean(values[:n]), stats.sem(values[:n])
        low, high = stats.t.interval(1 - 0.05 / 3, n - 1, mean, error)
        if n >= 6 and stats.kendalltau(range(n), values[:n], method="exact").pvalue <= 0.01:
            continue
        if high <= edge:
            return "supported", n
        if low > edge:
            return "refuted", n
    return "inconclusive", LOOKS[-1]


def _first_by_e_value(values, edge):
    return next(
        n
        for n in range(3, len(values) + 1)
        if t_mixture_e_value(values[:n], g=MIXTURE_G, mean=edge) > 20 and np.mean(values[:n]) < edge
    )


def _looks_decide(values):
    return any(_high(values[:n], 1 - 0.05 / 3) <= 0 for n in (10, 20, 30))


def _naive_decides(values):
    return any(_high(values[:n], 0.95) <= 0 for n in range(3, 31))


def _high(values, confidence):
    n = len(values)
    return values.mean() + _quantile(n - 1, confidence) * values.std(ddof=1) / math.sqrt(n)


def _quantile(df, confidence, seen={}):  # noqa: B006 - a memory
    if (df, confidence) not in seen:
        seen[df, confidence] = stats.t.ppf(0.5 + confidence / 2, df)
    return seen[df, confidence]


def _anytime_decides(values):
    """The e-value against a mean of 0 passes 20, with the mean below (Wang and Ramdas 2025, theorem 4.9)."""
    n = np.arange(1, len(values) + 1)
    sums, squares = np.cumsum(values), np.cumsum(values**2)
    share = sums**2 / n / squares  # t² / (t² + n - 1)
    e_value = (1 + n * MIXTURE_G) ** -0.5 * ((1 - share * n * MIXTURE_G / (1 + n * MIXTURE_G)) ** (-n / 2))
    return bool(((e_value > 20) & (sums < 0))[2:].any())
