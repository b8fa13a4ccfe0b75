from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_prereg.judge
from pytest_prereg.judge import Reason

CLAIMS = json.loads((Path(__file__).parents[1] / "cases" / "claims.json").read_text(encoding="utf-8"))


def test_importing_the_judge_loads_neither_numpy_nor_scipy():
    program = (
        "import sys, pytest_prereg.judge.verdicts, pytest_prereg.judge.design, pytest_prereg.judge.power;"
        "print(sorted({'numpy', 'scipy', 'pint'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", pytest_prereg.judge.__all__)
def test_every_documented_name_is_there_and_documented(name):
    assert getattr(pytest_prereg.judge, name).__doc__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'bootstrap'"):
        pytest_prereg.judge.bootstrap  # noqa: B018


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim['id']}:{claim['check']}")
def test_a_public_claim_gets_its_verdict(study, claim):
    made = study(
        predicts=claim["predicts"],
        falsifier=claim["falsifier"],
        confidence=claim["confidence"],
        pairing=claim["pairing"],
    )
    apart = claim.get("reason") == "scope"
    made.contrast = claim["contrast"]
    for arm, values in claim["arms"].items():
        kept = [sum(values) / len(values)] if claim["id"] == "amy-899" else values
        made.extend(*kept, arm=arm if claim["contrast"] else "", machine=arm if apart else "one")
    judgement = made.judge()
    assert judgement.verdict == claim["verdict"]
    assert judgement.reason == claim.get("reason", judgement.reason and Reason.STRADDLES)
    if "interval" in claim:
        assert judgement.interval == pytest.approx(claim["interval"], rel=5e-5)
        assert judgement.estimate == pytest.approx(claim["estimate"], rel=5e-5)
