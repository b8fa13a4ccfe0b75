"""What befalls a container, a call or the service is the service's fault, and no outcome of a task."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from standin_handle import TOKEN_SECRET

from pytest_prereg.errors import MeasureError
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.executors.modal import calls, faults
from pytest_prereg.measure.executors.modal.messages import Mark

if TYPE_CHECKING:
    from modal_studies import Workshop
    from standin_handle import Service

WAITS = """
gate = Path({gate!r})
while not gate.exists():
    time.sleep(0.02)
repeat.record('t', 0.5)
"""


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """What bodies wait for."""
    return tmp_path / "gate"


def waiting(gate: Path) -> str:
    return WAITS.format(gate=str(gate))


def test_a_container_that_is_lost_is_a_fault_and_a_body_that_is_preempted_begins_again(
    service: Service, workshop: Workshop, gate: Path
):
    executor = workshop.started(waiting(gate))
    ends = []
    for index, strike in enumerate((service.kill, service.lose_machine), 1):
        executor.launch(workshop.job(executor, index))
        service.wait_for(lambda index=index: len(workshop.bodies()) == index)
        strike()
        ends.append(executor.collect()[1])
    assert [(end.outcome, end.cause, end.restarts) for end in ends] == [
        (Outcome.INFRASTRUCTURE, "container", 0),
        (Outcome.INFRASTRUCTURE, "machine", 0),
    ]
    job = workshop.job(executor, 3)
    call = executor.launch(job)
    assert call is not None
    service.wait_for(lambda: len(workshop.bodies()) == 3)
    service.preempt()
    service.wait_for(lambda: len(workshop.bodies()) == 4)
    gate.touch()
    for forget in (str, service.forget):
        _, result = executor.collect()
        assert (result.outcome, result.restarts, result.values) == (Outcome.OK, 1, {"t": 0.5})
        forget(call.partition("@")[0])
        assert executor.attach(job, call), "what has ended is known by its call, and then by its marks"
    assert not executor.attach(job, "fc-none@ap-none")
    assert len(workshop.bodies()) == 4
    service.wait_for(lambda: not any(lives(pid) for pid in workshop.bodies()))


def test_closing_ends_all_that_runs_there_within_five_seconds_and_nobody_takes_it_up(
    service: Service, workshop: Workshop, gate: Path
):
    executor = workshop.started(waiting(gate))
    launched = [executor.launch(workshop.job(executor, index)) for index in (1, 2)]
    service.wait_for(lambda: len(workshop.bodies()) == 2)
    began = time.monotonic()
    executor.close()
    assert time.monotonic() - began < 5
    service.wait_for(lambda: not service.state()["containers"], 5)
    service.wait_for(lambda: not any(lives(pid) for pid in workshop.bodies()), 5)
    assert [each["why"] for each in service.events("app_stopped")] == ["asked to"]
    with pytest.raises(LookupError):
        executor.collect()
    for index, call in enumerate(launched, 1):
        assert call is not None
        assert not executor.attach(workshop.job(executor, index), call)


def test_a_service_that_is_gone_for_a_while_costs_nothing_and_one_that_stays_away_ends_the_session(
    service: Service, workshop: Workshop, gate: Path, monkeypatch: pytest.MonkeyPatch
):
    executor = workshop.started(waiting(gate))
    executor.launch(workshop.job(executor))
    service.wait_for(workshop.bodies)
    service.leave(5.0)
    gate.touch()
    assert executor.collect()[1].outcome is Outcome.OK
    assert len(workshop.bodies()) == 1
    gate.unlink()
    monkeypatch.setattr(calls, "SILENCE_SECONDS", 1.0)
    executor.launch(workshop.job(executor, 2))
    service.wait_for(lambda: len(workshop.bodies()) == 2)
    service.leave()
    with pytest.raises(MeasureError) as caught:
        executor.collect()
    assert caught.value.problems[0].code == "PR137"
    assert "takes them up again" in str(caught.value)
    assert TOKEN_SECRET not in str(caught.value)
    began = time.monotonic()
    executor.close()
    assert time.monotonic() - began < 5
    assert lives(workshop.bodies()[1]), "it is left to the next session"


def test_too_many_calls_at_once_are_waited_for_and_in_the_end_a_fault(
    service: Service, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
):
    executor = workshop.started()
    service.limit("FunctionMap", per_second=2.0)
    monkeypatch.setattr(calls, "BACKOFF", (0.3, 0.6, 1.0, 2.0))
    for index in (1, 2, 3):
        assert executor.launch(workshop.job(executor, index)) is not None
    assert {executor.collect()[1].outcome for _ in range(3)} == {Outcome.OK}
    service.fail("FunctionMap", status="RESOURCE_EXHAUSTED", times=9)
    monkeypatch.setattr(calls, "BACKOFF", ())
    assert executor.launch(workshop.job(executor, 4)) is None
    result = executor.collect()[1]
    assert (result.outcome, result.cause) == (Outcome.INFRASTRUCTURE, "rate limit")
    assert result.seconds == {"total": 0.0}
    assert len(workshop.bodies()) == 3


def test_an_answer_that_never_comes_is_found_with_the_marks_or_lost_for_good(
    service: Service, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
):
    executor = workshop.started("repeat.record('t', [0.5] * (1 + 400_000 * (repeat.index == 2)))")
    for name, value in (("LOST_SECONDS", 0.2), ("POLL_SECONDS", 0.2)):
        monkeypatch.setattr(calls, name, value)
    monkeypatch.setattr("pytest_prereg.measure.executors.modal.executor.longest", lambda *_: 1.0)
    service.plan("lose", times=2)
    for index in (1, 2):
        executor.launch(workshop.job(executor, index))
    ended = {job.index: result for job, result in (executor.collect() for _ in range(2))}
    assert (ended[1].outcome, ended[1].values) == (Outcome.OK, {"t": [0.5]})
    assert (ended[2].outcome, ended[2].cause) == (Outcome.INFRASTRUCTURE, "answer")


def test_a_limit_of_modals_is_a_timeout_only_where_the_body_had_been_reached():
    import modal

    late = modal.exception.FunctionTimeoutError("Task's current input hit its timeout of 1040s")
    reached = faults.result_of(late, [Mark(container="ta-1", imported=True)])
    assert (reached.outcome, reached.cause) == (Outcome.TIMEOUT, "deadline")
    for marks in ([], [Mark(container="ta-1")]):
        result = faults.result_of(late, marks)
        assert (result.outcome, result.cause) == (Outcome.INFRASTRUCTURE, "start")


def test_whatever_an_exception_says_of_a_token_is_hidden(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MODAL_TOKEN_SECRET", "as-much")
    assert faults.told(RuntimeError("refused as-much")) == "RuntimeError: refused (hidden)"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), ValueError("of a container")])
def test_what_a_container_raises_here_ends_nothing_here(error: BaseException):
    assert faults.result_of(error, []).outcome is Outcome.INFRASTRUCTURE
