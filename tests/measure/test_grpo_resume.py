"""A run that was killed goes on bit for bit, from whatever moment, and buys nothing twice."""

from __future__ import annotations

import errno
import itertools
import json
import multiprocessing
import os
import random
import time
from multiprocessing.connection import wait
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import grpo_runs  # noqa: E402
from grpo_runs import OPEN, Data, Parity, digest, kept, loop_of, noted, setting, train  # noqa: E402

from pytest_prereg.measure.instruments.reading import Reached, Reading  # noqa: E402
from pytest_prereg.measure.instruments.window import Window  # noqa: E402
from pytest_prereg.measure.workloads.learning import checkpoint, journal, surroundings  # noqa: E402
from pytest_prereg.measure.workloads.learning.checkpoint import (  # noqa: E402
    MANIFEST,
    Began,
    Checkpoint,
    CheckpointError,
)
from pytest_prereg.measure.workloads.learning.journal import (  # noqa: E402
    DamagedError,
    Journal,
    frames,
    read_frames,
)

pytestmark = pytest.mark.torch

STEPS, KILLS = 3, 5
SHAPE = {"generate_at_once": 1, "mini_batches": 2}


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def undisturbed():
    torch.set_num_threads(1)
    return digest(train(STEPS, **SHAPE))


class Killed(BaseException):
    """Stands for a kill where a process can't be killed at a chosen place."""


class Dies(Parity):
    """Is killed with the run at its n-th reward."""

    def __init__(self, n):
        super().__init__()
        self.left = n

    def grade(self, each):
        self.left -= 1
        if self.left < 0:
            raise Killed
        return super().grade(each)


def die(steps, grader, folder, data=None, **fields):
    with pytest.raises(Killed):
        train(steps, grader=grader, data=data, folder=folder, **fields)


def test_keeping_a_run_changes_nothing_of_it(tmp_path, undisturbed):
    assert digest(train(STEPS, folder=tmp_path, **SHAPE)) == undisturbed


@pytest.mark.parametrize("overlap", [False, True])
def test_open_rollouts_are_found_again_and_what_was_paid_is_not_paid_again(tmp_path, undisturbed, overlap):
    first, again, data = Dies(13), Parity(), Data()
    die(STEPS, first, tmp_path, overlap=overlap, **SHAPE)
    before = kept(tmp_path)
    assert 8 < len(before.paid) <= 13
    loop = train(STEPS, grader=again, data=data, folder=tmp_path, overlap=overlap, **SHAPE)
    assert digest(loop) == undisturbed
    assert not {each.id for each in again.asked} & before.paid
    assert not set(data.asked) & before.prompts
    assert len(again.asked) == STEPS * 8 - len(before.paid)
    assert [each.step for each in loop.progress.measured] == [0, 1, 2]
    assert loop.began == [0, 1]


def test_states_may_be_further_apart_than_steps(tmp_path, undisturbed):
    """Updates since the last state are done again, from what was sampled and paid; nothing else is."""
    shape = {**SHAPE, "checkpoint_every": 2}
    die(3, Dies(9), tmp_path, **shape)
    again, data = Parity(), Data()
    loop = train(STEPS, grader=again, data=data, folder=tmp_path, **shape)
    assert digest(loop) == undisturbed
    assert {each.id.split("/")[0] for each in again.asked} == {"1", "2"}
    assert set(data.asked) <= {2, 3, 4, 5}
    assert loop.began == [0, 1]


def test_what_a_lost_attempt_measured_is_recorded_once(tmp_path):
    shape = {**SHAPE, "checkpoint_every": 2}
    before = train(1, folder=tmp_path, **shape).progress.measured
    loop = loop_of(setting(**shape), folder=tmp_path)
    assert loop.measured_earlier == before
    for _ in range(STEPS):
        loop.step()
    assert loop.progress.measured[:1] == before
    assert [each.step for each in loop.progress.measured] == [0, 1, 2]


def test_warming_up_again_leaves_the_moments_as_they_were(tmp_path):
    before = digest(train(1, folder=tmp_path))
    loop = loop_of(setting(), folder=tmp_path)
    loop.warm_up()
    assert digest(loop) == before


def test_the_time_that_was_waited_before_a_kill_is_counted(tmp_path):
    class Slow(Dies):
        def grade(self, each):
            time.sleep(0.05)
            return super().grade(each)

    die(1, Slow(7), tmp_path)
    waited = max(each.waited for each in loop_of(setting(), folder=tmp_path)._recall.receipts(0))
    loop = train(1, folder=tmp_path)
    assert waited >= 0.05
    assert loop.progress.measured[0].samples["t_reward"][0] >= waited


