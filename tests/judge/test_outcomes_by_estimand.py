"""Every accepted plan with every outcome: what one repeat that ended otherwise does to the verdict.

An outcome changes n and the reason, never a value. The studies are the plain ones of the golden corpus.
"""

from __future__ import annotations

import functools
import math

import pytest
from golden_judging import Plan, corpus

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.judge import Reason, Verdict
from pytest_prereg.registry.estimands import combinations

COUNTED = {"proportion"}
"""Statistics in which a repeat that failed is one of those counted."""
RANKED = {"median", "quantile"}
"""Statistics in which a repeat that timed out has a rank."""
ENDED = [
    Outcome.TASK_FAILED,
    Outcome.TIMEOUT,
    Outcome.INFRASTRUCTURE,
    Outcome.INVALID,
    Outcome.EXCLUDED,
]
FAULTS = 5
"""More than may be lost of so few repeats."""


@functools.cache
def plain_studies():
    """By plan: the prediction file, and its first study, in which every repeat is ok."""
    found, label, text = {}, "", ""
    for line in corpus():
        if "text" in line:
            label, text = line["plan"], line["text"]
        elif label not in found and line["study"] == "normal":
            found[label] = text, line
    return found


def names():
    accepted = (each for each in combinations() if each.refusal is None)
    return [", ".join(filter(None, (*each.estimand, each.pairing, each.early))) for each in accepted]


def judged(label, outcome=None, *, at=2):
    """Judgements by prediction, with one repeat of the first experiment's first arm changed."""
    text, line = plain_studies()[label]
    plan = Plan(text)
    arm = next(iter(line["values"]["e"]))
    repeat = "/".join(part for part in ("e", "1", arm, str(at)) if part)
    changed = dict(line)
    if outcome is not None:
        lost = outcome not in (Outcome.INVALID, Outcome.EXCLUDED)
        changed["changed"] = {repeat: {"outcome": outcome.value, "lost": lost}}
    if outcome is Outcome.INFRASTRUCTURE:
        changed["faults"] = [repeat] * FAULTS
    return {
        name: (plan.study.predictions[name], plan.judge(name, changed))
        for name in plan.study.predictions
        if uses(plan, name, arm)
    }


def uses(plan, name, arm):
    prediction = plan.study.predictions[name]
    if prediction.members:
        return True
    if prediction.formula is not None:
        return any((each.experiment, each.arm) == ("e", arm) for each in prediction.formula.inputs)
    return arm in prediction.arms


def kind_of(prediction):
    if prediction.divisor is not None and prediction.statistic == "proportion":
        return "clustered"
    return prediction.statistic


def test_the_corpus_has_a_plain_study_of_every_plan():
    assert set(names()) <= set(plain_studies())


@pytest.mark.parametrize("label", names())
def test_all_ok(label):
    for _, judgement in judged(label).values():
        assert judgement.verdict in Verdict
        assert judgement.reason in (None, Reason.STRADDLES, Reason.N_TOO_SMALL, Reason.LINEARISATION)
        if judgement.interval is not None and judgement.estimate is not None:
            low, high = judgement.interval
            assert low <= judgement.estimate <= high


@pytest.mark.parametrize("label", names())
def test_a_failure_is_counted_or_forbids_a_verdict(label):
    for prediction, judgement in judged(label, Outcome.TASK_FAILED).values():
        if kind_of(prediction) in COUNTED:
            assert judgement.reason is not Reason.TASK_FAILED
        else:
            assert judgement.reason is Reason.TASK_FAILED
            assert judgement.interval is None


@pytest.mark.parametrize("label", names())
def test_a_timeout_is_never_a_failure(label):
    for prediction, judgement in judged(label, Outcome.TIMEOUT).values():
        kind = kind_of(prediction)
        assert judgement.reason is not Reason.TASK_FAILED
        if kind in RANKED:
            assert judgement.interval is None or judgement.interval[1] >= judged(label)["p"][1].interval[1]
        elif kind not in COUNTED:
            assert judgement.verdict is Verdict.INCONCLUSIVE
            assert judgement.reason in (Reason.RARE_EVENT, Reason.CENSORED, Reason.N_TOO_SMALL)


@pytest.mark.parametrize("label", names())
def test_infrastructure_changes_the_reason_alone(label):
    for _, judgement in judged(label, Outcome.INFRASTRUCTURE).values():
        assert judgement.verdict is Verdict.INCONCLUSIVE
        assert judgement.reason is Reason.INFRASTRUCTURE


@pytest.mark.parametrize("outcome", [Outcome.INVALID, Outcome.EXCLUDED])
@pytest.mark.parametrize("label", names())
def test_what_was_set_aside_decides_nothing(label, outcome):
    """The verdict is that of all repeats, or inconclusive; the values of the others stay."""
    whole = judged(label)
    for name, (_, judgement) in judged(label, outcome).items():
        assert judgement.excluded == 1
        if judgement.verdict is not Verdict.INCONCLUSIVE:
            assert judgement.verdict is whole[name][1].verdict
        assert judgement.estimate is None or math.isfinite(judgement.estimate)


@pytest.mark.parametrize("outcome", [None, *ENDED])
def test_no_outcome_of_any_repeat_makes_another_verdict_of_a_plain_mean(outcome):
    for at in range(1, 8):
        ((_, judgement),) = judged("mean, none", outcome, at=at).values()
        assert judgement.verdict in (Verdict.INCONCLUSIVE, judged("mean, none")["p"][1].verdict)
