"""What an audit costs in a long history, beside asking git about each file of evidence, one by one."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from audit_repository import LOCK, build
from table import Row

SIZES = (400, 4_000, 40_000)
PROMISED = 4_000
LIMIT = 3.0
"""Seconds for so many commits."""
ROUNDS = 3
"""How often the audit is run, in turns with git's own walk; the fastest counts."""
ASKED = 20
"""Of how many files git is asked one by one; all would take minutes, and are reckoned from these."""

AUDIT = [sys.executable, "-m", "pytest_prereg", "audit", "--format", "json"]
WALK = ["git", "rev-list", "--full-history", "HEAD", "--", "*.jsonl", "*.lock"]

PHASES = """
import json, time
from pathlib import Path
clock = [time.perf_counter()]
import pytest_prereg.cli
from pytest_prereg.audit.assess import StudyState
from pytest_prereg.audit.auditing import audit_study
from pytest_prereg.registry.load import load_study
clock.append(time.perf_counter())
state = StudyState(load_study(Path("predictions.toml").resolve()))
state.bases
clock.append(time.perf_counter())
state.past
clock.append(time.perf_counter())
audit_study(state)
clock.append(time.perf_counter())
print(json.dumps([after - before for before, after in zip(clock, clock[1:])]))
"""
PARTS = ("imports", "study and evidence", "history", "judging and findings")


class Costs(NamedTuple):
    """Seconds that one repository takes."""

    audit: float
    walk: float
    """Of git alone, to list the commits that an audit has to look at."""
    parts: list[float]
    """Of an audit, by :data:`PARTS`."""
    one_by_one: float
    asked: int
    """Files of evidence that git was really asked about."""
    files: int


def rows() -> list[Row]:
    """One audit for each length of history, what it is made of, and how it grows."""
    costs = {commits: costs_of(commits) for commits in SIZES}
    return [*(row for commits in SIZES for row in rows_of(commits, costs[commits])), *growth(costs)]


def rows_of(commits: int, costs: Costs) -> list[Row]:
    """The audit and its parts."""
    reckoned = f", from {costs.asked} of {costs.files}" if costs.asked < costs.files else ""
    whole = Row(
        what=f"{commits:,} commits, {costs.files} files of evidence",
        ours=costs.audit,
        other=costs.one_by_one,
        against=f"git log --follow a file, git show a lock{reckoned}",
        limit=LIMIT if commits == PROMISED else None,
    )
    parts = [Row(what=f"  {part}", ours=spent) for part, spent in zip(PARTS, costs.parts, strict=True)]
    history = PARTS.index("history")
    parts[history] = Row(
        what=parts[history].what, ours=costs.parts[history], other=costs.walk, against="git rev-list alone"
    )
    return [whole, *parts]


def growth(costs: dict[int, Costs]) -> list[Row]:
    """How many times as long ten times as many commits take."""
    return [
        Row(
            what=f"{more // fewer} times as many commits as {fewer:,} take",
            ours=costs[more].audit / costs[fewer].audit,
            other=costs[more].walk / costs[fewer].walk,
            against="git rev-list alone",
            unit="×",
            limit=more / fewer,
        )
        for fewer, more in itertools.pairwise(SIZES)
    ]


def costs_of(commits: int) -> Costs:
    """Of a repository that is made for it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder, commits)
        turns = [(seconds(AUDIT, folder), seconds(WALK, folder), parts(folder)) for _ in range(ROUNDS)]
        check(folder)
        files = sorted(path.relative_to(folder) for path in folder.rglob("*.jsonl"))
        asked = files[:: max(1, len(files) // ASKED)]
        follow = sum(seconds(["git", "log", "--follow", "--format=%H", "--", path], folder) for path in asked)
        return Costs(
            audit=min(audit for audit, _, _ in turns),
            walk=min(walk for _, walk, _ in turns),
            parts=[min(column) for column in zip(*(each for _, _, each in turns), strict=True)],
            one_by_one=follow * len(files) / len(asked) + locks_one_by_one(folder),
            asked=len(asked),
            files=len(files),
        )


def locks_one_by_one(folder: Path) -> float:
    """Seconds to list the versions of the lock and to print each."""
    began = time.perf_counter()
    for commit in output(["git", "log", "--format=%H", "--", LOCK], folder).decode().split():
        output(["git", "show", f"{commit}:{LOCK}"], folder)
    return time.perf_counter() - began


def check(folder: Path) -> None:
    """That the audit looked at everything, and found nothing wrong."""
    found = json.loads(output(AUDIT, folder))
    assert found["exit"] == 0, found["findings"]
    assert {one["order"] for one in found["predictions"]} == {"registered"}


def parts(folder: Path) -> list[float]:
    """Seconds of each part of an audit, in a process of its own."""
    return json.loads(output([sys.executable, "-c", PHASES], folder))


def seconds(command: list[str | Path], folder: Path) -> float:
    """Wall-clock time of a process."""
    began = time.perf_counter()
    output(command, folder)
    return time.perf_counter() - began


def output(command: list[str | Path], folder: Path) -> bytes:
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True).stdout
