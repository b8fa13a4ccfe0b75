from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from study_texts import load, predicted

from pytest_prereg.registry.dimensions import PLAIN, _name_root, root
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.model import Metric
from pytest_prereg.registry.quantities import parse_quantity
from pytest_prereg.registry.refusals import RefusedError
from pytest_prereg.registry.tables import ConstantTable
from pytest_prereg.registry.unit_text import normal_unit, parse_unit
from pytest_prereg.registry.units import check_units, convert, natural_unit, registered_unit, resolve_unit

UNITS = {
    "s": "s",
    "s2": "s",
    "ms": "ms",
    "hz": "Hz",
    "token": "token",
    "tok": "tok",
    "byte": "GB",
    "pure": "1",
    "percent": "%",
    "nats": "nat",
    "usd": "USD",
}
METRICS = {name: Metric(name=name, unit=unit) for name, unit in UNITS.items()}
CONSTANTS = {"deadline": ConstantTable(value=2.0, unit="s", source="a table")}


def natural(text: str) -> str:
    return natural_unit(parse_quantity(text, METRICS, CONSTANTS).node, METRICS, CONSTANTS)


def resolved(text: str, wanted: str | None = None) -> tuple[str, float]:
    return resolve_unit(parse_quantity(text, METRICS, CONSTANTS), METRICS, CONSTANTS, wanted)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("s", "s"),
        ("s / token", "s/token"),
        ("token / s", "token/s"),
        ("byte / s", "GB/s"),
        ("s / s2", "1"),
        ("s * s2", "s^2"),
        ("sqrt(s * s2)", "s"),
        ("sqrt(s)", "s^0.5"),
        ("s ** 2 / s2", "s"),
        ("1 / s", "1/s"),
        ("s + s2 - constants.deadline", "s"),
        ("hz + 1 / s", "Hz"),
        ("mean(s) + quantile(s2, 0.9) - std(s)", "s"),
        ("count(s) / sum(s)", "1/s"),
        ("share(s < constants.deadline)", "1"),
        ("share(s < 0.5)", "1"),
        ("30 / (s + s2 + 30)", "1/s"),
        ("max(s, s2, 1)", "s"),
        ("completed * token", "token"),
        ("log(pure) + exp(s / s2) ** pure", "1"),
        ("usd / token", "USD/token"),
    ],
)
def test_the_natural_unit_follows_from_those_of_the_metrics(text: str, unit: str) -> None:
    assert natural(text) == unit


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("s + token", '"s" is in s, "token" in token; they can\'t be added or compared'),
        ("s + ms", '"s" is in s, "ms" in ms; declare both metrics in one unit'),
        ("s < ms", "declare both metrics in one unit"),
        ("min(s, token)", "can't be added or compared"),
        ("pure + percent", "declare both metrics in one unit"),
        ("token + tok", "can't be added or compared"),
        ("log(s)", '"log" takes a pure number, but "s" is in s'),
        ("exp(ms / s)", '"exp" takes a pure number, but "ms / s" is in ms/s'),
        ("share(s)", '"share" takes a pure number'),
        ("s ** pure", "raise it to a plain, small number"),
        ("2 ** s", "raise it to a plain, small number"),
    ],
)
def test_units_that_do_not_go_together_are_refused(text: str, message: str) -> None:
    with pytest.raises(RefusedError, match=message.replace("(", r"\(")) as refused:
        natural(text)
    assert refused.value.code == "PR021"


@pytest.mark.parametrize(
    ("text", "wanted", "unit", "factor"),
    [
        ("s / s2", None, "1", 1.0),
        ("ms / s", None, "1", 0.001),
        ("s", None, "s", 1.0),
        ("s", "ms", "ms", 1000.0),
        ("ms", "s", "s", 0.001),
        ("ms", "min", "min", 1 / 60000),
        ("s / token", "ms / token", "ms/token", 1000.0),
        ("token / s", "Mtoken/s", "Mtoken/s", 1e-6),
        ("token / s", "token/h", "token/h", 3600.0),
        ("s / s2", "%", "%", 100.0),
        ("percent", "1", "1", 0.01),
        ("percent", None, "%", 1.0),
        ("byte", "MiB", "MiB", 1e9 / 2**20),
        ("hz", "1/s", "1/s", 1.0),
        ("tok", "toks", "toks", 1.0),
        ("nats", "nats", "nats", 1.0),
    ],
)
def test_the_unit_shown_is_the_wanted_one_and_the_factor_leads_there(
    text: str, wanted: str | None, unit: str, factor: float
) -> None:
    assert resolved(text, wanted)[0] == unit
    assert resolved(text, wanted)[1] == pytest.approx(factor, rel=1e-14)


