"""What a registration binds, and its digest.

The digest is SHA-256 over canonical JSON of everything that a verdict depends on, in parsed form, so that
reformatting, reordering or moving a file is no change. Keys at their default are left out, so that a new key,
whose default is what was done before, disturbs no old digest. The format is frozen: registrations outlive
releases.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.registry.canonical import canonical_json
from pytest_prereg.registry.durations import parse_duration
from pytest_prereg.registry.environment_conditions import canonical_conditions
from pytest_prereg.registry.model import ONLY_ARM
from pytest_prereg.registry.quantities import constants_used
from pytest_prereg.registry.regions import parsed
from pytest_prereg.registry.resources import canonical_resources
from pytest_prereg.registry.rules import canonical_rules
from pytest_prereg.registry.uses import arms_of, instruments_of, metrics_of, quantities_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_prereg.registry.model import Experiment, Input, Metric, Prediction, Study
    from pytest_prereg.registry.regions import Region
    from pytest_prereg.registry.tables import ExperimentTable

__all__ = [
    "canonical_json",
    "claim_digest",
    "registered_content",
    "registration_digest",
    "source_of_all",
]

USUAL_CONFIDENCE = 0.95
USUAL_FAMILY = "none"

PROSE = frozenset({"claim", "tags", "notes"})
"""Keys of a prediction that bind nothing; the claim has a digest of its own."""

PARSED = frozenset(
    {
        "arm",
        "contrast",
        "quantity",
        "numerator",
        "denominator",
        "successes",
        "trials",
        "inputs",
        "formula",
        "all",
        "statistic",
        "for-each",
        "over",
        "predicts",
        "falsifier",
    }
)
"""Keys of a prediction that are taken from what they were resolved to, not from their text."""

UNBOUND = frozenset({"tags", "notes", "preload", "max-parallel", "cache"})
"""Keys of an experiment that change what a run costs, not what it shows."""

RESOLVED = frozenset(
    {"arms", "bounds", "conditions", "exclude", "metrics", "pairing", "resources", "sweep", "timeout"}
)
"""Keys of an experiment that are taken from what they were resolved to."""


def registration_digest(study: Study, prediction: Prediction) -> str:
    """``sha256:…`` of everything that binds a prediction; what the lock records."""
    return _sha256(canonical_json(registered_content(study, prediction)))


def claim_digest(text: str) -> str:
    """``sha256:…`` of a claim's words; how its lines are wrapped makes no difference."""
    return _sha256(" ".join(text.split()).encode("utf-8"))


def source_of_all(sources: Mapping[str, str | None]) -> str | None:
    """What a lock holds of the code of a prediction's experiments: its digest, or one of several digests.

    ``sources`` is the source digest of each experiment, by id; ``None`` where nothing is run. It is ``None``
    itself where none of them runs anything.
    """
    if len(sources) == 1 or not any(sources.values()):
        return next(iter(sources.values()))
    return _sha256(canonical_json(sources))


def registered_content(study: Study, prediction: Prediction) -> dict[str, Any]:
    """What the digest is taken of, as plain data: it names neither the study nor the prediction."""
    content: dict[str, Any] = {"prediction": _prediction(prediction), **_rests_on(study, prediction)}
    if prediction.confidence != USUAL_CONFIDENCE:
        content["confidence"] = prediction.confidence
    if study.table.family != USUAL_FAMILY:
        content["family"] = study.table.family
    if constants := sorted(_constants(prediction)):
        # Where a number comes from is prose; what it is decides the verdict.
        content["constants"] = {name: _stated(study.constants[name], {"source"}) for name in constants}
    if calibrated := _calibrated(study, prediction):
        content["instruments"] = calibrated
    return content


def _rests_on(study: Study, prediction: Prediction) -> dict[str, Any]:
    """What a prediction is decided from: an experiment, a formula's experiments, a conjunction's members."""
    if prediction.members:
        members = (study.predictions[name] for name in prediction.members)
        return {"members": sorted(registration_digest(study, member) for member in members)}
    used = {name: _experiment(study.experiments[name], prediction) for name in prediction.experiments}
    return (
        {"experiment": used[prediction.experiment]} if prediction.formula is None else {"experiments": used}
    )


def _constants(prediction: Prediction) -> set[str]:
    inputs = prediction.formula.inputs if prediction.formula is not None else ()
    quantities = [each for name in prediction.experiments for each in quantities_of(prediction, name)]
    return {
        *(each.constant for each in inputs if each.constant is not None),
        *(name for quantity in quantities for name in constants_used(quantity.node)),
    }


def _calibrated(study: Study, prediction: Prediction) -> dict[str, list[str]]:
    """What calibrates the instruments that are not taken on trust: why one is trusted is prose."""
    tables = {name: study.instruments.get(name) for name in instruments_of(prediction, study.experiments)}
    return {
        name: sorted({*table.calibrated_by})
        for name, table in tables.items()
        if table and table.calibrated_by
    }


