"""Whether a calibration was in force: by what headers say of each other, machines and versions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_prereg.audit.calibration import uncalibrated
from pytest_prereg.audit.provenance import are_undeclared

CLOCK = SimpleNamespace(calibrated_by=["true-clock"])
SUPPORTED = "is supported"


def session(experiment: str, *, known: dict[str, str] | None = None, torch: str = "2.6") -> Any:
    header = SimpleNamespace(known=known or {}, versions={"torch": torch}, origin="measured")
    name = f"{experiment}/1.jsonl"
    return SimpleNamespace(
        name=name, path=SimpleNamespace(name="1.jsonl"), digest=f"sha256:{experiment}", header=header
    )


def series(experiment: str, machine: str | None, instrument: str | None = "clock") -> Any:
    repeat = SimpleNamespace(arm="", machine=machine, instruments={"t": instrument} if instrument else {})
    return SimpleNamespace(
        experiment=experiment, number=1, repeats=(repeat,), sessions=("1.jsonl",), origin="measured"
    )


class Bench:
    """A prediction ``quick`` on experiment ``read``, and ``true-clock`` on ``wave``."""

    def __init__(self, *, declared: str | None = "clock", preload: tuple[str, ...] = ("torch",)) -> None:
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
        predictions = {"quick": self.quick, "true-clock": object()}
        study = SimpleNamespace(
            instruments={"clock": CLOCK}, predictions=predictions, experiments={"read": read}
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
