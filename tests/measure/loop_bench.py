"""What sessions are run with in tests: an executor that answers as told, and a study on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.evidence.model import Finished, Header, Outcome
from pytest_prereg.evidence.series import assemble
from pytest_prereg.evidence.sessions import SessionWriter, read_session
from pytest_prereg.measure.executors.base import Job, OneAtATime, Result
from pytest_prereg.measure.loop import measure
from pytest_prereg.measure.schedule import seed_base
from pytest_prereg.registry.sources import source_digest
from pytest_prereg.registry.subjects import data_digest, subject_digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_prereg.registry.tables import RepeatsTable

OK = Result(outcome=Outcome.OK, values={"t": 0.5}, seconds={"total": 2.0})
FAULT = Result(outcome=Outcome.INFRASTRUCTURE, cause="killed", error="killed from outside")
FAILED = Result(outcome=Outcome.TASK_FAILED, cause="exception", error="RuntimeError")


class Script(OneAtATime):
    """An executor that answers as told, and then always the same; notes what it was asked."""

    name = "script"
    waiting: Callable[[], None]

    def __init__(self, *answers: Result | Callable[[Job], Result], then: Result = OK, waits: int = 0) -> None:
        super().__init__()
        self.answers = list(answers)
        self.then = then
        self.waits = waits
        self.jobs: list[Job] = []
        self.starts = self.closes = 0

    def start(self) -> None:
        self.starts += 1

    def prepare(self, _job: Job) -> None:
        for _ in range(self.waits):
            self.waiting()

    def run(self, job: Job) -> Result:
        self.jobs.append(job)
        answer = self.answers.pop(0) if self.answers else self.then
        return answer if isinstance(answer, Result) else answer(job)

    def close(self) -> None:
        self.closes += 1


class Bench:
    """A study on disk whose sessions can be run one after another."""

    def __init__(self, laboratory, monkeypatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(laboratory.folder / "cache"))
        self.laboratory = laboratory
        self.arrange()

    def arrange(self, body: str = "repeat.record('t', 1)", **options) -> None:
        self.study, self.experiment = self.laboratory.study(body, **{"arms": {"a": {}, "b": {}}, **options})

    def declare(self, **keys) -> None:
        """Gives the experiment's table other keys."""
        self.experiment = replace(self.experiment, table=replace(self.experiment.table, **keys))

    def arrange_rule(self, repeats: RepeatsTable | int) -> None:
        self.arrange(repeats=6)
        self.declare(repeats=repeats)

    def header(self, **fields) -> Header:
        standard = Header(
            version=1,
            study="study",
            experiment="lab",
            series=1,
            origin="measured",
            planned=self.experiment.planned,
            pairing="block",
            seed=seed_base(["sha256:a"], 1),
            source=source_digest(self.study, self.experiment),
            subject=subject_digest(self.study, self.experiment),
            data=data_digest(self.study, self.experiment),
            predictions={},
            head=None,
            dirty=None,
            session="00",
            created="2026-01-01T00:00:00Z",
            executor="local",
            environment={"cpu": "Z80"},
            versions={},
        )
        return replace(standard, **fields)

    def run(self, executor, *, header: Header | None = None, **options) -> list:
        """Runs one session to its end, whatever that is, and returns the lines of its file after the header."""
        files = self.files()
        series = next(iter(assemble(self.experiment, files)), None)
        header = header or self.header()
        writer = SessionWriter.open(self.study.evidence_folder, header)
        self.error = None
        try:
            self.stopped = measure(
                self.study, self.experiment, series, writer, executor, header=header, files=files, **options
            )
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001
            self.error = error
        return read_session(writer.path).lines[1:]

    def files(self) -> list:
        return [read_session(path) for path in sorted(self.study.evidence_folder.glob("lab/*.jsonl"))]

    def series(self):
        return assemble(self.experiment, self.files())[0]


def finished(lines):
    return [line for line in lines if isinstance(line, Finished)]
