"""Want of memory, however a body comes to it: a failure of the task's own, with a cause of its own."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

import pytest
from laboratories import Laboratory, job

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.executors.exhaustion import is_out_of_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIMIT = "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))\n"
HUGE = 1 << 50
"""Bytes that no machine has."""

WANTING = {
    "an array of numpy's": f"numpy.empty({HUGE}, dtype='u1')",
    "a mapping that the kernel refuses": f"mmap.mmap(-1, {HUGE})",
    "a limit on the address space": f"{LIMIT}[bytearray(1 << 26) for _ in range(32)]",
    "small things that stay reachable": f"{LIMIT}while True: KEPT.append(str(len(KEPT)))",
    "small things of the body's own": f"{LIMIT}kept = []\nwhile True: kept.append(bytearray(1000))",
    "a wrapper that names its cause": (
        "try: raise MemoryError\nexcept MemoryError as error: raise ValueError('step failed') from error"
    ),
    "a wrapper that names no cause": (
        "try: raise MemoryError\nexcept MemoryError: raise ValueError('step failed')"
    ),
    "a group": "raise ExceptionGroup('two workers', [ValueError('no'), ExceptionGroup('', [MemoryError()])])",
    "a pool of processes": (
        "from concurrent.futures import ProcessPoolExecutor\n"
        f"with ProcessPoolExecutor(1) as pool: pool.submit(bytearray, {HUGE}).result()"
    ),
    "C++ that nothing catches": (
        "print(\"terminate called after throwing an instance of 'std::bad_alloc'\", flush=True); os.abort()"
    ),
}

ELSE = {
    "a message that mentions it": ("raise ValueError('out of memory: MemoryError')", "exception"),
    "a cause that is disowned": (
        "try: raise MemoryError\nexcept MemoryError: pass\nraise RuntimeError('out of memory, almost')",
        "exception",
    ),
    "a context that is disowned": (
        "try: raise MemoryError\nexcept MemoryError: raise ValueError('too long') from None",
        "exception",
    ),
    "a full disk": ("raise OSError(28, 'No space left on device')", "exception"),
    "an abort": ("print('std::bad_alloc', flush=True); os.abort()", "signal"),
}


def dispatching(cases: dict[str, str]) -> str:
    """The body of an experiment that runs the case named by its parameter."""
    return "\n".join(
        f"if params['case'] == {name!r}:\n{indent(code, '    ')}" for name, code in cases.items()
    )


@pytest.fixture(scope="module")
def laboratories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable]:
    """Makes experiments that have a case for each kind of end, and that are imported once."""
    made = []

    def make(cases: dict[str, str], **options: object) -> Callable:
        laboratory = Laboratory(tmp_path_factory.mktemp("laboratory"))
        made.append(laboratory)
        executor = laboratory.executor(dispatching(cases), **options)
        executor.start()
        return lambda case: executor.run(job(executor, params={"case": case}))

    yield make
    for laboratory in made:
        laboratory.close()


@pytest.fixture(scope="module")
def run(laboratories) -> Callable:
    cases = WANTING | {name: code for name, (code, _) in ELSE.items()}
    return laboratories(cases, top="import mmap, numpy\nKEPT = []\n")


@pytest.mark.parametrize("case", WANTING)
def test_want_of_memory_is_told_as_such(run, case):
    result = run(case)
    assert (result.outcome, result.cause) == (Outcome.TASK_FAILED, "oom"), result.error
    assert result.error


@pytest.mark.parametrize("case", ELSE)
def test_what_only_speaks_of_memory_is_another_failure(run, case):
    result = run(case)
    assert (result.outcome, result.cause) == (Outcome.TASK_FAILED, ELSE[case][1]), result.error


def test_the_whole_chain_stays_in_the_evidence(run):
    error = run("a wrapper that names its cause").error
    assert error.index("MemoryError") < error.index("direct cause") < error.index("ValueError: step failed")


# The kernel's own killer

HOG = "kept = [b'x' * (1 << 20) + bytes([n]) for n in range(200)]"
HOGS = {
    "itself": HOG,
    "a child it waits for": f"subprocess.run([sys.executable, '-c', {HOG!r}], check=True)",
    "a child, and says so by its status": (
        f"raise SystemExit(subprocess.run([sys.executable, '-c', {HOG!r}]).returncode)"
    ),
    "a child it can do without": (
        f"repeat.record('t', -subprocess.run([sys.executable, '-c', {HOG!r}]).returncode)"
    ),
}


def memory_folder() -> Path | None:
    """Where control groups for memory are made, of version 2 or 1."""
    root = Path("/sys/fs/cgroup")
    if (root / "cgroup.controllers").exists():
        return root if "memory" in (root / "cgroup.subtree_control").read_text().split() else None
    return root / "memory" if (root / "memory" / "memory.limit_in_bytes").exists() else None


@pytest.fixture(scope="module")
def confined() -> Iterator[Path]:
    """A control group that has 96 MB."""
    folder = memory_folder()
    if folder is None:
        pytest.skip("no control groups for memory are mounted here")
    group = folder / f"prereg-{os.getpid()}"
    try:
        group.mkdir()
        limit = next(
            each for name in ("memory.max", "memory.limit_in_bytes") if (each := group / name).exists()
        )
        limit.write_text(str(96 << 20))
        if (group / "memory.swap.max").exists():
            (group / "memory.swap.max").write_text("0")
    except OSError as error:
        pytest.skip(f"no control group for memory can be made here: {error}")
    yield group
    group.rmdir()


@pytest.fixture
def small_world(laboratory, confined) -> Iterator[Callable]:
    """Runs a case where the fork server, and so all that it starts, is in that group."""
    executor = laboratory.executor(dispatching(HOGS))
    executor.start()
    (server,) = executor._servers.values()
    (confined / "cgroup.procs").write_text(str(server.process.pid))
    yield lambda case: executor.run(job(executor, params={"case": case}))
    executor.close()


def test_what_the_kernel_kills_for_want_of_memory_failed_by_itself(small_world):
    result = small_world("itself")
    assert (result.outcome, result.cause) == (Outcome.TASK_FAILED, "oom")
    assert result.error.startswith("killed by the kernel, which was out of memory")


@pytest.mark.parametrize("case", ["a child it waits for", "a child, and says so by its status"])
def test_a_body_whose_child_the_kernel_kills_fails_for_that(small_world, case):
    result = small_world(case)
    assert (result.outcome, result.cause) == (Outcome.TASK_FAILED, "oom")
    assert result.error.startswith("it failed, and meanwhile the kernel, out of memory, killed a process")
    assert "Traceback" in result.error


def test_a_body_that_can_do_without_its_child_is_ok(small_world):
    result = small_world("a child it can do without")
    assert (result.outcome, result.values) == (Outcome.OK, {"t": 9.0})


# Torch, most of whose allocators raise a RuntimeError

TORCH = {
    "the allocator of the CPU": f"torch.empty({HUGE}, dtype=torch.uint8)",
    "a layer": "torch.nn.Linear(1 << 24, 1 << 24)",
    "the allocator of CUDA": "raise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 2.90 GiB.')",
    "a compiler": (
        f"def compiler(graph, inputs): return torch.empty({HUGE}, dtype=torch.uint8)\n"
        "torch.compile(lambda x: x + 1, backend=compiler)(torch.ones(2))"
    ),
    "compiled code": (
        f"torch.compile(lambda x: x + torch.ones({HUGE} // 4).sum(), backend='eager')(torch.ones(2))"
    ),
    "a process that torch starts": (
        "raise torch.multiprocessing.ProcessRaisedException('-- Process 0 terminated:\\nMemoryError', 0, 9)"
    ),
}


@pytest.fixture(scope="module")
def run_torch(laboratories) -> Callable:
    pytest.importorskip("torch")
    return laboratories(TORCH, top="import torch, torch._dynamo, torch.multiprocessing")


@pytest.mark.torch
@pytest.mark.parametrize("case", TORCH)
def test_torch_s_want_of_memory_is_told_as_such(run_torch, case):
    result = run_torch(case)
    assert (result.outcome, result.cause) == (Outcome.TASK_FAILED, "oom"), result.error


@pytest.mark.torch
def test_a_model_that_memory_can_t_hold_is_not_said_to_be_damaged():
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from pytest_prereg.measure.workloads.language.pretrained import _told

    with pytest.raises(RuntimeError, match="can't allocate memory") as found:
        _told("owner/model", lambda: torch.empty(HUGE, dtype=torch.uint8))
    assert is_out_of_memory(found.value)


@pytest.mark.torch
@pytest.mark.gpu
def test_a_gpu_s_want_of_memory_is_told_as_such(laboratory):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch.cuda is not available")
    body = f"import torch\ntorch.empty({HUGE}, dtype=torch.uint8, device='cuda')"
    result = laboratory.run(body, timeout=60.0)
    assert (result.outcome, result.cause) == (Outcome.TASK_FAILED, "oom"), result.error
    assert "CUDA out of memory" in result.error


# Words of what can't be run here

SAID = [
    # torch/c10/core/impl/alloc_cpu.cpp: 2.4 to 2.13, and where there is no posix_memalign
    "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes. Error code 12 (Cannot allocate memory)",
    "[enforce fail at alloc_cpu.cpp:121] data. DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes.",
    "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API call",
    "CUDA driver error: out of memory",
    "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
    "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
    "cuFFT error: CUFFT_ALLOC_FAILED",
    "HIP error: out of memory",
    "HIP out of memory. Tried to allocate 2.00 GiB.",
    "XPU out of memory. Tried to allocate 2.00 GiB.",
    "MPS backend out of memory (MPS allocated: 9.06 GB)",
    "Triton Error [CUDA]: out of memory",
    "NCCL Error 1: unhandled cuda error\nLast error:\nCuda failure 2 'out of memory'",
    "unable to mmap 8589934592 bytes from file </model.safetensors>: Cannot allocate memory (12)",
    "std::bad_alloc",
    "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes.",
    "Caught RuntimeError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\ntorch.OutOfMemoryError: CUDA out of memory.",
    "worker 3 failed:\nTraceback (most recent call last):\nnumpy._core._exceptions._ArrayMemoryError: Unable to allocate 8 PiB",
]


@pytest.mark.parametrize("words", SAID)
def test_words_of_an_allocator_tell_if_a_runtime_error_says_them(words):
    assert is_out_of_memory(RuntimeError(words))
    assert not is_out_of_memory(ValueError(words))


@pytest.mark.parametrize(
    "words",
    [
        "we ran out of memory budget",
        "memory of GPU 0 is nearly full",
        "CUDA error: an illegal memory access was encountered",
        "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx`",
        "Storage size calculation overflowed with sizes=[4611686018427387904]",
        "expected a MemoryError here",
        "unable to allocate shared memory(shm) for file </torch_1>: No space left on device (28)",
        "x" * 10**7 + "CUDA out of memory",
    ],
)
def test_words_about_memory_tell_nothing(words):
    assert not is_out_of_memory(RuntimeError(words))


def test_an_error_of_the_system_tells_by_its_number():
    assert is_out_of_memory(OSError(errno.ENOMEM, "any words"))
    assert not is_out_of_memory(OSError(errno.ENOSPC, "Cannot allocate memory"))


def test_what_raises_when_it_is_read_tells_nothing():
    class MuteError(RuntimeError):
        def __str__(self):
            raise SystemError

    assert not is_out_of_memory(MuteError())


def test_a_chain_that_bites_its_tail_is_read_once():
    one, other = ValueError("one"), ValueError("other")
    one.__context__, other.__context__ = other, one
    assert not is_out_of_memory(one)


def test_a_class_made_of_torch_s_tells_as_well():
    error = type("Ours", (type("OutOfMemoryError", (RuntimeError,), {}),), {})
    assert is_out_of_memory(error("batch of 64"))
