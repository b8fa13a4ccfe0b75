"""A storm of faults: whatever happens to a run, only repeats in flight are lost, and none is bought twice.

Each run has one fault, of a kind and at a moment drawn by chance; a script of its own (``storm_audit.py``)
then holds the evidence against the log that the experiment wrote. ``PREREG_STORM=full`` makes 200 runs in
place of 20, and ``PREREG_STORM_SEED`` repeats a storm.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import storm_audit
import storm_clock
from real_study import plain_environment
from storm_run import CLOCKS, HEEDS_LIMITS, HEEDS_MODES, KINDS, MOUNTS
from storm_study import StormStudy, registered

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS_OF_EACH = 10 if os.environ.get("PREREG_STORM") == "full" else 1
SEED = int(os.environ.get("PREREG_STORM_SEED") or random.SystemRandom().randrange(10**6))
AT_ONCE = 2 * (os.cpu_count() or 1)
"""Runs; most of their time they sleep."""

SCRIPT = Path(__file__).with_name("storm_run.py")

NO_OVERRIDE = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
"""Root, to whom the modes of folders apply."""

NOBODY = (
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--inh-caps=+dac_override,+dac_read_search",
    "--ambient-caps=+dac_override,+dac_read_search",
)
"""Not root, to whom limits apply, but able to reach all files of these tests."""


@dataclass(frozen=True)
class Run:
    """A run that is to be made."""

    kind: str
    seed: int
    folder: Path


@dataclass(frozen=True)
class Ended:
    """A run that was made, or could not be made here."""

    run: Run
    status: int
    output: str

    @property
    def report(self) -> dict[str, Any]:
        return json.loads(self.output.splitlines()[-1])


@pytest.fixture(scope="module")
def storm(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, list[Ended | str]]]:
    """Every run of the kinds that are selected, several at a time."""
    chosen = [kind for kind in KINDS if any(f"[{kind}]" in item.name for item in request.session.items)]
    folder = tmp_path_factory.mktemp("storm")
    reference = undisturbed(folder)
    chance = random.Random(SEED)
    drawn = {kind: [chance.randrange(10**9) for _ in range(RUNS_OF_EACH)] for kind in KINDS}
    place = reachable_folder()
    runs = [
        Run(kind, seed, place / f"{kind}-{seed}".replace(" ", "-")) for kind in chosen for seed in drawn[kind]
    ]
    print(f"storm {SEED}: {len(runs)} runs")
    began = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ended = list(pool.map(lambda run: (run.kind, made(run, reference)), runs))
    took = time.monotonic() - began
    yield {kind: [one for which, one in ended if which == kind] for kind in chosen}
    well = [one for _, one in ended if isinstance(one, Ended) and not one.status]
    print(f"\nstorm {SEED} took {took:.0f} s: {table(well)}, failed or left out {len(ended) - len(well)}")
    if not any(isinstance(one, Ended) and one.status for _, one in ended):
        shutil.rmtree(place)


def reachable_folder() -> Path:
    """A folder that every user can reach, unlike those of pytest."""
    made = Path(tempfile.mkdtemp(prefix="prereg-storm-", dir="/tmp"))
    made.chmod(0o755)
    return made


def undisturbed(folder: Path) -> Path:
    """Registers the study, and returns the record of a run that nothing happened to."""
    registered(folder / "study")
    calm = registered_copy(folder)
    status, output = calm.run("--prereg-json=../reference.json", STORM_SESSION="calm")
    assert status == 0, output
    (record,) = json.loads((folder / "calm" / "reference.json").read_text())["predictions"]
    assert record["verdict"] == "supported", output
    reference = folder / "reference.json"
    reference.write_text(json.dumps(record))
    return reference


def registered_copy(folder: Path) -> StormStudy:
    (folder / "calm").mkdir()
    shutil.copytree(folder / "study", folder / "calm" / "study")
    return StormStudy(folder / "calm" / "study")


def made(run: Run, reference: Path) -> Ended | str:
    """Makes a run, or says why it can't be made here."""
    prefix = privileges(run.kind)
    run.folder.mkdir()
    if prefix == NOBODY:
        os.chown(run.folder, 65534, 65534)
    if reason := obstacle(run, prefix):
        return reason
    command = [*prefix, sys.executable, SCRIPT, run.kind, str(run.seed), run.folder, reference]
    done = subprocess.run(
        command, env=plain_environment(), capture_output=True, text=True, check=False, timeout=300
    )
    if not done.returncode:
        shutil.rmtree(run.folder)
    return Ended(run, done.returncode, done.stdout if not done.returncode else done.stdout + done.stderr)


