"""``pytest-prereg new``: a study from one line, or none of it."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_prereg.cli import main
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.lock import read_lock

FLAGS = re.MULTILINE | re.DOTALL
QUICKSTART = Path(__file__).parents[2] / "docs" / "quickstart.md"

COMPARED = ("--command", "true", "--versus", "sleep 0.3")
REGIONS = ("--predicts", "<= 0.5", "--falsifier", ">= 0.8")
IN_SECONDS = ("--predicts", "<= 1 s", "--falsifier", ">= 2 s")


@pytest.fixture
def repository(git_repository, monkeypatch):
    repository = git_repository()
    monkeypatch.chdir(repository.path)
    return repository


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder in no repository."""
    place = tmp_path / "My Study"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def new(*arguments, code=0):
    result = CliRunner().invoke(main, ["new", *map(str, arguments)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def files(folder):
    return sorted(path for path in folder.rglob("*") if ".git" not in path.parts)


@pytest.mark.usefixtures("repository")
def test_two_commands_become_two_arms_that_are_compared():
    said = new("faster", *COMPARED, *REGIONS, "-n", 5).stdout.splitlines()
    study = load_study(Path("predictions.toml"))
    experiment, prediction = study.experiments["faster"], study.predictions["faster"]
    assert said[0] == "wrote predictions.toml: experiment faster (arms new, old), 1 prediction"
    assert experiment.table.command == ["{argv}"]
    assert [arm.params["argv"] for arm in experiment.arms.values()] == [["true"], ["sleep", "0.3"]]
    assert (prediction.table.contrast, prediction.quantity.text) == ("new / old", "wall")
    assert experiment.planned == {"new": 5, "old": 5}


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("versus", ["sleep 0.1", "  sleep   '0.1'"])
def test_a_command_is_not_compared_with_itself(versus):
    said = new("same", "--command", "sleep 0.1", "--versus", versus, *REGIONS, code=1).stderr
    assert "PR005: --versus: " in said
    assert "a command against itself" in said
    assert not Path("predictions.toml").exists()


@pytest.mark.usefixtures("repository")
def test_one_command_is_held_against_regions_with_units():
    new("quick", "--command", "sleep 0.1", *IN_SECONDS, "--timeout", "5 s", "--claim", 'It is "quick".')
    study = load_study(Path("predictions.toml"))
    assert study.experiments["quick"].table.command == ["sleep", "0.1"]
    assert study.experiments["quick"].arms[""].timeout == 5
    assert study.predictions["quick"].claim == 'It is "quick".'


@pytest.mark.usefixtures("repository")
def test_a_metric_can_be_read_from_what_the_command_leaves_behind():
    read = ("--read", "r.json", "--format", "json", "--unit", "token/s", "--from", "output_throughput")
    regions = ("--predicts", ">= 100 token/s", "--falsifier", "< 90 token/s")
    new("serves", "--command", "./bench {out}/r.json", "--metric", "rate", *read, *regions)
    experiment = load_study(Path("predictions.toml")).experiments["serves"]
    assert experiment.table.read.file == "r.json"
    assert (experiment.metrics["rate"].source, experiment.metrics["rate"].unit) == (
        "output_throughput",
        "token/s",
    )


@pytest.mark.usefixtures("repository")
def test_a_command_that_is_not_told_where_to_write_is_noted():
    read = ("--metric", "m", "--read", "r.json", "--format", "json", "--unit", "1")
    compared = ("--command", "true > {out}/r.json", "--versus", "true > r.json")
    said = new("lost", *compared, *read, *REGIONS).stdout
    assert [line for line in said.splitlines() if "{out}" in line] == [
        'note: old is not told of {out}, where "r.json" is read'
    ]


@pytest.mark.usefixtures("repository")
def test_the_status_of_a_command_is_an_answer_where_it_is_what_is_asked():
    new("works", "--command", "false", "--metric", "exit_code", "--predicts", "<= 0", "--falsifier", ">= 1")
    assert "exit_code" in load_study(Path("predictions.toml")).experiments["works"].table.metrics


@pytest.mark.usefixtures("repository")
def test_what_needs_a_shell_is_given_one_and_that_is_said():
    said = new("piped", "--command", "cat a | wc", "--versus", "wc a", *REGIONS).stdout
    arms = load_study(Path("predictions.toml")).experiments["piped"].arms
    assert arms["new"].params["argv"] == ["sh", "-c", "cat a | wc"]
    assert 'note: new is run by sh -c: only a shell can act on its "|"' in said


@pytest.mark.usefixtures("repository")
def test_a_program_that_is_missing_here_is_a_note_and_no_error():
    said = new("gone", "--command", "no-such-program -x", "--versus", "also-none | cat", *REGIONS).stdout
    assert 'note: there is no program "no-such-program" here, which new starts' in said
    assert 'note: there is no program "also-none" here, which old starts' in said


@pytest.mark.usefixtures("repository")
def test_what_is_no_command_to_copy_is_no_wider_than_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    name = "no-such-program-in-any-folder-that-is-looked-through"
    said = new("gone", "--command", f"{name} -x", *COMPARED[2:], *REGIONS).stdout
    assert f'note: there is no program "{name}" here' in " ".join(said.split())
    wide = [line for line in said.splitlines() if len(line) > 60]
    assert [line.split(":")[0] for line in wide] == ["register"]


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("above", "below"), [("", ""), ("", "\n"), ("", "# kept"), ("", "# kept\r\n"), ("\ufeff# kept\n", "")]
)
def test_a_file_is_added_to_and_nothing_in_it_touched(above, below):
    new("first", *COMPARED, *REGIONS)
    path = Path("predictions.toml")
    before = above.encode() + path.read_bytes() + below.encode()
    path.write_bytes(before)
    said = new("second", *COMPARED, *REGIONS).stdout
    after = path.read_bytes()
    assert after.startswith(before)
    assert said.startswith("added to predictions.toml: experiment second (arms new, old), 1 prediction\n")
    assert [*load_study(path).predictions] == ["first", "second"]
    assert ("\r\n" in below) == after[len(before) :].endswith(b"\r\n")


def test_a_study_is_called_like_its_folder_and_told_to_begin_a_repository(folder):
    said = new("faster", *COMPARED, *REGIONS).stdout.splitlines()
    assert load_study(Path("predictions.toml")).id == "my-study"
    commit = "git add predictions.* .gitattributes && git commit -m 'Register faster'"
    assert said[-4:] == [
        "first:     git init",
        "try it:    pytest-prereg try faster",
        f"register:  pytest-prereg lock && {commit}",
        "measure:   pytest --prereg --prereg-record",
    ]


def test_a_study_elsewhere_is_named_in_the_next_commands(repository):
    (repository.path / "predictions").mkdir()
    new("here", *COMPARED, *REGIONS)
    said = new("there", *COMPARED, *REGIONS, "--study", "predictions/two words.toml").stdout
    assert load_study(Path("predictions/two words.toml")).id == "two-words"
    assert "try it:    pytest-prereg try there --study 'predictions/two words.toml'" in said
    assert "measure:   pytest --prereg --prereg-record 'predictions/two words.toml'" in said


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (("Not An Id", *COMPARED, *REGIONS), ['PR006: id "Not An Id"', 'such as "not-an-id"']),
        (("x", *COMPARED, "--predicts", "<= 0.8", "--falsifier", ">= 0.5"), ["PR030", "they overlap"]),
        (("x", *COMPARED, "--predicts", "fast", "--falsifier", "otherwise"), ['PR032: prediction "x"']),
        (("x", *COMPARED, "--predicts", "[2, 1]", "--falsifier", ">= 3"), ["PR032", "is empty"]),
        (("x", *COMPARED, *REGIONS, "-n", 2), ["PR034", "a ratio needs 3"]),
        (("x", *COMPARED, *REGIONS, "--metric", "wal"), ['PR007: --metric: unknown metric "wal"', '"wall"?']),
        (("x", *COMPARED, *REGIONS, "--timeout", "soon"), ['PR005: experiment "x"', '"soon" is no duration']),
        (("x", "--command", "true", "--predicts", "<= 1", "--falsifier", "> 2"), ["PR021", 'write "<= 1 s"']),
        (("x", "--command", "a 'b", *IN_SECONDS), ["PR136: --command:", "no closing quotation"]),
        (("x", "--command", "a | | b", *IN_SECONDS), ["PR136: --command:", "can't be read by a shell"]),
        (("x", *COMPARED, *REGIONS, "--unit", "s"), ["PR005: --unit without --read"]),
        (
            ("x", *COMPARED, *REGIONS, "--read", "r.json"),
            ['PR005: --read: "wall" is recorded of every command'],
        ),
        (
            ("x", *COMPARED, *REGIONS, "--read", "r", "--metric", "m"),
            ["PR004", "needs --unit", "needs --format"],
        ),
        (("x", "--command", "tr\udcffue", *IN_SECONDS), ["PR009", "is not UTF-8"]),
    ],
)
def test_what_could_never_be_registered_is_refused_and_nothing_written(repository, arguments, wrong):
    said = new(*arguments, code=1).stderr
    assert all(part in said for part in wrong), said
    assert files(repository.path) == []


