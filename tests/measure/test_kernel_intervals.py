"""The share of a window in which kernels ran: judged from made lists of events, and read from torch itself."""

from __future__ import annotations

import itertools
import os
import random
import sys
import threading
import time
from dataclasses import dataclass, field
from enum import Enum
from statistics import median

import pytest

from pytest_prereg import Repeat
from pytest_prereg.measure.instruments import wall_clock
from pytest_prereg.measure.instruments.kernel_intervals import (
    KernelIntervals,
    OperatorIntervals,
    kernel_reading,
    operator_reading,
)
from pytest_prereg.measure.instruments.reading import Reading, UnreadableError
from pytest_prereg.measure.instruments.torch_trace import Session, trace_of
from pytest_prereg.measure.instruments.window import Window

MARKER = "the window"
WINDOWS = 5
"""The median of so many is judged: whoever takes the processor just between two clocks spoils one of them."""
LOW, HIGH = 10**18, 10**18 + 1_000_000


class Device(Enum):
    CPU = 0
    CUDA = 1


@dataclass(frozen=True)
class OldEvent:
    """What torch 2.4 says of an event; whether a device's is an annotation isn't among it."""

    label: str
    start: int
    length: int
    device: Device = Device.CPU
    index: int = 0
    row: int = 0
    correlation: int = 0
    recorded_as: int = 0

    def name(self):
        return self.label

    def start_ns(self):
        return self.start

    def duration_ns(self):
        return self.length

    def device_type(self):
        return self.device

    def device_index(self):
        return self.index

    def device_resource_id(self):
        return self.row

    def correlation_id(self):
        return self.correlation

    def scope(self):
        return self.recorded_as


@dataclass(frozen=True)
class Event(OldEvent):
    annotation: bool = False

    def is_user_annotation(self):
        return self.annotation


@dataclass
class Gpu:
    """Makes the events of a session: times in microseconds after the window's begin."""

    kind: type[OldEvent] = Event
    events: list[OldEvent] = field(default_factory=list)

    def __post_init__(self):
        self.correlations = itertools.count(1)
        self.annotate(MARKER, 0, 1000)
        self.launch(at=-60, kernels=[(-50, 5)])
        self.launch(at=1060, kernels=[(1070, 5)])

    def add(self, label, at, length, **more):
        self.events.append(self.kind(label, LOW + at * 1000, length * 1000, **more))

    def on_device(self, label, at, length, stream=7, device=0, **more):
        self.add(label, at, length, device=Device.CUDA, index=device, row=stream, **more)

    def annotate(self, label, at, length, *, on_device=False):
        flag = {"annotation": True} if self.kind is Event else {}
        if on_device:
            return self.on_device(label, at, length, correlation=1, **flag)
        return self.add(label, at, length, recorded_as=7, **flag)

    def launch(self, at, kernels, call="cudaLaunchKernel", kernel="lgamma_kernel", **more):
        """Launch what runs as so many kernels; none if the profiler lost it."""
        number = next(self.correlations)
        self.add(call, at, 3, correlation=number)
        for start, length in kernels:
            self.on_device(kernel, start, length, correlation=number, **more)

    def launch_many(self, count, lost=()):
        for number in range(count):
            at = number * 1000 / count
            self.launch(int(at), [] if number in lost else [(int(at), 1)])

    def read(self, expected=None) -> Reading:
        return kernel_reading(trace_of(self.events, MARKER), expected)


@pytest.fixture
def gpu():
    return Gpu()


def test_kernels_are_counted_against_launches(gpu):
    gpu.launch(10, [(20, 100)])
    gpu.launch(130, [(150, 200)])
    found = gpu.read()
    assert found.instrument == "kernel-intervals"
    assert found.value == 0.3
    assert found.details == {
        "source": "cuda",
        "kernels": 2,
        "launched": 2,
        "lost": 0,
        "graph_launches": 0,
        "without_launch": 0,
        "window_s": pytest.approx(1e-3),
        "streams": {"0:7": 0.3},
        "first_to_last": 300 / 330,
        "summed": 0.3,
        "longest_gap_s": pytest.approx(650e-6),
        "median_length_s": pytest.approx(150e-6),
        "devices": {"0": 0.3},
        "copies": 0,
        "copying": 0,
    }


