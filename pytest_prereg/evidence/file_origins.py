"""What a header says of the files that an import came from: one, or several that were given together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_prereg.evidence.model import Header

_BLOB = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def origins_of(header: Header | None) -> list[dict[str, Any]]:
    """Return an entry for each file: its name, format, digest, blob, and what was taken for granted."""
    imported = header.imported if header is not None else None
    if not imported:
        return []
    several = imported.get("files")
    return [one for one in several if isinstance(one, dict)] if isinstance(several, list) else [imported]


def digests_of(header: Header | None) -> frozenset[str]:
    """Return the digests of the files that an import came from, as its header has them."""
    return frozenset(digest for one in origins_of(header) if (digest := _digest_of(one)) is not None)


def blob_of(origin: Mapping[str, Any]) -> str | None:
    """Return what git calls one of these files; ``None`` where its header doesn't say."""
    blob = origin.get("blob")
    return blob if isinstance(blob, str) and _BLOB.fullmatch(blob) else None


def _digest_of(origin: Mapping[str, Any]) -> str | None:
    digest = origin.get("digest")
    return digest if isinstance(digest, str) else None