@pytest.mark.parametrize(
    ("text", "wanted"), [("s", "token"), ("token", "tok"), ("nats", "Pa"), ("s", "1"), ("byte", "s")]
)
def test_a_unit_of_something_else_cannot_be_wanted(text: str, wanted: str) -> None:
    with pytest.raises(RefusedError, match="it can't be in"):
        resolved(text, wanted)


def test_conversion_keeps_fifteen_digits() -> None:
    assert convert(1.1, "ms", "us") == 1100.0
    assert convert(3, "ms", "s") == 0.003
    assert convert(7, "furlongish", "furlongish") == 7
    with pytest.raises(RefusedError, match="can't be converted"):
        convert(1, "s", "token")


@pytest.mark.parametrize("unit", ["degC", "dB", "°C"])
def test_a_unit_with_an_offset_or_a_logarithm_is_refused(unit: str) -> None:
    with pytest.raises(RefusedError, match="offset or a logarithm"):
        convert(1, unit, "K")


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("s / token", "s/token"),
        ("token*s^-1", "token/s"),
        ("(a*b)/(c/d)", "a*b*d/c"),
        ("1/s", "1/s"),
        ("s/s", "1"),
        ("m**2", "m^2"),
    ],
)
def test_a_unit_has_one_spelling(text: str, normal: str) -> None:
    assert normal_unit(text) == normal
    assert normal_unit(normal) == normal


@pytest.mark.parametrize(
    "text", ["", " ", "s//t", "s t", "3 s", "s^", "(s", "s)", "s/", "$", "s" * 101, "(" * 50 + "s" + ")" * 50]
)
def test_what_is_no_unit_is_refused(text: str) -> None:
    with pytest.raises(RefusedError, match="is no unit"):
        normal_unit(text)


def complaints(**keys: object) -> list[str]:
    return [str(problem).split(": ", 1)[1] for problem in check_units(load(predicted(**keys)))]


def test_a_dimensional_quantity_needs_a_unit_in_its_regions() -> None:
    assert complaints(quantity="t_train / tokens", predicts="<= 0.01", falsifier="otherwise") == [
        'PR021: quantity "t_train / tokens" is in s/token, but "predicts" has no unit; write "<= 0.01 s/token"'
    ]
    assert complaints(quantity="t_gen", predicts="<= 1 s", falsifier="[2, 3]") == [
        'PR021: quantity "t_gen" is in s, but "falsifier" has no unit; write "[2, 3] s"'
    ]
    assert complaints(quantity="load", predicts="<= 50", falsifier="otherwise") == [
        'PR021: quantity "load" is in %, but "predicts" has no unit; write "<= 50 %"'
    ]


@pytest.mark.parametrize(
    ("predicts", "hint"),
    [
        ("<= 0.5", 'write "<= 0.5 %" if that is meant, or "<= 50 %" for a share of 0.5'),
        ("[0.2, 0.5]", 'write "[0.2, 0.5] %" if that is meant, or "[20, 50] %" for shares'),
        ("within 10% of 0.5", 'write "within 10% of 0.5 %" if that is meant, or "[45, 55] %" for shares'),
        ("<= 1.5", 'write "<= 1.5 %"'),
    ],
)
def test_a_bare_number_of_percents_may_have_been_meant_as_a_share(predicts: str, hint: str) -> None:
    (told,) = complaints(quantity="load", predicts=predicts, falsifier="otherwise")
    assert told.endswith(f"has no unit; {hint}")


@pytest.mark.parametrize(
    "keys",
    [
        {"predicts": "<= 500 ms", "falsifier": ">= 1 s"},
        {"predicts": "<= 1", "falsifier": "> 2", "unit": "s"},
        {"predicts": "<= 0", "falsifier": "> 0"},
        {"predicts": "< 10 s", "falsifier": "otherwise"},
        {"quantity": "wait / t_gen"},
        {"quantity": "load", "predicts": "<= 50 %", "falsifier": "otherwise"},
        {"quantity": "load", "predicts": "<= 0.5", "falsifier": "otherwise", "unit": "1"},
        {"quantity": "tokens / t_gen", "predicts": ">= 3 token/s", "falsifier": "otherwise"},
        {"experiment": "two", "quantity": "t", "contrast": "new / old"},
        {
            "experiment": "two",
            "quantity": "t",
            "contrast": "new - old",
            "predicts": "< -3 ms",
            "falsifier": "> 0",
        },
    ],
)
def test_sound_units_pass(keys: dict[str, object]) -> None:
    assert complaints(**({"quantity": "t_gen"} | keys)) == []


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"quantity": "t_gen", "predicts": "<= 1 token", "falsifier": "otherwise"}, '"predicts" is in token'),
        ({"quantity": "t_gen", "predicts": "<= 1 s", "falsifier": "> 3 %"}, '"falsifier" is in %'),
        ({"quantity": "t_gen", "unit": "token", "predicts": "<= 1", "falsifier": "> 2"}, "is in token"),
        (
            {"predicts": "<= 1 s", "falsifier": "otherwise"},
            'quantity "t_train / t_gen" has no unit, but "predicts" is in s',
        ),
        ({"quantity": "t_gen + tokens", "predicts": "<= 1 s", "falsifier": "otherwise"}, "can't be added"),
        (
            {"quantity": "t_gen + wait", "predicts": "<= 1 s", "falsifier": "otherwise"},
            "declare both metrics in one unit",
        ),
        (
            {
                "experiment": "two",
                "quantity": "t",
                "contrast": "new / old",
                "predicts": "<= 1 s",
                "falsifier": "otherwise",
            },
            'the ratio of two arms has no unit, but "predicts" is in s',
        ),
    ],
)
def test_a_unit_of_the_wrong_kind_is_told_at_its_line(keys: dict[str, object], message: str) -> None:
    (complaint,) = complaints(**keys)
    assert complaint.startswith("PR021: ")
    assert message in complaint


