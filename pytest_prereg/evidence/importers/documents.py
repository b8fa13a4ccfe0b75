"""From the bytes of a file to the JSON documents in it; what they mean comes later."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from pytest_prereg.evidence.importers.numbers import written
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_prereg.evidence.importers.complaints import Complaints

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_BLANK = re.compile(r"[ \t\r\n]*")


class Document(NamedTuple):
    """One JSON value of a file, and the line where it begins."""

    line: int
    value: Any


def read_text(data: bytes, complaints: Complaints) -> str:
    """Return the text of a file; a byte-order mark does no harm.

    Raises:
        EvidenceError: PR110: it is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        complaints.fail("PR110", "the file is not UTF-8 text", line=line, advice="Save it as UTF-8.")


def read_documents(data: bytes, complaints: Complaints) -> list[Document]:
    """Return the JSON values of a file, one or several that follow each other.

    Numbers that are none (``NaN``, ``Infinity``) are let through, as several tools write them.

    Raises:
        EvidenceError: PR110: it is not UTF-8, not JSON, or empty.
    """
    documents = list(_documents(read_text(data, complaints), complaints))
    if not documents:
        complaints.fail("PR110", "the file is empty")
    return documents


def read_document(data: bytes, complaints: Complaints) -> Any:
    """Return the one JSON value of a file.

    Raises:
        EvidenceError: PR110: it is not UTF-8, not JSON, empty, or several values.
    """
    documents = read_documents(data, complaints)
    if len(documents) > 1:
        complaints.fail(
            "PR110", "the file is not JSON: text follows where it should end", line=documents[1].line
        )
    return documents[0].value


def _documents(text: str, complaints: Complaints) -> Iterator[Document]:
    decoder = json.JSONDecoder(object_pairs_hook=_no_duplicates)
    has_surrogates = _SURROGATE.search(text) is not None
    position, line, counted = _skip(text, 0), 1, 0
    while position < len(text):
        line, counted = line + text.count("\n", counted, position), position
        try:
            value, position = decoder.raw_decode(text, position)
            if has_surrogates:
                json.dumps(value, ensure_ascii=False).encode()
        except json.JSONDecodeError as error:
            _not_json(error.msg, text.count("\n", 0, error.pos) + 1, complaints)
        except RecursionError:
            _not_json("it is nested too deep", line, complaints)
        except UnicodeEncodeError:
            _not_json("half a character is escaped in it", line, complaints)
        except _TwiceError as error:
            _not_json(f"the key {quoted(str(error))} is there twice", line, complaints)
        except ValueError:  # which Python raises of thousands of digits
            _not_json("a number has too many digits", line, complaints)
        yield Document(line, value)
        position = _skip(text, position)


class _TwiceError(Exception):
    """A key that an object has twice: no telling which of its values is meant."""


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise _TwiceError(next(key for key in keys if keys.count(key) > 1))
    return found


def _skip(text: str, position: int) -> int:
    blank = _BLANK.match(text, position)
    return blank.end() if blank else position


def _not_json(reason: str, line: int, complaints: Complaints) -> NoReturn:
    complaints.fail("PR110", f"the file is not JSON: {reason}", line=line)


def object_of(value: Any) -> dict[str, Any]:
    """Return a JSON object; an empty one for whatever else stands in its place."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """Return a JSON list; an empty one for whatever else stands in its place."""
    return value if isinstance(value, list) else []


def entries_of(holder: str, value: Any, complaints: Complaints) -> list[tuple[str, dict[str, Any]]]:
    """Return the objects of a JSON list, each with its place: ``benchmarks[3]``; complain of what is none.

    Args:
        holder: The place of the list.
        value: What stands there; what is no list has no entries.
        complaints: Of the file.
    """
    entries = []
    for number, one in enumerate(list_of(value)):
        if isinstance(one, dict):
            entries.append((f"{holder}[{number}]", one))
        else:
            complaints.add("PR110", f"{holder}[{number}] is {written(one)}, and no object")
    return entries


def text_of(value: Any) -> str | None:
    """Return text, or ``None`` for whatever else stands in its place."""
    return value if isinstance(value, str) and value else None


def may_have(data: bytes, every: Iterable[str], one_of: Iterable[str] = ("",)) -> bool:
    """Whether bytes may be a JSON object with all keys of ``every``, and a key of ``one_of``; cheap."""
    begins = data[:100].removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n").startswith(b"{")
    has_every = begins and all(f'"{key}"'.encode() in data for key in every)
    return has_every and any(not key or f'"{key}"'.encode() in data for key in one_of)
