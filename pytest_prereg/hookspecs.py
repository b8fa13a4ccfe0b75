"""Hooks that pytest-prereg offers to other plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.evidence.importers.found import Importer
    from pytest_prereg.report.records import Record

hookspec = pluggy.HookspecMarker("pytest")


@hookspec
def pytest_prereg_verdict(record: Record) -> None:
    """Observe the record of a prediction once it is judged or found pending; nothing can be changed."""


@hookspec
def pytest_prereg_importer() -> Importer | Sequence[Importer]:  # type: ignore[empty-body]
    """Return an importer, or several: each reads the files of one format that the package does not know.

    Called where no pytest runs, too, so a plugin is found by an entry point of the group ``pytest_prereg``,
    and loaded once a file is of no format of the package's own, or ``--format`` or ``read`` names another.
    """
