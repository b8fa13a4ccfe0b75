"""An audit in the terminal: the worst first, eighty columns or forty, with what to type next."""

from __future__ import annotations

import pytest
from found_samples import COMMIT, EVERY, HOSTILE, finding, prediction, registered, reported

from pytest_prereg.audit.finding import Level
from pytest_prereg.audit.findings.unproven import ALWAYS
from pytest_prereg.report.columns import width_of
from pytest_prereg.report.findings.terminal import terminal_lines

COMMANDS = ("git ", "pytest-prereg ", "next:")


def text(*findings, width=80, **keys):
    return "\n".join(terminal_lines(reported(*findings, **keys), width))


def test_the_worst_comes_first_and_the_last_lines_say_what_it_amounts_to():
    lines = terminal_lines(reported(*EVERY))
    marks = [line[:14] for line in lines if line[:1].isalpha() and line[8:10] == "PR"]
    assert marks == [
        "ERROR   PR207 ",
        "UNKNOWN PR212 ",
        "REVIEW  PR208 ",
        "seen    PR205 ",
        "notice  PR201 ",
        "notice  PR206 ",
    ]
    assert " ".join(lines[-3:-1]) == (
        "audit: 1 error, 1 could not be told, 1 open review (exit 1: to be mended and acknowledged)"
    )
    assert lines[-1] == "next:  git checkout HEAD -- experiments/evidence/barrier"


def test_a_finding_says_where_since_when_and_what_to_do():
    assert terminal_lines(reported(EVERY[2]))[2:8] == [
        "REVIEW  PR208  the-deadline-holds  predictions.toml:160 (cdff1b98)",
        '        repeat "deadline/1/one/3" was excluded after its value could be seen: a',
        "        backup ran (tool)",
        "        Ask whether it would have been excluded had it been slower by as much.",
        "        If it may stand, say why:",
        "          pytest-prereg acknowledge PR208 the-deadline-holds --reason '…'",
    ]


def test_an_acknowledged_review_is_shown_with_its_reason_and_asks_for_nothing():
    said = text(EVERY[3])
    assert "acknowledged: the kernel changed, and the guard was measured anew" in said
    assert "--reason" not in said
    assert said.splitlines()[-1] == "audit: nothing is wrong, nothing waits for a person (exit 0: fine)"


@pytest.mark.parametrize(("untold", "meaning"), [(True, "(exit 4: could not tell)"), (False, "(exit 1: ")])
def test_the_last_line_says_what_the_exit_status_means(untold, meaning):
    assert meaning in text(finding(untold=untold), unproven=())


def test_registrations_are_one_line_and_with_all_they_are_many():
    many = reported(*registered(300))
    folded = "\n".join(terminal_lines(many))
    assert "notice  PR201  300 registered: prediction-1, prediction-2," in folded
    assert "and 293 more" in folded
    assert len(folded.splitlines()) < 20
    assert len(terminal_lines(many, every=True)) > 600


def test_a_few_notices_of_another_kind_are_shown_one_by_one():
    stale = [finding("PR206", f"guard-{number}", Level.NOTICE) for number in range(5)]
    assert "notice  PR206  guard-2" in text(*stale[:3])
    assert "5 about an earlier version of their subject: guard-0," in text(*stale)


def test_no_failing_finding_is_ever_folded_but_advice_is_said_once():
    reviews = [finding("PR208", f"p{number}", Level.REVIEW, about=str(number)) for number in range(300)]
    said = text(*reviews)
    assert all(f"REVIEW  PR208  p{number}" in said for number in range(300))
    assert said.count("If it may stand") == 1


@pytest.mark.parametrize("width", [40, 60, 80])
def test_nothing_but_a_command_is_wider_than_the_terminal(width):
    long = finding(
        name="a-rather-long-name-for-a-prediction-that-nobody-can-read[cols=4096,rows=16384]", message=HOSTILE
    )
    lines = terminal_lines(reported(*EVERY, long), width)
    assert [line for line in lines if width_of(line) > width and not line.lstrip().startswith(COMMANDS)] == []
    assert "".join("".join(lines).split()).count(long.id) >= 1


def test_it_reads_in_ascii():
    lines = terminal_lines(
        reported(finding(message="1.0 → 2.0 × 3 ≤ 6", acknowledged="naïve")), unicode=False
    )
    assert "\n".join(lines).isascii()
    assert "        1.0 -> 2.0 x 3 <= 6" in lines


def test_text_of_others_acts_on_no_terminal_and_no_log():
    hostile = finding(
        "PR208", level=Level.REVIEW, message=HOSTILE, path=HOSTILE, advice=HOSTILE, about=HOSTILE
    )
    seen = finding("PR205", level=Level.REVIEW, acknowledged=HOSTILE)
    for width in (12, 40, 80):
        lines = terminal_lines(reported(hostile, seen, unproven=[HOSTILE]), width)
        assert all(line.isprintable() for line in lines)
        assert not [line for line in lines if line.lstrip().startswith("::") or "##[" in line]


