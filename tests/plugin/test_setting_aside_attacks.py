"""Ways round a refutation that somebody could try: a series held back, exclusions, voiding what it rests on."""

from __future__ import annotations

import subprocess
import sys

import pytest
from real_study import RealStudy, plain_environment

HEAD = '[study]\nid = "attacked"\n'
STUDY = (
    HEAD
    + """
[experiments.work]
fixture = "work"
repeats = 4
subject = ["subject.txt"]

[predictions.quick]
claim = "It takes less than two seconds."
experiment = "work"
quantity = "t"
predicts = "< 2 s"
falsifier = ">= 2 s"
"""
)
GUARD = STUDY.replace(
    'claim = "It', 'kind = "guard"\nexpected = 1.0\ndetect = 3.0\ncv = 0.02\nclaim = "It'
).replace("repeats = 4", "repeats = 5")
WORK = """\
import os
import time

from pytest_prereg import Repeat, experiment


@experiment(metrics={"t": "s"})
def work(repeat: Repeat) -> None:
    time.sleep(float(os.environ.get("SLEEPS", "0")))
    repeat.record("t", float(os.environ["TAKES"]) + repeat.index / 100)
"""


def imported(name: str, repeats: int) -> str:
    return f'[experiments.{name}]\nrepeats = {repeats}\nmetrics = {{ t = "s" }}\n'


def claim(name: str, below: str, more: str = "", experiment: str = "rows") -> str:
    return (
        f'[predictions.{name}]\nclaim = "{name} is so"\nexperiment = "{experiment}"\nquantity = "t"\n'
        f'predicts = "<= {below} s"\nfalsifier = "> {below} s"\n{more}'
    )


@pytest.fixture
def make(tmp_path):
    def made(text: str) -> RealStudy:
        study = RealStudy(tmp_path / "study")
        study.write("predictions.toml", text)
        study.write("experiments/work.py", WORK)
        study.write("subject.txt", "1")
        study.register()
        return study

    return made


def command(study: RealStudy, *arguments: str) -> str:
    """Runs ``pytest-prereg`` there, and commits what it changes."""
    return "".join(
        _run(study, *line) for line in ((sys.executable, "-m", "pytest_prereg", *arguments), *_commits())
    )


def commit(study: RealStudy) -> None:
    for line in _commits():
        _run(study, *line)


def _commits() -> list[tuple[str, ...]]:
    return [("git", "add", "--all"), ("git", "commit", "--quiet", "--allow-empty", "--message", "Change")]


