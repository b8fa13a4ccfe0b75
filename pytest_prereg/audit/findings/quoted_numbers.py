"""Numbers in Markdown that are no longer what is recorded, or can't be quoted: PR210, as ``cite --check``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.citing.citations import read_page
from pytest_prereg.audit.citing.figures import Figures
from pytest_prereg.audit.citing.neighbours import Neighbours
from pytest_prereg.audit.citing.pages import listing, uncheckable
from pytest_prereg.audit.finding import Finding, Level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.errors import Problem


def misquoted(state: StudyState) -> Iterator[Finding]:
    """Yield an error for each complaint of ``cite --check``, at the line of the page."""
    files = listing(state)
    figures, neighbours = Figures(state), Neighbours(state)
    for path in files.pages:
        page = read_page(path, figures, neighbours)
        for problem in page.complaints:
            yield _misquoted(problem, page.cited_on(problem.line))
    for problem in uncheckable(files.documents):
        yield _misquoted(problem, "")


def _misquoted(problem: Problem, prediction: str) -> Finding:
    return Finding(
        code=problem.code,
        id=prediction,
        level=Level.ERROR,
        message=problem.message,
        path=problem.path,
        line=problem.line,
        advice=problem.advice,
    )