def test_all_that_is_wrong_is_told_at_once(repository):
    new("taken", *COMPARED, *REGIONS)
    before = files(repository.path), Path("predictions.toml").read_bytes()
    wrong = ("--predicts", "<= 0.8", "--falsifier", ">= 0.5", "--metric", "wal", "-n", 2)
    said = new("taken", "--command", "a 'b", "--versus", "true", *wrong, code=1).stderr
    codes = [line.split("PR")[1][:3] for line in said.splitlines() if not line.startswith(" ")]
    assert sorted(codes) == ["002", "007", "030", "034", "136"]
    assert 'predictions.toml:4: PR002: there is an experiment and a prediction "taken" already' in said
    assert (files(repository.path), Path("predictions.toml").read_bytes()) == before


def test_what_is_wrong_with_the_file_is_told_with_its_line_and_nothing_added(repository):
    path = repository.write("predictions.toml", '[study]\nid = "a"\nnots = "b"\n')
    said = new("x", *COMPARED, *REGIONS, "-n", 2, code=1).stderr
    assert "predictions.toml:3: PR003" in said
    assert 'PR034: "x" can never be decided' in said
    assert path.read_text() == '[study]\nid = "a"\nnots = "b"\n'


def test_an_id_that_is_registered_is_not_given_again(repository):
    new("x", *COMPARED, *REGIONS)
    CliRunner().invoke(main, ["lock"], catch_exceptions=False)
    repository.write("predictions.toml", f'[study]\nid = "{read_lock(Path("predictions.lock")).study}"\n')
    assert 'PR104: "x"' in new("x", *COMPARED, *REGIONS, "-n", 5, code=1).stderr


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(("name", "said"), [("study", "ends in .toml"), ("none/a.toml", 'no folder "none"')])
def test_a_file_that_can_be_no_study_is_a_wrong_use(name, said):
    assert said in new("x", *COMPARED, *REGIONS, "--study", name, code=2).stderr


