"""Words beside a verdict, from the series of its experiment."""

from __future__ import annotations

import pytest

from pytest_prereg.audit.remarks import of_series
from pytest_prereg.evidence.model import Series


def series(number: int, *sessions: str, complete: bool = True) -> Series:
    return Series(
        experiment="runs",
        number=number,
        origin="measured",
        pairing="block",
        planned={"": 5},
        repeats=(),
        faults=(),
        complete=complete,
        source="sha256:1",
        seed="s",
        predictions={},
        sessions=sessions,
    )


@pytest.mark.parametrize(
    ("deciding", "other", "words"),
    [
        (series(2, "t3"), series(1, "t1", complete=False), ["abandoned series"]),
        (series(1, "t1", "t4"), series(2, "t3", complete=False), ["abandoned series"]),
        (series(1, "t1", "t2"), series(2, "t3", complete=False), []),
        (series(2, "t3"), series(1, "t1"), ["earlier data"]),
        (series(1, "t1"), series(2, "t3"), []),
    ],
    ids=["left before", "left in between", "a replication that goes on", "decided before", "a replication"],
)
def test_what_could_be_seen_before_a_series_was_complete_is_told(deciding, other, words):
    assert of_series([""], deciding, [deciding, other], "sha256:1") == words
