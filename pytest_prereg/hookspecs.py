"""Hooks that pytest-prereg offers to other plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from pytest_prereg.report.records import Record

hookspec = pluggy.HookspecMarker("pytest")


@hookspec
def pytest_prereg_verdict(record: Record) -> None:
    """Observe the record of a prediction once it is judged or found pending; nothing can be changed."""
