"""A service is there before the body begins, is never its time, never outlives it, and excuses little."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from laboratories import Herd, job
from test_process_trees import alarm_after

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.executors.ports import LOWEST_PORT, free_port
from pytest_prereg.measure.executors.services import OutputSearch

SERVER = """
import http.server, json, os, signal, subprocess, sys, time

options = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
if options.get("child"):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
if options.get("deaf"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(options.get("slow", 0))
unready = options.get("unready", 0)

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global unready
        if self.path == "/die":
            os._exit(7)
        unready -= 1
        self.send_response(503 if unready >= 0 else options.get("status", 200))
        self.end_headers()
        self.wfile.write(json.dumps([sys.argv[1:], os.environ.get("ARM")]).encode())

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("listening now", flush=True)
server.serve_forever()
"""

ASK = """
import json, urllib.request
def ask(path="/", port=None):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
        return json.load(answer)
def stop(port):
    try:
        ask("/die", port)
    except Exception:
        time.sleep(0.1)
"""

GOOD = "repeat.record('seen', ask(port=repeat.service_port)); repeat.record('t', 1)"


@pytest.fixture
def serve(laboratory):
    """``serve(body, ready=…, options={…})``: runs a repeat beside a small server."""
    path = laboratory.folder / "server.py"
    path.write_text(SERVER)

    def run(body: str = GOOD, *, options: dict | None = None, ready: str | None = None, **keys):
        command = [sys.executable, str(path), "{port}", *([json.dumps(options)] if options else [])]
        service = {"command": keys.pop("command", command), "timeout": keys.pop("within", "20 s")}
        service |= {"ready": ready} if ready else {}
        return laboratory.run(body, service=service, top=ASK + keys.pop("top", ""), **keys)

    return run


@pytest.mark.parametrize("ready", [None, "tcp", "http://127.0.0.1:{port}/", "listening now"])
def test_a_body_finds_its_service_ready(serve, ready):
    result = serve(ready=ready, options={"slow": 0.3})
    assert result.outcome is Outcome.OK, result
    assert result.values == {"t": 1.0}
    assert "leftover_processes" not in result.diagnostics


def test_its_start_is_no_time_of_the_body_nor_of_the_launch(serve):
    seconds = serve(options={"slow": 0.8}).seconds
    assert seconds["service"] >= 0.8
    assert seconds["body"] < 0.8
    assert seconds["launch"] < 0.8
    assert seconds["launch"] + seconds["service"] + seconds["body"] <= seconds["total"]


def test_an_address_that_says_it_is_at_fault_is_not_ready(serve):
    result = serve(ready="http://localhost:{port}/health", options={"unready": 4})
    assert result.outcome is Outcome.OK
    # What else it says is an answer.
    assert (
        serve(
            ready="http://localhost:{port}/x?y={port}", options={"status": 404}, body="repeat.record('t', 1)"
        ).outcome
        is Outcome.OK
    )


def test_parameters_are_filled_in_and_lists_become_arguments(serve, laboratory, make_job):
    command = [
        sys.executable,
        str(laboratory.folder / "server.py"),
        "{port}",
        '{"slow": {slow}}',
        "{names}",
        "--{flag}={{port}}",
    ]
    executor = laboratory.executor(GOOD, top=ASK, service={"command": command})
    executor.start()
    params = {"slow": 0.1, "names": ["a b", "c"], "flag": True}
    result = executor.run(make_job(executor, params=params))
    assert result.outcome is Outcome.OK, result
    assert result.diagnostics["seen"][0][1:] == ['{"slow": 0.1}', "a b", "c", "--true={port}"]


def test_a_service_has_the_environment_of_its_arm(serve):
    assert serve(arms={"one": {"ARM": "1"}}).diagnostics["seen"][1] == "1"


def test_without_a_service_there_is_no_port(laboratory):
    result = laboratory.run("repeat.record('port', repeat.service_port); repeat.record('t', 1)")
    assert result.diagnostics["port"] is None
    assert "service" not in result.seconds


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"command": ["/no/such/server", "{port}"]}, "could not be started: [Errno 2] No such file"),
        ({"command": ["sh", "-c", "echo out of memory; exit 3"]}, "ended with status 3\nout of memory"),
        ({"command": ["sh", "-c", "kill -SEGV $$"]}, "ended by SIGSEGV"),
        ({"options": {"slow": 60}, "within": "300 ms"}, "was not ready within 0.3 s"),
        (
            {"options": {"unready": 999}, "ready": "http://localhost:{port}", "within": 2},
            "was not ready within 2 s\nlistening now",
        ),
        ({"ready": "never said", "within": 2}, "was not ready within 2 s\nlistening now"),
    ],
)
def test_a_service_that_does_not_come_up_is_no_fault_of_the_body_which_never_runs(
    serve, laboratory, keys, told
):
    began = laboratory.folder / "began"
    result = serve(f"Path({str(began)!r}).touch()", **keys)
    assert (result.outcome, result.cause) == (Outcome.INFRASTRUCTURE, "service")
    assert told in result.error
    assert not began.exists()
    assert "body" not in result.seconds


def test_a_port_that_somebody_took_meanwhile_is_given_up_for_another(serve):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        taken = other.getsockname()[1]
        draws = f"""
from pytest_prereg.measure.executors import services
services.free_port = iter([{taken}, {taken}, {free_port()}]).__next__
"""
        result = serve(top=draws)
    assert result.outcome is Outcome.OK, result
    assert result.diagnostics["seen"][0][0] != str(taken)


# A service that dies while the body runs


@pytest.mark.parametrize(
    ("then", "outcome", "cause"),
    [
        ("ask(port=repeat.service_port)", Outcome.INFRASTRUCTURE, "service"),
        ("os._exit(1)", Outcome.INFRASTRUCTURE, "service"),
        ("time.sleep(60)", Outcome.INFRASTRUCTURE, "service"),
        ("repeat.record('t', 1)", Outcome.OK, None),
        ("pass", Outcome.INVALID, 'metric "t" was not recorded'),
        ("repeat.record('t', 1); ask(port=repeat.service_port)", Outcome.TASK_FAILED, "service"),
        ("repeat.record('t', 1); os._exit(1)", Outcome.TASK_FAILED, "service"),
        ("repeat.record('t', 1); time.sleep(60)", Outcome.TIMEOUT, "deadline"),
        ("repeat.record('other', 1); ask(port=repeat.service_port)", Outcome.INFRASTRUCTURE, "service"),
    ],
)
def test_a_body_whose_service_died_is_excused_only_if_it_has_finished_nothing(serve, then, outcome, cause):
    result = serve(f"stop(repeat.service_port)\n{then}", timeout=1.5)
    assert (result.outcome, result.cause) == (outcome, cause)
    if cause == "service":
        assert "the service ended with status 7\nlistening now" in result.error


def test_a_failure_beside_a_service_that_runs_is_the_bodys_own(serve):
    result = serve("raise RuntimeError('mine')")
    assert (result.outcome, result.cause) == (Outcome.TASK_FAILED, "exception")
    assert serve("time.sleep(60)", timeout=0.3).outcome is Outcome.TIMEOUT


# Nothing of it outlives the repeat


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("repeat.record('t', 1)", Outcome.OK),
        ("raise RuntimeError", Outcome.TASK_FAILED),
        ("time.sleep(60)", Outcome.TIMEOUT),
        ("os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)", Outcome.INFRASTRUCTURE),
    ],
)
def test_it_ends_with_its_repeat_and_so_does_what_it_started(laboratory, herd, serve, body, outcome):
    options = '{"child": true, "deaf": true}'
    service = {"command": [sys.executable, str(laboratory.folder / "server.py"), "{port}", options]}
    executor = laboratory.executor(body, service=service, timeout=0.7, environ=herd.environ)
    executor.start()
    result = executor.run(job(executor))
    assert result.outcome is outcome
    assert len(herd.pids()) == 1, "more than the server of forks is left"
    assert "leftover_processes" not in result.diagnostics


def test_what_the_body_left_is_counted_without_the_service(serve):
    result = serve(f"{GOOD}\nif os.fork() == 0: time.sleep(60)", options={"child": True})
    assert result.diagnostics["leftover_processes"] == 1


def test_an_interrupt_while_it_starts_leaves_nothing(laboratory, make_job, herd, serve):
    service = {
        "command": [
            sys.executable,
            str(laboratory.folder / "server.py"),
            "{port}",
            '{"slow": 60, "child": true}',
        ]
    }
    executor = laboratory.executor("pass", service=service, environ=herd.environ)
    executor.start()
    with pytest.raises(KeyboardInterrupt), alarm_after(0.8):
        executor.run(make_job(executor))
    began = time.monotonic()
    executor.close()
    assert time.monotonic() - began < 2
    assert herd.pids() == []


CLIENT = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from laboratories import Laboratory, job

executor = Laboratory(Path({folder!r})).executor("time.sleep(60)", service={service!r})
executor.start()
executor.run(job(executor))
"""


@pytest.mark.parametrize("victim", ["client", "server", "supervisor", "service"])
@pytest.mark.parametrize("moment", ["starting", "running"])
def test_kill_9_leaves_no_service_behind(laboratory, serve, wait_until, victim, moment):
    herd = Herd()
    options = json.dumps({"child": True, "slow": 60 if moment == "starting" else 0})
    service = {"command": [sys.executable, str(laboratory.folder / "server.py"), "{port}", options]}
    program = CLIENT.format(tests=str(Path(__file__).parent), folder=str(laboratory.folder), service=service)
    client = subprocess.Popen([sys.executable, "-c", program], env=herd.environ)
    # Client, server, supervisor, service, its child; and once it runs, the body.
    wait_until(lambda: len(herd.pids()) >= (5 if moment == "starting" else 6), seconds=20)
    time.sleep(random.uniform(0, 0.1))
    (found,) = (pid for pid in herd.pids() if program_of(pid).endswith("server.py"))
    supervisor = parent(found)
    pids = {"client": client.pid, "server": parent(supervisor), "supervisor": supervisor, "service": found}
    os.kill(pids[victim], signal.SIGKILL)
    if victim == "service" and moment == "running":
        wait_until(lambda: not alive(found))
        client.kill()  # the body has not noticed
    client.wait(20)
    wait_until(lambda: not herd.pids())


def program_of(pid: int) -> str:
    """The script that a Python process runs."""
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[1]


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def test_the_output_of_a_service_is_kept_where_it_may_explain_a_failure(laboratory, make_job, serve):
    service = {"command": [sys.executable, str(laboratory.folder / "server.py"), "{port}"]}
    executor = laboratory.executor("if params: raise RuntimeError\nrepeat.record('t', 1)", service=service)
    executor.start()
    folder = next(iter(executor._servers.values())).folder
    executor.run(make_job(executor))
    assert not list(folder.glob("*.service.log"))
    executor.run(make_job(executor, params={"fail": True}))
    assert [file.read_text() for file in folder.glob("*.service.log")] == ["listening now\n"]


# Ports and output


def test_a_free_port_is_not_one_that_the_kernel_hands_out():
    highest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = {free_port() for _ in range(20)}
    assert len(ports) > 10
    if highest > LOWEST_PORT:
        assert all(LOWEST_PORT <= port < highest for port in ports)


def test_a_text_is_found_across_looks_and_after_the_output_was_cut_back(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"x" * 100 + b"I am re")
    search = OutputSearch(path, "ready")
    assert not search.found()
    with path.open("ab") as file:
        file.write(b"ady")
    assert search.found()
    assert not search.found()
    path.write_bytes(b"ready")
    assert search.found()
