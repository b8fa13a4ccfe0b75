from __future__ import annotations

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_prereg.registry.refusals import RefusedError
from pytest_prereg.registry.regions import (
    Region,
    Span,
    complement,
    contains,
    describe,
    edges,
    overlaps,
    parse_region,
    parsed,
    scaled,
)

NUMBERS = st.floats(-1e6, 1e6).map(lambda x: float(f"{x:.6g}"))


@st.composite
def texts(draw: st.DrawFn) -> str:
    low, high = sorted([draw(NUMBERS), draw(NUMBERS)])
    sign = draw(st.sampled_from(["<=", "<", ">=", ">"]))
    distance = abs(high)
    return draw(
        st.sampled_from(
            [
                f"{sign} {low!r}",
                f"[{low!r}, {high!r}]",
                f"outside [{low!r},{high!r}]",
                f"within {distance!r} of {low!r}",
                f"within 5% of {low!r}",
            ]
        )
    )


REGIONS = texts().map(parse_region)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<= 0.25", "≤ 0.25"),
        ("<2", "< 2"),
        (">=-1.5e3", "≥ -1500"),
        ("> +.5", "> 0.5"),
        ("[-5, 5]", "[-5, 5]"),
        ("outside [-10, 10]", "outside [-10, 10]"),
        ("<= 0.01 s/token", "≤ 0.01 s/token"),
        ("<= 500ms", "≤ 500 ms"),
        ("<= 5 s / token", "≤ 5 s/token"),
        ("> 3 1/s", "> 3 1/s"),
        ("[1, 2] s", "[1, 2] s"),
        ("[1 s, 2 s]", "[1, 2] s"),
        ("outside [54.95, 55.05] %", "outside [54.95, 55.05] %"),
        ("within 5% of 100", "[95, 105]"),
        ("within 5 % of -100 ms", "[-105, -95] ms"),
        ("within 0.1 of 0.3", "[0.2, 0.4]"),
        ("within 5 ms of 100 ms", "[95, 105] ms"),
        ("within 5 of 100 ms", "[95, 105] ms"),
    ],
)
def test_every_form_is_read_and_shown_in_its_normal_form(text: str, shown: str) -> None:
    assert describe(parse_region(text)) == shown


def test_two_ways_of_writing_one_region_are_one_region() -> None:
    assert parse_region("within 5% of 100") == parse_region("[ 95,105.0 ]")
    assert parse_region("within 0.1 of 0.3") == parse_region("[0.2, 0.4]")
    assert parse_region("< -0") == parse_region("< 0")
    assert parse_region("<= 1_000 s/token") == parse_region("<= 1e3 s / token")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no region"),
        ("0.25", "is no region"),
        ("=< 1", "is no region"),
        ("<= 1,000", "is no region"),
        ("<= 1 2", "is no region"),
        ("[1, 2, 3]", "is no region"),
        ("[2, 1]", "low end is above its high end"),
        ("<= nan", "not finite"),
        ("[-inf, 1]", "leave that side open"),
        ("<= 1e999", "not a finite number"),
        ("within 1e308 of 1.7e308", "not a finite number"),
        ("within -1 of 3", "negative distance"),
        ("within 5 ms of 1 s", "two units"),
        ("[1 s, 2] ms", "two units"),
        ("within 5% of 50 %", "could be a share of it or so many points"),
        ("otherwise", '"falsifier" only'),
        ("<= 5 s//token", "is no unit"),
    ],
)
def test_a_region_that_cannot_be_read_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(RefusedError, match=message) as refused:
        parse_region(text)
    assert refused.value.code in ("PR032", "PR021")


@given(REGIONS, NUMBERS)
def test_a_value_is_in_a_region_or_in_its_complement_and_never_in_both(region: Region, value: float) -> None:
    rest = complement(region)
    assert contains(region, value, value) != contains(rest, value, value)
    assert not overlaps(region, rest)
    assert complement(rest) == region


@given(REGIONS, REGIONS)
def test_regions_overlap_exactly_if_some_edge_neighbourhood_is_shared(a: Region, b: Region) -> None:
    ends = [*edges(a), *edges(b), 0.0]
    between = [(x + y) / 2 for x in ends for y in ends]
    candidates = [
        *between,
        *(math.nextafter(x, s) for x in ends for s in (math.inf, -math.inf)),
        -1e300,
        1e300,
    ]
    shared = any(contains(a, x, x) and contains(b, x, x) for x in candidates)
    assert overlaps(a, b) == overlaps(b, a) == shared


@given(REGIONS, NUMBERS, NUMBERS)
def test_an_interval_lies_in_a_region_only_if_all_of_it_does(region: Region, a: float, b: float) -> None:
    low, high = min(a, b), max(a, b)
    inside = [low, high, (low + high) / 2, *(edge for edge in edges(region) if low < edge < high)]
    if contains(region, low, high):
        assert all(contains(region, x, x) for x in inside)
    elif len(region.spans) == 1:
        assert not all(contains(region, x, x) for x in (low, high))


def test_an_infinite_interval_needs_a_side_that_is_open() -> None:
    assert contains(parse_region("<= 3"), -math.inf, 3.0)
    assert not contains(parse_region("< 3"), -math.inf, 3.0)
    assert not contains(parse_region("[0, 3]"), -math.inf, 3.0)
    assert contains(parse_region("outside [0, 3]"), 4.0, math.inf)
    assert not contains(parse_region("outside [0, 3]"), -1.0, 4.0)


def test_the_digest_form_has_null_for_an_open_side() -> None:
    assert parsed(parse_region("<= 0.25")) == [[None, False, 0.25, True]]
    assert parsed(parse_region("outside [1, 2]")) == [[None, False, 1.0, False], [2.0, False, None, False]]


def test_edges_have_the_fifteen_digits_that_intervals_have() -> None:
    for text in ("[1152921504606846976, 1152921504606846976]", "within 0 of 1152921504606846976"):
        assert parse_region(text) == parse_region("[1.15292150460685e18, 1.15292150460685e18]")
    assert parse_region("<= 1.7976931348623157e308").spans[0].high == sys.float_info.max


def test_scaling_keeps_fifteen_digits_and_names_the_unit() -> None:
    assert scaled(parse_region("[1100, 3300] ms"), 0.001, "s") == parse_region("[1.1, 3.3] s")
    assert scaled(parse_region("> 3"), 0.1).spans == (Span(low=0.3),)


@given(
    st.text(max_size=30)
    | st.lists(st.sampled_from(["within ", "5", "%", " of ", "[", "]", ",", "<=", " s", "-", "e9", "."])).map(
        "".join
    )
)
def test_any_text_is_a_region_or_refused(text: str) -> None:
    try:
        region = parse_region(text)
    except RefusedError:
        return
    assert region.spans
    assert all(math.isfinite(edge) for edge in edges(region))
