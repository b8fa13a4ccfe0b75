from __future__ import annotations

import pytest

from pytest_prereg.registry.load import load_study
from pytest_prereg.report.power import outlook, samples_line

STUDY = """
[study]
id = "power"

[experiments.e]
metrics = { t = "s" }
repeats = 7
[experiments.e.arms]
a = {}
b = {}

[predictions.fast]
claim = "Fast."
experiment = "e"
arm = "a"
quantity = "t"
predicts = "<= 1 s"
falsifier = ">= 2 s"
expected = 0.8
detect = 2.5
cv = 0.1

[predictions.unsaid]
claim = "Faster."
experiment = "e"
contrast = "a - b"
quantity = "t"
predicts = "<= 0 s"
falsifier = ">= 0.5 s"
"""


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "predictions.toml"
    path.write_text(STUDY)
    return load_study(path)


def text(study, name, **options):
    return "\n".join(outlook(study, study.predictions[name], **options))


def row(text, start):
    return next(line for line in text.splitlines() if line.strip().startswith(start)).split()


def test_each_named_value_has_its_chances(study):
    said = text(study, "fast")
    assert "mean of t, arm a, over 7 repeats" in said
    assert "0.8 s (expected)        > 0.99" in said
    # P(t interval of 7 normal values at the edge lies below it) is a half of 5 %.
    assert row(said, "1 s")[2:] == ["0.02", "<", "0.01", "0.97"] or "0.03" in row(said, "1 s")
    assert "at 2.5 s (detect)" in said
    assert "7 (planned)" in said


def test_what_is_asked_for_is_tabulated(study):
    said = text(study, "fast", values=[0.97], repeats=[3, 40])
    table = said.split("at 0.97 s (asked)")[1].split("\n\n")[0]
    assert [line.split()[0] for line in table.strip().splitlines()[1:3]] == ["3", "40"]
    assert "from 84 on, P(supported) is at least 0.8" in table


def test_fewer_repeats_than_the_method_needs_never_suffice(study):
    said = text(study, "fast", values=[-9.0], repeats=[2])
    assert "from 3 on, P(supported)" in said.split("at -9 s")[1]
    assert row(said.split("at 0.8 s (expected)")[1], "2")[1:3] == ["<", "0.01"]


def test_without_a_spread_it_says_what_is_missing(study):
    assert "with --sd or in predictions.toml" in text(study, "unsaid")
    assert "P(undecided)" in text(study, "unsaid", sd=0.1)
    assert "with --sd" in text(study, "unsaid", cv=0.1)


def test_the_samples_that_a_repeat_is_worth():
    # Kalibera and Jones 2013: sqrt(120 / 2 * 5 ** 2 / 2 ** 2) = 19.36
    said = samples_line(run_cost=120, sample_cost=2, run_sd=2, sample_sd=5)
    assert said.startswith("19 samples a repeat")
    assert samples_line(run_cost=1, sample_cost=100, run_sd=9, sample_sd=1).startswith("1 samples")


def test_repeats_to_try_need_a_true_value(study):
    said = " ".join(text(study, "unsaid", sd=0.1, repeats=[5]).split())
    assert "-n asks about a true value: name one with --at" in said
    assert "-n asks" not in text(study, "fast", repeats=[5])


def test_no_line_of_prose_is_wider_than_the_terminal(study):
    assert max(map(len, outlook(study, study.predictions["unsaid"], width=60))) <= 60
