"""What reading evidence back costs in time and memory, beside ``json.loads`` of the same lines."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from table import Row

from pytest_prereg.evidence.lines import digest, encode
from pytest_prereg.evidence.model import Finished, Footer, Header, Outcome, Started
from pytest_prereg.registry.model import ONLY_ARM

ROUNDS = {100_000: 5, 1_000_000: 1}
"""How often each number of repeats is read, both ways in turns."""

PREPARE_OURS = """
from pathlib import Path
from pytest_prereg.evidence.series import assemble
from pytest_prereg.evidence.sessions import read_session
from pytest_prereg.registry.model import ONLY_ARM, Arm, Experiment
from pytest_prereg.registry.tables import ExperimentTable

arm = Arm(name=ONLY_ARM, params={}, env={}, timeout=None, repeats=None)
experiment = Experiment(
    id="e", kind="import", table=ExperimentTable(), arms={ONLY_ARM: arm},
    metrics={}, pairing="none", source=None, line=1,
)
def read(path):
    (series,) = assemble(experiment, [read_session(Path(path))])
    return len(series.repeats)
"""
PREPARE_OTHER = """
import json
def read(path):
    with open(path, "rb") as file:
        lines = [json.loads(line) for line in file]
    return sum(line["type"] == "finished" for line in lines)
"""
MEASURE = """
import sys, time
began = time.perf_counter()
count = read(sys.argv[1])
seconds = time.perf_counter() - began
with open("/proc/self/status") as file:
    peak = next(line.split()[1] for line in file if line.startswith("VmHWM"))
print(count, seconds, peak)
"""


class Cost(NamedTuple):
    """Of reading one file in an interpreter of its own."""

    seconds: float
    megabytes: float
    """Peak of the whole process, the interpreter included."""


def rows() -> list[Row]:
    """Time and peak memory: fastest of some rounds, in turns."""
    return [row for repeats, rounds in ROUNDS.items() for row in rows_of(repeats, rounds)]


def rows_of(repeats: int, rounds: int) -> list[Row]:
    """Both figures for one size; the promise is made for a million."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "e" / "20260801T120000Z-00000000.jsonl"
        path.parent.mkdir()
        write(path, repeats)
        costs = [
            (read(PREPARE_OURS, path, repeats), read(PREPARE_OTHER, path, repeats)) for _ in range(rounds)
        ]
    ours, other = (Cost(*map(min, zip(*column, strict=True))) for column in zip(*costs, strict=True))
    promised = repeats == 1_000_000
    against = "json.loads into dicts"
    rate = f"{repeats:,} repeats, {repeats / ours.seconds:,.0f} a second"
    return [
        Row(
            what=rate, ours=ours.seconds, other=other.seconds, against=against, limit=10 if promised else None
        ),
        Row(
            what=f"{repeats:,} repeats, peak memory",
            ours=ours.megabytes,
            other=other.megabytes,
            against=against,
            unit="MB",
            limit=1500 if promised else None,
        ),
    ]


def read(prepare: str, path: Path, expected: int) -> Cost:
    """Read the file in a new process, so that its peak is that of this file alone."""
    command = [sys.executable, "-c", prepare + MEASURE, str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    count, seconds, kibibytes = done.stdout.split()
    assert int(count) == expected, count
    return Cost(float(seconds), int(kibibytes) * 1024 / 1e6)


def write(path: Path, repeats: int) -> None:
    """A finished session of so many repeats, as a measurement writes it."""
    body = bytearray(encode(header(repeats)))
    for index in range(1, repeats + 1):
        body += encode(started(index))
        body += encode(finished(index))
    path.write_bytes(body + encode(Footer(lines=2 * repeats + 1, digest=digest(body), ended="finished")))


def header(repeats: int) -> Header:
    """Of a session on one machine."""
    return Header(
        version=1,
        study="s",
        experiment="e",
        series=1,
        origin="measured",
        planned={ONLY_ARM: repeats},
        pairing="none",
        seed="sha256:5eed",
        source="sha256:50ce",
        predictions={"p": "sha256:f4ee"},
        head="1f3c9a2",
        dirty=False,
        session="0123456789abcdef",
        created="2026-08-01T12:00:00Z",
        executor="local",
        environment={"cpu": "Fast CPU", "gpu": ["H200"], "driver": "550.54.15"},
        versions={"python": "3.11.9"},
    )


def started(index: int) -> Started:
    """Launch of a repeat."""
    return Started(repeat=f"e/1/{index}", arm=ONLY_ARM, index=index, attempt=1, block=index, seed=7)


def finished(index: int) -> Finished:
    """Its end, with one value."""
    return Finished(
        repeat=f"e/1/{index}",
        attempt=1,
        outcome=Outcome.OK,
        values={"t": 3.5 + index / 1e6},
        seconds={"launch": 0.01, "body": 3.5, "total": 3.6},
        machine="Fast CPU | H200 | 550",
    )
