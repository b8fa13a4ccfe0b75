"""The summary of a pull request in the terminal: eighty columns or forty, with what to type next."""

from __future__ import annotations

import pytest
from found_samples import (
    CHANGED,
    FOUND_IN_IT,
    GONE,
    HOSTILE,
    NEW,
    PULL_REQUEST,
    UNCHANGED,
    compared,
    finding,
    gated,
    recorded,
    registered,
)

from pytest_prereg.audit.finding import Level
from pytest_prereg.report.columns import width_of
from pytest_prereg.report.findings.pull_request_terminal import pull_request_lines

COMMITTED = (
    "git add predictions.toml predictions.lock && git commit -m 'Mend PR203, PR205, PR204' && git push"
)
COMMANDS = ("git ", "pytest-prereg ", "next:")


def lines_of(*findings, width=80, unicode=True, every=False, **keys):
    return pull_request_lines(gated(*findings, **keys), width, unicode=unicode, every=every)


def test_a_reviewer_sees_what_changed_by_how_much_and_what_came_first():
    lines = lines_of(*FOUND_IN_IT, predictions=PULL_REQUEST)
    assert lines[:3] == [
        "gate of kernels: can't pass",
        "4418f27a → 7ebe48e1 · 1 removed, 1 verdict changed, 1 registered and judged, 25",
        "unchanged",
    ]
    start = lines.index("REVIEW  fused-is-faster")
    assert lines[start : start + 10] == [
        "REVIEW  fused-is-faster",
        "        base   + supported 1.310 [1.270, 1.350], n 15",
        "        here   ? inconclusive (straddles) 1.020 [0.970, 1.070], n 15, moved",
        "               -0.290 (-22 %)",
        "        wants  ≥ 1.25",
        "        when   registered at the base in 2f1c0de3, then measured in 9ab33e14",
        "        flags  subject-changed",
        '        PR205  the recorded verdict of "fused-is-faster" was changed: from',
        "               supported to inconclusive (predictions.toml:14, cdff1b98)",
        "",
    ]


def test_the_last_lines_say_what_it_amounts_to_and_what_to_type():
    lines = lines_of(*FOUND_IN_IT, predictions=PULL_REQUEST, standing=(finding("PR207", "barrier"),))
    assert lines[lines.index("you, who review:") :] == [
        "you, who review:",
        "  - 1 error. Ask the author to mend it, as below: an error can't be",
        "    acknowledged.",
        "  - PR205 fused-is-faster: Ask why the verdict changed, and whether that follows",
        "    from what is there.",
        "  - PR204 quick-win: Ask whether the expectation was there before the numbers.",
        "    Merge it with its commits: a squash makes one of both.",
        "    Whoever squashes tags the registration first:",
        "      git switch --detach 2f1c0de3 && pytest-prereg lock --tag && git switch -",
        "      git push origin prereg/kernels/0a1b2c3d",
        "  - If it may stand, the author acknowledges it in this pull request, as below.",
        "    The reason is then in predictions.lock: read it and approve, as a code owner",
        "    of that (by .github/CODEOWNERS at the base).",
        "",
        "the author:",
        "  1. PR203 old-claim:",
        "     Put it back, or say why it is given up:",
        "       pytest-prereg withdraw old-claim --reason '…'",
        "  2. PR205 fused-is-faster:",
        "     If it may stand, say why:",
        "       pytest-prereg acknowledge PR205 fused-is-faster --reason '…'",
        "  3. PR204 quick-win:",
        "     If it may stand, say why:",
        "       pytest-prereg acknowledge PR204 quick-win --reason '…'",
        "  4. Commit what that changes of predictions.toml, predictions.lock here, in",
        "     this pull request:",
        f"       {COMMITTED}",
        "",
        "At the base already, and not of this pull request: 1 error:",
        "  PR207  evidence removed or altered: barrier",
        "",
        "gate: 1 error, 2 open reviews (exit 1: to be mended and acknowledged)",
        "next:  pytest-prereg withdraw old-claim --reason '…'",
    ]


def test_nothing_to_look_at_is_three_lines():
    assert lines_of(predictions=UNCHANGED) == [
        "gate of kernels: nothing to look at",
        "4418f27a → 7ebe48e1 · 25 unchanged",
        "",
        "gate: nothing is wrong, nothing waits for a person (exit 0: fine)",
    ]


def test_the_worst_comes_first_whatever_the_study_has_first():
    several = (*UNCHANGED, NEW, CHANGED, GONE, compared("first", None, recorded()))
    marks = [line for line in lines_of(*FOUND_IN_IT, predictions=several) if line[:1].isalpha()][2:6]
    assert [line.split()[:2] for line in marks] == [
        ["ERROR", "old-claim"],
        ["REVIEW", "fused-is-faster"],
        ["REVIEW", "quick-win"],
        ["notice", "first"],
    ]


def test_what_is_acknowledged_asks_for_nothing():
    seen = finding("PR205", CHANGED.id, Level.REVIEW, acknowledged="measured anew")
    said = "\n".join(lines_of(seen, predictions=(CHANGED,)))
    assert "seen    fused-is-faster" in said
    assert 'the author\'s reason: "measured anew"' in said
    assert "--reason" not in said


def test_many_registrations_are_one_line_unless_all_are_asked_for():
    many = [compared(f"prediction-{number}", None, None, is_at_base=False) for number in range(1, 301)]
    folded = lines_of(*registered(300), predictions=many)
    assert folded[3].startswith("notice  300 registered: prediction-1, prediction-2,")
    assert len(folded) < 8
    assert len(lines_of(*registered(300), predictions=many, every=True)) > 1200


def test_three_hundred_reviews_are_all_shown_and_advised_once():
    reviews = [finding("PR208", one.id, Level.REVIEW) for one in UNCHANGED]
    said = "\n".join(lines_of(*reviews, predictions=UNCHANGED))
    assert all(f"REVIEW  {one.id}\n" in said for one in UNCHANGED)
    assert said.count("If it may stand, say why:") == 1
    assert said.count("pytest-prereg acknowledge PR208 same-") == 11  # ten of them, and what to type next
    assert "       and 15 more (--all)\n" in said


@pytest.mark.parametrize("width", [12, 40, 60, 80])
@pytest.mark.parametrize("unicode", [True, False])
def test_text_of_others_acts_on_no_terminal_and_fits_it(width, unicode):
    given = {"wants": HOSTILE, "withdrawal": HOSTILE, "flags": (HOSTILE,), "status": "withdrawn"}
    written = recorded(HOSTILE, reason=HOSTILE, unit=HOSTILE)
    hostile = compared(CHANGED.id, written, recorded(HOSTILE, 2.0, unit=HOSTILE), **given)
    found = [
        finding("PR208", name, level=level, message=HOSTILE, advice=HOSTILE, acknowledged=seen)
        for name in (CHANGED.id, HOSTILE, "")
        for level in Level
        for seen in (HOSTILE, None)
    ]
    keys = {"predictions": (hostile,), "study": HOSTILE, "covered": HOSTILE, "standing": tuple(found)}
    lines = lines_of(*found, *FOUND_IN_IT, width=width, unicode=unicode, **keys)
    assert all(line.isprintable() for line in lines)
    assert not [line for line in lines if line.lstrip().startswith("::") or "##[" in line]
    assert unicode or "\n".join(lines).isascii()
    if width >= 40:
        wide = [line for line in lines if width_of(line) > width]
        assert [line for line in wide if not line.lstrip().startswith(COMMANDS)] == []
