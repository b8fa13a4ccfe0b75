"""What an experiment measures and reads: which files, which changes of them count, and what is refused."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from pytest_prereg.errors import StudyError
from pytest_prereg.registry import subjects
from pytest_prereg.registry.digest import source_of_all
from pytest_prereg.registry.load import load_study
from pytest_prereg.registry.lock import plan_registration, read_lock, register
from pytest_prereg.registry.sources import source_digest, source_files
from pytest_prereg.registry.subjects import data_digest, subject_digest, subject_files

if TYPE_CHECKING:
    from pytest_prereg.registry.lock import Lock
    from pytest_prereg.registry.model import Experiment, Study

ROOT = Path(__file__).parents[2]

STUDY = """\
[study]
id = "s"

[experiments.e]
fixture = "step"
repeats = 7
{keys}

[predictions.p]
claim = "It is fast."
experiment = "e"
quantity = "t"
predicts = "<= 1 s"
falsifier = ">= 2 s"
"""
STEP = dedent(
    """\
    import kernel
    from pytest_prereg import Repeat, experiment


    @experiment(metrics={"t": "s"})
    def step(repeat: Repeat) -> None:
        repeat.record("t", kernel.run())
    """
)
KERNEL = "def run():\n    return 1.0\n"


class Folder:
    """A study below ``study`` of a repository, and digests of its one experiment."""

    def __init__(self, repository: Path) -> None:
        self.repository = repository
        self.path = repository / "study"
        (repository / ".git").mkdir(parents=True)
        self.write("experiments/step.py", STEP)
        self.write("kernel.py", KERNEL)
        self.declare('subject = ["kernel.py"]')

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def declare(self, keys: str) -> None:
        self.write("predictions.toml", STUDY.format(keys=keys))

    def load(self) -> tuple[Study, Experiment]:
        study = load_study(self.path / "predictions.toml")
        return study, study.experiments["e"]

    @property
    def subject(self) -> str | None:
        return subject_digest(*self.load())

    @property
    def data(self) -> str | None:
        return data_digest(*self.load())

    @property
    def source(self) -> str | None:
        return source_digest(*self.load())

    def files(self) -> list[str]:
        return [os.path.relpath(path, self.path) for path in subject_files(*self.load())]

    def refusal(self) -> str:
        with pytest.raises(StudyError) as caught:
            source_digest(*self.load())
        return str(caught.value).replace(f"{self.path}/", "")

    def lock(self) -> Lock:
        study, _ = self.load()
        return register(study, None, plan_registration(study, None, at="2027"))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "repository")


class TestWhichFiles:
    @pytest.fixture(autouse=True)
    def tree(self, folder: Folder) -> None:
        for name in ("src/a.py", "src/b.toml", "src/deep/c.py", "src/deep/er/d.py"):
            folder.write(name, "x = 1\n")
        (folder.repository / "outer.py").write_text("x = 1\n")

    @pytest.mark.parametrize(
        ("globs", "files"),
        [
            (["src/**"], ["src/a.py", "src/b.toml", "src/deep/c.py", "src/deep/er/d.py"]),
            (["src/**/*.py"], ["src/a.py", "src/deep/c.py", "src/deep/er/d.py"]),
            (["src/**/**/*.py"], ["src/a.py", "src/deep/c.py", "src/deep/er/d.py"]),
            (["**/d.py"], ["src/deep/er/d.py"]),
            (["src/**/er/**"], ["src/deep/er/d.py"]),
            (["src/*"], ["src/a.py", "src/b.toml"]),
            (["src/*/c.py"], ["src/deep/c.py"]),
            (["./src//a.py"], ["src/a.py"]),
            (["src/[ab].??*"], ["src/a.py", "src/b.toml"]),
            (["src/b.toml", "src/a.py", "src/*.py"], ["src/a.py", "src/b.toml"]),
            (["../outer.py", "src/a.py"], ["../outer.py", "src/a.py"]),
            (["../study/src/a.py"], ["src/a.py"]),
        ],
    )
    def test_that_globs_match(self, folder: Folder, globs: list[str], files: list[str]):
        folder.declare(f"subject = {globs}")
        assert folder.files() == files

    @pytest.mark.parametrize(
        "name",
        [".hidden.py", ".git/x.py", "__pycache__/a.pyc", "old.pyc", "p.egg-info/PKG-INFO", "deep/.x/y.py"],
    )
    def test_what_is_hidden_or_left_behind_counts_only_where_it_is_spelt_out(self, folder: Folder, name: str):
        folder.declare('subject = ["src/**"]')
        before = folder.subject
        folder.write(f"src/{name}", "x = 1\n")
        assert folder.subject == before
        folder.declare(f'subject = ["src/{name}"]')
        assert folder.files() == [f"src/{name}"]

    def test_what_measuring_and_registering_write_is_no_subject(self, folder: Folder):
        folder.declare('subject = ["*", "experiments/evidence/**", "src/a.py"]')
        assert "matches no file" in folder.refusal()
        folder.declare('subject = ["*", "experiments/*/*", "src/**"]')
        folder.write("experiments/near/x.py", "")
        before = folder.files()
        folder.write("experiments/evidence/e.jsonl", "{}")
        folder.write("predictions.lock", "")
        assert folder.files() == before
        assert "predictions.toml" not in before

    def test_a_file_is_hashed_once_however_many_globs_match_it(self, folder: Folder):
        folder.declare('subject = ["src/**"]')
        before = folder.subject
        folder.declare('subject = ["src/**/*.py", "src/b.toml", "src/**"]')
        assert folder.subject == before

    def test_pipes_are_no_files(self, folder: Folder):
        os.mkfifo(folder.path / "src/pipe")
        folder.declare('subject = ["src/*"]')
        assert folder.files() == ["src/a.py", "src/b.toml"]


class TestWhatCounts:
    def test_nothing_is_declared(self, folder: Folder, monkeypatch: pytest.MonkeyPatch):
        """What nobody uses costs nothing: no folder is walked."""
        folder.declare("")
        monkeypatch.setattr(subjects, "matching", None)
        assert (folder.subject, folder.data, folder.files()) == (None, None, [])
        folder.declare("subject = []\ndata = []")
        assert (folder.subject, folder.data, folder.files()) == (None, None, [])

    def test_it_is_frozen(self, folder: Folder):
        """Evidence in the field names it, and is held against it on every Python."""
        folder.write("kernel.toml", "size = 1\n")
        folder.write("data.bin", "1 2 3\n")
        folder.declare('subject = ["kernel.*"]\ndata = ["data.bin"]')
        assert folder.subject == "sha256:b1b265f99c699688900cf0f962296c57b2190631700505d8b364445beba13f2f"
        assert folder.data == "sha256:6ef98a532a0ff1228f36660d482c5c1ca4a317a88b07476f33eea298c5df5454"
        assert folder.source == "sha256:91d858ed90109f662c2832780dcd07a344689b0bd2d01de61ef79b3eb0b6ce8a"

    def test_comments_docstrings_and_formatting_of_python_do_not(self, folder: Folder):
        before = folder.subject
        folder.write("kernel.py", '"""Runs."""\n\n\ndef run():  # fast\n    """Run."""\n    return (1.0)\n')
        assert folder.subject == before
        folder.write("kernel.py", KERNEL.replace("1.0", "2.0"))
        assert folder.subject != before

    def test_every_byte_of_any_other_file_does(self, folder: Folder):
        folder.write("kernel.toml", "size = 1\n")
        folder.declare('subject = ["kernel.toml"]')
        before = folder.subject
        folder.write("kernel.toml", "size = 1  # small\n")
        assert folder.subject != before

    def test_a_module_that_does_not_parse_is_a_version_too(self, folder: Folder):
        versions = set()
        for text in (KERNEL, "def run(:\n", "def run(:  # still\n"):
            folder.write("kernel.py", text)
            versions.add(folder.subject)
        assert len(versions) == 3

    @pytest.mark.parametrize("name", ["kernel.py", "kernel.toml"])
    def test_names_do(self, folder: Folder, name: str):
        folder.declare('subject = ["lib/**"]')
        folder.write(f"lib/{name}", "x = 1\n")
        before = folder.subject
        (folder.path / "lib" / name).rename(folder.path / "lib" / f"renamed_{name}")
        assert folder.subject != before

    def test_where_the_repository_lies_does_not(self, folder: Folder, tmp_path: Path):
        before = folder.subject
        folder.repository.rename(tmp_path / "elsewhere")
        folder.path = tmp_path / "elsewhere/study"
        assert folder.subject == before

    def test_a_name_that_is_no_utf_8_is_survived(self, folder: Folder):
        try:
            (folder.path / os.fsdecode(b"kernel-\xff.txt")).write_text("x")
        except OSError:
            pytest.skip("this file system has no such names")
        folder.declare('subject = ["kernel-*"]')
        assert folder.subject


class TestRefusals:
    """PR042 and PR043 stand at the glob's line, and say what to do."""

    @pytest.mark.parametrize(
        ("glob", "wrong"),
        [
            ("kernal.py", "matches no file"),
            ("experiments", "matches no file"),
            ("KERNEL.PY", "matches no file"),
            ("/kernel.py", "is no path relative to the prediction file"),
            ("", "is no path relative to the prediction file"),
            ("..", "is no path relative to the prediction file"),
            ("src/../kernel.py", "is no path relative to the prediction file"),
            ("../../outside.py", "leads out of"),
            ("../../repository/study/kernel.py", "leads out of"),
        ],
    )
    def test_a_glob_that_names_no_subject(self, folder: Folder, glob: str, wrong: str):
        (folder.repository.parent / "outside.py").write_text("")
        folder.declare(f'subject = [\n    "kernel.py",\n    "{glob}",\n]')
        told = folder.refusal()
        assert told.startswith(f'predictions.toml:9: PR042: experiment "e": "subject": "{glob}" {wrong}')
        assert len(told.splitlines()) == 2

    def test_everything_is_told_at_once(self, folder: Folder):
        folder.declare('subject = [\n    "a",\n    "kernel.py",\n    "b",\n]')
        assert [line[:18] for line in folder.refusal().splitlines()[::2]] == [
            "predictions.toml:8",
            "predictions.toml:1",
        ]

    def test_without_git_the_studys_folder_is_not_left(self, folder: Folder):
        (folder.repository / ".git").rmdir()
        (folder.repository / "outer.py").write_text("")
        folder.declare('subject = ["../outer.py"]')
        assert "leads out of" in folder.refusal()

    @pytest.mark.parametrize(
        "glob", ["link.py", "*.py", "**/*.py", "lib/far.py", "lib/**", "*/far.py", "gone.py", "**"]
    )
    def test_a_symbolic_link_that_matches(self, folder: Folder, tmp_path: Path, glob: str):
        (tmp_path / "lib").mkdir()
        (tmp_path / "lib/far.py").write_text("x = 1")
        (folder.path / "lib").symlink_to(tmp_path / "lib")
        (folder.path / "link.py").symlink_to("kernel.py")
        (folder.path / "gone.py").symlink_to("nowhere")
        folder.declare(f'subject = ["{glob}"]')
        assert "is a symbolic link, to " in folder.refusal()

    def test_a_symbolic_link_that_does_not_match_is_nobodys_business(self, folder: Folder):
        (folder.path / "link").symlink_to("kernel.py")
        (folder.path / "loop").symlink_to(".")
        folder.declare('subject = ["kern*"]')
        assert folder.files() == ["kernel.py"]

    def test_the_experiment_is_no_part_of_its_subject(self, folder: Folder):
        folder.declare('subject = ["**/*.py"]')
        told = folder.refusal()
        assert told.startswith('predictions.toml:7: PR042: experiment "e": "subject" matches "')
        assert 'step.py", which is the experiment itself' in told

    def test_data_that_are_not_there(self, folder: Folder):
        folder.declare('subject = ["kernel.py"]\ndata = ["kernel.py", "rows.csv"]')
        told = folder.refusal()
        assert told.startswith(
            'predictions.toml:8: PR043: experiment "e": "data": "rows.csv" matches no file'
        )

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    @pytest.mark.parametrize(("key", "code"), [("subject", "PR042"), ("data", "PR043")])
    def test_a_file_that_can_not_be_read(self, folder: Folder, key: str, code: str):
        folder.write("rows.csv", "1").chmod(0)
        folder.declare(f'{key} = ["rows.csv"]')
        with pytest.raises(StudyError, match=f"{code}: .*rows.csv\" can't be read: Permission denied"):
            _ = folder.subject, folder.data

    @pytest.mark.parametrize(("digest", "code"), [("subject", "PR042"), ("data", "PR043")])
    def test_a_file_that_vanishes_meanwhile(
        self, folder: Folder, digest: str, code: str, monkeypatch: pytest.MonkeyPatch
    ):
        folder.declare(f'{digest} = ["kernel.py"]')
        gone = folder.path / "gone.py"
        monkeypatch.setattr(subjects, f"{digest}_files", lambda *_: [gone])
        with pytest.raises(StudyError, match=f"{code}: .*gone.py\" can't be read"):
            getattr(folder, digest)


