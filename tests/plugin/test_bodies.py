"""Whatever an experiment's body does, the run goes on, says what happened, and leaves nothing behind.

All bodies are arms of one experiment, so each runs among the others in random order and must not be disturbed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from textwrap import indent
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from real_study import RealStudy, complaints

from pytest_prereg.cli import main

GOOD = "repeat.record('t', 1 + repeat.index / 1000)"
SLEEPER = "['sleep', '300']"
REPEATS = 3


class Body(NamedTuple):
    """A body, and what has to come of it."""

    code: str
    outcome: str
    cause: str | None = None
    said: str = ""
    """What the verdict line says of it."""
    left: int = 0
    """Processes that it leaves behind."""


def ok(code: str, left: int = 0) -> Body:
    return Body(code, "ok", left=left)


def fails(code: str, said: str, cause: str = "exception") -> Body:
    return Body(code, "task-failed", cause, said)


def is_invalid(code: str, said: str) -> Body:
    return Body(code, "invalid", said, said)


def times_out(code: str) -> Body:
    return Body(code, "timeout", "deadline", "rare-event: 3 timeouts")


SENTENCE = f"it takes {'a word, ' * 60}and this"

BODIES = {
    "good": ok(GOOD),
    "raises": fails("raise RuntimeError('no luck')", "RuntimeError: no luck"),
    "raises_after_recording": fails(f"{GOOD}; raise OSError('late')", "OSError: late"),
    "raises_in_a_timer": fails(
        "with repeat.timer('t'):\n    raise RuntimeError('in the timer')", "RuntimeError: in the timer"
    ),
    "raises_at_length": fails("raise RuntimeError('h' * 10_000_000 + 'tail')", "h" * 50),
    "raises_a_long_sentence": fails(
        f"raise ValueError({SENTENCE!r})", "ValueError: it takes a word, a word,"
    ),
    "raises_what_cannot_be_told": fails(
        "class Mute(Exception):\n    def __str__(self): raise ValueError\nraise Mute",
        "experiments.bodies.raises_what_cannot_be_told.<locals>.Mute: <exception str() failed>",
    ),
    "interrupts_itself": fails("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "recurses": fails("def again(): again()\nagain()", "RecursionError: maximum recursion depth exceeded"),
    "wants_memory": fails(
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n[bytearray(1 << 26) for _ in range(32)]",
        "oom: MemoryError",
        "oom",
    ),
    "wraps_want_of_memory": fails(
        "try: bytearray(1 << 50)\nexcept MemoryError as error: raise RuntimeError('step 3 failed') from error",
        "oom: RuntimeError: step 3 failed",
        "oom",
    ),
    "leaves_with_zero": fails(f"{GOOD}; os._exit(0)", "exited with status 0 and without a result", "exit"),
    "leaves_with_three": fails(f"{GOOD}; os._exit(3)", "exited with status 3 and without a result", "exit"),
    "exits_with_two": fails(f"{GOOD}; sys.exit(2)", "sys.exit(2)", "exit"),
    "exits_with_words": fails("sys.exit('no data')", "sys.exit('no data')", "exit"),
    "exits_with_zero": ok(f"{GOOD}; sys.exit(0)"),
    "crashes": fails("os.kill(os.getpid(), signal.SIGSEGV)", "killed by SIGSEGV", "signal"),
    "records_nothing": is_invalid("pass", 'metric "t" was not recorded'),
    "records_nan": is_invalid("repeat.record('t', float('nan'))", 'metric "t": nan is not a finite number'),
    "records_a_word": is_invalid("repeat.record('t', 'three')", "metric \"t\": 'three' is not a number"),
    "records_undeclared": ok(f"repeat.record('extra', 5); {GOOD}"),
    "records_only_undeclared": is_invalid("repeat.record('extra', 5)", 'metric "t" was not recorded'),
    "hangs": times_out("while True: time.sleep(1)"),
    "hangs_with_a_tree": times_out(
        f"subprocess.Popen({SLEEPER}); subprocess.Popen({SLEEPER}, start_new_session=True); time.sleep(300)"
    ),
    "stops_itself": times_out("os.kill(os.getpid(), signal.SIGSTOP)"),
    "leaves_a_daemon": ok(
        f"{GOOD}\nif os.fork() == 0:\n    os.setsid()\n    if os.fork(): os._exit(0)\n    time.sleep(300)\nos.wait()",
        left=1,
    ),
    "leaves_fifty": ok(
        f"{GOOD}\nfor n in range(50): subprocess.Popen({SLEEPER}, start_new_session=n % 2 == 0)", left=50
    ),
    "leaves_threads": ok(
        f"{GOOD}\nfor _ in range(5): threading.Thread(target=time.sleep, args=(300,)).start()"
    ),
    "prints_a_hundred_megabytes": ok(f"for _ in range(100): sys.stdout.write('x' * (1 << 20))\n{GOOD}"),
    "prints_and_raises": fails(
        "for _ in range(100): sys.stdout.write('x' * (1 << 20))\nraise RuntimeError('hoarse')",
        "RuntimeError: hoarse",
    ),
    "prints_garbage": ok(
        f"os.write(1, bytes(range(256)) * 9 + b'\\x1b[2J\\x1b]0;x\\x07'); os.write(2, b'\\xff\\x1bc'); {GOOD}"
    ),
    "raises_garbage": fails("raise RuntimeError('\\x1b[2J\\udc80\\0')", "RuntimeError: \\x1b[2J?\\x00"),
    "exits_with_garbage": fails(
        "os.write(1, bytes(range(256)) + b'\\x1b[2J'); os._exit(4)", "exited with status 4", "exit"
    ),
    "closes_its_streams": ok(f"[os.close(n) for n in (0, 1, 2)]; {GOOD}"),
    "raises_without_streams": fails(
        "[os.close(n) for n in (0, 1, 2)]; raise RuntimeError('dark')", "RuntimeError: dark"
    ),
    "closes_everything": fails(f"os.closerange(0, 256); {GOOD}", "exited with status", "exit"),
    "moves_away": ok(f"os.chdir('/'); os.environ.clear(); os.environ['TMPDIR'] = '/nowhere'; {GOOD}"),
    "removes_the_evidence": ok(f"shutil.rmtree('experiments/evidence', ignore_errors=True); {GOOD}"),
    "removes_its_folder": ok(
        f"os.chdir(repeat.workdir); os.rmdir(repeat.workdir); os.environ['HOME'] = ''; {GOOD}"
    ),
}

MODULE = '''\
import json, os, resource, shutil, signal, subprocess, sys, threading, time
from pathlib import Path

from pytest_prereg import Repeat, experiment

MARK = f"PREREG_TEST_HERD={os.environ['PREREG_TEST_HERD']}".encode()


def alive() -> int:
    """How many processes of this run there are."""
    found = 0
    for entry in Path("/proc").iterdir():
        try:
            found += entry.name.isdigit() and MARK in (entry / "environ").read_bytes().split(b"\\0")
        except OSError:
            pass
    return found


@experiment(metrics={"t": "s"})
def bodies(repeat: Repeat, *, kind: str) -> None:
    repeat.record("alive", alive())
    repeat.record("where", [os.getcwd(), "HOME" in os.environ])
    globals()[kind](repeat)
'''

STUDY = """\
[study]
id = "bodies"
[experiments.bodies]
fixture = "bodies"
repeats = 3
[experiments.bodies.arms]
"""

PREDICTION = """
[predictions.{name}]
claim = "It takes a second."
experiment = "{experiment}"
quantity = "t"
predicts = "[0.5, 2] s"
falsifier = "> 3 s"
"""

ONE = """
[experiments.{name}]
fixture = "{name}"
repeats = 3
"""


@dataclass(frozen=True)
class Run:
    """A finished run: what it printed, its records, and its evidence."""

    study: RealStudy
    status: int
    output: str

    @property
    def words(self) -> str:
        """The output without its line breaks."""
        return " ".join(self.output.split())

    def record(self, prediction: str) -> dict[str, Any]:
        content = json.loads((self.study.path / "records.json").read_text(encoding="utf-8"))
        (record,) = (one for one in content["predictions"] if one["id"] == prediction)
        return record

    def finished(self, start: str) -> list[dict[str, Any]]:
        """Finished lines of the repeats whose id begins like that."""
        lines = self.study.lines(start.partition("/")[0])
        return [line for line in lines if line["type"] == "finished" and line["repeat"].startswith(start)]


def run(study: RealStudy, *arguments: str) -> Run:
    status, output = study.run("--prereg-json=records.json", *arguments)
    assert study.processes() == []
    assert not list(complaints(output)), output
    return Run(study, status, output)


def arm(name: str, timeout: str) -> str:
    return f'{name} = {{ kind = "{name}", timeout = "{timeout}" }}\n'


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run of all bodies."""
    study = RealStudy(tmp_path_factory.mktemp("bodies") / "study")
    arms = [arm(name, "1 s" if body.outcome == "timeout" else "20 s") for name, body in BODIES.items()]
    predictions = [PREDICTION.format(name=name, experiment="bodies") + f'arm = "{name}"\n' for name in BODIES]
    functions = [f"\n\ndef {name}(repeat):\n{indent(body.code, '    ')}\n" for name, body in BODIES.items()]
    study.write("predictions.toml", "".join([STUDY, *arms, *predictions]))
    study.write("experiments/bodies.py", "".join([MODULE, *functions]))
    study.register()
    return run(study)


