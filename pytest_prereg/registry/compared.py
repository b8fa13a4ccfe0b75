"""Which arms a prediction is judged from: those it names, at each point of a sweep that it is made for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pytest_prereg.registry.model import ONLY_ARM, Arm, Contrast, Experiment
from pytest_prereg.registry.refusals import RefusedError, listed, quoted, suggestion
from pytest_prereg.registry.structure import label
from pytest_prereg.registry.sweeps import Point, crossed_name, points, swept, value_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.registry.positions import Path
    from pytest_prereg.registry.structure import Complaints
    from pytest_prereg.registry.tables import PredictionTable


class Compared(NamedTuple):
    """The arms of one prediction, at one point of ``for-each``."""

    point: Point
    arms: tuple[str, ...]
    contrast: Contrast | None
    levels: tuple[float, ...] = ()
    points: tuple[tuple[str, ...], ...] = ()


def compared(
    keys: Path,
    table: PredictionTable,
    contrast: Contrast | None,
    experiment: Experiment,
    complaints: Complaints,
) -> list[Compared]:
    """What a table compares, once for each point of its ``for-each``; empty once something was refused."""
    comparison = _Comparison(keys, table, contrast, experiment, complaints)
    bases = comparison.bases()
    axes_are_sound = comparison.check_axes()
    if bases is None or not axes_are_sound:
        return []
    try:
        return [comparison.at(point, bases) for point in comparison.points(table.for_each)]
    except RefusedError as refusal:
        complaints.refuse((*keys, "contrast"), label(keys), refusal)
        return []


class _Comparison:
    """What one table says of arms and axes, beside the experiment that has them."""

    def __init__(
        self,
        keys: Path,
        table: PredictionTable,
        contrast: Contrast | None,
        experiment: Experiment,
        complaints: Complaints,
    ) -> None:
        self.keys = keys
        self.table = table
        self.contrast = contrast
        self.experiment = experiment
        self.complaints = complaints
        self.values = swept(experiment)
        self.known = list(dict.fromkeys(_base(arm) for arm in experiment.arms.values()))

    def bases(self) -> tuple[str, ...] | None:
        """The arms that are named, as the file has them; ``None`` once one was complained about."""
        if self.contrast is not None and self.contrast.operator == "exponent":
            return self._sloped_bases()
        if self.table.arm is not None and self.table.contrast is not None:
            self._complain("arm", "PR005", ' has both "arm" and "contrast"; keep one')
            return None
        if self.contrast is not None:
            return self._named("contrast", self.contrast.arms)
        if self.table.contrast is not None:
            return None
        return self._only_base() if self.table.arm is None else self._named("arm", (self.table.arm,))

    def check_axes(self) -> bool:
        """Whether each axis of the sweep is used once; complains about all that are not."""
        before = len(self.complaints.problems)
        taken: dict[str, str] = {}
        if (parameter := self._parameter()) is not None:
            taken[parameter] = f"the parameter of {quoted(self.table.contrast)}"
        for key, written in (("for-each", self.table.for_each), ("over", self.table.over)):
            for name in self._listed(key, written):
                self._check_axis(key, name, taken)
                taken.setdefault(name, quoted(key))
        free = [name for name in self.values if name not in taken and not self._is_told(name)]
        if not self._parameter_is_known():
            free = []  # it may be the one that was meant
        for name in free if not self.complaints.told(*self.keys, "for-each") else ():
            where = f": experiment {quoted(self.experiment.id)} sweeps {quoted(name)}"
            advice = f"; write for-each = {quoted(name)} or over = {quoted(name)}"
            self._complain("for-each", "PR004", where + advice)
        return len(self.complaints.problems) == before

    def points(self, axes: str | list[str] | None) -> Iterator[Point]:
        """Every point of some of the axes."""
        return points({name: self.values.get(name, []) for name in _names(axes)})

    def at(self, point: Point, bases: tuple[str, ...]) -> Compared:
        """The comparison at one point of ``for-each``."""
        if self.contrast is not None and self.contrast.parameter is not None:
            return self._slope(self.contrast, self.contrast.parameter, point, bases)
        contrast = self.contrast
        if self.table.over is not None:
            inner = [
                tuple(crossed_name(base, point | further) for base in bases)
                for further in self.points(self.table.over)
            ]
            return Compared(
                point, tuple(arm for arms in inner for arm in arms), contrast, points=tuple(inner)
            )
        arms = tuple(crossed_name(base, point) for base in bases)
        if contrast is not None:
            contrast = msgspec.structs.replace(contrast, arms=arms)
        return Compared(point, arms, contrast)

    def _slope(self, contrast: Contrast, parameter: str, point: Point, bases: tuple[str, ...]) -> Compared:
        """Arms in the order of their levels, which say where on the axis each of them is."""
        arms = [arm for arm in self.experiment.arms.values() if _base(arm) in bases and _lies_at(arm, point)]
        levels = [(_level(arm, parameter), arm) for arm in arms]
        self._check_alike(parameter, arms)
        if len({level for level, _ in levels}) < 2:  # noqa: PLR2004
            what = f"contrast {quoted(self.table.contrast)} needs two values of {quoted(parameter)} or more"
            raise RefusedError("PR005", f"{what}; experiment {quoted(self.experiment.id)} has one")
        levels.sort(key=lambda pair: (pair[0], pair[1].name))
        return Compared(
            point,
            tuple(arm.name for _, arm in levels),
            contrast,
            levels=tuple(level for level, _ in levels),
        )

    def _check_alike(self, parameter: str, arms: list[Arm]) -> None:
        """Refuse (PR005) a slope over arms that differ in more than the parameter."""
        settings = {arm.name: self._setting(arm, parameter) for arm in arms}
        first, *others = settings
        for other in others:
            names = sorted({*settings[first], *settings[other]})
            differing = [name for name in names if settings[first].get(name) != settings[other].get(name)]
            if differing:
                what = f"contrast {quoted(self.table.contrast)} is over {quoted(parameter)} alone, but arms"
                where = f"{listed((first, other))} differ in {listed(differing)}, too"
                alone = "compare them in an experiment of their own"
                remedy = 'say which with "arm"' if self._crosses(parameter) else alone
                raise RefusedError("PR005", f"{what} {where}; {remedy}")

    def _setting(self, arm: Arm, parameter: str) -> dict[str, Any]:
        """What must be the same of all arms of a slope."""
        written = (self.experiment.table.arms or {}).get(_base(arm), {})
        own = {key: written[key] for key in ("ref", "resources") if key in written}
        return (
            {name: value for name, value in arm.params.items() if name != parameter} | own | {"env": arm.env}
        )

    def _sloped_bases(self) -> tuple[str, ...] | None:
        """Every arm, or the one named, where a sweep makes several of it."""
        if self.table.arm is None:
            return tuple(self.known)
        parameter = self._parameter()
        if parameter is None or not self._crosses(parameter):
            message = f' has both "arm" and "contrast", and no sweep of {quoted(parameter)}; leave "arm" out'
            self._complain("arm", "PR005", message)
            return None
        return self._named("arm", (self.table.arm,))

    def _parameter_is_known(self) -> bool:
        if self.contrast is None:
            return self.table.contrast is None
        return self.contrast.parameter is None or any(
            self.contrast.parameter in arm.params for arm in self.experiment.arms.values()
        )

    def _parameter(self) -> str | None:
        return self.contrast.parameter if self.contrast is not None else None

    def _crosses(self, parameter: str) -> bool:
        return parameter in self.values

    def _named(self, key: str, names: tuple[str, ...]) -> tuple[str, ...] | None:
        unknown = [name for name in names if name not in self.known or name == ONLY_ARM]
        for name in unknown if not self.complaints.told(*self.keys, key) else ():
            where = f" names unknown arm {quoted(name)} of experiment {quoted(self.experiment.id)}"
            self._complain(
                key, "PR007", where + suggestion(name, [arm for arm in self.known if arm], "its arms")
            )
        return None if unknown else names

    def _only_base(self) -> tuple[str, ...] | None:
        if len(self.known) == 1:
            return tuple(self.known)
        if not self.complaints.told(*self.keys, "contrast") and not self.complaints.told(*self.keys, "arm"):
            arms = listed(self.known, "or")
            message = f' lacks "arm" or "contrast": {quoted(self.experiment.id)} has arms {arms}'
            self._complain("arm", "PR004", message)
        return None

    def _listed(self, key: str, written: str | list[str] | None) -> tuple[str, ...]:
        names = _names(written)
        if written is not None and not names:
            self._complain(key, "PR005", f": {quoted(key)} names nothing; leave it out")
        return names

    def _check_axis(self, key: str, name: str, taken: dict[str, str]) -> None:
        if name in taken:
            both = (
                f"twice in {quoted(key)}"
                if taken[name] == quoted(key)
                else f"in {quoted(key)} and {taken[name]}"
            )
            self._complain(key, "PR005", f" has {quoted(name)} {both}; keep one")
        elif name not in (self.experiment.table.sweep or {}) and not self._is_told(name):
            hint = suggestion(name, self.values, "it sweeps") if self.values else "; it has no sweep"
            what = f": {quoted(key)} names {quoted(name)}, which experiment {quoted(self.experiment.id)}"
            self._complain(key, "PR007", f"{what} does not sweep{hint}")

    def _is_told(self, axis: str) -> bool:
        """Whether something was said about an axis in its experiment, or about the whole sweep there."""
        sweep = ("experiments", self.experiment.id, "sweep")
        return self.complaints.told(*sweep, axis) or self.complaints.told(*sweep)

    def _complain(self, key: str, code: str, message: str) -> None:
        self.complaints.add((*self.keys, key), code, f"{label(self.keys)}{message}")


def _names(written: str | list[str] | None) -> tuple[str, ...]:
    return (written,) if isinstance(written, str) else tuple(written or ())


def _base(arm: Arm) -> str:
    """The arm's name in the file."""
    return arm.base if arm.point else arm.name


def _lies_at(arm: Arm, point: Point) -> bool:
    return all(value_text(arm.point.get(name)) == value_text(value) for name, value in point.items())


def _level(arm: Arm, parameter: str) -> float:
    """Where on its axis an arm is."""
    value = arm.params.get(parameter)
    if parameter not in arm.params:
        hint = suggestion(parameter, arm.params, "it sets")
        what = f"arm {quoted(arm.name)}" if arm.name else "the experiment"
        raise RefusedError("PR007", f"exponent({parameter}): {what} sets no {quoted(parameter)}{hint}")
    if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
        raise RefusedError(
            "PR005", f"exponent({parameter}): {quoted(value)} has no logarithm; it takes positive numbers"
        )
    return float(value)
