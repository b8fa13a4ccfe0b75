"""The pytest session of ``--prereg``: studies in place of tests, verdicts as outcomes, and a report."""

from __future__ import annotations

import faulthandler
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pytest_prereg import arguments
from pytest_prereg.announcing import announcements
from pytest_prereg.audit.assess import StudyState
from pytest_prereg.campaign import Campaign
from pytest_prereg.closing import closing_lines
from pytest_prereg.collection import PredictionItem, StudyFile, TombstoneItem
from pytest_prereg.errors import PreregError, UsageError
from pytest_prereg.evidence.naming import shown
from pytest_prereg.judge.model import Verdict
from pytest_prereg.measure.executors.choosing import check_executor
from pytest_prereg.mode import Mode, limits_of
from pytest_prereg.outcomes import StudyRun, credences, record_of, unmeasured
from pytest_prereg.progress import Progress
from pytest_prereg.recording import record_verdicts
from pytest_prereg.registry.load import load_study
from pytest_prereg.report.records import records_json
from pytest_prereg.report.scoreboard import scoreboard
from pytest_prereg.report.terminal import verdict_lines
from pytest_prereg.report.toll import toll_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from _pytest.terminal import TerminalReporter

    from pytest_prereg.audit.standing import Assessment
    from pytest_prereg.registry.model import Prediction
    from pytest_prereg.report.terminal import Shown

WORDS = {
    Verdict.SUPPORTED: ("passed", "+", ("SUPPORTED", {"green": True})),
    Verdict.REFUTED: ("failed", "-", ("REFUTED", {"red": True})),
    Verdict.INCONCLUSIVE: ("inconclusive", "?", ("INCONCLUSIVE", {"yellow": True})),
}
PENDING = ("pending", ".", ("PENDING", {"yellow": True}))
WITHDRAWN = ("withdrawn", ".", ("WITHDRAWN", {"yellow": True}))
UNDECIDED_GUARD = ("failed", "-", ("UNDECIDED", {"red": True}))
RECORDED_REFUTATION = ("passed", "r", ("REFUTED (recorded)", {"yellow": True}))


