"""Each outcome put into each accepted plan: what it may change, and what nobody can turn with it.

The studies are those of the golden corpus; of a plan the plain one, or where it says so all of them.
"""

from __future__ import annotations

import functools
import re
from contextlib import suppress

import pytest
from golden_judging import Plan, corpus, series_of
from test_outcomes_by_estimand import kind_of, names, plain_studies

from pytest_prereg.errors import JudgeError
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.judge import Reason, Verdict

CENSORING = (Reason.CENSORED, Reason.RARE_EVENT)
BY_AUTHOR = {
    "invalid": {"outcome": "invalid"},
    "invalid before it recorded anything": {"outcome": "invalid", "lost": True},
    "excluded": {"outcome": "excluded"},
}


@functools.cache
def plan_of(label: str, allowed: int = 0) -> Plan:
    text, _ = plain_studies()[label]
    kept = re.sub(r"(?m)^max-excluded.*\n", "", text)
    return Plan(re.sub(r"(?m)^(repeats = .*)$", rf"\1\nmax-excluded = {allowed}", kept))


@functools.cache
def studies_of(label: str) -> list[dict]:
    """All studies of a plan in which every repeat is ok."""
    found, current = [], ""
    for line in corpus():
        if "text" in line:
            current = line["plan"]
        elif current == label and not line.get("changed") and not line.get("obstacles"):
            found.append(line)
    return found


def repeats_of(plan: Plan, study: dict) -> list:
    return [one for each in study["values"] for one in series_of(plan.study.experiments[each], study).repeats]


def of_middle(plan: Plan, study: dict) -> str:
    """A repeat of the first experiment, neither the first nor the last."""
    return repeats_of(plan, study)[1].id


def with_changes(study: dict, changes: dict, faults: tuple[str, ...] = ()) -> dict:
    return {**study, "changed": changes, "faults": (*study.get("faults", ()), *faults)}


def judgements(plan: Plan, study: dict) -> dict:
    return {name: plan.judge(name, study) for name in plan.study.predictions}


def verdicts(plan: Plan, study: dict) -> dict:
    """The verdicts alone; a value that can't be judged decides nothing."""
    found = {}
    for name in plan.study.predictions:
        found[name] = Verdict.INCONCLUSIVE
        with suppress(JudgeError):
            found[name] = plan.judge(name, study).verdict
    return found


def numbers(judgement) -> tuple:
    return judgement.estimate, judgement.interval, judgement.n, judgement.repeats


@pytest.mark.parametrize("label", names())
def test_a_slot_that_was_run_again_leaves_the_record_as_it_is(label):
    plan, (_, study) = plan_of(label), plain_studies()[label]
    lost = of_middle(plan, study)
    assert judgements(plan, with_changes(study, {}, (lost, lost))) == judgements(plan, study)


@pytest.mark.parametrize("label", names())
def test_what_was_lost_to_infrastructure_changes_n_and_the_reason_and_no_value(label):
    plan, (_, study) = plan_of(label), plain_studies()[label]
    lost = of_middle(plan, study)
    settled = {lost: {"outcome": "infrastructure", "lost": True}}
    without = judgements(plan, with_changes(study, {lost: {"gone": True}}))
    for name, judgement in judgements(plan, with_changes(study, settled, (lost,) * 9)).items():
        if lost in judgements(plan, study)[name].repeats:
            assert (judgement.verdict, judgement.reason) == (Verdict.INCONCLUSIVE, Reason.INFRASTRUCTURE)
        if not plan.stops(name):
            assert numbers(judgement) == numbers(without[name])


