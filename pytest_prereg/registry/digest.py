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
from pytest_prereg.registry.quantities import constants_used
from pytest_prereg.registry.regions import parsed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_prereg.registry.model import Experiment, Metric, Prediction, Study
    from pytest_prereg.registry.regions import Region

__all__ = ["canonical_json", "claim_digest", "registered_content", "registration_digest"]

USUAL_CONFIDENCE = 0.95
USUAL_FAMILY = "none"

PROSE = frozenset({"claim", "tags", "notes"})
"""Keys of a prediction that bind nothing; the claim has a digest of its own."""

PARSED = frozenset({"arm", "contrast", "quantity", "statistic", "predicts", "falsifier"})
"""Keys of a prediction that are taken from what they were resolved to, not from their text."""

UNBOUND = frozenset({"tags", "notes", "preload", "max-parallel", "cache"})
"""Keys of an experiment that change what a run costs, not what it shows."""

RESOLVED = frozenset({"arms", "metrics", "pairing", "timeout"})
"""Keys of an experiment that are taken from what they were resolved to."""


def registration_digest(study: Study, prediction: Prediction) -> str:
    """``sha256:…`` of everything that binds a prediction; what the lock records."""
    return _sha256(canonical_json(registered_content(study, prediction)))


def claim_digest(text: str) -> str:
    """``sha256:…`` of a claim's words; how its lines are wrapped makes no difference."""
    return _sha256(" ".join(text.split()).encode("utf-8"))


def registered_content(study: Study, prediction: Prediction) -> dict[str, Any]:
    """What the digest is taken of, as plain data: it names neither the study nor the prediction."""
    content: dict[str, Any] = {
        "prediction": _prediction(prediction),
        "experiment": _experiment(study.experiments[prediction.experiment], prediction),
    }
    if prediction.confidence != USUAL_CONFIDENCE:
        content["confidence"] = prediction.confidence
    if study.table.family != USUAL_FAMILY:
        content["family"] = study.table.family
    if constants := sorted(set(constants_used(prediction.quantity.node))):
        # Where a number comes from is prose; what it is decides the verdict.
        content["constants"] = {name: _stated(study.constants[name], {"source"}) for name in constants}
    return content


def _prediction(prediction: Prediction) -> dict[str, Any]:
    content = _stated(prediction.table, PROSE | PARSED)
    content["arms"] = list(prediction.arms)
    content["quantity"] = prediction.quantity.node
    content["statistic"] = prediction.statistic
    content["predicts"] = _region(prediction.predicts)
    content["falsifier"] = _region(prediction.falsifier)
    if (contrast := prediction.contrast) is not None:
        content["contrast"] = [contrast.operator, *contrast.arms]
    return content


def _region(region: Region) -> dict[str, Any]:
    spans = {"spans": parsed(region)}
    return spans if region.unit is None else {**spans, "unit": region.unit}


def _experiment(experiment: Experiment, prediction: Prediction) -> dict[str, Any]:
    """The experiment's table with those of its arms and metrics alone that the prediction uses."""
    table = experiment.table
    content = _stated(table, UNBOUND | RESOLVED)
    if table.timeout is not None:
        content["timeout"] = parse_duration(table.timeout)
    if experiment.pairing != ("none" if experiment.kind == "import" else "block"):
        content["pairing"] = experiment.pairing
    if table.arms:
        content["arms"] = {name: _arm(table.arms[name]) for name in prediction.arms}
    if metrics := {name: _metric(experiment.metrics[name]) for name in prediction.quantity.metrics}:
        content["metrics"] = metrics
    return content


def _arm(table: Mapping[str, Any]) -> dict[str, Any]:
    arm = dict(table)
    if "timeout" in arm:
        arm["timeout"] = parse_duration(arm["timeout"])
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
