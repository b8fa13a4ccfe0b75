"""Real commands, run as repeats: what they took, what they left behind, and how they end."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.fixtures import Runner
from pytest_prereg.measure.executors.base import TRACES
from pytest_prereg.measure.executors.local import LocalExecutor
from pytest_prereg.registry.load import load_study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_prereg.measure.executors.base import Result

WALL = 'claim = "c"\nexperiment = "e"\nquantity = "{}"\npredicts = "<= 1 {}"\nfalsifier = "> 1 {}"\n'


@pytest.fixture
def run(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., list[Result]]]:
    """Runs a command as repeats of an experiment; further keys of its table are TOML."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("tmp")))
    started: list[LocalExecutor] = []

    def run(*command: str, keys: str = "", n: int = 1, quantity: str = "", checkout=None) -> list[Result]:
        text = f'[study]\nid = "s"\n[experiments.e]\nrepeats = 3\ncommand = {json.dumps(command)}\n{keys}\n'
        unit = {"max_rss": "byte"}.get(quantity, "s")
        text += f"[predictions.p]\n{WALL.format(quantity, unit, unit)}" if quantity else ""
        (tmp_path / "predictions.toml").write_text(text)
        study = load_study(tmp_path / "predictions.toml")
        executor = LocalExecutor(study, study.experiments["e"], checkout=checkout)
        started.append(executor)
        executor.start()
        return Runner(study, study.experiments["e"], executor).run(n)

    yield run
    for executor in started:
        executor.close()


def python(program: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program, *arguments)


def test_what_a_command_took_is_recorded_without_being_declared(run):
    spin = "import time\nwhile time.process_time() < 0.1: pass\nx = bytearray(100 << 20)\ntime.sleep(0.05)"
    (result,) = run(*python(spin))
    assert result.outcome is Outcome.OK, result
    values = result.values
    assert 0.15 <= values["wall"] < 5
    assert 0.1 <= values["user"] + values["system"] <= values["wall"]
    assert 100 << 20 <= values["max_rss"] < 200 << 20
    assert values["exit_code"] == 0
    takers = {"wall": "wall-clock", "user": "cpu-time", "system": "cpu-time", "max_rss": "peak-memory"}
    assert result.instruments == takers


def test_a_status_other_than_0_is_a_failure_with_the_end_of_the_output(run):
    (result,) = run("sh", "-c", "echo to be read; echo and why >&2; exit 3")
    assert (result.outcome, result.cause) == (Outcome.TASK_FAILED, "exit")
    assert result.error == "exited with status 3\nto be read\nand why"
    assert result.values["exit_code"] == 3


def test_a_failure_tells_the_end_of_what_would_have_been_read_as_well(run):
    keys = 'read = { file = "-", format = "json" }\nmetrics = { n = "1" }'
    (result,) = run("sh", "-c", "echo to be read; echo and why >&2; exit 3", keys=keys)
    assert result.error == "exited with status 3\nto be read\nand why"


def test_a_status_that_the_study_declares_is_data(run):
    (result,) = run("sh", "-c", "exit 3", keys='metrics = { exit_code = "1" }')
    assert (result.outcome, result.values["exit_code"]) == (Outcome.OK, 3)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("no-such-program", "no such program on PATH"),
        ("./predictions.toml", "Permission denied"),
        ("./nothing", "No such file or directory"),
    ],
)
def test_a_command_that_cannot_be_started_says_so_in_a_line_that_names_it(run, command, why):
    (result,) = run(command)
    assert (result.outcome, result.cause) == (Outcome.TASK_FAILED, "exit")
    assert result.error == f'"{command}" could not be started: {why}'
    assert result.values == {}


def test_what_dies_of_a_signal_failed_and_has_no_status(run):
    (result,) = run("sh", "-c", "kill -SEGV $$", keys='metrics = { exit_code = "1" }')
    assert (result.outcome, result.cause) == (Outcome.TASK_FAILED, "signal")
    assert "exit_code" not in result.values


def test_what_is_killed_from_outside_is_run_again_as_functions_are(run):
    (result,) = run("sh", "-c", "kill -KILL $$")
    assert (result.outcome, result.cause) == (Outcome.INFRASTRUCTURE, "killed")
    assert result.values == {}


def test_at_the_deadline_all_that_a_command_started_is_killed(run, tmp_path, wait_until):
    command = f"sleep 100 & echo $! > {tmp_path}/pid; setsid sleep 100 & echo $! >> {tmp_path}/pid; wait"
    (result,) = run("sh", "-c", command, keys='timeout = "0.5 s"')
    assert (result.outcome, result.cause) == (Outcome.TIMEOUT, "deadline")
    pids = (tmp_path / "pid").read_text().split()
    assert len(pids) == 2
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_what_a_command_leaves_running_is_killed_and_counted(run, tmp_path, wait_until):
    (result,) = run("sh", "-c", f"sleep 100 & echo $! > {tmp_path}/pid")
    assert (result.outcome, result.diagnostics["leftover_processes"]) == (Outcome.OK, 1)
    wait_until(lambda: not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists())


def test_arguments_are_filled_and_lists_spliced_with_what_they_name_in_turn(run):
    program = "import json, sys; print(json.dumps({'n': len(sys.argv)})); open(sys.argv[-2] + '/seen', 'w')"
    program += "; assert sys.argv[1:4] == ['a=0.5', '{' + 'x}', 'true'], sys.argv; assert int(sys.argv[-1])"
    keys = 'params = { a = 0.5, flag = true, more = ["--to", "{out}", "{port}"] }\n'
    keys += 'read = { file = "-", format = "json" }\nmetrics = { n = "1" }'
    (result,) = run(*python(program, "a={a}", "{{x}}", "{flag}", "{more}"), keys=keys)
    assert result.outcome is Outcome.OK, result
    assert result.values["n"] == 7


