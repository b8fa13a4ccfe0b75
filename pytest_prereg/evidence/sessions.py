"""Session files: writing them is :class:`SessionWriter`, reading them back and finding them is here."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from pytest_prereg.errors import EvidenceError, Problem
from pytest_prereg.evidence.files import Attempt, SessionFile
from pytest_prereg.evidence.links import check_links, known_digests
from pytest_prereg.evidence.naming import SUFFIX, shown
from pytest_prereg.evidence.parsing import Parser, parse
from pytest_prereg.evidence.sidecars import beside
from pytest_prereg.evidence.writing import SessionWriter

if TYPE_CHECKING:
    from collections.abc import Container
    from pathlib import Path

    from pytest_prereg.evidence.sidecars import Read
    from pytest_prereg.registry.model import Study

__all__ = [
    "Attempt",
    "SessionFile",
    "SessionWriter",
    "check_links",
    "known_digests",
    "parse_session",
    "read_session",
    "read_study_evidence",
    "session_paths",
]


def read_session(path: Path) -> SessionFile:
    """Read the session file at ``path``; what is wrong with it is among its ``problems``."""
    try:
        with path.open("rb") as stream:
            return parse(path, stream, beside(path))
    except OSError as error:
        parser = Parser(path)
        parser.problem(f"the file can't be read: {error.strerror}", line=None)
        return parser.result(torn=False)


def parse_session(data: bytes, path: Path, read: Read | None = None) -> SessionFile:
    """Read a session file from its bytes, as git has them.

    Args:
        data: What is in the file.
        path: Only its name: nothing is read from there.
        read: Gives what is in a sidecar by its name below the experiment's folder, ``None`` if it is gone.
            Without it a repeat with a large vector is among the ``problems``, as one that can't be read.
    """
    return parse(path, io.BytesIO(data), read)


def session_paths(folder: Path, experiments: Container[str] = ()) -> list[Path]:
    """Return the paths of all session files below the evidence folder, by experiment and name.

    Raises:
        EvidenceError: The folder or one below it can't be read, or is none where an experiment has its own.
    """
    below = [entry for entry in _entries(folder) if entry.is_dir() or entry.name in experiments]
    return sorted(path for entry in below for path in _entries(entry) if path.suffix == SUFFIX)


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        message = f"evidence can't be read: {error.strerror}"
        advice = "Nothing is judged or measured that depends on it, until it can be."
        raise EvidenceError(
            Problem(code="PR124", message=message, path=shown(folder), advice=advice)
        ) from error


def read_study_evidence(study: Study) -> dict[str, list[SessionFile]]:
    """Read every session file of ``study``: by experiment, in order of name, which is that of the sessions.

    Files of another study in the same folder are left out. The experiments of the study are all there,
    followed by those that only the evidence knows.

    Raises:
        EvidenceError: A folder can't be read (PR124): what can't be seen must not be taken for missing.
    """
    found: dict[str, list[SessionFile]] = {name: [] for name in study.experiments}
    for path in session_paths(study.evidence_folder, study.experiments):
        file = read_session(path)
        if (
            file.header is None or file.header.study == study.id or file.problems
        ):  # altered: whose is no telling
            found.setdefault(path.parent.name, []).append(file)
    return found
