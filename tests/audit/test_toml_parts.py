"""A file that is read table by table says what it says when it is read at once."""

from __future__ import annotations

import tomllib

import pytest

from pytest_prereg.audit.history.toml_parts import tables

STUDY = """\
# Above all.
[study]
id = "s"

[experiments.e]
repeats = 5
metrics = { t = "s" }
[experiments.e.arms]
a = { x = 1 }

[predictions.p]
claim = "It takes less."
inputs = { a = "e:t" }
"""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a = 1\n",
        STUDY,
        STUDY.replace("\n", "\r\n"),
        STUDY.replace('"It takes less."', '"""\n[predictions.q]\nclaim = "no"\n"""'),
        STUDY.replace('"It takes less."', "'''\n[predictions.q]\n'''"),
        STUDY.replace("repeats = 5", "data = [\n[1, 2],\n[3],\n]"),
        STUDY.replace("[predictions.p]", "[ predictions . p ]  # why"),
        STUDY.replace("[predictions.p]", "[\"predictions\".'p']"),
        STUDY + "\n[[more]]\nx = 1\n[[more]]\nx = 2\n[more.below]\ny = 3\n",
        "[a.b]\nx = 1\n[a]\ny = 2\n",
        "a.b.c = 1\n[d]\ne.f = 2\n",
        "[a]\n[b]\n",
    ],
)
def test_whatever_its_form(text: str):
    assert tables(text) == tomllib.loads(text)
    assert tables(text) == tomllib.loads(text)


@pytest.mark.parametrize(
    "text", ["[a", "a = ", "[a]\nx = 1\n[a]\ny = 2\n", "x = 1\n[x]\n", "[a]\nb = 1\n[a.b]\n"]
)
def test_what_is_no_toml_is_none(text: str):
    with pytest.raises(tomllib.TOMLDecodeError):
        tables(text)


def test_one_version_does_not_change_another():
    other = STUDY.replace("[experiments.e.arms]\n", "[experiments.e.arms]\nb = { x = 2 }\n")
    assert tables(STUDY) == tomllib.loads(STUDY)
    assert tables(other) == tomllib.loads(other)
    assert tables(STUDY) == tomllib.loads(STUDY)


def test_what_versions_share_is_parsed_once(monkeypatch: pytest.MonkeyPatch):
    parsed = []
    original = tomllib.loads
    monkeypatch.setattr("tomllib.loads", lambda text: parsed.append(text) or original(text))
    first = STUDY.replace('id = "s"', 'id = "only-here"')
    tables(first)
    parsed.clear()
    tables(first.replace("It takes less.", "It takes less than ever."))
    assert parsed == ['[predictions.p]\nclaim = "It takes less than ever."\ninputs = { a = "e:t" }\n']
