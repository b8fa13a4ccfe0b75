"""Files of tools as evidence: of which format they are, which arm, which benchmark, and each number once."""

from __future__ import annotations

import gzip
import json

import pytest
from evidence_samples import experiment, study
from msgspec.structs import replace
from test_google_benchmark_files import output, row
from test_hyperfine_files import command, results
from test_pyperf_files import SUITE
from test_pytest_benchmark_files import ROUNDS, changed

from pytest_prereg.errors import EvidenceError
from pytest_prereg.evidence.file_origins import origins_of
from pytest_prereg.evidence.importing import import_files
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.evidence.series import assemble
from pytest_prereg.evidence.sessions import read_session, read_study_evidence
from pytest_prereg.registry.model import Metric
from pytest_prereg.registry.tables import ExperimentTable

REGISTERED = {"free": "sha256:f4ee"}


def reading(name, unit="s"):
    """An experiment whose metric ``t`` is a reading of that name."""
    return replace(experiment({"": 3}), metrics={"t": Metric(name="t", unit=unit, source=name)})


class Import:
    """A study of one experiment; files are written and taken in by name."""

    def __init__(self, folder, gate):
        self.folder, self.gate, self.study = folder, gate, study(folder, gate)

    def write(self, name, content):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        (self.folder / name).write_bytes(data)

    def take(self, *names, **options):
        paths = [self.folder / name for name in names]
        return read_session(import_files(self.study, self.gate, paths, predictions=REGISTERED, **options))

    def refused(self, *names, **options):
        before = sorted(self.folder.rglob("*.jsonl"))
        with pytest.raises(EvidenceError) as caught:
            self.take(*names, **options)
        assert sorted(self.folder.rglob("*.jsonl")) == before
        return [str(problem) for problem in caught.value.problems]

    @property
    def series(self):
        return assemble(self.gate, read_study_evidence(self.study)[self.gate.id])


@pytest.fixture
def importing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda gate: Import(tmp_path, gate)


TOOLS = [
    ("pytest-benchmark", ROUNDS, "mean", 1),
    ("pyperf", SUITE, "values", 2),
    ("hyperfine", results(command()), "times", 3),
    ("google-benchmark", output(row()), "real_time", 1),
]


@pytest.mark.parametrize(("form", "content", "name", "count"), TOOLS, ids=[one[0] for one in TOOLS])
def test_a_file_is_told_by_its_content_and_each_repeat_counts_once(importing, form, content, name, count):
    taking = importing(reading(name, "ns" if form == "google-benchmark" else "s"))
    taking.write("results.txt", content)

    session = taking.take("results.txt")

    (origin,) = origins_of(session.header)
    assert (origin["format"], origin["repeats"], origin["name"]) == (form, count, "results.txt")
    assert [one.outcome for one in session.attempts] == [Outcome.OK] * count
    assert "units-assumed" not in origin


def test_samples_stay_inside_their_repeat(importing):
    taking = importing(reading("values"))
    taking.write("a.json", SUITE)

    assert [one.values["t"] for one in taking.take("a.json").attempts] == [[1.0, 2.0], [3.0, 4.0]]


def test_a_metric_that_names_no_reading_reads_its_own(importing):
    taking = importing(experiment({"": 3}, metrics={"times": "s"}))
    taking.write("a.json", results(command()))

    assert [one.values["times"] for one in taking.take("a.json").attempts] == [1.0, 2.0, 3.0]


def test_a_unit_that_the_format_leaves_open_is_flagged(importing):
    taking = importing(reading("rounds", "1"))
    taking.write("a.json", ROUNDS)

    assert origins_of(taking.take("a.json").header)[0]["units-assumed"] == ["t"]