def test_no_body_fails_the_run(everything):
    assert everything.status == 0
    assert f"evidence: 1 file, {len(BODIES) * REPEATS} repeats kept" in everything.output
    assert everything.study.lines("bodies")[-1]["ended"] == "finished"
    assert len(everything.output) < 300 * len(BODIES)


def test_what_failed_bodies_printed_is_kept_where_the_report_says(everything):
    (folder,) = everything.study.left_over()
    kept = [file.read_bytes() for file in folder.iterdir()]
    assert f"output of repeats that failed: {folder}\n" in everything.output
    assert sum(b"\x1b[2J" in content for content in kept) == REPEATS  # of "exits_with_garbage"
    assert sum(map(len, kept)) < 1 << 20


@pytest.mark.parametrize("name", BODIES)
def test_the_evidence_says_how_it_ended(everything, name):
    body = BODIES[name]
    finished = everything.finished(f"bodies/1/{name}/")
    assert len(finished) == REPEATS
    for line in finished:
        assert line["outcome"] == body.outcome, line
        assert (line.get("cause") or "").startswith(body.cause or "")
        assert line.get("diagnostics", {}).get("leftover_processes", 0) == body.left
        assert len(line.get("error", "")) <= 4096
        assert line["seconds"]["total"] < 15  # none waits for its time limit of 20 s, nor for its children
        if body.outcome == "ok":
            assert line["values"]["t"] == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("name", BODIES)
