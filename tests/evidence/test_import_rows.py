"""Rows of CSV and JSON: what they mean, and every way in which they can be wrong."""

from __future__ import annotations

import json

import pytest
from evidence_samples import experiment
from hypothesis import given
from hypothesis import strategies as st

from pytest_prereg.errors import EvidenceError
from pytest_prereg.evidence.importers.rows import import_rows

ARMS = experiment({"new": 3, "base": 3})
ONE = experiment()
PLAIN = """\
arm,repeat,metric,value,unit
new,1,t,1.5,s
base,1,t,2.5,s
new,2,t,1.25e0,s
"""


@pytest.fixture
def rows_of(tmp_path):
    """Imports text under a name that says what it is."""

    def rows_of(text, gate=ARMS, arm=None, name="runs.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return import_rows(path, gate, arm)

    return rows_of


@pytest.fixture
def complaints(rows_of, tmp_path, monkeypatch):
    """What an import is refused with: ``line: code: message`` of each problem, without the file's name."""
    monkeypatch.chdir(tmp_path)

    def complaints(text, gate=ARMS, **more):
        with pytest.raises(EvidenceError) as caught:
            rows_of(text, gate, **more)
        name = more.get("name", "runs.csv")
        return [str(problem).removeprefix(f"{name}:").strip() for problem in caught.value.problems]

    return complaints


def told(repeats):
    return [(one.arm, one.index, one.block, one.values) for one in repeats]


class TestReading:
    def test_rows_become_repeats_in_the_order_of_the_file(self, rows_of):
        rows = rows_of(PLAIN)

        assert told(rows.repeats) == [
            ("new", 1, 1, {"t": 1.5}),
            ("base", 1, 1, {"t": 2.5}),
            ("new", 2, 2, {"t": 1.25}),
        ]
        assert (rows.rows, rows.format, rows.units_assumed) == (3, "csv", ())

    @pytest.mark.parametrize(
        "text",
        [
            "\ufeff" + PLAIN,
            PLAIN.replace("\n", "\r\n"),
            PLAIN.replace("\n", "\n\n"),
            "\n" + PLAIN + ",,,,\n  \n",
            PLAIN.replace(",", " , "),
            PLAIN.replace("base", '"base"'),
            PLAIN.rstrip("\n"),
        ],
        ids=[
            "byte-order mark",
            "CRLF",
            "blank lines",
            "empty rows",
            "spaces",
            "quotes",
            "no newline at the end",
        ],
    )
    def test_how_a_spreadsheet_saved_it_makes_no_difference(self, rows_of, text):
        assert told(rows_of(text).repeats) == told(rows_of(PLAIN).repeats)

    @given(st.permutations(range(5)))
    def test_columns_come_in_any_order(self, tmp_path_factory, order):
        path = tmp_path_factory.mktemp("rows") / "runs.csv"
        lines = [line.split(",") for line in PLAIN.splitlines()]
        path.write_text("\n".join(",".join(line[place] for place in order) for line in lines))

        assert [one.values["t"] for one in import_rows(path, ARMS).repeats] == [1.5, 2.5, 1.25]

    @pytest.mark.parametrize("name", ["runs.json", "runs.JSONL"])
    @pytest.mark.parametrize("join", [json.dumps, lambda rows: "\n".join(map(json.dumps, rows))])
    def test_json_says_the_same(self, rows_of, name, join):
        lines = [line.split(",") for line in PLAIN.splitlines()]
        objects = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
        for row in objects:
            row |= {"value": float(row["value"]), "repeat": int(row["repeat"]), "machine": None}

        rows = rows_of(join(objects), name=name)

        assert told(rows.repeats) == told(rows_of(PLAIN).repeats)
        assert rows.format == "json"

    def test_an_experiment_without_arms_needs_no_arm_column(self, rows_of):
        rows = rows_of("repeat,metric,value\n1,t,1\n2,t,2\n", ONE)

        assert told(rows.repeats) == [("", 1, 1, {"t": 1.0}), ("", 2, 2, {"t": 2.0})]
        assert rows.units_assumed == ("t",)

    def test_the_typed_arm_is_that_of_rows_that_name_none(self, rows_of):
        assert told(rows_of("repeat,metric,value\n1,t,1\n", arm="base").repeats) == [
            ("base", 1, 1, {"t": 1.0})
        ]

    def test_labels_may_be_anything_and_are_numbered_as_they_come(self, rows_of):
        rows = rows_of("repeat,metric,value\nmonday,t,1\n7,t,2\nfriday,t,3\n", ONE)

        assert [(one.label, one.index, one.block) for one in rows.repeats] == [
            ("monday", 1, None),
            ("7", 2, 7),
            ("friday", 3, None),
        ]

    def test_rows_equal_in_arm_repeat_and_metric_are_samples_of_one_repeat(self, rows_of):
        (one,) = rows_of("repeat,metric,value\n1,t,3\n1,t,1\n1,t,2\n", ONE).repeats

        assert one.values == {"t": [3.0, 1.0, 2.0]}

    def test_undeclared_metrics_are_kept_as_diagnostics(self, rows_of):
        (one,) = rows_of("repeat,metric,value,unit\n1,t,3,s\n1,gpu_temp,71,degC\n", ONE).repeats

        assert one.values == {"t": 3.0}
        assert one.diagnostics == {"gpu_temp": 71.0}

    def test_machine_and_block_are_taken_where_they_are_known(self, rows_of):
        text = "repeat,metric,value,block,machine\n1,t,3,12,A | B | 550\n2,t,3,,\n"

        assert [(one.block, one.machine) for one in rows_of(text, ONE).repeats] == [
            (12, "A | B | 550"),
            (2, None),
        ]


class TestGroups:
    def test_rows_of_one_group_are_one_repeat(self, rows_of):
        text = "arm,repeat,metric,value,unit,group\n"
        text += "".join(
            f"new,{index},t,{value},s,build\n" for index, value in enumerate([3704, 3702, 3703], 1)
        )
        text += "".join(
            f"base,{index},t,{value},s,build\n" for index, value in enumerate([3674, 3672, 3672], 1)
        )

        rows = rows_of(text)

        assert [(one.arm, one.index, one.values["t"]) for one in rows.repeats] == [
            ("new", 1, 3703.0),
            ("base", 1, pytest.approx(11018 / 3)),
        ]
        assert [one.samples for one in rows.repeats] == [{"t": 3}] * 2

    def test_each_repeat_of_a_group_has_one_vote_however_many_samples_it_has(self, rows_of):
        text = "repeat,metric,value,group\n1,t,10,a\n2,t,0,a\n2,t,2,a\n2,t,4,a\n"

        (one,) = rows_of(text, ONE).repeats

        assert one.values == {"t": 6.0}
        assert one.samples == {"t": 4}

    def test_repeats_may_be_numbered_anew_in_each_group(self, rows_of):
        text = "repeat,metric,value,group\n1,t,1,a\n2,t,3,a\n1,t,5,b\n2,t,7,b\n"

        assert [(one.label, one.values["t"]) for one in rows_of(text, ONE).repeats] == [
            ("a", 2.0),
            ("b", 6.0),
        ]

    def test_rows_without_a_group_stay_repeats_of_their_own(self, rows_of):
        text = "repeat,metric,value,group\n1,t,1,a\n2,t,3,a\na,t,5,\n"

        assert [(one.label, one.values["t"]) for one in rows_of(text, ONE).repeats] == [
            ("a", 2.0),
            ("a", 5.0),
        ]


class TestRefusals:
    def test_all_that_is_wrong_is_told_at_once_in_order(self, complaints):
        text = (
            "arm,repeat,metric,value,unit,machne\n"
            'new,1,t,"1,234",s,\n'
            "nwe,2,t,1,s,\n"
            "new,3,t,1,ms,\n"
            "new,4,t,nan,s,x\n"
            "new,5,t,1\n"
            "new,6,tt,1,s,\n"
        )

        assert complaints(text) == [
            '2: PR112: value "1,234" is not a finite number; write digits and one point, no separators, no unit',
            '3: PR113: experiment "gate-a" has no arm "nwe"; did you mean "new"?',
            '4: PR114: unit "ms", but "t" is declared in "s"; nothing is converted: write the values in that unit',
            '5: PR111: unknown column "machne"; did you mean "machine"?',
            '5: PR112: value "nan" is not a finite number; write digits and one point, no separators, no unit',
            "6: PR111: 4 cells where the header has 6: 'new,5,t,1'",
            '7: PR115: repeat "6" of arm "new" has no "t"; is "tt" meant?',
        ]

    @pytest.mark.parametrize(
        "value",
        [
            "nan",
            "inf",
            "-inf",
            "1e999",
            "1_000",
            "1 000",
            "1.234,5",
            "0x10",
            "12 s",
            "\u0661",
            "1.5.2",
            "--1",
            "e5",
        ],
    )
    def test_only_plain_finite_numbers_are_numbers(self, complaints, value):
        (problem, *_) = complaints(f'repeat,metric,value\n1,t,"{value}"\n', ONE)

        assert problem.startswith("2: PR112: value ")

    @pytest.mark.parametrize(
        ("unit", "value"),
        [
            ("s", "1719837264.5"),
            ("s", "-1.7e9"),
            ("ms", "1719837264500"),
            ("ns", "1.7e18"),
            ("hours", "477732"),
            ("s", "1e9"),
        ],
    )
    def test_a_point_in_time_is_no_duration(self, complaints, unit, value):
        gate = experiment(metrics={"t": unit})

        (problem, *_) = complaints(f"repeat,metric,value\n1,t,{value}\n2,t,0.5\n", gate)

        assert problem == (
            f'2: PR112: value "{value}" of "t" in {unit} is a point in time, not a duration; subtract the start'
        )

    @pytest.mark.parametrize(("unit", "value"), [("token", "1.7e9"), ("ns", "1.7e9"), ("s", "999999999")])
    def test_a_large_number_that_is_no_point_in_time_is_taken(self, rows_of, unit, value):
        gate = experiment(metrics={"t": unit})

        assert rows_of(f"repeat,metric,value\n1,t,{value}\n", gate).repeats[0].values == {"t": float(value)}

    def test_a_point_in_time_in_json_is_none_either(self, complaints):
        row = '[\n{"repeat": 1, "metric": "t", "value": 1719837264.5}]'

        (problem, *_) = complaints(row, ONE, name="runs.json")

        assert problem.startswith('2: PR112: value "1719837264.5" of "t" in s is a point in time')

    def test_what_is_not_judged_may_be_a_point_in_time(self, rows_of):
        rows = rows_of("repeat,metric,value\n1,t,0.5\n1,began,1719837264.5\n", ONE)

        assert rows.repeats[0].diagnostics == {"began": 1719837264.5}

    @pytest.mark.parametrize(
        ("text", "number"), [("1.", 1.0), (".5", 0.5), ("+2e-3", 0.002), ("-0", 0.0), ("1E3", 1000.0)]
    )
    def test_numbers_as_programs_write_them_are_numbers(self, rows_of, text, number):
        assert rows_of(f"repeat,metric,value\n1,t,{text}\n", ONE).repeats[0].values == {"t": number}

    @pytest.mark.parametrize("value", ["NaN", "Infinity", '"1,5"', "true", "[1]", "1" + "0" * 400])
    def test_only_finite_numbers_are_numbers_in_json(self, complaints, value):
        (problem, *_) = complaints(
            f'[\n{{"repeat": 1, "metric": "t", "value": {value}}}]', ONE, name="runs.json"
        )

        assert problem.startswith("2: PR112: value ")

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "PR110: the file has no rows"),
            ("repeat,metric,value\n", "PR110: the file has no rows"),
            (
                "repeat;metric;value\n1;t;2\n",
                "1: PR110: the columns are not separated by commas: 'repeat;metric;value'",
            ),
            ('repeat,metric,value\n1,t,"2\n', "2: PR110: the file is not CSV: unexpected end of data"),
            ("repeat,value,value\n1,t,2\n", '1: PR111: two columns are called "value"'),
            ("repeat,metric,val\n1,t,2\n", '2: PR111: unknown column "val"; did you mean "value"?'),
            (PLAIN.encode("utf-16"), "1: PR110: the file is not UTF-8 text\n    Save it as UTF-8."),
            (
                PLAIN.encode() + b"new,3,t,\xff,s\n",
                "5: PR110: the file is not UTF-8 text\n    Save it as UTF-8.",
            ),
        ],
    )
    def test_what_is_no_csv_of_rows_is_told_by_its_first_line(self, complaints, text, problem):
        assert problem in complaints(text, ONE)

    def test_a_missing_column_is_told_once(self, complaints):
        assert complaints("repeat,value\n1,2\n2,3\n", ONE) == [
            'PR111: no row has "metric"; the columns are "arm,repeat,metric,value,unit"'
        ]

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("[1, 2]", "1: PR110: a row must be an object, this is 1"),
            ('[\n{"a": 1},\n{"a" 2}]', "3: PR110: the file is not JSON: Expecting ':' delimiter"),
            (
                '[{"a": 1}\n{"a": 2}]',
                "2: PR110: the file is not JSON: a comma or the end of the list is missing",
            ),
            ('[{"a": 1}\n', "2: PR110: the file is not JSON: a comma or the end of the list is missing"),
            ('[{"a": 1},', "1: PR110: the file is not JSON: the end of the list is missing"),
            ('[{"a": 1}]\n[]', "2: PR110: the file is not JSON: text follows the list"),
            ('[{"a": 1,\n "a": 2}]', "1: PR110: the file is not JSON: the key 'a' is there twice"),
            ("[]", "PR110: the file has no rows"),
            ("", "PR110: the file has no rows"),
            ("[" * 100_000, "1: PR110: the file is not JSON: it is nested too deep"),
        ],
    )
    def test_what_is_no_json_of_rows_is_told_with_its_line(self, complaints, text, problem):
        assert problem in complaints(text, ONE, name="runs.json")

    def test_a_file_that_is_not_there(self, tmp_path):
        with pytest.raises(EvidenceError, match="PR110: the file can't be read: No such file or directory"):
            import_rows(tmp_path / "gone.csv", ONE)

    def test_a_row_that_could_be_of_any_arm_is_refused(self, complaints):
        assert complaints("repeat,metric,value\n1,t,1\n") == [
            '2: PR113: the row names no arm (there are "new" and "base"); add a column "arm", or give --arm'
        ]

    def test_an_arm_that_contradicts_the_typed_one_is_refused(self, complaints):
        assert complaints("arm,repeat,metric,value\nnew,1,t,1\nbase,1,t,1\n", arm="new") == [
            '3: PR113: the row is of arm "base", but --arm new was given'
        ]

    def test_a_typed_arm_must_be_one(self, complaints):
        assert complaints(PLAIN, arm="bsae") == [
            'PR113: experiment "gate-a" has no arm "bsae"; did you mean "base"?'
        ]

    def test_an_arm_is_refused_where_there_are_none(self, complaints):
        assert complaints("arm,repeat,metric,value\nnew,1,t,1\n", ONE) == [
            '2: PR113: experiment "gate-a" has no arm "new"; it has no arms'
        ]

    def test_each_repeat_must_have_every_declared_metric(self, complaints):
        gate = experiment(metrics={"t": "s", "loss": "1"})

        assert complaints("repeat,metric,value\n1,t,1\n2,t,2\n1,loss,1\n", gate) == [
            '3: PR115: repeat "2" has no "loss"'
        ]

    def test_so_must_each_repeat_of_a_group(self, complaints):
        gate = experiment(metrics={"t": "s", "loss": "1"})

        assert complaints("repeat,metric,value,group\n1,t,1,a\n2,t,2,a\n1,loss,1,a\n", gate) == [
            '3: PR115: repeat "2" has no "loss"'
        ]

    @pytest.mark.parametrize("column", ["machine", "block"])
    def test_a_repeat_has_one_machine_and_one_block(self, complaints, column):
        assert complaints(f"repeat,metric,value,{column}\n1,t,1,5\n1,t,2,6\n", ONE) == [
            f'3: PR117: repeat "1" has two entries for {column}: "5" and "6"'
        ]

    def test_labels_must_be_there(self, complaints):
        assert complaints("repeat,metric,value\n,t,1\n1,,1\n1,t,\n1,t,1\n", ONE) == [
            "2: PR117: the row names no repeat",
            "3: PR117: the row names no metric",
            "4: PR112: the row has no value; write digits and one point, no separators, no unit",
        ]

    def test_a_file_full_of_errors_is_not_told_row_by_row(self, complaints):
        problems = complaints("repeat,metric,value\n" + "1,t,x\n" * 1000, ONE)

        assert len(problems) == 101
        assert problems[-1].endswith("… and 900 more")


