"""An audit as Markdown, as GitHub renders it: one table, and nothing that others wrote becomes markup."""

from __future__ import annotations

import re

import pytest
from found_samples import EVERY, HOSTILE, finding, prediction, registered, reported
from markdown_it import MarkdownIt

from pytest_prereg.audit.audited import Recorded
from pytest_prereg.audit.finding import Level
from pytest_prereg.report.findings.harmless import advice_parts, code, markdown
from pytest_prereg.report.findings.markdown import markdown_text

RENDER = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render


def rows_of(page, number):
    """The cells of a table of the page, as text."""
    body = page.split("<tbody>")[number + 1].split("</tbody>")[0]
    return [re.sub("<.*?>", "", row).split("\n")[1:-2] for row in body.split("<tr>")[1:]]


def html(*findings, **keys):
    return RENDER(markdown_text(reported(*findings, **keys)))


def test_every_finding_is_a_row_with_its_sign_and_its_place():
    page = html(*EVERY)
    rows = rows_of(page, 0)
    assert [row[:3] for row in rows] == [
        ["⛔ error", "PR207", "barrier"],
        ["❔ can't tell", "PR212", "quick-win"],
        ["👀 review", "PR208", "the-deadline-holds"],
        ["☑️ acknowledged", "PR205", "fused-is-faster"],
        ["💬 notice", "PR201", ""],
        ["💬 notice", "PR206", "old-guard"],
    ]
    assert rows[3][3].endswith("Acknowledged: the kernel changed, and the guard was measured anew")
    assert rows[2][4] == "predictions.toml:160, cdff1b98"


def test_what_to_do_is_a_list_with_commands_to_copy():
    page = html(*EVERY)
    assert "<code>git checkout HEAD -- experiments/evidence/barrier</code>" in page
    assert "<code>pytest-prereg acknowledge PR208 the-deadline-holds --reason '…'</code>" in page
    assert page.count("<li><code>") == 3


def test_every_prediction_is_a_row_with_its_verdict_and_those_first_that_are_not_plain():
    changed = Recorded(verdict="refuted", estimate=2.5, interval=(2.2, 2.8), unit="s", n=7, series=1)
    several = (
        prediction("a"),
        prediction("b", base=changed),
        prediction("c", "after-evidence", None),
        prediction("d", None),
    )
    assert rows_of(html(predictions=several), 0) == [
        [
            "b",
            "confirmatory: registered",
            "supported, 0.50 [0.40, ..] s, n 7",
            "refuted, 2.50 [2.20, 2.80] s, n 7",
            "",
        ],
        ["c", "exploratory: after-evidence", "nothing", "the same", ""],
        ["d", "no longer in the study", "supported, 0.50 [0.40, ..] s, n 7", "the same", ""],
        ["a", "confirmatory: registered", "supported, 0.50 [0.40, ..] s, n 7", "the same", ""],
    ]


def test_what_is_claimed_is_told_of_those_about_which_something_was_found():
    several = (prediction("a", claim="It | <b>is</b> so."), prediction("b", claim="And so is this."))
    page = html(finding(name="a"), *registered(1), predictions=several)
    assert [row[-1] for row in rows_of(page, 1)] == ["It | &lt;b&gt;is&lt;/b&gt; so.", ""]


def test_many_predictions_are_folded_unless_all_are_asked_for():
    many = reported(predictions=tuple(prediction(f"p{number}") for number in range(21)))
    assert "<details><summary>21 predictions</summary>" in markdown_text(many)
    assert "21 predictions</summary>" not in markdown_text(many, every=True)


def test_all_that_was_found_is_shown_where_all_is_asked_for():
    many = reported(*registered(300), *(finding("PR206", f"g{number}", Level.NOTICE) for number in range(9)))
    assert "| `g8` |" not in markdown_text(many)
    text = markdown_text(many, every=True)
    assert text.count("| PR206 |") == 9
    assert text.count("| PR201 |") == 300


def test_what_can_not_be_proven_is_folded():
    page = html()
    start, end = page.index("<details><summary>What can't be proven"), page.index("</details>")
    assert "<li>That the numbers were measured at all" in page[start:end]


def test_nothing_that_others_wrote_becomes_markup():
    hostile = finding("PR208", level=Level.REVIEW, message=HOSTILE, path="a|b `c`<i>.toml", advice=HOSTILE)
    seen = finding("PR205", level=Level.REVIEW, acknowledged=HOSTILE)
    buried = prediction(hostile.id, verdict=HOSTILE, status="withdrawn", withdrawal=HOSTILE, claim=HOSTILE)
    page = html(hostile, seen, unproven=[HOSTILE], predictions=(buried,))
    assert set(re.findall(r"<(\w+)", page)) == {
        *("h2", "p", "strong", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "code", "em"),
        *("details", "summary"),
    }
    assert {row.count("<td>") for row in page.split("<tr>")} == {0, 4, 5}
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<code>a|b `c`&lt;i&gt;.toml:14</code>" in page


@pytest.mark.parametrize(
    "text", ["@octocat", "#12", "GH-3", "https://evil.example", "www.evil.example", "a@b.example"]
)
def test_github_makes_neither_a_mention_nor_a_link_of_it(text):
    shown = RENDER(markdown(text))
    assert text not in shown
    assert text in shown.replace("\N{ZERO WIDTH SPACE}", "")


@pytest.mark.parametrize(
    "text", ["- a", "1. a", "10) a", "+ a", "# a", "> a", "===", "~~~", "| a |", "    a", "\\[a](b)", "$a$"]
)
def test_text_stays_the_text_that_it_is(text):
    shown = RENDER(markdown(text)).strip()
    assert shown.startswith("<p>")
    wanted = text.strip().replace(">", "&gt;")
    assert shown.removeprefix("<p>").removesuffix("</p>").replace("\N{ZERO WIDTH SPACE}", "") == wanted


@pytest.mark.parametrize("text", ["a", "a`b", "``", "`a", "a``b`", "a|b"])
def test_code_is_shown_as_it_is(text):
    assert RENDER(code(text)).strip() == f"<p><code>{text}</code></p>"


@pytest.mark.parametrize(
    ("advice", "parts"),
    [
        ("Bring it back: git checkout HEAD -- a", [("Bring it back:", "git checkout HEAD -- a")]),
        ("pytest-prereg lock", [("", "pytest-prereg lock")]),
        ("Git can't say: git is old", [("Git can't say: git is old", "")]),
        (
            "First do it: pytest-prereg lock, and commit.",
            [("First do it:", "pytest-prereg lock"), ("and commit.", "")],
        ),
        ("Do it: git add .", [("Do it:", "git add .")]),
        ("Two lines\nof words, then: git fetch --all.", [("Two lines of words, then:", "git fetch --all")]),
        ("Here: git log -- a\nand more\nof it", [("Here:", "git log -- a"), ("and more of it", "")]),
    ],
)
def test_commands_are_told_from_words(advice, parts):
    assert list(advice_parts(advice)) == parts


def test_a_comment_holds_it_however_much_was_found():
    reviews = [finding("PR208", f"p{number}", Level.REVIEW, message="much " * 300) for number in range(300)]
    text = markdown_text(reported(*reviews))
    assert len(text) < 65_536
    assert re.search(r"\| and \d+ more \|", text)
