"""What is estimated: every statistic and contrast is accepted with an interval, or refused with a reason."""

from __future__ import annotations

import pytest
from study_texts import load, predicted, refusals

from pytest_prereg.registry.digest import registered_content
from pytest_prereg.registry.estimands import RULES, STATISTICS, Estimand, combinations
from pytest_prereg.registry.units import check_units, registered_unit

ARMS = {"experiment": "two", "quantity": "t"}

SLOPES = """
[study]
id = "s"
[experiments.e]
repeats = 7
pairing = "block"
metrics = { t = "s" }
[experiments.e.arms]
large = { n = 4, flag = true }
small = { n = 1, flag = true }
middle = { n = 2.0, flag = true }
[predictions.p]
claim = "c"
experiment = "e"
quantity = "t"
contrast = "exponent(n)"
predicts = "<= 1.1"
falsifier = "> 1.5"
"""


def prediction(**keys: object):
    return load(predicted(**keys)).predictions["p"]


def only(text: str) -> str:
    (message,) = refusals(text)
    return message.split(": ", 1)[1]


@pytest.mark.parametrize(
    ("written", "statistic", "q"),
    [
        ("quantile(0.99)", "quantile", 0.99),
        ("quantile( .5 )", "quantile", 0.5),
        ("quantile(1e-2)", "quantile", 0.01),
        ("sd", "sd", None),
        ("median", "median", None),
    ],
)
def test_a_statistic_is_kept_without_its_argument(written: str, statistic: str, q: float | None) -> None:
    found = prediction(statistic=written)
    assert (found.statistic, found.q) == (statistic, q)


def test_a_ratio_of_sums_has_a_numerator_and_a_denominator() -> None:
    found = prediction(quantity=None, numerator="t_train", denominator="t_gen + t_train")
    assert found.statistic == "ratio-of-sums"
    assert found.quantity.node == "t_train"
    assert found.divisor.node == ["+", "t_gen", "t_train"]
    assert prediction(
        quantity=None, numerator="t_train", denominator="t_gen", statistic="ratio-of-sums"
    ).divisor


def test_successes_among_trials_are_a_proportion() -> None:
    found = prediction(quantity=None, successes="tokens / 2", trials="tokens")
    assert (found.statistic, found.divisor.node) == ("proportion", "tokens")


@pytest.mark.parametrize(
    ("contrast", "operator", "arms", "statistic"),
    [
        ("plateau(new, old)", "plateau", ("new", "old"), "mean"),
        ("  increasing (old,new) ", "increasing", ("old", "new"), "mean"),
        ("new / old", "/", ("new", "old"), "geometric-mean"),
    ],
)
def test_a_contrast_keeps_the_order_of_its_arms(
    contrast: str, operator: str, arms: tuple[str, ...], statistic: str
) -> None:
    found = prediction(**ARMS, contrast=contrast, predicts="<= 1 s", falsifier="> 2 s")
    assert (found.contrast.operator, found.arms, found.statistic) == (operator, arms, statistic)


def test_an_exponent_is_over_all_arms_in_the_order_of_their_levels() -> None:
    found = load(SLOPES).predictions["p"]
    assert (found.arms, found.levels) == (("small", "middle", "large"), (1.0, 2.0, 4.0))
    assert (found.contrast.parameter, found.statistic) == ("n", "mean")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("n = 4, flag = true", "n = 4, flag = false", 'PR005: prediction "p": contrast "exponent(n)" is over "n" alone, but arms "large" and "small" differ in "flag", too; compare them in an experiment of their own'),
        ("n = 4,", "n = 4, env = { A = '1' },", 'differ in "env", too'),
        ("n = 4,", 'n = 4, resources = { gpu = "L4" },', 'differ in "resources", too'),
        ("n = 4,", "n = 0,", '"0" has no logarithm; it takes positive numbers'),
        ("n = 4,", "n = -1.5,", '"-1.5" has no logarithm'),
        ("n = 4,", "n = true,", '"true" has no logarithm'),
        ("n = 4,", "n = '4',", '"4" has no logarithm'),
        ("n = 4,", "", 'PR007: prediction "p": exponent(n): arm "large" sets no "n"'),
        ("exponent(n)", "exponent(m)", 'arm "large" sets no "m"; it sets: "n" and "flag"'),
        ("exponent(n)", "exponent(large)", 'arm "large" sets no "large"'),
        ('contrast = "exponent(n)"', 'contrast = "exponent(n)"\narm = "large"', 'PR005: prediction "p" has both "arm" and "contrast", and no sweep of "n"; leave "arm" out'),
        ('contrast = "exponent(n)"', 'contrast = "exponent(n)"\nstatistic = "geometric-mean"', 'PR023: prediction "p": statistic "geometric-mean" has no interval for "exponent(param)"; use "mean", or judge one arm'),
        ('pairing = "block"', "", 'PR024: prediction "p", of experiment "e": statistic "mean" of "exponent(param)" is judged block by block; write pairing = "block" in its experiment'),
    ],
)  # fmt: skip
def test_a_slope_that_could_be_of_something_else_is_refused(old: str, new: str, message: str) -> None:
    assert SLOPES.count(old) == 1
    assert message in only(SLOPES.replace(old, new))


