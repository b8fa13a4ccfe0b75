"""What people put into their repositories: the action's steps, run as they stand in action.yml, and its likes."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from action_steps import BOT, ROOT, Api, Expressions, Job, UnknownExpressionError, action, serving
from audited_study import STUDY, Small, new_study

from pytest_prereg.audit.gating.code_owners import code_owners
from pytest_prereg.audit.history.git import Repository

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(not (ROOT / "action.yml").is_file(), reason="runs in a checkout or an sdist")

FULL = os.environ.get("PREREG_STORM") == "full"
MARK = "<!-- pytest-prereg:predictions.toml -->"
CLAIM = """
[predictions.below-{number}]
claim = "It takes less than {number} seconds."
experiment = "rows"
quantity = "wall"
predicts = "<= {supports} s"
falsifier = ">= 9 s"
"""
THREE = CLAIM.format(number="three", supports=3)
FOUR = CLAIM.format(number="four", supports=4)
BEFORE_ANYTHING = "0" * 40


@pytest.fixture(scope="module")
def api_server() -> Iterator[Api]:
    api = Api()
    server = serving(api)
    yield api
    server.shutdown()
    server.server_close()


@pytest.fixture
def api(api_server: Api) -> Api:
    """GitHub's API, with no comment."""
    url = api_server.url
    api_server.__init__()  # type: ignore[misc]
    api_server.url = url
    return api_server


PULLED = ("good", "bad", "other")


class Hosted:
    """A repository on a host: ``main``, which went on since, and the pull requests that began before it did."""

    def __init__(self, folder: Path) -> None:
        self.study = new_study(folder, text=f"{FOUR}{THREE}{STUDY}")
        self.began = self.study.register()
        self.main = self.merged = ""
        self.git = self.study.git

    def pull(self, branch: str, change: Callable[[Small], object]) -> None:
        self.git("checkout", "--quiet", "-b", branch, self.began)
        change(self.study)

    def go_on(self) -> None:
        """Others' work arrives on main, and the host merges each pull request with it."""
        self.git("checkout", "--quiet", "main")
        self.study.edit("predictions.toml", "less than two seconds", "less than 2 seconds")
        self.study.done("amend", "below-two", "--reason", "Digits read better.")
        self.study.keep("Amend", ".")
        for number, branch in enumerate(PULLED, 1):
            self.git("checkout", "--quiet", "--detach", "main")
            self.git("merge", "--quiet", "--no-ff", "-m", f"Merge {branch} into main", branch)
            self.git("update-ref", f"refs/pull/{number}/merge", "HEAD")
            self.git("update-ref", f"refs/pull/{number}/head", branch)
        self.git("checkout", "--quiet", "main")

    def commit(self, name: str) -> str:
        return self.git("rev-parse", name)

    def event(self, branch: str, base: str = "", repository: str | None = "owner/project") -> dict[str, Any]:
        head = {"sha": self.commit(branch), "ref": branch, "repo": repository and {"full_name": repository}}
        number = PULLED.index(branch) + 1
        pulled = {"number": number, "head": head, "base": {"sha": base or self.began, "ref": "main"}}
        return {"pull_request": pulled, "repository": {"default_branch": "main"}}

    def checked_out(self, path: Path, ref: str, *options: str) -> Path:
        """As actions/checkout does it: an empty repository, what is asked for fetched, a detached HEAD."""

        def git(*arguments: str) -> None:
            subprocess.run(["git", *arguments], cwd=path, check=True, capture_output=True)

        path.mkdir()
        git("init", "--quiet", "--initial-branch=main", "--template=")
        git("remote", "add", "origin", self.study.path.as_uri())
        branches = [] if options else ["+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"]
        git("fetch", "--quiet", "--no-tags", *options, "origin", *branches, f"+{ref}:refs/remotes/pull")
        git("checkout", "--quiet", "--detach", "refs/remotes/pull")
        return path


