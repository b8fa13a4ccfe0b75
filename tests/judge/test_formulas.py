from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy import stats

from pytest_prereg.errors import JudgeError
from pytest_prereg.evidence.model import Outcome, RecordedRepeat, Series
from pytest_prereg.judge import Reason, Verdict, fieller, student_t, welch
from pytest_prereg.judge.formulas import judge_formula
from pytest_prereg.registry.formulas import parse_formula
from pytest_prereg.registry.model import Arm, Experiment, Formula, Input, Metric, Prediction, Quantity
from pytest_prereg.registry.quantities import parse_quantity
from pytest_prereg.registry.regions import parse_region
from pytest_prereg.registry.tables import ConstantTable, ExperimentTable, PredictionTable

A = [1.00, 1.04, 0.97, 1.02, 0.99, 1.03, 0.98]
B = [2.10, 2.02, 1.95, 2.05, 1.99, 2.01, 2.08, 1.93]


@dataclass
class Claim:
    """A formula whose inputs are written as in a file; repeats are added by experiment and arm."""

    formula: str
    inputs: dict[str, str]
    predicts: str = "<= 100"
    falsifier: str = "> 100"
    pairing: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {"t": {"unit": "s"}, "u": {"unit": "s"}}
    )
    constants: dict[str, tuple] = field(default_factory=dict)
    max_excluded: int = 0
    planned: int | None = None
    confidence: float = 0.95
    repeats: dict[str, list[RecordedRepeat]] = field(default_factory=dict)
    faults: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def add(self, where: str, *rows: Any, outcome: str = "ok", **more: Any) -> Claim:
        """Appends a repeat for each row, which is that of ``t`` or all values by metric."""
        experiment, _, arm = where.partition("/")
        there = self.repeats.setdefault(experiment, [])
        for row in rows:
            index = 1 + sum(repeat.arm == arm for repeat in there)
            values = row if isinstance(row, dict) else {} if row is None else {"t": row}
            made = {"block": index, "machine": None, "position": len(there), **more}
            name = "/".join(part for part in (f"{experiment}/1", arm, str(index)) if part)
            made.setdefault("instruments", dict.fromkeys(values, "wall-clock"))
            there.append(
                RecordedRepeat(id=name, arm=arm, index=index, outcome=Outcome(outcome), values=values, **made)
            )
        return self

    def _input(self, name: str, text: str) -> Input:
        where, _, what = text.partition(":")
        if where == "constants":
            return Input(name=name, constant=what)
        experiment, _, arm = where.rstrip("]").partition("[")
        quantity = parse_quantity(what, self.metrics, self.constants)
        return Input(name=name, experiment=experiment, arm=arm, quantity=quantity)

    def judge(self, **more: Any):
        inputs = tuple(self._input(name, text) for name, text in sorted(self.inputs.items()))
        node = parse_formula(self.formula, self.inputs)
        names = tuple(sorted({each.experiment for each in inputs if each.experiment}))
        prediction = Prediction(
            id="p",
            claim="c",
            table=PredictionTable(claim="c"),
            experiments=names,
            arms=(),
            contrast=None,
            quantity=Quantity(text=self.formula, node=node, metrics=()),
            statistic="formula",
            formula=Formula(text=self.formula, node=node, inputs=inputs),
            predicts=parse_region(self.predicts),
            falsifier=parse_region(self.falsifier),
            confidence=self.confidence,
            line=1,
        )
        return judge_formula(
            prediction,
            {name: self._experiment(name) for name in names},
            {name: self._series(name) for name in names},
            predicts=prediction.predicts,
            falsifier=prediction.falsifier,
            constants={
                name: ConstantTable(value=value, interval=limits[0] if limits else None, source="paper")
                for name, (value, *limits) in self.constants.items()
            },
            **more,
        )

    def _experiment(self, name: str) -> Experiment:
        arms = {repeat.arm for repeat in self.repeats.get(name, [])} or {""}
        return Experiment(
            id=name,
            kind="import",
            table=ExperimentTable(max_excluded=self.max_excluded),
            arms={arm: Arm(name=arm, params={}, env={}, timeout=None, repeats=self.planned) for arm in arms},
            metrics={key: Metric(name=key, **made) for key, made in self.metrics.items()},
            pairing=self.pairing.get(name, "block"),
            source=None,
            line=1,
        )

    def _series(self, name: str) -> Series:
        experiment = self._experiment(name)
        return Series(
            experiment=name,
            number=1,
            origin="measured",
            pairing=experiment.pairing,
            planned=experiment.planned,
            repeats=tuple(self.repeats.get(name, [])),
            faults=self.faults.get(name, ()),
            complete=True,
            source=None,
            seed="",
            predictions={},
            sessions=(),
        )


