"""A study as it was at a commit, had from git alone, wherever its files lay and whatever lies there now."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from pytest_prereg.audit.comparing.changes import Revision
from pytest_prereg.audit.history.git import Repository
from pytest_prereg.audit.history.revisions import NoRevision, Revisions, study_at
from pytest_prereg.registry.digest import registration_digest
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.model import Study

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import GitRepository

STUDY = """\
[study]
id = "s"

[experiments.e]
fixture = "work"
repeats = 5

[predictions.p]
claim = "It takes less than two seconds."
experiment = "e"
quantity = "t"
predicts = "<= 2 s"
falsifier = ">= 3 s"
"""
MODULE = """\
from pytest_prereg import experiment

raise SystemExit("imported")


@experiment(metrics={"t": "s"})
def work(repeat):
    ...
"""


@pytest.fixture
def repository(git_repository: Callable[..., GitRepository]) -> GitRepository:
    """With a study whose one experiment is declared in a module that can't be imported."""
    made = git_repository()
    made.write("predictions.toml", STUDY)
    made.write("predictions.lock", "")
    made.write("experiments/work.py", MODULE)
    return made


def loaded(made: GitRepository, commit: str, hint: str | None = "predictions.toml") -> Study:
    study = study_at(found(made), commit, "s", hint)
    assert isinstance(study, Study), study
    return study


def found(made: GitRepository) -> Repository:
    repository = Repository.find(made.path)
    assert repository is not None
    return repository


def digest(study: Study) -> str:
    return registration_digest(study, study.predictions["p"])


def files(folder: Path) -> dict[Path, bytes]:
    return {
        path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts
    }


def test_a_study_is_what_it_was_and_the_work_tree_stays_what_it_is(repository: GitRepository):
    first = repository.commit("x")
    before = digest(load_study(repository.path / "predictions.toml"))
    repository.write("predictions.toml", STUDY.replace("<= 2 s", "<= 1 s"))
    repository.write("experiments/work.py", MODULE.replace('"t": "s"', '"t": "ms"'))
    second = repository.commit("x")
    repository.write("predictions.toml", "now it is nothing")
    (repository.path / "experiments/work.py").unlink()
    now = files(repository.path)
    assert digest(loaded(repository, first)) == before
    assert loaded(repository, second).experiments["e"].metrics["t"].unit == "ms"
    assert files(repository.path) == now
    assert "work" not in sys.modules


def test_what_it_was_lies_where_it_lay(repository: GitRepository):
    study = loaded(repository, repository.commit("x"))
    source = study.experiments["e"].source
    assert study.path == repository.path / "predictions.toml"
    assert source is not None
    assert source.path == repository.path / "experiments/work.py"


def test_a_study_that_was_elsewhere_is_found_by_its_id(git_repository: Callable[..., GitRepository]):
    made = git_repository()
    for folder, study in (("a b/ä", STUDY), ("another", STUDY.replace('"s"', '"t"', 1))):
        made.write(
            f"{folder}/claims.toml", study.replace('id = "s"', 'id = "s"\nexperiments = ["../bench/w.py"]')
        )
        made.write(f"{folder}/claims.lock", "")
    made.write("a b/bench/w.py", MODULE)
    made.write("bench/w.py", MODULE)
    study = loaded(made, made.commit("x"), "another/claims.toml")
    assert study.path == made.path / "a b/ä/claims.toml"


@pytest.mark.parametrize(
    "entry", ["bench", "bench/sub", "bench.sub", "bench.sub.work", "bench/sub/work.py", "."]
)
def test_modules_are_found_however_the_study_names_them(repository: GitRepository, entry: str):
    (repository.path / "experiments/work.py").unlink()
    repository.write("predictions.toml", STUDY.replace('id = "s"', f'id = "s"\nexperiments = ["{entry}"]'))
    repository.write("bench/sub/work.py", MODULE)
    commit = repository.commit("x")
    here = load_study(repository.path / "predictions.toml")
    assert loaded(repository, commit).experiments == here.experiments


