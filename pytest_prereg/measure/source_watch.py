"""Notices that the code, the subject or the data of an experiment change while it is being measured.

A fork server has imported most of the code before, but what a body imports or reads itself is read in every
repeat. A series is of one subject: what was measured of another is none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.errors import MeasureError, Problem, StudyError
from pytest_prereg.evidence.naming import shown
from pytest_prereg.registry.refusals import quoted
from pytest_prereg.registry.sources import source_digest, source_files
from pytest_prereg.registry.subjects import data_digest, data_files, subject_digest, subject_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_prereg.evidence.model import Header
    from pytest_prereg.registry.model import Experiment, Study

State = tuple[int, ...]

GONE = {"PR042": "subject", "PR043": "data"}
"""What changed where it can't be found any more, by the code that says so."""

OTHERWISE = {"code": "amend", "data": "amend", "subject": "leave it"}
"""What leads to a new series; a subject may change."""


class SourceWatch:
    """Compares the files that count with what a session's header says that it measures."""

    def __init__(self, study: Study, experiment: Experiment, header: Header) -> None:
        self.study = study
        self.experiment = experiment
        self.header = header
        self.files = source_files(study, experiment)
        self._seen: dict[Path, State | None] = {}
        """How the files were when their digests were last taken."""

    def check(self) -> None:
        """Look whether a file was touched, came or went, and if so, whether that changed what counts.

        Raises:
            MeasureError: PR103.
        """
        try:
            now = {path: _state(path) for path in self._watched()}
            changed = None if now == self._seen else self._changed()
        except OSError:
            changed = "code"
        except StudyError as error:
            changed = GONE[error.problems[0].code]
        if changed is not None:
            raise MeasureError(self._problem(changed))
        self._seen = now

    def _watched(self) -> Iterator[Path]:
        """Every file that a digest is taken of; what globs match by now may be other files."""
        yield from self.files
        yield from subject_files(self.study, self.experiment)
        yield from data_files(self.study, self.experiment)

    def _changed(self) -> str | None:
        """What is no longer as the header has it.

        The source digest takes the data in: they are looked at by themselves only to tell what changed.
        """
        if subject_digest(self.study, self.experiment) != self.header.subject:
            return "subject"
        if source_digest(self.study, self.experiment) == self.header.source:
            return None
        return "code" if data_digest(self.study, self.experiment) == self.header.data else "data"

    def _problem(self, what: str) -> Problem:
        source = self.experiment.source
        changed = f"the {what} of experiment {quoted(self.experiment.id)} changed while it was measured"
        return Problem(
            code="PR103",
            message=f"{changed}; the last repeat does not count",
            path=shown(source.path) if source and source.path else None,
            advice=f"Restore it, and the same command goes on; or {OTHERWISE[what]}: that is a new series.",
        )


def _state(path: Path) -> State | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
