"""GitHub's runner and API as far as ``action.yml`` needs them: its steps are run as they are written there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parents[2]
BOT = "github-actions[bot]"
_BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail")
"""How GitHub's runner starts ``shell: bash``."""
_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_TOKEN = re.compile(r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<path>[A-Za-z_][\w.-]*)|(?P<sign>&&|\|\||==))")


class UnknownExpressionError(Exception):
    """An expression that is not understood here, or names what the action does not declare."""


@dataclass
class Expressions:
    """The contexts of a run. Only what is used of GitHub's expressions is understood; all else fails."""

    inputs: dict[str, str]
    github: dict[str, Any]
    steps: dict[str, dict[str, str]] = field(default_factory=dict)
    """Outputs by step."""

    def expand(self, text: str) -> str:
        return _EXPRESSION.sub(lambda found: str(self.value(found[1]) or ""), text)

    def value(self, expression: str) -> Any:
        tokens = list(_tokens(expression))
        value = self._either(tokens)
        if tokens:
            raise UnknownExpressionError(expression)
        return value

    def _either(self, tokens: list[tuple[str, str]]) -> Any:
        value = self._both(tokens)
        while tokens[:1] == [("sign", "||")]:
            tokens.pop(0)
            other = self._both(tokens)
            value = value or other
        return value

    def _both(self, tokens: list[tuple[str, str]]) -> Any:
        value = self._equal(tokens)
        while tokens[:1] == [("sign", "&&")]:
            tokens.pop(0)
            other = self._equal(tokens)
            value = value and other
        return value

    def _equal(self, tokens: list[tuple[str, str]]) -> Any:
        value = self._operand(tokens)
        if tokens[:1] == [("sign", "==")]:
            tokens.pop(0)
            return value == self._operand(tokens)
        return value

    def _operand(self, tokens: list[tuple[str, str]]) -> Any:
        kind, text = tokens.pop(0) if tokens else ("", "")
        if kind == "text":
            return text[1:-1].replace("''", "'")
        if kind == "path":
            return self._looked_up(text)
        raise UnknownExpressionError(text)

    def _looked_up(self, path: str) -> Any:
        match path.split("."):
            case ["inputs", name] if name in self.inputs:
                return self.inputs[name]
            case ["steps", step, "outputs", name] if step in self.steps:
                return self.steps[step].get(name)
            case ["github", "token"]:
                return self.github["token"]
            case ["github", "event", *names] if names:
                value = self.github["event"]
                for name in names:
                    value = (value or {}).get(name)
                return value
        raise UnknownExpressionError(path)


def _tokens(expression: str) -> Iterator[tuple[str, str]]:
    place, expression = 0, expression.strip()
    while place < len(expression):
        found = _TOKEN.match(expression, place)
        if found is None or found.lastgroup is None:
            raise UnknownExpressionError(expression)
        yield found.lastgroup, found[found.lastgroup]
        place = found.end()


def action() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Ran:
    """What a job showed."""

    status: int
    log: str
    summary: str
    outputs: dict[str, str]
    failed: str | None
    """The name of the step that failed."""