def test_regions_in_two_units_that_overlap_are_found_once_they_can_be_compared() -> None:
    (complaint,) = complaints(quantity="t_gen", predicts="<= 500 ms", falsifier=">= 0.4 s")
    assert complaint.startswith(
        'PR030: "predicts" is "<= 500 ms" and "falsifier" is ">= 0.4 s"; they overlap'
    )


def test_a_time_is_never_exact(tmp_path: Path) -> None:
    path = tmp_path / "predictions.toml"
    path.write_text(
        '[study]\nid = "s"\n[experiments.e]\nmetrics.t = { unit = "ms", exact = true }\nmetrics.n = { unit = "token", exact = true }\n'
    )
    (problem,) = check_units(load_study(path))
    assert str(problem).endswith(
        'predictions.toml:4: PR005: experiment "e", "metrics.t" is a time, which is never "exact"'
    )


@pytest.mark.parametrize("unit", ["token/s", "Hz", "GB/ms", "J", "W"])
def test_what_is_measured_against_time_is_never_exact(tmp_path: Path, unit: str) -> None:
    path = tmp_path / "predictions.toml"
    path.write_text(f'[study]\nid = "s"\n[experiments.e]\nmetrics.t = {{ unit = "{unit}", exact = true }}\n')
    (problem,) = check_units(load_study(path))
    assert str(problem).endswith('"metrics.t" is measured against time, which is never "exact"')


def test_the_line_of_a_unit_problem_is_that_of_its_key(tmp_path: Path) -> None:
    path = tmp_path / "predictions.toml"
    path.write_text(predicted(quantity="t_gen"))
    (problem,) = check_units(load_study(path))
    assert path.read_text().splitlines()[problem.line - 1] == 'predicts = "<= 0.25"'


@pytest.mark.parametrize(
    ("keys", "unit", "factor"),
    [
        ({}, "1", 1.0),
        ({"quantity": "t_gen", "predicts": "<= 500 ms", "falsifier": ">= 1 s"}, "ms", 1000.0),
        ({"quantity": "t_gen", "predicts": "<= 500 ms", "falsifier": ">= 1 s", "unit": "min"}, "min", 1 / 60),
        ({"quantity": "t_gen", "predicts": "<= 0", "falsifier": ">= 1 s"}, "s", 1.0),
        ({"quantity": "wait / t_gen"}, "1", 0.001),
        ({"quantity": "wait / t_gen", "unit": "%"}, "%", 0.1),
        ({"experiment": "two", "quantity": "t", "contrast": "new / old"}, "1", 1.0),
        (
            {
                "experiment": "two",
                "quantity": "t",
                "contrast": "new / old",
                "predicts": "< 50 %",
                "falsifier": "otherwise",
            },
            "1",
            1.0,
        ),
    ],
)
def test_the_registered_unit_is_the_predictions_then_a_regions_then_the_natural_one(
    keys: dict[str, object], unit: str, factor: float
) -> None:
    study = load(predicted(**keys))
    assert registered_unit(study, study.predictions["p"]) == (unit, pytest.approx(factor, rel=1e-14))


def test_loading_and_judging_do_not_import_pint() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from study_texts import load, predicted\n"
        "from pytest_prereg.registry.judging import thresholds\n"
        "study = load(predicted(quantity='t_gen', predicts='<= 1 s', falsifier='otherwise'))\n"
        "thresholds(study.predictions['p'], 's')\n"
        "assert not {'pint', 'numpy', 'scipy', 'click', 'torch'} & set(sys.modules), sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", code, str(Path(__file__).parent)], check=True)


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_what_is_converted_without_pint_is_what_pint_has(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = root(parse_unit(name))
    monkeypatch.delitem(PLAIN, name)
    _name_root.cache_clear()

    assert root(parse_unit(name)) == told
