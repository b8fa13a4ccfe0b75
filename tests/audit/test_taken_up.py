"""What a killed session had launched and a later one took up: neither lost nor run again (PR213, explain)."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from written_studies import WrittenStudy

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.audit.findings.evidence import of_evidence
from pytest_prereg.evidence.model import Finished, Footer, Header, Launched, Outcome, Started
from pytest_prereg.evidence.naming import repeat_id
from pytest_prereg.evidence.series import unfindable
from pytest_prereg.evidence.writing import write_session
from pytest_prereg.measure.schedule import seed_base
from pytest_prereg.registry.digest import registration_digest
from pytest_prereg.registry.load import load_study
from pytest_prereg.report.toll import toll_of

TEXT = """\
[study]
id = "small"

[experiments.runs]
repeats = 3
metrics = { t = "s" }

[predictions.quick]
claim = "x"
experiment = "runs"
quantity = "t"
predicts = "<= 2 s"
falsifier = ">= 3 s"
"""


class Sessions:
    """Sessions of one series, written line by line; the last one has an end."""

    def __init__(self, folder) -> None:
        self.written = WrittenStudy(folder, TEXT)
        self.count = 0

    def session(self, *lines, ended: bool) -> None:
        study, self.count = self.written.study, self.count + 1
        digests = {name: registration_digest(study, one) for name, one in study.predictions.items()}
        header = Header(
            version=1,
            study=study.id,
            experiment="runs",
            series=1,
            origin="measured",
            planned={"": 3},
            pairing="none",
            seed=seed_base(digests.values(), 1),
            source=None,
            predictions=digests,
            head=None,
            dirty=None,
            session=f"{self.count:02}",
            created="2026-08-02T12:00:00Z",
            executor="modal",
            environment={"backend": "modal"},
            versions={},
        )
        path = write_session(study.evidence_folder, header, lines)
        place = path.with_name(f"2026-0{self.count}-{path.name[8:]}")
        whole = path.read_bytes().splitlines(keepends=True)
        path.unlink()
        place.write_bytes(b"".join(whole if ended else whole[:-1]))

    def state(self) -> StudyState:
        return StudyState(load_study(self.written.folder / "predictions.toml"))

    def found(self) -> list[str]:
        state = self.state()
        return [one.message for one in of_evidence(state) if one.code == "PR213"]


def launched(index, *, attached=False, call=None, attempt=1):
    repeat = repeat_id("runs", 1, "", index)
    return [
        Started(repeat=repeat, arm="", index=index, attempt=attempt, attached=attached),
        Launched(repeat=repeat, attempt=attempt, call=call or f"fc-{index}"),
    ]


def ended(index, attempt=1):
    return Finished(
        repeat=repeat_id("runs", 1, "", index),
        attempt=attempt,
        outcome=Outcome.OK,
        values={"t": 1 + index / 64},
        seconds={"body": 1.0, "total": 2.0},
    )


@pytest.fixture
def sessions(git_repository):
    return Sessions(git_repository().path)


def test_a_session_that_was_killed_and_lost_nothing_is_nothing_to_tell(sessions):
    sessions.session(*launched(1), ended(1), *launched(2), *launched(3), ended=False)
    sessions.session(*launched(2, attached=True), ended(2), *launched(3, attached=True), ended(3), ended=True)
    assert sessions.found() == []
    toll = toll_of([sessions.state()])
    assert (toll.lost, toll.account.unknown, toll.account.charged) == (0, 0, 6.0)


def test_what_it_had_lost_beside_that_is_told_alone(sessions):
    sessions.session(*launched(1), *launched(2), *launched(3), ended=False)
    sessions.session(
        *launched(1, attached=True), ended(1),
        *launched(2, attached=True), ended(2),
        *launched(3, call="fc-new", attempt=2), ended(3, attempt=2),
        ended=True,
    )  # fmt: skip
    (told,) = sessions.found()
    assert (
        told == 'series "runs/1" is complete, with 1 attempt lost and run again; 1 session of it never ended'
    )
    toll = toll_of([sessions.state()])
    assert (toll.lost, toll.account.unknown) == (1, 1)


def test_what_never_reached_the_service_and_was_sent_off_again_is_nothing_to_tell(sessions):
    begun = msgspec.structs.replace(launched(3)[0], mark="s/3")
    sessions.session(*launched(1), ended(1), *launched(2), ended(2), begun, ended=False)
    again = msgspec.structs.replace(begun, attached=True)
    sessions.session(again, launched(3, call="fc-new")[1], ended(3), ended=True)
    assert sessions.found() == []
    toll = toll_of([sessions.state()])
    assert (toll.lost, toll.account.unknown, toll.account.charged) == (0, 0, 6.0)


@pytest.mark.parametrize("forged", [{"call": "fc-2"}, {"attempt": 3}, {"call": "fc-3"}])
def test_only_the_same_attempt_under_the_same_call_takes_one_up(sessions, forged):
    sessions.session(*launched(1), ended(1), *launched(2), *launched(3), ended=False)
    sessions.session(
        *launched(3, attached=True, **forged), ended(3, attempt=forged.get("attempt", 1)),
        *launched(2, call="fc-new", attempt=2), ended(2, attempt=2),
        ended=True,
    )  # fmt: skip
    (told,) = sessions.found()
    lost = 1 if forged == {"call": "fc-3"} else 2
    noun = "attempt" if lost == 1 else "attempts"
    assert f"is complete, with {lost} {noun} lost and run again" in told
    (series,) = sessions.state().series["runs"]
    assert len(series.faults) == lost


def test_what_was_begun_without_a_call_is_named_until_it_is_settled(sessions):
    never = launched(2)[:1]
    sessions.session(*launched(1), ended(1), *never, ended=False)
    (open_series,) = sessions.state().series["runs"]
    settled = {(one.arm, one.index) for one in open_series.repeats}
    files = sessions.state().files["runs"]
    assert {app: [one.index for one in left] for app, left in unfindable(files, 1, settled).items()} == {
        "": [2]
    }
    assert unfindable(files, 1, {*settled, ("", 2)}) == {}
    assert unfindable(files, 2, set()) == {}
    assert (
        unfindable(
            [replace(file, footer=Footer(lines=1, digest="", ended="interrupted")) for file in files],
            1,
            set(),
        )
        == {}
    )