class TestPairing:
    PAIRED = experiment({"new": 3, "base": 3}, pairing="block")

    def test_a_missing_block_is_the_number_of_the_repeat(self, rows_of):
        text = "arm,repeat,metric,value\nnew,2,t,1\nnew,1,t,2\nbase,1,t,3\nbase,2,t,4\n"

        assert [(one.arm, one.index, one.block) for one in rows_of(text, self.PAIRED).repeats] == [
            ("new", 1, 2),
            ("new", 2, 1),
            ("base", 1, 1),
            ("base", 2, 2),
        ]

    def test_a_label_that_is_no_number_needs_a_block(self, complaints):
        assert complaints("arm,repeat,metric,value\nnew,mon,t,1\n", self.PAIRED) == [
            '2: PR116: repeat "mon" can\'t be paired: it is no number, and no block is given'
        ]

    def test_an_arm_is_in_a_block_once(self, complaints):
        text = "arm,repeat,metric,value,block\nnew,1,t,1,\nnew,a,t,2,1\n"

        assert complaints(text, self.PAIRED) == ['3: PR116: repeat "a" is in block 1, as "1" of this arm is']

    def test_a_block_is_a_whole_number(self, complaints):
        assert complaints("repeat,metric,value,block\n1,t,1,night\n", ONE) == [
            '2: PR116: block "night" is not a whole number'
        ]