class PreregSession:
    """Collects studies instead of tests, and turns verdicts into pytest's outcomes."""

    def __init__(self, config: pytest.Config, mode: Mode) -> None:
        self.config = config
        self.mode = mode
        self.limits = limits_of(config.option)
        """What is left to spend is one sum over all studies of the run."""
        self.progress = Progress(config)
        self.studies = config.stash.get(arguments.STUDIES, ())
        self.runs: dict[Path, StudyRun] = {}
        self.assessments: dict[str, tuple[StudyRun, Assessment]] = {}
        self.buried: dict[str, TombstoneItem] = {}
        """What was withdrawn and is no longer in a study, by node id."""
        self.interrupted = False
        self.recorded: dict[Path, int] = {}
        """How many verdicts were written into the lock of a study."""
        self.unwritten: list[str] = []

    @classmethod
    def from_config(cls, config: pytest.Config) -> PreregSession:
        """Settle the mode from the options and the environment."""
        mode = Mode.from_options(config.option, ci=bool(os.environ.get("CI")))
        try:
            check_executor(config.option.prereg_executor)
        except UsageError as error:
            raise pytest.UsageError(str(error)) from error
        return cls(config, mode)

    def open_study(self, path: Path) -> StudyRun:
        """Load a study once."""
        if path not in self.runs:
            state = StudyState(load_study(path))
            fresh, explore = self.mode.fresh, self.mode.explore
            campaign = Campaign(
                state,
                fresh=fresh,
                explore=explore,
                progress=self.progress,
                limits=self.limits,
                executor=self.config.option.prereg_executor,
            )
            _, unicode = self._form()
            self.runs[path] = StudyRun(state, self.mode, campaign, unicode=unicode)
        return self.runs[path]

    # Collection: studies only

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave out every file but the selected studies, and every folder that leads to none.

        A folder that leads to one is entered whatever it is called: ``norecursedirs`` is about tests.
        """
        if collection_path.is_dir():
            return not any(study.is_relative_to(collection_path) for study in self.studies)
        return None if collection_path in self.studies else True

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector:
        """Collect every folder as a plain one: a package on the way to a study is not imported."""
        return pytest.Dir.from_parent(parent, path=path)

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a selected study."""
        if file_path in self.studies:
            return StudyFile.from_parent(parent, path=file_path)
        return None

    def pytest_report_header(self) -> list[str]:
        """Say what this run may do, and what it switched off."""
        executor = self.config.option.prereg_executor
        where = f" · {executor}" if executor and self.mode.measure else ""
        lines = [f"prereg: {self.mode}{where}"]
        neutralised = self.config.stash.get(arguments.NEUTRALISED, None)
        if neutralised:
            names = ", ".join(neutralised)
            lines.append(f"prereg: switched off: {names} (predictions are measured once, alone and untimed)")
        return lines

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what is selected, and show under ``--co`` what a run would measure."""
        chosen = [item for item in session.items if isinstance(item, PredictionItem)]
        for run in self.runs.values():
            run.selected = {item.prediction.id for item in chosen if item.run is run}
        writer: TerminalReporter | None = self.config.pluginmanager.get_plugin("terminalreporter")
        if writer is None or not self.config.option.collectonly or not self.mode.measure:
            return
        for run in self.runs.values():
            own = [item.prediction for item in chosen if item.run is run]
            for line in self._announced(run, own):
                writer.line(line)

    def _announced(self, run: StudyRun, predictions: list[Prediction]) -> Generator[str]:
        try:
            yield from announcements(run.campaign, predictions)
        except PreregError as error:
            yield str(error)

    # Running: once, whatever else is installed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Hand the item straight to pytest's own runner, so that nothing runs it again."""
        if not isinstance(item, (PredictionItem, TombstoneItem)):
            return None
        faulthandler.cancel_dump_traceback_later()  # faulthandler_timeout is about tests, too
        runner: Any = self.config.pluginmanager.get_plugin("runner")
        runner.pytest_runtest_protocol(item, nextitem)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None]:
        """Show how measuring goes on, then go on with the item's line."""
        try:
            return (yield)
        finally:
            self.progress.end(item)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the record to the reports, where other plugins find it."""
        report = yield
        if isinstance(item, PredictionItem) and item.assessment is not None:
            assessment = item.assessment
            record = record_of(assessment)
            vars(report)["prereg"] = msgspec.to_builtins(record)
            if report.when == "setup":
                self.assessments[item.nodeid] = (item.run, assessment)
        elif isinstance(item, TombstoneItem):
            vars(report)["prereg"] = msgspec.to_builtins(item.shown.record)
            self.buried[item.nodeid] = item
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, Any] | None:
        """Give a verdict its category, letter and word."""
        record = getattr(report, "prereg", None)
        return None if record is None or report.when != "call" else _status(report, record)

    # The end: record, write, report

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Remember that the run was cut short, so that the summary says how to go on.

        That pytest itself stops after what it could not collect is something else.
        """
        self.interrupted = not isinstance(excinfo.value, pytest.Session.Interrupted)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Record verdicts where that was asked for, and write the JSON file; what can't be written fails."""
        if self.config.option.collectonly:
            return
        for write in (self._record, self._write_records):
            try:
                write()
            except (PreregError, OSError) as error:
                self.unwritten.append(_why(error))
                session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def _record(self) -> None:
        if self.mode.record and not self.interrupted:
            for path, run in self.runs.items():
                self.recorded[path] = record_verdicts(run, self._assessments(run))

    def _write_records(self) -> None:
        if name := self.config.option.prereg_json:
            path = self.config.invocation_params.dir / name
            path.parent.mkdir(parents=True, exist_ok=True)
            records = [record_of(assessment) for _, assessment in self.assessments.values()]
            records += [item.shown.record for item in self.buried.values()]
            path.write_bytes(records_json(records))

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Print a line per verdict, the scoreboard, and the next command."""
        width, unicode = self._form()
        for line in self.summary(width, unicode=unicode):
            terminalreporter.write_line(line)

    def _form(self) -> tuple[int, bool]:
        """Width of the terminal, and whether it shows more than ASCII."""
        reporter: Any = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None:
            return 80, True
        encoding = getattr(reporter._tw._file, "encoding", None) or ""  # noqa: SLF001
        return min(reporter._tw.fullwidth, 100), "UTF" in encoding.upper()  # noqa: SLF001

    def summary(self, width: int, *, unicode: bool) -> list[str]:
        """The report as lines."""
        if not self.studies:
            return arguments.nothing_here(self.config)
        judged = [run.shown(assessment) for run, assessment in self.assessments.values()]
        judged += [item.shown for item in self.buried.values()]
        if not judged:
            return [*self._empty(), *self._advice()]
        assessments = [assessment for _, assessment in self.assessments.values()]
        buried = [item.tombstone for item in self.buried.values()]
        above, below = scoreboard(
            [one.record for one in judged],
            width,
            unicode=unicode,
            unmeasured=unmeasured(assessments, buried),
            credences=credences(assessments, buried),
            overall=self._overall(),
            toll=toll_of(run.state for run in self.runs.values()).lines(),
        )
        verdicts = verdict_lines(judged, width, unicode=unicode)
        return [*above, *verdicts, *self._replications(width, unicode=unicode), *below, *self._advice()]

    def _overall(self) -> dict[str, float]:
        """Confidence of what may end early, over all its looks: one of them spends a part of the error."""
        return {
            one.prediction.id: one.prediction.confidence
            for run, one in self.assessments.values()
            if run.state.study.experiments[one.prediction.experiment].stopping is not None
        }

    def _empty(self) -> list[str]:
        """Which of the studies have no predictions."""
        studies = (run.state.study for run in self.runs.values())
        return [
            f"{shown(study.path)} has no predictions yet: see pytest-prereg init for an example"
            for study in studies
            if not study.predictions
        ]

    def _replications(self, width: int, *, unicode: bool) -> list[str]:
        by_series: dict[int, list[Shown]] = {}
        for run, assessment in self.assessments.values():
            for number, judged in run.replications(assessment):
                by_series.setdefault(number, []).append(judged)
        lines = [*self._earlier(width, unicode=unicode)]
        for number, several in sorted(by_series.items()):
            lines.append(f"series {number}, a replication:")
            lines.extend(verdict_lines(several, width, unicode=unicode))
        return lines

    def _earlier(self, width: int, *, unicode: bool) -> list[str]:
        """First series of what the next one decided: they stay to be seen."""
        first = [shown for run, one in self.assessments.values() if (shown := run.earlier(one))]
        if not first:
            return []
        return [
            "first series, which left it to the next to decide:",
            *verdict_lines(first, width, unicode=unicode),
        ]

    def _advice(self) -> list[str]:
        lines = [*self.unwritten]
        for path, run in self.runs.items():
            count = self.recorded.get(path)
            if count is not None:
                what = f"recorded {count} verdict{'s' * (count != 1)}" if count else "nothing new to record"
                lines.append(f"{what} in {shown(run.state.study.lock_path)}")
            again, recorded = self._again(), bool(count)
            lines.extend(
                closing_lines(run.campaign, again=again, interrupted=self.interrupted, recorded=recorded)
            )
        if self.interrupted and not self.runs:
            lines.append(f"resume:  {self._again()}   (nothing was measured yet)")
        return lines

    def _again(self) -> str:
        return self.mode.command(self.config.option)

    def _assessments(self, run: StudyRun) -> list[Assessment]:
        return [assessment for owner, assessment in self.assessments.values() if owner is run]


def _status(report: pytest.TestReport, record: dict[str, Any]) -> tuple[str, str, Any]:
    """Category, letter and word of an item that was called."""
    if record["status"] == "withdrawn":
        return WITHDRAWN
    if report.failed and record["changed"]:
        return "failed", "!", (f"CHANGED {record['recorded']} → {record['verdict']}", {"red": True})
    if report.failed and record["verdict"] in (None, Verdict.INCONCLUSIVE):
        return UNDECIDED_GUARD
    if record["verdict"] is None:
        return PENDING
    if report.passed and record["verdict"] == "refuted":
        return RECORDED_REFUTATION
    return WORDS[Verdict(record["verdict"])]


def _why(error: PreregError | OSError) -> str:
    """Return why something was not written, with the name of the file."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{shown(Path(error.filename))}: can't be written: {error.strerror}"
    return str(error)
