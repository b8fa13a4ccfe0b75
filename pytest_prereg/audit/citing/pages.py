"""Which files of a study can cite it: all Markdown that git keeps, and is looked at without being named."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.audit.citing.neighbours import common_folder
from pytest_prereg.audit.citing.quotable import CODE
from pytest_prereg.errors import Problem
from pytest_prereg.registry.refusals import typed
from pytest_prereg.registry.toml import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pytest_prereg.audit.assess import StudyState

MARKDOWN = frozenset(
    {
        ".md",
        ".markdown",
        ".mdown",
        ".mdwn",
        ".mdtxt",
        ".mdtext",
        ".mkd",
        ".mkdn",
        ".mkdown",
        ".mdx",
        ".qmd",
        ".rmd",
        ".livemd",
    }
)
OTHERS = frozenset(
    {
        ".rst",
        ".txt",
        ".html",
        ".htm",
        ".xhtml",
        ".svg",
        ".ipynb",
        ".adoc",
        ".asciidoc",
        ".asc",
        ".org",
        ".tex",
        ".typ",
        ".textile",
        ".rdoc",
        ".creole",
        ".mediawiki",
        ".wiki",
        ".pod",
        ".ronn",
        ".scd",
        ".workbook",
        ".text",
        ".rest",
        "",
    }
)
"""Documents in which nobody would check a citation; without a suffix, those called README and the like."""

_MARK = re.compile(rb"<!--\s*+prereg\s*+:")
_BARE = re.compile(r"[A-Z]{4,}")
_FOREIGN_FOLDERS = frozenset({"node_modules", "site-packages", "__pycache__"})


class Listing(NamedTuple):
    """The files of a study."""

    pages: list[Path]
    """Its Markdown."""
    documents: list[Path]
    """What else is read by people."""
    absent: int
    """Markdown that git keeps and that is not in the work tree."""


def listing(state: StudyState, named: Sequence[Path] = ()) -> Listing:
    """Return the files that were ``named``, else those below the study's folder that git tracks, or would.

    Without git it is all that is there, hidden folders and virtual environments left out.
    """
    if named:
        return Listing(list({path.resolve(): path for path in named}.values()), [], 0)
    folder = common_folder(state.study)
    files = list(walked(folder) if state.repository is None else state.repository.files_below(folder))
    pages = [path for path in files if path.suffix.lower() in MARKDOWN]
    here = {path.resolve(): path for path in reversed(pages) if path.is_file()}
    documents = [path for path in files if _is_document(path) and path.is_file()]
    absent = sum(not path.is_file() for path in pages)
    return Listing(sorted(here.values()), documents, absent)


def walked(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, hidden ones and those of virtual environments left out."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in _FOREIGN_FOLDERS:
            continue
        if not path.is_dir():
            yield path
        elif not path.is_symlink() and not (path / "pyvenv.cfg").exists():
            yield from walked(path)


def cites(page: Path) -> bool:
    """Whether there is a mark of a citation in a page, in code or not."""
    return _MARK.search(_bytes(page)) is not None


def uncheckable(documents: Iterable[Path]) -> list[Problem]:
    """Return a problem for each document that cites, and is not Markdown."""
    found = ((path, _MARK.search(data)) for path in documents for data in [_bytes(path)])
    return [_uncheckable(path, match) for path, match in found if match]


def _uncheckable(path: Path, match: re.Match[bytes]) -> Problem:
    return Problem(
        code=CODE,
        path=shown(path),
        line=match.string.count(b"\n", 0, match.start()) + 1,
        message="cites, and is not checked: it is not Markdown",
        advice=f"Name it, if it can be read as Markdown: pytest-prereg cite {typed(shown(path))}",
    )


def _is_document(path: Path) -> bool:
    suffix = path.suffix.lower()
    return suffix in OTHERS and (suffix != "" or _BARE.fullmatch(path.name) is not None)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
