"""Experiments are found, read and digested without a line of them being run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from pytest_prereg.errors import StudyError
from pytest_prereg.registry import trees
from pytest_prereg.registry.builtins import built_ins, workload_versions
from pytest_prereg.registry.model import Experiment, Metric, Study
from pytest_prereg.registry.sources import find_experiments, import_root, source_digest
from pytest_prereg.registry.tables import ExperimentTable, StudyTable
from pytest_prereg.registry.trees import tree_digest

if TYPE_CHECKING:
    from pytest_prereg.registry.declarations import Declared

IMPORT = "from pytest_prereg import Repeat, experiment\n\n\n"
STEP = IMPORT + dedent(
    """\
    @experiment(metrics={"t": "s"})
    def step(repeat: Repeat, *, size: int = 1) -> None:
        '''One step.'''
        repeat.record("t", size)
    """
)


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def found(folder: Path, **settings: object) -> dict[str, Declared]:
    """What a study in this folder declares itself."""
    declared = find_experiments(StudyTable(id="s", **settings), folder)
    return {name: each for name, each in declared.items() if each.source.path is not None}


def complaints(folder: Path, **settings: object) -> list[str]:
    with pytest.raises(StudyError) as caught:
        found(folder, **settings)
    assert {problem.code for problem in caught.value.problems} == {"PR041"}
    return [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]


class TestFinding:
    def test_nothing_is_imported(self, tmp_path: Path):
        write(tmp_path, "experiments/step.py", "raise SystemExit\n" + STEP)
        assert list(found(tmp_path)) == ["step"]
        assert not {"step", "experiments.step"} & sys.modules.keys()

    def test_what_a_declaration_holds(self, tmp_path: Path):
        text = IMPORT + dedent(
            """\
            @experiment(
                metrics={"t_gen": "s", "tokens": {"unit": "token", "exact": True, "cap": 4096}},
                preload=["torch"],
            )
            def step(repeat, *, size=1, depth, name: str = "x"): ...
            """
        )
        path = write(tmp_path, "experiments/step.py", text)
        declared = found(tmp_path)["step"]
        assert declared.metrics == {
            "t_gen": Metric(name="t_gen", unit="s"),
            "tokens": Metric(name="tokens", unit="token", exact=True, cap=4096.0),
        }
        assert declared.parameters == {"size": False, "depth": True, "name": False}
        source = declared.source
        assert (source.path, source.module, source.function) == (path, "experiments.step", "step")
        assert (source.line, source.preload) == (8, ("torch",))
        assert import_root(source) == tmp_path

    @pytest.mark.parametrize(
        "text",
        [
            "from pytest_prereg import experiment\n@experiment(metrics={'t': 's'})\n",
            "from pytest_prereg import experiment as measured\n@measured(metrics={'t': 's'})\n",
            "import pytest_prereg\n@pytest_prereg.experiment(metrics={'t': 's'})\n",
            "import pytest_prereg as pp\n@pp.experiment(metrics={'t': 's'})\n",
            "from pytest_prereg.measure import experiment\n@experiment.experiment(metrics={'t': 's'})\n",
            "import pytest_prereg.measure.x\n@pytest_prereg.measure.x.experiment(metrics={'t': 's'})\n",
            "from pytest_prereg import *\n@experiment(metrics={'t': 's'})\n",
            "import a\nfrom pytest_prereg import experiment\n@experiment(metrics={'t': 's'})\n@a.cache\n",
        ],
    )
    def test_under_whatever_name_the_decorator_is_imported(self, tmp_path: Path, text: str):
        write(tmp_path, "experiments/step.py", text + "def step(repeat): ...\n")
        assert list(found(tmp_path)) == ["step"]

    @pytest.mark.parametrize(
        "text",
        [
            "from sacred import experiment  # not pytest_prereg\n@experiment(5)\ndef step(x): ...\n",
            "import pytest_prereg\nclass my: experiment = print\n@my.experiment\ndef step(x): ...\n",
            "# pytest_prereg\ndef experiment(f): return f\n@experiment\ndef step(x): ...\n",
        ],
    )
    def test_the_decorators_of_others_are_none_of_ours(self, tmp_path: Path, text: str):
        write(tmp_path, "experiments/step.py", text)
        assert found(tmp_path) == {}

    def test_a_module_that_has_nothing_to_do_with_us_may_be_anything(self, tmp_path: Path):
        write(tmp_path, "experiments/python2.py", "print 'x'\n")
        (tmp_path / "experiments/binary.py").write_bytes(b"\x00\xff")
        assert found(tmp_path) == {}

    def test_where_modules_are_looked_for(self, tmp_path: Path):
        for name in ("experiments/a", "experiments/deep/b", "experiments/_private", "experiments/.hidden/c"):
            write(tmp_path, f"{name}.py", STEP.replace("step", Path(name).name.strip("_")))
        write(tmp_path, "experiments/evidence/old.py", STEP)
        modules = {name: each.source.module for name, each in found(tmp_path).items()}
        assert modules == {"a": "experiments.a", "b": "experiments.deep.b"}

    @pytest.mark.parametrize(
        ("entry", "module"),
        [
            ("bench", "bench.step"),
            ("bench/step.py", "bench.step"),
            ("bench.step", "bench.step"),
            ("alone.py", "alone"),
            ("alone", "alone"),
        ],
    )
    def test_folders_and_modules_can_be_named(self, tmp_path: Path, entry: str, module: str):
        write(tmp_path, "bench/step.py", STEP)
        write(tmp_path, "alone.py", STEP)
        assert found(tmp_path, experiments=[entry])["step"].source.module == module

    def test_a_folder_beside_the_studys_own_is_imported_from_its_parent(self, tmp_path: Path):
        write(tmp_path, "experiments/step.py", STEP)
        (tmp_path / "predictions").mkdir()
        source = found(tmp_path / "predictions", experiments=["../experiments"])["step"].source
        assert (source.module, import_root(source)) == ("experiments.step", tmp_path)

    def test_naming_a_folder_twice_declares_nothing_twice(self, tmp_path: Path):
        write(tmp_path, "experiments/step.py", STEP)
        assert list(found(tmp_path, experiments=["experiments", "experiments/step.py"])) == ["step"]

    def test_no_folder_is_no_experiment_but_a_named_one_must_be_there(self, tmp_path: Path):
        assert found(tmp_path) == {}
        assert (
            'experiments names "experiment", and there is no such'
            in complaints(tmp_path, experiments=["experiment"])[0]
        )

    def test_ones_own_experiment_hides_a_built_in(self, tmp_path: Path):
        write(tmp_path, "experiments/step.py", STEP.replace("def step", "def grpo_step"))
        assert find_experiments(StudyTable(id="s"), tmp_path)["grpo_step"].source.module == "experiments.step"

    def test_built_in_experiments_are_read_like_any_other(self):
        declared = built_ins()["grpo_step"]
        assert declared.source.path is None
        assert declared.source.module == "pytest_prereg.measure.workloads.grpo"
        assert declared.metrics["t_gen"].unit == "s"


class TestMalformed:
    """Each message stands where an editor can jump to, and names the experiment."""

    @pytest.mark.parametrize(
        ("decorator", "signature", "line", "message"),
        [
            ("@experiment", "(repeat)", 4, "declares no metrics"),
            ("@experiment()", "(repeat)", 4, "declares no metrics"),
            ("@experiment(metrics=METRICS)", "(repeat)", 4, "must declare its metrics as a literal"),
            (
                "@experiment(metrics={})",
                "(repeat)",
                4,
                "must declare its metrics as a literal, non-empty dict",
            ),
            ("@experiment(metrics=dict(t='s'))", "(repeat)", 4, "must declare its metrics as a literal"),
            ("@experiment(metrics={**METRICS})", "(repeat)", 4, "must name each metric by a literal string"),
            ("@experiment(metrics={NAME: 's'})", "(repeat)", 4, "must name each metric by a literal string"),
            ("@experiment(metrics={\n  't': UNIT})", "(repeat)", 5, 'declares metric "t", and not literally'),
            ("@experiment(metrics={'t': f'{x}'})", "(repeat)", 4, 'declares metric "t", and not literally'),
            ("@experiment(metrics={'t': 5})", "(repeat)", 4, 'declares metric "t": write its unit'),
            (
                "@experiment(metrics={'t': {'unti': 's'}})",
                "(repeat)",
                4,
                'unknown key "unti"; did you mean "unit"?',
            ),
            ("@experiment(metrics={'t': {'from': 's'}})", "(repeat)", 4, 'unknown key "from"'),
            ("@experiment(metrics={'t': {'exact': True}})", "(repeat)", 4, "missing required field `unit`"),
            (
                "@experiment(metrics={'t': {'unit': 's', 'exact': 1}})",
                "(repeat)",
                4,
                "Expected `bool`, got `int`",
            ),
            ("@experiment(metrics={'t': {'unit': 's', 'resolution': 0}})", "(repeat)", 4, "> 0"),
            (
                "@experiment(metrics={'t-gen': 's'})",
                "(repeat)",
                4,
                '"t-gen", which must be named by a Python identifier',
            ),
            (
                "@experiment(metrics={'in': 's'})",
                "(repeat)",
                4,
                '"in", which must be named by a Python identifier',
            ),
            ("@experiment(metrics={'ﬁt': 's'})", "(repeat)", 4, 'which must be written "fit"'),
            (
                "@experiment(metrics={'completed': '1'})",
                "(repeat)",
                4,
                "which has a name that quantities reserve",
            ),
            ("@experiment(metrics={'t': 's', 't': 'ms'})", "(repeat)", 4, 'declares metric "t" twice'),
            ("@experiment({'t': 's'})", "(repeat)", 4, "must name the arguments of its decorator"),
            (
                "@experiment(**{'metrics': {'t': 's'}})",
                "(repeat)",
                4,
                "must write out the arguments of its decorator",
            ),
            (
                "@experiment(metric={'t': 's'})",
                "(repeat)",
                4,
                'unknown argument "metric"; did you mean "metrics"?',
            ),
            (
                "@experiment(metrics={'t': 's'}, preload='torch')",
                "(repeat)",
                4,
                "must give preload as a literal list",
            ),
            (
                "@experiment(metrics={'t': 's'}, preload=[1])",
                "(repeat)",
                4,
                "must give preload as a literal list",
            ),
            ("@experiment(metrics={'t': 's'})", "()", 5, 'must have "repeat" as its first parameter'),
            ("@experiment(metrics={'t': 's'})", "(self)", 5, 'must have "repeat" as its first parameter'),
            (
                "@experiment(metrics={'t': 's'})",
                "(*, repeat)",
                5,
                'must have "repeat" as its first parameter',
            ),
            (
                "@experiment(metrics={'t': 's'})",
                "(repeat, size)",
                5,
                'has parameter "size", which must be keyword-only',
            ),
            ("@experiment(metrics={'t': 's'})", "(repeat, *sizes)", 5, 'not collect them in "sizes"'),
            ("@experiment(metrics={'t': 's'})", "(repeat, **sizes)", 5, 'not collect them in "sizes"'),
        ],
    )
    def test_message(self, tmp_path: Path, decorator: str, signature: str, line: int, message: str):
        write(tmp_path, "experiments/a.py", f"{IMPORT}{decorator}\ndef step{signature}: ...\n")
        told = complaints(tmp_path)
        assert told[0].startswith(f'experiments/a.py:{line}: PR041: experiment "step" ')
        assert message in told[0]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("@experiment(metrics={'t': 's'})\nasync def step(repeat): ...", "must be a plain function"),
            ("@experiment(metrics={'t': 's'})\nclass step: ...", "must be a plain function"),
            ("class A:\n @experiment(metrics={'t': 's'})\n def step(repeat): ...", "at the top level"),
            ("if 1:\n @experiment(metrics={'t': 's'})\n def step(repeat): ...", "at the top level"),
        ],
    )
    def test_only_a_function_of_a_module_can_be_an_experiment(self, tmp_path: Path, text: str, message: str):
        write(tmp_path, "experiments/a.py", IMPORT + text)
        assert message in complaints(tmp_path)[0]

    def test_no_python(self, tmp_path: Path):
        write(tmp_path, "experiments/a.py", IMPORT + "def step(repeat:\n")
        assert complaints(tmp_path)[0].startswith('experiments/a.py:4: PR041: "experiments.a" is no Python: ')

    def test_what_can_not_be_read_is_told(self, tmp_path: Path):
        (tmp_path / "experiments").mkdir()
        (tmp_path / "experiments/a.py").symlink_to(tmp_path / "nowhere")
        assert '"experiments.a" can\'t be read: No such file' in complaints(tmp_path)[0]

    @pytest.mark.parametrize("data", [b"\x00", b"\xff", b"# coding: nonsense\n", b"(" * 5000])
    def test_no_text_at_all(self, tmp_path: Path, data: bytes):
        write(tmp_path, "experiments/a.py", "")
        (tmp_path / "experiments/a.py").write_bytes(data + b"\n# pytest_prereg")
        assert '"experiments.a" is no Python' in complaints(tmp_path)[0]

    def test_one_name_for_two_functions(self, tmp_path: Path):
        write(tmp_path, "experiments/a.py", STEP)
        write(tmp_path, "experiments/b.py", "\n" + STEP)
        (told,) = complaints(tmp_path)
        assert told.startswith('experiments/b.py:6: PR041: experiment "step" is declared a second time; ')
        assert told.endswith("the first is at experiments/a.py:5")

    def test_everything_is_told_at_once(self, tmp_path: Path):
        write(
            tmp_path, "experiments/a.py", f"{IMPORT}@experiment(metrics=M, preload=P)\ndef step(x, y): ...\n"
        )
        write(tmp_path, "experiments/b.py", f"{IMPORT}@experiment\ndef other(repeat): ...\n")
        assert len(complaints(tmp_path)) == 5

    def test_a_warning_of_the_users_text_is_no_error(self, tmp_path: Path):
        write(tmp_path, "experiments/a.py", "PATTERN = '\\d'\n" + STEP)
        assert list(found(tmp_path)) == ["step"]


class TestSourceDigest:
    """``experiments/step.py`` of a study, its imports, and what of them counts."""

    def digest(self, folder: Path, **settings: object) -> str | None:
        path = folder / "predictions.toml"
        study = Study(id="s", table=StudyTable(id="s"), path=path, experiments={}, predictions={})
        return source_digest(study, self.experiment(found(folder, **settings)["step"]))

    def experiment(self, declared: Declared, **changes: object) -> Experiment:
        fields: dict[str, object] = {
            "id": "e",
            "kind": "fixture",
            "table": ExperimentTable(fixture="step"),
            "arms": {},
            "metrics": declared.metrics,
            "pairing": "block",
            "source": declared.source,
            "line": 1,
        }
        return Experiment(**fields | changes)

    @pytest.fixture
    def study(self, tmp_path: Path) -> Path:
        folder = tmp_path / "repository" / "study"
        write(folder, "experiments/step.py", "import helper\nfrom . import near\n" + STEP)
        write(folder, "experiments/near.py", "from .deep import far\n")
        write(folder, "experiments/deep/far.py", "FAR = 1\n")
        write(folder, "helper.py", "import common.tools\n\nimport json\n")
        write(tmp_path, "repository/common/__init__.py", "")
        write(tmp_path, "repository/common/tools.py", "from packaged import thing\n\nTOOLS = 1\n")
        write(tmp_path, "repository/src/packaged.py", "import helper\n\nthing = 1\n")
        (tmp_path / "repository/.git").mkdir()
        return folder

    def test_it_is_frozen(self, study: Path):
        """Locks in the field hold it: if this fails, experiments of users seem to have changed."""
        assert self.digest(study) == "sha256:d51831c96851b462ccd6da2fa2f20f7b7521cea00fc3a6caa59a721627da8da8"

    def test_comments_docstrings_and_formatting_do_not_count(self, study: Path):
        before = self.digest(study)
        text = STEP.replace("'''One step.'''", "'''Another\n    text.'''  # why").replace(
            'repeat.record("t", size)', "repeat.record(\n\n        't',\n        (size),\n    )"
        )
        write(study, "experiments/step.py", "# new\nimport helper\nfrom . import (near,)\n" + text)
        assert self.digest(study) == before

    @pytest.mark.parametrize(
        "name",
        [
            "experiments/step.py",
            "experiments/near.py",
            "experiments/deep/far.py",
            "helper.py",
            "../common/__init__.py",
            "../common/tools.py",
            "../src/packaged.py",
        ],
    )
    def test_every_module_that_is_imported_counts(self, study: Path, name: str):
        before = self.digest(study)
        path = study / name
        path.write_text(path.read_text() + "\nADDED = 1\n")
        assert self.digest(study) != before

    def test_modules_that_are_not_imported_do_not_count(self, study: Path):
        before = self.digest(study)
        write(study, "experiments/other.py", STEP.replace("step", "other"))
        write(study, "json_helper.py", "x = 1")
        assert self.digest(study) == before

    def test_moving_the_study_changes_nothing(self, study: Path):
        before = self.digest(study)
        moved = study.parent / "elsewhere" / "deeper"
        moved.parent.mkdir()
        study.rename(moved)
        assert self.digest(moved) == before

    def test_renaming_the_module_of_an_experiment_changes_nothing(self, study: Path):
        before = self.digest(study)
        (study / "experiments/step.py").rename(study / "experiments/renamed.py")
        assert self.digest(study) == before

    def test_two_modules_that_trade_places_count(self, tmp_path: Path):
        write(tmp_path, "experiments/step.py", "import a, b\n" + STEP)
        write(tmp_path, "a.py", "x = 1")
        write(tmp_path, "b.py", "x = 2")
        before = self.digest(tmp_path)
        (tmp_path / "a.py").write_text("x = 2")
        (tmp_path / "b.py").write_text("x = 1")
        assert self.digest(tmp_path) != before

    def test_without_git_only_the_studys_folder_counts(self, study: Path):
        (study.parent / ".git").rmdir()
        before = self.digest(study)
        (study / "../common/tools.py").write_text("x = 2")
        assert self.digest(study) == before
        (study / "helper.py").write_text("x = 2")
        assert self.digest(study) != before

    def test_modules_that_import_each_other_end(self, tmp_path: Path):
        write(tmp_path, "experiments/step.py", "import a\n" + STEP)
        write(tmp_path, "a.py", "import b")
        write(tmp_path, "b.py", "import a\nimport experiments.step")
        assert self.digest(tmp_path)

    def test_an_import_inside_a_function_counts(self, tmp_path: Path):
        write(tmp_path, "experiments/step.py", STEP + "    import helper\n")
        write(tmp_path, "helper.py", "x = 1")
        before = self.digest(tmp_path)
        (tmp_path / "helper.py").write_text("x = 2")
        assert self.digest(tmp_path) != before

    def test_a_module_that_is_no_python_counts_byte_by_byte(self, tmp_path: Path):
        write(tmp_path, "experiments/step.py", "import broken\n" + STEP)
        write(tmp_path, "broken.py", "def f(:\n")
        before = self.digest(tmp_path)
        (tmp_path / "broken.py").write_text("def f(: # comment\n")
        assert self.digest(tmp_path) != before

    def test_symbolic_links_and_relative_paths_lead_to_the_same(
        self, study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        before = self.digest(study)
        (tmp_path / "link").symlink_to(study)
        assert self.digest(tmp_path / "link") == before
        monkeypatch.chdir(study)
        assert self.digest(Path()) == before

    def test_a_module_behind_a_symbolic_link_is_imported_by_the_name_of_the_link(self, tmp_path: Path):
        real = write(tmp_path, "repository/lib/real.py", "import helper\n" + STEP)
        helper = write(tmp_path, "repository/study/helper.py", "x = 1")
        (tmp_path / "repository/.git").mkdir()
        study = tmp_path / "repository/study"
        (study / "experiments").mkdir()
        (study / "experiments/step.py").symlink_to(real)
        source = found(study)["step"].source
        assert (source.module, import_root(source)) == ("experiments.step", study)
        before = self.digest(study)
        helper.write_text("x = 2")
        assert self.digest(study) != before

    def test_relative_imports_are_relative(self, tmp_path: Path):
        write(tmp_path, "experiments/deep/step.py", "from .. import helper\n" + STEP)
        right = write(tmp_path, "experiments/helper.py", "x = 1")
        wrong = [write(tmp_path, name, "x = 1") for name in ("helper.py", "experiments/deep/helper.py")]
        before = self.digest(tmp_path)
        for path in wrong:
            path.write_text("x = 2")
        assert self.digest(tmp_path) == before
        right.write_text("x = 2")
        assert self.digest(tmp_path) != before

    def test_relative_imports_above_the_file_system_are_survived(self, tmp_path: Path):
        write(tmp_path, "experiments/step.py", f"from {'.' * 60} import x\n" + STEP)
        assert self.digest(tmp_path)

    def test_of_this_package_only_the_versions_of_workloads_count(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        write(tmp_path, "experiments/step.py", STEP)
        plain = self.digest(tmp_path)
        write(
            tmp_path,
            "experiments/step.py",
            STEP + "    from pytest_prereg.measure.workloads.grpo import grpo_step\n",
        )
        with_workload = self.digest(tmp_path)
        monkeypatch.setattr(
            "pytest_prereg.registry.module_graph.workload_versions", lambda module: ((module, "2"),)
        )
        assert len({plain, with_workload, self.digest(tmp_path)}) == 3

    def test_a_built_in_counts_by_its_version(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        study = Study(id="s", table=StudyTable(id="s"), path=tmp_path / "p", experiments={}, predictions={})
        experiment = self.experiment(built_ins()["grpo_step"])
        before = source_digest(study, experiment)
        assert before == source_digest(study, experiment)
        versions = dict(workload_versions("pytest_prereg.measure.workloads.grpo"))
        assert versions["pytest_prereg.measure.workloads.grpo"]
        assert "pytest_prereg.measure.workloads.sandbox.driver" in versions
        monkeypatch.setattr(
            "pytest_prereg.registry.sources.workload_versions", lambda module: ((module, "2"),)
        )
        assert source_digest(study, experiment) != before

    def preloading(self, folder: Path, name: str, fixture: str) -> str | None:
        study = Study(id="s", table=StudyTable(id="s"), path=folder / "p", experiments={}, predictions={})
        declared = (built_ins() | found(folder))[fixture]
        table = ExperimentTable(fixture=fixture, preload=[name])
        return source_digest(study, self.experiment(declared, table=table))

    @pytest.mark.parametrize("fixture", ["step", "grpo_step"])
    def test_what_is_preloaded_counts_where_it_is_ones_own(self, tmp_path: Path, fixture: str):
        write(tmp_path, "experiments/step.py", STEP)
        plain = self.preloading(tmp_path, "json", fixture)
        assert self.preloading(tmp_path, "pytest_prereg", fixture) == plain
        write(tmp_path, "patch.py", "import helper")
        patched = self.preloading(tmp_path, "patch", fixture)
        write(tmp_path, "helper.py", "SIZE = 1")

        assert len({plain, patched, self.preloading(tmp_path, "patch", fixture)}) == 3

    def test_preloading_what_is_imported_anyway_changes_nothing(self, tmp_path: Path):
        write(tmp_path, "experiments/step.py", "import helper\n" + STEP)
        write(tmp_path, "helper.py", "SIZE = 1")
        assert self.preloading(tmp_path, "helper", "step") == self.preloading(tmp_path, "json", "step")

    def test_an_import_has_no_source_and_a_command_counts_by_its_arguments(self, tmp_path: Path):
        study = Study(id="s", table=StudyTable(id="s"), path=tmp_path / "p", experiments={}, predictions={})
        declared = built_ins()["grpo_step"]
        assert source_digest(study, self.experiment(declared, kind="import", source=None)) is None
        one, same, other = (
            source_digest(
                study,
                self.experiment(
                    declared, kind="command", source=None, table=ExperimentTable(command=command)
                ),
            )
            for command in (["a", "b"], ["a", "b"], ["a b"])
        )
        assert one == same != other


class TestTreeDigest:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("x = 1", "x = 1.0"),
            ("x = 1", "x = True"),
            ("x = '1'", "x = b'1'"),
            ("x = None", "x = ..."),
            ("f(a, b)", "f(a)(b)"),
            ("a + b * c", "(a + b) * c"),
            ("from . import a", "from .. import a"),
            ("f'{x}'", "f'{x!r}'"),
            ("f'{x}'", "f'{x:d}'"),
            ("f'a{x}'", "f'{x}a'"),
            ("global a", "nonlocal a"),
            ("{**a}", "{None: a}"),
            ("def f(a): pass", "def f(*, a): pass"),
            ("def f(*, a=1, b): pass", "def f(*, a, b=1): pass"),
            ("x[1:2]", "x[1::2]"),
            ("x: int", "(x): int"),
            ("def f():\n '''x'''", "def f():\n pass"),
            ("def f():\n f'x'", "def f():\n 'x'"),
            ("x = '''a\nb'''", "x = '''a\n\nb'''"),
        ],
    )
    def test_programs_that_differ(self, one: str, other: str):
        assert tree_digest(one.encode()) != tree_digest(other.encode())

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("x = 'a' 'b'", 'x = "ab"'),
            ("x = u'a'", "x = 'a'"),
            ("x = 0x10", "x = 16"),
            ("x = 1_000.0", "x = 1e3"),
            ("f'a' 'b' f'{x}'", "f'ab{x}' ''"),
            ("class A:\n '''Doc.'''\n x = 1", "class A:\n x = 1"),
            ("async def f():\n '''Doc.'''\n return 1", "async def f():\n return 1"),
            ("'''Doc.'''\nx = 1", "x = 1"),
            ("# -*- coding: latin-1 -*-\nx = 1", "x = 1  # type: int"),
        ],
    )
    def test_programs_that_only_look_different(self, one: str, other: str):
        assert tree_digest(one.encode()) == tree_digest(other.encode())

    def test_the_encoding_that_a_module_declares_is_heeded(self):
        text = "x = 'é'"
        assert tree_digest(f"# coding: latin-1\n{text}".encode("latin-1")) == tree_digest(text.encode())

    def test_a_chain_longer_than_python_recurses(self):
        chain = "if x == 0: pass\n" + "".join(f"elif x == {n}: pass\n" for n in range(900))
        assert tree_digest(chain.encode()) != tree_digest(chain.replace("899", "900").encode())

    def test_it_is_frozen(self):
        frozen = "1e79ec62f5449934b42cd5bb347064504db57ee1e73c1e962a349dfb782602f9"
        assert tree_digest(STEP.encode()) == frozen

    def test_all_supported_pythons_agree(self, tmp_path: Path):
        """On a few dozen modules of the standard library, of the Python that runs this, that all can parse."""
        others = other_pythons()
        if not others:
            pytest.skip("no other supported Python is installed")
        files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[::4]
        edges = write(tmp_path, "edges.py", EDGES)
        shutil.copy(trees.__file__, tmp_path / "trees.py")
        write(tmp_path, "script.py", DIGEST_OF_EACH)
        arguments = [str(path) for path in (edges, *files)]
        digests = {
            python: subprocess.run(
                [python, "script.py", *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
            ).stdout.split()
            for python in others
        }
        compared = [
            path for path, *each in zip(arguments, *digests.values(), strict=True) if UNPARSED not in each
        ]
        assert compared[0] == str(edges)
        assert len(compared) >= 30
        for python, theirs in digests.items():
            told = dict(zip(arguments, theirs, strict=True))
            assert not [path for path in compared if told[path] != tree_digest(Path(path).read_bytes())], (
                python
            )


UNPARSED = "unparsed"
DIGEST_OF_EACH = f"""
import sys, trees
for path in sys.argv[1:]:
    text = open(path, "rb").read()
    try:
        trees.parse(text)
    except SyntaxError:  # of a later Python
        print("{UNPARSED}")
    else:
        print(trees.tree_digest(text))
