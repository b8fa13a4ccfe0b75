"""Prediction tables to predictions: what is judged, in which arms, by which statistic and regions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pytest_prereg.registry.compared import Compared, compared
from pytest_prereg.registry.conjunctions import build_conjunctions
from pytest_prereg.registry.contrasts import contrast_of
from pytest_prereg.registry.estimands import (
    IMPLIED,
    Estimand,
    check_binary,
    early,
    estimand_of,
    quantile_of,
    range_of,
    undecided,
)
from pytest_prereg.registry.formulas import build_formula, is_formula
from pytest_prereg.registry.judging import regions_of
from pytest_prereg.registry.model import Experiment, Prediction, Quantity
from pytest_prereg.registry.quantities import parse_quantity
from pytest_prereg.registry.refusals import quoted, suggestion
from pytest_prereg.registry.structure import label
from pytest_prereg.registry.sweeps import crossed_name
from pytest_prereg.registry.unit_text import normal_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_prereg.registry.model import Contrast
    from pytest_prereg.registry.positions import Path
    from pytest_prereg.registry.regions import Region
    from pytest_prereg.registry.structure import Complaints
    from pytest_prereg.registry.tables import PredictionsFile, PredictionTable


_Read = TypeVar("_Read")

_OPERANDS = (("quantity",), *IMPLIED.values())
"""Keys that say what is measured; one group of them is given whole, the others not at all."""


def build_predictions(
    file: PredictionsFile, experiments: Mapping[str, Experiment], complaints: Complaints
) -> dict[str, Prediction]:
    """The predictions that can be judged; all that is wrong with any is complained about.

    A table with ``for-each`` makes several, each under an id of its own.
    """
    built: dict[str, Prediction] = {}
    for name, table in (file.predictions or {}).items():
        if table.all is None and not complaints.told("predictions", name, "all"):
            made = _build(("predictions", name), table, file, experiments, complaints)
            built |= {prediction.id: prediction for prediction in made}
    built |= build_conjunctions(file, experiments, built, complaints)
    places = {name: place for place, name in enumerate(file.predictions or {})}
    return dict(sorted(built.items(), key=lambda item: places[item[1].name or item[0]]))


def _build(
    keys: Path,
    table: PredictionTable,
    file: PredictionsFile,
    experiments: Mapping[str, Experiment],
    complaints: Complaints,
) -> list[Prediction]:
    """What one table makes, if it is not a conjunction of others."""
    if is_formula(table):
        made = build_formula(keys, table, file, experiments, complaints)
        return [] if made is None else [made]
    return _Builder(keys, table, file, experiments, complaints).build()


class _Builder:
    """One table while it is read; what is wrong is complained about, and the rest still looked at."""

    def __init__(
        self,
        keys: Path,
        table: PredictionTable,
        file: PredictionsFile,
        experiments: Mapping[str, Experiment],
        complaints: Complaints,
    ) -> None:
        self.keys = keys
        self.table = table
        self.file = file
        self.experiments = experiments
        self.complaints = complaints
        self.label = label(keys)

    def build(self) -> list[Prediction]:
        """What the table makes; nothing once something that it needs was complained about."""
        self._check_unit()
        contrast = self._attempt("contrast", contrast_of, self.table.contrast)
        estimand = self._estimand(contrast)
        experiment = self._experiment()
        operands = self._operands(experiment)
        if operands and estimand:
            self._attempt("statistic", check_binary, *operands, estimand.statistic, estimand.operator)
        if experiment and estimand:
            self._check_plan(experiment, estimand)
        settings = (
            compared(self.keys, self.table, contrast, experiment, self.complaints) if experiment else []
        )
        regions = regions_of(self.keys, self.table, estimand and range_of(estimand), self.complaints)
        if experiment is None or operands is None or estimand is None or regions is None:
            return []
        return [self._prediction(each, experiment, operands, estimand, regions) for each in settings]

    def _prediction(
        self,
        setting: Compared,
        experiment: Experiment,
        operands: tuple[Quantity, Quantity | None],
        estimand: Estimand,
        regions: tuple[Region, Region],
    ) -> Prediction:
        name = str(self.keys[1])
        quantity, divisor = operands
        predicts, falsifier = regions
        return Prediction(
            id=crossed_name(name, setting.point),
            name=name if setting.point else "",
            claim=self.table.claim,
            table=self.table,
            experiments=(experiment.id,),
            arms=setting.arms,
            contrast=setting.contrast,
            quantity=quantity,
            divisor=divisor,
            statistic=estimand.statistic,
            q=quantile_of(self.table),
            levels=setting.levels,
            points=setting.points,
            reduction=estimand.reduction,
            predicts=predicts,
            falsifier=falsifier,
            confidence=self.file.study.confidence,
            line=self.complaints.positions.line(*self.keys),
        )

    def _attempt(self, key: str, read: Callable[..., _Read], *arguments: object) -> _Read | None:
        return self.complaints.attempt((*self.keys, key), self.label, read, *arguments)

    def _lacks(self, key: str, code: str, message: str) -> None:
        if not self.complaints.told(*self.keys, key):
            self.complaints.add((*self.keys, key), code, f"{self.label} {message}")

    def _check_unit(self) -> None:
        if self.table.unit is not None:
            self._attempt("unit", normal_unit, self.table.unit)

    def _estimand(self, contrast: Contrast | None) -> Estimand | None:
        estimand = self._attempt("statistic", estimand_of, self.table, contrast)
        if estimand is not None and estimand.statistic == "quantile":
            return estimand if self._attempt("statistic", quantile_of, self.table) is not None else None
        return estimand

    def _check_plan(self, experiment: Experiment, estimand: Estimand) -> None:
        """Complain where no interval decides the estimand in an experiment so paired and stopped."""
        key = "contrast" if estimand.operator else "over" if estimand.reduction else "statistic"
        for refusal in undecided(estimand, experiment.pairing, early(experiment.stopping)):
            owner = f"{self.label}, of experiment {quoted(experiment.id)}"
            self.complaints.refuse((*self.keys, key), owner, refusal)

    def _experiment(self) -> Experiment | None:
        name, tables = self.table.experiment, self.file.experiments or {}
        if name is None:
            self._lacks("experiment", "PR004", 'lacks "experiment"')
        elif name not in tables and not self.complaints.told("experiments", name):
            hint = suggestion(name, tables, "known")
            message = f"{self.label} names unknown experiment {quoted(name)}{hint}"
            self.complaints.add((*self.keys, "experiment"), "PR007", message)
        return self.experiments.get(name) if name is not None else None

    def _operands(self, experiment: Experiment | None) -> tuple[Quantity, Quantity | None] | None:
        """The quantity, or numerator or successes with what divides them."""
        texts = {key: getattr(self.table, key) for group in _OPERANDS for key in group}
        given = [group for group in _OPERANDS if any(texts[key] is not None for key in group)]
        if not given:
            self._lacks("quantity", "PR004", 'lacks "quantity"')
            return None
        first, *others = (next(key for key in group if texts[key] is not None) for group in given)
        if others:
            message = f"{self.label} has both {quoted(first)} and {quoted(others[0])}; keep one"
            self.complaints.add((*self.keys, others[0]), "PR005", message)
        missing = [key for key in given[0] if texts[key] is None]
        for key in missing if not others else ():
            self._lacks(key, "PR004", f"has {quoted(first)}, so it needs {quoted(key)}")
        if experiment is None or others:
            return None
        constants = self.file.constants or {}
        parsed = [
            self._attempt(key, parse_quantity, texts[key], experiment.metrics, constants)
            for key in given[0]
            if texts[key] is not None
        ]
        if missing or parsed[0] is None or parsed[-1] is None:
            return None
        return parsed[0], parsed[1] if len(parsed) > 1 else None
