"""Looking early: verdicts taken as soon as one decides, with a fresh t at each look or by the rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from calibration_cases import ONLY, TAIL, Case
from calibration_populations import NARROW, NORMAL, Population
from calibration_studies import Registered, Tally, simulated, text_of
from calibration_tables import Claim, Page, allowed, markdown, pair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibration_studies import Values

    from pytest_prereg.judge.model import Judgement


class Plan(NamedTuple):
    """When the evidence is looked at, and how the tool is told so."""

    name: str
    looks: tuple[int, ...]


EVERY = Plan("after every repeat, 3 to 30", tuple(range(3, 31)))
THREE = Plan("at 10, 20 and 30", (10, 20, 30))
EARLY = Plan("at 4, 7 and 10", (4, 7, 10))
PLANS = (EVERY, THREE, EARLY)
POPULATIONS = (NORMAL, NARROW)


class Seen(NamedTuple):
    """Shares of false *supported* and false *refuted* of one plan and population."""

    plan: str
    values: str
    naive: tuple[float, float]
    studies: int


def case(population: Population) -> Case:
    """A mean on its edge."""
    return Case(
        estimand="looking early",
        values=population.name,
        metrics=population.metric,
        draw=lambda rng, studies, n: {ONLY: {"t": population.draw(rng, (studies, n))}},
        prediction=f'experiment = "e"\nquantity = "{population.quantity}"\nstatistic = "mean"',
        truth=population.mean,
    )


def seen(plan: int, population: int, studies: int) -> Seen:
    """What comes of a plan; both are given by their place in the tuples above."""
    looks, asked = PLANS[plan].looks, case(POPULATIONS[population])
    registered = [Registered(text_of(asked, n)) for n in looks]
    naive = Tally()
    for values in simulated(asked, looks[-1], studies):
        naive.add(first_decision(registered, values, looks))
    return Seen(PLANS[plan].name, asked.values, naive.wrong, studies)


def first_decision(registered: Sequence[Registered], values: Values, looks: Sequence[int]) -> Judgement:
    """The judgement at the first look that decides, or at the last: each as if it were the only one."""
    repeats = registered[-1].repeats(values)
    for one, n in zip(registered, looks, strict=True):
        judgement = one.judge(repeats[:n])
        if judgement.reason is None:
            break
    return judgement


def page(results: list[Seen]) -> Page:
    """The table, a row for each plan and population."""
    lines = [(one.plan, one.values, pair(one.naive)) for one in results]
    claim = Claim("a fresh t at every look is far above its level on normal data")
    for one in results:
        if one.values == NORMAL.name:
            claim.check(f"{one.plan}: {pair(one.naive)}", min(one.naive) > allowed(TAIL, one.studies))
    return Page(markdown(("looks", "values", "a fresh t at each"), lines, left=2), (claim,))
