"""Looking early: the first verdict that decides, by a fresh interval at each look or by the rule for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from calibration_cases import TAIL
from calibration_estimands import TABLES
from calibration_studies import Registered, Tally, simulated, text_of
from calibration_tables import Claim, Page, allowed, markdown, pair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibration_cases import Case
    from calibration_studies import Evidence

    from pytest_prereg.judge.model import Judgement


class Plan(NamedTuple):
    """When the evidence is looked at, and how the tool is told so."""

    name: str
    looks: tuple[int, ...]
    repeats: str


EVERY = Plan("after every repeat, 3 to 30", tuple(range(3, 31)), '{ max = 30, stopping = "anytime" }')
THREE = Plan("at 10, 20 and 30", (10, 20, 30), "{ looks = [10, 20, 30] }")
EARLY = Plan("at 4, 7 and 10", (4, 7, 10), "{ looks = [4, 7, 10] }")
PLANS = (EVERY, THREE, EARLY)

NORMAL = "mean: normal, 2 %"
ASKED: tuple[tuple[Plan, str, str], ...] = (
    *((plan, "mean", NORMAL) for plan in PLANS),
    *((plan, "mean", "mean: log-normal, 0.3") for plan in PLANS),
    *((plan, "difference", "difference, paired: normal, 2 %") for plan in PLANS),
    *((plan, "geometric-ratio", "ratio of geometric means, paired: log-normal, 1") for plan in PLANS),
    (THREE, "median", "median: 10 + exponential"),
    (THREE, "proportion", "proportion: p = 0.9"),
)
"""Plan, table and key of the case: a few looks are for any estimand, one after each repeat is for means."""
EXACT = frozenset(key for _, table, key in ASKED if table != "mean" or key == NORMAL)
"""Where the rule has to keep its level."""


class Seen(NamedTuple):
    """Shares of false *supported* and false *refuted*: a fresh interval at each look, and the rule."""

    looks: str
    key: str
    naive: tuple[float, float]
    rule: tuple[float, float]
    studies: int


def seen(place: int, studies: int) -> Seen:
    """What comes of one entry of :data:`ASKED`, of the same studies both ways."""
    plan, table, key = ASKED[place]
    (case,) = [case for case in TABLES[table] if case.key == key]
    naive, rule = tallies(case, plan, studies)
    return Seen(plan.name, key, naive.wrong, rule.wrong, studies)


def tallies(case: Case, plan: Plan, studies: int) -> tuple[Tally, Tally]:
    """First verdicts that decide: of predictions that know of one look each, and of one that knows all."""
    fresh = [Registered(text_of(case, n)) for n in plan.looks]
    ruled = Registered(text_of(case, plan.repeats))
    naive, rule = Tally(), Tally()
    for values in simulated(case, plan.looks[-1], studies):
        evidence = ruled.evidence(values)
        naive.add(first_decision(fresh, evidence, plan.looks))
        rule.add(ruled.judge(evidence))
    return naive, rule


def first_decision(fresh: Sequence[Registered], evidence: Evidence, looks: Sequence[int]) -> Judgement:
    """The judgement at the first look that decides, or at the last: each as if it were the only one."""
    for registered, n in zip(fresh, looks, strict=True):
        seen_then = {name: [one for one in all_ if one.index <= n] for name, all_ in evidence.items()}
        judgement = registered.judge(seen_then)
        if judgement.reason is None:
            break
    return judgement


def page(results: list[Seen]) -> Page:
    """The table, a row for each plan and case."""
    lines = [(one.looks, one.key, pair(one.naive), pair(one.rule)) for one in results]
    table = markdown(("looks", "what", "fresh interval at each", "the rule"), lines, left=2)
    return Page(table, (_rule(results), _naive(results)))


def _rule(results: list[Seen]) -> Claim:
    claim = Claim(
        f"the rule errs in at most {100 * TAIL:g} % in each direction where its intervals are exact"
    )
    for one in results:
        if one.key in EXACT:
            claim.check(one.key, one.looks, pair(one.rule), max(one.rule) <= TAIL)
    return claim


def _naive(results: list[Seen]) -> Claim:
    claim = Claim("a fresh interval at each look errs far more often on normal values")
    for one in results:
        if one.key == NORMAL:
            often = min(one.naive) > allowed(TAIL, one.studies)
            claim.check(one.key, one.looks, pair(one.naive), often)
    return claim
