"""Every version of a study's lock that led to HEAD: found by what it says, whatever became of its file."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from pytest_prereg.audit.history.chronicle import Amended, Chronicle, amended, chronicle
from pytest_prereg.audit.history.git import Repository
from pytest_prereg.audit.history.past import NoPast, Past
from pytest_prereg.registry.lock import Lock, LockEntry, read_lock, render_lock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import GitRepository

AT = "2026-08-02T12:00:00Z"
ONE, TWO, THREE = (f"sha256:{digit * 64}" for digit in "123")


def entry(digest: str = ONE) -> LockEntry:
    return LockEntry(digest=digest, claim=ONE, registered=AT, unit="s")


def lock(study: str = "small", **digests: str) -> Lock:
    return Lock(study=study, predictions={name: entry(digest) for name, digest in digests.items()})


class Locks:
    """A repository in which locks are committed."""

    def __init__(self, repository: GitRepository) -> None:
        self.git = repository.git
        self.path = repository.path
        self._repository = repository

    def keep(self, text: Lock | str, name: str = "predictions.lock") -> str:
        self._repository.write(name, text if isinstance(text, str) else render_lock(text))
        return self._repository.commit(f"Write {name}")

    def go_on(self, name: str = "other.txt") -> str:
        self._repository.write(name, name)
        return self._repository.commit(f"Write {name}")

    def read(self, name: str = "predictions.lock", study: str = "small") -> Chronicle:
        past = Past.read(Repository.find(self.path), study, {}, set())
        return chronicle(past, read_lock(self.path / name), name)


@pytest.fixture
def locks(git_repository: Callable[..., GitRepository]) -> Locks:
    return Locks(git_repository())


def told(record: Chronicle) -> list[tuple[str, str | None, list[str], str | None]]:
    """Id, commit, digests before and digest after, each by its first digit."""
    return [
        (
            one.id,
            one.commit,
            [before.digest[7] for before in one.before],
            one.after.digest[7] if one.after else None,
        )
        for one in record.changes
    ]


def test_versions_come_oldest_first_with_what_each_changed(locks: Locks):
    first = locks.keep(lock(a=ONE))
    locks.go_on()
    second = locks.keep(lock(a=ONE, b=ONE))
    third = locks.keep(lock(a=TWO, b=ONE))
    record = locks.read()
    assert [version.commit for version in record.versions] == [first, second, third]
    assert told(record) == [("a", first, [], "1"), ("b", second, [], "1"), ("a", third, ["1"], "2")]
    assert amended(record) == [Amended(id="a", old=ONE, new=TWO, before=(second,), after=third)]


def test_dates_play_no_part(locks: Locks, monkeypatch: pytest.MonkeyPatch):
    commits = []
    for year, versions in ((2031, lock(a=ONE)), (2021, lock(a=TWO)), (2011, lock(a=THREE))):
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"{year}-01-01T00:00:00Z")
        commits.append(locks.keep(versions))
    assert [version.commit for version in locks.read().versions] == commits


def test_what_is_on_disk_is_the_last_version(locks: Locks):
    first = locks.keep(lock(a=ONE))
    assert [version.commit for version in locks.read().versions] == [first]
    (locks.path / "predictions.lock").write_text(render_lock(lock(a=TWO)))
    record = locks.read()
    assert told(record)[-1] == ("a", None, ["1"], "2")
    assert amended(record) == [Amended(id="a", old=ONE, new=TWO, before=(first,), after=None)]


def test_a_lock_that_was_deleted_and_never_committed_so_is_a_version(locks: Locks):
    locks.keep(lock(a=ONE))
    (locks.path / "predictions.lock").unlink()
    assert told(locks.read())[-1] == ("a", None, ["1"], None)


def test_written_in_another_form_it_is_the_same_version(locks: Locks):
    first = locks.keep(lock(a=ONE, b=ONE))
    text = render_lock(lock(b=ONE, a=ONE)).replace(" = ", "=").replace("\n\n", "\n# by hand\n\n")
    locks.keep(text)
    assert [version.commit for version in locks.read().versions] == [first]


@pytest.mark.parametrize("to", ["elsewhere/predictions.lock", "predictions/renamed.lock", "a b ü.lock"])
def test_moved_or_renamed_it_is_the_same_version(locks: Locks, to: str):
    first = locks.keep(lock(a=ONE))
    (locks.path / to).parent.mkdir(exist_ok=True)
    locks.git("mv", "predictions.lock", to)
    locks.go_on()
    last = locks.keep(lock(a=TWO), to)
    record = locks.read(to)
    assert [version.commit for version in record.versions] == [first, last]
    assert amended(record)[0].old == ONE


def test_another_study_with_the_same_prediction_is_none_of_it(locks: Locks):
    first = locks.keep(lock(a=ONE))
    locks.keep(lock("other", a=TWO), "other.lock")
    locks.keep(lock("other", a=THREE), "other.lock")
    assert told(locks.read()) == [("a", first, [], "1")]
    assert [one[2:] for one in told(locks.read("other.lock", "other"))] == [([], "2"), (["2"], "3")]


def test_another_tools_lock_is_none_of_it(locks: Locks):
    locks.keep('version = 1\n[[package]]\nname = "study"\n', "uv.lock")
    first = locks.keep(lock(a=ONE))
    locks.keep("# a comment, then anything: study = 'small'\n[\n", "other.lock")
    assert told(locks.read()) == [("a", first, [], "1")]


def test_a_study_may_have_another_tools_name(locks: Locks):
    first = locks.keep(lock(a=ONE), "uv.lock")
    assert told(locks.read("uv.lock")) == [("a", first, [], "1")]


def branches(locks: Locks, main: Lock, side: Lock, base: Lock | None = None) -> tuple[str, str]:
    """Commits of two branches that write the lock; the current one is main."""
    if base is None:
        locks.go_on("begin.txt")
    else:
        locks.keep(base)
    locks.git("checkout", "--quiet", "-b", "side")
    second = locks.keep(side)
    locks.git("checkout", "--quiet", "main")
    return locks.keep(main), second


def merged(locks: Locks, result: Lock) -> str:
    subprocess.run(
        ["git", "merge", "--quiet", "--no-commit", "side"], cwd=locks.path, capture_output=True, check=False
    )
    return locks.keep(result)


def test_what_two_branches_registered_is_no_change_of_their_merge(locks: Locks):
    first, second = branches(locks, lock(a=ONE), lock(b=TWO))
    merge = merged(locks, lock(a=ONE, b=TWO))
    record = locks.read()
    assert sorted(told(record)) == sorted([("a", first, [], "1"), ("b", second, [], "2")])
    assert record.versions[-1].commit == merge
    assert set(record.versions[-1].parents) == {first, second}


def test_what_no_side_has_is_a_change_of_the_merge(locks: Locks):
    first, second = branches(locks, lock(a=ONE), lock(a=TWO))
    merge = merged(locks, lock(a=THREE))
    record = locks.read()
    assert told(record)[-1][:2] == ("a", merge)
    assert amended(record) == [
        Amended(id="a", old=ONE, new=THREE, before=(first,), after=merge),
        Amended(id="a", old=TWO, new=THREE, before=(second,), after=merge),
    ]


def test_what_a_merge_dropped_whole_is_a_change(locks: Locks):
    branches(locks, lock(a=ONE), lock(b=TWO))
    locks.git("merge", "--quiet", "--strategy=ours", "side", "--message", "Merge")
    assert told(locks.read())[-1] == ("b", locks.git("rev-parse", "HEAD"), ["2"], None)


def test_registered_anew_it_is_compared_with_what_was_taken_out(locks: Locks):
    first = locks.keep(lock(a=ONE, b=ONE))
    out = locks.keep(lock(b=ONE))
    last = locks.keep(lock(a=TWO, b=ONE))
    record = locks.read()
    assert told(record)[-2:] == [("a", out, ["1"], None), ("a", last, ["1"], "2")]
    assert amended(record) == [Amended(id="a", old=ONE, new=TWO, before=(first,), after=last)]


def test_a_version_that_cannot_be_read_is_passed_over_and_told(locks: Locks):
    first = locks.keep(lock(a=ONE))
    broken = locks.keep(render_lock(lock(a=TWO)).replace("[predictions.a]", "<<<<<<< ours\n[predictions.a]"))
    newer = locks.keep(replace(lock(a=TWO), version=2))
    last = locks.keep(lock(a=THREE))
    record = locks.read()
    assert [one.commit for one in record.unread] == [broken, newer]
    assert amended(record) == [Amended(id="a", old=ONE, new=THREE, before=(first,), after=last)]


def test_where_the_history_is_cut_nothing_is_claimed_of_what_came_before(locks: Locks, tmp_path: Path):
    locks.keep(lock(a=ONE))
    head = locks.keep(lock(a=TWO))
    clone = tmp_path / "clone"
    command = ["git", "clone", "--quiet", "--depth=1", locks.path.as_uri(), str(clone)]
    subprocess.run(command, check=True, capture_output=True)
    past = Past.read(Repository.find(clone), "small", {}, set())
    record = chronicle(past, read_lock(clone / "predictions.lock"), "predictions.lock")
    assert [(version.commit, version.before, version.is_cut) for version in record.versions] == [
        (head, (), True)
    ]
    assert amended(record) == []


def test_two_locks_of_a_study_in_one_commit_are_told_where_they_differ(locks: Locks):
    (locks.path / "copy").mkdir()
    (locks.path / "copy" / "predictions.lock").write_text(render_lock(lock(a=TWO, b=ONE)))
    commit = locks.keep(lock(a=ONE))
    (version,) = (one for one in locks.read().versions if one.commit == commit)
    assert version.rivals == (("a", TWO),)
    assert {name: one.digest for name, one in version.lock.predictions.items()} == {"a": ONE, "b": ONE}


@pytest.mark.parametrize("empty", [True, False])
def test_without_a_history_the_lock_on_disk_is_the_one_version(*, empty: bool):
    record = chronicle(NoPast(detail="none", is_empty=empty), lock(a=ONE))
    assert told(record) == [("a", None, [], "1")]
    assert record.versions[0].is_cut is not empty


# Several locks of one study


def verdict(of: LockEntry, said: str | None) -> LockEntry:
    return replace(of, verdict=said)


def judged(said: str | None) -> Lock:
    return Lock(study="small", predictions={"a": verdict(entry(), said)})


def beside(record: Chronicle) -> list[tuple[str | None, str, str | None]]:
    """Commit, digest by its first digit, and verdict, of what other locks say."""
    return [
        (version.commit, one.other.digest[7], one.other.verdict)
        for version in record.versions
        for one in version.beside
    ]


def test_a_lock_is_followed_to_where_it_was_and_not_to_a_copy_that_comes_first(locks: Locks):
    for folder in ("a", "s"):
        (locks.path / folder).mkdir()
    (locks.path / "a" / "predictions.lock").write_text(render_lock(judged(None)))
    (locks.path / "s" / "predictions.toml").write_text("")
    locks.keep(judged(None), "s/predictions.lock")
    refuted = locks.keep(judged("refuted"), "s/predictions.lock")
    cleared = locks.keep(judged(None), "s/predictions.lock")
    locks.git("mv", "s/predictions.lock", "predictions.lock")
    locks.git("rm", "--quiet", "a/predictions.lock")
    locks.go_on()
    record = locks.read()
    changes = [(one.commit, one.after.verdict if one.after else "gone") for one in record.changes]
    assert changes[1:] == [(refuted, "refuted"), (cleared, None)]
    assert beside(record) == []


def test_a_copy_that_says_what_the_lock_once_said_is_left_behind(locks: Locks):
    locks.keep(lock(a=ONE))
    (locks.path / "vendor").mkdir()
    locks.keep(lock(a=ONE), "vendor/predictions.lock")
    locks.keep(lock(a=TWO))
    assert beside(locks.read()) == []


@pytest.mark.parametrize("said", ["supported", "refuted"])
def test_a_copy_that_says_what_the_lock_never_said_is_told(locks: Locks, said: str):
    locks.keep(judged(None))
    (locks.path / "vendor").mkdir()
    ahead = locks.keep(judged(said), "vendor/predictions.lock")
    locks.git("rm", "--quiet", "vendor/predictions.lock")
    locks.go_on()
    assert beside(locks.read()) == [(ahead, "1", said)]


def test_a_copy_left_behind_is_told_where_it_says_what_is_registered_again(locks: Locks):
    """Else the one of the two could be registered that the data turn out to be for."""
    locks.keep(lock(a=ONE))
    (locks.path / "vendor").mkdir()
    locks.keep(lock(a=ONE), "vendor/predictions.lock")
    amended_in = locks.keep(lock(a=TWO))
    locks.keep(lock(a=ONE))
    assert beside(locks.read()) == [(amended_in, "1", None)]


def test_what_only_another_lock_registers_is_registered(locks: Locks):
    locks.keep(lock(a=ONE))
    (locks.path / "assets").mkdir()
    hidden = locks.keep(lock(b=TWO), "assets/x.lock")
    locks.git("rm", "--quiet", "assets/x.lock")
    gone = locks.go_on()
    assert told(locks.read())[1:] == [("b", hidden, [], "2"), ("b", gone, ["2"], None)]


def test_a_broken_file_beside_the_lock_hides_none_of_its_versions(locks: Locks):
    (locks.path / "assets").mkdir()
    locks.keep('study = "small"\n<<<<<<< ours\n', "assets/x.lock")
    first = locks.keep(lock(a=ONE))
    second = locks.keep(lock(a=TWO))
    third = locks.keep(lock(a=ONE))
    record = locks.read()
    assert record.unread == ()
    assert [one.commit for one in record.changes] == [first, second, third]


def test_a_version_that_cannot_be_read_is_known_by_its_content_and_by_all_that_have_it(locks: Locks):
    locks.keep(lock(a=ONE))
    broken = locks.keep('study = "small"\n<<<<<<< ours\n')
    later = locks.go_on()
    locks.keep(lock(a=ONE))
    (one,) = locks.read().unread
    assert (one.commit, one.commits) == (broken, {broken, later})
    assert one.blob == locks.git("rev-parse", f"{broken}:predictions.lock")
    assert [before.predictions for before in one.before] == [lock(a=ONE).predictions]


def test_a_lock_that_could_never_be_read_is_registered_when_it_can(locks: Locks):
    locks.keep('study = "small"\n<<<<<<< ours\n')
    (locks.path / "predictions.lock").write_text(render_lock(lock(a=ONE)))
    assert told(locks.read()) == [("a", None, [], "1")]


def test_what_is_put_back_is_compared_with_what_was_there_last(locks: Locks):
    locks.keep(judged(None))
    locks.keep(lock(b=ONE))
    locks.keep(judged(None))
    last = locks.keep(judged("refuted"))
    locks.git("mv", "predictions.lock", "notes.txt")
    locks.go_on()
    locks.keep(judged(None))
    step = locks.read().steps["a"][-1]
    assert {commit: one.verdict for commit, one in step.before.items()} == {last: "refuted"}
    assert step.change is not None
    assert step.change.restored


def test_a_merge_is_compared_with_what_a_side_had_taken_out(locks: Locks):
    refuted, _ = branches(locks, judged("refuted"), lock(a=ONE, b=ONE), base=judged(None))
    locks.git("rm", "--quiet", "predictions.lock")
    locks.go_on()
    locks.git("merge", "--quiet", "--strategy=ours", "--no-commit", "side")
    locks.keep(judged(None))
    step = locks.read().steps["a"][-1]
    assert {commit: one.verdict for commit, one in step.before.items()}[refuted] == "refuted"


def test_another_tools_lock_is_looked_at_where_it_counted_for_the_order(locks: Locks):
    """Its first and its last version are no lock of the study; where the tag is, it was one."""
    locks.keep(lock(a=ONE))
    locks.keep("version = 1\n", "uv.lock")
    hidden = locks.keep(lock(a=TWO), "uv.lock")
    locks.git("tag", "prereg/small/0")
    locks.keep("version = 2\n", "uv.lock")
    assert beside(locks.read()) == [(hidden, "2", None)]
