"""Peak memory: what is in a reading, what isn't and is told, and what can't be read at all."""

from __future__ import annotations

import mmap
import os
import signal
from pathlib import Path

import pytest

from pytest_prereg import Repeat
from pytest_prereg.measure.instruments import memory, wall_clock
from pytest_prereg.measure.instruments.memory import CudaMemory, PeakResets, ProcessMemory
from pytest_prereg.measure.instruments.reading import UnreadableError

MIB = 1 << 20
SIZE = 64 * MIB


def read_memory(body):
    instrument = ProcessMemory()
    instrument.start()
    body()
    instrument.stop()
    return instrument.reading()


def touch(mapping):
    for page in range(0, len(mapping), mmap.PAGESIZE):
        mapping[page] = 1
    mapping.close()


def hold_and_let_go(size=SIZE):
    touch(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


def hold_shared():
    touch(mmap.mmap(-1, SIZE))


def near(size):
    """What Python itself allocates meanwhile is a few pages."""
    return pytest.approx(size, abs=memory.lag() + MIB)


def test_memory_that_was_let_go_before_the_end_is_in_the_peak():
    reading = read_memory(hold_and_let_go)
    assert reading.details["growth"] == near(SIZE)
    assert reading.value == reading.details["start"] + reading.details["growth"]


def test_memory_that_was_let_go_before_the_window_is_not():
    hold_and_let_go()
    assert read_memory(lambda: None).details["growth"] == near(0)


@pytest.mark.parametrize("named", [Path, str, os.fsencode])
def test_a_body_that_sets_the_mark_back_itself_has_no_reading(named):
    """Nothing would tell how high it had been: the kernel keeps it nowhere else."""

    def hide():
        hold_and_let_go()
        with open(named(f"/proc/{os.getpid()}/clear_refs"), "w") as file:  # noqa: PTH123
            file.write("5")

    with pytest.raises(UnreadableError, match=r"/proc/self/clear_refs was opened in the window \(1 times\)"):
        read_memory(hide)
    assert read_memory(hold_and_let_go).details["growth"] == near(SIZE)


def test_what_is_shared_with_others_is_in_the_peak():
    assert read_memory(hold_shared).details["growth"] == near(SIZE)


def test_a_mapped_file_is_in_the_peak(tmp_path):
    def hold_file():
        with (tmp_path / "pages").open("wb+") as file:
            file.truncate(SIZE)
            touch(mmap.mmap(file.fileno(), SIZE))

    assert read_memory(hold_file).details["growth"] == near(SIZE)


def fork(body):
    pid = os.fork()
    if pid == 0:
        try:
            body()
        finally:
            os._exit(0)
    return pid


def test_a_child_that_was_waited_for_is_told_and_not_in_the_peak():
    reading = read_memory(lambda: os.waitpid(fork(hold_and_let_go), 0))
    assert reading.details["growth"] == near(0)
    assert reading.details["waited_for"] is True
    assert reading.details["waited_for_peak"] >= SIZE
    assert read_memory(lambda: None).details["waited_for"] is False


def test_a_child_that_lives_is_told_and_not_in_the_peak():
    reading_end, writing_end = os.pipe()

    def live():
        hold_and_let_go()
        os.write(writing_end, b"held")
        signal.pause()

    before = read_memory(lambda: None).details["others"]
    children = []

    def body():
        children.append(fork(live))
        os.read(reading_end, 4)

    try:
        reading = read_memory(body)
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    assert reading.details["growth"] == near(0)
    assert reading.details["others"] == before + 1
    assert reading.details["others_peak"] >= SIZE
    assert read_memory(lambda: None).details["others"] == before


def test_a_window_inside_does_not_make_the_outer_one_forget():
    outer, inner = ProcessMemory(), ProcessMemory()
    outer.start()
    hold_and_let_go()
    inner.start()
    hold_and_let_go(SIZE // 2)
    inner.stop()
    outer.stop()
    assert outer.reading().details["growth"] == near(SIZE)
    assert inner.reading().details["growth"] == near(SIZE // 2)


def test_a_repeat_reads_its_peak_in_its_metric_s_unit():
    repeat = Repeat(metrics={"peak": "MiB"})
    with repeat.instrument("process-memory").window("peak") as window:
        hold_and_let_go()
    assert repeat.readings().values["peak"] == pytest.approx(window.reading.value / MIB)
    assert repeat.readings().instruments == {"peak": "process-memory"}


@pytest.fixture
def own_status(tmp_path, monkeypatch):
    """Writes this process's status as a kernel would that can't set the mark back."""
    folder = tmp_path / str(os.getpid())
    folder.mkdir()

    def write(**sizes):
        text = "".join(f"{name}:\t{size // 1024:8} kB\n" for name, size in sizes.items())
        (folder / "status").write_text(f"Name:\tpython\n{text}", encoding="ascii")

    monkeypatch.setattr(memory, "PROC", tmp_path)
    return write


def test_a_mark_that_cannot_be_set_back_and_was_not_exceeded_says_nothing(own_status):
    own_status(VmHWM=500 * MIB, VmRSS=100 * MIB)
    message = rf"this process held {500 * MIB} bytes before the window, .* did not set that mark back \(No such file"
    with pytest.raises(UnreadableError, match=message):
        read_memory(lambda: None)


def test_a_mark_that_cannot_be_set_back_is_the_peak_once_it_is_exceeded(own_status):
    own_status(VmHWM=500 * MIB, VmRSS=100 * MIB)
    reading = read_memory(lambda: own_status(VmHWM=501 * MIB, VmRSS=100 * MIB))
    assert reading.value == 501 * MIB


def test_a_resident_set_that_was_swapped_out_says_nothing(own_status):
    own_status(VmHWM=100 * MIB, VmRSS=100 * MIB, VmSwap=MIB)
    with pytest.raises(UnreadableError, match=rf"{2 * MIB} bytes of this process were swapped out"):
        read_memory(lambda: own_status(VmHWM=120 * MIB, VmRSS=100 * MIB, VmSwap=3 * MIB))


def test_a_kernel_without_the_mark_is_unreadable(own_status):
    own_status(VmRSS=100 * MIB)
    with pytest.raises(UnreadableError, match="has no VmHWM"):
        ProcessMemory().start()


def test_cuda_memory_is_unreadable_where_cuda_is_not_used():
    if wall_clock.cuda_in_use() is not None:
        pytest.skip("an earlier test has used CUDA in this process")
    with pytest.raises(UnreadableError, match="no CUDA device is used in this process"):
        CudaMemory().start()


@pytest.mark.torch
def test_a_reset_of_torch_s_peaks_is_seen_while_a_window_is_open():
    torch = pytest.importorskip("torch")
    plain = torch._C._accelerator_resetPeakStats
    resets = PeakResets()
    resets.watch()
    resets.watch()
    resets.unwatch()
    with pytest.raises(RuntimeError):  # there is no accelerator
        torch._C._accelerator_resetPeakStats(0)
    assert resets.seen == 1
    resets.unwatch()
    assert torch._C._accelerator_resetPeakStats is plain


@pytest.fixture
def torch_on_cuda():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    torch.cuda.init()
    return torch


def hold_on_cuda(torch, size=SIZE):
    torch.empty(size, dtype=torch.int8, device="cuda")


def window_on_cuda(body):
    repeat = Repeat(metrics={"peak": "byte"})
    with repeat.instrument("cuda-memory").window("peak") as window:
        body()
    return window.reading, repeat.readings().problems


@pytest.mark.torch
@pytest.mark.gpu
def test_tensors_that_were_let_go_are_in_the_peak_to_the_byte(torch_on_cuda):
    held = torch_on_cuda.empty(3 * MIB, dtype=torch_on_cuda.int8, device="cuda")
    hold_on_cuda(torch_on_cuda, 2 * SIZE)
    reading, problems = window_on_cuda(lambda: hold_on_cuda(torch_on_cuda))
    assert problems == []
    assert reading.details["growth"] == SIZE
    assert reading.value == reading.details["start"] + SIZE
    assert reading.details["start"] >= held.numel()
    assert reading.details["reserved_peak"] >= reading.value
    assert reading.details["driver_end"] >= reading.value
    assert (reading.details["retries"], reading.details["out_of_memory"]) == (0, 0)
    assert reading.details["backend"] in memory.BACKENDS


@pytest.mark.torch
@pytest.mark.gpu
@pytest.mark.parametrize("name", ["reset_peak_memory_stats", "reset_max_memory_allocated"])
@pytest.mark.filterwarnings("ignore:torch.cuda.reset_max_memory_allocated")
def test_a_body_that_resets_the_peak_has_no_reading(torch_on_cuda, name):
    def body():
        hold_on_cuda(torch_on_cuda)
        getattr(torch_on_cuda.cuda, name)()

    reading, problems = window_on_cuda(body)
    assert reading is None
    assert "torch's peak statistics were reset in the window (1 times)" in problems[0]
    torch_on_cuda.cuda.reset_peak_memory_stats()
    assert window_on_cuda(lambda: None)[1] == []


@pytest.mark.torch
@pytest.mark.gpu
def test_a_window_inside_does_not_make_the_outer_one_forget_tensors(torch_on_cuda):
    inner = []

    def body():
        hold_on_cuda(torch_on_cuda)
        inner.append(window_on_cuda(lambda: hold_on_cuda(torch_on_cuda, SIZE // 2))[0])

    reading, problems = window_on_cuda(body)
    assert problems == []
    assert reading.details["growth"] == SIZE
    assert inner[0].details["growth"] == SIZE // 2


@pytest.mark.torch
@pytest.mark.gpu
def test_an_allocation_that_failed_is_told(torch_on_cuda):
    def body():
        with pytest.raises(torch_on_cuda.OutOfMemoryError):
            hold_on_cuda(torch_on_cuda, 1 << 50)

    reading, problems = window_on_cuda(body)
    assert problems == []
    assert reading.details["out_of_memory"] == 1
    assert reading.details["growth"] == 0


@pytest.mark.torch
@pytest.mark.gpu
def test_an_allocator_that_does_not_count_is_unreadable(torch_on_cuda, monkeypatch):
    monkeypatch.setenv(memory.UNCOUNTED, "1")
    reading, problems = window_on_cuda(lambda: None)
    assert reading is None
    assert f"with {memory.UNCOUNTED} torch doesn't count what it allocates" in problems[0]
