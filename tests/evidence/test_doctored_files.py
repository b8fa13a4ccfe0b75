"""Files that were copied, changed, cut or mixed so that they count for more than was measured."""

from __future__ import annotations

import copy
import gzip
import json
import os
import random

import pytest
from evidence_samples import experiment
from msgspec.structs import replace
from test_google_benchmark_files import output, row
from test_hyperfine_files import command, results
from test_import_tool_files import SUITE, Import, reading
from test_mlperf_files import event, log
from test_pytest_benchmark_files import ROUNDS
from test_server_files import SERVE

from pytest_prereg.evidence.file_origins import origins_of

DRAWN = random.Random(7)
TIMES = [DRAWN.uniform(1.0, 1.1) for _ in range(20)]


@pytest.fixture
def importing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda gate: Import(tmp_path, gate)


def many(name, unit="s", **arms):
    gate = reading(name, unit)
    return replace(gate, arms=experiment(arms or {"": 100}).arms)


def times(*seconds, name="sleep 1"):
    return results(command(name, seconds))


def notices(session):
    return [notice for origin in origins_of(session.header) for notice in origin.get("notices", ())]


class TestTheSameNumbersChanged:
    @pytest.mark.parametrize(
        "again",
        [
            pytest.param([*TIMES[:7], TIMES[7] + 1e-15, *TIMES[8:]], id="one last digit"),
            pytest.param([float(f"{value:.8g}") for value in TIMES], id="fewer digits"),
            pytest.param([*TIMES[:15], 1.5, 1.6], id="some of them, and others"),
            pytest.param(TIMES[10:], id="half of them"),
        ],
    )
    def test_runs_count_once(self, importing, again):
        taking = importing(many("times"))
        taking.write("a.json", times(*TIMES))
        taking.write("b.json", times(*again))

        assert "PR119" in taking.refused("a.json", "b.json")[0]
        taking.take("a.json")
        assert "PR119: its" in taking.refused("b.json")[0]

    def test_runs_that_share_a_number_are_others(self, importing):
        taking = importing(many("times"))
        taking.write("a.json", times(*TIMES))
        taking.write("b.json", times(*TIMES[:4], *(value + 0.2 for value in TIMES[4:])))

        taking.take("a.json")

        assert len(taking.take("b.json").attempts) == len(TIMES)

    def test_a_file_that_is_one_repeat_counts_once(self, importing):
        """Whichever of its numbers was changed: a digest of all of them would be another."""
        taking = importing(many("mean"))
        fine = {
            "min": 1.2345,
            "max": 1.8765,
            "mean": 1.51234,
            "stddev": 0.12345,
            "total": 15.1234,
            "rounds": 10,
        }
        for name, stats in (
            ("a", fine),
            ("b", fine | {"mean": 1.51235}),
            ("c", {k: v * 1.01 for k, v in fine.items()}),
        ):
            changed = copy.deepcopy(ROUNDS)
            changed["benchmarks"][0]["stats"] = stats
            taking.write(f"{name}.json", changed)

        assert (
            "PR119: its numbers, but for some that were changed, are given twice"
            in taking.refused("a.json", "b.json")[0]
        )
        taking.take("a.json")
        assert "but for some that were changed, were imported already" in taking.refused("b.json")[0]
        assert taking.take("c.json").attempts

    def test_times_of_one_arm_are_none_of_another(self, importing):
        gate = experiment({"a": 3, "b": 3}, metrics={"t": "s"})
        taking = importing(gate)
        rows = [
            "repeat,metric,value,unit",
            *(f"{number},t,{value},s" for number, value in enumerate(TIMES[:3])),
        ]
        of = {
            arm: "\n".join(f"{'arm' if not place else arm},{line}" for place, line in enumerate(rows))
            for arm in "ab"
        }
        taking.write("a.csv", of["a"].encode())
        taking.write("b.csv", of["b"].encode())
        taking.write("ab.csv", (of["a"] + "\n" + of["b"].partition("\n")[2]).encode())

        assert "PR119: the repeats of arm" in taking.refused("ab.csv")[0]
        taking.take("a.csv")
        assert 'PR119: the repeats of arm "b" are those of arm "a"' in taking.refused("b.csv")[0]

    def test_what_is_no_time_may_be_the_same_in_two_arms(self, importing):
        taking = importing(experiment({"a": 3, "b": 3}, metrics={"loss": "1"}))
        rows = (f"{arm},{number},loss,{value},1" for arm in "ab" for number, value in enumerate(TIMES[:3]))
        taking.write("ab.csv", "\n".join(["arm,repeat,metric,value,unit", *rows]).encode())

        assert len(taking.take("ab.csv").attempts) == 6

    def test_a_process_that_is_copied_inside_of_a_file_is_no_repeat(self, importing):
        taking = importing(many("values"))
        run = {"values": TIMES[:3]}
        taking.write("a.json", SUITE | {"benchmarks": [{"runs": [run, {"values": TIMES[3:6]}, run]}]})

        assert (
            "PR117: process 3 at benchmarks[0].runs[2] has the very numbers of process 1 at benchmarks[0].runs[0]"
            in taking.refused("a.json")[0]
        )


