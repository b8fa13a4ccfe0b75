"""What amending says: nothing beside the id before there are data, and after that what becomes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.judge.findings import plural
from pytest_prereg.judge.model import Verdict
from pytest_prereg.report.columns import wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.amending import Amended

_INDENT = 9


def amended_lines(amended: Amended, width: int = 80) -> Iterator[str]:
    """Yield what is told of a prediction that was amended, no line wider than ``width``.

    Args:
        amended: The prediction, and what data there were for it.
        width: Of the text, in characters.
    """
    yield f"{'amended':<{_INDENT}}{amended.prediction}"
    for text in _told(amended) if amended.is_late else ():
        yield from (" " * _INDENT + line for line in wrapped(text, width - _INDENT))


def _told(amended: Amended) -> Iterator[str]:
    repeats = f"there are data for what was registered ({plural(amended.repeats, 'repeat')})"
    yield f"{repeats}, and {_verdict(amended)}"
    yield "what was measured by now makes it exploratory (mismatch), whatever it says"
    yield (
        f"better: take it back ({amended.back}), and register what you expect now under an "
        "id of its own, a successor, which is measured anew"
    )


def _verdict(amended: Amended) -> str:
    if amended.verdict is None:
        return f"no verdict on them that could be kept: {amended.why}"
    source = "the lock recorded" if amended.is_recorded else "they give"
    kept = f'{source} "{amended.verdict}": this amendment keeps that, and the lock records it no more'
    return f"{kept}; it stays counted as refuted" if amended.verdict == Verdict.REFUTED else kept
