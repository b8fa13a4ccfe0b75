"""Whether registration came before evidence: PR212, and PR202 where an amendment says why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.finding import Finding


def of_order(state: StudyState) -> Iterator[Finding]:  # noqa: ARG001 - to be written
    """Nothing yet."""
    yield from ()
