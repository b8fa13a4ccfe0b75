"""Collecting what is wrong with a file, so that all of it is told at once."""

from __future__ import annotations

from typing import NoReturn

from pytest_prereg.errors import EvidenceError, Problem

_MOST = 100
CODES = frozenset({*(f"PR{number}" for number in range(110, 120)), "PR125", "PR126", "PR127"})
"""Of what may be wrong with a file to import."""


class Complaints:
    """The problems of one file; beyond a hundred they are counted only."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._problems: list[Problem] = []
        self._more = 0

    def add(self, code: str, message: str, *, line: int | None = None, advice: str | None = None) -> None:
        """Note one problem.

        Raises:
            ValueError: The code is none of such a problem, or the line is no number: importers of plugins may
                give anything, and what is wrong with that is told as theirs.
        """
        if code not in CODES:
            message = f"{code!r} is no code of what is wrong with a file; docs/importing.md has them"
            raise ValueError(message)
        if not isinstance(line, int | None):
            message = f"line {line!r} is no whole number"
            raise ValueError(message)  # noqa: TRY004  # one error for all that is wrong with what was given
        if len(self._problems) < _MOST:
            problem = Problem(code=code, message=message, path=self._path, line=line, advice=advice)
            self._problems.append(problem)
        else:
            self._more += 1

    def fail(
        self, code: str, message: str, *, line: int | None = None, advice: str | None = None
    ) -> NoReturn:
        """Note one problem that nothing can be read beyond, and raise all."""
        self.add(code, message, line=line, advice=advice)
        raise self._error()

    def raise_if_any(self) -> None:
        """Raise all problems, in the order of their lines.

        Raises:
            EvidenceError: there are any.

        """
        if self._problems:
            raise self._error()

    def _error(self) -> EvidenceError:
        problems = sorted(self._problems, key=lambda problem: problem.line or 0)
        if self._more:
            problems.append(
                Problem(code=problems[-1].code, message=f"… and {self._more} more", path=self._path)
            )
        return EvidenceError(problems)
