"""What ``explain`` says of a withdrawn prediction whose text is gone: what the lock and git keep of it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pytest_prereg.audit.taking_back import commit_with
from pytest_prereg.audit.withdrawn import repeats_of
from pytest_prereg.errors import one_line
from pytest_prereg.evidence.naming import shown
from pytest_prereg.judge.findings import plural
from pytest_prereg.judge.numbers import number_text
from pytest_prereg.report.columns import broken, padded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.withdrawn import Tombstone

_LABEL = 11
_DAY = 10
"""Characters of a date, of a time as the lock has it."""
_SHORT = 8


def buried_lines(state: StudyState, tombstone: Tombstone, width: int = 80) -> list[str]:
    """Return all that is still known of a prediction that was withdrawn and deleted.

    Args:
        state: The study's.
        tombstone: What its lock keeps.
        width: Of the text, in characters; a command may be wider.
    """
    verdict = f", {tombstone.verdict}" if tombstone.verdict else ""
    reason = f" ({tombstone.reason})" if tombstone.reason else ""
    lines = [f"{tombstone.id}: withdrawn{verdict}{reason}", ""]
    for label, text in _paragraphs(state, tombstone):
        for line in broken(text, width - _LABEL):
            lines.append(f"{padded(label, _LABEL)}{line}")
            label = ""  # noqa: PLW2901 - it stands before the first line alone
    return lines


def _paragraphs(state: StudyState, tombstone: Tombstone) -> Iterator[tuple[str, str]]:
    entry, withdrawal = tombstone.entry, tombstone.withdrawal
    counts = "it stays counted as refuted" if tombstone.is_counted else "it counts no more"
    never = "it is never measured or judged anew, and its id is never used again"
    yield "withdrawn", f"{withdrawal.at[:_DAY]}: {one_line(withdrawal.reason)}; {never}; {counts}"
    yield from zip(("text", ""), _text(state, tombstone.id), strict=False)
    yield "registered", entry.registered[:_DAY]
    for each in entry.amendments:
        was = f" (was {each.verdict})" if each.verdict else ""
        yield "amended", f"{each.at[:_DAY]}: {one_line(each.reason)}{was}"
    yield "found", _found(state, tombstone)
    yield "history", f"{tombstone.order.detail}; {_standing(tombstone)}"
    if tombstone.sessions:
        yield "evidence", ", ".join(tombstone.sessions)


def _text(state: StudyState, name: str) -> Iterator[str]:
    """Where its text is still to be read."""
    commit, path = commit_with(state, name), state.study.path
    place = state.repository.relative(path) if state.repository else None
    if commit is None or place is None:
        yield f"{shown(path)} no longer has it, and no commit that is here"
        return
    yield f"{shown(path)} no longer has it; {commit[:_SHORT]} does:"
    yield f"git show {shlex.quote(f'{commit[:_SHORT]}:{place}')}"


def _found(state: StudyState, tombstone: Tombstone) -> str:
    entry = tombstone.entry
    if entry.verdict is None:
        repeats = repeats_of(state, tombstone.id, entry)
        return f"after {plural(repeats, 'repeat')}, never judged" if repeats else "it was never measured"
    numbers = number_text(entry.estimate, entry.interval, entry.unit)
    return f"{numbers}, from n {entry.n}, {entry.method}, series {entry.series}"


def _standing(tombstone: Tombstone) -> str:
    return {
        "confirmatory": "confirmatory",
        "replication": "a replication: its author had seen such data before",
        "exploratory": "exploratory: shown, never counted",
    }[tombstone.standing]
