"""What the body of an experiment holds while it runs once: its setting, and where its readings go."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_prereg.measure.checkpoints import make_private
from pytest_prereg.measure.experiment import unit_of
from pytest_prereg.measure.instruments.bench import bench
from pytest_prereg.measure.instruments.readers import kind_of, reader_of, unknown
from pytest_prereg.measure.instruments.reading import NOWHERE
from pytest_prereg.measure.instruments.wall_clock import NAME as WALL_CLOCK
from pytest_prereg.measure.instruments.wall_clock import WallClock
from pytest_prereg.measure.instruments.window import Window
from pytest_prereg.measure.readings import ReadingError, instrument_name, metric_name, reading
from pytest_prereg.registry.durations import seconds_in
from pytest_prereg.registry.instruments import SELF_BOUND, in_unit, needs_calibration
from pytest_prereg.registry.refusals import listed, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from pytest_prereg.measure.experiment import MetricDeclarations
    from pytest_prereg.measure.instruments.reading import Reached, Reader, Reading

BENCH_SECONDS = 0.2


@dataclass(kw_only=True)
class Readings:
    """All that one repeat recorded, and what is wrong with it."""

    values: dict[str, float | list[float]] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)
    instruments: dict[str, str] = field(default_factory=dict)
    samples: dict[str, int] = field(default_factory=dict)
    """How many samples a value was reduced from."""
    problems: list[str] = field(default_factory=list)
    """Reasons why the repeat is invalid, in the order they came up."""
    unreadable: dict[str, str] = field(default_factory=dict)
    """By metric without a value, the instrument that could not be read; empty where anything else is a
    problem: then it is not for want of a reading alone that the repeat is invalid."""
    discarded: list[str] = field(default_factory=list)
    """Declared metrics of which readings were begun and never taken, a sentence for each; expected of a body
    that was cut short."""
    missing: list[str] = field(default_factory=list)
    """Declared metrics without a value, a sentence for each; expected of a body that was cut short. Those
    that could not be read are among the problems."""


class Repeat:
    """One independent execution of one arm.

    ``index`` counts from 1 within the arm; ``seed`` is the same for all arms of a block and differs between
    blocks. Metrics that the experiment doesn't declare are kept as diagnostics and never judged.

    A value that breaks its metric's contract raises ``ReadingError`` and makes the repeat invalid, whether
    or not the body catches it.
    """

    def __init__(
        self,
        *,
        metrics: MetricDeclarations | None = None,
        index: int = 1,
        arm: str = "",
        seed: int = 0,
        workdir: Path | None = None,
        checkpoint: Path | None = None,
        service_port: int | None = None,
        recorded: Callable[[], None] | None = None,
        optional: Collection[str] = (),
    ) -> None:
        self.index = index
        self.arm = arm
        self.seed = seed
        self._units = {name: unit_of(name, declaration) for name, declaration in (metrics or {}).items()}
        self._workdir = workdir
        self._checkpoint = checkpoint
        self._service_port = service_port
        self._recorded = recorded
        """Called once, when a declared metric has its first number."""
        self._optional = frozenset(optional)
        """Metrics that the repeat is valid without: a command's own that no quantity reads."""
        self._numbers: dict[str, list[float]] = {}
        self._vectors: set[str] = set()
        self._takers: dict[str, set[str | None]] = {}
        self._unread: list[tuple[str | None, str]] = []
        """Metric and instrument of each problem that is the want of a reading; of all metrics without one."""
        self._begun: Counter[str] = Counter()
        self._ended: Counter[str] = Counter()
        """Blocks that are timed or read over, by metric: what began and didn't end was thrown away."""
        self._notes: dict[str, list[Any]] = {}
        """What instruments say beside their readings, out of reach of what the body records."""
        self._censored: dict[str, list[float]] = {}
        self._readings = Readings()

    @property
    def workdir(self) -> Path:
        """A folder of this repeat's own, empty at its start and removed after it."""
        if self._workdir is None:
            import tempfile  # noqa: PLC0415 - no repeat that an executor runs comes here

            self._workdir = Path(tempfile.mkdtemp(prefix="prereg-"))
        return self._workdir

    def checkpoint(self) -> Path:
        """Return a folder that outlives a lost attempt: the next one finds what is in it.

        It is nobody else's: no other repeat, series, copy of the study or pilot finds it, and once this
        repeat has ended for good, however it ended, it is removed. Evidence says which repeats found one.
        """
        return make_private(self._checkpoint or self.workdir / "checkpoint")

    @property
    def service_port(self) -> int | None:
        """The port that took the place of ``{port}`` in the command of this repeat's service."""
        return self._service_port

    def timer(self, name: str) -> WallClock:
        """Return a context manager that times its block, the accelerator synchronised at both ends.

        The reading is in the metric's own unit of time. Entered again, it appends a sample: the value is
        then the list of all. A block that raises has no reading; if the body goes on, the repeat is invalid,
        since who may throw readings away can choose among them. What may fail is caught inside the block.
        """
        scale = self._per_second(name)
        return WallClock(lambda: self._begin(name), lambda seconds: self._time(name, seconds * scale))

    def bench(self, name: str, fn: Callable[[], object], *, seconds: float = BENCH_SECONDS) -> float:
        """Record the mean time of a call of ``fn``, from many calls over about ``seconds``; return it.

        For what is too short to time once. The first call doesn't count. As with :meth:`timer`, a call that
        raises must not be one of several tries.
        """
        scale = self._per_second(name)
        self._begin(name)
        timing = bench(fn, seconds=seconds)
        self._end(name)
        value = timing.seconds * scale
        self._take(name, value, timing.instrument)
        self._readings.samples[name] = timing.calls
        return value

    def record(self, name: str, value: object, *, unit: str | None = None) -> None:
        """Record a metric: a number, or a sequence of samples; once per name.

        Args:
            name: The metric.
            value: A finite number (Python, numpy or torch; booleans count as 0 and 1) or a sequence of them.
            unit: The unit of ``value``, checked against the declared one.
        """
        self._take(name, value, None, unit)

    def samples(self, name: str, values: Iterable[object], *, unit: str | None = None) -> None:
        """Append samples to a metric; its value is the list of all."""
        items = values if hasattr(values, "tolist") else list(values)
        if metric_name(name) not in self._units:
            self._note_samples(name, items)
            return
        self._check_unit(name, unit)
        numbers = self._read(name, items)
        self._vectors.add(name)
        self._append(name, numbers if isinstance(numbers, list) else [numbers])

    def censor(self, name: str, *, at_least: float) -> None:
        """Say that a sample of a metric was cut off at ``at_least``: what it would have been isn't known."""
        self._censored.setdefault(metric_name(name), []).append(at_least)
        if name in self._units:
            self._readings.problems.append(f'metric "{name}" is censored at {at_least:g}')

    def instrument(self, name: str) -> Instrument:
        """Return a handle that records readings as taken by an instrument of the study's own, ``name``.

        An instrument of the package reads by itself, over a block: ``with
        repeat.instrument("process-memory").window("peak"): ...``. What a body records under its name is kept
        as recorded by hand, or refused where the instrument has to be calibrated.

        Raises:
            TypeError: ``name`` is no text.
            ReadingError: It is none that an instrument can have.
        """
        try:
            found = instrument_name(name)
        except ReadingError as error:
            self._refuse(str(error))
        return Instrument(self, found, None if found in SELF_BOUND else found)

    def _taken_by(self, name: str) -> Instrument:
        """Return a handle that records under the name of an instrument of the package, as its readers do.

        For the built-in experiments alone, which hold their own clock or stimulus. A study's module has no
        such way by the public interface: a number that a body typed would pass as read by what is trusted.
        """
        return Instrument(self, name, name)

    def invalidate(self, reason: str) -> None:
        """Declare this repeat invalid; what was recorded, before or after, is kept."""
        self._readings.problems.append(reason if reason.strip() else "invalidated without a reason")

    def readings(self) -> Readings:
        """Return what has been recorded so far."""
        found = self._readings
        values = {name: self._value(name) for name in self._numbers}
        undeclared = [name for name in (*values, *found.diagnostics) if name not in self._units]
        read = [name for name in undeclared if name in self._ended and name in values]
        unreadable = self._without_reading(values)
        known = {*values, *unreadable, *self._optional}
        lacking = (name for name in self._units if name not in known)
        return Readings(
            values={name: value for name, value in values.items() if name in self._units},
            diagnostics={
                **found.diagnostics,
                **{name: value for name, value in values.items() if name not in self._units},
                **self._told(),
            },
            instruments=self._instruments(),
            samples=dict(found.samples),
            problems=list(found.problems),
            unreadable=unreadable,
            discarded=[_discarded(name, times) for name, times in self._discards() if name in self._units],
            missing=[_missing(name, undeclared, read) for name in lacking],
        )

    def _unreadable(self, instrument: str, reason: str, metric: str | None = None) -> None:
        """Note why an instrument could not be read: for one metric, or for all that will have no value.

        The repeat is invalid, as by :meth:`invalidate`; evidence tells the two apart.
        """
        self._readings.problems.append(reason)
        self._unread.append((metric, instrument))

    def _without_reading(self, values: Collection[str]) -> dict[str, str]:
        """Return which instrument could not be read, by metric that has no value for that alone."""
        if len(self._unread) < len(self._readings.problems) or any(
            name in self._units for name, _ in self._discards()
        ):
            return {}
        found = {}
        for metric, instrument in self._unread:
            for name in self._units if metric is None else [metric]:
                if name not in values:
                    found[name] = instrument
        return found

    def _begin(self, name: str) -> None:
        self._begun[name] += 1

    def _end(self, name: str) -> None:
        self._ended[name] += 1

    def _discards(self) -> Iterable[tuple[str, int]]:
        """Return how many blocks of a metric began and did not end, where there are such."""
        return (self._begun - self._ended).items()

    def _told(self) -> dict[str, Any]:
        """Return the diagnostics that are the tool's own; a body's of the same names give way."""
        told = {"censored": self._censored, "discarded": dict(self._discards())}
        return deepcopy({**self._notes, **{name: each for name, each in told.items() if each}})

    def _note_samples(self, name: str, items: Iterable[object]) -> None:
        kept = self._readings.diagnostics.get(name, [])
        self._readings.diagnostics[name] = [*(kept if isinstance(kept, list) else [kept]), *items]

    def _value(self, name: str) -> float | list[float]:
        numbers = self._numbers[name]
        return list(numbers) if name in self._vectors or len(numbers) > 1 else numbers[0]

    def _take(self, name: str, value: object, instrument: str | None, unit: str | None = None) -> None:
        if metric_name(name) not in self._units:
            self._readings.diagnostics[name] = value
            return
        if name in self._numbers:
            self._refuse(f'metric "{name}" was recorded twice; use samples() for more than one reading')
        self._check_unit(name, unit)
        number = self._read(name, value)
        if isinstance(number, list):
            self._vectors.add(name)
        self._append(name, number if isinstance(number, list) else [number], instrument)

    def _window(self, name: str, instrument: str, *, reached: Reached = NOWHERE) -> Window:
        """Return a window; ``reached`` is for the built-in experiments alone, as in :meth:`_taken_by`."""
        kind = kind_of(instrument)
        if kind is None:
            raise LookupError(unknown(instrument))
        unit = self._units.get(metric_name(name), kind.unit)
        scale = in_unit(kind, unit)
        if scale is None:
            self._refuse(f'metric "{name}" is declared in {unit}, and {instrument} reads {kind.unit}')
        return Window(
            lambda: self._reader(name, instrument),
            lambda reading: self._take_reading(name, reading, scale),
            lambda reason: self._tell_unreadable(name, instrument, reason),
            reached=reached,
        )

    def _reader(self, name: str, instrument: str) -> Reader:
        self._begin(name)
        return reader_of(instrument)

    def _time(self, name: str, value: float) -> None:
        self._end(name)
        self._append(name, [value], WALL_CLOCK)

    def _take_reading(self, name: str, reading: Reading, scale: float) -> None:
        self._end(name)
        self._append(name, [reading.value * scale], reading.instrument)
        self._note(name, reading.instrument, reading.details)

    def _note(self, name: str, instrument: str, what: object) -> None:
        self._notes.setdefault(f"{name}: {instrument}", []).append(deepcopy(what))

    def _tell_unreadable(self, name: str, instrument: str, reason: str) -> None:
        self._end(name)
        message = f'metric "{name}": {instrument} can\'t be read: {reason}'
        if name in self._units and name not in self._optional:
            self._unreadable(instrument, message, name)
        else:
            self._note(name, instrument, message)

    def _read(self, name: str, value: object) -> float | list[float]:
        try:
            number = reading(name, value, self._units.get(name, "1"))
        except ReadingError as error:
            self._refuse(str(error))
        if number == []:
            self._refuse(f'metric "{name}": no samples')
        return number

    def _append(self, name: str, numbers: list[float], instrument: str | None = None) -> None:
        self._keep_apart(name, instrument)
        self._numbers.setdefault(name, []).extend(numbers)
        if self._recorded is not None:
            self._recorded()
            self._recorded = None
        self._takers.setdefault(name, set()).add(instrument)

    def _name_taker(self, name: str, instrument: str) -> None:
        """Say what took a diagnostic: evidence then shows that a calibration held that very instrument."""
        self._takers.setdefault(name, set()).add(instrument)

    def _keep_apart(self, name: str, instrument: str | None) -> None:
        """Refuse what another took than an earlier sample, where one of the two has to be calibrated.

        Evidence names one instrument of a metric: a calibrated one would vouch for what it never read.
        """
        others = self._takers.get(name, set()) - {instrument}
        if (
            name in self._units
            and any(map(needs_calibration, filter(None, (*others, instrument))))
            and others
        ):
            several = " and ".join(sorted(each or "by hand" for each in (*others, instrument)))
            self._refuse(f'metric "{name}" was read in two ways ({several}); give each a metric of its own')

    def _instruments(self) -> dict[str, str]:
        """Return the instrument by metric, where one and the same took every sample."""
        only = {name: next(iter(takers)) for name, takers in self._takers.items() if len(takers) == 1}
        return {name: instrument for name, instrument in only.items() if instrument is not None}

    def _per_second(self, name: str) -> float:
        unit = self._units.get(metric_name(name), "s")
        second = seconds_in(unit)
        if second is None:
            self._refuse(f'metric "{name}" is declared in {unit}, which a timer cannot read')
        return 1 / second

    def _check_taker(self, name: str, instrument: str) -> None:
        if needs_calibration(instrument):
            how = f'read it with repeat.instrument("{instrument}").window("{name}") first'
            own = "a number of your own can't decide a metric that declares this instrument"
            self._refuse(f'metric "{name}": {instrument} takes its readings itself, so {how}; {own}')

    def _check_unit(self, name: str, unit: str | None) -> None:
        declared = self._units.get(name)
        if unit is not None and declared is not None and unit != declared:
            self._refuse(f'metric "{name}" was recorded in {unit}, but is declared in {declared}')

    def _refuse(self, message: str) -> NoReturn:
        self._readings.problems.append(message)
        raise ReadingError(message)


