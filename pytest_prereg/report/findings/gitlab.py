"""Findings as a Code Quality report of GitLab, which lists flaws: registrations are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.report.findings.harmless import plain
from pytest_prereg.report.findings.identity import fingerprints, place_in_repository
from pytest_prereg.report.findings.summing_up import (
    Mark,
    acknowledged_text,
    mark_of,
    without_registrations,
)

if TYPE_CHECKING:
    from pytest_prereg.audit.finding import Finding
    from pytest_prereg.report.findings.reported import Reported

_SEVERITY = {
    Mark.ERROR: "critical",
    Mark.UNKNOWN: "major",
    Mark.REVIEW: "major",
    Mark.SEEN: "minor",
    Mark.NOTICE: "info",
}


def gitlab_json(reported: Reported) -> bytes:
    """Return the report: a list, in the order of the findings."""
    findings = without_registrations(reported.findings)
    names = fingerprints(reported.study, findings)
    issues = [_issue(reported, one, name) for one, name in zip(findings, names, strict=True)]
    return msgspec.json.format(msgspec.json.encode(issues), indent=2) + b"\n"


def _issue(reported: Reported, finding: Finding, fingerprint: str) -> dict[str, Any]:
    path, line = place_in_repository(reported, finding)
    seen = f" ({acknowledged_text(finding)})" if finding.acknowledged is not None else ""
    whose = f"{finding.id}: " if finding.id not in finding.message else ""
    return {
        "description": plain(f"{whose}{finding.message}{seen}"),
        "check_name": finding.code,
        "fingerprint": fingerprint,
        "severity": _SEVERITY[mark_of(finding)],
        "location": {"path": path, "lines": {"begin": line or 1}},
    }
