"""What a pull request changes, as lines of text: the worst first, who decides what, and what to type next.

No line is wider than asked for, but for commands: those are to be copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.audited import Recorded
from pytest_prereg.report.columns import ascii_text, broken
from pytest_prereg.report.findings import pull_request_words as words
from pytest_prereg.report.findings.harmless import harmless_line, plain
from pytest_prereg.report.findings.pull_request import Row, changes, folded, rows_of
from pytest_prereg.report.findings.pull_request_steps import (
    Step,
    committed,
    next_of,
    parted,
    to_decide,
    to_type,
)
from pytest_prereg.report.findings.summing_up import next_command, place_of, result
from pytest_prereg.report.findings.terminal import Text, hung, indent_of, unproven

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.finding import Finding
    from pytest_prereg.report.findings.reported import Reported

_SHOWN = {"supported": "+", "refuted": "-", "inconclusive": "?"}
_SHORT = 8
_INNER = 5
_TOGETHER = 10
"""Most names, and most commands, of one step."""
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
    parts = folded(rows_of(reported), every=every)
    lines = [
        *(line for told in _top(reported) for line in broken(text(plain(told)), width)),
        "",
        *(line for part in parts for line in (*_part(part, width, text), "")),
        *_below(reported, width, text, every=every),
        *unproven(reported, width, text),
        *([""] if reported.unproven else []),
        *broken(text(result(reported)), width),
    ]
    if command := next_of(to_type(reported)) or next_command(reported):
        lines.append(text(plain(f"next:  {command}")))
    return [harmless_line(line.rstrip()) for line in lines]


def _top(reported: Reported) -> Iterator[str]:
    base, head = words.ends(reported)
    yield f"gate of {words.name(reported)}: {words.heading(reported)}"
    told = changes(reported) if reported.is_loaded else "no prediction was looked at"
    yield f"{base} → {head} · {told or 'no predictions'}" if reported.base or reported.head else told
    if told := words.uncommitted(reported):
        yield f"note: {told}"


def _part(rows: list[Row], width: int, text: Text) -> Iterator[str]:
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
        yield from _finding(finding, width, text)


def _facts(row: Row) -> Iterator[tuple[str, str]]:
    """Yield what a prediction wants and has, each with its label."""
    one = row.one
    if one is None:
        return
    by, when = words.moved(one), words.registration(one)
    if claim := words.claim(one):
        yield "claim", claim
    yield "base", _verdict(words.base_verdict(row))
    yield "here", _verdict(words.here_verdict(row)) + (f", moved {by}" if by else "")
    yield from ((label, told) for label, told in (("wants", words.wants(one)), ("when", when)) if told)
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


def _finding(finding: Finding, width: int, text: Text) -> Iterator[str]:
    """Yield what a finding says, and what the author answers."""
    start = f"{' ' * indent_of(width)}{finding.code:<{_LABEL}}"
    where = ", ".join(filter(None, (place_of(finding), (finding.commit or "")[:_SHORT])))
    told = words.message_of(finding).lstrip(": ") + (f" ({where})" if where else "")
    yield from hung(start, text(plain(told)), width, len(start))
    if answer := words.answer(finding):
        yield from (" " * len(start) + line for line in broken(text(plain(answer)), width - len(start)))


def _below(reported: Reported, width: int, text: Text, *, every: bool) -> Iterator[str]:
    """Yield what the reviewer decides, what the author types, and what was there before."""
    together = len(reported.findings) if every else _TOGETHER
    first, last = [told for _, told in words.asked(reported)], [words.approval(reported)]
    lines = [
        *(line for each in first for line in hung("  - ", text(plain(each)), width, 4)),
        *(line for one in to_decide(reported) for line in _decided(one, width, text, together)),
        *(line for each in filter(None, last) for line in hung("  - ", text(plain(each)), width, 4)),
    ]
    if lines:
        yield from ("you, who review:", *lines, "")
    steps, later = parted(to_type(reported))
    if steps:
        yield "the author:"
        for number, step in enumerate(steps, 1):
            yield from _typed(number, step, width, text, together)
        yield from _committed(len(steps) + 1, committed(reported, steps), width, text)
        for number, step in enumerate(later, len(steps) + 2):
            yield from _typed(number, step, width, text, together)
        yield ""
    yield from _standing(reported, width, text)


def _decided(step: Step, width: int, text: Text, together: int) -> Iterator[str]:
    """Yield what there is to decide, and what whoever merges may have to type."""
    yield from hung("  - ", text(plain(f"{_named(step, together)}: {step.words[0]}")), width, 4)
    for told in step.words[1:]:
        yield from (" " * 4 + line for line in broken(text(plain(told)), width - 4))
        yield from (" " * 6 + text(plain(command)) for command in step.commands[1][:together])


def _named(step: Step, together: int) -> str:
    names = list(dict.fromkeys(filter(None, (one.id or place_of(one) for one in step.findings))))
    more = f" {_more(len(names) - together)}" if len(names) > together else ""
    return f"{step.code} {', '.join(names[:together])}{more}".rstrip()


def _more(count: int) -> str:
    return f"and {count} more (--all)"


def _typed(number: int, step: Step, width: int, text: Text, together: int) -> Iterator[str]:
    """Yield a step with all its commands, those of one kind together."""
    yield from hung(f"  {number}. ", text(plain(f"{_named(step, together)}:")), width, _INNER)
    for place, told in enumerate(step.words):
        commands = step.commands[place] if place < len(step.commands) else ()
        yield from (" " * _INNER + line for line in broken(text(plain(told)), width - _INNER))
        yield from (" " * _INNER + "  " + text(plain(command)) for command in commands[:together])
        if len(commands) > together:
            yield f"{' ' * _INNER}  {_more(len(commands) - together)}"


def _committed(number: int, last: tuple[str, str], width: int, text: Text) -> Iterator[str]:
    told, command = last
    if command:
        yield from hung(f"  {number}. ", text(plain(told)), width, _INNER)
        yield " " * _INNER + "  " + text(plain(command))


def _standing(reported: Reported, width: int, text: Text) -> Iterator[str]:
    told, kinds = words.standing(reported)
    if not told:
        return
    yield from broken(text(plain(f"{told}:")), width)
    for one in kinds:
        names = ", ".join(f"{name}{f' ({note})' if note else ''}" for name, note in one.names if name)
        more = f" and {one.more} more" if one.more else ""
        line = f"{one.few}{': ' if names else ''}{names}{more}"
        yield from hung(f"  {text(plain(one.code)):<{_LABEL}}", text(plain(line)), width, 2 + _LABEL)
    yield ""
