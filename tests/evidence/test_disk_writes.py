"""What an append costs, counted by the kernel on a real process."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest
from evidence_samples import header

from pytest_prereg.evidence.sessions import read_session
from pytest_prereg.evidence.sidecars import INLINE

STRACE = shutil.which("strace")

APPEND = """
    import sys
    from pathlib import Path
    from evidence_samples import header, started, finished
    from pytest_prereg.evidence.sessions import SessionWriter

    count, values = int(sys.argv[2]), {"t": [0.5] * int(sys.argv[3])}
    writer = SessionWriter.open(Path(sys.argv[1]), header())
    for index in range(1, count + 1):
        writer.started(started(index))
        writer.finished(finished(index, values=values))
    writer.close("finished")
"""


def calls_of(folder: Path, repeats: int, length: int = 1) -> Counter[str]:
    """How often a session of so many repeats writes, and waits for the disk."""
    if STRACE is None:
        pytest.skip("needs strace")
    trace = folder / "trace"
    watch = [STRACE, "-f", "-y", "-qq", "-e", "trace=fsync,fdatasync,write,pwrite64,writev", "-o", str(trace)]
    program = [
        sys.executable,
        "-c",
        textwrap.dedent(APPEND),
        str(folder / "evidence"),
        str(repeats),
        str(length),
    ]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run([*watch, *program], env=environment, capture_output=True, text=True, check=False)
    if "ptrace" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    inside = re.compile(rf"\b(\w+)\(\d+<{re.escape(str(folder))}/evidence")
    return Counter(found[1] for line in trace.read_text().splitlines() if (found := inside.search(line)))


def test_an_append_is_one_write_and_one_sync(tmp_path):
    (tmp_path / "none").mkdir()
    (tmp_path / "ten").mkdir()
    none, ten = calls_of(tmp_path / "none", 0), calls_of(tmp_path / "ten", 10)

    assert ten - none == {"write": 20, "fsync": 20}
    (path,) = (tmp_path / "ten").glob("evidence/gate-a/*.jsonl")
    file = read_session(path)
    assert (file.footer.lines, file.header) == (21, header())


def test_a_vector_that_is_there_already_is_not_written_again(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "ten").mkdir()
    one, ten = calls_of(tmp_path / "one", 1, INLINE + 1), calls_of(tmp_path / "ten", 10, INLINE + 1)

    assert (ten - one)["write"] == 18
