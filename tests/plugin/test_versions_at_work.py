"""``pytest --prereg`` between two versions of the code: what was planted is found, whatever becomes of the refs.

``PREREG_STORM=full`` compares a version with itself in ten studies in place of one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from forged_session import forge_header
from real_study import RealStudy, plain_environment, wait_until
from small_study import Project, Verdicts, copied, new_repository

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.registry.load import load_study

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STUDIES = 10 if os.environ.get("PREREG_STORM") == "full" else 1

HEAD = """\
[study]
id = "versions"
"""
EXPERIMENT = """
[experiments.{name}]
command = ["python", "bench.py", "{{out}}/r.json"]
read = {{ file = "r.json", format = "json" }}
metrics = {{ t = "s" }}
repeats = 5
[experiments.{name}.arms]
base = {{ ref = "{base}" }}
head = {{ ref = "{head}" }}
"""
PREDICTION = """
[predictions.{name}]
claim = "So it is."
experiment = "{experiment}"
quantity = "t"
{regions}
"""
BENCH = """\
import json, sys, time
import work

def timed():
    began = time.perf_counter()
    work.work()
    return time.perf_counter() - began

with open(sys.argv[1], "w") as file:
    json.dump({"t": min(timed() for _ in range(3))}, file)
"""
"""The fastest of three: how busy the machine is makes little of a difference to that."""
FAST, SLOW = (f"import time\n\n\ndef work():\n    time.sleep({seconds})\n" for seconds in (0.03, 0.036))


def experiment(name: str, base: str, head: str) -> str:
    """An experiment, and the claim of the same name that its head is slower: which is neither where it is as fast."""
    regions = 'contrast = "head / base"\npredicts = ">= 1.08"\nfalsifier = "<= 0.95"'
    table = EXPERIMENT.format(name=name, base=base, head=head)
    return table + PREDICTION.format(name=name, experiment=name, regions=regions)


PLANTED = HEAD + experiment("planted", "merge-base:main", "worktree")


def slowed(folder: Path, text: str) -> Project:
    """A study on a branch whose work tree is slower than main by a fifth, and not committed."""
    project = new_repository(folder)
    project.write("bench.py", BENCH)
    project.write("work.py", FAST)
    project.write(".gitignore", "__pycache__/\n.pytest_cache/\n")
    project.commit("Fast")
    project.git("checkout", "--quiet", "-b", "topic")
    project.write("predictions.toml", text)
    project.done("lock")
    project.commit("Register")
    project.write("work.py", SLOW)
    return project


def headers(project: Project, experiment: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text().partition("\n")[0]) for path in project.evidence(experiment)]


def worktrees(project: Project) -> int:
    return project.git("worktree", "list").count("\n") + 1


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, str, dict[str, str]]:
    """The study, what pytest printed, and the verdicts; the evidence is committed."""
    folder = tmp_path_factory.mktemp("versions")
    regions = 'arm = "head"\npredicts = "<= 0.031 s"\nfalsifier = ">= 0.032 s"'
    hoped = PREDICTION.format(name="hoped", experiment="planted", regions=regions)
    same = [experiment(f"same-{number}", "main", "main") for number in range(STUDIES)]
    project = slowed(folder / "project", "".join([PLANTED, hoped, *same]))
    (folder / "temporary").mkdir()
    done = project.process(
        "--prereg", f"--prereg-json={folder / 'out.json'}", TMPDIR=str(folder / "temporary")
    )
    assert list((folder / "temporary").glob("prereg-versions*")) == []
    assert worktrees(project) == 1
    project.git("add", "experiments")
    project.git("commit", "--quiet", "--message", "Evidence")
    return project, done.stdout, Verdicts(folder / "out.json").each("verdict")


@pytest.fixture
def project(measured: tuple[Project, str, dict[str, str]], tmp_path: Path) -> Project:
    return copied(measured[0], tmp_path / "project")


def assess(project: Project, prediction: str = "planted") -> tuple[str, str | None]:
    state = StudyState(load_study(project.path / "predictions.toml"))
    judgement = state.assess(state.study.predictions[prediction]).judgement
    assert judgement is not None
    return judgement.verdict.value, judgement.reason and judgement.reason.value


def test_a_slow_down_of_a_fifth_is_found_and_none_where_there_is_none(
    measured: tuple[Project, str, dict[str, str]],
):
    _, printed, verdicts = measured
    assert (verdicts["planted"], verdicts["hoped"]) == ("supported", "refuted"), printed
    for number in range(STUDIES):
        assert verdicts[f"same-{number}"] == "inconclusive", printed


def test_what_the_arms_are_is_said_before_anything_is_measured(
    measured: tuple[Project, str, dict[str, str]],
):
    project, printed, _ = measured
    head = project.git("rev-parse", "HEAD^")[:7]
    lines = printed.splitlines()
    said = lines.index(f"head is the work tree, which differs from {head} in 1 file")
    assert lines[said + 1] == "planted: measuring 10 of 10 repeats"
    assert "base and head are one tree" in lines


def test_the_evidence_names_what_was_measured(project: Project):
    (header,) = headers(project, "planted")
    base, head = header["trees"]["base"], header["trees"]["head"]
    assert base["commit"] == project.git("rev-parse", "main")
    assert base["tree"] == project.git("rev-parse", "main^{tree}")
    assert (head["ref"], head["dirty"]) == ("worktree", True)
    assert project.git("show", f"{head['tree']}:work.py") == SLOW.strip()


def test_explain_and_audit_say_what_the_arms_were(project: Project):
    (header,) = headers(project, "planted")
    trees = {arm: (one["commit"][:7], one["tree"][:7]) for arm, one in header["trees"].items()}
    told = " ".join(project.done("explain", "planted").split())
    assert f"in planted/1 base was {trees['base'][0]} (merge-base:main)" in told
    commit, tree = trees["head"]
    assert f"head was a work tree that differed from {commit}: tree {tree}, which no commit has" in told
    assert "an arm was a work tree that no commit has" in " ".join(project.prereg("audit").output.split())


def test_a_clone_without_the_trees_judges_the_same(project: Project, tmp_path: Path):
    clone = Project(tmp_path / "clone")
    command = ["git", "clone", "--quiet", "--no-local", "--single-branch", project.path, clone.path]
    subprocess.run(command, env=plain_environment(), check=True)
    (header,) = headers(clone, "planted")
    tree = header["trees"]["head"]["tree"]
    gone = subprocess.run(["git", "cat-file", "-e", tree], cwd=clone.path, check=False, capture_output=True)
    assert gone.returncode
    assert assess(clone) == ("supported", None)
    assert clone.prereg("audit").exit_code == project.prereg("audit").exit_code


def test_sessions_of_other_trees_are_no_one_series(project: Project):
    (path,) = project.evidence("planted")
    (header,) = headers(project, "planted")
    other = path.with_name(f"2{path.name[1:]}")
    other.write_bytes(path.read_bytes())
    trees = {**header["trees"], "head": {**header["trees"]["head"], "tree": 40 * "0"}}
    forge_header(other, trees=trees)
    assert assess(project) == ("inconclusive", "integrity")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ref": "main"}, 'has "main" for "head", and "worktree" was registered'),
        (None, 'does not say which version "head" was, and "worktree" was registered'),
        ({"tree": "HEAD"}, '"trees" has'),
    ],
)
def test_versions_that_were_not_registered_are_told(
    project: Project, change: dict[str, str] | None, said: str
):
    (path,) = project.evidence("planted")
    (header,) = headers(project, "planted")
    trees = header["trees"]
    head = {} if change is None else {"head": {**trees["head"], **change}}
    forge_header(path, trees={"base": trees["base"], **head})
    (file,) = StudyState(load_study(project.path / "predictions.toml")).files["planted"]
    assert said in " ".join(problem.message for problem in file.problems)
    assert assess(project) == ("inconclusive", "integrity")


# In this process


def test_a_build_that_fails_measures_nothing(
    tmp_path: Path, judge: Callable[..., pytest.RunResult], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    broken = PLANTED.replace("repeats", 'build = ["sh", "-c", "echo no compiler; exit 3"]\nrepeats')
    project = slowed(tmp_path / "project", broken)
    printed = judge(project).stdout.str()
    assert "PR135" in printed
    assert "build ended with status 3" in printed
    assert "no compiler" in printed
    assert project.evidence("planted") == []
    assert worktrees(project) == 1
    assert list(tmp_path.glob("prereg-versions*")) == []


def test_a_repeat_that_imports_the_work_trees_modules_is_invalid(
    tmp_path: Path, records: Callable[..., Verdicts], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    text = (HEAD + experiment("planted", "main", "main")).replace("repeats = 5", "repeats = 3")
    project = slowed(tmp_path / "project", text.replace("bench.py", str(tmp_path / "bench.py")))
    bench = BENCH.replace("import work", f"sys.path.insert(0, {str(project.path)!r})\nimport work")
    (tmp_path / "bench.py").write_text(bench, encoding="utf-8")
    record = records(project)["planted"]
    assert record["verdict"] == "inconclusive"
    finished = [json.loads(line) for line in project.evidence("planted")[0].read_text().splitlines()]
    causes = {one["cause"] for one in finished if one["type"] == "finished"}
    where = project.path / "work.py"
    assert causes == {
        f"module work came from the work tree, and not from the version of base: {where}",
    }


def test_trying_it_out_keeps_no_tree_for_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    project = slowed(tmp_path / "project", PLANTED.replace("repeats", 'build = ["sleep", "0.2"]\nrepeats'))
    said = project.done("try", "planted").splitlines()
    assert "head is the work tree" in said[0]
    assert said[1] == "each version is built for this trial alone, and again when it is measured"
    assert [line.split(" (")[0] for line in said[2:6]] == [
        f"{did} {arm}" for arm in ("base", "head") for did in ("building", "built")
    ]
    (header,) = headers(project, "planted")
    assert header["trees"]["head"]["dirty"]
    assert header["built"] >= 0.4
    assert project.git("for-each-ref", "refs/prereg") == ""
    assert worktrees(project) == 1


# Interrupted


def test_a_series_goes_on_with_its_trees_after_ctrl_c_a_kill_and_a_deleted_branch(tmp_path: Path):
    project = slowed(tmp_path / "project", HEAD + experiment("planted", "old", "worktree"))
    project.git("branch", "old", "main")
    real = RealStudy(project.path)

    def left() -> list[Path]:
        return [path for path in real.temporary.iterdir() if path.name.startswith("prereg-versions")]

    def begun(repeats: int) -> None:
        finished = sum(real.slots("planted", "finished").values())
        process = real.start()
        wait_until(lambda: sum(real.slots("planted", "finished").values()) >= finished + repeats)
        process.send_signal(signal.SIGINT if repeats == 1 else signal.SIGKILL)
        process.communicate(timeout=30)

    begun(1)
    assert left() == []
    assert worktrees(project) == 1
    project.git("branch", "--quiet", "-D", "old")
    project.write("work.py", "def work():\n    raise SystemExit(1)\n")
    begun(2)
    assert left()
    assert worktrees(project) == 3
    wait_until(lambda: not real.processes())
    code, printed = real.run()

    assert left() == []
    assert worktrees(project) == 1
    assert code == 0, printed
    several = headers(project, "planted")
    assert len(several) == 3
    assert all(one["trees"] == several[0]["trees"] for one in several)
    assert assess(project) == ("supported", None)
