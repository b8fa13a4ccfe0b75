"""What a CSV or JSON file is that holds no rows: told in one sentence, and not column by column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.registry.formats import FORMATS
from pytest_prereg.registry.refusals import listed, quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pytest_prereg.evidence.importers.complaints import Complaints
    from pytest_prereg.evidence.importers.records import Record

_VERSIONS = ("commit", "sha", "revision", "rev", "hash", "git_hash", "commit_hash", "changeset")
_ADVICE = (
    "A row is one reading of one repeat: arm,repeat,metric,value,unit in CSV, such as new,1,t,1.5,s;\n"
    'in JSON {"arm": "new", "repeat": 1, "metric": "t", "value": 1.5, "unit": "s"}.\n'
    f"Of other tools these are read: {', '.join(FORMATS[2:])}."
)
_HEAD = 4096


def refuse_comments(data: bytes, complaints: Complaints) -> None:
    """Refuse text that begins with a comment: it is the log of some tool, and no CSV.

    Raises:
        EvidenceError: PR110: it does.
    """
    head = data[:_HEAD].lstrip(b"\xef\xbb\xbf \t\r\n")
    if not head.startswith(b"#"):
        return
    if b"Histogram log" in head:
        message = "this is a log of histograms, interval by interval of one run, and holds no rows"
    else:
        first = head.split(b"\n", 1)[0].decode("utf-8", "replace").strip()
        message = f"the file begins with a comment, {quoted(first)}, and not with the columns of rows"
    complaints.fail("PR110", message, advice=_ADVICE)


def refuse_no_rows(
    records: Sequence[Record], columns: Collection[str], needed: Sequence[str], complaints: Complaints
) -> None:
    """Refuse records of which none has any of the columns that a row needs.

    Args:
        records: what was read, at least one.
        columns: all columns that any of them has.
        needed: those that a row must have.
        complaints: of the file.

    Raises:
        EvidenceError: PR111: so it is.
    """
    if not columns or not set(columns).isdisjoint(needed):
        return
    version = next((column for column in columns if column.strip().lower() in _VERSIONS), None)
    if any(isinstance(cell, dict | list) for record in records for cell in record.cells.values()):
        what = "one object" if len(records) == 1 else "a list of objects"
        message = f"this is {what} with {listed(columns)}, nested, and holds no rows"
    elif version is not None:
        message = f"this is a history, with readings for each {quoted(version)}, and holds no repeats"
    else:
        message = f"the columns are {listed(columns)}, and none is {listed(needed, 'or')}"
    complaints.fail("PR111", message, advice=_ADVICE)
