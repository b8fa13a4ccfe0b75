"""Collecting what is wrong with a file, so that all of it is told at once."""

from __future__ import annotations

from typing import NoReturn

from pytest_prereg.errors import EvidenceError, Problem

_MOST = 100


class Complaints:
    """The problems of one file; beyond a hundred they are counted only."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._problems: list[Problem] = []
        self._more = 0

    def add(self, code: str, message: str, *, line: int | None = None, advice: str | None = None) -> None:
        """Note one problem."""
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
