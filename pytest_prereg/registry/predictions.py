"""Prediction tables to predictions: what is judged, in which arms, by which statistic and regions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pytest_prereg.registry.estimands import check_binary, contrast_of, statistic_of
from pytest_prereg.registry.judging import regions_of
from pytest_prereg.registry.model import ONLY_ARM, Contrast, Experiment, Prediction, Quantity
from pytest_prereg.registry.quantities import parse_quantity
from pytest_prereg.registry.refusals import RefusedError, listed, quoted, suggestion
from pytest_prereg.registry.structure import label
from pytest_prereg.registry.supported import unbuilt_estimand
from pytest_prereg.registry.unit_text import normal_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_prereg.registry.positions import Path
    from pytest_prereg.registry.structure import Complaints
    from pytest_prereg.registry.tables import PredictionsFile, PredictionTable


_Read = TypeVar("_Read")


def build_predictions(
    file: PredictionsFile, experiments: Mapping[str, Experiment], complaints: Complaints
) -> dict[str, Prediction]:
    """The predictions that can be judged; all that is wrong with any is complained about."""
    built = {}
    for name, table in (file.predictions or {}).items():
        builder = _Builder(("predictions", name), table, file, experiments, complaints)
        if unbuilt := unbuilt_estimand(table):
            complaints.add(("predictions", name, unbuilt[0]), "PR008", f"{builder.label}: {unbuilt[1]}")
        elif prediction := builder.build():
            built[name] = prediction
    return built


class _Builder:
    """One prediction while it is read; what is wrong is complained about, and the rest still looked at."""

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

    def build(self) -> Prediction | None:
        """The prediction, or ``None`` once something that it needs was complained about."""
        self._check_references()
        self._check_unit()
        contrast = self._attempt("contrast", contrast_of, self.table)
        statistic = self._attempt("statistic", statistic_of, self.table, contrast)
        experiment = self._experiment()
        arms = self._arms(experiment, contrast) if experiment else None
        quantity = self._quantity(experiment)
        if quantity and statistic:
            self._attempt("statistic", check_binary, quantity, statistic, contrast and contrast.operator)
        regions = regions_of(self.keys, self.table, statistic, self.complaints)
        if experiment is None or arms is None or quantity is None or statistic is None or regions is None:
            return None
        predicts, falsifier = regions
        return Prediction(
            id=str(self.keys[1]),
            claim=self.table.claim,
            table=self.table,
            experiments=(experiment.id,),
            arms=arms,
            contrast=contrast,
            quantity=quantity,
            statistic=statistic,
            predicts=predicts,
            falsifier=falsifier,
            confidence=self.file.study.confidence,
            line=self.complaints.positions.line(*self.keys),
        )

    def _attempt(self, key: str, read: Callable[..., _Read], *arguments: object) -> _Read | None:
        """What ``read`` returns; ``None`` once its refusal was complained about at ``key``."""
        try:
            return read(*arguments)
        except RefusedError as refusal:
            self.complaints.refuse((*self.keys, key), self.label, refusal)
            return None

    def _lacks(self, key: str, code: str, message: str) -> None:
        if not self.complaints.told(*self.keys, key):
            self.complaints.add((*self.keys, key), code, f"{self.label} {message}")

    def _check_references(self) -> None:
        known = self.file.predictions or {}
        follows = [self.table.follows] if self.table.follows is not None else []
        for key, names in (("requires", self.table.requires or []), ("follows", follows)):
            for name in names:
                if name == self.keys[1]:
                    message = f"{self.label}: {quoted(key)} names itself"
                    self.complaints.add((*self.keys, key), "PR005", message)
                elif name not in known and not self.complaints.told("predictions", name):
                    hint = suggestion(name, known, "known")
                    message = f"{self.label}: {quoted(key)} names unknown prediction {quoted(name)}{hint}"
                    self.complaints.add((*self.keys, key), "PR007", message)

    def _check_unit(self) -> None:
        if self.table.unit is not None:
            self._attempt("unit", normal_unit, self.table.unit)

    def _experiment(self) -> Experiment | None:
        name, tables = self.table.experiment, self.file.experiments or {}
        if name is None:
            self._lacks("experiment", "PR004", 'lacks "experiment"')
        elif name not in tables and not self.complaints.told("experiments", name):
            hint = suggestion(name, tables, "known")
            message = f"{self.label} names unknown experiment {quoted(name)}{hint}"
            self.complaints.add((*self.keys, "experiment"), "PR007", message)
        return self.experiments.get(name) if name is not None else None

    def _arms(self, experiment: Experiment, contrast: Contrast | None) -> tuple[str, ...] | None:
        named = list(contrast.arms) if contrast else [self.table.arm or ONLY_ARM]
        if self.table.arm is not None and self.table.contrast is not None:
            message = f'{self.label} has both "arm" and "contrast"; keep one'
            self.complaints.add((*self.keys, "arm"), "PR005", message)
            return None
        if self.table.arm is None and self.table.contrast is None:
            return self._only_arm(experiment)
        key = "arm" if self.table.contrast is None else "contrast"
        unknown = [name for name in named if name not in experiment.arms or name == ONLY_ARM]
        for name in unknown if not self.complaints.told(*self.keys, key) else ():
            where = f"{quoted(name)} of experiment {quoted(experiment.id)}"
            hint = suggestion(name, [arm for arm in experiment.arms if arm], "its arms")
            self.complaints.add((*self.keys, key), "PR007", f"{self.label} names unknown arm {where}{hint}")
        return None if unknown else tuple(named)

    def _only_arm(self, experiment: Experiment) -> tuple[str, ...] | None:
        if len(experiment.arms) == 1:
            return tuple(experiment.arms)
        if not self.complaints.told(*self.keys, "contrast"):
            arms = listed(experiment.arms, "or")
            self._lacks("arm", "PR004", f'lacks "arm" or "contrast": {quoted(experiment.id)} has arms {arms}')
        return None

    def _quantity(self, experiment: Experiment | None) -> Quantity | None:
        if self.table.quantity is None:
            self._lacks("quantity", "PR004", 'lacks "quantity"')
            return None
        if experiment is None:
            return None
        constants = self.file.constants or {}
        return self._attempt("quantity", parse_quantity, self.table.quantity, experiment.metrics, constants)
