"""What the lock's history says: registered, amended, removed, verdicts changed, repeats excluded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.finding import Finding


def of_history(state: StudyState) -> Iterator[Finding]:  # noqa: ARG001 - to be written
    """Nothing yet."""
    yield from ()
