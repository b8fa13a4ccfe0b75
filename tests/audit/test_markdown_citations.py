"""Where Markdown has a citation, where it is code, and what only looks like one."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_prereg.audit.citing.markdown import prose_of
from pytest_prereg.audit.citing.marks import marks_of

A = "<!-- prereg: a.n -->7<!-- /prereg -->"


def references(text: str) -> list[str]:
    marks = marks_of(text)
    assert not marks.flaws
    return [mark.reference for mark in marks.found]


@pytest.mark.parametrize(
    "text",
    [
        A,
        f"It took {A} repeats.",
        f"# Of {A} repeats",
        f"| a | b |\n|---|---|\n| {A} | 1 |\n",
        f"[of {A} repeats](page.md)",
        f"- item\n\n  {A}\n",
        f"- item\n\n     {A} is three columns further in\n",
        f"10. item\n\n    {A} belongs to the item\n",
        f"- a\n  - b\n\n    {A}\n",
        f"text\n    {A} goes on with the paragraph\n",
        f"> quoted {A}\n",
        f"> quoted\nlazily {A}\n",
        f"a ` b\n\n{A} and ` c",
        f"a \\` b {A} and \\` c",
        f"`` a ` b {A} c",
        f"<div>`{A}`</div>\n",
        f"<a title='`'>{A}<b title='`'>",
        f"<http://a`b> {A} `",
        f"| ` | {A} |\n|---|---|\n| ` | b |\n",
        f"```\ncode\n```\n{A}\n",
        f"````\n```\n````\n{A}\n",
        f"~~~ `\n```\n~~~\n{A}\n",
        f"- ```\n  code\n{A} ends the item, and with it the fence\n",
        f"> ```\n> code\n{A} ends the quote\n",
        f"``` no ` fence\n{A} ``` after all",
        f"<pre>\n\n{A} that is never closed\n",
        f"<pre>code</pre> {A}",
        f"\ufeff{A}",
        f"\ufeff```\ncode\n```\n{A}\n",
        f'[a](b "`") {A} `',
        f"[a]: b '`'\n\n{A} `",
        f"![of {A} repeats](image.png)",
        f"<!-- x ---> {A} <!-- -->",
        f"<!--> {A} <!---> `",
        f"<!-- ` <!--> {A} `",
        f"| a | b |\r\n|---|---|\r\n| \\| {A} | `x` |\r\n",
        f"a\r\n\r\n{A}\r\n",
        f"a\r\r{A}\r",
    ],
)
def test_prose_cites(text: str):
    assert references(text) == ["a.n"]


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{A}\n```\n",
        f"```text\n{A}\n",
        f"   ```\n{A}\n   ```\n",
        f"````\n```\n{A}\n````\n",
        f"~~~\n```\n{A}\n~~~\n",
        f"```\n~~~\n{A}\n```\n",
        f"```\n``` more\n{A}\n```\n",
        f"> ```\n> {A}\n> ```\n",
        f"- ```\n  {A}\n  ```\n",
        f"1. a\n\n   ~~~\n   {A}\n   ~~~\n",
        f"> - ```\n>   {A}\n",
        f"    {A}\n",
        f"\t{A}\n",
        f"- a\n\n      {A}\n",
        f"text\n\n    {A}\n",
        f"`{A}`",
        f"`` ` {A} ``",
        f"`a\nx {A}\nb`",
        f"| a |\n|---|\n| `{A}` |\n",
        f"<pre>\n{A}\n</pre>\n",
        f"<PRE class='x'>{A}</PRE>",
        f"see <code>{A}</code>",
        f"```\r\n{A}\r\n```\r\n",
        f"\ufeff    {A}\n",
        f"``` {A}\n",
        f"`\ufdd0{A}`",
        f"<div>\n<code>{A}</code>\n</div>\n",
    ],
)
def test_code_cites_nothing_and_is_counted(text: str):
    marks = marks_of(text)
    assert (marks.found, marks.flaws, marks.in_code) == ([], [], 1)


def test_a_citation_may_go_over_two_lines():
    (mark,) = marks_of("It is <!-- prereg:\na.interval\n   with-unit -->[1,\n> 2] s<!-- /prereg -->.").found
    assert (mark.line, mark.reference, mark.text) == (1, "a.interval with-unit", "[1, 2] s")


def test_the_place_of_the_text_is_to_the_character():
    text = "\ufeffÄ\r\n<!--prereg:a.n-->  7 \r\n <!--/prereg--> b"
    (mark,) = marks_of(text).found
    assert (mark.line, text[mark.start : mark.end]) == (2, "7")
    assert text[mark.opening : mark.closing].startswith("<!--prereg:a.n-->")
    assert text[mark.closing :] == " b"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("a\n\n<!-- prereg: a.n -->7", "has no end"),
        ("a\n\n<!-- prereg: a.n -->7\n\n<!-- prereg: b.n -->8<!-- /prereg -->", "has no end"),
        ("a\n\n7<!-- /prereg -->", "has no beginning"),
        ("a\n\nb <!-- prereg: a.n -->7`<!-- /prereg -->`", "has no end"),
        ("a\n\n<!-- prereg a.n -->7", "looks like a citation and is none"),
        ("a\n\n<!-- prereg -->7", "looks like a citation and is none"),
        ("a\n\n<!-- Prereg: a.n -->7", "looks like a citation and is none"),
        ("a\n\n<!-- pre-reg: a.n -->7", "looks like a citation and is none"),
        ("a\n\n<!-- perreg: a.b -->7", "looks like a citation and is none"),
        ("a\n\n<!-- prereg\u200b: a.n -->7", "looks like a citation and is none"),
        ("a\n\n<!-- pre\u200breg: a.n -->7", "looks like a citation and is none"),
        ("a\n\n<!-- \uff50\uff52\uff45\uff52\uff45\uff47: a.n -->7", "looks like a citation and is none"),
        ("a\n\n<!-- \u0440rereg: a.estimate -->7", "looks like a citation and is none"),
        ("a\n\n<!-- training-is-free.estimate -->7", "looks like a citation and is none"),
        ("a\n\n<!-- /prereg: a.n -->7", "looks like a citation and is none"),
        ("a\n\n<!-- x <!-- prereg: a.n -->7", "inside of a comment"),
        ("a\n\n<!- prereg: a.n -->7", "is no comment"),
        ("a\n\n<! -- prereg: a.n -->7", "is no comment"),
        ("a\n\n<!\u2014prereg: a.n -->7", "is no comment"),
        ("a\n\n\\<!-- prereg: a.n -->7", "is no comment"),
        ("a\n\n<!-- prereg: a.n --!>7", "is no comment"),
        ("a\n\n<?prereg: a.n ?>7", "is no comment"),
        ("a\n\n<!--> prereg: a.n -->7", "is no comment"),
        ("a\n\n[b](c '<!-- prereg: a.n -->7')", "is no comment"),
        ("a\n\n[b]: c '<!-- prereg: a.n -->7'", "is no comment"),
        ("a\n\n[b]: c '<!--\nprereg: a.n -->7'", "is no comment"),
        ("a\n\n<b title='<!-- prereg: a.n -->7'>", "is no comment"),
        (f"a\n\n{'- ' * 30}<!-- prereg: a.n -->7", "is no comment"),
        ("a\n\n<!-- prereg\ufdd09\ufdd0: a.n -->7\n\n    \ufdd09\ufdd0", "looks like a citation and is none"),
    ],
)
def test_what_is_nearly_a_citation_is_refused_with_its_line(text: str, wrong: str):
    flaw, *others = marks_of(text).flaws
    assert not others
    assert flaw.line == 3
    assert wrong in flaw.message


@pytest.mark.parametrize(
    "comment",
    [
        " prettier-ignore ",
        " prefer short words ",
        " preview.only ",
        " pytest-prereg wrote this ",
        " preregistered in 2020 ",
        " changelog follows ",
        " TODO: see self.name ",
        " e.g. unit tests ",
        "",
    ],
)
def test_other_comments_are_left_alone(comment: str):
    assert marks_of(f"a <!--{comment}--> b") == ([], [], 0)


PIECES = [
    *("`", "``", "```", "~~~", "    ", "  ", " ", "\t", "> ", "- ", "1. ", "2) ", "* ", "\n", "\n", "\n\n"),
    *(
        "C",
        "C",
        "C",
        "|",
        "a",
        "b c",
        "\\",
        "<div>",
        "</div>",
        "<b>",
        "<a x='`'>",
        "# ",
        "---",
        "===",
        "10. ",
    ),
    *(
        "<http://a`b>",
        "***",
        "<!-- x\ny -->",
        "<!-- x\n> y -->",
        "<!-- x --->",
        "\r\n",
        "[a](",
        ")",
        "`` ` ``",
        "\n| a | b |\n|---|---|\n",
    ),
]


def written(random: Random) -> str:
    drawn = [random.choice(PIECES) for _ in range(random.randint(3, 40))]
    return "".join(f"<!-- {at} -->" if piece == "C" else piece for at, piece in enumerate(drawn))


@settings(max_examples=300)
@given(st.integers(0, 2**32))
def test_every_comment_is_found_where_it_stands(seed: int):
    text = written(Random(seed))
    comments = prose_of(text).comments
    places = [(comment.start, comment.end) for comment in comments]
    assert places == sorted(set(places))
    for comment, (start, end) in zip(comments, places, strict=True):
        standing, said = (
            one.replace(">", " ").split() for one in (text[start:end], f"<!--{comment.text}-->")
        )
        assert standing == said


@pytest.mark.parametrize("piece", ["` `` ``` ", "<!-- ", "<code><pre>", "> ", "`<!-- prereg: ` "])
def test_no_text_takes_more_than_one_pass(piece: str):
    """Of half a million characters; what takes a second pass for each sign would take hours."""
    text = f"{A}\n\n{piece * (500_000 // len(piece))}"
    assert [mark.reference for mark in marks_of(text).found] == ["a.n"]
