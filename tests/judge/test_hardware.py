"""Hardware that arms ask for is what is compared; hardware that they only happened to get is not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_prereg.evidence.environment import machine_elsewhere
from pytest_prereg.judge import judge
from pytest_prereg.judge.model import Reason, Verdict
from pytest_prereg.registry.model import Resources

QUICK, SLOW = (1.0, 1.01, 1.02, 1.0), (2.0, 2.01, 2.03, 2.0)
L4, T4 = "NVIDIA L4 | 550 | us-east | modal", "Tesla T4 | 535 | us-east | modal"
WEST = "NVIDIA L4 | 550 | us-west | modal"
ASKED = {"a": Resources(gpu="L4"), "b": Resources(gpu="T4")}


def judged(study, machines, *, asked=None, pairing="block"):
    """``machines`` are those of arms a and b, block by block."""
    made = study(contrast="a / b", pairing=pairing, predicts="<= 0.7", falsifier="> 0.9")
    for block, (on, quick, slow) in enumerate(zip(machines, QUICK, SLOW, strict=True), 1):
        for arm, machine, value in zip("ab", on, (quick, slow), strict=True):
            made.add(value, arm=arm, machine=machine, block=block if pairing == "block" else None)
    arms = {name: replace(arm, resources=(asked or {}).get(name, Resources())) for name, arm in made.experiment.arms.items()}  # fmt: skip
    prediction = made.prediction
    return judge(
        prediction,
        replace(made.experiment, arms=arms),
        made.series,
        predicts=prediction.predicts,
        falsifier=prediction.falsifier,
        scale=1.0,
        constants={},
    )


@pytest.mark.parametrize("pairing", ["block", "none"])
def test_what_the_arms_asked_for_is_what_is_compared(study, pairing):
    assert judged(study, [(L4, T4)] * 4, asked=ASKED, pairing=pairing).verdict is Verdict.SUPPORTED
    assert judged(study, [(L4, T4)] * 4, pairing=pairing).reason is Reason.SCOPE


@pytest.mark.parametrize("pairing", ["block", "none"])
def test_what_they_did_not_ask_for_must_be_alike(study, pairing):
    found = judged(study, [(WEST, T4)] * 4, asked=ASKED, pairing=pairing)
    assert found.reason is Reason.SCOPE
    assert ("block 1 ran on" in found.detail) is (pairing == "block")
    assert "us-west" in found.detail


@pytest.mark.parametrize("pairing", ["block", "none"])
def test_one_that_got_something_else_than_the_others_of_its_arm_is_out_of_scope(study, pairing):
    found = judged(study, [(L4, T4)] * 3 + [(T4, T4)], asked=ASKED, pairing=pairing)
    assert found.reason is Reason.SCOPE
    assert (
        found.detail
        == "a asked for one kind of machine, and ran on several: NVIDIA L4 | 550 and Tesla T4 | 535"
    )


def test_blocks_may_run_in_different_places_if_each_runs_in_one(study):
    west = T4.replace("us-east", "us-west")
    assert judged(study, [(L4, T4), (WEST, west)] * 2, asked=ASKED).verdict is Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("environment", "machine"),
    [
        ({"gpu": ["NVIDIA L4"], "cpu": "Xeon", "driver": "550.1", "region": "us", "backend": "modal"},
         "NVIDIA L4 | 550 | us | modal"),
        ({"gpu": "NVIDIA L4"}, "NVIDIA L4 | none | none | none"),
        ({"gpu": ["B", "A", "A"], "region": "us"}, "A + B | none | us | none"),
        ({"gpu": [], "cpu": "Xeon", "backend": "modal"}, "Xeon | none | none | modal"),
        ({"load_average": 1.0}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_a_class_of_machines_is_what_a_service_was_asked_for_and_where(environment, machine):
    assert machine_elsewhere(environment) == machine
