"""Findings as workflow commands of GitHub Actions: annotations at the prediction's line.

GitHub shows ten of each kind for a step and drops the others without a word, so what is beyond them is
summed up in the last one. It shows the first 4,096 characters of a message.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_prereg.report.columns import cut
from pytest_prereg.report.findings.harmless import plain
from pytest_prereg.report.findings.identity import place_in_repository
from pytest_prereg.report.findings.summing_up import (
    Group,
    Mark,
    acknowledged_text,
    advised,
    folded_text,
    grouped,
    mark_of,
    result,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.report.findings.reported import Reported

_SHOWN = 10
"""Annotations of one kind for a step: https://github.com/actions/toolkit/pull/734."""
_LONGEST = 4000
_LONGEST_TITLE = 200
_KINDS = {Mark.ERROR: "error", Mark.UNKNOWN: "error", Mark.REVIEW: "warning"}
"""What does not fail is a notice."""


def github_lines(reported: Reported) -> list[str]:
    """Return an annotation for each finding, as far as GitHub shows them, and one on what it amounts to."""
    left = {"error": _SHOWN, "warning": _SHOWN, "notice": _SHOWN - 1}
    lines, over = [], list[Group]()
    for group in grouped(reported.findings):
        kind = _kind(group)
        left[kind] -= 1
        if left[kind] < 0:
            over.append(group)
        else:
            lines.append(_annotation(reported, group, kind))
    return [
        *lines,
        _command("notice", {"title": f"{reported.command} of {reported.study}"}, _sum(reported, over)),
    ]


def _kind(group: Group) -> str:
    return _KINDS.get(mark_of(group.first), "notice")


def _annotation(reported: Reported, group: Group, kind: str) -> str:
    finding = group.first
    title = {
        "title": cut(plain(f"{finding.code} {'' if group.is_folded else finding.id}".strip()), _LONGEST_TITLE)
    }
    if group.is_folded:
        return _command(kind, title, plain(folded_text(group)))
    path, line = place_in_repository(reported, finding)
    place = {"file": plain(path)} | ({"line": str(line)} if line else {})
    return _command(kind, place | title, "\n".join(_message(group)))


def _message(group: Group) -> Iterable[str]:
    finding = group.first
    yield plain(finding.message)
    if finding.acknowledged is not None:
        yield plain(acknowledged_text(finding))
        return
    yield from (plain(f"{words} {command}".strip()) for words, command in advised(finding))


def _sum(reported: Reported, over: Iterable[Group]) -> str:
    """Return what it amounts to, and what GitHub would not have shown."""
    codes = Counter(one.code for group in over for one in group.findings)
    more = ", ".join(f"{count} {code}" for code, count in codes.items())
    return result(reported) + (f"; not shown here: {more}" if more else "")


def _command(kind: str, properties: dict[str, str], message: str) -> str:
    given = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{kind} {given}::{_data(cut(message, _LONGEST))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
