"""What ``pytest-prereg acknowledge`` says of the reviews that it entered."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pytest_prereg.evidence.naming import shown
from pytest_prereg.report.columns import broken
from pytest_prereg.report.findings.harmless import harmless_line, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.audit.finding import Finding
    from pytest_prereg.registry.model import Study

_INDENT = 14


def acknowledged_lines(study: Study, findings: Sequence[Finding], width: int = 80) -> list[str]:
    """Return a line for each review and what it says, and what to type now."""
    lines = []
    for one in findings:
        lines.append(f"acknowledged  {one.code}  {plain(one.id)}")
        lines += (" " * _INDENT + line for line in broken(plain(one.message), width - _INDENT))
    message = f"Acknowledge {findings[0].code} of {plain(findings[0].id) or study.id}"
    commit = f"git add {shlex.quote(shown(study.lock_path))} && git commit -m {shlex.quote(message)}"
    return [*map(harmless_line, lines), f"next:  {commit}"]
