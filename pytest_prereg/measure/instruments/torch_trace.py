"""One session of torch's profiler around a window, and what it saw, as plain columns of whole nanoseconds.

The window is an annotation of the session's own in the profiler's clock, so it is where the caller put it,
whatever ran in it. On either side the session does work of its own: what the profiler loses at its start
(pytorch/pytorch#192021: in a process's k-th session the first k kernels) is none of the window's, and one
that stopped watching midway (kineto ends a trace without a word once its buffers are full) does not see what
comes after the window.

On a CPU, what turns the recording off and on again inside the window is watched for, through every name that
torch gives it; a body that kept such a function from before goes unseen. So the CPU time of the process is
told beside what its operators came to.

A session keeps every event in memory until it is read: 1.5 kB for each operator call, launch or kernel, so
1.5 GB for a million, and some ten seconds to read them. Nothing is left out to save either.
"""

from __future__ import annotations

import itertools
import re
import resource
import secrets
import sys
import threading
import time
from array import array
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_prereg.measure.instruments.reading import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LAUNCH = re.compile(r"(cuda|cu|hip)\w*Launch\w*Kernel\w*|(cuda|cu|hip)GraphLaunch\w*")
"""Calls that start kernels: one each, but for a graph's, which starts all of the graph's."""
GRAPH = re.compile(r"(cuda|cu|hip)GraphLaunch\w*")
COPY = re.compile(r"Mem(cpy|set)\b.*")
WAIT = re.compile(r"(Event|Stream|Context|Unknown) Sync|Stream Wait Event|cudaEvent\w*")
"""On a device's rows, but no work: a stream waits, or an event is recorded."""
OPERATOR = re.compile(r"\w+(::\w+)+(\.\w+)?")
"""What the dispatcher calls an operator: of torch itself (``aten``), quantized, or of any library's."""
COMPILED = re.compile(r"## Call CompiledFxGraph\b.*")
"""A graph that torch's compiler made one of many operators, which are no events of their own any more."""
REGION = re.compile(r"Torch-Compiled Region\b.*")
"""What some compiler, which need not be torch's own, runs in place of Python."""
FUNCTION_SCOPE = 0
"""Of operators, in ``at::RecordScope``; what follows a backward pass or a script through has others."""
SCRIPT_SCOPE = 2
USER_SCOPE = 7
"""Of annotations by ``record_function``."""
PROBES = 20
"""Of a short operator, of which the fastest counts."""
FIRST_KERNELS = 16
"""Launched before the window, beside one for every session of this process so far."""


class Events(NamedTuple):
    """Events of one kind, a column each; all have the same length."""

    starts: array[int]
    ends: array[int]
    lanes: array[int]
    """Which stream, or which thread: numbers of :attr:`Trace.lanes`."""
    keys: array[int]
    """Correlation of kernels, copies and launches; of operators the number in :attr:`Trace.names`."""


class Trace(NamedTuple):
    """What the profiler saw in one session, in nanoseconds of its own clock."""

    windows: Events
    """Annotations by the session's name: one, if all is well."""
    kernels: Events
    copies: Events
    launches: Events
    operators: Events
    """Compiled graphs, which are one operator made of many, among them."""
    regions: Events
    """What a compiler runs in place of Python, or a script; operators run within, or should."""
    graphs: frozenset[int]
    """Correlations of launches of whole graphs."""
    lanes: tuple[str, ...]
    """Streams as ``device:stream``, threads as ``cpu:thread``."""
    names: tuple[str, ...]
    """Of operators and regions."""


class _Numbers(dict[Any, int]):
    """Numbers what it is asked for, from 0."""

    def __missing__(self, key: object) -> int:
        self[key] = len(self)
        return self[key]


def trace_of(events: Sequence[Any], marker: str) -> Trace:
    """Sort torch's events into columns.

    Args:
        events: ``kineto_results.events()`` of torch 2.4 or later.
        marker: Name of the annotation that anchors the window.
    """
    kinds = _by_kind(events, marker)
    lanes, names = _Numbers(), _Numbers()
    return Trace(
        windows=_columns(kinds["marker"], lanes, itertools.repeat(0)),
        kernels=_columns(kinds["kernel"], lanes, map(_correlation, kinds["kernel"]), on_device=True),
        copies=_columns(kinds["copy"], lanes, map(_correlation, kinds["copy"]), on_device=True),
        launches=_columns(kinds["launch"], lanes, map(_correlation, kinds["launch"])),
        operators=_columns(kinds["operator"], lanes, (names[event.name()] for event in kinds["operator"])),
        regions=_columns(kinds["region"], lanes, (names[event.name()] for event in kinds["region"])),
        graphs=frozenset(_correlation(event) for event in kinds["launch"] if GRAPH.fullmatch(event.name())),
        lanes=tuple(lanes),
        names=tuple(names),
    )