class Instrument:
    """Records readings of one repeat under the name of what took them."""

    def __init__(self, repeat: Repeat, name: str, taker: str | None) -> None:
        self._repeat = repeat
        self._name = name
        self._taker = taker
        """What is named as having taken a number that is handed in; ``None``: nothing, it is by hand."""

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def record(self, name: str, value: object, *, unit: str | None = None) -> None:
        """Record a metric that this instrument read; as :meth:`Repeat.record`.

        Evidence names the instrument if it is the study's own; of the package's, only what they read.

        Raises:
            ReadingError: It has to be calibrated, and so takes its readings itself, over its window.
        """
        self._repeat._check_taker(name, self.name)  # noqa: SLF001
        self._repeat._take(name, value, self._taker, unit)  # noqa: SLF001

    def window(self, name: str) -> Window:
        """Return a context manager that reads over its block, and records what it read as metric ``name``.

        The reading is in the metric's own unit. Entered again, it appends a sample. What else was seen is
        kept as a diagnostic. Where nothing can be read, the repeat is invalid if the metric is declared.

        Raises:
            LookupError: Neither the package nor a plugin has such an instrument, or it has no window.
            ReadingError: The metric's unit is not one of what the instrument reads.
        """
        return self._repeat._window(name, self.name)  # noqa: SLF001


def _missing(name: str, undeclared: Iterable[str], read: Sequence[str]) -> str:
    """Say that a metric was not recorded, and under which name it seems to have been.

    One like it, of what is not declared; else what was ``read`` over a block: nobody does that in passing.
    """
    message = f'metric "{name}" was not recorded'
    near = nearest(name, undeclared)
    others = [near] if near is not None else read
    which = "which is not declared, was" if len(others) == 1 else "which are not declared, were"
    return f"{message}; {listed(others)}, {which}" if others else message


def _discarded(name: str, times: int) -> str:
    """Say that readings of a metric were begun and not taken."""
    were = "a reading was" if times == 1 else f"{times} readings were"
    return f'metric "{name}": {were} begun and thrown away; what may fail is caught inside the block'
