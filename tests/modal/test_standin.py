"""The stand-in does to the unmodified client what Modal does, and says what really happened."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import modal
import pytest
import standin_bodies as bodies
from standin_handle import TOKEN_SECRET, lives

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from standin_handle import Service

Running = "Callable[..., Any]"
MIB = 1 << 20


def test_each_call_has_a_container_of_its_own(service: Service, running: Running):
    where = running(bodies.where)
    spawned = where.spawn()
    answers = [*where.starmap([()] * 2), spawned.get(timeout=20)]
    assert len({pid for pid, _ in answers}) == 3
    began = {each["container"]: each["pid"] for each in service.events("container_started")}
    assert {container: pid for pid, container in answers} == began
    service.wait_until("container_ended", 3)
    assert [each["code"] for each in service.events("container_ended")] == [0] * 3
    assert service.state()["missing"] == {}


def test_another_process_gets_what_was_spawned_until_it_is_forgotten(
    service: Service, running: Running, client: Callable[[str], str]
):
    call = running(bodies.double).spawn(21).object_id
    get = f"print(modal.FunctionCall.from_id({call!r}).get(timeout=20))"
    assert client(f"{get}\n{get}").split() == ["42", "42"]
    service.forget(call)
    with pytest.raises(modal.exception.NotFoundError):
        modal.FunctionCall.from_id(call).get(timeout=1)


def test_payloads_of_six_mebibytes_go_both_ways_through_the_blob_store(service: Service, running: Running):
    payload = os.urandom(6 * MIB)
    assert running(bodies.echo).remote(payload) == payload[::-1]
    requests = service.state()["requests"]
    assert requests["BlobCreate"] == requests["BlobGet"] == 2


def test_what_a_body_raises_arrives_and_so_does_its_exit(running: Running):
    failing, leaving, dying = (running(each) for each in (bodies.fail, bodies.leave, bodies.die))
    calls = [failing.spawn("why"), leaving.spawn(3), dying.spawn(9)]
    with pytest.raises(KeyError, match="why"):
        calls[0].get(timeout=20)
    with pytest.raises(SystemExit):
        calls[1].get(timeout=20)
    with pytest.raises(modal.exception.Error, match="exit code: 9"):  # with its input in hand
        calls[2].get(timeout=20)


def test_some_inputs_of_a_map_may_fail(running: Running):
    answers = running(bodies.fail_at).map([1, 0, 2], return_exceptions=True)
    assert [repr(each) for each in answers] == ["1", "KeyError('nothing')", "2"]


def test_a_timeout_ends_the_container(service: Service, running: Running):
    with pytest.raises(modal.exception.FunctionTimeoutError):
        running(bodies.sleep, timeout=1).remote(60)
    ended = service.wait_until("container_ended")
    assert not lives(ended["pid"])


def test_a_container_that_is_killed_ran_its_input_once(service: Service, running: Running, tmp_path: Path):
    call = running(bodies.marked).spawn(str(tmp_path / "marks"), 60)
    began = service.wait_until("input_started")
    service.wait_for((tmp_path / "marks").exists)
    assert service.kill() == [began["container"]]
    with pytest.raises(modal.exception.Error, match="Runner failed"):
        call.get(timeout=20)
    assert service.begun() == len((tmp_path / "marks").read_text().split()) == 1
    assert f"pid {began['pid']}, run 1" in service.log(began["container"])


def test_an_input_that_is_preempted_begins_again_and_silently(
    service: Service, running: Running, tmp_path: Path
):
    service.plan("preempt", after=0.3, grace=0.3)
    assert running(bodies.marked).remote(str(tmp_path / "marks"), 0.8) == 2
    first, second = service.events("input_started")
    assert (first["nth"], second["nth"]) == (1, 2)
    assert first["input"] == second["input"]
    marks = [int(each) for each in (tmp_path / "marks").read_text().split()]
    assert marks == [first["pid"], second["pid"]]
    assert [each["status"] for each in service.events("output")] == ["success"]


def test_a_machine_that_is_lost_is_an_internal_failure(service: Service, running: Running):
    call = running(bodies.sleep).spawn(60)
    service.wait_until("input_started")
    service.lose_machine()
    with pytest.raises(modal.exception.Error, match="worker lost"):
        call.get(timeout=20)


def test_an_output_that_is_lost_never_comes(service: Service, running: Running):
    service.plan("lose")
    call = running(bodies.double).spawn(1)
    service.wait_until("container_ended", code=0)
    with pytest.raises(TimeoutError):
        call.get(timeout=0.2)
    assert service.begun() == 1


def test_cancelling_ends_the_container_and_what_it_started(
    service: Service, running: Running, tmp_path: Path
):
    place = tmp_path / "orphan"
    call = running(bodies.orphaning).spawn(str(place))
    orphan = int(service.wait_for(lambda: place.exists() and place.read_text()))
    assert lives(orphan)
    call.cancel(terminate_containers=True)
    with pytest.raises(modal.exception.RemoteError, match="cancelled"):
        call.get(timeout=20)
    service.wait_until("container_ended")
    assert not lives(orphan)


def test_a_call_that_waits_is_cancelled_before_it_begins(service: Service, running: Running):
    service.set(queue_seconds=0.5)
    call = running(bodies.sleep).spawn(0)
    call.cancel(terminate_containers=True)
    with pytest.raises(modal.exception.RemoteError, match="cancelled"):
        call.get(timeout=20)
    service.wait_for(lambda: not service.state()["containers"])
    assert service.begun() == 0


def test_a_slow_queue_holds_the_container_back(service: Service, running: Running):
    service.set(queue_seconds=0.5)
    running(bodies.double).remote(1)
    began, asked = service.events("input_started")[0], service.events("input")[0]
    assert began["at"] - asked["at"] > 0.5
    queued = service.events("container_started")[0]
    assert queued["at"] - queued["queued"] > 0.5


def test_containers_that_crash_as_they_start_are_given_up_after_three(service: Service, running: Running):
    service.set(crashes=3)
    with pytest.raises(modal.exception.Error, match="crashed as it started"):
        running(bodies.double).remote(1)
    assert len(service.events("container_ended", code=1)) == 3
    assert service.begun() == 0


def test_a_dict_is_shared_by_containers_and_clients(running: Running):
    remember = running(bodies.remember)
    assert [remember.remote("marks"), remember.remote("marks")] == [1, 2]
    marks = modal.Dict.from_name("marks")
    assert (marks["runs"], "runs" in marks, "other" in marks, marks.len()) == (2, True, False, 1)
    assert [*marks.items()] == [("runs", 2)]
    assert marks.put("runs", 3, skip_if_exists=True) is False
    assert marks.pop("runs") == 2
    with pytest.raises(modal.exception.NotFoundError):
        modal.Dict.from_name("unheard-of").get("runs")


def test_an_app_has_its_tags_and_a_workspace_its_rates(service: Service, running: Running):
    running(bodies.double)
    (app,) = service.state()["apps"].values()
    assert app["tags"] == {"study": "small"}
    service.set(rates={"gpu_l4": "0.0002"})
    rates = modal.Workspace.from_context().billing.rates()
    assert {name: str(rate) for name, rate in rates.items()} == {"gpu_l4": "0.0002"}


def test_what_a_function_asks_for_is_recorded(service: Service, running: Running):
    service.volume("weights")
    volumes = {"/weights": modal.Volume.from_name("weights")}
    asked = running(bodies.environment, gpu="L4", cpu=2.0, memory=1024, region="us-east", volumes=volumes)
    assert asked.remote("MODAL_REGION") == "us-east"
    (function,) = service.events("function")
    assert (function["gpu"], function["milli_cpu"], function["memory_mb"]) == ("L4", 2000, 1024)
    assert (function["single_use"], function["retries"], function["timeout"]) == (True, 0, 30)
    assert list(function["volumes"]) == ["/weights"]
    (image,) = service.events("image")
    assert image["recipe"][0].startswith("FROM python:")


def test_a_secret_is_known_by_name_and_its_value_only_in_the_container(service: Service, running: Running):
    service.secret("hub", HUB_TOKEN="unguessable")
    secrets = [modal.Secret.from_name("hub")]
    assert running(bodies.environment, secrets=secrets).remote("HUB_TOKEN") == "unguessable"
    recorded = str(service.state())
    assert "unguessable" not in recorded
    assert TOKEN_SECRET not in recorded


@pytest.mark.parametrize("kind", [modal.Secret, modal.Volume])
def test_an_object_that_is_not_there_is_not_found(running: Running, kind: Any):
    there = kind.from_name("unheard-of")
    asked = {"secrets": [there]} if kind is modal.Secret else {"volumes": {"/there": there}}
    with pytest.raises(modal.exception.NotFoundError, match="unheard-of"):
        running(bodies.double, **asked)


def test_an_image_whose_build_fails_says_why(service: Service, running: Running):
    service.set(image_failures=["no such package: torhc"])
    with pytest.raises(modal.exception.ImageBuildError, match="torhc"):
        running(bodies.double)


def test_a_container_claims_the_python_that_its_image_is_based_on(running: Running):
    other = "3.12" if sys.version_info[:2] != (3, 12) else "3.11"
    image = modal.Image.debian_slim(python_version=other).add_local_python_source("standin_bodies")
    shown, numbers = running(bodies.version, image=image).remote()
    assert shown.startswith(f"{other}.")
    assert numbers == tuple(int(part) for part in other.split("."))


def test_a_module_can_be_missing_in_the_container(service: Service, running: Running):
    service.set(lacking=["standin_bodies"])
    with pytest.raises(modal.exception.Error, match="standin_bodies"):
        running(bodies.double).remote(1)


def test_a_request_fails_as_often_as_asked(service: Service, running: Running):
    double = running(bodies.double)
    service.fail("FunctionMap", "UNAVAILABLE", times=1)
    assert double.remote(1) == 2
    service.fail("FunctionMap", "PERMISSION_DENIED", message="not yours")
    with pytest.raises(modal.exception.PermissionDeniedError, match="not yours"):
        double.remote(1)
    service.fail("FunctionMap", "RESOURCE_EXHAUSTED")
    with pytest.raises(modal.exception.ResourceExhaustedError):
        double.spawn(1)


def test_more_requests_than_the_rate_are_refused(service: Service):
    app = modal.App.lookup("sandboxes", create_if_missing=True)
    service.limit("SandboxCreateV2", per_second=2, burst=1)
    modal.Sandbox.create(app=app).terminate()
    with pytest.raises(modal.exception.ResourceExhaustedError, match="rate limit"):
        modal.Sandbox.create(app=app)
    time.sleep(0.6)
    modal.Sandbox.create(app=app).terminate()


def test_a_call_outlives_that_the_service_is_gone_and_the_client_gives_up(service: Service, running: Running):
    call = running(bodies.sleep).spawn(0.5)
    service.wait_until("input_started")
    service.leave()
    with pytest.raises(modal.exception.ConnectionError):  # after three attempts, within a second
        call.get(timeout=20)
    service.wait_until("output")
    service.come_back()
    assert call.get(timeout=20) == 0.5
    assert service.begun() == 1


def test_a_service_that_is_gone_drops_connections_and_refuses_new_ones(service: Service):
    address = ("127.0.0.1", int(service.url.rpartition(":")[2]))
    with socket.create_connection(address) as connected:
        connected.settimeout(5)
        service.leave(seconds=0.5)
        while connected.recv(1024):
            pass  # what it had said before
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)
    service.wait_until("back")
    socket.create_connection(address).close()


WITHOUT = "import sys; sys.modules['modal'] = None; import pytest; sys.exit(pytest.main(sys.argv[1:]))"


def test_without_the_client_tests_are_skipped_unless_it_is_required(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # which takes most of the time
    command = [sys.executable, "-c", WITHOUT, "-p", "no:cacheprovider", __file__]
    runs = [
        subprocess.Popen(
            command, env={**os.environ, "PREREG_MODAL": setting}, stdout=subprocess.PIPE, text=True
        )
        for setting in ("", "required")
    ]
    said = [run.communicate()[0] for run in runs]
    assert [run.returncode for run in runs] == [
        pytest.ExitCode.NO_TESTS_COLLECTED,
        pytest.ExitCode.INTERRUPTED,
    ]
    assert all("needs modal: pip install --group modal" in each for each in said)
