"""The ``prereg`` fixture of ordinary tests: experiments to run, verdicts to read, nothing judged or kept."""

from __future__ import annotations


def run(project, judge, body: str):
    project.write("test_ordinary.py", f"import pytest\n\n\ndef test_it(prereg):\n    {body}\n")
    return judge(project, "test_ordinary.py", "-s", asked=False)


def test_an_experiment_runs_in_fresh_processes_and_leaves_no_evidence(at_stage, judge):
    project = at_stage("halfway")

    result = run(
        project, judge, "print('values', sorted(one.values['t'] for one in prereg('work').run(n=2)))"
    )

    result.stdout.fnmatch_lines(["*values [[]0.251, 0.252, 1.001, 1.002[]]*"])
    assert project.repeats_run() == 4
    assert project.evidence("work") == []


def test_one_arm_alone(at_stage, judge):
    project = at_stage("halfway")

    assert run(project, judge, "assert len(prereg('work').run(n=2, arm='slow')) == 2").ret == 0
    assert project.repeats_run() == 2


def test_a_verdict_is_read_from_what_is_recorded(at_stage, judge):
    body = "record = prereg.verdict('above-two'); assert (record.verdict, record.order) == ('refuted', 'registered')"

    assert run(at_stage("halfway"), judge, body).ret == 0


def test_names_that_are_not_there(at_stage, judge):
    project = at_stage("halfway")
    for body, said in (
        ("prereg('wrok')", 'PR007: unknown experiment "wrok"; did you mean "work"?'),
        ("prereg('rows')", 'PR007: unknown experiment "rows"; valid: "work"'),
        ("prereg.verdict('below')", 'PR007: unknown prediction "below"*'),
        ("prereg('work').run(arm='slwo')", '*"slwo"*"slow"*'),
    ):
        result = run(project, judge, body)

        result.stdout.fnmatch_lines([f"E * {said}"])
        assert result.parseoutcomes() == {"failed": 1}


def test_nothing_is_left_of_what_failed_repeats_printed(at_stage, judge, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    project = at_stage("halfway")
    project.edit(
        "experiments/work.py", "repeat.record(", "raise ValueError(print('said'))\n    repeat.record("
    )

    body = "assert {one.outcome for one in prereg('work').run()} == {'task-failed'}"

    assert run(project, judge, body).ret == 0
    assert list(tmp_path.glob("prereg-*")) == []
