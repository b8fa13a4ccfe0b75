"""Ways to a false "supported" that looks confirmatory, each tried as its author would: by command or by editor."""

from __future__ import annotations

import json

import pytest

SLOW = (2.91, 3.12, 3.33, 3.04, 3.25)


def rows(values, unit="s"):
    lines = (f"{index},wall,{value},{unit}\n" for index, value in enumerate(values, 1))
    return "repeat,metric,value,unit\n" + "".join(lines)


def as_json(values):
    return json.dumps(
        [{"repeat": f"r{i}", "metric": "wall", "value": v, "unit": "s"} for i, v in enumerate(values)]
    )


# Importing the same numbers again


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("again.csv", rows(SLOW) + "\n"),
        ("again.csv", rows(SLOW[::-1])),
        ("again.csv", rows(SLOW[:4])),
        ("again.csv", rows((*SLOW, 9.0))),
        ("again.json", as_json(SLOW)),
    ],
    ids=["a blank line more", "another order", "some of them", "one more", "another format"],
)
def test_the_same_numbers_are_not_taken_in_twice(at_stage, name, text):
    project = at_stage("registered")
    project.write("rows.csv", rows(SLOW))
    project.done("import", "rows.csv", "--experiment", "rows")
    project.write(name, text)

    result = project.prereg("import", name, "--experiment", "rows")

    assert result.exit_code == 1
    assert f"{name}: PR119: its repeats were imported already, all or some of them, as" in result.output
    assert len(project.evidence()) == 1


def test_coarse_numbers_may_come_again(at_stage):
    project = at_stage("registered")
    project.write("rows.csv", rows((1, 1, 2, 1, 2)))
    project.done("import", "rows.csv", "--experiment", "rows")
    project.write("rows.csv", rows((1, 2, 1, 1, 2)))

    assert "into series 2" in project.done("import", "rows.csv", "--experiment", "rows")


def test_more_repeats_than_registered_with_the_best_first_are_told(at_stage, records):
    project = at_stage("registered")
    project.write("rows.csv", rows((1.01, 1.12, 0.93, 1.04, 0.95, *SLOW)))
    told = project.done("import", "rows.csv", "--experiment", "rows")
    assert "5 more than registered: kept, and left out" in told

    verdict = records(project)["below-two"]

    assert (verdict["verdict"], verdict["n"], verdict["flags"]) == (
        "supported",
        5,
        ["imported", "surplus repeats"],
    )


def test_values_without_a_unit_are_told_to_be_taken_in_the_declared_one(at_stage):
    project = at_stage("registered")
    project.write("rows.csv", "repeat,metric,value\n1,wall,1010\n")

    assert "no unit is given for wall: taken to be in s" in project.done(
        "import", "rows.csv", "--experiment", "rows"
    )


# Registering so much that something must fit


def test_a_prediction_and_its_opposite_are_not_both_registered(at_stage):
    project = at_stage("registered")
    text = (project.path / "predictions.toml").read_text()
    table = text[text.index("[predictions.near-one]") : text.index("[predictions.not-there]")]
    table = table.replace("near-one", "far-off").replace("[0.999, 1.001] s", "outside [0.5, 1.5] s")
    table = table.replace('falsifier = "outside [0.5, 1.5] s"', 'falsifier = "[0.999, 1.001] s"')
    project.write("predictions.toml", text + table)

    result = project.prereg("lock")

    assert result.exit_code == 1
    assert 'PR036: "far-off" predicts the opposite of "near-one"' in result.output


def test_two_studies_do_not_share_an_id(at_stage, judge):
    project = at_stage("judged")
    text = (project.path / "predictions.toml").read_text()
    project.write("predictions/other.toml", text.replace('"<= 2 s"', '"<= 0.1 s"'))

    locked = project.prereg("lock", "--study", "predictions/other.toml")
    judged = judge(project)

    told = [
        'PR002: study id "small" is that of predictions/other.toml, too',
        'PR002: study id "small" is that of predictions.toml, too',
    ]
    assert locked.exit_code == 1
    assert f"predictions/other.toml: {told[1]}" in locked.output
    judged.stdout.fnmatch_lines([f"predictions.toml: {told[0]}", f"predictions/other.toml: {told[1]}"])
    judged.assert_outcomes(errors=2)


