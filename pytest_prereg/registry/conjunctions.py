"""Conjunctions: ``all = ["faster", "no-worse"]``, a claim that several claims of the study hold at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.registry.model import Prediction, Quantity
from pytest_prereg.registry.refusals import listed, quoted, suggestion
from pytest_prereg.registry.regions import Region
from pytest_prereg.registry.structure import label
from pytest_prereg.registry.uses import named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_prereg.registry.model import Experiment
    from pytest_prereg.registry.positions import Path
    from pytest_prereg.registry.structure import Complaints
    from pytest_prereg.registry.tables import PredictionsFile, PredictionTable

__all__ = ["build_conjunctions"]

FEWEST = 2

NOT_BESIDE = (
    "experiment",
    "arm",
    "contrast",
    "quantity",
    "successes",
    "trials",
    "numerator",
    "denominator",
    "inputs",
    "formula",
    "statistic",
    "unit",
    "predicts",
    "falsifier",
    "expected",
    "detect",
    "cv",
    "sd",
    "for-each",
    "over",
    "one-sided",
)
"""Keys that each member has for itself."""


def build_conjunctions(
    file: PredictionsFile,
    experiments: Mapping[str, Experiment],
    predictions: Mapping[str, Prediction],
    complaints: Complaints,
) -> dict[str, Prediction]:
    """The conjunctions of a file over its other ``predictions``; all that is wrong is complained about."""
    built = {}
    for name, table in (file.predictions or {}).items():
        if table.all is not None:
            builder = _Builder(("predictions", name), table, file, predictions, complaints)
            if conjunction := builder.build(experiments):
                built[name] = conjunction
    return built


class _Builder:
    """One conjunction while it is read."""

    def __init__(
        self,
        keys: Path,
        table: PredictionTable,
        file: PredictionsFile,
        predictions: Mapping[str, Prediction],
        complaints: Complaints,
    ) -> None:
        self.keys = keys
        self.table = table
        self.file = file
        self.predictions = predictions
        self.complaints = complaints
        self.label = label(keys)

    def build(self, experiments: Mapping[str, Experiment]) -> Prediction | None:
        """The prediction, or ``None`` once something that it needs was complained about."""
        for key in NOT_BESIDE:
            if getattr(self.table, key.replace("-", "_")) not in (None, False):
                self._refuse(key, "PR005", f'has {quoted(key)} beside "all"; each of its members has its own')
        members = self._members()
        if members is None:
            return None
        self._check_stopping(members, experiments)
        names = {name for member in members.values() for name in member.experiments}
        listing = ", ".join(self.table.all or ())
        return Prediction(
            id=str(self.keys[1]),
            claim=self.table.claim,
            table=self.table,
            experiments=tuple(sorted(names)),
            arms=(),
            contrast=None,
            quantity=Quantity(text=f"all of {listing}", node=0.0, metrics=()),
            statistic="all",
            members=tuple(sorted(members)),
            predicts=Region(spans=()),
            falsifier=Region(spans=()),
            confidence=self.file.study.confidence,
            line=self.complaints.positions.line(*self.keys),
        )

    def _members(self) -> dict[str, Prediction] | None:
        """The members by id; ``None`` where one can't be, or was complained about itself."""
        names = self.table.all or []
        sound = [self._is_sound(name) for name in names]
        members = {each: self.predictions[each] for name in names for each in named(name, self.predictions)}
        if not all(sound) or not all(named(name, self.predictions) for name in names):
            return None
        if len(members) < FEWEST:
            self._refuse("all", "PR005", f'needs at least {FEWEST} different predictions in "all"')
            return None
        return members

    def _is_sound(self, name: str) -> bool:
        """Whether ``name`` may be a member; a slip is complained about."""
        tables = self.file.predictions or {}
        written = tables.get(name.partition("[")[0])
        if written is None:
            hint = suggestion(name, [*self._others(tables)], "known")
            self._refuse("all", "PR007", f'names unknown prediction {quoted(name)} in "all"{hint}')
        elif name == self.keys[1] or written.all is not None:
            what = "itself" if name == self.keys[1] else f"{quoted(name)}, which is made of others itself"
            self._refuse("all", "PR005", f'names {what} in "all"; name the predictions that are measured')
        elif written.kind == "guard":
            what = f"guard {quoted(name)}, which is judged anew for each version of its subject"
            self._refuse("all", "PR005", f'names {what}, in "all"; its members are claims')
        elif self._unknown_point(name):
            hint = suggestion(name, self.predictions, "known")
            self._refuse("all", "PR007", f'names unknown prediction {quoted(name)} in "all"{hint}')
        else:
            return True
        return False

    def _others(self, tables: Mapping[str, PredictionTable]) -> Iterator[str]:
        return (name for name, table in tables.items() if table.all is None)

    def _unknown_point(self, name: str) -> bool:
        """Whether ``name`` is of a table that could be read, and of a point that it does not have."""
        table = name.partition("[")[0]
        return bool(named(table, self.predictions)) and not named(name, self.predictions)

    def _check_stopping(
        self, members: Mapping[str, Prediction], experiments: Mapping[str, Experiment]
    ) -> None:
        early = [
            name
            for name, member in members.items()
            if any(experiments[each].stopping is not None for each in member.experiments)
        ]
        if early:
            what = f'names {listed(early)} in "all", whose series may end early'
            self._refuse("all", "PR024", f"{what}: no rule decides a conjunction at a look")

    def _refuse(self, key: str, code: str, message: str) -> None:
        if not self.complaints.told(*self.keys, key):
            self.complaints.add((*self.keys, key), code, f"{self.label} {message}")
