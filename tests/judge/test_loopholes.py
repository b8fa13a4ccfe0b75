"""Ways in which a claim could get a verdict that its evidence does not bear."""

from __future__ import annotations

import pytest

from pytest_prereg.judge.model import Reason, Verdict

CAPPED = {"t": {"unit": "s", "cap": 5.0}}
EXACT = {"t": {"unit": "1", "exact": True}}


class TestEdges:
    @pytest.mark.parametrize("value", [2.0**53 - 1, 2.0**60, 3 * 2.0**60])
    def test_a_count_of_more_than_fifteen_digits_is_itself(self, study, value):
        exactly = f"[{int(value)}, {int(value)}]"
        made = study(metrics=EXACT, predicts=exactly, falsifier=f"outside {exactly}")
        assert made.extend(*[value] * 3).judge().verdict is Verdict.SUPPORTED

    def test_a_number_typed_in_full_is_the_number_measured(self, study):
        made = study(metrics=EXACT, quantity="t / 3", predicts=f">= {1 / 3!r}", falsifier=f"< {1 / 3!r}")
        assert made.extend(1.0, 1.0, 1.0).judge().verdict is Verdict.SUPPORTED


class TestYesAndNo:
    """A claim of 0.9 about three coins: a yes or no that comes in other clothes is one all the same."""

    CLOTHES = (
        "(t > 5) * 2",
        "exp(t > 5)",
        "1.5 - (t < 5)",
        "2 * share(t > 5)",
        "2 * mean(t > 5)",
        "completed * 2",
    )

    @pytest.mark.parametrize("quantity", CLOTHES)
    def test_of_exact_counts_it_has_no_mean(self, study, quantity):
        made = study(quantity=quantity, metrics=EXACT, predicts=">= 1.4", falsifier="< 1.4")
        judgement = made.extend(*[9.0] * 3).judge()
        assert (judgement.verdict, judgement.reason) == (Verdict.INCONCLUSIVE, Reason.RESOLUTION)

    @pytest.mark.parametrize("contrast", ["a - b", "increasing(b, a)", "plateau(a, b)"])
    @pytest.mark.parametrize("pairing", ["block", "none"])
    @pytest.mark.parametrize("quantity", ["share(t > 5)", "2 * share(t > 5)", "t / 9"])
    def test_of_exact_counts_it_has_no_difference(self, study, quantity, contrast, pairing):
        made = study(
            quantity=quantity,
            metrics=EXACT,
            contrast=contrast,
            pairing=pairing,
            predicts=">= 0.9",
            falsifier="< 0.9",
        )
        for block in (1, 2, 3):
            made.add(9.0, arm="a", block=block).add(0.0, arm="b", block=block)
        assert made.judge().reason is Reason.RESOLUTION

    def test_of_exact_counts_it_has_no_geometric_mean(self, study):
        made = study(metrics=EXACT, statistic="geometric-mean", predicts=">= 0.9", falsifier="< 0.9")
        assert made.extend(1.0, 1.0, 1.0).judge().reason is Reason.RESOLUTION

    @pytest.mark.parametrize("pairing", ["block", "none"])
    def test_varying_it_has_no_difference_either(self, study, pairing):
        made = study(contrast="a - b", pairing=pairing, predicts="> -2", falsifier="<= -2")
        for left, right in ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (0.0, 0.0)):
            made.block(left, right)
        assert made.judge().reason is Reason.RESOLUTION

    def test_errors_over_requests_are_no_ratio_of_sums_where_none_was_seen(self, study):
        metrics = {"t": EXACT["t"], "requests": EXACT["t"]}
        asked = {"statistic": "ratio-of-sums", "divisor": "requests", "metrics": metrics}
        made = study(predicts="<= 0.01", falsifier="> 0.01", **asked)
        assert made.extend(*[{"t": 0.0, "requests": 1000.0}] * 3).judge().reason is Reason.RESOLUTION

    def test_counts_that_are_asked_for_whole_steps_are_counts(self, study):
        made = study(metrics=EXACT, contrast="a - b", predicts=">= 1", falsifier="< 1")
        made.extend(1.0, 1.0, 1.0, arm="a").extend(0.0, 0.0, 0.0, arm="b")
        assert made.judge().verdict is Verdict.SUPPORTED

    def test_an_exact_share_is_what_it_is(self, study):
        made = study(quantity="share(t > 5)", metrics=EXACT, predicts=">= 0.6", falsifier="< 0.6")
        assert made.extend(*[[9.0, 9.0, 1.0]] * 3).judge().verdict is Verdict.SUPPORTED


