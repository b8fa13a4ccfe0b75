"""What a pull request's summary says, in plain words: verdicts, what moved, what came first, who approves.

Locks are written by whoever opens the pull request: no number and no word in one is taken to be well-formed.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.audit.audited import MEASURING, REGISTERING
from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.evidence.naming import shown
from pytest_prereg.judge.findings import plural
from pytest_prereg.judge.numbers import decimals, number_texts, place_of
from pytest_prereg.report.findings.harmless import clipped
from pytest_prereg.report.findings.pull_request import NEW, Change, Row, rows_of
from pytest_prereg.report.findings.rules import RULES, rule_of
from pytest_prereg.report.findings.stands import finite, numbers
from pytest_prereg.report.findings.summing_up import Mark, counted, mark_of, who_approves

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pytest_prereg.audit.audited import Audited, Came, Recorded, What
    from pytest_prereg.report.findings.reported import Reported

_WORD = 40
"""Cells of a verdict or a reason that somebody may have written by hand."""
_NUMBERS = 80
_FEW = 90
"""Cells of what is said in few words."""
_REASON = 160
_ANSWER = 400
_CLAIM = 100
_RECORDED = "recorded as "
_OWN = re.compile(r"^(amended|excluded|voided): ")
"""What a reason that the lock has for what it does begins with."""
_SHORT = 8
_REGISTERED = "PR201"
TABLED = frozenset({"PR204"})
"""Reviews that say no more than their row does."""
_NAMED = 5
_MOST = 6
"""Most kinds of findings that are told of one prediction."""
_LEAST, _PERCENT = 0.05, 1000
"""Between these a change is told in percent, too."""
_ONE_DECIMAL = 10
_UNTOLD = {
    "unverifiable": "whether it was registered before can't be told",
    "unregistered": "not registered",
}
"""Grades of which no commit tells more."""
UNRECORDED = (
    "the evidence gives that, and the lock does not record it: pytest --prereg-verify --prereg-record"
)
_PUT_BACK = "put back "
"""What a notice is about of which nothing else tells that it is no withdrawal."""
_BRIEF = {
    ("PR203", Level.NOTICE): "withdrawn",
    ("PR202", Level.ERROR): "changed without an amendment",
}


def heading(reported: Reported) -> str:
    """Return the result in a few words."""
    marks = {mark_of(one) for one in reported.findings if one.fails}
    if reported.exit and Mark.ERROR in marks:
        return "can't pass"
    if reported.exit and Mark.REVIEW in marks:
        return "needs a person's eyes"
    if reported.exit:
        return "could not tell" if Mark.UNKNOWN in marks else "can't pass"
    if any(mark_of(one) is Mark.SEEN for one in reported.findings):
        return who_approves(reported)
    return "nothing needs a person" if rows_of(reported) else "nothing to look at"


def ends(reported: Reported) -> tuple[str, str]:
    """Return the short hashes of the merge base and of the head; a question mark for what is not known."""
    base = reported.base or reported.compared or "?"
    return base[:_SHORT], (reported.head or "?")[:_SHORT]


def name(reported: Reported) -> str:
    """Return what is looked at: the study, or where that could not be read its file."""
    return reported.study if reported.is_loaded else reported.subject


def uncommitted(reported: Reported) -> str:
    """Return what here is not what is compared; empty where nothing is."""
    several = [clipped(each, _REASON) for each in reported.uncommitted]
    if not several:
        return ""
    names = ", ".join(several[:_NAMED]) + (f" and {len(several) - _NAMED} more" if several[_NAMED:] else "")
    what = "is not committed as it is" if len(several) == 1 else "are not committed as they are"
    return f"{names} {what} here; commits alone are compared"


def base_verdict(row: Row) -> Recorded | str:
    """Return the verdict at the base, or why there is none."""
    assert row.one is not None
    return row.one.base or ("not registered" if row.change in NEW else "no verdict")


def here_verdict(row: Row) -> Recorded | str:
    """Return the verdict here, or why there is none to show."""
    assert row.one is not None
    if row.one.status == "removed":
        return "removed"
    if row.change is Change.WITHDRAWN or row.one.status == "withdrawn":
        return f"withdrawn{', counted as refuted' if row.one.is_counted else ''}"
    if row.one.head is None:
        return row.one.given or ("verdict taken out" if row.one.base else "no verdict")
    if row.one.head != row.one.base:
        return row.one.head
    found = sum(mark_of(one) is not Mark.NOTICE for one in row.findings)
    return f"the same verdict, with {plural(found, 'finding')}" if found else "the same verdict"


def wants(one: Audited) -> str:
    """Return what is predicted, and what was where that differs: ``≥ 1.25 → ≥ 1.1``."""
    return clipped(" → ".join(dict.fromkeys(filter(None, (one.wanted, one.wants)))), _NUMBERS)


def claim(one: Audited) -> str:
    """Return the words of a prediction, and those that it had where they differ."""
    if one.claim and one.claimed and one.claim != one.claimed:
        return f"was: {clipped(one.claimed, _CLAIM)} · is: {clipped(one.claim, _CLAIM)}"
    return clipped(one.claim or one.claimed, _CLAIM)


def verdict_word(recorded: Recorded) -> str:
    """Return the verdict, and why it is inconclusive: ``inconclusive (straddles)``."""
    why = f" ({clipped(recorded.reason, _WORD)})" if recorded.reason else ""
    return f"{clipped(recorded.verdict, _WORD)}{why}"


def numbers_of(recorded: Recorded) -> str:
    """Return the estimate with its interval and unit; empty where it has none."""
    return clipped(numbers(recorded), _NUMBERS)


def moved(one: Audited) -> str:
    """Return by how much the estimate moved, in its unit: ``-0.29 (-22 %)``; empty if that can't be said."""
    if one.base is None or one.head is None or one.base.unit != one.head.unit:
        return ""
    before, after = finite(one.base.estimate), finite(one.head.estimate)
    if before is None or after is None or before == after:
        return ""
    has_percent = one.head.unit != "%"  # which would be read as points
    with suppress(OverflowError):
        return clipped(
            f"{_by(one.base, one.head, after - before)}{_percent(before, after) * has_percent}", _WORD
        )
    return ""


