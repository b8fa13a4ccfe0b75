"""Merging locks: what both sides said, said once; what only a person can decide, between markers."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pytest_prereg.registry.lock_file import (
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
from pytest_prereg.registry.merged_files import CONFLICT, FAILED, MERGED, Outcome, merge_files, merged_text
from pytest_prereg.registry.merging import Merged, merge_locks

if TYPE_CHECKING:
    from collections.abc import Callable


def digest(text: str) -> str:
    return f"sha256:{text * 64}"[:71]


EARLY, LATE = "2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z"
ENTRY = LockEntry(digest=digest("0"), claim=digest("0"), experiment=digest("0"), registered=EARLY, unit="s")
BASE = Lock(study="s", predictions={"a": ENTRY, "m": ENTRY})


# What a person does, each as the command leaves it


def judged(entry: LockEntry, verdict: str = "supported", evidence: str = "e") -> LockEntry:
    numbers: dict[str, Any] = {"estimate": 1.0, "interval": (0.5, 1.5), "n": 5, "series": 1}
    return replace(entry, verdict=verdict, evidence=digest(evidence), **numbers)


UNJUDGED: dict[str, Any] = dict.fromkeys(("verdict", "estimate", "interval", "n", "series", "evidence"))


def amended(
    entry: LockEntry, new: str, key: Any = "digest", reason: str = "why", at: str = EARLY
) -> LockEntry:
    voided = entry.verdict if key == "digest" else None
    old = getattr(entry, key)
    step = Amendment(old=old, new=digest(new), reason=reason, at=at, key=key, verdict=voided)
    changes = {key: digest(new)} | (UNJUDGED if key == "digest" else {})
    return replace(entry, amendments=(*entry.amendments, step), **changes)


def withdrawn(entry: LockEntry, reason: str = "no use", at: str = EARLY) -> LockEntry:
    return replace(entry, withdrawal=Withdrawal(reason=reason, at=at))


def with_entry(lock: Lock, name: str, entry: LockEntry) -> Lock:
    return replace(lock, predictions={**lock.predictions, name: entry})


def without(lock: Lock, name: str) -> Lock:
    return replace(lock, predictions={key: one for key, one in lock.predictions.items() if key != name})


def excluded(lock: Lock, repeat: str, reason: str = "hot", at: str = EARLY) -> Lock:
    one = Exclusion(repeat=repeat, reason=reason, cause="instrument", at=at)
    return replace(lock, exclusions=(*lock.exclusions, one))


def of_entries(base: LockEntry | None, ours: LockEntry | None, theirs: LockEntry | None) -> Merged:
    """Merges locks that differ in one entry."""
    sides = (
        Lock(study="s", predictions={"m": ENTRY, **({"p": entry} if entry else {})})
        for entry in (base, ours, theirs)
    )
    return merge_locks(*sides)


def merged_entry(base: LockEntry | None, ours: LockEntry | None, theirs: LockEntry | None) -> LockEntry:
    merged, swapped = of_entries(base, ours, theirs), of_entries(base, theirs, ours)
    assert merged.conflicts == ()
    assert merged.ours == merged.theirs == swapped.ours
    return merged.ours.predictions["p"]


def conflict_of(base: LockEntry | None, ours: LockEntry | None, theirs: LockEntry | None) -> str:
    merged, swapped = of_entries(base, ours, theirs), of_entries(base, theirs, ours)
    assert merged.conflicts == swapped.conflicts
    ((table, message),) = merged.conflicts
    assert table == "predictions.p"
    assert merged.ours.predictions.get("p") == ours
    assert merged.theirs.predictions.get("p") == theirs
    return message


class TestWhatMergesByItself:
    def test_what_each_side_added(self):
        ours, theirs = with_entry(BASE, "b", ENTRY), with_entry(BASE, "c", judged(ENTRY))
        merged = merge_locks(BASE, ours, theirs)
        assert merged.conflicts == ()
        assert merged.ours.predictions == {"a": ENTRY, "b": ENTRY, "c": judged(ENTRY), "m": ENTRY}

    @pytest.mark.parametrize(
        "change",
        [judged, withdrawn, lambda one: amended(one, "1"), lambda one: amended(judged(one), "1", "claim")],
        ids=["verdict", "withdrawal", "amendment", "words"],
    )
    def test_what_one_side_did(self, change: Callable[[LockEntry], LockEntry]):
        assert merged_entry(ENTRY, change(ENTRY), ENTRY) == change(ENTRY)

    def test_a_verdict_that_was_amended_away_on_one_side_stays_in_its_amendment(self):
        after = amended(judged(ENTRY, "refuted"), "1")
        assert merged_entry(judged(ENTRY, "refuted"), after, judged(ENTRY, "refuted")) == after
        assert after.amendments[0].verdict == "refuted"

    def test_a_verdict_that_was_recorded_anew_on_one_side(self):
        after = judged(ENTRY, "inconclusive", "f")
        assert merged_entry(judged(ENTRY), after, judged(ENTRY)) == after

    def test_the_same_verdict_on_both_sides(self):
        assert merged_entry(ENTRY, judged(ENTRY), judged(ENTRY)) == judged(ENTRY)

    def test_the_same_registration_on_two_branches_keeps_the_earlier_time(self):
        late = replace(ENTRY, registered=LATE)
        assert merged_entry(None, ENTRY, late) == ENTRY
        assert merged_entry(None, judged(late), ENTRY) == judged(ENTRY)

    def test_the_same_amendment_and_the_same_withdrawal_on_two_branches_keep_the_earlier_time(self):
        assert merged_entry(ENTRY, amended(ENTRY, "1"), amended(ENTRY, "1", at=LATE)) == amended(ENTRY, "1")
        assert merged_entry(ENTRY, withdrawn(ENTRY, at=LATE), withdrawn(ENTRY)) == withdrawn(ENTRY)

    def test_a_withdrawal_on_both_sides_of_which_one_knew_the_verdict_keeps_the_verdict(self):
        refuted = withdrawn(judged(ENTRY, "refuted"))
        assert merged_entry(ENTRY, withdrawn(ENTRY), refuted) == refuted

    def test_new_words_on_one_side_and_a_verdict_on_the_other_are_what_both_orders_give(self):
        after = merged_entry(ENTRY, amended(ENTRY, "1", "claim"), judged(ENTRY))
        assert after == judged(amended(ENTRY, "1", "claim")) == amended(judged(ENTRY), "1", "claim")

    def test_exclusions_of_two_sides(self):
        merged = merge_locks(
            BASE, excluded(BASE, "e/1/1"), excluded(excluded(BASE, "e/1/2"), "e/1/1", at=LATE)
        )
        assert merged.conflicts == ()
        assert {(one.repeat, one.at) for one in merged.ours.exclusions} == {
            ("e/1/1", EARLY),
            ("e/1/2", EARLY),
        }

    def test_two_people_may_acknowledge_one_finding_each_for_a_reason(self):
        ours, theirs = (
            replace(BASE, acknowledged=(Acknowledgement(code="PR205", id="a", about="x", reason=reason),))
            for reason in ("seen", "known")
        )
        merged = merge_locks(BASE, ours, theirs)
        assert merged.conflicts == ()
        assert {one.reason for one in merged.ours.acknowledged} == {"seen", "known"}


class TestWhatAPersonDecides:
    @pytest.mark.parametrize(
        ("ours", "theirs", "why"),
        [
            (judged(ENTRY), judged(ENTRY, "refuted"), "given different verdicts on the two sides"),
            (judged(ENTRY), judged(ENTRY, evidence="f"), "given different verdicts on the two sides"),
            (amended(ENTRY, "1"), amended(ENTRY, "2"), "amended in different ways on the two sides"),
            (
                amended(ENTRY, "1"),
                amended(ENTRY, "1", reason="another"),
                "amended in different ways on the two sides",
            ),
            (
                amended(ENTRY, "1"),
                amended(ENTRY, "1", "claim"),
                "amended in different ways on the two sides",
            ),
            (amended(ENTRY, "1"), judged(ENTRY), "amended on one side and given a verdict on the other"),
            (
                amended(ENTRY, "1", "experiment"),
                judged(ENTRY),
                "amended on one side and given a verdict on the other",
            ),
            (
                amended(amended(ENTRY, "1", "claim"), "1"),
                judged(ENTRY),
                "amended on one side and given a verdict on the other",
            ),
            (amended(ENTRY, "1"), withdrawn(ENTRY), "amended on one side and withdrawn on the other"),
            (
                amended(ENTRY, "1", "claim"),
                withdrawn(ENTRY),
                "amended on one side and withdrawn on the other",
            ),
            (
                judged(ENTRY, "refuted"),
                withdrawn(ENTRY),
                "given a verdict on one side and withdrawn on the other",
            ),
            (
                withdrawn(judged(ENTRY)),
                withdrawn(judged(ENTRY, "refuted")),
                "given different verdicts on the two sides",
            ),
            (withdrawn(ENTRY), withdrawn(ENTRY, "other"), "withdrawn in different ways on the two sides"),
            (replace(ENTRY, registered=LATE), ENTRY, "edited: one side changed the time of its registration"),
        ],
    )
    def test_what_one_side_did_does_not_go_with_what_the_other_did(
        self, ours: LockEntry, theirs: LockEntry, why: str
    ):
        assert conflict_of(ENTRY, ours, theirs) == f'"p" was {why}'

    @pytest.mark.parametrize(
        ("base", "less", "why"),
        [
            (ENTRY, None, "removed on one side"),
            (judged(ENTRY, "refuted"), ENTRY, 'found "refuted", and one side no longer says so'),
            (withdrawn(ENTRY), ENTRY, "withdrawn, and one side changed that"),
            (withdrawn(ENTRY), withdrawn(ENTRY, "a nicer reason"), "withdrawn, and one side changed that"),
            (
                amended(ENTRY, "1"),
                replace(amended(ENTRY, "1"), amendments=()),
                "amended, and one side removed or",
            ),
            (
                amended(ENTRY, "1"),
                amended(ENTRY, "1", reason="a nicer reason"),
                "amended, and one side removed or changed that",
            ),
            (
                amended(ENTRY, "1", at=LATE),
                amended(ENTRY, "1", at=EARLY),
                "amended, and one side removed or changed that",
            ),
            (
                judged(ENTRY, "refuted"),
                judged(amended(ENTRY, "1"), "refuted"),
                'found "refuted", and one side no longer says so',
            ),
            (
                ENTRY,
                amended(replace(ENTRY, digest=digest("2")), "1"),
                "registered anew on one side, without an amendment",
            ),
            (ENTRY, replace(ENTRY, digest=digest("1")), "registered anew on one side, without an amendment"),
            (ENTRY, replace(ENTRY, unit="ms"), "registered anew on one side, without an amendment"),
            (
                judged(ENTRY, "refuted"),
                replace(amended(ENTRY, "1"), amendments=amended(ENTRY, "1").amendments),
                'found "refuted", and one side no longer says so',
            ),
        ],
    )
    def test_nothing_is_taken_back_by_one_side(self, base: LockEntry, less: LockEntry | None, why: str):
        assert conflict_of(base, less, base).startswith(f'"p" was {why}')

    def test_what_both_sides_removed_is_gone(self):
        assert merge_locks(BASE, without(BASE, "a"), without(BASE, "a")).ours == without(BASE, "a")

    def test_two_registrations_under_one_id(self):
        why = '"p" was registered in different ways on the two sides'
        assert conflict_of(None, ENTRY, replace(ENTRY, digest=digest("1"))) == why
        assert conflict_of(None, ENTRY, amended(replace(ENTRY, digest=digest("1")), "0")) == why

    @pytest.mark.parametrize(
        ("base", "ours", "theirs", "message"),
        [
            (
                BASE,
                excluded(BASE, "e/1/1"),
                excluded(BASE, "e/1/1", "slow"),
                'the exclusion of "e/1/1" was entered on both sides, and not alike',
            ),
            (
                excluded(BASE, "e/1/1"),
                with_entry(BASE, "b", ENTRY),
                excluded(BASE, "e/1/1"),
                'the exclusion of "e/1/1" was removed or changed on one side',
            ),
            (
                replace(BASE, voided=(Void(series="e/1", reason="r", at=EARLY),)),
                BASE,
                replace(BASE, voided=(Void(series="e/1", reason="r", at=EARLY),)),
                'the voiding of "e/1" was removed or changed on one side',
            ),
            (
                replace(BASE, acknowledged=(Acknowledgement(code="PR205", id="a", reason="r"),)),
                replace(BASE, acknowledged=(Acknowledgement(code="PR205", id="a", reason="r"),)),
                BASE,
                'the acknowledgement of PR205 of "a" was removed or changed on one side',
            ),
        ],
    )
    def test_of_lists(self, base: Lock, ours: Lock, theirs: Lock, message: str):
        merged = merge_locks(base, ours, theirs)
        assert [one.message for one in merged.conflicts] == [message]
        assert merge_locks(base, theirs, ours).conflicts == merged.conflicts

    def test_a_key_of_a_later_release_binds(self):
        """Whatever is no verdict, no time and no tombstone counts as part of the registration."""
        from pytest_prereg.registry.merging import _FIELDS

        parts = [field for fields in _FIELDS.values() for field in fields]
        assert sorted([*parts, "registered"]) == sorted(LockEntry.__struct_fields__)


class TestRemarks:
    def test_a_verdict_that_does_not_know_an_exclusion_of_the_other_side_is_told(self):
        theirs = with_entry(BASE, "a", judged(ENTRY))
        merged = merge_locks(BASE, excluded(BASE, "e/1/3"), theirs)
        assert merged.conflicts == ()
        assert merged.remarks == (
            '"e/1/3" set aside on one side, and the verdict of "a" recorded on the other, which does not know it',
        )

    def test_an_exclusion_beside_no_verdict_is_not(self):
        assert merge_locks(BASE, excluded(BASE, "e/1/3"), with_entry(BASE, "b", ENTRY)).remarks == ()

    def test_a_verdict_that_knew_it_is_not(self):
        ours = excluded(BASE, "e/1/3")
        assert merge_locks(BASE, ours, with_entry(ours, "a", judged(ENTRY))).remarks == ()
        assert (
            merge_locks(ours, with_entry(ours, "b", ENTRY), with_entry(ours, "a", judged(ENTRY))).remarks
            == ()
        )


# For all locks

CHANGES: list[Callable[[LockEntry], LockEntry]] = [
    judged,
    lambda one: judged(one, "refuted"),
    lambda one: amended(one, "1"),
    lambda one: amended(one, "2", "claim"),
    lambda one: amended(one, "3", "experiment", at=LATE),
    withdrawn,
    lambda one: withdrawn(one, "other", LATE),
]
IDS = ["a", "b", "sweep[cols=1]", "sweep[cols=1.5,kind=x.y]"]


@st.composite
def descendants(draw: st.DrawFn, lock: Lock) -> Lock:
    """A lock as people and their commands may leave it, who had this one before."""
    for name in draw(st.lists(st.sampled_from(IDS), max_size=3)):
        fresh = replace(ENTRY, registered=draw(st.sampled_from([EARLY, LATE])))
        change = draw(st.sampled_from(CHANGES))
        lock = with_entry(lock, name, change(lock.predictions[name]) if name in lock.predictions else fresh)
    for repeat in draw(st.lists(st.sampled_from(["e/1/1", "e/1/2"]), max_size=2, unique=True)):
        if all(one.repeat != repeat for one in lock.exclusions):
            lock = excluded(lock, repeat, draw(st.sampled_from(["hot", "long " * 20])), draw(times))
    if draw(st.booleans()) and not lock.voided:
        lock = replace(lock, voided=(Void(series="e/1", reason="broken", at=draw(times)),))
    seen = draw(st.lists(st.sampled_from(["PR205", "PR208"]), max_size=2, unique=True))
    known = {one.code for one in lock.acknowledged}
    new = (Acknowledgement(code=code, id="a", reason="seen", at=LATE) for code in seen if code not in known)
    return replace(lock, acknowledged=(*lock.acknowledged, *new))


@st.composite
def edited(draw: st.DrawFn, lock: Lock) -> Lock:
    """A lock as somebody may leave it who removes what was there."""
    lock = draw(descendants(lock))
    gone = draw(st.lists(st.sampled_from([*lock.predictions, "none"]), max_size=2))
    kept = {name: one for name, one in lock.predictions.items() if name not in gone}
    bare = {name: replace(one, **UNJUDGED) if draw(st.booleans()) else one for name, one in kept.items()}
    exclusions = lock.exclusions[1:] if draw(st.booleans()) else lock.exclusions
    return replace(lock, predictions=bare, exclusions=exclusions)


FEW = settings(max_examples=50)
"""What can go wrong is in small locks, and there are many properties."""

times = st.sampled_from([EARLY, LATE])
EMPTY = Lock(study="s")


@st.composite
def histories(draw: st.DrawFn, change: Callable[[Lock], st.SearchStrategy[Lock]] = descendants) -> list[Lock]:
    """A common version and two that grew out of it."""
    base = draw(descendants(EMPTY))
    return [base, draw(change(base)), draw(change(base))]


def text_of(merged: Merged) -> str:
    return merged_text(merged)[0]


@FEW
@given(histories(edited))
def test_sides_are_merged_alike_whichever_is_named_first(locks: list[Lock]):
    base, ours, theirs = locks
    merged, swapped = merge_locks(base, ours, theirs), merge_locks(base, theirs, ours)
    assert merged.conflicts == swapped.conflicts
    assert sorted(merged.remarks) == sorted(swapped.remarks)
    assert (render_lock(merged.ours), render_lock(merged.theirs)) == (
        render_lock(swapped.theirs),
        render_lock(swapped.ours),
    )


@FEW
@given(histories(edited))
def test_two_sides_that_agree_are_left_as_they_are(locks: list[Lock]):
    base, ours, _ = locks
    merged = merge_locks(base, ours, ours)
    assert (merged.conflicts, text_of(merged)) == ((), render_lock(ours))


@FEW
@given(histories())
def test_what_one_side_left_alone_becomes_what_the_other_made_of_it(locks: list[Lock]):
    base, _, theirs = locks
    for merged in (merge_locks(base, base, theirs), merge_locks(base, theirs, base)):
        assert (merged.conflicts, text_of(merged)) == ((), render_lock(theirs))


@FEW
@given(histories(edited))
def test_a_merge_is_in_the_one_form_and_a_conflict_is_when_a_side_is_taken_out(locks: list[Lock]):
    merged = merge_locks(*locks)
    text, lines = merged_text(merged)
    assert taken_out(text, "ours") == render_lock(merged.ours)
    assert taken_out(text, "theirs") == render_lock(merged.theirs)
    assert render_lock(parse_lock(render_lock(merged.ours), "")) == render_lock(merged.ours)
    assert ("<<<<<<<" in text) == bool(merged.conflicts)
    assert all(text.splitlines()[line - 1] == "<<<<<<< ours" for line in lines.values())
    assert {one.table for one in merged.conflicts} <= lines.keys() or not merged.conflicts


def taken_out(text: str, side: str) -> str:
    """The text with what stands on one side of its markers."""
    kept, within = [], None
    for line in text.splitlines(keepends=True):
        if line == "<<<<<<< ours\n":
            within = "ours"
        elif within and line == "=======\n":
            within = "theirs"
        elif line == ">>>>>>> theirs\n":
            within = None
        elif within in (None, side):
            kept.append(line)
    return "".join(kept)


@FEW
@given(histories(edited))
def test_nothing_that_a_side_says_anew_is_lost(locks: list[Lock]):
    base, ours, theirs = locks
    merged = merge_locks(*locks)
    both = (merged.ours, merged.theirs)
    for side in (ours, theirs):
        for name, entry in side.predictions.items():
            before = base.predictions.get(name, ENTRY)
            found = [lock.predictions[name] for lock in both if name in lock.predictions]
            assert any(one.digest == entry.digest for one in found) or entry.digest == before.digest
            assert any(one.verdict == entry.verdict for one in found) or entry.verdict in (
                None,
                before.verdict,
            )
            assert any(one.withdrawal for one in found) or not entry.withdrawal
            assert any(len(one.amendments) >= len(entry.amendments) for one in found)
        for kept, said in (("exclusions", side.exclusions), ("voided", side.voided)):
            reasons = {one.reason for lock in both for one in getattr(lock, kept)}
            assert {one.reason for one in said} <= reasons
        assert {one.code for one in side.acknowledged} <= {one.code for one in merged.ours.acknowledged}


@FEW
@given(histories(edited))
def test_a_merge_says_of_a_prediction_only_what_a_side_said_of_it(locks: list[Lock]):
    """Every part of an entry is one side's own, and a digest never gets a verdict that was on another."""
    _, ours, theirs = locks
    merged = merge_locks(*locks)
    for name, entry in merged.ours.predictions.items():
        sides = [lock.predictions[name] for lock in (ours, theirs) if name in lock.predictions]
        assert any((one.digest, one.experiment) == (entry.digest, entry.experiment) for one in sides)
        verdict = (entry.digest, entry.experiment, entry.verdict, entry.evidence)
        assert any((one.digest, one.experiment, one.verdict, one.evidence) == verdict for one in sides)
        assert any(bool(one.withdrawal) == bool(entry.withdrawal) for one in sides)