def difference(**more):
    """The means of two experiments, subtracted."""
    return Claim("b - a", {"a": "one:t", "b": "two:t"}, **more).add("one", *A).add("two", *B)


class TestIntervals:
    def test_a_linear_formula_of_one_experiment_is_a_t_interval(self):
        made = Claim("2 * t - u + 1", {"t": "e:t", "u": "e:u"})
        rows = [{"t": a, "u": a + 0.1 * b} for a, b in zip(A, B, strict=False)]
        judgement = made.add("e", *rows).judge()
        expected = student_t([2 * row["t"] - row["u"] + 1 for row in rows])
        assert judgement.interval == pytest.approx((expected.low, expected.high), rel=1e-12)
        assert (judgement.method, judgement.statistic, judgement.n) == ("linear propagation", "formula", 7)
        assert judgement.flags == ("approximate",)

    def test_a_difference_of_two_experiments_is_welchs(self):
        judgement = difference().judge()
        expected = welch(B, A)
        assert judgement.interval == pytest.approx((expected.low, expected.high), rel=1e-12)
        assert judgement.estimate == pytest.approx(expected.estimate)
        assert (judgement.n, len(judgement.repeats)) == (7, 15)

    def test_arms_in_blocks_are_joint_and_others_are_not(self):
        drawn = np.random.default_rng(4).normal(1, 0.1, 12)
        shared = [float(one) for one in drawn]
        for pairing, width in (("block", 0.0012), ("none", 0.18)):
            made = Claim("b - a", {"a": "e[x]:t", "b": "e[y]:t"}, pairing={"e": pairing})
            made.add("e/x", *shared).add(
                "e/y", *[1 + one + 0.001 * (-1) ** k for k, one in enumerate(shared)]
            )
            low, high = made.judge().interval
            assert high - low == pytest.approx(width, rel=0.3)
            assert made.judge().n == 12

    def test_a_block_without_an_arm_is_dropped_whole(self):
        made = Claim("b - a", {"a": "e[x]:t", "b": "e[y]:t"})
        made.add("e/x", *A).add("e/y", *B)
        judgement = made.judge()
        assert (judgement.n, "e/1/y/8" in judgement.repeats) == (7, False)

    def test_a_ratio_is_close_to_fiellers(self):
        judgement = Claim("b / a", {"a": "one:t", "b": "two:t"}).add("one", *A).add("two", *B).judge()
        errors = {"numerator_se": stats.sem(B), "denominator_se": stats.sem(A)}
        expected = fieller(np.mean(B), np.mean(A), df=12.9, **errors)
        assert judgement.interval == pytest.approx((expected.low, expected.high), rel=3e-3)

    def test_it_covers_as_a_simulation_says(self):
        """30 / (g + t + 30), of two experiments of eight repeats, 600 studies: 95 % ± 4 standard errors."""
        rng = np.random.default_rng(9)
        truth, g, t = 30 / (8 + 4 + 30), 8 + rng.normal(0, 0.8, (600, 8)), 4 + rng.normal(0, 0.3, (600, 8))
        inside = 0
        for k in range(600):
            made = Claim("30 / (g + t + 30)", {"g": "one:t", "t": "two:t"})
            low, high = made.add("one", *map(float, g[k])).add("two", *map(float, t[k])).judge().interval
            inside += low <= truth <= high
        assert inside / 600 == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / 600))

    def test_a_constant_counts_with_its_interval(self):
        made = Claim("t * c", {"t": "e:t", "c": "constants:rate"}, constants={"rate": (3.0, (2.8, 3.2))})
        low, high = made.add("e", *A).judge().interval
        mean, error = np.mean(A), stats.sem(A)
        total = math.hypot(3 * error, mean * 0.2 / stats.norm.ppf(0.975))
        df = total**4 / ((3 * error) ** 4 / 6)
        half = stats.t.ppf(0.975, df) * total
        assert (low, high) == pytest.approx((3 * mean - half, 3 * mean + half), rel=1e-9)
        sure = Claim("t * c", {"t": "e:t", "c": "constants:rate"}, constants={"rate": (3.0,)})
        expected = student_t([3 * one for one in A])
        assert sure.add("e", *A).judge().interval == pytest.approx((expected.low, expected.high))

    def test_constants_in_an_input_are_their_values(self):
        made = Claim("2 * t", {"t": "e:t / constants.base"}, constants={"base": (4.0, (1.0, 9.0))})
        assert made.add("e", *A).judge().estimate == pytest.approx(np.mean(A) / 2)

    def test_the_unit_shown_is_a_factor(self):
        plain, scaled = difference().judge(), difference().judge(scale=1000.0)
        assert scaled.interval == pytest.approx([1000 * end for end in plain.interval])

    def test_a_declared_resolution_widens_by_what_it_can_move(self):
        metrics = {"t": {"unit": "s", "resolution": 0.1}}
        plain = Claim("3 * t", {"t": "e:t"}).add("e", *A).judge().interval
        coarse = Claim("3 * t", {"t": "e:t"}, metrics=metrics).add("e", *A).judge().interval
        assert coarse == pytest.approx((plain[0] - 0.15, plain[1] + 0.15))