def _by(base: Recorded, head: Recorded, change: float) -> str:
    """Return a change to the precision of the less precise end, or so that it is not nothing."""
    place = min(_decimals(base), _decimals(head))
    if not round(change, place):
        place = place_of(change, 1)
    (text,) = number_texts(change, None, place=place)
    return f"{'+' * (change > 0)}{text}"


def _decimals(recorded: Recorded) -> int:
    return decimals(finite(recorded.estimate), [finite(end) for end in recorded.interval or ()])


def _percent(before: float, after: float) -> str:
    """Return a change in percent, where both have one sign and it can be read."""
    if not before or (before > 0) != (after > 0):
        return ""
    percent = 100 * ((after - before) / abs(before))
    if not _LEAST <= abs(percent) < _PERCENT:
        return ""
    return f" ({percent:+.{int(abs(percent) < _ONE_DECIMAL)}f} %)"


def count(one: Audited) -> str:
    """Return n: ``15``; ``10 → 15`` where it changed."""
    known = (one.base, one.head or one.given)
    counts = [str(each.n) for each in known if each is not None and each.n is not None]
    return clipped(" → ".join(dict.fromkeys(counts)), _WORD)


def registration(one: Audited) -> str:
    """Return whether a prediction was registered before its evidence, and by which commits.

    ``registered at the base in 2f1c0de1, then measured in 9ab33e1f``
    """
    if one.status == "removed":
        return "".join(f"had been registered{_in(each)}" for each in one.came if each.what in REGISTERING)
    if one.order is None or one.order in _UNTOLD:
        return _UNTOLD.get(one.order or "", "")
    if first := _first(one):
        is_known = _place(one, REGISTERING) is not None and _place(one, MEASURING) is not None
        told = f"{first}: {_sequence(one)}" if is_known else first
    else:
        told = _sequence(one)
    return f"{told}; its data were known: a replication" if one.standing == "replication" else told


def _first(one: Audited) -> str:
    """Return what is wrong with the order, if anything is; what commits say of it is told behind it."""
    if one.order == "mismatch":
        is_edited = any(each.what == "edited" for each in one.came)
        return "not as it is registered" if is_edited else "the evidence is of another registration"
    if one.order != "after-evidence":
        return ""
    registered, measured = _place(one, REGISTERING), _place(one, MEASURING)
    if registered is None or measured is None:
        return "registered after its evidence"
    first, last = sorted((registered, measured))
    if not all(each.follows for each in one.came[first + 1 : last + 1]):
        return "not registered before its evidence"
    return "registered after its evidence" if measured < registered else "its evidence was not taken for it"


