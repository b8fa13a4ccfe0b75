"""What the commands say about predictions, repeats and imports."""

from __future__ import annotations

import pytest

from pytest_prereg.evidence.model import Finished, Outcome, Started
from pytest_prereg.judge.design import Chances, DesignReport
from pytest_prereg.registry.judging import thresholds
from pytest_prereg.registry.load import load_study
from pytest_prereg.report.commands import (
    duration_text,
    imported_lines,
    registered_lines,
    repeat_lines,
    value_text,
    whole_text,
)

STUDY = """
[study]
id = "s"
[experiments.runs]
repeats = 7
pairing = "block"
metrics = { t = "s", tokens = { unit = "token", exact = true } }
[experiments.runs.arms]
old = {}
new = {}
[experiments.loose]
metrics = { t = "s" }
[predictions.faster]
claim = "c"
experiment = "runs"
contrast = "new / old"
quantity = "t"
predicts = "<= 0.9"
falsifier = ">= 1"
[predictions.small]
claim = "c"
experiment = "runs"
arm = "new"
quantity = "t"
predicts = "[1 s, 2 s]"
falsifier = "outside [0 s, 3 s]"
[predictions.open]
claim = "c"
experiment = "loose"
quantity = "t"
statistic = "median"
unit = "s"
predicts = "<= 0.9"
falsifier = ">= 1"
"""


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "predictions.toml"
    path.write_text(STUDY)
    return load_study(path)


def lines_of(study, name, unit, report, width=80):
    prediction = study.predictions[name]
    experiment = study.experiments[prediction.experiment]
    return registered_lines(
        prediction, {experiment.id: experiment}, thresholds(prediction, unit), report, width
    )


def test_a_registration_says_what_is_estimated_and_how_it_is_decided(study):
    power = Chances(at=0.8, supported=0.999, refuted=0.001)
    assert lines_of(study, "faster", "1", DesignReport(power=power)) == [
        "registered  faster",
        "            geometric mean of t, new / old, paired over 7 blocks",
        "            supported: whole 95 % interval ≤ 0.9; refuted: whole interval ≥ 1",
        "            P(supported) > 0.99 and P(refuted) < 0.01 at 0.8",
    ]


def test_an_unknown_power_is_said(study):
    lines = lines_of(study, "small", "s", DesignReport(notes=("no cv given, power unknown",)))
    assert lines[1] == "            mean of t, arm new, over 7 repeats"
    assert lines[-1] == "            no cv given, power unknown"
    assert "in [1, 2] s" in " ".join(lines)
    assert "power unknown" in lines_of(study, "small", "s", DesignReport())[-1]


@pytest.mark.parametrize("contrast", ["plateau(old, new)", "increasing(old, new)"])
def test_a_comparison_of_all_arms_names_none_of_them(tmp_path, contrast):
    path = tmp_path / "predictions.toml"
    path.write_text(STUDY.replace('arm = "new"', f'contrast = "{contrast}"'))
    line = lines_of(load_study(path), "small", "s", DesignReport())[1]
    assert line.strip() == f"{contrast} of t, paired over 7 blocks"


def test_repeats_that_are_not_registered_are_all_used(study):
    assert "over all repeats that are imported" in lines_of(study, "open", "s", DesignReport())[1]


@pytest.mark.parametrize("width", [40, 60, 100])
def test_a_registration_fits_its_width(study, width):
    assert all(len(line) <= width for line in lines_of(study, "small", "s", DesignReport(), width))


def finished(**changes):
    values = {"t": [0.5, 1.5], "tokens": 512.0}
    return Finished(repeat="runs/0/new/1", attempt=1, outcome=Outcome.PILOT, **{"values": values, **changes})


STARTED = Started(repeat="runs/0/new/1", arm="new", index=1, attempt=1)


def test_a_tried_repeat_shows_its_values(study):
    (line,) = repeat_lines(study.experiments["runs"], STARTED, finished(), arms=["old", "new"])
    assert line == "new   t 1 s (mean of 2)   tokens 512 token"


def test_a_failed_repeat_shows_that_and_what_it_recorded_before(study):
    failed = finished(values={"t": 0.5}, cause="exception")
    (line,) = repeat_lines(study.experiments["runs"], STARTED, failed, arms=["new"])
    assert line == "new   t 0.5 s   FAILED: exception"


def test_many_values_take_several_lines(study):
    assert repeat_lines(study.experiments["runs"], STARTED, finished(), arms=["new"], width=30) == [
        "new   t 1 s (mean of 2)",
        "      tokens 512 token",
    ]


def test_values_are_told_in_four_digits(study):
    metrics = study.experiments["runs"].metrics
    assert value_text(0.123456, metrics["t"]) == "0.1235 s"
    assert value_text(123456.0, metrics["tokens"]) == "123456 token"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.034, "0.034 s"), (25.2, "25 s"), (240, "4 min"), (9000, "2.5 h")]
)
def test_durations_are_told_in_two_digits(seconds, text):
    assert duration_text(seconds) == text
    assert whole_text({"old": 7, "new": 7}, seconds) == f"14 repeats would take about {text}"


class TestImportedLines:
    """An import says what is still missing, and what to type next."""

    def lines(self, study, arms, planned=7, **options):
        from types import SimpleNamespace as Some

        file = Some(header=None, attempts=[Some(arm=arm, outcome=Outcome.OK) for arm in arms])
        series = Some(
            number=2,
            surplus=0,
            complete=False,
            planned={"old": planned, "new": planned},
            repeats=[Some(arm=arm) for arm in arms],
        )
        return imported_lines(study.experiments["runs"], file, series, **options)

    def test_a_complete_series_is_judged_next(self, study):
        assert self.lines(study, ["new", "old"] * 7) == [
            "imported 14 repeats (new 7, old 7) of runs into series 2",
            "next:  pytest --prereg-verify --prereg-record",
        ]

    def test_an_incomplete_series_says_what_it_wants(self, study):
        lines = self.lines(study, ["new"] * 7)
        assert lines[1] == "series 2 still wants 7 repeats (old 7)"
        assert lines[2] == "next:  pytest-prereg import FILE --experiment runs"

    @pytest.mark.parametrize(
        ("given", "wanted"),
        [
            ({"--arm": "new", "--format": None, "--select": None}, " --arm old"),
            ({"--arm": "new", "--select": "a b"}, " --arm old --select NAME"),
            (
                {"--arm": "old", "--format": "pyperf", "--select": "a b"},
                " --arm old --format pyperf --select 'a b'",
            ),
        ],
    )
    def test_the_next_file_is_given_with_what_it_would_be_refused_without(self, study, given, wanted):
        line = self.lines(study, ["new"] * 7, options=given)[-1]
        assert line == f"next:  pytest-prereg import FILE --experiment runs{wanted}"
