"""What an instrument of the package may decide: attempts to let it decide unchecked, and honest twins.

No reading is taken here: the readers are stand-ins that say what they are told, under the names of the real.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from audited_study import Small
from small_study import copied, new_repository

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


WORK = """\
import os
from functools import partial
from time import perf_counter_ns

from pytest_prereg import Repeat, experiment
from pytest_prereg.measure.instruments.readers import READERS
from pytest_prereg.measure.instruments.reading import Reading, UnreadableError
from pytest_prereg.measure.workloads.calibration.reading import calibrating, read_during


def nearly(value):
    return value + perf_counter_ns() % 10**9 / 1e12


class StandIn:
    def __init__(self, instrument):
        self.instrument = instrument

    def start(self):
        if "ABSENT" in os.environ:
            raise UnreadableError("there is no device")

    def stop(self): ...

    def reading(self):
        return Reading(value=nearly(0.5), instrument=self.instrument)


def __getattr__(name):
    return partial(StandIn, name)


READERS.update({name: f"{__name__}:{name}" for name in READERS})


@experiment(metrics={"error": {"unit": "1", "instrument": "square-wave"}})
def wave(repeat: Repeat, *, instrument: str = "kernel-intervals") -> None:
    with calibrating(repeat, instrument, [instrument]):
        read_during(repeat, instrument, lambda reader: None)
        repeat._taken_by("square-wave").record("error", nearly(float(os.environ.get("ERROR", "0.005"))))


@experiment(metrics={"error": {"unit": "1", "instrument": "square-wave"}})
def square_wave(repeat: Repeat, *, instrument: str = "kernel-intervals") -> None:
    with repeat.instrument(instrument).window("seen"):
        pass
    repeat.instrument("square-wave").record("error", nearly(0.005))


@experiment(metrics={"busy": {"unit": "1", "instrument": "kernel-intervals"}, "named": "1"})
def gate(repeat: Repeat, *, reads: str = "kernel-intervals", recorded_as: str = "", named: str) -> None:
    with repeat.instrument(named).window("named"):
        pass
    if recorded_as == "nothing":
        repeat.record("busy", nearly(0.5))
    elif recorded_as:
        repeat._taken_by(recorded_as).record("busy", nearly(0.5))
    else:
        with repeat.instrument(reads).window("busy"):
            pass


@experiment(metrics={"busy": "1"})
def undeclared(repeat: Repeat, *, reads: str) -> None:
    with repeat.instrument(reads).window("busy"):
        pass
