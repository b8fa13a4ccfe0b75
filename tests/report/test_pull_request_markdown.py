"""The summary of a pull request, as GitHub's renderer makes a page of it: a table, and no markup of others."""

from __future__ import annotations

import re
from html import unescape

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from found_samples import (
    BASE,
    CHANGED,
    FOUND_IN_IT,
    GONE,
    HEAD,
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
from markdown_it import MarkdownIt

from pytest_prereg.audit.finding import Level
from pytest_prereg.report.findings.pull_request_markdown import pull_request_markdown
from pytest_prereg.report.findings.rendering import rendered

COMMENT = 65_536
"""Characters of a comment of GitHub."""
COLUMNS = 7
SQUASHED = [
    "git switch --detach 2f1c0de3 && pytest-prereg lock --tag && git switch -",
    "git push origin prereg/kernels/0a1b2c3d",
]
CAME = "2f1c0de3, then measured in 9ab33e14"
OURS = {
    *("h2", "p", "strong", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "code", "em", "br"),
    *("details", "summary"),
}
ZALGO = "e" + "\N{COMBINING ACUTE ACCENT}" * 100_000


def github(text):
    """As GitHub renders it; raw HTML is let through, so that what gets in can be seen."""
    return cmarkgfm.github_flavored_markdown_to_html(text, options=Options.CMARK_OPT_UNSAFE)


def commonmark(text):
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)


def text_of(*findings, every=False, **keys):
    return pull_request_markdown(gated(*findings, **keys), every=every)


def rows_of(page):
    """The cells of the first table, as text, a line break as a slash."""
    body = page.split("<tbody>")[1].split("</tbody>")[0]
    cells = (re.findall(r"<td.*?>(.*?)</td>", row, re.DOTALL) for row in body.split("<tr>")[1:])
    return [[_seen(cell) for cell in row] for row in cells]


def _seen(cell):
    shown = unescape(re.sub("<.*?>", "", re.sub(r"<br ?/?>", " / ", cell)))
    return shown.replace("\N{NO-BREAK SPACE}", " ").replace("\N{ZERO WIDTH SPACE}", "")


def page_of(*findings, **keys):
    return github(text_of(*findings, **keys))


def test_a_reviewer_sees_what_changed_by_how_much_and_what_came_first():
    page = page_of(*FOUND_IN_IT, predictions=PULL_REQUEST)
    assert rows_of(page) == [
        ["⛔ error", "old-claim", "❌ refuted / 0.70 [0.60, 0.80]", "removed", "", "10",
         "PR203 removed, not withdrawn / had been registered in 2f1c0de3"],
        [
            "👀 review",
            "fused-is-faster",
            "✅ supported / 1.310 [1.270, 1.350]",
            "❔ inconclusive (straddles) / 1.020 [0.970, 1.070] / moved -0.290 (-22 %)",
            "≥ 1.25",
            "15",
            f"PR205 verdict changed / subject-changed / registered at the base in {CAME}",
        ],
        [
            "👀 review",
            "quick-win",
            "not registered",
            "✅ supported / 1.120 [1.080, 1.160]",
            "≥ 1.05",
            "10",
            f"PR204 registered and judged in one pull request / registered here in {CAME}",
        ],
    ]  # fmt: skip
    assert "1 removed, 1 verdict changed, 1 registered and judged, 25 unchanged" in page
    assert f"<code>{BASE[:8]}</code> → <code>{HEAD[:8]}</code>" in page
    assert "<h2>Pre-registered predictions: can't pass</h2>" in page


def items_of(page, title, kind):
    body = page.split(f"<strong>{title}</strong>")[1].split(f"</{kind}>")[0]
    return body.split("<li>")[1:]


def codes_in(item):
    return re.findall("<code>(.*?)</code>", unescape(item))


def test_the_author_sees_what_to_type_in_order_up_to_the_push():
    page = page_of(*FOUND_IN_IT, predictions=PULL_REQUEST)
    items = items_of(page, "The author", "ol")
    assert [codes_in(item) for item in items] == [
        ["PR203", "old-claim", "pytest-prereg withdraw old-claim --reason '…'"],
        ["PR205", "fused-is-faster", "pytest-prereg acknowledge PR205 fused-is-faster --reason '…'"],
        ["PR204", "quick-win", "pytest-prereg acknowledge PR204 quick-win --reason '…'"],
        ["git add predictions.toml predictions.lock && git commit -m 'Mend PR203, PR205, PR204' && git push"],
    ]
    assert "</code> is registered, and is no longer in predictions.toml." in items[0]