def test_the_quickstart_shows_what_it_writes_and_prints(git_repository, tmp_path, monkeypatch):
    if not QUICKSTART.is_file():
        pytest.skip("runs in a checkout or an unpacked sdist")
    page = QUICKSTART.read_text(encoding="utf-8")
    typed, printed = re.search(r"^\$ pytest-prereg new (.*?'\n)(?=wrote)(.*?)^```", page, FLAGS).groups()
    folder = tmp_path / "gzip"
    folder.mkdir()
    git_repository(folder)
    monkeypatch.chdir(folder)
    Path("numbers.txt").write_text("1\n")
    assert new(*shlex.split(typed.replace("\\\n", ""))).stdout == printed
    assert Path("predictions.toml").read_text() == re.search(r"^```toml\n(.*?)^```", page, FLAGS)[1]


def test_an_empty_folder_has_a_verdict_after_the_commands_that_are_printed(git_repository, tmp_path):
    """``new``, then each command that it prints, typed as it stands."""
    folder = tmp_path / "empty"
    folder.mkdir()
    git_repository(folder)
    begin = shlex.join(
        [sys.executable, "-m", "pytest_prereg", "new", "waits", *COMPARED, *REGIONS, "-n", "3"]
    )
    said = shell(begin, folder).splitlines()
    commands = [line[11:] for line in said if line.startswith(("register:", "measure:"))]
    for command in commands:
        shell(command, folder)
    entry = read_lock(folder / "predictions.lock").predictions["waits"]
    assert (entry.verdict, entry.n) in [
        ("supported", 3),
        ("inconclusive", 3),
    ]  # the latter if it is very busy


