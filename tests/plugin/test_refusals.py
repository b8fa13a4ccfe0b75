"""Bad input, through the two commands that people type: each message has place, code, text and advice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

TOML, LOCK = "predictions.toml", "predictions.lock"
CONFLICT = "<<<<<<< HEAD\n{0}\n=======\n{1}\n>>>>>>> other"


@pytest.fixture
def project(at_stage):
    return at_stage("halfway")


@pytest.fixture
def refused(project, judge):
    """Both commands refuse the study, in the same words, and measure nothing; returns the words by line."""

    def both() -> list[str]:
        lines = locked_in_vain(project)
        result = judge(project)
        said = result.stdout.str() + result.stderr.str()
        assert result.ret == pytest.ExitCode.INTERRUPTED, said
        assert "Traceback" not in said
        assert [line for line in result.outlines if line in lines] == lines, said
        assert project.repeats_run() == 0
        return lines

    return both


def locked_in_vain(project) -> list[str]:
    """What ``pytest-prereg lock`` says when it refuses; the lock stays as it was."""
    before = (project.path / LOCK).read_bytes() if (project.path / LOCK).is_file() else None
    result = project.prereg("lock")
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit), result.exception
    after = (project.path / LOCK).read_bytes() if (project.path / LOCK).is_file() else None
    assert after == before
    return result.output.splitlines()


# What is wrong with a study itself


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        pytest.param(
            'falsifier = ">= 3 s"',
            'falsifer = ">= 3 s"',
            ['predictions.toml:17: PR003: prediction "below-two" has unknown key "falsifer"; did you mean "falsifier"?'],
            id="unknown-key",
        ),
        pytest.param(
            'experiment = "work"',
            'experiment = "werk"',
            ['predictions.toml:50: PR007: prediction "quick-is-quicker" names unknown experiment "werk"; did you mean "work"?'],
            id="unknown-experiment",
        ),
        pytest.param(
            'quantity = "t"',
            'quantity = "1 / tt"',
            ['predictions.toml:52: PR007: prediction "quick-is-quicker": quantity "1 / tt" uses unknown metric "tt"; did you mean "t"?'],
            id="unknown-metric",
        ),
        pytest.param(
            "quick / slow",
            "quick / slwo",
            ['predictions.toml:51: PR007: prediction "quick-is-quicker" names unknown arm "slwo" of experiment "work"; did you mean "slow"?'],
            id="unknown-arm",
        ),
        pytest.param(
            'fixture = "work"',
            'fixture = "wrok"',
            ['predictions.toml:42: PR040: experiment "work": no @experiment function is called "wrok"; did you mean "work"?'],
            id="unknown-fixture",
        ),
        pytest.param(
            "spin = 1",
            "spn = 1",
            [
                'predictions.toml:45: PR007: experiment "work", "arms.quick": "work" takes no "spn"; did you mean "spin"?',
                'predictions.toml:45: PR004: experiment "work", "arms.quick": "work" needs a value for "spin"',
            ],
            id="unknown-parameter",
        ),
        pytest.param(
            'quantity = "t"',
            'quantity = "__import__(\'os\')"',
            ["predictions.toml:52: PR0*__import__*"],
            id="quantity-that-would-run-code",
        ),
        pytest.param(
            '"<= 2 s"',
            '"<= 4 s"',
            ['predictions.toml:17: PR030: prediction "below-two": "predicts" is "<= 4 s" and "falsifier" is ">= 3 s"; they overlap*'],
            id="overlap",
        ),
        pytest.param(
            'falsifier = "< 2 s"\n',
            "",
            ['predictions.toml:20: PR031: prediction "above-two" has no "falsifier": state the value that would prove it wrong*'],
            id="no-falsifier",
        ),
        pytest.param(
            '"<= 2 s"',
            '"<= two s"',
            ['predictions.toml:16: PR032: prediction "below-two", "predicts": "<= two s" is no region; write "<= x"*'],
            id="no-region",
        ),
        pytest.param(
            '"<= 2 s"',
            '"<= nan s"',
            ['predictions.toml:16: PR032: prediction "below-two", "predicts": "<= nan s" holds a number that is not finite*'],
            id="nan-in-a-region",
        ),
        pytest.param(
            "repeats = 5",
            "repeats = nan",
            [
                'predictions.toml:6: PR009: "experiments.rows.repeats" is "nan", which is not a finite number',
                'predictions.toml:6: PR005: experiment "rows": "repeats" is "nan"; it must be a whole number of at least 1*',
            ],
            id="nan",
        ),
        pytest.param(
            "spin = 1",
            "spin = inf",
            ['predictions.toml:45: PR009: "experiments.work.arms.quick.spin" is "inf", which is not a finite number'],
            id="infinite-parameter",
        ),
        pytest.param(
            "[predictions.above-two]",
            "[predictions.below-two]",
            [
                'predictions.toml:20: PR002: "below-two" in "predictions" is given twice, first on line 12; keep one',
                *["predictions.toml:*: PR002: *is given twice*"] * 5,
            ],
            id="duplicate-id",
        ),
        pytest.param(
            "repeats = 5",
            CONFLICT.format("repeats = 5", "repeats = 6"),
            ['predictions.toml:6: PR010: merge-conflict marker "<<<<<<<"; decide between the two sides first'],
            id="conflict-markers",
        ),
        pytest.param(
            "repeats = 5",
            "<<<<<<< HEAD\nrepeats = 5",
            ['predictions.toml:6: PR001: not valid TOML at "<<<<<<< HEAD": *'],
            id="a-marker-left-behind",
        ),
        pytest.param(
            "It takes less",
            "I\u0308t takes less",
            ['predictions.toml:13: PR009: "I\u0308t takes less than two seconds." is not in Unicode normal form NFC*'],
            id="not-nfc",
        ),
    ],
)  # fmt: skip
def test_a_study_that_is_wrong_is_refused_by_both_commands(project, refused, old, new, said):
    text = (project.path / TOML).read_text(encoding="utf-8")
    assert old in text
    project.write(TOML, text.replace(old, new, 1))

    lines = [line for line in refused() if not line.startswith(" ")]

    assert len(lines) == len(said)
    pytest.LineMatcher(lines).fnmatch_lines(said, consecutive=True)


def test_everything_that_is_wrong_is_told_at_once_in_the_order_of_the_file(project, refused):
    project.edit(TOML, 'falsifier = ">= 3 s"\ntags', 'falsifer = ">= 3 s"\ntags')
    project.edit(TOML, 'falsifier = "< 2 s"\n', "")
    project.edit(TOML, 'experiment = "work"', 'experiment = "werk"')

    codes = [line.split(": ")[:2] for line in refused()]

    assert codes == [
        [f"{TOML}:17", "PR003"],
        [f"{TOML}:20", "PR031"],
        [f"{TOML}:49", "PR007"],
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"", ':1: PR004: the file lacks "[study]"', id="empty"),
        pytest.param(b"\n\n# nothing\n", ':1: PR004: the file lacks "[study]"', id="comments"),
        pytest.param(b"\x00\x01\x02", ":1: PR001: *", id="binary"),
        pytest.param(b"\xff\xfe[\x00s\x00", ": PR001: is not UTF-8: byte 0 is 0xff", id="utf-16"),
        pytest.param(b"[study\n", ':1: PR001: not valid TOML at "[[]study"*', id="torn"),
        pytest.param(b"[" * 100_000, "*: PR001: *", id="deep"),
        pytest.param(
            b"a = '" + b"x" * 5_000_000 + b"'", ':1: PR003: the file has unknown table "a"*', id="huge"
        ),
    ],
)
def test_a_file_that_is_no_study(project, refused, content, said):
    (project.path / TOML).write_bytes(content)

    first, *_ = lines = refused()

    pytest.LineMatcher([first]).fnmatch_lines([f"{TOML}{said}"])
    assert max(map(len, lines)) < 1000


def test_a_folder_in_place_of_the_study(project, judge):
    (project.path / TOML).unlink()
    (project.path / TOML).mkdir()

    assert locked_in_vain(project) == ["predictions.toml: PR001: can't be read: it is a folder, and no file"]
    result = judge(project)
    result.stderr.fnmatch_lines(["ERROR: *predictions.toml is a folder, and not a study"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_a_folder_in_place_of_the_lock(project, refused):
    (project.path / LOCK).unlink()
    (project.path / LOCK).mkdir()

    assert (
        refused()[0] == "predictions.lock: PR011: unreadable lock: can't be read: it is a folder, and no file"
    )


@pytest.mark.parametrize(
    "rewrite",
    [
        pytest.param(lambda data: data.replace(b"\n", b"\r\n"), id="crlf"),
        pytest.param(lambda data: b"\xef\xbb\xbf" + data, id="bom"),
        pytest.param(lambda data: data + b"# " + b"x" * 5_000_000, id="huge-comment"),
        pytest.param(lambda data: data.rstrip(b"\n"), id="no-final-newline"),
    ],
)
def test_what_only_an_editor_changes_is_no_change(project, judge, rewrite):
    for name in (TOML, LOCK):
        (project.path / name).write_bytes(rewrite((project.path / name).read_bytes()))

    assert "nothing new: 5 predictions are registered as they stand" in project.done("lock")
    result = judge(project, "--prereg-verify")
    assert result.parseoutcomes() == {"failed": 1, "passed": 1, "inconclusive": 1, "pending": 2}


# What only registering can tell


def test_units_that_do_not_agree_are_refused_and_never_judged(project, judge):
    project.edit(TOML, 'falsifier = ">= 3 s"', 'falsifier = ">= 3 kg"')
    project.edit(TOML, '"[0.999, 1.001] s"', '"[0.999, 1.001]"')
    project.git("rm", "-q", "--cached", LOCK)
    (project.path / LOCK).unlink()

    assert locked_in_vain(project) == [
        'predictions.toml:17: PR021: quantity "wall" is in s, but "falsifier" is in kg',
        'predictions.toml:31: PR021: quantity "wall" is in s, but "predicts" has no unit; write "[0.999, 1.001] s"',
    ]
    result = judge(project, "--prereg-verify", "-k", "below-two")
    result.stdout.fnmatch_lines(["predictions.toml:*: PR021: *kg*"])
    assert result.parseoutcomes() == {"errors": 1, "deselected": 4}
    assert "Traceback" not in result.stdout.str()


def test_a_ratio_has_no_unit(project):
    project.edit(TOML, '"<= 0.5"', '"<= 0.5 s"')
    (project.path / LOCK).unlink()

    assert locked_in_vain(project) == [
        'predictions.toml:53: PR021: the ratio of two arms has no unit, but "predicts" is in s'
    ]


def test_too_few_repeats_are_refused_with_what_is_needed(project):
    project.edit(TOML, "repeats = 5", "repeats = 2")
    (project.path / LOCK).unlink()

    lines = locked_in_vain(project)

    assert lines[:2] == [
        'predictions.toml:12: PR034: "below-two" can never be decided with 2 repeats: a mean needs 3.',
        "    Raise repeats.",
    ]
    assert len(lines) == 6


# The lock


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        pytest.param(
            lambda text: text[:500], "*: PR011: unreadable lock: not valid TOML at *", id="truncated"
        ),
        pytest.param(
            lambda text: text.replace("version = 1", "version = 9"),
            ':2: PR011: unreadable lock: it is in version "9" of the format, and this release reads version 1',
            id="version",
        ),
        pytest.param(
            lambda text: text.replace("version = 1", CONFLICT.format("version = 1", "version = 1")),
            ':2: PR010: merge-conflict marker "<<<<<<<"; decide between the two sides first',
            id="conflict-markers",
        ),
        pytest.param(
            lambda text: text.replace('unit = "s"', 'unit = "s"\nlucky = true', 1),
            ':*: PR011: unreadable lock: prediction "above-two": unknown key "lucky"; valid: "digest"*',
            id="unknown-key",
        ),
        pytest.param(
            lambda text: text.replace('digest = "sha256:', 'digest = "sha1:', 1),
            ':*: PR011: unreadable lock: prediction "above-two": *digest*',
            id="no-digest",
        ),
        pytest.param(
            lambda text: text.replace('study = "small"', 'study = "other"'),
            ': PR011: it registers study "other", and this is study "small"',
            id="another-study",
        ),
    ],
)
def test_a_lock_that_cannot_be_trusted(project, refused, damage, said):
    text = (project.path / LOCK).read_text(encoding="utf-8")
    project.write(LOCK, damage(text))

    first, *advice = refused()

    pytest.LineMatcher([first]).fnmatch_lines([f"{LOCK}{said}"])
    assert advice
    assert all(line.startswith("    ") for line in advice)


def test_a_lock_of_other_bytes(project, refused):
    (project.path / LOCK).write_bytes(b"\x80\x81 lock")

    assert refused() == [
        "predictions.lock: PR011: unreadable lock: can't be read: it is not UTF-8 text",
        "    Nobody has to edit it: restore it with git checkout HEAD -- predictions.lock",
    ]


def test_conflict_markers_in_the_lock_name_the_driver_that_avoids_them(project, refused):
    project.edit(LOCK, "version = 1", CONFLICT.format("version = 1", "version = 1"))

    assert "pytest-prereg init --merge-driver && git checkout -m -- predictions.lock" in "".join(refused())


# What differs from what is registered


def test_a_study_that_changed_after_it_was_registered(project, judge):
    project.edit(TOML, '"<= 0.5"', '"<= 0.6"')

    assert locked_in_vain(project) == [
        'predictions.toml:48: PR104: "quick-is-quicker" is no longer what was registered',
        "    Restore it, or say why it changed: pytest-prereg amend quick-is-quicker --reason '...'",
    ]
    result = judge(project, "-k", "quick")
    result.stdout.fnmatch_lines(
        [
            'predictions.toml:48: PR104: "quick-is-quicker" is not what the lock at HEAD registers, so nothing was measured*',
            "    Restore it, or: pytest-prereg amend quick-is-quicker --reason '…' && git add *",
        ]
    )
    assert (result.parseoutcomes(), project.repeats_run()) == ({"pending": 1, "deselected": 4}, 0)


def test_code_that_changed_after_it_was_registered(project, judge):
    project.edit("experiments/work.py", "0.25", "0.5")

    assert locked_in_vain(project) == [
        'predictions.toml:48: PR103: "quick-is-quicker" would run other code than was registered: experiment "work" changed',
        "    Restore it, or say why it changed: pytest-prereg amend quick-is-quicker --reason '...'",
    ]
    result = judge(project, "-k", "quick")
    result.stdout.fnmatch_lines(
        [
            'predictions.toml:48: PR103: "quick-is-quicker" was registered with other code of experiment "work"*'
        ]
    )
    assert (result.parseoutcomes(), project.repeats_run()) == ({"pending": 1, "deselected": 4}, 0)


def test_comments_in_code_are_no_change(project):
    project.edit("experiments/work.py", "import time", "# as fast as it goes\nimport time")

    assert "nothing new" in project.done("lock")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("@experiment", "def x(:\n@experiment", 'experiments/work.py:7: PR041: "experiments.work" is no Python: invalid syntax'),
        ('metrics={"t": "s"}', "metrics=METRICS", 'experiments/work.py:7: PR041: experiment "work" must declare its metrics as a literal*'),
    ],
    ids=["syntax", "metrics"],
)  # fmt: skip
def test_code_that_cannot_be_read(project, refused, old, new, said):
    project.edit("experiments/work.py", old, new)

    pytest.LineMatcher(refused()[:1]).fnmatch_lines([said])


# Git


def test_without_git_registering_works_and_measuring_does_not(project, judge):
    shutil.rmtree(project.path / ".git")

    assert "nothing new" in project.done("lock")
    result = judge(project, "-k", "quick")
    result.stdout.fnmatch_lines(
        [
            'predictions.toml:48: PR101: "quick-is-quicker" is not in a git repository, so nothing was measured for it*',
            "    git init && git add predictions.* experiments/*.py && git commit *",
        ]
    )
    assert (result.parseoutcomes(), project.repeats_run()) == ({"pending": 1, "deselected": 4}, 0)


@pytest.mark.parametrize("is_locked", [True, False])
def test_before_the_first_commit_nothing_is_measured(project, judge, is_locked):
    project.git("update-ref", "-d", "HEAD")
    if not is_locked:
        (project.path / LOCK).unlink()

    result = judge(project, "-k", "quick")

    command = "git add predictions.* experiments/*.py && git commit *"
    result.stdout.fnmatch_lines(
        [
            'predictions.toml:48: PR102: "quick-is-quicker" is not in the lock at HEAD, so nothing was measured for it*',
            f"    {command}" if is_locked else f"    pytest-prereg lock && {command}",
        ]
    )
    assert (result.parseoutcomes(), project.repeats_run()) == ({"pending": 1, "deselected": 4}, 0)


@pytest.mark.parametrize(
    "damage", ["rm -r .git/objects", "echo nonsense > .git/HEAD", "echo '[core' > .git/config"]
)
def test_a_broken_repository_measures_nothing_and_says_so(project, judge, damage):
    subprocess.run(damage, shell=True, cwd=project.path, check=True)

    result = judge(project, "-k", "quick")

    said = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in said
    assert "INTERNALERROR" not in said
    assert any(code in said for code in ("PR101", "PR102", "PR212"))
    assert project.repeats_run() == 0


# Evidence


def uncommitted(project) -> None:
    project.git("rm", "-rq", "--cached", "experiments/evidence")
    project.git("commit", "-qm", "Forget")


@pytest.mark.parametrize(
    ("place", "reason"),
    [("experiments/evidence", "Not a directory"), ("experiments/evidence/rows", "Not a directory")],
)
def test_evidence_that_is_no_folder(project, judge, place, reason):
    uncommitted(project)
    shutil.rmtree(project.path / place)
    project.write(place, "")

    result = judge(project)

    result.stdout.fnmatch_lines([f"{place}: PR124: evidence can't be read: {reason}"])
    assert (result.ret, project.repeats_run()) == (pytest.ExitCode.INTERRUPTED, 0)
    assert "Traceback" not in result.stdout.str()


def test_evidence_that_is_a_loop_of_links(project, judge):
    uncommitted(project)
    place = project.path / "experiments" / "evidence"
    shutil.rmtree(place)
    place.symlink_to("evidence")

    result = judge(project)

    result.stdout.fnmatch_lines(["*: PR124: evidence can't be read: Too many levels of symbolic links"])
    assert "Traceback" not in result.stdout.str()
    assert project.repeats_run() == 0


@pytest.mark.parametrize("name", [".", "rows"])
def test_evidence_that_may_not_be_read(project, judge, name):
    uncommitted(project)
    place = project.path / "experiments" / "evidence" / name
    place.chmod(0)
    if os.access(place, os.R_OK, effective_ids=True):
        pytest.skip("root may read everything")

    result = judge(project)

    place.chmod(0o700)
    result.stdout.fnmatch_lines(["*: PR124: evidence can't be read: Permission denied"])
    assert project.repeats_run() == 0


# In processes of their own, as they are typed


def test_the_commands_themselves_exit_with_the_message_and_no_traceback(project):
    project.edit(TOML, '"<= 2 s"', '"<= 4 s"')

    lock = subprocess.run(
        [sys.executable, "-m", "pytest_prereg", "lock"],
        cwd=project.path,
        capture_output=True,
        text=True,
        check=False,
    )
    run = project.process("--prereg")

    assert (lock.returncode, run.returncode) == (1, pytest.ExitCode.INTERRUPTED)
    assert lock.stdout == ""
    assert lock.stderr.startswith('predictions.toml:17: PR030: prediction "below-two": ')
    assert lock.stderr.strip() in run.stdout
    assert "Traceback" not in lock.stderr + run.stdout + run.stderr


def test_a_study_without_predictions_says_so(project, judge):
    project.write(TOML, '[study]\nid = "small"\n')
    (project.path / LOCK).unlink()

    result = judge(project)

    result.stdout.fnmatch_lines(["predictions.toml has no predictions yet: *"])
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