def test_a_slope_needs_two_levels() -> None:
    text = SLOPES.replace("n = 4", "n = 1").replace("n = 2.0", "n = 1.0")
    assert 'needs two values of "n" or more; experiment "e" has one' in only(text)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"statistic": "quantile"}, 'PR005: prediction "p": "statistic" is "quantile"; write "quantile(q)" with q above 0 and below 1'),
        ({"statistic": "quantile(0)"}, "above 0 and below 1"),
        ({"statistic": "quantile(1)"}, "above 0 and below 1"),
        ({"statistic": "quantile(99)"}, "above 0 and below 1"),
        ({"statistic": "quantile(x)"}, "above 0 and below 1"),
        ({"statistic": "quantil(0.9)"}, 'PR005: prediction "p": "statistic" is "quantil(0.9)"'),
        ({"statistic": "mean(3)"}, '"statistic" is "mean(3)"'),
        ({"statistic": "sd()"}, '"statistic" is "sd()"'),
        ({"statistic": "min"}, 'PR023: prediction "p": statistic "min" reduces a sweep, so it needs "over"'),
        ({"statistic": "ratio-of-sums"}, 'PR004: prediction "p": statistic "ratio-of-sums" takes "numerator" and "denominator" in place of "quantity"'),
        ({"quantity": None, "numerator": "t_gen"}, 'PR004: prediction "p" has "numerator", so it needs "denominator"'),
        ({"quantity": None, "trials": "tokens"}, 'PR004: prediction "p" has "trials", so it needs "successes"'),
        ({"numerator": "t_gen", "denominator": "t_train"}, 'PR005: prediction "p" has both "quantity" and "numerator"; keep one'),
        ({"quantity": None, "numerator": "t_gen", "denominator": "t_train", "statistic": "mean"}, 'PR023: prediction "p": "numerator" and "denominator" are judged by "ratio-of-sums", not by "mean"'),
        ({"quantity": None, "successes": "tokens", "trials": "tokens", "statistic": "ratio-of-sums"}, 'are judged by "proportion"'),
        ({"quantity": None, "numerator": "t_gne", "denominator": "t_train"}, 'uses unknown metric "t_gne"; did you mean "t_gen"?'),
        ({**ARMS, "quantity": None, "numerator": "t", "denominator": "t", "contrast": "new / old"}, '"numerator" and "denominator" have no interval for "a / b"; judge one arm'),
        ({**ARMS, "contrast": "plateau(new)"}, 'PR005: prediction "p": "contrast" is "plateau(new)"; it takes two arms or more'),
        ({**ARMS, "contrast": "plateau(new, )"}, "it takes two arms or more"),
        ({**ARMS, "contrast": "increasing(new, old, new)"}, "an arm against itself"),
        ({**ARMS, "contrast": "increasing(new, odl)"}, 'PR007: prediction "p" names unknown arm "odl" of experiment "two"; did you mean "old"?'),
        ({**ARMS, "contrast": "plataeu(new, old)"}, 'which calls "plataeu"; did you mean "plateau"?'),
        ({**ARMS, "contrast": "exponent(new, old)"}, "it takes the name of one parameter, and no arms"),
        ({**ARMS, "contrast": "new / old / new"}, 'write "a - b" or "a / b", with the spaces'),
        ({**ARMS, "contrast": "plateau(new, old)", "statistic": "median"}, 'PR023: prediction "p": statistic "median" has no interval for "plateau(a, b, c)"; use "mean", or judge one arm'),
        ({**ARMS, "contrast": "plateau(new, old)", "arm": "new"}, 'has both "arm" and "contrast"; keep one'),
        ({**ARMS, "contrast": "new - old", "statistic": "sd"}, 'statistic "sd" has no interval for "a - b"; use "mean"'),
        ({"quantity": "completed", "statistic": "sd"}, "its sd has no honest interval"),
        ({"quantity": "completed", "statistic": "quantile(0.9)"}, "PR033"),
        ({"quantity": None, "numerator": "t_gen", "denominator": "completed"}, 'PR033: prediction "p": quantity "completed" is 0 or 1, and its ratio-of-sums has no honest interval; write "successes" and "trials", or predict its proportion apart'),
        ({"statistic": "sd", "predicts": "> 1", "falsifier": "< 0"}, 'PR031: prediction "p": "falsifier" is "< 0", which no sd can ever meet'),
        ({"statistic": "sd", "predicts": ">= 0", "falsifier": "< 0"}, 'PR030: prediction "p": "predicts" is ">= 0", which every sd meets'),
        ({**ARMS, "contrast": "plateau(new, old)", "predicts": "<= 1 s", "falsifier": "< -1 s"}, "PR030"),
        ({**ARMS, "contrast": "plateau(new, old)", "predicts": "> 1 s", "falsifier": "<= -1 s"}, "no plateau can ever meet"),
        ({"quantity": None, "successes": "tokens", "trials": "tokens", "predicts": ">= 0.5", "falsifier": "> 1"}, "PR030"),
        ({"quantity": None, "successes": "tokens", "trials": "tokens", "predicts": "<= 0.5", "falsifier": "> 1"}, "no proportion can ever meet"),
    ],
)  # fmt: skip
def test_what_has_no_interval_is_refused_once_with_what_to_write(
    keys: dict[str, object], message: str
) -> None:
    assert message in only(predicted(**keys))


