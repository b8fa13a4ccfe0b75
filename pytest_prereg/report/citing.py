"""What ``pytest-prereg cite`` says of the numbers that it wrote or checked; nothing here prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.evidence.naming import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_prereg.audit.citing.citations import Page


def written_lines(page: Page) -> list[str]:
    """Return ``README.md:12: 0.57 -> 0.575`` for each text that was written."""
    path = shown(page.path)
    return [f"{path}:{one.line}: {one.found or 'nothing'} -> {one.wanted}" for one in page.changes]


def cited_lines(pages: Sequence[Page], absent: int, *, failed: bool) -> list[str]:
    """Return how much is cited, and how much was not looked at.

    Args:
        pages: All that were read.
        absent: Pages that git keeps and that are not there.
        failed: Whether anything is wrong: then nobody is told that all is well.
    """
    cited = sum(page.cited for page in pages)
    files = sum(bool(page.cited) for page in pages)
    if cited:
        stand = "" if failed else f" stand{'s' * (cited == 1)} as recorded"
        first = f"{_count(cited, 'citation')} in {_count(files, 'file')}{stand}"
    else:
        first = f"no citations in {_count(len(pages), 'Markdown file')}"
    return ["; ".join([first, *_left_alone(pages)]), *_absent(absent)]


def _left_alone(pages: Sequence[Page]) -> Iterator[str]:
    if in_code := sum(page.in_code for page in pages):
        yield f"{in_code} in code left alone"
    if elsewhere := sum(page.elsewhere for page in pages):
        yield f"{elsewhere} of other studies not looked at (--study FILE)"


def _absent(count: int) -> list[str]:
    return [f"{_count(count, 'Markdown file')} not in the work tree, not looked at"] if count else []


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
