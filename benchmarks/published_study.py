"""The numbers of "Reward Latency: The Instrument Broke More Than the Subject", recomputed one by one."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from published_model import STUDY, Found, Numbers
from published_range import expected_range, possible_deviations, range_quantile, range_test

from pytest_prereg.judge.quantiles import chi_square_quantile, t_quantile
from pytest_prereg.measure.workloads.barrier_models import (
    BatchCost,
    batch_cost,
    hit_probability,
    idle_shares,
    knee,
    median_hit_probability,
    wait_cdf,
)

if TYPE_CHECKING:
    from collections.abc import Callable

GENERATION, TRAINING, BUSY = 12.47, 12.20, 12.47 + 12.20
REWARD, DEADLINE = 2.0, 30.0
LAW = {"reward": REWARD, "deadline": DEADLINE}
COMPLETIONS, REPEATS = 128, 7
VOCABULARY, MICRO_BATCH, FLOAT32, GIB = 151_936, 4, 4, 2**30
DUTY, T4, L4, SWING = 49.7, 83.7, 56.0, 22.0
CRITICAL = t_quantile(REPEATS - 1, 0.95)
CREATES, CREATION_RATE, CREATION_P50 = 256, 5.0, 0.363
ROLLPACKER = {"Math": 5, "Code": 13, "LLM-as-a-Judge": 7}
"""Per cent of the step in the reward stage (RollPacker, Table 1)."""

STUDY_NUMBERS = Numbers(STUDY)
number = STUDY_NUMBERS.number


def idle(waits: float, busy: float = BUSY) -> float:
    """Share of a step that waits, in per cent."""
    return 100 * waits / (waits + busy)


def wait_for(share: float) -> float:
    """Seconds of waiting that make up this per cent of a step."""
    return share / (100 - share) * BUSY


def busy_for(share: float) -> float:
    """Seconds of generating and training beside which the timeout makes up this per cent of a step."""
    return (100 - share) / share * DEADLINE


def over_rounding(of: Callable[..., float], *values: float, half: float = 0.005) -> str:
    """The range of a result that comes of how its inputs were rounded."""
    corners = [of(*corner) for corner in product(*((value - half, value + half) for value in values))]
    return f"{min(corners):.5g} to {max(corners):.5g}"


def run_share(rate: float) -> float:
    """Idle share of a long run at a rate of timeouts, in per cent."""
    return 100 * idle_shares(rate, COMPLETIONS, busy=BUSY, **LAW).ratio_of_sums


def cost(rate: float, completions: int) -> BatchCost:
    """What a batch of this size costs; its busy time shrinks with it."""
    return batch_cost(rate, completions, busy_per_completion=BUSY / COMPLETIONS, **LAW)


def bias(mean: float) -> tuple[float, float, str]:
    """t of a mean against the duty with the least spread possible and the most, and what that rests on."""
    sd = SWING / expected_range(REPEATS)
    t, of_most, of_least = (
        (mean - DUTY) / (each / math.sqrt(REPEATS)) for each in (sd, *possible_deviations(SWING, REPEATS))
    )
    least, most = possible_deviations(SWING, REPEATS)
    p = range_test(mean - DUTY, SWING, REPEATS)
    note = (
        f"t of {mean - DUTY:.1f} points over 7 trials, against {CRITICAL:.3f}. Reads “about 22 points trial "
        "to trial” as the range of the seven. Seven values with that range have a standard deviation of "
        f"{least:.1f} to {most:.1f}, and t is {of_least:.2f} to {of_most:.2f}; of normal ones {sd:.1f} is to "
        f"be expected (22 / {expected_range(REPEATS):.3f}, Tippett 1925), t {t:.2f}, and a test by the range "
        f"itself has p = {p:.2g} (Lord 1947)."
    )
    return of_least, of_most, note


@number("7.5% or 55.0%", "7.5", "%")
def idle_at_the_median() -> Found:
    """Idle share of a step that waits for a usual reward."""
    low_to_high = over_rounding(lambda g, t: idle(REWARD, g + t), GENERATION, TRAINING)
    return Found(
        value=idle(REWARD), note=f"2 / (2 + 12.47 + 12.20); the rounding of the times leaves {low_to_high}."
    )


@number("7.5% or 55.0%", "55.0", "%")
def idle_at_the_deadline() -> Found:
    """Idle share of a step that waits for a timeout."""
    low_to_high = over_rounding(lambda g, t: idle(DEADLINE, g + t), GENERATION, TRAINING)
    least, most = busy_for(55.05), busy_for(54.95)
    beside = " to ".join(f"{idle(REWARD, busy):.2f}" for busy in (most, least))
    return Found(
        value=idle(DEADLINE),
        note=f"30 / (30 + 12.47 + 12.20); the rounding of the times leaves {low_to_high}. It takes a wait of "
        f"{wait_for(54.95):.2f} to {wait_for(55.05):.2f} s (the timeout, and what killing and collecting "
        f"took), or with 30 s exactly a busy time of {least:.2f} to {most:.2f} s, "
        f"{100 * (1 - most / BUSY):.1f} to {100 * (1 - least / BUSY):.1f} % under the published times, which "
        f"are those of another run (of Gate A); the 7.5 is then {beside} and holds. The study calls its "
        "figure the “identity … read at x=30”, where it is 54.9.",
    )


@number("2%, 5% and 10% all read 55.0%", "the same at 2, 5 and 10 %")
def saturation() -> Found:
    """Idle share of the median step at timeout rates of 2, 5 and 10 %."""
    shares = [idle_shares(rate, COMPLETIONS, busy=BUSY, **LAW) for rate in (0.02, 0.05, 0.10)]
    runs, means = (
        ", ".join(f"{100 * share:.1f}" for share in column)
        for column in (
            [share.ratio_of_sums for share in shares],
            [share.mean_of_ratios for share in shares],
        )
    )
    medians = {share.median_step for share in shares}
    return Found(
        value=100 * max(medians),
        holds=len(medians) == 1,
        note="In per cent: that it is 54.9 and not 55.0 is the headline's discrepancy, no other. All three "
        f"read alike in the median step alone. Of a whole run the shares are {runs}, and the mean over steps "
        f"{means}: from 2 to 5 % there is still growth.",
    )


@number("once at least one timeout per batch is near certain", "near certain")
def near_certain() -> Found:
    """Share of steps with at least one timeout at a rate of 2 %."""
    hit = {rate: 100 * hit_probability(rate, COMPLETIONS) for rate in (0.02, 0.05, 0.10)}
    certain = 90
    return Found(
        value=hit[0.02],
        holds=hit[0.02] > certain,
        note="In per cent; takes nine in ten for near certain, which is loose: at 2 % one step in "
        f"{100 / (100 - hit[0.02]):.0f} is not hit. At 5 % {hit[0.05]:.2f} are, at 10 % {hit[0.10]:.4f}.",
    )


@number("Nothing in between", "nothing in between")
def in_between() -> Found:
    """Share of steps that wait for longer than a usual reward and not until the timeout, at 1 %."""
    usual, before_the_deadline = wait_cdf(
        np.array([REWARD, math.nextafter(DEADLINE, 0)]), 0.01, COMPLETIONS, **LAW
    )
    median = median_hit_probability(0.01, COMPLETIONS, REPEATS)
    rare = median_hit_probability(0.005, COMPLETIONS, REPEATS)
    return Found(
        value=float(before_the_deadline - usual),
        holds=bool(before_the_deadline == usual),
        note="True of a step, and of the median of an odd number of them: that of seven reads the higher "
        f"value with a probability of {median:.2f} at 1 %, and {rare:.2f} at 0.5 %. Not of a run, as the "
        f"study corrects later: at 1 % it idles for {run_share(0.01):.1f} % of its time, and in between at "
        "every rate but 0 and 1.",
    )


@number("reward stage at 5 to 13% of step time on a real code sandbox", "5 to 13 % on code")
def rollpacker_range() -> Found:
    """RollPacker's share of the reward stage for code."""
    tasks = ", ".join(f"{task} {share} %" for task, share in ROLLPACKER.items())
    return Found(
        value=ROLLPACKER["Code"],
        holds=min(ROLLPACKER.values()) == ROLLPACKER["Code"],
        note=f"In per cent. RollPacker's Table 1: {tasks}. The range is over three tasks; code is its end. "
        "With its tail batching, which shortens the rollout, the same paper has nearly 22 % for code (Figure "
        "4b), and a timeout of 30 s that about 5 % of prompts reach.",
    )


