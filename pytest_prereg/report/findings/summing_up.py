"""What findings amount to: marked, counted, notices of one kind taken together, and what to do first."""

from __future__ import annotations

import re
from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.telling import acknowledging, in_commit
from pytest_prereg.report.findings.harmless import advice_parts
from pytest_prereg.report.findings.rules import rule_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.report.findings.reported import Reported

_APART = 3
"""Most notices of one code that are shown one by one."""
_NAMED = 8
"""Most ids that are listed."""
_REGISTERED = "PR201"
_UNCOMMITTED = "PR102"
_OWN = re.compile(r"(?P<what>amended|excluded|voided): ")
"""What an entry of the lock that is its own acknowledgement begins with."""
MAY_STAND = "If it may stand, say why:"


class Mark(StrEnum):
    """How a finding is marked, in a word; the loud ones fail."""

    ERROR = "ERROR"
    UNKNOWN = "UNKNOWN"
    """It could not be told."""
    REVIEW = "REVIEW"
    SEEN = "seen"
    """A review that the lock acknowledges."""
    NOTICE = "notice"


_COUNTED = {
    Mark.ERROR: ("error", "errors"),
    Mark.UNKNOWN: ("could not be told", "could not be told"),
    Mark.REVIEW: ("open review", "open reviews"),
    Mark.SEEN: ("acknowledged", "acknowledged"),
    Mark.NOTICE: ("notice", "notices"),
}


class Group(msgspec.Struct, kw_only=True, frozen=True):
    """One finding, or notices of one code that are told in one line."""

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        """The finding, where there is only one."""
        return self.findings[0]

    @property
    def is_folded(self) -> bool:
        """Whether it stands for several."""
        return len(self.findings) > 1


def mark_of(finding: Finding) -> Mark:
    """Return how a finding is marked."""
    if finding.level is Level.ERROR:
        return Mark.UNKNOWN if finding.untold else Mark.ERROR
    if finding.level is Level.REVIEW:
        return Mark.REVIEW if finding.acknowledged is None else Mark.SEEN
    return Mark.NOTICE


def place_of(finding: Finding) -> str:
    """Return where a finding is, if it is anywhere: ``predictions.toml:14``."""
    return f"{finding.path}:{finding.line}" if finding.path and finding.line else finding.path or ""


def grouped(findings: Iterable[Finding], *, every: bool = False) -> list[Group]:
    """Return findings in their order, notices of one code as one group where they are many, unless ``every``.

    Registrations are many by nature, and always taken together.
    """
    groups: dict[object, list[Finding]] = {}
    for finding in findings:
        foldable = not every and mark_of(finding) is Mark.NOTICE
        groups.setdefault(finding.code if foldable else id(finding), []).append(finding)
    return [
        Group(findings=part)
        for several in groups.values()
        for part in (
            (tuple(several),)
            if len(several) > _APART or several[0].code == _REGISTERED
            else ((one,) for one in several)
        )
    ]


def without_registrations(findings: Iterable[Finding]) -> list[Finding]:
    """Return what is a flaw, or may be one: tools that list flaws would open one for each registration."""
    return [one for one in findings if one.code != _REGISTERED]


def folded_text(group: Group) -> str:
    """Return what a group says: ``13 registered: a, b, c and 10 more``."""
    in_order = sorted(group.findings, key=lambda one: (one.path or "", one.line or 0))
    names = list(dict.fromkeys(one.id for one in in_order if one.id))
    shown = ", ".join(names) if len(names) <= _NAMED else ", ".join(names[: _NAMED - 1])
    more = f" and {len(names) - _NAMED + 1} more" if len(names) > _NAMED else ""
    return f"{len(group.findings)} {rule_of(group.first.code).folded}{_where(group)}" + (
        f": {shown}{more}" if names else ""
    )


def _where(group: Group) -> str:
    """Return in which commit all of a group came about, if it is one and says no more than that."""
    commits = {one.commit for one in group.findings}
    where = in_commit(group.first.commit)
    is_all = all(one.message.endswith(where) for one in group.findings)
    return where if len(commits) == 1 and None not in commits and is_all else ""


def counted(findings: Iterable[Finding]) -> str:
    """Return how many findings there are of each mark, worst first: ``1 error, 2 open reviews``."""
    marks = Counter(map(mark_of, findings))
    parts = [f"{marks[mark]} {_COUNTED[mark][marks[mark] != 1]}" for mark in Mark if marks[mark]]
    return ", ".join(parts) or "no findings"


def result(reported: Reported) -> str:
    """Return in one line what it amounts to, with what the exit status means."""
    failing = [one for one in reported.findings if one.fails]
    told = counted(failing) if failing else _passing(reported)
    meaning = {0: "fine", 4: "could not tell"}.get(reported.exit) or _to_be(failing)
    return f"{reported.command}: {told} (exit {reported.exit}: {meaning})"


def _passing(reported: Reported) -> str:
    """Return what is left to a person where nothing fails: in a pull request, to approve a reason."""
    if reported.command == "gate" and any(mark_of(one) is Mark.SEEN for one in reported.findings):
        return f"nothing fails; {who_approves(reported)}"
    return "nothing is wrong, nothing waits for a person"


def who_approves(reported: Reported) -> str:
    """Return who has to approve what the lock of a pull request acknowledges."""
    return "a code owner has to approve" if reported.covered else "acknowledged in the lock"


def _to_be(failing: Iterable[Finding]) -> str:
    """Return what has to be done: nobody can acknowledge an error."""
    marks = set(map(mark_of, failing))
    done = ["mended"] if marks - {Mark.REVIEW} else []
    return f"to be {' and '.join([*done, *(['acknowledged'] if Mark.REVIEW in marks else [])])}"


def advised(finding: Finding) -> list[tuple[str, str]]:
    """Return what to do about a finding, each as words and a command, either of which may be empty."""
    parts = list(advice_parts(finding.advice or ""))
    is_said = any(" acknowledge " in command for _, command in parts)
    if mark_of(finding) is Mark.REVIEW and not is_said and not finding.unapproved:
        parts.append((MAY_STAND, acknowledging(finding.code, finding.id)))
    return parts


def acknowledged_text(finding: Finding) -> str:
    """Return by what a review is acknowledged; a reason that its message has already is not repeated."""
    reason = finding.acknowledged or ""
    own = _OWN.match(reason)
    if own and reason[own.end() :] in finding.message:
        return f"acknowledged: {own['what']} with that reason"
    return f"acknowledged, as it was {reason}" if own else f"acknowledged: {reason}"


def next_command(reported: Reported) -> str | None:
    """Return what to type about the weightiest finding that fails, if it says so, or else about the lock."""
    urgent = [one for one in reported.findings if one.fails]
    waiting = [one for one in reported.findings if one.code == _UNCOMMITTED]
    return next((command for one in urgent or waiting for _, command in advised(one) if command), None)
