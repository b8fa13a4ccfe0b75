"""What is shipped: the wheel has what the package reads at run time, the sdist what it takes to build and test."""

from __future__ import annotations

import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "pytest_prereg"

pytestmark = pytest.mark.skipif(not PACKAGE.is_dir(), reason="runs in a checkout or an unpacked sdist")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    builder = pytest.importorskip("hatchling.builders.wheel").WheelBuilder
    folder = tmp_path_factory.mktemp("wheel")
    return zipfile.ZipFile(next(builder(str(ROOT)).build(directory=str(folder), versions=["standard"])))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    builder = pytest.importorskip("hatchling.builders.sdist").SdistBuilder
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(
        next(builder(str(ROOT)).build(directory=str(folder), versions=["standard"]))
    ) as archive:
        return {name.split("/", 1)[1] for name in archive.getnames()}


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: zipfile.ZipFile):
    shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}
    there = {
        path.relative_to(ROOT).as_posix()
        for path in PACKAGE.rglob("*")
        if path.suffix in {".py", ".json", ".typed"}
    }
    assert shipped == there


def test_the_wheel_is_typed_and_ships_its_schemas(wheel: zipfile.ZipFile):
    names = set(wheel.namelist())
    assert "pytest_prereg/py.typed" in names
    schemas = {f"pytest_prereg/{name}.schema.json" for name in ("predictions", "records", "audit")}
    assert schemas <= names


def test_the_wheel_declares_plugin_command_and_licence(wheel: zipfile.ZipFile):
    folder = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")).rsplit("/", 1)[0]
    points = wheel.read(f"{folder}/entry_points.txt").decode()
    assert "[pytest11]\nprereg = pytest_prereg.plugin" in points
    assert "pytest-prereg = pytest_prereg.cli:main" in points
    metadata = message_from_bytes(wheel.read(f"{folder}/METADATA"))
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"
    assert {"torch", "modal", "slurm", "report", "all"} <= set(metadata.get_all("Provides-Extra"))


def test_torch_is_an_extra_and_not_required(wheel: zipfile.ZipFile):
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    required = message_from_bytes(wheel.read(name)).get_all("Requires-Dist")
    assert [line for line in required if line.startswith("torch") and "extra ==" not in line] == []


def test_the_sdist_can_be_built_and_tested_and_carries_no_evidence(sdist: set[str]):
    assert {"pyproject.toml", "README.md", "LICENSE", "tests/conftest.py", "docs/index.md"} <= sdist
    assert not [name for name in sdist if name.startswith(("experiments/", ".ci/", "docs/_build/"))]
