"""Pages that quote what the lock no longer says: they are written anew before the commit that changes it.

A hook that checks quoted numbers (``prereg-cite``) refuses that commit otherwise.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_prereg.audit.assess import StudyState
from pytest_prereg.errors import PreregError
from pytest_prereg.evidence.naming import shown
from pytest_prereg.registry.load import find_studies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.registry.model import Study


def pages_behind(study: Study) -> list[Path]:
    """Return the pages with a number that is another one now: ``cite`` would write them, all of it.

    None where something is cited that can't be quoted: then ``cite`` fails, and says why.
    """
    from pytest_prereg.audit.citing.citations import read_page  # noqa: PLC0415 - a parser of Markdown
    from pytest_prereg.audit.citing.figures import Figures  # noqa: PLC0415
    from pytest_prereg.audit.citing.neighbours import Neighbours  # noqa: PLC0415
    from pytest_prereg.audit.citing.pages import cites, listing, uncheckable  # noqa: PLC0415

    with suppress(PreregError):  # what can't be read is told of by whoever needs it
        state = StudyState(study)
        listed = listing(state)
        citing = [path for path in listed.pages if cites(path)]
        if not citing or uncheckable(listed.documents):
            return []
        figures, neighbours = Figures(state), Neighbours(state)
        pages = [read_page(path, figures, neighbours) for path in citing]
        if not any(page.problems for page in pages):
            return [page.path for page in pages if page.changes]
    return []


def cite_first(study: Study, pages: Sequence[Path]) -> str:
    """Return the command that writes the pages, to stand before the one that commits them; else nothing."""
    if not pages:
        return ""
    is_only = [one.resolve() for one in find_studies(Path())] == [study.path.resolve()]
    return f"pytest-prereg cite{'' if is_only else f' --study {shlex.quote(shown(study.path))}'} && "
