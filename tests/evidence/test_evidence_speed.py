"""Reading is linear, and fits into memory."""

from __future__ import annotations

import subprocess
import sys
from itertools import chain
from pathlib import Path

from evidence_samples import attempt, header

from pytest_prereg.evidence.lines import encode

READ = """
import sys, time, resource
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from evidence_samples import experiment
from pytest_prereg.evidence.series import assemble
from pytest_prereg.evidence.sessions import read_session
before = time.process_time()
(series,) = assemble(experiment(), [read_session(Path(sys.argv[1]))])
print(len(series.repeats), time.process_time() - before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def read(path: Path) -> tuple[int, float, float]:
    program = [sys.executable, "-c", READ, str(path), str(Path(__file__).parent)]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    count, seconds, mebibytes = done.stdout.split()
    return int(count), float(seconds), float(mebibytes)


def test_repeats_are_read_at_a_hundred_thousand_a_second_and_in_little_memory(tmp_path):
    """A million in at most 10 s and 1.5 GB, held here to a twenty-fifth of that."""
    repeats = 40_000
    path = tmp_path / "gate-a" / "20260801T120000Z-00000000.jsonl"
    path.parent.mkdir()
    details = {"machine": "Fast CPU | H200 | 550", "seconds": {"launch": 0.01, "body": 3.5, "total": 3.6}}
    lines = chain.from_iterable(attempt(index, **details) for index in range(1, repeats + 1))
    with path.open("wb") as stream:
        stream.write(encode(header(planned={"": repeats})))
        stream.writelines(map(encode, lines))

    count, seconds, mebibytes = read(path)

    assert count == repeats
    assert seconds <= 1.0  # 0.4, and what a busy machine adds
    assert mebibytes <= 100  # of which the interpreter takes 25