def test_the_reviewer_sees_what_to_ask_and_what_to_approve_and_acknowledges_nothing():
    page = page_of(*FOUND_IN_IT, predictions=PULL_REQUEST)
    error, changed, new, approval = items_of(page, "You, who review", "ul")
    assert "1 error. Ask the author to mend it, as below: an error can't be acknowledged." in error
    assert codes_in(changed) == ["PR205", "fused-is-faster"]
    assert "from supported to inconclusive. Ask why the verdict changed" in changed
    assert codes_in(new) == ["PR204", "quick-win", *SQUASHED]
    assert "Whoever squashes tags the registration first:" in new
    assert "Ask whether the expectation was there before the numbers. Merge it with its commits" in new
    assert "the author acknowledges it in this pull request, as below" in approval
    assert page.count("can't be acknowledged") == 1


def test_what_asks_for_one_step_is_one_item_with_a_command_for_each():
    names = ("quick-win", "slow-win")
    found = [finding("PR204", name, Level.REVIEW, advice=FOUND_IN_IT[1].advice) for name in names]
    page = page_of(*found, predictions=[compared(name, None, recorded(), is_at_base=False) for name in names])
    first, last = items_of(page, "The author", "ol")
    assert [code for code in codes_in(first) if "acknowledge" in code] == [
        f"pytest-prereg acknowledge PR204 {name} --reason '…'" for name in names
    ]
    assert "Commit what that changes of predictions.lock here, in this pull request:" in last
    assert codes_in(last) == ["git add predictions.lock && git commit -m 'Acknowledge PR204' && git push"]
    asked, _ = items_of(page, "You, who review", "ul")
    assert codes_in(asked) == ["PR204", *names, *SQUASHED]


def test_many_of_one_step_are_cut_short_and_counted():
    several = [judged(number) for number in range(40)]
    page = page_of(*(finding("PR205", one.id, Level.REVIEW) for one in several), predictions=several)
    first, _ = items_of(page, "The author", "ol")
    assert sum("acknowledge" in code for code in codes_in(first)) == 10
    assert "and 30 more (" in first


def test_a_page_is_named_with_its_line_and_committed_as_well():
    found = finding(
        "PR210", CHANGED.id, message='"a.n" is quoted as "3"', path="README.md", line=7,
        advice="To write it: pytest-prereg cite",
    )  # fmt: skip
    first, last = items_of(page_of(found, predictions=(CHANGED,)), "The author", "ol")
    assert codes_in(first) == ["PR210", "README.md:7", CHANGED.id, "pytest-prereg cite"]
    assert "git add predictions.toml predictions.lock README.md &&" in unescape(last)


def test_a_command_stays_whole_however_many_pages_are_mended():
    cite, pages = "To write it: pytest-prereg cite", [f"{'page' * 20}-{number}.md" for number in range(30)]
    several = [finding("PR210", CHANGED.id, path=page, advice=cite) for page in pages]
    last = items_of(page_of(*several, predictions=(CHANGED,)), "The author", "ol")[-1]
    assert codes_in(last) == ["git add --update && git commit -m 'Mend PR210' && git push"]


def test_what_is_wanted_and_claimed_is_told_of_both_ends():
    one = compared(
        CHANGED.id, recorded(), None, wants="≥ 1.1", wanted="≥ 1.25", claim="Faster.", claimed="Much faster."
    )
    row = rows_of(page_of(finding("PR209", one.id), predictions=(one,)))[0]
    assert row[1] == f"{CHANGED.id} / was: Much faster. · is: Faster."
    assert row[4] == "≥ 1.25 → ≥ 1.1"
    gone = compared(GONE.id, recorded(), None, status="removed", order=None, wants="", wanted="≥ 1.1",
                    claimed="It was.")  # fmt: skip
    row = rows_of(page_of(finding("PR203", GONE.id), predictions=(gone,)))[0]
    assert (row[1], row[4]) == (f"{GONE.id} / It was.", "≥ 1.1")


def test_what_changes_no_verdict_is_counted_and_not_called_unchanged():
    same = compared("same", recorded(), recorded())
    quoted = finding("PR210", "same", message="is quoted as 3")
    altered = finding("PR207", "barrier")
    page = page_of(quoted, altered, predictions=(CHANGED, same, *UNCHANGED))
    told = "1 verdict changed, 1 number misquoted, 1 file of evidence removed or altered, 25 unchanged"
    assert re.sub("(1 file.*altered), (1 number misquoted)", r"\2, \1", page.split("<table>")[0]).count(told)
    assert "the same verdict, with 1 finding" in [row[3] for row in rows_of(page)]


