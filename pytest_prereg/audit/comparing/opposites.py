"""Predictions that ask the same question, and answer it so that one of them is right whatever is found.

Who registers a claim beside its opposite can't lose; what is measured then tests nothing. Two predictions
ask the same where they estimate the same thing from runs of the same thing, however often, at whatever level,
and under whatever names: experiments that are copies of each other are one, and so are ``a / b`` and
``b / a``. A question that was put into other words (``2 * wall`` for ``wall``, a median for a mean) is not
seen through.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from fnmatch import fnmatchcase
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec.structs import replace

from pytest_prereg.audit.comparing.changes import Revision
from pytest_prereg.registry.digest import registered_content
from pytest_prereg.registry.environment_conditions import parse_condition
from pytest_prereg.registry.judging import RANGES, thresholds
from pytest_prereg.registry.refusals import RefusedError
from pytest_prereg.registry.regions import EVERYTHING, Region, Span, covers, overlaps, scaled
from pytest_prereg.registry.units import registered_unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytest_prereg.registry.model import Experiment, Input, Prediction, Study

Clash = Literal["opposite", "certain", "exclusive"]
"""How two predictions stand to each other: the refutation of one supports the other (each way), one of them
holds whatever is found, or no value supports both."""

_ELSEWHERE_OR_OFTEN = frozenset(
    {
        *("repeats", "pairing", "order", "unit", "warmup", "timeout", "exclude", "max-excluded", "bounds"),
        *("exclusive", "conditions", "subject"),
        *("params", "arms", "sweep", "env", "metrics"),
    }
)
"""Keys of an experiment that don't say what it runs; the last are taken from each arm and metric instead."""

_POSITIVE = Span(low=0.0)


class Asked(msgspec.Struct, kw_only=True, frozen=True):
    """A prediction as an answer to a question."""

    one: Revision
    question: str
    """Equal where the same is asked."""
    predicts: Region
    falsifier: Region
    """Both in the natural unit of what is estimated, and turned with the question."""


def asked(one: Revision) -> Asked | None:
    """Return what a prediction asks and answers; ``None`` for one without regions that can be compared."""
    prediction = one.prediction
    if prediction.members:
        return None
    try:
        unit, scale = registered_unit(one.study, prediction)
        regions = [_plain(one, region, scale) for region in thresholds(prediction, unit)]
    except RefusedError:
        return None
    return Asked(one=one, question=_question(one), predicts=regions[0], falsifier=regions[1])


def clash(left: Asked, right: Asked) -> Clash | None:
    """Return how two answers to one question contradict each other, or make sure that one of them holds."""
    if left.question != right.question:
        return None
    how = _between(left, right)
    return None if how is None or _is_elsewhere(left.one, right.one) else how


def _between(left: Asked, right: Asked) -> Clash | None:
    if (left.predicts, left.falsifier) == (right.falsifier, right.predicts):
        return "opposite"
    if covers(_union(left.predicts, right.predicts), _possible(left.one.prediction)):
        return "certain"
    return None if overlaps(left.predicts, right.predicts) else "exclusive"


def clashes(several: Iterable[Revision]) -> Iterator[tuple[Revision, Revision, Clash]]:
    """Yield each pair of which not both can be right, or one is for certain; the earlier one first."""
    questions: dict[str, list[Asked]] = defaultdict(list)
    for one in several:
        if (answer := asked(one)) is not None:
            questions[answer.question].append(answer)
    for answers in questions.values():
        for left, right in combinations(answers, 2):
            if (how := clash(left, right)) is not None:
                yield left.one, right.one, how


def _question(one: Revision) -> str:
    """Return what is estimated, whatever is predicted of it; equal texts ask the same."""
    study, prediction = one.study, one.prediction
    content = registered_content(study, prediction)
    alone = content.get("experiment")
    tables = content["experiments"] if alone is None else {prediction.experiment: alone}
    runs = {name: _run(study.experiments[name], table) for name, table in tables.items()}
    arms = [_arm(study.experiments[prediction.experiment], arm) for arm in prediction.arms]
    contrast, formula, divisor = prediction.contrast, prediction.formula, prediction.divisor
    asked_for = {
        "runs": sorted(map(_text, runs.values())),
        "quantity": None if formula else prediction.quantity.node,
        "divisor": divisor and divisor.node,
        "formula": formula and formula.node,
        "inputs": [_input(study, each, runs) for each in (formula.inputs if formula else ())],
        "constants": content.get("constants"),
        "arms": arms[::-1] if _is_turned(one) else arms,
        "contrast": contrast and [contrast.operator, contrast.parameter],
        "points": len(prediction.points),
        "how": [prediction.statistic, prediction.q, prediction.reduction],
    }
    return _text(asked_for)