class TestRepeatsThatAreMissing:
    def test_runs_of_hyperfine_that_its_own_mean_knows(self, importing):
        taking = importing(many("times"))
        cut = times(*TIMES)
        cut["results"][0]["times"] = TIMES[2:]
        taking.write("a.json", cut)

        assert "runs are missing from it, or it was changed" in taking.refused("a.json")[0]

    @pytest.mark.parametrize("unit", [None, "session"])
    def test_repetitions_of_one_process_in_files_of_their_own(self, importing, unit):
        gate = many("real_time", "ns")
        taking = importing(replace(gate, table=replace(gate.table, **({"unit": unit} if unit else {}))))
        for index, value in enumerate((10.5, 11.5, 12.5)):
            taking.write(f"{index}.json", output(row(real_time=value, repetitions=3, repetition_index=index)))

        told = taking.refused("0.json", "1.json", "2.json")

        assert len(told) == 3
        assert "PR125" in told[0]
        assert "1 of its 3 repetitions are here, and all of them are of one process" in told[0]

    @pytest.mark.parametrize("rest", [gzip.compress(b"{}"), b"rest"])
    def test_what_follows_the_end_of_what_is_compressed(self, importing, rest):
        taking = importing(many("values"))
        taking.write("a.json.gz", gzip.compress(json.dumps(SUITE).encode()) + rest)

        assert (
            "PR110: the file can't be decompressed: something follows its end"
            in taking.refused("a.json.gz")[0]
        )

    def test_a_key_that_is_there_twice(self, importing):
        taking = importing(many("times"))
        text = json.dumps(times(1.0, 2.0, 3.0)).replace('"times":', '"times": [9.0], "times":')
        taking.write("a.json", text.encode())

        assert (
            'a.json:1: PR110: the file is not JSON: the key "times" is there twice'
            in taking.refused("a.json")[0]
        )


class TestOfAnotherBenchmark:
    def test_in_a_later_session_it_is_no_repeat_either(self, importing):
        taking = importing(many("times"))
        taking.write("a.json", times(*TIMES[:5]))
        taking.write("b.json", times(*TIMES[5:9], name="sleep 2"))
        taking.take("a.json")

        told = taking.refused("b.json")[0]

        assert 'PR126: the file\'s benchmark is "sleep 2", and its arm has repeats of "sleep 1"' in told
        assert notices(taking.take("b.json", select="1")) == [
            'it is of another benchmark, "sleep 2", than imports of this arm (sleep 1)'
        ]

    def test_in_another_arm_it_is_what_is_compared(self, importing):
        taking = importing(many("times", a=3, b=3))
        taking.write("a.json", times(*TIMES[:3]))
        taking.write("b.json", times(*TIMES[3:6], name="sleep 2"))

        assert not notices(taking.take("a.json", arm="a"))
        assert not notices(taking.take("b.json", arm="b"))

    def test_selected_by_number_it_is_told(self, importing):
        taking = importing(many("times"))
        taking.write("a.json", times(*TIMES[:5]))
        taking.write("b.json", times(*TIMES[5:9], name="sleep 2"))

        assert notices(taking.take("a.json", "b.json", select="1")) == [
            'it is of another benchmark, "sleep 2", than a.json (sleep 1)'
        ]

    def test_rows_are_imported_apart(self, importing):
        taking = importing(many("times"))
        taking.write("a.json", times(*TIMES[:5]))
        taking.write("b.csv", b"repeat,metric,value,unit\n1,t,1.5,s\n")

        assert "b.csv has plain rows, and a.json is a file of a tool" in taking.refused("a.json", "b.csv")[0]


