"""An import that is interrupted, that fills the disk, or that another one is faster than: all of it counts or none."""

from __future__ import annotations

import json
import random
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from evidence_samples import experiment, study

from pytest_prereg.errors import EvidenceError
from pytest_prereg.evidence.importing import import_files
from pytest_prereg.evidence.sessions import read_session

FILES = 10
IMPORT = """\
import sys
from pathlib import Path
sys.path[:0] = {path!r}
from test_imports_cut_short import take_in
take_in(Path(sys.argv[1]))
"""


def write_files(folder, rounds):
    draw = random.Random(7)
    for number in range(FILES):
        several = [draw.random() for _ in range(rounds(number))]
        test = {"name": "b", "fullname": "b", "stats": {"data": several, "mean": sum(several) / len(several)}}
        document = {"machine_info": {}, "version": "5", "benchmarks": [test]}
        (folder / f"{number}.json").write_text(json.dumps(document))


def take_in(folder):
    gate = experiment({"": FILES}, metrics={"data": "s"})
    paths = [folder / f"{number}.json" for number in range(FILES)]
    return read_session(import_files(study(folder, gate), gate, paths, predictions={}))


def evidence(folder):
    return sorted(path for path in (folder / "experiments").rglob("*") if path.is_file())


def other_process(folder):
    code = IMPORT.format(path=sys.path)
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@contextmanager
def files_of_at_most(size):
    """No file that is written may be larger: the next byte is refused, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_is_full_in_the_middle_leaves_nothing(tmp_path):
    """The first file's rounds are a vector of their own; those of the others are in the session file."""
    write_files(tmp_path, lambda number: 1000 if number else 1100)

    with files_of_at_most(1 << 16), pytest.raises(EvidenceError, match="PR121"):
        take_in(tmp_path)

    assert evidence(tmp_path) == []
    assert len(take_in(tmp_path).attempts) == FILES


def test_an_interrupt_leaves_nothing_and_the_same_command_takes_all_in(tmp_path):
    write_files(tmp_path, lambda _: 20_000)
    process = other_process(tmp_path)
    deadline = time.monotonic() + 30
    while not evidence(tmp_path) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)

    process.send_signal(signal.SIGINT)
    process.communicate()
    if process.returncode == 0:
        pytest.skip("it had ended before the signal came")

    assert evidence(tmp_path) == []
    assert len(take_in(tmp_path).attempts) == FILES


def test_of_two_that_import_the_same_at_once_one_does(tmp_path):
    write_files(tmp_path, lambda _: 2000)

    processes = [other_process(tmp_path) for _ in range(2)]
    told = [process.communicate()[1] for process in processes]

    assert sorted(process.returncode for process in processes) == [0, 1], told
    assert any(code in text for code in ("PR119", "PR120") for text in told)
    (session,) = (tmp_path / "experiments" / "evidence" / "gate-a").glob("*.jsonl")
    assert len(read_session(session).attempts) == FILES
