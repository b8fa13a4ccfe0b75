"""Verdicts as lines of text; nothing here prints.

A verdict takes one line where everything fits, else a second one with the plot. Words beyond the numbers and
the predicted region are there only where a prediction is not a plain confirmatory claim.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.remarks import WAS_REFUTED
from pytest_prereg.errors import visible
from pytest_prereg.judge.findings import plural
from pytest_prereg.judge.model import Verdict
from pytest_prereg.judge.numbers import number_text
from pytest_prereg.registry.regions import Region, describe, edges
from pytest_prereg.report.columns import ascii_text, cut, padded, width_of, wrapped
from pytest_prereg.report.forest import forest
from pytest_prereg.report.records import Record, counts_as_refuted, was_refuted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PLOT = (12, 28)
"""Fewest and most characters of a plot beside the numbers."""
_PLOT_BELOW = 24
"""Characters of a plot on a line of its own."""
_WORDS = 34
"""Most room that is kept for words beside a plot; longer ones go below."""
_INDENT = 5
DECIDED = "decided "
"""How a detail begins that says at which look a verdict was reached."""
_LEAST_ID = 12

Text = Callable[[str], str]


class Shown(msgspec.Struct, kw_only=True, frozen=True):
    """A record with what a person needs beside it: its regions, in its unit, and a sentence."""

    record: Record
    predicts: Region
    falsifier: Region
    detail: str | None = None
    """Why it is inconclusive or pending, or when it was decided; why it was withdrawn."""
    earlier: str = ""
    """Of a guard what was said of other versions, in a few words."""
    why: str = ""
    """Why it is exploratory: what the history says of its order, or what else forbids to count it."""
    repeats: int = 0
    """How many were recorded for what was withdrawn without a verdict."""
    wants: str = ""
    """What is predicted, where that is no region: ``all of a and b``."""


class _Row(msgspec.Struct, kw_only=True, frozen=True):
    """The pieces of one verdict, before they are laid out."""

    shown: Shown
    numbers: str
    count: str
    wants: str
    words: str


class _Layout(msgspec.Struct, kw_only=True, frozen=True):
    """Widths of the columns that all verdicts share; ``plot`` 0 puts the plots on lines of their own."""

    width: int
    id: int
    numbers: int
    count: int
    plot: int


def letter(record: Record) -> str:
    """Return the outcome's letter: ``+ - r ! ? .``."""
    if record.status != "judged":
        return "."
    if record.changed:
        return "!"
    if record.verdict is Verdict.REFUTED:
        return "r" if _is_settled(record) else "-"
    return "+" if record.verdict is Verdict.SUPPORTED else "?"


def verdict_lines(shown: Sequence[Shown], width: int = 80, *, unicode: bool = True) -> list[str]:
    """Return a line or more for each prediction, none wider than ``width``, in ASCII unless ``unicode``."""
    text: Text = str if unicode else ascii_text
    rows = [_row(one, text) for one in shown]
    layout = _layout(rows, width)
    lines = (line for row in rows for line in _lines(row, layout))
    return [text(cut(visible(line.rstrip()), width)) for line in lines]


def _row(shown: Shown, text: Text) -> _Row:
    record = shown.record
    held = (*edges(shown.predicts), *edges(shown.falsifier))
    has_numbers = bool(shown.predicts.spans)  # a conjunction has none of its own
    wants = describe(shown.predicts) if has_numbers else shown.wants
    return _Row(
        shown=shown,
        numbers=text(number_text(record.estimate, record.interval, record.unit, held)) if has_numbers else "",
        count=_count(shown),
        wants=text(f"wants {wants}"),
        words=text(", ".join(_words(shown))),
    )


def _count(shown: Shown) -> str:
    record = shown.record
    short = record.planned is not None and record.n < record.planned and not _is_early(shown)
    return f"n {record.n}/{record.planned}" if short else f"n {record.n}"


def _words(shown: Shown) -> Iterator[str]:
    """Yield what is not plain about a judged prediction."""
    record = shown.record
    if record.changed:
        yield f"CHANGED {record.recorded} → {record.verdict}"
    elif record.verdict is Verdict.REFUTED:
        yield "refuted as recorded" if _is_settled(record) else "refuted"
    if record.verdict is Verdict.INCONCLUSIVE:
        yield _because(record.reason or "inconclusive", shown.detail)
    elif shown.detail and (_is_early(shown) or record.kind == "guard" or record.statistic == "all"):
        yield shown.detail
    yield from standing_words(record, shown.why)
    if shown.earlier:
        yield shown.earlier
    yield from record.flags


def standing_words(record: Record, why: str = "") -> Iterator[str]:
    """Yield what has to be said of standing and order: nothing of a plain confirmatory verdict.

    ``exploratory: simultaneous (20260801T101112Z-0a1b2c3d.jsonl came in with 1f3c9a2, and so did …)``
    """
    order = record.order if record.order != "registered" else ""
    standing = record.standing if record.standing != "confirmatory" else ""
    said = ": ".join(filter(None, (standing, order)))
    if said:
        yield f"{said} ({why})" if why else said


