"""The stand-in as tests hold it: a process, its address for clients, its record, and what is to go wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
TOKEN_ID, TOKEN_SECRET = "ak-stand-in", "as-never-to-be-seen"
UNWANTED = ("MODAL_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


class Service:
    """A stand-in that runs; ``close`` ends it with everything below it."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, str(HERE / "standin.py"), "--with", str(os.getpid()), *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        first = self.process.stdout.readline()
        assert first, "the stand-in ended as it started"
        addresses = json.loads(first)
        self.url, self.admin = addresses["server"], addresses["admin"]

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()

    @property
    def variables(self) -> dict[str, str]:
        """What a client's environment has to say."""
        return {
            "MODAL_SERVER_URL": self.url,
            "MODAL_TOKEN_ID": TOKEN_ID,
            "MODAL_TOKEN_SECRET": TOKEN_SECRET,
            "MODAL_CONFIG_PATH": os.devnull,
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }

    @property
    def environment(self) -> dict[str, str]:
        """A whole environment for a client, without what this one says of Modal and proxies."""
        kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(UNWANTED)}
        return {**kept, **self.variables}

    # What happened

    def state(self) -> dict[str, Any]:
        """``events``, ``requests`` (how many of each), ``missing`` (what it has no answer for), ``containers`` and
        ``sandboxes`` that live (with their pid), and ``apps``."""
        return self._ask("/state")

    def events(self, kind: str, **like: object) -> list[dict[str, Any]]:
        """What of that kind happened so far, in order, each with its time (``at``)."""
        found = [each for each in self.state()["events"] if each["event"] == kind]
        return [each for each in found if like.items() <= each.items()]

    def log(self, container: str) -> str:
        """What a container wrote: to standard output, and then to standard error."""
        return self._ask(f"/log/{container}")

    def begun(self) -> int:
        """How often a container was given an input: so often a body can have run."""
        return len(self.events("input_started"))

    def begun_of(self, call: str) -> int:
        """How often an input of that call, as evidence names it, was given to a container."""
        return len(self.events("input_started", call=call.partition("@")[0]))

    def wait_for(self, condition: Callable[[], Any], seconds: float = 15.0) -> Any:
        """What ``condition`` returns once that is true; it is the caller's to bind to this service."""
        end = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < end, f"waited in vain; so far: {self.state()['events']}"
            time.sleep(0.02)
        return found

    def wait_until(self, kind: str, count: int = 1, seconds: float = 15.0, **like: object) -> dict[str, Any]:
        """The last of so many events of that kind, as soon as there are."""
        self.wait_for(lambda: len(self.events(kind, **like)) >= count, seconds)
        return self.events(kind, **like)[count - 1]

    # What goes wrong

    def preempt(self, container: str = "", grace: float = 2.0) -> list[str]:
        """SIGINT now, SIGKILL after the grace, the input again elsewhere; returns which containers that befell."""
        return self._do("strike", how="preempt", container=container, grace=grace)["containers"]

    def kill(self, container: str = "") -> list[str]:
        """Containers that have an input end at once; the client is told that the runner failed."""
        return self._do("strike", how="kill", container=container)["containers"]

    def lose_machine(self, container: str = "") -> list[str]:
        """The client is told of an internal failure."""
        return self._do("strike", how="internal_failure", container=container)["containers"]

    def plan(self, how: str, after: float = 0.0, times: int = 1, grace: float = 2.0) -> None:
        """The same for the next inputs, so long after each has begun; ``lose``: its output never comes."""
        self._do("plan", how=how, after=after, times=times, grace=grace)

    def fail(self, rpc: str, status: str = "UNAVAILABLE", times: int = 1, **more: Any) -> None:
        """A request is answered with an error, and its ``message``, after ``delay``; with ``OK`` only late.

        With ``linger`` what it asks for is done at once, and its answer comes so much later.
        """
        self._do("fail", rpc=rpc, status=status, times=times, **more)

    def limit(self, rpc: str, per_second: float, burst: float = 1.0) -> None:
        """More requests than that are answered with RESOURCE_EXHAUSTED."""
        self._do("limit", rpc=rpc, per_second=per_second, burst=burst)

    def leave(self, seconds: float | None = None) -> None:
        """Drops all connections and refuses new ones, for so long or for good; containers run on."""
        self._do("leave", seconds=seconds)

    def come_back(self) -> None:
        self._do("return")

    def set(self, **values: Any) -> None:
        """``queue_seconds`` before a container starts, ``crashes`` (so many containers end as they start),
        ``python`` (the version that containers claim), ``lacking`` (modules they can't import),
        ``image_failures`` (what the next builds say), ``rates``, ``region``, ``provider``, ``most_containers``,
        ``dead_client_after``."""
        self._do("set", **values)

    def secret(self, name: str, **values: str) -> None:
        self._do("secret", name=name, values=values)

    def volume(self, name: str) -> None:
        self._do("volume", name=name)

    def forget(self, call: str) -> None:
        """Of a call that it no longer knows, the service says that there is none."""
        self._do("forget", call=call)

    def reset(self) -> None:
        """Ends everything that runs; the account is empty, nothing goes wrong, and the address is the same."""
        self._do("reset")

    def _do(self, what: str, **arguments: Any) -> Any:
        return self._ask(f"/{what}", json.dumps(arguments).encode())

    def _ask(self, path: str, body: bytes | None = None) -> Any:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.admin + path, body, headers)
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with direct.open(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as problem:
            raise ValueError(problem.read().decode()) from None


def lives(pid: int) -> bool:
    """Whether that process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
