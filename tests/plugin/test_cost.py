"""What the plugin costs a project that has no predictions: nothing."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

OURS = {"pytest_prereg", "pytest_prereg.plugin", "pytest_prereg.hookspecs"}
LOADED = """
import json, sys
import pytest
code = pytest.main(sys.argv[1:])
assert code in (0, 5), code
print("modules", json.dumps(sorted(sys.modules)))
"""


@pytest.fixture
def plain(tmp_path):
    (tmp_path / "conftest.py").write_text("def pytest_addoption(parser): parser.addoption('--stage')\n")
    (tmp_path / "test_ordinary.py").write_text("def test_one(): pass\ndef test_two(): pass\n")
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = '--strict-markers'\n")
    return tmp_path


def python(folder, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def modules(folder, *options: str) -> set[str]:
    last = python(folder, "-c", LOADED, "-p", "no:cacheprovider", *options).splitlines()[-1]
    return set(json.loads(last.removeprefix("modules ")))


def test_unused_it_loads_two_small_modules_and_nothing_heavy(plain):
    added = modules(plain) - modules(plain, "-p", "no:prereg")

    assert added <= OURS  # so none of numpy, scipy, torch, msgspec, pint, click, markdown_it


def test_collecting_tests_prints_the_same_with_it_and_without(plain):
    (plain / "predictions.toml").write_text("[predictions.one]\nclaim = 'never read'\n[[[")
    collect = ("-m", "pytest", "--co", "-q", "-p", "no:cacheprovider")

    with_it, without = (
        python(plain, *collect, *options).splitlines() for options in ((), ("-p", "no:prereg"))
    )

    assert with_it[:-1] == without[:-1]
    assert with_it[-1].startswith("2 tests collected in ")


def test_the_parser_of_markdown_is_for_citing_alone(at_stage):
    project = at_stage("recorded")
    project.write("README.md", "It took <!-- prereg: below-two.estimate -->1.1<!-- /prereg --> s.\n")

    loaded = modules(project.path, "--prereg", "--prereg-verify")

    assert "pytest_prereg.audit.assess" in loaded
    assert not {"markdown_it", "pytest_prereg.audit.citing.markdown"} & loaded