@number("At a 1% per-completion rate with 128 completions, 72% of steps", "72", "%")
def steps_hit() -> Found:
    """Share of steps with at least one timeout."""
    return Found(
        value=100 * hit_probability(0.01, COMPLETIONS), note="1 − 0.99¹²⁸; completions are independent."
    )


@number("generation 12.47 s, training 12.20 s. Ratio 0.978", "0.978")
def training_over_generation() -> Found:
    """Training time over generation time."""
    low_to_high = over_rounding(lambda g, t: t / g, GENERATION, TRAINING)
    return Found(value=TRAINING / GENERATION, note=f"The rounding of the times leaves {low_to_high}.")


@number("T_train equals T_gen", "equal")
def training_equals_generation() -> Found:
    """Training time over generation time, in the words of the heading."""
    ratio, within = TRAINING / GENERATION, 0.05
    return Found(
        value=ratio,
        holds=abs(ratio - 1) < within,
        note=f"Takes a twentieth for equal; it is {100 * (1 - ratio):.1f} % less.",
    )


@number("wrong by a factor of two in the denominator", "2")
def factor_in_the_denominator() -> Found:
    """Busy time with training over busy time without."""
    return Found(value=BUSY / GENERATION, note="(12.47 + 12.20) / 12.47.")


@number("on the L4 the bias is not statistically established at n=7", "not established")
def bias_on_the_l4() -> Found:
    """Whether NVML's bias on the L4 is told from chance."""
    *_, note = bias(L4)
    return Found(missing="the seven trials", note=f"{note} Either is possible.")