def _run(experiment: Experiment, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an experiment runs and reads, whatever it is called and however often it is run."""
    runs = {key: value for key, value in table.items() if key not in _ELSEWHERE_OR_OFTEN}
    read = {name: [one["unit"], one.get("from")] for name, one in table.get("metrics", {}).items()}
    # Of what is fed by import nothing says that two are fed from the same place.
    return {**runs, "read": read, "fed": experiment.id if experiment.kind == "import" else None}


def _arm(experiment: Experiment, name: str) -> dict[str, Any]:
    """Return what an arm sets, whatever it is called; one that is fed by import has no more than its name."""
    arm = experiment.arms[name]
    own = (experiment.table.arms or {}).get(arm.base or arm.name, {})
    place = {key: own[key] for key in ("ref", "resources") if key in own}
    fed = name if experiment.kind == "import" else None
    return {"params": arm.params, "env": arm.env, "place": place, "point": arm.point, "fed": fed}


def _input(study: Study, source: Input, runs: Mapping[str, Any]) -> list[Any]:
    if source.experiment is None or source.quantity is None:
        return [source.name, source.constant]
    arm = _arm(study.experiments[source.experiment], source.arm)
    return [source.name, runs[source.experiment], arm, source.quantity.node]


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _is_turned(one: Revision) -> bool:
    """Whether two arms stand the other way round than what they set is sorted: ``b / a`` is ``a / b``."""
    prediction = one.prediction
    if _operator(prediction) not in ("-", "/") or prediction.points:
        return False
    experiment = one.study.experiments[prediction.experiment]
    left, right = (_text(_arm(experiment, arm)) for arm in prediction.arms)
    return left > right


def _operator(prediction: Prediction) -> str:
    return prediction.contrast.operator if prediction.contrast is not None else ""


def _plain(one: Revision, region: Region, scale: float) -> Region:
    """Return a region in the natural unit, as far as an estimate can lie in it, turned with the question."""
    operator = _operator(one.prediction)
    spans = (scaled(region, 1 / scale) if scale != 1 else region).spans
    if operator == "/":
        spans = tuple(_above_zero(span) for span in spans if span.high > 0)
    if _is_turned(one):
        turn = _inverse if operator == "/" else _negative
        spans = tuple(turn(span) for span in reversed(spans))
    return Region(spans=spans)


def _above_zero(span: Span) -> Span:
    return span if span.low > 0 else replace(span, low=0.0, low_closed=False)


def _negative(span: Span) -> Span:
    return Span(
        low=0.0 - span.high, high=0.0 - span.low, low_closed=span.high_closed, high_closed=span.low_closed
    )


def _inverse(span: Span) -> Span:
    low = 0.0 if math.isinf(span.high) else float(f"{1 / span.high:.15g}")
    high = math.inf if span.low == 0 else float(f"{1 / span.low:.15g}")
    return Span(low=low, high=high, low_closed=span.high_closed, high_closed=span.low_closed)


def _union(left: Region, right: Region) -> Region:
    """Return all that lies in one or the other, in as few spans as can be."""
    merged: list[Span] = []
    for span in sorted((*left.spans, *right.spans), key=lambda each: (each.low, not each.low_closed)):
        last = merged[-1] if merged else None
        if last is None or not _touches(last, span):
            merged.append(span)
        elif (span.high, span.high_closed) > (last.high, last.high_closed):
            merged[-1] = replace(last, high=span.high, high_closed=span.high_closed)
    return Region(spans=tuple(merged))


def _touches(last: Span, span: Span) -> bool:
    return span.low < last.high or (span.low == last.high and (span.low_closed or last.high_closed))


def _possible(prediction: Prediction) -> Span:
    """Where an estimate must lie whatever is measured."""
    operator = _operator(prediction)
    if operator == "/":
        return _POSITIVE
    return RANGES.get(operator or prediction.statistic, EVERYTHING)


def _is_elsewhere(left: Revision, right: Revision) -> bool:
    """Whether no evidence can be of both, since their conditions want different machines."""
    pairs = zip(left.prediction.experiments, right.prediction.experiments, strict=False)
    for one, other in pairs:
        wanted = left.study.experiments[one].table.conditions or {}
        besides = right.study.experiments[other].table.conditions or {}
        if any(_excludes(key, wanted[key], besides[key]) for key in {*wanted} & {*besides}):
            return True
    return False


def _excludes(key: str, left: object, right: object) -> bool:
    one, other = parse_condition(key, left).wanted, parse_condition(key, right).wanted
    if isinstance(one, Region) and isinstance(other, Region):
        return not overlaps(one, other)
    if isinstance(one, str) and isinstance(other, str):
        return not (fnmatchcase(one, other) or fnmatchcase(other, one))
    return one != other
