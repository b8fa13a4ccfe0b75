"""Two answers to one question, under whatever names it is asked, and answers that anything would support."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_prereg.audit.comparing.changes import Revision
from pytest_prereg.audit.comparing.opposites import clashes
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.vacuous import is_vacuous

if TYPE_CHECKING:
    from pytest_prereg.registry.model import Study

STUDY = """\
[study]
id = "s"

[experiments.rows]
metrics = { wall = "s", other = "s" }
repeats = 5
[experiments.rows.arms]
a = {}
b = {}

[experiments.barrier]
fixture = "reward_barrier"
repeats = 5
conditions = { gpu = "*H100*" }
[experiments.barrier.arms]
one = { timeout_rate = 0.0 }
two = { timeout_rate = 0.1 }

[experiments.copy]
fixture = "reward_barrier"
repeats = 9
timeout = "5 min"
exclude = ["load_average > 4"]
conditions = { gpu = "*h100*", cores = ">= 2" }
[experiments.copy.arms]
first = { timeout_rate = 0.0 }
second = { timeout_rate = 0.1 }

[experiments.elsewhere]
fixture = "reward_barrier"
repeats = 5
conditions = { gpu = "*A100*" }
[experiments.elsewhere.arms]
one = { timeout_rate = 0.0 }
two = { timeout_rate = 0.1 }
"""


def study(*tables: str) -> Study:
    """With a prediction for each of the tables: ``p0``, ``p1``."""
    predictions = [f'[predictions.p{number}]\nclaim = "c"\n{table}\n' for number, table in enumerate(tables)]
    return load_study(Path("/nowhere/predictions.toml"), text="\n".join([STUDY, *predictions]))


def asks(
    predicts: str,
    falsifier: str = "otherwise",
    *,
    of: str = 'experiment = "rows"\narm = "a"',
    quantity: str = "wall",
    more: str = "",
) -> str:
    return f'{of}\nquantity = "{quantity}"\npredicts = "{predicts}"\nfalsifier = "{falsifier}"\n{more}'


def found(*tables: str) -> list[str]:
    made = study(*tables)
    revisions = (Revision(study=made, prediction=one) for one in made.predictions.values())
    return [how for _, _, how in clashes(revisions)]


@pytest.mark.parametrize(
    ("left", "right", "how"),
    [
        (("<= 2 s", ">= 3 s"), (">= 3 s", "<= 2 s"), ["opposite"]),
        (("<= 2 s", ">= 3 s"), (">= 3000 ms", "<= 2000 ms"), ["opposite"]),
        (("<= 2 s",), ("> 2 s",), ["opposite"]),
        (("<= 2 s", ">= 3 s"), (">= 3 s", "< 1 s"), ["exclusive"]),
        (("<= 2 s", ">= 3 s"), ("> 2.5 s", "< 2.2 s"), ["exclusive"]),
        (("<= 2 s", "> 4 s"), (">= 2 s", "< 1 s"), ["certain"]),
        (("<= 3 s", "> 4 s"), (">= 2 s", "< 1 s"), ["certain"]),
        (("[1, 2] s",), ("outside [1, 2] s",), ["opposite"]),
        (("[1, 2] s", "> 4 s"), ("outside [1, 2] s", "[1.2, 1.4] s"), ["certain"]),
        (("< 2 s", "> 4 s"), ("> 2 s", "< 1 s"), ["exclusive"]),
        (("<= 2 s", ">= 3 s"), ("<= 1 s", ">= 3 s"), []),
        (("<= 2 s", ">= 3 s"), ("<= 2 s", ">= 3 s"), []),
        (("<= 2 s", ">= 3 s"), (">= 1 s", "< 0.5 s"), ["certain"]),
        (("[1, 3] s",), (">= 2 s",), []),
    ],
)
def test_how_two_answers_stand_to_each_other(left: tuple[str, ...], right: tuple[str, ...], how: list[str]):
    assert found(asks(*left), asks(*right)) == how
    assert found(asks(*right), asks(*left)) == how


UP, DOWN = (">= 3 s", "<= 2 s"), ("<= 2 s", ">= 3 s")


@pytest.mark.parametrize(
    "other",
    [
        {"quantity": "other"},
        {"quantity": "2 * wall"},
        {"of": 'experiment = "rows"\narm = "b"'},
        {"more": 'statistic = "median"'},
    ],
)
def test_another_question_has_answers_of_its_own(other: dict[str, str]):
    assert found(asks(*DOWN), asks(*UP)) == ["opposite"]
    assert found(asks(*DOWN), asks(*UP, **other)) == []


def of(experiment: str, arm: str) -> str:
    return f'experiment = "{experiment}"\narm = "{arm}"'


def test_a_copy_of_an_experiment_asks_the_same_however_often_it_is_run():
    metric = next(iter(study().experiments["barrier"].metrics.values()))
    unit = "" if metric.unit == "1" else f" {metric.unit}"
    down, up = f"<= 2{unit}", f"> 2{unit}"
    original = asks(down, of=of("barrier", "one"), quantity=metric.name)
    assert found(original, asks(up, of=of("copy", "first"), quantity=metric.name)) == ["opposite"]
    assert found(original, asks(up, of=of("copy", "second"), quantity=metric.name)) == []
    assert found(original, asks(up, of=of("elsewhere", "one"), quantity=metric.name)) == []


def contrast(text: str) -> str:
    return f'experiment = "rows"\ncontrast = "{text}"'


def test_arms_that_change_places_ask_the_same():
    faster = asks("<= 0.5", of=contrast("a / b"))
    assert found(faster, asks("<= 0.5", "> 2", of=contrast("b / a"))) == ["exclusive"]
    assert found(faster, asks("< 2", of=contrast("b / a"))) == ["opposite"]
    assert found(faster, asks(">= 2", of=contrast("b / a"))) == []
    less = asks("<= -1 s", of=contrast("a - b"))
    assert found(less, asks("< 1 s", of=contrast("b - a"))) == ["opposite"]
    assert found(less, asks(">= 1 s", of=contrast("b - a"))) == []


def test_a_ratio_is_never_below_zero():
    low = asks("<= 0.5", ">= 0.8", of=contrast("a / b"))
    assert found(low, asks("[0.5, 9]", "<= 0.1", of=contrast("a / b"))) == []
    assert found(low, asks("> 0.4", "<= 0.1", of=contrast("a / b"))) == ["certain"]


@pytest.mark.parametrize(
    "quantity",
    [
        "wall - wall",
        "wall / wall",
        "(wall + other) / (other + wall)",
        "wall * other - other * wall",
        "0 * wall",
        "wall ** 0",
        "2 + (max(wall, other) - max(other, wall))",
    ],
)
def test_what_no_measurement_can_change_is_seen(quantity: str):
    (one,) = study(asks("<= 2", quantity=quantity)).predictions.values()
    assert is_vacuous(one)


@pytest.mark.parametrize(
    "quantity", ["wall", "wall - other", "wall / other", "2 * wall", "wall ** 2", "wall / 2"]
)
def test_what_a_measurement_changes_is_not(quantity: str):
    (one,) = study(asks("<= 2", quantity=quantity)).predictions.values()
    assert not is_vacuous(one)


def test_a_formula_of_one_input_under_two_names_is_seen():
    inputs = 'inputs = {{ x = "rows[a]:wall", y = "rows[{arm}]:wall" }}\nformula = "x - y"\npredicts = "<= 0 s"\nfalsifier = "> 1 s"'
    same, different = study(inputs.format(arm="a"), inputs.format(arm="b")).predictions.values()
    assert is_vacuous(same)
    assert not is_vacuous(different)


def test_successes_among_themselves_are_seen():
    counted = 'experiment = "rows"\narm = "a"\nsuccesses = "{}"\ntrials = "wall"\npredicts = ">= 0.5"\nfalsifier = "< 0.2"'
    all_of_them, some = study(counted.format("wall"), counted.format("other")).predictions.values()
    assert is_vacuous(all_of_them)
    assert not is_vacuous(some)
