"""Other files that are locks of a study, and times at which nobody can read the lock: what an audit says of them.

Each beside what an honest author does, which an audit lets pass. The verdict is a refutation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from audited_study import STUDY, Small, new_study
from small_study import Project, copied

if TYPE_CHECKING:
    from pathlib import Path

SLOW = "repeat,metric,value,unit\n" + "".join(
    f"{number},wall,{value},s\n" for number, value in enumerate((3.91, 4.12, 3.93, 4.04, 3.95), 1)
)
EASY = STUDY.replace("<= 2 s", "<= 5 s").replace(">= 3 s", ">= 6 s")
BROKEN = 'study = "small"\n<<<<<<< ours\n'
LOCK = "predictions.lock"


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    """Not registered yet."""
    project = new_study(tmp_path / "study")
    project.write("rows.csv", SLOW)
    monkeypatch.chdir(project.path)
    return project


@pytest.fixture(scope="module")
def refuted_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = new_study(tmp_path_factory.mktemp("refuted") / "study")
    project.write("rows.csv", SLOW)
    project.register()
    project.take_in()
    project.record()
    return project.path


@pytest.fixture
def refuted(refuted_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    """Registered, measured, refuted and recorded."""
    folder = copied(Project(refuted_once), tmp_path / "study").path
    monkeypatch.chdir(folder)
    return Small(folder, folder)


def locked(project: Small, text: str) -> str:
    """The lock of another wording, which is written nowhere."""
    project.write("predictions.toml", text)
    project.lock()
    made = project.path / LOCK
    lock = made.read_text()
    made.unlink()
    project.write("predictions.toml", STUDY)
    return lock


def unrecorded(project: Small) -> str:
    """The lock without its record."""
    text = (project.path / LOCK).read_text()
    return text[: text.index("verdict = ")]


def told(project: Small) -> set[tuple[str, str]]:
    """Codes and levels, without notices and what is acknowledged."""
    return {
        (one["code"], one["level"])
        for one in project.audit().findings
        if one["level"] != "notice" and not one["acknowledged"]
    }


# Locks elsewhere that are registered just in case


def chosen(project: Small, lock: str, text: str) -> None:
    """Registers, and takes the evidence in, in one commit: of two wordings the one that fits."""
    project.write("predictions.toml", text)
    project.write(LOCK, lock)
    project.measure()
    project.keep("Everything", ".")


@pytest.mark.parametrize("key", ["study", '"st\\u0075dy"'])
def test_a_list_of_digests_registers_nothing(study: Small, key: str):
    for name, text in (("a", STUDY), ("b", EASY)):
        digest = f'[predictions.below-two]\ndigest = "{digest_in(locked(study, text))}"\n'
        study.write(f"{name}.lock", f'{key} = "small"\n{digest}')
    study.keep("Assets", "a.lock", "b.lock")
    chosen(study, locked(study, EASY), EASY)
    audit = study.audit()
    assert audit.order() == ("simultaneous", "exploratory")
    assert ("PR212", "error") in told(study)


def digest_in(lock: str) -> str:
    return lock.split('digest = "', 1)[1].split('"', 1)[0]


def test_two_whole_locks_elsewhere_are_told(study: Small):
    locks = {text: locked(study, text) for text in (STUDY, EASY)}
    study.write("a.lock", locks[STUDY])
    study.write("b.lock", locks[EASY])
    study.keep("Assets", "a.lock", "b.lock")
    chosen(study, locks[EASY], EASY)
    assert ("PR202", "review") in told(study)


def test_a_whole_lock_is_a_registration_whatever_its_file_is_called(study: Small):
    study.lock()
    study.write("other.lock", (study.path / LOCK).read_text())
    study.keep("Register", "predictions.toml", "other.lock")
    study.measure()
    study.git("rm", "--quiet", "other.lock")
    study.keep("Evidence")
    assert study.audit().order() == ("registered", "confirmatory")
    assert told(study) == set()


@pytest.mark.parametrize("change", [b"\xef\xbb\xbf".__add__, lambda text: text.replace(b"\n", b"\r\n")])
def test_how_an_editor_saves_the_lock_does_not_matter(study: Small, change):
    study.lock()
    lock = study.path / LOCK
    lock.write_bytes(change(lock.read_bytes()))
    study.keep("Register", "predictions.toml", LOCK)
    study.take_in()
    assert study.audit().order() == ("registered", "confirmatory")
    assert told(study) == set()


# A copy beside the lock


def vendored(project: Small) -> None:
    (project.path / "vendor").mkdir()
    for name in ("predictions.toml", LOCK):
        project.write(f"vendor/{name}", (project.path / name).read_text())
    project.keep("Vendor")


def amended(project: Small, text: str) -> None:
    project.write("predictions.toml", text)
    project.done("amend", "below-two", "--reason", "for a good reason")


def test_an_amendment_beside_a_copy_that_was_left_behind(study: Small):
    study.register()
    vendored(study)
    amended(study, EASY)
    study.keep("Amend")
    study.write("later.csv", SLOW.replace("3.91", "3.92"))
    study.measure("later.csv")
    study.keep("Evidence")
    assert study.audit().order() == ("registered", "confirmatory")
    assert told(study) == set()


def test_of_two_amendments_the_one_that_fits(study: Small):
    """The copy keeps what was amended, so that it still counts as registered when the data come."""
    study.register()
    vendored(study)
    amended(study, EASY)
    study.keep("Amend")
    amended(study, STUDY)
    study.measure()
    study.keep("Evidence, and as it was")
    assert told(study) == {("PR202", "review")}


def test_records_that_only_another_lock_has(refuted: Small):
    text = (refuted.path / LOCK).read_text()
    (refuted.path / "a").mkdir()
    refuted.write("a/predictions.lock", text.replace('"refuted"', '"supported"'))
    refuted.keep("Copy")
    refuted.git("rm", "--quiet", "a/predictions.lock")
    refuted.keep("Away")
    assert told(refuted) == {("PR205", "review")}
    refuted.done("acknowledge", "PR205", "below-two", "--reason", "an accident")
    assert told(refuted) == set()


def in_a_folder(path: Path) -> Small:
    """A refuted study in ``s``, beside a copy of its lock as it was before the evidence."""
    project = new_study(path, "s")
    project.write("rows.csv", SLOW)
    project.register()
    (project.top / "a").mkdir()
    (project.top / "a" / LOCK).write_text((project.path / LOCK).read_text())
    project.git("add", "--all", str(project.top))
    project.keep("Copy")
    project.take_in()
    project.record()
    return project


def moved_up(project: Small) -> Small:
    for name in ("predictions.toml", LOCK, "experiments", "rows.csv"):
        project.git("mv", name, f"../{name}")
    project.git("rm", "--quiet", "../a/predictions.lock")
    project.git("commit", "--quiet", "--message", "Tidy up")
    return Small(project.top, project.top)


def test_what_was_done_in_a_folder_beside_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    project = in_a_folder(tmp_path / "study")
    monkeypatch.chdir(project.path)
    before = unrecorded(project)
    project.done("withdraw", "below-two", "--reason", "it is silly")
    project.keep("Withdraw")
    project.write(LOCK, before)
    project.keep("Neither tombstone nor record")
    monkeypatch.chdir(project.top)
    assert told(moved_up(project)) >= {("PR203", "error"), ("PR205", "review")}


def test_an_honest_study_is_moved_beside_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    project = in_a_folder(tmp_path / "study")
    monkeypatch.chdir(project.top)
    assert told(moved_up(project)) == set()


# Locks that can't be read


def test_a_broken_file_elsewhere_is_no_window(refuted: Small):
    refuted.write("x.lock", BROKEN)
    refuted.keep("Assets", "x.lock")
    recorded = unrecorded(refuted)
    refuted.done("withdraw", "below-two", "--reason", "it is silly")
    refuted.keep("Withdraw", LOCK)
    refuted.write(LOCK, recorded)
    refuted.keep("Neither tombstone nor record", LOCK)
    refuted.git("rm", "--quiet", "x.lock")
    refuted.keep("Away")
    assert told(refuted) >= {("PR203", "error"), ("PR205", "review")}


def test_a_broken_file_that_was_there_first(study: Small):
    study.write("x.lock", BROKEN)
    study.keep("Assets", "x.lock")
    study.register()
    study.take_in()
    study.record()
    audit = study.audit()
    assert (audit.order(), audit.told) == (("registered", "confirmatory"), [])


def broken_for_a_while(project: Small) -> None:
    text = (project.path / LOCK).read_text()
    project.write(LOCK, BROKEN)
    project.keep("Merge", LOCK)
    project.go_on()
    project.write(LOCK, text)
    project.keep("Mend", LOCK)


def test_a_lock_that_nobody_could_read_when_there_was_a_verdict(refuted: Small):
    broken_for_a_while(refuted)
    assert told(refuted) == {("PR011", "review")}
    refuted.done("acknowledge", "PR011", "small", "--reason", "a merge that nobody looked at")
    assert told(refuted) == set()
    refuted.write(LOCK, BROKEN.replace("ours", "again"))
    refuted.keep("Again", LOCK)
    refuted.git("checkout", "--quiet", "HEAD~1", "--", LOCK)
    refuted.keep("Mend again", LOCK)
    assert told(refuted) == {("PR011", "review")}


def test_a_lock_that_nobody_could_read_before_there_was_anything_to_hide(study: Small):
    study.register()
    broken_for_a_while(study)
    study.take_in()
    assert told(study) == set()


def test_evidence_that_came_while_nobody_could_read_the_lock(study: Small):
    study.register()
    text = (study.path / LOCK).read_text()
    study.measure()
    study.write(LOCK, BROKEN)
    study.keep("Merge", LOCK)
    study.keep("Evidence", "experiments")
    study.write(LOCK, text)
    study.keep("Mend", LOCK)
    assert ("PR011", "review") in told(study)


# Away for a while


def put_back(project: Small, text: str) -> None:
    project.git("mv", LOCK, "notes.txt")
    project.keep("Notes")
    project.git("mv", "notes.txt", LOCK)
    project.write(LOCK, text)
    project.keep("Lock")


def test_a_lock_that_comes_back_without_its_record(refuted: Small):
    put_back(refuted, unrecorded(refuted))
    assert told(refuted) == {("PR205", "review")}


def test_a_lock_that_comes_back_as_it_was(refuted: Small):
    put_back(refuted, (refuted.path / LOCK).read_text())
    assert told(refuted) == set()


def test_a_record_that_was_reverted_and_is_back_as_it_was(refuted: Small):
    refuted.git("revert", "--no-edit", "HEAD")
    assert told(refuted) == {("PR205", "review")}
    refuted.git("revert", "--no-edit", "HEAD")
    assert told(refuted) == set()


def test_a_record_that_comes_back_as_another(refuted: Small):
    text = (refuted.path / LOCK).read_text()
    refuted.write(LOCK, unrecorded(refuted))
    refuted.keep("Unrecorded")
    refuted.write(LOCK, text.replace('"refuted"', '"supported"'))
    refuted.keep("Supported")
    refuted.write(LOCK, text)
    refuted.keep("Refuted")
    assert ("PR205", "review") in told(refuted)


# Words that are changed again


def test_an_acknowledged_rewording_covers_no_later_one(refuted: Small):
    refuted.done("exclude", "rows/1/1", "--cause", "tool", "--reason", "the clock jumped")
    refuted.record()
    lock = refuted.path / LOCK
    refuted.write(LOCK, lock.read_text().replace("the clock jumped", "the disk was full"))
    refuted.keep("Other words")
    assert told(refuted) == {("PR208", "review")}
    refuted.done("acknowledge", "PR208", "rows", "--reason", "a slip")
    refuted.keep("Acknowledge")
    assert told(refuted) == set()
    refuted.write(LOCK, lock.read_text().replace("the disk was full", "it was too slow for us"))
    refuted.keep("Other words again")
    assert told(refuted) == {("PR208", "review")}


def test_an_acknowledged_other_tombstone_covers_no_later_one(refuted: Small):
    refuted.done("withdraw", "below-two", "--reason", "it is silly")
    refuted.keep("Withdraw")
    lock = refuted.path / LOCK
    refuted.write(LOCK, lock.read_text().replace("it is silly", "it is asked wrongly"))
    refuted.keep("Other words")
    assert told(refuted) == {("PR203", "review")}
    refuted.done("acknowledge", "PR203", "below-two", "--reason", "a slip")
    refuted.keep("Acknowledge")
    assert told(refuted) == set()
    refuted.write(LOCK, lock.read_text().replace("it is asked wrongly", "nobody cares"))
    refuted.keep("Other words again")
    assert told(refuted) == {("PR203", "review")}
