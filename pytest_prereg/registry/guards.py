"""Guards and families: what a study must say before either can be decided."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.registry.refusals import listed, quoted
from pytest_prereg.registry.structure import label

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_prereg.registry.model import Experiment, Prediction
    from pytest_prereg.registry.structure import Complaints
    from pytest_prereg.registry.tables import PredictionsFile, PredictionTable

__all__ = ["check_family", "check_guards"]


def check_guards(
    file: PredictionsFile, experiments: Mapping[str, Experiment], complaints: Complaints
) -> None:
    """Complain about guards without a subject or a demand on their power, and about what only guards have."""
    for name, table in (file.predictions or {}).items():
        found = _of_guard(table, experiments) if table.kind == "guard" else _of_claim(table)
        for key, code, message in found:
            if not complaints.told("predictions", name, key):
                keys = ("predictions", name, key)
                complaints.add(keys, code, f"{label(keys[:2])} {message}")


def check_family(
    file: PredictionsFile,
    experiments: Mapping[str, Experiment],
    predictions: Mapping[str, Prediction],
    complaints: Complaints,
) -> None:
    """Complain (PR024) about a family with members that have no single p at one time."""
    if file.study.family != "holm":
        return
    guards = [each.id for each in predictions.values() if each.table.kind == "guard"]
    early = [
        each.id
        for each in predictions.values()
        if any(experiments[name].stopping is not None for name in each.experiments)
    ]
    _refuse_members(guards, "a guard is judged again and again", complaints)
    _refuse_members(early, "its series may be decided before it is complete", complaints)


def _refuse_members(names: list[str], why: str, complaints: Complaints) -> None:
    if names and not complaints.told("study", "family"):
        message = f'[study]: family = "holm" can\'t have {listed(names)} among its members: {why}'
        complaints.add(("study", "family"), "PR024", message)


def _of_claim(table: PredictionTable) -> Iterator[tuple[str, str, str]]:
    """Key, code and message of what only a guard may have."""
    if table.on_inconclusive is not None:
        message = 'has "on-inconclusive", which only a guard (kind = "guard") may have'
        yield "on-inconclusive", "PR005", message


def _of_guard(
    table: PredictionTable, experiments: Mapping[str, Experiment]
) -> Iterator[tuple[str, str, str]]:
    """Key, code and message of all that is wrong with a guard."""
    if table.all is not None or table.formula is not None or table.inputs is not None:
        what = "formula" if table.all is None else "conjunction"
        yield "kind", "PR024", f"is a guard; no rule judges a {what} anew for each version of a subject"
        return
    if table.follows is not None:
        yield "follows", "PR005", 'is a guard, which is judged anew in any case; leave out "follows"'
    experiment = experiments.get(table.experiment or "")
    if experiment is not None and not experiment.table.subject:
        message = f'is a guard, and {quoted(experiment.id)} has no "subject": name the files that it guards'
        yield "kind", "PR004", message
    if missing := list(_undemanding(table)):
        what = f"is a guard and lacks {listed(missing)}"
        yield "detect", "PR004", f"{what}: without, nobody knows how often it would fail to see a regression"


def _undemanding(table: PredictionTable) -> Iterator[str]:
    """Keys that the power of a guard can't be computed without."""
    for key in ("expected", "detect"):
        if getattr(table, key) is None:
            yield key
    of_shares = (table.statistic or "").strip() == "proportion" and table.trials is None
    if table.cv is None and table.sd is None and not of_shares:
        yield "cv"
