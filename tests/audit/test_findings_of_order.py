"""What an audit finds in the order of registration and evidence: one finding at most for a prediction's grade."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from written_studies import WrittenStudy, ok

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.audit.auditing import audit_study
from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.order import of_order
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.lock import (
    Acknowledgement,
    amend,
    plan_registration,
    read_lock,
    register,
    write_lock,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import GitRepository

TEXT = """\
[study]
id = "small"

[experiments.runs]
repeats = 3
metrics = { t = "s" }

[predictions.quick]
claim = "It takes less than two seconds."
experiment = "runs"
quantity = "t"
predicts = "<= 2 s"
falsifier = ">= 3 s"
"""
LINE = TEXT.splitlines().index("[predictions.quick]") + 1
MOVED = TEXT.replace("<= 2 s", "<= 2.5 s")
OTHER = TEXT[TEXT.index("[predictions.quick]") :].replace("quick", "short").replace("2 s", "1 s")
REASON = "two and a half are meant"


class Kept(WrittenStudy):
    """A study in a repository with one commit, which has nothing of it."""

    def __init__(self, repository: GitRepository) -> None:
        repository.write("readme", "x")
        self.git = repository.git
        self.keep = repository.commit
        self.write = repository.write
        self.keep("Begin")
        super().__init__(repository.path, TEXT)

    def measure(self, **header: Any) -> Path:
        """Writes a complete series, and commits nothing."""
        rows = {("", index): ok(t=1 + index / 100) for index in range(1, 4)}
        return self.session("runs", rows, **{"head": self.git("rev-parse", "HEAD"), **header})

    def lock(self, text: str = TEXT) -> None:
        """Writes study and lock anew, and commits nothing."""
        (self.folder / "predictions.toml").write_text(text, encoding="utf-8")
        self.study = load_study(self.folder / "predictions.toml")
        write_lock(self.study.lock_path, register(self.study, None, plan_registration(self.study, None)))

    def amend(self, text: str = MOVED) -> None:
        """Amends the prediction, and commits nothing."""
        lock = read_lock(self.study.lock_path)
        assert lock is not None
        (self.folder / "predictions.toml").write_text(text, encoding="utf-8")
        self.study = load_study(self.folder / "predictions.toml")
        write_lock(self.study.lock_path, amend(lock, self.study, ["quick"], REASON))

    def found(self) -> list[Finding]:
        return list(of_order(self.state()))

    def one(self) -> Finding:
        (finding,) = self.found()
        assert (finding.id, finding.line) == ("quick", LINE)
        assert finding.path is not None
        assert finding.path.endswith("predictions.toml")
        return finding


def told(finding: Finding) -> tuple[str, Level, bool]:
    return finding.code, finding.level, finding.untold


ERROR = ("PR212", Level.ERROR, False)


@pytest.fixture
def study(git_repository: Callable[..., GitRepository]) -> Kept:
    return Kept(git_repository())


def test_what_was_registered_first_has_none(study: Kept):
    study.keep("register")
    assert study.found() == []
    study.measure()
    assert study.found() == []
    study.keep("evidence")
    assert study.found() == []


def test_both_in_one_commit(study: Kept):
    file = study.measure()
    commit = study.keep("both")
    finding = study.one()
    assert told(finding) == ERROR
    assert finding.commit == commit
    assert finding.message == (
        f'"quick" is simultaneous: {file.name} came in with {commit[:8]}, and so did the registration'
    )
    assert "lock --tag" in (finding.advice or "")


def test_a_tag_of_the_lock_takes_the_finding_away(study: Kept):
    study.git("switch", "--quiet", "--create", "work")
    study.keep("register")
    study.git("tag", "prereg/small/1")
    study.measure()
    study.keep("evidence")
    study.git("switch", "--quiet", "main")
    study.git("merge", "--quiet", "--squash", "work")
    study.keep("squashed")
    assert study.state().orders["quick"].grade == "witnessed"
    assert study.found() == []


def test_evidence_first(study: Kept):
    file = study.measure()
    commit = study.keep("evidence", str(file))
    study.keep("register")
    finding = study.one()
    assert told(finding) == ERROR
    assert "after-evidence" in finding.message
    assert file.name in finding.message
    assert commit[:8] in finding.message


def test_a_text_that_is_no_more_what_was_registered(study: Kept):
    study.keep("register")
    study.write("predictions.toml", MOVED)
    finding = study.one()
    assert told(finding) == ERROR
    assert "mismatch" in finding.message
    assert "amend quick" in (finding.advice or "")


def test_not_registered_and_nothing_measured_is_a_notice(study: Kept):
    finding = study.one()
    assert told(finding) == ("PR102", Level.NOTICE, False)
    assert not finding.fails


def test_not_registered_and_measured(study: Kept):
    file = study.measure()
    study.keep("evidence", str(file))
    assert told(study.one()) == ERROR
    assert "unregistered" in study.one().message


def test_a_part_of_a_series_is_evidence_too(study: Kept):
    rows = {("", 1): ok(t=1.0)}
    study.session("runs", rows)
    assert told(study.one()) == ERROR


def test_each_prediction_has_its_own(study: Kept):
    study.lock(f"{TEXT}\n{OTHER}")
    file = study.measure()
    study.keep("evidence", str(file))
    study.keep("register")
    assert [(one.id, *told(one)) for one in study.found()] == [("quick", *ERROR), ("short", *ERROR)]


class TestUntold:
    """Where git can't say it, nothing is said to be wrong, and nothing to be right."""

    def test_without_a_repository(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
        audit = audit_study(WrittenStudy(tmp_path, TEXT).state())
        (finding,) = (one for one in audit.findings if one.fails)
        assert told(finding) == ("PR212", Level.ERROR, True)
        assert audit.exit == 4

    def test_where_history_is_cut(self, study: Kept, tmp_path: Path):
        study.keep("register")
        study.measure()
        study.keep("evidence")
        folder = tmp_path / "shallow"
        source = study.folder.as_uri()
        subprocess.run(["git", "clone", "--quiet", "--depth=1", source, str(folder)], check=True)
        (finding,) = of_order(StudyState(load_study(folder / "predictions.toml")))
        assert told(finding) == ("PR212", Level.ERROR, True)
        assert "fetch-depth: 0" in finding.message


class TestContested:
    """The same evidence came in with another order on another ref."""

    @pytest.fixture
    def contested(self, study: Kept) -> tuple[Kept, Path, str]:
        study.git("switch", "--quiet", "--create", "scratch")
        file = study.measure(head=None)
        first = study.keep("evidence", str(file))
        study.git("switch", "--quiet", "main")
        study.keep("register", "predictions.toml", "predictions.lock")
        study.git("cherry-pick", first)
        return study, file, first

    def test_it_is_a_review(self, contested: tuple[Kept, Path, str]):
        study, file, first = contested
        finding = study.one()
        assert told(finding) == ("PR212", Level.REVIEW, False)
        assert finding.commit == first
        assert file.name in finding.message
        assert "branch scratch" in finding.message
        assert "acknowledge PR212 quick" in (finding.advice or "")

    def test_it_can_be_acknowledged_whatever_commit_it_is_found_in(self, contested: tuple[Kept, Path, str]):
        study, _, _ = contested
        lock = read_lock(study.study.lock_path)
        assert lock is not None
        entry = Acknowledgement(code="PR212", id="quick", about=study.one().about, reason="a rehearsal")
        write_lock(study.study.lock_path, replace(lock, acknowledged=(entry,)))
        study.keep("acknowledge")
        study.git("switch", "--quiet", "--create", "again", "scratch")
        study.git("commit", "--quiet", "--amend", "--no-edit", "--date", "2001-01-01T00:00:00Z")
        study.git("switch", "--quiet", "main")
        study.git("branch", "--quiet", "-D", "scratch")
        findings = [one for one in audit_study(study.state()).findings if one.code == "PR212"]
        assert [(one.acknowledged, one.fails) for one in findings] == [("a rehearsal", False)]

    def test_beside_an_error_there_is_none_that_is_no_worse(self, study: Kept):
        study.git("switch", "--quiet", "--create", "scratch")
        file = study.measure(head=None)
        first = study.keep("evidence", str(file))
        study.git("switch", "--quiet", "main")
        study.git("cherry-pick", first)
        study.keep("register")
        assert [told(one) for one in study.found()] == [ERROR]

    def test_one_that_is_worse_than_the_error_is_told_beside_it(self, contested: tuple[Kept, Path, str]):
        study, _, first = contested
        study.git("reset", "--quiet", "--soft", "HEAD~2")
        study.keep("both at once")
        assert [told(one) for one in study.found()] == [ERROR, ("PR212", Level.REVIEW, False)]
        assert study.found()[1].commit == first


class TestAmended:
    """Where the lock's amendments list what stood before, that is PR202, and whoever amended gave a reason."""

    def test_before_the_data(self, study: Kept):
        study.keep("register")
        study.amend()
        study.keep("amend")
        study.measure()
        study.keep("evidence")
        assert study.found() == []

    def test_not_committed_yet(self, study: Kept):
        """The lock's own history tells of it."""
        study.keep("register")
        study.amend()
        assert study.state().orders["quick"].grade == "mismatch"
        assert study.found() == []

    @pytest.mark.parametrize("evidence_first", [True, False])
    def test_with_its_evidence(self, study: Kept, *, evidence_first: bool):
        study.keep("register")
        study.amend()
        file = study.measure(head=None)
        if evidence_first:
            study.keep("evidence", str(file))
        study.keep("amend")
        finding = study.one()
        assert told(finding) == ("PR202", Level.REVIEW, False)
        assert finding.acknowledged == f"amended: {REASON}"
        assert ("mismatch" if evidence_first else "simultaneous") in finding.message

    def test_one_file_that_no_amendment_explains_is_an_error(self, study: Kept):
        """Of two files of a series one came with an amendment, and one before anything."""
        study.amend()
        first = study.session("runs", {("", index): ok(t=1.0) for index in (1, 2)}, head=None)
        study.keep("evidence", str(first))
        study.lock()
        study.keep("register", "predictions.toml", "predictions.lock")
        study.amend()
        study.session("runs", {("", 3): ok(t=1.1)}, head=None)
        study.keep("amend, and the rest")
        assert told(study.one()) == ERROR
        assert "after-evidence" in study.one().message

    def test_replaced_without_an_amendment(self, study: Kept):
        study.keep("register")
        study.lock(MOVED)
        study.measure(head=None)
        study.keep("another registration, and evidence")
        assert told(study.one()) == ERROR

    def test_after_the_data_the_lock_tells_of_it(self, study: Kept):
        """What was measured for the one is shown for the other, and never counts."""
        study.keep("register")
        study.measure()
        study.keep("evidence")
        study.amend()
        study.keep("amend")
        state = study.state()
        assert state.assess(state.study.predictions["quick"]).standing == "exploratory"
        assert (state.orders["quick"].grade, study.found()) == ("mismatch", [])
        codes = [
            (one.code, one.level) for one in audit_study(state).findings if one.code in ("PR202", "PR212")
        ]
        assert codes == [("PR202", Level.REVIEW)]

    def test_and_measured_anew_it_was_registered_before_that(self, study: Kept):
        study.keep("register")
        study.measure()
        study.keep("evidence")
        study.amend()
        study.keep("amend")
        study.measure(series=2)
        study.keep("evidence, anew")
        assert (study.state().orders["quick"].grade, study.found()) == ("registered", [])

    def test_no_amendment_excuses_evidence_that_came_before_everything(self, study: Kept):
        file = study.measure(head=None)
        study.keep("evidence", str(file))
        study.keep("register")
        study.amend()
        study.keep("amend")
        assert told(study.one()) == ERROR
