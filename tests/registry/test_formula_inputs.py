"""A formula is read over its inputs, in units that follow from theirs, and binds all that it rests on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from study_texts import HEAD, load, predicted, refusals

from pytest_prereg.registry.canonical import canonical_json
from pytest_prereg.registry.digest import registered_content, registration_digest
from pytest_prereg.registry.formulas import NOT_BESIDE, parse_formula
from pytest_prereg.registry.lock import plan_registration, register
from pytest_prereg.registry.model import ONLY_ARM
from pytest_prereg.registry.refusals import RefusedError
from pytest_prereg.registry.units import check_units, registered_unit
from pytest_prereg.registry.uses import arms_of, metrics_of

INPUTS = """{ g = "one:t_gen", o = "two[old]:t", limit = "constants:deadline" }"""
SOUND: dict[str, Any] = {
    "experiment": None,
    "quantity": None,
    "formula": "g / (o + limit)",
    "predicts": "<= 0.25",
    "falsifier": ">= 0.5",
}


def formula(inputs: str = INPUTS, **keys: object) -> str:
    return predicted(**(SOUND | keys)) + f"inputs = {inputs}\n"


def digest(text: str) -> str:
    study = load(text)
    return registration_digest(study, study.predictions["p"])


def test_inputs_are_means_of_quantities_and_constants() -> None:
    prediction = load(formula()).predictions["p"]
    assert prediction.formula is not None
    g, limit, o = prediction.formula.inputs
    assert (g.experiment, g.arm, g.quantity and g.quantity.node) == ("one", ONLY_ARM, "t_gen")
    assert (o.experiment, o.arm, o.quantity and o.quantity.metrics) == ("two", "old", ("t",))
    assert (limit.constant, limit.experiment, limit.quantity) == ("deadline", None, None)
    assert prediction.formula.node == ["/", "g", ["+", "o", "limit"]]
    assert prediction.statistic == "formula"
    assert prediction.experiments == ("one", "two")
    assert prediction.arms == ()
    assert (arms_of(prediction, "two"), metrics_of(prediction, "two")) == (("old",), ("t",))


def test_arms_of_a_formula_over_one_experiment_are_those_that_it_reads() -> None:
    text = formula('{ a = "two[old]:t", b = "two[new]:t", c = "two[new]:t ** 2 / t" }', formula="a / (b + c)")
    prediction = load(text).predictions["p"]
    assert prediction.experiments == ("two",)
    assert prediction.arms == ("new", "old")


def test_an_input_names_an_arm_that_a_sweep_makes_by_its_values() -> None:
    swept = HEAD.replace("[experiments.two]\n", "[experiments.two]\nsweep = { cols = [1, 2] }\n")
    swept = swept.replace("[experiments.one]\n", "[experiments.one]\nsweep = { rows = [3, 4] }\n")
    text = formula('{ a = "two[old[cols=2]]:t", b = "one[rows=4]:t_gen" }', formula="a / b")
    (a, b) = load(text.replace(HEAD, swept)).predictions["p"].formula.inputs  # type: ignore[union-attr]
    assert (a.arm, b.arm) == ("old[cols=2]", "[rows=4]")


@pytest.mark.parametrize(
    ("inputs", "keys", "message"),
    [
        ('{ g = "won:t_gen" }', {"formula": "g"}, 'PR007: prediction "p", input "g": unknown experiment "won"; did'),
        ('{ g = "two[odd]:t" }', {"formula": "g"}, 'PR007: prediction "p", input "g": unknown arm "odd" of experiment "two"; did you mean "old"?'),
        ('{ g = "two:t" }', {"formula": "g"}, 'has arms "new" and "old"; say which, as in "two[arm]:quantity"'),
        ('{ g = "one:t_genn" }', {"formula": "g"}, 'uses unknown metric "t_genn"; did you mean "t_gen"?'),
        ('{ g = "one:t_gen", l = "constants:deadlin" }', {"formula": "g / l"}, 'unknown constant "deadlin"; did you mean "deadline"?'),
        ('{ g = "one" }', {"formula": "g"}, 'PR005: prediction "p", input "g": "one" is no input; write "experiment:quantity"'),
        ('{ g = "one:t_gen:t" }', {"formula": "g"}, "is no input"),
        ('{ g = "one:completed" }', {"formula": "g"}, 'PR033: prediction "p", input "g": quantity "completed" is 0 or 1'),
        ('{ completed = "one:t_gen" }', {"formula": "completed"}, "PR006"),
        ('{ if = "one:t_gen" }', {"formula": "1"}, "PR006"),
        ('{ g = "one:t_gen" }', {"formula": "g + h"}, 'PR007: prediction "p": formula "g + h" uses unknown input "h"; its inputs: "g"'),
        ('{ gen = "one:t_gen" }', {"formula": "gem"}, 'did you mean "gen"?'),
        ('{ g = "one:t_gen", h = "one:t_train" }', {"formula": "g"}, 'doesn\'t use input "h"'),
        ('{ l = "constants:deadline" }', {"formula": "l"}, 'PR020: prediction "p": formula "l" rests on constants alone'),
        ('{ g = "one:t_gen" }', {"formula": "mean(g)"}, 'PR020: prediction "p": formula "mean(g)" has "mean(g)"; use numbers, inputs'),
        ('{ g = "one:t_gen" }', {"formula": "g < 3"}, 'has "g < 3"; use numbers, inputs'),
        ('{ g = "one:t_gen" }', {"formula": "max(g)"}, 'has "max(g)"; use numbers, inputs'),
        ('{ g = "one:t_gen" }', {"formula": "g / constants.deadline"}, 'has "constants.deadline"; use numbers'),
        ('{ g = "one:t_gen" }', {"formula": "g +"}, 'PR020: prediction "p": formula "g +" is not an expression'),
        ('{ g = "one:t_gen" }', {"formula": "g if g else 1"}, "which is not offered"),
        ('{ g = "one:t_gen" }', {"formula": None}, 'PR004: prediction "p" has "inputs" and lacks "formula"'),
        ('{ g = "one:t_gen" }', {"formula": "g", "unit": "s/"}, "is no unit"),
        ('{ g = "one:t_gen" }', {"formula": "g", "predicts": None}, "PR031"),
        ('{ g = "one:t_gen" }', {"formula": "g", "falsifier": "> 0.1"}, "PR030"),
    ],
)  # fmt: skip
def test_what_is_no_formula_is_told(inputs: str, keys: dict[str, object], message: str) -> None:
    assert any(message in told for told in refusals(formula(inputs, **keys))), refusals(
        formula(inputs, **keys)
    )


def test_each_slip_is_told_once_at_the_line_of_its_input() -> None:
    text = (
        predicted(**SOUND) + '[predictions.p.inputs]\ng = "won:t"\no = "two[old]:t"\nlimit = "constants:x"\n'
    )
    lines = text.splitlines()
    told = [lines[int(message.partition(":")[0]) - 1] for message in refusals(text)]
    assert told == ['g = "won:t"', 'limit = "constants:x"']


def test_a_formula_without_inputs_says_so() -> None:
    (message,) = refusals(predicted(**SOUND))
    assert message.endswith('prediction "p" has "formula" and lacks "inputs"')


OTHERS = {
    "detect": 1.0,
    "cv": 0.1,
    "sd": 0.1,
    "arm": "new",
    "contrast": "new - old",
    "experiment": "two",
    "statistic": "mean",
}


@pytest.mark.parametrize("key", NOT_BESIDE)
def test_what_a_formula_says_itself_is_not_said_beside_it(key: str) -> None:
    messages = refusals(formula(**{key.replace("-", "_"): OTHERS.get(key, "t_gen")}))
    assert [message.split(": ", 1)[1] for message in messages] == [
        f'PR005: prediction "p" has "{key}" beside "formula", which says it all'
    ]


def test_an_experiment_that_may_end_early_gives_no_input() -> None:
    text = formula().replace(
        "[experiments.two]\nrepeats = 7", "[experiments.two]\nrepeats = { looks = [5, 9] }"
    )
    (message,) = refusals(text)
    assert 'PR024: prediction "p", input "o": experiment "two" may end early' in message


def test_what_is_wrong_with_an_experiment_is_told_once() -> None:
    text = formula().replace(
        "[experiments.two]\nrepeats = 7\nmetrics", "[experiments.two]\nrepeats = 7\nmetrix"
    )
    assert [message.split(": ")[1] for message in refusals(text)] == ["PR003"]


@pytest.mark.parametrize("basis", ["measured", "model", "identity"])
def test_any_basis_is_taken(basis: str) -> None:
    assert load(formula(basis=basis)).predictions["p"].table.basis == basis


class TestUnits:
    @pytest.mark.parametrize(
        ("inputs", "keys", "unit", "factor"),
        [
            (INPUTS, {}, "1", 1.0),
            (INPUTS, {"predicts": "<= 25 %", "falsifier": ">= 50 %"}, "%", 100.0),
            ('{ w = "one:wait", g = "one:t_gen" }', {"formula": "w / g"}, "1", 0.001),
            (
                '{ w = "one:wait / tokens", n = "one:tokens" }',
                {"formula": "w * n", "predicts": "<= 1 s", "falsifier": "> 2 s"},
                "s",
                0.001,
            ),
            ('{ a = "one:t_gen / t_train" }', {"formula": "log(a) + exp(a)"}, "1", 1.0),
        ],
    )
    def test_the_unit_follows_from_those_of_the_inputs(
        self, inputs: str, keys: dict[str, object], unit: str, factor: float
    ) -> None:
        study = load(formula(inputs, **keys))
        assert check_units(study) == []
        assert registered_unit(study, study.predictions["p"]) == (unit, pytest.approx(factor, rel=1e-14))

    @pytest.mark.parametrize(
        ("inputs", "keys", "message"),
        [
            ('{ g = "one:t_gen", w = "one:wait" }', {"formula": "g + w"}, "declare both metrics in one unit"),
            ('{ g = "one:t_gen", n = "one:tokens" }', {"formula": "g + n"}, '"g" is in s, "n" in token'),
            ('{ g = "one:t_gen" }', {"formula": "log(g)"}, '"log" takes a pure number, but "g" is in s'),
            ('{ g = "one:t_gen + tokens" }', {"formula": "g"}, '"t_gen" is in s, "tokens" in token'),
            (
                '{ g = "one:t_gen" }',
                {"formula": "2 * g"},
                'formula "2 * g" is in s, but "predicts" has no unit',
            ),
            (INPUTS, {"predicts": "<= 1 s", "falsifier": "> 2 s"}, 'has no unit, but "predicts" is in s'),
        ],
    )
    def test_inputs_that_do_not_go_together_are_refused(
        self, inputs: str, keys: dict[str, object], message: str
    ) -> None:
        (problem,) = check_units(load(formula(inputs, **keys)))
        assert problem.code == "PR021"
        assert message in problem.message


class TestDigest:
    def test_what_is_bound_is_said_in_plain_json(self) -> None:
        study = load(formula())
        assert json.loads(canonical_json(registered_content(study, study.predictions["p"]))) == {
            "prediction": {
                "formula": ["/", "g", ["+", "o", "limit"]],
                "inputs": {
                    "g": {"experiment": "one", "quantity": "t_gen"},
                    "o": {"experiment": "two", "arm": "old", "quantity": "t"},
                    "limit": {"constant": "deadline"},
                },
                "statistic": "formula",
                "predicts": {"spans": [[None, False, 0.25, True]]},
                "falsifier": {"spans": [[0.5, True, None, False]]},
            },
            "experiments": {
                "one": {"repeats": 7, "metrics": {"t_gen": {"unit": "s"}}},
                "two": {"repeats": 7, "arms": {"old": {}}, "metrics": {"t": {"unit": "s"}}},
            },
            "constants": {"deadline": {"value": 2, "unit": "s"}},
        }

    @pytest.mark.parametrize(
        "text",
        [
            formula('{ limit = " constants : deadline ", o = "two[ old ] : t", g = "one:(t_gen)" }'),
            formula(formula="(g) / (o+limit)"),
            formula(claim="other words", notes="n"),
            formula().replace("new = {}", "new = { x = 1 }"),
            formula().replace('t_train = "s"', 't_train = "ms"'),
            formula().replace("the service's own promise", "a letter"),
        ],
    )
    def test_no_change(self, text: str) -> None:
        assert text != formula()
        assert digest(text) == digest(formula())

    def test_changes(self) -> None:
        texts = [
            formula(),
            formula(formula="g / (limit + o)"),
            formula(INPUTS.replace("two[old]", "two[new]")),
            formula(INPUTS.replace("one:t_gen", "one:t_train")),
            formula(INPUTS.replace("t_gen", "2 * t_gen")),
            formula(INPUTS.replace("two[old]:t", "one:t_train")),
            formula(basis="model"),
            formula(predicts="<= 0.2"),
            formula(expected=0.2),
            formula().replace("[experiments.one]\nrepeats = 7", "[experiments.one]\nrepeats = 8"),
            formula().replace("[experiments.two]\nrepeats = 7", "[experiments.two]\nrepeats = 8"),
            formula().replace("old = {}", "old = { x = 1 }"),
            formula().replace("value = 2.0", "value = 2.1"),
            formula().replace("value = 2.0", "value = 2.0\ninterval = [1, 3]"),
        ]
        assert len({digest(text) for text in texts}) == len(texts)


def test_an_entry_holds_one_digest_of_the_code_of_all_experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {"one": "sha256:1", "two": "sha256:2"}
    monkeypatch.setattr(
        "pytest_prereg.registry.lock.source_digest", lambda _, experiment: sources[experiment.id]
    )
    study = load(formula())

    def entry() -> str | None:
        return plan_registration(study, None).new["p"].experiment

    before = entry()
    assert before is not None
    assert before not in sources.values()
    sources["two"] = "sha256:3"
    assert entry() not in (None, before)


def test_an_entry_of_imports_alone_holds_no_digest_of_code() -> None:
    assert plan_registration(load(formula()), None).new["p"].experiment is None


def test_a_change_of_code_names_the_experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    study = load(formula())
    monkeypatch.setattr("pytest_prereg.registry.lock.source_digest", lambda *_: "sha256:1")
    lock = register(study, None, plan_registration(study, None))
    monkeypatch.setattr("pytest_prereg.registry.lock.source_digest", lambda *_: "sha256:2")
    (problem,) = plan_registration(study, lock).problems
    assert (problem.code, 'experiment "one" or "two" changed' in problem.message) == ("PR103", True)


def test_names_of_functions_may_be_names_of_inputs() -> None:
    assert parse_formula("min(min, max) + -exp(log) ** 2", ["min", "max", "log"]) == [
        "+",
        ["min", "min", "max"],
        ["-", ["**", ["exp", "log"], 2.0]],
    ]


def test_a_message_about_a_formula_never_calls_it_a_quantity() -> None:
    for text in ("", "g +", "g$", "f(g)", "1e999 * g", "g and g", "quantile(g, 0.5)"):
        with pytest.raises(RefusedError, match="formula") as refused:
            parse_formula(text, ["g"])
        assert "quantity" not in str(refused.value)
        assert "metrics" not in str(refused.value)
