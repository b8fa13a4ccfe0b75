"""``pytest --prereg --prereg-executor modal``, from registration to verdict, and after a kill in between."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from standin_handle import TOKEN_ID, TOKEN_SECRET

if TYPE_CHECKING:
    from pathlib import Path

    from standin_handle import Service

BODY = """
from pathlib import Path
import time
from pytest_prereg import experiment

@experiment(metrics={{"t": "s"}})
def lab(repeat, *, wait: float = 0.1) -> None:
    with open({record!r}, "a") as file:
        file.write(f"{{repeat.arm}}/{{repeat.index}}\\n")
    while not Path({gate!r}).exists():
        time.sleep(0.02)
    repeat.record("t", wait * (1 + repeat.seed % int(7 + 1e4 * wait) / 1e5))
"""
STUDY = """
[study]
id = "remote"
[experiments.lab]
fixture = "lab"
executor = "modal"
max-parallel = 3
repeats = 3
timeout = "1 min"
[experiments.lab.arms]
fast = { wait = 0.1 }
slow = { wait = 0.4 }
[predictions.faster]
claim = "Fast is faster than slow."
experiment = "lab"
contrast = "fast / slow"
quantity = "t"
predicts = "<= 0.5"
falsifier = ">= 0.8"
"""
AUTHOR = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
RATES = {"cpu_hour_cost": "0.05", "mem_gib_hour_cost": "0.01"}


class Desk:
    """A study in a repository of its own, and the commands that a person types there."""

    def __init__(self, service: Service, folder: Path) -> None:
        self.folder, self.environ = folder / "study", {**service.environment, **AUTHOR}
        self.record, self.gate = folder / "bodies", folder / "gate"
        path = self.folder / "experiments" / "lab.py"
        path.parent.mkdir(parents=True)
        path.write_text(BODY.format(record=str(self.record), gate=str(self.gate)))
        (self.folder / "predictions.toml").write_text(STUDY)
        for command in (["git", "init", "-q"], [*self.tool("pytest_prereg"), "lock"], ["git", "add", "."]):
            self.run(*command)
        self.run("git", "commit", "-q", "-m", "Register")

    def tool(self, module: str) -> list[str]:
        return [sys.executable, "-m", module]

    def begin(self, *command: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=self.folder, env=self.environ, stdout=pipe, stderr=subprocess.STDOUT, text=True
        )

    def run(self, *command: str) -> str:
        process = self.begin(*command)
        output = process.communicate(timeout=60)[0]
        assert process.returncode == 0, output
        return output

    @property
    def measure(self) -> list[str]:
        options = ["--prereg", "--prereg-executor", "modal", "--prereg-record", "-p", "no:cacheprovider"]
        return [*self.tool("pytest"), *options]

    def bodies(self) -> list[str]:
        return sorted(self.record.read_text().split()) if self.record.exists() else []

    def written(self) -> str:
        files = [path for path in self.folder.rglob("*") if path.is_file() and ".git" not in path.parts]
        return "\n".join(path.read_text(errors="replace") for path in files)


@pytest.fixture
def desk(service: Service, tmp_path: Path) -> Desk:
    return Desk(service, tmp_path)


def test_a_session_that_was_killed_is_gone_on_with_and_no_body_runs_twice(service: Service, desk: Desk):
    service.set(rates=RATES)
    first = desk.begin(*desk.measure)
    service.wait_for(lambda: len(desk.bodies()) == 3)
    first.kill()
    first.communicate()
    desk.gate.touch()
    output = desk.run(*desk.measure)
    assert "+ faster" in output
    assert "$0.00" in output
    assert desk.bodies() == [f"{arm}/{index}" for arm in ("fast", "slow") for index in (1, 2, 3)]
    written = desk.written()
    assert written.count('"attached":true') == 3
    assert written.count('"outcome":"ok"') == 6
    assert '"rates":{"fast":0.0075' in written
    for secret in (TOKEN_ID, TOKEN_SECRET):
        assert secret not in output + written
    assert service.state()["containers"] == {}