def _run(study: RealStudy, *line: str) -> str:
    done = subprocess.run(
        line, cwd=study.path, env=plain_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def take_in(study: RealStudy, values: list[float], *, first: int = 1, experiment: str = "rows") -> None:
    lines = [f"{index},t,{value},s" for index, value in enumerate(values, first)]
    study.write("rows.csv", "\n".join(["repeat,metric,value,unit", *lines, ""]))
    command(study, "import", "rows.csv", "--experiment", experiment)


def flat(output: str) -> str:
    return " ".join(output.split())


SLOW = [2.2, 2.21, 2.19, 2.23, 2.18]
QUICK = [1.0, 1.01, 0.99, 1.02, 0.98]


class TestHeldBack:
    """Two series that are open at once, the second measured first: whoever sees both would choose the first."""

    def test_a_series_that_was_left_is_not_gone_on_with_when_its_subject_is_back(self, make):
        study = make(STUDY + "\n[study.prices]\nlocal = 36\n")
        study.run("--prereg-budget", "0.01", TAKES="1", SLEEPS="0.5")
        kept = study.slots("work", "finished").total()
        assert 0 < kept < 4
        study.write("subject.txt", "2")
        commit(study)
        study.run(TAKES="3")
        commit(study)
        study.write("subject.txt", "1")
        commit(study)

        _, output = study.run("--prereg-fresh", TAKES="1")

        assert {line["series"] for line in study.lines("work") if line["type"] == "header"} == {1, 2, 3}
        assert "- quick" in output
        assert "abandoned series" in flat(output)
        assert "series 3, a replication" in output

    def test_neither_is_one_that_takes_in_rows_when_its_registration_is_back(self, make):
        text = HEAD + imported("rows", 5) + claim("quick", "2")
        study = make(text)
        take_in(study, QUICK[:3])
        study.write("predictions.toml", text.replace("2 s", "2.1 s"))
        command(study, "amend", "quick", "--reason", "another edge")
        take_in(study, SLOW)
        study.write("predictions.toml", text)
        command(study, "amend", "quick", "--reason", "and back")
        take_in(study, QUICK[3:], first=4)
        assert {line["series"] for line in study.lines("rows") if line["type"] == "header"} == {1, 2, 3}
        explained = flat(command(study, "explain", "quick"))
        assert "rows/1 abandoned, 3 of 5 repeats: a later series was begun in its place" in explained


class TestRefuted:
    """What was refuted by what was measured stays in the way, whatever is said against the evidence."""

    def study(self, make, more: str = "") -> RealStudy:
        study = make(
            HEAD
            + imported("rows", 5)
            + imported("other", 5)
            + claim("base", "2", experiment="other")
            + claim("quick", "2", more)
            + claim("again", "3", 'follows = "quick"\n')
        )
        take_in(study, QUICK, experiment="other")
        take_in(study, SLOW)
        study.run("--prereg-verify", "--prereg-record")
        commit(study)
        return study

    def is_decided(self, study: RealStudy) -> None:
        study.run("--prereg-verify", "--prereg-record")
        commit(study)
        take_in(study, [value + 0.001 for value in SLOW])
        status, output = study.run("--prereg-verify", "--prereg-locked")
        assert "imported, earlier data, follows a decided one" in flat(output)
        assert 'PR212: "again" is exploratory: it follows "quick", which was decided' in flat(output)
        assert status == 1

    def test_exclusions_free_no_successor_of_it(self, make):
        study = self.study(make)
        for index in (1, 2, 3):
            command(study, "exclude", f"rows/1/{index}", "--cause", "tool", "--reason", "it was slow")
        assert "CHANGED refuted → inconclusive, excluded" in flat(study.run("--prereg-verify")[1])
        self.is_decided(study)

    def test_neither_does_voiding_what_it_requires(self, make):
        study = self.study(make, 'requires = ["base"]\n')
        command(study, "void", "other/1", "--reason", "the wrong cable")
        self.is_decided(study)


class TestGuards:
    def test_exclusions_mend_no_subject(self, make):
        study = make(GUARD)
        study.run("--prereg-record", TAKES="3")
        commit(study)
        for index in (1, 2, 3):
            command(study, "exclude", f"work/2/{index}", "--cause", "tool", "--reason", "it was slow")
        study.run("--prereg-verify", "--prereg-record")
        commit(study)

        status, output = study.run("--prereg-verify")

        assert status == 1
        assert "excluded: series 1 refuted, series 2 hangs on what was set aside" in flat(output)
        assert "with all that was measured it is refuted; it fails until its subject is mended" in flat(
            output
        )

    def test_exclusions_keep_no_refutation_from_being_confirmed(self, make):
        """The first series is excluded before the second is there."""
        study = make(GUARD + "\n[study.prices]\nlocal = 36\n")
        study.run(TAKES="3")
        evidence = study.path / "experiments" / "evidence" / "work"
        first, second = sorted(evidence.glob("*.jsonl"))
        second.unlink()
        commit(study)
        for index in (1, 2, 3):
            command(study, "exclude", f"work/1/{index}", "--cause", "tool", "--reason", "it was slow")

        status, output = study.run(TAKES="3")

        assert first.exists()
        assert {line["series"] for line in study.lines("work") if line["type"] == "header"} == {1, 2}
        assert status == 1
        assert "it fails until its subject is mended" in flat(output)


class TestQuoting:
    """Pages that are read as Markdown, and numbers that are read as others."""

    @pytest.fixture
    def recorded(self, make):
        text = imported("rows", 5).replace('"s"', '"MB/s"') + claim("quick", "2").replace(" s", " MB/s")
        study = make(HEAD + text)
        lines = [f"{index},t,{value},MB/s" for index, value in enumerate(QUICK, 1)]
        study.write("rows.csv", "\n".join(["repeat,metric,value,unit", *lines, ""]))
        command(study, "import", "rows.csv", "--experiment", "rows")
        study.run("--prereg-verify", "--prereg-record")
        commit(study)
        return study

    def checked(self, study: RealStudy, name: str, number: str, after: str) -> str:
        study.write(name, f"It takes <!-- prereg: quick.low -->{number}<!-- /prereg -->{after}\n")
        return subprocess.run(
            (sys.executable, "-m", "pytest_prereg", "cite", "--check"),
            cwd=study.path,
            env=plain_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        ).stdout

    def test_every_name_under_which_a_page_is_shown_as_markdown_is_looked_at(self, recorded):
        for name in ("README.mkdown", "a.mdwn", "b.livemd"):
            assert f'{name}:1: PR210: "quick.low" is quoted as "0.5"' in self.checked(
                recorded, name, "0.5", ""
            )
        assert "README.textile:1: PR210: cites, and is not checked" in self.checked(
            recorded, "README.textile", "0.5", ""
        )

    def test_another_unit_is_another_number_and_its_own_may_be_written_in_words(self, recorded):
        for own in (" MB/s", " MB per second", " megabytes/s"):
            assert "PR210" not in self.checked(recorded, "page.md", "0.980", own), own
        for other in (" GB/s", " MB/min", " gigabytes per second", " Mb/s", " mebibytes"):
            assert "is read as its unit" in self.checked(recorded, "page.md", "0.980", other), other


def test_a_rate_below_nothing_is_no_evidence(make):
    """It would hide what other sessions cost."""
    study = make(STUDY + "\n[study.prices]\nlocal = 36\n")
    study.run(TAKES="1")
    (session,) = (study.path / "experiments" / "evidence" / "work").glob("*.jsonl")
    session.write_text(session.read_text().replace('"rates":{"":36', '"rates":{"":-36'))
    status, output = study.run("--prereg-verify")
    assert status == 1
    assert "PR207: this line is not what was written" in flat(output)
