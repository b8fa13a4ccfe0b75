"""Small experiments, headers and lines for the tests of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.evidence.lines import digest, encode
from pytest_prereg.evidence.model import Finished, Footer, Header, Outcome, Started
from pytest_prereg.evidence.naming import repeat_id, warmup_id
from pytest_prereg.registry.model import ONLY_ARM, Arm, Experiment, Metric, Study
from pytest_prereg.registry.tables import ExperimentTable, StudyTable

if TYPE_CHECKING:
    from pathlib import Path


def experiment(
    arms: dict[str, int | None] | None = None,
    *,
    metrics: dict[str, str] | None = None,
    pairing: str = "none",
    name: str = "gate-a",
) -> Experiment:
    arms = arms or {ONLY_ARM: 3}
    return Experiment(
        id=name,
        kind="import",
        table=ExperimentTable(),
        arms={
            name: Arm(name=name, params={}, env={}, timeout=None, repeats=count)
            for name, count in arms.items()
        },
        metrics={name: Metric(name=name, unit=unit) for name, unit in (metrics or {"t": "s"}).items()},
        pairing=pairing,
        source=None,
        line=1,
    )


def study(folder: Path, *experiments: Experiment) -> Study:
    return Study(
        id="reward-latency",
        table=StudyTable(id="reward-latency"),
        path=folder / "predictions.toml",
        experiments={one.id: one for one in experiments or (experiment(),)},
        predictions={},
    )


def header(**changes: Any) -> Header:
    plain = Header(
        version=1,
        study="reward-latency",
        experiment="gate-a",
        series=1,
        origin="measured",
        planned={ONLY_ARM: 3},
        pairing="block",
        seed="sha256:5eed",
        source="sha256:50ce",
        predictions={"free": "sha256:f4ee"},
        head="1f3c9a2",
        dirty=False,
        session="0123456789abcdef",
        created="2026-08-01T12:00:00Z",
        executor="local",
        environment={"cpu": "Fast CPU", "gpu": [], "driver": None},
        versions={"python": "3.11.9"},
    )
    return msgspec.structs.replace(plain, **changes)


def started(index: int, *, arm: str = ONLY_ARM, attempt: int = 1, series: int = 1) -> Started:
    return Started(
        repeat=repeat_id("gate-a", series, arm, index),
        arm=arm,
        index=index,
        attempt=attempt,
        block=index,
        seed=7,
    )


def finished(
    index: int,
    outcome: Outcome = Outcome.OK,
    *,
    arm: str = ONLY_ARM,
    attempt: int = 1,
    series: int = 1,
    **more: Any,
) -> Finished:
    values = {"t": float(index)} if outcome is Outcome.OK else {}
    fields = {"values": values} | more
    return Finished(
        repeat=repeat_id("gate-a", series, arm, index), attempt=attempt, outcome=outcome, **fields
    )


def attempt(index: int, outcome: Outcome = Outcome.OK, **more: Any) -> list[Any]:
    """The two lines of an attempt; one where it was lost."""
    place = {key: more[key] for key in ("arm", "attempt", "series") if key in more}
    if outcome is Outcome.LOST:
        return [started(index, **place)]
    return [started(index, **place), finished(index, outcome, **more)]


def warmup(index: int, outcome: Outcome = Outcome.WARMUP, *, arm: str = ONLY_ARM, **more: Any) -> list[Any]:
    """The two lines of a repeat that is run before the planned ones."""
    name = warmup_id("gate-a", 1, arm, index)
    return [
        Started(repeat=name, arm=arm, index=index, attempt=1, warmup=True),
        Finished(repeat=name, attempt=1, outcome=outcome, values={"t": 99.0}, **more),
    ]


def session_bytes(*lines: Any, footed: bool = True, head: Header | None = None) -> bytes:
    body = b"".join(encode(line) for line in (head or header(), *lines))
    footer = Footer(lines=body.count(b"\n"), digest=digest(body), ended="finished")
    return body + encode(footer) if footed else body


def write_session_file(folder: Path, name: str, *lines: Any, footed: bool = True, **changes: Any) -> Path:
    """Puts a session file below the evidence ``folder``."""
    head = header(**changes)
    path = folder / head.experiment / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(session_bytes(*lines, footed=footed, head=head))
    return path
