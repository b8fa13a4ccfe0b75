from __future__ import annotations

import pytest

from pytest_prereg.registry.durations import parse_duration
from pytest_prereg.registry.refusals import RefusedError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5 min", 300.0), ("500ms", 0.5), ("1.5 h", 5400.0), (" 7 s ", 7.0), (3, 3.0), (0.25, 0.25)],
)
def test_a_duration_is_read_in_seconds(text: object, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "5", "5 minutes", "-1 s", "0 s", 0, -3, True, None, [1], "1e3 s", "9" * 400 + " s", 10**400]
)
def test_anything_else_is_refused(text: object) -> None:
    with pytest.raises(RefusedError, match="is no duration"):
        parse_duration(text)
