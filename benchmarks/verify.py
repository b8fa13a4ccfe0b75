"""What judging a whole study from its evidence costs, beside pytest with as many empty tests."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from plugin_import import environment
from table import Row

from pytest_prereg.evidence.model import Finished, Header, Outcome, Started
from pytest_prereg.evidence.naming import repeat_id
from pytest_prereg.evidence.sessions import known_digests, read_session
from pytest_prereg.evidence.writing import write_session
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.lock import lock_of
from pytest_prereg.registry.model import ONLY_ARM, Experiment, Study

if TYPE_CHECKING:
    from collections.abc import Iterator

REPEATS = 7
PREDICTIONS = 10
"""For each experiment; its evidence is one file."""

ROUNDS = {200: 7, 1_000: 3, 10_000: 2}
"""How often a study of each size is judged, and as many empty tests are run, in turns."""

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
VERIFY = ("-p", "pytest_prereg.plugin", "--prereg-verify", "--prereg-locked")

EXPERIMENT = """
[experiments.{name}]
repeats = 7
metrics = {{ t_train = "s", t_gen = "s" }}
"""
PREDICTION = """
[predictions.p{index}]
claim      = "Training takes at most a quarter of the time that generation takes."
experiment = "{name}"
quantity   = "t_train / t_gen"
predicts   = "<= 0.25"
falsifier  = ">= 0.5"
"""
EMPTY_TEST = "def test_{index}(): pass\n"


class Seconds(NamedTuple):
    """Of one pytest session and all that it starts."""

    wall: float
    cpu: float


class Costs(NamedTuple):
    """At best, of judging a study and of running as many empty tests."""

    ours: Seconds
    other: Seconds


def rows() -> list[Row]:
    """Sessions beside sessions, what is above them, what of that is none of ours, and how it grows."""
    costs = {size: costs_of(size, rounds) for size, rounds in ROUNDS.items()}
    return [*map(verified, costs, costs.values()), *above_empty_tests(costs[200]), growth(costs)]


def verified(size: int, costs: Costs) -> Row:
    """Whole sessions."""
    what = f"{size:,} predictions × {REPEATS} repeats"
    return Row(what=what, ours=costs.ours.wall, other=costs.other.wall, against=f"{size:,} empty tests")


def above_empty_tests(costs: Costs) -> list[Row]:
    """What judging 200 predictions adds, loading all that it needs included."""
    wall, cpu = (ours - other for ours, other in zip(*costs, strict=True))
    return [
        Row(what="200 predictions, above empty tests", ours=wall, limit=0.5),
        Row(what="the same, CPU time alone", ours=cpu),
    ]


def growth(costs: dict[int, Costs]) -> Row:
    """In CPU time: the sizes are measured minutes apart, and what else runs then must not count."""
    ours, other = (large.cpu / small.cpu for large, small in zip(costs[10_000], costs[1_000], strict=True))
    what = "10,000 over 1,000, CPU time"
    return Row(what=what, ours=ours, other=other, against="empty tests", unit="×", limit=11)


def costs_of(size: int, rounds: int) -> Costs:
    """Fastest of some rounds, the two in turns."""
    with tempfile.TemporaryDirectory() as name:
        study, tests = Path(name) / "study", Path(name) / "tests"
        make_study(study, size)
        tests.mkdir()
        (tests / "test_empty.py").write_text("".join(EMPTY_TEST.format(index=index) for index in range(size)))
        pairs = [(passed(study, size, *VERIFY), passed(tests, size)) for _ in range(rounds)]
    ours, other = (Seconds(*map(min, zip(*column, strict=True))) for column in zip(*pairs, strict=True))
    return Costs(ours, other)


def passed(folder: Path, size: int, *options: str) -> Seconds:
    """Time of one pytest session, of which everything must pass."""
    began = time.perf_counter(), children_cpu()
    printed = run(folder, *PYTEST, *options)
    seconds = Seconds(time.perf_counter() - began[0], children_cpu() - began[1])
    assert f"{size} passed" in printed, printed
    return seconds


def children_cpu() -> float:
    """CPU seconds of all processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def make_study(folder: Path, size: int) -> None:
    """A repository in which all is registered, measured, recorded and committed, in that order."""
    folder.mkdir()
    (folder / "predictions.toml").write_text(study_text(size))
    run(folder, "git", "init", "--quiet")
    run(folder, sys.executable, "-m", "pytest_prereg", "lock")
    commit(folder, "Register")
    head = run(folder, "git", "rev-parse", "HEAD").strip()
    write_evidence(load_study(folder / "predictions.toml"), head)
    commit(folder, "Measure")
    run(folder, *PYTEST, *VERIFY, "--prereg-record", "--no-prereg-locked")
    commit(folder, "Record")


def study_text(size: int) -> str:
    """Experiments, each followed by its predictions."""
    text = '[study]\nid = "s"\n'
    for index in range(size):
        name = f"e{index // PREDICTIONS}"
        if index % PREDICTIONS == 0:
            text += EXPERIMENT.format(name=name)
        text += PREDICTION.format(name=name, index=index)
    return text


def write_evidence(study: Study, head: str) -> None:
    """A session of each experiment, all supporting; each names the files that were there before."""
    lock = lock_of(study)
    assert lock is not None
    known: dict[str, str] = {}
    for experiment in study.experiments.values():
        predictions = {
            name: lock.predictions[name].digest
            for name, prediction in study.predictions.items()
            if prediction.experiment == experiment.id
        }
        header = header_of(study, experiment, predictions, head, known)
        path = write_session(study.evidence_folder, header, list(lines_of(experiment)))
        known |= known_digests([read_session(path)])


def header_of(
    study: Study, experiment: Experiment, predictions: dict[str, str], head: str, known: dict[str, str]
) -> Header:
    """As an import writes it."""
    return Header(
        version=1,
        study=study.id,
        experiment=experiment.id,
        series=1,
        origin="imported",
        planned={ONLY_ARM: REPEATS},
        pairing=experiment.pairing,
        seed="sha256:5eed",
        source=None,
        predictions=predictions,
        head=head,
        dirty=False,
        session="0123456789abcdef",
        created="2026-08-01T12:00:00Z",
        executor="import",
        environment={},
        versions={"python": "3.11.9"},
        known=known,
    )


def lines_of(experiment: Experiment) -> Iterator[Started | Finished]:
    """Repeats that scatter by half a per cent."""
    for index in range(1, REPEATS + 1):
        repeat = repeat_id(experiment.id, 1, ONLY_ARM, index)
        values = {"t_train": 0.2 + 0.001 * (index % 3), "t_gen": 1.0}
        yield Started(repeat=repeat, arm=ONLY_ARM, index=index, attempt=1)
        yield Finished(repeat=repeat, attempt=1, outcome=Outcome.OK, values=values)


def commit(folder: Path, message: str) -> None:
    """Commit everything."""
    author = ("-c", "user.name=Benchmark", "-c", "user.email=benchmark@example.invalid")
    run(folder, "git", "add", "--all")
    run(folder, "git", *author, "commit", "--quiet", "--message", message)


def run(folder: Path, *command: str) -> str:
    """Run a command there, out of reach of the user's git settings and CI's variables."""
    kept = {name: value for name, value in environment().items() if name != "CI"}
    variables = {**kept, "GIT_CONFIG_GLOBAL": os.devnull, "PYTEST_ADDOPTS": "", "COLUMNS": "100"}
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