def _place(one: Audited, kinds: Collection[What]) -> int | None:
    """Return where the first of some kinds stands among what came."""
    return next((place for place, each in enumerate(one.came) if each.what in kinds), None)


def _sequence(one: Audited) -> str:
    """Return what commits did, one behind the other; *then* where one comes from the other."""
    is_known = _place(one, REGISTERING) is not None
    told = "" if is_known else f"registered {'at the base' if one.is_at_base else 'here'}"
    for commit, several in groupby((each for each in one.came if each.what != "tagged"), _commit):
        told += _event(one, commit, list(several), told, is_known=is_known)
    if _place(one, MEASURING) is None and one.head is None:
        told += ", not measured yet"
    tags = [_in(each) for each in one.came if each.what == "tagged"]
    return told + "".join(f"; a tag has the registration without the evidence,{each}" for each in tags)


def _commit(each: Came) -> str | None:
    return each.commit


def _event(one: Audited, commit: str | None, several: list[Came], before: str, *, is_known: bool) -> str:
    """Return what a commit did, joined to what is told before it, which a grade says if no commit does."""
    first = several[0]
    beside = ", and on another line of commits " if is_known else ", before it was "
    join = (", then " if first.follows else beside) if before else ""
    if commit is None:
        return "; its text is another now" * (first.what == "edited")
    if len(several) > 1:
        what = " and ".join(each.what for each in several)
        return f"{join}{what} in the same commit{_in(first).replace(' in', ',', 1)}"
    where = "" if first.what in MEASURING else (" at the base" if first.is_at_base else " here")
    side = ", on one side of a merge" * (one.order == "registered-one-side" and first.what in REGISTERING)
    return f"{join}{first.what}{where}{_in(first)}{side}"


def _in(each: Came) -> str:
    return f" in {each.commit[:_SHORT]}{f' ({each.on})' * bool(each.on)}" if each.commit else ""


def remarks(row: Row) -> Iterator[str]:
    """Yield each code with few words, how often it is there, and what the author answers; then the flags."""
    told = Counter((one.code, brief(one), answer(one, _FEW)) for one in told_apart(row))
    for (code, few, said), times in list(told.items())[:_MOST]:
        yield f"{code} {few}{f' ({times} times)' * (times > 1)}{f'; {said}' * bool(said)}"
    if len(told) > _MOST:
        yield f"and {len(told) - _MOST} more"
    if row.one is not None and row.one.given is not None:
        yield UNRECORDED
    if row.one is not None and row.one.status == "withdrawn" and row.one.withdrawal:
        yield f"reason: {clipped(row.one.withdrawal, _REASON)}"
    if row.one is not None and row.one.flags:
        yield clipped(", ".join(row.one.flags), _REASON)


def told_apart(row: Row) -> list[Finding]:
    """Return the findings of a row that say more than since when it is registered, which is told anyway."""
    return [one for one in row.findings if one.code != _REGISTERED or row.one is None]


def brief(finding: Finding) -> str:
    """Return what a finding is in a few words."""
    if finding.untold:
        return "could not be told"
    if finding.code not in RULES:
        return clipped(finding.message, _FEW)
    if finding.about.startswith(_PUT_BACK):
        return "taken out of the lock and put back"
    return _BRIEF.get((finding.code, finding.level)) or rule_of(finding.code).brief


def is_tabled(finding: Finding, row: Row) -> bool:
    """Whether the row of a finding says all that it says itself."""
    if finding.level is Level.REVIEW:
        return finding.code in TABLED
    is_withdrawal = row.change is Change.WITHDRAWN and finding.code == "PR203"
    return (finding.code == _REGISTERED or is_withdrawal) and finding.level is Level.NOTICE


def folded_rows(rows: list[Row]) -> str:
    """Return what many rows of one kind are: ``300 registered: a, b, c and 297 more``."""
    change = rows[0].change
    what = change if change is not Change.NONE else rule_of(rows[0].findings[0].code).folded
    return f"{len(rows)} {what}: {_named(row.name for row in rows)}"


def message_of(finding: Finding) -> str:
    """Return what a finding says, to be put behind its prediction's name: it is not named again."""
    message = _without_answer(finding).rstrip(".")
    behind = message.removeprefix(f'"{finding.id}"')
    return behind if behind != message else f": {message}"


