"""What a gate does not do: load what is heavy, run the study's code, reach for the network, ask git for ever."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").is_dir(), reason="runs in a checkout or an unpacked sdist"
)

COMMITS = 60
FEW, MANY = 10, 19
"""Predictions; of both one was amended."""
HEAVY = frozenset({"modal", "numpy", "pytest", "scipy", "torch", "transformers", "urllib.request", "bench"})

WATCH = """
import os, sys
said = os.open(os.environ["WATCHED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def watch(event, arguments):
    if event in ("import", "os.exec", "os.fork", "os.posix_spawn") or event.startswith("socket."):
        os.write(said, f"{event} {arguments[0] if arguments else ''}\\n".encode())
    elif event == "subprocess.Popen":
        os.write(said, f"{event} {' '.join(map(str, arguments[1]))}\\n".encode())
sys.addaudithook(watch)
"""
"""Python tells it in forked processes as well."""


class Costs(NamedTuple):
    """What Python did for a gate, by event, and what is left of it."""

    events: list[tuple[str, str]]
    left: list[Path]
    """In the folder for temporary files."""

    def of(self, event: str) -> list[str]:
        return [what for name, what in self.events if name == event]


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Repositories of long-lived studies by how many predictions they have; imported, their code is seen."""
    folders = {count: tmp_path_factory.mktemp("study") for count in (FEW, MANY)}
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        repository = importlib.import_module("audit_repository")
        trap = b"\n\nopen(__file__ + '.imported', 'w').close()\n"
        patch.setattr(repository, "FIXTURE", repository.FIXTURE + trap)
        for count, folder in folders.items():
            repository.build(folder, COMMITS, count)
    return folders


@pytest.fixture(scope="module")
def costs(studies: dict[int, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[int, Costs]:
    folder = tmp_path_factory.mktemp("watched")
    (folder / "sitecustomize.py").write_text(WATCH)
    return {count: gated(study, folder, folder / str(count)) for count, study in studies.items()}


def gated(study: Path, watch: Path, said: Path) -> Costs:
    """A gate from the middle of a history to its end, in a process of its own."""
    temporary = said.with_suffix(".temporary")
    temporary.mkdir()
    surroundings = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(watch), str(ROOT)]),
        "TMPDIR": str(temporary),
        "WATCHED": str(said),
    }
    command = [sys.executable, "-m", "pytest_prereg", "gate", "--base", "HEAD~20"]
    done = subprocess.run(
        command, cwd=study, env=surroundings, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    lines = (line.partition(" ") for line in said.read_text().splitlines())
    return Costs([(event, what) for event, _, what in lines], list(temporary.iterdir()))


def test_another_process_is_at_it_too(costs: dict[int, Costs]):
    """Or nothing here would show what that does not do."""
    assert len(costs[FEW].of("os.fork")) == 1


def test_nothing_heavy_is_loaded(costs: dict[int, Costs]):
    imported = set(costs[FEW].of("import"))
    assert "pytest_prereg.audit.gating.gate" in imported
    assert not {name for name in imported if name in HEAVY or name.partition(".")[0] in HEAVY}


def test_no_code_of_the_study_runs(costs: dict[int, Costs], studies: dict[int, Path], tmp_path: Path):
    assert costs.keys() == studies.keys()
    assert not list(studies[FEW].rglob("*.imported"))
    trap = studies[FEW] / "experiments" / "bench.py"
    copy = tmp_path / "bench.py"
    copy.write_bytes(trap.read_bytes())
    subprocess.run([sys.executable, copy], check=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert list(tmp_path.glob("*.imported"))


def test_nobody_is_reached(costs: dict[int, Costs]):
    assert not [event for event, _ in costs[FEW].events if event.startswith("socket.")]


def test_git_alone_is_started_and_never_told_to_fetch(costs: dict[int, Costs]):
    commands = [line.split() for line in costs[FEW].of("subprocess.Popen")]
    assert {command[0] for command in commands} == {"git"}
    assert {command[5] for command in commands} <= {
        "cat-file",
        "diff-tree",
        "for-each-ref",
        "ls-files",
        "ls-tree",
        "merge-base",
        "read-tree",
        "rev-list",
        "rev-parse",
        "status",
    }
    assert not costs[FEW].of("os.exec") + costs[FEW].of("os.posix_spawn")


def test_git_is_started_no_more_often_for_more_predictions(costs: dict[int, Costs]):
    few, many = (sorted(costs[count].of("subprocess.Popen")) for count in (FEW, MANY))
    assert len(few) == len(many)


def test_no_file_is_left(costs: dict[int, Costs]):
    assert not [path for each in costs.values() for path in each.left]
