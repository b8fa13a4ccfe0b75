from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from pytest_prereg.judge import gradient, paired_t, propagate, student_t, welch
from pytest_prereg.registry.quantities import parse_expression

STUDIES = 3000
A = [10.2, 11.9, 9.4, 12.8, 10.7, 13.1, 9.9]
B = [4.9, 5.6, 4.4, 6.3, 5.5, 6.1, 4.2]
FORMULAS = {
    "a * b / c": lambda a, b, c: a * b / c,
    "-a ** 3 + 2": lambda a, **_: -(a**3) + 2,
    "(a - b) ** 2": lambda a, b, **_: (a - b) ** 2,
    "a ** b - b ** -1.5": lambda a, b, **_: a**b - b**-1.5,
    "log(a) + exp(b / c) * sqrt(c)": lambda a, b, c: np.log(a) + np.exp(b / c) * np.sqrt(c),
    "abs(a - 10 * b) + 3": lambda a, b, **_: np.sqrt((a - 10 * b) ** 2) + 3,
    "min(a, 2 * b, c + 9) - max(a, b)": lambda a, b, c: np.min([a, 2 * b, c + 9]) - np.max([a, b]),
}
inputs = st.floats(0.3, 4.0)


@pytest.mark.parametrize("text", FORMULAS)
@given(inputs, inputs, inputs)
def test_derivatives_are_those_of_small_differences(text, a, b, c):
    assume(min(abs(gap) for gap in (a - b, a - 2 * b, a - 10 * b, a - c - 9, 2 * b - c - 9)) > 1e-3)
    point = {"a": a, "b": b, "c": c}
    found = gradient(parse_expression(text), point)
    for name, value in point.items():
        up, down = (FORMULAS[text](**{**point, name: value + way * 1e-6}) for way in (1, -1))
        assert found[name] == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-4)


def test_a_derivative_by_some_names_takes_the_others_as_constant():
    node = parse_expression("x ** k + unused")
    assert gradient(node, {"x": -3.0, "k": 2.0, "unused": 1.0}, ["x"]) == {"x": -6.0}
    assert gradient("x", {"x": 2.0, "y": 1.0}) == {"x": 1.0, "y": 0.0}
    assert gradient(3.0, {"x": 2.0}) == {"x": 0.0}
    assert gradient(parse_expression("x ** 0"), {"x": 0.0}) == {"x": 0.0}


@pytest.mark.parametrize(
    "text",
    [
        "x < 2",
        "mean(x)",
        "max(x)",
        "quantile(x, 0.5)",
        "abs(x)",
        "max(x, 0)",
        "min(x, y)",
        "log(x)",
        "(x - 1) ** y",
    ],
)
def test_what_has_no_derivative_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011
        gradient(parse_expression(text), {"x": 0.0, "y": 0.0})


@pytest.mark.parametrize("text", ["1 / x", "sqrt(x)", "exp(y)"])
def test_a_derivative_without_end_is_an_arithmetic_error(text):
    with pytest.raises(ArithmeticError):
        gradient(parse_expression(text), {"x": 0.0, "y": 1e4})


def same(found, expected):
    assert (found.estimate, found.low, found.high) == pytest.approx(
        (expected.estimate, expected.low, expected.high), rel=1e-12
    )
    assert found.df == pytest.approx(expected.df)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_linear_formulas_are_the_t_intervals_of_differences(confidence):
    node = parse_expression("a - b")
    paired = propagate(node, [{"a": A, "b": B}], {}, confidence)
    same(paired, paired_t(A, B, confidence))
    apart = propagate(node, [{"a": A}, {"b": B[:4]}], {}, confidence)
    same(apart, welch(A, B[:4], confidence))
    same(propagate("a", [{"a": A}], {}, confidence), student_t(A, confidence))
    assert max(paired.departure, apart.departure) < 1e-12


def test_inputs_of_one_experiment_count_with_their_covariance():
    """g' S g / n with numpy's covariance, and the textbook's effective degrees of freedom."""
    c = [2.1, 2.6, 1.9, 2.2]
    found = propagate(parse_expression("a * b / c * k"), [{"a": A, "b": B}, {"c": c}], {"k": (3.0, 2.5, 3.4)})
    a, b, m = np.mean(A), np.mean(B), np.mean(c)
    slopes = np.array([b / m, a / m]) * 3
    squared = [
        slopes @ np.cov(A, B) @ slopes / 7,
        (a * b / m**2 * 3) ** 2 * np.var(c, ddof=1) / 4,
        (a * b / m * 0.5 / stats.norm.ppf(0.975)) ** 2,
    ]
    df = sum(squared) ** 2 / (squared[0] ** 2 / 6 + squared[1] ** 2 / 3)
    half = stats.t.ppf(0.975, df) * math.sqrt(sum(squared))
    assert found.estimate == pytest.approx(a * b / m * 3)
    assert found.df == pytest.approx(df)
    assert (found.low, found.high) == pytest.approx((found.estimate - half, found.estimate + half))


