"""A subject may change between series and not within one; data may not change at all."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from real_study import RealStudy

if TYPE_CHECKING:
    from pathlib import Path

STUDY = """\
[study]
id = "versions"

[experiments.work]
fixture = "work"
repeats = 3
subject = ["kernel.py", "kernel/**"]
data = ["rows.csv"]

[predictions.three]
claim = "The kernel yields about three."
experiment = "work"
quantity = "x"
predicts = "[2.5, 3.5]"
falsifier = "otherwise"
"""
WORK = """\
import kernel
from pytest_prereg import Repeat, experiment


@experiment(metrics={"x": "1"})
def work(repeat: Repeat) -> None:
    with open("rows.csv") as rows:
        repeat.record("x", kernel.yields() + float(rows.read()) + repeat.index / 100)
"""
KERNEL = "def yields():\n    return 1.0\n"


@pytest.fixture(scope="module")
def registered(tmp_path_factory: pytest.TempPathFactory) -> RealStudy:
    made = RealStudy(tmp_path_factory.mktemp("versions") / "study")
    made.write("predictions.toml", STUDY)
    made.write("experiments/work.py", WORK)
    made.write("kernel.py", KERNEL)
    made.write("kernel/sizes.toml", "size = 1\n")
    made.write("rows.csv", "2\n")
    made.register()
    return made


@pytest.fixture(scope="module")
def measured(registered: RealStudy, tmp_path_factory: pytest.TempPathFactory) -> RealStudy:
    study = registered.copy(tmp_path_factory.mktemp("measured") / "study")
    code, output = study.run()
    assert code == 0, output
    commit(study)
    return study


def commit(study: RealStudy) -> None:
    for command in (["add", "--all"], ["commit", "--quiet", "--message", "x"]):
        subprocess.run(["git", *command], cwd=study.path, check=True)


def judged(study: RealStudy, *options: str) -> dict[str, Any]:
    """The record of the one prediction."""
    _, output = study.run("--prereg-json", "records.json", *options)
    try:
        (record,) = json.loads((study.path / "records.json").read_text())["predictions"]
    except (OSError, ValueError) as error:
        raise AssertionError(output) from error
    return record


def headers(study: RealStudy) -> list[dict[str, Any]]:
    return [line for line in study.lines("work") if line["type"] == "header"]


def test_evidence_names_subject_and_data(measured: RealStudy):
    (header,) = headers(measured)
    assert header["subject"].startswith("sha256:")
    assert header["data"].startswith("sha256:")


def test_a_decided_claim_stays_decided_whatever_becomes_of_its_files(measured: RealStudy, tmp_path: Path):
    study = measured.copy(tmp_path / "study")
    plain = judged(study)
    study.write("kernel.py", KERNEL.replace("1.0", "7.0"))
    changed = judged(study)
    for name in ("kernel.py", "rows.csv"):
        (study.path / name).unlink()
    gone = judged(study)

    assert [one["verdict"] for one in (plain, changed, gone)] == ["supported"] * 3
    assert not {"earlier subject", "earlier code"} & {*plain["flags"]}
    assert {"earlier subject", "earlier code"} & {*changed["flags"]} == {"earlier subject"}
    assert {"earlier subject", "earlier code"} <= {*gone["flags"]}
    assert len(headers(study)) == 1


def test_a_new_version_is_measured_without_an_amendment_and_changed_data_are_not(
    measured: RealStudy, tmp_path: Path
):
    study = measured.copy(tmp_path / "study")
    study.write("kernel/sizes.toml", "size = 2\n")
    commit(study)
    study.run("--prereg-fresh")
    first, second = headers(study)
    assert (first["series"], second["series"]) == (1, 2)
    assert first["subject"] != second["subject"]
    assert (first["source"], first["data"]) == (second["source"], second["data"])

    study.write("rows.csv", "3\n")
    _, output = study.run("--prereg-fresh")
    assert "PR103" in output
    assert len(headers(study)) == 2


def test_an_open_series_is_not_filled_up_from_another_version(registered: RealStudy, tmp_path: Path):
    study = registered.copy(tmp_path / "study")
    edited = KERNEL.replace("1.0", "1.1")
    study.write("kernel.py", KERNEL + f"\n\nopen('kernel.py', 'w').write({edited!r})\n")
    code, output = study.run()
    assert code != 0
    assert "the subject of experiment" in output
    assert judged(study)["verdict"] == "supported"
    assert [header["series"] for header in headers(study)] == [1, 2]
    assert "abandoned series" in judged(study)["flags"]


def test_one_series_of_two_versions_decides_nothing(
    measured: RealStudy, registered: RealStudy, tmp_path: Path
):
    """Two branches used the same number, each for its own version."""
    study, branch = measured.copy(tmp_path / "study"), registered.copy(tmp_path / "branch")
    branch.write("kernel.py", KERNEL.replace("1.0", "1.1"))
    branch.run()
    (content,) = branch.files("work").values()
    (name,) = branch.files("work")
    study.write(f"experiments/evidence/work/{name}", content.decode())
    commit(study)

    record = judged(study)
    assert (record["verdict"], record["reason"]) == ("inconclusive", "integrity")


def test_what_is_not_there_is_told_before_anything_is_launched(registered: RealStudy, tmp_path: Path):
    study = registered.copy(tmp_path / "study")
    (study.path / "rows.csv").unlink()
    code, output = study.run()
    assert code != 0
    assert 'PR043: experiment "work": "data": "rows.csv" matches no file' in output
    assert study.files("work") == {}
