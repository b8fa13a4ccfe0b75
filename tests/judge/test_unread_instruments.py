"""Series in which an instrument could not be read: in none of the repeats, or in those that a body chose."""

from __future__ import annotations

from functools import partial

import pytest


@pytest.fixture
def series(study):
    """Four repeats are planned, and none is there."""
    metrics = {"t": {"unit": "1", "instrument": "kernel-intervals"}, "other": {"unit": "1"}}
    return partial(study, planned={"": 4}, metrics=metrics)


def unread(series, *values, **more):
    """Adds repeats that are invalid for want of a reading of ``t``, with what else they have."""
    more = {"unreadable": {"t": "kernel-intervals"}, "cause": "there is no device", "instruments": {}, **more}
    return series.extend(*values, outcome="invalid", **more)


def reason(series) -> str:
    return str(series.judge().reason)


def test_where_no_repeat_could_be_read_it_is_the_instrument(series):
    judgement = unread(series(), *4 * [None]).judge()
    assert (judgement.verdict, judgement.reason) == ("inconclusive", "instrument")
    assert judgement.detail == (
        'kernel-intervals could be read in no repeat, so that nothing is known of "t": there is no device'
    )


@pytest.mark.parametrize("kept", ["ok", "invalid"])
def test_where_one_repeat_was_read_the_others_are_set_aside(series, kept):
    made = unread(series(), *3 * [None]).add(1.0, outcome=kept, instruments={"t": "kernel-intervals"})
    assert reason(made) == "excluded"


def test_what_a_body_declares_invalid_itself_is_set_aside(series):
    made = unread(series(), *3 * [None]).add(outcome="invalid", cause="I saw it", instruments={})
    assert reason(made) == "excluded"


def test_nor_is_it_an_excuse_where_the_instrument_read_something_else(series):
    """A body may have looked first, and then had none for the metric that is judged."""
    made = unread(series(), *3 * [None])
    assert reason(unread(made, None, instruments={"peek": "kernel-intervals"})) == "excluded"


def test_nor_where_another_than_the_declared_one_could_not_be_read(series):
    assert reason(unread(series(), *4 * [None], unreadable={"t": "nvml-samples"})) == "excluded"


@pytest.mark.parametrize("declared", [None, "square-wave"])
def test_but_what_a_calibration_reads_is_declared_as_taken_by_what_knows(series, declared):
    made = series(metrics={"t": {"unit": "1", "instrument": declared}})
    assert reason(unread(made, *4 * [None])) == "instrument"


def test_failures_are_not_covered_by_it(series):
    assert reason(unread(series(), *3 * [None]).add(outcome="task-failed")) == "task-failed"


def test_of_a_contrast_both_arms_have_none(series):
    arms = series(contrast="a - b", planned={"a": 2, "b": 2}, predicts="<= 2", falsifier="> 3")
    unread(arms, None, None, arm="a")
    assert reason(unread(arms, None, None, arm="b")) == "instrument"
    other = series(contrast="a - b", planned={"a": 2, "b": 2}, predicts="<= 2", falsifier="> 3")
    unread(other, None, None, arm="a")
    assert reason(other.extend(1.0, 1.1, arm="b", instruments={"t": "kernel-intervals"})) == "excluded"


def test_what_was_recorded_beside_it_is_not_measured_anew(series):
    """Its values were there to be seen."""
    made = unread(series(quantity="other"), *({"other": value} for value in (1.0, 1.1, 1.2, 1.3)))
    judgement = made.judge()
    assert (judgement.reason, judgement.detail) == (
        "excluded",
        "every repeat is invalid for want of a reading: there is no device",
    )