LOOKS = "repeats = { looks = [5, 10] }"
ANYTIME = 'repeats = { max = 30, stopping = "anytime" }'


def planned(plan: str, pairing: str = "none", **keys: object) -> str:
    text = predicted(**keys)
    assert text.count("repeats = 7") == 2
    return text.replace("repeats = 7", f'{plan}\npairing = "{pairing}"')


@pytest.mark.parametrize(
    ("plan", "pairing", "keys", "message"),
    [
        (ANYTIME, "none", {**ARMS, "contrast": "new - old"}, 'PR024: prediction "p", of experiment "two": statistic "mean" of "a - b" has no interval that holds after every repeat (stopping = "anytime"); write pairing = "block", or repeats = { looks = [5, 10] } or a number'),
        (ANYTIME, "none", {**ARMS, "contrast": "new / old"}, 'write pairing = "block", or'),
        (ANYTIME, "block", {**ARMS, "contrast": "new / old", "statistic": "mean"}, '(stopping = "anytime"); write repeats = { looks = [5, 10] } or a number'),
        (ANYTIME, "block", {"statistic": "median"}, 'statistic "median" has no interval that holds'),
        (ANYTIME, "none", {"statistic": "quantile(0.9)"}, 'statistic "quantile"'),
        (ANYTIME, "none", {"statistic": "sd"}, "PR024"),
        (ANYTIME, "none", {"statistic": "proportion", "quantity": "passed"}, "PR024"),
        (ANYTIME, "none", {"quantity": None, "successes": "tokens", "trials": "tokens"}, "PR024"),
        (ANYTIME, "none", {"quantity": None, "numerator": "t_gen", "denominator": "t_gen"}, "PR024"),
        (ANYTIME, "block", {**ARMS, "contrast": "plateau(new, old)"}, "PR024"),
        (ANYTIME, "block", {**ARMS, "contrast": "increasing(new, old)"}, "PR024"),
    ],
)  # fmt: skip
def test_a_plan_under_which_no_interval_holds_is_refused(
    plan: str, pairing: str, keys: dict[str, object], message: str
) -> None:
    assert message in only(planned(plan, pairing, **keys))