def test_the_verdict_says_what_happened(everything, name):
    body = BODIES[name]
    record = everything.record(name)
    reasons = {"ok": None, "task-failed": "task-failed", "invalid": "excluded", "timeout": "rare-event"}
    assert record["reason"] == reasons[body.outcome]
    assert record["verdict"] == ("supported" if body.outcome == "ok" else "inconclusive")
    first = f"first bodies/1/{name}/1"
    told = {
        "task-failed": f"{first}; none is dropped ({body.said}",
        "invalid": f"{first}: with it the verdict could be another ({body.said}",
    }
    assert told.get(body.outcome, body.said) in everything.words


@pytest.mark.parametrize(
    ("name", "causes", "said"),
    [
        ("raises_a_long_sentence", "exception: 3", f"ValueError: {SENTENCE}"),
        ("wraps_want_of_memory", "oom: 3", "RuntimeError: step 3 failed"),
    ],
)
def test_explain_counts_the_causes_and_has_the_first_error_in_full(
    everything, monkeypatch, name, causes, said
):
    monkeypatch.chdir(everything.study.path)

    told = " ".join(CliRunner().invoke(main, ["explain", name]).output.split())

    assert f"failed {causes} first bodies/1/{name}/1: {said} history" in told


def test_every_body_finds_the_machine_as_if_it_were_the_first(everything):
    seen = [line.get("diagnostics", {}) for line in everything.finished("bodies/")]
    assert len(seen) == len(BODIES) * REPEATS
    alive = {one["alive"] for one in seen if "alive" in one}
    assert alive == {4}  # pytest, the fork server, the supervisor and the body
    assert [
        one["where"] for one in seen if "where" in one and one["where"] != [str(everything.study.path), True]
    ] == []


def test_an_undeclared_metric_is_kept_beside_the_values(everything):
    for line in everything.finished("bodies/1/records_undeclared/"):
        assert line["values"] == {"t": pytest.approx(1, abs=0.01)}
        assert line["diagnostics"]["extra"] == 5


def test_a_second_run_buys_nothing_and_says_the_same(everything):
    before = everything.study.files("bodies")
    again = run(everything.study, "-k", "good or raises_garbage")
    assert again.status == 0
    assert everything.study.files("bodies") == before
    assert BODIES["raises_garbage"].said in again.words


# Modules, which are imported before anything runs

