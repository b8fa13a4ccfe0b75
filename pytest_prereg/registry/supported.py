"""What the format has and this version does not do yet, refused rather than ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_prereg.registry.estimands import LATER, contrast_of, estimand_of, is_later_contrast
from pytest_prereg.registry.refusals import RefusedError, quoted
from pytest_prereg.registry.structure import Complaints, label
from pytest_prereg.registry.tables import ExperimentTable, RepeatsTable, Table
from pytest_prereg.registry.toml import positions_of, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_prereg.errors import Problem
    from pytest_prereg.registry.model import Study
    from pytest_prereg.registry.positions import Path
    from pytest_prereg.registry.tables import PredictionTable

ESTIMANDS = (
    "inputs",
    "formula",
    "all",
    "successes",
    "trials",
    "numerator",
    "denominator",
    "for-each",
    "over",
)
"""Keys that say what is estimated in a way that nothing can judge yet."""

PREDICTIONS = ("follows", "requires", "on-inconclusive")
EXPERIMENTS = (
    "command",
    "read",
    "sweep",
    "service",
    "build",
    "data",
    "subject",
    "warmup",
    "exclude",
    "max-excluded",
    "bounds",
    "resources",
    "conditions",
    "max-parallel",
)
IN_ARMS = ("ref", "resources")


def unbuilt_estimand(table: PredictionTable) -> tuple[str, str] | None:
    """The key, and what to say of it, for which this prediction can't even be held; ``None`` if it can."""
    if table.basis != "measured":
        return "basis", _not_yet(f"basis = {quoted(table.basis)}")
    for key in ESTIMANDS:
        if getattr(table, key.replace("-", "_")) is not None:
            return key, _not_yet(quoted(key))
    if table.contrast is not None and is_later_contrast(table.contrast):
        return "contrast", _not_yet(f"contrast {quoted(table.contrast)}")
    try:
        statistic, operator = estimand_of(table, contrast_of(table))
    except RefusedError:
        return None
    if (statistic, operator) not in LATER:
        return None
    return "statistic", _not_yet(f"statistic {quoted(statistic)}{f' of a {operator} b' if operator else ''}")


def not_yet(study: Study) -> list[Problem]:
    """A PR008 problem for each key of a study whose feature is not there yet; ``lock`` refuses them."""
    complaints = Complaints(shown(study.path), positions_of(study.path))
    if study.table.family == "holm":
        _complain(("study", "family"), 'family = "holm"', complaints)
    if study.table.registration == "separate":
        _complain(("study", "registration"), 'registration = "separate"', complaints)
    for name, instrument in study.instruments.items():
        _written(("instruments", name), instrument, ("calibrated-by",), complaints)
    for name, experiment in study.experiments.items():
        _experiment(("experiments", name), experiment.table, complaints)
    for name, prediction in study.predictions.items():
        _written(("predictions", name), prediction.table, PREDICTIONS, complaints)
        if prediction.table.kind == "guard":
            _complain(("predictions", name, "kind"), 'kind = "guard"', complaints)
    return sorted(complaints.problems, key=lambda problem: problem.line or 0)


def _experiment(keys: Path, table: ExperimentTable, complaints: Complaints) -> None:
    _written(keys, table, EXPERIMENTS, complaints)
    if isinstance(table.repeats, RepeatsTable):
        _complain((*keys, "repeats"), '"repeats" other than a number', complaints)
    if table.executor != "local":
        _complain((*keys, "executor"), f"executor {quoted(table.executor)}", complaints)
    if table.cache != "shared":
        _complain((*keys, "cache"), f"cache = {quoted(table.cache)}", complaints)
    for name, arm in (table.arms or {}).items():
        _present((*keys, "arms", name), arm, IN_ARMS, complaints)


def _written(keys: Path, table: Table, names: Iterable[str], complaints: Complaints) -> None:
    """Complain about each of ``names`` that is not at its default."""
    written = _without_defaults(table)
    _present(keys, written, names, complaints)


def _without_defaults(table: Table) -> dict[str, Any]:
    defaults = dict(zip(table.__struct_fields__[::-1], table.__struct_defaults__[::-1], strict=False))
    return {
        written: getattr(table, field)
        for field, written in zip(table.__struct_fields__, table.__struct_encode_fields__, strict=True)
        if getattr(table, field) != defaults.get(field)
    }


def _present(keys: Path, table: Mapping[str, Any], names: Iterable[str], complaints: Complaints) -> None:
    for name in names:
        if name in table:
            _complain((*keys, name), quoted(name), complaints)


def _complain(keys: Path, what: str, complaints: Complaints) -> None:
    complaints.add(keys, "PR008", f"{label(keys[:-1])}: {_not_yet(what)}")


def _not_yet(what: str) -> str:
    return f"{what} is not supported yet, so nothing that has it can be registered"