def test_a_profiler_that_lost_one_kernel_in_twenty_is_caught(gpu):
    gpu.launch_many(1000, lost=range(0, 1000, 20))
    with pytest.raises(UnreadableError, match="lost the kernel of 50 of 1000 kernel launches"):
        gpu.read()


def test_a_kernel_in_a_thousand_may_be_lost_and_is_told(gpu):
    gpu.launch_many(1000, lost=[400])
    assert gpu.read().details["lost"] == 1
    gpu.launch(999, [])
    with pytest.raises(UnreadableError, match="lost the kernel of 2 of 1001"):
        gpu.read()


def test_a_window_with_launches_and_no_kernels_is_unreadable_and_not_idle(gpu):
    gpu.launch(10, [])
    with pytest.raises(UnreadableError, match="1 of 1 kernel launches"):
        gpu.read()


def test_a_window_without_launches_is_idle(gpu):
    found = gpu.read()
    assert found.value == 0
    assert found.details["kernels"] == 0
    assert found.details["first_to_last"] is None


def test_a_kernel_that_began_long_before_its_launch_has_a_wrong_time_and_is_lost(gpu):
    gpu.launch(500, [(-(10**8), 5)])
    with pytest.raises(UnreadableError, match="1 of 1 kernel launches"):
        gpu.read()


@pytest.mark.parametrize(
    "call",
    ["cudaLaunchKernelExC", "cudaLaunchCooperativeKernel", "cuLaunchKernel", "cuLaunchKernelEx", "hipLaunchKernel", "hipModuleLaunchKernel"],
)  # fmt: skip
def test_every_call_that_launches_a_kernel_is_one(gpu, call):
    gpu.launch(10, [], call=call)
    with pytest.raises(UnreadableError):
        gpu.read()


def test_other_calls_launch_none(gpu):
    for call in ("cudaLaunchHostFunc", "cudaDeviceSynchronize", "cudaMemcpyAsync", "cudaEventRecord"):
        gpu.launch(10, [], call=call)
    assert gpu.read().details["launched"] == 0


def test_a_graph_is_one_launch_of_many_kernels(gpu):
    gpu.launch(10, [(20, 10), (40, 10), (60, 10)], call="cudaGraphLaunch")
    details = gpu.read().details
    assert (details["launched"], details["graph_launches"], details["kernels"]) == (1, 1, 3)


def test_a_graph_that_only_copies_is_not_lost(gpu):
    gpu.launch(10, [(20, 10)], call="cudaGraphLaunch", kernel="Memcpy DtoD (Device -> Device)")
    details = gpu.read().details
    assert (details["lost"], details["kernels"], details["copies"]) == (0, 0, 1)


@pytest.mark.parametrize("kind", [Event, OldEvent])
def test_an_annotation_on_the_device_is_no_kernel(kind):
    gpu = Gpu(kind)
    for name in ("rollout", MARKER, "Memcpy of mine", "aten::mine", "cudaLaunchKernel of mine"):
        gpu.annotate(name, 0, 900)
        gpu.annotate(name, 5, 890, on_device=True)
    gpu.events = [event for event in gpu.events if event.label != MARKER or event.device is Device.CUDA]
    gpu.annotate(MARKER, 0, 1000)
    gpu.launch(10, [(20, 100)])
    found = gpu.read()
    assert found.value == 0.1
    assert (found.details["copies"], found.details["launched"]) == (0, 1)


def test_copies_are_apart_and_waits_are_nothing(gpu):
    gpu.launch(10, [(20, 100)])
    gpu.on_device("Memcpy HtoD (Pinned -> Device)", 200, 300, correlation=90)
    gpu.on_device("Memset (Device)", 600, 100, correlation=91)
    gpu.on_device("Stream Sync", 0, 1000, correlation=92)
    gpu.on_device("Stream Wait Event", 0, 1000, correlation=93)
    found = gpu.read()
    assert found.value == 0.1
    assert (found.details["copies"], found.details["copying"]) == (2, 0.4)


def test_two_streams_that_overlap_are_busy_once(gpu):
    gpu.launch(10, [(100, 400)], stream=7)
    gpu.launch(20, [(300, 400)], stream=20)
    gpu.launch(30, [(300, 100)], stream=7, device=1)
    found = gpu.read()
    assert found.value == 0.6
    assert found.details["streams"] == {"0:7": 0.4, "0:20": 0.4, "1:7": 0.1}
    assert found.details["devices"] == {"0": 0.6, "1": 0.1}
    assert found.details["summed"] == 0.9


