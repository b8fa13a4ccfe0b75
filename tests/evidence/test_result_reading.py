"""What a command left behind, read as one repeat: every value is the file's own, or is missed with a reason."""

from __future__ import annotations

import json

import pytest

from pytest_prereg.errors import EvidenceError
from pytest_prereg.evidence.importers.results import read_result

S = {"t": ("t", "s")}


@pytest.fixture
def result(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def of(content, form, fields=S, **options):
        path = tmp_path / "result"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return read_result(path, form, fields, **options)

    return of


@pytest.fixture
def refusals(result):
    def of(*given, **options):
        with pytest.raises(EvidenceError) as caught:
            result(*given, **options)
        return [str(problem).removeprefix("result") for problem in caught.value.problems]

    return of


class TestJson:
    def test_a_dotted_path_leads_through_keys_and_positions(self, result):
        document = {"results": [{"mean": 1}, {"mean": 2.5, "times": [1, 2]}], "a.b": {"c": 3}}
        fields = {
            "mean": ("results.1.mean", "s"),
            "times": ("results.1.times", "s"),
            "deep": ("a.b.c", "1"),
        }

        assert result(document, "json", fields) == {"mean": 2.5, "times": [1.0, 2.0], "deep": 3.0}

    def test_a_number_as_text_is_a_number(self, result):
        assert result({"t": "1.5e3"}, "json") == {"t": 1500.0}

    def test_lines_are_samples(self, result):
        assert result('{"t": 1}\n{"t": 2}\n', "json") == {"t": [1.0, 2.0]}

    def test_rows_are_read_by_their_metric(self, result):
        rows = [{"metric": "t", "value": 1, "unit": "s"}, {"metric": "u", "value": 7}]

        assert result(rows, "json") == {"t": 1.0}
        assert result("\n".join(map(json.dumps, [*rows, rows[0]])), "json") == {"t": [1.0, 1.0]}
        assert result(rows[0], "json") == {"t": 1.0}

    def test_what_is_not_there_is_named_with_the_nearest_and_all_that_is(self, refusals):
        (refusal,) = refusals({"results": {"mean": 1, "best": 2}}, "json", {"t": ("results.meen", "s")})

        assert refusal.startswith(
            ': PR115: no reading "results.meen" for metric "t" (did you mean "results.mean"?)'
        )
        assert "There is: results.best, results.mean" in refusal

    @pytest.mark.parametrize(
        ("document", "why"),
        [
            ({"t": "inf"}, 'is "inf", no finite number'),
            ('{"t": NaN}', "is NaN, no finite number"),
            ({"t": None}, "is null, no finite number"),
            ({"t": True}, "is true, no finite number"),
            ({"t": 10**400}, "no finite number"),
            ({"t": {"mean": 1}}, "is an object, no finite number"),
            ({"t": []}, "is an empty list"),
            ({"t": [1, "x"]}, 'has "x" as its entry 2, no finite number'),
            ('{"t": 1}\n{"u": 2}\n', "is missing in line 2"),
            ([{"metric": "t", "value": 1, "unit": u} for u in ("s", "ms")], 'several units: "ms" and "s"'),
        ],
    )
    def test_what_is_no_finite_number_is_never_taken(self, refusals, document, why):
        (refusal,) = refusals(document, "json")

        assert refusal.startswith(': PR112: "t" ')
        assert why in refusal

    def test_another_unit_is_not_converted(self, refusals):
        (refusal,) = refusals([{"metric": "t", "value": 1, "unit": "ms"}], "json")

        assert 'PR114: "t" is in "ms", but "t" is declared in "s"' in refusal
        assert 'unit = "ms"' in refusal

    def test_a_point_in_time_is_no_duration(self, refusals):
        (refusal,) = refusals({"t": 1_700_000_000.5}, "json")

        assert "PR112" in refusal
        assert "point in time" in refusal

    def test_all_that_is_wrong_is_told_at_once(self, refusals):
        fields = {"t": ("t", "s"), "u": ("u", "s"), "v": ("v", "s")}

        assert [one[2:7] for one in refusals({"t": "inf", "v": 1}, "json", fields)] == ["PR112", "PR115"]

    @pytest.mark.parametrize("text", ["", "{", "[1] x", '{"t": 1', "\ufeff", "[" * 9999])
    def test_what_is_no_json_is_told(self, refusals, text):
        (refusal,) = refusals(text, "json")

        assert "PR110" in refusal

    def test_what_is_not_there_at_all_is_told(self, tmp_path):
        with pytest.raises(EvidenceError, match="PR110: the file can't be read"):
            read_result(tmp_path / "nothing.json", "json", S)


class TestCsv:
    def test_a_column_is_a_reading_and_its_rows_are_samples(self, result):
        assert result("n,t\n1,0.5\n2,0.25\n", "csv") == {"t": [0.5, 0.25]}

    def test_one_row_is_one_number(self, result):
        assert result("t\n0.5\n", "csv") == {"t": 0.5}

    def test_an_empty_cell_is_no_sample(self, refusals):
        (refusal,) = refusals("n,t\n1,0.5\n2,\n", "csv")

        assert '"t" is empty in line 3' in refusal

    def test_an_unknown_column_is_named_with_those_that_are_there(self, refusals):
        (refusal,) = refusals("n,time\n1,0.5\n", "csv")

        assert "There is: n, time" in refusal


class TestTools:
    def test_repeats_of_a_tool_are_samples_of_the_one_that_ran_it(self, result):
        runs = {"results": [{"command": "a", "times": [1, 2], "user": 0.5, "exit_codes": [0, 0]}]}
        fields = {"t": ("times", "s"), "user": ("user", "s")}

        assert result(runs, "hyperfine", fields) == {"t": [1.0, 2.0], "user": 0.5}

    def test_a_run_that_failed_leaves_no_result(self, refusals):
        runs = {"results": [{"command": "a", "times": [1, 2], "exit_codes": [0, 3]}]}

        assert (
            "run 2 at results[0].times[1] failed: it ended with exit status 3"
            in refusals(runs, "hyperfine", {"t": ("times", "s")})[0]
        )

    def test_several_benchmarks_are_selected_from(self, result, refusals):
        runs = {"results": [{"command": name, "times": [1]} for name in "ab"]}
        fields = {"t": ("times", "s")}

        assert result(runs, "hyperfine", fields, select="b") == {"t": 1.0}
        assert "PR126" in refusals(runs, "hyperfine", fields)[0]

    def test_plain_files_have_nothing_to_select(self, refusals):
        assert "PR126" in refusals({"t": 1}, "json", select="b")[0]

    def test_an_unknown_format_is_told_with_the_nearest(self, refusals):
        assert 'PR127: unknown format "hyprfine"; did you mean "hyperfine"?' in refusals({}, "hyprfine")[0]
