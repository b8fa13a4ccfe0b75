"""The two regions of a prediction: as they are written, and in the unit that it is registered in."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytest_prereg.registry.refusals import RefusedError, quoted
from pytest_prereg.registry.regions import (
    EVERYTHING,
    Region,
    Span,
    complement,
    covers,
    edges,
    overlaps,
    parse_region,
    scaled,
)
from pytest_prereg.registry.structure import label

if TYPE_CHECKING:
    from pytest_prereg.registry.model import Prediction
    from pytest_prereg.registry.positions import Path
    from pytest_prereg.registry.structure import Complaints
    from pytest_prereg.registry.tables import PredictionTable

RANGES = {
    "proportion": Span(low=0.0, high=1.0, low_closed=True, high_closed=True),
    "geometric-mean": Span(low=0.0),
    "sd": Span(low=0.0, low_closed=True),
    "plateau": Span(low=0.0, low_closed=True),
}
"""Where an estimate must lie whatever is measured, by statistic or contrast."""

PURE = {("%", "1"): 0.01, ("1", "%"): 100.0}
"""Factors that need no pint."""


def thresholds(prediction: Prediction, unit: str) -> tuple[Region, Region]:
    """What is predicted and what falsifies, in the registered ``unit``.

    A region that names no unit is in the prediction's own ``unit`` if it has one, else in the registered one.
    pint is only needed where a unit differs from the registered one.
    """
    bare = prediction.table.unit or unit
    return _in_unit(prediction.predicts, bare, unit), _in_unit(prediction.falsifier, bare, unit)


def regions_of(
    keys: Path, table: PredictionTable, statistic: str | None, complaints: Complaints
) -> tuple[Region, Region] | None:
    """Both regions; ``None`` once something that is wrong with them was complained about."""
    predicts = _region((*keys, "predicts"), table.predicts, complaints)
    if (table.falsifier or "").strip() == "otherwise":
        falsifier = complement(predicts) if predicts else None
    else:
        falsifier = _region((*keys, "falsifier"), table.falsifier, complaints)
    if predicts is None or falsifier is None:
        return None
    try:
        _check_pair(table, predicts, falsifier, statistic)
    except RefusedError as refusal:
        complaints.refuse((*keys, "falsifier"), label(keys), refusal)
        return None
    return predicts, falsifier


def refuse_overlap(table: PredictionTable, predicts: Region, falsifier: Region) -> None:
    """Refuse (PR030) regions that share a value; both are in one unit."""
    if overlaps(predicts, falsifier):
        pair = f'"predicts" is {quoted(table.predicts)} and "falsifier" is {quoted(table.falsifier)}'
        raise RefusedError("PR030", f"{pair}; they overlap, so that one result could be both")


def _region(keys: Path, text: str | None, complaints: Complaints) -> Region | None:
    key = keys[-1]
    if text is None:
        if not complaints.told(*keys):
            what = (
                "the value that would prove it wrong" if key == "falsifier" else "the value that it predicts"
            )
            example = '">= 0.5" or "otherwise"' if key == "falsifier" else '"<= 0.25"'
            complaints.add(
                keys,
                "PR031",
                f"{label(keys[:-1])} has no {quoted(key)}: state {what}, as in {key} = {example}",
            )
        return None
    try:
        return parse_region(text)
    except RefusedError as refusal:
        complaints.refuse(keys, f"{label(keys[:-1])}, {quoted(key)}", refusal)
        return None


def _check_pair(table: PredictionTable, predicts: Region, falsifier: Region, statistic: str | None) -> None:
    if (predicts.unit or table.unit) == (falsifier.unit or table.unit):  # else once units can be converted
        refuse_overlap(table, predicts, falsifier)
    if len(predicts.spans) > 1 and len(edges(predicts)) == 1:
        raise RefusedError("PR030", f'"predicts" is {quoted(table.predicts)}, which all values but one meet')
    everything = _range(statistic, {predicts.unit, falsifier.unit, table.unit} - {None})
    if everything == EVERYTHING:  # no region that can be written covers or misses all numbers
        return
    for key, text, region in (
        ("predicts", table.predicts, predicts),
        ("falsifier", table.falsifier, falsifier),
    ):
        if covers(region, everything):
            raise RefusedError("PR030", f"{quoted(key)} is {quoted(text)}, which every {statistic} meets")
        if not overlaps(region, Region(spans=(everything,))):
            raise RefusedError(
                "PR031", f"{quoted(key)} is {quoted(text)}, which no {statistic} can ever meet"
            )


def _range(statistic: str | None, units: set[str | None]) -> Span:
    everything = RANGES.get(statistic or "", EVERYTHING)
    if units == {"%"}:
        return scaled(Region(spans=(everything,)), 100).spans[0]
    return everything if not units or math.isinf(everything.high) else EVERYTHING


def _in_unit(region: Region, bare: str, unit: str) -> Region:
    written = region.unit or bare
    if written == unit:
        return Region(spans=region.spans, unit=unit)
    return scaled(region, PURE.get((written, unit)) or _ratio(written, unit), unit)


def _ratio(written: str, unit: str) -> float:
    from pytest_prereg.registry.dimensions import ratio  # noqa: PLC0415  # pint, where it can't be helped
    from pytest_prereg.registry.unit_text import parse_unit  # noqa: PLC0415

    return ratio(parse_unit(written), parse_unit(unit), written, unit)