@number("only the swing is", "established")
def swing_on_the_l4() -> Found:
    """How many times wider than the stimulus's interval the readings spread, at least."""
    stimulus = 0.04
    by_range = SWING / range_quantile(0.975, REPEATS)
    by_deviation = [
        sd * math.sqrt((REPEATS - 1) / chi_square_quantile(REPEATS - 1, 0.975))
        for sd in possible_deviations(SWING, REPEATS)
    ]
    least = min(by_range, *by_deviation)
    return Found(
        value=round(least / stimulus, -1),
        holds=least > stimulus,
        note="Of normal readings with a range of 22 the standard deviation is "
        f"{by_range:.1f} points or more (lower end of a 95 % interval by the range's own law, 22 / "
        f"{range_quantile(0.975, REPEATS):.3f}); by χ² it is {by_deviation[0]:.1f} to {by_deviation[1]:.1f}, "
        "over the standard deviations that seven such values can have. The duty's whole interval is "
        f"{stimulus:g}.",
    )


@number("T4 came back at 83.7% mean", "biased")
def bias_on_the_t4() -> Found:
    """Least t of NVML's bias on the T4."""
    least, _, note = bias(T4)
    return Found(
        value=round(least, 2),
        holds=least > CRITICAL,
        note=f"{note} The study implies it: only the L4 is taken back.",
    )


@number("sandboxes count against … 100-container Starter limit. They do not", "they do not")
def container_limit() -> Found:
    """Sandboxes that were created at once, over the limit."""
    return Found(
        value=CREATES / 100,
        holds=CREATES > 100,
        note="All of 256 that are there at once can't be within 100.",
    )