def test_what_can_not_be_told_is_no_fault_of_the_predictions():
    page = page_of(finding(untold=True, advice="Fetch: git fetch --unshallow"), predictions=(CHANGED,))
    assert "1 could not be told: the checkout lacks something" in items_of(page, "You, who review", "ul")[0]
    assert [codes_in(item)[-1] for item in items_of(page, "The author", "ol")] == ["git fetch --unshallow"]


def test_what_says_nothing_of_it_is_told_what_to_do_about_its_kind():
    page = page_of(finding("PR212", CHANGED.id), predictions=(CHANGED,))
    assert "as it should be. The verdict is exploratory; a clone needs the whole history.</li>" in page


REVIEW = FOUND_IN_IT[2]
SEEN = finding("PR205", CHANGED.id, Level.REVIEW, acknowledged="measured anew")


@pytest.mark.parametrize(
    ("findings", "keys", "said"),
    [
        ([REVIEW, finding()], {}, "can't pass"),
        ([REVIEW, finding(untold=True)], {}, "needs a person's eyes"),
        ([finding(untold=True)], {}, "could not tell"),
        ([SEEN], {}, "a code owner has to approve"),
        ([SEEN], {"covered": None}, "acknowledged in the lock"),
        (registered(1), {}, "nothing needs a person"),
        ([], {}, "nothing needs a person"),
        ([], {"predictions": UNCHANGED}, "nothing to look at"),
    ],
)
def test_the_heading_says_what_it_amounts_to(findings, keys, said):
    page = page_of(*findings, **{"predictions": (CHANGED,)} | keys)
    assert f"<h2>Pre-registered predictions: {said}</h2>" in page


@pytest.mark.parametrize(
    ("found", "covered", "said"),
    [
        (
            REVIEW,
            ".github/CODEOWNERS",
            "approve, as a code owner of that (by .github/CODEOWNERS at the base).",
        ),
        (
            SEEN,
            "CODEOWNERS",
            "Approve as a code owner of predictions.lock (by CODEOWNERS at the base), if the reasons",
        ),
        (
            REVIEW,
            None,
            "No CODEOWNERS at the base covers predictions.lock: this stays red until a person merges",
        ),
        (SEEN, None, "The lock's word is enough here"),
    ],
)
def test_who_has_to_approve_it_is_said(found, covered, said):
    assert said in page_of(found, predictions=(CHANGED,), covered=covered)


def test_nobody_is_asked_to_approve_what_is_wrong_or_fine():
    for findings in ([finding()], registered(1), []):
        assert "CODEOWNERS" not in page_of(*findings, predictions=(CHANGED,))


def test_what_is_acknowledged_is_told_with_the_reason():
    page = page_of(SEEN, predictions=(CHANGED,))
    told = 'the author\'s reason: "measured anew"'
    assert told in unescape(items_of(page, "You, who review", "ul")[0])
    row = rows_of(page)[0]
    assert row[0] == "☑️ answered"
    assert f"PR205 verdict changed; {told}" in row[6]
    assert "<strong>The author</strong>" not in page


def test_a_reason_that_what_was_found_repeats_is_told_once_and_as_whose_it_is():
    seen = finding(
        "PR202", CHANGED.id, Level.REVIEW, message="was amended: a typo", acknowledged="amended: a typo"
    )
    (item, _) = items_of(page_of(seen, predictions=(CHANGED,)), "You, who review", "ul")
    assert 'was amended; the author\'s reason: "a typo".' in unescape(item)
    recorded_anew = finding("PR205", CHANGED.id, Level.REVIEW, acknowledged="recorded as refuted (series 2)")
    (item, _) = items_of(page_of(recorded_anew, predictions=(CHANGED,)), "You, who review", "ul")
    assert "the lock has it recorded as refuted (series 2)." in item


def test_what_fails_at_the_base_already_is_one_line():
    standing = (
        finding("PR207", "barrier"),
        *(finding("PR208", f"p{number}", Level.REVIEW) for number in range(9)),
    )
    page = page_of(predictions=UNCHANGED, standing=standing)
    assert (
        "1 error, 9 open reviews (PR207 evidence removed or altered: barrier; PR208 set aside after the data: "
        "p0, p1, p2, p3, p4 and 4 more)."
    ) in re.sub("</?code>", "", page)


def test_what_stood_and_loses_what_it_was_about_is_told_as_that():
    pair = finding("PR214", GONE.id, Level.REVIEW, about=f"{GONE.id} 1a2b, other 3c4d")
    other = finding("PR214", "a-claim", Level.REVIEW, about=f"a-claim 5e6f, {GONE.id} 1a2b")
    page = page_of(FOUND_IN_IT[0], predictions=(GONE,), standing=(pair, other))
    told = re.sub("</?code>", "", page)
    assert f"PR214 contradictory pair: {GONE.id} (removed by this pull request), " in told
    assert f"a-claim (this pull request removes {GONE.id})" in told


