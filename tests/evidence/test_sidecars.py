"""A large vector lies beside the session file: nothing of it is lost, and nothing done to it is overlooked."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest
from evidence_samples import attempt, experiment, finished, header, started
from hypothesis import given
from hypothesis import strategies as st

from pytest_prereg.errors import EvidenceError
from pytest_prereg.evidence import disk
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.evidence.series import assemble, evidence_digest
from pytest_prereg.evidence.sessions import SessionWriter, parse_session, read_session, session_paths
from pytest_prereg.evidence.sidecars import INLINE
from pytest_prereg.evidence.writing import write_session

LARGE = [index / 7 for index in range(INLINE + 1)]
NAME = hashlib.sha256(struct.pack(f"<{len(LARGE)}d", *LARGE)).hexdigest()


@pytest.fixture
def session(tmp_path):
    """A finished session, with one large vector."""
    with SessionWriter.open(tmp_path, header()) as writer:
        for line in attempt(1, values={"t": LARGE, "u": 2.0}) + attempt(2):
            (writer.finished if hasattr(line, "outcome") else writer.started)(line)
    return writer.path


def sidecar(session: Path) -> Path:
    return session.parent / "vectors" / f"{NAME}.f64.gz"


def written(session: Path) -> list[dict]:
    return [json.loads(line) for line in session.read_bytes().splitlines()]


def test_a_large_vector_is_named_in_its_line_and_lies_beside_it(session):
    assert written(session)[2]["values"] == {
        "t": {"sidecar": f"sha256:{NAME}", "count": INLINE + 1},
        "u": 2.0,
    }
    packed = sidecar(session).read_bytes()
    assert gzip.decompress(packed) == struct.pack(f"<{len(LARGE)}d", *LARGE)
    assert packed == gzip.compress(gzip.decompress(packed), mtime=0)


def test_it_is_read_back_as_if_it_were_in_the_line(session):
    file = read_session(session)

    assert file.problems == ()
    assert file.attempts[0].values == {"t": LARGE, "u": 2.0}
    assert file.lines[1:5] == attempt(1, values={"t": LARGE, "u": 2.0}) + attempt(2)
    assert session_paths(session.parents[1]) == [session]


@pytest.mark.parametrize(("length", "kept"), [(0, 0), (1, 0), (INLINE, 0), (INLINE + 1, 1)])
def test_only_what_is_large_is_put_aside(tmp_path, length, kept):
    path = write_session(tmp_path, header(), attempt(1, values={"t": [1.5] * length}))

    assert len(list(path.parent.glob("vectors/*"))) == kept
    assert read_session(path).attempts[0].values == {"t": [1.5] * length}


def test_evidence_that_is_at_hand_has_its_vectors_beside_it_too(tmp_path):
    path = write_session(tmp_path, header(), attempt(1, values={"t": LARGE}))

    assert sidecar(path).exists()
    assert read_session(path).attempts[0].values == {"t": LARGE}


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_whatever_numbers_they_are_they_come_back_to_the_last_bit(numbers):
    numbers = numbers * INLINE + [0.0, -0.0, 5e-324]
    with_one = tempfile_session(numbers)

    (value,) = with_one.attempts[0].values.values()

    assert struct.pack(f"<{len(value)}d", *value) == struct.pack(f"<{len(numbers)}d", *numbers)


def tempfile_session(numbers):
    with tempfile.TemporaryDirectory() as folder:
        return read_session(write_session(Path(folder), header(), attempt(1, values={"t": numbers})))


def test_the_evidence_digest_is_that_of_the_numbers_wherever_they_are(session, monkeypatch, tmp_path):
    monkeypatch.setattr("pytest_prereg.evidence.sidecars.INLINE", 10**9)
    lines = attempt(1, values={"t": LARGE, "u": 2.0}) + attempt(2)
    inline = write_session(tmp_path / "inline", header(), lines)
    assert not (inline.parent / "vectors").exists()

    digests = [digest_of(read_session(path)) for path in (session, inline)]

    assert digests[0] == digests[1]


def digest_of(file):
    (series,) = assemble(experiment(), [file])
    return evidence_digest([series], ["gate-a/1/1", "gate-a/1/2"])


REPACKED = gzip.compress(struct.pack("<3d", 1, 2, 3), mtime=0)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (None, "is gone"),
        (lambda _: b"", "is not what was written"),
        (lambda _: b"version https://git-lfs.github.com/spec/v1\n", "is not what was written"),
        (lambda packed: packed[:-9], "is not what was written"),
        (lambda _: REPACKED, "is not what was written"),
        (lambda packed: gzip.compress(gzip.decompress(packed) + bytes(8)), "is not what was written"),
        (lambda packed: gzip.compress(gzip.decompress(packed)[:-8]), "is not what was written"),
    ],
)
def test_one_that_is_gone_or_altered_is_a_problem_of_the_session_file(session, change, told):
    path = sidecar(session)
    data = path.read_bytes()
    path.unlink()
    if change:
        path.write_bytes(change(data))

    file = read_session(session)

    (problem,) = file.problems
    assert (problem.code, Path(problem.path).name, problem.line) == ("PR207", session.name, 3)
    assert problem.message == f'vector "vectors/{NAME}.f64.gz" {told}, and without it this line is none'
    assert [(one.index, one.outcome) for one in file.attempts] == [(1, Outcome.LOST), (2, Outcome.OK)]


def test_one_that_can_not_be_read_is_told_from_one_that_is_gone(session):
    sidecar(session).unlink()
    sidecar(session).mkdir()

    (problem,) = read_session(session).problems

    assert f'vector "vectors/{NAME}.f64.gz" can\'t be read: Is a directory' in problem.message


@pytest.mark.parametrize("count", [INLINE, INLINE + 2, 0])
def test_a_wrong_count_is_a_problem(session, count):
    data = session.read_bytes().replace(b'"count":1025', f'"count":{count}'.encode())

    problems = parse_session(data, session, lambda _: sidecar(session).read_bytes()).problems

    assert f"vectors/{NAME}.f64.gz" in problems[0].message


@pytest.mark.parametrize("name", ["sha256:../../../../etc/passwd", f"sha256:{'0' * 63}", f"sha256:{NAME}\\n"])
def test_nothing_else_can_be_named(session, name):
    data = session.read_bytes().replace(f"sha256:{NAME}".encode(), name.encode())

    problems = parse_session(data, session, lambda _: sidecar(session).read_bytes()).problems

    assert "this line is not what was written" in problems[0].message


def test_what_is_no_finite_number_is_none_in_a_vector_either(session):
    numbers = struct.pack("<2d", 1.0, float("nan"))
    digest = hashlib.sha256(numbers).hexdigest()
    data = session.read_bytes().replace(NAME.encode(), digest.encode()).replace(b'"count":1025', b'"count":2')

    problems = parse_session(data, session, lambda _: gzip.compress(numbers)).problems

    assert "holds what is no finite number" in problems[0].message


def test_another_packing_of_the_same_numbers_is_as_good(session):
    path = sidecar(session)
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()), compresslevel=1, mtime=77))

    assert read_session(session).problems == ()


class TestFromBytes:
    """As git has a session file, with or without its sidecars."""

    def test_the_caller_gives_the_sidecars(self, session):
        asked = []

        def read(name):
            asked.append(name)
            return sidecar(session).read_bytes()

        file = parse_session(session.read_bytes(), session, read)

        assert asked == [f"vectors/{NAME}.f64.gz"]
        assert file.problems == ()
        assert file.attempts == read_session(session).attempts

    def test_without_them_the_repeat_is_a_problem_and_never_judged(self, session):
        file = parse_session(session.read_bytes(), session)

        (problem,) = file.problems
        assert problem.message.startswith(f'vector "vectors/{NAME}.f64.gz" was not read')
        assert [one.index for one in file.attempts if one.outcome is Outcome.OK] == [2]

    def test_one_that_is_gone_there_is_a_problem(self, session):
        (problem,) = parse_session(session.read_bytes(), session, lambda _: None).problems

        assert "is gone" in problem.message


class TestWriting:
    def test_the_numbers_are_on_disk_before_the_line_is(self, tmp_path, monkeypatch):
        with SessionWriter.open(tmp_path, header()) as writer:
            writer.started(started(1))
            calls = watch_disk(monkeypatch)
            writer.finished(finished(1, values={"t": LARGE}))
            monkeypatch.undo()

        folder, name = writer.path.parent.name, f".{NAME}.f64.gz.part"
        assert calls == [folder, name, "vectors", writer.path.name]

    def test_what_is_there_is_not_written_again(self, tmp_path):
        with SessionWriter.open(tmp_path, header()) as writer:
            for index in (1, 2):
                writer.started(started(index))
                writer.finished(finished(index, values={"t": LARGE}))
                sidecar(writer.path).chmod(0o400)
                kept = sidecar(writer.path).stat()

        assert (kept.st_ino, kept.st_mtime_ns) == (
            sidecar(writer.path).stat().st_ino,
            sidecar(writer.path).stat().st_mtime_ns,
        )
        assert [one.values["t"] for one in read_session(writer.path).attempts] == [LARGE, LARGE]

    def test_what_is_there_and_torn_is_written_anew(self, session):
        path = sidecar(session)
        path.write_bytes(path.read_bytes()[:50])

        second = write_session(session.parents[1], header(session="2"), attempt(3, values={"t": LARGE}))

        assert read_session(second).problems == read_session(session).problems == ()

    def test_a_vector_that_can_not_be_kept_leaves_no_line_that_names_it(self, tmp_path):
        with SessionWriter.open(tmp_path, header()) as writer:
            writer.started(started(1))
            (writer.path.parent / "vectors").write_text("a file where the folder should be")
            with pytest.raises(EvidenceError) as caught:
                writer.finished(finished(1, values={"t": LARGE}))

        assert 'PR121: what "gate-a/1/1" yielded could not be kept' in str(caught.value)
        file = read_session(writer.path)
        assert file.problems == ()
        assert [one.outcome for one in file.attempts] == [Outcome.LOST]

    def test_what_is_no_number_is_refused_before_anything_is_written(self, tmp_path):
        with SessionWriter.open(tmp_path, header()) as writer:
            writer.started(started(1))
            with pytest.raises(EvidenceError, match="PR123"):
                writer.finished(finished(1, values={"t": [*LARGE, float("nan")]}))

        assert not (writer.path.parent / "vectors").exists()

    def test_a_crash_between_vector_and_line_leaves_what_does_no_harm(self, tmp_path, monkeypatch):
        writer = SessionWriter.open(tmp_path, header())
        writer.started(started(1))
        real = os.write
        calls = []

        def killed(descriptor: int, data: bytes) -> int:
            calls.append(descriptor)
            if len(calls) > 1:
                raise KeyboardInterrupt
            return real(descriptor, data)

        monkeypatch.setattr(disk.os, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            writer.finished(finished(1, values={"t": LARGE}))
        monkeypatch.undo()
        writer.close("interrupted")

        assert sidecar(writer.path).exists()
        file = read_session(writer.path)
        assert (file.problems, [one.outcome for one in file.attempts]) == ((), [Outcome.LOST])
        assert session_paths(tmp_path) == [writer.path]

    def test_kill_9_leaves_no_line_without_its_vector(self, tmp_path):
        program = [sys.executable, "-c", textwrap.dedent(WRITE_FOR_EVER), str(tmp_path)]
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
        with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=environment) as process:
            path = Path(process.stdout.readline().strip())
            time.sleep(0.05)
            process.send_signal(signal.SIGKILL)
            acknowledged = [int(line) for line in process.stdout.read().splitlines()]

        file = read_session(path)

        assert file.problems == ()
        done = {one.index: one.values["t"] for one in file.attempts if one.outcome is Outcome.OK}
        assert set(acknowledged) <= set(done)
        assert all(value == [float(index)] * (INLINE + 1) for index, value in done.items())


def watch_disk(monkeypatch):
    """What is synced, in order, by name."""
    synced = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real(descriptor)

    monkeypatch.setattr(disk.os, "fsync", fsync)
    return synced


WRITE_FOR_EVER = """
    import sys
    from pathlib import Path
    from evidence_samples import header, started, finished
    from pytest_prereg.evidence.sessions import SessionWriter

    writer = SessionWriter.open(Path(sys.argv[1]), header())
    print(writer.path, flush=True)
    for index in range(1, 1_000_000):
        writer.started(started(index))
        writer.finished(finished(index, values={"t": [float(index)] * 1025}))
        print(index, flush=True)
"""
