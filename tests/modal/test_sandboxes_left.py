"""Whatever ends who grades on Modal, no sandbox of it runs on."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import modal
import pytest
from modal_sandboxes import RIGHT, SLEEPS, SMALL, asking, nothing_is_left, opened, running
from msgspec.structs import replace

from pytest_prereg.measure.workloads.sandbox.modal import boxes
from pytest_prereg.measure.workloads.sandbox.outcomes import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from standin_handle import Service

PROGRAM = """
import sys
sys.path.insert(0, {here!r})
from modal_sandboxes import SLEEPS, asking, opened
from pytest_prereg.measure.workloads.sandbox.modal import boxes

boxes.PYTHON = sys.executable
{setting}
with opened(workers=2, warm=1) as sandbox:
    sandbox.grade([asking(SLEEPS)] * 3)
"""


@pytest.fixture(autouse=True)
def _interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "PYTHON", sys.executable)


@pytest.fixture
def grader(service: Service) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """``grader(setting)``: a process with two programs that sleep, and a sandbox that is ready."""
    started: list[subprocess.Popen[bytes]] = []

    def start(setting: str = "") -> subprocess.Popen[bytes]:
        program = PROGRAM.format(here=str(Path(__file__).parent), setting=setting)
        command = [sys.executable, "-c", program]
        started.append(subprocess.Popen(command, env=service.environment, stderr=subprocess.PIPE))
        ready = running(service, 3)
        service.wait_for(lambda: started[-1].poll() is not None or ready())
        service.wait_for(lambda: started[-1].poll() is not None or len(service.state()["sandboxes"]) == 3)
        assert started[-1].poll() is None
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_ends_who_grades_ends_all_sandboxes(service: Service, grader, number: int):
    process = grader("import signal; signal.signal(signal.SIGTERM, signal.default_int_handler)")
    began = time.monotonic()
    process.send_signal(number)
    _, errors = process.communicate(timeout=12)
    assert b"KeyboardInterrupt" in errors
    assert time.monotonic() - began < 6
    assert nothing_is_left(service)
    assert {event["status"] for event in service.events("sandbox_ended")} == {"terminated"}


def test_kill_leaves_sandboxes_that_end_with_the_app_once_its_client_is_missed(service: Service, grader):
    grader().kill()
    time.sleep(0.3)
    assert len(service.state()["sandboxes"]) == 3
    service.set(dead_client_after=0.1)
    service.wait_for(lambda: nothing_is_left(service), 5)
    assert service.events("app_stopped")[-1]["why"] == "client heartbeat lost"


def test_kill_leaves_sandboxes_that_end_themselves_once_they_hear_nothing_more(service: Service, grader):
    grader("boxes.START_SECONDS, boxes.ALONE_SECONDS, boxes.LINGER_SECONDS = 2, 1.0, 0").kill()
    service.wait_for(lambda: nothing_is_left(service), 12)
    assert {event["status"] for event in service.events("sandbox_ended")[-3:]} == {"success"}


def test_a_sandbox_hears_from_who_grades_for_as_long_as_it_lasts(
    service: Service, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(boxes, "ALONE_SECONDS", 0.6)
    monkeypatch.setattr(boxes, "BEAT_SECONDS", 0.1)
    with opened(workers=1, warm=1, limits=replace(SMALL, deadline=1.5)) as sandbox:
        time.sleep(1.2)
        found = sandbox.grade([asking(SLEEPS), asking(RIGHT)])
    assert [each.outcome for each in found] == [Outcome.TIMEOUT, Outcome.PASS]


def test_kill_leaves_sandboxes_that_end_with_their_own_lifetime_in_any_case(service: Service, grader):
    grader("boxes.lifetime = lambda _: 3").kill()
    service.wait_for(lambda: nothing_is_left(service), 8)
    assert [event["status"] for event in service.events("sandbox_ended")][-3:] == ["timeout"] * 3


def test_a_sandbox_that_is_being_made_when_its_block_is_left_is_ended_when_it_is_there(service: Service):
    with opened(workers=2) as sandbox:
        service.fail("SandboxCreateV2", "OK", times=2, delay=1.0)
        futures = [sandbox.submit(asking(RIGHT)) for _ in range(2)]
        service.wait_for(lambda: service.state()["requests"]["SandboxCreateV2"] == 3)
    assert [future.result().outcome for future in futures] == [Outcome.INFRASTRUCTURE] * 2
    assert "the block of this Sandbox was left" in futures[0].result().evidence
    assert sandbox.left == 0
    assert len(service.events("sandbox_started")) == 3
    assert nothing_is_left(service)


def test_an_exception_in_the_block_ends_all_and_outside_of_it_nothing_is_graded(service: Service):
    with suppress(ZeroDivisionError), opened(warm=2) as sandbox:
        future = sandbox.submit(asking(SLEEPS))
        service.wait_for(running(service, 2))
        raise ZeroDivisionError
    assert future.result().outcome is Outcome.INFRASTRUCTURE
    assert nothing_is_left(service)
    assert sandbox.submit(asking(RIGHT)).result().outcome is Outcome.INFRASTRUCTURE
    assert service.events("app_stopped")


def test_a_fork_of_who_grades_ends_none(service: Service):
    with opened(warm=1) as sandbox:
        service.wait_for(running(service))
        pid = os.fork()
        if not pid:
            status = 1
            try:
                sandbox.__exit__()
                with pytest.raises(RuntimeError, match="enter one in each fork"):
                    sandbox.submit(asking(RIGHT))
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
        assert len(service.state()["sandboxes"]) == 1
        assert sandbox.grade([asking(RIGHT)])[0].outcome is Outcome.PASS


def test_a_sandbox_that_modal_does_not_say_has_ended_counts_as_left(
    service: Service, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(boxes, "END_TRIES", 1)
    with opened() as sandbox:
        service.fail("SandboxTerminateV2", "PERMISSION_DENIED")
        (result,) = sandbox.grade([asking(RIGHT)])
        assert result.outcome is Outcome.PASS
        assert "Modal did not confirm that its sandbox ended" in result.evidence
        service.fail("SandboxTerminateV2", "PERMISSION_DENIED")
    assert sandbox.left == 1
    service.wait_for(lambda: nothing_is_left(service), 5)  # its app was stopped


def test_a_sandbox_in_which_nothing_came_to_run_ends_itself(
    service: Service, monkeypatch: pytest.MonkeyPatch
):
    """Whoever made it may have been killed right then."""
    monkeypatch.setattr(boxes, "START_SECONDS", 1)
    monkeypatch.setattr(boxes, "LINGER_SECONDS", 0)
    app = modal.App.lookup("any", create_if_missing=True)
    recipe = boxes.Recipe(app=app, image=modal.Image.debian_slim(), limits=SMALL)
    asyncio.run(boxes.made(recipe))
    service.wait_until("sandbox_ended", seconds=9, status="success")
