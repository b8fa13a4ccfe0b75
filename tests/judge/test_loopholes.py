"""Ways in which a claim could get a verdict that its evidence does not bear."""

from __future__ import annotations

import pytest

from pytest_prereg.judge.model import Verdict

EXACT = {"t": {"unit": "1", "exact": True}}


class TestEdges:
    @pytest.mark.parametrize("value", [2.0**53 - 1, 2.0**60, 3 * 2.0**60])
    def test_a_count_of_more_than_fifteen_digits_is_itself(self, study, value):
        exactly = f"[{int(value)}, {int(value)}]"
        made = study(metrics=EXACT, predicts=exactly, falsifier=f"outside {exactly}")
        assert made.extend(*[value] * 3).judge().verdict is Verdict.SUPPORTED

    def test_a_number_typed_in_full_is_the_number_measured(self, study):
        made = study(metrics=EXACT, quantity="t / 3", predicts=f">= {1 / 3!r}", falsifier=f"< {1 / 3!r}")
        assert made.extend(1.0, 1.0, 1.0).judge().verdict is Verdict.SUPPORTED
