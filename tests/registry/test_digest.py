"""What binds a registration changes its digest; nothing else does."""

from __future__ import annotations

import json
import math
import re
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_prereg.registry.canonical import canonical_json, number
from pytest_prereg.registry.digest import claim_digest, registered_content, registration_digest
from pytest_prereg.registry.load import load_study

if TYPE_CHECKING:
    from random import Random

STUDY = """
[study]
id = "s"

[constants.limit]
value = 30
unit = "s"
source = "a paper"

[experiments.e]
repeats = 7
timeout = "5 min"
params = { size = 1024, depth = 2.0 }
[experiments.e.metrics]
t_gen = "s"
t_train = { unit = "s", resolution = 0.001 }
tokens = "token"
[experiments.e.arms]
a = { rate = 0.0 }
b = { rate = 0.01, timeout = "90 s" }
c = { rate = 0.1 }

[predictions.p]
claim = "Training is free."
experiment = "e"
contrast = "b / a"
quantity = "t_train / t_gen"
predicts = "[0.95, 1.05]"
falsifier = "otherwise"
"""


def digest(text: str, prediction: str = "p") -> str:
    study = load_study(Path("predictions.toml"), text=text)
    return registration_digest(study, study.predictions[prediction])


def changed(old: str, new: str, text: str = STUDY) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


REFERENCE = digest(STUDY)


def test_the_digest_of_a_registration_is_frozen():
    """Locks in the field hold it: if this fails, every registration of every user is void."""
    assert REFERENCE == "sha256:356ca6aad9e85d3db72110f3d92500ce429a3e3007b96a2719bb112d25a55b9b"


def test_what_is_bound_is_said_in_plain_json():
    study = load_study(Path("predictions.toml"), text=STUDY)
    assert json.loads(canonical_json(registered_content(study, study.predictions["p"]))) == {
        "prediction": {
            "experiment": "e",
            "arms": ["b", "a"],
            "contrast": ["/", "b", "a"],
            "quantity": ["/", "t_train", "t_gen"],
            "statistic": "geometric-mean",
            "predicts": {"spans": [[0.95, True, 1.05, True]]},
            "falsifier": {"spans": [[None, False, 0.95, False], [1.05, False, None, False]]},
        },
        "experiment": {
            "repeats": 7,
            "timeout": 300,
            "params": {"depth": 2, "size": 1024},
            "arms": {"a": {"rate": 0}, "b": {"rate": 0.01, "timeout": 90}},
            "metrics": {"t_gen": {"unit": "s"}, "t_train": {"unit": "s", "resolution": 0.001}},
        },
    }


SAME = {
    "comments and spaces": changed("[predictions.p]", "\n\n# why\n[predictions.p] # here\n"),
    "order of keys": changed(
        'claim = "Training is free."\nexperiment = "e"', 'experiment = "e"\nclaim = "Training is free."'
    ),
    "another way to write a table": changed(
        "params = { size = 1024, depth = 2.0 }", "params.depth = 2.0\nparams.size = 1024"
    ),
    "another way to write a number": changed("size = 1024, depth = 2.0", "size = 1_024.0, depth = 2"),
    "another way to write a duration": changed('"5 min"', "300"),
    "another way to write an arm's duration": changed('"90 s"', '"1.5 min"'),
    "another way to write a region": changed('"[0.95, 1.05]"', '"within 5% of 1"'),
    "the falsifier written out": changed('"otherwise"', '"outside [0.95, 1.05]"'),
    "another way to write a quantity": changed('"t_train / t_gen"', '"(t_train)/t_gen"'),
    "another way to write a contrast": changed('"b / a"', '"b  /  a"'),
    "the default statistic written out": changed(
        "[predictions.p]", "[predictions.p]\nstatistic = 'geometric-mean'"
    ),
    "the default of another key written out": changed("repeats = 7", "repeats = 7\norder = 'interleaved'"),
    "the default of a nested key written out": changed(
        "resolution = 0.001", "resolution = 0.001, exact = false"
    ),
    "the pairing that imports have anyway": changed("repeats = 7", "repeats = 7\npairing = 'none'"),
    "an empty table": changed("repeats = 7", "repeats = 7\nenv = {}"),
    "the claim's words": changed("Training is free.", "Training costs nothing."),
    "notes and tags": changed("[predictions.p]", "[predictions.p]\nnotes = 'x'\ntags = ['x']"),
    "what an experiment costs": changed(
        "repeats = 7", "repeats = 7\nnotes = 'x'\ntags = ['x']\npreload = ['math']"
    ),
    "the study's id and title": changed('id = "s"', 'id = "t"\ntitle = "T"\nnotes = "N"'),
    "an arm that is not used": changed("c = { rate = 0.1 }", "c = { rate = 0.2 }"),
    "one arm more": changed("c = { rate = 0.1 }", "c = { rate = 0.1 }\nd = {}"),
    "a metric that is not used": changed('tokens = "token"', 'tokens = "1"'),
    "a constant that is not used": changed("value = 30", "value = 31"),
    "another prediction": STUDY + "\n[predictions.q]" + STUDY.partition("[predictions.p]")[2],
    "prices": STUDY + "\n[study.prices]\ngpu = 1.0\n",
}

