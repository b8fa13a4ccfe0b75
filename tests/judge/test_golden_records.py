"""The same evidence gives the same record: studies with fixed values, judged with every Python and scipy.

If a record differs from the committed one, an estimate, an interval or a digest of somebody's registration has
moved. Where that is meant, ``python tests/judge/golden_writing.py`` writes the records anew.
"""

from __future__ import annotations

import json

import pytest
from golden_judging import RECORDS, corpus, records

from pytest_prereg.judge import Reason, Verdict
from pytest_prereg.registry.estimands import combinations
from pytest_prereg.registry.load import load_study

SHOWN = 5


@pytest.fixture(scope="module")
def committed():
    return RECORDS.read_text(encoding="utf-8").splitlines()


def test_every_study_gives_the_record_that_is_committed(committed):
    made = list(records(corpus()))
    differing = [f"- {old}\n+ {new}" for old, new in zip(committed, made, strict=False) if old != new]
    assert not differing, f"{len(differing)} differ:\n" + "\n".join(differing[:SHOWN])
    assert len(made) == len(committed)


def test_the_corpus_has_every_accepted_plan(tmp_path):
    found = set()
    for line in corpus():
        if "text" in line:
            study = load_study(tmp_path / "predictions.toml", text=line["text"])
            for prediction in study.predictions.values():
                found |= {
                    (*_estimand(prediction), experiment.pairing, _early(experiment))
                    for experiment in (study.experiments[name] for name in prediction.experiments)
                }
    accepted = {(*each.estimand, each.pairing, each.early) for each in combinations() if each.refusal is None}
    assert accepted <= found


def test_the_corpus_has_every_verdict_and_every_reason(committed):
    lines = [json.loads(line) for line in committed]
    assert {line["verdict"] for line in lines if "verdict" in line} == set(Verdict)
    assert {line["reason"] for line in lines if "reason" in line} == set(Reason)


def _estimand(prediction):
    operator = prediction.contrast.operator if prediction.contrast else None
    return prediction.statistic, operator, prediction.reduction


def _early(experiment):
    if experiment.stopping is None:
        return None
    return "anytime" if experiment.stopping.anytime else "looks"