def test_a_narrow_interval_of_low_confidence_confirms_nothing(at_stage, judge, records):
    project = at_stage("written")
    project.edit("predictions.toml", 'id = "small"', 'id = "small"\nconfidence = 0.5')
    assert "50 % interval ≤ 2 s; refuted: whole interval ≥ 3 s; exploratory" in " ".join(
        project.done("lock").split()
    )
    project.commit("Register")
    project.done("import", "rows.csv", "--experiment", "rows")
    project.commit("Evidence")

    verdict = records(project)["below-two"]
    locked = judge(project, "--prereg-locked", "-k", "below-two")

    assert (verdict["verdict"], verdict["standing"]) == ("supported", "exploratory")
    assert verdict["flags"] == ["imported", "low confidence"]
    locked.stdout.fnmatch_lines(['*"below-two" is exploratory: its confidence is 0.5, and below 0.95'])


# The lock, edited by hand


def in_milliseconds(at_stage):
    """The study in which the rows are milliseconds and the regions seconds, with evidence that refutes it."""
    project = at_stage("written")
    project.edit(
        "predictions.toml", 'metrics = { wall = "s" }\nrepeats = 5', 'metrics = { wall = "ms" }\nrepeats = 5'
    )
    project.done("lock")
    project.commit("Register")
    project.write("rows.csv", rows([1000 + 1000 * value for value in SLOW], "ms"))
    project.done("import", "rows.csv", "--experiment", "rows")
    project.commit("Evidence")
    return project


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("scale = 0.001", "scale = 0.0001"),
        ("scale = 0.001\n", ""),
        ('unit = "s"\nscale', 'unit = "min"\nscale'),
    ],
    ids=["another scale", "no scale", "another unit"],
)
def test_a_unit_that_was_changed_in_the_lock_changes_no_verdict(at_stage, judge, old, new):
    project = in_milliseconds(at_stage)
    project.edit("predictions.lock", old, new)

    result = judge(project, "-k", "below-two")

    result.stdout.fnmatch_lines(
        ['*predictions.lock: PR104: "below-two" has unit * and was registered with "s" and 0.001']
    )
    result.stdout.fnmatch_lines(["*below-two*4.13*s*n 5*"])
    result.assert_outcomes(errors=1)
    checked = project.prereg("lock", "--check")
    assert checked.exit_code == 1
    assert 'PR104: "below-two" has unit' in checked.output


def test_a_lock_of_another_study_registers_nothing(at_stage, judge):
    project = at_stage("measurable")
    project.edit("predictions.toml", 'id = "measured"', 'id = "renamed"')

    result = judge(project)

    result.stdout.fnmatch_lines(['*PR011: it registers study "measured", and this is study "renamed"'])
    assert project.repeats_run() == 0


# The registration, changed after the data


def left_as_it_is(project):
    """The study is changed, and the lock is not."""


def made_anew(project):
    (project.path / "predictions.lock").unlink()
    project.done("lock")


def amended(project):
    project.done("amend", "above-two", "--reason", "a slip of the pen")


@pytest.mark.parametrize("committed", [False, True], ids=["uncommitted", "committed"])
@pytest.mark.parametrize("lock", [left_as_it_is, made_anew, amended])
@pytest.mark.parametrize(
    "edit",
    [
        ('predicts = ">= 3 s"\nfalsifier = "< 2 s"', 'predicts = ">= 0.5 s"\nfalsifier = "< 0.4 s"'),
        ('quantity = "wall"\npredicts = ">= 3 s"', 'quantity = "wall * 9"\npredicts = ">= 3 s"'),
        ('quantity = "wall"\npredicts = ">= 3 s"', 'quantity = "9 - wall"\npredicts = ">= 3 s"'),
    ],
    ids=["threshold", "factor", "direction"],
)
def test_goalposts_that_move_after_the_data_make_it_exploratory(at_stage, records, lock, committed, edit):
    project = at_stage("judged")
    project.edit("predictions.toml", *edit)
    lock(project)
    if committed:
        project.commit("Move the goalposts")

    verdict = records(project, "-k", "above-two")["above-two"]

    assert (verdict["verdict"], verdict["standing"], verdict["order"]) == (
        "supported",
        "exploratory",
        "mismatch",
    )


