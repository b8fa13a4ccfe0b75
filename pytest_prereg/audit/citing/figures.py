"""What a citation has to say: the recorded verdicts of one study, as text.

A figure is what the lock records, and it can be quoted only as long as evidence and exclusions give that very
record now. It is printed as a verdict is; the options of its reference may change the digits or the unit, and
never what it says: nothing is rounded across an edge of a region, out of its interval, or to a narrower one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pytest_prereg.audit.citing.quotable import CODE, obstacle, voided
from pytest_prereg.audit.citing.references import COUNTS, NUMBERS, STUDY
from pytest_prereg.audit.citing.surroundings import WHOLE
from pytest_prereg.audit.citing.totals import Totals, totals_of
from pytest_prereg.errors import PreregError, one_line
from pytest_prereg.judge.numbers import decimals, is_moved, number_texts, place_of, short, suffix
from pytest_prereg.registry.dimensions import convert
from pytest_prereg.registry.refusals import RefusedError, quoted, suggestion
from pytest_prereg.registry.regions import edges
from pytest_prereg.registry.unit_text import normal_unit

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.citing.references import Reference
    from pytest_prereg.audit.standing import Assessment
    from pytest_prereg.judge.model import Judgement

_PERCENT = "%"
_BOUNDLESS = ("\N{MINUS SIGN}\N{INFINITY}", "\N{INFINITY}")


class Figure(msgspec.Struct, kw_only=True, frozen=True):
    """What a citation has to say, and the unit that its reader takes it in."""

    text: str
    unit: str | None
    """``1`` for a pure number, ``WHOLE`` where none is to follow; ``None`` for a word."""


class Figures:
    """The figures of one study; what each prediction is worth is found out once."""

    def __init__(self, state: StudyState) -> None:
        self.state = state
        self._sound: dict[tuple[str, bool], Assessment | RefusedError] = {}
        self._totals: Totals | None = None

    def figure(self, reference: Reference) -> Figure:
        """Return what the citation of a reference has to say.

        Raises:
            RefusedError: PR210, it can't be quoted: nothing is recorded, it no longer follows, or an option
                would change what it says.
        """
        if reference.is_total:
            return Figure(text=self._total(reference), unit=WHOLE)
        assessment = self._assessed(reference)
        judgement = assessment.judgement
        figure = None if judgement is None else _figure(assessment, judgement, reference)
        if figure is None:
            raise RefusedError(CODE, f"{quoted(reference.id)} has no {reference.field}")
        if reference.exploratory:
            return Figure(text=f"{figure.text} (exploratory)", unit=figure.unit and WHOLE)
        return figure

    def _total(self, reference: Reference) -> str:
        if reference.field == "excluded" and STUDY in self.state.study.predictions:
            raise RefusedError(
                CODE, f"a prediction is called {quoted(STUDY)}: {quoted('study.excluded')} may be its"
            )
        if self._totals is None:
            self._totals = totals_of(self.state)
        return self._totals.text(reference.field)

    def _assessed(self, reference: Reference) -> Assessment:
        """Return the assessment of a prediction whose record can be quoted."""
        key = reference.id, reference.exploratory
        if key not in self._sound:
            self._sound[key] = self._quotable(reference)
        found = self._sound[key]
        if isinstance(found, RefusedError):
            raise found
        return found

    def _quotable(self, reference: Reference) -> Assessment | RefusedError:
        known = self.state.study.predictions
        if reference.id not in known:
            return self._unknown(reference.id)
        try:
            assessment = self.state.assess(known[reference.id])
        except PreregError as error:
            first = error.problems[0]
            return RefusedError(CODE, f"nothing can be judged: {first.code}: {first.message}", first.advice)
        return obstacle(assessment, exploratory=reference.exploratory) or voided(assessment) or assessment

    def _unknown(self, name: str) -> RefusedError:
        entry = self.state.lock.predictions.get(name) if self.state.lock else None
        if entry is not None and entry.withdrawal is not None:
            return RefusedError(CODE, f"{quoted(name)} is withdrawn: {one_line(entry.withdrawal.reason)}")
        if entry is not None:
            return RefusedError(CODE, f"{quoted(name)} is registered, and no longer in the study")
        hint = suggestion(name, self.state.study.predictions, "there are")
        return RefusedError(CODE, f"there is no prediction {quoted(name)}{hint}")


def _figure(assessment: Assessment, judgement: Judgement, reference: Reference) -> Figure | None:
    field = reference.field
    if field in NUMBERS:
        return _quantity(assessment, judgement, reference)
    if field == "confidence":
        return _confidence(judgement.confidence, reference)
    if field == "cost_usd":
        return _cost(assessment, reference)
    value = {
        "n": judgement.n,
        "planned": judgement.planned,
        "excluded": judgement.excluded,
        "series": assessment.series,
        "verdict": judgement.verdict.value,
        "reason": judgement.reason and judgement.reason.value,
        "standing": assessment.standing,
        "method": judgement.method,
        "unit": assessment.unit,
    }[field]
    return None if value is None else Figure(text=str(value), unit=WHOLE if field in COUNTS else None)


def _confidence(level: float, reference: Reference) -> Figure:
    value = _hundredfold(level) if reference.percent else level
    digits = reference.digits
    text = short(value) if digits is None else number_texts(value, None, place=_place(value, digits))[0]
    return Figure(text=f"{text} %", unit=WHOLE) if reference.percent else Figure(text=text, unit="1")


def _cost(assessment: Assessment, reference: Reference) -> Figure | None:
    account = assessment.account
    if account is None:
        return None
    if account.is_least:
        raise RefusedError(
            CODE, f"what {quoted(reference.id)} cost is not wholly known: a session never ended"
        )
    text = f"{account.usd:.2f}"
    return Figure(text=f"{text} USD", unit=WHOLE) if reference.with_unit else Figure(text=text, unit="USD")


class _Shown(NamedTuple):
    """An estimate and its interval in the unit that they are quoted in, with the edges of the regions."""

    estimate: float | None
    ends: tuple[float, ...]
    edges: tuple[float, ...]
    unit: str


def _quantity(assessment: Assessment, judgement: Judgement, reference: Reference) -> Figure | None:
    shown = _shown(assessment, judgement, reference)
    if (shown.estimate is None) if reference.field == "estimate" else not shown.ends:
        return None
    place = _place_of(shown, reference.field, reference.digits)
    estimate, *ends = _percents(shown, place) if reference.percent else _texts(shown, place)
    low, high = (text or side for text, side in zip(ends, _BOUNDLESS, strict=True)) if ends else ("", "")
    text = {"estimate": estimate, "low": low, "high": high, "interval": f"[{low}, {high}]"}[reference.field]
    if not text:
        return None
    if reference.percent:
        return Figure(text=f"{text} %", unit=WHOLE)
    return (
        Figure(text=text + suffix(shown.unit), unit=WHOLE)
        if reference.with_unit
        else Figure(text=text, unit=shown.unit)
    )


def _texts(shown: _Shown, place: int) -> tuple[str, ...]:
    return number_texts(shown.estimate, shown.ends, place=place)


def _percents(shown: _Shown, place: int) -> tuple[str, ...]:
    """Texts times 100: of what is rounded already, so that the same digits are printed as without."""
    estimate, *ends = (
        value if value is None or not math.isfinite(value) else _hundredfold(round(value, place))
        for value in (shown.estimate, *shown.ends)
    )
    return number_texts(estimate, ends, place=place - 2)


def _shown(assessment: Assessment, judgement: Judgement, reference: Reference) -> _Shown:
    into, unit = _converter(assessment.unit, reference)
    held = (*edges(assessment.predicts), *edges(assessment.falsifier))
    return _Shown(
        estimate=None if judgement.estimate is None else into(judgement.estimate),
        ends=tuple(map(into, judgement.interval or ())),
        edges=tuple(map(into, held)),
        unit=unit,
    )


def _converter(unit: str, reference: Reference) -> tuple[Callable[[float], float], str]:
    """What turns a recorded number into the unit that it is quoted in, and that unit."""
    if reference.with_unit and unit == "1" and reference.unit is None:
        raise RefusedError(CODE, f'{quoted(reference.id)} is a pure number; take "with-unit" away')
    if reference.percent and unit != "1":
        raise RefusedError(
            CODE, f'{quoted(reference.id)} is in {quoted(unit)}; "percent" is for pure numbers'
        )
    if reference.unit is None:
        return float, unit
    try:
        wanted = normal_unit(reference.unit)
        convert(1.0, unit, wanted)
    except RefusedError as refusal:
        raise RefusedError(CODE, f'"unit": {refusal}', refusal.advice) from None
    if wanted == _PERCENT != unit:
        raise RefusedError(CODE, '"unit=%" would leave the sign to the prose; write "percent"')
    return (lambda value: convert(value, unit, wanted)), wanted


def _hundredfold(value: float) -> float:
    return float(f"{value * 100:.15g}")


def _place(value: float, digits: int) -> int:
    """Decimals of so many significant digits, also where rounding brings one more before the point."""
    return place_of(round(value, place_of(value, digits)), digits)


def _place_of(shown: _Shown, field: str, digits: int | None) -> int:
    """Decimals that the interval supports, or for so many significant digits of a field.

    Raises:
        RefusedError: PR210, so few that the number would say something else.
    """
    ends = [end for end in shown.ends if math.isfinite(end)]
    supported = decimals(shown.estimate, ends, shown.edges)
    if digits is None:
        return supported
    if field != "estimate":
        place = _place(max(ends, key=abs, default=0.0), digits)
        if place < supported:
            raise RefusedError(
                CODE, f'"digits={digits}" are fewer than an end of the interval is printed with'
            )
        return place
    value = shown.estimate or 0.0
    place = _place(value, digits)
    rounded = round(value, place)
    leaves = bool(shown.ends) and not shown.ends[0] <= rounded <= shown.ends[1]
    if leaves or is_moved(value, rounded, shown.edges):
        where = "out of its interval" if leaves else "onto or across an edge of what is predicted"
        raise RefusedError(CODE, f'"digits={digits}" would move the estimate {where}')
    return place
