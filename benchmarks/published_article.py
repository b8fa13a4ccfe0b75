"""The numbers of an article on reinforcement learning for LLM post-training, recomputed one by one.

The article states its assumptions: exact lengths, a fixed retention rate, four stages with given times.
"""

from __future__ import annotations

from published_model import ARTICLE, Found, Numbers

from pytest_prereg.measure.workloads.pipeline_models import (
    Discipline,
    Stage,
    period_bounds,
    schedule,
    steady_period,
)
from pytest_prereg.measure.workloads.token_budget import (
    expected_groups,
    filter_once,
    groups_quantile,
    groups_sd,
    retention_at,
    success_rates,
    tokens,
)

PROMPTS, GROUP, LENGTH, RETAINED = 64, 8, 2048, 0.25
BATCHES = 10
ROUND = (("rollout", 60), ("verify", 20), ("update", 30), ("sync", 10))

ARTICLE_NUMBERS = Numbers(ARTICLE)
number = ARTICLE_NUMBERS.number


def stages(*, shared: bool = False) -> list[Stage]:
    """The article's round, each stage on a resource of its own; or all but the verifier on one GPU."""
    return [
        Stage(name=name, seconds=seconds, resource="gpu" if shared and name != "verify" else name)
        for name, seconds in ROUND
    ]


@number("can mean at least four different things", "at least four")
def meanings() -> Found:
    """Meanings of "more token-efficient" that are listed."""
    listed = ("interaction samples", "training tokens", "tokens at use time", "compute and time")
    at_least = 4
    return Found(value=len(listed), holds=len(listed) >= at_least, note="Rows of the table below it.")


@number("exactly 2,048 generated tokens per response", "1,048,576", "tokens")
def tokens_generated() -> Found:
    """Tokens that a batch generates."""
    return Found(value=tokens(PROMPTS, GROUP, LENGTH), note=f"{PROMPTS} × {GROUP} × {LENGTH}.")


@number("filtering retains one quarter of the groups", "262,144", "tokens")
def tokens_kept() -> Found:
    """Tokens that training keeps."""
    once = filter_once(PROMPTS, RETAINED, group_tokens=GROUP * LENGTH)
    return Found(value=once.used, note="A quarter of the groups; responses are equally long.")


@number("and excludes 786,432", "786,432", "tokens")
def tokens_excluded() -> Found:
    """Tokens that were generated and are excluded."""
    once = filter_once(PROMPTS, RETAINED, group_tokens=GROUP * LENGTH)
    return Found(value=once.filtered, note="The other three quarters.")


@number("requires sampling 256 groups on average", "256", "groups")
def groups_sampled() -> Found:
    """Groups that are sampled until 64 are retained."""
    low, high = (groups_quantile(share, PROMPTS, RETAINED) for share in (0.05, 0.95))
    hard, easy = success_rates(RETAINED, GROUP)
    return Found(
        value=expected_groups(PROMPTS, RETAINED),
        note=f"A mean, with a standard deviation of {groups_sd(PROMPTS, RETAINED):.1f}: nine steps in ten "
        f"need {low} to {high}. Of groups of {GROUP} a quarter has a signal at a success rate of "
        f"{100 * hard:.1f} or {100 * easy:.1f} %, and {100 * retention_at(0.5, GROUP):.1f} % at one half.",
    )


@number("the stages take 60, 20, 30, and 10 seconds", "120", "s")
def synchronous_round() -> Found:
    """Length of a synchronous round."""
    return Found(value=schedule(stages(), 1).makespan, note="The sum of the stages.")


@number("lower bound is the slowest stage: 60 seconds per batch", "60", "s")
def pipeline_bound() -> Found:
    """Ideal steady-state period of the pipeline."""
    shared = stages(shared=True)
    reached = steady_period(shared, in_flight=2)
    in_order = steady_period(shared, in_flight=2, discipline=Discipline.IN_ORDER)
    return Found(
        value=period_bounds(stages()).highest,
        note="Needs four independent resources, as the article says. If rollout, update and synchronisation "
        f"share a GPU the bound is {period_bounds(shared).highest:g} s. With two batches in flight, first "
        f"come, first served reaches {reached:g}; a GPU that takes batch after batch has {in_order:g}: "
        "nothing gained.",
    )


@number("The first batch does not finish in 60 seconds", "not in 60 s")
def first_batch() -> Found:
    """When the first batch finishes."""
    made = schedule(stages(), BATCHES)
    first = max(service.end for service in made.services if service.batch == 0)
    return Found(
        value=first, holds=first > period_bounds(stages()).highest, note="In seconds: the whole round."
    )


@number("a twofold speedup is not guaranteed", "less than 2")
def speed_up() -> Found:
    """Speed-up by full overlap, over ten batches."""
    made, shared = schedule(stages(), BATCHES), schedule(stages(shared=True), BATCHES, in_flight=2)
    return Found(
        value=made.speed_up,
        holds=made.speed_up < made.synchronous / (BATCHES * period_bounds(stages()).highest),
        note=f"Ten batches take {made.makespan:g} s instead of {made.synchronous:g}; twofold is the limit of "
        f"endlessly many. With a shared GPU it is at most {shared.speed_up:g}.",
    )