@FEW
@given(histories(edited))
def test_without_a_common_version_everything_that_is_there_stays(locks: list[Lock]):
    _, ours, theirs = locks
    merged = merge_locks(None, ours, theirs)
    assert merged.ours.predictions.keys() == ours.predictions.keys() | theirs.predictions.keys()
    for name, entry in merged.ours.predictions.items():
        sides = [lock.predictions[name] for lock in (ours, theirs) if name in lock.predictions]
        if not merged.conflicts:
            assert entry.verdict or not any(one.verdict for one in sides)
            assert len(entry.amendments) == max(len(one.amendments) for one in sides)


@FEW
@given(descendants(EMPTY), st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_branches_that_add_different_predictions_merge_in_any_order(base: Lock, owners: list[int]):
    new = [f"new-{number}" for number in range(len(owners))]
    branches = [base, base, base]
    for name, owner in zip(new, owners, strict=True):
        branches[owner] = with_entry(branches[owner], name, ENTRY)
    results = set()
    for first, second, third in permutations(branches):
        merged = merge_locks(base, merge_locks(base, first, second).ours, third)
        assert merged.conflicts == ()
        results.add(render_lock(merged.ours))
    assert results == {
        render_lock(replace(base, predictions={**base.predictions, **dict.fromkeys(new, ENTRY)}))
    }


# Files, as git hands them over


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., tuple[Outcome, str]]:
    """``files(base, ours, theirs)``: merges three files; the outcome, and what stands in the second."""

    def merge(*contents: str | bytes | None) -> tuple[Outcome, str]:
        paths = [tmp_path / name for name in ("base", "ours", "theirs")]
        for path, content in zip(paths, contents, strict=True):
            if content is not None:
                path.write_bytes(content.encode() if isinstance(content, str) else content)
        outcome = merge_files(*paths, "predictions.lock")
        assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []
        return outcome, paths[1].read_bytes().decode("utf-8", "replace")

    return merge


