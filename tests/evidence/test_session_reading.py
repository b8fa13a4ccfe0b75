"""What a session file says, whatever was done to its bytes."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from evidence_samples import (
    attempt,
    experiment,
    finished,
    header,
    session_bytes,
    started,
    study,
    warmup,
    write_session_file,
)
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pytest_prereg.evidence.files import Spent
from pytest_prereg.evidence.lines import encode
from pytest_prereg.evidence.model import Finished, Outcome, Started
from pytest_prereg.evidence.parsing import parse
from pytest_prereg.evidence.series import assemble
from pytest_prereg.evidence.sessions import parse_session, read_session, read_study_evidence
from pytest_prereg.registry.model import ONLY_ARM

PATH = Path("evidence/gate-a/20260801T120000Z-00000000.jsonl")

outcomes = st.sampled_from(
    [Outcome.OK, Outcome.TIMEOUT, Outcome.TASK_FAILED, Outcome.INFRASTRUCTURE, Outcome.LOST]
)
texts = st.text(max_size=20)


@st.composite
def lines_of_a_session(draw: st.DrawFn) -> list[Started | Finished]:
    lines = []
    for index, outcome in enumerate(draw(st.lists(outcomes, max_size=6)), 1):
        lines += (
            attempt(index, outcome, error=draw(texts)) if outcome is not Outcome.LOST else [started(index)]
        )
    return lines


@given(lines_of_a_session(), st.data())
def test_a_file_torn_at_any_byte_keeps_its_whole_lines_and_says_that_it_is_torn(lines, data):
    whole = session_bytes(*lines, footed=False)
    cut = data.draw(st.integers(0, len(whole)))

    file = parse_session(whole[:cut], PATH)

    kept = whole[:cut].count(b"\n")
    assert file.problems == ()
    assert file.torn == (not whole[:cut].endswith(b"\n") and cut > 0)
    assert (file.header is not None) == (kept > 0)
    kept_lines = lines[: max(kept - 1, 0)]
    done = [line.repeat for line in kept_lines if isinstance(line, Finished)]
    assert [one.repeat for one in file.attempts if one.outcome is not Outcome.LOST] == done
    begun = [line.repeat for line in kept_lines if isinstance(line, Started)]
    assert {one.repeat for one in file.attempts} == set(begun)


@given(lines_of_a_session(), st.data())
def test_any_byte_changed_in_a_finished_file_is_a_problem(lines, data):
    whole = bytearray(session_bytes(*lines))
    footer = whole.rindex(b"\n", 0, -1) + 1
    place = data.draw(st.integers(0, footer - 1))
    whole[place] ^= data.draw(st.integers(1, 255))

    file = parse_session(bytes(whole), PATH)

    assert file.problems
    assert {problem.code for problem in file.problems} <= {"PR207", "PR122"}


@given(lines_of_a_session(), st.data())
def test_a_line_missing_from_a_finished_file_is_a_problem(lines, data):
    raw = session_bytes(*lines).splitlines(keepends=True)
    del raw[data.draw(st.integers(0, len(raw) - 2))]

    assert parse_session(b"".join(raw), PATH).problems


@given(lines_of_a_session())
def test_what_was_written_is_read_back(lines):
    file = parse_session(session_bytes(*lines), PATH)

    assert file.header == header()
    assert file.problems == ()
    assert not file.torn
    assert file.footer.ended == "finished"
    written = {line.repeat: line for line in lines if isinstance(line, Finished)}
    for one in file.attempts:
        if one.outcome is not Outcome.LOST:
            assert one.values == written[one.repeat].values
            assert one.outcome is written[one.repeat].outcome


def test_a_session_without_a_footer_was_killed_and_is_no_problem():
    file = parse_session(session_bytes(*attempt(1), started(2), footed=False), PATH)

    assert file.footer is None
    assert file.problems == ()
    assert [(one.repeat, one.outcome) for one in file.attempts] == [
        ("gate-a/1/1", Outcome.OK),
        ("gate-a/1/2", Outcome.LOST),
    ]


def test_a_repeat_that_was_started_twice_was_lost_once():
    file = parse_session(session_bytes(started(1), *attempt(1, attempt=2)), PATH)

    assert [(one.number, one.outcome) for one in file.attempts] == [(1, Outcome.LOST), (2, Outcome.OK)]


@pytest.mark.parametrize("outcome", [Outcome.WARMUP, Outcome.OK, Outcome.TIMEOUT, Outcome.INFRASTRUCTURE])
def test_what_was_started_as_warm_up_is_warm_up_whatever_its_end_says(outcome):
    file = parse_session(session_bytes(*warmup(1, outcome), warmup(2)[0], *attempt(1)), PATH)

    assert [(one.repeat, one.outcome) for one in file.attempts] == [
        ("gate-a/1/warmup-1", Outcome.WARMUP),
        ("gate-a/1/warmup-2", Outcome.WARMUP),
        ("gate-a/1/1", Outcome.OK),
    ]
    assert file.problems == ()


def test_a_planned_repeat_can_not_become_warm_up_when_it_has_ended():
    """It would be run again, as often as its value is not liked."""
    file = parse_session(session_bytes(*attempt(1, Outcome.WARMUP, values={"t": 9.0})), PATH)

    (problem,) = file.problems

    assert problem.line == 3
    assert problem.message == '"gate-a/1/1" ended as warm-up without having been started as such'


def test_a_planned_repeat_can_not_be_started_as_warm_up():
    file = parse_session(session_bytes(replace(started(1), warmup=True), finished(1)), PATH)

    (problem,) = file.problems

    assert problem.line == 2
    assert problem.message == '"gate-a/1/1" was started as warm-up, which goes by another name'
    data = session_bytes(*attempt(1), *attempt(2), footed=False).replace(
        b'"outcome":"ok"', b'"outcome":"good"', 1
    )

    (problem,) = parse_session(data, PATH).problems

    assert str(problem).startswith(f"{PATH}:3: PR207: this line is not what was written: ")
    assert "good" in problem.message


def test_a_value_changed_by_hand_is_noticed():
    data = session_bytes(*attempt(1)).replace(b'{"t":1.0}', b'{"t":2.0}')

    (problem,) = parse_session(data, PATH).problems

    assert "the lines are not those that were written" in problem.message


def test_lines_after_the_footer_are_a_problem():
    (problem,) = parse_session(session_bytes() + encode(started(1)), PATH).problems

    assert "a finished file never changes" in problem.message
    assert problem.line == 3


def test_text_after_the_footer_is_a_problem():
    (problem,) = parse_session(session_bytes() + b"x", PATH).problems

    assert "a finished file never changes" in problem.message


def test_two_files_joined_are_a_problem():
    data = session_bytes(footed=False)

    (problem,) = parse_session(data + data, PATH).problems

    assert problem.message == "a second header: two files were joined"


def test_a_finish_without_its_start_is_a_problem_and_counts_for_nothing():
    file = parse_session(session_bytes(finished(1)), PATH)

    assert [problem.line for problem in file.problems] == [2]
    assert file.attempts == []


def test_a_file_that_does_not_begin_with_a_header_has_one_problem_and_no_attempts():
    file = parse_session(b"".join(map(encode, attempt(1) + attempt(2))), PATH)

    assert [problem.message for problem in file.problems] == ["the file does not begin with a header"]
    assert file.attempts == []


def test_a_newer_format_is_refused_by_name():
    (problem,) = parse_session(session_bytes(head=header(version=2)), PATH).problems

    assert problem.code == "PR122"
    assert "evidence format 2 is newer" in problem.message


def test_evidence_moved_to_another_experiment_is_a_problem():
    (problem,) = parse_session(session_bytes(), Path("evidence/other/x.jsonl")).problems

    assert 'evidence of "gate-a" was moved to the folder of "other"' in problem.message


def test_a_file_that_can_not_be_read_is_a_problem_of_that_file(tmp_path):
    path = tmp_path / "gate-a" / "gone.jsonl"

    (problem,) = read_session(path).problems

    assert "No such file" in problem.message


def test_all_that_a_line_holds_can_be_read_again(tmp_path):
    lines = attempt(1, diagnostics={"note": "warm"}, seconds={"body": 1.5})
    path = write_session_file(tmp_path, "a", *lines)

    assert read_session(path).lines[1:3] == lines


@pytest.mark.parametrize("size", [1, 7, 1 << 12])
def test_lines_are_the_same_wherever_the_reader_cuts_its_blocks(size, monkeypatch):
    monkeypatch.setattr("pytest_prereg.evidence.lines._CHUNK", size)
    lines = [line for index in range(1, 30) for line in attempt(index)]

    file = parse_session(session_bytes(*lines), PATH)

    assert file.problems == ()
    assert len(file.attempts) == 29


def test_a_file_is_never_read_at_once(monkeypatch):
    monkeypatch.setattr("pytest_prereg.evidence.lines._CHUNK", 1 << 12)
    asked = []

    class Watched(io.BytesIO):
        def read(self, size=-1):
            asked.append(size)
            return super().read(size)

    parse(PATH, Watched(session_bytes(*(line for index in range(1, 50) for line in attempt(index)))))

    assert len(asked) > 3
    assert set(asked) == {1 << 12}


def test_reading_is_work_in_proportion(count_calls):
    def read(size):
        head = header(planned={ONLY_ARM: size})
        lines = (line for index in range(1, size + 1) for line in attempt(index))
        data = session_bytes(*lines, head=head)
        return lambda: assemble(experiment({ONLY_ARM: size}), [parse_session(data, PATH)])

    (series,) = read(400)()
    assert len(series.repeats) == 400
    assert count_calls(read(400)) < 9 * count_calls(read(50))


class TestWhatWasSpent:
    def test_seconds_add_up_by_arm_whatever_became_of_the_attempts(self):
        lines = [
            *attempt(1, arm="a", seconds={"launch": 0.5, "body": 2.0, "total": 3.0}),
            *attempt(2, Outcome.INFRASTRUCTURE, arm="a", seconds={"body": 1.0, "total": 1.5}),
            *attempt(1, Outcome.TIMEOUT, arm="b", seconds={"body": 60.0, "total": 61.0}),
            *attempt(2, Outcome.LOST, arm="b"),
        ]

        spent = parse_session(session_bytes(*lines, footed=False), PATH).spent

        assert spent == {
            "a": Spent(busy=3.0, total=4.5),
            "b": Spent(busy=60.0, total=61.0, unfinished=1),
        }

    def test_warm_up_is_paid_for_as_well(self):
        lines = [*warmup(1, seconds={"body": 2.0, "total": 3.0}), warmup(2)[0]]

        spent = parse_session(session_bytes(*lines), PATH).spent

        assert spent == {ONLY_ARM: Spent(busy=2.0, total=3.0, unfinished=1)}

    def test_a_negative_duration_is_a_problem_and_not_a_refund(self):
        lines = [*attempt(1, seconds={"body": 2.0}), *attempt(2, seconds={"body": -2.0})]

        file = parse_session(session_bytes(*lines), PATH)

        assert [problem.line for problem in file.problems] == [5]
        assert file.spent[ONLY_ARM].busy == 2.0


class TestStudyEvidence:
    def test_files_come_by_experiment_in_order_of_name(self, tmp_path):
        one = study(tmp_path)
        for name in ("b", "a", "c"):
            write_session_file(one.evidence_folder, name)

        assert [file.path.stem for file in read_study_evidence(one)["gate-a"]] == ["a", "b", "c"]

    def test_an_experiment_without_evidence_is_there(self, tmp_path):
        assert read_study_evidence(study(tmp_path, experiment(name="new"))) == {"new": []}

    def test_evidence_of_an_experiment_that_is_gone_is_still_there(self, tmp_path):
        one = study(tmp_path, experiment(name="new"))
        write_session_file(one.evidence_folder, "a")

        assert len(read_study_evidence(one)["gate-a"]) == 1

    def test_files_of_another_study_are_left_alone(self, tmp_path):
        one = study(tmp_path)
        write_session_file(one.evidence_folder, "a", study="another")

        assert read_study_evidence(one) == {"gate-a": []}

    def test_a_file_with_a_damaged_header_is_not_left_out(self, tmp_path):
        one = study(tmp_path)
        path = write_session_file(one.evidence_folder, "a")
        path.write_text("version https://git-lfs.github.com/spec/v1\n")

        (file,) = read_study_evidence(one)["gate-a"]

        assert file.problems

    def test_a_file_can_not_be_hidden_by_giving_it_to_another_study(self, tmp_path):
        one = study(tmp_path)
        path = write_session_file(one.evidence_folder, "a")
        path.write_bytes(path.read_bytes().replace(one.id.encode(), b"another"))

        (file,) = read_study_evidence(one)["gate-a"]

        assert file.problems
