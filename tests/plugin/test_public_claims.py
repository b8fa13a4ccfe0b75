"""Checks on public benchmark results with known answers, run as a user would: every step a process of its own."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

CLAIMS = json.loads((Path(__file__).parents[1] / "cases" / "claims.json").read_text(encoding="utf-8"))
GROUPED = {"amy-899": "three captures of one build are one repeat"}


def name_of(claim: dict) -> str:
    return f"{claim['id']}-{claim['check']}"


@pytest.fixture
def shell(tmp_path, monkeypatch):
    for variable in ("CI", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(variable, raising=False)

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return done

    run("git", "init", "-q")
    run("git", "config", "user.name", "A Reader")
    run("git", "config", "user.email", "reader@example.org")
    return run


def study_of(claim: dict) -> str:
    counts = {arm: len(values) for arm, values in claim["arms"].items()}
    if claim["id"] in GROUPED:
        counts = dict.fromkeys(counts, 3)
    if claim.get("reason") == "n-too-small":
        counts = dict.fromkeys(counts, 3)
    arms = "\n".join(f"{arm} = {{ repeats = {count} }}" for arm, count in counts.items())
    if claim["pairing"] == "block":
        arms = "\n".join(f"{arm} = {{}}" for arm in counts)
    contrast = f'contrast = "{claim["contrast"]}"' if claim["contrast"] else ""
    return f"""
[study]
id = "public"
confidence = {claim["confidence"]}

[experiments.runs]
pairing = "{claim["pairing"]}"
repeats = {max(counts.values())}
metrics = {{ value = "1" }}
[experiments.runs.arms]
{arms}

[predictions.check]
claim = "{claim["check"]}"
experiment = "runs"
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


def verdict_of(claim: dict, folder: Path, shell) -> dict:
    (folder / "predictions.toml").write_text(study_of(claim), encoding="utf-8")
    write_rows(folder / "rows.csv", claim)
    prereg = (sys.executable, "-m", "pytest_prereg")
    locked = shell(*prereg, "lock")
    assert locked.returncode == 0, locked.stdout + locked.stderr
    shell("git", "add", "predictions.toml", "predictions.lock")
    shell("git", "commit", "-qm", "Register")
    imported = shell(*prereg, "import", "rows.csv", "--experiment", "runs")
    assert imported.returncode == 0, imported.stdout + imported.stderr
    shell(sys.executable, "-m", "pytest", "--prereg", "--prereg-verify", "--prereg-json", "out.json")
    (record,) = json.loads((folder / "out.json").read_text(encoding="utf-8"))["predictions"]
    return record


@pytest.mark.parametrize("claim", CLAIMS, ids=name_of)
def test_a_public_claim_gets_its_verdict(claim, tmp_path, shell):
    record = verdict_of(claim, tmp_path, shell)

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
