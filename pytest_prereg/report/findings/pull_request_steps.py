"""Who has to do what about a pull request: what its reviewer decides, and what its author types, in order.

Findings that ask the same of somebody are one step, with a command for each. Only errors and reviews ask.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from pytest_prereg.audit.finding import Finding
from pytest_prereg.audit.gating.restoring import AFTERWARDS
from pytest_prereg.evidence.naming import shown
from pytest_prereg.report.findings.pull_request import rows_of
from pytest_prereg.report.findings.pull_request_words import TABLED
from pytest_prereg.report.findings.rules import rule_of
from pytest_prereg.report.findings.summing_up import MAY_STAND, Mark, advised, mark_of, place_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_prereg.report.findings.reported import Reported

_SENTENCE = re.compile(r"(?<=[.?!]) (?=[A-Z])")
_ACKNOWLEDGE = "pytest-prereg acknowledge "
_FILES = 8
"""Most files that are named."""
_HOLDS = "Would that reason have been given had the numbers come out the other way?"
_QUESTIONS = {
    "PR202": "Would it have been amended had the numbers come out the other way?",
    "PR203": "Is it given up for a reason that has nothing to do with what came out?",
    "PR205": "Ask why the verdict changed, and whether that follows from what is there.",
    "PR206": "Ask for a new measurement, unless what changed can't matter.",
    "PR208": "Would it have been set aside with any other value?",
    "PR209": "Ask why less is asked for now.",
    "PR212": "Ask what came first.",
    "PR213": "Would it have been given up with any other outcome?",
    "PR214": "Ask which of the two was expected.",
    "PR216": "Ask whether what was known told what would come out.",
}
"""What a reviewer asks where the finding itself does not say it."""
_UNREGISTERED = "PR102"
_WHY = "Ask why it may stand."
_OF_MERGING = frozenset({"PR204"})
"""Reviews of which that which can be typed is for whoever merges, and squashes, and not for the author."""


class Step(msgspec.Struct, kw_only=True, frozen=True):
    """What somebody has to do about findings of one code."""

    mark: Mark
    code: str
    findings: tuple[Finding, ...]
    words: tuple[str, ...] = ()
    """What to do, a sentence for each of ``commands``, or for the last of them."""
    commands: tuple[tuple[str, ...], ...] = ()
    """What is typed for each of the words."""
    is_told: bool = False
    """Whether what was found is told with it, or elsewhere already."""


def parted(steps: Iterable[Step]) -> tuple[list[Step], list[Step]]:
    """Return what is done before all of it is committed, and what can only be done afterwards."""
    steps = list(steps)
    return [_part(one, later=False) for one in steps], [
        each for one in steps if (each := _part(one, later=True)).words
    ]


def _part(step: Step, *, later: bool) -> Step:
    commands = [*step.commands, *[()] * (len(step.words) - len(step.commands))]
    kept = [
        pair for pair in zip(step.words, commands, strict=True) if pair[0].startswith(AFTERWARDS) is later
    ]
    return replace(
        step,
        words=tuple(told for told, _ in kept),
        commands=tuple(typed for _, typed in kept),
        is_told=step.is_told and not later,
    )


def next_of(steps: Iterable[Step]) -> str | None:
    """Return what to type first: of a review what acknowledges it, where anything does."""
    for step in steps:
        if commands := [command for several in step.commands for command in several]:
            is_review = step.mark is Mark.REVIEW
            own = [command for command in commands if is_review and command.startswith(_ACKNOWLEDGE)]
            return (own or commands)[0]
    return None


def to_decide(reported: Reported) -> list[Step]:
    """Return what a reviewer has to decide: open reviews, and those that the author has answered."""
    groups: dict[object, list[Finding]] = {}
    for one in _in_order(reported):
        if (mark := mark_of(one)) in (Mark.REVIEW, Mark.SEEN):
            groups.setdefault((mark, one.code, _question(one)), []).append(one)
    return [_decision(several) for several in groups.values()]


def _decision(several: list[Finding]) -> Step:
    first, commands = several[0], dict.fromkeys(each for one in several for _, each in _merging(one) if each)
    told = [_split(told, command)[1] for told, command in _merging(first)][:1]
    return Step(
        mark=mark_of(first),
        code=first.code,
        findings=tuple(several),
        words=(_question(first), *told),
        commands=((), tuple(commands)),
        is_told=first.code not in TABLED,
    )


def _merging(finding: Finding) -> list[tuple[str, str]]:
    """Return what whoever merges may have to type, as words and commands."""
    parts = advised(finding) if finding.code in _OF_MERGING else []
    return [(told, command) for told, command in parts if command and not command.startswith(_ACKNOWLEDGE)]


def to_type(reported: Reported) -> list[Step]:
    """Return what an author has to do, in order: what is wrong first, then what may stand with a reason."""
    groups: dict[object, list[tuple[Finding, list[tuple[str, str]]]]] = {}
    for one in _in_order(reported):
        parts = _own(one)
        if one.fails and (parts or mark_of(one) is not Mark.REVIEW):
            words = tuple(told for told, _ in parts)
            groups.setdefault((mark_of(one), one.code, words), []).append((one, parts))
    return [*(_step(several) for several in groups.values()), *_to_register(reported)]


def _to_register(reported: Reported) -> Iterator[Step]:
    """Yield the step that registers what the text has and the lock does not: nothing fails without it."""
    found = tuple(one for one in reported.findings if one.code == _UNREGISTERED and not one.fails)
    if found:
        words, commands = ("Not registered yet:",), (("pytest-prereg lock",),)
        yield Step(mark=Mark.NOTICE, code=_UNREGISTERED, findings=found, words=words, commands=commands)


def committed(reported: Reported, steps: Iterable[Step]) -> tuple[str, str]:
    """Return what the steps change, in words, and what commits and pushes it; empty if nothing does."""
    steps = [one for one in steps if one.mark is not Mark.UNKNOWN and any(one.commands)]
    if not steps:
        return "", ""
    lock = reported.file.with_suffix(".lock")
    is_reason = all(_is_acknowledging(one) for one in steps)
    files = list(
        dict.fromkeys([shown(lock)] if is_reason else [shown(reported.file), shown(lock), *_pages(steps)])
    )
    codes = ", ".join(dict.fromkeys(one.code for one in steps))
    message = f"Acknowledge {codes}" if is_reason else f"Mend {codes}"
    if all(one.code == _UNREGISTERED for one in steps):
        message = f"Register {reported.study}"
    is_short = len(files) <= _FILES
    names = files if is_short else [*files[:_FILES], f"and {len(files) - _FILES} more"]
    told = f"Commit what that changes of {', '.join(names)} here, in this pull request:"
    added = " ".join(map(shlex.quote, files)) if is_short else "--update"
    return told, f"git add {added} && git commit -m {shlex.quote(message)} && git push"


def _is_acknowledging(step: Step) -> bool:
    return any(command.startswith(_ACKNOWLEDGE) for several in step.commands for command in several)


def _pages(steps: Iterable[Step]) -> list[str]:
    """Return the pages that quote something, which are mended as well."""
    return [one.path for step in steps if step.code == "PR210" for one in step.findings if one.path]


def _in_order(reported: Reported) -> Iterator[Finding]:
    """Yield what errors and reviews there are, as the rows of the table have them, errors first."""
    found = [one for row in rows_of(reported) for one in row.findings if mark_of(one) is not Mark.NOTICE]
    ranks = {mark: rank for rank, mark in enumerate(Mark)}
    return iter(sorted(found, key=lambda one: ranks[mark_of(one)]))


def _step(several: list[tuple[Finding, list[tuple[str, str]]]]) -> Step:
    first, parts = several[0]
    columns = zip(*(own for _, own in several), strict=True)
    commands = tuple(tuple(dict.fromkeys(filter(None, (each for _, each in column)))) for column in columns)
    return Step(
        mark=mark_of(first),
        code=first.code,
        findings=tuple(one for one, _ in several),
        words=tuple(told for told, _ in parts) or (_in_general(first),),
        commands=commands,
        is_told=mark_of(first) is not Mark.REVIEW,
    )


def _question(finding: Finding) -> str:
    """Return what a reviewer has to ask about a review: as the finding has it, or as its code has it."""
    own = [sentence for told, command in advised(finding) for sentence in _split(told, command)[0]]
    if mark_of(finding) is Mark.REVIEW and own:
        return " ".join(own)
    return _QUESTIONS.get(finding.code, _HOLDS if mark_of(finding) is Mark.SEEN else _WHY)


def _own(finding: Finding) -> list[tuple[str, str]]:
    """Return what the author has to do, as words and commands; of a review only what can be typed."""
    parts = advised(finding)
    if mark_of(finding) is not Mark.REVIEW:
        return parts
    others = _merging(finding)
    typed = [(_split(*part)[1], part[1]) for part in parts if part[1] and part not in others]
    return [(told or MAY_STAND, command) for told, command in typed]


def _split(told: str, command: str) -> tuple[list[str], str]:
    """Return the sentences before the one that leads to a command, and that one."""
    several = _SENTENCE.split(told) if told else []
    if not command:
        return several, ""
    return several[:-1], several[-1] if several else ""


def _in_general(finding: Finding) -> str:
    """Return what to do about findings of this kind, for one that does not say it itself."""
    to_do = rule_of(finding.code).to_do.replace("`", "")
    return f"{to_do[0].upper()}{to_do[1:]}."


def place_told(finding: Finding) -> str:
    """Return where to look for what is not in the prediction file: of a page with its line."""
    return place_of(finding) if finding.code == "PR210" or not finding.id else ""
