"""The reasons that a lock keeps: whoever reads the study has to judge them."""

from __future__ import annotations

from pytest_prereg.errors import Problem, UsageError


def has_words(reason: str) -> bool:
    """Whether a reason says anything at all: a lock can be edited by hand."""
    return any(map(str.isalnum, reason))


def given_reason(reason: str) -> str:
    """Return a reason without the spaces around it.

    Raises:
        UsageError: It says nothing (PR005).
    """
    if not has_words(reason):
        message = "this needs a reason: whoever reads the study has to judge it"
        raise UsageError(Problem(code="PR005", message=message, advice="Say it with --reason '…'"))
    return reason.strip()
