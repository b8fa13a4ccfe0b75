"""How much of a window intervals cover: by the fast way, held against counting every nanosecond."""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_prereg.measure.instruments import occupancy as module
from pytest_prereg.measure.instruments.occupancy import (
    Coverage,
    coverage,
    covered,
    first_to_last,
    median_length,
    occupancy,
    occupancy_by_stream,
    summed,
)

LEAST, MOST = -(2**63), 2**63 - 1

spans = st.tuples(st.integers(-30, 30), st.integers(0, 25)).map(lambda span: (span[0], sum(span)))
span_lists = st.lists(spans, max_size=12)
few = settings(max_examples=25)
windows = st.tuples(st.integers(-25, 25), st.integers(0, 40)).map(lambda span: (span[0], sum(span)))


def columns(pairs):
    """Starts and ends, as the functions take them."""
    return [start for start, _ in pairs], [end for _, end in pairs]


def busy_instants(pairs, low, high):
    """Each nanosecond of the window that an interval covers, one by one."""
    return {instant for start, end in pairs for instant in range(max(start, low), min(end, high))}


def longest_gap(pairs, low, high):
    """The longest run of nanoseconds of the window that no interval covers, nor one without length divides."""
    busy = busy_instants(pairs, low, high)
    points = {start for start, end in pairs if start == end}
    longest = run = 0
    for instant in range(low, high):
        run = 0 if instant in busy else 1 if instant in points else run + 1
        longest = max(longest, run)
    return longest


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    """So small that few intervals fill several."""
    monkeypatch.setattr(module, "CHUNK", 3)


@pytest.fixture(params=["as one", "apart"])
def way(request, monkeypatch):
    """Of sorting."""
    if request.param == "apart":
        monkeypatch.setattr(module, "_packed", lambda *_: None)


@pytest.mark.usefixtures("way")
@given(pairs=span_lists, window=windows)
@example(pairs=[], window=(0, 9))
@example(pairs=[(3, 3)], window=(0, 9))
@example(pairs=[(2, 4), (4, 6)], window=(0, 9))
@example(pairs=[(5, 6), (0, 9), (1, 2)], window=(0, 9))
@example(pairs=[(-5, 0), (9, 12)], window=(0, 9))
@example(pairs=[(1, 2)], window=(4, 4))
def test_the_union_is_what_counting_every_nanosecond_finds(pairs, window):
    expected = Coverage(len(busy_instants(pairs, *window)), longest_gap(pairs, *window))
    assert coverage(*columns(pairs), *window) == expected


@few
@given(pairs=span_lists, window=windows)
def test_intervals_in_order_need_no_sort(pairs, window):
    found = coverage(*columns(pairs), *window)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_packed", "_sorted_apart"):
            patch.setattr(module, name, None)
        assert coverage(*columns(sorted(pairs)), *window) == found


@few
@given(pairs=span_lists, window=windows)
def test_durations_add_up_and_overlaps_count_again(pairs, window):
    expected = sum(len(busy_instants([pair], *window)) for pair in pairs)
    assert summed(*columns(pairs), *window) == expected


@few
@given(pairs=st.lists(spans, min_size=1, max_size=12), streams=st.data())
def test_each_stream_has_a_share_of_its_own(pairs, streams):
    lanes = streams.draw(st.lists(st.integers(-2, 3), min_size=len(pairs), max_size=len(pairs)))
    found = occupancy_by_stream(*columns(pairs), lanes, -20, 20)
    by_hand = {
        lane: [pair for pair, other in zip(pairs, lanes, strict=True) if other == lane] for lane in lanes
    }
    assert found == {lane: occupancy(*columns(some), -20, 20) for lane, some in by_hand.items()}


@few
@given(pairs=span_lists, window=windows)
def test_the_first_to_last_window_begins_and_ends_with_an_interval(pairs, window):
    busy = busy_instants(pairs, *window)
    found = first_to_last(*columns(pairs), *window)
    assert found == (len(busy) / (max(busy) + 1 - min(busy)) if busy else None)


