"""The decorator, and what the package itself offers."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pytest_prereg
from pytest_prereg import Repeat, experiment


def test_a_decorated_function_is_the_function_itself():
    def body(repeat):
        repeat.record("k", 3)

    declared = experiment(metrics={"k": "1"}, preload=["json"])(body)
    assert declared is body
    assert declared.metrics == {"k": "1"}
    assert declared.preload == ("json",)


def test_a_body_can_be_called_with_a_repeat_of_its_own_metrics():
    @experiment(metrics={"k": {"unit": "token", "exact": True}})
    def body(repeat, *, tokens=4):
        repeat.record("k", tokens)

    repeat = Repeat(metrics=body.metrics)
    body(repeat, tokens=5)
    assert repeat.readings().values == {"k": 5.0}


def test_a_metric_without_a_unit_is_refused_where_it_is_declared():
    with pytest.raises(TypeError, match='metric "k" has no unit'):
        experiment(metrics={"k": {"exact": True}})


def test_a_metric_that_is_no_identifier_is_refused_where_it_is_declared():
    with pytest.raises(TypeError, match="'t gen' is not an identifier"):
        experiment(metrics={"t gen": "s"})


def test_the_package_knows_its_version_and_nothing_that_it_has_not():
    assert pytest_prereg.__version__.count(".") >= 2
    with pytest.raises(AttributeError, match="no attribute 'Repeats'"):
        _ = pytest_prereg.Repeats


def test_importing_what_a_body_needs_loads_nothing_heavy():
    heavy = {"numpy", "scipy", "torch", "msgspec", "pint", "click"}
    program = f"import sys; from pytest_prereg import Repeat, experiment; print({heavy!r} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