def remove_claim(study: Small) -> None:
    """Takes the claim out of file and lock, as if it had never been."""
    study.edit("predictions.toml", FOUR, "")
    lock = (study.path / "predictions.lock").read_text(encoding="utf-8")
    before, _, after = lock.partition("[predictions.below-four]\n")
    study.write("predictions.lock", before + after[after.index("[predictions.") :])
    study.done("lock", "--check")
    study.keep("Say nothing of four seconds", ".")


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Hosted:
    host = Hosted(tmp_path_factory.mktemp("host") / "project")
    host.pull("good", lambda study: study.take_in())
    host.pull("bad", remove_claim)
    host.pull("other", lambda study: study.go_on())
    host.go_on()
    return host


@pytest.fixture
def job(hosted: Hosted, tmp_path: Path, api: Api) -> Callable[..., Job]:
    """``job("bad")``: a job of that pull request, on GitHub's merge of it unless another ``ref`` is checked out."""

    def make(branch: str = "good", *, ref: str = "", options: tuple[str, ...] = (), **event: Any) -> Job:
        known = hosted.event(branch, **event)
        ref = ref or f"refs/pull/{known['pull_request']['number']}/merge"
        checkout = hosted.checked_out(tmp_path / "checkout", ref, *options)
        return Job(checkout, tmp_path / "scratch", known, api=api.url)

    return make


def test_a_pull_request_gets_a_summary_and_a_comment_which_the_next_run_updates(
    job: Callable[..., Job], api: Api
):
    one = job("good")
    ran = one.run()
    assert (ran.status, ran.failed, ran.outputs["exit"]) == (0, None, "0")
    assert ran.summary.startswith("## Pre-registered predictions")
    assert "::notice title=gate of small::" in ran.log
    assert [method for method, _ in api.asked] == ["GET", "POST"]
    assert api.asked[1][1] == "/repos/owner/project/issues/1/comments"
    assert all(each["authorization"] == "Bearer t0ken" for each in api.headers)
    (comment,) = api.comments
    first, _, rest = comment["body"].partition("\n")
    assert first == MARK
    assert rest.startswith(ran.summary.rstrip())
    assert "https://github.example/owner/project/actions/runs/1234" in rest

    assert one.run().status == 0
    assert api.asked[-1] == ("PATCH", f"/repos/owner/project/issues/comments/{comment['id']}")
    assert len(api.comments) == 1


def test_what_touches_no_prediction_gets_no_comment_and_has_the_one_that_it_had_brought_up_to_date(
    job: Callable[..., Job], api: Api
):
    one = job("other")
    ran = one.run()
    assert (ran.status, ran.log.count("no comment: it touches no prediction")) == (0, 1)
    assert [method for method, _ in api.asked] == ["GET"]
    api.add(f"{MARK}\nbefore", BOT)
    one.run()
    assert [method for method, _ in api.asked[1:]] == ["GET", "PATCH"]


def test_a_gate_that_fails_fails_the_job_once_everything_is_told(job: Callable[..., Job], api: Api):
    ran = job("bad").run()
    assert (ran.status, ran.failed, ran.outputs["exit"]) == (1, "Result", "1")
    assert "::error file=" in ran.log
    assert "PR203" in ran.summary
    assert "PR203" in api.sent[0]["body"]


@pytest.mark.parametrize("ref", ["refs/pull/1/merge", "refs/heads/good"])
def test_what_others_did_on_the_base_is_not_the_pull_request_s(
    ref: str, job: Callable[..., Job], hosted: Hosted
):
    ran = job("good", ref=ref).run(comment="false")
    assert ran.status == 0
    assert "PR202" not in ran.log + ran.summary, "main was amended after the pull request began"


def test_a_merge_is_compared_with_the_base_that_it_was_made_of(job: Callable[..., Job]):
    one = job("good")
    one.run(comment="false")
    assert all("--base=HEAD^1 " in call for call in one.calls() if " gate " in call)


def test_the_head_is_compared_with_the_base_that_the_event_names(job: Callable[..., Job], hosted: Hosted):
    one = job("good", ref="refs/heads/good", base=hosted.commit("main"))
    one.run(comment="false")
    assert all(f"--base={hosted.commit('main')} " in call for call in one.calls() if " gate " in call)


