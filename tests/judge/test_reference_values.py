"""Published or twice-computed values; each case carries its source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_prereg.judge import (
    clopper_pearson,
    coverage,
    fieller,
    n_for_power_t,
    paired_t,
    power_t,
    ranks,
    t_mixture_e_value,
    welch,
    welch_t,
    wilks_n,
    wilks_n_two_sided,
)

CASES = json.loads((Path(__file__).parents[1] / "cases" / "statistics.json").read_text(encoding="utf-8"))


def limits(interval):
    return [interval.low, interval.high]


def median_levels(_):
    found = [ranks(n, 0.5, 0.95) for n in (6, 7, 10, 20, 30)]
    assert found == [(1, 6), (1, 7), (2, 9), (6, 15), (10, 21)]
    return [coverage(n, 0.5, *pair) for n, pair in zip((6, 7, 10, 20, 30), found, strict=True)]


METHODS = {
    "r-sleep-paired": lambda data: limits(paired_t(data["x"], data["y"])),
    "r-sleep-welch": lambda data: [*welch_t(data["x"], data["y"]), *limits(welch(data["x"], data["y"]))],
    "newcombe-cp-81/263": lambda data: limits(clopper_pearson(data["k"], data["n"])),
    "newcombe-cp-0/20": lambda data: limits(clopper_pearson(data["k"], data["n"])),
    "scipy-binomtest-7/50": lambda data: limits(clopper_pearson(data["k"], data["n"])),
    "os-median-ranks": median_levels,
    "wilks-n": lambda _: [wilks_n(0.95), wilks_n(0.99), wilks_n(0.90), wilks_n_two_sided(0.95)],
    "fieller-dcstats": lambda data: limits(
        fieller(
            data["a"],
            data["b"],
            numerator_se=data["se_a"],
            denominator_se=data["se_b"],
            df=data["df"],
            confidence=0.9,
        )
    ),
    "r-power.t.test": lambda _: [power_t(20, 1), n_for_power_t(0.9, 1), n_for_power_t(0.9, 1, alpha=0.05)],
    "tmix-sleep": lambda data: [t_mixture_e_value(data["d"], g=data["g"])],
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_reference_value(case):
    assert METHODS[case["id"]](case["data"]) == pytest.approx(
        case["expected"], rel=case["tol"], abs=case["tol"]
    ), case["source"]


def test_upper_limits_of_quantiles_need_36_72_and_368_values_at_a_fortieth():
    assert [wilks_n(q, 0.975) for q in (0.9, 0.95, 0.99)] == [36, 72, 368]
    assert ranks(35, 0.9, 0.95)[1] is None
    assert ranks(36, 0.9, 0.95)[1] == 36