@dataclass
class Job:
    """A job with a checkout. The gate is already installed: as this very package, by a program that keeps a list."""

    workspace: Path
    scratch: Path
    event: dict[str, Any]
    name: str = "pull_request"
    api: str = "http://127.0.0.1:9"
    repository: str = "owner/project"
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.scratch / "gate"

    def calls(self) -> list[str]:
        """How Python was called."""
        return (self.folder / "calls.txt").read_text().splitlines()

    def installed(self) -> None:
        program = self.folder / "environment" / "bin" / "python"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(
            f"#!/bin/sh\nprintf '%s\\n' \"$*\" >>'{self.folder}/calls.txt'\nexec '{sys.executable}' \"$@\"\n"
        )
        program.chmod(0o755)

    def run(
        self,
        done: Mapping[str, dict[str, str]] | None = None,
        action_path: Path = Path("/nowhere"),
        **inputs: str,
    ) -> Ran:
        """Runs the steps of action.yml, but for those that are ``done``, by id, with their outputs."""
        declared = action()
        assert inputs.keys() <= declared["inputs"].keys()
        known = {name: each.get("default", "") for name, each in declared["inputs"].items()} | inputs
        if done is None:
            self.installed()
            done = {"install": {"folder": str(self.folder)}}
        expressions = Expressions(known, {"event": self.event, "token": "t0ken"}, dict(done))
        shown = _Shown(self.scratch)
        failed, status = None, 0
        for step in declared["runs"]["steps"]:
            if step.get("id") in done or not expressions.value(step.get("if", "'true'")):
                continue
            variables = {name: expressions.expand(text) for name, text in step["env"].items()}
            status, outputs = self._step(step, variables, shown, action_path)
            if "id" in step:
                expressions.steps[step["id"]] = outputs
            if status:
                failed = step["name"]
                break
        for step in declared["runs"]["steps"]:
            expressions.steps.setdefault(step.get("id"), {})  # what did not run has no outputs
        given = {name: expressions.expand(each["value"]) for name, each in declared["outputs"].items()}
        return Ran(status, "".join(shown.log), shown.summary.read_text(encoding="utf-8"), given, failed)

    def _step(
        self, step: dict[str, Any], variables: dict[str, str], shown: _Shown, action_path: Path
    ) -> tuple[int, dict[str, str]]:
        assert step["shell"] == "bash"
        script, output = self.scratch / "step.sh", self.scratch / "output"
        script.write_text(step["run"], encoding="utf-8")
        output.write_text("")
        runner = {
            "GITHUB_ACTION_PATH": str(action_path),
            "GITHUB_API_URL": self.api,
            "GITHUB_EVENT_NAME": self.name,
            "GITHUB_OUTPUT": str(output),
            "GITHUB_REF": self.event.get("ref", "refs/pull/7/merge"),
            "GITHUB_REPOSITORY": self.repository,
            "GITHUB_RUN_ID": "1234",
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_STEP_SUMMARY": str(shown.summary),
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_TEMP": str(self.scratch),
            "NO_PROXY": "*",
            "CI": "true",
        }
        done = subprocess.run(
            [*_BASH, str(script)],
            cwd=self.workspace,
            env={**os.environ, **runner, **self.environment, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=120,
        )
        shown.log.append(done.stdout.decode("utf-8", errors="replace"))
        lines = output.read_text(encoding="utf-8").splitlines()
        return done.returncode, dict(line.split("=", 1) for line in lines)


class _Shown:
    """The log and the summary, as they grow."""

    def __init__(self, scratch: Path) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self.log: list[str] = []
        self.summary = scratch / "step-summary.md"
        self.summary.write_text("")


@dataclass
class Api:
    """The comments of one pull request, or the notes of one merge request, behind a loopback address."""

    comments: list[dict[str, Any]] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Method and path of each request."""
    sent: list[dict[str, str]] = field(default_factory=list)
    """What was to be written."""
    headers: list[dict[str, str]] = field(default_factory=list)
    refuses: int | None = None
    """The status that whoever writes gets."""
    answer: bytes | None = None
    """What is said to whoever reads, in place of the comments."""
    url: str = ""

    def add(self, body: str | None, login: str | None = "somebody") -> int:
        user = login and {"id": 1 if login == BOT else 2, "login": login}
        self.comments.append({"id": 1000 + len(self.comments), "body": body, "user": user, "author": user})
        return self.comments[-1]["id"]

    def handled(self, method: str, target: str, body: bytes) -> tuple[int, Any]:
        parts = urlsplit(target)
        self.asked.append((method, target))
        if parts.path == "/user":
            return 200, {"id": 1}
        if method == "GET":
            page = int(parse_qs(parts.query)["page"][0])
            return 200, self.comments[100 * (page - 1) : 100 * page]
        if self.refuses:
            return self.refuses, {"message": "Resource not accessible by integration"}
        content = json.loads(body)
        assert len(content["body"]) <= 65_536
        self.sent.append(content)
        if method == "POST":
            return 201, {"id": self.add(content["body"], BOT)}
        (one,) = (each for each in self.comments if str(each["id"]) == parts.path.rpartition("/")[2])
        one["body"] = content["body"]
        return 200, one


def serving(api: Api) -> ThreadingHTTPServer:
    """A server on a port of its own that answers for ``api``; whoever starts it shuts it down."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            api.headers.append({name.lower(): value for name, value in self.headers.items()})
            status, content = api.handled(self.command, self.path, body)
            text = json.dumps(content).encode()
            if self.command == "GET" and api.answer is not None:
                text = api.answer
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PATCH = do_PUT = _answer  # noqa: N815

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    api.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return server