@pytest.mark.parametrize("label", names())
def test_a_failure_is_never_taken_for_a_timeout_nor_the_other_way(label):
    plan, (_, study) = plan_of(label), plain_studies()[label]
    at = of_middle(plan, study)
    failed = judgements(plan, with_changes(study, {at: {"outcome": "task-failed", "lost": True}}))
    timed_out = judgements(plan, with_changes(study, {at: {"outcome": "timeout", "lost": True}}))
    for name, prediction in plan.study.predictions.items():
        assert failed[name].reason not in CENSORING
        assert timed_out[name].reason is not Reason.TASK_FAILED
        uses = at in judgements(plan, study)[name].repeats
        if uses and kind_of(prediction) != "proportion" and not prediction.members:
            assert failed[name].reason is Reason.TASK_FAILED


@pytest.mark.parametrize("how", BY_AUTHOR)
@pytest.mark.parametrize("label", names())
def test_no_repeat_that_an_author_sets_aside_turns_a_verdict_or_makes_one(label, how):
    """Not the slowest, not the fastest, not any other; in every study of the corpus."""
    plan = plan_of(label, allowed=9)
    for study in studies_of(label):
        whole = verdicts(plan, study)
        for repeat in repeats_of(plan, study):
            without = verdicts(plan, with_changes(study, {repeat.id: BY_AUTHOR[how]}))
            turned = {name for name in whole if without[name] not in (whole[name], Verdict.INCONCLUSIVE)}
            assert not turned, repeat.id


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("label", names())
def test_nor_do_several_of_the_slowest(label, count):
    plan, (_, study) = plan_of(label, allowed=9), plain_studies()[label]
    whole = judgements(plan, study)
    repeats = [one for one in repeats_of(plan, study) if isinstance(one.values.get("t"), float)]
    for order in (
        sorted(repeats, key=lambda one: one.values["t"]),
        sorted(repeats, key=lambda one: -one.values["t"]),
    ):
        changes = {one.id: BY_AUTHOR["invalid"] for one in order[:count]}
        for name, judgement in judgements(plan, with_changes(study, changes)).items():
            assert judgement.verdict in (whole[name].verdict, Verdict.INCONCLUSIVE)


@pytest.mark.parametrize("label", names())
def test_a_rule_takes_a_repeat_out_and_tells_what_it_says(label):
    plan, (_, study) = plan_of(label, allowed=1), plain_studies()[label]
    out = of_middle(plan, study)
    ruled = with_changes(study, {out: {"outcome": "excluded", "by_rule": True}})
    whole, without = judgements(plan, study), judgements(plan, with_changes(study, {out: {"gone": True}}))
    for name, judgement in judgements(plan, ruled).items():
        if out not in whole[name].repeats:
            assert judgement.alternatives == ()
            continue
        assert judgement.set_aside == (out,)
        if not plan.stops(name):
            assert (judgement.verdict, judgement.reason) == (without[name].verdict, without[name].reason)
            assert numbers(judgement) == numbers(without[name])
            (other,) = judgement.alternatives
            assert (other.verdict, other.estimate, other.interval) == (
                whole[name].verdict,
                whole[name].estimate,
                whole[name].interval,
            )


@pytest.mark.parametrize("label", names())
def test_one_more_than_was_registered_forbids_a_verdict(label):
    plan, (_, study) = plan_of(label), plain_studies()[label]
    out = of_middle(plan, study)
    ruled = judgements(plan, with_changes(study, {out: {"outcome": "excluded", "by_rule": True}}))
    for judgement in ruled.values():
        if out in judgement.set_aside:
            assert judgement.verdict is Verdict.INCONCLUSIVE
            assert judgement.reason in (Reason.EXCLUDED, Reason.N_TOO_SMALL, Reason.STRADDLES)


@pytest.mark.parametrize("outcome", [Outcome.PILOT, Outcome.WARMUP])
@pytest.mark.parametrize("label", names())
def test_what_is_never_judged_has_no_value(label, outcome):
    plan, (_, study) = plan_of(label), plain_studies()[label]
    at = of_middle(plan, study)
    without = judgements(plan, with_changes(study, {at: {"gone": True}}))
    for name, judgement in judgements(plan, with_changes(study, {at: {"outcome": outcome.value}})).items():
        if not plan.stops(name):
            assert numbers(judgement) == numbers(without[name])