def test_out_is_an_empty_folder_of_each_repeat_and_gone_after_it(run, tmp_path):
    check = f'test -z "$(ls "$0")" && touch "$0/x" && echo "$0" >> {tmp_path}/folders'
    results = run("sh", "-c", check, "{out}", n=3)
    assert [result.outcome for result in results] == [Outcome.OK] * 3
    folders = (tmp_path / "folders").read_text().split()
    assert len(set(folders)) == 3
    assert not any(Path(folder).exists() for folder in folders)


@pytest.mark.parametrize(
    ("file", "target"), [("r.json", "{out}/r.json"), ("{name}.json", "kept.json"), ("{out}/x.json", "{out}/x.json")]
)  # fmt: skip
def test_a_result_lies_below_out_unless_its_path_begins_otherwise(run, file, target):
    keys = f'read = {{ file = "{file}", format = "json" }}\nparams = {{ name = "kept" }}\n'
    keys += 'metrics = { loss = { from = "a.b", unit = "nat" } }'
    (result,) = run("sh", "-c", 'echo \'{"a": {"b": 0.25}}\' > "$0"; : {name}', target, keys=keys)
    assert (result.outcome, result.values.get("loss")) == (Outcome.OK, 0.25), result


def test_a_result_that_was_there_before_is_none_of_this_repeat(run, tmp_path):
    (tmp_path / "old.json").write_text('{"n": 1}')
    keys = f'read = {{ file = "{tmp_path}/old.json", format = "json" }}\nmetrics = {{ n = "1" }}'
    (result,) = run("true", keys=keys)
    assert result.outcome is Outcome.INVALID
    assert "was there before, and the command left it as it was" in result.cause
    (result,) = run("sh", "-c", f"echo '{{\"n\": 2}}' > {tmp_path}/old.json", keys=keys)
    assert (result.outcome, result.values["n"]) == (Outcome.OK, 2)


def test_what_a_result_lacks_makes_the_repeat_invalid_and_the_rest_is_kept(run):
    keys = 'read = { file = "-", format = "json" }\nmetrics = { n = "1", loss = "nat" }'
    (result,) = run("echo", '{{"n": 1}}', keys=keys)
    assert result.outcome is Outcome.INVALID
    assert "loss" in result.cause
    assert result.values["wall"] > 0


def test_a_command_finds_what_a_shell_would_give_it(run):
    program = """
import os, sys
assert sys.stdin.read() == ""
assert sorted(os.listdir("/proc/self/fd")) == ["0", "1", "2", "3"], os.listdir("/proc/self/fd")
assert os.path.exists("predictions.toml") and os.environ["COLOUR"] == "red"
"""
    (result,) = run(*python(program), keys='env = { COLOUR = "red" }')
    assert result.outcome is Outcome.OK, result


def test_a_pipe_that_nobody_reads_ends_what_a_command_starts(run):
    # SIGPIPE is bit 12; others may be ignored by whoever started all of this, as nohup does.
    (result,) = run("sh", "-c", "grep -Eq 'SigIgn:.*[02468ace][0-9a-f]{3}$' /proc/self/status")
    assert result.outcome is Outcome.OK, result


def test_a_command_and_its_server_have_one_port(run):
    server = f'["{sys.executable}", "-m", "http.server", "--bind", "127.0.0.1", "{{port}}"]'
    program = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=5)"
    keys = f'service = {{ command = {server}, ready = "http://127.0.0.1:{{port}}/" }}'
    (result,) = run(*python(program, "http://127.0.0.1:{port}/"), keys=keys)
    assert result.outcome is Outcome.OK, result


def test_memory_below_that_of_what_started_the_command_is_told_as_such(run):
    (result,) = run("true")
    assert result.outcome is Outcome.OK
    assert "max_rss" not in result.values
    assert 1e6 < result.diagnostics["max_rss_at_most"] < 1e8


def test_and_leaves_no_value_to_what_would_be_judged_by_it(run):
    (result,) = run("true", quantity="max_rss")
    assert (result.outcome, result.unreadable) == (Outcome.INVALID, {"max_rss": "peak-memory"})
    assert "the command held no more than the" in result.cause


class Elsewhere:
    """A version in a folder of its own, which a repeat may have left."""

    def __init__(self, folder: Path, problem: str | None) -> None:
        self.folder, self.problem = folder, problem
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")

    def place_of(self, arm: str) -> tuple[str, dict[str, str]]:
        self.calls.append(f"place of {arm!r}")
        return str(self.folder), {"PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}"}

    def problem_of(self, arm: str, workdir: Path) -> str | None:
        self.calls.append(f"{arm!r} ran in {(workdir / 'trace').read_text().strip()}")
        return self.problem

    def close(self) -> None:
        self.calls.append("close")


@pytest.mark.parametrize("problem", [None, "it imports another version"])
def test_a_command_runs_where_its_version_is_and_is_asked_for_what_it_left(run, tmp_path, problem):
    folder = tmp_path / "version"
    folder.mkdir()
    (folder / "tool").write_text(f'#!/bin/sh\npwd > "${TRACES}/trace"\n')
    (folder / "tool").chmod(0o755)
    version = Elsewhere(folder, problem)
    (result,) = run("tool", checkout=version)
    expected = (Outcome.OK, None) if problem is None else (Outcome.INVALID, problem)
    assert (result.outcome, result.cause) == expected, result
    assert version.calls == ["start", "place of ''", f"'' ran in {folder}"]
