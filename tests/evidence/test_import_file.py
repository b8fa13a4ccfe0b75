"""Where imported repeats go: the open series, one arm at a time if need be, else the next one."""

from __future__ import annotations

import pytest
from evidence_samples import attempt, experiment, study, write_session_file
from msgspec.structs import replace

from pytest_prereg.errors import EvidenceError
from pytest_prereg.evidence.holds import ExperimentHold
from pytest_prereg.evidence.importing import import_files
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.evidence.naming import blob_id
from pytest_prereg.evidence.series import assemble, deciding_series
from pytest_prereg.evidence.sessions import check_links, read_session, read_study_evidence

REGISTERED = {"free": "sha256:f4ee"}


class Bench:
    """A study of one experiment that takes imports."""

    def __init__(self, folder, gate):
        self.folder, self.gate, self.study = folder, gate, study(folder, gate)

    def csv(self, name, arm_values, **columns):
        extra = "".join(f",{column}" for column in columns)
        cells = "".join(f",{cell}" for cell in columns.values())
        rows = [f"arm,repeat,metric,value,unit{extra}"]
        for arm, values in arm_values.items():
            rows += [f"{arm},{index},t,{value},s{cells}" for index, value in values]
        path = self.folder / name
        path.write_text("\n".join(rows) + "\n")
        return path

    def take(self, name, arm_values, predictions=REGISTERED, **columns):
        numbered = {arm: list(enumerate(values, 1)) for arm, values in arm_values.items()}
        return self.take_numbered(name, numbered, predictions, **columns)

    def take_numbered(self, name, arm_values, predictions=REGISTERED, **columns):
        path = self.csv(name, arm_values, **columns)
        return import_files(
            self.study, self.gate, [path], predictions=predictions, head="1f3c9a2", dirty=False
        )

    @property
    def files(self):
        return read_study_evidence(self.study)[self.gate.id]

    @property
    def series(self):
        return assemble(self.gate, self.files)


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Bench(tmp_path, experiment({"new": 3, "base": 2}))


def test_an_import_is_a_finished_session_with_its_origin_in_the_header(bench):
    path = bench.take("runs.csv", {"new": [1, 2, 3], "base": [4, 5]}, machine="M1")

    file = read_session(path)

    assert file.problems == ()
    assert (file.header.origin, file.header.series, file.header.source, file.header.seed) == (
        "imported",
        1,
        None,
        "",
    )
    assert (file.header.head, file.header.dirty, file.header.predictions) == ("1f3c9a2", False, REGISTERED)
    assert file.header.planned == {"new": 3, "base": 2}
    assert file.header.imported["name"] == "runs.csv"
    assert (file.header.imported["format"], file.header.imported["rows"]) == ("csv", 5)
    (series,) = bench.series
    assert (series.origin, series.complete) == ("imported", True)
    assert [(one.id, one.values["t"], one.machine) for one in series.repeats] == [
        ("gate-a/1/new/1", 1.0, "M1"),
        ("gate-a/1/new/2", 2.0, "M1"),
        ("gate-a/1/new/3", 3.0, "M1"),
        ("gate-a/1/base/1", 4.0, "M1"),
        ("gate-a/1/base/2", 5.0, "M1"),
    ]


def test_a_unit_that_was_taken_for_granted_is_flagged(bench):
    (bench.folder / "runs.csv").write_text("repeat,metric,value\n1,t,1\n")

    path = import_files(
        bench.study, bench.gate, [bench.folder / "runs.csv"], predictions=REGISTERED, arm="new"
    )

    imported = read_session(path).header.imported
    assert (imported["units-assumed"], imported["arm"]) == (["t"], "new")


def test_arms_may_come_one_at_a_time(bench):
    bench.take("new.csv", {"new": [1, 2, 3]})
    assert not bench.series[0].complete

    bench.take("base.csv", {"base": [4, 5]})

    (series,) = bench.series
    assert series.complete
    assert len(series.sessions) == 2


def test_an_arm_may_come_in_pieces(bench):
    bench.take("a.csv", {"new": [1], "base": [2]})
    bench.take("b.csv", {"new": [3, 4], "base": [5]})

    (series,) = bench.series

    assert [one.values["t"] for one in series.repeats if one.arm == "new"] == [1.0, 3.0, 4.0]
    assert series.complete


def test_too_few_repeats_leave_the_series_open(bench):
    bench.take("runs.csv", {"new": [1, 2, 3], "base": [4]})

    assert not bench.series[0].complete
    assert deciding_series(bench.series) is None


def test_more_repeats_than_planned_are_kept_and_the_first_decide(bench):
    path = bench.take("runs.csv", {"new": [1, 2, 3, 4, 5], "base": [6, 7]})

    assert len(read_session(path).attempts) == 7
    assert [one.values["t"] for one in bench.series[0].repeats] == [1.0, 2.0, 3.0, 6.0, 7.0]


def test_once_the_series_is_complete_an_import_opens_a_replication(bench):
    bench.take("a.csv", {"new": [1, 2, 3], "base": [4, 5]})
    bench.take("b.csv", {"new": [9, 9, 9], "base": [9, 8]})

    assert [series.number for series in bench.series] == [1, 2]
    assert deciding_series(bench.series).number == 1


def test_an_arm_that_is_full_opens_the_next_series_by_itself(bench):
    bench.take("a.csv", {"new": [1, 2, 3]})
    bench.take("b.csv", {"new": [4, 5, 6]})
    bench.take("c.csv", {"base": [7, 8]})

    assert [(series.number, series.complete) for series in bench.series] == [(1, True), (2, False)]


