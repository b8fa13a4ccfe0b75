from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_prereg.judge import log_log_slope

positive = st.floats(0.01, 1e4)


@given(
    st.lists(st.tuples(st.integers(1, 10**6), positive), min_size=2, max_size=12, unique_by=lambda p: p[0])
)
def test_the_slope_is_scipys(points):
    levels, values = zip(*points, strict=True)
    expected = stats.linregress(np.log(levels), np.log(values)).slope
    assert log_log_slope(levels, values) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("exponent", [-1.0, 0.5, 2.0])
def test_a_power_law_gives_its_exponent(exponent):
    levels = [2.0, 3.0, 8.0, 8.0]
    assert log_log_slope(levels, [7 * level**exponent for level in levels]) == pytest.approx(exponent)


@pytest.mark.parametrize(
    ("levels", "values"),
    [
        ([], []),
        ([2.0], [1.0]),
        ([2.0, 2.0], [1.0, 3.0]),
        ([0.0, 1.0], [1.0, 1.0]),
        ([1.0, 2.0], [1.0, -1.0]),
        ([1.0, 2.0], [1.0]),
    ],
)
def test_what_has_no_slope_is_refused(levels, values):
    with pytest.raises(ValueError, match="values"):
        log_log_slope(levels, values)
