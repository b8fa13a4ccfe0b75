"""What an importer finds in a text, and what it is refused with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_prereg.errors import EvidenceError
from pytest_prereg.evidence.importers.complaints import Complaints

if TYPE_CHECKING:
    from pytest_prereg.evidence.importers.found import FoundBenchmark, FoundRepeat, Importer


def as_bytes(content: Any) -> bytes:
    if isinstance(content, bytes):
        return content
    return (content if isinstance(content, str) else json.dumps(content)).encode()


def read(importer: Importer, data: bytes) -> list[FoundBenchmark]:
    complaints = Complaints("results")
    benchmarks = importer.read(data, complaints)
    complaints.raise_if_any()
    return benchmarks


def found(importer: Importer, content: Any) -> list[FoundBenchmark]:
    data = as_bytes(content)
    assert importer.recognises("results", data)
    return read(importer, data)


def repeat_of(importer: Importer, content: Any) -> FoundRepeat:
    """The one repeat of the one benchmark."""
    (benchmark,) = found(importer, content)
    (repeat,) = benchmark.repeats
    return repeat


def refused(importer: Importer, content: Any) -> str:
    with pytest.raises(EvidenceError) as caught:
        read(importer, as_bytes(content))
    return "\n".join(str(problem).removeprefix("results:").strip() for problem in caught.value.problems)
