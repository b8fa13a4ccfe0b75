"""What evidence and containers can say that is not so: calls of others, and answers that no container gave."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.executors.base import Result
from pytest_prereg.measure.executors.modal import answers
from pytest_prereg.measure.executors.modal.messages import Answer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from modal_studies import Workshop
    from standin_handle import Service

WAITS = "while not Path({gate!r}).exists():\n    time.sleep(0.02)\nrepeat.record('t', float(repeat.index))"


def test_a_call_is_taken_up_for_the_repeat_that_it_was_begun_for_and_no_other(
    service: Service, workshop: Workshop, tmp_path: Path
):
    gate = tmp_path / "gate"
    executor = workshop.started(WAITS.format(gate=str(gate)))
    jobs = [workshop.job(executor, index) for index in (1, 2)]
    first, _ = (executor.launch(job) for job in jobs)
    assert first is not None
    other = workshop.job(executor, 1, seed=8)
    assert not executor.attach(jobs[1], first), "another repeat, while it runs"
    assert not executor.attach(other, first), "another series"
    gate.touch()
    ended = [executor.collect() for _ in jobs]
    assert {job.index: result.values["t"] for job, result in ended} == {1: 1.0, 2: 2.0}
    assert not executor.attach(jobs[1], first), "another repeat, once it has ended"
    service.forget(first.partition("@")[0])
    assert not executor.attach(jobs[1], first), "another repeat, by its marks alone"
    assert executor.attach(jobs[0], first)
    assert executor.collect()[1].values == {"t": 1.0}


def test_what_a_colleague_runs_is_neither_taken_up_nor_ended(
    service: Service, workshop: Workshop, running: Callable[..., Any]
):
    def theirs() -> bytes:
        import time

        time.sleep(3)
        return b"{}"

    call = running(theirs).spawn()
    service.wait_until("input_started")
    executor = workshop.started()
    assert not executor.attach(workshop.job(executor), f"{call.object_id}@ap-any")
    executor.close()
    assert call.get(timeout=10) == b"{}"
    executor.start()
    assert not executor.attach(workshop.job(executor), f"{call.object_id}@ap-any")


def test_a_call_that_waits_for_a_container_is_known_by_who_began_it(service: Service, workshop: Workshop):
    executor = workshop.started()
    service.set(queue_seconds=1.5)
    job = workshop.job(executor)
    call = executor.launch(job)
    assert call is not None
    assert not workshop.bodies()
    again = workshop.started()
    assert again.attach(job, call)
    assert again.collect()[1].outcome is Outcome.OK
    assert len(workshop.bodies()) == 1


def answer(**said: Any) -> bytes:
    return msgspec.json.encode(Answer(whose="ours", result=Result(**{"outcome": Outcome.OK, **said})))


@pytest.mark.parametrize(
    "forged",
    [
        b"",
        b"[]",
        msgspec.json.encode(Result(outcome=Outcome.OK)),
        msgspec.json.encode(Answer(whose="theirs", result=Result(outcome=Outcome.OK))),
        answer(outcome=Outcome.LOST),
        answer(outcome=Outcome.EXCLUDED),
        answer(outcome=Outcome.WARMUP),
        answer(restarts=-1),
        answer(restarts=1 << 40),
        answer(seconds={"total": -1.0}),
        answer(seconds={"body": 1.0, "queue": -3.0}),
        answer(values={"t": 7.25}).replace(b"7.25", b"1e999"),
        answer(values={"t": [1.0, 7.25]}).replace(b"7.25", b"-1e999"),
        answer(seconds={"total": 7.25}).replace(b"7.25", b"1e999"),
    ],
)
def test_what_no_supervisor_says_is_a_fault_and_no_result(forged: bytes):
    result = answers.result_in(forged, "ours", time.monotonic())
    assert (result.outcome, result.cause) == (Outcome.INFRASTRUCTURE, "answer")
    assert not result.values
    assert not result.restarts


def test_nothing_costs_more_time_than_it_was_waited_for():
    long_ago = answers.result_in(answer(seconds={"body": 1.0, "total": 9e6}), "ours", time.monotonic() - 5)
    assert long_ago.seconds["total"] == pytest.approx(5, abs=1)
    assert long_ago.seconds["queue"] == 0


FORGES = """
import msgspec, modal
kept = modal.Dict.from_name('prereg-study')
for call in [key for key in kept.keys() if key.startswith('fc-') and not key.endswith('is of')]:
    mark = msgspec.json.decode(kept.get(call))
    told = {'outcome': 'ok', 'values': {'t': 1e-9}}
    mark[-1]['answer'] = msgspec.json.encode({'whose': 'anybody', 'result': told}).decode()
    kept.put(call, msgspec.json.encode(mark))
if repeat.index == 1:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(5)
repeat.record('t', 0.5)
"""


def test_what_a_body_writes_beside_the_marks_is_no_answer_of_another_repeat(workshop: Workshop):
    result = workshop.run(FORGES)
    assert (result.outcome, result.cause) == (Outcome.INFRASTRUCTURE, "supervisor")
    assert not result.values
