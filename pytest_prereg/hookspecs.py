"""Hooks that pytest-prereg offers to other plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_prereg.evidence.importers.found import Importer
    from pytest_prereg.measure.executors.base import Elsewhere
    from pytest_prereg.measure.instruments.reading import Reader
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


@hookspec
def pytest_prereg_executor() -> type[Elsewhere] | Sequence[type[Elsewhere]]:  # type: ignore[empty-body]
    """Return an executor, or several: each a class that runs the repeats of one experiment somewhere.

    Found as importers are, and loaded once a study or ``--prereg-executor`` names an executor that is none of
    the package's own. What it needs, it imports when it is started.
    """


@hookspec
def pytest_prereg_instrument() -> type[Reader] | Sequence[type[Reader]]:  # type: ignore[empty-body]
    """Return an instrument, or several: each a class that takes one reading over one window.

    Found as importers are, and loaded in a repeat whose body reads with an instrument that is none of the
    package's own. It decides nothing until a study's ``[instruments.NAME]`` says why it may.
    """
