"""Sweeps: crossed with arms, expanded by ``for-each``, reduced by ``over``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from study_texts import load, refusals

from pytest_prereg.errors import StudyError
from pytest_prereg.registry.digest import registered_content, registration_digest
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.lock import Lock, parse_lock, plan_registration, register, render_lock
from pytest_prereg.registry.registered import registered
from pytest_prereg.registry.supported import not_yet
from pytest_prereg.registry.sweeps import LARGEST, crossed_name, value_text
from pytest_prereg.registry.units import check_units

if TYPE_CHECKING:
    from pathlib import Path

STUDY = """\
[study]
id = "s"
[experiments.e]
repeats = 7
pairing = "block"
params = { depth = 2 }
metrics = { t = "s", n = "1" }
sweep = { cols = [1024, 4096] }
[experiments.e.arms]
new = { fused = true }
old = { fused = false, timeout = 5 }
[predictions.faster]
claim = "c"
experiment = "e"
contrast = "new / old"
quantity = "t"
predicts = "<= 0.5"
falsifier = ">= 1"
for-each = "cols"
"""
PREDICTION_LINE = STUDY[: STUDY.index("[predictions")].count("\n") + 1


def changed(*pairs: tuple[str, str]) -> str:
    text = STUDY
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


FOR_EACH, CONTRAST = 'for-each = "cols"', 'contrast = "new / old"'
OVER = (FOR_EACH, 'over = "cols"')
SWEEP = "sweep = { cols = [1024, 4096] }"
TWO_AXES = (SWEEP, "sweep = { rows = [2, 1], cols = [4096, 1024] }")
NO_ARMS = ("[experiments.e.arms]\nnew = { fused = true }\nold = { fused = false, timeout = 5 }\n", "")


def only(text: str) -> str:
    (message,) = refusals(text)
    return message.split(": ", 1)[1]


def test_a_sweep_crosses_with_the_arms() -> None:
    arms = load(STUDY).experiments["e"].arms
    assert list(arms) == ["new[cols=1024]", "new[cols=4096]", "old[cols=1024]", "old[cols=4096]"]
    arm = arms["old[cols=4096]"]
    assert (arm.base, arm.point) == ("old", {"cols": 4096})
    assert arm.params == {"depth": 2, "fused": False, "cols": 4096}
    assert (arm.timeout, arm.repeats) == (5.0, 7)


def test_without_arms_the_points_are_the_arms() -> None:
    arms = load(changed(NO_ARMS, (CONTRAST, ""), ("<= 0.5", "<= 0.5 s"))).experiments["e"].arms
    assert list(arms) == ["[cols=1024]", "[cols=4096]"]
    assert {arm.base for arm in arms.values()} == {""}


def test_axes_are_named_in_alphabetical_order_however_they_are_written() -> None:
    arms = load(changed(TWO_AXES, (FOR_EACH, 'for-each = ["rows", "cols"]'))).experiments["e"].arms
    assert "new[cols=4096,rows=2]" in arms
    assert len(arms) == 8


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1024, "1024"),
        (2.0, "2"),
        (0.5, "0.5"),
        (-1e-7, "-1e-7"),
        (1e21, "1e+21"),
        (True, "true"),
        ("fp8-e4m3_fn.v2", "fp8-e4m3_fn.v2"),
        ("", None),
        ("a b", None),
        ("a]", None),
        ("a\n", None),
        ("ä", None),
        ([1], None),
        ({"a": 1}, None),
    ],
)
def test_a_swept_value_has_one_name(value: object, text: str | None) -> None:
    assert value_text(value) == text


def test_for_each_makes_a_prediction_of_each_value_with_the_line_of_its_table() -> None:
    predictions = load(STUDY).predictions
    assert list(predictions) == ["faster[cols=1024]", "faster[cols=4096]"]
    prediction = predictions["faster[cols=4096]"]
    assert (prediction.id, prediction.name) == ("faster[cols=4096]", "faster")
    assert prediction.arms == ("new[cols=4096]", "old[cols=4096]")
    assert (prediction.contrast.operator, prediction.contrast.arms) == ("/", prediction.arms)
    assert (prediction.line, prediction.points, prediction.reduction) == (PREDICTION_LINE, (), None)


def test_for_each_takes_one_arm_at_each_value() -> None:
    text = changed((CONTRAST, 'arm = "old"'), ("<= 0.5", "<= 0.5 s"))
    assert load(text).predictions["faster[cols=1024]"].arms == ("old[cols=1024]",)
    alone = load(changed(NO_ARMS, (CONTRAST, "")))
    assert alone.predictions["faster[cols=1024]"].arms == ("[cols=1024]",)


def test_for_each_takes_several_arms_at_each_value() -> None:
    text = changed((CONTRAST, 'contrast = "plateau(old, new)"'))
    assert load(text).predictions["faster[cols=1024]"].arms == ("old[cols=1024]", "new[cols=1024]")


def test_for_each_over_two_axes_makes_a_prediction_of_each_point() -> None:
    predictions = load(changed(TWO_AXES, (FOR_EACH, 'for-each = ["rows", "cols"]'))).predictions
    assert sorted(predictions) == [
        "faster[cols=1024,rows=1]",
        "faster[cols=1024,rows=2]",
        "faster[cols=4096,rows=1]",
        "faster[cols=4096,rows=2]",
    ]


@pytest.mark.parametrize(
    ("contrast", "statistic", "judged", "reduction"),
    [
        (CONTRAST, None, "geometric-mean", "geometric-mean"),
        (CONTRAST, "geometric-mean", "geometric-mean", "geometric-mean"),
        (CONTRAST, "min", "geometric-mean", "min"),
        (CONTRAST, "all", "all", "all"),
        ('contrast = "new - old"', "min", "mean", "min"),
        ('contrast = "new - old"', "all", "all", "all"),
        ('arm = "new"', None, "geometric-mean", "geometric-mean"),
        ('arm = "new"', "min", "mean", "min"),
        ('arm = "new"', "all", "all", "all"),
    ],
)
def test_over_reduces_the_points_by_what_the_statistic_says(
    contrast: str, statistic: str | None, judged: str, reduction: str
) -> None:
    over = OVER[1] + (f'\nstatistic = "{statistic}"' if statistic else "")
    prediction = load(changed((CONTRAST, contrast), (FOR_EACH, over))).predictions["faster"]
    assert (prediction.statistic, prediction.reduction, prediction.name) == (judged, reduction, "")
    names = ("new", "old") if "contrast" in contrast else ("new",)
    points = tuple(tuple(f"{name}[cols={value}]" for name in names) for value in (1024, 4096))
    assert prediction.points == points
    assert prediction.arms == points[0] + points[1]


def test_one_axis_may_be_expanded_and_another_reduced() -> None:
    text = changed(TWO_AXES, (FOR_EACH, FOR_EACH + '\nover = "rows"'))
    prediction = load(text).predictions["faster[cols=1024]"]
    assert prediction.points == (
        ("new[cols=1024,rows=1]", "old[cols=1024,rows=1]"),
        ("new[cols=1024,rows=2]", "old[cols=1024,rows=2]"),
    )


def test_an_exponent_goes_over_a_swept_parameter_of_one_arm() -> None:
    text = changed((CONTRAST, 'contrast = "exponent(cols)"\narm = "old"'), (FOR_EACH, ""))
    prediction = load(text).predictions["faster"]
    assert prediction.arms == ("old[cols=1024]", "old[cols=4096]")
    assert prediction.levels == (1024.0, 4096.0)


def test_an_exponent_is_taken_for_each_value_of_another_axis() -> None:
    text = changed(
        TWO_AXES, (CONTRAST, 'contrast = "exponent(rows)"\narm = "old"'), (FOR_EACH, 'for-each = "cols"')
    )
    prediction = load(text).predictions["faster[cols=4096]"]
    assert prediction.arms == ("old[cols=4096,rows=1]", "old[cols=4096,rows=2]")
    assert prediction.levels == (1.0, 2.0)


def test_true_and_1_are_two_values_of_an_axis() -> None:
    text = changed((SWEEP, "sweep = { cols = [1, 2], x = [true, 1] }"), (FOR_EACH, 'for-each = "x"'))
    text = text.replace(CONTRAST, 'contrast = "exponent(cols)"\narm = "new"')
    predictions = load(text).predictions
    assert predictions["faster[x=true]"].arms == ("new[cols=1,x=true]", "new[cols=2,x=true]")
    assert predictions["faster[x=1]"].arms == ("new[cols=1,x=1]", "new[cols=2,x=1]")


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ("{}", '8: PR004: experiment "e": "sweep" names no parameter'),
        ("{ cols = [] }", '8: PR005: experiment "e": sweep of "cols" has no values'),
        ("{ cols = [1, 'a b'] }", '8: PR005: experiment "e": sweep of "cols" has "a b"; a value is a number, true, false, or text'),
        ("{ cols = [1, [2]] }", 'sweep of "cols" has a list or table'),
        ("{ cols = [1, { a = 2 }] }", 'sweep of "cols" has a list or table'),
        ("{ cols = [1, 2, 1] }", 'sweep of "cols" has "1" twice; keep one'),
        ("{ cols = [1, 1.0] }", 'has "1" twice'),
        ("{ cols = [1, '1'] }", 'has "1" twice'),
        ("{ cols = [1, nan] }", "PR009"),
        ("{ cols = 3 }", '"cols" is "3"; it must be a list of values'),
        ("{ cols = [1], depth = [1, 2] }", 'PR005: experiment "e": "depth" is swept and set by "params"; keep one'),
        ("{ cols = [1], fused = [true] }", 'PR005: experiment "e": "fused" is swept and set by arms "new" and "old"; keep one'),
        ("{ cols = [1], timeout = [1, 2] }", '"timeout" is swept, but it is a key of arms and no parameter'),
        ("{ cols = [1], repeats = [1, 2] }", '"repeats" is swept, but it is a key of arms and no parameter'),
        ('{ cols = [1], "a b" = [1] }', 'PR006: experiment "e", "sweep": parameter "a b" is no Python identifier'),
        (f"{{ cols = {list(range(LARGEST))} }}", f'PR005: experiment "e": "sweep" makes {2 * LARGEST} arms; it may make {LARGEST}'),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_sweep_is_told_at_its_line(sweep: str, message: str) -> None:
    told = refusals(changed((SWEEP, f"sweep = {sweep}")))
    assert any(message in each for each in told), told
    assert all(each.startswith("8: ") for each in told), told


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([(FOR_EACH, "")], 'PR004: prediction "faster": experiment "e" sweeps "cols"; write for-each = "cols" or over = "cols"'),
        ([(FOR_EACH, 'for-each = "rows"'), TWO_AXES], 'experiment "e" sweeps "cols"'),
        ([(FOR_EACH, 'for-each = ["cols", "clos"]')], 'PR007: prediction "faster": "for-each" names "clos", which experiment "e" does not sweep; did you mean "cols"?'),
        ([(FOR_EACH, 'for-each = ["cols", "cols"]')], 'PR005: prediction "faster" has "cols" twice in "for-each"; keep one'),
        ([(FOR_EACH, FOR_EACH + '\nover = "cols"')], 'PR005: prediction "faster" has "cols" in "over" and "for-each"; keep one'),
        ([(FOR_EACH, FOR_EACH + "\nover = []")], '"over" names nothing; leave it out'),
        ([(CONTRAST, 'contrast = "exponent(cols)"\narm = "new"')], 'has "cols" in "for-each" and the parameter of "exponent(cols)"; keep one'),
        ([(CONTRAST, 'contrast = "exponent(clos)"\narm = "new"'), (FOR_EACH, "")], 'no sweep of "clos"'),
        ([(CONTRAST, 'contrast = "exponent(clos)"'), (FOR_EACH, "")], 'sets no "clos"; did you mean "cols"?'),
        ([(CONTRAST, 'contrast = "exponent(cols)"'), (FOR_EACH, "")], 'PR005: prediction "faster": contrast "exponent(cols)" is over "cols" alone, but arms "new[cols=1024]" and "old[cols=1024]" differ in "fused", too; say which with "arm"'),
        ([(SWEEP, "")], 'PR007: prediction "faster": "for-each" names "cols", which experiment "e" does not sweep; it has no sweep'),
        ([(CONTRAST, 'arm = "new[cols=1024]"')], 'PR007: prediction "faster" names unknown arm "new[cols=1024]" of experiment "e"; its arms: "new" and "old"'),
        ([(CONTRAST, "")], 'PR004: prediction "faster" lacks "arm" or "contrast": "e" has arms "new" or "old"'),
        ([(CONTRAST, 'contrast = "new / odl"')], 'names unknown arm "odl" of experiment "e"; did you mean "old"?'),
        ([(CONTRAST, 'contrast = "new - old"'), OVER], 'PR023: prediction "faster": statistic "geometric-mean" with "over" has no interval for "a - b"; use "all" or "min"'),
        ([(CONTRAST, 'contrast = "plateau(new, old)"'), OVER], 'PR023: prediction "faster": "over" can\'t reduce "plateau(a, b, c)"; write for-each'),
        ([(FOR_EACH, OVER[1] + '\nstatistic = "median"')], 'PR023: prediction "faster": statistic "median" can\'t reduce a sweep; with "over" it is "geometric-mean", "min" or "all"'),
        ([(FOR_EACH, OVER[1] + '\nstatistic = "mean"')], "PR023"),
        ([(FOR_EACH, OVER[1] + '\nstatistic = "minn"')], 'PR005: prediction "faster": "statistic" is "minn"; did you mean "min"?'),
        ([OVER, ('quantity = "t"', 'numerator = "t"\ndenominator = "t"')], 'PR023: prediction "faster": "over" reduces a "quantity", not "numerator" and "denominator"'),
        ([OVER, ('pairing = "block"', "")], 'PR024: prediction "faster", of experiment "e": statistic "geometric-mean" with "over" is judged block by block'),
        ([OVER, ("repeats = 7", 'repeats = { max = 7, stopping = "anytime" }')], 'PR024: prediction "faster", of experiment "e": statistic "geometric-mean" with "over" has no interval that holds after every repeat'),
        ([OVER, (CONTRAST, 'contrast = "new / old"\nstatistic = "all"'), ('predicts = "<= 0.5"', 'predicts = "< 0"')], "no geometric-mean can ever meet"),
    ],
)  # fmt: skip
def test_what_a_prediction_makes_of_a_sweep_is_told_once(pairs: list[tuple[str, str]], message: str) -> None:
    assert message in only(changed(*pairs))


STEP = """\
from pytest_prereg import experiment

