"""Predictions as pytest items: plain items without fixtures, one per prediction, in the order of the file."""

from __future__ import annotations

import sys
import tomllib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_prereg.audit.withdrawn import tombstones
from pytest_prereg.errors import PreregError, Problem
from pytest_prereg.outcomes import properties, shown_tombstone
from pytest_prereg.registration import put_back
from pytest_prereg.report.terminal import withdrawn_text

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pytest_prereg.audit.standing import Assessment
    from pytest_prereg.audit.withdrawn import Tombstone
    from pytest_prereg.outcomes import StudyRun
    from pytest_prereg.registry.model import Prediction
    from pytest_prereg.session import PreregSession


class StudyFile(pytest.File):
    """A ``predictions.toml`` under ``--prereg``."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for every prediction; no experiment is imported."""
        session: PreregSession = self.config.pluginmanager.getplugin("prereg-session")
        try:
            run = session.open_study(self.path)
        except PreregError as error:
            raise self.CollectError(str(error)) from error
        for prediction in run.state.study.predictions.values():
            yield PredictionItem.from_parent(self, name=prediction.id, prediction=prediction, run=run)
        for name in run.state.removed():
            yield RemovedItem.from_parent(self, name=name)
        for tombstone in tombstones(run.state):
            yield TombstoneItem.from_parent(self, name=tombstone.id, tombstone=tombstone, run=run)


def fail(text: str) -> NoReturn:
    """Fail with ``text`` alone: in setup it is an error, in the call a failure; neither shows a traceback."""
    pytest.fail(text, pytrace=False)


class TomlItem(pytest.Item):
    """An item of a study, with what hooks of ordinary projects take any item to have."""

    cls = None
    instance = None

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.module = sys.modules[__name__]
        self.function = self.runtest
        self.originalname = self.name
        self.fixturenames: list[str] = []
        self.funcargs: dict[str, object] = {}


class PredictionItem(TomlItem):
    """One prediction; setup measures and judges, the call raises what the verdict means."""

    def __init__(self, *, prediction: Prediction, run: StudyRun, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.prediction = prediction
        self.run = run
        self.assessment: Assessment | None = None
        table = prediction.table
        tags = tuple(table.tags or ())
        self.extra_keyword_matches.update(tags)
        self.add_marker(pytest.mark.prereg(experiment=prediction.experiment, kind=table.kind, tags=tags))

    def setup(self) -> None:
        """Measure what is missing, judge, and refuse what can't be trusted."""
        if problems := self._assess():
            fail("\n".join(map(str, problems)))

    def _assess(self) -> Sequence[Problem]:
        """Measure and judge; return what forbids an outcome."""
        try:
            self.assessment = self.run.assess(self.prediction)
        except PreregError as error:
            with suppress(PreregError):  # what it says has been told
                self.assessment = self.run.state.assess(self.prediction)
            return error.problems
        self.user_properties.extend(properties(self.run.record(self.assessment)))
        self.ihook.pytest_prereg_verdict(record=self.run.record(self.assessment))
        return self.run.refusals(self.assessment)

    def runtest(self) -> None:
        """Turn the verdict into an outcome."""
        assessment = self.assessment
        if assessment is None:  # pragma: no cover - setup ran
            return
        if assessment.withdrawal is not None:
            pytest.skip(self.run.withdrawn_text(assessment))
        if self.run.fails(assessment):
            fail(self.run.explain(assessment))
        if assessment.judgement is None:
            pytest.skip(f"pending: {assessment.pending}")
        if assessment.judgement.verdict == "inconclusive":
            pytest.skip(f"inconclusive: {self.run.reason(assessment)}")

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Point at the prediction's line in the TOML file."""
        return self.path, self.prediction.line - 1, self.name


class RemovedItem(TomlItem):
    """A prediction that the lock registers and the study no longer has."""

    def setup(self) -> None:
        """Refuse: what was registered can be withdrawn with a reason, never dropped."""
        problem = Problem(
            code="PR203",
            message=f'"{self.name}" is registered, and is no longer in the study',
            path=self.path.name,
            advice=put_back(self.name),
        )
        fail(str(problem))

    def runtest(self) -> None:
        """Do nothing: setup refuses."""

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Name the prediction; it has no line any more."""
        return self.path, None, self.name


class TombstoneItem(TomlItem):
    """A prediction that was withdrawn and that the study no longer has: still shown, and still counted."""

    def __init__(self, *, tombstone: Tombstone, run: StudyRun, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tombstone = tombstone
        self.run = run
        self.shown = shown_tombstone(run.state, tombstone)

    def setup(self) -> None:
        """Refuse where its evidence was altered."""
        self.user_properties.extend(properties(self.shown.record))
        self.ihook.pytest_prereg_verdict(record=self.shown.record)
        if self.tombstone.problems:
            fail("\n".join(map(str, self.tombstone.problems)))

    def runtest(self) -> None:
        """Skip, and say why it was withdrawn and what it counts as."""
        pytest.skip(withdrawn_text(self.shown.record, self.shown.detail, self.shown.repeats))

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Name the prediction; it has no line any more."""
        return self.path, None, self.name


class UnaskedFile(pytest.File):
    """A prediction file named without ``--prereg``."""

    @staticmethod
    def suits(path: Path) -> bool:
        """Whether a TOML file looks like a study: nobody else's is collected."""
        return path.name == "predictions.toml" or b"[predictions." in path.read_bytes()

    def collect(self) -> Iterator[pytest.Item]:
        """Yield a skipped item for every prediction that a plain parse finds."""
        try:
            table = tomllib.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise self.CollectError(f"{self.path}: {error}") from error
        predictions = table.get("predictions")
        for name in predictions if isinstance(predictions, dict) else ():
            yield UnaskedItem.from_parent(self, name=name)


class UnaskedItem(TomlItem):
    """A prediction that nobody asked to judge."""

    def runtest(self) -> None:
        """Skip, and say how to judge it."""
        pytest.skip(f"needs --prereg: pytest --prereg {self.nodeid}")