def test_what_is_about_no_prediction_has_a_row_as_well():
    whole = finding("PR209", "", Level.REVIEW, message='"kernels" no longer asks for it')
    evidence = [finding("PR207", "barrier", about=str(number)) for number in range(3)]
    rows = rows_of(page_of(whole, *evidence, predictions=UNCHANGED))
    assert rows == [
        ["⛔ error", "barrier", "", "", "", "", "PR207 evidence removed or altered (3 times)"],
        ["👀 review", "the study", "", "", "", "", "PR209 easier to meet than registered"],
    ]


def test_what_is_unchanged_is_counted_and_listed_only_where_it_is_folded():
    text = text_of(*FOUND_IN_IT, predictions=PULL_REQUEST)
    table, folded = text.split("<details>", 1)
    assert "same-3" not in table
    assert "| `same-3` |" in folded


def test_what_stands_above_is_not_told_again_unless_all_is_asked_for():
    text = text_of(REVIEW, predictions=PULL_REQUEST)
    assert text.count("from supported to inconclusive") == 1
    every = text_of(REVIEW, predictions=PULL_REQUEST, every=True).split("in full</summary>")[1]
    assert "from supported to inconclusive | `predictions.toml:14`, `cdff1b98` |" in every


def test_a_notice_and_what_was_cut_short_are_told_in_full_where_they_are_folded():
    long = finding("PR208", CHANGED.id, Level.REVIEW, message=f'"{CHANGED.id}" {"very " * 120}long')
    notice = finding("PR205", CHANGED.id, Level.NOTICE, message="was taken out, and put back")
    folded = text_of(long, notice, predictions=(CHANGED,)).split("2 findings in full</summary>")[1]
    assert "very long |" in folded
    assert "was taken out, and put back |" in folded


def test_many_registrations_are_one_row():
    many = [
        compared(f"prediction-{number}", None, None, is_at_base=False, measured=None)
        for number in range(1, 301)
    ]
    (row,) = rows_of(page_of(*registered(300), predictions=many))
    assert row[0] == "💬 notice"
    assert row[6].startswith("300 registered: prediction-1, prediction-2,")
    assert row[6].endswith("and 295 more")
    assert "300 registered" in page_of(*registered(300), predictions=many).split("<table>")[0]


def test_a_few_registrations_are_told_one_by_one_with_their_commit():
    few = [compared(f"prediction-{number}", None, None, is_at_base=False, measured=None) for number in (1, 2)]
    row = rows_of(page_of(*registered(2), predictions=few))[0]
    assert row[1:] == [
        "prediction-1",
        "not registered",
        "no verdict",
        "≥ 1.25",
        "",
        "registered here in 2f1c0de3, not measured yet",
    ]


def judged(number):
    return compared(f"p{number}", recorded(), recorded("refuted", 0.9, (0.8, 1.0), n=10))


@pytest.mark.parametrize("count", [1, 20, 300])
@pytest.mark.parametrize("render", [github, commonmark])
def test_a_table_keeps_its_columns_and_a_comment_holds_it(count, render):
    several = [judged(number) for number in range(count)]
    reviews = [finding("PR205", one.id, Level.REVIEW, message=f'"{one.id}" ' + HOSTILE) for one in several]
    text = text_of(*reviews, predictions=several)
    assert len(text.encode("utf-16-le")) // 2 < COMMENT
    rows = rows_of(render(text))
    assert {len(row) for row in rows} == {COLUMNS}
    if count == 300:
        assert re.fullmatch(r"and \d+ more \(--all shows them\)", rows[-1][1])
    else:
        assert len(rows) == count


def test_what_asks_for_nothing_is_folded_below_the_table_where_there_is_much():
    several = [compared(f"p{number}", None, recorded()) for number in range(8)]
    text = text_of(FOUND_IN_IT[2], predictions=(CHANGED, *several))
    assert [row[1] for row in rows_of(github(text))] == [CHANGED.id]
    assert "<details><summary>Of others nothing is asked: 8 judged</summary>\n\n| | prediction" in text
    assert "nothing is asked" not in text_of(FOUND_IN_IT[2], predictions=(CHANGED, *several[1:]))


