"""What a gate tells beside its findings: one result everywhere, what is not committed, what to register."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from audited_study import CLAIM
from gated_study import EASIER, LOCK, STRICTER, STRONGER, TOML
from small_study import new_repository

from pytest_prereg.audit.gating.uncommitted import uncommitted
from pytest_prereg.audit.history.git import Repository

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gated_study import PullRequest

    Against = Callable[[str], PullRequest]

FORMATS = ("terminal", "markdown")
NEXT = "below-one-and-a-half"


def said(project: PullRequest, *arguments: str, base: str = "main") -> str:
    return project.prereg("gate", "--base", base, *arguments).stdout


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("is_owned", "told"), [(True, "a code owner has to approve"), (False, "acknowledged in the lock")]
)
def test_what_is_left_to_a_person_is_the_same_in_every_format(
    against: Against, told: str, *, is_owned: bool
) -> None:
    project = against("recorded")
    if is_owned:
        project.owned()
    project.amend(*STRICTER)
    trust = () if is_owned else ("--acknowledge", "lock")
    for form in ("terminal", "markdown", "github"):
        text = said(project, "--format", form, *trust)
        assert told in text
        assert "nothing waits for a person" not in text
    last = said(project, *trust).splitlines()[-1]
    assert last == f"gate: nothing fails; {told} (exit 0: fine)"


@pytest.mark.parametrize("name", [TOML, LOCK])
def test_what_is_not_committed_is_told_and_changes_nothing(against: Against, name: str) -> None:
    project = against("registered")
    before = project.gate()
    clean = [said(project, "--format", form) for form in FORMATS]
    project.write(name, (project.path / name).read_text(encoding="utf-8") + "\n# a thought\n")
    gated = project.gate()
    assert (gated.content, gated.exit) == (before.content, before.exit)
    line = f"{name} is not committed as it is here; commits alone are compared"
    for form, text in zip(FORMATS, clean, strict=True):
        assert line in flat(said(project, "--format", form))
        assert line not in text
    project.git("add", name)  # as well where the index alone has it
    project.write(name, project.git("show", f"HEAD:{name}") + "\n")
    assert line in flat(said(project))
    project.git("commit", "--quiet", "--allow-empty", "--message", "Nothing")
    assert "not committed" not in said(project, "--head", "main")  # which is not what is checked out


def test_evidence_that_nobody_committed_is_told(against: Against) -> None:
    project = against("registered")
    project.measure()
    assert "experiments/evidence is not committed as it is here; commits alone are compared" in flat(
        said(project)
    )


def test_a_prediction_that_is_not_registered_is_in_the_authors_list(against: Against) -> None:
    project = against("registered")
    project.add(STRONGER)
    project.keep("Write", TOML)
    assert project.gate().exit == 0
    text = said(project)
    _, _, author = text.partition("\nthe author:\n")
    assert f"1. PR102 {NEXT}:\n     Not registered yet:\n       pytest-prereg lock\n" in author
    assert f"git add {TOML} {LOCK} && git commit -m 'Register small' && git push" in author
    assert text.splitlines()[-1] == "next:  pytest-prereg lock"
    assert "`pytest-prereg lock`" in said(project, "--format", "markdown").partition("**The author**")[2]
    project.done("lock")
    project.keep("Register", TOML, LOCK)
    assert "the author:" not in said(project)


def test_a_base_that_is_not_here_is_fetched_only_where_it_can_be(against: Against) -> None:
    project = against("registered")
    text = said(project, base="origin/main")
    assert text.startswith(f"gate of {TOML}: could not tell\n")
    assert "1. PR212:" in text
    assert "PR212 :" not in text
    assert "git fetch" not in text
    assert text.splitlines()[-1] == "next:  pytest-prereg gate --base main"
    assert said(project, base="origin/nowhere").splitlines()[-1] == "next:  git branch --all"
    project.git("remote", "add", "upstream", str(project.path))
    assert said(project, base="upstream/main").splitlines()[-1] == "next:  git fetch upstream main"


def test_a_withdrawal_is_not_called_put_back(against: Against) -> None:
    project = against("recorded")
    project.withdraw()
    assert "PR203 withdrawn" in said(project, "--format", "markdown").replace("`", "")
    assert "put back" not in said(project, "--format", "markdown")


def test_what_is_put_back_is_not_called_withdrawn(against: Against) -> None:
    project = against("recorded")
    text = (project.path / LOCK).read_text(encoding="utf-8")
    (project.path / LOCK).unlink()
    project.keep("Remove", LOCK)
    project.write(LOCK, text)
    project.keep("Put back", LOCK)
    told = said(project, "--format", "markdown").replace("`", "")
    assert "PR203 taken out of the lock and put back" in told
    assert "withdrawn" not in told


def test_either_way_of_an_error_is_committed_in_the_same_words(against: Against) -> None:
    project = against("recorded")
    project.write(
        TOML, (project.path / TOML).read_text(encoding="utf-8").partition("[predictions.")[0] + STRONGER
    )
    (project.path / LOCK).unlink()
    project.register("Take out")
    text = flat(said(project))
    assert f"Commit what that changes of {TOML}, {LOCK} here, in this pull request:" in text
    assert f"That changes {TOML}" not in text


@pytest.mark.parametrize("amended", [True, False])
def test_what_is_expected_now_is_registered_under_another_id(against: Against, *, amended: bool) -> None:
    project = against("recorded")
    if amended:
        project.amend(*EASIER)
    else:
        project.edit(TOML, *EASIER)
        project.keep("Edit", TOML)
    told = flat(said(project))
    assert (
        told.count(
            "What is expected now is another claim: a new id, an experiment of its own for new data, and"
        )
        == 1
    )
    assert (
        'data-seen = "pilot"; or "full" if these numbers are known, which is a replication and not counted'
        in told
    )
    assert f'follows = "{CLAIM}"' not in told  # its predecessor is decided


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_what_is_committed_is_not_told_whatever_hash_and_line_ends_a_clone_has(
    tmp_path: Path, algorithm: str
) -> None:
    repository = new_repository(tmp_path / "clone")
    shutil.rmtree(repository.path / ".git")
    repository.git("init", "--quiet", "--template=", f"--object-format={algorithm}")
    repository.git("config", "user.name", "Test")
    repository.git("config", "user.email", "test@example.invalid")
    for name in ("text", "other"):
        (repository.path / name).write_bytes(b"one\n")
    repository.git("add", ".")
    repository.git("commit", "--quiet", "--message", "One")
    (repository.path / "text").write_bytes(b"one\r\n")
    (repository.path / "new").write_bytes(b"two\n")
    found = Repository.find(repository.path)
    assert found is not None
    assert list(uncommitted(found, found.head() or "", ("text", "other", "new"), None)) == ["new"]
