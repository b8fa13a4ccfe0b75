"""The pool that rewards run on, with real processes: order, deadlines, creations, and nothing left behind."""

from __future__ import annotations

import operator
import os
import resource
import select
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_prereg.measure.workloads.reward_pool import FOREVER, Batch, Gate, RewardPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def children() -> set[int]:
    return {int(child) for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def run(pool: RewardPool, durations: list[float], *, deadline: float = 10.0) -> Batch:
    batch = pool.submit(durations, deadline=deadline)
    pool.wait(batch)
    return batch


def seconds(batch: Batch) -> list[float]:
    return [end - batch.submitted for end in batch.ends]


@pytest.fixture(autouse=True)
def workers() -> Iterator[Callable[[], set[int]]]:
    """Tells which processes were started since; none may be left."""
    before = children()

    def started() -> set[int]:
        return children() - before

    yield started
    assert started() == set()


def test_a_batch_ends_with_its_slowest_program():
    with RewardPool(4) as pool:
        batch = run(pool, [0.01, 0.01, 0.15, 0.01])
    assert batch.cut == 0
    assert batch.ends.index(batch.ended) == 2
    assert 0.15 <= batch.ended - batch.submitted < 1.5


def test_a_batch_without_programs_has_ended():
    with RewardPool(1) as pool:
        batch = run(pool, [])
    assert batch.ended == batch.submitted


def test_as_many_programs_as_workers_run_at_the_same_time():
    with RewardPool(16) as pool:
        batch = run(pool, [0.1] * 16)
    assert batch.ended - batch.submitted < 16 * 0.1 / 2


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_no_more_programs_than_workers_run_at_the_same_time(warm):
    with RewardPool(2, warm=warm) as pool:
        ends = seconds(run(pool, [0.05] * 5))
    later = [sum(end >= 0.05 * rounds for end in ends) for rounds in (1, 2, 3)]
    assert all(map(operator.ge, later, [5, 3, 1]))


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_programs_begin_in_the_order_in_which_they_were_submitted(warm):
    with RewardPool(1, warm=warm) as pool:
        batches = [pool.submit([0.0, 0.0], deadline=10) for _ in range(3)]
        pool.wait(batches[-1])
    ends = [end for batch in batches for end in batch.ends]
    assert ends == sorted(ends)


def test_a_program_is_cut_off_for_being_late_and_nothing_else_is(workers):
    with RewardPool(4) as pool:
        before = workers()
        batch = run(pool, [0.0, FOREVER, 0.0, 60.0], deadline=0.3)
        assert batch.cut == 2
        assert len(workers() & before) == 2, "what is late is killed and reaped"
    ends = seconds(batch)
    assert all(0.3 <= ends[late] < 2.5 for late in (1, 3))
    assert all(ends[early] < min(ends[1], ends[3]) for early in (0, 2))


def test_a_program_has_its_whole_deadline_however_long_it_queued():
    with RewardPool(1) as pool:
        batch = run(pool, [FOREVER, 0.0, FOREVER], deadline=0.2)
    assert batch.cut == 2
    hung, fine, hung_again = seconds(batch)
    assert 0.2 <= hung <= fine
    assert hung_again >= 0.4


def test_batches_have_deadlines_of_their_own():
    with RewardPool(2) as pool:
        patient = pool.submit([0.2], deadline=10)
        hasty = pool.submit([FOREVER], deadline=0.05)
        pool.wait(patient)
    assert (patient.cut, hasty.cut) == (0, 1)
    assert hasty.ended < patient.ended


def test_the_killed_are_replaced_when_programs_queue_for_them():
    with RewardPool(2) as pool:
        batch = run(pool, [FOREVER, FOREVER, 0.0, 0.0], deadline=0.1)
    assert batch.cut == 2


def test_the_killed_are_replaced_while_the_accelerator_is_busy(workers):
    with RewardPool(3) as pool:
        run(pool, [FOREVER] * 3, deadline=0.05)
        assert workers() == set()
        pool.serve(time.monotonic() + 0.3)
        assert len(workers()) == 3


def test_a_refilled_pool_is_complete(workers):
    with RewardPool(3) as pool:
        run(pool, [FOREVER] * 3, deadline=0.05)
        pool.refill()
        assert len(workers()) == 3
        assert run(pool, [0.0] * 3).cut == 0


def test_a_warm_pool_uses_its_processes_again(workers):
    with RewardPool(2) as pool:
        before = workers()
        run(pool, [0.0] * 6)
        pool.refill()
        assert workers() == before


def test_a_cold_pool_uses_each_process_once(workers):
    with RewardPool(2, warm=False) as pool:
        before = workers()
        run(pool, [0.0, 0.0])
        pool.refill()
        assert len(before - workers()) == 2
        assert len(workers()) == len(before)


def test_a_cold_pool_runs_more_programs_than_it_keeps_processes():
    with RewardPool(2, warm=False) as pool:
        batch = run(pool, [0.0] * 9 + [FOREVER], deadline=0.1)
    assert batch.cut == 1


def test_a_creation_comes_before_the_programs_clock_starts():
    with RewardPool(2, warm=False, creation=0.2) as pool:
        fine, hung = seconds(batch := run(pool, [0.1, FOREVER], deadline=0.25))
    assert batch.cut == 1
    assert fine >= 0.3
    assert hung >= 0.45


def test_a_creation_occupies_a_worker():
    with RewardPool(1, warm=False, creation=0.05) as pool:
        assert [
            end >= floor for end, floor in zip(seconds(run(pool, [0.0] * 3)), (0.05, 0.1, 0.15), strict=True)
        ]


def test_a_warm_pool_creates_nothing_while_rewards_are_awaited():
    with RewardPool(1, creation=2.0, rate=0.5) as pool:
        batch = run(pool, [0.0] * 3)
    assert batch.ended - batch.submitted < 2


def test_creations_begin_at_their_rate():
    with RewardPool(8, warm=False, rate=40) as pool:
        ends = seconds(run(pool, [0.0] * 6))
    assert all(end >= place / 40 for place, end in enumerate(ends))


def passed(gate: Gate, *moments: float) -> list[bool]:
    return [gate.passes(moment) for moment in moments]


def test_a_gate_lets_one_pass_in_every_interval():
    assert passed(Gate(4), 0.0, 0.1, 0.2, 0.25, 0.3, 0.5) == [True, False, False, True, False, True]


def test_what_passes_late_does_not_put_off_what_queues_behind_it():
    assert passed(Gate(4), 0.0, 0.1, 0.4, 0.45, 0.5) == [True, False, True, False, True]


def test_a_gate_that_nothing_queued_at_lets_no_burst_pass():
    assert passed(Gate(4), 0.0, 9.0, 9.1, 9.2, 9.25) == [True, True, False, False, True]


def test_a_gate_without_a_rate_lets_all_pass():
    assert passed(Gate(None), 0.0, 0.0, 0.0) == [True, True, True]


def test_the_first_batch_that_is_done_is_returned_first():
    with RewardPool(4) as pool:
        slow, fast = pool.submit([0.2], deadline=10), pool.submit([0.01], deadline=10)
        assert pool.wait_any([slow, fast]) == [fast]
        assert pool.wait_any([slow]) == [slow]
        assert pool.wait_any([slow, fast]) == [fast, slow]


def test_waiting_for_any_batch_ends_at_the_moment_given():
    with RewardPool(1) as pool:
        batch = pool.submit([FOREVER], deadline=10)
        until = time.monotonic() + 0.05
        assert pool.wait_any([batch], until=until) == []
        assert until <= time.monotonic() < until + 1


def test_what_ends_while_the_accelerator_is_busy_is_stamped_when_it_ends():
    with RewardPool(2) as pool:
        batch = pool.submit([0.05, FOREVER], deadline=0.1)
        until = time.monotonic() + 0.5
        pool.serve(until)
        assert time.monotonic() >= until
        assert batch.done
    assert 0.1 <= batch.ended - batch.submitted < 0.4


def test_waiting_takes_no_processor_time():
    with RewardPool(2) as pool:
        before = time.process_time()
        run(pool, [0.2, FOREVER], deadline=0.3)
        assert time.process_time() - before < 0.15


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_a_worker_that_dies_is_an_error_not_a_fast_answer(warm, workers):
    with RewardPool(1, warm=warm) as pool:
        batch = pool.submit([5.0], deadline=10)
        for worker in workers():
            os.kill(worker, signal.SIGTERM)
        with pytest.raises(ChildProcessError, match="killed by SIGTERM before it had answered"):
            pool.wait(batch)


def test_a_worker_that_died_before_it_had_a_program_is_an_error(workers):
    with RewardPool(1) as pool:
        os.kill(*workers(), signal.SIGKILL)
        with pytest.raises(ChildProcessError, match="killed by SIGKILL"):
            run(pool, [0.0])


def test_programs_in_flight_end_with_the_pool():
    with RewardPool(3) as pool:
        pool.submit([FOREVER, 60.0, 0.0, 60.0], deadline=60)


def test_an_interrupt_leaves_nothing_running():
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with RewardPool(3) as pool, pytest.raises(KeyboardInterrupt):
            run_until_alarm(pool)
    finally:
        signal.signal(signal.SIGALRM, previous)


def run_until_alarm(pool):
    """The alarm is set no sooner: in the hooks around a fork its exception would be lost."""
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    run(pool, [FOREVER] * 3, deadline=60)


def test_a_pool_that_cannot_be_filled_leaves_nothing_running():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 8, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"), RewardPool(64):
            pytest.fail("64 workers cannot have been forked")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_workers_hold_nothing_open_that_their_parent_had():
    read, write = os.pipe()
    with RewardPool(2):
        os.close(write)
        ended, _, _ = select.select([read], [], [], 5)
        assert ended
        assert os.read(read, 1) == b""
    os.close(read)


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_workers_end_with_their_parent(warm, wait_until):
    """A parent that is killed can't clean up: idle, sleeping and hung ones have to see to themselves."""
    read, write = os.pipe()
    parent = os.fork()
    if parent == 0:
        try:
            pool = RewardPool(3, warm=warm).__enter__()
            batch = pool.submit([FOREVER, 60.0], deadline=60)
            os.write(write, " ".join(map(str, children())).encode())
            pool.wait(batch)
        finally:
            os._exit(1)
    workers = [int(process) for process in os.read(read, 1000).split()]
    os.close(read)
    os.close(write)
    assert len(workers) >= 3
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    wait_until(lambda: not any(map(is_alive, workers)))