@pytest.mark.parametrize("repository", ["stranger/project", None])
def test_a_fork_gets_no_comment_and_one_line_that_says_so(
    repository: str | None, job: Callable[..., Job], api: Api
):
    ran = job("good", repository=repository).run()
    assert ran.status == 0
    assert ran.log.count("no comment: ") == 1
    assert api.asked == []
    assert ran.summary


@pytest.mark.parametrize(("branch", "status"), [("good", 0), ("bad", 1)])
def test_a_token_that_may_only_read_changes_nothing_but_the_comment(
    branch: str, status: int, job: Callable[..., Job], api: Api
):
    api.refuses = 403
    ran = job(branch).run()
    assert ran.status == status
    assert ran.log.count("no comment: ") == 1
    assert "pull-requests: write" in ran.log


@pytest.mark.parametrize("answer", [b"<html>", b'{"message": "x"}', b"[1]", b'[{"id": 1}]'])
def test_an_api_that_makes_no_sense_fails_nothing(answer: bytes, job: Callable[..., Job], api: Api):
    api.answer = answer
    ran = _comment_alone(job("good"), "## Fine\n")
    assert ran.status == 0
    assert ran.log.startswith("no comment: ")
    assert ran.log.count("\n") == 1
    assert api.sent == []


def test_an_id_that_is_none_is_never_run(job: Callable[..., Job], api: Api):
    comment = {"id": "$(touch pwned)", "user": {"login": BOT}, "body": MARK}
    api.answer = json.dumps([comment]).encode()
    one = job("good")
    assert _comment_alone(one, "## Fine\n").log.startswith("no comment: ")
    assert not list(one.workspace.rglob("pwned"))


def test_an_api_that_is_not_there_fails_nothing(job: Callable[..., Job]):
    one = job("good")
    one.api = "http://127.0.0.1:9"
    ran = _comment_alone(one, "## Fine\n")
    assert (ran.status, ran.log.count("no comment: curl ended with 7")) == (0, 1)


def _comment_alone(one: Job, summary: str, **inputs: str) -> Any:
    """Runs what follows the gate, which is taken to have written ``summary``."""
    one.installed()
    (one.folder / "summary.md").write_text(summary, encoding="utf-8")
    return one.run({"install": {"folder": str(one.folder)}, "gate": {"exit": "0"}}, **inputs)


def test_a_comment_is_found_behind_hundreds_of_others(job: Callable[..., Job], api: Api):
    for number in range(200):
        api.add(f"{number}", None if number % 2 else "somebody")
    ours = api.add(f"{MARK}\nold", BOT)
    _comment_alone(job("good"), "## New\n")
    assert api.asked[-1] == ("PATCH", f"/repos/owner/project/issues/comments/{ours}")
    assert len(api.comments) == 201


def test_a_comment_that_somebody_else_marked_is_left_alone(job: Callable[..., Job], api: Api):
    api.add(f"{MARK}\nAll is well.")
    api.add(f"Look: {MARK}", BOT)
    api.add(None, BOT)
    _comment_alone(job("good"), "## New\n")
    assert [method for method, _ in api.asked] == ["GET", "POST"]
    assert api.comments[0]["body"].endswith("All is well.")


def test_studies_have_comments_of_their_own(job: Callable[..., Job], api: Api):
    one = job("good")
    for study in ("a.toml", "b.toml", "a.toml"):
        _comment_alone(one, f"## {study}\n", study=study)
    assert [method for method, _ in api.asked if method != "GET"] == ["POST", "POST", "PATCH"]
    assert len(api.comments) == 2


