"""Whether a calibration was in force: by what headers say of each other, machines and versions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_prereg.audit.calibration import uncalibrated
from pytest_prereg.audit.provenance import are_undeclared
from pytest_prereg.evidence.model import Outcome

CLOCK = SimpleNamespace(calibrated_by=["true-clock"])
SUPPORTED = "is supported"


def session(
    experiment: str,
    *,
    known: dict[str, str] | None = None,
    torch: str = "2.6",
    instruments: str | None = None,
    origin: str = "measured",
) -> Any:
    versions = {"torch": torch} | ({"instruments": instruments} if instruments else {})
    header = SimpleNamespace(known=known or {}, versions=versions, origin=origin, instruments={})
    name = f"{experiment}/1.jsonl"
    return SimpleNamespace(
        name=name, path=SimpleNamespace(name="1.jsonl"), digest=f"sha256:{experiment}", header=header
    )


def series(experiment: str, machine: str | None, instrument: str | None = "clock", **taken: str) -> Any:
    """``taken`` names what took metrics that no prediction reads."""
    named = {"t": instrument, **taken} if instrument else {**taken}
    repeat = SimpleNamespace(
        arm="", machine=machine, instruments=named, values=dict.fromkeys(named, 1.0), outcome=Outcome.OK
    )
    return SimpleNamespace(
        experiment=experiment, number=1, repeats=(repeat,), sessions=("1.jsonl",), origin="measured"
    )


class Bench:
    """A prediction ``quick`` on experiment ``read``, and ``true-clock`` on ``wave``."""

    def __init__(
        self, *, declared: str | None = "clock", preload: tuple[str, ...] = ("torch",), tool: str = "clock"
    ) -> None:
        metric = SimpleNamespace(instrument=declared)
        read = SimpleNamespace(
            metrics={"t": metric},
            source=SimpleNamespace(preload=preload),
            table=SimpleNamespace(preload=None),
        )
        self.quick: Any = SimpleNamespace(
            experiments=("read",),
            arms=("",),
            formula=None,
            members=(),
            divisor=None,
            quantity=SimpleNamespace(metrics=("t",)),
        )
        true: Any = SimpleNamespace(experiments=("wave",), arms=("",), formula=None, members=())
        predictions = {"quick": self.quick, "true-clock": true}
        study = SimpleNamespace(
            instruments={tool: CLOCK}, predictions=predictions, experiments={"read": read}
        )
        self.wave, self.read = series("wave", "A"), series("read", "A")
        self.files = {
            "wave": [session("wave")],
            "read": [session("read", known={"wave/1.jsonl": "sha256:wave"})],
        }
        self.state: Any = SimpleNamespace(study=study, files=self.files)

    def lacking(self, finding: str = SUPPORTED) -> list[str]:
        self.state.bases = {"true-clock": {"wave": self.wave}}
        return list(uncalibrated(self.state, self.quick, {"read": self.read}, lambda _name: finding))


def test_one_that_was_there_on_the_same_machine_is_in_force():
    assert Bench().lacking() == []


@pytest.mark.parametrize("finding", ["is refuted", "is pending", "is exploratory", "can't be judged"])
def test_one_that_is_not_supported_is_not(finding):
    assert Bench().lacking(finding) == [
        f'instrument "clock" is calibrated by "true-clock", which {finding} (series 1 of "read")'
    ]


@pytest.mark.parametrize("known", [{}, {"wave/1.jsonl": "sha256:half"}], ids=["unknown", "half of it known"])
def test_one_that_was_not_there_when_the_evidence_began_is_not(known):
    bench = Bench()
    bench.files["read"] = [
        session("read", known={"wave/1.jsonl": "sha256:wave"}),
        session("read", known=known),
    ]
    assert "was not supported yet" in bench.lacking()[0]


@pytest.mark.parametrize(("machine", "in_force"), [("A", True), ("B", False), (None, True)])
def test_it_holds_for_the_machines_that_it_was_done_on(machine, in_force):
    bench = Bench()
    bench.read = series("read", machine)
    assert (bench.lacking() == []) is in_force


def test_it_does_not_hold_for_a_known_machine_if_its_own_is_unknown():
    bench = Bench()
    bench.wave = series("wave", None)
    assert 'on another machine than "A"' in bench.lacking()[0]


@pytest.mark.parametrize(("preload", "in_force"), [(("torch",), False), (("numpy",), True)])
def test_what_is_read_through_torch_needs_the_same_torch(preload, in_force):
    bench = Bench(preload=preload)
    bench.files["wave"] = [session("wave", torch="2.5")]
    assert (bench.lacking() == []) is in_force


def test_an_instrument_that_only_the_repeats_name_counts_too():
    bench = Bench(declared=None)
    assert bench.lacking("is refuted") != []
    bench.read = series("read", "A", instrument=None)
    assert bench.lacking("is refuted") == []


@pytest.mark.parametrize(
    ("instrument", "undeclared"),
    [("clock", False), ("wall-clock", False), ("timer", False), (None, False), ("probe", True)],
)
def test_an_instrument_that_the_study_does_not_name_vouches_for_nothing(instrument, undeclared):
    bench = Bench(declared=None)
    assert are_undeclared(bench.state, bench.quick, series("read", "A", instrument)) is undeclared


class OfThePackage(Bench):
    """The same with an instrument of the package, which read something in the calibration as well."""

    def __init__(self, tool: str = "kernel-intervals", **keys: Any) -> None:
        super().__init__(declared=tool, tool=tool, **{"preload": (), **keys})
        self.wave = series("wave", "A", "square-wave", seen=tool)
        self.read = series("read", "A", tool)

    def sessions(self, was: dict[str, Any], now: dict[str, Any]) -> None:
        self.files["wave"] = [session("wave", **was)]
        self.files["read"] = [session("read", known={"wave/1.jsonl": "sha256:wave"}, **now)]


def test_one_of_the_package_is_in_force_where_it_took_a_reading_in_the_calibration():
    assert OfThePackage().lacking() == []


def test_or_where_the_study_says_why_it_is_trusted():
    bench = OfThePackage()
    bench.state.study.instruments["kernel-intervals"] = SimpleNamespace(calibrated_by=None)
    assert bench.lacking("is refuted") == []


@pytest.mark.parametrize("seen", ["operator-intervals", "square-wave"])
def test_it_is_not_where_another_took_it(seen):
    bench = OfThePackage()
    bench.wave = series("wave", "A", "square-wave", seen=seen)
    assert "has no arm that kernel-intervals read" in bench.lacking()[0]


def test_nor_where_it_took_some_of_the_readings_of_each_arm():
    bench = OfThePackage()
    other = series("wave", "A", "square-wave", seen="operator-intervals")
    bench.wave.repeats = (*bench.wave.repeats, *other.repeats)
    assert "has no arm" in bench.lacking()[0]


@pytest.mark.parametrize(
    ("tool", "in_force"), [("kernel-intervals", False), ("operator-intervals", False), ("host-load", True)]
)
def test_what_reads_through_torch_needs_the_same_torch_whether_it_is_preloaded_or_not(tool, in_force):
    bench = OfThePackage(tool)
    bench.sessions({"torch": "2.5"}, {"torch": "2.6"})
    assert (bench.lacking() == []) is in_force


@pytest.mark.parametrize(
    ("was", "now", "in_force"),
    [("1", "1", True), (None, None, True), ("1", "2", False), (None, "1", False), ("1", None, False)],
)
def test_it_holds_for_one_version_of_the_instruments(was, now, in_force):
    bench = OfThePackage()
    bench.sessions({"instruments": was}, {"instruments": now})
    assert (bench.lacking() == []) is in_force
    if not in_force:
        assert "with another version of the instruments than" in bench.lacking()[0]


def test_which_says_nothing_of_an_instrument_of_ones_own():
    bench = Bench(preload=())
    bench.files["wave"] = [session("wave", instruments="1")]
    bench.files["read"] = [session("read", known={"wave/1.jsonl": "sha256:wave"}, instruments="2")]
    assert bench.lacking() == []


def test_nor_does_the_header_of_an_import_of_what_was_read_elsewhere():
    bench = OfThePackage()
    bench.sessions({"torch": "2.5"}, {"torch": "2.6", "origin": "imported"})
    assert bench.lacking() == []


@pytest.mark.parametrize("taker", [None, "probe", "wall-clock"])
@pytest.mark.parametrize("origin", ["measured", "imported"])
def test_a_value_that_a_declared_instrument_did_not_read_is_none_of_its(taker, origin):
    bench = OfThePackage()
    bench.read = series("read", "A", taker)
    bench.read.repeats[0].values["t"] = 1.0
    bench.read.origin = origin
    lacking = [text for text in bench.lacking() if "not " in text]
    assert bool(lacking) is (origin == "measured")


def test_an_instrument_that_decides_as_it_is_may_be_bound_to_a_calibration():
    bench = OfThePackage("wall-clock")
    bench.wave = series("wave", "A", "ruler")
    assert bench.lacking() == []
    assert bench.lacking("is refuted") != []
    bench.read = series("read", "A", None)
    bench.read.repeats[0].values["t"] = 1.0
    assert 'a value of "t" was recorded by hand, not read by wall-clock' in bench.lacking()[0]


@pytest.mark.parametrize(
    ("declared", "taker"),
    [
        ("operator-intervals", "host-load"),  # which the study trusts, for another metric
        ("kernel-intervals", "host-load"),
        ("cuda-memory", "process-memory"),
        ("cuda-events", "wall-clock"),
        ("timer", "cuda-events"),
        ("clock", "wall-clock"),
    ],
)
def test_no_other_reads_in_its_place_however_far_it_is_trusted(declared, taker):
    bench = OfThePackage(declared)
    trusted = SimpleNamespace(calibrated_by=None)
    bench.state.study.instruments = dict.fromkeys((declared, taker), trusted)
    bench.files["read"][0].header.instruments = {declared: [], taker: []}
    assert bench.lacking() == []
    bench.read = series("read", "A", taker)
    said = f'a value of "t" was read by "{taker}", not by "{declared}" (series 1 of "read")'
    assert bench.lacking() == [said]


@pytest.mark.parametrize(
    ("declared", "taker"), [("timer", "wall-clock"), ("bench", "cuda-events"), ("bench", "wall-clock")]
)
def test_the_ways_of_timing_stand_for_the_clocks_that_they_read(declared, taker):
    bench = OfThePackage(declared)
    bench.state.study.instruments = {}
    bench.read = series("read", "A", taker)
    assert bench.lacking() == []


def test_what_it_falls_back_to_has_a_table_of_its_own():
    bench = OfThePackage("kernel-intervals")
    bench.read = series("read", "A", "operator-intervals")
    trusted = SimpleNamespace(calibrated_by=None)
    header = bench.files["read"][0].header
    header.instruments = {"kernel-intervals": []}
    bench.state.study.instruments = {"kernel-intervals": trusted}
    assert "operator-intervals, which this study neither calibrates nor trusts" in bench.lacking()[0]
    header.instruments |= {"operator-intervals": []}
    bench.state.study.instruments["operator-intervals"] = trusted
    assert bench.lacking() == []
