"""What an audit says that it can't show, each beside a study of which it can."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from written_studies import WrittenStudy, ok

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.audit.findings.unproven import ALWAYS, unproven
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.lock import read_lock, write_lock

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
claim = "x"
experiment = "runs"
quantity = "t"
predicts = "<= 2 s"
falsifier = ">= 3 s"
"""
COMMAND = TEXT.replace(
    "metrics =", 'command = ["true"]\nread = { file = "r.json", format = "json" }\nmetrics ='
)
SLOTS = {("", at): ok(t=1 + at / 10) for at in (1, 2, 3)}
EDITED = "That none of 1 session was edited before its first commit: whoever edits one can write its last line anew."


class Scene:
    def __init__(self, repository: GitRepository, text: str = TEXT) -> None:
        self.repository = repository
        self.path = repository.path
        self.written = WrittenStudy(self.path, text)
        repository.commit("Register")

    def measure(self, **header) -> Path:
        head = {"head": self.repository.git("rev-parse", "HEAD"), "dirty": False}
        return self.written.session("runs", SLOTS, **{**head, **header})

    def keep(self) -> None:
        self.repository.commit("Evidence")

    def said(self, path: Path | None = None) -> list[str]:
        """All but what is true of every study."""
        return unproven(StudyState(load_study((path or self.path) / "predictions.toml")))[len(ALWAYS) :]


@pytest.fixture
def scene(git_repository: Callable[..., GitRepository]) -> Callable[..., Scene]:
    return lambda text=TEXT: Scene(git_repository(), text)


@pytest.fixture
def measured(scene: Callable[..., Scene]) -> Scene:
    made = scene()
    made.measure()
    made.keep()
    return made


@pytest.mark.parametrize("text", [TEXT, TEXT.partition("[experiments")[0]], ids=["a claim", "nothing at all"])
def test_some_things_no_study_can_show(scene, text):
    said = " ".join(unproven(scene(text).written.state()))
    assert said.startswith(" ".join(ALWAYS))
    for thing in (
        "did not know",
        "measured at all",
        "wording",
        "never committed",
        "deleted before",
        "finds undeclared",
    ):
        assert thing in said


def test_of_a_study_without_evidence_there_is_nothing_more_to_say(scene):
    assert scene().said() == []


def test_evidence_may_have_been_edited_before_it_was_committed(measured):
    assert measured.said() == [EDITED]


def test_evidence_that_is_not_committed(scene):
    made = scene()
    made.measure()
    assert made.said() == [
        "That 1 session will stay as they are: what is not committed as it lies here can be replaced without a trace."
    ]


def test_a_lock_that_is_not_committed(scene):
    made = scene()
    lock = read_lock(made.written.study.lock_path)
    entry = replace(lock.predictions["quick"], registered="2020-01-01T00:00:00Z")
    write_lock(made.written.study.lock_path, replace(lock, predictions={"quick": entry}))
    assert made.said() == ["That the lock will stay as it is: it is not committed as it lies here."]


def test_repeats_that_were_imported(measured):
    measured.measure(origin="imported", series=2, imported={"blob": 40 * "0"})
    measured.keep()
    assert measured.said()[1:] == [
        "Where 3 of 6 repeats come from: they were imported, and no session saw the machine that they ran on."
    ]


def test_sessions_at_commits_that_are_gone(measured):
    measured.measure(series=2, head="0" * 40)
    measured.keep()
    (said,) = measured.said()[1:]
    assert said.startswith(
        "What was registered when 1 of 2 measured sessions began: the commits that they name"
    )


def test_sessions_in_a_changed_work_tree(measured):
    measured.measure(series=2, dirty=True)
    measured.keep()
    (said,) = measured.said()[1:]
    assert said.startswith("What else had been changed when 1 of 2 measured sessions began")


def test_programs_that_a_command_starts(scene):
    made = scene(COMMAND)
    assert made.said() == []
    made.measure()
    made.keep()
    (said,) = made.said()[1:]
    assert said.startswith('Which programs ran for "runs"')


