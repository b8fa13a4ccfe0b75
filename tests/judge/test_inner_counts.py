from __future__ import annotations

import pytest
from scipy import optimize

from pytest_prereg.judge import inner_count


def test_the_optimum_of_kalibera_and_jones():
    """Repeats of two minutes that vary by 2 %, with samples of two seconds that vary by 5 %."""
    assert inner_count(120, 2, 0.02, 0.05) == pytest.approx(19.36, abs=0.01)


@pytest.mark.parametrize("case", [(120.0, 2.0, 0.02, 0.05), (3.0, 5.0, 1.0, 4.0)])
def test_the_optimum_has_the_least_variance_for_the_time(case):
    run_cost, sample_cost, run_sd, sample_sd = case
    found = optimize.minimize_scalar(
        lambda m: (run_cost + m * sample_cost) * (run_sd**2 + sample_sd**2 / m),
        bounds=(0.01, 1000),
        method="bounded",
    )
    assert inner_count(*case) == pytest.approx(found.x, rel=1e-3)


@pytest.mark.parametrize("case", [(0, 2, 1, 1), (1, -2, 1, 1), (1, 2, 0, 1), (1, 2, 1, 0)])
def test_what_is_no_cost_or_variation_is_refused(case):
    with pytest.raises(ValueError, match="above 0"):
        inner_count(*case)
