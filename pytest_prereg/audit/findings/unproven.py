"""What no history can prove: said with every audit, so that nobody takes a clean one for more than it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_prereg.audit.assess import StudyState


def unproven(state: StudyState) -> list[str]:  # noqa: ARG001 - to be written
    """One sentence for each thing that can't be proven of this study."""
    return []