def test_several_files_are_one_session_and_each_is_a_repeat(importing):
    taking = importing(reading("mean"))
    for index in (1, 2, 3):
        taking.write(f"{index}.json", changed(mean=index / 7, data=[index / 7] * 3))

    session = taking.take("1.json", "2.json", "3.json")

    assert [one.values["t"] for one in session.attempts] == [1 / 7, 2 / 7, 3 / 7]
    assert [one["name"] for one in session.header.imported["files"]] == ["1.json", "2.json", "3.json"]
    assert len({one["blob"] for one in origins_of(session.header)}) == 3
    assert taking.series[0].complete


def test_all_that_is_wrong_with_any_of_them_is_told_at_once_and_nothing_is_written(importing):
    taking = importing(reading("mean"))
    taking.write("good.json", ROUNDS)
    taking.write("none.json", changed(mean="inf"))

    told = taking.refused("good.json", "none.json", "away.json", "good.json")

    assert [one.split(": ")[:2] for one in told] == [
        ["none.json", "PR112"],
        ["away.json", "PR110"],
        ["good.json", "PR119"],
    ]


def test_a_unit_that_differs_a_reading_that_is_missing_and_an_arm_are_told_together(importing):
    metrics = {
        "t": Metric(name="t", unit="ms", source="times"),
        "u": Metric(name="u", unit="s", source="user"),
        "v": Metric(name="v", unit="s", source="time"),
    }
    taking = importing(replace(experiment({"new": 3, "old": 3}), metrics=metrics))
    taking.write("a.json", results(command()))

    arm, unit, mean, missing = taking.refused("a.json")

    assert 'PR113: the file names no arm (there are "new" and "old"); give --arm' in arm
    assert (
        'PR114: run 1 at results[0].times[0] (and 2 more): "times" is in "s", but "t" is declared in "ms"'
        in unit
    )
    assert 'declare it with unit = "s"' in unit
    assert '"user" is kept as a mean over all runs only' in mean
    assert (
        'PR115: run 1 at results[0].times[0] (and 2 more): no reading "time" for metric "v" (did you mean "times"?)'
        in missing
    )
    assert "There is: times" in missing


class TestIndependence:
    ROWS = output(*(row(real_time=float(value)) for value in (5, 6, 7)))

    def test_repetitions_of_one_process_are_refused(self, importing):
        taking = importing(reading("real_time", "ns"))
        taking.write("a.json", self.ROWS)

        (told,) = taking.refused("a.json")

        assert 'PR125: "BM_x": its 3 repetitions are of one process' in told
        assert 'unit = "session" in [experiments.gate-a]' in told

    def test_declared_independent_they_are_taken_and_flagged(self, importing):
        taking = importing(replace(reading("real_time", "ns"), table=ExperimentTable(unit="session")))
        taking.write("a.json", self.ROWS)

        session = taking.take("a.json")

        assert [one.values["t"] for one in session.attempts] == [5.0, 6.0, 7.0]
        assert origins_of(session.header)[0]["declared-independent"] == {
            "unit": "session",
            "although": "its 3 repetitions are of one process",
        }

    def test_what_is_no_repeat_at_all_nothing_declares(self, importing):
        taking = importing(replace(reading("times"), table=ExperimentTable(unit="session")))
        taking.write("a.json", results(command() | {"times": []}))

        assert "PR125" in taking.refused("a.json")[0]