def shell(command, folder):
    module = f"{shlex.quote(sys.executable)} -m"
    script = (
        f'pytest-prereg() {{ {module} pytest_prereg "$@"; }}; pytest() {{ {module} pytest "$@"; }}; {command}'
    )
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.usefixtures("repository")
def test_braces_that_stay_as_they_are_are_a_note():
    said = new("listed", "--command", "echo {1..3}", *IN_SECONDS).stdout

    assert 'note: it is given "{1..3}" as it stands: sh does not write it out' in said


def test_an_id_that_no_file_can_be_called_is_refused(repository):
    result = new("a" * 300, "--command", "true", *IN_SECONDS, code=1)

    assert "has 300 characters, too many for what files are called" in result.stderr
    assert files(repository.path) == []


@pytest.mark.parametrize("before", [None, '[study]\nid = "s"\n'])
def test_a_disk_that_fills_up_leaves_the_file_as_it_was(repository, before):
    """A limit on the size of files, at which a write ends halfway as on a full disk."""
    path = repository.path / "predictions.toml"
    if before is not None:
        path.write_text(before)
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100));"
        "from pytest_prereg.cli import main; main(sys.argv[1:])"
    )

    arguments = ["new", "big", "--command", "true", *IN_SECONDS]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=repository.path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1, done.stderr
    assert (path.read_text() if path.exists() else None) == before


@pytest.mark.parametrize("given", [(), REGIONS[:2], REGIONS[2:]])
def test_what_makes_no_prediction_is_told_by_the_options_that_it_lacks(folder, given):
    said = new("x", "--command", "true", *given, code=2).stderr
    assert {"--predicts", "--falsifier"} - {*given} == {*re.findall(r"--\w+(?=,)", said)}
    assert files(folder) == []


class TestFilesThatNoCommitHas:
    """What a command reads is a part of the experiment, and nobody else has it."""

    NOTED = "is named by the command and in no commit"

    @pytest.mark.parametrize(
        "command",
        ["sort a.txt", "sort < a.txt", "cat a.txt | wc -l", "dd if=a.txt", "sort --files0-from=a.txt"],
    )
    def test_it_says_so_however_the_command_names_them(self, repository, command):
        repository.write("a.txt", "1")
        said = " ".join(new("reads", "--command", command, *IN_SECONDS).stdout.split())
        assert f"note: a.txt {self.NOTED}, so nobody can repeat this: commit it" in said
        assert 'data = ["a.txt"]' in said

    @pytest.mark.parametrize("kept", ["committed", "added", "elsewhere", "a folder", "a script"])
    def test_what_is_kept_or_told_of_otherwise_is_not_noted(self, repository, tmp_path, kept):
        name = str(tmp_path / "b.txt") if kept == "elsewhere" else "b.sh" if kept == "a script" else "b.txt"
        (tmp_path / "b.txt").write_text("1")
        if kept == "a folder":
            repository.write("b.txt/c.txt", "1")
        elif kept != "elsewhere":
            repository.write(name, "#!/bin/sh\n")
        if kept == "added":
            repository.git("add", name)
        elif kept == "committed":
            repository.commit("Data", name)
        assert self.NOTED not in new("reads", "--command", f"sort {name}", *IN_SECONDS).stdout

    @pytest.mark.usefixtures("repository")
    def test_a_result_that_it_leaves_behind_is_none(self):
        Path("r.json").write_text("{}")
        read = ("--read", "r.json", "--format", "json", "--unit", "s", "--metric", "t")
        assert self.NOTED not in new("writes", "--command", "make r.json", *read, *IN_SECONDS).stdout

    def test_lock_says_so_until_they_are_declared_or_committed(self, repository):
        repository.write("a.txt", "1")
        repository.write(".gitignore", "a.txt\n")
        new("reads", "--command", "sort a.txt", *IN_SECONDS)
        assert self.NOTED in CliRunner().invoke(main, ["lock"]).stdout
        Path("predictions.lock").unlink()
        text = Path("predictions.toml").read_text()
        Path("predictions.toml").write_text(text.replace("repeats =", 'data = ["a.txt"]\nrepeats ='))
        done = CliRunner().invoke(main, ["lock"])
        assert (done.exit_code, self.NOTED in done.stdout) == (0, False)
