"""What a code means is said in the same words by the tool and by its documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_prereg.report.findings.rules import RULES, rule_of

CODES = Path(__file__).parents[2] / "docs" / "codes.md"
ROW = re.compile(r"^\| (?P<code>PR2\d\d) \| (?P<what>.*) \| (?P<to_do>.*) \|$", re.MULTILINE)
REFERENCE = re.compile(r" \(\[\]\(\S+\)\)")


@pytest.mark.skipif(not CODES.is_file(), reason="runs in a checkout or an unpacked sdist")
def test_rules_and_documentation_agree():
    rows = ROW.findall(REFERENCE.sub("", CODES.read_text(encoding="utf-8")))
    assert rows == [(code, rule.what, rule.to_do) for code, rule in RULES.items() if code.startswith("PR2")]


def test_another_code_has_words_as_well():
    assert rule_of("PR140").what