@experiment(metrics={"t": "s"})
def step(repeat, *, cols, depth=2):
    raise SystemExit("this module must never be imported")
"""


def test_a_sweep_is_checked_against_the_function(tmp_path: Path) -> None:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "steps.py").write_text(STEP)
    path = tmp_path / "predictions.toml"
    head = '[study]\nid = "s"\n[experiments.e]\nfixture = "step"\nrepeats = 3\n'
    path.write_text(head + "sweep = { cols = [1, 2] }\n")
    assert [arm.params for arm in load_study(path).experiments["e"].arms.values()] == [
        {"cols": 1},
        {"cols": 2},
    ]
    path.write_text(head + "sweep = { clos = [1, 2] }\n")
    with pytest.raises(StudyError) as refused:
        load_study(path)
    told = [str(problem).partition(".toml:")[2] for problem in refused.value.problems]
    assert '6: PR007: experiment "e", "sweep": "step" takes no "clos"; did you mean "cols"?' in told


def contents(text: str) -> dict[str, dict[str, object]]:
    study = load(text)
    return {name: registered_content(study, each) for name, each in study.predictions.items()}


def digests(text: str) -> dict[str, str]:
    study = load(text)
    return {name: registration_digest(study, each) for name, each in study.predictions.items()}


def test_a_value_that_is_added_leaves_what_is_registered_of_the_others() -> None:
    more = digests(changed((SWEEP, "sweep = { cols = [16, 4096, 1024.0] }")))
    assert digests(STUDY).items() <= more.items()
    assert len(more) == 3


def test_the_order_of_axes_and_values_binds_nothing() -> None:
    expanded = changed(TWO_AXES, (FOR_EACH, 'for-each = ["rows", "cols"]'))
    assert digests(expanded) == digests(
        changed(
            (SWEEP, "sweep = { cols = [1024, 4096], rows = [1, 2] }"),
            (FOR_EACH, 'for-each = ["cols", "rows"]'),
        )
    )
    reduced = changed(OVER)
    assert digests(reduced) == digests(changed(OVER, (SWEEP, "sweep = { cols = [4096, 1024] }")))


def test_what_is_compared_is_registered_with_the_swept_values() -> None:
    content = contents(STUDY)["faster[cols=1024]"]
    assert content["prediction"]["arms"] == ["new[cols=1024]", "old[cols=1024]"]
    assert content["experiment"]["arms"] == {"new": {"fused": True}, "old": {"fused": False, "timeout": 5.0}}
    assert content["experiment"]["sweep"] == {
        "new[cols=1024]": {"cols": 1024},
        "old[cols=1024]": {"cols": 1024},
    }
    assert "for-each" not in content["prediction"]


def test_how_points_are_reduced_is_registered() -> None:
    texts = [
        changed((FOR_EACH, f'{OVER[1]}\nstatistic = "{word}"')) for word in ("min", "all", "geometric-mean")
    ]
    found = [*(digests(text)["faster"] for text in texts), digests(changed(OVER))["faster"]]
    assert len(set(found)) == 3
    assert found[2] == found[3]


def test_predictions_of_a_sweep_are_locked_under_their_own_ids() -> None:
    study = load(STUDY)
    lock = register(study, None, plan_registration(study, None, at="2026-01-01T00:00:00Z"))
    text = render_lock(lock)
    again: Lock = parse_lock(text, "predictions.lock")
    assert again == lock
    assert list(again.predictions) == ["faster[cols=1024]", "faster[cols=4096]"]
    assert registered(text.encode()).digests == digests(STUDY)


def test_an_id_with_a_point_can_be_required() -> None:
    other = STUDY[STUDY.index("[predictions") :].replace("predictions.faster", "predictions.other")
    text = STUDY + other + 'requires = ["faster[cols=4096]"]\n'
    assert refusals(text) == []
    (told,) = refusals(text.replace("cols=4096]", "cols=409]"))
    assert 'unknown prediction "faster[cols=409]"' in told


def test_a_slip_in_a_table_is_told_once_for_all_that_it_makes() -> None:
    text = changed((CONTRAST, 'contrast = "new - old"'))
    (problem,) = check_units(load(text))
    assert problem.code == "PR021"
    assert not_yet(load(STUDY)) == []


def test_a_point_names_nothing_without_axes() -> None:
    assert crossed_name("new", {}) == "new"