@number("rate-limits creation at 5/s, and MODAL_SANDBOX_V2=1 clears it", "cleared")
def creation_limit() -> Found:
    """Time that the limit makes the median sandbox wait, over the measured one."""
    last, half = ((created - 1) / CREATION_RATE for created in (CREATES, CREATES / 2))
    return Found(
        value=half / CREATION_P50,
        holds=half > CREATION_P50,
        note=f"At 5/s, the first at once, the 128th of 256 is created after {half:.1f} s and the last after "
        f"{last:.1f}; measured were 0.363 s, from when on is not published.",
    )


@number("Thirteen of them in my own tooling", "more than the subject")
def instrument_and_subject() -> Found:
    """Bugs in the instrument over those in the subject."""
    return Found(
        value=13 / (17 - 13),
        holds=2 * 13 > 17,
        note=f"13 to 4; {100 * 13 / 17:.0f} % of all. The list isn't published.",
    )


@number("Smaller barriers lower the odds of eating the timeout", "lower")
def odds_of_smaller_barriers() -> Found:
    """Share of steps of 32 completions with at least one timeout, at 1 %."""
    small, usual = (100 * hit_probability(0.01, n) for n in (32, COMPLETIONS))
    return Found(value=small, holds=small < usual, note=f"In per cent; of 128 completions it is {usual:.1f}.")


@number("Same review pass caught three more", "3")
def caught_three_more() -> Found:
    """Errors of that review that are listed."""
    listed = ("above the knee", "the mean is useless", "the same identity")
    return Found(
        value=len(listed),
        note="That halving buys nothing, that the mean is useless, and that the headline is an identity.",
    )


@number("raise what it costs, nearly fourfold per completion", "nearly fourfold")
def fourfold() -> Found:
    """Cost per completion of a smaller barrier, over that of 128."""
    usual = {rate: cost(rate, COMPLETIONS) for rate in (0.01, 0.05, 0.10)}
    wait = cost(0.10, 32).wait_per_completion / usual[0.10].wait_per_completion
    wall = cost(0.05, 8).seconds_per_completion / usual[0.05].seconds_per_completion
    hit = {
        n: cost(0.01, n).hit_step_per_completion / usual[0.01].hit_step_per_completion for n in (32, 20, 16)
    }
    return Found(
        value=wait,
        missing="the size of the smaller batch, and which cost is meant",
        note=f"What fits: expected wait at 10 %, 128 → 32: {wait:.2f}; expected wall clock at 5 %, 128 → 8: "
        f"{wall:.2f}; a step that is hit, 128 → 20: {hit[20]:.2f} (32: {hit[32]:.2f}, 16: {hit[16]:.2f}). "
        "The timeout alone, 128 → 32, is 4 exactly.",
    )


@number("is only true above the knee", "halving buys nothing above the knee")
def halving() -> Found:
    """Points of idle share that halving a timeout rate of 2 % saves, over a run."""
    saved = {rate: run_share(rate) - run_share(rate / 2) for rate in (0.10, 0.02, 0.01)}
    return Found(
        value=saved[0.02],
        missing="where the knee lies",
        note=f"The median step jumps at {100 * knee(COMPLETIONS):.2f} %, and gains nothing above. A run "
        f"gains {saved[0.10]:.2f} points from 10 to 5 %, {saved[0.02]:.1f} from 2 to 1 %, {saved[0.01]:.1f} "
        f"from 1 to 0.5 %, and less than one from rates of {100 * _rate_that_saves(1.0):.2f} % on.",
    )


@number("materialises 2.9 GiB per micro-batch of 4", "2.9", "GiB")
def logits() -> Found:
    """One float32 copy of the logits of a micro-batch."""
    per_token = MICRO_BATCH * VOCABULARY * FLOAT32 / GIB
    least, most = math.ceil(2.85 / per_token), math.floor(2.95 / per_token)
    return Found(
        value=1280 * per_token,
        missing="the sequence length",
        note=f"4 × 1280 × 151,936 × 4 bytes fits, as do {least} to {most} tokens, of which 1280 is the only "
        "multiple of 64: if one copy is meant. log_softmax returns another, and two of 640 tokens are as "
        "much.",
    )


