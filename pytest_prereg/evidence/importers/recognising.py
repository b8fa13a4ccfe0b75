"""Of which format a file is, by its content: of which tool, or plain rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pytest_prereg.evidence.importers.catalogue import PLAIN, foreign_importers, importer_of, own_importers
from pytest_prereg.evidence.importers.rows import COLUMNS
from pytest_prereg.registry.formats import FORMATS
from pytest_prereg.registry.refusals import listed

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_prereg.evidence.importers.complaints import Complaints
    from pytest_prereg.evidence.importers.found import Importer
    from pytest_prereg.evidence.importers.rows import Form

_JSON = frozenset({".json", ".jsonl", ".ndjson"})
_COLUMNS = (b"repeat", b"metric", b"value")
_ENOUGH = 2
"""Of these; a name that is misspelt is told in full."""
_HEAD = 1 << 12


def importer_for(path: Path, data: bytes, form: str | None, complaints: Complaints) -> Importer | Form:
    """Return the importer of a file's tool, or the form of its rows.

    Args:
        path: The file; of its name only the ending says anything, and only of rows.
        data: What is in it.
        form: The format, where it was given.
        complaints: Of the file.

    Raises:
        EvidenceError: PR127: the format that was given is unknown; none was, and it is none that is known, or
            may be of several.
    """
    if form in PLAIN:
        return cast("Form", form)
    if form is not None:
        return importer_of(form, complaints)
    found = [one for one in own_importers() if one.recognises(path.name, data)]
    if not found and _are_rows(data):
        return _form(path, data)
    found = found or [one for one in foreign_importers(complaints) if one.recognises(path.name, data)]
    if len(found) > 1:
        names = listed((one.name for one in found), "or")
        complaints.fail("PR127", f"the file may be of format {names}", advice="Say which with --format.")
    if found:
        return found[0]
    if path.suffix.lower() in {".csv", *_JSON}:  # what is wrong with its rows is told in full
        return _form(path, data)
    return complaints.fail(
        "PR127",
        "the file is of no format that is known",
        advice=f"Known are {', '.join(FORMATS)}; name one with --format. "
        f"Plain rows have the columns {','.join(COLUMNS[:5])}.",
    )


def _are_rows(data: bytes) -> bool:
    """Whether the head of a file names the columns that rows must have; an empty one is of no tool."""
    head = data[:_HEAD]
    is_json = head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"[", b"{"))
    line = head if is_json else head.lstrip(b"\xef\xbb\xbf\r\n \t").split(b"\n", 1)[0]
    return not data.strip() or sum(name in line for name in _COLUMNS) >= _ENOUGH


def _form(path: Path, data: bytes) -> Form:
    """Rows whose name says nothing are JSON where they begin so."""
    if path.suffix.lower() in _JSON:
        return "json"
    is_json = data[:_HEAD].removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"[", b"{"))
    return "json" if is_json and path.suffix.lower() != ".csv" else "csv"
