"""An audit as annotations of GitHub Actions, read as the runner reads its log."""

from __future__ import annotations

import re

from found_samples import COMMIT, EVERY, HOSTILE, finding, registered, reported

from pytest_prereg.audit.finding import Level
from pytest_prereg.report.findings.github import github_lines

COMMAND = re.compile(r"::(?P<kind>\w+)(?: (?P<properties>.*?))?::(?P<data>.*)")


def unescaped(text: str) -> str:
    for code, sign in {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}.items():
        text = text.replace(code, sign)
    return text


def annotations(*findings, **keys):
    """What GitHub would show: kind, properties and message of each."""
    read = [COMMAND.fullmatch(line) for line in github_lines(reported(*findings, **keys))]
    return [
        (
            one["kind"],
            dict(map(unescaped, pair.split("=", 1)) for pair in one["properties"].split(",")),
            unescaped(one["data"]),
        )
        for one in read
    ]


def test_a_finding_is_an_annotation_at_the_line_of_its_prediction():
    kind, properties, message = annotations(EVERY[2])[0]
    assert kind == "warning"
    assert properties == {"file": "predictions.toml", "line": "160", "title": "PR208 the-deadline-holds"}
    assert message.splitlines() == [
        'repeat "deadline/1/one/3" was excluded after its value could be seen: a backup ran (tool)',
        "Ask whether it would have been excluded had it been slower by as much.",
        "If it may stand, say why: pytest-prereg acknowledge PR208 the-deadline-holds --reason '…'",
    ]


def test_errors_open_reviews_and_the_rest_are_of_three_kinds():
    kinds = [(kind, properties["title"]) for kind, properties, _ in annotations(*EVERY)]
    assert kinds == [
        ("error", "PR207 barrier"),
        ("error", "PR212 quick-win"),
        ("warning", "PR208 the-deadline-holds"),
        ("notice", "PR205 fused-is-faster"),
        ("notice", "PR201"),
        ("notice", "PR206 old-guard"),
        ("notice", "audit of reward-latency"),
    ]


def test_github_shows_all_of_it_and_the_last_one_sums_up_the_rest():
    reviews = [finding("PR208", f"p{number}", Level.REVIEW) for number in range(25)]
    errors = [finding("PR207", f"p{number}") for number in range(12)]
    stale = [finding(f"PR3{number:02}", level=Level.NOTICE) for number in range(30)]
    shown = annotations(*reviews, *errors, *stale, *registered(300))
    kinds = [kind for kind, _, _ in shown]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {"error": 10, "warning": 10, "notice": 10}
    assert shown[-1][2].startswith("audit: 12 errors, 25 open reviews (exit 1")
    assert "not shown here: 2 PR207, 15 PR208, " in shown[-1][2]


def test_paths_are_taken_from_the_root_of_the_repository(tmp_path, monkeypatch):
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "sub")
    root = tmp_path.resolve()
    assert annotations(finding(path="deep/p.toml"), root=root)[0][1]["file"] == "sub/deep/p.toml"
    assert annotations(finding(path=f"{tmp_path}/p.toml"), root=root)[0][1]["file"] == "p.toml"
    assert annotations(finding(path=None), root=root)[0][1]["file"] == "sub/predictions.toml"


def test_text_of_others_forges_no_annotation_and_no_property():
    hostile = finding(message=HOSTILE, path="a,line=1::b\n.toml", advice="x\n::error::y", commit=COMMIT)
    lines = github_lines(reported(hostile))
    assert [line for line in lines if not line.isprintable() or "##[" in line] == []
    kind, properties, message = annotations(hostile)[0]
    assert (kind, properties["file"], properties["line"]) == ("error", "a,line=1::b\\n.toml", "14")
    assert len(properties) == 3
    assert message.splitlines()[-1] == "x ::error::y"


def test_a_message_is_no_longer_than_github_shows():
    assert len(annotations(finding(message="word " * 3000))[0][2]) <= 4096
