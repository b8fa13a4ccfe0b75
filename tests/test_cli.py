"""The command line: what it prints, what it writes, and with which code it exits."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_prereg.cli import main
from pytest_prereg.registry.lock import read_lock

STUDY = """\
[study]
id = "public"

[experiments.runs]
pairing = "block"
repeats = 5
metrics = { wall = "s" }
[experiments.runs.arms]
new = {}
old = {}

[predictions.faster]
claim      = "The new one is faster."
experiment = "runs"
contrast   = "new / old"
quantity   = "wall"
predicts   = "<= 0.9"
falsifier  = ">= 1"
"""

SECOND = """
[predictions.short]
claim      = "The new one is short."
experiment = "runs"
arm        = "new"
quantity   = "wall"
predicts   = "<= 2 s"
falsifier  = ">= 3 s"
"""

EXPERIMENT = """\
from pytest_prereg import Repeat, experiment


@experiment(metrics={"wall": "s"})
def work(repeat: Repeat, *, broken: bool = False, size: int = 1) -> None:
    print("a word from the body")
    if broken:
        raise RuntimeError("it broke here")
    repeat.record("wall", 0.25 * size)
"""

MEASURED = """\
[study]
id = "measured"
[experiments.work]
fixture = "work"
repeats = 5
[experiments.work.arms]
fine = {}
twice = { size = 2 }
bad = { broken = true }
[predictions.half]
claim = "c"
experiment = "work"
arm = "fine"
quantity = "wall"
predicts = "<= 1 s"
falsifier = "> 2 s"
"""


def rows(arms=("new", "old"), count=5):
    lines = ["arm,repeat,metric,value,unit"]
    lines += [
        f"{arm},{repeat},wall,{1 + position + repeat / 100},s"
        for position, arm in enumerate(arms)
        for repeat in range(count)
    ]
    return "\n".join(lines) + "\n"


@pytest.fixture
def repository(git_repository, monkeypatch):
    repository = git_repository()
    monkeypatch.chdir(repository.path)
    return repository


@pytest.fixture
def study(repository):
    repository.write("predictions.toml", STUDY)
    return repository


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


@pytest.mark.parametrize(
    ("option", "value"), [("--at", "nan"), ("--at", "inf"), ("--cv", "nan"), ("--sd", "inf")]
)
@pytest.mark.usefixtures("repository")
def test_power_is_asked_of_finite_numbers(option, value):
    run("init")
    assert "is a finite number" in run("power", "order-helps", option, value, code=2).stderr


class TestInit:
    @pytest.mark.usefixtures("repository")
    def test_what_it_writes_can_be_tried_and_registered_at_once(self):
        said = run("init").stdout
        assert "predictions.toml, experiments/example.py, predictions.schema.json" in said
        assert "sorted   t_sort" in run("try", "sorting", "--arm", "sorted").stdout
        assert "registered  order-helps" in run("lock").stdout
        assert run("lock", "--check").exit_code == 0

    def test_the_study_is_called_like_its_folder(self, tmp_path, monkeypatch):
        folder = tmp_path / "My Study, 2"
        folder.mkdir()
        monkeypatch.chdir(folder)
        run("init")
        assert 'id    = "my-study-2"' in Path("predictions.toml").read_text()

    @pytest.mark.parametrize(
        "name", ["predictions.toml", "experiments/example.py", "predictions.schema.json"]
    )
    def test_nothing_is_overwritten_and_nothing_half_written(self, repository, name):
        repository.write(name, "mine")
        before = sorted(repository.path.rglob("*"))
        assert f"{name}: PR106" in run("init", code=1).stderr
        assert sorted(repository.path.rglob("*")) == before
        assert Path(name).read_text() == "mine"

    def test_a_file_where_a_folder_must_be_gets_one_line(self, repository):
        repository.write("experiments", "")
        result = run("init", code=1)
        assert result.stderr.count("\n") == 1
        assert "experiments" in result.stderr
        assert not Path("predictions.toml").exists()


class TestLock:
    @pytest.mark.usefixtures("study")
    def test_a_new_prediction_is_registered_with_its_rule_and_the_next_command(self):
        said = run("lock").stdout.splitlines()
        assert said == [
            "registered  faster",
            "            geometric mean of wall, new / old, paired over 5 blocks",
            "            supported: whole 95 % interval ≤ 0.9; refuted: whole interval ≥ 1",
            "            no cv given, power unknown",
            "next:  git add predictions.* && git commit -m 'Register faster'",
        ]
        assert set(read_lock(Path("predictions.lock")).predictions) == {"faster"}

    def test_the_printed_git_command_works(self, study):
        command = run("lock").stdout.splitlines()[-1].removeprefix("next:  ")
        subprocess.run(command, shell=True, check=True, capture_output=True)
        assert study.git("show", "--name-only", "--format=%s") == (
            "Register faster\n\npredictions.lock\npredictions.toml"
        )

    def test_code_is_committed_with_what_it_is_registered_with(self, repository):
        repository.write("predictions.toml", MEASURED)
        repository.write("experiments/work.py", EXPERIMENT)
        assert "git add predictions.* experiments/*.py &&" in run("lock").stdout

    def test_outside_git_the_next_command_begins_a_repository(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Path("predictions.toml").write_text(STUDY)
        assert "next:  git init && git add" in run("lock").stdout

    def test_locking_again_adds_what_is_new_and_leaves_the_rest(self, study):
        run("lock")
        before = read_lock(Path("predictions.lock")).predictions["faster"]
        study.write("predictions.toml", STUDY + SECOND)
        assert "registered  short" in run("lock").stdout
        after = read_lock(Path("predictions.lock")).predictions
        assert after["faster"] == before
        assert after["short"].unit == "s"

    @pytest.mark.usefixtures("study")
    def test_nothing_new_is_said_and_the_lock_is_not_touched(self):
        run("lock")
        before = Path("predictions.lock").stat().st_mtime_ns
        assert "nothing new" in run("lock").stdout
        assert Path("predictions.lock").stat().st_mtime_ns == before

    def test_a_changed_prediction_is_refused_and_the_lock_kept(self, study):
        run("lock")
        study.commit("Register")
        before = Path("predictions.lock").read_text()
        study.write("predictions.toml", STUDY.replace("<= 0.9", "<= 0.95") + SECOND)
        stderr = run("lock", code=1).stderr
        assert 'predictions.toml:12: PR104: "faster" is no longer what was registered' in stderr
        assert "pytest-prereg amend faster --reason" in stderr
        assert Path("predictions.lock").read_text() == before

    def test_one_that_changed_before_its_registration_was_committed_is_registered_anew(self, repository):
        repository.write("predictions.toml", STUDY)
        run("lock")
        repository.write("predictions.toml", STUDY.replace("<= 0.9", "<= 0.95"))
        assert "so begin again: rm predictions.lock, then pytest-prereg lock" in run("lock", code=1).stderr
        Path("predictions.lock").unlink()
        run("lock")
        repository.commit("Register")
        repository.write("predictions.toml", STUDY.replace("<= 0.9", "<= 0.95") + SECOND)
        run("lock")
        repository.write(
            "predictions.toml", STUDY.replace("<= 0.9", "<= 0.95") + SECOND.replace("<= 2", "<= 1")
        )
        stderr = run("lock", code=1).stderr
        assert "again: git checkout HEAD -- predictions.lock, then pytest-prereg lock" in stderr
        repository.write("predictions.toml", STUDY + SECOND)
        assert "pytest-prereg amend faster --reason" in run("lock", code=1).stderr

    def test_changed_code_is_refused(self, repository):
        repository.write("predictions.toml", MEASURED)
        repository.write("experiments/work.py", EXPERIMENT)
        run("lock")
        repository.write("experiments/work.py", EXPERIMENT.replace("0.25", "0.5"))
        assert 'PR103: "half" would run other code' in run("lock", code=1).stderr

    def test_all_layers_are_heard_at_once(self, study):
        text = STUDY.replace("repeats = 5", "repeats = 2\nwarmup = 1") + SECOND.replace(
            "<= 2 s", "<= 2 token"
        )
        study.write("predictions.toml", text)
        stderr = run("lock", code=1).stderr
        assert [code for code in ("PR008", "PR021", "PR034") if code not in stderr] == []
        assert not Path("predictions.lock").exists()
        lines = [
            int(line.split(":")[1]) for line in stderr.splitlines() if line.startswith("predictions.toml:")
        ]
        assert lines == sorted(lines)

    def test_a_removed_prediction_stays_registered_and_is_told(self, study):
        study.write("predictions.toml", STUDY + SECOND)
        run("lock")
        study.write("predictions.toml", STUDY)
        assert '"short" is registered and no longer here' in run("lock", code=1).stderr
        assert "short" in read_lock(Path("predictions.lock")).predictions

    def test_a_lock_that_cannot_be_read_is_told_in_a_line(self, study):
        study.write("predictions.lock", "version = 1\nstudy = 'public'\nwhat = 2\n")
        assert "predictions.lock:3: PR011" in run("lock", code=1).stderr

    def test_merge_conflicts_in_the_lock_are_told(self, study):
        conflict = "<<<<<<< HEAD\nversion = 1\n=======\nversion = 1\n>>>>>>> other\n"
        study.write("predictions.lock", conflict)
        assert "PR010" in run("lock", code=1).stderr


class TestLockCheck:
    @pytest.mark.usefixtures("study")
    def test_it_writes_nothing(self):
        assert 'PR102: "faster" is not registered' in run("lock", "--check", code=1).stderr
        assert not Path("predictions.lock").exists()

    @pytest.mark.usefixtures("study")
    def test_a_registered_study_is_fine(self):
        run("lock")
        assert "public: 1 prediction is registered as it stands" in run("lock", "--check").stdout

    @pytest.mark.parametrize(
        ("text", "code"),
        [(STUDY, "PR203"), ((STUDY + SECOND).replace("0.9", "0.8"), "PR104"), (STUDY + SECOND * 0, "PR203")],
    )
    def test_what_changed_or_went_fails(self, study, text, code):
        study.write("predictions.toml", STUDY + SECOND)
        run("lock")
        study.write("predictions.toml", text)
        assert code in run("lock", "--check", code=1).stderr


class TestAmend:
    def test_a_change_is_registered_with_its_reason(self, study):
        run("lock")
        study.write("predictions.toml", STUDY.replace("<= 0.9", "<= 0.95"))
        said = run("amend", "faster", "--reason", "a typo").stdout
        assert "git commit -m 'Amend faster'" in said
        (amendment,) = read_lock(Path("predictions.lock")).predictions["faster"].amendments
        assert amendment.reason == "a typo"
        run("lock", "--check")

    def test_all_of_an_experiment_that_changed(self, study):
        study.write("predictions.toml", STUDY + SECOND)
        run("lock")
        study.write("predictions.toml", (STUDY + SECOND).replace("repeats = 5", "repeats = 6"))
        said = run("amend", "--experiment", "runs", "--reason", "more").stdout
        assert "amended  faster\namended  short\n" in said

    def test_a_for_each_table_stands_for_all_that_it_makes(self, repository):
        table = SECOND.replace("short]", "fe]").replace("quantity ", 'for-each = "cols"\nquantity ')
        swept = STUDY.replace("[experiments.runs.arms]", "sweep = { cols = [1, 2] }\n[experiments.runs.arms]")
        swept = swept.partition("[predictions.faster]")[0]
        repository.write("predictions.toml", swept + table)
        run("lock")
        for command in ("power", "explain"):
            said = run(command, "fe").stdout
            assert said.index("fe[cols=1]") < said.index("\n\nfe[cols=2]" if command == "explain" else "\n\n")
        assert "PR105" in run("amend", "fe", "--reason", "x", code=1).stderr

        repository.write(
            "predictions.toml", (swept + table).replace("[1, 2]", "[1, 2, 4]").replace("3 s", "4 s")
        )
        run("lock", code=1)
        said = run("amend", "fe", "--reason", "looser").stdout

        assert "amended  fe[cols=1]\namended  fe[cols=2]\n" in said
        assert "cols=4" not in said
        assert set(read_lock(Path("predictions.lock")).predictions) == {"fe[cols=1]", "fe[cols=2]"}
        run("lock")
        assert "fe[cols=4]" in read_lock(Path("predictions.lock")).predictions

    def test_an_amendment_meets_the_same_checks_as_a_registration(self, study):
        run("lock")
        before = Path("predictions.lock").read_text()
        study.write("predictions.toml", STUDY.replace("repeats = 5", "repeats = 2"))
        assert "PR034" in run("amend", "faster", "--reason", "fewer", code=1).stderr
        assert Path("predictions.lock").read_text() == before

    @pytest.mark.usefixtures("study")
    def test_what_did_not_change_or_is_unknown_is_refused(self):
        assert "PR007" in run("amend", "faster", "--reason", "x", code=1).stderr
        run("lock")
        assert "PR105" in run("amend", "faster", "--reason", "x", code=1).stderr
        assert "PR105" in run("amend", "--experiment", "runs", "--reason", "x", code=1).stderr
        assert 'did you mean "faster"?' in run("amend", "fastr", "--reason", "x", code=2).stderr

    @pytest.mark.usefixtures("study")
    def test_it_needs_a_reason_and_a_name(self):
        assert "--reason" in run("amend", "faster", code=2).stderr
        assert "PR005: this needs a reason" in run("amend", "faster", "--reason", " ", code=2).stderr
        run("amend", "--reason", "x", code=2)
        run("amend", "faster", "--experiment", "runs", "--reason", "x", code=2)


class TestTry:
    @pytest.fixture
    def measured(self, repository):
        repository.write("predictions.toml", MEASURED)
        repository.write("experiments/work.py", EXPERIMENT)
        return repository

    @pytest.mark.usefixtures("measured")
    def test_values_are_shown_and_kept_as_a_pilot(self):
        said = run("try", "work", "--arm", "twice", "-n", 2).stdout.splitlines()
        assert said[:3] == [*["twice   wall 0.5 s"] * 2, "pilot, never judged; kept in"]
        assert said[3].startswith("    experiments/evidence/work/")
        assert said[4].startswith("15 repeats would take about")
        header, *lines = map(json.loads, Path(said[3].strip()).read_text().splitlines())
        assert (header["origin"], header["planned"], header["predictions"]) == ("pilot", {"twice": 2}, {})
        assert [line["outcome"] for line in lines if line["type"] == "finished"] == ["pilot", "pilot"]

    @pytest.mark.usefixtures("measured")
    def test_all_arms_are_tried_and_a_failure_shows_where(self):
        result = run("try", "work", code=1)
        assert {line.split()[0] for line in result.stdout.splitlines()[:3]} == {"fine", "twice", "bad"}
        assert "FAILED: exception" in result.stdout
        first, *traceback = result.stderr.splitlines()
        assert first == traceback[-1] == "    RuntimeError: it broke here"
        assert "repeats would take" not in result.stdout

    @pytest.mark.usefixtures("measured")
    def test_pilots_open_no_series(self):
        from pytest_prereg.evidence.series import assemble
        from pytest_prereg.evidence.sessions import read_study_evidence
        from pytest_prereg.registry.load import load_study

        run("try", "work", "--arm", "fine")
        loaded = load_study(Path("predictions.toml"))
        (file,) = read_study_evidence(loaded)["work"]
        assert file.problems == ()
        assert assemble(loaded.experiments["work"], [file]) == []

    @pytest.mark.usefixtures("measured")
    def test_unknown_names_are_usage_errors(self):
        assert 'no experiment "wrk"; did you mean "work"?' in run("try", "wrk", code=2).stderr
        assert 'no arm "good"' in run("try", "work", "--arm", "good", code=2).stderr
        run("try", "work", "-n", 0, code=2)

    def test_sigterm_closes_the_file_and_leaves_nothing_running(self, measured):
        body = EXPERIMENT.replace("if broken", "time.sleep(60)\n    if broken")
        measured.write("experiments/work.py", f"import time\n{body}")
        command = [sys.executable, "-m", "pytest_prereg", "try", "work", "--arm", "fine"]
        evidence = measured.path / "experiments" / "evidence" / "work"
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            while not any('"started"' in path.read_text() for path in evidence.glob("*.jsonl")):
                assert process.poll() is None
                time.sleep(0.05)
            process.terminate()
            assert process.wait(timeout=2) == 1
        (path,) = evidence.glob("*.jsonl")
        assert json.loads(path.read_text().splitlines()[-1])["ended"] == "interrupted"

    @pytest.mark.usefixtures("study")
    def test_an_experiment_that_is_fed_by_import_cannot_be_run(self):
        assert "has nothing to run here" in run("try", "runs", code=1).stderr

    def test_a_module_that_cannot_be_imported_leaves_no_evidence(self, measured):
        measured.write("experiments/work.py", "import nowhere_to_be_found\n" + EXPERIMENT)
        assert "nowhere_to_be_found" in run("try", "work", code=1).stderr
        assert not Path("experiments/evidence").exists()


class TestImport:
    @pytest.fixture
    def registered(self, study):
        run("lock")
        study.commit("Register")
        return study

    def test_rows_become_evidence_bound_to_the_registration(self, registered):
        registered.write("rows.csv", rows())
        said = run("import", "rows.csv", "--experiment", "runs").stdout.splitlines()
        assert said[1:] == [
            "imported 10 repeats (new 5, old 5) of runs into series 1",
            "next:  pytest --prereg-verify --prereg-record",
        ]
        header = json.loads(Path(said[0].removeprefix("kept in ")).read_text().splitlines()[0])
        digest = read_lock(Path("predictions.lock")).predictions["faster"].digest
        assert (header["origin"], header["predictions"]) == ("imported", {"faster": digest})
        assert header["head"] == registered.git("rev-parse", "HEAD")

    def test_one_arm_at_a_time(self, registered):
        registered.write("new.csv", rows(["new"]))
        assert (
            "series 1 still wants 5 repeats (old 5)"
            in run("import", "new.csv", "--experiment", "runs").stdout
        )
        registered.write("old.csv", rows(["old"]).replace("arm,", "", 1).replace("\nold,", "\n"))
        said = run("import", "old.csv", "--experiment", "runs", "--arm", "old").stdout
        assert "next:  pytest --prereg-verify" in said

    def test_the_format_may_be_said(self, registered):
        registered.write("rows.txt", rows())
        run("import", "rows.txt", "--experiment", "runs", "--format", "csv")
        registered.write("other.txt", rows())
        assert "JSON" in run("import", "other.txt", "--experiment", "runs", "--format", "json", code=1).stderr

    def test_without_a_registration_nothing_is_taken_in(self, study):
        study.write("rows.csv", rows())
        stderr = run("import", "rows.csv", "--experiment", "runs", code=1).stderr
        assert "PR102" in stderr
        assert "pytest-prereg lock" in stderr
        assert not Path("experiments/evidence").exists()

    def test_a_registration_that_is_not_committed_is_told(self, study):
        study.commit("Begin")
        run("lock")
        study.write("rows.csv", rows())
        assert "not committed" in run("import", "rows.csv", "--experiment", "runs").stderr

    def test_a_changed_prediction_takes_nothing_in(self, registered):
        registered.write("predictions.toml", STUDY.replace("<= 0.9", "<= 0.95"))
        registered.write("rows.csv", rows())
        assert "PR104" in run("import", "rows.csv", "--experiment", "runs", code=1).stderr

    def test_every_bad_row_is_told(self, registered):
        registered.write(
            "rows.csv", rows().replace("new,1,wall", "nw,1,wall").replace("old,2,wall", "old,2,wal")
        )
        stderr = run("import", "rows.csv", "--experiment", "runs", code=1).stderr
        assert "rows.csv:3: PR113" in stderr
        assert 'did you mean "new"?' in stderr
        assert "rows.csv:9:" in stderr

    @pytest.mark.usefixtures("registered")
    def test_a_missing_file_is_told_in_a_line(self):
        assert "rows.csv: PR110" in run("import", "rows.csv", "--experiment", "runs", code=1).stderr


class TestStudies:
    @pytest.mark.usefixtures("repository")
    def test_no_study_is_a_usage_error_that_says_what_to_do(self):
        stderr = run("lock", code=2).stderr
        assert "PR100: there is no predictions.toml here" in stderr
        assert "pytest-prereg init" in stderr

    def test_several_studies_must_be_told_apart(self, study):
        study.write("predictions/other.toml", STUDY.replace("public", "other"))
        assert "predictions/other.toml" in run("lock", code=2).stderr
        assert "git add predictions/other.*" in run("lock", "--study", "predictions/other.toml").stdout

    def test_a_study_elsewhere_is_named_and_its_paths_shown_from_here(self, repository):
        repository.write("deep/er/predictions.toml", STUDY)
        assert "git add deep/er/predictions.* &&" in run("lock", "--study", "deep/er").stdout
        repository.write("deep/er/predictions.toml", STUDY.replace("quantity ", "quantitty "))
        assert "deep/er/predictions.toml:16: PR003" in run("lock", "--study", "deep/er", code=1).stderr

    @pytest.mark.usefixtures("repository")
    def test_a_file_that_is_not_there(self):
        assert "nope.toml: PR001" in run("lock", "--study", "nope.toml", code=1).stderr


class TestErrors:
    @pytest.mark.parametrize(
        ("kind", "code"),
        [
            ("StudyError", 1),
            ("EvidenceError", 1),
            ("MeasureError", 1),
            ("JudgeError", 1),
            ("UsageError", 2),
            ("HistoryError", 4),
        ],
    )
    @pytest.mark.usefixtures("study")
    def test_each_kind_of_error_has_its_exit_code(self, monkeypatch, kind, code):
        from pytest_prereg import errors, registration

        problems = [
            errors.Problem(code="PR001", message=word, path="x", line=1) for word in ("first", "second")
        ]

        def fail(_study):
            raise getattr(errors, kind)(problems)

        monkeypatch.setattr(registration, "register_new", fail)
        assert run("lock", code=code).stderr == "x:1: PR001: first\nx:1: PR001: second\n"

    @pytest.mark.usefixtures("study")
    def test_a_folder_that_cannot_be_written_gets_one_line(self, monkeypatch):
        from pytest_prereg import registration

        def refuse(path, _lock):
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr(registration, "write_lock", refuse)
        stderr = run("lock", code=1).stderr
        assert stderr.count("\n") == 1
        assert stderr.endswith("predictions.lock: Permission denied\n")

    @pytest.mark.usefixtures("study")
    def test_a_bug_keeps_its_traceback(self, monkeypatch):
        from pytest_prereg import registration

        monkeypatch.setattr(registration, "register_new", lambda _study: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run("lock")


@pytest.mark.usefixtures("study")
def test_a_terminal_that_knows_only_ascii_is_spared_the_rest(monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    command = [sys.executable, "-m", "pytest_prereg", "lock"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "interval <= 0.9" in done.stdout


def loaded_after(*arguments):
    """Modules that a command loads, in a process of its own."""
    code = "import sys; from pytest_prereg.cli import main\ntry: main(sys.argv[1:])\nfinally: print(); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    return set(done.stdout.splitlines()[-1].split())


def test_commands_load_nothing_heavy_that_they_do_not_need(repository):
    heavy = {"torch", "scipy", "pint", "numpy", "pytest"}
    assert not loaded_after("--help") & (heavy | {"msgspec"})
    assert not loaded_after("init") & heavy
    repository.write("rows.csv", rows())
    Path("predictions.toml").write_text(STUDY)
    run("lock")
    after = loaded_after("import", "rows.csv", "--experiment", "runs")
    assert "pytest_prereg.evidence.importing" in after
    assert not after & {"torch", "scipy", "numpy", "pytest"}


@pytest.mark.usefixtures("repository")
def test_the_module_runs_like_the_command():
    command = [sys.executable, "-m", "pytest_prereg", "lock"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("PR100")