def test_exploring_first_and_registering_then_is_told(at_stage, records):
    project = at_stage("measurable")
    project.git("rm", "-q", "predictions.lock")
    project.commit("Nothing is registered")
    explored = records(project, "--prereg-explore")["quick-is-quicker"]
    project.done("lock")
    project.git("add", "predictions.lock")
    project.git("commit", "-qm", "Register")

    again = records(project, "--prereg-verify")["quick-is-quicker"]
    measured = records(project)["quick-is-quicker"]

    assert (explored["standing"], explored["order"]) == ("exploratory", "unregistered")
    assert (again["standing"], again["order"]) == ("exploratory", "after-evidence")
    assert (measured["series"], measured["standing"], measured["flags"]) == (
        2,
        "confirmatory",
        ["instrument-unstated", "earlier data"],
    )


def test_amending_after_a_verdict_marks_the_next_one_for_good(at_stage, records):
    project = at_stage("recorded")
    project.edit(
        "predictions.toml",
        'predicts = ">= 3 s"\nfalsifier = "< 2 s"',
        'predicts = ">= 0.5 s"\nfalsifier = "< 0.4 s"',
    )
    project.done("amend", "above-two", "--reason", "it was the wrong way round")
    project.commit("Amend")
    project.write("more.csv", rows((1.03, 1.14, 0.91, 1.02, 0.98)))
    project.done("import", "more.csv", "--experiment", "rows")
    project.commit("More evidence")

    verdict = records(project)["above-two"]

    assert (verdict["verdict"], verdict["series"]) == ("supported", 2)
    assert verdict["flags"] == [
        "imported",
        "earlier data",
        "amended after data",
        "was refuted before it was amended",
    ]


def test_an_experiment_that_was_renamed_does_not_hide_its_data(at_stage, records):
    project = at_stage("judged")
    text = (project.path / "predictions.toml").read_text()
    project.write(
        "predictions.toml", text.replace("experiments.rows", "experiments.lines").replace('"rows"', '"lines"')
    )
    project.done("amend", "--experiment", "lines", "--reason", "a better name")
    project.commit("Amend")
    project.write("more.csv", rows((1.03, 1.14, 0.91, 1.02, 0.98)))
    project.done("import", "more.csv", "--experiment", "lines")
    project.commit("More evidence")

    verdict = records(project)["below-two"]

    assert (verdict["series"], verdict["flags"]) == (
        1,
        ["imported", "earlier data", "amended after data"],
    )


def test_new_words_for_a_claim_are_told(at_stage, judge, records):
    project = at_stage("recorded")
    project.edit("predictions.toml", "It takes less than two seconds.", "It is faster than everything else.")

    verdict = records(project)["below-two"]
    locked = judge(project, "--prereg-locked", "-k", "below-two")

    assert (verdict["standing"], verdict["flags"]) == ("confirmatory", ["imported", "reworded"])
    locked.stdout.fnmatch_lines(['*PR104: "below-two" no longer claims it in the words that were registered'])
    locked.assert_outcomes(errors=1)


PATCH = """\
import pytest_prereg.measure.repeat as module

record = module.Repeat.record
module.Repeat.record = lambda self, name, value: record(self, name, value / 4 if self.arm == "quick" else value)
"""


def test_a_module_that_is_preloaded_is_code_of_the_experiment(at_stage, records):
    project = at_stage("measurable")
    project.write("patch.py", PATCH)
    project.edit("predictions.toml", 'fixture = "work"', 'fixture = "work"\npreload = ["patch"]')
    project.commit("Preload something")

    verdict = records(project)["quick-is-quicker"]

    assert verdict["verdict"] is None
    assert project.repeats_run() == 0
    assert 'PR103: "quick-is-quicker" would run other code' in project.prereg("lock", "--check").output


def test_units_that_do_not_fit_are_an_error_and_not_a_crash(at_stage, judge):
    project = at_stage("judged")
    project.edit("predictions.toml", 'predicts = "<= 2 s"', 'predicts = "<= 2 token"')

    result = judge(project, "-k", "below-two")

    result.stdout.fnmatch_lines(['predictions.toml:12: PR021: prediction "below-two": *'])
    result.assert_outcomes(errors=1)


# One series number, used twice


