"""An attempt is begun once, whatever becomes of who sends it off: found by its mark, or sent off again under it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from msgspec.structs import replace

from pytest_prereg.errors import MeasureError
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.executors.modal import marks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modal_studies import Workshop
    from standin_handle import Service

    from pytest_prereg.measure.executors.base import Job
    from pytest_prereg.measure.executors.modal.executor import ModalExecutor

BODY = """
time.sleep(60 if repeat.index in (4, 5) else 0.5)
repeat.record('t', 0.5)
"""
BEGUN, WAITING, SECOND, ENDED, KILLED, ANOTHER = range(1, 7)
"""Repeats, one for each test: they share what takes long to start."""


class Desk(NamedTuple):
    """A session that sends repeats off, and the one that comes after it."""

    service: Service
    workshop: Workshop
    first: ModalExecutor
    later: ModalExecutor

    def job(self, index: int) -> Job:
        job = self.workshop.job(self.first, index)
        return replace(job, mark=self.first.mark_for(job))

    def bodies(self) -> int:
        return len(self.workshop.bodies())

    def begin(self, job: Job) -> str:
        """Send it off, and wait until its body has begun."""
        before = self.bodies()
        call = self.first.launch(job)
        assert call
        self.service.wait_for(lambda: self.bodies() > before)
        return call

    def second(self, job: Job) -> str:
        """Send it off once more, and wait until that has found it begun."""
        call = self.later.launch(job)
        assert call
        self.service.wait_until("output", call=call.partition("@")[0])
        return call


@pytest.fixture(scope="module")
def desk(standin: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    from modal_studies import Workshop

    standin.reset()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in standin.variables.items():
            patch.setenv(name, value)
        workshop = Workshop(tmp_path_factory.mktemp("marks"))
        yield Desk(standin, workshop, workshop.started(BODY), workshop.started(BODY))
        workshop.close()
    standin.reset()


def test_what_has_begun_is_found_by_its_mark_alone(desk: Desk):
    job, before = desk.job(BEGUN), desk.bodies()
    call = desk.begin(job)
    assert job.mark
    assert desk.later.remembers(job.mark)
    assert desk.later.find(job) == call
    assert desk.later.find(replace(job, mark=desk.later.mark_for(job))) is None
    assert desk.later.attach(job, call)
    assert desk.later.collect()[1].outcome is Outcome.OK
    assert desk.first.collect()[1].outcome is Outcome.OK
    assert desk.bodies() == before + 1


def test_what_still_waits_for_a_container_is_sent_off_again_and_begins_once(desk: Desk):
    """The later one overtakes it: nothing of the first is left but a container that starts in vain."""
    job, before = desk.job(WAITING), desk.bodies()
    desk.service.set(queue_seconds=4.0)
    late = desk.first.launch(job)
    desk.service.wait_until("call", call=str(late).partition("@")[0])
    assert desk.later.find(job) is None
    desk.service.set(queue_seconds=0.0)
    own = desk.later.launch(job)
    assert desk.later.collect()[1].outcome is Outcome.OK
    assert desk.later.find(job) == own
    assert desk.first.collect()[1].outcome is Outcome.OK
    assert desk.service.begun_of(str(late)) == 1
    assert desk.bodies() == before + 1


def test_who_comes_second_has_what_the_first_comes_to(desk: Desk):
    job, before = desk.job(SECOND), desk.bodies()
    call = desk.begin(job)
    own = desk.second(job)
    result = desk.later.collect()[1]
    assert (result.outcome, result.values) == (Outcome.OK, {"t": 0.5})
    assert "queue" not in result.seconds
    assert desk.later.find(job) == call
    assert desk.later.attach(job, own)
    assert desk.later.collect()[1].values == {"t": 0.5}
    assert desk.first.collect()[1].values == {"t": 0.5}
    assert desk.bodies() == before + 1


def test_a_first_one_that_fails_is_a_fault_and_nothing_runs_beside_it(desk: Desk):
    job, before = desk.job(KILLED), desk.bodies()
    desk.begin(job)
    desk.second(job)
    desk.service.kill()
    assert desk.later.collect()[1].outcome is Outcome.INFRASTRUCTURE
    assert desk.first.collect()[1].outcome is Outcome.INFRASTRUCTURE
    assert desk.bodies() == before + 1


def test_a_mark_of_another_repeat_gets_nobody_a_call_of_it(desk: Desk):
    job = desk.job(ANOTHER)
    call = desk.begin(job)
    other = replace(desk.workshop.job(desk.later, BEGUN), mark=job.mark)
    assert desk.later.find(other) == call
    assert not desk.later.attach(other, call)
    assert desk.first.collect()[1].outcome is Outcome.OK


def test_who_comes_second_ends_the_first_with_itself(desk: Desk):
    """The last one here: it ends the session."""
    job = desk.job(ENDED)
    desk.begin(job)
    desk.second(job)
    desk.service.wait_for(lambda: desk.later._flights[job.repeat].first)
    desk.later.close()
    assert desk.first.collect()[1].outcome is Outcome.INFRASTRUCTURE
    desk.service.wait_for(lambda: desk.service.state()["containers"] == {})


def test_where_marks_were_taken_away_nothing_is_known_of_them(service: Service):
    import modal

    session = marks.opened("prereg-study")
    assert marks.is_open("prereg-study", session)
    assert not marks.is_open("prereg-study", "another")
    modal.Dict.objects.delete("prereg-study")
    assert not marks.is_open("prereg-study", session)


def test_marks_of_a_session_that_began_a_week_ago_may_be_forgotten_whoever_has_asked_since(service: Service):
    import modal

    session = marks.opened("prereg-study")
    kept = modal.Dict.from_name("prereg-study")
    kept.put(marks._opened(session), kept.get(marks._opened(session)) - 7 * 86400)
    assert not marks.is_open("prereg-study", session)


@pytest.mark.parametrize("kept", [b"[]", {"fc": 1}, "", "no call"])
def test_what_a_body_keeps_under_a_mark_is_no_call_of_the_repeat(
    service: Service, workshop: Workshop, kept: Any
):
    import modal

    modal.Dict.from_name("prereg-study", create_if_missing=True).put("s/1", kept)
    executor = workshop.executor()
    job = replace(workshop.job(executor), mark="s/1")
    call = executor.find(job)
    assert call is not None
    assert not executor.attach(job, call)


def test_whether_it_has_begun_is_not_guessed_where_nobody_answers(service: Service, workshop: Workshop):
    executor = workshop.executor()
    job = replace(workshop.job(executor), mark="s/1")
    service.leave(60)
    for ask in (lambda: executor.remembers("s/1"), lambda: executor.find(job)):
        with pytest.raises(MeasureError) as caught:
            ask()
        assert caught.value.problems[0].code == "PR137"
    service.come_back()
