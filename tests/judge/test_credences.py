from __future__ import annotations

import pytest

from pytest_prereg.judge.credences import Credence, calibration
from pytest_prereg.judge.model import Verdict

YES, NO, UNKNOWN = Verdict.SUPPORTED, Verdict.REFUTED, Verdict.INCONCLUSIVE


def test_the_score_of_a_forecast():
    # A forecast of 70 % rain scores 0.09 when it rains and 0.49 when it does not (Brier 1950, textbook example).
    assert calibration([Credence(0.7, YES)]).brier == pytest.approx(0.09)
    assert calibration([Credence(0.7, NO)]).brier == pytest.approx(0.49)
    assert calibration([Credence(0.7, YES), Credence(0.7, NO)]).brier == pytest.approx(0.29)


def test_saying_a_half_scores_a_quarter_whatever_happens():
    assert calibration([Credence(0.5, YES), Credence(0.5, NO), Credence(0.5, NO)]).brier == 0.25


def test_what_is_inconclusive_is_counted_and_not_scored():
    score = calibration([Credence(0.9, YES), Credence(0.9, UNKNOWN), Credence(0.1, UNKNOWN)])
    assert score.brier == pytest.approx(0.01)
    assert (score.decided, score.inconclusive) == (1, 2)


def test_nothing_decided_has_no_score():
    assert calibration([Credence(0.9, UNKNOWN)]).brier is None
    assert calibration([]).brier is None
