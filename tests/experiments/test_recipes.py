"""How recipes that run a program end it: late or in time, and with what left behind."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from experiments.left_behind import TAKE_NAME, alive, end, new_name
from experiments.recipes import ENDS, RECIPES, grader, hung_rewards
from pytest_prereg.measure.repeat import Repeat


def test_a_process_is_found_by_the_name_that_it_gave_itself_and_so_are_its_children() -> None:
    name = new_name()
    program = f"{TAKE_NAME.format(name=name)}\nimport os, time\nos.fork()\nprint(flush=True)\ntime.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read(2)
    assert process.pid in alive(name)
    assert len(alive(name)) == 2
    assert alive(new_name()) == []
    end(name)
    assert alive(name) == []
    process.communicate()


@pytest.mark.parametrize("recipe", [*RECIPES, "sandbox"])
def test_what_ends_is_not_waited_for_to_the_deadline(recipe: str) -> None:
    with grader(recipe, deadline=30.0, at_once=2) as grade:
        assert max(grade.run([ENDS, "raise SystemExit(3)"])) < 30.0


@pytest.mark.parametrize("recipe", [*RECIPES, "sandbox"])
def test_each_recipe_waits_for_the_deadline_and_nothing_is_left_after_the_repeat(recipe: str) -> None:
    repeat = Repeat(metrics=hung_rewards.metrics)
    before = time.monotonic()
    hung_rewards(repeat, recipe=recipe, hung=1, ending=1, deadline=0.3, hold=0.5)
    took, found = time.monotonic() - before, repeat.readings()
    assert not found.problems
    assert not found.missing
    assert 0.3 <= found.values["t_batch"] <= took
    assert found.instruments["overshoot"] == "program-clock"
    assert (found.diagnostics["isolation"] == "none") == (recipe != "sandbox")


def test_a_program_that_was_to_hang_and_did_not_makes_the_repeat_invalid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("experiments.recipes.NEVER_ENDS", "raise SystemExit")
    repeat = Repeat(metrics=hung_rewards.metrics)
    hung_rewards(repeat, hung=1, ending=0, deadline=5.0)
    assert repeat.readings().problems == ["a program that never ends did not reach its deadline"]
