"""Asking for the driver's buffered samples where there is no driver."""

from __future__ import annotations

import pytest

from experiments.buffered_samples import buffered_samples
from pytest_prereg import Repeat


@pytest.mark.torch
def test_without_a_device_the_repeat_says_so():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a device")
    repeat = Repeat(metrics=buffered_samples.metrics)
    buffered_samples(repeat, seconds=1.0)
    (problem,) = repeat.readings().problems
    assert problem.startswith("there is no CUDA device")
