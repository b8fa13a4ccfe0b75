"""``pytest-prereg cite`` as it is typed, and the numbers that this repository quotes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.audit.citing.citations import page_of
from pytest_prereg.audit.citing.figures import Figures
from pytest_prereg.audit.citing.marks import marks_of
from pytest_prereg.audit.citing.neighbours import Neighbours
from pytest_prereg.registry.load import load_study

HERE = Path(__file__).parents[2]
CITED = "# It\n\nIt took <!-- prereg: below-two.estimate -->1.1<!-- /prereg --> s.\n"


def test_cite_writes_and_then_check_passes(at_stage):
    project = at_stage("recorded")
    project.write("README.md", CITED)
    failed = project.prereg("cite", "--check")
    assert failed.exit_code == 1
    assert 'README.md:3: PR210: "below-two.estimate" is quoted as "1.1", and is "1.010"' in failed.output
    assert (project.path / "README.md").read_text() == CITED
    assert project.done("cite").splitlines() == [
        "README.md:3: 1.1 -> 1.010",
        "1 citation in 1 file stands as recorded",
    ]
    assert (project.path / "README.md").read_text() == CITED.replace("1.1", "1.010")
    assert project.done("cite", "--check") == "1 citation in 1 file stands as recorded\n"


def test_a_repository_that_cites_nothing_is_told_so(at_stage):
    project = at_stage("recorded")
    assert project.done("cite", "--check") == "no citations in 0 Markdown files\n"
    project.write("README.md", f"```\n{CITED}```\n")
    assert project.done("cite", "--check") == "no citations in 1 Markdown file; 1 in code left alone\n"


def test_only_files_that_are_named_are_looked_at(at_stage):
    project = at_stage("recorded")
    project.write("a.md", CITED)
    project.write("b.txt", CITED.replace("1.1", "1.010"))
    assert project.done("cite", "--check", "b.txt") == "1 citation in 1 file stands as recorded\n"
    assert "b.txt:3: PR210: cites, and is not checked" in project.prereg("cite", "--check").output
    assert project.prereg("cite", "--check", "c.md").exit_code == 2


def test_what_can_not_be_quoted_is_left_and_the_rest_is_written(at_stage):
    project = at_stage("recorded")
    project.write("a.md", CITED)
    project.write("b.md", CITED + "<!-- prereg: not-there.n -->3<!-- /prereg -->\n")
    result = project.prereg("cite")
    assert result.exit_code == 1
    assert 'b.md:4: PR210: "not-there.n" is quoted as "3": "not-there" is pending' in result.output
    assert "1.010" in (project.path / "a.md").read_text()
    assert "1.010" in (project.path / "b.md").read_text()
    assert "-->3<!--" in (project.path / "b.md").read_text()


def test_what_is_judged_and_not_recorded_can_not_be_quoted(at_stage):
    project = at_stage("judged")
    project.write("README.md", CITED)
    result = project.prereg("cite")
    assert result.exit_code == 1
    assert 'the verdict on "below-two" is not recorded' in result.output
    assert "--prereg-record; pytest-prereg cite" in result.output


def test_an_exclusion_breaks_the_citation_until_it_is_recorded_and_written(at_stage, judge):
    project = at_stage("recorded")
    project.write("README.md", CITED)
    project.done("cite")
    project.done("exclude", "rows/1/2", "--cause", "tool", "--reason", "a backup ran")
    result = project.prereg("cite")
    assert result.exit_code == 1
    assert 'README.md:3: PR210: "below-two.estimate" is quoted as "1.010"' in result.output
    assert '"rows/1/2" still counted, which is excluded since' in result.output
    judge(project, "--prereg-verify", "--prereg-record")
    assert "README.md:3: 1.010 -> 0.983" in project.done("cite")
    assert project.done("cite", "--check")


def test_citing_imports_neither_an_experiment_nor_what_is_heavy(at_stage):
    project = at_stage("recorded")
    project.write("README.md", CITED)
    project.write("experiments/boom.py", "raise SystemExit('imported')\n")
    program = (
        "import sys\nfrom pytest_prereg.cli import main\n"
        "try:\n    main(['cite'])\nexcept SystemExit as end:\n    assert not end.code, end\n"
        "print(*({'torch', 'scipy', 'pint', 'pytest'} & set(sys.modules)), sep=',')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=project.path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == ""


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Path:
    """This repository's study and Markdown, in a repository of their own."""
    if not (HERE / "predictions.lock").exists():
        pytest.skip("the repository's study is not here")
    folder = tmp_path_factory.mktemp("own") / "copy"
    folder.mkdir()
    for pattern in ("predictions.*", "*.md", "docs/**/*.md", "changelog.d/*.md", "experiments/**/*"):
        for path in HERE.glob(pattern):
            if path.is_file() and "__pycache__" not in path.parts:
                target = folder / path.relative_to(HERE)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@example.invalid")
    subprocess.run([*git, "init", "-q", "--template="], cwd=folder, check=True)
    _commit(folder, git, ["predictions.toml", "predictions.lock"])
    _commit(folder, git, ["."])
    return folder


def _commit(folder: Path, git: tuple[str, ...], paths: list[str]) -> None:
    subprocess.run([*git, "add", *paths], cwd=folder, check=True)
    subprocess.run([*git, "commit", "-qm", "x"], cwd=folder, check=True)


def cite(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest_prereg", "cite", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_what_this_repository_quotes_stands_as_recorded(repository):
    done = cite(repository, "--check")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) >= 50


def test_every_single_digit_of_what_this_repository_quotes_is_held(repository):
    state = StudyState(load_study(repository / "predictions.toml"))
    figures, neighbours = Figures(state), Neighbours(state)
    tried = 0
    for path in sorted(repository.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        assert page_of(path, text, figures, neighbours).complaints == []
        for mark in marks_of(text).found:
            for at in range(mark.start, mark.end):
                if text[at].isdigit():
                    for digit in {"0", "1", "9"} - {text[at]}:
                        changed = text[:at] + digit + text[at + 1 :]
                        found = page_of(path, _around(changed, mark), figures, neighbours).complaints
                        assert [problem.code for problem in found] == ["PR210"], (path, mark)
                        tried += 1
    assert tried > 300


def _around(text: str, mark) -> str:
    """The lines with a citation, all others empty: what is elsewhere in the file is not read each time."""
    start = text.rfind("\n", 0, mark.opening) + 1
    end = text.find("\n", mark.closing)
    return re.sub(r"[^\n]", "", text[:start]) + text[start : end if end >= 0 else len(text)]


@pytest.mark.parametrize("which", [0, 0.5, 1])
def test_a_changed_digit_fails_the_command_with_its_line(repository, which):
    path = repository / "experiments" / "README.md"
    text = path.read_text(encoding="utf-8")
    digits = [
        (mark, at)
        for mark in marks_of(text).found
        for at in range(mark.start, mark.end)
        if text[at].isdigit()
    ]
    mark, at = digits[round(which * (len(digits) - 1))]
    path.write_text(text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :], encoding="utf-8")
    try:
        done = cite(repository, "--check")
    finally:
        path.write_text(text, encoding="utf-8")
    assert done.returncode == 1
    assert f"experiments/README.md:{mark.line}: PR210: " in done.stderr
    assert len(re.findall("PR210", done.stderr)) == 1