def test_a_kernel_launched_before_the_window_is_busy_in_it_and_no_launch_of_it(gpu):
    gpu.launch(-20, [(-10, 110)])
    gpu.on_device("from_before_the_session", 500, 100, correlation=80)
    found = gpu.read()
    assert found.value == 0.2
    assert (found.details["launched"], found.details["kernels"], found.details["without_launch"]) == (0, 2, 1)


def test_what_runs_past_the_window_is_cut_off_at_its_end(gpu):
    gpu.launch(890, [(900, 5000)])
    assert gpu.read().value == 0.1


@pytest.mark.parametrize("gone", [Device.CPU, Device.CUDA])
def test_a_profiler_that_stopped_watching_inside_the_window_is_caught(gpu, gone):
    """Once kineto's buffers are full, it takes in neither kernels nor launches, and says so only in a log."""
    gpu.launch(10, [(20, 100)])
    kept = [event for event in gpu.events if event.device != gone or event.start < HIGH]
    with pytest.raises(UnreadableError, match="did not see what was run right after the window"):
        kernel_reading(trace_of(kept, MARKER))


def test_a_profiler_that_may_not_see_the_device_is_unreadable_and_not_idle(gpu):
    gpu.launch(10, [(20, 100)])
    kept = [event for event in gpu.events if event.device is Device.CPU]
    with pytest.raises(UnreadableError, match="saw nothing of CUDA"):
        kernel_reading(trace_of(kept, MARKER))


def test_a_caller_that_knows_its_launches_is_heeded(gpu):
    gpu.launch_many(100)
    for number in range(200):
        gpu.add("aten::lgamma", number * 5, 4)
    assert gpu.read({"aten::lgamma": 100}).details["expected"] == 100
    with pytest.raises(UnreadableError, match="the kernel of 100 of 200 calls that launch kernels"):
        gpu.read({"aten::lgamma": 200})
    with pytest.raises(UnreadableError, match="the record of 5 of 205 calls of aten::lgamma"):
        gpu.read({"aten::lgamma": 205})


def test_without_its_own_window_nothing_is_read(gpu):
    with pytest.raises(UnreadableError, match="stopped inside the window: another one was used there"):
        kernel_reading(trace_of(gpu.events, "another window"))