"""
EDGES = r'''
f"{x:}" f"{x!r:>{w}}" f"{x = }" f"{x=:>{w}.2f}" "tail" f"" "" f"{{}}" rf"\d{x}\n" f"{x:%H:%M}" f"{x:{w}{p}}"
f"""
{x}
""" "\ud800" f"\N{BULLET}{x}" f"{x!s}{y!a}" f"{lambda_: 3}" f"{'a' 'b'}" f"{f'{x}'}"
u"x", "\d", 1e400, 1j, ..., b"\xff" b"1", 0xffffffffffffffffffffffffffffffffffffff
def f(a, /, b: int = 1, *c, d=2, e, **g) -> None: "doc"
with (open(a) as b, open(c)): pass
match x:
    case {"a": [1, *_], **rest} | A(b=-1.5) if y: pass
lambda *a, b=1: (yield)
[x async for x in y if z]
try: pass
except* E as e: pass
print(*a, **b, sep="")
x[1:2, ::3, *y]
type = 1
'''


def other_pythons() -> list[str]:
    """Interpreters of the supported versions but this one, on the path or where pyenv keeps them."""
    found = []
    for version in ("3.11", "3.12", "3.13"):
        if sys.version_info[:2] == tuple(map(int, version.split("."))):
            continue
        kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
        candidates = [shutil.which(f"python{version}"), *sorted(kept.glob(f"{version}.*/bin/python3"))]
        found += [str(each) for each in candidates if each and runs(str(each), version)][:1]
    return found


def runs(python: str, version: str) -> bool:
    script = "import sys; print(sys.version)"
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.startswith(f"{version}.")
