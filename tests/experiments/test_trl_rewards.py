"""Rewards of TRL's trainer that only sleep: a training step with each kind of them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_prereg.measure.repeat import Repeat

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
ROOT = Path(__file__).parents[2]
has_trl = importlib.util.find_spec("trl") is not None


@pytest.mark.skipif(has_trl, reason="TRL is installed")
def test_without_trl_a_sentence_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import experiments.trl_rewards"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.endswith("these experiments need TRL: pip install --group study\n")


@pytest.mark.skipif(not has_trl, reason="needs TRL: pip install --group study")
@pytest.mark.parametrize("kind", ["sync", "async", "async-blocking", "one-by-one", "gathered"])
def test_a_step_has_its_time_and_that_of_its_rewards(kind: str, tmp_path) -> None:
    from experiments.trl_rewards import trl_rewards

    repeat = Repeat(metrics=trl_rewards.metrics, workdir=tmp_path)
    trl_rewards(repeat, kind=kind, functions=2, pause=0.01, steps=1)
    found = repeat.readings()
    assert not found.problems
    assert 0.01 <= found.values["t_rewards"] <= found.values["t_step"]