class TestVerdicts:
    def test_supported_refuted_or_neither(self):
        assert difference(predicts="<= 1.2", falsifier="> 1.2").judge().verdict is Verdict.SUPPORTED
        assert difference(predicts="<= 0.5", falsifier=">= 0.8").judge().verdict is Verdict.REFUTED
        assert difference(predicts="<= 1", falsifier="> 1").judge().detail == "straddles 1"

    def test_another_confidence_may_be_asked_for(self):
        narrow, wide = difference().judge(confidence=0.5), difference().judge(confidence=0.99)
        assert narrow.interval[1] < difference().judge().interval[1] < wide.interval[1]
        assert (narrow.confidence, wide.confidence) == (0.5, 0.99)

    def test_reasons_from_outside_come_in_order(self):
        obstacles = [(Reason.INSTRUMENT, "not calibrated"), (Reason.INTEGRITY, "altered")]
        judgement = difference().judge(obstacles=obstacles)
        assert (judgement.reason, judgement.detail) == (Reason.INTEGRITY, "altered")
        assert judgement.interval is not None


class TestDoubts:
    def test_three_repeats_of_each_experiment_are_the_fewest(self):
        made = Claim("b - a", {"a": "one:t", "b": "two:t"}).add("one", *A).add("two", *B[:2])
        judgement = made.judge()
        assert (judgement.reason, judgement.detail) == (Reason.N_TOO_SMALL, "needs 3 repeats of two, has 2")
        assert made.add("two", B[2]).judge().interval is not None

    @pytest.mark.parametrize(
        ("formula", "rows"), [("1 / t", [1.0, -1.0, 0.0]), ("log(t)", [-1.0, -2.0, 1.0])]
    )
    def test_no_value_at_the_means_is_unbounded(self, formula, rows):
        judgement = Claim(formula, {"t": "e:t"}).add("e", *rows).judge()
        assert (judgement.reason, judgement.interval) == (Reason.UNBOUNDED, None)

    def test_a_denominator_that_may_be_zero_is_not_linear(self):
        made = Claim("1 / t", {"t": "e:t"}).add("e", 0.5, 1.5, -0.5, 2.0, 0.7)
        judgement = made.judge()
        assert judgement.reason is Reason.LINEARISATION
        assert judgement.detail.startswith("departs from a straight line by ")

    def test_a_kink_at_the_means_is_not_linear(self):
        made = Claim("max(t, 2)", {"t": "e:t"}).add("e", 1.0, 2.0, 3.0)
        judgement = made.judge()
        assert judgement.reason is Reason.LINEARISATION
        assert (
            judgement.detail
            == "no straight line at the means: min and max have no derivative where both are 2"
        )

    def test_curvature_within_a_tenth_decides(self):
        assert Claim("t ** 2", {"t": "e:t"}).add("e", *A).judge().verdict is Verdict.SUPPORTED
        wide = Claim("t ** 2", {"t": "e:t"}).add("e", 1.0, 2.0, 1.4, 0.6)
        assert wide.judge().reason is Reason.LINEARISATION

    @pytest.mark.parametrize(("count", "reason"), [(1, Reason.RARE_EVENT), (5, Reason.CENSORED)])
    def test_what_was_cut_off_counts_over_all_inputs_once_for_a_repeat(self, count, reason):
        made = Claim("t + u + v", {"t": "e:t", "u": "e:u", "v": "f:t"})
        made.add("e", *[{"t": a, "u": b} for a, b in zip(A, B, strict=False)]).add("f", *A)
        made.add("e", *[None] * (count // 2), outcome="timeout")
        judgement = made.add("f", *[None] * (count - count // 2), outcome="timeout").judge()
        assert judgement.reason is reason
        assert judgement.detail.startswith(f"{count} timeout")

    def test_a_cap_that_was_never_reached_is_said(self):
        made = Claim("2 * t", {"t": "e:t"}, metrics={"t": {"unit": "s", "cap": 5.0}}).add("e", *A)
        judgement = made.judge()
        assert judgement.flags == ("approximate", "tail-untested")
        assert judgement.detail.startswith("input t: no repeat reached the cap")

    def test_too_few_distinct_values_of_any_input(self):
        made = Claim("b - a", {"a": "one:t", "b": "two:t"}).add("one", *A).add("two", 1.0, 1.0, 1.1, 1.0)
        judgement = made.judge()
        assert judgement.reason is Reason.RESOLUTION
        assert judgement.detail.startswith("input b: fewer than 3 distinct values")

    def test_an_exact_input_may_be_constant_but_no_share(self):
        metrics = {"t": {"unit": "s"}, "u": {"unit": "1", "exact": True}}
        made = Claim("t / u", {"t": "e:t", "u": "e:u"}, metrics=metrics)
        assert made.add("e", *[{"t": a, "u": 4.0} for a in A]).judge().verdict is Verdict.SUPPORTED
        shares = Claim("t * u", {"t": "e:t", "u": "e:u"}, metrics=metrics)
        shares.add("e", *[{"t": a, "u": float(k % 2)} for k, a in enumerate(A)])
        assert shares.judge().reason is Reason.RESOLUTION

    def test_a_trend_in_any_input_is_drift(self):
        made = Claim("b - a", {"a": "one:t", "b": "two:t"}).add("one", *A)
        made.add("two", *[1 + 0.1 * k for k in range(8)])
        judgement = made.judge()
        assert judgement.reason is Reason.DRIFT
        assert "Mann-Kendall" in judgement.detail

    def test_values_that_are_no_numbers_name_the_repeat(self):
        with pytest.raises(JudgeError, match="e/1/3"):
            Claim("2 * t", {"t": "e:t"}).add("e", 1.0, 2.0, math.nan).judge()
        with pytest.raises(JudgeError, match='input "t"'):
            Claim("2 * t", {"t": "e:t"}).add("e", 1e-190, 1.1e-190, 0.9e-190).judge()

    def test_a_block_holds_one_repeat_of_each_arm(self):
        made = Claim("b - a", {"a": "e[x]:t", "b": "e[y]:t"}).add("e/x", *A).add("e/y", *A)
        with pytest.raises(JudgeError, match="PR141"):
            made.add("e/y", 1.0, block=7).judge()


class TestObstacles:
    def test_a_failure_in_any_experiment(self):
        judgement = difference().add("two", None, outcome="task-failed").judge()
        assert (judgement.reason, judgement.interval) == (Reason.TASK_FAILED, None)
        assert judgement.detail == "two: 1 repeat failed, first two/1/9; none is dropped"

    def test_experiments_on_different_machines_are_not_one_claim(self):
        made = Claim("b - a", {"a": "one:t", "b": "two:t"})
        made.add("one", *A, machine="H100").add("two", *B, machine="A100")
        judgement = made.judge()
        assert judgement.reason is Reason.SCOPE
        assert judgement.detail == "the experiments ran on different machines: one on H100; two on A100"
        unknown = Claim("b - a", {"a": "one:t", "b": "two:t"}).add("one", *A, machine="H100").add("two", *B)
        assert unknown.judge().verdict is Verdict.SUPPORTED

    def test_machines_within_an_experiment(self):
        made = Claim("2 * t", {"t": "e:t"}).add("e", *A[:4], machine="H100").add("e", *A[4:], machine="A100")
        assert made.judge().reason is Reason.SCOPE

    def test_faults_of_the_arms_used(self):
        made = difference(faults={"one": ("one/1/1",) * 3})
        assert made.judge().reason is Reason.INFRASTRUCTURE
        arms = Claim("2 * t", {"t": "e[x]:t"}, faults={"e": ("e/1/y/1",) * 3}).add("e/x", *A)
        assert arms.judge().verdict is Verdict.SUPPORTED

    def test_with_and_without_what_was_set_aside_the_verdict_must_agree(self):
        made = difference(predicts="<= 1.2", falsifier="> 1.2")
        made.add("one", 1.01, outcome="excluded", by_author=True)
        judgement = made.judge()
        assert (judgement.verdict, judgement.excluded, judgement.n) == (Verdict.SUPPORTED, 1, 7)
        judgement = made.add("two", 9.0, outcome="invalid").judge()
        assert judgement.reason is Reason.EXCLUDED
        assert judgement.detail == "supported without two/1/9, inconclusive with it"

    def test_without_a_value_no_verdict_agrees_whatever_max_excluded_says(self):
        made = difference().add("two", None, outcome="invalid")
        made.max_excluded = 1
        assert made.judge().detail == (
            "two: 1 repeat set aside without a value, first two/1/9: with it the verdict could be another"
        )

    def test_a_rule_takes_out_as_many_of_an_arm_as_were_registered(self):
        made = difference(predicts="<= 1.2", falsifier="> 1.2").add("two", 9.0, outcome="excluded")
        assert made.judge().detail == "two: 1 repeat excluded by rule; max-excluded is 0"
        made.max_excluded = 1
        judgement = made.judge()
        assert (judgement.verdict, judgement.excluded) == (Verdict.SUPPORTED, 1)
        assert [(each.counted, each.verdict) for each in judgement.alternatives] == [
            (("two/1/9",), Verdict.INCONCLUSIVE)
        ]

    def test_a_value_of_one_input_is_none_of_the_repeat(self):
        made = Claim("t + u", {"t": "e:t", "u": "e:u"})
        made.add("e", *[{"t": a, "u": b} for a, b in zip(A, B, strict=False)])
        assert made.add("e", {"t": 1.0}, outcome="invalid").judge().reason is Reason.EXCLUDED

    def test_every_repeat_set_aside(self):
        made = Claim("b - a", {"a": "one:t", "b": "two:t"}).add("one", *A)
        assert made.add("two", *B, outcome="invalid").judge().reason is Reason.EXCLUDED

    def test_an_unstated_instrument_is_flagged(self):
        made = Claim("2 * t", {"t": "e:t"}).add("e", *A, instruments={})
        assert made.judge().flags == ("approximate", "instrument-unstated")

    def test_what_is_beyond_the_plan_changes_nothing(self):
        made = difference(planned=7).judge()
        assert made.n == 7
        assert "two/1/8" not in made.repeats
        assert made.planned == 7


def test_a_prediction_without_a_formula_is_no_question_for_it(study):
    made = study()
    with pytest.raises(ValueError, match="has no formula"):
        judge_formula(
            made.prediction,
            {},
            {},
            predicts=made.prediction.predicts,
            falsifier=made.prediction.falsifier,
            constants={},
        )
