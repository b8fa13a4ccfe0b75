"""What a pull request changes, as Markdown of GitHub's kind: for a comment, and for who has one minute.

First what it amounts to, then a row for each prediction that is changed, then what its reviewer decides and
what its author types; all else is folded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.audit.audited import Recorded
from pytest_prereg.audit.finding import Finding
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
from pytest_prereg.report.findings.pull_request_steps import (
    Step,
    committed,
    parted,
    place_told,
    to_decide,
    to_type,
)
from pytest_prereg.report.findings.summing_up import Mark, counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytest_prereg.report.findings.reported import Reported

_MOST = 62_000
"""Characters in all: a comment of GitHub has at most 65,536, and whoever posts it adds some."""
_ROOM = 20_000, 8_000, 9_000, 13_000
"""Characters for the table, for the rows below it, for what is to be decided and for what is to be typed."""
_TOGETHER = 10
"""Most findings, and most commands, of one step."""
_OPEN = 8
"""Most rows that are all shown."""
_LEAST = 2_000
"""Room below which a folded table is left out."""
_LISTED = 300
"""Most predictions of which a table of all is given."""
_NAME = 120
_MESSAGES = 400, 160, 60
"""Characters of a message: where not all have room, fewer."""
_REMARK = 200
_LINE = 600
_UNIT = r"(?: [A-Za-zµ%]{1,3}(?![\w/]))?"
_INSIDE = re.compile(rf"\\\[[^\s,]+, [^\s,]+\\\]{_UNIT}|\([^\s()]+ %\)|[≤≥] [^\s,]+{_UNIT}|\S+ → \S+")
"""Parts of numbers, as Markdown, that are kept together."""
_NO_BREAK = "\N{NO-BREAK SPACE}"
_SHOWN = {"supported": "✅", "refuted": "❌", "inconclusive": "❔"}
_MARKED = {Mark.UNKNOWN: "can't tell", Mark.SEEN: "answered"}
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
    told = set[Finding]()
    first = [*_top(reported), *_table(reported, every=every), *_lists(reported, told, every=every)]
    last = list(unproven(reported))
    room = _MOST - sum(size(line) + 1 for line in (*first, *last))
    middle = list(_details(reported, told, room, every=every))
    return "\n".join([*first, *middle, *last]) + "\n"


def _top(reported: Reported) -> Iterator[str]:
    base, head = words.ends(reported)
    yield f"## Pre-registered predictions: {words.heading(reported)}"
    yield ""
    told = changes(reported) if reported.is_loaded else "no prediction was looked at"
    commits = f"{code(base)} → {code(head)} · " if reported.base or reported.head else ""
    failing = counted(one for one in reported.findings if one.fails) if reported.exit else ""
    amounts = f" · **{failing}**" if failing else ""
    study = markdown(clipped(words.name(reported), _NAME))
    yield f"{commits}{study}: {markdown(told or 'no predictions')}{amounts}"
    if told := words.uncommitted(reported):
        yield from ("", markdown(f"Note: {told}."))


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
    if row.one is not None and (claim := words.claim(row.one)):
        name += f"<br>{_in_cell(claim)}"
    if row.one is None:
        return _cells(_sign(row), name, "", "", "", "", "<br>".join(told))
    when = _in_cell(words.registration(row.one))
    by = words.moved(row.one)
    here = _verdict(words.here_verdict(row)) + (f"<br>moved{_NO_BREAK}{_whole(by)}" if by else "")
    about = "<br>".join(filter(None, (*told, when)))
    base = _verdict(words.base_verdict(row))
    wants = _whole(words.wants(row.one))
    return _cells(_sign(row), name, base, here, wants, _whole(words.count(row.one)), about)


def _remark(text: str) -> str:
    start, _, rest = text.partition(" ")
    return f"{code(start)} {markdown(rest)}" if _CODE.fullmatch(start) else markdown(text)


def _in_cell(text: str) -> str:
    """Return text of a cell, which has no lists to be kept from."""
    return markdown(text).removeprefix("\N{ZERO WIDTH SPACE}")


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
    return _INSIDE.sub(lambda found: found[0].replace(" ", _NO_BREAK), _in_cell(text))


def _lists(reported: Reported, told: set[Finding], *, every: bool) -> Iterator[str]:
    """Yield what the reviewer decides, what the author types, and what was there before.

    Args:
        reported: What was found.
        told: Gets the findings that are told in full.
        every: Leave nothing out.
    """
    asked = [f"- {_OPENING[mark]} {markdown(each)}" for mark, each in words.asked(reported)]
    approval = words.approval(reported)
    deciding = _listed(to_decide(reported), _decided, _ROOM[2], told, every=every)
    if asked or deciding or approval:
        yield from ("", "**You, who review**", "", *asked, *(f"- {item}" for item in deciding))
        yield from [f"- {markdown(clipped(approval, _LINE))}"] if approval else []
    steps, later = parted(to_type(reported))
    typing = _listed(steps, _typed, _ROOM[3], told, every=every)
    told_last, command = committed(reported, steps)
    if command:
        typing.append(f"{markdown(clipped(told_last, _LINE))} {code(clipped(command, _LINE))}")
    typing += _listed(later, _typed, _LEAST, told, every=every)
    if typing:
        yield from ("", "**The author**", "")
        yield from (f"{number}. {item}" for number, item in enumerate(typing, 1))
    yield from _standing(reported)


def _listed(
    steps: list[Step],
    item: Callable[[Step, int, int], str],
    room: int,
    told: set[Finding],
    *,
    every: bool,
) -> list[str]:
    """Return an item for each step, in fewer words where there is no room for more."""
    together = len(steps) and max(len(one.findings) for one in steps) if every else _TOGETHER
    for most in _MESSAGES:
        items = [item(one, most, together) for one in steps]
        shown = items if every else fitting(items, room)
        if len(shown) == len(items):
            break
    kept = [each for one in steps[: len(shown)] if one.is_told for each in one.findings[:together]]
    told |= {each for each in kept if every or len(each.message) <= most}
    return [*shown, _more(len(items) - len(shown))] if len(shown) < len(items) else shown


def _more(count: int) -> str:
    return f"and {count} more (`--all` shows them)"


def _decided(step: Step, most: int, together: int) -> str:
    said = _what(step, most, together) if step.is_told else _named(step, together)
    few = "" if step.is_told else f": {markdown(words.brief(step.findings[0]))}"
    first = f"{_OPENING[step.mark]} {code(step.code)} {said}{few}. {markdown(clipped(step.words[0], most))}"
    if not step.words[1:]:
        return first
    commands = (code(clipped(command, _LINE)) for command in step.commands[1][:together])
    return "<br>".join([first, markdown(clipped(step.words[1], most)), *commands])


def _typed(step: Step, most: int, together: int) -> str:
    said = f"{_what(step, most, together)}." if step.is_told else f"{_named(step, together)}:"
    parts = []
    for place, told in enumerate(step.words):
        commands = step.commands[place] if place < len(step.commands) else ()
        shown = [code(clipped(command, _LINE)) for command in commands[:together]]
        rest = [_more(len(commands) - together)] if len(commands) > together else []
        between = "<br>" if len(shown) > 1 else " "
        parts.append(between.join([markdown(clipped(told, most)), *shown, *rest]).strip())
    return f"{_OPENING[step.mark]} {code(step.code)} {said} {'<br>'.join(parts)}".rstrip()


def _named(step: Step, together: int) -> str:
    names = dict.fromkeys(_name(one) for one in step.findings)
    more = f" {_more(len(names) - together)}" if len(names) > together else ""
    return f"{', '.join(list(names)[:together])}{more}"


def _what(step: Step, most: int, together: int) -> str:
    """Return what the findings of a step say, each behind its name."""
    said = dict.fromkeys(_said(one, most) for one in step.findings)
    more = f"; {_more(len(said) - together)}" if len(said) > together else ""
    return f"{'; '.join(list(said)[:together])}{more}"


def _said(finding: Finding, most: int) -> str:
    name, told = _name(finding), words.message_of(finding)
    told = told if name else told.lstrip(": ")
    beside = "" if told.startswith((":", ",")) else " "
    answer = words.answer(finding, most)
    return f"{name}{beside}{markdown(clipped(told, most))}{f'; {markdown(answer)}' if answer else ''}"


def _name(finding: Finding) -> str:
    """Return what a finding is about, and of what stands in no prediction where that is."""
    names = (clipped(each, _NAME) for each in (place_told(finding), finding.id))
    return " ".join(code(each) for each in names if each)


def _standing(reported: Reported) -> Iterator[str]:
    told, kinds = words.standing(reported)
    if not told:
        return
    parts = []
    for one in kinds:
        names = ", ".join(
            f"{code(name)}{f' ({markdown(note)})' if note else ''}" for name, note in one.names if name
        )
        more = f" and {one.more} more" if one.more else ""
        parts.append(f"{code(one.code)} {markdown(one.few)}{': ' if names else ''}{names}{more}")
    yield from ("", f"{markdown(told)} ({'; '.join(fitting(parts, _LEAST))}).")


def _details(reported: Reported, told: set[Finding], room: int, *, every: bool) -> Iterator[str]:
    """Yield, folded, what stands nowhere else: predictions with nothing to say of, and findings."""
    others = _others(reported, every=every)
    rest = _untold(reported, told, every=every)
    title = (
        "prediction" if every or len(others.predictions) == len(reported.predictions) else "other prediction"
    )
    for name, lines in (
        (
            f"{plural(len(others.predictions), title)}{' in all' * every}",
            _all(others, room // 2, every=every),
        ),
        (
            f"{plural(len(rest.findings), 'finding')} in full",
            findings_table(rest, every=every, room=room // 2 - _LEAST // 2),
        ),
    ):
        body = list(lines)
        if body and (every or room >= 2 * _LEAST):
            yield from ("", f"<details><summary>{name}</summary>", *body, "", "</details>")


def _others(reported: Reported, *, every: bool) -> Reported:
    """Return what was found with those predictions alone that have no row."""
    told = set() if every else {row.name for row in rows_of(reported)}
    return replace(reported, predictions=tuple(one for one in reported.predictions if one.id not in told))


def _untold(reported: Reported, told: set[Finding], *, every: bool) -> Reported:
    """Return what was found with those findings alone that are told nowhere in full."""
    tabled = {one for row in rows_of(reported) for one in row.findings if words.is_tabled(one, row)}
    several = (one for one in reported.findings if every or one not in told | tabled)
    return replace(reported, findings=tuple(several))


def _all(reported: Reported, room: int, *, every: bool) -> Iterable[str]:
    if not every and len(reported.predictions) > _LISTED:
        return ()
    return predictions_table(
        reported, every=every, room=room - _LEAST // 2, most_open=_LISTED, has_claims=every
    )