@pytest.mark.parametrize("length", [65_000, 65_400, 65_536, 300_000])
@pytest.mark.parametrize("text", ["x" * 99 + "\n", "👀 é " * 20 + "\n"])
def test_a_comment_is_never_longer_than_what_github_takes(
    length: int, text: str, job: Callable[..., Job], api: Api
):
    summary = (text * (length // len(text) + 1))[:length]
    assert _comment_alone(job("good"), summary).status == 0
    (sent,) = api.sent
    units = len(sent["body"].encode("utf-16-le")) // 2
    assert units <= 65_536
    whole = len(summary.encode("utf-16-le")) // 2
    assert sent["body"].startswith(f"{MARK}\n*Cut to what a comment holds") == (whole > 65_200)
    assert units > 65_000 or whole <= 65_200


def test_no_comment_is_written_where_none_is_wanted(job: Callable[..., Job], api: Api):
    assert job("good").run(comment="false").status == 0
    assert api.asked == []


def test_a_gate_that_breaks_while_it_writes_the_summary_is_not_fine(job: Callable[..., Job]):
    one = job("good")
    one.installed()
    program = one.folder / "environment" / "bin" / "python"
    program.write_text("#!/bin/sh\ncase $* in *=markdown*) echo 'Error: no room' >&2; exit 3;; esac\n")
    ran = one.run({"install": {"folder": str(one.folder)}}, comment="false")
    assert (ran.status, ran.failed) == (3, "Result")
    assert "::error title=pytest-prereg::Error: no room" in ran.log
    assert "    Error: no room" in ran.summary


def test_a_checkout_that_is_cut_is_told_what_to_do(job: Callable[..., Job], api: Api):
    ran = job("good", options=("--depth=1",)).run()
    assert (ran.status, ran.failed) == (4, "Result")
    assert (
        '::error title=pytest-prereg::the history is cut: give actions/checkout "fetch-depth: 0"' in ran.log
    )
    assert "fetch-depth: 0" in ran.summary
    assert "fetch-depth: 0" in api.sent[0]["body"]


def test_a_job_without_a_checkout_is_told_what_to_do(job: Callable[..., Job], tmp_path: Path):
    one = job("good")
    one.workspace = tmp_path / "empty"
    one.workspace.mkdir()
    one.environment["GIT_CEILING_DIRECTORIES"] = str(tmp_path)
    ran = one.run(comment="false")
    assert ran.status == 4
    assert "::error title=pytest-prereg::there is no repository: actions/checkout" in ran.log


def test_a_study_that_is_not_there_is_an_error_that_the_summary_has_too(job: Callable[..., Job]):
    ran = job("good").run(comment="false", study="nowhere/predictions.toml")
    assert (ran.status, ran.failed) == (2, "Result")
    assert "nowhere/predictions.toml" in ran.log
    assert "nowhere/predictions.toml" in ran.summary


@pytest.mark.parametrize("name", ["base", "head", "study"])
@pytest.mark.parametrize(
    "text",
    [
        "$(touch pwned)",
        "`touch pwned`",
        '"; touch pwned; "',
        "'; touch pwned; '",
        "--output=pwned",
        "x\n::stop-commands::x",
        "x\n##[stop-commands]x",
    ],
)
def test_hostile_names_are_names(name: str, text: str, job: Callable[..., Job], hosted: Hosted):
    one = job("good")
    ran = _compared_alone(one, **{name: text})
    assert [call for call in one.calls() if "--format=github" in call or "--format=markdown" in call]
    assert not list(one.workspace.rglob("pwned")) + list(one.scratch.rglob("pwned"))
    assert "\n::stop-commands::" not in ran.log
    assert "##[" not in ran.log


def _compared_alone(one: Job, **inputs: str) -> Any:
    """Runs the gate's step with a gate that only keeps how it was called, and complains of it."""
    one.installed()
    program = one.folder / "environment" / "bin" / "python"
    program.write_text(
        f"#!/bin/sh\nprintf '%s\\n' \"$*\" >>'{one.folder}/calls.txt'\nprintf '%s\\n' \"$*\" >&2\n"
    )
    return one.run({"install": {"folder": str(one.folder)}}, comment="false", **inputs)


@pytest.mark.parametrize("branch", ["$(touch${IFS}pwned)", "a'b\"c;touch${IFS}pwned", "--output=pwned"])
def test_a_hostile_branch_is_compared_like_any_other(branch: str, job: Callable[..., Job], hosted: Hosted):
    one = job("good")
    one.event["pull_request"]["head"]["ref"] = branch
    subprocess.run(
        ["git", "update-ref", f"refs/heads/{branch}", "HEAD"],
        cwd=one.workspace,
        check=True,
        capture_output=True,
    )
    ran = one.run(comment="false", base=f"refs/heads/{branch}")
    assert ran.status == 0, ran.log
    assert not list(one.workspace.rglob("pwned"))


@pytest.mark.parametrize("folder", ["two words", 'it\'s "quoted"', "a--b -->", "größer & <kleiner>"])
def test_a_study_may_be_called_whatever_its_folder_is(
    folder: str, tmp_path: Path, api: Api, monkeypatch: pytest.MonkeyPatch
):
    study = new_study(tmp_path / "host", folder)
    base = study.register()
    study.take_in()
    head = {"sha": "", "repo": {"full_name": "owner/project"}}
    event = {"pull_request": {"number": 3, "head": head, "base": {"sha": base}}}
    ran = Job(study.top, tmp_path / "scratch", event, api=api.url).run(study=f"{folder}/predictions.toml")
    assert ran.status == 0, ran.log
    first = api.sent[0]["body"].partition("\n")[0]
    assert first.startswith("<!-- pytest-prereg:")
    assert first.endswith("/predictions.toml -->")
    assert "--" not in first[4:-3]


def test_nothing_of_the_checkout_is_imported(job: Callable[..., Job], api: Api):
    one = job("good")
    for name in ("json", "pathlib", "venv", "urllib", "click", "msgspec", "pytest_prereg", "sitecustomize"):
        text = "import os, pathlib\nos.mkdir('pwned')\n"
        (one.workspace / f"{name}.py").write_text(text)
    one.environment["PYTHONPATH"] = str(one.workspace)
    ran = one.run()
    assert ran.status == 0, ran.log
    assert not (one.workspace / "pwned").exists()
    assert api.sent


def _pushed(one: Job, before: str, ref: str = "refs/heads/main") -> Job:
    one.name = "push"
    one.event = {"before": before, "ref": ref, "repository": {"default_branch": "main"}}
    return one


def test_a_push_to_the_default_branch_is_compared_with_what_was_there(
    job: Callable[..., Job], hosted: Hosted
):
    one = _pushed(job(ref="refs/heads/main"), hosted.began)
    _compared_alone(one)
    assert all(call.endswith(("--default-branch --format=github", "summary.md")) for call in one.calls())
    assert f"--base={hosted.began} --default-branch " in one.calls()[0]


def test_a_branch_that_is_new_is_compared_with_the_default_branch(job: Callable[..., Job], hosted: Hosted):
    one = _pushed(job(ref="refs/heads/good"), BEFORE_ANYTHING, "refs/heads/good")
    _compared_alone(one)
    assert "--base=refs/remotes/origin/main --format=github" in one.calls()[0]


def test_a_merge_queue_is_compared_with_what_it_is_queued_for(job: Callable[..., Job], hosted: Hosted):
    one = job("good")
    one.name, one.event = "merge_group", {"merge_group": {"base_sha": hosted.began}}
    _compared_alone(one)
    assert f"--base={hosted.began} --format=github" in one.calls()[0]


def test_what_was_pushed_over_can_not_be_compared(job: Callable[..., Job]):
    ran = _pushed(job(ref="refs/heads/main"), "1" * 40).run()
    assert ran.status == 4
    assert "::error title=pytest-prereg::the base is no commit here: it was pushed over" in ran.log


def test_an_event_without_a_base_is_told_to_name_one(job: Callable[..., Job]):
    one = job("good")
    one.name, one.event = "schedule", {}
    ran = one.run()
    assert (ran.status, ran.failed) == (2, "Compare")
    assert 'name what to compare with as "base"' in ran.log


def test_reviews_are_acknowledged_by_the_lock_alone_only_if_the_workflow_says_so(job: Callable[..., Job]):
    one = job("good")
    _compared_alone(one)
    _compared_alone(one, acknowledge="lock")
    assert ["--acknowledge=lock" in call for call in one.calls()] == [False, False, True, True]


# --- installing


def test_a_python_that_is_too_old_is_told_what_to_do(job: Callable[..., Job], tmp_path: Path):
    old = tmp_path / "python3.10"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    for python in (str(old), "no-such-python"):
        ran = job_of(tmp_path).run({}, python=python)
        assert (ran.status, ran.failed) == (2, "Install the gate")
        assert "::error title=pytest-prereg::it takes Python 3.11 or later" in ran.log


def job_of(tmp_path: Path) -> Job:
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    return Job(workspace, tmp_path / "scratch", {})


def test_a_switch_that_is_neither_on_nor_off_is_refused(tmp_path: Path):
    ran = job_of(tmp_path).run({}, comment="yes")
    assert (ran.status, ran.failed) == (2, "Install the gate")
    assert "comment has to be true or false" in ran.log


def test_an_action_that_the_pull_request_can_change_is_pointed_out(tmp_path: Path):
    one = job_of(tmp_path)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\ncase $* in *venv*) exit 1;; esac\n")
    python.chmod(0o755)
    assert "::warning" in one.run({}, action_path=one.workspace / ".", python=str(python)).log
    assert (
        "::warning" not in one.run({}, action_path=tmp_path / "workspace-of-another", python=str(python)).log
    )


@pytest.mark.skipif(not FULL, reason="installs packages: PREREG_STORM=full")
def test_the_gate_is_installed_from_the_action_and_not_from_the_checkout(
    job: Callable[..., Job], tmp_path: Path
):
    place = _clone(tmp_path / "action")
    one = job("bad")
    for name in ("venv", "pip", "pytest_prereg"):
        (one.workspace / f"{name}.py").write_text("import os\nos.mkdir('pwned')\n")
    ran = one.run({}, action_path=place, python=sys.executable)
    assert (ran.status, ran.failed) == (1, "Result"), ran.log
    assert "PR203" in ran.summary
    assert not (one.workspace / "pwned").exists()


def _clone(path: Path) -> Path:
    """The project as it lies here, as a repository of its own."""
    names = subprocess.run(
        [
            "git",
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
            "pytest_prereg",
            "*.toml",
            "*.md",
            "*.y*ml",
        ],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in (*filter(None, names.split("\0")), "LICENSE"):
        if (ROOT / name).is_file():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, path / name)
    for command in (
        "init --quiet --template=",
        "add --all",
        "-c user.name=T -c user.email=t@example.invalid commit -qm x",
    ):
        subprocess.run(["git", *command.split()], cwd=path, check=True)
    return path


# --- the files themselves


def test_no_script_of_the_action_has_an_expression_pasted_in():
    for step in action()["runs"]["steps"]:
        assert "${{" not in step["run"]
        assert "uses" not in step
        assert step["shell"] == "bash"


def test_every_input_of_the_action_reaches_a_step():
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert all(f"inputs.{name}" in text for name in action()["inputs"])


@pytest.mark.parametrize(
    "expression",
    [
        "inputs.unknown",
        "github.actor",
        "secrets.X",
        "steps.nowhere.outputs.x",
        "a ||",
        "format('x')",
        "1",
        "",
    ],
)
def test_an_expression_that_is_not_understood_is_no_empty_text(expression: str):
    with pytest.raises(UnknownExpressionError):
        Expressions({}, {"event": {}, "token": ""}).value(expression)


def test_expressions_are_those_of_github():
    known = Expressions({"comment": "true"}, {"event": {"a": {"b": None}, "c": 7}, "token": ""})
    assert known.value("github.event.a.b.c || github.event.x || github.event.c") == 7
    assert known.value("inputs.comment == 'true' && github.event.c") == 7
    assert not known.value("inputs.comment == 'it''s' && github.event.c")
    assert known.expand("<${{ github.event.nothing }}>") == "<>"


@pytest.mark.parametrize(
    ("schema", "name"), [("github-actions", "action.yml"), ("gitlab-ci", "templates/gate.yml")]
)
def test_the_file_has_the_form_that_its_host_reads(schema: str, name: str, tmp_path: Path):
    *_, content = yaml.safe_load_all((ROOT / name).read_text(encoding="utf-8"))
    file = tmp_path / "file.yml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    checked = _tool("check-jsonschema", "--builtin-schema", f"vendor.{schema}", str(file))
    assert checked.returncode == 0, checked.stdout


def test_the_action_has_no_hole_that_is_known():
    audited = _tool("zizmor", "--offline", "--persona", "pedantic", str(ROOT / "action.yml"))
    assert audited.returncode == 0, audited.stdout


def test_the_scripts_have_no_fault_that_is_known():
    (job,) = gitlab_job().values()
    scripts = [step["run"] for step in action()["runs"]["steps"]]
    for shell, script in [*(("bash", each) for each in scripts), ("sh", job["script"][0])]:
        checked = _tool("shellcheck", "--shell", shell, "-", text=script)
        assert checked.returncode == 0, checked.stdout


def _tool(name: str, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    program = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if program is None:
        pytest.skip(f"{name} is not installed")
    return subprocess.run([program, *arguments], input=text, capture_output=True, text=True, check=False)


# --- what the page on it says


def page() -> str:
    return (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")


def shown(language: str, holding: str) -> str:
    """The block of the page that has these words."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", page(), re.MULTILINE | re.DOTALL)
    (block,) = (one for one in blocks if holding in one)
    return str(block)


def test_the_workflow_that_is_shown_is_one(tmp_path: Path):
    file = tmp_path / "predictions.yml"
    file.write_text(shown("yaml", "runs-on"), encoding="utf-8")
    checked = _tool("check-jsonschema", "--builtin-schema", "vendor.github-workflows", str(file))
    assert checked.returncode == 0, checked.stdout


def test_every_input_is_explained():
    table = page().split("\n| input | |\n")[1].split("\n\n")[0]
    names = {name for row in table.splitlines() for name in re.findall(r"`(\w+)[`:]", row.split("|")[1])}
    assert names == set(action()["inputs"])


def test_the_include_that_is_shown_has_the_inputs_that_there_are():
    header, _ = yaml.safe_load_all((ROOT / "templates" / "gate.yml").read_text(encoding="utf-8"))
    declared = header["spec"]["inputs"]
    (include,) = yaml.safe_load(shown("yaml", "include:"))["include"]
    needed = {name for name, each in declared.items() if "default" not in each}
    assert (ROOT / include["file"]).is_file()
    assert needed == set(include["inputs"])
    assert all(f"`{name}`" in page() for name in declared.keys() - needed)


def test_the_hooks_that_are_shown_are_those_that_there_are():
    (repository,) = yaml.safe_load(shown("yaml", "repos:"))["repos"]
    assert [each["id"] for each in repository["hooks"]] == list(hooks())


def test_the_code_owners_that_are_shown_cover_the_lock_and_what_could_take_that_away(
    git_repository: Callable[..., Any],
):
    repository = git_repository()
    repository.write(".github/CODEOWNERS", shown("text", "CODEOWNERS"))
    owners = code_owners(Repository.find(repository.path), repository.commit("Own"))
    assert owners is not None
    owned = ("predictions.lock", "predictions-2.lock", "predictions/speed.lock", ".github/CODEOWNERS")
    for place in (*owned, ".github/workflows/predictions.yml"):
        assert owners.owners(place) == ("@OWNER/reviewers",), place
    assert owners.owners("predictions.toml") == ()


# --- GitLab


def gitlab_job() -> dict[str, Any]:
    _, jobs = yaml.safe_load_all((ROOT / "templates" / "gate.yml").read_text(encoding="utf-8"))
    return jobs


def gitlab(hosted: Hosted, path: Path, branch: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs the job's script in a checkout, with a ``python3`` that installs nothing."""
    checkout = path / "checkout"
    if not checkout.exists():
        hosted.checked_out(checkout, f"refs/heads/{branch}")
    programs = path / "bin"
    programs.mkdir(exist_ok=True)
    python = f"case $* in *' -m pip '*) ;; *) exec '{sys.executable}' \"$@\" ;; esac"
    (programs / "python3").write_text(
        f"#!/bin/sh\nmkdir -p \"$4/bin\"\nprintf '%s\\n' '#!/bin/sh' {shlex.quote(python)} >\"$4/bin/python\"\n"
        'chmod +x "$4/bin/python"\n'
    )
    (programs / "python3").chmod(0o755)
    ours = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": hosted.began,
        "CI_PROJECT_ID": "5",
        "CI_MERGE_REQUEST_IID": "7",
        "PREREG_PACKAGE": "pytest-prereg",
        "NO_PROXY": "*",
    }
    (job,) = gitlab_job().values()
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", job["script"][0]],
        cwd=checkout,
        env={**os.environ, **ours, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize(("branch", "status"), [("good", 0), ("bad", 1)])
def test_a_merge_request_of_gitlab_gets_a_note_that_the_next_run_updates(
    branch: str, status: int, hosted: Hosted, tmp_path: Path, api: Api
):
    known = {"CI_API_V4_URL": api.url, "PREREG_TOKEN": "glpat"}
    for method in ("POST", "PUT"):
        done = gitlab(hosted, tmp_path, branch, **known)
        assert done.returncode == status, done.stdout + done.stderr
        assert api.asked[-1][0] == method
    assert api.comments[0]["body"].startswith(MARK)
    assert len(api.comments) == 1
    assert (tmp_path / "checkout" / "gl-code-quality.json").read_text().startswith("[")


def test_gitlab_needs_no_token_but_for_the_note(hosted: Hosted, tmp_path: Path, api: Api):
    done = gitlab(hosted, tmp_path, "bad", CI_API_V4_URL=api.url)
    assert done.returncode == 1
    assert "no note: there is no PREREG_TOKEN" in done.stdout
    assert api.asked == []


def test_gitlab_that_refuses_the_note_changes_nothing_else(hosted: Hosted, tmp_path: Path, api: Api):
    api.refuses = 403
    done = gitlab(hosted, tmp_path, "bad", CI_API_V4_URL=api.url, PREREG_TOKEN="glpat")
    assert done.returncode == 1
    assert "no note: GitLab did not take it" in done.stdout


# --- pre-commit


def hooks() -> dict[str, dict[str, Any]]:
    listed = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    return {each["id"]: each for each in listed}


def hooked(study: Small, hook: str) -> subprocess.CompletedProcess[str]:
    """Runs a hook's entry as pre-commit does, without names of files."""
    each = hooks()[hook]
    assert (each["language"], each["pass_filenames"], each["always_run"]) == ("python", False, True)
    program, *arguments = shlex.split(each["entry"])
    assert program == "pytest-prereg"
    return subprocess.run(
        [sys.executable, "-m", "pytest_prereg", *arguments],
        cwd=study.path,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_hooks_pass_what_is_registered_and_stop_what_is_not(tmp_path: Path):
    study = new_study(tmp_path / "project")
    study.register()
    assert [hooked(study, hook).returncode for hook in ("prereg-lock", "prereg-cite")] == [0, 0]
    study.edit("predictions.toml", "<= 2 s", "<= 1 s")
    study.write("README.md", "It takes <!-- prereg: below-two.estimate -->1<!-- /prereg --> s.\n")
    assert [hooked(study, hook).returncode for hook in ("prereg-lock", "prereg-cite")] == [1, 1]


@pytest.mark.skipif(not FULL, reason="installs packages: PREREG_STORM=full")
def test_pre_commit_runs_the_hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "cache"))
    study = new_study(tmp_path / "project")
    listed = [
        {"repo": str(_clone(tmp_path / "tool")), "rev": "HEAD", "hooks": [{"id": name} for name in hooks()]}
    ]
    study.write(".pre-commit-config.yaml", yaml.safe_dump({"repos": listed}))
    study.register()
    study.keep("Hooks", ".")
    monkeypatch.chdir(study.path)
    passed = _tool("pre-commit", "run", "--all-files")
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert passed.stdout.count("Passed") == len(hooks())
    study.edit("predictions.toml", "<= 2 s", "<= 1 s")
    study.git("add", "predictions.toml")
    stopped = _tool("pre-commit", "run")
    assert stopped.returncode == 1
    assert "Failed" in stopped.stdout
    assert "below-two" in stopped.stdout