def test_a_file_of_which_only_some_arms_are_wanted_is_refused(bench):
    bench.take("a.csv", {"new": [1, 2, 3]})

    with pytest.raises(EvidenceError) as caught:
        bench.take("b.csv", {"new": [4, 5, 6], "base": [7, 8]})

    assert str(caught.value) == (
        'b.csv: PR118: series 1 of "gate-a" still wants "base" but has all of "new"; '
        "give what it wants a file of its own"
    )
    assert len(bench.files) == 1


def test_a_changed_registration_opens_a_new_series(bench):
    bench.take("a.csv", {"new": [1]})
    bench.take("b.csv", {"new": [2]}, predictions={"free": "sha256:amended"})

    assert [series.number for series in bench.series] == [1, 2]


def test_the_same_file_is_taken_once(bench):
    first = bench.take("a.csv", {"new": [1]})
    (bench.folder / "copy.csv").write_bytes((bench.folder / "a.csv").read_bytes())

    with pytest.raises(EvidenceError) as caught:
        import_files(bench.study, bench.gate, [bench.folder / "copy.csv"], predictions=REGISTERED)

    assert str(caught.value) == (
        f'copy.csv: PR119: the file was imported already, as "gate-a/{first.name}"; the same numbers can\'t count twice'
    )


def test_a_bad_file_leaves_nothing_behind(bench):
    with pytest.raises(EvidenceError, match="PR112"):
        bench.take("a.csv", {"new": ["x"]})

    assert bench.files == []


def test_an_import_waits_for_no_one_and_says_who_is_measuring(bench):
    with (
        ExperimentHold.take(bench.study.evidence_folder, "gate-a"),
        pytest.raises(EvidenceError, match='another session is measuring or importing "gate-a"'),
    ):
        bench.take("a.csv", {"new": [1]})


def test_each_import_knows_the_evidence_before_it(bench):
    first = bench.take("a.csv", {"new": [1, 2, 3]})
    bench.take("b.csv", {"base": [4, 5]})
    assert check_links(bench.files) == []

    first.unlink()

    assert [problem.code for problem in check_links(bench.files)] == ["PR207"]


def test_without_a_registered_number_the_second_import_is_a_replication(tmp_path):
    bench = Bench(tmp_path, experiment({"": None}))
    bench.take("a.csv", {"": [1, 2, 3, 4]})
    bench.take("b.csv", {"": [5, 6]})

    assert [(series.number, len(series.repeats), series.planned) for series in bench.series] == [
        (1, 4, None),
        (2, 2, None),
    ]


def test_lost_slots_of_a_measured_series_are_filled_with_their_next_attempt(tmp_path):
    bench = Bench(tmp_path, experiment({"": 3}))
    write_session_file(
        bench.study.evidence_folder, "20260801T120000Z-0", *attempt(1), *attempt(3)[:1], footed=False
    )

    path = bench.take_numbered("a.csv", {"": [(8, 80), (9, 90)]})

    assert [(one.index, one.number) for one in read_session(path).attempts] == [(2, 1), (3, 2)]
    (series,) = bench.series
    assert (series.complete, series.origin) == (True, "imported")


def test_repeats_that_can_not_be_told_apart_from_those_there_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bench = Bench(tmp_path, experiment({"new": 3, "base": 3}, pairing="block"))
    bench.take("a.csv", {"new": [1, 2]})

    with pytest.raises(EvidenceError) as caught:
        bench.take("b.csv", {"new": [3]})
    assert str(caught.value) == "b.csv:2: PR116: series 1 has block 1 of this arm already"

    bench.take_numbered("c.csv", {"new": [(3, 30)], "base": [(2, 20), (1, 10), (3, 31)]})
    assert bench.series[0].complete
    assert {(one.arm, one.block): one.values["t"] for one in bench.series[0].repeats}["base", 1] == 10.0


def test_what_was_measured_or_tried_here_is_no_import(tmp_path, monkeypatch):
    """Else who runs pilots until one pleases takes that in as evidence."""
    monkeypatch.chdir(tmp_path)
    bench = Bench(tmp_path, experiment({"": 3}))
    tried = [line for index in (1, 2, 3) for line in attempt(index, Outcome.PILOT, values={"t": index / 7})]
    write_session_file(bench.study.evidence_folder, "20260801T120000Z-0", *tried, origin="pilot", series=0)

    with pytest.raises(EvidenceError, match="PR119: its repeats were measured here already"):
        bench.take("a.csv", {"": [index / 7 for index in (3, 2, 1)]})
    bench.take("b.csv", {"": [index / 7 for index in (4, 5, 6)]})


def test_what_is_counted_exactly_may_come_out_the_same(tmp_path):
    gate = experiment({"": 3})
    counted = replace(gate, metrics={"t": replace(gate.metrics["t"], exact=True)})
    bench = Bench(tmp_path, counted)
    measured = [line for index in (1, 2, 3) for line in attempt(index)]
    write_session_file(bench.study.evidence_folder, "20260801T120000Z-0", *measured)

    bench.take("a.csv", {"": [1, 2, 3]})

    assert [series.number for series in bench.series] == [1, 2]


def test_one_file_is_evidence_of_one_experiment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, second = experiment({"": 3}), replace(experiment({"": 3}), id="gate-b")
    bench = Bench(tmp_path, first)
    bench.study = study(tmp_path, first, second)
    taken = bench.take("a.csv", {"": [1, 2, 3]})

    with pytest.raises(EvidenceError, match=f'imported already, for "gate-a", as "gate-a/{taken.name}"'):
        import_files(bench.study, second, [tmp_path / "a.csv"], predictions=REGISTERED)


def test_the_header_has_what_git_calls_the_file(bench):
    path = bench.take("runs.csv", {"new": [1, 2, 3]})

    imported = read_session(path).header.imported

    assert imported["blob"] == blob_id((bench.folder / "runs.csv").read_bytes())
