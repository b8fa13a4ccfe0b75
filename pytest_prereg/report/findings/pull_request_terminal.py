"""What a pull request changes, as lines of text: the worst first, who approves it, and what to type next.

No line is wider than asked for, but for commands: those are to be copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.audited import Recorded
from pytest_prereg.report.columns import ascii_text, broken
from pytest_prereg.report.findings import pull_request_words as words
from pytest_prereg.report.findings.harmless import harmless_line, plain
from pytest_prereg.report.findings.pull_request import Row, changes, folded, rows_of
from pytest_prereg.report.findings.summing_up import next_command, place_of, result
from pytest_prereg.report.findings.terminal import Text, acknowledged, advice, hung, indent_of, unproven

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.finding import Finding
    from pytest_prereg.report.findings.reported import Reported

_SHOWN = {"supported": "+", "refuted": "-", "inconclusive": "?"}
_SHORT = 8
_LABEL = 7
"""Characters of a label with the room behind it."""


def pull_request_lines(
    reported: Reported, width: int = 80, *, every: bool = False, unicode: bool = True
) -> list[str]:
    """Return what is changed and what was found about it, what it amounts to and what to type next.

    Args:
        reported: What was found.
        width: Of the terminal, in cells.
        every: Show each row by itself, where those of one kind are else taken together.
        unicode: Whether the terminal shows more than ASCII.
    """
    text: Text = str if unicode else ascii_text
    said = set[tuple[str, str]]()
    parts = folded(rows_of(reported), every=every)
    lines = [
        *(line for told in _top(reported) for line in broken(text(plain(told)), width)),
        "",
        *(line for part in parts for line in (*_part(part, width, text, said), "")),
        *_below(reported, width, text),
        *unproven(reported, width, text),
        *([""] if reported.unproven else []),
        *broken(text(result(reported)), width),
    ]
    if command := next_command(reported):
        lines.append(text(plain(f"next:  {command}")))
    return [harmless_line(line.rstrip()) for line in lines]


def _top(reported: Reported) -> Iterator[str]:
    base, head = words.ends(reported)
    yield f"gate of {reported.study}: {words.heading(reported)}"
    told = changes(reported) if reported.is_loaded else "no prediction was looked at"
    yield f"{base} → {head} · {told or 'no predictions'}" if reported.base or reported.head else told


def _part(rows: list[Row], width: int, text: Text, said: set[tuple[str, str]]) -> Iterator[str]:
    row, inner = rows[0], indent_of(width)
    if len(rows) > 1:
        told = text(plain(f"{words.folded_rows(rows)} (--all)"))
        yield from hung(f"{row.mark:<8}", told, width, inner)
        return
    yield from hung(f"{row.mark:<8}", text(plain(row.name or "the study")), width, inner)
    for label, told in _facts(row):
        start = f"{' ' * inner}{label:<{_LABEL}}"
        yield from hung(start, text(plain(told)), width, len(start))
    for finding in words.told_apart(row):
        yield from _finding(finding, width, text, said)


def _facts(row: Row) -> Iterator[tuple[str, str]]:
    """Yield what a prediction wants and has, each with its label."""
    one = row.one
    if one is None:
        return
    by, when = words.moved(one), words.registration(one, row.change)
    yield "base", _verdict(words.base_verdict(row))
    yield "here", _verdict(words.here_verdict(row)) + (f", moved {by}" if by else "")
    yield from ((label, told) for label, told in (("wants", one.wants), ("when", when)) if told)
    if one.given is not None:
        yield "note", words.UNRECORDED
    if one.status == "withdrawn" and one.withdrawal:
        yield "reason", one.withdrawal
    if one.flags:
        yield "flags", ", ".join(one.flags)


def _verdict(recorded: Recorded | str) -> str:
    if not isinstance(recorded, Recorded):
        return recorded
    sign = _SHOWN.get(recorded.verdict, "!")
    n = f"n {recorded.n}" if recorded.n is not None else ""
    numbers = ", ".join(filter(None, (words.numbers_of(recorded), n)))
    return f"{sign} {words.verdict_word(recorded)} {numbers}".rstrip()


def _finding(finding: Finding, width: int, text: Text, said: set[tuple[str, str]]) -> Iterator[str]:
    """Yield what a finding says, whether it is acknowledged, and what to do about it."""
    start = f"{' ' * indent_of(width)}{finding.code:<{_LABEL}}"
    where = ", ".join(filter(None, (place_of(finding), (finding.commit or "")[:_SHORT])))
    told = words.message_of(finding).lstrip(": ") + (f" ({where})" if where else "")
    yield from hung(start, text(plain(told)), width, len(start))
    inner, room = " " * len(start), width - len(start)
    if finding.acknowledged is not None:
        yield from (inner + line for line in broken(text(acknowledged(finding, said)), room))
    else:
        yield from (inner + line for line in advice(finding, room, text, said))


def _below(reported: Reported, width: int, text: Text) -> Iterator[str]:
    """Yield who approves it, and what was there before."""
    for sentence in words.sentences(reported):
        yield from broken(text(plain(sentence)), width)
        yield ""
