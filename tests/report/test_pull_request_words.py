"""What a pull request does to a prediction, in words: kinds of changes, what moved, and what came first."""

from __future__ import annotations

import pytest
from found_samples import (
    CHANGED,
    FOUND_IN_IT,
    PULL_REQUEST,
    REGISTERED_IN,
    UNCHANGED,
    compared,
    finding,
    gated,
    recorded,
)
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pytest_prereg.audit.audited import Came
from pytest_prereg.audit.finding import Level
from pytest_prereg.report.findings.pull_request import Change, changes, rows_of
from pytest_prereg.report.findings.pull_request_words import count, moved, numbers_of, registration, remarks
from pytest_prereg.report.findings.rendering import rendered

NEW = {"is_at_base": False}
REGISTERED, MEASURED = compared("p", recorded(), recorded()).came
AFTERWARDS = replace(REGISTERED, follows=True)
EDITED = Came(what="edited", commit=REGISTERED_IN, follows=True)
CHAIN = "registered at the base in 2f1c0de3, then measured in 9ab33e14"
ANY = st.one_of(
    st.none(), st.floats(), st.integers(), st.sampled_from([10**400, -(10**400), 5e-324, 1.7e308, -0.0])
)


def change_of(one, *codes, level=Level.NOTICE):
    found = [finding(code, one.id, level) for code in codes]
    rows = rows_of(gated(*found, predictions=(one,)))
    return rows[0].change if rows else Change.NONE


@pytest.mark.parametrize(
    ("one", "codes", "change"),
    [
        (compared("p", recorded(), recorded()), (), Change.NONE),
        (compared("p", None, None), (), Change.NONE),
        (compared("p", recorded(), recorded("refuted")), ("PR205",), Change.VERDICT),
        (compared("p", recorded(), recorded(estimate=1.32)), ("PR205",), Change.AGAIN),
        (compared("p", recorded(), None), ("PR203",), Change.LOST),
        (compared("p", None, recorded()), (), Change.JUDGED),
        (compared("p", None, None, **NEW), ("PR201",), Change.REGISTERED),
        (compared("p", None, recorded(), **NEW), ("PR201", "PR204"), Change.BOTH),
        (compared("p", None, None, **NEW), ("PR202",), Change.AMENDED),
        (compared("p", recorded(), recorded(), **NEW), ("PR209",), Change.AMENDED),
        (compared("p", recorded(), recorded()), ("PR209",), Change.AMENDED),
        (compared("p", recorded(), recorded("refuted"), **NEW), ("PR209",), Change.VERDICT),
        (compared("p", None, None, status="unregistered", **NEW), (), Change.UNREGISTERED),
        (compared("p", recorded(), recorded(), status="withdrawn"), ("PR203",), Change.WITHDRAWN),
        (compared("p", recorded(), recorded(), status="withdrawn"), (), Change.NONE),
        (compared("p", recorded(), None, status="removed", order=None), ("PR203",), Change.GONE),
        (compared("p", None, None, status="removed", order=None), (), Change.NONE),
    ],
)
def test_what_is_done_to_a_prediction_is_told_by_its_ends_and_its_findings(one, codes, change):
    assert change_of(one, *codes) is change


def test_changes_are_counted():
    several = [compared(f"p{number}", recorded(), recorded("refuted")) for number in range(2)]
    assert changes(gated(predictions=(*several, *UNCHANGED))) == "2 verdicts changed, 25 unchanged"
    assert changes(gated(*FOUND_IN_IT, predictions=PULL_REQUEST)).startswith("1 removed, 1 verdict changed, ")


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (recorded(), recorded(), ""),
        (recorded(), None, ""),
        (None, recorded(), ""),
        (recorded(), recorded(unit="s"), ""),
        (recorded(estimate=None), recorded(), ""),
        (recorded("x", 2.0, (1.5, 2.5)), recorded("x", 3.0, (2.5, 3.5)), "+1.00 (+50 %)"),
        (recorded("x", 0.1, (0.0, 0.2)), recorded("x", -0.1, (-0.2, 0.0)), "-0.20"),
        (recorded("x", 0.0, (0.0, 0.2)), recorded("x", 0.1, (0.0, 0.2)), "+0.10"),
        (
            recorded("x", 2.0, (1.0, 3.0), unit="s"),
            recorded("x", 2.001, (1.0, 3.0), unit="s"),
            "+0.0010",
        ),
        (recorded("x", 54.9, (54.7, 55.1), unit="%"), recorded("x", 56.2, (56, 56.4), unit="%"), "+1.30"),
        (recorded("x", 1.0, (0.5, 1.5)), recorded("x", 90.0, (89.5, 90.5)), "+89.00"),
        (recorded("x", -2.0, (-3.0, -1.0)), recorded("x", -3.0, (-4.0, -2.0)), "-1.0 (-50 %)"),
        (recorded("x", float("nan")), recorded(), ""),
        (recorded("x", -1.7e308), recorded("x", 1.7e308), ""),
    ],
)
def test_by_how_much_the_estimate_moved_is_told_where_both_have_one(before, after, text):
    assert moved(compared("p", before, after)) == text