# With torch itself, on the CPU.


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def matmul(torch):
    """Multiplies matrices for 25 ms or more on one thread; returns the seconds that the host saw.

    The host begins to count before the operator does and ends after it: 3 µs, and 100 where others evict
    what is needed from the caches meanwhile.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    side = 1000

    def multiply() -> float:
        began = time.perf_counter()
        torch.mm(left, right, out=product)
        return time.perf_counter() - began

    while True:
        left, right, product = (torch.randn(side, side) for _ in range(3))
        if min(multiply() for _ in range(3)) > 25e-3:
            break
        side = int(side * 1.2)
    yield multiply
    torch.set_num_threads(threads)


def busy_by_the_host(work, *, busy, rest, times):
    """Work for ``busy`` seconds and rest, again and again: the share of the time that was work, and the calls."""
    began, spent, calls = time.perf_counter(), 0.0, 0
    for period in range(1, times + 1):
        while spent < busy * period:
            spent += work()
            calls += 1
        time.sleep(rest)
    return spent / (time.perf_counter() - began), calls


class Taken:
    """A window on its own, and what came of it."""

    def __init__(self, reader):
        self.readings, self.refusals = [], []
        self.window = Window(lambda: reader, self.readings.append, self.refusals.append)

    @property
    def reading(self) -> Reading:
        assert self.refusals == []
        (found,) = self.readings
        return found

    @property
    def refusal(self) -> str:
        assert self.readings == []
        (found,) = self.refusals
        return found


@pytest.mark.torch
@pytest.mark.quiet
def test_a_run_that_is_busy_for_30_percent_and_then_waits_reads_30(matmul):
    errors = []
    for _ in range(WINDOWS):
        taken = Taken(KernelIntervals())
        with taken.window:
            host, calls = busy_by_the_host(matmul, busy=0.06, rest=0.2, times=1)
            taken.window.expect(calls, "aten::mm")
        found = taken.reading
        errors.append(found.value - host)
        assert found.instrument == "operator-intervals"
        assert found.details["calls_lost"] == 0
        assert found.details["longest_gap_s"] > 0.13
    assert abs(median(errors)) < 0.01
    assert found.details["first_to_last"] > 0.95
    assert host < 0.4


@pytest.mark.torch
@pytest.mark.quiet
def test_the_duty_of_a_wave_is_recovered_to_a_point(matmul):
    errors = []
    for _ in range(WINDOWS):
        taken = Taken(OperatorIntervals())
        with taken.window:
            host, _ = busy_by_the_host(matmul, busy=0.03, rest=0.03, times=3)
        errors.append(taken.reading.value - host)
    assert abs(median(errors)) < 0.01


@pytest.mark.torch
@pytest.mark.quiet
def test_a_profiler_that_drops_one_event_in_twenty_is_caught_by_the_callers_count(torch, monkeypatch):
    events, draw = Session.events, random.Random(5)
    monkeypatch.setattr(
        Session, "events", lambda session: [event for event in events(session) if draw.random() > 0.05]
    )
    matrix = torch.randn(8, 8)
    taken = Taken(KernelIntervals())
    with taken.window:
        for _ in range(1000):
            torch.mm(matrix, matrix)
        taken.window.expect(1000, "aten::mm")
    assert "the profiler lost the record of" in taken.refusal
    assert "of 1000 calls of aten::mm" in taken.refusal


@pytest.mark.torch
@pytest.mark.quiet
def test_operators_of_every_thread_are_seen(torch, matmul):
    def work():
        for _ in range(20):
            matmul()

    taken = Taken(KernelIntervals())
    with taken.window:
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if taken.window._reader._session.all_threads:
            taken.window.expect(40, "aten::mm")
    busy = {name for name, share in taken.reading.details["streams"].items() if share}
    if taken.reading.details["threads"] == "all":
        assert len(busy) == 2


@pytest.mark.torch
@pytest.mark.quiet
def test_an_annotation_with_an_operators_name_is_no_work(torch):
    taken = Taken(KernelIntervals())
    with taken.window, torch.profiler.record_function("aten::mm"):
        time.sleep(0.02)
    assert taken.reading.value == 0


@pytest.mark.torch
@pytest.mark.quiet
def test_where_a_profiler_is_running_there_is_no_reading_and_it_goes_on(torch, matmul):
    taken = Taken(KernelIntervals())
    with torch.autograd.profiler.profile(use_kineto=True) as theirs:
        with taken.window:
            matmul()
        matmul()
    assert "another profiler of torch is running" in taken.refusal
    assert sum(event.name() == "aten::mm" for event in theirs.kineto_results.events()) == 2


@pytest.mark.torch
@pytest.mark.quiet
def test_a_profiler_that_is_used_inside_the_window_leaves_no_reading(torch, matmul):
    taken = Taken(KernelIntervals())
    with taken.window:
        matmul()
        if not taken.window._reader._session.all_threads:
            pytest.skip("this torch crashes on two profilers at a time")
        with torch.autograd.profiler.profile(use_kineto=True):
            matmul()
    assert "another one was used there" in taken.refusal


@pytest.mark.torch
@pytest.mark.quiet
def test_a_body_that_raises_leaves_no_profiler_running(torch, matmul):
    taken = Taken(KernelIntervals())
    with pytest.raises(ZeroDivisionError), taken.window:
        raise ZeroDivisionError
    assert (taken.readings, taken.refusals) == ([], [])
    again = Taken(KernelIntervals())
    with again.window:
        matmul()
    assert again.reading.details["operators"] > 0


@pytest.mark.torch
@pytest.mark.quiet
def test_a_session_that_fails_to_start_leaves_no_profiler_running(torch, matmul, monkeypatch):
    def fail(*_):
        raise RuntimeError("out of memory\nwith a long story")

    with monkeypatch.context() as patch:
        patch.setattr(Session, "_work", fail)
        failed = Taken(KernelIntervals())
        with failed.window:
            matmul()
    assert failed.refusal == "torch's profiler doesn't start: out of memory"
    again = Taken(KernelIntervals())
    with again.window:
        matmul()
    assert again.reading.value > 0


@pytest.mark.torch
@pytest.mark.quiet
def test_cuda_that_comes_up_inside_the_window_leaves_no_reading(torch, monkeypatch):
    taken = Taken(KernelIntervals())
    with monkeypatch.context() as patch, taken.window:
        patch.setattr(wall_clock, "synchronise", lambda: None)
        patch.setattr(torch.cuda, "is_initialized", lambda: True)
        taken.window.__exit__(None)
    assert taken.refusal == "CUDA was first used inside the window; use it once before"


@pytest.mark.torch
@pytest.mark.quiet
def test_a_repeat_records_under_the_instrument_that_took_the_reading(matmul):
    repeat = Repeat(metrics={"busy": {"unit": "percent"}})
    with repeat.instrument("kernel-intervals").window("busy") as window:
        matmul()
    found = repeat.readings()
    assert found.values["busy"] == pytest.approx(100 * window.reading.value)
    assert found.instruments == {"busy": "operator-intervals"}
    (details,) = found.diagnostics["busy: operator-intervals"]
    assert details["source"] == "operators"


def test_an_instrument_that_can_lose_no_calls_counts_none():
    window = Repeat(metrics={"t": "s"}).instrument("wall-clock").window("t")
    with pytest.raises(TypeError, match="counts no calls"), window:
        window.expect(3, "aten::mm")


def test_operators_are_judged_without_torch():
    events = [
        Event(MARKER, LOW, 1000, recorded_as=7, annotation=True),
        Event("aten::mm", LOW + 100, 300, row=11),
        Event("aten::mm", LOW + 300, 300, row=12),
        Event("autograd::engine::evaluate_function: MmBackward0", LOW, 900, row=11),
        Event("aten::add_", LOW + 1100, 5, row=11),
    ]
    found = operator_reading(trace_of(events, MARKER), {"aten::mm": 2})
    assert found.value == 0.5
    assert found.details["streams"] == {"cpu:11": 0.3, "cpu:12": 0.3}
    with pytest.raises(UnreadableError, match="the record of 1 of 3 calls of aten::mm"):
        operator_reading(trace_of(events, MARKER), {"aten::mm": 3})
    with pytest.raises(UnreadableError, match="did not see what was run right after"):
        operator_reading(trace_of(events[:-1], MARKER))


AFTER = Event("aten::add_", LOW + 1_100_000, 5, row=11)


def read_on_cpu(*events: Event) -> Reading:
    window = Event(MARKER, LOW, 1_000_000, recorded_as=7, annotation=True)
    return operator_reading(trace_of([window, *events, AFTER], MARKER))


@pytest.mark.parametrize(
    "name", ["aten::mm", "quantized::linear", "mylib::heavy", "c10d::allreduce_", "mylib::heavy.out"]
)
def test_an_operator_of_any_library_is_one(name):
    assert read_on_cpu(Event(name, LOW, 400_000)).value == 0.4


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("Pregraph bytecode", 0),
        ("MyFunction", 0),
        ("autograd::engine::evaluate_function: MmBackward0", 0),
        ("torch::autograd::AccumulateGrad", 1),
        ("aten::mm", 7),
    ],
)
def test_what_is_python_or_goes_round_operators_is_none(name, scope):
    assert read_on_cpu(Event(name, LOW, 400_000, recorded_as=scope, annotation=scope == 7)).value == 0


def test_a_kernel_on_a_device_may_be_called_as_an_operator_is(gpu):
    gpu.launch(10, [(20, 100)], kernel="at::native::mm")
    assert gpu.read().value == 0.1


def test_a_graph_of_torchs_compiler_is_an_operator():
    found = read_on_cpu(
        Event("Torch-Compiled Region: 0/0", LOW, 700_000),
        Event("## Call CompiledFxGraph fphzw227xy4o", LOW + 200_000, 300_000),
    )
    assert found.value == 0.3
    assert found.details["regions_unseen"] == 0


@pytest.mark.parametrize("region", [("Torch-Compiled Region: 0/0", 0), ("fused", 2)])
def test_a_compiled_region_without_operators_is_unreadable_and_not_idle(region):
    name, scope = region
    whole = Event(name, LOW, 700_000, recorded_as=scope)
    with pytest.raises(
        UnreadableError, match=r"regions ran for 0.0007 s of the window, 0.0006 s of it without"
    ):
        read_on_cpu(whole, Event("aten::empty", LOW, 100_000))
    found = read_on_cpu(whole, Event("aten::mm", LOW, 600_000))
    assert (found.value, found.details["regions_unseen"]) == (0.6, 0.1)


def test_a_graph_on_one_thread_says_nothing_of_a_region_on_another():
    graph = Event("## Call CompiledFxGraph fphzw227xy4o", LOW + 200_000, 100_000, row=12)
    with pytest.raises(UnreadableError, match="compiled regions ran"):
        read_on_cpu(Event("Torch-Compiled Region: 0/0", LOW, 700_000, row=11), graph)


@pytest.mark.torch
@pytest.mark.quiet
def test_an_operator_of_ones_own_is_busy(torch):
    def heavy(numbers):
        time.sleep(0.05)
        return numbers.clone()

    library = torch.library.Library("pytest_prereg_tests", "FRAGMENT")
    library.define("heavy(Tensor numbers) -> Tensor")
    library.impl("heavy", heavy, "CPU")
    taken = Taken(OperatorIntervals())
    with taken.window:
        torch.ops.pytest_prereg_tests.heavy(torch.ones(3))
    assert taken.reading.value > 0.5


@pytest.mark.torch
@pytest.mark.quiet
def test_what_another_compiler_runs_leaves_no_reading(torch):
    def opaque(graph, _):
        def run(numbers):
            time.sleep(0.02)
            return (numbers.detach(),)

        return run

    matrix, readings = torch.randn(400, 400), {}
    for backend in (opaque, "eager"):
        multiply = torch.compile(lambda numbers: numbers @ numbers @ numbers @ numbers, backend=backend)
        multiply(matrix)
        readings[backend] = taken = Taken(OperatorIntervals())
        with taken.window:
            multiply(matrix)
    assert "compiled regions ran for" in readings[opaque].refusal
    assert readings["eager"].reading.details["operators"] > 0


@pytest.mark.torch
@pytest.mark.quiet
@pytest.mark.parametrize("module", ["torch._C._autograd", "torch.autograd"])
def test_a_recording_that_is_turned_off_and_on_again_leaves_no_reading(torch, matmul, module):
    taken = Taken(OperatorIntervals())
    plain = sys.modules[module]._enable_record_function
    with taken.window:
        for on in (False, True):
            sys.modules[module]._enable_record_function(on)
            matmul()
    assert "the recording of operators was turned off or on inside the window (2 times)" in taken.refusal
    assert sys.modules[module]._enable_record_function is plain


@pytest.mark.torch
@pytest.mark.quiet
def test_what_ran_past_the_dispatcher_is_idle_and_told(torch):
    """Python that computes is honestly idle; its CPU time says that something ran."""
    taken = Taken(OperatorIntervals())
    with taken.window:
        used = time.process_time()
        while time.process_time() - used < 0.05:
            pass
        child = os.fork()
        if child == 0:
            while time.process_time() < 0.05:
                pass
            os._exit(0)
        os.waitpid(child, 0)
    details = taken.reading.details
    assert taken.reading.value < 0.1
    assert details["cpu_time"] * details["window_s"] > 0.05
    assert details["children_cpu_time"] * details["window_s"] > 0.03


@pytest.mark.torch
@pytest.mark.quiet
def test_how_much_the_profiler_itself_takes_is_told(torch):
    matrix, taken = torch.randn(4, 4), Taken(OperatorIntervals())
    with taken.window:
        for _ in range(500):
            torch.block_diag(matrix, matrix)
    details = taken.reading.details
    assert details["operators"] >= 1000
    assert details["operators_per_s"] == pytest.approx(details["operators"] / details["window_s"])
    assert details["profiler_s_per_operator"] > 0
    assert details["profiler"] == pytest.approx(
        details["operators_per_s"] * details["profiler_s_per_operator"]
    )


@pytest.mark.torch
@pytest.mark.quiet
def test_windows_of_two_threads_do_not_meet_in_the_profiler(torch, monkeypatch):
    """Torch crashes on two threads that start its profiler at once, each having seen that none runs."""
    new, starting = Session._new_profile, threading.Event()

    def slowly(*arguments):
        starting.set()
        time.sleep(0.1)
        return new(*arguments)

    def take(window):
        with window:
            time.sleep(0.2)

    monkeypatch.setattr(Session, "_new_profile", slowly)
    first, second = Taken(OperatorIntervals()), Taken(OperatorIntervals())
    thread = threading.Thread(target=take, args=(first.window,))
    thread.start()
    starting.wait()
    take(second.window)
    thread.join()
    assert first.reading.details["threads"]
    assert "another profiler of torch is running" in second.refusal


# With a CUDA device.


@pytest.fixture
def cuda(torch):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    torch.zeros(1, device="cuda")
    return torch.cuda


@pytest.fixture
def kernel(torch, cuda):
    """Runs one kernel of 3 ms or more to its end; returns the host's seconds, launch and wait included."""
    count = 1 << 20

    def run() -> float:
        began = time.perf_counter()
        torch.lgamma(numbers, out=results)
        cuda.synchronize()
        return time.perf_counter() - began

    while True:
        numbers, results = torch.rand(count, device="cuda") + 1, torch.empty(count, device="cuda")
        if sorted(run() for _ in range(9))[4] > 3e-3:
            return run
        count *= 2