def answer(finding: Finding, most: int = _ANSWER) -> str:
    """Return with what the lock answers a review, and whose words that are; empty where it does not."""
    reason = finding.acknowledged
    if reason is None:
        return ""
    if reason.startswith(_RECORDED):
        return f"the lock has it {clipped(reason, most)}"
    return f'the author\'s reason: "{clipped(_OWN.sub("", reason), most)}"'


def _without_answer(finding: Finding) -> str:
    """Return what a finding says without the reason that is told beside it."""
    reason = _OWN.sub("", finding.acknowledged or "")
    first, _, rest = finding.message.rpartition(f": {reason}") if reason else ("", "", "")
    return f"{first}{rest}" if first and (not rest or rest.startswith(" (")) else finding.message


def asked(reported: Reported) -> Iterator[tuple[Mark, str]]:
    """Yield what a reviewer has to know of errors, and of what could not be told."""
    marks = Counter(map(mark_of, reported.findings))
    if count := marks[Mark.ERROR]:
        what = "it" if count == 1 else "them"
        told = f"Ask the author to mend {what}, as below: an error can't be acknowledged"
        yield Mark.ERROR, f"{plural(count, 'error')}. {told}."
    if count := marks[Mark.UNKNOWN]:
        told = "the checkout lacks something, and nothing is known to be wrong"
        yield Mark.UNKNOWN, f"{count} could not be told: {told}."


def approval(reported: Reported) -> str:
    """Return who has to approve what is for a person to decide; empty where nothing is."""
    reviews = [one for one in reported.findings if one.level is Level.REVIEW]
    is_open = any(mark_of(one) is Mark.REVIEW for one in reviews)
    lock = clipped(shown(reported.file.with_suffix(".lock")), _REASON)
    if not reviews or (is_open and all(one.unapproved for one in reviews)):
        return ""
    if reported.covered and is_open:
        return (
            "If it may stand, the author acknowledges it in this pull request, as below. The reason is then "
            f"in {lock}: read it and approve, as a code owner of that (by {reported.covered} at the base)."
        )
    if reported.covered:
        is_wrong = any(mark_of(one) is Mark.ERROR for one in reported.findings)
        first = "Once the errors are mended, approve" if is_wrong else "Approve"
        owner = f"a code owner of {lock} (by {reported.covered} at the base)"
        return f"{first} as {owner}, if the reasons convince."
    if not is_open:
        return f"The lock's word is enough here: no CODEOWNERS at the base covers {lock}."
    return (
        f"No CODEOWNERS at the base covers {lock}: this stays red until a person merges over it, or the "
        "base's workflow passes --acknowledge lock."
    )


class Standing(NamedTuple):
    """What fails at the base already, of one kind."""

    code: str
    few: str
    """What it is, in few words."""
    names: tuple[tuple[str, str], ...]
    """What it is about, each with what this pull request does to that."""
    more: int
    """How many more there are."""


def standing(reported: Reported) -> tuple[str, list[Standing]]:
    """Return what fails at the base already, in one line, and of each kind what it is about."""
    told = f"At the base already, and not of this pull request: {counted(reported.standing)}"
    gone = {row.name for row in rows_of(reported) if row.change in (Change.GONE, Change.WITHDRAWN)}
    groups: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
    for one in reported.standing:
        about = {one.id, *one.about.replace(",", "").split()} & gone
        groups.setdefault((one.code, brief(one)), {})[clipped(one.id, _WORD), _removes(one, about)] = None
    kinds = [
        Standing(code, few, tuple(names)[:_NAMED], max(0, len(names) - _NAMED))
        for (code, few), names in groups.items()
    ]
    return told if kinds else "", kinds


def _removes(finding: Finding, gone: set[str]) -> str:
    """Return that a pull request takes out what a finding is about; empty where it does not."""
    if not gone:
        return ""
    if finding.id in gone:
        return "removed by this pull request"
    return f"this pull request removes {', '.join(clipped(name, _WORD) for name in sorted(gone))}"


def _named(names: Iterable[str]) -> str:
    several = [clipped(name, _WORD) for name in dict.fromkeys(names)]
    few = several if len(several) <= _NAMED + 1 else several[:_NAMED]
    return ", ".join(few) + (f" and {len(several) - len(few)} more" if len(few) < len(several) else "")
