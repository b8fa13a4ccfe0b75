"""The shortcut for plain means gives, to the last digit, what the general way gives, or declines."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_prereg.errors import JudgeError
from pytest_prereg.judge import verdicts
from pytest_prereg.judge.model import Verdict


@pytest.fixture(scope="module")
def ways():
    """Both judgements of a study: through the shortcut, and with the shortcut closed; errors as text."""

    def told(made):
        try:
            return made.judge()
        except JudgeError as error:
            return str(error)

    def both(made):
        taken = []
        with pytest.MonkeyPatch.context() as patch:
            shortcut = verdicts.judge_plain
            patch.setattr(verdicts, "judge_plain", lambda *args: taken.append(shortcut(*args)) or taken[-1])
            first = told(made)
            patch.setattr(verdicts, "judge_plain", lambda *_: None)
            return first, told(made), bool(taken) and taken[-1] is not None

    return both


def planned(study, values, **more):
    made = study(planned={"": len(values)}, predicts="<= 2", falsifier="> 2.2", **more)
    return made.extend(*[float(value) for value in values], machine="m")


steady = st.lists(st.floats(1.8, 2.4).map(lambda value: round(value, 3)), min_size=1, max_size=40)
wild = st.lists(
    st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1e-300, 1e155, 1e300, -1e306, 1e306, 2.0]),
    min_size=1,
    max_size=12,
)


@given(steady | wild, st.sampled_from([0.8, 0.95, 0.999]), st.sampled_from([1.0, 0.001, 1000.0]))
def test_both_ways_give_one_record(study, ways, values, confidence, scale):
    first, second, _ = ways(planned(study, values, confidence=confidence, scale=scale))
    assert first == second


def test_plain_values_take_the_shortcut_to_every_verdict(study, ways):
    noise = [0.01, -0.02, 0.03, 0.0, -0.01, 0.02, -0.03]
    for centre, verdict in (
        (1.5, "supported"),
        (3.0, "refuted"),
        (2.0, "inconclusive"),
        (2.1, "inconclusive"),
    ):
        first, second, short = ways(planned(study, [centre + one for one in noise]))
        assert short
        assert first == second
        assert first.verdict is Verdict(verdict)


CHANGES = {
    "failed": {"outcome": "task-failed", "values": {}},
    "timed out": {"outcome": "timeout", "values": {}},
    "invalid": {"outcome": "invalid"},
    "elsewhere": {"machine": "other"},
    "unknown machine": {"machine": None},
    "not a number": {"values": {"t": math.nan}},
    "endless": {"values": {"t": math.inf}},
    "missing": {"values": {}},
    "samples": {"values": {"t": [1.0, 2.0]}},
    "beyond": {"index": 99},
    "out of order": {"position": -5},
    "of no instrument": {"instruments": {}},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("at", [0, 3, 6])
def test_one_repeat_that_is_not_plain(study, ways, change, at):
    made = planned(study, [1.5, 1.52, 1.49, 1.51, 1.5, 1.53, 1.48])
    made.repeats[at] = msgspec.structs.replace(made.repeats[at], **CHANGES[change])
    first, second, _ = ways(made)
    assert first == second


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.9],  # rising
        [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 9.0],  # skewed
        [1.0, 1.0, 1.5, 1.0, 1.5, 1.0, 1.0],  # two values
        [1.0] * 7,
        [1e200, 2e200, 1.5e200],
        [1e-200, 2e-200, 1.5e-200],
        [1e155, 1.00001e155, 1.00002e155],  # squares of deviations are numbers, that of the mean is none
        [math.inf, -math.inf, 1.0],
    ],
)
def test_what_a_sample_as_a_whole_may_be(study, ways, values):
    first, second, short = ways(planned(study, values))
    assert first == second
    assert not short


@pytest.mark.parametrize(
    "metric",
    [{"exact": True, "unit": "1"}, {"unit": "s", "cap": 1.52}, {"unit": "s", "resolution": 0.01}],
)
def test_what_a_metric_may_say(study, ways, metric):
    first, second, short = ways(
        planned(study, [1.5, 1.52, 1.49, 1.51, 1.5, 1.53, 1.48], metrics={"t": metric})
    )
    assert first == second
    assert not short


def test_faults_bounds_and_another_number_of_repeats(study, ways):
    values = [1.5, 1.52, 1.49, 1.51, 1.5, 1.53, 1.48]
    faulty = planned(study, values)
    faulty.faults = ("e/1/1",) * 3
    bounded = planned(study, values)
    bounded.bounds = {"t": (0.0, 1.5)}
    short = planned(study, values)
    short.planned = {"": 9}
    unplanned = planned(study, values)
    unplanned.planned = None
    for made in (faulty, bounded, short, unplanned):
        first, second, taken = ways(made)
        assert first == second
        assert not taken
