"""What a pull request changes, as Markdown of GitHub's kind: for a comment, and for who has one minute.

First what it amounts to, then a row for each prediction that is changed, then what to do; all else is folded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_prereg.audit.audited import Recorded
from pytest_prereg.judge.findings import plural
from pytest_prereg.report.findings import pull_request_words as words
from pytest_prereg.report.findings.harmless import clipped, code, markdown
from pytest_prereg.report.findings.markdown import (
    cell,
    findings_table,
    fitting,
    predictions_table,
    size,
    unproven,
)
from pytest_prereg.report.findings.pull_request import Row, changes, counted_changes, folded, rows_of
from pytest_prereg.report.findings.summing_up import (
    Mark,
    acknowledged_text,
    advised,
    counted,
    mark_of,
    place_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytest_prereg.audit.finding import Finding
    from pytest_prereg.report.findings.reported import Reported

_MOST = 62_000
"""Characters in all: a comment of GitHub has at most 65,536, and whoever posts it adds some."""
_ROOM = 20_000, 8_000, 14_000, 8_000
"""Characters for the table, for the rows below it, for what to do and for what is acknowledged."""
_OPEN = 8
"""Most rows that are all shown."""
_LEAST = 2_000
"""Room below which a folded table is left out."""
_LISTED = 300
"""Most predictions of which a table of all is given."""
_NAME = 120
_WANTS = 80
_MESSAGES = 400, 160, 60
"""Characters of a message: where not all have room, fewer."""
_REMARK = 200
_LINE = 600
_INSIDE = re.compile(r"\\\[[^\s,]+, [^\s,]+\\\]|\([^\s()]+ %\)|[≤≥] (?=\S)|\S+ → \S+")
"""Parts of numbers, as Markdown, that are kept together."""
_NO_BREAK = "\N{NO-BREAK SPACE}"
_SHOWN = {"supported": "✅", "refuted": "❌", "inconclusive": "❔"}
_MARKED = {Mark.UNKNOWN: "can't tell"}
_CODE = re.compile(r"PR\d+")
_OPENING = {
    Mark.ERROR: "⛔",
    Mark.UNKNOWN: "❔",
    Mark.REVIEW: "👀",
    Mark.SEEN: "☑️",
    Mark.NOTICE: "💬",
}
_HEAD = (
    "",
    "| | prediction | base | this pull request | wants | n | notes |",
    "|---|---|---|---|---|---|---|",
)


def pull_request_markdown(reported: Reported, *, every: bool = False) -> str:
    """Return what a person who looks at a pull request should see, as one text.

    Args:
        reported: What was found.
        every: Show all of it, each row by itself, even if it is longer than a comment of GitHub may be.
    """
    first = [*_top(reported), *_table(reported, every=every), *_lists(reported, every=every)]
    last = list(unproven(reported))
    room = _MOST - sum(size(line) + 1 for line in (*first, *last))
    middle = list(_details(reported, room, every=every))
    return "\n".join([*first, *middle, *last]) + "\n"


def _top(reported: Reported) -> Iterator[str]:
    base, head = words.ends(reported)
    yield f"## Pre-registered predictions: {words.heading(reported)}"
    yield ""
    told = changes(reported) if reported.is_loaded else "no prediction was looked at"
    commits = f"{code(base)} → {code(head)} · " if reported.base or reported.head else ""
    failing = counted(one for one in reported.findings if one.fails) if reported.exit else ""
    amounts = f" · **{failing}**" if failing else ""
    study = markdown(clipped(reported.study, _NAME))
    yield f"{commits}{study}: {markdown(told or 'no predictions')}{amounts}"


def _table(reported: Reported, *, every: bool) -> Iterator[str]:
    """Yield the rows; where they are many, those that ask nothing of anybody are folded."""
    rows = rows_of(reported)
    is_long = len(folded(rows)) > _OPEN and not every
    loud = [row for row in rows if row.mark is not Mark.NOTICE or not is_long]
    quiet = [row for row in rows if row.mark is Mark.NOTICE and is_long]
    yield from _rows(loud, _ROOM[0], every=every)
    if quiet:
        told = counted_changes(quiet) or plural(len(quiet), "notice")
        yield from ("", f"<details><summary>Of others nothing is asked: {told}</summary>")
        yield from _rows(quiet, _ROOM[1], every=every)
        yield from ("", "</details>")


def _rows(several: list[Row], room: int, *, every: bool) -> Iterator[str]:
    parts = folded(several, every=every)
    rows = [_folded(part) if len(part) > 1 else _row(part[0]) for part in parts]
    if not rows:
        return
    yield from _HEAD
    shown = rows if every else fitting(rows, room)
    yield from shown
    if len(shown) < len(rows):
        yield f"| | {_more(len(rows) - len(shown))} | | | | | |"


def _row(row: Row) -> str:
    told = [_remark(clipped(text, _REMARK)) for text in words.remarks(row)]
    name = cell(clipped(row.name, _NAME)) if row.name else "the study"
    if row.one is None:
        return _cells(_sign(row), name, "", "", "", "", "<br>".join(told))
    when = markdown(words.registration(row.one, row.change))
    by = words.moved(row.one)
    here = _verdict(words.here_verdict(row)) + (f"<br>moved{_NO_BREAK}{_whole(by)}" if by else "")
    about = "<br>".join(filter(None, (*told, when)))
    base = _verdict(words.base_verdict(row))
    wants = _whole(clipped(row.one.wants, _WANTS))
    return _cells(_sign(row), name, base, here, wants, _whole(words.count(row.one)), about)


def _remark(text: str) -> str:
    start, _, rest = text.partition(" ")
    return f"**{start}** {markdown(rest)}" if _CODE.fullmatch(start) else markdown(text)


def _sign(row: Row) -> str:
    return f"{_OPENING[row.mark]}{_NO_BREAK}{_MARKED.get(row.mark, row.mark.lower())}"


def _cells(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _folded(rows: list[Row]) -> str:
    return _cells(_sign(rows[0]), "", "", "", "", "", markdown(words.folded_rows(rows)))


def _verdict(recorded: Recorded | str) -> str:
    if not isinstance(recorded, Recorded):
        return markdown(recorded)
    word = f"{_SHOWN.get(recorded.verdict, '')} {markdown(words.verdict_word(recorded))}".strip()
    return "<br>".join(filter(None, (word, _whole(words.numbers_of(recorded)))))


def _whole(text: str) -> str:
    """Return numbers so that no line of a cell ends within an interval, a percentage or behind a sign."""
    shown = markdown(text).removeprefix("\N{ZERO WIDTH SPACE}")  # a cell has no lists to be kept from
    return _INSIDE.sub(lambda found: found[0].replace(" ", _NO_BREAK), shown)


def _lists(reported: Reported, *, every: bool) -> Iterator[str]:
    """Yield what to do about what fails, what is acknowledged, who approves it, and what was there before."""
    found = [one for row in rows_of(reported) for one in row.findings]
    yield from _listed("What to do", [one for one in found if one.fails], _to_do, _ROOM[2], every=every)
    seen = [one for one in found if mark_of(one) is Mark.SEEN]
    yield from _listed("Acknowledged in the lock", seen, _seen, _ROOM[3], every=every)
    for sentence in words.sentences(reported):
        yield from ("", markdown(clipped(sentence, _LINE)))


def _listed(
    title: str, found: list[Finding], item: Callable[[Finding, int], str], room: int, *, every: bool
) -> Iterator[str]:
    """Yield an item for each finding, in fewer words where there is no room for more."""
    if not found:
        return
    for most in _MESSAGES:
        items = [item(one, most) for one in found]
        shown = items if every else fitting(items, room)
        if len(shown) == len(items):
            break
    yield from ("", f"**{title}**", "", *shown)
    if len(shown) < len(items):
        yield f"- {_more(len(items) - len(shown))}"


def _more(count: int) -> str:
    return f"and {count} more (`--all` shows them)"


def _to_do(finding: Finding, most: int) -> str:
    parts = (
        f"{markdown(clipped(told, most))} {code(clipped(command, _LINE))}".strip()
        for told, command in advised(finding)
    )
    advice = " · ".join(parts) or markdown(words.in_general(finding))
    return f"- {_what(finding, most)}. {advice}".rstrip()


def _seen(finding: Finding, most: int) -> str:
    return f"- {_what(finding, most)}. *{markdown(clipped(acknowledged_text(finding), most))}*"


def _what(finding: Finding, most: int) -> str:
    """Return what a finding says, behind its sign and its name."""
    name = code(clipped(finding.id or place_of(finding), _NAME))
    said = words.message_of(finding)
    said = said if name else said.lstrip(": ")
    beside = "" if said.startswith((":", ",")) else " "
    return f"{_OPENING[mark_of(finding)]} {name}{beside}{markdown(clipped(said, most))} ({finding.code})"


def _details(reported: Reported, room: int, *, every: bool) -> Iterator[str]:
    """Yield, folded, all predictions where they are not too many, and all findings in full."""
    for title, lines in (
        (f"{plural(len(reported.predictions), 'prediction')} in all", _all(reported, room // 2, every=every)),
        (
            f"{plural(len(reported.findings), 'finding')} in full",
            findings_table(reported, every=every, room=room // 2 - _LEAST // 2),
        ),
    ):
        body = list(lines)
        if body and (every or room >= 2 * _LEAST):
            yield from ("", f"<details><summary>{title}</summary>", *body, "", "</details>")


def _all(reported: Reported, room: int, *, every: bool) -> Iterable[str]:
    if not every and len(reported.predictions) > _LISTED:
        return ()
    return predictions_table(reported, every=every, room=room - _LEAST // 2, most_open=_LISTED)