class TestRunsOfOneServerAndOneSeed:
    def run(self, seed, stop, start=10_000):
        return log(
            event("seed", 0, seed), event("run_start", start), event("run_stop", stop, status="success")
        ).encode()

    def test_a_seed_of_an_earlier_session_of_the_series(self, importing):
        taking = importing(many("time_to_train"))
        taking.write("a.txt", self.run(1, 60_000))
        taking.write("b.txt", self.run(1, 70_000))
        taking.write("c.txt", self.run(2, 70_000))
        taking.take("a.txt")

        assert "b.txt: PR117: seed 1 was imported already" in taking.refused("b.txt")[0]
        assert taking.take("c.txt").attempts

    def test_files_that_are_given_in_another_order_than_they_ran(self, importing):
        taking = importing(many("time_to_train"))
        taking.write("1.txt", self.run(1, 60_000, 10_000))
        taking.write("10.txt", self.run(10, 1060_000, 1000_000))
        taking.write("2.txt", self.run(2, 160_500, 100_000))

        (told,) = notices(taking.take("1.txt", "10.txt", "2.txt"))

        assert told == "it is older than 10.txt; repeats count in the order in which files are given"

    @pytest.mark.parametrize(("date", "is_told"), [("20260101-120003", True), ("20260101-120200", False)])
    def test_a_run_that_followed_before_a_server_could_start(self, importing, date, is_told):
        taking = importing(many("mean_ttft_ms", "ms"))
        taking.write("a.json", SERVE)
        taking.write("b.json", SERVE | {"date": date, "mean_ttft_ms": 21.5})

        told = notices(taking.take("a.json", "b.json"))

        assert ("it began 0.5 s after a.json had ended: no server starts anew in that" in told) is is_told


class TestWhatIsNoFile:
    def test_a_pipe_is_not_waited_for(self, importing):
        taking = importing(many("times"))
        os.mkfifo(taking.folder / "a.json")

        assert "a.json: PR110: this is a pipe or a device" in taking.refused("a.json")[0]

    def test_a_device_without_end_is_not_read(self, importing):
        taking = importing(many("times"))
        (taking.folder / "a.json").symlink_to("/dev/zero")

        assert "a.json: PR110: this is a pipe or a device" in taking.refused("a.json")[0]

    def test_what_is_larger_than_can_be_read(self, importing, monkeypatch):
        monkeypatch.setattr("pytest_prereg.evidence.importers.contents.LARGEST", 100)
        taking = importing(many("times"))
        taking.write("a.json", times(*TIMES))

        assert "a.json: PR110: the file has more than" in taking.refused("a.json")[0]

    def test_a_folder(self, importing):
        taking = importing(many("times"))

        assert "PR110: the file can't be read: Is a directory" in taking.refused(".")[0]


def test_labels_of_rows_are_text_or_whole_numbers(importing):
    """1 and 1.0 would be two repeats."""
    taking = importing(experiment({"": 3}, metrics={"t": "s"}))
    rows = [{"repeat": label, "metric": "t", "value": 1.5} for label in (1, 1.0, True, [1])]
    taking.write("a.json", rows)

    told = taking.refused("a.json")

    assert ['"1.0"' in told[0], '"true"' in told[1].lower(), len(told)] == [True, True, 3]