class Reads:
    """Reads of each window what it is told to; stands for memory, which can't be told what to hold."""

    def __init__(self, *peaks):
        self.peaks = iter(peaks)

    def start(self): ...

    def stop(self): ...

    def reached(self):
        peak = next(self.peaks)
        return Reached(peak, peak - 100)

    def reading(self):
        peak, growth = self.reached()
        return Reading(value=peak, instrument="told", details={"growth": growth})


def window(loop, *peaks):
    return Window(lambda: Reads(*peaks), lambda _: None, pytest.fail, reached=loop.reached)


def test_the_peak_of_memory_before_a_kill_is_the_step_s_as_well(tmp_path):
    """Killed while it waits for rewards, a step does not read the peak of its generation again."""
    first = loop_of(setting(generate_at_once=1), grader=Dies(9), folder=tmp_path)
    first.step(window(first, 500, 400, 300))
    with pytest.raises(Killed):
        first.step(window(first, 900, 800, 700))
    again = loop_of(setting(generate_at_once=1), folder=tmp_path)
    assert again.reached == (900, 800)
    measured = again.step(window(again, 600))
    assert measured.samples["peak_memory"] == [900]
    assert measured.samples["memory_growth"] == [800]
    assert again.step(window(again, 200, 400, 300)).samples["peak_memory"] == [300]


def test_killed_wherever_something_reaches_the_disk_it_goes_on_bit_for_bit(
    tmp_path, undisturbed, monkeypatch
):
    """Every sync is once the last thing that an attempt does; what it was to make durable may be lost."""
    left = 0
    really = os.fsync

    def fsync(descriptor):
        nonlocal left
        left -= 1
        if left == 0:
            raise Killed
        really(descriptor)

    monkeypatch.setattr(journal.os, "fsync", fsync)
    attempts = 0
    for moment in range(2, 40, 3):
        left, attempts = moment, attempts + 1
        try:
            loop = train(STEPS, folder=tmp_path, **SHAPE)
            break
        except Killed:
            continue
    assert digest(loop) == undisturbed
    assert attempts > 4
    assert len(loop.began) <= attempts


def test_killed_for_real_at_random_moments_it_goes_on_bit_for_bit(tmp_path, undisturbed):
    """Processes of their own, by SIGKILL; what a lost attempt had on disk, no later one buys."""
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    folder, result, log = (tmp_path / f"run{suffix}" for suffix in ("", ".json", ".log"))
    log.touch()
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["torch._dynamo", grpo_runs.GrpoLoop.__module__])
    arguments = (str(folder), str(result), str(log), SHAPE, STEPS)
    kills = 0
    while not result.exists():
        before, logged = kept(folder), log.stat().st_size
        process = processes.Process(target=grpo_runs.run_to_the_end, args=arguments)
        process.start()
        if kills < KILLS:
            while process.is_alive() and log.stat().st_size == logged:
                time.sleep(0.001)
            wait([process.sentinel], chance.uniform(0, 0.1))
            process.kill()  # which minds no process that has ended meanwhile
        process.join()
        told = f"random seed {seed}, after {kills} kills"
        assert kills < KILLS or process.exitcode == 0, told
        assert not set(noted(log, "reward", process.pid)) & before.paid, told
        assert not set(noted(log, "prompt", process.pid)) & before.prompts, told
        kills += 1
    assert json.loads(result.read_text()) == {"digest": undisturbed, "steps": [0, 1, 2]}, told
    assert kills > 2, told


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"learning_rate": 0.5}, "learning_rate 0.01, and here 0.5"),
        ({"group": 2, "steps": 9}, "group 4, and here 2; steps 1, and here 9"),
    ],
)
def test_another_run_does_not_go_on_from_it(tmp_path, fields, message):
    train(1, folder=tmp_path)
    with pytest.raises(CheckpointError, match=f"is of another run: {message}"):
        loop_of(setting(**fields), folder=tmp_path)


def test_another_seed_does_not_go_on_from_it(tmp_path, monkeypatch):
    train(1, folder=tmp_path)
    monkeypatch.setattr(grpo_runs, "SEED", 12)
    with pytest.raises(CheckpointError, match="seed 11, and here 12"):
        loop_of(setting(), folder=tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda patch: patch.setattr(surroundings.transformers, "__version__", "9.9"),
            r"transformers .*, and here 9\.9",
        ),
        (lambda _: torch.set_float32_matmul_precision("medium"), "highest, and here medium"),
        (lambda _: torch.set_num_threads(2), "threads 1, and here 2"),
        (
            lambda patch: patch.setattr(
                surroundings, "workload_versions", lambda module: ((module, "2"), ("below.it", "9"))
            ),
            "version of below.it not there, and here 9",
        ),
    ],
)
def test_nothing_is_gone_on_from_under_what_may_change_its_bits(tmp_path, monkeypatch, change, message):
    module = "pytest_prereg.measure.workloads.grpo"
    before = Checkpoint(tmp_path, surroundings.surroundings(module))
    before.open()
    before.close()
    try:
        change(monkeypatch)
        with pytest.raises(CheckpointError, match=message):
            Checkpoint(tmp_path, surroundings.surroundings(module)).open()
    finally:
        torch.set_float32_matmul_precision("highest")


