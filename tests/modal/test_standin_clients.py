"""The stand-in's clients in processes of their own: how they are configured, and what becomes of apps as they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from standin_handle import TOKEN_SECRET, lives

if TYPE_CHECKING:
    from collections.abc import Callable

    from standin_handle import Service

HERE = str(Path(__file__).parent)


PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
import standin_bodies
app = modal.App("its client dies")
image = modal.Image.debian_slim().add_local_python_source("standin_bodies")
sleep = app.function(serialized=True, name="sleep", image=image, single_use_containers=True)(standin_bodies.sleep)
with app.run(detach={detach}):
    call = sleep.spawn(60)
    print(call.object_id, app.app_id, flush=True)
    call.get()
"""


def dying_client(service: Service, number: int, *, detach: bool) -> str:
    """The app of a client that was sent that signal while a body ran."""
    program = "import modal\n" + PROGRAM.format(folder=str(Path(__file__).parent), detach=detach)
    client = subprocess.Popen(
        [sys.executable, "-c", program], env=service.environment, stdout=subprocess.PIPE, text=True
    )
    with client:
        assert client.stdout
        _, app = client.stdout.readline().split()
        service.wait_until("input_started")
        client.send_signal(number)
    return app


def test_a_detached_app_outlives_its_client_until_it_is_stopped(
    service: Service, client: Callable[[str], str]
):
    app = dying_client(service, signal.SIGKILL, detach=True)
    service.set(dead_client_after=0.1)
    time.sleep(0.5)
    assert len(service.state()["containers"]) == 1
    command = f"sys.argv = ['modal', 'app', 'stop', '--yes', {app!r}]"
    client(f"import sys\n{command}\nfrom modal.__main__ import main\nmain()")
    service.wait_until("container_ended")
    assert service.state()["apps"][app]["stopped"]


def test_an_app_that_is_not_detached_ends_as_its_client_is_interrupted(service: Service):
    app = dying_client(service, signal.SIGINT, detach=False)
    service.wait_until("container_ended")
    assert service.state()["apps"][app]["stopped"] == "client disconnected"


def test_an_app_that_is_not_detached_ends_with_its_client(service: Service):
    app = dying_client(service, signal.SIGKILL, detach=False)
    service.set(dead_client_after=0.1)
    service.wait_until("container_ended")
    assert service.state()["apps"][app]["stopped"] == "client heartbeat lost"


DEPLOYING = f"""
import sys
sys.path.insert(0, {HERE!r})
import standin_bodies
app = modal.App("deployed")
image = modal.Image.debian_slim().add_local_python_source("standin_bodies")
body = app.function(serialized=True, name="environment", image=image, timeout=20)(standin_bodies.environment)
app.deploy()
"""

CALLING = """
from modal import Function
print(Function.from_name("deployed", "environment").with_options(gpu="A100", timeout=7).remote("MODAL_REGION"))
"""


def test_a_deployed_app_is_there_for_other_clients_and_variants(
    service: Service, client: Callable[[str], str]
):
    client(DEPLOYING)
    assert client(CALLING) == "standin-1"
    (variant,) = service.events("variant")
    assert (variant["gpu"], variant["timeout"]) == ("A100", 7)
    assert [each["status"] for each in service.events("output")] == ["success"]


ASKING = """
import modal
try:
    print(*modal.Workspace.from_context().billing.rates())
except modal.exception.Error as problem:
    print(type(problem).__name__)
"""


def asking(environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ASKING],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_client_is_configured_as_any_is(service: Service, tmp_path: Path):
    """By a file; past a proxy only where NO_PROXY says so; not at all without a token."""
    keys = f'token_id = "ak-x"\ntoken_secret = "{TOKEN_SECRET}"'
    (tmp_path / "modal.toml").write_text(f'[default]\nserver_url = "{service.url}"\n{keys}\n')
    service.set(rates={"gpu_l4": "1"})
    bare = {name: value for name, value in service.environment.items() if not name.startswith("MODAL_")}
    nobody = "http://127.0.0.1:9"
    runs = [
        asking({**bare, "MODAL_CONFIG_PATH": str(tmp_path / "modal.toml")}),
        asking({**service.environment, "HTTP_PROXY": nobody, "http_proxy": nobody}),
        asking({**bare, "MODAL_CONFIG_PATH": os.devnull, "MODAL_SERVER_URL": service.url}),
        asking({**service.environment, "MODAL_LOGLEVEL": "DEBUG"}),
    ]
    said = [run.communicate(timeout=30) for run in runs]
    assert [output.strip() for output, _ in said] == ["gpu_l4", "gpu_l4", "AuthError", "gpu_l4"]
    assert TOKEN_SECRET not in str(said)


def wait_for(condition: Callable[[], Any], seconds: float = 15.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_nothing_is_left_where_whoever_started_the_stand_in_is_killed(tmp_path: Path):
    program = f"""
        import os, sys, time
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import standin_bodies
        from standin_handle import Service
        service = Service()
        os.environ.update(service.variables)
        import modal
        app = modal.App("left behind")
        image = modal.Image.debian_slim().add_local_python_source("standin_bodies")
        body = app.function(serialized=True, name="orphaning", image=image)(standin_bodies.orphaning)
        with app.run(detach=True):
            body.spawn({str(tmp_path / "orphan")!r})
            service.wait_until("input_started")
            print(service.process.pid, *service.state()["containers"].values(), flush=True)
            time.sleep(60)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout
        pids = [int(each) for each in starter.stdout.readline().split()]
        wait_for(lambda: (tmp_path / "orphan").exists() and (tmp_path / "orphan").read_text())
        pids.append(int((tmp_path / "orphan").read_text()))
        assert all(lives(each) for each in pids)
        starter.kill()
    wait_for(lambda: not any(lives(each) for each in pids))