DIFFERENT = {
    "predicted region": changed("[0.95, 1.05]", "[0.94, 1.05]"),
    "an open end": changed('"otherwise"', '"outside [0.9, 1.1]"'),
    "quantity": changed("t_train / t_gen", "t_gen / t_train"),
    "contrast": changed("b / a", "a / b"),
    "arm": changed("b / a", "c / a"),
    "statistic": changed("[predictions.p]", "[predictions.p]\nstatistic = 'mean'").replace("b / a", "b - a"),
    "unit": changed("[predictions.p]", "[predictions.p]\nunit = '%'"),
    "unit in the region": changed('"[0.95, 1.05]"', '"[95, 105] %"'),
    "expected": changed("[predictions.p]", "[predictions.p]\nexpected = 1"),
    "credence": changed("[predictions.p]", "[predictions.p]\ncredence = 0.5"),
    "data-seen": changed("[predictions.p]", "[predictions.p]\ndata-seen = 'pilot'"),
    "source of the threshold": changed("[predictions.p]", "[predictions.p]\nsource = 'a paper'"),
    "one-sided": changed("[predictions.p]", "[predictions.p]\none-sided = true"),
    "n": changed("repeats = 7", "repeats = 8"),
    "timeout": changed("5 min", "6 min"),
    "timeout of an arm": changed("90 s", "91 s"),
    "a parameter": changed("size = 1024", "size = 1025"),
    "a parameter's type": changed("size = 1024", "size = '1024'"),
    "a truth value is no number": changed("rate = 0.0 ", "rate = false "),
    "a parameter of an arm": changed("rate = 0.0 ", "rate = 0.001 "),
    "pairing": changed("repeats = 7", "repeats = 7\npairing = 'block'"),
    "unit of a metric that is used": changed('t_gen = "s"', 't_gen = "ms"'),
    "exactness of a metric": changed("resolution = 0.001", "resolution = 0.001, exact = true"),
    "resolution of a metric": changed("resolution = 0.001", "resolution = 0.01"),
    "cap of a metric": changed("resolution = 0.001", "resolution = 0.001, cap = 30"),
    "confidence": changed('id = "s"', 'id = "s"\nconfidence = 0.99'),
    "a constant that is used": changed("t_train / t_gen", "t_train / constants.limit"),
}


@pytest.mark.parametrize("what", SAME)
def test_no_change(what: str):
    assert digest(SAME[what]) == REFERENCE


@pytest.mark.parametrize("what", DIFFERENT)
def test_change(what: str):
    assert digest(DIFFERENT[what]) != REFERENCE


def test_all_changes_differ_from_each_other():
    digests = {what: digest(text) for what, text in DIFFERENT.items()}
    assert len({*digests.values()}) == len(digests)


def test_the_id_of_a_prediction_is_not_bound():
    assert digest(changed("predictions.p]", "predictions.q]"), "q") == REFERENCE


def test_a_constants_value_and_unit_are_bound_and_its_source_is_not():
    text = changed("t_train / t_gen", "t_train / constants.limit")
    assert digest(changed("a paper", "a better paper", text)) == digest(text)
    assert digest(changed("value = 30", "value = 31", text)) != digest(text)


def test_the_family_of_a_study_is_bound():
    study = load_study(Path("predictions.toml"), text=STUDY)
    holm = msgspec.structs.replace(study, table=msgspec.structs.replace(study.table, family="holm"))
    assert registration_digest(holm, study.predictions["p"]) != REFERENCE


