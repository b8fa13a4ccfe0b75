"""What each code of a finding means, in words: for the tools that show a rule beside what breaks it.

The documentation has the same words; a test compares them.
"""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """A kind of finding."""

    what: str
    """What is found."""
    to_do: str
    """What to do about it."""
    folded: str
    """What several of them are, behind their number."""
    brief: str
    """What one is, in few words, behind its code."""


RULES = {
    "PR201": Rule(
        "a prediction was registered", "nothing: this is how it should be", "registered", "registered"
    ),
    "PR202": Rule(
        "what was registered was amended; as an error, without an amendment that says so",
        "read the reason, and what it was before; a successor (`follows`) is cleaner after the data",
        "amended",
        "amended",
    ),
    "PR203": Rule(
        "a registered prediction is gone from the study or the lock, or its withdrawal is; as a notice, it "
        "was withdrawn, or put back",
        "put it back; `pytest-prereg withdraw ID --reason TEXT` takes it out and keeps it counted",
        "withdrawn or put back",
        "removed, not withdrawn",
    ),
    "PR204": Rule(
        "registered and judged in one pull request",
        "merge it with its commits, or register in a pull request of its own; a lock tag of the registration "
        "saves the standing in a squash, and not the review",
        "registered and judged in one pull request",
        "registered and judged in one pull request",
    ),
    "PR205": Rule(
        "a recorded verdict was changed, or series of one claim disagree",
        "look at both, and say why one of them stands",
        "with another verdict than before",
        "verdict changed",
    ),
    "PR206": Rule(
        "a verdict is about an earlier version of its subject",
        "measure the guard anew: `pytest --prereg`",
        "about an earlier version of their subject",
        "about an earlier version of its subject",
    ),
    "PR207": Rule(
        "evidence was removed or altered",
        "bring it back from git",
        "of evidence removed or altered",
        "evidence removed or altered",
    ),
    "PR208": Rule(
        "an exclusion, an invalidation or a rule came after the data",
        "judge whether the reason would have been given for any other value",
        "set aside after the data",
        "set aside after the data",
    ),
    "PR209": Rule(
        "a registration was changed so that it is easier to support, harder to refute, or asks another "
        "question",
        "a review: look at it, and acknowledge it; an error can't be acknowledged: restore what was "
        "registered, or withdraw it",
        "made easier to meet",
        "easier to meet than registered",
    ),
    "PR210": Rule(
        "a quoted number is not what is recorded, or can't be quoted: nothing is recorded, or it no longer "
        "follows; or something looks like a citation and is none",
        "`pytest-prereg cite` writes what is recorded",
        "quoted otherwise than recorded",
        "quoted otherwise than recorded",
    ),
    "PR211": Rule(
        "the recorded verdict doesn't follow from the evidence, or the verdict of what is to be withdrawn "
        "can't be recorded yet",
        "restore the lock, or record again",
        "recorded verdicts that do not follow",
        "verdict doesn't follow from the evidence",
    ),
    "PR212": Rule(
        "the evidence doesn't come after its registration, or git can't say",
        "the verdict is exploratory; a clone needs the whole history",
        "not registered before their evidence",
        "not registered before its evidence",
    ),
    "PR213": Rule(
        "a series was abandoned or voided, or a session never finished",
        "finish it, or judge whether the reason would have been given for any other outcome",
        "abandoned, voided or not finished",
        "series abandoned, voided or not finished",
    ),
    "PR214": Rule(
        "two predictions of one question, of which not both can be right, or one is for certain",
        "say which of them was expected, and acknowledge it, or withdraw one",
        "that contradict each other",
        "contradictory pair",
    ),
    "PR215": Rule(
        "a prediction was judged after its withdrawal",
        "restore the lock: what is withdrawn keeps the verdict that it had",
        "judged after their withdrawal",
        "judged after its withdrawal",
    ),
    "PR216": Rule(
        "pilots ran before the registration, which says that no data were seen, or imported data were known "
        "before it",
        'amend it to `data-seen = "pilot"`, or say why it stands',
        "with data before the registration",
        "data before the registration",
    ),
    "PR102": Rule(
        "a prediction is not registered, or not in the lock at HEAD",
        "`pytest-prereg lock`, and commit",
        "not registered",
        "not registered",
    ),
    "PR152": Rule(
        "the lock acknowledges what is not found",
        "see whether what it was about is still there; if so, it was acknowledged under other words",
        "acknowledged and not found",
        "acknowledged and not found",
    ),
}


def rule_of(code: str) -> Rule:
    """Return what a code means; for one of the other messages of the tool, where to read it."""
    other = Rule(
        "the study, its lock or its evidence is not sound", "see the error codes", f"of {code}", "not sound"
    )
    return RULES.get(code, other)


COUNTS = {
    "PR202": ("amendment", "amendments"),
    "PR203": ("removed, not withdrawn", "removed, not withdrawn"),
    "PR204": ("registered and judged", "registered and judged"),
    "PR205": ("recorded verdict in question", "recorded verdicts in question"),
    "PR206": ("about an earlier version of its subject", "about earlier versions of their subjects"),
    "PR207": ("file of evidence removed or altered", "files of evidence removed or altered"),
    "PR208": ("set aside after the data", "set aside after the data"),
    "PR209": ("made easier to meet", "made easier to meet"),
    "PR210": ("number misquoted", "numbers misquoted"),
    "PR211": ("verdict that does not follow", "verdicts that do not follow"),
    "PR212": ("not registered before its evidence", "not registered before their evidence"),
    "PR213": ("series abandoned, voided or not finished", "series abandoned, voided or not finished"),
    "PR214": ("contradictory pair", "contradictory pairs"),
    "PR215": ("judged after its withdrawal", "judged after their withdrawal"),
    "PR216": ("with data before its registration", "with data before their registration"),
    "PR152": ("acknowledged and not found", "acknowledged and not found"),
}
"""What one finding is behind its number, and what several are."""
OTHER = "other flaw", "other flaws"
"""The same of a code that is no rule."""