@number("with a 70% idle figure", "70", "%")
def dropped_figure() -> Found:
    """Idle share of a step that waits for a timeout, if training is free."""
    return Found(
        value=idle(DEADLINE, GENERATION),
        missing="where it is from",
        note="30 / (30 + 12.47) is near and rounds to 71. So is another thing, the rollout's share of a "
        "step: about 70 % in RollPacker.",
    )


@number("η, the warm-pool ceiling, moved 0.317 → 0.372", "0.317, 0.372")
def warm_pool_ceiling() -> Found:
    """Warm-pool ceiling, of one burst and of seven."""
    return Found(
        missing="work, workers and makespan of each burst",
        note=f"For the same work the makespan shrank by {100 * (1 - 0.317 / 0.372):.1f} %.",
    )


@number("about $7 of compute, roughly two thirds of which bought an idle GPU", "2/3")
def cost_of_idling() -> Found:
    """Share of the cost that bought an idle GPU."""
    return Found(
        missing="seconds and price of each run",
        note=f"At N = 128 with training a step idles at the barrier for at most {idle(DEADLINE):.1f} %, "
        f"without training for {idle(DEADLINE, GENERATION):.1f}, and one of 32 completions that is hit for "
        f"{idle(DEADLINE, BUSY / 4):.0f}. Starting, loading or pausing may be in it.",
    )


@number("Seventeen predictions … Nine have verdicts, three of them refuted", "17, 9, 3")
def predictions() -> Found:
    """Predictions, those with a verdict, those refuted."""
    return Found(missing="the list", note="8 are open, and 6 of the 9 were not refuted.")


@number("Seventeen bugs. Thirteen of them in my own tooling", "17, 13")
def bugs() -> Found:
    """Bugs, and those in the study's own tooling."""
    return Found(missing="the list", note="At least four of the thirteen are described.")


@number("generation 12.47 s, training 12.20 s", "12.47, 12.20", "s")
def step_times() -> Found:
    """Times of the two stages of a step."""
    return Found(missing="the repeats")


@number("T4 came back at 83.7% mean, L4 at 56.0%, both swinging about 22 points", "83.7, 56.0, 22", "%")
def nvml_means() -> Found:
    """NVML's readings of the square wave."""
    return Found(missing="the seven trials of each GPU")


@number("a duty cycle I measured at 49.7% … four ten-thousandths wide", "49.7", "%")
def duty() -> Found:
    """Duty of the square wave, and its interval."""
    return Found(missing="the pulses, and how the interval was made")


@number("recover the wave to within 4 to 9 points, biased low", "4 to 9", "points")
def profiler() -> Found:
    """Error of kernel intervals."""
    return Found(missing="the trials, and how long the kernels were")


@number("It read ~100% busy", "100", "%")
def unsynchronised() -> Found:
    """Reading of a wave that was not synchronised."""
    return Found(missing="how much work was queued in each period")


@number("256 of 256 concurrent creates succeeded, p50 363 ms", "363", "ms")
def creation_time() -> Found:
    """Median time to create a sandbox."""
    return Found(missing="the 256 times", note="One burst.")


@number("one cent … Budgeted ±$360 … Settled for ten cents", "$0.01, ±$360, $0.10")
def costs() -> Found:
    """Costs of the single steps."""
    return Found(missing="seconds and prices")


def _rate_that_saves(points: float) -> float:
    """The rate above the steepest part of the curve at which halving saves just that much, by bisection."""
    low, high = 0.01, 0.10
    for _ in range(60):
        middle = (low + high) / 2
        if run_share(middle) - run_share(middle / 2) > points:
            low = middle
        else:
            high = middle
    return high