def obstacle(run: Run, prefix: tuple[str, ...]) -> str | None:
    """Why a run can't be made here."""
    if run.kind in CLOCKS and storm_clock.library() is None:
        return "libfaketime is not installed"
    if run.kind in MOUNTS and not permitted(*prefix, "mount", "-t", "tmpfs", "tmpfs", run.folder):
        return "nothing can be mounted here"
    # Git asks whether it may, and is told what holds without the privileges that it has.
    if not permitted(*prefix, "test", "-w", run.folder):
        return "setpriv is not installed, or nobody can reach /tmp"
    return None


def privileges(kind: str) -> tuple[str, ...]:
    """What a run is started with: root needs less than it has, and others a little more."""
    is_root = os.geteuid() == 0
    if kind in MOUNTS:
        return ("unshare", "--mount") if is_root else ("unshare", "--map-root-user", "--mount")
    if is_root and kind in HEEDS_MODES:
        return NO_OVERRIDE
    return NOBODY if is_root and kind in HEEDS_LIMITS else ()


def permitted(*command: str | Path) -> bool:
    """Whether a command succeeds here."""
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def table(ended: list[Ended]) -> str:
    """What runs came to, for people."""
    reports = [one.report for one in ended]
    figures = {
        "repeats begun": sum(one["begun"] for one in reports),
        "sessions": sum(one["sessions"] for one in reports),
        "lost in flight": sum(one["in_flight"] for one in reports),
        "of those returned": sum(one["returned_in_flight"] for one in reports),
        "bought twice": sum(len(one["bought_twice"]) for one in reports),
        "changes noticed": sum(one["changes"] for one in reports),
        "changes of what nothing names": sum(one["unnamed"] for one in reports),
    }
    return ", ".join([f"{len(ended)} runs", *(f"{what} {count}" for what, count in figures.items())])


def failure(one: Ended) -> str:
    again = f"python {SCRIPT} '{one.run.kind}' {one.run.seed} /tmp/again {one.run.folder.parent / 'reference.json'}"
    return f"\nstorm {SEED}, again by: {' '.join([*privileges(one.run.kind), again])}\n{one.output}"


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_was_in_flight_is_lost_and_nothing_is_bought_twice(storm, kind):
    ended = [one for one in storm[kind] if isinstance(one, Ended)]
    failed = [failure(one) for one in ended if one.status]
    assert not failed, f"{len(failed)} of {len(ended)} runs{''.join(failed)}"
    if reasons := {one for one in storm[kind] if isinstance(one, str)}:
        pytest.skip(f"{len(storm[kind])} runs were left out: {', '.join(reasons)}")
    print(f"\n{kind}: {table(ended)}")
    for one in ended:
        print(f"  {one.run.seed}: {one.report}")


@pytest.mark.parametrize(
    ("kind", "name"),
    [("started", "arm"), ("started", "index"), ("finished", "outcome"), ("finished", "attempt")],
)
def test_a_name_with_another_byte_is_a_broken_line_and_stops_no_audit(kind, name):
    line = {"type": kind, "repeat": "a/1", "attempt": 1, "arm": "a", "index": 1, "outcome": "ok"}
    line[f"x{name[1:]}"] = line.pop(name)
    content = b'{"type":"header"}\n' + json.dumps(line).encode() + b"\n"
    assert storm_audit.broken_lines({"a.jsonl": content}) == ["a.jsonl:2: unreadable"]
    assert storm_audit.attempts_of("a.jsonl", storm_audit.whole(content)) == []
