"""How well authors knew: their credences held against the verdicts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.judge.model import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable


class Credence(NamedTuple):
    """What an author gave for a verdict of *supported*, if one is reached, and what was reached."""

    credence: float
    verdict: Verdict


class Calibration(NamedTuple):
    """The score of several credences."""

    brier: float | None
    """Mean squared difference from 1 for supported and 0 for refuted; ``None`` if nothing was decided."""
    decided: int
    inconclusive: int


def calibration(credences: Iterable[Credence]) -> Calibration:
    """Return the Brier score of credences, as P(supported | decided) (Brier 1950, for two outcomes).

    0 is best, and 0.25 is what always saying a half gives. An inconclusive verdict has no outcome to be held
    against. How many there are belongs beside the score, or asking what nobody can decide would cost nothing.
    """
    pairs = list(credences)
    decided = [pair for pair in pairs if pair.verdict is not Verdict.INCONCLUSIVE]
    squares = [(pair.credence - (pair.verdict is Verdict.SUPPORTED)) ** 2 for pair in decided]
    score = math.fsum(squares) / len(squares) if squares else None
    return Calibration(brier=score, decided=len(decided), inconclusive=len(pairs) - len(decided))
