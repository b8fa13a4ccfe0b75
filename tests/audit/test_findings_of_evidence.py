"""What an audit finds in the evidence and the records as they are now, each beside an honest study."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from written_studies import WrittenStudy, ok

from pytest_prereg.audit.finding import Level
from pytest_prereg.audit.findings.evidence import of_evidence
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.evidence.sessions import known_digests
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.lock import Withdrawal, amend, read_lock, write_lock
from pytest_prereg.registry.lock_file import Acknowledgement, Void
from pytest_prereg.registry.subjects import subject_digest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import GitRepository

    from pytest_prereg.audit.finding import Finding

RUNS = '[study]\nid = "small"\n[experiments.runs]\nrepeats = 3\nmetrics = { t = "s" }\n'
CLAIM = """
[predictions.quick]
claim = "x"
experiment = "runs"
quantity = "t"
predicts = "<= 2 s"
falsifier = ">= 3 s"
"""
TEXT = RUNS + CLAIM
LINE = TEXT.splitlines().index("[predictions.quick]") + 1
QUICK, SLOW, UNDECIDED = (1.0, 1.1, 1.2), (4.0, 4.1, 4.2), (2.4, 2.5, 2.6)


def rows(values, arm=""):
    return {(arm, at): ok(t=value) for at, value in enumerate(values, 1)}


class Scene:
    """A study in a repository; what is written is not committed yet."""

    def __init__(self, repository: GitRepository, text: str = TEXT) -> None:
        self.repository = repository
        self.path = repository.path
        self.written = WrittenStudy(repository.path, text)

    def commit(self, *names: str) -> str:
        return self.repository.commit("x", *names)

    def register(self) -> str:
        return self.commit("predictions.toml", "predictions.lock")

    def measure(self, values, experiment="runs", **header) -> Path:
        """One session that was measured at HEAD and says so."""
        head = {"head": self.repository.git("rev-parse", "HEAD"), "dirty": False}
        slots = values if isinstance(values, dict) else rows(values)
        return self.written.session(experiment, slots, **{**head, **header})

    def try_out(self, values=QUICK, **header) -> Path:
        return self.measure(values, series=0, origin="pilot", **header)

    def found(self, *codes: str) -> list[Finding]:
        every = [one for one in of_evidence(self.written.state()) if not codes or one.code in codes]
        assert len({(one.code, one.id, one.about) for one in every if one.level is Level.REVIEW}) == sum(
            one.level is Level.REVIEW for one in every
        ), "two reviews that one acknowledgement would be of"
        return every

    def told(self, *codes: str) -> list[tuple[str, str, str, int | None]]:
        return [(one.code, one.level.value, one.id, one.line) for one in self.found(*codes)]


@pytest.fixture
def scene(git_repository: Callable[..., GitRepository]) -> Callable[..., Scene]:
    return lambda text=TEXT: Scene(git_repository(), text)


@pytest.fixture
def measured(scene: Callable[..., Scene]) -> Scene:
    """Registered, measured and recorded, each committed before the next."""
    made = scene()
    made.register()
    made.measure(QUICK)
    made.commit()
    made.written.record()
    made.commit()
    return made


def test_of_an_honest_study_there_is_nothing_to_say(measured):
    assert measured.found() == []


class TestSeriesThatDisagree:
    """PR205."""

    def test_a_replication_with_another_verdict_is_for_a_person_to_look_at(self, measured):
        measured.measure(SLOW, series=2)
        (found,) = measured.found()
        assert (found.code, found.level, found.id, found.line) == ("PR205", "review", "quick", LINE)
        assert found.about == "series 1 supported, series 2 refuted"

    @pytest.mark.parametrize("values", [QUICK, UNDECIDED], ids=["agrees", "decides nothing"])
    def test_one_that_says_nothing_else_is_fine(self, measured, values):
        measured.measure(values, series=2)
        assert measured.found() == []

    def test_each_that_disagrees_is_looked_at_by_itself(self, measured):
        for series in (2, 3):
            measured.measure(SLOW, series=series)
        assert [one.about for one in measured.found()] == [
            "series 1 supported, series 2 refuted",
            "series 1 supported, series 3 refuted",
        ]

    def test_what_was_acknowledged_is_that_one_and_not_the_next(self, measured):
        from pytest_prereg.audit.auditing import audit_study

        measured.measure(SLOW, series=2)
        lock = read_lock(measured.written.study.lock_path)
        (found,) = measured.found()
        known = Acknowledgement(code=found.code, id=found.id, about=found.about, reason="another machine")
        write_lock(measured.written.study.lock_path, replace(lock, acknowledged=(known,)))
        measured.commit()
        measured.measure(SLOW, series=3)
        audit = audit_study(measured.written.state())
        reviews = [one for one in audit.findings if one.code == "PR205"]
        assert {one.about: one.acknowledged for one in reviews} == {
            "series 1 supported, series 2 refuted": "another machine",
            "series 1 supported, series 3 refuted": None,
        }
        assert audit.exit == 1

    def test_two_branches_that_used_one_number(self, measured):
        (first,) = measured.written.state().files["runs"]
        second = measured.measure(SLOW)
        told = [(one.level, one.id, one.line, one.about) for one in measured.found("PR205")]
        assert told == [("review", "runs", LINE, f"runs/1 {second.name}")]
        assert first.path.name not in told[0][3]

    def test_a_series_that_two_sessions_share_is_no_dispute(self, scene):
        made = scene()
        made.register()
        made.measure({("", 1): ok(t=1.0)})
        made.measure({("", 2): ok(t=1.1), ("", 3): ok(t=1.2)})
        assert made.found() == []


READ = 'read = { file = "r.json", format = "json" }\n'
SUBJECT = RUNS.replace("metrics", 'command = ["true"]\nsubject = ["kernel.py"]\n' + READ + "metrics") + CLAIM
GUARD = SUBJECT + 'kind = "guard"\nexpected = 1.0\ndetect = 4.0\ncv = 0.05\n'


class Versions(Scene):
    """A study of a file that changes."""

    def __init__(self, repository: GitRepository, text: str) -> None:
        repository.write("kernel.py", "x = 1\n")
        super().__init__(repository, text)
        self.commit()

    def measure(self, values, experiment="runs", **header) -> Path:
        study = self.written.study
        subject = subject_digest(study, study.experiments[experiment])
        return super().measure(values, experiment, subject=subject, **header)

    def change(self) -> None:
        self.repository.write("kernel.py", "x = 2\n")
        self.commit()


class TestVersionsOfASubject:
    """PR206, and what is no disagreement of series."""

    def test_a_claim_about_an_earlier_version_is_noticed(self, git_repository):
        made = Versions(git_repository(), SUBJECT)
        made.measure(QUICK)
        made.commit()
        assert made.found("PR206") == []
        made.change()
        (found,) = made.found("PR206")
        assert (found.level, found.id, found.line) == (
            "notice",
            "quick",
            made.written.study.predictions["quick"].line,
        )
        assert "is about an earlier version of its subject" in found.message

    def test_a_guard_is_stale_until_it_is_measured_again(self, git_repository):
        made = Versions(git_repository(), GUARD)
        made.measure(QUICK)
        made.commit()
        assert made.found("PR206") == []
        made.change()
        (found,) = made.found("PR206")
        assert (found.level, found.id) == ("notice", "quick")
        assert "is stale: series 1 found it supported" in found.message
        made.measure(SLOW, series=2)
        assert made.found("PR205", "PR206") == []  # another subject, another verdict

    def test_a_guard_that_one_version_was_measured_for_twice_and_otherwise(self, git_repository):
        made = Versions(git_repository(), GUARD)
        made.measure(SLOW)
        made.measure(QUICK, series=2)
        (found,) = made.found("PR205")
        assert (found.level, found.id, found.about) == (
            "review",
            "quick",
            "series 1 refuted, series 2 supported",
        )

    def test_a_subject_that_is_gone(self, git_repository):
        made = Versions(git_repository(), SUBJECT)
        made.measure(QUICK)
        made.commit()
        (made.path / "kernel.py").unlink()
        (found,) = made.found("PR206")
        assert found.message.endswith("which is no longer there")


class TestEvidenceThatIsGone:
    """PR207."""

    def test_committed_and_removed_by_a_commit(self, measured):
        (file,) = measured.written.state().files["runs"]
        file.path.unlink()
        measured.commit()
        first = next(one for one in measured.found("PR207") if one.commit)
        assert (first.level, first.id, first.line, first.about) == ("error", "runs", LINE, file.name)
        assert first.message == f'evidence "{file.name}" was committed, and is gone'
        assert "git checkout" in first.advice

    def test_removed_and_not_committed_is_told_once(self, measured):
        (file,) = measured.written.state().files["runs"]
        file.path.unlink()
        of_file = [one for one in measured.found("PR207") if one.id == "runs"]
        assert [one.about for one in of_file] == [file.name]

    def test_altered_with_a_new_digest_by_a_commit(self, measured):
        """Consistent in itself: what was committed before gives it away."""
        (file,) = measured.written.state().files["runs"]
        before = file.path.read_bytes()
        made_anew = measured.measure(SLOW, head=file.header.head)
        made_anew.replace(file.path)
        assert file.path.read_bytes() != before
        measured.commit()
        (found,) = (one for one in measured.found("PR207") if one.id == "runs")
        assert found.message == f'evidence "{file.name}" is no longer what was committed'

    def test_one_byte_that_its_last_line_gives_away(self, scene):
        made = scene()
        made.register()
        path = made.measure(QUICK)
        path.write_bytes(path.read_bytes().replace(b"1.1", b"1.0", 1))
        (found,) = made.found("PR207")
        assert (found.level, found.id) == ("error", "runs")
        assert f"runs/{path.name}" in found.message

    def test_put_back_it_is_fine(self, measured):
        (file,) = measured.written.state().files["runs"]
        text = file.path.read_bytes()
        file.path.unlink()
        measured.commit()
        file.path.write_bytes(text)
        measured.commit()
        assert measured.found() == []

    def test_a_pilot_is_evidence_too(self, measured):
        pilot = measured.try_out()
        measured.commit()
        assert measured.found() == []
        pilot.unlink()
        measured.commit()
        assert [(one.level, one.about) for one in measured.found("PR207")] == [
            ("error", f"runs/{pilot.name}")
        ]

    def test_a_file_that_a_later_session_names(self, scene):
        """Never committed, and missed all the same."""
        made = scene()
        made.register()
        first = made.measure(SLOW)
        known = known_digests(made.written.state().files["runs"])
        made.measure(QUICK, series=2, known=known)
        assert made.found("PR207") == []
        first.unlink()
        assert [(one.level, one.id, one.about) for one in made.found("PR207")] == [
            ("error", "runs", f"runs/{first.name}")
        ]

    def test_put_where_the_study_does_not_read_it(self, measured):
        (file,) = measured.written.state().files["runs"]
        attic = measured.path / "attic" / "runs" / file.path.name
        attic.parent.mkdir(parents=True)
        file.path.rename(attic)
        measured.commit()
        (found,) = (one for one in measured.found("PR207") if one.id == "runs")
        assert (found.level, found.line, found.about) == ("error", LINE, file.path.name)
        assert "attic" in found.message

    def test_where_the_study_does_not_look_any_more(self, scene):
        made = scene()
        made.register()
        made.measure(SLOW)
        made.commit()
        made.repository.write(
            "predictions.toml", TEXT.replace('id = "small"', 'id = "small"\nevidence = "new"')
        )
        made.commit()
        assert [(one.level, one.id) for one in made.found("PR207")] == [("error", "runs")]

    def test_moved_with_the_study_or_copied_it_is_fine(self, measured):
        (file,) = measured.written.state().files["runs"]
        copy = measured.repository.path / "docs" / "runs" / file.path.name
        copy.parent.mkdir(parents=True)
        copy.write_bytes(file.path.read_bytes())
        measured.commit()
        assert measured.found() == []
        measured.repository.write(
            "predictions.toml", TEXT.replace('id = "small"', 'id = "small"\nevidence = "elsewhere"')
        )
        (measured.path / "experiments" / "evidence").rename(measured.path / "elsewhere")
        measured.commit()
        assert measured.found() == []

    def test_of_an_experiment_that_the_study_gave_up(self, scene):
        other = '[experiments.other]\nrepeats = 3\nmetrics = { t = "s" }\n'
        made = scene(TEXT + other + CLAIM.replace("quick", "apart").replace('"runs"', '"other"'))
        made.register()
        file = made.measure(SLOW, "other")
        made.commit()
        made.repository.write("predictions.toml", TEXT)
        made.commit()
        (found,) = made.found("PR207")
        assert (found.level, found.id) == ("notice", "other")
        assert "(1 session)" in found.message
        file.unlink()
        made.commit()
        (found,) = made.found("PR207")
        assert (found.level, found.id, found.about) == ("error", "other", f"other/{file.name}")


def test_evidence_names_a_prediction_that_is_nowhere_any_more(scene):
    """PR203: deleted from study and lock before anything was committed."""
    made = scene(TEXT + CLAIM.replace("quick", "slow"))
    made.repository.write("readme.txt", "x")
    made.commit("readme.txt")
    made.measure(SLOW)
    assert made.told("PR203") == []
    made.written.study.lock_path.unlink()
    WrittenStudy(made.path, TEXT)
    made.commit()
    (found,) = made.found("PR203")
    assert (found.level, found.id, found.path, found.line) == ("error", "slow", found.path, None)


class TestSetAside:
    """PR208: what is set aside when it ends is registered, and known of."""

    RULED = TEXT.replace("repeats = 3", 'repeats = 5\nexclude = ["swapped"]\nmax-excluded = 1')

    def measure(self, made, cause):
        aside = {("", 4): [(Outcome.INVALID, {"t": 1.3})], ("", 5): [(Outcome.EXCLUDED, {"t": 1.4})]}
        made.measure({**rows((1.0, 1.1, 1.2)), **aside}, causes={("", 5): cause})

    def test_is_noticed_with_counts(self, scene):
        made = scene(self.RULED)
        made.register()
        self.measure(made, "swapped")
        (found,) = made.found("PR208")
        assert (found.level, found.id) == ("notice", "runs")
        assert found.message == (
            'of 5 repeats of series "runs/1": 1 declared invalid by the experiment, 1 excluded by a registered rule'
        )

    def test_by_no_rule_a_person_has_to_look(self, scene):
        made = scene(self.RULED)
        made.register()
        self.measure(made, "too slow")
        assert [(one.level, one.about) for one in made.found("PR208")] == [
            ("notice", "runs/1: 1 declared invalid by the experiment"),
            ("review", "runs/1: 1 excluded in the evidence, by no rule that is registered (runs/1/5)"),
        ]

    @pytest.mark.parametrize(
        ("unread", "told"),
        [
            ((), ["3 declared invalid by the experiment"]),
            ((1, 2), ["1 declared invalid by the experiment, 2 invalid for want of a reading"]),
            ((1, 2, 3), []),
        ],
    )
    def test_nobody_set_aside_what_could_be_read_in_no_repeat(self, scene, unread, told):
        made = scene()
        made.register()
        slots = {("", index): [(Outcome.INVALID, {})] for index in (1, 2, 3)}
        made.measure(slots, unreadable={("", index): {"t": "probe"} for index in unread})
        assert [one.about.removeprefix("runs/1: ") for one in made.found("PR208")] == told


class TestQuotedNumbers:
    """PR210, as ``cite --check`` finds them."""

    def quote(self, made, text, name="notes.md"):
        made.repository.write(name, f"# Notes\n\nIt took <!-- prereg: {text}<!-- /prereg --> s.\n")

    def test_a_number_that_is_not_recorded(self, measured, monkeypatch):
        monkeypatch.chdir(measured.path)
        self.quote(measured, "quick.estimate -->1.0")
        (found,) = measured.found("PR210")
        assert (found.level, found.id, found.path, found.line) == ("error", "quick", "notes.md", 3)
        assert '"1.10"' in found.message or '"1.1"' in found.message

    def test_one_that_is(self, measured):
        self.quote(measured, "quick.verdict -->supported")
        assert measured.found() == []

    def test_one_that_cites_nothing(self, measured):
        self.quote(measured, "quick.estimates -->1.0")
        assert [(one.level, one.line) for one in measured.found("PR210")] == [("error", 3)]

    def test_where_nobody_would_check_it(self, measured):
        self.quote(measured, "quick.estimate -->1.0", "notes.rst")
        (found,) = measured.found("PR210")
        assert (found.level, found.line) == ("error", 3)

    def test_pages_without_a_comment_load_no_parser(self, measured):
        measured.repository.write("notes.md", "# prereg\n\nNothing is cited.\n")
        code = (
            "import sys; from pathlib import Path\n"
            "from pytest_prereg.audit.assess import StudyState\n"
            "from pytest_prereg.audit.findings.quoted_numbers import misquoted\n"
            "from pytest_prereg.registry.load import load_study\n"
            "assert not list(misquoted(StudyState(load_study(Path('predictions.toml').resolve()))))\n"
            "print('markdown_it' in sys.modules)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=measured.path, capture_output=True, text=True, check=False
        )
        assert (done.stdout.strip(), done.stderr) == ("False", "")


class TestRecords:
    """PR211."""

    def test_a_verdict_that_the_evidence_does_not_give(self, measured):
        lock = measured.written.study.lock_path
        lock.write_text(lock.read_text().replace('"supported"', '"refuted"'))
        assert measured.told() == [("PR211", "error", "quick", LINE)]

    def test_what_is_not_recorded_yet_is_nothing_to_tell(self, scene):
        made = scene()
        made.register()
        made.measure(QUICK)
        made.commit()
        assert made.found() == []

    def withdrawn(self, made, *, verdict=None):
        lock = read_lock(made.written.study.lock_path)
        entry = replace(
            lock.predictions["quick"], withdrawal=Withdrawal(reason="x", at="2026-01-01T00:00:00Z")
        )
        entry = replace(entry, verdict=verdict)
        write_lock(made.written.study.lock_path, replace(lock, predictions={"quick": entry}))

    def test_withdrawn_by_hand_without_its_verdict(self, scene):
        made = scene()
        made.register()
        made.measure(SLOW)
        made.commit()
        self.withdrawn(made)
        assert ("PR211", "error", "quick", LINE) in made.told()

    def test_and_deleted_from_the_study(self, scene):
        made = scene()
        made.register()
        made.measure(SLOW)
        made.commit()
        self.withdrawn(made)
        made.repository.write("predictions.toml", RUNS)
        (found,) = made.found("PR211")
        assert (found.level, found.id) == ("review", "quick")

    @pytest.mark.parametrize("values", [SLOW[:2], None], ids=["not complete", "not measured"])
    def test_what_had_no_verdict_is_withdrawn_without_one(self, scene, values):
        made = scene()
        made.register()
        if values:
            made.measure(values)
        made.commit()
        self.withdrawn(made)
        assert made.found("PR211") == []
        made.repository.write("predictions.toml", RUNS)
        assert made.found("PR211") == []


class TestSeriesThatWereLeft:
    """PR213."""

    def test_one_that_a_later_one_was_begun_in_place_of(self, scene):
        made = scene()
        made.register()
        made.measure(SLOW[:2])
        made.measure(QUICK, series=2)
        (found,) = made.found("PR213")
        assert (found.level, found.id, found.line, found.about) == ("review", "runs", LINE, "runs/1")
        assert 'series "runs/1" was abandoned after 2 of 3 repeats' in found.message

    def test_one_that_is_open_is_a_notice(self, scene):
        made = scene()
        made.register()
        made.measure(SLOW[:2])
        assert [(one.level, one.about) for one in made.found("PR213")] == [("notice", "runs/1")]

    def test_one_whose_registration_was_changed(self, scene):
        made = scene()
        made.register()
        made.measure(SLOW[:2])
        path = made.path / "predictions.toml"
        path.write_text(path.read_text().replace(">= 3 s", ">= 5 s"))
        lock = read_lock(made.written.study.lock_path)
        write_lock(made.written.study.lock_path, amend(lock, load_study(path), ["quick"], "x"))
        (found,) = made.found("PR213")
        assert (found.level, found.about) == ("review", "runs/1")
        assert 'the registration of "quick" changed' in found.message

    def test_one_that_was_killed_and_resumed_is_a_notice(self, scene):
        made = scene()
        made.register()
        path = made.measure({("", 1): ok(t=1.0), ("", 2): [(Outcome.LOST, {})]})
        kill(path)
        made.measure({("", 2): ok(t=1.1), ("", 3): ok(t=1.2)})
        (found,) = made.found("PR213")
        assert (found.level, found.about) == ("notice", "runs/1")
        assert found.message == (
            'series "runs/1" is complete, with 1 attempt lost and run again; 1 session of it never ended'
        )

    def test_one_that_was_killed_and_left(self, scene):
        made = scene()
        made.register()
        kill(made.measure({("", 1): [(Outcome.LOST, {})]}))
        made.measure(QUICK, series=2)
        (found,) = made.found("PR213")
        assert (found.level, found.about) == ("review", "runs/1")
        assert "1 session of it never ended" in found.message

    def test_where_nothing_was_launched_nothing_was_left(self, scene):
        made = scene()
        made.register()
        made.measure({})
        made.measure(QUICK, series=2)
        assert [(one.level, one.about) for one in made.found("PR213")] == [("notice", "runs/1")]

    def test_what_was_killed_counts_as_launched_whoever_did_it(self, scene):
        made = scene()
        made.register()
        made.measure({("", 1): [(Outcome.INFRASTRUCTURE, {})]})
        made.measure(QUICK, series=2)
        assert [(one.level, one.about) for one in made.found("PR213")] == [("review", "runs/1")]

    def test_a_voided_one_is_told_from_the_lock(self, scene):
        made = scene()
        made.register()
        made.measure(SLOW[:2])
        made.measure(QUICK, series=2)
        lock = read_lock(made.written.study.lock_path)
        void = Void(series="runs/1", reason="x", at="2026-01-01T00:00:00Z")
        write_lock(made.written.study.lock_path, replace(lock, voided=(void,)))
        assert made.found("PR213") == []


def kill(path: Path) -> None:
    """What is left of a session that was killed: no last line."""
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


class TestDataBeforeTheRegistration:
    """PR216."""

    def test_a_pilot_before_it(self, scene):
        made = scene()
        made.commit("predictions.toml")
        pilot = made.try_out()
        made.register()
        (found,) = made.found("PR216")
        digest = made.written.state().digests["quick"].removeprefix("sha256:")[:8]
        assert (found.level, found.id, found.line) == ("review", "quick", LINE)
        assert found.about == f"{digest} runs/{pilot.name}"
        assert "amend" in found.advice
        made.measure(QUICK)
        (found,) = made.found("PR216")
        assert "amend" not in found.advice  # it would move what was measured for

    def test_a_pilot_after_it(self, scene):
        made = scene()
        made.register()
        made.try_out()
        made.commit()
        assert made.found() == []

    @pytest.mark.parametrize("word", ["pilot", "full"])
    def test_is_no_fault_where_it_is_said(self, scene, word):
        made = scene(TEXT + f'data-seen = "{word}"\n')
        made.commit("predictions.toml")
        made.try_out()
        made.register()
        assert made.found() == []

    def test_one_that_yielded_nothing_showed_nothing(self, scene):
        made = scene()
        made.commit("predictions.toml")
        made.try_out({("", 1): [(Outcome.PILOT, {})]})
        made.register()
        assert made.found() == []

    def test_of_an_arm_that_is_not_read(self, scene):
        arms = "[experiments.runs.arms.a]\nx = 1\n[experiments.runs.arms.b]\nx = 2\n"
        made = scene(RUNS + arms + CLAIM + 'arm = "a"\n')
        made.commit("predictions.toml")
        made.try_out(rows(QUICK, "b"))
        made.register()
        assert made.found() == []
        made.repository.git("reset", "--quiet", "HEAD~1")
        made.try_out(rows(QUICK, "a"))
        made.register()
        assert [one.id for one in made.found("PR216")] == ["quick"]

    def test_committed_before_it_whatever_its_header_says(self, scene):
        made = scene()
        made.commit("predictions.toml")
        pilot = made.try_out(head="0" * 40)
        made.commit(str(pilot.relative_to(made.path)))
        made.register()
        assert [one.id for one in made.found("PR216")] == ["quick"]

    def test_that_came_in_with_it_after_a_squash(self, scene):
        made = scene()
        made.repository.write("readme.txt", "x")
        made.commit("readme.txt")
        made.try_out(head="0" * 40)
        made.commit()
        assert [one.id for one in made.found("PR216")] == ["quick"]

    def test_before_it_was_amended_to_what_was_seen(self, scene):
        made = scene()
        made.register()
        made.try_out(SLOW)
        path = made.path / "predictions.toml"
        path.write_text(path.read_text().replace("<= 2 s", "<= 2.9 s"))
        lock = read_lock(made.written.study.lock_path)
        write_lock(made.written.study.lock_path, amend(lock, load_study(path), ["quick"], "x"))
        made.commit()
        assert [one.id for one in made.found("PR216")] == ["quick"]

    def test_many_pilots_are_one_question(self, scene):
        made = scene()
        made.commit("predictions.toml")
        for _ in range(5):
            made.try_out()
        made.register()
        (found,) = made.found("PR216")
        assert "5 sessions" in found.message
        assert found.message.endswith("and 2 more")

    def test_of_another_claim_that_were_measured_before(self, measured):
        path = measured.path / "predictions.toml"
        other = CLAIM.replace("quick", "later").replace("<= 2 s", "<= 1.5 s")
        path.write_text(TEXT + other)
        again = WrittenStudy(measured.path, TEXT + other)
        measured.written = again
        measured.register()
        measured.measure(QUICK, series=2)
        assert [one.id for one in measured.found("PR216")] == ["later"]

    def test_of_the_claim_that_it_follows(self, scene):
        made = scene()
        made.register()
        made.measure(UNDECIDED)
        made.commit()
        text = TEXT + CLAIM.replace("quick", "later") + 'follows = "quick"\n'
        made.written = WrittenStudy(made.path, text)
        made.register()
        made.measure(QUICK, series=2, predictions={"later": made.written.state().digests["later"]})
        assert made.found("PR216") == []


class TestDataOfACopy:
    """PR216: the experiment was run under another name."""

    RUN = RUNS.replace("metrics", 'command = ["true", "{size}"]\nparams = { size = 1 }\n' + READ + "metrics")
    COPY = RUN.partition("[experiments")[2]

    def copied(self, scene, change=("", ""), values=SLOW) -> Scene:
        """Measured as ``runs``, and then registered as ``again``, of which the old one is or is not left."""
        made = scene(self.RUN + CLAIM)
        made.register()
        made.measure(values, source=made.written.state().source(made.written.study.experiments["runs"]))
        made.commit()
        again = self.RUN[self.RUN.index("[experiments") :].replace("runs", "again").replace(*change)
        made.again = again + CLAIM.replace("quick", "better").replace("runs", "again")
        made.written = WrittenStudy(made.path, self.RUN + CLAIM + made.again)
        made.register()
        return made

    def test_beside_the_first_one(self, scene):
        assert [one.id for one in self.copied(scene).found("PR216")] == ["better"]

    def test_with_other_parameters_it_is_another_experiment(self, scene):
        assert self.copied(scene, ("size = 1", "size = 2")).found("PR216") == []

    def test_with_another_command_it_is_another_experiment(self, scene):
        assert self.copied(scene, ("true", "false")).found("PR216") == []

    def test_in_the_place_of_the_first_one(self, scene):
        made = self.copied(scene)
        made.repository.write("predictions.toml", '[study]\nid = "small"\n' + made.again)
        made.commit()
        assert [one.id for one in made.found("PR216")] == ["better"]


def test_what_can_not_be_judged_is_told_and_the_others_are_judged(scene):
    ratio = CLAIM.replace("quick", "inverse").replace('"t"\n', '"1 / t"\n').replace(' s"', ' s**-1"')
    made = scene(TEXT + ratio)
    made.register()
    made.measure((0.0, 1.1, 1.2))
    made.measure((4.0, 4.1, 4.2), series=2)
    told = made.told()
    line = made.written.study.predictions["inverse"].line
    assert ("PR140", "error", "inverse", line) in told
    assert all(one[2] != "inverse" or one[0] == "PR140" for one in told)
