"""Findings as Markdown of GitHub's kind: a table, what to do, and, folded, what can't be proven."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.report.columns import cut
from pytest_prereg.report.findings.harmless import code, markdown
from pytest_prereg.report.findings.summing_up import (
    Group,
    Mark,
    advised,
    counted,
    folded_text,
    grouped,
    mark_of,
    result,
    standings,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_prereg.report.findings.reported import Reported

_SIGNS = {
    Mark.ERROR: "⛔ error",
    Mark.UNKNOWN: "❔ can't tell",
    Mark.REVIEW: "👀 review",
    Mark.SEEN: "☑️ acknowledged",
    Mark.NOTICE: "💬 notice",
}
_LONGEST = 1000
"""Characters of a message."""
_ROOM = 40_000, 15_000
"""Characters for the table and for what to do: a comment of GitHub has at most 65,536."""
_SHORT = 8


def markdown_text(reported: Reported) -> str:
    """Return what a person who looks at a pull request should see, as one text."""
    lines = [
        f"## Pre-registered predictions: {reported.command} of {markdown(reported.subject)}",
        "",
        f"**{markdown(result(reported))}**",
        "",
        *(f"- {markdown(line)}" for line in (counted(reported.findings), *standings(reported))),
        *_table(reported),
        *_to_do(reported),
        *_unproven(reported),
    ]
    return "\n".join(lines) + "\n"


def _table(reported: Reported) -> Iterator[str]:
    if not reported.findings:
        return
    yield from ("", "| | code | prediction | what | where |", "|---|---|---|---|---|")
    rows = [_row(group) for group in grouped(reported.findings)]
    shown = _fitting(rows, _ROOM[0])
    yield from shown
    if len(shown) < len(rows):
        yield f"| | | | and {len(rows) - len(shown)} more | |"


def _row(group: Group) -> str:
    finding = group.first
    sign = _SIGNS[mark_of(finding)]
    if group.is_folded:
        return f"| {sign} | {finding.code} | | {markdown(cut(folded_text(group), _LONGEST))} | |"
    path = f"{finding.path}:{finding.line}" if finding.path and finding.line else finding.path
    commit = finding.commit and finding.commit[:_SHORT]
    where = ", ".join(_cell(part) for part in (path, commit) if part)
    what = markdown(cut(finding.message, _LONGEST))
    if finding.acknowledged is not None:
        what += f" *Acknowledged:* {markdown(cut(finding.acknowledged, _LONGEST))}"
    return f"| {sign} | {finding.code} | {_cell(finding.id)} | {what} | {where} |"


def _cell(text: str) -> str:
    return code(text).replace("|", "\\|")


def _to_do(reported: Reported) -> Iterator[str]:
    items = [_item(group) for group in grouped(one for one in reported.findings if one.fails)]
    if items:
        shown = _fitting(items, _ROOM[1])
        yield from ("", "**What to do**", "", *shown)
        if len(shown) < len(items):
            yield f"- and {len(items) - len(shown)} more"


def _item(group: Group) -> str:
    finding = group.first
    parts = (f"{markdown(words)} {code(command)}".strip() for words, command in advised(finding))
    name = f"{code(finding.id)} ({finding.code})" if finding.id else finding.code
    return f"- {name}: {' '.join(parts) or markdown(finding.message)}"


def _fitting(lines: Iterable[str], room: int) -> list[str]:
    """Return as many of the first lines as have room."""
    fitting = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        fitting.append(line)
    return fitting


def _unproven(reported: Reported) -> Iterator[str]:
    if reported.unproven:
        yield from ("", "<details><summary>What can't be proven</summary>", "")
        yield from (f"- {markdown(sentence)}" for sentence in reported.unproven)
        yield from ("", "</details>")