@pytest.mark.parametrize(
    ("plan", "pairing", "keys"),
    [
        (ANYTIME, "block", {**ARMS, "contrast": "new - old"}),
        (ANYTIME, "block", {**ARMS, "contrast": "new / old"}),
        (ANYTIME, "none", {}),
        (ANYTIME, "none", {"statistic": "geometric-mean"}),
        (LOOKS, "none", {**ARMS, "contrast": "new - old"}),
        (LOOKS, "none", {**ARMS, "contrast": "new / old", "statistic": "mean"}),
        (LOOKS, "block", {**ARMS, "contrast": "plateau(new, old)"}),
        (LOOKS, "none", {"statistic": "quantile(0.9)"}),
        (LOOKS, "none", {"quantity": None, "successes": "tokens", "trials": "tokens"}),
    ],
)
def test_a_plan_under_which_an_interval_holds_is_taken(
    plan: str, pairing: str, keys: dict[str, object]
) -> None:
    assert refusals(planned(plan, pairing, **keys)) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("", 'order = "sequential"\n', 'PR024: experiment "two": a series that may end early needs as many repeats of every arm at each step; write order = "interleaved", or repeats as a number'),
        ("new = {}", "new = { repeats = 3 }", 'leave "repeats" out of "new", or write it as a number'),
    ],
)  # fmt: skip
def test_arms_of_a_series_that_may_end_early_go_at_one_pace(old: str, new: str, message: str) -> None:
    text = planned(LOOKS, **ARMS, contrast="new - old")
    where = old or "[experiments.two.arms]"
    changed = text.replace(where, new if old else new + where)
    assert message in only(changed)


@pytest.mark.parametrize("plan", ["looks = []", "looks = [5], max = 9", 'looks = [5], stopping = "anytime"'])
def test_a_stopping_rule_is_one_of_two(plan: str) -> None:
    assert "or { max = 30, stopping" in only(predicted().replace("repeats = 7", f"repeats = {{ {plan} }}", 1))


@pytest.mark.parametrize("plan", ['looks = "abc"', 'max = "abc", stopping = "anytime"'])
def test_a_stopping_rule_that_cannot_be_read_is_told_once(plan: str) -> None:
    assert '"abc"' in only(predicted().replace("repeats = 7", f"repeats = {{ {plan} }}", 1))


def test_every_combination_is_accepted_or_refused_with_a_reason_and_a_remedy() -> None:
    found = list(combinations())
    assert len({(each.estimand, each.pairing, each.early) for each in found}) == len(found)
    assert {each.estimand for each in found if each.refusal is None} == set(RULES)
    names = {each.estimand.statistic for each in found}
    assert names == {name.partition("(")[0] for name in STATISTICS} | {"formula", "all"}
    for each in found:
        code = each.refusal and each.refusal.code
        assert code in (("PR024", None) if each.estimand in RULES else ("PR023",)), each
        assert each.refusal is None or any(word in str(each.refusal) for word in ("use ", "write ", "have"))


def test_what_is_accepted_is_what_the_documented_table_says() -> None:
    accepted = {(e.estimand, e.pairing, e.early) for e in combinations() if e.refusal is None}
    anytime = {(estimand, pairing) for estimand, pairing, early in accepted if early == "anytime"}
    one_arm = {
        (Estimand(name), pairing) for name in ("mean", "geometric-mean") for pairing in ("block", "none")
    }
    assert anytime == one_arm | {(Estimand("mean", "-"), "block"), (Estimand("geometric-mean", "/"), "block")}
    unplanned = {estimand for estimand, _, early in accepted if early is None}
    assert {estimand for estimand, _, early in accepted if early == "looks"} == unplanned - {
        Estimand("formula"),
        Estimand("all"),
    }
    in_blocks_only = {e for e in unplanned if (e, "none", None) not in accepted}
    assert in_blocks_only == {e for e in RULES if e.operator == "exponent" or e.reduction}


