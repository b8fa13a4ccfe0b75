"""What an audit finds in the history of a lock, each beside an honest history that gives nothing."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from written_studies import WrittenStudy, ok

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.history import of_history
from pytest_prereg.audit.setting_aside import exclude, void
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.lock import (
    Acknowledgement,
    Amendment,
    Lock,
    LockEntry,
    Withdrawal,
    amend,
    plan_registration,
    read_lock,
    register,
    render_lock,
    write_lock,
)
from pytest_prereg.registry.subjects import subject_digest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import GitRepository

RUNS = '[study]\nid = "small"\n[experiments.runs]\nrepeats = 5\nmetrics = { t = "s" }\n'
CLAIM = """
[predictions.{name}]
claim = "It takes less than two seconds."
experiment = "runs"
quantity = "t"
predicts = "<= 2 s"
falsifier = ">= 3 s"
"""
GUARD = """\
[study]
id = "small"
[experiments.runs]
command = ["true"]
read = { file = "r.json", format = "json" }
subject = ["kernel.py"]
repeats = 5
metrics = { t = "s" }
[predictions.quick]
kind = "guard"
claim = "It takes less than two seconds."
experiment = "runs"
quantity = "t"
predicts = "<= 2 s"
falsifier = ">= 3 s"
expected = 1.0
detect = 4.0
cv = 0.05
"""
QUICK, SHORT = CLAIM.format(name="quick"), CLAIM.format(name="short")
TEXT = RUNS + QUICK
LINE = TEXT.splitlines().index("[predictions.quick]") + 1
SPREAD = (1.0, 0.97, 1.04, 0.95, 1.02)
OTHER = "sha256:" + "e" * 64
REASON = "for a good reason"
AT = "2026-08-02T12:00:00Z"

Told = tuple[str, str, str, int | None]


class Kept(WrittenStudy):
    """A study in a repository of its own, registered in its first commit."""

    def __init__(self, repository: GitRepository, text: str = TEXT) -> None:
        repository.write("kernel.py", "x = 1\n")
        super().__init__(repository.path, text)
        self.git = repository.git
        self._commit = repository.commit
        self.first = self.keep()

    def keep(self) -> str:
        """Commits everything."""
        return self._commit("Go on")

    def lock(self) -> Lock:
        lock = read_lock(self.study.lock_path)
        assert lock is not None
        return lock

    def entry(self, name: str = "quick") -> LockEntry:
        return self.lock().predictions[name]

    def set(self, name: str = "quick", **changes: Any) -> str:
        """Edits an entry by hand, and commits."""
        entries = {**self.lock().predictions, name: replace(self.entry(name), **changes)}
        return self.save(replace(self.lock(), predictions=entries))

    def save(self, lock: Lock) -> str:
        """Writes the lock, and commits."""
        write_lock(self.study.lock_path, lock)
        return self.keep()

    def rewrite(self, text: str) -> None:
        """Writes another prediction file, and what is new in it into the lock."""
        self.study.path.write_text(text, encoding="utf-8")
        self.study = load_study(self.study.path)
        lock = self.lock()
        write_lock(self.study.lock_path, register(self.study, lock, plan_registration(self.study, lock)))

    def without(self, *names: str) -> str:
        kept = {name: one for name, one in self.lock().predictions.items() if name not in names}
        return self.save(replace(self.lock(), predictions=kept))

    def amend(self, old: str = '"<= 2 s"', new: str = '"<= 2.5 s"') -> str:
        """Changes the prediction file, amends, and commits."""
        text = self.study.path.read_text(encoding="utf-8")
        assert old in text
        self.study.path.write_text(text.replace(old, new), encoding="utf-8")
        self.study = load_study(self.study.path)
        return self.save(amend(self.lock(), self.study, ["quick"], REASON, at=AT))

    def measure(self, *values: float, series: int = 1, **header: Any) -> Path:
        """Writes a session of one arm, measured at HEAD."""
        rows = {("", index): ok(t=value) for index, value in enumerate(values or SPREAD, 1)}
        return self.session("runs", rows, series=series, **{"head": self.git("rev-parse", "HEAD"), **header})

    def take_in(self, *values: float, series: int = 1) -> str:
        """Measures, and commits."""
        self.measure(*values, series=series)
        return self.keep()

    def write_down(self) -> str:
        """Records the verdicts, and commits."""
        self.record()
        return self.keep()

    def found(self) -> list[Finding]:
        """All but what every registration, every withdrawal and every lock that is not committed gives."""
        return [one for one in of_history(self.state()) if not is_usual(one)]

    def told(self) -> list[Told]:
        return [(one.code, one.level.value, one.id, one.line) for one in self.found()]

    def only(self) -> Finding:
        (finding,) = self.found()
        return finding


def is_usual(one: Finding) -> bool:
    return one.level is Level.NOTICE and (
        one.code in ("PR102", "PR201") or one.about.startswith("withdrawn ")
    )


@pytest.fixture
def kept(git_repository: Callable[..., GitRepository]) -> Callable[..., Kept]:
    def make(text: str = TEXT) -> Kept:
        return Kept(git_repository(), text)

    return make


@pytest.fixture
def judged(kept: Callable[..., Kept]) -> Kept:
    """Registered, measured, and recorded as supported, each in a commit."""
    study = kept()
    study.take_in()
    study.write_down()
    return study


def error(code: str, name: str = "quick", line: int | None = LINE) -> list[Told]:
    return [(code, "error", name, line)]


def review(code: str, name: str = "quick", line: int | None = LINE) -> list[Told]:
    return [(code, "review", name, line)]


class TestRegistered:
    def test_each_prediction_is_told_with_the_commit_that_registered_it(self, kept):
        study = kept()
        study.rewrite(TEXT + SHORT)
        second = study.keep()
        found = list(of_history(study.state()))
        assert [(one.code, one.level, one.id, one.commit) for one in found] == [
            ("PR201", Level.NOTICE, "quick", study.first),
            ("PR201", Level.NOTICE, "short", second),
        ]
        assert found[0].message == f'"quick" was registered in {study.first[:8]}'
        assert (found[0].line, found[0].about) == (LINE, study.entry().digest[7:15])

    def test_what_waits_for_its_commit_is_no_registration_yet(self, kept):
        study = kept()
        study.rewrite(TEXT + SHORT)
        assert [(one.code, one.id) for one in of_history(study.state())] == [("PR201", "quick")]

    def test_a_lock_that_says_more_than_the_committed_one_is_told_with_the_command(self, kept):
        study = kept()
        write_lock(study.study.lock_path, replace(study.lock(), acknowledged=(acknowledgement(),)))
        (only,) = (one for one in of_history(study.state()) if one.code == "PR102")
        assert (only.id, only.level) == ("", Level.NOTICE)
        assert only.message.startswith("the lock is not committed as it is on disk")
        assert only.advice.startswith("Commit it: git add ")
        assert only.advice.endswith("predictions.lock && git commit -m 'Register small'")
        study.keep()
        assert "PR102" not in {one.code for one in of_history(study.state())}

    def test_without_git_no_history_says_since_when(self, tmp_path):
        (only,) = of_history(WrittenStudy(tmp_path, TEXT).state())
        assert only.message == '"quick" is registered, and no history says since when'

    def test_a_life_without_a_change_gives_nothing_else(self, judged):
        assert judged.found() == []

    def test_a_lock_in_another_form_moved_and_renamed_gives_nothing_else(self, judged):
        path = judged.study.lock_path
        path.write_text(path.read_text().replace(" = ", "=").replace("\n\n", "\n# by hand\n\n"))
        judged.keep()
        judged.git("mv", "predictions.lock", "other.lock")
        judged.git("mv", "predictions.toml", "other.toml")
        judged.keep()
        state = StudyState(load_study(judged.folder / "other.toml"))
        (notice,) = of_history(state)
        assert (notice.code, notice.commit) == ("PR201", judged.first)

    def test_another_study_in_the_repository_has_a_history_of_its_own(self, judged):
        other = TEXT.replace('id = "small"', 'id = "other"').replace('"<= 2 s"', '"<= 1 s"')
        (judged.folder / "other").mkdir()
        study = WrittenStudy(judged.folder / "other", other)
        second = judged.keep()
        assert [(one.code, one.commit) for one in of_history(study.state())] == [("PR201", second)]
        assert judged.found() == []


class TestAmended:
    def test_before_any_data_it_is_a_notice(self, kept):
        study = kept()
        old = study.entry().digest[7:15]
        commit = study.amend()
        study.take_in()
        study.write_down()
        only = study.only()
        assert (only.code, only.level, only.line, only.commit) == ("PR202", Level.NOTICE, LINE, commit)
        assert (
            only.message
            == f'the registration of "quick" (digest {old}) was amended in {commit[:8]}: {REASON}'
        )
        assert only.about == f"registration {old} -> {study.entry().digest[7:15]}"
        assert only.acknowledged is None

    def test_after_the_data_it_is_a_review_that_its_own_reason_acknowledges(self, kept):
        study = kept()
        evidence = study.take_in()
        study.amend()
        only = study.only()
        assert (only.level, only.acknowledged) == (Level.REVIEW, f"amended: {REASON}")
        assert "after the data (runs/" in only.message
        assert f"had come in with {evidence[:8]}" in only.message

    def test_after_a_verdict_it_says_which_one_stood(self, judged):
        judged.amend()
        only = judged.only()
        assert (only.level, only.acknowledged) == (Level.REVIEW, f"amended: {REASON}")
        assert "after the data (its verdict was supported)" in only.message

    def test_squashed_into_one_commit_with_the_data_it_is_after_them(self, kept):
        study = kept()
        study.git("checkout", "--quiet", "-b", "side")
        study.take_in()
        study.amend()
        study.git("checkout", "--quiet", "main")
        study.git("merge", "--quiet", "--squash", "side")
        study.keep()
        assert study.told() == review("PR202")

    def test_data_that_are_not_committed_count(self, kept):
        study = kept()
        study.measure()
        study.git("add", "predictions.lock")
        text = study.study.path.read_text().replace('"<= 2 s"', '"<= 2.5 s"')
        study.study.path.write_text(text)
        write_lock(
            study.study.lock_path, amend(study.lock(), load_study(study.study.path), ["quick"], REASON)
        )
        assert study.told() == review("PR202")
        assert study.only().commit is None

    def test_data_that_were_kept_back_until_it_was_amended_count(self, kept):
        study = kept()
        path = study.measure()
        text = path.read_bytes()
        path.unlink()
        study.amend()
        path.write_bytes(text)
        study.keep()
        assert study.told() == review("PR202")
        assert "is for what was replaced, and came in later" in study.only().message

    def test_data_that_were_removed_since_count(self, kept):
        study = kept()
        path = study.measure()
        study.keep()
        path.unlink()
        study.amend()
        assert study.told() == review("PR202")

    def test_amended_twice_after_the_data_both_are_after_them(self, kept):
        study = kept()
        study.take_in()
        study.amend()
        study.amend('"<= 2.5 s"', '"<= 2.9 s"')
        assert study.told() == 2 * review("PR202")

    def test_there_and_back_before_the_data_are_two_notices(self, kept):
        study = kept()
        study.amend()
        study.amend('"<= 2.5 s"', '"<= 2 s"')
        study.take_in()
        assert study.told() == 2 * [("PR202", "notice", "quick", LINE)]

    def test_other_words_are_told_as_words(self, kept):
        study = kept()
        study.amend("less than two seconds", "at most two seconds")
        assert study.only().about.startswith("words ")
        study.measure()
        assert study.told() == [("PR202", "notice", "quick", LINE)]
        study.keep()
        assert study.told() == [("PR202", "notice", "quick", LINE)]

    def test_other_words_after_the_data_are_a_review(self, judged):
        judged.amend("less than two seconds", "about two seconds")
        assert judged.told() == review("PR202")

    def test_an_amendment_that_is_gone_is_an_error(self, kept):
        study = kept()
        study.take_in()
        study.amend()
        commit = study.set(amendments=())
        only = study.only()
        assert (only.code, only.level, only.line, only.commit) == ("PR202", Level.ERROR, LINE, commit)
        assert only.message.startswith('an amendment of "quick" (registration ')
        assert f"was taken out of the lock in {commit[:8]}" in only.message

    def test_an_amendment_that_hides_the_verdict_that_stood_is_an_error(self, judged):
        judged.amend()
        (last,) = judged.entry().amendments
        judged.set(amendments=(replace(last, verdict=None),))
        assert ("PR202", "error", "quick", LINE) in judged.told()

    def test_another_reason_than_was_given_first_is_a_review(self, kept):
        study = kept()
        study.amend()
        (last,) = study.entry().amendments
        study.set(amendments=(replace(last, reason="because"),))
        notice, reworded = study.found()
        assert (notice.level, reworded.level, reworded.acknowledged) == (Level.NOTICE, Level.REVIEW, None)
        assert REASON in reworded.message

    def test_amended_on_one_branch_while_another_registers(self, kept):
        study = kept()
        study.git("checkout", "--quiet", "-b", "side")
        study.rewrite(TEXT + SHORT)
        side = study.lock()
        study.keep()
        study.git("checkout", "--quiet", "main")
        study.study = load_study(study.study.path)
        commit = study.amend()
        subprocess.run(
            ["git", "merge", "--no-commit", "side"], cwd=study.folder, capture_output=True, check=False
        )
        study.study.path.write_text(TEXT.replace('"<= 2 s"', '"<= 2.5 s"', 1) + SHORT)
        entries = {**study_lock(study, "main").predictions, "short": side.predictions["short"]}
        study.save(replace(side, predictions=entries))
        assert [(one.code, one.level, one.commit) for one in study.found()] == [
            ("PR202", Level.NOTICE, commit)
        ]


def study_lock(study: Kept, revision: str) -> Lock:
    study.git("show", f"{revision}:predictions.lock")
    text = study.git("show", f"{revision}:predictions.lock")
    path = study.folder / "of-a-revision"
    path.write_text(text + "\n")
    lock = read_lock(path)
    path.unlink()
    assert lock is not None
    return lock


class TestReplaced:
    def test_by_hand_it_is_an_error(self, kept):
        study = kept()
        old = study.entry().digest[7:15]
        commit = study.set(digest=OTHER)
        only = study.only()
        assert (only.code, only.level, only.line, only.commit) == ("PR202", Level.ERROR, LINE, commit)
        assert only.message == (
            f'the registration of "quick" (digest {old}) was replaced with eeeeeeee in {commit[:8]}: '
            "no amendment says so"
        )
        assert only.about == f"replaced: registration {old} -> eeeeeeee"

    @pytest.mark.parametrize("key", ["claim", "experiment"])
    def test_so_are_its_words_and_its_code(self, kept, key):
        study = kept()
        study.set(**{key: OTHER})
        assert study.told() == error("PR202")

    def test_moved_after_the_data_and_moved_back_both_stay(self, judged):
        old = judged.entry().digest
        judged.set(digest=OTHER)
        judged.set(digest=old)
        assert judged.told() == 2 * error("PR202")
        assert all("after the data" in one.message for one in judged.found())

    def test_what_is_not_committed_counts(self, kept):
        study = kept()
        write_lock(
            study.study.lock_path,
            replace(study.lock(), predictions={"quick": replace(study.entry(), digest=OTHER)}),
        )
        assert study.told() == error("PR202")
        assert "and that is not committed yet" in study.only().message

    def test_taken_out_and_registered_anew_it_is_replaced(self, kept):
        study = kept()
        study.without("quick")
        study.rewrite(TEXT.replace('"<= 2 s"', '"<= 2.5 s"'))
        commit = study.keep()
        assert [(one.code, one.level) for one in study.found()] == [
            ("PR203", Level.NOTICE),
            ("PR202", Level.ERROR),
        ]
        assert study.found()[-1].commit == commit

    def test_two_amendments_squashed_explain_what_they_lead_to(self, kept):
        study = kept()
        study.git("checkout", "--quiet", "-b", "side")
        study.amend()
        study.amend('"<= 2.5 s"', '"<= 2.9 s"')
        study.git("checkout", "--quiet", "main")
        study.git("merge", "--quiet", "--squash", "side")
        study.keep()
        assert study.told() == 2 * [("PR202", "notice", "quick", LINE)]

    def test_an_amendment_between_others_explains_nothing(self, kept):
        study = kept()
        invented = Amendment(old=OTHER, new=OTHER, reason=REASON, at=AT)
        study.set(digest="sha256:" + "a" * 64, amendments=(invented,))
        assert ("PR202", "error", "quick", LINE) in study.told()

    def test_of_two_that_branches_registered_the_dropped_one_is_a_review(self, kept):
        study = kept()
        study.git("checkout", "--quiet", "-b", "side")
        study.rewrite(TEXT + SHORT.replace('"<= 2 s"', '"<= 2.5 s"'))
        dropped = study.entry("short").digest[7:15]
        side = study.keep()
        study.git("checkout", "--quiet", "main")
        study.rewrite(TEXT + SHORT)
        study.keep()
        study.git("merge", "--quiet", "--strategy=ours", "side", "--message", "Merge")
        only = study.only()
        assert (only.code, only.level, only.id, only.commit) == ("PR202", Level.REVIEW, "short", side)
        assert only.about == f"dropped: {dropped}"

    def test_two_locks_of_one_study_that_differ_are_a_review(self, kept):
        study = kept()
        copy = {"quick": replace(study.entry(), digest=OTHER)}
        (study.folder / "copy.lock").write_text(render_lock(replace(study.lock(), predictions=copy)))
        study.keep()
        (study.folder / "copy.lock").unlink()
        study.keep()
        assert study.told() == review("PR202")
        assert "beside the lock lies another one" in study.only().message

    def test_a_copy_that_says_the_same_is_none(self, kept):
        study = kept()
        (study.folder / "copy.lock").write_text(render_lock(study.lock()))
        study.keep()
        assert study.found() == []


class TestRemoved:
    def test_out_of_the_lock_it_is_an_error_for_good(self, kept):
        study = kept(TEXT + SHORT)
        commit = study.without("short")
        study.study.path.write_text(TEXT)
        study.keep()
        only = study.only()
        assert (only.code, only.level, only.id, only.commit) == ("PR203", Level.ERROR, "short", commit)
        assert (only.path, only.line) == (str(study.study.lock_path), None)
        assert f"was taken out of the lock in {commit[:8]}" in only.message

    def test_put_back_it_is_a_notice(self, kept):
        study = kept(TEXT + SHORT)
        lock = study.lock()
        study.without("short")
        study.save(lock)
        assert [(one.code, one.level, one.id) for one in study.found()] == [("PR203", Level.NOTICE, "short")]

    def test_dropped_by_a_merge_it_is_an_error(self, kept):
        study = kept()
        study.git("checkout", "--quiet", "-b", "side")
        study.rewrite(TEXT + SHORT)
        study.keep()
        study.git("checkout", "--quiet", "main")
        study.git("merge", "--quiet", "--strategy=ours", "side", "--message", "Merge")
        assert study.told() == [("PR203", "error", "short", None)]

    def test_out_of_the_study_it_is_an_error_unless_it_is_withdrawn(self, kept):
        study = kept(TEXT + SHORT)
        study.study.path.write_text(TEXT)
        study.keep()
        assert study.told() == [("PR203", "error", "short", None)]
        study.set("short", withdrawal=Withdrawal(reason=REASON, at=AT))
        assert study.found() == []

    def test_the_lock_deleted_is_every_prediction_of_it(self, kept):
        study = kept(TEXT + SHORT)
        study.study.lock_path.unlink()
        assert sorted(study.told()) == [
            ("PR203", "error", "quick", LINE),
            ("PR203", "error", "short", study.study.predictions["short"].line),
        ]


def withdraw(study: Kept, name: str = "quick") -> str:
    return study.set(name, withdrawal=Withdrawal(reason=REASON, at=AT))


class TestWithdrawn:
    def test_a_tombstone_with_its_verdict_is_a_notice_of_where_and_why(self, judged):
        commit = withdraw(judged)
        assert judged.found() == []
        (only,) = (one for one in of_history(judged.state()) if one.code == "PR203")
        assert (only.level, only.line, only.commit) == (Level.NOTICE, LINE, commit)
        assert only.message == (
            f'"quick" was withdrawn in {commit[:8]}: {REASON}; it was supported, and counts no more'
        )
        assert only.about == f"withdrawn {judged.entry().digest[7:15]}"

    def test_one_that_was_refuted_counts(self, kept):
        study = kept()
        study.take_in(4.0, 4.1, 3.9, 4.0, 4.2)
        study.write_down()
        withdraw(study)
        (only,) = (one for one in of_history(study.state()) if one.code == "PR203")
        assert only.message.endswith("; counted as refuted")

    def test_taken_away_it_is_an_error(self, judged):
        withdraw(judged)
        commit = judged.set(withdrawal=None)
        only = judged.only()
        assert (only.code, only.level, only.commit) == ("PR203", Level.ERROR, commit)
        assert f'the tombstone of "quick" ({REASON}) was taken away' in only.message

    def test_taken_out_with_all_of_it_too(self, judged):
        withdraw(judged)
        judged.without("quick")
        assert judged.told() == error("PR203")
        assert "with its tombstone" in judged.only().message

    def test_another_reason_is_a_review(self, judged):
        withdraw(judged)
        judged.set(withdrawal=Withdrawal(reason="because", at=AT))
        assert judged.told() == review("PR203")

    def test_a_verdict_that_is_recorded_afterwards_is_an_error(self, kept):
        study = kept()
        study.take_in()
        withdraw(study)
        commit = study.set(verdict="supported", series=1, n=5, evidence=OTHER)
        only = study.only()
        assert (only.code, only.level, only.line, only.commit) == ("PR215", Level.ERROR, LINE, commit)

    def test_one_recorded_on_another_branch_is_none_of_that(self, kept):
        study = kept()
        study.take_in()
        before = study.lock()
        study.git("checkout", "--quiet", "-b", "side")
        study.write_down()
        recorded = study.entry()
        study.git("checkout", "--quiet", "main")
        withdraw(study)
        subprocess.run(
            ["git", "merge", "--no-commit", "side"], cwd=study.folder, capture_output=True, check=False
        )
        both = replace(recorded, withdrawal=Withdrawal(reason=REASON, at=AT))
        study.save(replace(before, predictions={"quick": both}))
        assert study.found() == []

    def test_what_was_measured_where_it_was_withdrawn_is_an_error(self, kept):
        study = kept()
        commit = withdraw(study)
        path = study.measure()
        study.keep()
        only = study.only()
        assert (only.code, only.level, only.commit) == ("PR215", Level.ERROR, commit)
        assert only.about == path.name

    def test_what_was_measured_before_and_committed_later_is_not(self, kept):
        study = kept()
        path = study.measure()
        text = path.read_bytes()
        path.unlink()
        withdraw(study)
        path.write_bytes(text)
        study.keep()
        assert study.found() == []


def acknowledgement() -> Acknowledgement:
    return Acknowledgement(code="PR214", id="quick", about="short", reason=REASON, at=AT)


def go_on(study: Kept, how: str) -> None:
    """Changes what is registered of a claim that has a verdict."""
    if how.startswith("amended"):
        study.amend()
    if "withdrawn" in how:
        withdraw(study)
    if how.endswith("deleted"):
        study.study.path.write_text(RUNS, encoding="utf-8")
        study.study = load_study(study.study.path)
        study.keep()


class TestRecorded:
    def test_a_verdict_that_nothing_explains_stays_open(self, judged):
        commit = judged.set(verdict="refuted")
        only = judged.only()
        assert (only.code, only.level, only.commit) == ("PR205", Level.REVIEW, commit)
        assert (only.about, only.acknowledged) == ("supported -> refuted", None)
        assert "nothing in the lock says why" in only.message

    def test_changed_and_changed_back_both_stay_open(self, judged):
        judged.set(verdict="refuted")
        judged.set(verdict="supported")
        assert [(one.about, one.acknowledged) for one in judged.found()] == [
            ("supported -> refuted", None),
            ("refuted -> supported", None),
        ]

    def test_numbers_under_the_same_verdict_stay_open(self, judged):
        judged.set(estimate=1.5)
        only = judged.only()
        assert (only.code, only.level, only.acknowledged) == ("PR205", Level.REVIEW, None)
        assert "it stays supported (0.996 -> 1.5)" in only.message

    def test_a_verdict_that_is_gone_stays_open(self, judged):
        judged.set(verdict=None, estimate=None, interval=None, n=None, series=None, evidence=None)
        assert judged.told() == review("PR205")
        assert judged.only().about == "supported -> none"

    def test_gone_and_recorded_as_another_it_is_told_twice(self, judged):
        judged.set(verdict=None)
        judged.set(verdict="refuted")
        assert [one.about for one in judged.found()] == ["supported -> none", "supported -> refuted"]

    def test_what_exclusions_changed_is_acknowledged_as_it_is_recorded(self, judged):
        for index in (1, 2, 3):
            judged.save(exclude(judged.state(), f"runs/1/{index}", REASON, "tool"))
            judged.write_down()
        found = judged.found()
        assert [(one.code, one.about) for one in found] == [
            ("PR205", "supported -> inconclusive"),
            *(("PR208", f"runs/1/{index}") for index in (1, 2, 3)),
        ]
        assert found[0].acknowledged == "recorded as inconclusive (what was set aside)"
        assert all(one.acknowledged for one in found)

    @pytest.mark.parametrize("later", ["amended", "amended and withdrawn", "withdrawn and deleted"])
    def test_numbers_that_an_exclusion_changed_need_no_word_whatever_comes_later(self, judged, later):
        judged.save(exclude(judged.state(), "runs/1/5", REASON, "tool"))
        judged.write_down()
        assert [one.code for one in judged.found()] == ["PR208"]
        go_on(judged, later)
        assert "PR205" not in {one.code for one in judged.found()}

    @pytest.mark.parametrize("later", ["amended", "amended and withdrawn", "withdrawn and deleted"])
    def test_numbers_that_were_made_up_beside_an_exclusion_stay_open_whatever_comes_later(
        self, judged, later
    ):
        judged.save(exclude(judged.state(), "runs/1/5", REASON, "tool"))
        judged.set(estimate=1.5)
        go_on(judged, later)
        (changed,) = (one for one in judged.found() if one.code == "PR205")
        assert "it stays supported (0.996 -> 1.5)" in changed.message
        assert changed.acknowledged is None

    def test_a_verdict_that_exclusions_changed_stays_acknowledged_once_it_is_amended(self, judged):
        for index in (1, 2, 3):
            judged.save(exclude(judged.state(), f"runs/1/{index}", REASON, "tool"))
        judged.write_down()
        judged.amend()
        (changed,) = (one for one in judged.found() if one.code == "PR205")
        assert changed.acknowledged == "recorded as inconclusive (what was set aside)"

    def test_an_exclusion_that_was_taken_back_explains_no_way_back(self, judged):
        before = judged.lock()
        for index in (1, 2, 3):
            judged.save(exclude(judged.state(), f"runs/1/{index}", REASON, "tool"))
        judged.write_down()
        judged.save(before)
        told = {one.about: one for one in judged.found()}
        assert told["inconclusive -> supported"].acknowledged is None
        assert told["gone: runs/1/1"].level is Level.ERROR

    def test_one_that_voiding_changed_is_acknowledged_as_it_is_recorded(self, judged):
        judged.save(void(judged.state(), "runs/1", REASON))
        judged.write_down()
        told = {one.code: one for one in judged.found()}
        assert judged.entry().verdict == "inconclusive"
        assert told["PR205"].about == "supported -> inconclusive"
        assert told["PR205"].acknowledged == "recorded as inconclusive (what was set aside)"

    def test_an_exclusion_does_not_explain_what_the_evidence_does_not_give(self, judged):
        judged.save(exclude(judged.state(), "runs/1/5", REASON, "tool"))
        judged.set(verdict="refuted")
        (changed,) = (one for one in judged.found() if one.code == "PR205")
        assert changed.acknowledged is None

    def test_a_verdict_that_a_merge_dropped_stays_open(self, kept):
        study = kept()
        study.take_in()
        study.git("checkout", "--quiet", "-b", "side")
        study.write_down()
        study.git("checkout", "--quiet", "main")
        study.git("merge", "--quiet", "--strategy=ours", "side", "--message", "Merge")
        assert study.told() == review("PR205")

    def test_one_that_a_merge_brought_is_no_change(self, kept):
        study = kept()
        study.take_in()
        study.git("checkout", "--quiet", "-b", "side")
        study.write_down()
        study.git("checkout", "--quiet", "main")
        study.git("merge", "--quiet", "--no-ff", "side", "--message", "Merge")
        assert study.found() == []

    def test_a_guard_is_recorded_anew_with_each_series(self, kept):
        study = kept(GUARD)
        slow = [4.0 + each for each in SPREAD]
        for version, several in enumerate(({1: SPREAD}, {2: slow, 3: slow})):
            (study.folder / "kernel.py").write_text(f"x = {version}\n")
            study.keep()
            subject = subject_digest(study.study, study.study.experiments["runs"])
            for series, values in several.items():
                study.measure(*values, series=series, subject=subject)
                study.keep()
            study.write_down()
        only = study.only()
        assert (only.code, only.level, only.about) == ("PR205", Level.REVIEW, "supported -> refuted")
        assert only.acknowledged == f"recorded as refuted (series {study.entry().series})"
        study.set(verdict="supported")
        assert [one.acknowledged is None for one in study.found()] == [False, True]


class TestSaid:
    def test_an_exclusion_is_a_review_that_its_own_reason_acknowledges(self, judged):
        commit = judged.save(exclude(judged.state(), "runs/1/5", REASON, "tool"))
        only = judged.only()
        assert (only.code, only.level, only.id, only.line) == ("PR208", Level.REVIEW, "runs", LINE)
        assert (only.about, only.commit, only.acknowledged) == ("runs/1/5", commit, f"excluded: {REASON}")

    def test_a_voided_series_is_one_too(self, judged):
        judged.save(void(judged.state(), "runs/1", REASON))
        only = judged.only()
        assert (only.code, only.level, only.id) == ("PR213", Level.REVIEW, "runs")
        assert (only.about, only.acknowledged) == ("runs/1", f"voided: {REASON}")

    @pytest.mark.parametrize(
        ("code", "name", "say"),
        [
            ("PR208", "runs/1/5", lambda state: exclude(state, "runs/1/5", REASON, "tool")),
            ("PR213", "runs/1", lambda state: void(state, "runs/1", REASON)),
        ],
    )
    def test_one_that_is_gone_is_an_error(self, judged, code, name, say):
        before = judged.lock()
        judged.save(say(judged.state()))
        commit = judged.save(before)
        only = judged.only()
        assert (only.code, only.level, only.id, only.commit) == (code, Level.ERROR, "runs", commit)
        assert (f'"{name}" was taken out of the lock' in only.message, only.about) == (True, f"gone: {name}")

    def test_another_cause_than_was_given_first_is_a_review(self, judged):
        judged.save(exclude(judged.state(), "runs/1/5", REASON, "tool"))
        (entry,) = judged.lock().exclusions
        judged.save(replace(judged.lock(), exclusions=(replace(entry, cause="subject"),)))
        first, second = judged.found()
        assert (first.acknowledged, second.acknowledged) == (f"excluded: {REASON}", None)
        assert second.about.startswith("reworded: runs/1/5 to ")

    def test_an_acknowledgement_that_is_gone_is_told_under_its_code(self, judged):
        before = judged.lock()
        known = Acknowledgement(code="PR214", id="quick", about="short", reason=REASON, at=AT)
        judged.save(replace(before, acknowledged=(known,)))
        assert judged.found() == []
        commit = judged.save(before)
        only = judged.only()
        assert (only.code, only.level, only.id, only.about) == ("PR214", Level.REVIEW, "quick", "short")
        assert (only.commit, only.acknowledged) == (commit, None)


class TestHistories:
    def test_a_rebased_branch_gives_what_it_gave_before(self, kept):
        study = kept()
        study.git("checkout", "--quiet", "-b", "side")
        study.amend()
        study.take_in()
        study.write_down()
        study.git("checkout", "--quiet", "main")
        (study.folder / "other.txt").write_text("x")
        study.keep()
        study.git("checkout", "--quiet", "side")
        before = [(one.code, one.level, one.about) for one in of_history(study.state())]
        study.git("rebase", "--quiet", "main")
        assert [(one.code, one.level, one.about) for one in of_history(study.state())] == before
        assert before[-1][:2] == ("PR202", Level.NOTICE)

    def test_a_clone_of_one_commit_claims_nothing_of_what_came_before(self, judged, tmp_path):
        judged.set(digest=OTHER)
        judged.set(digest=judged.lock().predictions["quick"].digest)
        clone = tmp_path / "clone"
        command = ["git", "clone", "--quiet", "--depth=1", judged.folder.as_uri(), str(clone)]
        subprocess.run(command, check=True, capture_output=True)
        (only,) = of_history(StudyState(load_study(clone / "predictions.toml")))
        assert only.code == "PR201"
        assert "or before: there the history is cut" in only.message

    def test_a_version_that_cannot_be_read_is_a_notice(self, kept):
        study = kept()
        text = study.study.lock_path.read_text()
        study.study.lock_path.write_text(
            text.replace("[predictions.quick]", "<<<<<<< ours\n[predictions.quick]")
        )
        broken = study.keep()
        study.study.lock_path.write_text(text)
        study.keep()
        only = study.only()
        assert (only.code, only.level, only.id, only.commit) == ("PR011", Level.NOTICE, "small", broken)