class TestSelecting:
    BOTH = results(command("a", [1.0, 2.0, 3.0]), command("b", [4.0, 5.0, 6.0]))

    def test_none_is_taken_by_chance(self, importing):
        taking = importing(reading("times"))
        taking.write("a.json", self.BOTH)

        (told,) = taking.refused("a.json")

        assert "PR126: the file holds 2 benchmarks, and none is selected" in told
        assert told.splitlines()[-2:] == ["      1  a", "      2  b"]

    @pytest.mark.parametrize("select", ["b", "2"])
    def test_by_name_or_by_number(self, importing, select):
        taking = importing(reading("times"))
        taking.write("a.json", self.BOTH)

        assert [one.values["t"] for one in taking.take("a.json", select=select).attempts] == [4.0, 5.0, 6.0]

    def test_by_a_short_name_that_only_one_has(self, importing):
        taking = importing(reading("mean"))
        taking.write("a.json", ROUNDS)

        assert taking.take("a.json", select="test_a").attempts

    def test_by_a_short_name_that_two_have_they_are_listed(self, importing):
        taking = importing(reading("mean"))
        one = ROUNDS["benchmarks"][0]
        taking.write("a.json", ROUNDS | {"benchmarks": [one, one | {"fullname": "o.py::test_a"}]})

        (told,) = taking.refused("a.json", select="test_a")

        assert '2 benchmarks are called "test_a"' in told
        assert "2  o.py::test_a" in told

    def test_an_unknown_one_is_told_with_the_nearest(self, importing):
        taking = importing(reading("mean"))
        taking.write("a.json", ROUNDS)

        assert 'did you mean "test_a"?' in taking.refused("a.json", select="test_aa")[0]

    def test_the_arms_of_one_file_are_taken_one_by_one(self, importing):
        gate = reading("times")
        taking = importing(replace(gate, arms=experiment({"a": 3, "b": 3}).arms))
        taking.write("a.json", self.BOTH)

        taking.take("a.json", select="a", arm="a")
        assert "PR119" in taking.refused("a.json", select="a", arm="b")[0]
        assert "imported for the same arm" in taking.refused("a.json", select="b", arm="a")[0]
        taking.take("a.json", select="b", arm="b")

        (series,) = taking.series
        assert series.complete

    def test_files_of_different_benchmarks_are_no_repeats_of_each_other(self, importing):
        taking = importing(reading("values"))
        taking.write("a.json", SUITE)
        run = {"metadata": {}, "values": [7.0, 8.0, 9.0]}
        taking.write("b.json", SUITE | {"metadata": {"name": "nbody"}, "benchmarks": [{"runs": [run]}]})

        (told,) = taking.refused("a.json", "b.json")

        assert 'PR126: the file\'s benchmark is "nbody", and that of a.json is "telco"' in told
        assert len(taking.take("a.json", "b.json", select="1").attempts) == 3

    def test_rows_have_nothing_to_select(self, importing):
        taking = importing(experiment({"": 3}))
        taking.write("a.csv", b"repeat,metric,value,unit\n1,t,1,s\n")

        assert "PR126: rows are of no benchmark" in taking.refused("a.csv", select="a")[0]


class TestNumbersThatComeAgain:
    @pytest.mark.parametrize(
        "again",
        [
            pytest.param(lambda content: json.dumps(content, indent=3).encode(), id="written otherwise"),
            pytest.param(lambda content: gzip.compress(json.dumps(content).encode()), id="compressed"),
            pytest.param(lambda content: content | {"metadata": {"name": "other"}}, id="renamed"),
        ],
    )
    def test_in_another_file_they_count_once(self, importing, again):
        taking = importing(reading("values"))
        taking.write("a.json", SUITE)
        taking.write("b.json", again(SUITE))

        assert "PR119: its numbers are given twice" in taking.refused("a.json", "b.json", select="1")[0]
        taking.take("a.json")
        assert "PR119: its numbers were imported already" in taking.refused("b.json")[0]

    def test_as_rows_they_count_once(self, importing):
        taking = importing(reading("values"))
        runs = [{"values": [number, number + 0.5]} for number in (1.0, 2.0, 3.0)]
        taking.write("a.json", SUITE | {"benchmarks": [{"runs": runs}]})
        samples = (f"{number},t,{value},s" for number in (1, 2, 3) for value in (number, number + 0.5))
        taking.write("b.csv", "\n".join(["repeat,metric,value,unit", *samples]).encode())

        taking.take("a.json")

        assert "PR119: its repeats were imported already" in taking.refused("b.csv")[0]

    def test_coarse_readings_may_come_again(self, importing):
        taking = importing(reading("times"))
        taking.write("a.json", results(command("x", [1.0])))
        taking.write("b.json", results(command("x", [1.0]), command("y", [1.0])))

        assert len(taking.take("a.json", "b.json", select="x").attempts) == 2