def test_all_is_shown_where_all_is_asked_for():
    several = [judged(number) for number in range(900)]
    reviews = [finding("PR205", one.id, Level.REVIEW) for one in several]
    rows = rows_of(github(text_of(*reviews, predictions=several, every=True)))
    assert len(rows) == 900
    assert "900 predictions in all" in text_of(*reviews, predictions=several, every=True)
    assert "900 predictions in all" not in text_of(*reviews, predictions=several)


def hostile_prediction(name=CHANGED.id, **keys):
    base = recorded(HOSTILE, reason=HOSTILE, unit=HOSTILE)
    head = recorded(HOSTILE, 2.0, reason=HOSTILE, unit=HOSTILE)
    given = {"wants": HOSTILE, "claim": HOSTILE, "withdrawal": HOSTILE, "flags": (HOSTILE,)}
    return compared(name, base, head, **given | keys)


@pytest.mark.parametrize("status", ["registered", "withdrawn", "removed", "unregistered"])
@pytest.mark.parametrize("render", [github, commonmark])
def test_nothing_that_others_wrote_becomes_markup(status, render):
    found = [
        finding("PR208", name, level=level, message=HOSTILE, path=HOSTILE, advice=HOSTILE, acknowledged=seen)
        for name in (CHANGED.id, HOSTILE, "")
        for level in Level
        for seen in (HOSTILE, None)
    ]
    unknown = finding("PR140", message=HOSTILE, name=CHANGED.id)
    several = (hostile_prediction(status=status), hostile_prediction(HOSTILE))
    text = text_of(
        *found, unknown, predictions=several, study=HOSTILE, covered=HOSTILE, standing=tuple(found)
    )
    page = render(text)
    assert set(re.findall(r"<(\w+)", page)) <= OURS
    assert {len(row) for row in rows_of(page)} == {COLUMNS}
    assert not re.search(r"<\w+ (?!align)", page)
    assert not re.search("[\u202e\u200b\u0000\x1b]", page.replace("\N{ZERO WIDTH SPACE}", ""))
    outside = re.sub("<code>.*?</code>", "", page, flags=re.DOTALL)
    assert not re.search(r"@octocat|#12|GH-3|https?://", outside)


def test_text_without_end_hides_no_row():
    other = finding("PR207", "other", message="gone")
    endless = [
        finding("PR203", CHANGED.id, message=each, advice=each, about=each[:9])
        for each in (ZALGO, "&" * 100_000, "\x00" * 100_000, "|" * 100_000, "`" * 100_000)
    ]
    many = [finding("PR140", CHANGED.id, message=f"{number} {ZALGO}") for number in range(20)]
    shown = compared(CHANGED.id, recorded(ZALGO, unit=ZALGO), recorded(ZALGO, reason=ZALGO), wants=ZALGO)
    text = text_of(*endless, other, *many, predictions=(shown,), study=ZALGO)
    assert len(text) < COMMENT
    assert "other" in [row[1] for row in rows_of(github(text))]
    assert "<code>other</code>: gone" in github(text)


def test_a_number_can_be_copied_as_it_is():
    assert "\N{ZERO WIDTH SPACE}" not in text_of(predictions=(CHANGED,)).split("<details>")[0]


def test_a_command_is_shown_to_the_letter():
    command = "git checkout HEAD -- 'a  b|c'"
    page = page_of(finding(name=CHANGED.id, advice=f"Bring it back: {command}"), predictions=(CHANGED,))
    assert f"<code>{command}</code>" in unescape(page)


def test_what_nobody_could_read_is_told_all_the_same():
    page = page_of(
        finding("PR001", "", message="no such key"), is_loaded=False, predictions=(), base=None, head=None
    )
    assert "no prediction was looked at" in page
    assert "<code>predictions.toml:14</code>: no such key" in page
    assert rows_of(page)[0][1:] == ["the study", "", "", "", "", "PR001 no such key"]


def test_a_gate_is_told_prediction_by_prediction():
    found = gated(*FOUND_IN_IT, predictions=PULL_REQUEST)
    assert b"| | prediction | base | this pull request |" in rendered(found, "markdown")
    assert rendered(found, "terminal").startswith(b"gate of kernels: can't pass\n")


def test_a_withdrawal_is_told_with_its_reason_and_that_it_counts():
    gone = compared(NEW.id, recorded("refuted"), recorded("refuted"), status="withdrawn", withdrawal="a typo",
                    is_counted=True)  # fmt: skip
    row = rows_of(page_of(finding("PR203", NEW.id, Level.NOTICE), predictions=(gone,)))[0]
    assert row[3] == "withdrawn, counted as refuted"
    assert row[6].startswith("PR203 withdrawn / reason: a typo / ")
