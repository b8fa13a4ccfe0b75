"""The importers by the names of their formats; one is loaded when a file asks for it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from pytest_prereg.registry.formats import FORMATS

if TYPE_CHECKING:
    from pytest_prereg.evidence.importers.found import Importer

PLAIN = ("csv", "json")
"""Formats of rows, which no tool owns."""

MODULES = {name: name.replace("-", "_") for name in FORMATS if name not in PLAIN}
"""By format, the module of this package whose ``IMPORTER`` reads it."""


def importer_of(name: str) -> Importer | None:
    """Return the importer of a format, or ``None`` where there is none of that name."""
    if name not in MODULES:
        return None
    return cast("Importer", import_module(f"{__package__}.{MODULES[name]}").IMPORTER)
