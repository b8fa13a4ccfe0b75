"""Readings that are physically impossible: they say that the instrument is wrong, whatever the rest says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.judge.findings import number
from pytest_prereg.judge.model import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.evidence.model import RecordedRepeat
    from pytest_prereg.judge.findings import Doubt
    from pytest_prereg.judge.question import Question


def impossible(question: Question, repeats: Iterable[RecordedRepeat]) -> Doubt | None:
    """The first reading outside its metric's registered bounds, if there is one.

    Repeats that were set aside count too: what took an impossible reading took the others.
    """
    if not question.bounds:
        return None
    for repeat in repeats:
        for name, (least, greatest) in question.bounds.items():
            value = repeat.values.get(name, [])
            for one in value if isinstance(value, list) else [value]:
                if not least <= one <= greatest:
                    where = f"repeat {repeat.id} has {name} = {number(one)}"
                    return Reason.INSTRUMENT, f"{where}, outside [{number(least)}, {number(greatest)}]"
    return None