FINE = (
    "from pytest_prereg import experiment\n\n@experiment(metrics={'t': 's'})\ndef {name}(repeat): "
    + GOOD
    + "\n"
)
MODULES = {
    "lacks": "import there_is_no_such_module",
    "raises": "raise RuntimeError('\\x1b[2Jnot today' + '!' * 100_000)",
    "exits": "import sys; sys.exit(3)",
    "dies": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "prints": "import os; print('to whom it may concern' * 9999); os.write(2, b'\\x1b[2J\\xff')",
    "spawns": f"import subprocess; subprocess.Popen({SLEEPER}, start_new_session=True)",
}
COMPLAINTS = {
    "lacks": 'PR130: experiment "lacks" could not be imported: ModuleNotFoundError: No module named \'there_is',
    "raises": 'PR130: experiment "raises" could not be imported: RuntimeError: \\x1b[2Jnot today!!!!!!!!!',
    "exits": 'PR130: experiment "exits" could not be imported: SystemExit: 3',
    "dies": 'PR131: the process that imports experiment "dies" ended with status -9',
}


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run of experiments whose modules do what they should not, two predictions on each."""
    study = RealStudy(tmp_path_factory.mktemp("modules") / "study")
    text = '[study]\nid = "modules"\n'
    for name, top in MODULES.items():
        study.write(f"experiments/{name}.py", f"{top}\n{FINE.replace('{name}', name)}")
        text += ONE.format(name=name)
        text += "".join(PREDICTION.format(name=each, experiment=name) for each in (f"{name}-1", f"{name}-2"))
    study.write("predictions.toml", text)
    study.register()
    status, output = study.run("--prereg-json=records.json")
    assert study.processes() == []
    return Run(study, status, output)


def test_a_module_that_cannot_be_imported_is_an_error_of_its_predictions_alone(imported):
    assert imported.status == 1
    assert f"{2 * (len(MODULES) - len(COMPLAINTS))} passed, {2 * len(COMPLAINTS)} errors" in imported.output
    for name in MODULES.keys() - COMPLAINTS.keys():
        assert imported.record(f"{name}-1")["verdict"] == "supported"


@pytest.mark.parametrize("name", COMPLAINTS)
def test_the_error_names_the_module_and_line_once_with_what_was_raised(imported, name):
    problem = f"experiments/{name}.py:1: {COMPLAINTS[name]}" if name != "dies" else COMPLAINTS[name]
    assert imported.output.count(f"\n{problem}") == 2  # for each of the two predictions
    assert imported.study.files(name) == {}


def test_of_a_traceback_only_the_experiment_s_own_frames_are_shown(imported):
    frames = [line for line in imported.output.splitlines() if line.lstrip().startswith("File ")]
    assert len(frames) == 2  # of "lacks" and "exits"; the message of "raises" leaves no room for any
    assert all("/study/experiments/" in frame for frame in frames)
    assert "During handling" not in imported.output
    assert "\x1b" not in imported.output
    assert len(imported.output) < 12_000


def test_what_a_module_prints_is_not_mixed_into_the_report(imported):
    assert "to whom" not in imported.output


# What needs a study of its own


@pytest.fixture
def lone(tmp_path):
    """Makes a registered study of one experiment, ``lone``, with this body."""

    def make(code: str) -> RealStudy:
        study = RealStudy(tmp_path / "study")
        head = "import os, signal\nfrom pytest_prereg import experiment\n\n@experiment(metrics={'t': 's'})\n"
        study.write("experiments/lone.py", f"{head}def lone(repeat):\n{indent(code, '    ')}\n")
        text = f'[study]\nid = "lone"\n{ONE.format(name="lone")}{PREDICTION.format(name="one", experiment="lone")}'
        study.write("predictions.toml", text)
        study.register()
        return study

    return make


def test_a_body_that_is_always_killed_stops_the_run_and_is_infrastructure_in_the_end(lone):
    study = lone("os.kill(os.getpid(), signal.SIGKILL)")
    first = run(study)
    pending = first.record("one")["status"]
    second = run(study)

    assert (first.status, pending) == (1, "pending")
    assert (
        first.output.count('PR132: experiment "lone": 3 repeats in a row, after starting anew, failed') == 1
    )
    assert "killed from outside (SIGKILL)" in first.output
    assert "the same command resumes here" in first.words
    assert "5 attempts are lost so far" in first.words
    assert "pytest-prereg void lone/1" in first.words
    assert "1 registered · 0 judged" in first.words
    assert {line["outcome"] for line in second.finished("lone/")} == {"infrastructure"}
    assert second.status == 0
    assert second.record("one")["reason"] == "infrastructure"
    assert len(second.finished("lone/")) == 9


def test_a_syntax_error_that_came_after_the_registration_is_told_with_its_line(lone):
    study = lone(GOOD)
    module = study.path / "experiments" / "lone.py"
    module.write_text(f"{module.read_text()}\n\ndef broken(:\n")
    done = run(study)

    assert done.status == pytest.ExitCode.INTERRUPTED
    assert 'experiments/lone.py:9: PR041: "experiments.lone" is no Python: invalid syntax' in done.output