@pytest.mark.parametrize(
    ("table", "is_said"),
    [
        ('trusted = "it always did"', True),
        ('trusted = "it always did."', True),
        ('calibrated-by = ["quick"]', False),
    ],
    ids=["trusted", "trusted in a sentence", "calibrated"],
)
def test_an_instrument_that_is_taken_on_trust(scene, table, is_said):
    made = scene(f"{TEXT}[instruments.watch]\n{table}\n")
    trusted = (
        'That instrument "watch" reads what it says: it is trusted, not calibrated, because "it always did".'
    )
    assert made.said() == ([trusted] if is_said else [])


def test_what_reads_in_the_process_that_it_reads(scene):
    """Whoever writes the body may exchange the reader: its code is registered, and nobody else reads it."""
    tables = '[instruments.host-load]\ncalibrated-by = ["quick"]\n[experiments.busy]\nrepeats = 3\n'
    metric = '[experiments.busy.metrics]\nload = { unit = "1", instrument = "host-load" }\n'
    reader = TEXT.partition("[predictions.quick]")[2].replace("runs", "busy").replace('t"', 'load"')
    reader = "[predictions.busy]" + reader.replace(' s"', '"')
    assert scene(TEXT + tables + metric).said() == []  # no prediction uses it
    (said,) = scene(TEXT + tables + metric + reader).said()
    assert said == (
        'That nothing but "host-load" made its readings: a body shares its process with what reads it, and so '
        "does all code that its module imports."
    )


@pytest.mark.parametrize(("word", "is_said"), [("pilot", True), ("full", True), ("none", False)])
def test_how_much_was_seen_is_what_the_author_says(scene, word, is_said):
    made = scene(f'{TEXT}data-seen = "{word}"\n')
    said = f'How much was seen before "quick": data-seen = "{word}" is what the author says.'
    assert made.said() == ([said] if is_said else [])


def test_a_pilot_of_which_nothing_says_when_it_was(measured):
    measured.measure(series=0, origin="pilot")
    measured.keep()
    assert [one for one in measured.said() if "came after" in one] == []
    measured.measure(series=0, origin="pilot", head="0" * 40)
    measured.keep()
    assert [one for one in measured.said() if "came after" in one] == [
        "That 1 session came after the predictions of the same experiment: the commits that they name are not here."
    ]


@pytest.mark.parametrize(
    ("place", "is_said"), [("conftest.py", True), ("tests/conftest.py", False)], ids=["above", "beside"]
)
def test_plugins_that_have_a_part_in_what_pytest_prints(scene, place, is_said):
    made = scene()
    made.repository.write(place, "")
    made.keep()
    assert [("conftest.py" in one, "--noconftest" in one) for one in made.said()] == [(True, True)] * is_said


def test_a_history_that_is_cut(measured, tmp_path):
    measured.repository.commit("More")
    for name, options in {"whole": [], "cut": ["--depth=1"]}.items():
        command = ["git", "clone", "--quiet", *options, measured.path.as_uri(), str(tmp_path / name)]
        subprocess.run(command, check=True, capture_output=True)
    assert measured.said(tmp_path / "whole") == [EDITED]
    said = measured.said(tmp_path / "cut")
    assert (
        "That nothing came before what is here: history is cut at 1 commit (git fetch --unshallow --tags)."
        in said
    )


def test_a_folder_without_git(tmp_path):
    written = WrittenStudy(tmp_path, TEXT)
    (said,) = unproven(written.state())[len(ALWAYS) :]
    assert said.startswith("That anything was registered before its evidence: no git repository")


def test_a_tag_that_witnesses(git_repository):
    """Both in one commit, and a tag of a commit that had the registration alone."""
    repository = git_repository()
    repository.write("readme.txt", "x")
    repository.commit("Begin")
    repository.git("checkout", "--quiet", "-b", "branch")
    made = Scene(repository)
    digest = made.written.state().digests["quick"].removeprefix("sha256:")[:8]
    repository.git("tag", f"prereg/small/{digest}")
    made.measure()
    made.keep()
    assert [one for one in made.said() if "tag" in one] == []
    repository.git("checkout", "--quiet", "main")
    repository.git("merge", "--quiet", "--squash", "branch")
    repository.git("commit", "--quiet", "--message", "Squashed")
    repository.git("branch", "--quiet", "-D", "branch")
    (said,) = (one for one in made.said() if "tag" in one)
    assert said.startswith('That the tag of "quick" is as old as what it holds')