@given(
    ends=st.tuples(*(st.tuples(ANY, st.none() | st.tuples(ANY, ANY), ANY) for _ in "ab")),
    verdict=st.text(max_size=9),
)
def test_no_record_is_trusted_to_be_well_formed(ends, verdict):
    base, head = (
        recorded(verdict or "supported", estimate, interval, n=n, reason=verdict)
        for estimate, interval, n in ends
    )
    one = compared("p", base, head)
    assert all(len(text) <= 80 for text in (numbers_of(base), moved(one), count(one)))
    for form in ("terminal", "markdown"):
        assert rendered(gated(FOUND_IN_IT[2], predictions=(one,)), form)


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({}, "registered at the base in 2f1c0de3, then measured in 9ab33e14"),
        ({"registered": None}, "registered at the base, before it was measured in 9ab33e14"),
        (NEW, "registered here in 2f1c0de3, then measured in 9ab33e14"),
        (NEW | {"measured": None, "head": None}, "registered here in 2f1c0de3, not measured yet"),
        ({"order": "after-evidence"}, f"its evidence was not taken for it: {CHAIN}"),
        (
            {"order": "after-evidence", "came": (MEASURED, AFTERWARDS)},
            "registered after its evidence: measured in 9ab33e14, then registered at the base in 2f1c0de3",
        ),
        (
            {"order": "after-evidence", "came": (REGISTERED, replace(MEASURED, follows=False))},
            f"not registered before its evidence: {CHAIN.replace('then', 'and on another line of commits')}",
        ),
        ({"order": "after-evidence", "measured": None}, "registered after its evidence"),
        (
            {"order": "simultaneous", "came": (REGISTERED, replace(MEASURED, commit=REGISTERED_IN))},
            "registered and measured in the same commit, 2f1c0de3",
        ),
        (
            {"order": "mismatch", "came": (REGISTERED, MEASURED, EDITED)},
            f"not as it is registered: {CHAIN}, then edited here in 2f1c0de3",
        ),
        (
            {"order": "mismatch", "came": (REGISTERED, MEASURED, Came(what="edited"))},
            f"not as it is registered: {CHAIN}; its text is another now",
        ),
        ({"order": "mismatch", "registered": None}, "the evidence is of another registration"),
        (
            {"came": (replace(REGISTERED, on="2026-11-28"), replace(MEASURED, on="2026-11-30"))},
            "registered at the base in 2f1c0de3 (2026-11-28), then measured in 9ab33e14 (2026-11-30)",
        ),
        ({"order": "unverifiable"}, "whether it was registered before can't be told"),
        ({"order": "unregistered"}, "not registered"),
        (
            {"order": "registered-one-side"},
            "registered at the base in 2f1c0de3, on one side of a merge, then measured in 9ab33e14",
        ),
        (
            {"order": "witnessed", "came": (REGISTERED, MEASURED, replace(EDITED, what="tagged"))},
            f"{CHAIN}; a tag has the registration without the evidence, in 2f1c0de3",
        ),
        (
            {"standing": "replication"},
            "registered at the base in 2f1c0de3, then measured in 9ab33e14; its data were known: a replication",
        ),
        ({"order": None, "status": "removed"}, "had been registered in 2f1c0de3"),
        ({"order": None, "status": "removed", "registered": None}, ""),
    ],
)
def test_whether_the_registration_came_first_is_said_with_the_commits(keys, text):
    one = compared("p", **{"base": recorded(), "head": recorded()} | keys)
    assert registration(one) == text


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [(15, 15, "15"), (10, 15, "10 → 15"), (None, 15, "15"), (None, None, "")],
)
def test_n_is_told_of_both_ends_where_it_differs(before, after, text):
    assert count(compared("p", recorded(n=before), recorded(n=after))) == text


def test_a_code_is_told_once_with_how_often_it_is_there():
    found = [finding("PR208", CHANGED.id, Level.REVIEW, about=str(number)) for number in range(3)]
    seen = finding("PR208", CHANGED.id, Level.REVIEW, acknowledged="a backup ran")
    untold = finding("PR212", CHANGED.id, untold=True)
    (row,) = rows_of(gated(*found, seen, untold, predictions=(CHANGED,)))
    assert list(remarks(row)) == [
        "PR212 could not be told",
        "PR208 set aside after the data (3 times)",
        'PR208 set aside after the data; the author\'s reason: "a backup ran"',
        "subject-changed",
    ]
