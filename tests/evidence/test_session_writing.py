"""Nothing that was bought is lost: kills, full disks, read-only places."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from evidence_samples import attempt, finished, header, started

from pytest_prereg.errors import EvidenceError
from pytest_prereg.evidence import writing
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.evidence.sessions import SessionWriter, read_session
from pytest_prereg.evidence.writing import write_session


def test_a_session_is_read_back_with_its_footer(tmp_path):
    writer = SessionWriter.open(tmp_path, header())
    writer.started(started(1))
    writer.finished(finished(1))
    writer.close("interrupted")

    file = read_session(writer.path)

    assert file.problems == ()
    assert file.footer.ended == "interrupted"
    assert file.footer.lines == 3
    assert [one.repeat for one in file.attempts] == ["gate-a/1/1"]


def test_a_file_lies_in_its_experiments_folder_and_is_named_by_time_and_digest(tmp_path):
    with SessionWriter.open(tmp_path / "deep" / "evidence", header()) as writer:
        assert writer.path.parent == tmp_path / "deep" / "evidence" / "gate-a"
        assert writer.path.match("[0-9]*T[0-9]*Z-????????.jsonl")


def test_names_ascend_even_within_one_second_or_with_a_clock_set_back(tmp_path):
    (tmp_path / "gate-a").mkdir()
    (tmp_path / "gate-a" / "29991231T235959Z-ffffffff.jsonl").touch()
    names = ["29991231T235959Z-ffffffff.jsonl"]
    for number in range(3):
        with SessionWriter.open(tmp_path, header(session=str(number))) as writer:
            names.append(writer.path.name)

    assert names == sorted(names)
    assert names[1].startswith("30000101T000000Z-")


def test_every_line_is_on_disk_before_the_call_returns(tmp_path, monkeypatch):
    calls = []
    real = {"write": os.write, "fsync": os.fsync}
    for name, call in real.items():
        monkeypatch.setattr(writing.os, name, lambda *a, name=name, call=call: calls.append(name) or call(*a))
    writer = SessionWriter.open(tmp_path, header())
    calls.clear()
    writer.started(started(1))
    writer.finished(finished(1))
    monkeypatch.undo()
    writer.close("finished")

    assert calls == ["write", "fsync"] * 2


@pytest.mark.parametrize(
    ("raised", "ended"), [(None, "finished"), (ValueError, "failed"), (KeyboardInterrupt, "interrupted")]
)
def test_leaving_the_block_writes_the_footer_whatever_happened(tmp_path, raised, ended):
    try:
        with SessionWriter.open(tmp_path, header()) as writer:
            if raised:
                raise raised
    except (ValueError, KeyboardInterrupt):
        pass

    assert read_session(writer.path).footer.ended == ended


def test_the_footer_says_how_long_the_session_lasted(tmp_path):
    """What was between the repeats is paid for as well."""
    before = time.monotonic()
    with SessionWriter.open(tmp_path, header()) as writer:
        opened = time.monotonic()
        time.sleep(0.05)
        closing = time.monotonic()
    after = time.monotonic()

    assert closing - opened <= read_session(writer.path).footer.seconds <= after - before


def test_the_clock_of_a_session_is_not_that_of_the_wall(tmp_path, monkeypatch):
    with SessionWriter.open(tmp_path, header()) as writer:
        monkeypatch.setattr(time, "time", lambda: 0.0)

    assert 0 < read_session(writer.path).footer.seconds < 60


def test_what_was_at_hand_took_no_session(tmp_path):
    assert read_session(write_session(tmp_path, header(), attempt(1))).footer.seconds is None


def test_a_session_that_ran_out_of_budget_says_so(tmp_path):
    with SessionWriter.open(tmp_path, header()) as writer:
        writer.close("stopped")

    file = read_session(writer.path)
    assert (file.footer.ended, file.problems) == ("stopped", ())


def test_closing_twice_is_closing_once(tmp_path):
    writer = SessionWriter.open(tmp_path, header())
    writer.close("finished")
    writer.close("failed")

    assert read_session(writer.path).footer.ended == "finished"


def test_a_closed_session_takes_nothing_more(tmp_path):
    writer = SessionWriter.open(tmp_path, header())
    writer.close("finished")

    with pytest.raises(EvidenceError, match='"gate-a/1/1" was not launched: the session is closed'):
        writer.started(started(1))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [1.0, float("-inf")]])
def test_a_value_that_json_can_not_hold_is_refused_and_named(tmp_path, value):
    with SessionWriter.open(tmp_path, header()) as writer:
        writer.started(started(1))
        with pytest.raises(EvidenceError, match=r'PR123: "gate-a/1/1" recorded -?(nan|inf) as "t"'):
            writer.finished(finished(1, values={"t": value}))


def test_odd_diagnostics_do_not_cost_the_repeat(tmp_path):
    with SessionWriter.open(tmp_path, header()) as writer:
        writer.started(started(1))
        writer.finished(finished(1, diagnostics={"path": Path("x"), "set": {1}}, error="bad \udcff byte"))

    line = read_session(writer.path).lines[2]

    assert line.error == "bad ? byte"
    assert line.diagnostics == {"path": "PosixPath('x')", "set": [1]}


def test_numbers_of_numpy_are_numbers(tmp_path):
    numpy = pytest.importorskip("numpy")
    with SessionWriter.open(tmp_path, header()) as writer:
        writer.started(started(1))
        writer.finished(finished(1, values={"t": numpy.float64(1.5)}, diagnostics={"n": numpy.int32(3)}))

    line = read_session(writer.path).lines[2]

    assert (line.values, line.diagnostics) == ({"t": 1.5}, {"n": 3})


def test_a_write_that_stops_half_way_leaves_no_trace(tmp_path, monkeypatch):
    writer = SessionWriter.open(tmp_path, header())
    writer.started(started(1))
    before = writer.path.read_bytes()
    real = os.write
    answers = iter([lambda descriptor, data: real(descriptor, bytes(data)[:10]), _fail])

    def write(descriptor: int, data: bytes) -> int:
        return next(answers)(descriptor, data)

    monkeypatch.setattr(writing.os, "write", write)

    with pytest.raises(EvidenceError) as caught:
        writer.finished(finished(1))
    monkeypatch.undo()

    assert writer.path.read_bytes() == before
    assert 'what "gate-a/1/1" yielded could not be kept' in str(caught.value)
    assert "Input/output error; 0 finished repeats of this session are kept here" in str(caught.value)
    writer.close("failed")
    assert read_session(writer.path).footer.ended == "failed"


def test_a_write_that_was_interrupted_half_way_is_mended_before_the_next(tmp_path, monkeypatch):
    writer = SessionWriter.open(tmp_path, header())
    writer.started(started(1))
    real = os.write

    def interrupted(descriptor: int, data: bytes) -> int:
        real(descriptor, bytes(data)[:10])
        raise KeyboardInterrupt

    monkeypatch.setattr(writing.os, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        writer.finished(finished(1))
    monkeypatch.undo()
    writer.close("interrupted")

    file = read_session(writer.path)

    assert file.problems == ()
    assert file.footer.lines == 2
    assert [one.outcome for one in file.attempts] == [Outcome.LOST]


def _fail(descriptor: int, data: bytes) -> int:
    raise OSError(5, "Input/output error")


WRITE_FOR_EVER = """
    import sys
    from pathlib import Path
    from evidence_samples import header, started, finished
    from pytest_prereg.evidence.sessions import SessionWriter

    writer = SessionWriter.open(Path(sys.argv[1]), header())
    print(writer.path, flush=True)
    for index in range(1, 1_000_000):
        writer.started(started(index))
        writer.finished(finished(index, error="x" * 5000))
        print(index, flush=True)