OURS, THEIRS = with_entry(BASE, "b", ENTRY), with_entry(BASE, "c", ENTRY)
UNION = render_lock(with_entry(OURS, "c", ENTRY))


@pytest.mark.parametrize("base", [render_lock(BASE), "", None], ids=["common", "empty", "absent"])
def test_files_merge_into_the_second(files, base):
    assert files(base, render_lock(OURS), render_lock(THEIRS)) == (Outcome(MERGED), UNION)


@pytest.mark.parametrize(
    "base",
    ["<<<<<<< a\n=======\n>>>>>>> b\n", "version = 9\n", b"\xff", render_lock(replace(BASE, study="t"))],
    ids=["criss-cross", "version", "bytes", "another study"],
)
def test_a_common_version_that_says_nothing_of_the_lock_counts_as_none(files, base):
    assert files(base, render_lock(OURS), render_lock(THEIRS)) == (Outcome(MERGED), UNION)


def test_what_an_editor_did_to_the_text_is_undone(files):
    """Windows line ends, a mark of the byte order, another order, a comment."""
    ours = "\ufeff# mine\n" + render_lock(OURS).replace("\n", "\r\n")
    assert files(render_lock(BASE), ours, render_lock(THEIRS)) == (Outcome(MERGED), UNION)


def test_a_conflict_stands_between_markers_and_all_the_rest_is_merged(files):
    ours = with_entry(OURS, "m", judged(ENTRY))
    theirs = with_entry(THEIRS, "m", amended(ENTRY, "1"))
    outcome, text = files(render_lock(BASE), render_lock(ours), render_lock(theirs))
    (problem,) = outcome.problems
    assert outcome.status == CONFLICT
    assert text.splitlines()[(problem.line or 0) - 1] == "<<<<<<< ours"
    assert str(problem).startswith(
        f'predictions.lock:{problem.line}: PR010: "m" was amended on one side and given a verdict on the other'
    )
    assert text.count("[predictions.m]") == 2
    assert [text.count(f"[predictions.{name}]") for name in "abc"] == [1, 1, 1]
    assert taken_out(text, "ours") == render_lock(with_entry(ours, "c", ENTRY))
    assert taken_out(text, "theirs") == render_lock(with_entry(theirs, "b", ENTRY))