def _by_kind(events: Sequence[Any], marker: str) -> dict[str, list[Any]]:
    annotations = _annotations_by_name(events)
    by_name: dict[str, str] = {}
    kinds: dict[str, list[Any]] = defaultdict(list)
    for event in events:
        name = event.name()
        kind = by_name.get(name) or by_name.setdefault(name, _kind_by_name(name, marker))
        annotated = event.is_user_annotation() if annotations is None else name in annotations
        if annotated == (kind == "marker"):
            on_device = event.device_type().name != "CPU"
            kinds[_kind_on_device(kind) if on_device else _kind_on_host(kind, event.scope())].append(event)
    return kinds


def _kind_by_name(name: str, marker: str) -> str:
    if name == marker:
        return "marker"
    for kind, pattern in _KINDS.items():
        if pattern.fullmatch(name):
            return kind
    return "other"


_KINDS = {
    "operator": OPERATOR,
    "compiled": COMPILED,
    "region": REGION,
    "launch": LAUNCH,
    "copy": COPY,
    "wait": WAIT,
}


def _kind_on_device(kind: str) -> str:
    """Return what an event of a device's is: a kernel may have any name."""
    if kind in {"marker", "launch"}:
        return "other"
    return kind if kind in {"copy", "wait"} else "kernel"


def _kind_on_host(kind: str, scope: int) -> str:
    if scope == SCRIPT_SCOPE:
        return "region"
    if kind in {"operator", "compiled"}:
        return "operator" if scope == FUNCTION_SCOPE else "other"
    return kind if kind in {"region", "launch", "marker"} else "other"


def _annotations_by_name(events: Sequence[Any]) -> frozenset[str] | None:
    """Return the names of annotations where torch (before 2.5) doesn't say which of a device's events are.

    The profiler repeats each on the device's rows, from the first to the last kernel that ran under it.
    """
    if not events or hasattr(events[0], "is_user_annotation"):
        return None
    return frozenset(event.name() for event in events if event.scope() == USER_SCOPE)


def _columns(
    events: Sequence[Any], lanes: _Numbers, keys: Iterable[int], *, on_device: bool = False
) -> Events:
    starts = array("q", [event.start_ns() for event in events])
    ends = array("q", [start + event.duration_ns() for start, event in zip(starts, events, strict=True)])
    rows = (_stream(event) if on_device else f"cpu:{event.device_resource_id()}" for event in events)
    return Events(
        starts,
        ends,
        array("q", [lanes[row] for row in rows]),
        array("q", itertools.islice(keys, len(events))),
    )


def _stream(event: Any) -> str:
    return f"{event.device_index()}:{event.device_resource_id()}"


def _correlation(event: Any) -> int:
    return int(event.correlation_id())


class RecordingSwitches:
    """Counts, while a window is open, who turns the recording of operators on or off.

    All of Python does so through the functions that are named here, whatever module it has them from; one
    that was kept from before the window goes unseen.
    """

    def __init__(self) -> None:
        self.used = 0
        self._plain: list[tuple[Any, str, Any]] = []

    def watch(self) -> None:
        """Begin to count."""
        modules = [sys.modules[name] for name in SWITCH_MODULES if name in sys.modules]
        self._plain = [
            (module, name, getattr(module, name))
            for module in modules
            for name in SWITCHES
            if hasattr(module, name)
        ]
        for module, name, plain in self._plain:
            setattr(module, name, self._counted(plain))

    def unwatch(self) -> None:
        """Leave torch as it was."""
        while self._plain:
            setattr(*self._plain.pop())

    def _counted(self, plain: Any) -> Any:
        def switch(*arguments: Any, **named: Any) -> Any:
            self.used += 1
            return plain(*arguments, **named)

        return switch


SWITCHES = ("_enable_record_function", "_toggle_collection_dynamic", "_clear_callbacks")
SWITCH_MODULES = ("torch._C._autograd", "torch.autograd", "torch.autograd.profiler")


class ProcessorTime(NamedTuple):
    """In seconds, of all threads and cores."""

    own: float
    """Of this process."""
    children: float
    """Of those of its children that were waited for."""

    @classmethod
    def now(cls) -> ProcessorTime:
        """Return what has been used so far."""
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return cls(time.process_time(), children.ru_utime + children.ru_stime)