def test_how_many_are_confirmatory_is_told_by_grade():
    several = (
        *(prediction(f"a{number}") for number in range(3)),
        prediction("b", "witnessed", "refuted"),
        prediction("c", "after-evidence"),
        prediction("gone", None, "refuted"),
    )
    said = " ".join(text(predictions=several).split())
    assert (
        "6 predictions: 4 confirmatory (3 registered, 1 witnessed), 1 exploratory (1 after-evidence), "
        "1 no longer in the study"
    ) in said
    assert "6 recorded verdicts: 2 refuted, 4 supported" in said


def test_a_withdrawn_prediction_is_no_confirmatory_one():
    several = (
        prediction("a"),
        prediction("b", verdict="refuted", status="withdrawn", withdrawal="a typo", is_counted=True),
    )
    lines = terminal_lines(reported(predictions=several))
    assert "2 predictions: 1 confirmatory (1 registered) · 1 withdrawn, counted as refuted" in lines
    start = lines.index("not plainly registered:")
    assert lines[start + 1 : start + 4] == [
        "  b  withdrawn (counted as refuted): a typo",
        "        recorded: refuted, 0.50 [0.40, ..] s, n 7",
        "",
    ]
    supported = prediction("c", status="withdrawn", withdrawal="a slip")
    said = " ".join(text(predictions=(*several, supported)).split())
    assert "1 confirmatory (1 registered) · 2 withdrawn, 1 of them counted as refuted" in said
    assert "2 recorded verdicts: 1 refuted, 1 supported" in said


def test_only_what_is_not_plain_is_listed_and_what_head_has_where_that_is_otherwise():
    several = (prediction("a"), prediction("b", base=None), prediction("c", "simultaneous", None))
    lines = terminal_lines(reported(predictions=several))
    start = lines.index("not plainly registered:")
    assert lines[start + 1 : start + 5] == [
        "  b  confirmatory: registered",
        "        recorded: supported, 0.50 [0.40, ..] s, n 7; at HEAD: nothing",
        "  c  exploratory: simultaneous",
        "",
    ]
    assert "  a  confirmatory: registered" in terminal_lines(reported(predictions=several), every=True)
    assert "not plainly registered:" not in terminal_lines(reported(predictions=several[:1]))


def test_without_a_commit_there_is_nothing_to_differ_from():
    assert "at HEAD" not in text(predictions=(prediction("b", base=None),), compared=None)


@pytest.mark.parametrize(
    ("findings", "meaning"),
    [
        ([finding()], "audit: 1 error (exit 1: to be mended)"),
        ([finding(level=Level.REVIEW)], "audit: 1 open review (exit 1: to be acknowledged)"),
    ],
)
def test_nobody_is_told_to_acknowledge_an_error(findings, meaning):
    assert meaning in text(*findings).splitlines()


def test_a_reason_of_the_lock_itself_is_told_once():
    keys = {"level": Level.REVIEW, "acknowledged": "amended: a typo"}
    said = text(finding("PR202", message="it was amended after the data: a typo", **keys))
    assert (said.count("a typo"), said.count("amended: ")) == (1, 0)
    assert "acknowledged, as it was amended: a typo" in text(finding("PR209", **keys))


def test_registrations_of_one_commit_are_told_with_it():
    of_one = [
        finding("PR201", f"p{number}", Level.NOTICE, message=f'"p{number}" was registered in {COMMIT[:8]}')
        for number in range(4)
    ]
    assert f"notice  PR201  4 registered in {COMMIT[:8]}: p0, p1, p2, p3 (--all)" in text(*of_one)
    other = finding("PR201", "q", Level.NOTICE, message='"q" was registered in 01234567', commit="01234567")
    assert "notice  PR201  5 registered: " in text(*of_one, other)


def test_what_can_not_be_proven_is_always_said():
    lines = terminal_lines(reported(), every=True)
    assert lines[lines.index("can't be proven:") + 1] == (
        "  - That the author did not know the answer: nothing shows what was seen"
    )


def test_what_is_so_of_every_study_takes_a_line_and_what_is_its_own_is_told_whole():
    own = "That the lock will stay as it is: it is not committed as it lies here."
    found = reported(unproven=(*ALWAYS, own))
    lines = terminal_lines(found, 200)
    first = lines.index("can't be proven:") + 1
    assert lines[first].startswith("  - Of every study: ")
    assert "docs/audit.md, or --all" in lines[first]
    assert lines[first + 1 : first + 3] == [f"  - {own}", ""]
    assert [f"  - {one}" in terminal_lines(found, 200, every=True) for one in ALWAYS] == [True] * len(ALWAYS)