def _prediction(prediction: Prediction) -> dict[str, Any]:
    content = _stated(prediction.table, PROSE | PARSED)
    if prediction.table.requires:
        content["requires"] = sorted({*prediction.table.requires})
    content["statistic"] = prediction.statistic
    if prediction.members:
        return content
    if prediction.formula is None:
        content["arms"] = list(prediction.arms)
        content |= _estimated(prediction)
    else:
        content["formula"] = prediction.formula.node
        content["inputs"] = {each.name: _input(each) for each in prediction.formula.inputs}
    content["predicts"] = _region(prediction.predicts)
    content["falsifier"] = _region(prediction.falsifier)
    if (contrast := prediction.contrast) is not None:
        content["contrast"] = [
            contrast.operator,
            *([contrast.parameter] if contrast.parameter else contrast.arms),
        ]
    return content


def _estimated(prediction: Prediction) -> dict[str, Any]:
    """What is measured in a repeat, and what is made of it; keys that say nothing are left out."""
    content: dict[str, Any] = {"quantity": prediction.quantity.node}
    if prediction.divisor is not None:
        content["divisor"] = prediction.divisor.node
    for key in ("q", "reduction"):
        if (value := getattr(prediction, key)) is not None:
            content[key] = value
    for key in ("levels", "points"):
        if value := getattr(prediction, key):
            content[key] = value
    return content


def _input(source: Input) -> dict[str, Any]:
    if source.quantity is None:
        return {"constant": source.constant}
    content = {"experiment": source.experiment, "quantity": source.quantity.node}
    return content if source.arm == ONLY_ARM else {**content, "arm": source.arm}


def _region(region: Region) -> dict[str, Any]:
    spans = {"spans": parsed(region)}
    return spans if region.unit is None else {**spans, "unit": region.unit}


def _experiment(experiment: Experiment, prediction: Prediction) -> dict[str, Any]:
    """The experiment's table with those of its arms and metrics alone that the prediction uses."""
    table = experiment.table
    content = _stated(table, UNBOUND | RESOLVED) | _resolved(table)
    if table.service is not None:
        # How long its start may take says when to give a repeat up that has not begun, and no more.
        content["service"] = _stated(table.service, {"timeout"})
    if experiment.pairing != ("none" if experiment.kind == "import" else "block"):
        content["pairing"] = experiment.pairing
    arms = [experiment.arms[name] for name in arms_of(prediction, experiment.id)]
    if table.arms:
        names = {arm.base or arm.name for arm in arms}
        content["arms"] = {name: _arm(table.arms[name]) for name in names}
    if points := {arm.name: arm.point for arm in arms if arm.point}:
        content["sweep"] = points
    used = metrics_of(prediction, experiment.id)
    if bounds := {name: ends for name, ends in (table.bounds or {}).items() if name in used}:
        content["bounds"] = bounds
    if metrics := {name: _metric(experiment.metrics[name]) for name in used}:
        content["metrics"] = metrics
    return content


def _resolved(table: ExperimentTable) -> dict[str, Any]:
    """What a table says of how its repeats run, each as what it stands for."""
    content: dict[str, Any] = {}
    if table.timeout is not None:
        content["timeout"] = parse_duration(table.timeout)
    if table.resources and (asked := canonical_resources(_stated(table.resources, frozenset()))):
        content["resources"] = asked
    if table.exclude:
        content["exclude"] = canonical_rules(table.exclude)
    if table.conditions:
        content["conditions"] = canonical_conditions(table.conditions)
    return content


def _arm(table: Mapping[str, Any]) -> dict[str, Any]:
    arm = dict(table)
    if "timeout" in arm:
        arm["timeout"] = parse_duration(arm["timeout"])
    if "resources" in arm:
        arm["resources"] = canonical_resources(arm["resources"])
    return arm


def _metric(metric: Metric) -> dict[str, Any]:
    content = _stated(metric, {"name", "source"})
    return content if metric.source is None else {**content, "from": metric.source}


def _stated(table: msgspec.Struct, left_out: set[str] | frozenset[str]) -> dict[str, Any]:
    """A table's keys as they are written, without those that say no more than leaving them out would."""
    stated = {}
    for name, key, default in _keys(type(table)):
        value = getattr(table, name)
        if key not in left_out and value != default and value not in ([], {}):
            stated[key] = _stated(value, frozenset()) if isinstance(value, msgspec.Struct) else value
    return stated


@cache
def _keys(kind: type[msgspec.Struct]) -> list[tuple[str, str, Any]]:
    """Attribute, key and default of every field of a table."""
    return [(field.name, field.encode_name, field.default) for field in msgspec.structs.fields(kind)]


def _sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
