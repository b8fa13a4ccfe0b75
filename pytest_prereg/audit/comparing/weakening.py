"""Whether a changed registration is easier to support, harder to refute, or asks another question.

Everything that a registration's digest is taken of is in the tables below, each key with what a change of it
means. A key that they don't name is another question, so that nothing new ever goes unseen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.audit.comparing import loosening
from pytest_prereg.audit.comparing.changes import (
    QUESTION,
    Change,
    Revision,
    Rule,
    Weakening,
    added,
    became,
    both,
    ceased,
    harmless,
    left_out,
    lowered,
    question,
    raised,
    told,
)
from pytest_prereg.registry.digest import USUAL_CONFIDENCE, USUAL_FAMILY, registered_content
from pytest_prereg.registry.tables import ExperimentTable, MetricTable, PredictionTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def weakened(before: Revision, after: Revision) -> list[Weakening]:
    """Return every way in which a registration asks less than it did, or something else; none if stricter.

    Args:
        before: The prediction as it was registered, in its study.
        after: The same prediction as it is registered now.
    """
    found = (one for change, rule in _changes(before, after) for one in rule(change))
    return _as_one_question(dict.fromkeys(found))


def _as_one_question(found: Iterable[Weakening]) -> list[Weakening]:
    """Return the weakenings, with all that makes another question of it in one sentence, first."""
    several = list(found)
    asked = [one.message for one in several if one.what == QUESTION]
    others = [one for one in several if one.what != QUESTION]
    if not asked:
        return others
    return [Weakening(what=QUESTION, message=f"asks another question: {'; '.join(asked)}"), *others]


def _changes(old: Revision, new: Revision) -> Iterator[tuple[Change, Rule]]:
    """Yield each key in which what is registered differs, with what a change of it means."""
    before, after = _content(old), _content(new)
    yield from _changed(before.pop("prediction"), after.pop("prediction"), PREDICTION, old, new)
    earlier, later = _experiments(before, old), _experiments(after, new)
    for name in sorted({*earlier} & {*later}):
        yield from _changed(earlier[name], later[name], EXPERIMENT, old, new, experiment=name)
    yield from _changed(before, after, WHOLE, old, new)


def _content(side: Revision) -> dict[str, Any]:
    content = registered_content(side.study, side.prediction)
    if side.prediction.members:
        content["members"] = list(side.prediction.members)  # each is registered by itself, under its id
    return content


def _experiments(content: dict[str, Any], side: Revision) -> dict[str, Any]:
    """Take out of the content what it says of each experiment that is read."""
    alone = content.pop("experiment", None)
    several: dict[str, Any] = content.pop("experiments", {})
    return several if alone is None else {side.prediction.experiment: alone}


def _changed(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    rules: Mapping[str, Rule],
    old: Revision,
    new: Revision,
    *,
    experiment: str = "",
    of: str = "",
) -> Iterator[tuple[Change, Rule]]:
    defaults = _defaults(rules)
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            change = Change(
                key=key,
                before=before.get(key),
                after=after.get(key),
                old=old,
                new=new,
                experiment=experiment,
                default=defaults.get(key),
                of=of,
            )
            yield change, rules.get(key, question)


def _defaults(rules: Mapping[str, Rule]) -> dict[str, Any]:
    """Return what keys stand for where they are left out."""
    if rules is WHOLE:
        return {"confidence": USUAL_CONFIDENCE, "family": USUAL_FAMILY}
    kind: type[msgspec.Struct] = (
        PredictionTable if rules is PREDICTION else ExperimentTable if rules is EXPERIMENT else MetricTable
    )
    fields = msgspec.structs.fields(kind)
    return {one.encode_name: one.default for one in fields if one.default is not msgspec.NODEFAULT}


def _metrics(change: Change) -> Iterator[Weakening]:
    """What is said of a metric that is read before and after; others are other quantities."""
    before, after = change.before or {}, change.after or {}
    for name in sorted({*before} & {*after}):
        of = {"experiment": change.experiment, "of": name}
        for each, rule in _changed(before[name], after[name], METRIC, change.old, change.new, **of):
            yield from rule(each)


PREDICTION: dict[str, Rule] = {
    "kind": told("a claim is decided once, a guard for each version of its subject"),
    "basis": told("what follows from a model or an identity is not counted among measured claims"),
    "experiment": question,
    "arms": question,
    "contrast": question,
    "quantity": question,
    "divisor": question,
    "formula": question,
    "inputs": question,
    "statistic": question,
    "q": question,
    "levels": question,
    "points": question,
    "reduction": question,
    "unit": loosening.unit,
    "predicts": loosening.region,
    "falsifier": loosening.region,
    # What the design check at lock went by; no verdict depends on it.
    "expected": harmless,
    "detect": harmless,
    "cv": harmless,
    "sd": harmless,
    "credence": told("the score of credences is of what was believed before"),
    "requires": both(
        left_out("it may be decided without that"),
        added("where that isn't supported, nothing refutes it"),
    ),
    "assumes": told("what is taken for granted is part of the claim"),
    "follows": told("which attempt at the question it is, is part of the claim"),
    "on-inconclusive": ceased("fail", "what is undecided passes"),
    "one-sided": became(True, "nothing needs to be able to refute it"),  # noqa: FBT003 - a value of a key
    "data-seen": loosening.data_seen,
    "source": harmless,  # of the threshold: prose
}
"""Keys of a prediction, as its digest has them."""

EXPERIMENT: dict[str, Rule] = {
    "fixture": question,
    "command": question,
    "read": question,
    "params": question,
    "arms": loosening.arm_tables,
    "sweep": question,
    "env": question,
    "service": question,
    "build": question,
    "metrics": _metrics,
    "data": question,
    "subject": question,
    "repeats": loosening.repeats,
    "pairing": loosening.pairing,
    "order": became("sequential", "what drifts with time is not spread over the arms any more"),
    "unit": told("n counts something else"),
    "warmup": told("other repeats are left out at the beginning"),
    "timeout": loosening.timeout,
    "exclude": loosening.exclude,
    "max-excluded": raised("more repeats may be set aside"),
    "bounds": loosening.bounds,
    "executor": question,
    "resources": question,
    "conditions": loosening.conditions,
    "exclusive": became(False, "others may use the machine meanwhile"),  # noqa: FBT003 - a value of a key
}
"""Keys of an experiment, as digests have them."""

METRIC: dict[str, Rule] = {
    "unit": question,
    "from": question,
    "instrument": told("another instrument reads it"),
    "exact": became(True, "values that don't vary decide"),  # noqa: FBT003 - a value of a key
    "resolution": told("the interval is widened by another step"),
    "cap": told("it is cut off elsewhere"),
}
"""Keys of a metric that a prediction reads."""

WHOLE: dict[str, Rule] = {
    "confidence": lowered("a narrower interval decides"),
    "family": became("none", "each claim has an error rate of its own"),
    "constants": question,
    "instruments": loosening.calibrated,
    "members": left_out("it holds without that"),
}
"""What binds a prediction from outside its own table and its experiments."""