@pytest.mark.torch
@pytest.mark.quiet
@pytest.mark.gpu
def test_a_gpu_that_is_busy_for_30_percent_and_then_waits_reads_30(kernel):
    errors = []
    for _ in range(WINDOWS):
        taken = Taken(KernelIntervals())
        with taken.window:
            host, calls = busy_by_the_host(kernel, busy=0.3, rest=0.7, times=1)
            taken.window.expect(calls, "aten::lgamma")
        found = taken.reading
        errors.append(found.value - host)
        assert found.instrument == "kernel-intervals"
        assert found.details["launched"] == found.details["kernels"] == calls
        assert found.details["without_launch"] == 0
    assert abs(median(errors)) < 0.01
    assert found.details["first_to_last"] > 0.9
    assert host < 0.4


@pytest.mark.torch
@pytest.mark.quiet
@pytest.mark.gpu
def test_the_duty_of_a_wave_on_a_gpu_is_recovered_to_a_point(kernel):
    errors = []
    for _ in range(WINDOWS):
        taken = Taken(KernelIntervals())
        with taken.window:
            host, _ = busy_by_the_host(kernel, busy=0.05, rest=0.05, times=6)
        errors.append(taken.reading.value - host)
    assert abs(median(errors)) < 0.01


@pytest.mark.torch
@pytest.mark.quiet
@pytest.mark.gpu
def test_a_profiler_that_drops_one_kernel_in_twenty_is_caught(kernel, monkeypatch):
    events = Session.events
    draw = random.Random(5)
    monkeypatch.setattr(
        Session,
        "events",
        lambda session: [
            event for event in events(session) if event.device_type().name == "CPU" or draw.random() > 0.05
        ],
    )
    taken = Taken(KernelIntervals())
    with taken.window:
        for _ in range(200):
            kernel()
    assert "kernel launches in the window" in taken.refusal


@pytest.mark.torch
@pytest.mark.quiet
@pytest.mark.gpu
def test_a_graph_two_streams_and_copies_are_told_apart_on_a_gpu(torch, cuda):
    numbers = torch.rand(1 << 24, device="cuda") + 1
    side, graph = cuda.Stream(), cuda.CUDAGraph()
    torch.lgamma(numbers)
    with cuda.graph(graph):
        kept = [torch.lgamma(numbers) for _ in range(3)]
    taken = Taken(KernelIntervals())
    with taken.window:
        graph.replay()
        with cuda.stream(side):
            torch.lgamma(numbers)
        numbers.cpu()
    details = taken.reading.details
    assert kept
    assert details["graph_launches"] == 1
    assert details["kernels"] >= 4
    assert len(details["streams"]) >= 2
    assert details["copies"] >= 1
    assert details["summed"] <= sum(details["streams"].values()) + 1e-9


@pytest.mark.torch
@pytest.mark.quiet
@pytest.mark.gpu
def test_operators_are_not_read_where_kernels_are(cuda):
    taken = Taken(OperatorIntervals())
    with taken.window:
        pass
    assert "use kernel-intervals" in taken.refusal
