"""The pytest session of ``--prereg``: studies in place of tests, verdicts as outcomes, and a report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pytest_prereg import arguments
from pytest_prereg.audit.assess import StudyState
from pytest_prereg.campaign import Campaign
from pytest_prereg.collection import PredictionItem, StudyFile
from pytest_prereg.judge.model import Verdict
from pytest_prereg.mode import Mode
from pytest_prereg.outcomes import StudyRun, record_of
from pytest_prereg.progress import Progress
from pytest_prereg.recording import record_verdicts
from pytest_prereg.registry.load import load_study
from pytest_prereg.report.records import records_json
from pytest_prereg.report.scoreboard import scoreboard
from pytest_prereg.report.terminal import verdict_lines

if TYPE_CHECKING:
    from collections.abc import Generator

    from _pytest.terminal import TerminalReporter

    from pytest_prereg.audit.assess import Assessment
    from pytest_prereg.report.terminal import Shown

WORDS = {
    Verdict.SUPPORTED: ("passed", "+", ("SUPPORTED", {"green": True})),
    Verdict.REFUTED: ("failed", "-", ("REFUTED", {"red": True})),
    Verdict.INCONCLUSIVE: ("inconclusive", "?", ("INCONCLUSIVE", {"yellow": True})),
}
PENDING = ("pending", ".", ("PENDING", {"yellow": True}))
RECORDED_REFUTATION = ("passed", "r", ("REFUTED (recorded)", {"yellow": True}))


class PreregSession:
    """Collects studies instead of tests, and turns verdicts into pytest's outcomes."""

    def __init__(self, config: pytest.Config, mode: Mode, taken: arguments.Taken) -> None:
        self.config = config
        self.mode = mode
        self.taken = taken
        self.runs: dict[Path, StudyRun] = {}
        self.assessments: dict[str, tuple[StudyRun, Assessment]] = {}
        self.interrupted = False
        self.written: list[str] = []

    @classmethod
    def from_config(cls, config: pytest.Config) -> PreregSession:
        """Settle the mode from the options and the environment."""
        mode = Mode.from_options(config.option, ci=bool(os.environ.get("CI")))
        taken = config.stash.get(arguments.TAKEN, arguments.Taken((), ()))
        return cls(config, mode, taken)

    def open_study(self, path: Path) -> StudyRun:
        """Load a study once."""
        if path not in self.runs:
            state = StudyState(load_study(path))
            progress = Progress(self.config)
            campaign = Campaign(
                state,
                fresh=self.mode.fresh,
                explore=self.mode.explore,
                executor=self.config.option.prereg_executor,
                progress=progress,
            )
            self.runs[path] = StudyRun(state, self.mode, campaign)
        return self.runs[path]

    # Collection: studies only

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave out every file but the selected studies, and every folder that leads to none."""
        if collection_path.is_dir():
            return (
                None if any(study.is_relative_to(collection_path) for study in self.taken.studies) else True
            )
        return None if collection_path in self.taken.studies else True

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector:
        """Collect every folder as a plain one: a package on the way to a study is not imported."""
        return pytest.Dir.from_parent(parent, path=path)

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a selected study."""
        if file_path in self.taken.studies:
            return StudyFile.from_parent(parent, path=file_path)
        return None

    def pytest_report_header(self) -> list[str]:
        """Say what this run may do, and what it switched off."""
        lines = [f"prereg: {self.mode}"]
        if self.taken.neutralised:
            names = ", ".join(self.taken.neutralised)
            lines.append(f"prereg: switched off from configuration: {names} (predictions are measured once)")
        return lines

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Show under ``--co`` what a run would measure."""
        if not self.config.option.collectonly or not self.mode.measure:
            return
        writer = self._writer()
        for item in session.items:
            if isinstance(item, PredictionItem):
                for line in item.run.campaign.announce(item.prediction):
                    writer.line(line)

    # Running: once, whatever else is installed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Hand the item straight to pytest's own runner, so that nothing runs it again."""
        if not isinstance(item, PredictionItem):
            return None
        runner: Any = self.config.pluginmanager.get_plugin("runner")
        runner.pytest_runtest_protocol(item, nextitem)
        return True

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
                self.config.hook.pytest_prereg_verdict(record=record)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, Any] | None:
        """Give a verdict its category, letter and word."""
        record = getattr(report, "prereg", None)
        if record is None or report.when != "call":
            return None
        if record["verdict"] is None:
            return PENDING
        if report.failed and record["changed"]:
            return "failed", "!", (f"CHANGED {record['recorded']} → {record['verdict']}", {"red": True})
        if report.passed and record["verdict"] == "refuted":
            return RECORDED_REFUTATION
        return WORDS[Verdict(record["verdict"])]

    # The end: record, write, report

    def pytest_keyboard_interrupt(self) -> None:
        """Remember that the run was cut short, so that the summary says how to go on."""
        self.interrupted = True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Record verdicts where that was asked for, and write the JSON file."""
        if self.mode.record and not self.interrupted:
            for run in self.runs.values():
                self.written.extend(record_verdicts(run, self._assessments(run)))
        if self.config.option.prereg_json:
            records = [record_of(assessment) for _, assessment in self.assessments.values()]
            Path(self.config.option.prereg_json).write_bytes(records_json(records))

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Print a line per verdict, the scoreboard, and the next command."""
        width = min(terminalreporter._tw.fullwidth, 100)  # noqa: SLF001
        unicode = "UTF" in (getattr(terminalreporter._tw._file, "encoding", None) or "").upper()  # noqa: SLF001
        for line in self.summary(width, unicode=unicode):
            terminalreporter.write_line(line)

    def summary(self, width: int, *, unicode: bool) -> list[str]:
        """The report as lines."""
        if not self.taken.studies:
            return ["no study here: pytest-prereg init writes one, or name a predictions.toml"]
        shown = [run.shown(assessment) for run, assessment in self.assessments.values()]
        if not shown:
            return self._advice()
        above, below = scoreboard([one.record for one in shown], width, unicode=unicode)
        verdicts = verdict_lines(shown, width, unicode=unicode)
        return [*above, *verdicts, *self._replications(width, unicode=unicode), *below, *self._advice()]

    def _replications(self, width: int, *, unicode: bool) -> list[str]:
        by_series: dict[int, list[Shown]] = {}
        for run, assessment in self.assessments.values():
            for number, shown in run.replications(assessment):
                by_series.setdefault(number, []).append(shown)
        lines = []
        for number, several in sorted(by_series.items()):
            lines.append(f"series {number}, a replication:")
            lines.extend(verdict_lines(several, width, unicode=unicode))
        return lines

    def _advice(self) -> list[str]:
        lines = list(self.written)
        for run in self.runs.values():
            lines.extend(run.campaign.advice(interrupted=self.interrupted, recorded=bool(self.written)))
        return lines

    def _assessments(self, run: StudyRun) -> list[Assessment]:
        return [assessment for owner, assessment in self.assessments.values() if owner is run]

    def _writer(self) -> TerminalReporter:
        reporter: TerminalReporter = self.config.pluginmanager.get_plugin("terminalreporter")  # type: ignore[assignment]
        return reporter
