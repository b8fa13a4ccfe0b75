"""What the gate costs at the end of a long history, beside git's own diff and an audit of the head."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from audit_repository import LOCK, TOML, StudyChanges, build
from msgspec.structs import replace
from table import Row

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.evidence.sessions import read_session
from pytest_prereg.recording import recorded_entry
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.lock import amend, plan_registration, read_lock, register, render_lock

if TYPE_CHECKING:
    from collections.abc import Callable

COMMITS, PREDICTIONS = 4_000, 200
LIMIT = 2.0
"""Seconds for so many commits and predictions."""
NEW = 5
"""Predictions that a pull request registers, measures and judges."""
ROUNDS = 3
"""How often each is run, in turns; the fastest counts."""
DEPTH = 50
"""Commits that a shallow clone has."""
SEED = 7

BASE = "main"
GATE = [sys.executable, "-m", "pytest_prereg", "gate", "--format", "json", "--base"]
AUDIT = [sys.executable, "-m", "pytest_prereg", "audit", "--format", "json"]
DIFF = ["git", "diff", "--stat", f"{BASE}...HEAD", "--", LOCK, TOML, "experiments"]
OTHERWISE = "git diff --stat of the study, and its audit"


class PullRequest(NamedTuple):
    """What a branch does, and what there is to say of it."""

    what: str
    made: Callable[[Path], None]
    codes: frozenset[str]
    """Of what is an error, or waits for a person."""


def rows() -> list[Row]:
    """The gate of each pull request, then of one in a shallow clone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "whole"
        build(folder, COMMITS, PREDICTIONS)
        found = [row_of(folder, number, each) for number, each in enumerate(PULL_REQUESTS)]
        return [*found, shallow(folder, Path(name) / "shallow")]


def row_of(folder: Path, number: int, pull_request: PullRequest) -> Row:
    """One pull request, whose branch is checked out."""
    prepare(folder, number, pull_request)
    turns = [(gate(folder, BASE), by_hand(folder)) for _ in range(ROUNDS)]
    ours, other = (min(column) for column in zip(*turns, strict=True))
    return Row(what=pull_request.what, ours=ours, other=other, against=OTHERWISE, limit=LIMIT)


def prepare(folder: Path, number: int, pull_request: PullRequest) -> None:
    """Make it on a branch of its own, and see that it is what it is to be."""
    git(folder, "switch", "--quiet", "--create", branch(number), BASE)
    pull_request.made(folder)
    check(folder, pull_request.codes)


def shallow(folder: Path, clone: Path) -> Row:
    """The last pull request but one where no more was fetched than the merge base and some commits before."""
    name = branch(1)
    fetched = ["--quiet", f"--depth={DEPTH}", "--no-single-branch", f"--branch={name}"]
    git(folder, "clone", *fetched, folder.as_uri(), str(clone))
    check(clone, None, f"origin/{BASE}")
    ours = min(gate(clone, f"origin/{BASE}") for _ in range(ROUNDS))
    return Row(what=f"the second one in a clone of {DEPTH} commits", ours=ours, limit=LIMIT)


def branch(number: int) -> str:
    return f"pull-{number}"


def gate(folder: Path, base: str) -> float:
    return seconds([*GATE, base], folder)


def by_hand(folder: Path) -> float:
    """Seconds of what shows which files changed, and what is wrong with the study, whoever is to blame."""
    return seconds(DIFF, folder) + seconds(AUDIT, folder)


def untouched(folder: Path) -> None:
    """Touch nothing of the study."""
    path = min(folder.glob("src/*/*.py"))
    path.write_bytes(path.read_bytes() + b"more = 1\n")
    commit(folder, "Change a module", "src")


def new_claims(folder: Path) -> None:
    """Register some, commit that, measure them, and record their verdicts."""
    changes = StudyChanges(folder, PREDICTIONS + NEW, random.Random(SEED))
    changes.lock = read_lock(folder / LOCK)
    changes.sessions = [read_session(path) for path in sorted(folder.rglob("*.jsonl"))]
    study = changes.written(PREDICTIONS + NEW, amended=PREDICTIONS // 10)
    changes.lock = register(study, changes.lock, plan_registration(study, changes.lock))
    (folder / LOCK).write_text(render_lock(changes.lock), encoding="utf-8")
    commit(folder, "Register more", TOML, LOCK)
    head = git(folder, "rev-parse", "HEAD").strip()
    for number in range(PREDICTIONS, PREDICTIONS + NEW):
        changes.evidence(study, number, head)
    commit(folder, "Measure them", "experiments")
    state = StudyState(study)
    entries = dict(changes.lock.predictions)
    for name in sorted(entries)[-NEW:]:
        entries[name] = recorded_entry(state.assess(study.predictions[name]), entries[name])
    (folder / LOCK).write_text(render_lock(replace(changes.lock, predictions=entries)), encoding="utf-8")
    commit(folder, "Record their verdicts", LOCK)


def cheated(folder: Path) -> None:
    """Ask less of one whose evidence is there, and change a number of another one's."""
    name = f"p{PREDICTIONS - 1:03}"
    before, claim, text = (folder / TOML).read_text(encoding="utf-8").partition(f"[predictions.{name}]")
    (folder / TOML).write_text(before + claim + text.replace("<= 0.9 s", "<= 1.4 s"), encoding="utf-8")
    study = load_study(folder / TOML)
    lock = amend(read_lock(folder / LOCK), study, [name], "It is not that fast.")
    (folder / LOCK).write_text(render_lock(lock), encoding="utf-8")
    evidence = min(folder.rglob("*.jsonl"))
    evidence.write_bytes(evidence.read_bytes().replace(b'"wall":0.8', b'"wall":0.7', 1))
    commit(folder, "Improve", TOML, LOCK, "experiments")


PULL_REQUESTS = (
    PullRequest("touches nothing of the study", untouched, frozenset()),
    PullRequest(f"registers {NEW}, records {NEW}", new_claims, frozenset({"PR204"})),
    PullRequest(
        "asks less of one, changes a file of evidence", cheated, frozenset({"PR202", "PR207", "PR209"})
    ),
)


def check(folder: Path, codes: frozenset[str] | None, base: str = BASE) -> None:
    """That a gate looked at everything, and found what there is."""
    done = subprocess.run([*GATE, base], cwd=folder, stdout=subprocess.PIPE, check=False)
    found = json.loads(done.stdout)
    assert done.returncode == found["exit"]
    assert len(found["predictions"]) >= PREDICTIONS
    failing = {one["code"] for one in found["findings"] if one["level"] != "notice"}
    assert codes in (None, failing), found["findings"]


def commit(folder: Path, message: str, *places: str) -> None:
    git(folder, "add", *places)
    git(folder, "-c", "user.name=A", "-c", "user.email=a@example.invalid", "commit", "--quiet", "-m", message)


def git(folder: Path, *arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout


def seconds(command: list[str], folder: Path) -> float:
    """Wall-clock time of a process, whatever it makes of the pull request."""
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=False)
    return time.perf_counter() - began