def test_a_study_that_no_longer_loads_says_why(repository: GitRepository):
    repository.write("predictions.toml", STUDY.replace("falsifier", "wrong"))
    first = repository.commit("x")
    repository.write("predictions.toml", STUDY)
    (repository.path / "experiments/work.py").unlink()
    second = repository.commit("x")
    repository.write("predictions.toml", "[study")
    third = repository.commit("x")
    said = [study_at(found(repository), commit, "s", "predictions.toml") for commit in (first, second, third)]
    unread, without_module, no_toml = (one.why for one in said if isinstance(one, NoRevision))
    assert unread.startswith('it no longer loads: prediction "p" has no "falsifier"')
    assert 'no @experiment function is called "work"' in without_module
    assert no_toml == 'no prediction file of study "s" is there'


def test_modules_outside_of_the_repository_are_never_looked_at(repository: GitRepository):
    repository.write("predictions.toml", STUDY.replace('id = "s"', 'id = "s"\nexperiments = ["a/../../b"]'))
    study = study_at(found(repository), repository.commit("x"), "s", "predictions.toml")
    assert study == NoRevision(why="its experiments lie outside of the repository")


def test_a_digest_is_had_from_the_first_commit_whose_text_it_is_of(repository: GitRepository):
    lock_alone = repository.commit("x")
    repository.write("predictions.toml", STUDY.replace("<= 2 s", "<= 1 s"))
    text_after = repository.commit("x")
    strict = digest(load_study(repository.path / "predictions.toml"))
    revisions = Revisions(found(repository), "s", "predictions.toml")
    had = revisions.registered([lock_alone, text_after], "p", strict)
    assert isinstance(had, Revision)
    assert digest(had.study) == strict
    missing = revisions.registered([lock_alone], "p", strict)
    assert missing == NoRevision(why="the text committed beside the lock is not what that registers")
    assert isinstance(revisions.registered([text_after], "q", strict), NoRevision)
    assert isinstance(revisions.registered([], "p", strict), NoRevision)


MANY = (
    STUDY
    + """
[experiments.other]
metrics = { t = "s" }
repeats = 5

[predictions.q]
claim = "So does the other."
experiment = "other"
quantity = "t"
predicts = "<= 2 s"
falsifier = ">= 3 s"

[predictions.both]
claim = "Both do."
all = ["p", "q"]

[predictions.quotient]
claim = "They are much the same."
inputs = { a = "e:t", b = "other:t" }
formula = "a / b"
predicts = "[0.5, 2]"
falsifier = "outside [0.5, 2]"
requires = ["q"]
"""
)


@pytest.mark.parametrize(
    ("name", "also"), [("p", set()), ("q", set()), ("both", {"p", "q"}), ("quotient", {"q"})]
)
def test_no_more_of_a_study_is_loaded_than_its_prediction_names(
    repository: GitRepository, name: str, also: set[str]
):
    """A change of one among hundreds would else cost the loading of all, once for each change."""
    path = repository.write("predictions.toml", MANY)
    commit = repository.commit("x")
    whole = load_study(path)
    registered = registration_digest(whole, whole.predictions[name])
    had = Revisions(found(repository), "s", "predictions.toml").registered([commit], name, registered)
    assert isinstance(had, Revision)
    assert set(had.study.predictions) == {name, *also}
    assert registration_digest(had.study, had.study.predictions[name]) == registered


def test_what_binds_and_is_not_named_is_found_in_the_whole_study(
    repository: GitRepository, monkeypatch: pytest.MonkeyPatch
):
    path = repository.write("predictions.toml", MANY)
    commit = repository.commit("x")
    whole = load_study(path)
    monkeypatch.setattr("pytest_prereg.audit.history.revisions._part", lambda *_: STUDY.encode())
    registered = registration_digest(whole, whole.predictions["both"])
    had = Revisions(found(repository), "s", "predictions.toml").registered([commit], "both", registered)
    assert isinstance(had, Revision)
    assert set(had.study.predictions) == set(whole.predictions)


def test_where_its_files_can_not_be_written_it_says_so(
    repository: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    commit = repository.commit("x")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    missing = study_at(found(repository), commit, "s", "predictions.toml")
    assert isinstance(missing, NoRevision)
    assert missing.why == "its files can't be written anew: No such file or directory"
