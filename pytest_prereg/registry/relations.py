"""How predictions rest on each other: ``requires``, ``follows``, ``all`` and ``calibrated-by``."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pytest_prereg.registry.instruments import CALIBRATES, needs_calibration
from pytest_prereg.registry.refusals import listed, quoted, suggestion
from pytest_prereg.registry.structure import label
from pytest_prereg.registry.uses import arms_of, instruments_of, metrics_of, named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_prereg.registry.model import Experiment, Prediction
    from pytest_prereg.registry.structure import Complaints
    from pytest_prereg.registry.tables import PredictionsFile, PredictionTable

    Edges = Mapping[str, Sequence[str]]

__all__ = ["check_relations", "predecessor"]


def predecessor(prediction: Prediction, predictions: Mapping[str, Prediction]) -> str | None:
    """Id of the prediction that ``prediction`` follows; ``None`` where it follows none, or not one alone.

    Where both come from for-each tables it is the one at the same point.
    """
    follows = prediction.table.follows
    if follows is None or follows in predictions:
        return follows
    point = prediction.id.removeprefix(prediction.name) if prediction.name else ""
    twin = f"{follows}{point}"
    return twin if point and twin in predictions else None


def check_relations(
    file: PredictionsFile,
    experiments: Mapping[str, Experiment],
    predictions: Mapping[str, Prediction],
    complaints: Complaints,
) -> None:
    """Complain about relations that lead nowhere (PR007), in a circle, or to what can't bear them (PR005)."""
    check = _Check(file, predictions, complaints)
    for name, table in (file.predictions or {}).items():
        check.references(name, table)
    edges = {name: list(_rests_on(table)) for name, table in (file.predictions or {}).items()}
    check.circles(edges)
    check.calibrations(edges, experiments)


class _Check:
    """The relations of one file."""

    def __init__(
        self, file: PredictionsFile, predictions: Mapping[str, Prediction], complaints: Complaints
    ) -> None:
        self.tables = file.predictions or {}
        self.instruments = file.instruments or {}
        self.predictions = predictions
        self.complaints = complaints

    def references(self, name: str, table: PredictionTable) -> None:
        """Whether all that a prediction requires or follows is there."""
        for other in table.requires or []:
            if self._reference(name, "requires", other) and table.kind == "claim" and self._is_guard(other):
                message = f'"requires" names guard {quoted(other)}; a claim is decided once, a guard never is'
                self._refuse(("predictions", name, "requires"), "PR005", message)
        if table.follows is not None and self._reference(name, "follows", table.follows):
            self._follows(name, table.follows)

    def _reference(self, name: str, key: str, other: str) -> bool:
        """Whether ``other`` is another prediction; a slip is complained about."""
        if _table_of(other) == name:
            self._refuse(("predictions", name, key), "PR005", f"{quoted(key)} names itself")
        elif not self._known(other):
            known = [*self.tables, *(each for each in self.predictions if each not in self.tables)]
            hint = suggestion(other, known, "known")
            message = f"{quoted(key)} names unknown prediction {quoted(other)}{hint}"
            self._refuse(("predictions", name, key), "PR007", message)
        else:
            return True
        return False

    def _known(self, name: str) -> bool:
        """Whether there is such a prediction, or would be if its table had been sound."""
        if name in self.tables or name in self.predictions:
            return True
        table = _table_of(name)
        if self.complaints.told("predictions", table):
            return True
        return table in self.tables and not named(table, self.predictions)

    def _is_guard(self, name: str) -> bool:
        table = self.tables.get(_table_of(name))
        return table is not None and table.kind == "guard"

    def _follows(self, name: str, other: str) -> None:
        keys = ("predictions", name, "follows")
        if self._is_guard(other):
            message = f'"follows" names guard {quoted(other)}; only a claim stays inconclusive'
            self._refuse(keys, "PR005", message)
            return
        points = named(other, self.predictions)
        own = [self.predictions[each] for each in named(name, self.predictions)]
        if points and any(predecessor(each, self.predictions) is None for each in own):
            what = f"{quoted(other)}, which is {len(points)} predictions"
            self._refuse(keys, "PR005", f'"follows" names {what}; name one, such as {quoted(points[0])}')

    def circles(self, edges: Edges) -> None:
        """Complain once about each circle of predictions that rest on each other."""
        told: set[str] = set()
        for name in edges:
            way = _way(name, name, edges)
            if way and not told & {*way} and len({*way}) > 1:
                told |= {*way}
                steps = ", which rests on ".join(quoted(step) for step in way[1:])
                message = f"rests on {steps}: none of them could ever be decided first"
                self._refuse(("predictions", name, _key_of(self.tables[name], way[1])), "PR005", message)

    def calibrations(self, edges: Edges, experiments: Mapping[str, Experiment]) -> None:
        """Whether what calibrates an instrument is a claim that rests on nothing read with it."""
        read_by = defaultdict[str, set[str]](set)
        for prediction in self.predictions.values():
            read_by[_table_of(prediction.id)] |= {*instruments_of(prediction, experiments)}
        through = {
            name: [*others, *(each for tool in sorted(read_by[name]) for each in self._calibrators(tool))]
            for name, others in edges.items()
        }
        for instrument, table in self.instruments.items():
            for other in table.calibrated_by or []:
                self._calibration(instrument, other, through, read_by)
            if needs_calibration(instrument):
                self._measures(instrument, table.calibrated_by or [], experiments)

    def _calibration(
        self, instrument: str, other: str, through: Edges, read_by: Mapping[str, set[str]]
    ) -> None:
        keys = ("instruments", instrument, "calibrated-by")
        table = _table_of(other)
        if not self._known(other):
            hint = suggestion(other, [*self.tables], "known")
            self._refuse(keys, "PR007", f'"calibrated-by" names unknown prediction {quoted(other)}{hint}')
        elif self._is_guard(other):
            self._refuse(keys, "PR005", f'"calibrated-by" names guard {quoted(other)}; name claims')
        elif own := [name for name in _reached(table, through) if instrument in read_by.get(name, ())]:
            reader = quoted(other) if own[0] == table else f"{quoted(other)} rests on {quoted(own[0])}, which"
            message = f"{reader} is read with it, so it can't calibrate it"
            self._refuse(keys, "PR005", message)

    def _measures(self, instrument: str, names: list[str], experiments: Mapping[str, Experiment]) -> None:
        """Whether what calibrates an instrument is measured, and compares readings, not only counts."""
        keys = ("instruments", instrument, "calibrated-by")
        read = False
        for other in names:
            tables = [other, *(self.tables[other].all or ())] if other in self.tables else []
            for table in map(_table_of, tables):
                if table in self.tables and (basis := self.tables[table].basis) != "measured":
                    message = f'{quoted(table)} has basis = "{basis}": it shows nothing of an instrument'
                    self._refuse(keys, "PR005", message)
            read |= any(_is_read(self.predictions[each], experiments) for each in self._all_below(other))
        if names and not read and all(named(other, self.predictions) for other in names):
            message = f"{listed(names)} read nothing but what is exact: counts calibrate nothing that is read"
            self._refuse(keys, "PR005", message)
        self._reads(instrument, names, experiments)

    def _reads(self, instrument: str, names: list[str], experiments: Mapping[str, Experiment]) -> None:
        """Whether any arm of what calibrates an instrument may read with it, as far as that is known."""
        below = [self.predictions[each] for name in names for each in self._all_below(name)]
        takers = {taker for each in below for taker in _takers(each, experiments)}
        if takers and None not in takers and instrument not in takers:
            several = " and ".join(sorted(filter(None, takers)))
            message = f"{listed(names)} read with {several}, and nothing with {instrument}"
            self._refuse(("instruments", instrument, "calibrated-by"), "PR005", message)

    def _all_below(self, name: str) -> list[str]:
        """The predictions of a name, and where they are conjunctions their members."""
        own = named(name, self.predictions)
        return [*own, *(each for one in own for each in self.predictions[one].members)]

    def _calibrators(self, instrument: str) -> Iterator[str]:
        table = self.instruments.get(instrument)
        return (_table_of(name) for name in (table.calibrated_by or [] if table else []))

    def _refuse(self, keys: tuple[str, str, str], code: str, message: str) -> None:
        if not self.complaints.told(*keys):
            self.complaints.add(keys, code, f"{label(keys[:2])}: {message}")


