"""Before any repeat is bought: whether Modal can be used from here, and whether the experiment can run there."""

from __future__ import annotations

import os
import socket
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from standin_handle import TOKEN_SECRET

from pytest_prereg.errors import MeasureError
from pytest_prereg.measure.executors.modal import preflight
from pytest_prereg.registry.model import Resources
from pytest_prereg.registry.tables import ModalTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from modal_studies import Workshop
    from standin_handle import Service


def refused(start: Callable[[], Any]) -> str:
    """What is said, and that no token is in it."""
    with pytest.raises(MeasureError) as caught:
        start()
    assert TOKEN_SECRET not in str(caught.value)
    assert len(caught.value.problems) == 1
    return str(caught.value)


@pytest.fixture
def closed() -> int:
    """A port at which nobody answers."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell in which Modal could be used."""
    for name in [name for name in os.environ if name.upper().endswith("_PROXY") or name.startswith("MODAL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MODAL_TOKEN_ID", "ak-any")
    monkeypatch.setenv("MODAL_TOKEN_SECRET", TOKEN_SECRET)


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"MODAL_TOKEN_SECRET": ""}, "there is no token for Modal\n    modal setup"),
        ({}, "Modal can't be reached at 127.0.0.1:{closed}: Connection refused"),
        (
            {"HTTP_PROXY": "http://me:secret@127.0.0.1:{closed}"},
            "requests to 127.0.0.1 would go through it\n    NO_PROXY=127.0.0.1, or MODAL_DISABLE_API_PROXY=1",
        ),
        (
            {
                "HTTPS_PROXY": "http://me:secret@127.0.0.1:{closed}",
                "MODAL_SERVER_URL": "https://modal.example",
            },
            "the proxy at 127.0.0.1:{closed}, through which Modal would be asked, does not answer",
        ),
    ],
)
def test_what_stands_between_is_told_within_a_second(
    somewhere: None, monkeypatch: pytest.MonkeyPatch, closed: int, variables: dict[str, str], told: str
):
    monkeypatch.setenv("MODAL_SERVER_URL", f"http://127.0.0.1:{closed}")
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(closed=closed))
    began = time.monotonic()
    text = refused(preflight.check)
    assert time.monotonic() - began < 1
    assert text.startswith("PR137: ")
    assert told.format(closed=closed) in text
    assert "secret@" not in text


def test_an_address_that_does_not_answer_is_waited_for_no_longer_than_a_second(
    somewhere: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MODAL_SERVER_URL", "https://192.0.2.1:443")  # RFC 5737: nobody has it

    def silence(*_: object, **__: object) -> None:
        time.sleep(1.2)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", silence)
    began = time.monotonic()
    assert preflight.check()
    assert time.monotonic() - began < 1


@pytest.mark.parametrize("version", ["1.5.9", "1.7.0", "2.0"])
def test_a_client_that_this_release_was_not_tried_with_is_told(monkeypatch: pytest.MonkeyPatch, version: str):
    monkeypatch.setattr("importlib.metadata.version", lambda _name: version)
    assert f"Modal's client is {version}" in refused(preflight.check)


def test_an_import_that_fails_is_told_as_here_before_any_repeat_is_bought(
    service: Service, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
):
    executor = workshop.executor(top="raise RuntimeError('not today')")
    monkeypatch.chdir(workshop.folder)
    text = refused(executor.start)
    told = 'PR130: experiment "lab" could not be imported: RuntimeError: not today'
    assert text.startswith(f"experiments/lab.py:4: {told}")
    assert "a container on Modal" in text
    assert workshop.bodies() == []
    assert service.state()["containers"] == {}
    assert service.events("app_stopped")


def test_a_package_that_the_image_lacks_is_named(service: Service, workshop: Workshop):
    service.set(lacking=["click"])
    text = refused(lambda: workshop.started(top="import click"))
    assert "PR130" in text
    assert "No module named 'click'" in text
    assert "belongs into its image" in text


def test_an_image_in_which_this_package_can_not_run_is_told(service: Service, workshop: Workshop):
    service.set(lacking=["msgspec"])
    text = refused(workshop.started)
    assert text.startswith('PR138: no container of experiment "lab" comes so far as to import it: ')
    assert "No module named 'msgspec'" in text
    assert "Does its image have what pytest-prereg needs" in text
    assert service.state()["containers"] == {}


def test_another_python_is_told(service: Service, workshop: Workshop):
    service.set(python="3.12.1")
    here = f"{sys.version_info.major}.{sys.version_info.minor}."
    text = refused(workshop.started)
    assert text.startswith('PR138: the image of experiment "lab" has Python 3.12.1, and here is ' + here)


def test_an_image_that_can_not_be_built_and_a_container_that_can_not_start_are_told(
    service: Service, workshop: Workshop
):
    service.set(image_failures=["no matching distribution"])
    text = refused(workshop.started)
    assert text.startswith('PR138: the image of experiment "lab" can\'t be built: ')
    assert "no matching distribution" in text
    service.set(crashes=9)
    text = refused(workshop.started)
    assert text.startswith('PR138: no container of experiment "lab" comes so far as to import it: ')


def test_a_volume_that_is_not_there_is_told(workshop: Workshop):
    text = refused(lambda: workshop.started(modal=ModalTable(volumes={"/weights": "none"})))
    assert text.startswith('PR139: Modal can\'t run experiment "lab" as it asks to be run: ')
    assert "none" in text


def test_what_arms_ask_for_is_what_their_containers_have(service: Service, workshop: Workshop):
    service.secret("hub", HUB="x")
    service.volume("weights")
    small, large = Resources(gpu="L4", cpu=2.0, memory=4 << 30), Resources(gpu="H100:2")
    modal = ModalTable(region="us-east", secrets=["hub"], volumes={"/weights": "weights"})
    executor = workshop.started(resources={"one": small, "same": small, "other": large}, modal=modal)
    first, second, look = service.events("function")
    assert [each["function"] for each in (first, second, look)] == ["run_0", "run_1", "look"]
    assert (first["gpu"], first["gpus"], first["milli_cpu"], first["memory_mb"]) == ("L4", 1, 2000, 4096)
    assert (second["gpu"], second["gpus"]) == ("H100", 2)
    for each in (first, second, look):
        assert each["single_use"]
        assert each["retries"] == 0
        assert each["regions"] == ["us-east"]
        assert each["volumes"].keys() == {"/weights"}
        assert each["secrets"]
        assert each["timeout"] > 20
    app = service.events("app_created")[-1]
    assert (app["state"], app["tags"]) == ("detached", {"study": "study", "experiment": "lab"})
    service.set(rates=RATES)
    assert executor.rates() == pytest.approx(
        {"one": 0.8 + 2 * 0.05 + 4 * 0.01, "same": 0.94, "other": 8.0 + 0.05 / 8 + 0.01 / 8}
    )
    assert executor.about["backend"] == "modal"
    assert executor.about["modal"].startswith("1.6")
    assert TOKEN_SECRET not in str(executor.about)


RATES = {
    "gpu_hour_cost_l4": "0.8",
    "gpu_hour_cost_h100": "4.0",
    "cpu_hour_cost": "0.05",
    "mem_gib_hour_cost": "0.01",
}
