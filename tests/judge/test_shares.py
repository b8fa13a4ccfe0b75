from __future__ import annotations

import pytest

from pytest_prereg.judge import Verdict, student_t
from pytest_prereg.judge.shares import is_share
from pytest_prereg.registry.quantities import parse_quantity

METRICS = {"t": {"unit": "s"}, "u": {"unit": "s"}}
HIGH = [[1.0] * 97 + [9.0] * 3, [1.0] * 100, [1.0] * 99 + [9.0], [1.0] * 98 + [9.0] * 2]


@pytest.mark.parametrize(
    "text",
    [
        "share(t < 2)",
        "1 - share(t < 2)",
        "min(share(t < 2), share(u < 2))",
        "max(share(t < 2), 0.5)",
        "mean(t < 2)",
        "1 - (1 - share(t < 2))",
        "share(t < 2) * share(u < 2)",
        "quantile(t < 2, 0.5)",
    ],
)
def test_a_share_is_between_0_and_1_by_how_it_is_written(text):
    assert is_share(parse_quantity(text, METRICS).node)


@pytest.mark.parametrize(
    "text",
    [
        "t",
        "t / u",
        "2 * share(t < 2)",
        "1 - t",
        "2 - share(t < 2)",
        "share(t < 2) - share(u < 2)",
        "share(t < 2) + share(u < 2)",
        "share(t < 2) / share(u < 2)",
        "max(share(t < 2), 1.5)",
        "-share(t < 2)",
        "sum(t < 2)",
        "log(share(t < 2))",
    ],
)
def test_what_could_lie_beyond_is_none(text):
    assert not is_share(parse_quantity(text, METRICS).node)


def test_the_interval_of_a_mean_of_shares_ends_at_1(study):
    made = study(quantity="share(t < 2)", predicts="[0.9, 1]", falsifier="< 0.9").extend(*HIGH)
    plain = student_t([0.97, 1.0, 0.99, 0.98])
    assert plain.high > 1
    assert made.judge().interval == pytest.approx((plain.low, 1.0))
    assert made.judge().verdict is Verdict.SUPPORTED


def test_it_ends_at_0_too_and_in_the_unit_shown(study):
    made = study(
        quantity="100 * share(t > 2) / 100", predicts="<= 10 %", falsifier="> 10 %", scale=100.0
    ).extend(*HIGH)
    assert made.judge().interval[0] < 0
    made.quantity = "share(t > 2)"
    assert made.judge().interval == pytest.approx((0.0, 100 * (1 - student_t([0.97, 1.0, 0.99, 0.98]).low)))


def test_a_difference_of_shares_ends_at_1_and_minus_1(study):
    made = study(
        quantity="share(t < 2)", contrast="a - b", pairing="block", predicts=">= 0.5", falsifier="< 0"
    )
    made.blocks(*[(sample, [9.0 + bad] * 100) for bad, sample in enumerate(HIGH)])
    low, high = made.judge().interval
    assert (low < 0.98, high) == (True, 1.0)


def test_a_ratio_of_shares_has_no_such_end(study):
    made = study(
        quantity="share(t < 2)", contrast="a / b", pairing="block", predicts=">= 0.5", falsifier="< 0"
    )
    made.blocks(*[(sample, [1.0, 9.0, 9.0]) for sample in HIGH])
    assert made.judge().interval[1] > 2.9