class TestData:
    def test_bytes_and_names_count_and_comments_of_python_too(self, folder: Folder):
        folder.declare('data = ["kernel.py", "rows/*.csv"]')
        folder.write("rows/a.csv", "1\n")
        digests = [folder.data]
        folder.write("rows/a.csv", "2\n")
        digests.append(folder.data)
        (folder.path / "rows/a.csv").rename(folder.path / "rows/b.csv")
        digests.append(folder.data)
        folder.write("kernel.py", KERNEL + "# done\n")
        digests.append(folder.data)
        assert len(set(digests)) == 4

    def test_links_are_read_and_may_lead_anywhere(self, folder: Folder, tmp_path: Path):
        """Tools for large files keep a link in the repository, and the content elsewhere."""
        (tmp_path / "store").mkdir()
        stored = tmp_path / "store/rows.csv"
        stored.write_text("1\n")
        (folder.path / "rows.csv").symlink_to(stored)
        (folder.path / "store").symlink_to(tmp_path / "store")
        folder.declare('data = ["rows.csv", "store/*.csv", "../../store/rows.csv"]')
        before = folder.data
        stored.write_text("2\n")
        assert folder.data != before

    @pytest.mark.parametrize("glob", ["**", "*.csv", "gone.csv"])
    def test_links_that_lead_nowhere_or_in_circles_are_refused(self, folder: Folder, glob: str):
        (folder.path / "gone.csv").symlink_to("nowhere")
        (folder.path / "circle").symlink_to(".")
        folder.declare(f'data = ["{glob}"]')
        told = folder.refusal()
        assert "PR043" in told
        assert "is a symbolic link" in told

    def test_they_are_part_of_the_source_digest(self, folder: Folder):
        folder.write("rows.csv", "1\n")
        folder.declare("")
        digests = [folder.source]
        folder.declare('data = ["rows.csv"]')
        digests.append(folder.source)
        folder.write("rows.csv", "2\n")
        digests.append(folder.source)
        assert len(set(digests)) == 3

    def test_a_file_is_hashed_as_sha256sum_does(self, folder: Folder):
        path = folder.write("rows.csv", "1,2\n" * 100_000)
        assert subjects._bytes(path) == hashlib.sha256(path.read_bytes()).hexdigest()