"""


@pytest.mark.parametrize("after", [0.0, 0.013, 0.05])
def test_kill_9_while_writing_loses_no_finished_repeat(tmp_path, after):
    program = [sys.executable, "-c", textwrap.dedent(WRITE_FOR_EVER), str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=environment) as process:
        path = Path(process.stdout.readline().strip())
        time.sleep(after)
        process.send_signal(signal.SIGKILL)
        acknowledged = [int(line) for line in process.stdout.read().splitlines()]

    file = read_session(path)

    assert file.problems == ()
    assert file.footer is None
    done = [one.index for one in file.attempts if one.outcome is Outcome.OK]
    assert done[: len(acknowledged)] == acknowledged
    assert len(file.attempts) <= len(acknowledged) + 2


@contextmanager
def small_disk(folder: Path, size: str):
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("needs the right to mount a tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path) -> Path:
    filler = folder / "filler"
    with filler.open("ab", buffering=0) as stream:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while stream.write(b"x" * size):
                    pass
            except OSError:
                continue
    return filler


def test_a_full_disk_keeps_what_was_finished_and_says_where(tmp_path):
    with small_disk(tmp_path / "disk", "2m") as disk:
        writer = SessionWriter.open(disk, header())
        writer.started(started(1))
        writer.finished(finished(1))
        writer.started(started(2))
        filler = fill(disk)
        with pytest.raises(EvidenceError) as caught:
            writer.finished(finished(2, error="x" * 10_000))
        writer.close("failed")

        message = str(caught.value)
        assert "PR121" in message
        assert "No space left on device; 1 finished repeats of this session are kept here" in message
        assert str(writer.path) in message
        file = read_session(writer.path)
        assert file.problems == ()
        assert [one.outcome for one in file.attempts] == [Outcome.OK, Outcome.LOST]

        filler.unlink()
        with SessionWriter.open(disk, header()) as second:
            second.started(started(2, attempt=2))
            second.finished(finished(2, attempt=2))
        assert read_session(second.path).problems == ()


def test_nothing_is_launched_whose_result_would_not_fit(tmp_path):
    with small_disk(tmp_path / "disk", "900k") as disk:
        writer = SessionWriter.open(disk, header())
        with pytest.raises(EvidenceError, match='"gate-a/1/1" was not launched: less than 1 MiB of space'):
            writer.started(started(1))
        writer.close("failed")


def test_a_full_disk_leaves_no_empty_file_behind(tmp_path):
    with small_disk(tmp_path / "disk", "64k") as disk:
        (disk / "gate-a").mkdir()
        fill(disk)
        with pytest.raises(EvidenceError, match="No space left on device; nothing was launched"):
            SessionWriter.open(disk, header())
        with pytest.raises(EvidenceError, match="No space left on device; nothing was launched"):
            write_session(disk, header(), attempt(1))

        assert list((disk / "gate-a").iterdir()) == []


def test_a_read_only_place_is_refused_before_anything_is_launched(tmp_path):
    with small_disk(tmp_path / "disk", "1m") as disk:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)

        with pytest.raises(EvidenceError, match="no evidence can be written here: Read-only file system"):
            SessionWriter.open(disk, header())


def test_evidence_at_hand_is_written_whole(tmp_path):
    path = write_session(tmp_path, header(), attempt(1) + attempt(2))

    file = read_session(path)

    assert file.problems == ()
    assert file.footer.lines == 5
    assert list(path.parent.iterdir()) == [path]


def test_after_a_failure_to_open_the_experiment_is_free_again(tmp_path):
    (tmp_path / "gate-a").write_text("a file where the folder should be")
    for _ in range(2):
        with pytest.raises(EvidenceError, match="PR121"):
            SessionWriter.open(tmp_path, header())


def test_a_file_that_is_removed_while_it_is_written_comes_back_whole(tmp_path):
    with SessionWriter.open(tmp_path, header()) as writer:
        for index in (1, 2):
            writer.started(started(index))
            writer.finished(finished(index))
            writer.path.unlink()
            writer.path.parent.rmdir()

    file = read_session(writer.path)

    assert file.problems == ()
    assert file.footer.ended == "finished"
    assert [one.repeat for one in file.attempts] == ["gate-a/1/1", "gate-a/1/2"]


def test_a_file_that_is_renamed_while_it_is_written_is_there_again_with_all_its_lines(tmp_path):
    with SessionWriter.open(tmp_path, header()) as writer:
        writer.started(started(1))
        writer.path.parent.rename(tmp_path / "kept")
        writer.finished(finished(1))

    assert read_session(writer.path).problems == ()
    assert [one.outcome for one in read_session(writer.path).attempts] == [Outcome.OK]


def test_a_file_that_git_put_back_as_it_was_committed_has_all_its_lines_again(tmp_path, git_repository):
    repository = git_repository()
    with SessionWriter.open(repository.path / "evidence", header()) as writer:
        writer.started(started(1))
        writer.finished(finished(1))
        repository.commit("Half of it")
        writer.started(started(2))
        repository.git("checkout", "-q", "-f", "HEAD", "--", "evidence")
        writer.finished(finished(2))

    file = read_session(writer.path)

    assert file.problems == ()
    assert [one.repeat for one in file.attempts] == ["gate-a/1/1", "gate-a/1/2"]
    assert list(writer.path.parent.iterdir()) == [writer.path]


def test_another_file_in_its_place_is_not_overwritten(tmp_path):
    writer = SessionWriter.open(tmp_path, header())
    writer.started(started(1))
    writer.path.unlink()
    writer.path.write_bytes(b"somebody's\n")

    with pytest.raises(EvidenceError, match=r"could not be kept, .* another file has taken its place"):
        writer.finished(finished(1))

    assert writer.path.read_bytes() == b"somebody's\n"
