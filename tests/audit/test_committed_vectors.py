"""A large vector that was committed can neither vanish nor change unnoticed."""

from __future__ import annotations

import gzip
import subprocess
from typing import TYPE_CHECKING

import pytest

from pytest_prereg.audit.history.committed import check_committed
from pytest_prereg.audit.history.git import Repository
from pytest_prereg.evidence.model import Finished, Header, Outcome, Started
from pytest_prereg.evidence.sidecars import INLINE
from pytest_prereg.evidence.writing import write_session

if TYPE_CHECKING:
    from pathlib import Path

HEADER = Header(
    version=1,
    study="s",
    experiment="lab",
    series=1,
    origin="measured",
    planned={"": 1},
    pairing="none",
    seed="",
    source=None,
    predictions={},
    head=None,
    dirty=None,
    session="1",
    created="",
    executor="local",
    environment={},
    versions={},
)


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    """A folder of committed evidence: a session with a large vector."""
    lines = [
        Started(repeat="lab/1/1", arm="", index=1, attempt=1),
        Finished(
            repeat="lab/1/1", attempt=1, outcome=Outcome.OK, values={"t": list(map(float, range(INLINE + 1)))}
        ),
    ]
    write_session(tmp_path / "evidence", HEADER, lines)
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "1"],
    ):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path / "evidence"


def problems_of(evidence: Path):
    return check_committed(Repository.find(evidence), evidence)


def sidecar(evidence: Path) -> Path:
    return next(evidence.glob("lab/vectors/*"))


def test_what_is_as_it_was_is_no_problem(evidence):
    assert problems_of(evidence) == []


def test_another_packing_of_the_same_numbers_is_no_problem(evidence):
    path = sidecar(evidence)
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()), compresslevel=1, mtime=7))

    assert problems_of(evidence) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (None, "is gone"),
        (lambda data: data + b"x", "is not what was committed"),
        (lambda data: data[:-1], "is not what was committed"),
        (lambda _: gzip.compress(bytes(8)), "is not what was committed"),
        (lambda _: b"", "is not what was committed"),
    ],
)
def test_one_that_is_gone_or_altered_is_a_problem_of_its_experiment(evidence, change, told):
    path = sidecar(evidence)
    data = path.read_bytes()
    path.unlink()
    if change:
        path.write_bytes(change(data))

    (problem,) = problems_of(evidence)

    assert problem.message == f'evidence "lab/vectors/{path.name}" {told}'
    assert problem.path.split("/")[-2] == "lab"
