"""One session of torch's profiler around a window, and what it saw, as plain columns of whole nanoseconds.

The window is an annotation of the session's own in the profiler's clock, so it is where the caller put it,
whatever ran in it. On either side the session does work of its own: what the profiler loses at its start
(pytorch/pytorch#192021: in a process's k-th session the first k kernels) is none of the window's, and one
that stopped watching midway (kineto ends a trace without a word once its buffers are full) does not see what
comes after the window.

A session keeps every event in memory until it is read: 1.5 kB for each operator call, launch or kernel, so
1.5 GB for a million, and some ten seconds to read them. Nothing is left out to save either.
"""

from __future__ import annotations

import itertools
import re
import secrets
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
OPERATOR = "aten::"
USER_SCOPE = 7
"""Of annotations by ``record_function``, in ``at::RecordScope``."""
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
    graphs: frozenset[int]
    """Correlations of launches of whole graphs."""
    lanes: tuple[str, ...]
    """Streams as ``device:stream``, threads as ``cpu:thread``."""
    names: tuple[str, ...]
    """Of operators."""


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
        if annotated != (kind == "marker"):
            continue
        if kind != "operator":
            kind = _kind_by_device(kind, on_device=event.device_type().name != "CPU")
        kinds[kind].append(event)
    return kinds


def _kind_by_name(name: str, marker: str) -> str:
    if name.startswith(OPERATOR):
        return "operator"
    if name == marker:
        return "marker"
    if LAUNCH.fullmatch(name):
        return "launch"
    if COPY.fullmatch(name):
        return "copy"
    return "wait" if WAIT.fullmatch(name) else "kernel"


def _kind_by_device(kind: str, *, on_device: bool) -> str:
    """Return ``kind`` where it may be: launches are the host's, kernels and copies the device's."""
    return kind if on_device == (kind in {"kernel", "copy", "wait"}) else "none"


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


class Session:
    """Profiles between ``start`` and ``stop``; what it saw is there afterwards. For one use."""

    count = 0
    """How many there have been in this process."""

    def __init__(self, *, cuda: bool) -> None:
        self.cuda = cuda
        self.marker = f"pytest-prereg window {secrets.token_hex(8)}"
        self.all_threads = False
        self._profile: Any = None
        self._annotation: Any = None

    def start(self) -> None:
        """Start the profiler and begin the window.

        Raises:
            UnreadableError: There is no torch, a profiler is running already, or this one doesn't start.
        """
        torch = _torch()
        if _is_profiling(torch):
            raise UnreadableError("another profiler of torch is running, and there can only be one at a time")
        Session.count += 1
        self._profile = self._new_profile(torch)
        try:
            self._profile.__enter__()
            self._work(torch, FIRST_KERNELS + Session.count)
            self._annotation = torch.autograd.profiler.record_function(self.marker)
            self._annotation.__enter__()
        except BaseException as error:
            self._abandon()
            if isinstance(error, RuntimeError):
                raise UnreadableError(f"torch's profiler doesn't start: {_first_line(error)}") from error
            raise

    def stop(self) -> None:
        """End the window, and the profiler whatever happens.

        Raises:
            UnreadableError: It could not be stopped in good order.
        """
        try:
            self._annotation.__exit__(None, None, None)
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


def _is_profiling(torch: Any) -> bool:
    """Whether a profiler is running, of this thread or (all that Python started) of another."""
    running = getattr(torch.autograd.profiler, "_is_profiler_enabled", False)
    return bool(running or torch.autograd._profiler_enabled())  # noqa: SLF001


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
