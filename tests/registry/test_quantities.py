from __future__ import annotations

import math
import statistics
import warnings
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_prereg.registry.quantities import evaluate, is_binary, node_text, parse_quantity
from pytest_prereg.registry.refusals import RefusedError

if TYPE_CHECKING:
    from pytest_prereg.registry.model import Quantity

METRICS = ("t_train", "t_gen", "x", "y", "count")


def parse(text: str) -> Quantity:
    return parse_quantity(text, METRICS, ("busy",))


def value(text: str, **values: float | list[float]) -> float:
    return evaluate(parse(text).node, values, {"busy": 2.0})


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("t_train / t_gen", ["/", "t_train", "t_gen"]),
        ("x", "x"),
        ("-x ** 2", ["-", ["**", "x", 2.0]]),
        ("x * -1", ["*", "x", -1.0]),
        ("+x", "x"),
        ("x\n  + constants.busy", ["+", "x", ["constant", "busy"]]),
        ("0 < x <= 2", ["*", ["<", 0.0, "x"], ["<=", "x", 2.0]]),
        ("quantile(x, 0.99)", ["quantile", "x", 0.99]),
        ("count(count)", ["count", "count"]),
        ("min(x, y, 3)", ["min", "x", "y", 3.0]),
    ],
)
def test_an_expression_becomes_nested_lists(text: str, node: object) -> None:
    assert parse(text).node == node


def test_the_metrics_of_a_quantity_are_sorted_and_leave_completed_out() -> None:
    assert parse("y / x + completed * constants.busy + x").metrics == ("x", "y")


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("t_trian / t_gen", "PR007", 'unknown metric "t_trian"; did you mean "t_train"?'),
        ("aaa + bbb", "PR007", 'unknown metrics "aaa" and "bbb"'),
        ("x * constants.bussy", "PR007", 'unknown constant "bussy"; did you mean "busy"?'),
        ("qantile(x, 0.5)", "PR020", 'unknown function "qantile"; did you mean "quantile"?'),
        ("x / 0", "PR020", "divides by zero"),
        ("x + 1 / -0.0", "PR020", "divides by zero"),
        ("log(x, 2)", "PR020", '"log" takes 1 argument(s), not 2'),
        ("quantile(x, y)", "PR020", "a number from 0 to 1"),
        ("quantile(x, 99)", "PR020", "a number from 0 to 1"),
        ("mean()", "PR020", "not 0"),
        ("5", "PR020", "names no metric"),
        ("", "PR020", "is not an expression"),
        ("x +", "PR020", "is not an expression"),
        ("x and y", "PR020", "multiply comparisons"),
        ("not x", "PR020", 'write "1 - x"'),
        ("x if y else 0", "PR020", "not offered"),
        ("x.real", "PR020", '"x.real"'),
        ("constants", "PR020", '"constants"'),
        ("x[0]", "PR020", '"["'),
        ("x # the total", "PR020", '"#"'),
        ("__import__('os')", "PR020", '"\'"'),
        ("(lambda: x)()", "PR020", '":"'),
        ("x in y", "PR020", "not offered"),
        ("True * x", "PR020", "not offered"),
        ("x * 1j", "PR020", "not offered"),
        ("1e999 * x", "PR020", "not finite"),
        ("x" + " + x" * 60, "PR020", "nested more than 40 deep"),
        ("(" * 300 + "x" + ")" * 300, "PR020", "is not an expression"),
        ("x" * 1001, "PR020", "longer than"),
        ("mean(x, key=y)", "PR020", "not offered"),
        ("min(*x)", "PR020", "not offered"),
    ],
)
def test_what_is_no_quantity_is_refused_with_the_offending_part(text: str, code: str, message: str) -> None:
    with pytest.raises(RefusedError) as refused:
        parse(text)
    assert refused.value.code == code
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("text", "binary"),
    [
        ("x < 2", True),
        ("completed", True),
        ("1 - completed", True),
        ("(x < 2) * (y > 1)", True),
        ("min(x < 2, completed)", True),
        ("x", False),
        ("share(x < 2)", False),
        ("completed * x", False),
        ("completed + completed", False),
        ("-completed", False),
    ],
)
def test_a_quantity_that_can_only_be_0_or_1_is_recognised(text: str, binary: bool) -> None:  # noqa: FBT001
    assert is_binary(parse(text).node) is binary


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x / 4 - 1", -0.5),
        ("x ** 3", 8.0),
        ("x < 3", 1.0),
        ("x == 3", 0.0),
        ("min(x, 1)", 1.0),
        ("max(x, constants.busy, 5)", 5.0),
        ("sqrt(x * 8) + abs(-x) + log(exp(x))", 8.0),
        ("sum(y)", 10.0),
        ("mean(y)", 2.5),
        ("median(y)", 2.5),
        ("count(y)", 4.0),
        ("min(y) + max(y)", 5.0),
        ("std(y)", statistics.stdev([1, 2, 3, 4])),
        ("quantile(y, 0.9)", 3.7),
        ("quantile(y, 1)", 4.0),
        ("share(y < 3)", 0.5),
        ("sum(y / x)", 5.0),
        ("sum(y * y)", 30.0),
        ("mean(x)", 2.0),
        ("sum(max(y, x))", 11.0),
    ],
)
def test_a_quantity_has_the_value_that_arithmetic_gives_it(text: str, expected: float) -> None:
    assert value(text, x=2.0, y=[4.0, 1.0, 3.0, 2.0]) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("y", ValueError, "leaves 4 samples"),
        ("y * x", ValueError, "leaves 4 samples"),
        ("x / (x - 2)", ZeroDivisionError, "division by zero"),
        ("(-x) ** 0.5", ValueError, "math domain error"),
        ("log(x - 2)", ValueError, "math domain error"),
        ("exp(x * 1000)", OverflowError, "range"),
        ("share(y)", ValueError, "not 0 or 1"),
        ("std(x)", ValueError, "single sample"),
        ("sum(y + count)", ValueError, "pairs 4 samples with 2"),
        ("t_gen", KeyError, "t_gen"),
    ],
)
def test_what_has_no_value_raises(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        value(text, x=2.0, y=[4.0, 1.0, 3.0, 2.0], count=[1.0, 2.0])


def test_an_empty_list_has_nothing_to_reduce() -> None:
    with pytest.raises(ValueError, match="no sample"):
        value("mean(y)", y=[])


LEAVES = st.sampled_from(["x", "t_gen", "constants.busy", "completed"]) | st.floats(0.1, 9).map(
    "{:.3g}".format
)
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: (
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "<", ">="]), inner).map(
            "({0[0]} {0[1]} {0[2]})".format
        )
        | st.tuples(st.sampled_from(["abs", "min", "mean", "sqrt", "-", "2 ** "]), inner).map(
            "{0[0]}({0[1]})".format
        )
    ),
    max_leaves=8,
)