@pytest.mark.parametrize(
    ("theirs", "why"),
    [
        (
            render_lock(THEIRS).replace("version = 1", "version = 2"),
            'line 2: it is in version "2" of the format',
        ),
        ("<<<<<<< x\na = 1\n=======\na = 2\n>>>>>>> y\n", 'line 1: merge-conflict marker "<<<<<<<"'),
        ("[predictions", "not valid TOML at"),
        (b"\xff\xfe", "it is not UTF-8 text"),
        ("", "required field"),
        (render_lock(THEIRS) + 'odd = "x"\n', 'unknown key "odd"'),
        (render_lock(THEIRS).replace("[predictions.c]", "[predictions.a]"), "is given twice"),
    ],
    ids=["version", "markers", "syntax", "bytes", "empty", "key", "twice"],
)
def test_a_side_that_cannot_be_read_never_makes_a_merge_of_the_other_alone(files, theirs, why):
    for sides, which in (((OURS, theirs), "their"), ((theirs, OURS), "our")):
        ours, other = (render_lock(one) if isinstance(one, Lock) else one for one in sides)
        outcome, text = files(render_lock(BASE), ours, other)
        (problem,) = outcome.problems
        assert outcome.status == CONFLICT
        assert f"PR011: can't be merged by prediction, since {which} side can't be read" in str(problem)
        assert why in problem.message
        assert "git checkout -m -- predictions.lock" in str(problem)
        assert text.startswith("<<<<<<< ours\n")
        assert text.endswith(">>>>>>> theirs\n")
        assert render_lock(OURS) in text


def test_locks_of_two_studies_are_not_merged(files):
    outcome, text = files("", render_lock(OURS), render_lock(replace(THEIRS, study="t")))
    (problem,) = outcome.problems
    assert problem.message == 'can\'t be merged: our side registers study "s", and their side study "t"'
    assert (outcome.status, text.count("study = ")) == (CONFLICT, 2)


def test_a_result_that_cannot_be_written_leaves_the_file_and_is_a_failure(files, monkeypatch):
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    outcome, text = files("", render_lock(OURS), render_lock(THEIRS))
    assert text == render_lock(OURS)
    assert outcome.status == FAILED > 128
    assert "No space left on device" in outcome.problems[0].message


def test_a_file_that_is_not_there_is_a_failure(tmp_path):
    (tmp_path / "ours").write_text(render_lock(OURS))
    outcome = merge_files(tmp_path / "base", tmp_path / "ours", tmp_path / "none", "predictions.lock")
    assert outcome.status == FAILED
    assert "none: No such file or directory" in outcome.problems[0].message
