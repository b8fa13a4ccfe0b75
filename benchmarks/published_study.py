"""The numbers of "Reward Latency: The Instrument Broke More Than the Subject", recomputed one by one."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from published_model import STUDY, Found, Numbers
from scipy.special import ndtr

from pytest_prereg.judge.quantiles import chi_square_quantile, t_quantile
from pytest_prereg.measure.workloads.barrier_models import (
    BatchCost,
    batch_cost,
    hit_probability,
    idle_shares,
    knee,
    median_hit_probability,
)

if TYPE_CHECKING:
    from collections.abc import Callable

GENERATION, TRAINING, BUSY = 12.47, 12.20, 12.47 + 12.20
REWARD, DEADLINE = 2.0, 30.0
COMPLETIONS, REPEATS = 128, 7
VOCABULARY, MICRO_BATCH, FLOAT32, GIB = 151_936, 4, 4, 2**30
DUTY, T4, L4, SWING = 49.7, 83.7, 56.0, 22.0
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


def over_rounding(of: Callable[..., float], *values: float, half: float = 0.005) -> str:
    """The range of a result that comes of how its inputs were rounded."""
    corners = [of(*corner) for corner in product(*((value - half, value + half) for value in values))]
    return f"{min(corners):.5g} to {max(corners):.5g}"


def run_share(rate: float) -> float:
    """Idle share of a long run at a rate of timeouts, in per cent."""
    law = {"busy": BUSY, "reward": REWARD, "deadline": DEADLINE}
    return 100 * idle_shares(rate, COMPLETIONS, **law).ratio_of_sums


def cost(rate: float, completions: int) -> BatchCost:
    """What a batch of this size costs; its busy time shrinks with it."""
    law = {"reward": REWARD, "deadline": DEADLINE}
    return batch_cost(rate, completions, busy_per_completion=BUSY / COMPLETIONS, **law)


def expected_range(n: int) -> float:
    """Mean range of n standard normal values, d2, by the integral of Tippett 1925 (Biometrika 17)."""
    at, step = np.linspace(-12, 12, 4801, retstep=True)
    below = ndtr(at)
    return float((1 - (1 - below) ** n - below**n).sum() * step)


def range_test(difference: float, width: float, n: int) -> float:
    """Two-sided p of a mean's difference where only the range is known (Lord 1947, Biometrika 34).

    Exact for normal values: mean and range are independent, and the range has a known density.
    """
    at, step = np.linspace(-9, 9, 361, retstep=True)
    ranges, apart = np.linspace(0, 15, 361, retstep=True)
    low, high = at[:, None], at[:, None] + ranges
    density = np.exp(-(low**2 + high**2) / 2) / (2 * math.pi) * (ndtr(high) - ndtr(low)) ** (n - 2)
    of_range = n * (n - 1) * density.sum(axis=0) * step
    return float((of_range * 2 * ndtr(-abs(difference) / width * ranges * math.sqrt(n))).sum() * apart)


def bias(mean: float) -> tuple[float, float, str]:
    """t of a mean against the duty, the value that it has to exceed, and what that rests on."""
    sd = SWING / expected_range(REPEATS)
    t = (mean - DUTY) / (sd / math.sqrt(REPEATS))
    p = range_test(mean - DUTY, SWING, REPEATS)
    critical = t_quantile(REPEATS - 1, 0.95)
    note = (
        f"t of {mean - DUTY:.1f} points over 7 trials, against {critical:.3f}. Takes the trials for normal, "
        f"and their range of {SWING:g} for a standard deviation of {SWING:g} / {expected_range(REPEATS):.3f} "
        f"= {sd:.1f} (Tippett 1925); a test by the range itself has p = {p:.2g} (Lord 1947)."
    )
    return t, critical, note


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
    least, most = wait_for(54.95), wait_for(55.05)
    return Found(
        value=idle(DEADLINE),
        note=f"30 / (30 + 12.47 + 12.20); the rounding of the times leaves {low_to_high}. It takes a wait of "
        f"{least:.2f} to {most:.2f} s: the timeout, and what killing and collecting took. The study calls "
        "its figure the “identity … read at x=30”, where it is 54.9.",
    )


@number("2%, 5% and 10% all read 55.0%", "55.0", "%")
def saturation() -> Found:
    """Idle share at timeout rates of 2, 5 and 10 %."""
    law = {"busy": BUSY, "reward": REWARD, "deadline": DEADLINE}
    shares = [idle_shares(rate, COMPLETIONS, **law) for rate in (0.02, 0.05, 0.10)]
    runs, means = (
        ", ".join(f"{100 * share:.1f}" for share in column)
        for column in (
            [share.ratio_of_sums for share in shares],
            [share.mean_of_ratios for share in shares],
        )
    )
    return Found(
        value=100 * shares[0].median_step,
        note="All three read alike in the median step alone, and there 54.9. Of a whole run the shares are "
        f"{runs}, and the mean over steps {means}: from 2 to 5 % there is still growth.",
    )


@number("Nothing in between", "nothing between 7.5 and 55.0 %")
def in_between() -> Found:
    """Idle share of a whole run at a timeout rate of 1 %."""
    share = run_share(0.01)
    median = median_hit_probability(0.01, COMPLETIONS, REPEATS)
    rare = median_hit_probability(0.005, COMPLETIONS, REPEATS)
    return Found(
        value=share,
        holds=not idle(REWARD) < share < idle(DEADLINE),
        note="In per cent. True of a single step, and of the median of an odd number of them: that of seven "
        f"reads the higher value with a probability of {median:.2f} at 1 %, and {rare:.2f} at 0.5 %. What a "
        "run idles lies in between at every rate, as its wall clock is a sum over steps.",
    )


@number("reward stage at 5 to 13% of step time on a real code sandbox", "5 to 13 % on code")
def rollpacker_range() -> Found:
    """RollPacker's share of the reward stage for code."""
    tasks = ", ".join(f"{task} {share} %" for task, share in ROLLPACKER.items())
    return Found(
        value=ROLLPACKER["Code"],
        holds=min(ROLLPACKER.values()) == ROLLPACKER["Code"],
        note=f"In per cent. RollPacker's Table 1: {tasks}. The range is over three tasks; code is its end.",
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


@number("wrong by a factor of two in the denominator", "2")
def factor_in_the_denominator() -> Found:
    """Busy time with training over busy time without."""
    return Found(value=BUSY / GENERATION, note="(12.47 + 12.20) / 12.47.")


@number("on the L4 the bias is not statistically established at n=7", "not established")
def bias_on_the_l4() -> Found:
    """Whether NVML's bias on the L4 is told from chance."""
    t, critical, note = bias(L4)
    least, most = (SWING / math.sqrt(part) for part in (12.0, 42.0 / 12.0))
    extremes = " to ".join(f"{(L4 - DUTY) / (sd / math.sqrt(REPEATS)):.2f}" for sd in (most, least))
    return Found(
        value=t,
        holds=t < critical,
        note=f"{note} Seven values with that range have a standard deviation of {least:.1f} to {most:.1f}, "
        f"and t is {extremes}: only the trials themselves can settle it.",
    )


@number("only the swing is", "established")
def swing_on_the_l4() -> Found:
    """Least swing that seven trials leave, over that of the stimulus."""
    sd = SWING / expected_range(REPEATS)
    least = sd * math.sqrt((REPEATS - 1) / chi_square_quantile(REPEATS - 1, 0.975))
    stimulus = 0.04
    return Found(
        value=least / stimulus,
        holds=least > stimulus,
        note=f"The standard deviation is at least {least:.1f} points (one side of a χ² interval at 95 %), "
        f"the duty's whole interval {stimulus:g}.",
    )


@number("T4 came back at 83.7% mean", "biased")
def bias_on_the_t4() -> Found:
    """Whether NVML's bias on the T4 is told from chance."""
    t, critical, note = bias(T4)
    return Found(value=t, holds=t > critical, note=f"{note} The study implies it: only the L4 is taken back.")


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
    half = CREATES / 2 / CREATION_RATE
    return Found(
        value=half / CREATION_P50,
        holds=half > CREATION_P50,
        note=f"At 5/s the last of 256 is created after {CREATES / CREATION_RATE:.1f} s, and half of them "
        f"after {half:.1f}; measured, from the burst on, were 0.363 s.",
    )


@number("Thirteen of them in my own tooling", "more than the subject")
def instrument_and_subject() -> Found:
    """Bugs in the instrument over those in the subject."""
    return Found(
        value=13 / (17 - 13),
        holds=2 * 13 > 17,
        note=f"13 to 4; {100 * 13 / 17:.0f} % of all. The list isn't published.",
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
        f"from 1 to 0.5 %, and less than one from rates of {100 * _rate_that_saves(1.0):.1f} % on.",
    )


@number("materialises 2.9 GiB per micro-batch of 4", "2.9", "GiB")
def logits() -> Found:
    """One float32 copy of the logits of a micro-batch."""
    per_token = MICRO_BATCH * VOCABULARY * FLOAT32 / GIB
    least, most = math.ceil(2.85 / per_token), math.floor(2.95 / per_token)
    return Found(
        value=1280 * per_token,
        missing="the sequence length",
        note=f"4 × 1280 × 151,936 × 4 bytes fits, as do {least} to {most} tokens; 1280 is the only multiple "
        "of 64 among them. That is one copy: log_softmax returns another.",
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


@number("η, the warm-pool ceiling, moved 0.317 → 0.372", "0.372")
def warm_pool_ceiling() -> Found:
    """Warm-pool ceiling."""
    return Found(
        missing="work, workers and makespan of each burst",
        note=f"For the same work the makespan shrank by {100 * (1 - 0.317 / 0.372):.1f} %.",
    )


@number("about $7 of compute, roughly two thirds of which bought an idle GPU", "2/3")
def cost_of_idling() -> Found:
    """Share of the cost that bought an idle GPU."""
    return Found(
        missing="seconds and price of each run",
        note=f"The barrier alone idles for at most {idle(DEADLINE):.1f} %: starting, loading or pausing must "
        "be in it.",
    )


@number("Seventeen predictions … Nine have verdicts, three of them refuted", "17, 9, 3")
def predictions() -> Found:
    """Predictions, those with a verdict, those refuted."""
    return Found(missing="the list", note="8 are open, and 6 of the 9 were not refuted.")


@number("Seventeen bugs. Thirteen of them in my own tooling", "17, 13")
def bugs() -> Found:
    """Bugs, and those in the study's own tooling."""
    return Found(missing="the list", note="Four of the thirteen are described.")


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


@number("one cent … Settled for ten cents … Budgeted ±$360", "$0.01, $0.10, $360")
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