def _takers(prediction: Prediction, experiments: Mapping[str, Experiment]) -> Iterator[str | None]:
    """What each arm of a prediction reads with; ``None`` where only its evidence will tell."""
    for name in prediction.experiments:
        known = experiments.get(name)
        source = known.source if known is not None else None
        able = CALIBRATES.get(source.function) if source is not None and source.path is None else None
        for arm in arms_of(prediction, name):
            if known is None or able is None or arm not in known.arms:
                yield None
            else:
                yield str(known.arms[arm].params.get("instrument", able[0]))


def _is_read(prediction: Prediction, experiments: Mapping[str, Experiment]) -> bool:
    """Whether a prediction uses a metric that is not exact."""
    return any(
        not experiments[name].metrics[metric].exact
        for name in prediction.experiments
        if name in experiments
        for metric in metrics_of(prediction, name)
    )


def _table_of(name: str) -> str:
    """The table that makes the prediction ``name``: ``faster`` of ``faster[cols=4096]``."""
    return name.partition("[")[0]


def _rests_on(table: PredictionTable) -> Iterator[str]:
    """Names of the tables that a prediction rests on."""
    follows = [] if table.follows is None else [table.follows]
    for name in (*(table.requires or []), *(table.all or []), *follows):
        yield _table_of(name)


def _key_of(table: PredictionTable, other: str) -> str:
    """The key in which a table names another."""
    for key, names in (("requires", table.requires), ("all", table.all)):
        if other in map(_table_of, names or []):
            return key
    return "follows"


def _way(start: str, goal: str, edges: Edges) -> list[str] | None:
    """The shortest way of at least one step, both ends included; ``None`` where there is none."""
    came: dict[str, str] = {}
    reached = [start]
    for name in reached:
        for other in edges.get(name, ()):
            if other == goal:
                way = [goal, name]
                while way[-1] != start:
                    way.append(came[way[-1]])
                return way[::-1]
            if other not in came and other != start:
                came[other] = name
                reached.append(other)
    return None


def _reached(start: str, edges: Edges) -> list[str]:
    """``start`` and all that it leads to, nearest first."""
    reached = [start]
    for name in reached:
        reached += dict.fromkeys(other for other in edges.get(name, ()) if other not in reached)
    return reached