class TestFailures:
    """A failed repeat counts as one, and never for the claim."""

    @pytest.mark.parametrize("quantity", ["t > 5", "1 - (t < 5)", "t / 2 >= 5", "max(t > 5, t < 1)"])
    def test_crashes_do_not_support_that_few_are_slow(self, study, quantity):
        made = study(statistic="proportion", quantity=quantity, predicts="<= 0.2", falsifier="> 0.2")
        for _ in range(20):
            made.add(outcome="task-failed")
        judgement = made.judge()
        assert (judgement.verdict, judgement.reason) == (Verdict.INCONCLUSIVE, Reason.TASK_FAILED)
        assert judgement.detail == f'"{quantity}" could be either in 20 repeats, first e/1/1, which failed'

    @pytest.mark.parametrize("quantity", ["t > 5", "completed * (t < 5)", "t < 5"])
    def test_crashes_refute_what_they_are_no_success_of(self, study, quantity):
        made = study(statistic="proportion", quantity=quantity, predicts=">= 0.8", falsifier="< 0.8")
        for _ in range(20):
            made.add(outcome="task-failed")
        assert made.judge().verdict is Verdict.REFUTED

    def test_one_crash_that_changes_nothing_changes_nothing(self, study):
        made = study(statistic="proportion", quantity="t > 5", predicts="<= 0.4", falsifier="> 0.4")
        made.extend(*[1.0] * 19).add(outcome="task-failed")
        assert (made.judge().verdict, made.judge().estimate) == (Verdict.SUPPORTED, 0.0)

    @pytest.mark.parametrize("quantity", ["t > u", "loss > 3", "t / u > 3", "t - u > 3"])
    def test_a_timeout_is_no_answer_to_what_it_says_nothing_of(self, study, quantity):
        metrics = {"t": {"unit": "s"}, "u": {"unit": "s"}, "loss": {"unit": "1"}}
        asked = {"statistic": "proportion", "quantity": quantity, "metrics": metrics}
        few = study(predicts="<= 0.2", falsifier="> 0.2", **asked)
        for _ in range(20):
            few.add(outcome="timeout")
        assert few.judge().reason is Reason.CENSORED

    def test_a_timeout_is_slow(self, study):
        made = study(statistic="proportion", quantity="t > 5", predicts=">= 0.8", falsifier="< 0.8")
        for _ in range(20):
            made.add(outcome="timeout")
        assert made.judge().verdict is Verdict.SUPPORTED


class TestCaps:
    """A sample at its cap could be anything above it."""

    @pytest.mark.parametrize(("predicts", "falsifier"), [(">= 0.8", "< 0.8"), ("<= 0.2", "> 0.2")])
    @pytest.mark.parametrize(
        "quantity", ["t <= 6", "t > 6", "t == 5", "(t > 6) * (t < 9)", "1 - (2 * t < 12)"]
    )
    def test_it_decides_nothing_beyond_its_cap(self, study, quantity, predicts, falsifier):
        asked = {"statistic": "proportion", "quantity": quantity, "metrics": CAPPED}
        made = study(predicts=predicts, falsifier=falsifier, **asked).extend(*[5.0] * 20)
        assert (made.judge().verdict, made.judge().reason) == (Verdict.INCONCLUSIVE, Reason.CENSORED)

    def test_below_its_cap_it_is_an_answer(self, study):
        asked = {"statistic": "proportion", "quantity": "t <= 4", "metrics": CAPPED}
        made = study(predicts=">= 0.1", falsifier="< 0.1", **asked).extend(1.0, 2.0, 3.0, 5.0)
        assert (made.judge().verdict, made.judge().estimate) == (Verdict.SUPPORTED, 0.75)

    @pytest.mark.parametrize(("bound", "reason"), [(6, Reason.CENSORED), (4, None)])
    def test_trials_beyond_a_cap_were_never_seen_to_end(self, study, bound, reason):
        asked = {"statistic": "proportion", "divisor": "count(t)", "metrics": CAPPED}
        made = study(quantity=f"sum(t <= {bound})", predicts=">= 0.1", falsifier="< 0.1", **asked)
        for repeat in range(10):
            made.add([1.0] * (10 + repeat % 3) + [5.0])
        assert made.judge().reason is reason


class TestEmptyClaims:
    @pytest.mark.parametrize(("quantity", "predicts", "falsifier"), [
        ("share(t > 5)", "<= 1", "> 1"),
        ("1 - share(t > 5)", ">= 0", "< 0"),
        ("share(t > 5) * share(t < 9)", "<= 2", ">= 3"),
    ])  # fmt: skip
    def test_what_no_share_can_falsify_is_refused(self, study, quantity, predicts, falsifier):
        made = study(quantity=quantity, planned={"": 7}, predicts=predicts, falsifier=falsifier)
        (problem,) = made.design().problems
        assert problem.code == "PR034"
        assert "can never be refuted" in problem.message
        assert problem.message.endswith("does not exist, since it is from 0 to 1.")
