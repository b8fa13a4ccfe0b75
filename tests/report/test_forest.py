"""The plot of a verdict shows the zones that the interval touches, and no others."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pytest_prereg.registry.regions import Region, Span, contains, parse_region
from pytest_prereg.report.forest import forest


def plot(estimate, interval, predicts, falsifier, width=18):
    return forest(estimate, interval, parse_region(predicts), parse_region(falsifier), width)


def test_a_supported_interval_lies_in_the_predicted_region_only():
    assert plot(0.3, (0.1, 0.45), "<= 0.5", ">= 0.8") == "▒▒├▒▒•▒▒┤░░░░░▓▓▓▓"


def test_a_straddling_interval_reaches_from_one_region_into_the_other():
    row = plot(0.6, (0.4, 0.9), "<= 0.5", ">= 0.8")
    assert row.index("├") < row.index("░") < row.index("┤")
    assert row.startswith("▒")
    assert row.endswith("▓")


def test_a_point_prediction_keeps_a_place_between_two_distant_falsifiers():
    row = plot(54.9, (54.7, 55.1), "[54.95, 55.05]", "outside [0, 1000]", 20)
    assert "▒" in row
    assert row.startswith("▓")
    assert row.endswith("▓")


def test_an_unbounded_side_is_an_arrow():
    assert plot(None, (None, 41.0), "<= 30", "> 30").startswith("←")
    assert plot(None, (20.0, math.inf), "<= 30", "> 30").endswith("→")


def test_there_is_no_plot_without_an_interval_or_room():
    assert plot(1.0, None, "<= 30", "> 30", 12) == " " * 12
    assert plot(1.0, (0.0, 2.0), "<= 30", "> 30", 1) == " "


@pytest.mark.parametrize(
    ("predicts", "falsifier", "row"),
    [("<= 0", "> 0", "▒▒├▒▒▒▒▒•▒▒▒▒┤▓▓▓▓"), ("< 0", ">= 0", "▒▒├▒▒▒▒▒•▒▒▒▒▒┤▓▓▓")],
)
def test_an_end_on_the_threshold_stands_in_the_region_that_has_it(predicts, falsifier, row):
    assert plot(-0.5, (-1.0, 0.0), predicts, falsifier) == row


def test_a_single_predicted_value_has_a_place_of_its_own():
    assert plot(512.0, (512.0, 512.0), "[512, 512]", "outside [512, 512]") == "▓▓▓▓▓▓▓▓•▒▓▓▓▓▓▓▓▓"


def test_a_gap_of_a_few_roundings_leaves_the_falsifier_in_sight():
    row = plot(None, (128.0, 128.0), "<= 128", "> 128.0000000000001", 6)
    assert row[-1] == "▓"
    assert "┤" in row


numbers = st.floats(-1e3, 1e3).map(lambda value: round(value, 3))


@example(0.0, 5e-324, 0.0, 0.0, 6)  # no float lies between these
@example(0.0, 0.0, 0.0, 5e-324, 6)
@given(numbers, st.floats(0, 50), numbers, st.floats(0, 50), st.integers(6, 40))
def test_the_ends_stand_in_the_zones_of_the_values_they_stand_for(edge, gap, low, length, width):
    predicts = Region(spans=(Span(high=edge, high_closed=True),))
    falsifier = Region(spans=(Span(low=edge + gap),))
    high = low + length
    assume(math.isfinite(edge + gap))
    row = forest(None, (low, high), predicts, falsifier, width)
    assert len(row) == width
    left = min(row.index(mark) for mark in "├┤" if mark in row)
    if contains(predicts, low, high):
        assert set(row[row.index("┤") :]) >= {"▓"}
        assert "▓" not in row[left : row.index("┤")]
    if contains(falsifier, low, high):
        assert "▒" not in row[left:]