def on_two_branches(project, values, others):
    """Imports ``values`` as series 1 on one branch, ``others`` on another, and merges them."""
    project.write("rows.csv", rows(others))
    project.git("checkout", "-qb", "other")
    project.done("import", "rows.csv", "--experiment", "rows")
    project.git("add", "experiments")
    project.git("commit", "-qm", "Evidence")
    project.git("checkout", "-q", "main")
    project.write("rows.csv", rows(values))
    project.done("import", "rows.csv", "--experiment", "rows")
    project.git("add", "experiments")
    project.git("commit", "-qm", "Evidence")
    project.git("merge", "-q", "-m", "Merge", "other")


def test_two_branches_that_disagree_decide_nothing(at_stage, records):
    project = at_stage("registered")
    on_two_branches(project, (1.01, 1.12, 0.93, 1.04, 0.95), SLOW)

    verdict = records(project)["below-two"]

    assert (verdict["verdict"], verdict["reason"]) == ("inconclusive", "integrity")


def test_two_branches_that_agree_decide_and_it_is_told(at_stage, records):
    project = at_stage("registered")
    on_two_branches(project, (1.01, 1.12, 0.93, 1.04, 0.95), (1.02, 1.13, 0.94, 1.05, 0.96))

    verdict = records(project)["below-two"]

    assert (verdict["verdict"], verdict["flags"]) == ("supported", ["imported", "disputed"])


# Evidence that is removed or altered, and the change committed


def removed(project):
    project.evidence()[0].unlink()


def moved_away(project):
    project.edit("predictions.toml", 'id = "small"', 'id = "small"\nevidence = "elsewhere"')
    project.git("rm", "-q", "-r", "experiments")


def altered(project):
    path = project.evidence()[0]
    lines = path.read_text().replace('"wall":1.01}', '"wall":0.98}').splitlines(keepends=True)[:-1]
    path.write_text("".join(lines))


@pytest.mark.parametrize("change", [removed, moved_away, altered])
def test_committed_evidence_that_is_gone_is_told_for_good(at_stage, judge, records, change):
    project = at_stage("judged")
    name = project.evidence()[0].name
    change(project)
    project.commit("Tidy up")
    project.write("more.csv", rows((1.03, 1.14, 0.91, 1.02, 0.98)))
    project.prereg("import", "more.csv", "--experiment", "rows")
    project.commit("Evidence")

    verdict = records(project)["below-two"]
    locked = judge(project, "--prereg-locked", "-k", "below-two")

    assert verdict["verdict"] == "supported"
    assert verdict["flags"] == ["imported", "evidence removed"]
    locked.stdout.fnmatch_lines([f"*PR207: evidence *{name} (*) was committed, and is gone or altered"])


def test_evidence_that_was_moved_or_has_grown_is_not_gone(at_stage, records):
    project = at_stage("judged")
    whole = project.evidence()[0].read_text()
    project.evidence()[0].write_text("".join(whole.splitlines(keepends=True)[:3]))
    project.git("reset", "-q", "--soft", "HEAD~1")
    project.commit("Some of it")
    project.evidence()[0].write_text(whole)
    project.commit("All of it")
    project.edit("predictions.toml", 'id = "small"', 'id = "small"\nevidence = "elsewhere"')
    project.git("mv", "experiments/evidence", "elsewhere")
    project.commit("Move it")

    verdict = records(project)["below-two"]

    assert (verdict["verdict"], verdict["order"], verdict["flags"]) == (
        "supported",
        "registered",
        ["imported"],
    )


# Repeats that are run again until they fit


KILLED_WHEN_SLOW = """\
import os
from pathlib import Path

from pytest_prereg import Repeat, experiment


@experiment(metrics={"t": "s"})
def work(repeat: Repeat, *, spin: int) -> None:
    with Path(__file__).with_name("witness.txt").open("a") as witness:
        print(repeat.arm, file=witness)
    attempts = Path(__file__).with_name("witness.txt").read_text().splitlines()
    if len(attempts) == 2:
        os.kill(os.getpid(), 9)
    repeat.record("t", spin * 0.25 + repeat.index * 0.001)
"""


def test_a_repeat_that_was_run_again_is_told(at_stage, records):
    project = at_stage("measurable")
    project.write("experiments/work.py", KILLED_WHEN_SLOW)
    project.done("amend", "quick-is-quicker", "--reason", "it kills itself")
    project.commit("Amend")

    verdict = records(project)["quick-is-quicker"]

    assert project.repeats_run() == 7
    assert (verdict["verdict"], verdict["flags"]) == (
        "supported",
        ["instrument-unstated", "repeats run again"],
    )