def files(folder):
    return sorted(each for each in folder.iterdir())


def test_whatever_byte_is_changed_it_is_refused_or_what_was_whole_before_it_is_used(tmp_path):
    die(2, Dies(11), tmp_path)
    originals = {each: each.read_bytes() for each in files(tmp_path)}
    assert {each.suffix for each in originals} == {"", ".journal", ".tensors"}
    for each, content in originals.items():
        for place in [0, 9, 45, len(content) // 2, len(content) - 1]:
            changed = bytearray(content)
            changed[place] ^= 1
            each.write_bytes(changed)
            with pytest.raises(CheckpointError, match=r"is damaged: .* remove it, and the run begins anew"):
                loop_of(setting(), folder=tmp_path)
            each.write_bytes(content)
    loop_of(setting(), folder=tmp_path)


def test_a_file_that_is_missing_is_missed(tmp_path):
    die(2, Dies(11), tmp_path)
    for each in files(tmp_path):
        content = each.read_bytes()
        each.unlink()
        with pytest.raises(CheckpointError, match="missing"):
            loop_of(setting(), folder=tmp_path)
        each.write_bytes(content)


@pytest.mark.parametrize("lost", [[MANIFEST], [MANIFEST, "*.tensors"]])
@pytest.mark.parametrize("rewards", [1, 11])
def test_a_lost_manifest_is_missed_wherever_a_journal_tells_that_there_was_one(tmp_path, lost, rewards):
    die(2, Dies(rewards), tmp_path)
    for file in [each for name in lost for each in tmp_path.glob(name)]:
        file.unlink()
    with pytest.raises(CheckpointError, match=r"manifest is missing, and .* is there; remove it"):
        loop_of(setting(), folder=tmp_path)


def test_killed_before_the_first_manifest_was_in_place_it_begins(tmp_path, undisturbed):
    loop_of(setting(**SHAPE), folder=tmp_path)
    head = read_frames(tmp_path / "0.journal").payloads[0]
    (tmp_path / MANIFEST).unlink()
    (tmp_path / "0.journal").write_bytes(frames(head))
    assert digest(train(STEPS, folder=tmp_path, **SHAPE)) == undisturbed


@pytest.mark.parametrize("name", [MANIFEST, "1.journal", "*.tensors"])
def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path, name):
    die(2, Dies(11), tmp_path)
    (file,) = tmp_path.glob(name)
    file.unlink()
    file.mkdir()
    with pytest.raises(CheckpointError, match=r"can't be read \(Is a directory\)"):
        loop_of(setting(), folder=tmp_path)


@pytest.mark.parametrize("order", [[0, 2], [0, 2, 1], [0, 1, 1]])
def test_records_that_were_taken_out_or_put_elsewhere_are_missed(tmp_path, order):
    path = tmp_path / "some.journal"
    path.write_bytes(frames(b"one", b"two", b"six"))
    pieces = [path.read_bytes()[place : place + 51] for place in (0, 51, 102)]
    path.write_bytes(b"".join(pieces[each] for each in order))
    with pytest.raises(DamagedError, match="was changed, or one before it"):
        read_frames(path)


def test_two_do_not_go_on_from_one_folder_at_once(tmp_path):
    first = Checkpoint(tmp_path, {})
    first.open()
    with pytest.raises(CheckpointError, match="is open already"):
        Checkpoint(tmp_path, {}).open()
    first.append(Began(step=0))
    first.close()
    again = Checkpoint(tmp_path, {})
    assert again.open().records == [Began(step=0)] * 3
    again.close()


def fails(function, *moments, how=errno.ENOSPC):
    """Let those calls of a function fail, counted from 1, as on a full disk."""
    calls = itertools.count(1)

    def maybe(*arguments, **named):
        if next(calls) in moments:
            raise OSError(how, os.strerror(how))
        return function(*arguments, **named)

    return maybe


def test_a_frame_that_could_not_be_written_is_cut_off_again(tmp_path, monkeypatch):
    path = tmp_path / "some.journal"
    path.touch()
    written = Journal(path, read_frames(path))
    written.append(b"one")
    really = os.write
    monkeypatch.setattr(journal.os, "write", fails(lambda where, what: really(where, what[:9]), 2))
    with pytest.raises(OSError, match="No space left"):
        written.append(b"two")
    monkeypatch.setattr(journal.os, "write", really)
    assert path.read_bytes() == frames(b"one")
    written.append(b"six")
    written.close()
    assert path.read_bytes() == frames(b"one", b"six")