@pytest.mark.parametrize(
    ("keys", "unit", "scale"),
    [
        ({"quantity": None, "numerator": "tokens", "denominator": "t_gen"}, "token/s", 1.0),
        ({"quantity": None, "numerator": "wait", "denominator": "t_gen"}, "1", 0.001),
        ({"quantity": None, "numerator": "wait", "denominator": "t_gen", "unit": "%"}, "%", 0.1),
        ({"quantity": None, "successes": "tokens", "trials": "tokens"}, "1", 1.0),
        ({"quantity": None, "successes": "tokens", "trials": "tokens", "unit": "%"}, "%", 100.0),
        ({"quantity": "wait", "statistic": "sd", "unit": "s"}, "s", 0.001),
        ({"quantity": "wait", "statistic": "quantile(0.9)"}, "ms", 1.0),
        ({**ARMS, "contrast": "plateau(new, old)"}, "s", 1.0),
        ({**ARMS, "contrast": "increasing(new, old)", "unit": "ms"}, "ms", 1000.0),
        ({**ARMS, "contrast": "new / old", "statistic": "mean", "unit": "%"}, "1", 1.0),
    ],
)
def test_what_is_estimated_has_its_unit(keys: dict[str, object], unit: str, scale: float) -> None:
    study = load(predicted(**keys))
    assert registered_unit(study, study.predictions["p"]) == (unit, pytest.approx(scale, rel=1e-14))


def test_an_exponent_is_a_pure_number_whatever_is_measured() -> None:
    study = load(SLOPES)
    assert registered_unit(study, study.predictions["p"]) == ("1", 1.0)
    assert check_units(study) == []
    (problem,) = check_units(load(SLOPES.replace("<= 1.1", "<= 1.1 s")))
    assert 'the exponent has no unit, but "predicts" is in s' in problem.message


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"successes": "tokens", "trials": "t_gen"}, '"successes" is in token and "trials" is in s; count both in one unit'),
        ({"successes": "wait", "trials": "t_gen"}, '"successes" is in ms and "trials" is in s; count both in one unit'),
        ({"numerator": "tokens", "denominator": "t_gen"}, 'quantity "sum(tokens) / sum(t_gen)" is in token/s, but "predicts" has no unit; write "<= 0.25 token/s"'),
        ({"numerator": "wait + t_gen", "denominator": "t_gen"}, "declare both metrics in one unit"),
    ],
)  # fmt: skip
def test_what_is_divided_must_go_together(keys: dict[str, object], message: str) -> None:
    (problem,) = check_units(load(predicted(quantity=None, **keys)))
    assert (problem.code, problem.line is not None) == ("PR021", True)
    assert message in problem.message


def test_what_an_estimand_is_made_of_is_registered() -> None:
    def content(**keys: object) -> dict[str, object]:
        study = load(predicted(**keys))
        return registered_content(study, study.predictions["p"])["prediction"]

    divided = content(quantity=None, numerator="tokens", denominator="t_gen")
    assert (divided["quantity"], divided["divisor"]) == ("tokens", "t_gen")
    assert not {"numerator", "denominator", "q", "reduction", "levels", "points"} & divided.keys()
    assert content(statistic="quantile(0.9)")["q"] == 0.9
    assert content(statistic="quantile(0.90)") == content(statistic="quantile(.9)")
    slope = load(SLOPES)
    found = registered_content(slope, slope.predictions["p"])["prediction"]
    assert (found["contrast"], found["levels"]) == (["exponent", "n"], (1.0, 2.0, 4.0))


def test_bounds_of_what_is_read_are_registered_and_others_are_not() -> None:
    def content(bounds: str) -> object:
        study = load(predicted().replace("repeats = 7", f"repeats = 7\nbounds = {bounds}", 1))
        return registered_content(study, study.predictions["p"])

    assert content("{ t_gen = [0, 60] }") == content("{ t_gen = [0, 60], tokens = [0, 1] }")
    assert content("{ t_gen = [0, 60] }") != content("{ t_gen = [0, 61] }")
    assert content("{ tokens = [0, 1] }") == content("{}")
