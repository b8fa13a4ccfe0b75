"""What befalls a sandbox on Modal, or Modal itself, is no program's doing: there is no verdict, and it is told."""

from __future__ import annotations

import os
import socket
import sys
import time
from typing import TYPE_CHECKING

import modal
import pytest
from modal_sandboxes import RIGHT, SLEEPS, SMALL, asking, nothing_is_left, opened, running
from msgspec.structs import replace
from standin_handle import TOKEN_SECRET

from pytest_prereg.measure.workloads.sandbox.client import SandboxUnavailableError
from pytest_prereg.measure.workloads.sandbox.modal import boxes, client, pool
from pytest_prereg.measure.workloads.sandbox.outcomes import Outcome

if TYPE_CHECKING:
    from standin_handle import Service

LATER = "import time\ndef f():\n    time.sleep(1.2)\n    return 5"


@pytest.fixture(autouse=True)
def _interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "PYTHON", sys.executable)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives up on a service that is gone much sooner than is right."""
    for module, values in {
        boxes: {"CONTACT_SECONDS": 1.0, "END_SECONDS": 1.0, "END_TRIES": 1},
        pool: {"CREATION_SECONDS": 1.0, "CLOSE_SECONDS": 1.0},
        client: {"STOP_SECONDS": 1.0},
    }.items():
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)


def test_a_sandbox_that_is_dead_before_anything_runs_in_it_is_replaced(service: Service):
    with opened() as sandbox:
        service.fail("TaskExecStart", "NOT_FOUND", message="Sandbox has already shut down")
        found = sandbox.grade([asking(RIGHT), asking(RIGHT)])
        assert [result.outcome for result in found] == [Outcome.PASS] * 2
    assert len(service.events("sandbox_started")) == 4
    assert nothing_is_left(service)


def test_completions_for_which_no_sandbox_comes_to_life_have_no_verdict(service: Service):
    with opened(workers=1) as sandbox:
        service.fail("TaskExecStart", "NOT_FOUND", times=2, message="Sandbox has already shut down")
        lost, right = sandbox.grade([asking(RIGHT), asking(RIGHT)])
    assert (lost.outcome, right.outcome) == (Outcome.INFRASTRUCTURE, Outcome.PASS)
    assert lost.evidence == "no sandbox could be made: NotFoundError: Sandbox has already shut down"
    with pytest.raises(ValueError, match="no verdict"):
        _ = lost.credit
    assert nothing_is_left(service)


def test_a_warm_sandbox_that_died_meanwhile_is_not_used(service: Service):
    with opened(warm=1, workers=1) as sandbox:
        service.wait_for(running(service))
        ((_, pid),) = service.state()["sandboxes"].items()
        os.kill(pid, 9)
        service.wait_until("sandbox_ended")
        time.sleep(0.2)
        (result,) = sandbox.grade([asking(RIGHT)])
    assert result.outcome is Outcome.PASS


def kill(service: Service, box: str, pid: int) -> None:
    os.kill(pid, 9)


def terminate(service: Service, box: str, pid: int) -> None:
    modal.Sandbox.from_id(box).terminate()


@pytest.mark.parametrize("how", [kill, terminate])
def test_a_sandbox_that_is_ended_from_outside_leaves_no_verdict(service: Service, how):
    with opened() as sandbox:
        future = sandbox.submit(asking(SLEEPS))
        service.wait_for(running(service, 2))
        time.sleep(0.3)
        ((box, pid),) = service.state()["sandboxes"].items()
        how(service, box, pid)
        result = future.result(10)
        assert result.outcome is Outcome.INFRASTRUCTURE
        assert "the sandbox was ended from outside" in result.evidence
        (right,) = sandbox.grade([asking(RIGHT)])
    assert right.outcome is Outcome.PASS
    assert nothing_is_left(service)


def test_a_lifetime_that_is_over_is_no_timeout_of_the_program(
    service: Service, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(boxes, "lifetime", lambda _: 1)
    with opened() as sandbox:
        (result,) = sandbox.grade([asking(SLEEPS)])
    assert result.outcome is Outcome.INFRASTRUCTURE
    assert "the sandbox was ended from outside" in result.evidence
    assert sandbox.left == 0


def test_a_sandbox_that_has_not_long_to_live_is_given_no_program(
    service: Service, monkeypatch: pytest.MonkeyPatch
):
    with opened(warm=1) as sandbox:
        service.wait_for(running(service))
        ((old, _),) = service.state()["sandboxes"].items()
        monkeypatch.setattr(boxes, "SPARE_SECONDS", 0.5)
        time.sleep(0.5)
        monkeypatch.setattr(boxes, "SPARE_SECONDS", 0.4)
        future = sandbox.submit(asking(RIGHT))
        monkeypatch.setattr(boxes, "SPARE_SECONDS", 300.0)
        assert future.result(10).outcome is Outcome.PASS
        service.wait_until("sandbox_ended", sandbox=old)
    assert old not in [event["sandbox"] for event in service.events("executed")][1:]


def test_a_service_that_is_gone_for_a_moment_is_waited_for(service: Service):
    with opened(workers=2) as sandbox:
        futures = [sandbox.submit(asking(LATER)) for _ in range(2)]
        service.wait_for(running(service, 3))
        time.sleep(0.3)
        service.leave(0.5)
        assert [future.result(15).outcome for future in futures] == [Outcome.PASS] * 2
    assert nothing_is_left(service)


@pytest.mark.usefixtures("impatient")
def test_a_service_that_is_gone_for_good_leaves_no_verdicts_and_keeps_nobody(service: Service):
    with opened(workers=1, limits=replace(SMALL, deadline=1.0)) as sandbox:
        futures = [sandbox.submit(asking(SLEEPS)) for _ in range(3)]
        service.wait_for(running(service, 2))
        time.sleep(0.3)
        service.leave()
        began = time.monotonic()
        results = [future.result(30) for future in futures]
        assert time.monotonic() - began < 15
        closing = time.monotonic()
    assert time.monotonic() - closing < 6
    assert [result.outcome for result in results] == [Outcome.INFRASTRUCTURE] * 3
    assert "no contact to the sandbox at its deadline" in results[0].evidence
    assert "no sandbox could be made" in results[1].evidence
    assert sandbox.left >= 1
    service.come_back()


def test_what_is_missing_is_told_before_anything_is_made(service: Service, monkeypatch: pytest.MonkeyPatch):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        closed = one.getsockname()[1]
    cases = {
        "there is no token for Modal": ("MODAL_TOKEN_SECRET", ""),
        f"Modal can't be reached at 127.0.0.1:{closed}": ("MODAL_SERVER_URL", f"http://127.0.0.1:{closed}"),
    }
    for told, (name, value) in cases.items():
        with monkeypatch.context() as changed:
            changed.setenv(name, value)
            began = time.monotonic()
            with pytest.raises(SandboxUnavailableError, match=told) as caught, opened():
                pass
            assert time.monotonic() - began < 1
            assert TOKEN_SECRET not in str(caught.value)
    assert "SandboxCreateV2" not in service.state()["requests"]


@pytest.mark.parametrize(
    ("python", "told"),
    [("no-such-python", "no-such-python"), ("true", "without a word"), ("echo", "-I -S -X utf8 -c")],
)
def test_an_image_in_which_nothing_can_run_is_told_with_what_it_says(
    service: Service, monkeypatch: pytest.MonkeyPatch, python: str, told: str
):
    monkeypatch.setattr(boxes, "PYTHON", python)
    with pytest.raises(SandboxUnavailableError, match=told), opened():
        pass
    assert nothing_is_left(service)


def test_another_python_is_told(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(boxes, "this_python", lambda: "3.99")
    with (
        pytest.raises(SandboxUnavailableError, match=r"its Python is 3\.\d+, and here it is 3\.99"),
        opened(),
    ):
        pass


def test_an_image_that_can_not_be_built_is_told(service: Service):
    service.set(image_failures=["no such package"])
    with pytest.raises(SandboxUnavailableError, match="no such package"), opened():
        pass
