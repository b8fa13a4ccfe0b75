"""A run that was killed goes on bit for bit, from whatever moment, and buys nothing twice."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import time
from multiprocessing.connection import wait

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import grpo_runs  # noqa: E402
from grpo_runs import Data, Parity, digest, kept, loop_of, noted, setting, train  # noqa: E402

from pytest_prereg.measure.workloads.learning import journal  # noqa: E402
from pytest_prereg.measure.workloads.learning.checkpoint import MANIFEST, CheckpointError  # noqa: E402
from pytest_prereg.measure.workloads.learning.journal import (  # noqa: E402
    DamagedError,
    Journal,
    frame,
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
            os.kill(process.pid, signal.SIGKILL)
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
    path.write_bytes(b"".join(map(frame, [*payloads[:3], *foreign])))
    with pytest.raises(ValueError, match="a reward is for what was graded alone"):
        train(1, folder=tmp_path)


def test_what_others_keep_in_the_folder_stays(tmp_path):
    (tmp_path / "mine").write_text("1")
    (tmp_path / "9.journal").write_text("left by a kill")
    train(2, folder=tmp_path)
    assert [each.name for each in files(tmp_path) if each.suffix != ".tensors"] == [
        "2.journal",
        MANIFEST,
        "mine",
    ]
    assert len(files(tmp_path)) == 4


def test_a_frame_that_was_not_finished_is_cut_off(tmp_path):
    path = tmp_path / "some.journal"
    for payload in (b"one", b"two"):
        kept_so_far = read_frames(path).whole if path.exists() else 0
        written = Journal(path, whole=kept_so_far)
        written.append(payload)
        written.close()
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        found = read_frames(path)
        assert found.payloads == [b"one"] * (length >= len(frame(b"one")))
        assert found.whole == len(frame(b"one")) * len(found.payloads)
    path.write_bytes(content[:-1])
    written = Journal(path, whole=read_frames(path).whole)
    written.append(b"three")
    written.close()
    assert read_frames(path).payloads == [b"one", b"three"]


def test_a_frame_whose_length_was_changed_does_not_pass_for_unfinished(tmp_path):
    path = tmp_path / "some.journal"
    path.write_bytes(frame(b"one")[:7] + b"\1" + frame(b"one")[8:])
    with pytest.raises(DamagedError, match="the head of the frame at byte 0"):
        read_frames(path)
