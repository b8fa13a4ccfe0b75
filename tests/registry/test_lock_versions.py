"""Many versions of a lock are read as quickly as they differ, and always as parsing each of them would."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from pytest_prereg.errors import StudyError
from pytest_prereg.registry.lock import (
    Acknowledgement,
    Amendment,
    Exclusion,
    Lock,
    LockEntry,
    Void,
    Withdrawal,
    parse_lock,
    render_lock,
)
from pytest_prereg.registry.lock_versions import LockReader, may_be_lock, study_named

AT = "2026-08-02T12:00:00Z"
NASTY = (
    "[predictions.a]",
    "[predictions.b.withdrawal]",
    "[[predictions.a.amendment]]",
    "[predictions]",
    "[[exclusion]]",
    "[exclusion]",
    " [predictions.a]",
    "[predictions.a] # again",
    '[predictions."a"]',
    'x = """',
    "x = '''",
    '"""',
    "interval = [",
    "]",
    "[1.0, 2.0],",
    "version = 2",
    "version = 1",
    'study = "other"',
    "predictions.a.n = 3",
    "n = 3",
    "reason = 3",
    "# a comment",
    "",
    "<<<<<<< ours",
    "\r",
)

digests = st.text("0123456789abcdef", min_size=64, max_size=64).map("sha256:{}".format)
words = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ['a "b" \\ c', "two\n\n[predictions.a]\nlines", "\n\n[[exclusion]]\n", "'''", '"""', "ü"]
    ),
)
names = st.sampled_from(["a", "b", "c-d", "faster[cols=4096]", "a_b[c=-1.5,d=x]", "0"])
amendments = st.builds(Amendment, old=digests, new=digests, reason=words, at=st.just(AT))
entries = st.builds(
    LockEntry,
    digest=digests,
    claim=digests,
    registered=st.just(AT),
    unit=st.just("s"),
    verdict=st.sampled_from([None, "refuted"]),
    interval=st.sampled_from([None, (0.5, 1.5), (float("-inf"), 3.0)]),
    n=st.sampled_from([None, 7]),
    amendments=st.lists(amendments, max_size=2).map(tuple),
    withdrawal=st.one_of(st.none(), st.builds(Withdrawal, reason=words, at=st.just(AT))),
)
locks = st.builds(
    Lock,
    study=st.sampled_from(["small", "other"]),
    predictions=st.dictionaries(names, entries, max_size=4),
    exclusions=st.lists(
        st.builds(
            Exclusion, repeat=words, reason=words, cause=st.sampled_from(["tool", "subject"]), at=st.just(AT)
        ),
        max_size=2,
    ).map(tuple),
    voided=st.lists(st.builds(Void, series=words, reason=words, at=st.just(AT)), max_size=2).map(tuple),
    acknowledged=st.lists(
        st.builds(Acknowledgement, code=st.sampled_from(["PR202", "PR213"]), id=words, reason=words),
        max_size=2,
    ).map(tuple),
)
edits = st.lists(
    st.tuples(st.integers(0, 200), st.sampled_from(["delete", "repeat", "insert"]), st.sampled_from(NASTY)),
    max_size=4,
)


def parsed(data: bytes) -> Lock | str:
    try:
        return parse_lock(data, "a.lock")
    except StudyError as error:
        return str(error)


def read(reader: LockReader, data: bytes) -> Lock | str:
    try:
        return reader.read(data, "a.lock")
    except StudyError as error:
        return str(error)


def edited(text: str, changes: list[tuple[int, str, str]]) -> bytes:
    lines = text.split("\n")
    for place, what, line in changes:
        index = place % len(lines) if lines else 0
        if what == "insert":
            lines.insert(index, line)
        elif lines:
            lines[index : index + 1] = [] if what == "delete" else [lines[index]] * 2
    return "\n".join(lines).encode()


@given(versions=st.lists(locks, min_size=1, max_size=3))
def test_a_version_is_read_as_it_is_parsed(versions: list[Lock]):
    reader = LockReader()
    for lock in versions:
        data = render_lock(lock).encode()
        found = reader.read(data, "a.lock")
        assert found == parse_lock(data, "a.lock")
        assert list(found.predictions) == list(parse_lock(data, "a.lock").predictions)


@given(lock=locks, changes=edits)
@example(lock=Lock(study="small"), changes=[])
def test_so_is_one_that_was_edited_by_hand(lock: Lock, changes: list[tuple[int, str, str]]):
    reader = LockReader()
    text = render_lock(lock)
    read(reader, text.encode())
    data = edited(text, changes)
    assert read(reader, data) == parsed(data)


ENTRY = LockEntry(digest="sha256:" + "0" * 64, claim="sha256:" + "1" * 64, registered=AT, unit="s")


def test_what_two_versions_have_in_common_is_the_same_object():
    reader = LockReader()
    first = Lock(study="small", predictions={"a": ENTRY, "b": replace(ENTRY, n=3)})
    second = replace(first, predictions={**first.predictions, "b": replace(ENTRY, n=4), "c": ENTRY})
    before, after = (reader.read(render_lock(one).encode(), "a.lock") for one in (first, second))
    assert before.predictions["a"] is after.predictions["a"]
    assert before.predictions["b"] != after.predictions["b"]


def test_the_second_of_two_versions_costs_what_is_new_in_it(count_calls):
    several = {f"p{number}": replace(ENTRY, n=number) for number in range(200)}
    first = render_lock(Lock(study="small", predictions=several)).encode()
    second = render_lock(Lock(study="small", predictions={**several, "p7": replace(ENTRY, n=-1)})).encode()
    reader = LockReader()
    whole = count_calls(lambda: reader.read(first, "a.lock"))
    assert count_calls(lambda: reader.read(second, "a.lock")) * 10 < whole


@pytest.mark.parametrize("key", ["study", '"study"', '"st\\u0075dy"'])
def test_a_lock_is_known_however_its_key_is_spelled(key: str):
    data = f'version = 1\n{key} = "small"\n'.encode()
    assert may_be_lock(data)
    assert LockReader().read(data, "a.lock").study == "small"


def test_another_tools_lock_is_none():
    assert not may_be_lock(b'version = 1\n[[package]]\nname = "numpy"\n')


def test_the_study_of_a_lock_with_conflict_markers_can_be_told():
    text = render_lock(Lock(study="small", predictions={"a": ENTRY}))
    data = text.replace("[predictions.a]", "<<<<<<< ours\n[predictions.a]").encode()
    assert study_named(data) == "small"
    with pytest.raises(StudyError, match="<<<<<<< ours"):
        LockReader().read(data, "a.lock")