class TestRunsThatFailed:
    CONTENT = results(command(exit_codes=[0, 3, 0]))

    def test_one_is_kept_as_a_task_that_failed(self, importing):
        taking = importing(reading("times"))
        taking.write("a.json", self.CONTENT)

        (series,) = [taking.take("a.json") and taking.series[0]]

        assert [one.outcome for one in series.repeats] == [Outcome.OK, Outcome.TASK_FAILED, Outcome.OK]

    def test_where_a_metric_reads_the_status_it_is_data(self, importing):
        taking = importing(reading("exit_codes", "1"))
        taking.write("a.json", self.CONTENT)

        session = taking.take("a.json")

        assert [one.values["t"] for one in session.attempts] == [0.0, 3.0, 0.0]
        assert {one.outcome for one in session.attempts} == {Outcome.OK}


class TestFormats:
    @pytest.mark.parametrize(
        ("name", "text"),
        [(name, "repeat,metric,value,unit\n1,t,2,s\n") for name in ("a.csv", "a.txt", "a")]
        + [(name, '[{"repeat":1,"metric":"t","value":2}]') for name in ("a.json", "a.txt", "a")],
    )
    def test_rows_are_told_by_their_columns(self, importing, name, text):
        taking = importing(experiment({"": 3}))
        taking.write(name, text.encode())

        assert [one.values["t"] for one in taking.take(name).attempts] == [2.0]

    @pytest.mark.parametrize("content", [b"# A readme\n", b'{"a": 1}', b"\x00\xff", b"[1, 2]"])
    def test_a_file_of_no_known_format_is_told_so_with_all_that_are(self, importing, content):
        taking = importing(experiment({"": 3}))
        taking.write("a.log", content)

        (told,) = taking.refused("a.log")

        assert "PR127: the file is of no format that is known" in told
        assert "csv, json, pytest-benchmark, pyperf, hyperfine, google-benchmark" in told

    def test_columns_that_are_misspelt_are_told_as_columns(self, importing):
        taking = importing(experiment({"": 3}))
        taking.write("a.json", [{"repeat": 1, "metrik": "t", "value": 1}])

        assert "PR111" in taking.refused("a.json")[0]

    def test_the_format_that_is_given_is_believed(self, importing):
        taking = importing(reading("times"))
        taking.write("a.json", results(command()))

        assert (
            "PR110: the file is none of pytest-benchmark"
            in taking.refused("a.json", form="pytest-benchmark")[0]
        )
        assert 'did you mean "hyperfine"?' in taking.refused("a.json", form="hyper-fine")[0]


def test_blocks_of_two_files_must_differ(importing):
    taking = importing(experiment({"": 3}, pairing="block"))
    taking.write("a.csv", b"repeat,metric,value,unit\n1,t,1,s\n2,t,2,s\n")
    taking.write("b.csv", b"repeat,metric,value,unit\n2,t,3,s\n3,t,4,s\n")

    assert taking.refused("a.csv", "b.csv") == ["b.csv:2: PR116: a.csv has block 2 of this arm, too"]


def test_repeats_of_a_tool_are_paired_in_the_order_of_the_files(importing):
    gate = replace(reading("mean"), pairing="block")
    taking = importing(gate)
    for index in (1, 2, 3):
        taking.write(f"{index}.json", changed(mean=index / 7, data=[index / 7] * 3))

    taking.take("1.json", "2.json")
    taking.take("3.json")

    assert [(one.index, one.values["t"]) for one in taking.series[0].repeats] == [
        (1, 1 / 7),
        (2, 2 / 7),
        (3, 3 / 7),
    ]