def _is_settled(record: Record) -> bool:
    """Whether a refutation is recorded and needs nobody any more; a guard's fails until it is mended."""
    return record.recorded is not None and record.kind == "claim"


def _is_early(shown: Shown) -> bool:
    """Whether a stopping rule decided: then the repeats after that are not missed."""
    return shown.detail is not None and shown.detail.startswith(DECIDED)


def _because(reason: str, detail: str | None) -> str:
    """Name the reason once, whether or not the sentence begins with it."""
    if detail is None:
        return reason
    return detail if detail.startswith(reason) else f"{reason}: {detail}"


def _layout(rows: Sequence[_Row], width: int) -> _Layout:
    judged = [row for row in rows if row.shown.record.status == "judged"]
    numbers = max((width_of(row.numbers) for row in judged), default=0)
    count = max((len(row.count) for row in judged), default=0)
    longest = max((len(row.shown.record.id) for row in rows), default=0)
    ids = min(longest, max(_LEAST_ID, width - 7 - numbers - count))
    plot = _plot_width(judged, width - 11 - ids - numbers - count)
    return _Layout(width=width, id=ids, numbers=numbers, count=count, plot=plot)


def _plot_width(judged: Sequence[_Row], room: int) -> int:
    """Return what is left for the plots beside all words, or else beside what is wanted; 0 is too little."""
    wants = max((width_of(row.wants) for row in judged), default=0)
    words = max((width_of(_joined(row)) for row in judged), default=0)
    fitting = (room - kept for kept in (min(words, _WORDS), wants) if room - kept >= _PLOT[0])
    return min(_PLOT[1], next(fitting, 0))


def _joined(row: _Row) -> str:
    return f"{row.wants}, {row.words}" if row.words else row.wants


def _lines(row: _Row, layout: _Layout) -> Iterator[str]:
    record = row.shown.record
    start = f" {letter(record)} {padded(record.id, layout.id)}"
    if record.status != "judged":
        yield from _hung(start, _undecided(row.shown), layout.width)
        return
    head = f"{start}  {padded(row.numbers, layout.numbers)}  {padded(row.count, layout.count)}"
    if layout.plot:
        yield from _with_words(f"{head}  {_plot(row.shown, layout.plot)}", row, layout.width)
    else:
        yield head
        yield from _with_words(" " * _INDENT + _plot(row.shown, _PLOT_BELOW), row, layout.width)


def _plot(shown: Shown, width: int) -> str:
    return forest(shown.record.estimate, shown.record.interval, shown.predicts, shown.falsifier, width)


def _with_words(start: str, row: _Row, width: int) -> Iterator[str]:
    """Yield ``start`` with all words beside it, or with what is wanted beside it and the rest below."""
    everything = f"{start}  {_joined(row)}"
    if width_of(everything) <= width:
        yield everything
        return
    yield f"{start}  {row.wants}"
    yield from (" " * _INDENT + line for line in wrapped(row.words, width - _INDENT))


def _undecided(shown: Shown) -> str:
    """Return what stands in for the numbers of a prediction without a verdict."""
    if shown.record.status == "withdrawn":
        return withdrawn_text(shown.record, shown.detail, shown.repeats)
    pending = f"pending: {shown.detail or 'not every repeat is in'}"
    flags = shown.record.flags
    standing = standing_words(shown.record, shown.why) if shown.record.standing == "exploratory" else ()
    return "; ".join((pending, *standing, *flags))


def withdrawn_text(record: Record, reason: str | None, repeats: int = 0) -> str:
    """Return what is said of a withdrawn prediction: what it counts as, and why it was withdrawn.

    ``withdrawn, counted as refuted: the claim was badly worded``; nothing that was seen goes unsaid.
    """
    if counts_as_refuted(record):
        what = ", counted as refuted"
        if record.verdict is not Verdict.REFUTED and was_refuted(record):
            what += f" ({WAS_REFUTED})"
    elif record.verdict is not None:
        exploratory = "exploratory, " if record.standing == "exploratory" else ""
        what = f", {exploratory}was {record.verdict}"
    else:
        what = f" after {plural(repeats, 'repeat')}, never judged" if repeats else ""
    return f"withdrawn{what}" + (f": {reason}" if reason else "")


def _hung(start: str, words: str, width: int) -> Iterator[str]:
    """Yield ``start`` followed by words that are wrapped beside it."""
    hang = width_of(start) + 2
    room = width - hang
    if room < width // 2:
        hang, room = _INDENT, width - _INDENT
        yield start
        start = ""
    for line in wrapped(words, room):
        yield padded(start, hang) + line
        start = ""
