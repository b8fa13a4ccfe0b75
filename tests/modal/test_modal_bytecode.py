"""What a container need not compile: all of this package that its processes import as they start."""

from __future__ import annotations

import marshal
import os
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_prereg
from pytest_prereg.measure.executors.modal import bytecode

SOURCE = Path(pytest_prereg.__file__).parent
CODE_FROM = "# code object from "


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with the package as a container has it."""
    shutil.copytree(SOURCE, tmp_path / "pytest_prereg", ignore=shutil.ignore_patterns("__pycache__"))
    bytecode.write(tmp_path / "pytest_prereg")
    return tmp_path


def run(root: Path, program: str) -> subprocess.CompletedProcess[str]:
    """A Python that finds the package there, writes no bytecode, and tells what it has of which file."""
    environ = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-v", "-c", program]
    return subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, check=True)


def compiled_anew(root: Path, said: str) -> list[str]:
    """Files there whose source had to be compiled."""
    places = [line.removeprefix(CODE_FROM) for line in said.splitlines() if line.startswith(CODE_FROM)]
    return [place for place in places if place.startswith(str(root))]


def test_all_that_processes_of_a_container_import_first_is_there_and_nothing_else(root: Path):
    names = (
        "'\\n'.join(m.__cached__ for n, m in sys.modules.items() if n.partition('.')[0] == 'pytest_prereg')"
    )
    done = run(root, f"import sys, {', '.join(bytecode.STARTS)}; print({names})")
    assert compiled_anew(root, done.stderr) == []
    assert {Path(line) for line in done.stdout.split()} == {*root.rglob("*.pyc")}


def test_a_source_that_is_another_than_was_compiled_counts(root: Path):
    errors = root / "pytest_prereg" / "errors.py"
    with errors.open("a") as file:
        file.write("CHANGED = 1\n")
    done = run(root, "from pytest_prereg.errors import CHANGED; print(CHANGED)")
    assert done.stdout == "1\n"
    assert compiled_anew(root, done.stderr) == [str(errors)]


def test_what_it_raises_is_told_by_where_it_lies_there(root: Path):
    place = "from pytest_prereg.errors import PreregError; print(PreregError.__init__.__code__.co_filename)"
    assert run(root, place).stdout == f"{root / 'pytest_prereg' / 'errors.py'}\n"


def test_nothing_is_sent_where_asserts_are_left_out(tmp_path: Path):
    program = (
        f"from pathlib import Path; from {bytecode.__name__} import write; write(Path({str(tmp_path)!r}))"
    )
    subprocess.run([sys.executable, "-O", "-c", program], check=True)
    assert list(tmp_path.iterdir()) == []


def test_what_was_compiled_of_another_text_is_never_sent(root: Path):
    path = next(root.joinpath("pytest_prereg").glob("errors.py"))
    text = path.read_text("utf-8")
    path.write_text("STALE = True\n", encoding="utf-8")
    py_compile.compile(str(path), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    path.write_text(text, encoding="utf-8")
    sent = dict(bytecode._compiled(root))[path]
    assert "STALE" not in marshal.loads(sent[16:]).co_names
