"""Findings as Markdown of GitHub's kind: a table, what to do, and, folded, what can't be proven."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.report.findings.harmless import clipped, code, markdown
from pytest_prereg.report.findings.stands import (
    in_order_of_interest,
    is_changed,
    recorded_text,
    standings,
    stands_text,
)
from pytest_prereg.report.findings.summing_up import (
    Group,
    Mark,
    acknowledged_text,
    advised,
    counted,
    folded_text,
    grouped,
    mark_of,
    place_of,
    result,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_prereg.audit.audited import Audited
    from pytest_prereg.report.findings.reported import Reported

SIGNS = {
    Mark.ERROR: "⛔ error",
    Mark.UNKNOWN: "❔ can't tell",
    Mark.REVIEW: "👀 review",
    Mark.SEEN: "☑️ acknowledged",
    Mark.NOTICE: "💬 notice",
}
_LONGEST = 1000
"""Characters of a message."""
_PATH = 300
_ROOM = 26_000, 14_000, 14_000
"""Characters for findings, predictions and what to do: a comment of GitHub has at most 65,536."""
_OPEN = 20
"""Most predictions that are not folded."""
_REGISTERED = "PR201"
_CLAIM = 200
_SHORT = 8


def markdown_text(reported: Reported, *, every: bool = False) -> str:
    """Return what a person who looks at a pull request should see, as one text.

    Args:
        reported: What was found.
        every: Show all of it, each notice by itself, even if it is longer than a comment of GitHub may be.
    """
    lines = [
        f"## Pre-registered predictions: {reported.command} of {markdown(reported.subject)}",
        "",
        f"**{markdown(result(reported))}**",
        "",
        *(f"- {markdown(line)}" for line in (counted(reported.findings), *standings(reported))),
        *findings_table(reported, every=every),
        *_to_do(reported, every=every),
        *predictions_table(reported, every=every),
        *unproven(reported),
    ]
    return "\n".join(lines) + "\n"


def findings_table(reported: Reported, *, every: bool, room: int = _ROOM[0]) -> Iterator[str]:
    """Yield a table of all findings, with what each says in full, and where."""
    if not reported.findings:
        return
    yield from ("", "| | code | prediction | what | where |", "|---|---|---|---|---|")
    rows = [_row(group) for group in grouped(reported.findings, every=every)]
    shown = rows if every else fitting(rows, room)
    yield from shown
    if len(shown) < len(rows):
        yield f"| | | | and {len(rows) - len(shown)} more | |"


def _row(group: Group) -> str:
    finding = group.first
    sign = SIGNS[mark_of(finding)]
    if group.is_folded:
        return f"| {sign} | {finding.code} | | {markdown(clipped(folded_text(group), _LONGEST))} | |"
    commit = finding.commit and finding.commit[:_SHORT]
    where = ", ".join(cell(clipped(part, _PATH)) for part in (place_of(finding), commit) if part)
    what = markdown(clipped(finding.message, _LONGEST))
    if finding.acknowledged is not None:
        words, _, reason = acknowledged_text(finding).partition(" ")
        what += f" *{markdown(words.capitalize())}* {markdown(clipped(reason, _LONGEST))}"
    return f"| {sign} | {finding.code} | {cell(clipped(finding.id, _PATH))} | {what} | {where} |"


def cell(text: str) -> str:
    """Return ``text`` as code in a cell of a table."""
    return code(text).replace("|", "\\|")


def _to_do(reported: Reported, *, every: bool) -> Iterator[str]:
    items = [_item(group) for group in grouped(one for one in reported.findings if one.fails)]
    if items:
        shown = items if every else fitting(items, _ROOM[2])
        yield from ("", "**What to do**", "", *shown)
        if len(shown) < len(items):
            yield f"- and {len(items) - len(shown)} more"


def _item(group: Group) -> str:
    finding = group.first
    parts = (f"{markdown(words)} {code(command)}".strip() for words, command in advised(finding))
    name = f"{code(finding.id)} ({finding.code})" if finding.id else finding.code
    return f"- {name}: {' '.join(parts) or markdown(finding.message)}"


def predictions_table(
    reported: Reported,
    *,
    every: bool,
    room: int = _ROOM[1],
    most_open: int = _OPEN,
    has_claims: bool = True,
) -> Iterator[str]:
    """Yield a table of all predictions, those first of which there is more to say; folded if it is long."""
    several = in_order_of_interest(reported)
    if not several:
        return
    told = {one.id for one in reported.findings if one.code != _REGISTERED}
    base = f" at {reported.compared} |" if any(is_changed(one, reported.compared) for one in several) else ""
    claim = " claim |" if has_claims else ""
    rows = [_stands(reported, one, told, has_base=bool(base), has_claim=has_claims) for one in several]
    shown = rows if every else fitting(rows, room)
    is_folded = not every and len(rows) > most_open
    yield from ("", f"<details><summary>{len(rows)} predictions</summary>") if is_folded else ()
    yield from (
        "",
        f"| prediction | stands | recorded |{base}{claim}",
        f"|---|---|---|{'---|' * (bool(base) + bool(claim))}",
    )
    yield from shown
    if len(shown) < len(rows):
        yield f"| and {len(rows) - len(shown)} more | | |{' |' * (bool(base) + bool(claim))}"
    yield from ("", "</details>") if is_folded else ()


def _stands(reported: Reported, one: Audited, told: set[str], *, has_base: bool, has_claim: bool) -> str:
    """Return a row; in what words it claims it is told where something was found about it."""
    base = recorded_text(one.base) if is_changed(one, reported.compared) else "the same"
    cells = [
        cell(one.id),
        markdown(clipped(stands_text(one), _LONGEST)),
        markdown(recorded_text(one.head)),
        *([markdown(base)] if has_base else []),
        *([markdown(clipped(one.claim, _CLAIM)) if one.id in told else ""] if has_claim else []),
    ]
    return f"| {' | '.join(cells)} |"


def size(text: str) -> int:
    """Return how long a text is where characters beyond the first plane are two, as GitHub may count them."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def fitting(lines: Iterable[str], room: int) -> list[str]:
    """Return as many of the first lines as have room."""
    kept = []
    for line in lines:
        room -= size(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept


def unproven(reported: Reported) -> Iterator[str]:
    """Yield, folded, what no history can prove."""
    if reported.unproven:
        yield from ("", "<details><summary>What can't be proven</summary>", "")
        yield from (f"- {markdown(sentence)}" for sentence in reported.unproven)
        yield from ("", "</details>")