class TestSourceDigest:
    """The experiment's code counts without its subject, and with everything else."""

    def test_the_subject_is_left_out(self, folder: Folder):
        before = folder.source
        folder.write("kernel.py", KERNEL.replace("1.0", "2.0"))
        assert folder.source == before
        folder.declare("")
        assert folder.source != before

    def test_the_experiment_itself_counts(self, folder: Folder):
        before = folder.source
        folder.write("experiments/step.py", STEP.replace("run()", "run() + 1"))
        assert folder.source != before

    def test_files_that_nothing_imports_change_nothing(self, folder: Folder):
        folder.write("other.txt", "x")
        before = folder.source
        folder.declare('subject = ["kernel.py", "other.txt"]')
        assert folder.source == before

    def test_what_the_subject_imports_counts_unless_it_is_subject_too(self, folder: Folder):
        folder.write("kernel.py", "import tools\n" + KERNEL)
        folder.write("tools.py", "import deeper\n\nSIZE = 1\n")
        folder.write("deeper.py", "DEPTH = 1\n")
        for name in ("tools.py", "deeper.py"):
            before = folder.source
            folder.write(name, "import deeper\n\nSIZE = 2\n")
            assert folder.source != before
        folder.declare('subject = ["kernel.py", "tools.py", "deeper.py"]')
        before = folder.source
        folder.write("deeper.py", "DEPTH = 3\n")
        assert folder.source == before

    def test_in_which_order_the_subject_imports_does_not(self, folder: Folder):
        folder.write("kernel.py", "import b\nimport a\n" + KERNEL)
        folder.write("a.py", "SIZE = 1\n")
        folder.write("b.py", "SIZE = 2\n")
        before = folder.source
        folder.write("kernel.py", "import a\nimport b\n" + KERNEL)
        assert folder.source == before
        folder.write("a.py", "SIZE = 2\n")
        folder.write("b.py", "SIZE = 1\n")
        assert folder.source != before

    def test_only_what_is_left_is_watched_as_source(self, folder: Folder):
        assert [path.name for path in source_files(*folder.load())] == ["step.py"]

    def test_no_digest_in_a_committed_lock_is_disturbed(self):
        study = load_study(ROOT / "predictions.toml")
        lock = read_lock(study.lock_path)
        assert lock is not None
        now = {name: source_digest(study, one) for name, one in study.experiments.items()}
        of_each = {
            name: source_of_all({one: now[one] for one in study.predictions[name].experiments})
            for name in lock.predictions
        }
        assert of_each == {name: entry.experiment for name, entry in lock.predictions.items()}


