"""What is to be shown of a gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.report.findings.reported import Reported

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_prereg.audit.gating.gate import Gate

_SHORT = 8


def reported_gate(gate: Gate, file: Path, root: Path, uncommitted: tuple[str, ...] = ()) -> Reported:
    """Return what is shown of a gate.

    Args:
        gate: What it says.
        file: The prediction file, as it is seen from the current folder.
        root: Of the repository.
        uncommitted: Files of the study that are not in the work tree as head has them.
    """
    return Reported(
        command="gate",
        study=gate.study,
        subject=gate.study,
        file=file,
        root=root,
        compared=gate.ends.base[:_SHORT],
        predictions=gate.predictions,
        findings=gate.findings,
        base=gate.ends.base,
        head=gate.ends.head,
        standing=gate.standing,
        covered=gate.covered,
        uncommitted=uncommitted,
        exit=gate.exit,
    )