@few
@given(pairs=st.lists(spans, min_size=1))
def test_the_median_length_is_of_whole_intervals(pairs):
    assert median_length(*columns(pairs)) == median(end - start for start, end in pairs)


def test_no_intervals_have_no_median_length():
    assert median_length([], []) is None


def test_a_trailing_wait_is_idle_and_a_first_to_last_window_does_not_see_it():
    starts = range(0, 300, 10)
    ends = range(10, 310, 10)
    assert occupancy(starts, ends, 0, 1000) == 0.3
    assert first_to_last(starts, ends, 0, 1000) == 1
    assert coverage(starts, ends, 0, 1000).longest_gap == 700


def test_two_streams_side_by_side_are_busy_once():
    pairs = [(0, 50), (25, 75)]
    assert occupancy(*columns(pairs), 0, 100) == 0.75
    assert summed(*columns(pairs), 0, 100) == 100
    assert occupancy_by_stream(*columns(pairs), [7, 13], 0, 100) == {7: 0.5, 13: 0.5}


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("low", [LEAST + 1, -1, 0, 1_796_019_451_696_184_162, MOST - 10_000])
def test_nothing_overflows_at_either_end_of_64_bits(low):
    starts, ends = [low + 900, low, LEAST], [MOST, low + 100, LEAST + 1]
    high = min(MOST, low + 10_000)
    assert covered(starts, ends, low, high) == high - low - 800
    assert summed(starts, ends, low, high) == high - low - 800


def test_the_longest_window_of_all_is_still_exact():
    assert covered([MOST - 1, 0], [MOST, MOST - 5], 0, MOST) == MOST - 4
    assert summed([0] * 5, [MOST] * 5, 0, MOST) == 5 * MOST


def test_a_duration_that_leaves_no_bits_for_a_start_is_sorted_apart():
    assert module._packed(np.array([5, 0]), np.array([9, 2]), 0, 10, bits=2) is None
    assert module._packed(np.array([5, 0]), np.array([8, 2]), 0, 10, bits=2) is not None
    assert covered([2**61, 0], [2**62, 2**60], 0, 2**62) == 2**61 + 2**60


def test_an_interval_that_ends_before_it_starts_is_named():
    with pytest.raises(ValueError, match="interval 4 ends at 7, before it starts at 8"):
        covered([0, 1, 2, 3, 8], [1, 2, 3, 4, 7], 0, 10)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([0], [1], 5, 4), ValueError, r"\[5, 4\) is no window"),
        (([0], [1], 0, 2**63), ValueError, "is not of 64 bits"),
        (([0], [1], -1, MOST), ValueError, "longer than 292 years"),
        (([0], [1], 0.0, 1), TypeError, "float"),
        (([0, 1], [1], 0, 1), ValueError, "2 starts, but 1 ends"),
        (([0.5], [1], 0, 1), TypeError, "starts are float64, not int64"),
        (([0], [2**63], 0, 1), TypeError, "ends are uint64, not int64"),
        (([[0]], [[1]], 0, 1), ValueError, "starts have 2 dimensions"),
    ],
)
def test_what_is_no_interval_or_window_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        covered(*arguments)


def test_a_window_without_length_has_no_share():
    with pytest.raises(ValueError, match="the window at 4 has no length"):
        occupancy([1], [9], 4, 4)


def test_a_stream_is_needed_for_each_interval():
    with pytest.raises(ValueError, match="1 streams for 2 intervals"):
        occupancy_by_stream([0, 1], [1, 2], [7], 0, 4)


def test_the_intervals_handed_over_stay_as_they_were():
    starts, ends = np.array([5, 0, 3]), np.array([9, 2, 4])
    coverage(starts, ends, 1, 8)
    assert starts.tolist() == [5, 0, 3]
    assert ends.tolist() == [9, 2, 4]