@given(EXPRESSIONS.filter(lambda text: "x" in text))
def test_evaluation_agrees_with_python(text: str) -> None:
    class constants:  # noqa: N801
        busy = 2.0

    names = {"x": 1.5, "t_gen": 3.0, "completed": 1.0}
    functions = {
        "sqrt": math.sqrt,
        "abs": abs,
        "min": lambda v: v,
        "mean": lambda v: v,
        "constants": constants,
    }
    try:
        expected = eval(text, functions | names)
    except (ArithmeticError, ValueError) as error:
        with pytest.raises(type(error)):
            evaluate(parse(text).node, names, {"busy": 2.0})
        return
    assert evaluate(parse(text).node, names, {"busy": 2.0}) == pytest.approx(float(expected), rel=1e-12)


@given(EXPRESSIONS.filter(lambda text: "x" in text))
def test_a_node_written_out_is_the_same_node(text: str) -> None:
    node = parse(text).node
    assert parse(node_text(node)).node == node


@given(
    st.text(max_size=25)
    | st.lists(st.sampled_from([*list("x+-*/()<>=!,. 1e9"), "mean(", "constants.", "1if "])).map("".join)
)
def test_any_text_is_a_quantity_or_refused_without_a_warning(text: str) -> None:
    code = "PR020"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            parse(text)
        except RefusedError as refusal:
            code = refusal.code
    assert code in ("PR020", "PR007")
