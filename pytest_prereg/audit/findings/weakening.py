"""Registrations that were made easier to meet, and claims that contradict each other: PR209, PR214."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.finding import Finding


def of_weakening(state: StudyState) -> Iterator[Finding]:  # noqa: ARG001 - to be written
    """Nothing yet."""
    yield from ()
