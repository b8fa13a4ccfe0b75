"""Short names of texts and numbers, so that an acknowledgement of one is none of another."""

from __future__ import annotations

import hashlib

LENGTH = 8


def fingerprint(*what: object) -> str:
    """Return the first eight hex digits of SHA-256 over what some values look like in Python."""
    return hashlib.sha256(repr(what).encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH]
