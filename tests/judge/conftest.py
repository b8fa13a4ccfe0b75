"""Predictions and series made in memory, for tests of the judge."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from pytest_prereg.evidence.model import Outcome, RecordedRepeat, Series
from pytest_prereg.judge import Judgement, check_design, judge
from pytest_prereg.judge.verdicts import is_final
from pytest_prereg.registry.model import Arm, Contrast, Experiment, Metric, Prediction
from pytest_prereg.registry.quantities import parse_quantity
from pytest_prereg.registry.regions import parse_region
from pytest_prereg.registry.tables import ExperimentTable, PredictionTable, RepeatsTable

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Study:
    """One experiment with one prediction; repeats are added arm by arm, in run order."""

    predicts: str = "<= 2"
    falsifier: str = "> 2"
    quantity: str = "t"
    statistic: str | None = None
    q: float | None = None
    contrast: str | None = None
    pairing: str = "none"
    confidence: float = 0.95
    metrics: dict[str, dict[str, Any]] = field(default_factory=lambda: {"t": {"unit": "s"}})
    planned: dict[str, int] | None = None
    looks: list[int] | None = None
    most: int | None = None
    """Repeats of each arm at most, under the anytime rule."""
    max_excluded: int = 0
    scale: float = 1.0
    constants: dict[str, float] = field(default_factory=dict)
    table: dict[str, Any] = field(default_factory=dict)
    repeats: list[RecordedRepeat] = field(default_factory=list)
    faults: tuple[str, ...] = ()
    divisor: str | None = None
    levels: dict[str, float] = field(default_factory=dict)
    """Level of each arm, for "exponent(x)"."""
    points: tuple[tuple[str, ...], ...] = ()
    reduction: str | None = None
    bounds: dict[str, tuple[float, float]] | None = None
    outside: str | None = None
    """Which condition did not hold where the series ran."""

    @property
    def arms(self) -> tuple[str, ...]:
        if self.points:
            return tuple(arm for point in self.points for arm in point)
        named = self.named.arms if self.named else ("",)
        return named or tuple(self.levels)

    @property
    def named(self) -> Contrast | None:
        """The contrast, as it is written."""
        if self.contrast is None:
            return None
        if call := re.fullmatch(r"(\w+)\((.*)\)", self.contrast):
            operator, inside = call[1], tuple(call[2].split(", "))
            if operator == "exponent":
                return Contrast(operator=operator, arms=(), parameter=inside[0])
            return Contrast(operator=operator, arms=inside)
        left, operator, right = self.contrast.split()
        return Contrast(operator=operator, arms=(left, right))

    @property
    def stopping(self) -> RepeatsTable | None:
        if self.looks is None and self.most is None:
            return None
        return RepeatsTable(looks=self.looks, max=self.most, stopping="anytime" if self.most else None)

    @property
    def counts(self) -> dict[str, int] | None:
        most = self.looks[-1] if self.looks else self.most
        return self.planned if most is None else dict.fromkeys(self.arms, most)

    def add(self, value: Any = None, *, arm: str | None = None, outcome: str = "ok", **more: Any) -> Study:
        """Appends one repeat; ``value`` is that of ``t``, or the values by metric, or none.

        What is excluded was by its author, unless ``by_author`` says that it was by a rule.
        """
        arm = self.arms[0] if arm is None else arm
        index = 1 + sum(repeat.arm == arm for repeat in self.repeats)
        values = value if isinstance(value, dict) else {} if value is None else {"t": value}
        more = {"block": None, "machine": None, "position": len(self.repeats), **more}
        more.setdefault("by_author", outcome == "excluded")
        name = "/".join(part for part in ("e/1", arm, str(index)) if part)
        more.setdefault("instruments", dict.fromkeys(values, "wall-clock"))
        repeat = RecordedRepeat(
            id=name, arm=arm, index=index, outcome=Outcome(outcome), values=values, **more
        )
        self.repeats.append(repeat)
        return self

    def extend(self, *values: Any, **more: Any) -> Study:
        """Appends a repeat for each value."""
        for value in values:
            self.add(value, **more)
        return self

    def block(self, *values: Any, **more: Any) -> Study:
        """Appends one repeat of each arm, in one block."""
        number = 1 + max((repeat.block or 0 for repeat in self.repeats), default=0)
        for arm, value in zip(self.arms, values, strict=True):
            self.add(value, arm=arm, block=number, **more)
        return self

    def blocks(self, *rows: Any) -> Study:
        """Appends a block for each row of values."""
        for row in rows:
            self.block(*row)
        return self

    @property
    def experiment(self) -> Experiment:
        planned = self.counts or {}
        return Experiment(
            id="e",
            kind="import",
            table=ExperimentTable(max_excluded=self.max_excluded, repeats=self.stopping, bounds=self.bounds),
            arms={
                name: Arm(name=name, params={}, env={}, timeout=None, repeats=planned.get(name))
                for name in self.arms
            },
            metrics={name: Metric(name=name, **made) for name, made in self.metrics.items()},
            pairing=self.pairing,
            source=None,
            line=1,
        )

    @property
    def prediction(self) -> Prediction:
        is_ratio = self.named is not None and self.named.operator == "/"
        return Prediction(
            id="p",
            claim="c",
            table=PredictionTable(claim="c", **self.table),
            experiments=("e",),
            arms=self.arms,
            contrast=self.named,
            quantity=parse_quantity(self.quantity, self.metrics, self.constants),
            divisor=self.divisor and parse_quantity(self.divisor, self.metrics, self.constants),
            q=self.q,
            levels=tuple(self.levels.values()),
            points=self.points,
            reduction=self.reduction,
            statistic=self.statistic or ("geometric-mean" if is_ratio else "mean"),
            predicts=parse_region(self.predicts),
            falsifier=parse_region(self.falsifier),
            confidence=self.confidence,
            line=7,
        )

    @property
    def series(self) -> Series:
        return Series(
            experiment="e",
            number=1,
            origin="measured",
            pairing=self.pairing,
            planned=self.counts,
            repeats=tuple(self.repeats),
            faults=self.faults,
            complete=True,
            source=None,
            seed="",
            predictions={},
            sessions=(),
            outside=self.outside,
        )

    def judge(self, **more: Any) -> Judgement:
        return self._ask(judge, **more)

    def is_final(self, **more: Any) -> bool:
        return self._ask(is_final, **more)

    def _ask(self, function: Callable[..., Any], **more: Any) -> Any:
        prediction = self.prediction
        return function(
            prediction,
            self.experiment,
            self.series,
            predicts=prediction.predicts,
            falsifier=prediction.falsifier,
            scale=self.scale,
            constants=self.constants,
            **more,
        )

    def design(self):
        prediction = self.prediction
        return check_design(
            prediction, self.experiment, prediction.predicts, prediction.falsifier, scale=self.scale
        )


@pytest.fixture(scope="session")  # a class, the same for every example that a property is tried on
def study() -> type[Study]:
    """``study(predicts="<= 2", ...)`` makes one; ``.add`` and ``.extend`` fill it, ``.judge()`` judges it."""
    return Study
