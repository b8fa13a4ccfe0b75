"""Voiding a series: its support is gone, its refutation stays, and it is not measured anew."""

from __future__ import annotations

import pytest
from small_study import ROWS

VOID = ("void", "--reason", "measured with the wrong cable")


def recorded(project):
    return project.process("--prereg", "--prereg-verify", "--prereg-record", "-p", "no:cacheprovider")


@pytest.fixture
def voided(at_stage):
    """A study whose verdicts are recorded, and whose one series is voided since."""
    project = at_stage("recorded")
    project.done(*VOID, "rows/1")
    return project


def test_support_is_gone_and_a_refutation_stays(voided, records):
    found = records(voided)
    assert (found["below-two"]["verdict"], found["below-two"]["reason"]) == ("inconclusive", "integrity")
    assert found["below-two"]["changed"]
    assert found["above-two"]["verdict"] == "refuted"
    assert found["near-one"]["reason"] == "straddles"
    for name in ("below-two", "above-two", "near-one"):
        assert "voided" in found[name]["flags"]


def test_the_recorded_support_no_longer_follows_and_the_reason_is_told(voided, judge):
    result = judge(voided)
    assert result.ret == 1
    said = '*PR211: the recorded verdict of "below-two", "supported", does not follow*gives inconclusive: '
    result.stdout.fnmatch_lines(
        [
            f"{said}what gave supported does not stand: series rows/1 is voided (measured with the wrong cable)*"
        ]
    )
    result.stdout.no_fnmatch_line('*PR2*"above-two"*')
    recorded(voided)
    assert judge(voided).ret == 0


def test_voiding_reopens_nothing(voided):
    """A complete series decides for good: the next one is a replication."""
    voided.write(
        "again.csv", "repeat,metric,value,unit\n" + "".join(f"{at},wall,1.{at},s\n" for at in range(1, 6))
    )
    voided.done("import", "again.csv", "--experiment", "rows")
    recorded(voided)
    lock = (voided.path / "predictions.lock").read_text()
    assert 'reason = "integrity"' in lock
    assert "series = 2" not in lock


def test_a_series_that_was_voided_before_its_end_takes_in_nothing_more(at_stage, records):
    project = at_stage("registered")
    header, *rows = ROWS.splitlines()
    project.write("some.csv", "\n".join([header, *rows[:2]]))
    project.done("import", "some.csv", "--experiment", "rows")
    project.done(*VOID, "rows/1")
    project.commit("Void what was begun")
    assert records(project)["below-two"]["status"] == "pending"
    project.write("rows.csv", "\n".join([header, *(row.replace(",1.", ",1.00") for row in rows)]))
    project.done("import", "rows.csv", "--experiment", "rows")
    found = records(project)["below-two"]
    assert (found["verdict"], found["series"]) == ("supported", 2)
    assert "abandoned series" in found["flags"]
    assert "voided" not in found["flags"]
    told = project.done("explain", "below-two")
    assert "voided" in told
    assert "wrong cable" in told


@pytest.mark.parametrize(
    ("series", "said"),
    [
        ("rows/1", 'PR150: "rows/1" is voided already: measured with the wrong cable'),
        ("rows/2", 'PR007: no series of the evidence is called "rows/2"; did you mean "rows/1"?'),
    ],
)
def test_what_cannot_be_voided_is_refused(voided, series, said):
    result = voided.prereg(*VOID, series)
    assert result.exit_code != 0
    assert said in result.output