def test_a_constant_alone_has_its_own_interval():
    found = propagate(parse_expression("2 * k + j"), [], {"k": (3.0, 2.5, 3.5), "j": (1.0, 1.0, 1.0)})
    assert (found.low, found.estimate, found.high) == pytest.approx((6.0, 7.0, 8.0))


def test_a_constant_without_an_interval_may_be_an_exponent_of_a_negative_base():
    found = propagate(parse_expression("a ** k"), [{"a": [-value for value in A]}], {"k": (2.0, 2.0, 2.0)})
    assert found.estimate == pytest.approx(np.mean(A) ** 2)


def test_the_departure_is_that_of_the_worst_corner():
    own = student_t(A)
    half = own.high - own.estimate
    square = propagate(parse_expression("a ** 2"), [{"a": A}], {})
    assert square.departure == pytest.approx(half**2)
    other = student_t(B).high - student_t(B).estimate
    assert propagate(parse_expression("a * b"), [{"a": A}, {"b": B}], {}).departure == pytest.approx(
        half * other
    )
    reciprocal = propagate(parse_expression("a / k"), [{"a": [6.0, 6.0]}], {"k": (3.0, 2.0, 5.0)})
    assert reciprocal.departure == pytest.approx(max(abs(3 - 2 - 2 / 3), abs(1.2 - 2 + 4 / 3)))


@pytest.mark.parametrize("text", ["log(a)", "sqrt(a)", "a ** 0.5", "exp(a * k)"])
def test_a_corner_without_a_value_departs_without_end(text):
    found = propagate(parse_expression(text), [{"a": [1.0, 2.0, 9.0]}], {"k": (60.0, 60.0, 60.0)})
    assert math.isfinite(found.high)
    assert found.departure == math.inf


def test_inputs_that_do_not_vary_leave_no_width_and_no_departure():
    found = propagate(parse_expression("a * a"), [{"a": [3.0, 3.0, 3.0]}], {})
    assert (found.low, found.estimate, found.high, found.departure) == (9.0, 9.0, 9.0, 0.0)


def test_an_input_that_the_formula_does_not_use_changes_nothing():
    node = parse_expression("a * 2")
    with_b = propagate(node, [{"a": A, "b": B}], {"k": (1.0, 0.0, 2.0)})
    assert with_b == propagate(node, [{"a": A}], {})


@pytest.mark.parametrize(
    ("text", "groups", "fixed"),
    [
        ("a - b", [{"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0]}], {}),
        ("a", [{"a": [1.0]}], {}),
        ("a", [{"a": [1.0, 2.0]}], {"a": (1.0, 1.0, 1.0)}),
        ("a", [{"a": [1.0, 2.0]}, {"a": [1.0, 2.0]}], {}),
        ("k", [], {"k": (1.0, 2.0, 3.0)}),
        ("k", [], {"k": (1.0, -math.inf, 3.0)}),
        ("log(a)", [{"a": [-1.0, -2.0]}], {}),
        ("a < 2", [{"a": [1.0, 2.0]}], {}),
        ("max(a, 1.5)", [{"a": [1.0, 2.0]}], {}),
        (" + ".join("abcdefghijk"), [{name: [1.0, 2.0] for name in "abcdefghijk"}], {}),
    ],
)
def test_what_has_no_interval_is_refused(text, groups, fixed):
    with pytest.raises(ValueError):  # noqa: PT011
        propagate(parse_expression(text), groups, fixed)


@pytest.mark.parametrize("text", ["1 / a", "a * 1e300 * 1e300 + 1e300 * 1e300"])
def test_a_value_without_end_is_an_arithmetic_error(text):
    with pytest.raises(ArithmeticError):
        propagate(parse_expression(text), [{"a": [-1.0, 1.0]}], {})


def test_ten_inputs_are_allowed():
    names = "abcdefghij"
    found = propagate(parse_expression(" + ".join(names)), [{name: [1.0, 2.0, 4.0] for name in names}], {})
    assert found.estimate == pytest.approx(70 / 3)


@pytest.mark.parametrize("text", ["a * b / c", "a - b * c"])
def test_formulas_that_are_nearly_linear_hold_their_level(text):
    random = np.random.default_rng(100)
    joint = random.multivariate_normal([20.0, 8.0], [[1.0, 0.3], [0.3, 0.2]], (STUDIES, 7))
    apart = random.normal(5.0, 0.2, (STUDIES, 5))
    node, truth = parse_expression(text), 32.0 if "/" in text else -20.0
    found = [
        propagate(node, [{"a": first[:, 0].tolist(), "b": first[:, 1].tolist()}, {"c": second.tolist()}], {})
        for first, second in zip(joint, apart, strict=True)
    ]
    assert np.mean([each.high < truth for each in found]) == pytest.approx(0.025, abs=0.01)
    assert np.mean([each.low > truth for each in found]) == pytest.approx(0.025, abs=0.01)