class Session:
    """Profiles between ``start`` and ``stop``; what it saw is there afterwards. For one use."""

    count = 0
    """How many there have been in this process."""
    switching = threading.Lock()
    """Held by who starts or stops one: torch crashes on two threads that do so at once."""

    def __init__(self, *, cuda: bool) -> None:
        self.cuda = cuda
        self.marker = f"pytest-prereg window {secrets.token_hex(8)}"
        self.all_threads = False
        self.switches = RecordingSwitches()
        self.event_seconds = 0.0
        """How much longer the profiler makes a short operator of the CPU, found just before the window."""
        self.used = ProcessorTime(0.0, 0.0)
        """In the window."""
        self._profile: Any = None
        self._annotation: Any = None

    def start(self) -> None:
        """Start the profiler and begin the window.

        Raises:
            UnreadableError: There is no torch, a profiler is running already, or this one doesn't start.
        """
        torch = _torch()
        with self.switching:
            if _is_profiling(torch):
                raise UnreadableError(
                    "another profiler of torch is running, and there can only be one at a time"
                )
            Session.count += 1
            self._profile = self._new_profile(torch)
            try:
                self._begin(torch)
            except BaseException as error:
                self._abandon()
                if isinstance(error, RuntimeError):
                    raise UnreadableError(f"torch's profiler doesn't start: {_first_line(error)}") from error
                raise

    def _begin(self, torch: Any) -> None:
        alone = 0.0 if self.cuda else _shortest(torch)
        self._profile.__enter__()
        self._work(torch, FIRST_KERNELS + Session.count)
        self.event_seconds = 0.0 if self.cuda else max(0.0, _shortest(torch) - alone)
        self.switches.watch()
        self._annotation = torch.autograd.profiler.record_function(self.marker)
        self._annotation.__enter__()
        self.used = ProcessorTime.now()

    def stop(self) -> None:
        """End the window, and the profiler whatever happens.

        Raises:
            UnreadableError: It could not be stopped in good order.
        """
        until, since = ProcessorTime.now(), self.used
        self.used = ProcessorTime(until.own - since.own, until.children - since.children)
        with self.switching:
            try:
                self._annotation.__exit__(None, None, None)
                self.switches.unwatch()
                self._work(_torch(), 1)
                self._profile.__exit__(None, None, None)
            except BaseException as error:
                self._abandon()
                if isinstance(error, RuntimeError):
                    raise UnreadableError(f"torch's profiler doesn't stop: {_first_line(error)}") from error
                raise

    def events(self) -> list[Any]:
        """Return torch's events; none if the session was ended by somebody else."""
        results = self._profile.kineto_results
        return [] if results is None else list(results.events())

    def trace(self) -> Trace:
        """Return what was seen, once stopped."""
        return trace_of(self.events(), self.marker)

    def _new_profile(self, torch: Any) -> Any:
        """Return a profiler, not yet started.

        The one underneath ``torch.profiler.profile``, which takes seconds to start: it loads the compiler.
        """
        new = torch.autograd.profiler.profile
        if self.cuda:
            if torch.profiler.ProfilerActivity.CUDA not in torch.profiler.supported_activities():
                raise UnreadableError("this build of torch has no profiler for CUDA (CUPTI)")
            return new(use_kineto=True, use_device="cuda")
        try:
            config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)  # noqa: SLF001
            self.all_threads = True
        except TypeError:
            config = None
        return new(use_kineto=True, experimental_config=config)

    def _work(self, torch: Any, times: int) -> None:
        """Launch something short, and wait for it."""
        small = torch.zeros(1, device="cuda" if self.cuda else "cpu")
        for _ in range(times):
            small.add_(1)
        if self.cuda:
            torch.cuda.synchronize()

    def _abandon(self) -> None:
        """End the profiler though CUDA may be past waiting for."""
        self.switches.unwatch()
        self._profile.use_device = None
        with suppress(RuntimeError):
            self._profile.__exit__(None, None, None)


def _torch() -> Any:
    try:
        import torch  # noqa: PLC0415
        import torch.profiler  # noqa: PLC0415
    except ImportError as error:
        raise UnreadableError(f"torch can't be imported: {error}") from error
    return torch


def _shortest(torch: Any) -> float:
    """Return the least seconds that a short operator of the CPU takes."""
    small = torch.zeros(1)
    took = []
    for _ in range(PROBES):
        began = time.perf_counter()
        small.neg_()
        took.append(time.perf_counter() - began)
    return min(took)


def _is_profiling(torch: Any) -> bool:
    """Whether a profiler is running, of this thread or (all that Python started) of another."""
    running = getattr(torch.autograd.profiler, "_is_profiler_enabled", False)
    return bool(running or torch.autograd._profiler_enabled())  # noqa: SLF001


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
