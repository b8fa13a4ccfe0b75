"""What is told of a prediction that its evidence can't be judged, and what is left to do about it."""

from __future__ import annotations

import shlex

from pytest_prereg.errors import JudgeError, Problem


def unjudgeable(prediction: str, message: str, instead: str = "what can be") -> JudgeError:
    """Return PR140: a prediction has evidence that no verdict can be built on, and never will have one.

    Args:
        prediction: Its id.
        message: What is wrong with which values.
        instead: What to register in its place, as the object of a sentence.
    """
    advice = (
        f"It can't be judged, now or later. Register anew, under another id, {instead};\n"
        "and withdraw this one, which says so for good:\n"
        f"pytest-prereg withdraw {shlex.quote(prediction)} --reason '…'"
    )
    return JudgeError(Problem(code="PR140", message=message, advice=advice))
