"""Which attempt settles which slot, across kills, sessions and series."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from evidence_samples import attempt, experiment, finished, header, session_bytes, started, warmup
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pytest_prereg.evidence.model import RERUN, Launched, Outcome, Version
from pytest_prereg.evidence.series import (
    assemble,
    attempts,
    attempts_by_repeat,
    deciding_series,
    evidence_digest,
    handed_on,
    is_current,
    next_number,
    open_series,
    open_slots,
    running,
    unfindable,
)
from pytest_prereg.evidence.sessions import parse_session

GATE = experiment()


def session(name, *lines, footed=True, **changes):
    data = session_bytes(*lines, footed=footed, head=header(**changes))
    return parse_session(data, Path(f"evidence/gate-a/{name}.jsonl"))


def versions(tree, commit="c"):
    return {"head": Version(ref="worktree", commit=40 * commit, tree=40 * tree)}


def test_a_series_is_complete_when_every_planned_slot_is_settled():
    (series,) = assemble(GATE, [session("a", *attempt(1), *attempt(2))])
    assert not series.complete
    assert open_slots(series, GATE) == [("", 3)]

    (series,) = assemble(GATE, [session("a", *attempt(1), *attempt(2), *attempt(3))])
    assert series.complete
    assert open_slots(series, GATE) == []
    assert [repeat.values for repeat in series.repeats] == [{"t": 1.0}, {"t": 2.0}, {"t": 3.0}]


def test_a_killed_session_is_resumed_and_its_last_repeat_counts_as_lost():
    killed = session("a", *attempt(1), *attempt(2, Outcome.LOST), footed=False)
    resumed = session("b", *attempt(2, attempt=2), *attempt(3))

    (series,) = assemble(GATE, [resumed, killed])

    assert series.complete
    assert series.faults == ("gate-a/1/2",)
    assert [(repeat.index, repeat.position) for repeat in series.repeats] == [(1, 0), (2, 1), (3, 2)]
    assert series.sessions == ("a.jsonl", "b.jsonl")
    assert attempts([killed, resumed], "gate-a/1/2") == 2
    assert attempts_by_repeat([killed, resumed])["gate-a/1/7"] == 0


def test_positions_are_the_order_of_starting_not_of_finishing():
    """Side by side the quickest finishes first: in that order every series would have a trend."""
    (series,) = assemble(GATE, [session("a", started(1), started(2), finished(2), finished(1))])

    assert [(repeat.index, repeat.position) for repeat in series.repeats] == [(1, 0), (2, 1)]


CALLED = Launched(repeat="gate-a/1/1", attempt=1, call="fc-1")


def test_what_a_later_session_takes_up_was_not_lost_by_the_one_that_launched_it():
    first = session("a", started(1), CALLED)
    second = session("b", replace(started(1), attached=True), CALLED, finished(1))

    (series,) = assemble(GATE, [first, second])

    assert series.faults == ()
    assert [(repeat.index, repeat.outcome) for repeat in series.repeats] == [(1, Outcome.OK)]
    assert [attempt.call for attempt in running([first])] == ["fc-1"]
    assert not running([first, second])


def test_what_was_taken_up_and_never_ended_is_lost_once():
    first = session("a", started(1), CALLED)
    second = session("b", replace(started(1), attached=True), CALLED)

    (series,) = assemble(GATE, [first, second])

    assert series.faults == ("gate-a/1/1",)
    assert [attempt.attached for attempt in running([first, second])] == [True]


MARKED = replace(started(1), mark="s/1")


@pytest.mark.parametrize("first", [[MARKED], [MARKED, CALLED]])
@pytest.mark.parametrize("call", ["fc-1", "fc-2"])
def test_what_has_the_same_mark_is_the_same_attempt_whichever_call_of_it_was_written(first, call):
    killed = session("a", *first, footed=False)
    again = session("b", replace(MARKED, attached=True), replace(CALLED, call=call), footed=False)
    last = session("c", replace(MARKED, attached=True), CALLED, finished(1))

    (series,) = assemble(GATE, [killed, again, last])

    assert series.faults == ()
    assert [(repeat.index, repeat.outcome) for repeat in series.repeats] == [(1, Outcome.OK)]
    assert [attempt.mark for attempt in running([killed, again])] == ["s/1"]
    assert not running([killed, again, last])
    assert {name: len(known) for name, known in handed_on([killed, again, last]).items()} == {
        "a.jsonl": 1,
        "b.jsonl": 1,
    }


@pytest.mark.parametrize("forged", [{"mark": "s/2"}, {"mark": None}, {"attempt": 2}])
def test_what_has_another_mark_or_number_is_another_attempt(forged):
    killed = session("a", MARKED, footed=False)
    again = session(
        "b", replace(MARKED, attached=True, **forged), finished(1, attempt=forged.get("attempt", 1))
    )

    (series,) = assemble(GATE, [killed, again])

    assert series.faults == ("gate-a/1/1",)


def test_only_what_the_service_does_not_remember_can_not_be_found():
    killed = session("a", MARKED, started(2), footed=False, executor="modal")

    def left(*remembered):
        found = unfindable([killed], 1, set(), lambda mark: mark in remembered)
        return [one.index for attempts in found.values() for one in attempts]

    assert left("s/1") == [2]
    assert left("s/7") == [1, 2]


def test_a_launch_that_nobody_has_started_is_no_launch():
    (problem,) = session("a", CALLED).problems
    assert problem.message == '"gate-a/1/1" was launched without having been started'


def test_the_first_finish_settles_a_slot_and_a_second_one_never_counts():
    first = session("a", *attempt(1, values={"t": 1.0}))
    second = session("b", *attempt(1, values={"t": 9.0}))

    (series,) = assemble(GATE, [second, first])

    assert [repeat.values for repeat in series.repeats] == [{"t": 1.0}]


@pytest.mark.parametrize("outcome", [Outcome.TIMEOUT, Outcome.TASK_FAILED, Outcome.INVALID, Outcome.EXCLUDED])
def test_an_outcome_that_is_not_ok_settles_too_and_is_not_refilled(outcome):
    (series,) = assemble(GATE, [session("a", *attempt(1, outcome, cause="why"))])

    assert [(repeat.outcome, repeat.cause) for repeat in series.repeats] == [(outcome, "why")]
    assert open_slots(series, GATE) == [("", 2), ("", 3)]


@pytest.mark.parametrize(("planned", "failures"), [(3, 2), (8, 2), (12, 3), (20, 5)])
def test_infrastructure_settles_a_slot_only_after_too_many_failures(planned, failures):
    gate = experiment({"": planned})
    faulty = [
        line
        for number in range(1, failures + 1)
        for line in attempt(1, Outcome.INFRASTRUCTURE, attempt=number)
    ]

    (series,) = assemble(gate, [session("a", *faulty, planned={"": planned})])
    assert series.repeats == ()
    assert len(series.faults) == failures

    one_more = attempt(1, Outcome.INFRASTRUCTURE, attempt=failures + 1, cause="node")
    (series,) = assemble(gate, [session("a", *faulty, *one_more, planned={"": planned})])
    assert [(repeat.outcome, repeat.cause) for repeat in series.repeats] == [(Outcome.INFRASTRUCTURE, "node")]


def test_lost_attempts_never_settle_a_slot():
    files = [session(f"{number:02}", started(1, attempt=number), footed=False) for number in range(1, 12)]

    (series,) = assemble(GATE, files)

    assert series.repeats == ()
    assert series.faults == ("gate-a/1/1",) * 11
    assert ("", 1) in open_slots(series, GATE)


def test_a_fault_at_a_slot_that_is_settled_counts_for_nothing():
    """A file of such attempts could else be put beside a decided series, to be rid of it."""
    decided = session("a", *attempt(1), *attempt(2), *attempt(3))
    faults = [line for number in range(2, 30) for line in attempt(1, Outcome.INFRASTRUCTURE, attempt=number)]
    later = session("b", *faults, *(started(2, attempt=number) for number in range(2, 30)), footed=False)

    (series,) = assemble(GATE, [decided, later])

    assert series == replace(assemble(GATE, [decided])[0], sessions=("a.jsonl", "b.jsonl"))
    assert series.faults == ()


def test_a_fault_counts_that_came_before_its_slot_was_settled():
    lost = session("a", *attempt(1, Outcome.LOST), footed=False)
    faulty = session("b", *attempt(1, Outcome.INFRASTRUCTURE, attempt=2), *attempt(1, attempt=3))
    later = session("c", *attempt(1, Outcome.LOST, attempt=4), footed=False)

    (series,) = assemble(GATE, [lost, faulty, later])

    assert series.faults == ("gate-a/1/1", "gate-a/1/1")
    assert [repeat.outcome for repeat in series.repeats] == [Outcome.OK]


def test_another_result_at_a_settled_slot_is_disputed_whatever_faults_there_are():
    first = session("a", *attempt(1), *attempt(9, Outcome.LOST))
    other = session("b", *attempt(1, Outcome.INFRASTRUCTURE), *attempt(1, attempt=2, values={"t": 9.0}))

    (series,) = assemble(GATE, [first, other])

    assert (series.disputed, series.faults, series.surplus) == (("b.jsonl",), (), 1)


def test_pilots_and_warm_up_belong_to_no_series():
    pilot = session("a", *attempt(1), origin="pilot", series=0)
    warm = session("b", *warmup(1), *warmup(2, Outcome.OK), *warmup(3, Outcome.INFRASTRUCTURE), *warmup(9))

    (series,) = assemble(GATE, [pilot, warm])

    assert series.number == 1
    assert series.repeats == ()
    assert series.faults == ()


@pytest.mark.parametrize("lines", [warmup(1), warmup(1)[:1], warmup(1, Outcome.TIMEOUT), warmup(9)])
def test_warm_up_changes_nothing_of_a_series(lines):
    """Whether it ended well, was lost, failed, or is called as a repeat beyond the planned ones would be."""
    planned = [*attempt(1), *attempt(2), *attempt(3)]
    cold, warm = session("a", *planned), session("a", *lines, *planned)

    assert assemble(GATE, [warm]) == assemble(GATE, [cold])
    assert attempts_by_repeat([warm]) == attempts_by_repeat([cold])
    assert attempts([warm], lines[0].repeat) == 0


def test_of_more_repeats_than_planned_the_first_by_index_are_taken():
    (series,) = assemble(
        GATE, [session("a", *attempt(5), *attempt(4), *attempt(3), *attempt(2), *attempt(1))]
    )

    assert series.complete
    assert [repeat.index for repeat in series.repeats] == [3, 2, 1]


def test_without_a_registered_number_one_repeat_of_each_arm_completes():
    gate = experiment({"new": None, "base": None})
    new = session("a", *attempt(1, arm="new"), *attempt(2, arm="new"), planned=None, origin="imported")
    base = session("b", *attempt(1, arm="base"), planned=None, origin="imported")

    assert not assemble(gate, [new])[0].complete
    (series,) = assemble(gate, [new, base])
    assert series.complete
    assert len(series.repeats) == 3
    assert open_slots(series, gate) == []


def test_slots_of_a_new_series_are_all_open():
    gate = experiment({"p00": 2, "p01": 1})

    assert open_slots(None, gate) == [("p00", 1), ("p00", 2), ("p01", 1)]


def test_a_series_that_holds_an_import_is_imported_and_keeps_the_source_of_what_was_measured():
    imported = session("a", *attempt(1), origin="imported", source=None, seed="")
    measured = session("b", *attempt(2))

    (series,) = assemble(GATE, [imported, measured])

    assert (series.origin, series.source, series.seed) == ("imported", "sha256:50ce", "sha256:5eed")


def test_only_what_every_session_binds_is_bound():
    one = session("a", *attempt(1), predictions={"free": "d1", "late": "d2", "moved": "d3"})
    two = session("b", *attempt(2), predictions={"free": "d1", "moved": "d4"})

    (series,) = assemble(GATE, [one, two])

    assert series.predictions == {"free": "d1"}


def test_a_measured_repeat_is_on_the_machine_of_its_session_unless_it_says_otherwise():
    lines = attempt(1) + attempt(2, machine="other")
    measured = session("a", *lines)
    imported = session("a", *lines, origin="imported")

    assert [repeat.machine for repeat in assemble(GATE, [measured])[0].repeats] == [
        "Fast CPU | none | none",
        "other",
    ]
    assert [repeat.machine for repeat in assemble(GATE, [imported])[0].repeats] == [None, "other"]


def test_what_a_repeat_ran_outside_of_and_what_it_went_on_from_is_passed_on():
    lines = attempt(1, outside="load_average <= 4 (was 9)", resumed=True) + attempt(2)

    (series,) = assemble(GATE, [session("a", *lines)])

    assert [(repeat.outside, repeat.resumed) for repeat in series.repeats] == [
        ("load_average <= 4 (was 9)", True),
        (None, False),
    ]


@pytest.mark.parametrize(
    ("cause", "by_author"),
    [
        ("load_average > 4 (7.2)", False),
        ("load_average > 4", False),
        ("gpu_throttled (true)", False),
        ("load_average > 40 (50)", True),
        ("load_average", True),
        ("too slow", True),
        ("because load_average > 4 (7.2)", True),
        ("", True),
        (None, True),
    ],
)
def test_only_a_registered_rule_excludes_without_its_author(cause, by_author):
    ruled = ruled_by("load_average > 4", "gpu_throttled")

    (series,) = assemble(ruled, [session("a", *attempt(1, Outcome.EXCLUDED, cause=cause))])

    assert [repeat.by_author for repeat in series.repeats] == [by_author]
    assert assemble(GATE, [session("a", *attempt(1, Outcome.EXCLUDED, cause=cause))])[0].repeats[0].by_author


def test_what_was_not_excluded_was_excluded_by_nobody():
    ended = [Outcome.OK, Outcome.INVALID, Outcome.TIMEOUT]
    lines = [line for index, outcome in enumerate(ended, 1) for line in attempt(index, outcome)]

    (series,) = assemble(ruled_by("gpu_throttled"), [session("a", *lines)])

    assert not any(repeat.by_author for repeat in series.repeats)


def ruled_by(*rules):
    return replace(GATE, table=replace(GATE.table, exclude=list(rules)))


@pytest.mark.parametrize(
    ("second", "mixed"),
    [
        ({}, False),
        ({"versions": {"python": "3.12.0"}}, True),
        ({"versions": {"python": "3.11.9", "torch": "2.4"}}, True),
        ({"versions": {"python": "3.12.0"}, "origin": "imported"}, False),
        ({"executor": "modal", "environment": {"image_id": "im-2"}}, True),
    ],
)
def test_sessions_with_other_versions_are_told(second, mixed):
    files = [session("a", *attempt(1)), session("b", *attempt(2), **second)]

    assert assemble(GATE, files)[0].mixed_versions is mixed


class TestWhichSeries:
    def complete(self, name, number):
        lines = [line for index in (1, 2, 3) for line in attempt(index, series=number)]
        return session(name, *lines, series=number)

    def incomplete(self, name, number, **changes):
        return session(name, *attempt(1, series=number), series=number, **changes)

    def test_the_first_complete_one_decides(self):
        every = assemble(GATE, [self.complete("c", 3), self.incomplete("a", 1), self.complete("b", 2)])

        assert [series.number for series in every] == [1, 2, 3]
        assert deciding_series(every).number == 2
        assert next_number(every) == 4

    def test_none_decides_while_none_is_complete(self):
        assert deciding_series(assemble(GATE, [self.incomplete("a", 1)])) is None
        assert next_number([]) == 1

    def test_one_that_fits_is_continued(self):
        every = assemble(GATE, [self.incomplete("a", 1, source="old"), self.incomplete("b", 2)])

        assert open_series(every, "sha256:50ce", {"free": "sha256:f4ee"}).number == 2
        assert open_series(every, "new", {"free": "sha256:f4ee"}) is None

    @pytest.mark.parametrize(
        ("source", "predictions", "fits"),
        [
            ("sha256:50ce", {"free": "sha256:f4ee"}, True),
            ("sha256:other", {"free": "sha256:f4ee"}, False),
            ("sha256:50ce", {"free": "sha256:changed"}, False),
            ("sha256:50ce", {"free": "sha256:f4ee", "later": "sha256:1"}, True),
            ("sha256:50ce", {}, True),
            (None, {"free": "sha256:f4ee"}, True),
        ],
    )
    def test_a_changed_source_or_registration_abandons_it(self, source, predictions, fits):
        (series,) = assemble(GATE, [self.incomplete("a", 1)])

        assert is_current(series, source, predictions) is fits

    @pytest.mark.parametrize(
        ("versions", "fits"),
        [
            (("sha256:a", "sha256:d"), True),
            (("sha256:b", "sha256:d"), False),
            (("sha256:a", "sha256:e"), False),
            ((None, "sha256:d"), False),
            ((None, None), False),
            (None, True),
        ],
    )
    def test_another_subject_or_other_data_abandon_it(self, versions, fits):
        (series,) = assemble(GATE, [self.incomplete("a", 1, subject="sha256:a", data="sha256:d")])

        assert is_current(series, "sha256:50ce", {}, versions) is fits

    def test_one_that_names_no_subject_goes_on_where_none_is_declared(self):
        (series,) = assemble(GATE, [self.incomplete("a", 1)])

        assert is_current(series, "sha256:50ce", {}, (None, None))
        assert not is_current(series, "sha256:50ce", {}, ("sha256:a", None))


class TestSubject:
    """Whose repeats a series has is what its first header says, and all others must agree."""

    def series(self, *headers):
        files = [session(f"{index}", *attempt(index), **header) for index, header in enumerate(headers, 1)]
        return assemble(GATE, files)[0]

    def test_it_is_that_of_the_first_session(self):
        series = self.series({"subject": "a", "data": "d"}, {"subject": "b", "data": "d"})
        assert (series.subject, series.data) == ("a", "d")

    @pytest.mark.parametrize(
        ("headers", "mixed"),
        [
            ([{}, {}], False),
            ([{"subject": "a"}, {"subject": "a"}], False),
            ([{"subject": "a"}, {"subject": "b"}], True),
            ([{"subject": "a"}, {}], True),
            ([{"data": "d"}, {"data": "e"}], True),
            ([{"subject": "a"}, {"origin": "imported"}], False),
            ([{"subject": "a"}, {"origin": "imported"}, {"subject": "b"}], True),
            ([{"trees": versions("1")}, {"trees": versions("1")}], False),
            ([{"trees": versions("1", commit="c")}, {"trees": versions("1", commit="d")}], False),
            ([{"trees": versions("1")}, {"trees": versions("2")}], True),
            ([{"trees": versions("1")}, {}], True),
        ],
    )
    def test_sessions_that_disagree_are_told(self, headers, mixed):
        assert self.series(*headers).mixed_subject is mixed


class TestEvidenceDigest:
    def series(self, *lines):
        return assemble(GATE, [session("a", *lines)])[0]

    def digest(self, *lines, ids=("gate-a/1/1", "gate-a/1/2")):
        return evidence_digest([self.series(*lines)], ids)

    def test_it_covers_the_repeats_used_and_no_others(self):
        plain = self.digest(*attempt(1), *attempt(2), *attempt(3))

        assert plain.startswith("sha256:")
        assert self.digest(*attempt(1), *attempt(2), *attempt(3, values={"t": 9.0})) == plain
        assert self.digest(*attempt(1), *attempt(2, values={"t": 9.0})) != plain
        assert self.digest(*attempt(1), *attempt(2, Outcome.TIMEOUT, values={"t": 2.0})) != plain

    def test_the_order_in_which_the_ids_are_named_does_not_matter(self):
        lines = [*attempt(1), *attempt(2)]

        assert self.digest(*lines, ids=["gate-a/1/2", "gate-a/1/1"]) == self.digest(*lines)

    def test_of_several_series_it_covers_each(self):
        first = self.series(*attempt(1))
        other = replace(first, repeats=tuple(replace(one, id="other/1/1") for one in first.repeats))
        ids = ["gate-a/1/1", "other/1/1"]

        both = evidence_digest([first, other], ids)

        assert evidence_digest([first], ids) == self.digest(*attempt(1))
        assert both not in (evidence_digest([first], ids), evidence_digest([other], ids))


@st.composite
def histories(draw):
    """Sessions as a resuming runner would write them: each attempt is at a slot that is still open."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    endings = draw(st.lists(st.sampled_from(list(Outcome)[:6]), min_size=1, max_size=25))
    open_now, numbers, failures, files, lines = [1, 2, 3], Counter(), Counter(), [], []
    for ending in endings:
        if not open_now:
            break
        index = rng.choice(open_now)
        numbers[index] += 1
        failures[index] += ending is Outcome.INFRASTRUCTURE
        lines += attempt(index, ending, attempt=numbers[index])
        if ending not in RERUN or failures[index] > 2:
            open_now.remove(index)
        if ending is Outcome.LOST:
            files.append(lines)
            lines = []
    files.append(lines)
    return [session(f"{number:03}", *lines, footed=False) for number, lines in enumerate(files)]


@given(histories())
def test_every_attempt_settles_its_slot_once_or_is_a_fault(files):
    (series,) = assemble(GATE, files)

    made = sum(len(file.attempts) for file in files)
    settled = [repeat for repeat in series.repeats if repeat.outcome is not Outcome.INFRASTRUCTURE]
    assert len(settled) + len(series.faults) == made
    assert len({repeat.id for repeat in series.repeats}) == len(series.repeats)
    assert len(series.repeats) + len(open_slots(series, GATE)) == 3
    assert [repeat.position for repeat in series.repeats] == list(range(len(series.repeats)))
