"""Checks on public benchmark results with known answers, run as a user would: every step a process of its own."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CLAIMS = json.loads((Path(__file__).parents[1] / "cases" / "claims.json").read_text(encoding="utf-8"))
GROUPED = {"amy-899": "three captures of one build are one repeat"}


def name_of(claim: dict) -> str:
    return f"{claim['id']}-{claim['check']}"


def key_of(claim: dict) -> str:
    return name_of(claim).replace(".", "-")


def studies() -> list[dict[str, list[dict]]]:
    """Claims by what they are about. The same numbers can't be imported twice, so another take is another study."""
    made: list[dict[str, list[dict]]] = [{}, {}]
    for claim in CLAIMS:
        made[claim.get("reason") == "scope"].setdefault(claim["id"], []).append(claim)
    return made


def runs_in(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in {"CI", "PYTEST_ADDOPTS"}}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done


def experiment_of(claim: dict) -> str:
    counts = {arm: len(values) for arm, values in claim["arms"].items()}
    if claim["id"] in GROUPED:
        counts = dict.fromkeys(counts, 3)
    if claim.get("reason") == "n-too-small":
        counts = dict.fromkeys(counts, 3)
    arms = "\n".join(f"{arm} = {{ repeats = {count} }}" for arm, count in counts.items())
    if claim["pairing"] == "block":
        arms = "\n".join(f"{arm} = {{}}" for arm in counts)
    return f"""
[experiments.{claim["id"]}]
pairing = "{claim["pairing"]}"
repeats = {max(counts.values())}
metrics = {{ value = "1" }}
[experiments.{claim["id"]}.arms]
{arms}
"""


def prediction_of(claim: dict) -> str:
    contrast = f'contrast = "{claim["contrast"]}"' if claim["contrast"] else ""
    return f"""
[predictions.{key_of(claim)}]
claim = "{claim["check"]}"
experiment = "{claim["id"]}"
{contrast}
quantity = "value"
predicts = "{claim["predicts"]}"
falsifier = "{claim["falsifier"]}"
"""


def write_rows(path: Path, claim: dict) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow(("arm", "repeat", "metric", "value", "unit", "machine", "group"))
        for arm, values in claim["arms"].items():
            machine = arm if claim.get("reason") == "scope" else "one"
            group = f"{arm}-build" if claim["id"] in GROUPED else ""
            for number, value in enumerate(values, 1):
                rows.writerow((arm, number, "value", value, "1", machine, group))


def records_of(study: dict[str, list[dict]], folder: Path) -> dict[str, dict]:
    """Registers a study, imports the results that its claims are about, and judges it."""
    (confidence,) = {claim["confidence"] for claims in study.values() for claim in claims}
    text = f'[study]\nid = "public"\nconfidence = {confidence}\n'
    for claims in study.values():
        text += experiment_of(claims[0]) + "".join(map(prediction_of, claims))
    (folder / "predictions.toml").write_text(text, encoding="utf-8")
    prereg = (sys.executable, "-m", "pytest_prereg")
    for command in (
        ("git", "init", "-q"),
        ("git", "config", "user.name", "A Reader"),
        ("git", "config", "user.email", "reader@example.org"),
        (*prereg, "lock"),
        ("git", "add", "predictions.toml", "predictions.lock"),
        ("git", "commit", "-qm", "Register"),
    ):
        done = runs_in(folder, *command)
        assert done.returncode == 0, done.stdout + done.stderr
    for name, claims in study.items():
        write_rows(folder / "rows.csv", claims[0])
        imported = runs_in(folder, *prereg, "import", "rows.csv", "--experiment", name)
        assert imported.returncode == 0, imported.stdout + imported.stderr
    runs_in(
        folder, sys.executable, "-m", "pytest", "--prereg", "--prereg-verify", "--prereg-json", "out.json"
    )
    told = json.loads((folder / "out.json").read_text(encoding="utf-8"))["predictions"]
    return {record["id"]: record for record in told}


@pytest.fixture(scope="module")
def records(tmp_path_factory) -> dict[str, dict]:
    """The record of each claim."""
    first, second = (records_of(study, tmp_path_factory.mktemp("public")) for study in studies())
    return first | second


@pytest.mark.parametrize("claim", CLAIMS, ids=name_of)
def test_a_public_claim_gets_its_verdict(claim, records):
    record = records[key_of(claim)]

    if claim.get("reason") == "n-too-small" and record["status"] == "pending":
        assert record["verdict"] is None
        return
    assert record["verdict"] == claim["verdict"]
    assert record["reason"] == claim.get(
        "reason", "straddles" if claim["verdict"] == "inconclusive" else None
    )
    assert (record["order"], record["standing"]) == ("registered", "confirmatory")
    if "interval" in claim:
        assert record["interval"] == pytest.approx(claim["interval"], rel=5e-5)
        assert record["estimate"] == pytest.approx(claim["estimate"], rel=5e-5)
