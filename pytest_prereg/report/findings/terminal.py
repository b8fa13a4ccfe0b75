"""Findings as lines of text, the worst first; nothing here prints.

No line is wider than asked for, but for commands: those are to be copied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pytest_prereg.audit.findings.unproven import ALWAYS
from pytest_prereg.report.columns import ascii_text, broken, width_of
from pytest_prereg.report.findings.harmless import harmless_line, plain
from pytest_prereg.report.findings.stands import (
    in_order_of_interest,
    is_changed,
    is_plain,
    recorded_text,
    standings,
    stands_text,
)
from pytest_prereg.report.findings.summing_up import (
    MAY_STAND,
    Group,
    Mark,
    acknowledged_text,
    advised,
    counted,
    folded_text,
    grouped,
    mark_of,
    next_command,
    place_of,
    result,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.audited import Audited
    from pytest_prereg.audit.finding import Finding
    from pytest_prereg.report.findings.reported import Reported

Text = Callable[[str], str]

_ADVISED = frozenset({Mark.ERROR, Mark.UNKNOWN, Mark.REVIEW, Mark.NOTICE})
"""What somebody has acknowledged needs no advice any more."""
_NARROW = 60
"""Below it what a finding says is indented less."""
_STANDS = 20
"""So many predictions are shown unless all are."""
_SHORT = 8
"""Digits of a commit."""
_OF_EVERY_STUDY = (
    "Of every study: what was known, made up, reworded, thrown away or deleted where nobody looks, and what "
    "else had a say (docs/audit.md, or --all)."
)
"""What stands for all of :data:`ALWAYS`."""


def terminal_lines(
    reported: Reported, width: int = 80, *, every: bool = False, unicode: bool = True
) -> list[str]:
    """Return all that was found, what can't be proven, what it amounts to and what to type next.

    Args:
        reported: What was found.
        width: Of the terminal, in cells.
        every: Show each notice and each prediction, where those of one kind are else taken together.
        unicode: Whether the terminal shows more than ASCII.
    """
    text: Text = str if unicode else ascii_text
    groups = grouped(reported.findings, every=every)
    said = set[tuple[str, str]]()
    lines = [
        *broken(
            text(plain(f"{reported.command} of {reported.subject}: {counted(reported.findings)}")), width
        ),
        "",
        *(line for group in groups for line in _group(group, width, text, said)),
        *([""] if reported.findings else []),
        *_stands(reported, width, text, every=every),
        *(line for told in standings(reported) for line in hung("", text(told), width, 2)),
        *unproven(reported, width, text, every=every),
        "",
        *broken(text(result(reported)), width),
    ]
    if command := next_command(reported):
        lines.append(text(plain(f"next:  {command}")))
    return [harmless_line(line.rstrip()) for line in lines]


def _group(group: Group, width: int, text: Text, said: set[tuple[str, str]]) -> Iterator[str]:
    mark = mark_of(group.first)
    start = f"{mark:<8}{group.first.code}  "
    if group.is_folded:
        yield from hung(start, text(plain(f"{folded_text(group)} (--all)")), width, indent_of(width))
        return
    yield from _headed(start, group.first, width, text)
    indent = " " * indent_of(width)
    room = width - len(indent)
    yield from (indent + line for line in broken(text(plain(group.first.message)), room))
    if group.first.acknowledged is not None:
        yield from (indent + line for line in broken(text(acknowledged(group.first, said)), room))
    if mark in _ADVISED:
        yield from (indent + line for line in advice(group.first, room, text, said))


def _headed(start: str, finding: Finding, width: int, text: Text) -> Iterator[str]:
    """Yield code and id, and beside them, or below, where it is."""
    name, place = text(plain(finding.id)), text(plain(_place(finding)))
    whole = f"{start}{name}  {place}" if name and place else f"{start}{name or place}"
    if width_of(whole) <= width:
        yield whole
        return
    yield from hung(start, name, width, indent_of(width))
    yield from (" " * indent_of(width) + line for line in broken(place, width - indent_of(width)))


def _place(finding: Finding) -> str:
    commit = finding.commit and f"({finding.commit[:_SHORT]})"
    return " ".join(part for part in (place_of(finding), commit) if part)


def acknowledged(finding: Finding, said: set[tuple[str, str]]) -> str:
    """Return by what a review is acknowledged; what was ``said`` of the same code is not said again."""
    reason = plain(acknowledged_text(finding))
    is_new = (finding.code, reason) not in said
    said.add((finding.code, reason))
    return reason if is_new else "acknowledged with the same reason"


def advice(finding: Finding, room: int, text: Text, said: set[tuple[str, str]]) -> Iterator[str]:
    """Yield what to do; what was ``said`` of the same code before is not said again."""
    for words, command in advised(finding):
        is_new, is_other = ((finding.code, one) not in said for one in (words, command))
        said |= {(finding.code, words), (finding.code, command)}
        if is_new:
            yield from broken(text(plain(words)), room)
        if command and is_other and (is_new or words != MAY_STAND):
            yield "  " + text(plain(command))


def _stands(reported: Reported, width: int, text: Text, *, every: bool) -> Iterator[str]:
    """Yield where each prediction stands of which there is more to say than that it is registered."""
    several = in_order_of_interest(reported)
    several = several if every else [one for one in several if not is_plain(one, reported.compared)]
    shown = several if every else several[:_STANDS]
    yield from ["every prediction:" if every else "not plainly registered:"] if shown else []
    for one in shown:
        yield from _stand(one, reported.compared, width, text)
    if len(shown) < len(several):
        yield f"  and {len(several) - len(shown)} more (--all)"
    if shown:
        yield ""


def _stand(one: Audited, compared: str | None, width: int, text: Text) -> Iterator[str]:
    name, stands = text(plain(one.id)), text(plain(stands_text(one)))
    inner = " " * (indent_of(width) if width >= _NARROW else 4)
    whole = f"  {name}  {stands}"
    if width_of(whole) <= width:
        yield whole
    else:
        yield from hung("  ", name, width, len(inner))
        yield from (inner + line for line in broken(stands, width - len(inner)))
    words = f"recorded: {recorded_text(one.head)}" if one.head else ""
    if is_changed(one, compared):
        words = f"recorded: {recorded_text(one.head)}; at {compared}: {recorded_text(one.base)}"
    yield from (inner + line for line in broken(text(plain(words)), width - len(inner)))


def unproven(reported: Reported, width: int, text: Text, *, every: bool = True) -> Iterator[str]:
    """Yield what no history can prove, below an empty line: in a line what is so of all, unless ``every``."""
    if not reported.unproven:
        return
    own = [one for one in reported.unproven if every or one not in ALWAYS]
    folded = [_OF_EVERY_STUDY] if len(own) < len(reported.unproven) else []
    yield ""
    yield "can't be proven:"
    for sentence in (*folded, *own):
        yield from hung("  - ", text(plain(sentence)), width, 4)


def hung(start: str, words: str, width: int, indent: int) -> Iterator[str]:
    """Yield ``start`` with words behind it, and what does not fit on lines below, indented."""
    first, *rest = broken(words, width - len(start)) or [""]
    yield start + first
    yield from (" " * indent + line for line in broken(" ".join(rest), width - indent))


def indent_of(width: int) -> int:
    """Return how far what is said of a finding is indented."""
    return 8 if width >= _NARROW else 2
