"""Notices that the code of an experiment changes while it is being measured.

A fork server has imported most of it before, but what a body imports itself is read in every repeat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.errors import MeasureError, Problem
from pytest_prereg.evidence.naming import shown
from pytest_prereg.registry.refusals import quoted
from pytest_prereg.registry.sources import source_digest, source_files

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_prereg.registry.model import Experiment, Study


class SourceWatch:
    """Compares the code with what a session's header says that it measures."""

    def __init__(self, study: Study, experiment: Experiment, digest: str | None) -> None:
        self.study = study
        self.experiment = experiment
        self.digest = digest
        self.files = source_files(study, experiment)
        self._seen: list[tuple[int, ...] | None] = []
        """How the files were when their digest was last taken."""

    def check(self) -> None:
        """Look whether a file was touched, and if so, whether that changed the code.

        Raises:
            MeasureError: PR103.
        """
        now = [_state(path) for path in self.files]
        if now == self._seen:
            return
        self._seen = now
        try:
            same = source_digest(self.study, self.experiment) == self.digest
        except OSError:
            same = False
        if not same:
            raise MeasureError(self._problem())

    def _problem(self) -> Problem:
        source = self.experiment.source
        what = f"the code of experiment {quoted(self.experiment.id)} changed while it was measured"
        return Problem(
            code="PR103",
            message=f"{what}; the last repeat does not count",
            path=shown(source.path) if source and source.path else None,
            advice="Restore it, and the same command goes on; or amend, and a new series is measured.",
        )


def _state(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
