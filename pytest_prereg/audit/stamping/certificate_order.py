"""Puts the certificates of a time-stamp in the order that DER demands of a set, as many authorities do not.

Their order, and they themselves, are not signed. The library reads a set in any other order as no time-stamp
at all (trailofbits/rfc3161-client#104). What is moved keeps its length, so that nothing else changes.
"""

from __future__ import annotations

from itertools import pairwise

_SEQUENCE, _FIRST_IMPLICIT = 0x30, 0xA0
_LONG = 0x80
"""A length from here on is that of the length."""
_WIDEST = 4
"""Bytes of a length."""


def in_order(answer: bytes) -> bytes:
    """Return an authority's answer with its certificates in order; anything else as it is."""
    try:
        begin, end = _certificates(answer)
        places = _parts(answer, begin, end)
    except (ValueError, IndexError):
        return answer
    certificates = (answer[start:stop] for start, stop in pairwise([*places, end]))
    return answer[:begin] + b"".join(sorted(certificates)) + answer[end:]


def _certificates(answer: bytes) -> tuple[int, int]:
    """Return where the certificates begin and end: the response's token's content's fourth part.

    Raises:
        ValueError: There are none at that place.
        IndexError: The bytes end before.
    """
    _, token = _parts(answer, *_inside(answer, 0, _SEQUENCE))
    _, content = _parts(answer, *_inside(answer, token, _SEQUENCE))
    signed, _ = _inside(answer, content, _FIRST_IMPLICIT)
    _, _, _, certificates, *_ = _parts(answer, *_inside(answer, signed, _SEQUENCE))
    return _inside(answer, certificates, _FIRST_IMPLICIT)


def _parts(data: bytes, begin: int, end: int) -> list[int]:
    """Return where each value that lies between two places begins.

    Raises:
        ValueError: They don't fill it.
        IndexError: The bytes end before.
    """
    places = []
    while begin < end:
        places.append(begin)
        _, begin = _inside(data, begin, data[begin])
    if begin != end:
        raise ValueError("begin: a value goes beyond the one around it")
    return places


def _inside(data: bytes, place: int, tag: int) -> tuple[int, int]:
    """Return where the content of the value at a place begins and ends.

    Raises:
        ValueError: It has another tag, no definite length, or is not all there.
        IndexError: The bytes end before.
    """
    length, begin = data[place + 1], place + 2
    if length >= _LONG:
        width = length - _LONG
        length, begin = int.from_bytes(data[begin : begin + width]), begin + width
        if not 0 < width <= _WIDEST:
            raise ValueError("data: a length of no, or of immense, length")
    if data[place] != tag or begin + length > len(data):
        raise ValueError("data: another tag, or cut off")
    return begin, begin + length