@given(st.randoms())
def test_the_order_of_tables_and_keys_is_no_change(random: Random):
    tables = [table.splitlines() for table in re.split(r"\n+(?=\[)", STUDY.strip())]
    random.shuffle(tables)
    shuffled = [line for header, *keys in tables for line in (header, *random.sample(keys, len(keys)))]
    assert digest("\n".join(shuffled)) == REFERENCE


@given(
    st.floats(0.001, 1000, allow_nan=False).map(lambda value: float(f"{value:.6g}")),
    st.sampled_from(["{}", "{:.12f}", "{:e}", "+{}"]),
)
def test_however_a_threshold_is_written_it_is_one_threshold(value: float, form: str):
    plain = changed('"[0.95, 1.05]"', f'"<= {value!r}"')
    spelt = changed('"[0.95, 1.05]"', f'"<={form.format(value)}"')
    assert (digest(plain) == digest(spelt)) == (float(form.format(value)) == value)


def test_how_a_claim_is_wrapped_is_no_change_and_a_word_is():
    assert claim_digest("Training\n  is free.") == claim_digest("Training is free.")
    assert claim_digest("Training is free.") != claim_digest("Training is not free.")


class TestCanonicalJson:
    """RFC 8785; the vectors are those of its appendices."""

    # Appendix B: IEEE 754 bits and what ECMAScript writes.
    @pytest.mark.parametrize(
        ("bits", "text"),
        [
            ("0000000000000000", "0"),
            ("8000000000000000", "0"),
            ("0000000000000001", "5e-324"),
            ("8000000000000001", "-5e-324"),
            ("7fefffffffffffff", "1.7976931348623157e+308"),
            ("ffefffffffffffff", "-1.7976931348623157e+308"),
            ("4340000000000000", "9007199254740992"),
            ("c340000000000000", "-9007199254740992"),
            ("4430000000000000", "295147905179352830000"),
            ("44b52d02c7e14af5", "9.999999999999997e+22"),
            ("44b52d02c7e14af6", "1e+23"),
            ("44b52d02c7e14af7", "1.0000000000000001e+23"),
            ("444b1ae4d6e2ef4e", "999999999999999700000"),
            ("444b1ae4d6e2ef4f", "999999999999999900000"),
            ("444b1ae4d6e2ef50", "1e+21"),
            ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
            ("3eb0c6f7a0b5ed8d", "0.000001"),
            ("41b3de4355555553", "333333333.3333332"),
            ("41b3de4355555554", "333333333.33333325"),
            ("41b3de4355555555", "333333333.3333333"),
            ("41b3de4355555556", "333333333.3333334"),
            ("41b3de4355555557", "333333333.33333343"),
            ("becbf647612f3696", "-0.0000033333333333333333"),
            ("43143ff3c1cb0959", "1424953923781206.2"),
        ],
    )
    def test_numbers(self, bits: str, text: str):
        (value,) = struct.unpack(">d", bytes.fromhex(bits))
        assert number(value) == text

    def test_the_sample_of_section_3_2(self):
        value = {
            "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"\u002f",
            "literals": [None, True, False],
        }
        assert canonical_json(value) == (
            rb'{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
            rb'"string":"' + '€$\\u000f\\nA\'B\\"\\\\\\\\\\"/'.encode() + rb'"}'
        )

    def test_members_are_sorted_by_utf_16(self):
        keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
        ordered = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
        assert list(json.loads(canonical_json(dict.fromkeys(keys, 0)))) == ordered

    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_numbers_read_back_the_same(self, value: float):
        assert float(number(value)) == value

    @given(st.integers(-(2**53), 2**53))
    def test_a_whole_number_is_written_as_the_double_that_it_equals(self, value: int):
        assert number(value) == number(float(value))
        assert int(float(number(value))) == value

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        )
    )
    def test_it_is_json_of_the_same_value(self, value: object):
        assert json.loads(canonical_json(value)) == value

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 2**53 + 1, "\ud800", {"\udfff": 1}])
    def test_what_has_no_one_form_is_refused(self, value: object):
        with pytest.raises(ValueError):  # noqa: PT011
            canonical_json(value)

    @pytest.mark.parametrize("value", [{1, 2}, b"x", {"x": object()}])
    def test_what_json_can_not_hold_is_refused(self, value: object):
        with pytest.raises(TypeError):
            canonical_json(value)
