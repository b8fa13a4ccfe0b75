"""Findings as SARIF 2.1.0, which code scanning reads; it lists flaws, so registrations are left out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

import pytest_prereg
from pytest_prereg.report.findings.harmless import plain
from pytest_prereg.report.findings.identity import fingerprints, place_in_repository
from pytest_prereg.report.findings.rules import rule_of
from pytest_prereg.report.findings.summing_up import Mark, advised, mark_of, without_registrations

if TYPE_CHECKING:
    from pytest_prereg.audit.finding import Finding
    from pytest_prereg.report.findings.reported import Reported

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVEL = {
    Mark.ERROR: "error",
    Mark.UNKNOWN: "error",
    Mark.REVIEW: "warning",
    Mark.SEEN: "warning",
    Mark.NOTICE: "note",
}
_LINK = re.compile(r"\](?=\()")
_ROOT = "%SRCROOT%"


def sarif_json(reported: Reported) -> bytes:
    """Return the log, with one run; what the lock acknowledges is a suppressed result."""
    findings = without_registrations(reported.findings)
    codes = sorted({one.code for one in findings})
    names = fingerprints(reported.study, findings)
    run = {
        "tool": {"driver": _driver(codes)},
        "automationDetails": {"id": f"pytest-prereg/{reported.command}/{reported.study}/"},
        "invocations": [{"executionSuccessful": True, "exitCode": reported.exit}],
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(reported, one, codes.index(one.code), name)
            for one, name in zip(findings, names, strict=True)
        ],
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(log), indent=2) + b"\n"


def _driver(codes: list[str]) -> dict[str, Any]:
    return {
        "name": "pytest-prereg",
        "version": pytest_prereg.__version__,
        "rules": [_rule(code) for code in codes],
    }


def _rule(code: str) -> dict[str, Any]:
    rule = rule_of(code)
    words = rule.to_do.replace("`", "")
    return {
        "id": code,
        "shortDescription": {"text": _sentence(rule.what)},
        "fullDescription": {"text": f"{_sentence(rule.what)} What to do: {words}."},
        "help": {"text": _sentence(words), "markdown": _sentence(rule.to_do)},
    }


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text[0].isalpha() else f"{text}."


def _result(reported: Reported, finding: Finding, rule: int, fingerprint: str) -> dict[str, Any]:
    path, line = place_in_repository(reported, finding)
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(path), "uriBaseId": _ROOT}}
    suppressed = (
        [{"kind": "external", "justification": plain(finding.acknowledged)}]
        if finding.acknowledged is not None
        else []
    )
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _LEVEL[mark_of(finding)],
        "message": {"text": _message(finding)},
        "locations": [{"physicalLocation": place | ({"region": {"startLine": line}} if line else {})}],
        # GitHub goes by the first alone, and would else make one alert of all that are at one line.
        "partialFingerprints": {"primaryLocationLineHash": fingerprint, "preregFinding/v1": fingerprint},
        "suppressions": suppressed,
        "properties": {"prediction": finding.id, "about": finding.about, "commit": finding.commit},
    }


def _message(finding: Finding) -> str:
    """Return what is found and what to do about it; what would be read as a link is not one."""
    advice = (f"{words} {command}".strip() for words, command in advised(finding))
    return "\n".join(_LINK.sub("] ", plain(line)) for line in (finding.message, *advice) if line)