"""

CLAIM = """\
[predictions.{name}]
claim = "It is small."
experiment = "{on}"
quantity = "{quantity}"
predicts = "<= {edge}"
falsifier = "> {edge}"
"""


def claim(name: str, on: str, *lines: str, quantity: str = "busy", edge: str = "0.6") -> str:
    return "\n".join((CLAIM.format(name=name, on=on, quantity=quantity, edge=edge), *lines, ""))


def small_error(name: str, arm: str = "", edge: str = "0.01") -> str:
    return claim(name, "wave", *([f'arm = "{arm}"'] if arm else []), quantity="error", edge=edge)


def experiment(name: str, fixture: str, **arms: str) -> str:
    lines = [f"[experiments.{name}]", f'fixture = "{fixture}"', "repeats = 3"]
    if arms:
        lines += [f"[experiments.{name}.arms]", *(f"{arm} = {{ {table} }}" for arm, table in arms.items())]
    return "\n".join((*lines, ""))


def calibrated(instrument: str, *by: str) -> str:
    names = ", ".join(f'"{name}"' for name in by)
    return f"[instruments.{instrument}]\ncalibrated-by = [{names}]\n"


def study_of(folder: Path, *tables: str) -> Small:
    """A study of these tables, registered and committed."""
    project = Small(new_repository(folder).path, folder)
    project.write("predictions.toml", "\n".join(('[study]\nid = "small"\n', *tables)))
    project.write("experiments/work.py", WORK)
    project.write(".gitignore", "__pycache__/\n")
    project.done("lock")
    project.commit("Register")
    return project


WAVE = experiment(
    "wave",
    "wave",
    kernels='instrument = "kernel-intervals"',
    operators='instrument = "operator-intervals"',
    nvml='instrument = "nvml-utilisation"',
)
GATE = {
    "honest": 'named = "kernel-intervals"',
    "by-hand": 'recorded_as = "nothing", named = "nvml-samples"',
    "of-the-wave": 'recorded_as = "square-wave", named = "nvml-utilisation"',
    "fallback": 'reads = "nvml-samples", named = "host-load"',
    "stood-in": 'reads = "operator-intervals", named = "kernel-intervals"',
}
NAMED = {
    "named-kernels": "honest",
    "named-untold": "by-hand",
    "named-half": "of-the-wave",
    "named-by-any": "fallback",
}
"""The arms whose metric that declares nothing each of these is about."""

TRUSTED = '[instruments.{}]\ntrusted = "The data sheet says so."\n'
HALF = calibrated("nvml-utilisation", "nvml-bias", "nvml-is-perfect")
STUDY = (
    calibrated("kernel-intervals", "bias", "spread"),
    HALF,
    calibrated("operator-intervals", "late"),
    calibrated("host-load", "bias"),
    experiment("early", "undeclared", operators='reads = "operator-intervals"'),
    claim("early", "early"),
    WAVE,
    small_error("bias", "kernels"),
    claim("spread", "wave", 'arm = "kernels"', 'statistic = "sd"', quantity="error", edge="0.1"),
    small_error("nvml-bias", "nvml"),
    small_error("nvml-is-perfect", "nvml", edge="0.001"),
    small_error("late", "operators"),
    experiment("gate", "gate", **GATE),
    *(claim(arm, "gate", f'arm = "{arm}"') for arm in GATE),
    *(claim(name, "gate", f'arm = "{arm}"', quantity="named") for name, arm in NAMED.items()),
)


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """The study, measured in one run, and committed."""
    project = study_of(tmp_path_factory.mktemp("once") / "study", *STUDY)
    done = project.process("--prereg", "-p", "no:cacheprovider")
    assert "27 repeats kept" in done.stdout, done.stdout
    project.commit("Evidence")
    return project


@pytest.fixture
def measured(once: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    project = Small(copied(once, tmp_path / "copy").path, tmp_path / "copy")
    monkeypatch.chdir(project.path)
    return project


class TestAsMeasured:
    @pytest.fixture
    def explained(self, once: Small) -> Callable[[str], str]:
        """What ``explain`` says of a prediction, on one line."""
        return lambda name: " ".join(once.done("explain", name).split())

    @pytest.mark.parametrize(("name", "metric"), [("honest", "busy"), ("named-kernels", "named")])
    def test_what_was_calibrated_first_decides(self, explained, name, metric):
        said = explained(name)

        assert f"{name}: supported claim" in said
        assert (
            f'read by kernel-intervals ({metric}): calibrated by "bias", which is supported and "spread", which '
            'is supported "bias": It is small; wants mean of error ≤ 0.01, of "wave", the study\'s own wave '
            'with instrument = "kernel-intervals", on '
        ) in said
        assert (
            '"spread": It is small; wants sd of error ≤ 0.1, of "wave", the study\'s own wave with ' in said
        )

    def test_what_stands_in_for_it_decides_by_a_calibration_of_its_own(self, explained):
        said = explained("stood-in")

        assert "stood-in: supported claim" in said
        assert (
            'operator-intervals, in place of kernel-intervals (busy): calibrated by "late", which is s'
            in said
        )

    @pytest.mark.parametrize(
        ("name", "why", "read_by"),
        [
            (
                "early",
                'is calibrated by "late", which was not supported yet when this was measured',
                'operator-intervals (busy): calibrated by "late", which is supported',
            ),
            (
                "by-hand",
                'a value of "busy" was recorded by hand, not read by kernel-intervals',
                "recorded by hand (busy): no instrument is named",
            ),
            (
                "of-the-wave",
                'a value of "busy" was read by "square-wave", not by "kernel-intervals"',
                "square-wave (busy): trusted, since it measures itself",
            ),
            (
                "fallback",
                'a value of "busy" was read by "nvml-samples", not by "kernel-intervals"',
                "nvml-samples (busy): neither calibrated nor trusted when it was measured",
            ),
            ("named-untold", 'a reading of "named" was taken by nvml-samples, which this study neither', ""),
            ("named-half", 'calibrated by "nvml-is-perfect", which is refuted', '"nvml-bias", which is supp'),
            ("named-by-any", 'calibrated by "bias", which has no arm that host-load read', "host-load (named)"),
        ],
    )  # fmt: skip
    def test_nothing_else_does(self, explained, name, why, read_by):
        said = explained(name)

        assert f"{name}: inconclusive (instrument) claim" in said
        assert why in said
        assert f"read by {read_by}" in said or read_by in said
        assert "register a successor" in said

    def test_no_other_word_than_that_nobody_named_it_stands_beside_what_is_honest(self, once, records):
        flags = records(once, "--prereg-verify").each("flags")

        assert {name for name, words in flags.items() if words == ["instrument-unstated"]} == {
            "by-hand",
            "fallback",
            "named-untold",
        }
        assert flags["honest"] == flags["named-kernels"] == flags["stood-in"] == []


class TestAfterwards:
    def test_a_table_that_comes_when_the_values_are_known_lets_nothing_decide(self, measured, records):
        measured.edit("predictions.toml", HALF, TRUSTED.format("nvml-utilisation"))
        measured.edit("predictions.toml", '["late"]', '["bias"]')
        measured.edit(
            "predictions.toml",
            "[experiments.early]",
            TRUSTED.format("nvml-samples") + "\n[experiments.early]",
        )

        found = records(measured, "--prereg-verify").each("reason")

        assert {found[name] for name in ("named-half", "early", "named-untold")} == {"instrument"}

    def test_one_that_goes_frees_nobody(self, measured, records):
        table = calibrated("kernel-intervals", "bias", "spread")
        measured.edit("predictions.toml", table, TRUSTED.format("kernel-intervals"))

        found = records(measured, "--prereg-verify")

        assert found["named-kernels"]["verdict"] == "supported"
        assert found["honest"]["standing"] == "exploratory"  # what its metric declares was registered

    def test_a_calibration_that_is_withdrawn_supports_nothing(self, measured, records):
        measured.done("withdraw", "spread", "--reason", "It varies more on Mondays.")

        found = records(measured, "--prereg-verify")

        assert found["honest"]["reason"] == found["named-kernels"]["reason"] == "instrument"

    def test_one_that_is_made_easier_is_none_and_an_error(self, measured, records):
        text = (measured.path / "predictions.toml").read_text(encoding="utf-8")
        bias = small_error("bias", "kernels")
        measured.write("predictions.toml", text.replace(bias, small_error("bias", "kernels", edge="0.4")))
        measured.done("amend", "bias", "--reason", "It is hardly ever right.")
        measured.commit("Amend")

        found = records(measured, "--prereg-verify")["honest"]["reason"]
        told = {(one["id"], one["code"], one["level"]) for one in measured.audit().findings}

        assert found == "instrument"
        assert ("bias", "PR209", "error") in told

    def test_one_that_a_later_series_refutes_stands_and_says_so(self, measured, records, judge, monkeypatch):
        monkeypatch.setenv("ERROR", "0.2")
        judge(measured, "--prereg-fresh", "-k", "bias and not nvml")

        found = records(measured, "--prereg-verify")

        assert found["bias"]["verdict"] == found["honest"]["verdict"] == "supported"
        assert found["honest"]["flags"] == found["named-kernels"]["flags"] == ["calibration contradicted"]


def test_nothing_is_measured_with_what_is_not_calibrated_yet(tmp_path, records, monkeypatch):
    monkeypatch.setenv("ERROR", "0.5")
    table = calibrated("kernel-intervals", "bias")
    tables = (experiment("wave", "wave"), small_error("bias"), experiment("gate", "gate", a=GATE["honest"]))
    project = study_of(tmp_path / "study", table, *tables, claim("honest", "gate"))

    found = records(project)

    assert (found["bias"]["verdict"], found["honest"]["status"]) == ("refuted", "pending")
    assert project.evidence("gate") == []
    said = " ".join(project.done("explain", "honest").split())
    assert said.endswith(
        'now "bias", which calibrates kernel-intervals, is refuted: name another instrument for the metric, '
        "with a calibration of its own, and amend this prediction, which has no evidence yet"
    )


def test_what_waits_for_a_calibration_that_read_nothing_is_told_what_decides_it(
    tmp_path, records, monkeypatch
):
    monkeypatch.setenv("ABSENT", "1")
    table = calibrated("kernel-intervals", "bias")
    tables = (experiment("wave", "wave"), small_error("bias"), experiment("gate", "gate", a=GATE["honest"]))
    project = study_of(tmp_path / "study", table, *tables, claim("honest", "gate"))
    warning = "the next series decides, for good: run it where the instrument can be read"

    found = records(project)

    assert (found["bias"]["reason"], found["honest"]["status"]) == ("instrument", "pending")
    assert f"now {warning}" in " ".join(project.done("explain", "bias").split())
    assert f'"bias", which calibrates kernel-intervals, is inconclusive: {warning}' in " ".join(
        project.done("explain", "honest").split()
    )


def test_a_pilot_says_what_another_instrument_read(measured):
    line = "busy was read by operator-intervals, in place of kernel-intervals: no CUDA device is used here"
    told = " ".join(measured.done("try", "gate", "--arm", "stood-in", "-n", "2").split())
    assert told.count(line) == 1
    assert "in place of" not in measured.done("try", "gate", "--arm", "fallback")


CALIBRATED = (
    calibrated("kernel-intervals", "bias"),
    experiment("gate", "gate", a=GATE["honest"]),
    claim("honest", "gate"),
)


def test_where_nothing_could_be_read_the_next_series_decides_once(tmp_path, records, monkeypatch):
    project = study_of(tmp_path / "study", *CALIBRATED, experiment("wave", "wave"), small_error("bias"))

    monkeypatch.setenv("ABSENT", "")
    first = records(project, "--prereg-record")
    project.commit("Evidence")
    audited = project.audit()
    monkeypatch.delenv("ABSENT")
    second = records(project, "--prereg-fresh", "--prereg-record")

    assert (first["bias"]["reason"], first["honest"]["status"]) == ("instrument", "pending")
    assert audited.findings == []
    assert (second["bias"]["verdict"], second["bias"]["flags"]) == (
        "supported",
        ["earlier data", "second series"],
    )
    assert second["honest"]["verdict"] == "supported"
    assert "series 1: inconclusive (instrument)" in " ".join(project.done("explain", "bias").split())


def test_once_and_not_again(tmp_path, records, monkeypatch):
    project = study_of(tmp_path / "study", experiment("wave", "wave"), small_error("bias"))

    monkeypatch.setenv("ABSENT", "")
    records(project)
    records(project, "--prereg-fresh")
    monkeypatch.delenv("ABSENT")

    assert records(project, "--prereg-fresh")["bias"]["verdict"] == "inconclusive"


def test_what_hides_an_experiment_of_the_package_is_told_wherever_it_matters(tmp_path, records):
    tables = (*CALIBRATED, experiment("wave", "square_wave"), small_error("bias"))
    project = study_of(tmp_path / "study", *tables)
    noted = "note: square_wave, which wave runs, is this study's own, and not the package's"
    project.edit("predictions.toml", CALIBRATED[-1], CALIBRATED[-1] + claim("other", "gate", edge="0.7"))
    assert noted in project.done("lock")
    project.commit("Register another")

    found = records(project)
    said = " ".join(project.done("explain", "honest").split())

    assert (found["honest"]["verdict"], found["bias"]["flags"]) == ("supported", ["instrument-unstated"])
    assert found["honest"]["flags"] == ["calibration by hand"]
    assert "of \"wave\", the study's own square_wave, and not the package's" in said


def test_a_calibration_by_who_had_seen_such_data_says_so(tmp_path, records):
    known = small_error("bias") + 'data-seen = "full"\n'
    project = study_of(tmp_path / "study", *CALIBRATED, experiment("wave", "wave"), known)

    found = records(project)

    assert (found["honest"]["verdict"], found["honest"]["flags"]) == ("supported", ["calibration foreknown"])


@pytest.mark.parametrize(("reason", "is_noted"), [(".", True), ("We bought it.", False)])
def test_trust_without_a_reason_is_noted(tmp_path, reason, is_noted):
    project = study_of(tmp_path / "study", *CALIBRATED, experiment("wave", "wave"), small_error("bias"))
    table = f'[instruments.probe]\ntrusted = "{reason}"\n'
    project.edit(
        "predictions.toml", CALIBRATED[-1], claim("other", "gate", edge="0.7") + CALIBRATED[-1] + table
    )

    told = project.done("lock")

    noted = f'note: instrument probe is trusted because "{reason}"; say why, in a sentence'
    assert (noted in told) is is_noted