class TestLock:
    def test_a_new_version_of_the_subject_needs_no_amendment_and_new_data_do(self, folder: Folder):
        folder.write("rows.csv", "1\n")
        folder.declare('subject = ["kernel.py"]\ndata = ["rows.csv"]')
        lock = folder.lock()
        folder.write("kernel.py", KERNEL.replace("1.0", "2.0"))
        assert plan_registration(folder.load()[0], lock).unchanged == ("p",)
        folder.write("rows.csv", "2\n")
        (problem,) = plan_registration(folder.load()[0], lock).problems
        assert problem.code == "PR103"

    def test_other_globs_are_another_registration(self, folder: Folder):
        lock = folder.lock()
        folder.declare('subject = ["kern*.py"]')
        assert [each.code for each in plan_registration(folder.load()[0], lock).problems] == ["PR104"]

    def test_several_predictions_of_one_experiment_tell_a_missing_file_once(self, folder: Folder):
        folder.declare('data = ["rows.csv"]')
        text = (folder.path / "predictions.toml").read_text()
        prediction = text[text.index("[predictions.p]") :]
        folder.write("predictions.toml", text + prediction.replace("[predictions.p]", "[predictions.q]"))
        with pytest.raises(StudyError) as caught:
            folder.lock()
        assert [problem.code for problem in caught.value.problems] == ["PR043"]

    def test_a_decided_claim_does_not_mind_that_its_subject_or_data_are_gone(self, folder: Folder):
        from msgspec.structs import replace

        rows = folder.write("rows.csv", "1\n")
        folder.declare('subject = ["kernel.py"]\ndata = ["rows.csv"]')
        lock = folder.lock()
        rows.unlink()
        (folder.path / "kernel.py").unlink()
        with pytest.raises(StudyError, match="PR042"):
            plan_registration(folder.load()[0], lock)
        lock.predictions["p"] = replace(lock.predictions["p"], verdict="supported")
        assert plan_registration(folder.load()[0], lock).unchanged == ("p",)
