"""Numbers quoted in Markdown: ``<!-- prereg: training-is-free.estimate -->0.575<!-- /prereg -->``.

What stands between the marks is written by ``pytest-prereg cite`` and checked by ``cite --check``: it is what
the lock records, as long as that follows from the evidence and its exclusions. The grammar of a reference is
in :mod:`pytest_prereg.audit.citing.references`; what is code, and so no citation, is found by
:mod:`pytest_prereg.audit.citing.markdown`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.citing.marks import marks_of
from pytest_prereg.audit.citing.quotable import CODE
from pytest_prereg.audit.citing.references import parse_reference
from pytest_prereg.audit.citing.surroundings import beside
from pytest_prereg.errors import Problem, StudyError
from pytest_prereg.registry.refusals import RefusedError, quoted
from pytest_prereg.registry.toml import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.audit.citing.figures import Figure, Figures
    from pytest_prereg.audit.citing.marks import Mark
    from pytest_prereg.audit.citing.neighbours import Neighbours


class Change(msgspec.Struct, kw_only=True, frozen=True):
    """A citation whose text is not what it has to be."""

    line: int
    reference: str
    found: str
    wanted: str
    start: int
    """Where ``found`` begins in the text of the page; ``end`` is where it ends."""
    end: int

    def problem(self, path: str) -> Problem:
        """Return it as an error."""
        message = f"{quoted(self.reference)} is quoted as {quoted(self.found)}, and is {quoted(self.wanted)}"
        return Problem(
            code=CODE, path=path, line=self.line, message=message, advice="To write it: pytest-prereg cite"
        )


class Page(msgspec.Struct, kw_only=True, frozen=True):
    """A Markdown file with all that it cites of one study."""

    path: Path
    text: str
    cited: int
    """Citations of this study."""
    elsewhere: int
    """Citations of studies beside it."""
    in_code: int
    """What is code and left alone."""
    changes: tuple[Change, ...]
    problems: tuple[Problem, ...]
    """What can't be written: no citation, or of something that can't be quoted."""
    references: tuple[tuple[int, str], ...] = ()
    """Every line on which something is cited, and what."""

    def cited_on(self, line: int | None) -> str:
        """Return the prediction that is cited on a line; empty where there is none, or several are."""
        found = {_prediction(reference) for at, reference in self.references if at == line}
        return found.pop() if len(found) == 1 else ""

    @property
    def complaints(self) -> list[Problem]:
        """Everything that is wrong, numbers that differ included, in the order of its lines."""
        path = shown(self.path)
        every = [*self.problems, *(change.problem(path) for change in self.changes)]
        return sorted(every, key=lambda problem: problem.line or 0)


def read_page(path: Path, figures: Figures, neighbours: Neighbours) -> Page:
    """Return what a Markdown file cites, held against what can be quoted now."""
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        return _unreadable(path, f"can't be read: {error.strerror}")
    except UnicodeDecodeError as error:
        return _unreadable(path, f"is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}")
    return page_of(path, text, figures, neighbours)


def page_of(path: Path, text: str, figures: Figures, neighbours: Neighbours) -> Page:
    """Return what a Markdown text cites; ``path`` is for messages."""
    marks, name = marks_of(text), shown(path)
    problems = [
        Problem(code=CODE, path=name, line=flaw.line, message=flaw.message, advice=flaw.advice)
        for flaw in marks.flaws
    ]
    changes: list[Change] = []
    elsewhere = 0
    for mark in marks.found:
        try:
            change = _held(mark, text, figures, neighbours)
        except RefusedError as refusal:
            problems.append(_refused(mark, refusal, name))
            continue
        if change is None:
            elsewhere += 1
        elif change.found != change.wanted:
            changes.append(change)
    return Page(
        path=path,
        text=text,
        cited=len(marks.found) - elsewhere,
        elsewhere=elsewhere,
        in_code=marks.in_code,
        changes=tuple(changes),
        problems=tuple(sorted(problems, key=lambda problem: problem.line or 0)),
        references=tuple((mark.line, mark.reference) for mark in marks.found),
    )


def _prediction(reference: str) -> str:
    """Return the id of what is cited; empty for a total, and for what cites nothing."""
    with contextlib.suppress(RefusedError):
        found = parse_reference(reference)
        return "" if found.is_total else found.id
    return ""


def _held(mark: Mark, text: str, figures: Figures, neighbours: Neighbours) -> Change | None:
    """Hold a citation against what it has to say; ``None`` for one of another study.

    Raises:
        RefusedError: It can't be written.
    """
    reference = parse_reference(mark.reference)
    if not neighbours.is_own(reference):
        return None
    figure = figures.figure(reference)
    _check_form(mark, text, figure)
    return Change(
        line=mark.line,
        reference=mark.reference,
        found=mark.text,
        wanted=figure.text,
        start=mark.start,
        end=mark.end,
    )


def _check_form(mark: Mark, text: str, figure: Figure) -> None:
    if mark.text != figure.text and not mark.is_plain:
        advice = f"Between the marks is {quoted(figure.text)} alone; emphasis goes around them."
        raise RefusedError(CODE, f"it holds more than what it cites: {quoted(mark.text)}", advice)
    if wrong := beside(text, mark._replace(text=figure.text), figure.unit):
        raise RefusedError(
            CODE, f"{quoted(figure.text)} is not what is read: {wrong}", "Put a word between them."
        )


def _refused(mark: Mark, refusal: RefusedError, path: str) -> Problem:
    found = f"quoted as {quoted(mark.text)}" if mark.text else "not written yet"
    message = f"{quoted(mark.reference)} is {found}: {refusal}"
    return Problem(code=CODE, path=path, line=mark.line, message=message, advice=refusal.advice)


def _unreadable(path: Path, message: str) -> Page:
    problem = Problem(code=CODE, path=shown(path), message=message)
    return Page(path=path, text="", cited=0, elsewhere=0, in_code=0, changes=(), problems=(problem,))


def rewritten(text: str, changes: Iterable[Change]) -> str:
    """Return a text with the changes made, and nothing else."""
    parts, at = [], 0
    for change in changes:
        parts += [text[at : change.start], change.wanted]
        at = change.end
    return "".join([*parts, text[at:]])


def write_page(page: Page) -> None:
    """Make the changes of a page in its file, in one step: who reads meanwhile has the old or the new one.

    Raises:
        StudyError: PR210, it can't be written, or is no longer what was read; it is as it was.
    """
    target = page.path.resolve()
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        if target.read_bytes() != page.text.encode():
            raise StudyError(_unwritten(page, "it was changed meanwhile"))
        with draft.open("xb") as file:
            file.write(rewritten(page.text, page.changes).encode())
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(target, draft)
        draft.replace(target)
    except OSError as error:
        raise StudyError(_unwritten(page, error.strerror or str(error))) from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()


def _unwritten(page: Page, reason: str) -> Problem:
    return Problem(code=CODE, path=shown(page.path), message=f"can't be written: {reason}")
