"""How a refusal is worded: a code, the offending text in quotes, the nearest valid name."""

from __future__ import annotations

import difflib
import functools
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_QUOTE = 100


class RefusedError(ValueError):
    """Something in a study that is refused before its place in the file is known.

    The loader turns it into a :class:`~pytest_prereg.errors.Problem` by adding path and line.
    """

    def __init__(self, code: str, message: str, advice: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.advice = advice


def quoted(value: object) -> str:
    """``value`` in double quotes, shortened, with whatever a terminal would act on escaped."""
    text = str(value) if not isinstance(value, bool) else str(value).lower()
    if len(text) > LONGEST_QUOTE:
        text = text[: LONGEST_QUOTE - 1] + "…"
    return '"' + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text) + '"'


def typed(word: str) -> str:
    """``word`` as it is typed in a shell, so that nothing in it is taken for a command."""
    return shlex.quote(word)


def listed(names: Iterable[str], conjunction: str = "and") -> str:
    """``"a", "b" and "c"``, at most eight of them."""
    shown = [quoted(name) for name in names]
    if len(shown) > 8:  # noqa: PLR2004
        return ", ".join(shown[:7]) + f" {conjunction} {len(shown) - 7} more"
    return f" {conjunction} ".join(part for part in (", ".join(shown[:-1]), *shown[-1:]) if part)


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The valid name that ``name`` is most likely a misspelling of, if one is near."""
    return _nearest(name[:LONGEST_QUOTE].casefold(), tuple(names))


@functools.lru_cache(maxsize=256)  # one slip is often made in many tables
def _nearest(name: str, names: tuple[str, ...]) -> str | None:
    folded = {candidate.casefold(): candidate for candidate in names}
    found = difflib.get_close_matches(name, folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def suggestion(name: str, names: Iterable[str], kind: str = "") -> str:
    """``; did you mean "x"?``, else the valid names, else nothing.

    Args:
        name: What was written.
        names: What would have been valid.
        kind: What they are, for the list (``"its metrics"``).
    """
    names = list(names)
    if match := nearest(name, names):
        return f"; did you mean {quoted(match)}?"
    return f"; {kind or 'valid'}: {listed(names)}" if names else ""
