"""The importers by the names of their formats; one is loaded when a file asks for it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from pytest_prereg.evidence.importers.foreign import ForeignImporter
from pytest_prereg.registry.formats import FORMATS, known_formats
from pytest_prereg.registry.plugins import brought_importers
from pytest_prereg.registry.refusals import RefusedError, quoted, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.evidence.importers.complaints import Complaints
    from pytest_prereg.evidence.importers.found import Importer

PLAIN = ("csv", "json")
"""Formats of rows, which no tool owns."""

MODULES = {name: name.replace("-", "_") for name in FORMATS if name not in PLAIN}
"""By format, the module of this package whose ``IMPORTER`` reads it."""


def importer_of(name: str, complaints: Complaints) -> Importer:
    """Return the importer of a format.

    Raises:
        EvidenceError: PR127: there is none of that name, or a plugin can't be loaded.
    """
    if name in MODULES:
        return _own(name)
    try:
        if brought := brought_importers().get(name):
            return ForeignImporter(brought)
        known = known_formats()
    except RefusedError as error:
        complaints.fail(error.code, str(error), advice=error.advice)
    return complaints.fail("PR127", f"unknown format {quoted(name)}{suggestion(name, known, 'known')}")


def own_importers() -> Iterator[Importer]:
    """Yield the importers that come with the package."""
    return map(_own, MODULES)


def foreign_importers(complaints: Complaints) -> list[Importer]:
    """Return those that plugins bring.

    Raises:
        EvidenceError: PR127: a plugin can't be loaded.
    """
    try:
        return [ForeignImporter(one) for name, one in brought_importers().items() if name not in FORMATS]
    except RefusedError as error:
        complaints.fail(error.code, str(error), advice=error.advice)


def _own(name: str) -> Importer:
    return cast("Importer", import_module(f"{__package__}.{MODULES[name]}").IMPORTER)
