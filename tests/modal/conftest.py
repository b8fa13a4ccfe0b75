"""A stand-in for Modal that tests talk to with the unmodified client; without the client there is nothing to test."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from modal_studies import Workshop
    from standin_handle import Service


def is_there(name: str) -> bool:
    """Not so a mere folder of that name, such as this one."""
    found = importlib.util.find_spec(name)
    return found is not None and found.origin is not None


MISSING = [name for name in ("modal", "aiohttp") if not is_there(name)]


class WithoutModal(pytest.Module):
    """A file of tests that can't be imported here: skipped, or failed where PREREG_MODAL says so."""

    def collect(self) -> list[pytest.Item]:
        reason = f"needs {' and '.join(MISSING)}: pip install --group modal"
        if os.environ.get("PREREG_MODAL") == "required":
            raise self.CollectError(f"PREREG_MODAL=required, but {self.path.name} {reason}")
        pytest.skip(reason, allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    if MISSING:
        return WithoutModal.from_parent(parent, path=module_path)
    os.environ["MODAL_CONFIG_PATH"] = os.devnull  # read when modal is imported
    return None


@pytest.fixture(scope="session")
def standin() -> Iterator[Service]:
    """One process for all tests, at one address: in one process the client doesn't change its server."""
    from standin_handle import Service

    service = Service()
    yield service
    service.close()


@pytest.fixture
def service(standin: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """An empty account; this process and those that it starts are its clients."""
    standin.reset()
    for name in [*os.environ]:
        if name not in standin.environment:
            monkeypatch.delenv(name)
    for name, value in standin.variables.items():
        monkeypatch.setenv(name, value)
    yield standin
    standin.reset()


@pytest.fixture
def running(service: Service) -> Iterator[Callable[..., Any]]:
    """``running(body, ...)``: a function of a detached app that runs until the test has ended."""
    import modal

    image = modal.Image.debian_slim().add_local_python_source("standin_bodies")
    with ExitStack() as stack:

        def run(body: Callable[..., Any], **options: Any) -> Any:
            asked = {"image": image, "timeout": 30, "retries": 0, "single_use_containers": True, **options}
            app = modal.App(f"runs {body.__name__}", tags={"study": "small"})
            function = app.function(serialized=True, name=body.__name__, **asked)(body)
            stack.enter_context(app.run(detach=True))
            return function

        yield run


@pytest.fixture
def client(service: Service) -> Callable[[str], str]:
    """``client(program)``: what the program prints in another process, with ``modal`` imported."""

    def run(program: str) -> str:
        command = [sys.executable, "-c", f"import modal\n{program}"]
        done = subprocess.run(command, env=service.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


@pytest.fixture
def workshop(
    service: Service,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Workshop]:
    """Studies that run on the stand-in."""
    import tempfile

    from modal_studies import Workshop

    # What local repeats that failed have printed is kept; pytest removes it in time.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("tmp")))
    made = Workshop(tmp_path)
    yield made
    made.close()