def test_on_a_full_disk_a_run_goes_on_and_says_what_was_not_kept(tmp_path, undisturbed, monkeypatch):
    monkeypatch.setattr(journal.os, "write", fails(os.write, 4))
    monkeypatch.setattr(checkpoint.torch, "save", fails(torch.save, 1))
    loop = loop_of(setting(**SHAPE), folder=tmp_path)
    for _ in range(STEPS):
        loop.step()
    assert digest(loop) == undisturbed
    assert loop.began == [0]
    full = "could not be kept: No space left on device"
    assert OPEN[tmp_path].faults == (
        f"what was done next, a record of Settled, {full}",
        f"the state after step 1, {full}",
    )
    assert loop_of(setting(**SHAPE), folder=tmp_path).progress.step == STEPS


@pytest.mark.parametrize("moment", [1, 4, 9])
def test_killed_after_the_disk_was_full_it_goes_on_bit_for_bit(tmp_path, undisturbed, monkeypatch, moment):
    """What was kept before is gone on from; what was done since is done again, to the same end."""
    with monkeypatch.context() as patched:
        patched.setattr(journal.os, "fsync", fails(os.fsync, *range(moment, 99), how=errno.EIO))
        die(STEPS, Dies(11), tmp_path, **SHAPE)
        assert OPEN[tmp_path].faults
    assert digest(train(STEPS, folder=tmp_path, **SHAPE)) == undisturbed
    assert OPEN[tmp_path].faults == ()


def test_a_disk_that_nothing_can_be_written_to_keeps_nothing_and_ends_no_run(
    tmp_path, undisturbed, monkeypatch
):
    really = os.open

    def read_only(path, flags, *mode, **options):
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return really(path, flags, *mode, **options)

    monkeypatch.setattr(journal.os, "open", read_only)
    monkeypatch.setattr(Path, "open", fails(Path.open, *range(1, 99), how=errno.EROFS))
    assert digest(train(STEPS, folder=tmp_path, **SHAPE)) == undisturbed
    assert OPEN[tmp_path].faults[0] == "the beginning of the run, could not be kept: Read-only file system"


def test_a_journal_of_another_state_is_refused(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    die(2, Dies(11), one)
    other.mkdir()
    die(2, Dies(11), other, learning_rate=0.5)
    (one / "1.journal").write_bytes((other / "1.journal").read_bytes())
    with pytest.raises(CheckpointError, match=r"1\.journal goes on from another state"):
        loop_of(setting(), folder=one)


def test_rewards_of_other_trajectories_in_the_journal_are_refused(tmp_path):
    """Frames that were each written, put together anew: the digests of what was graded tell."""
    die(1, Dies(5), tmp_path)
    path = tmp_path / "0.journal"
    payloads = read_frames(path).payloads
    other = tmp_path / "other"
    other.mkdir()
    die(1, Dies(5), other, temperature=0.5)
    foreign = read_frames(other / "0.journal").payloads[3:]
    path.write_bytes(frames(*payloads[:3], *foreign))
    with pytest.raises(ValueError, match="a reward is for what was graded alone"):
        train(1, folder=tmp_path)


def test_what_others_keep_in_the_folder_stays(tmp_path):
    train(1, folder=tmp_path)
    (tmp_path / "mine").write_text("1")
    (tmp_path / "9.journal").write_text("left by a kill")
    (tmp_path / "1.tensors").mkdir()
    train(2, folder=tmp_path)
    (tmp_path / "1.tensors").rmdir()
    assert [each.name for each in files(tmp_path) if each.suffix != ".tensors"] == [
        "2.journal",
        MANIFEST,
        "mine",
    ]
    assert len(files(tmp_path)) == 4


def test_a_frame_that_was_not_finished_is_cut_off(tmp_path):
    path = tmp_path / "some.journal"
    for payload in (b"one", b"two"):
        path.touch()
        written = Journal(path, read_frames(path))
        written.append(payload)
        written.close()
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        found = read_frames(path)
        assert found.payloads == [b"one"] * (length >= len(frames(b"one")))
        assert found.whole == len(frames(b"one")) * len(found.payloads)
    path.write_bytes(content[:-1])
    written = Journal(path, read_frames(path))
    written.append(b"three")
    written.close()
    assert read_frames(path).payloads == [b"one", b"three"]


def test_a_frame_whose_length_was_changed_does_not_pass_for_unfinished(tmp_path):
    path = tmp_path / "some.journal"
    path.write_bytes(frames(b"one")[:7] + b"\1" + frames(b"one")[8:])
    with pytest.raises(DamagedError, match="the head of the frame at byte 0"):
        read_frames(path)
