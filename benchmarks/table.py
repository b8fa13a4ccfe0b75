"""What a benchmark returns, and how it is printed: our figure beside what a user would get otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, kw_only=True)
class Row:
    """One comparison. Lower is better, for both figures, in the same unit."""

    what: str
    ours: float
    other: float | None = None
    """The same work done the way named in ``against``; ``None`` where there is nothing to compare with."""
    against: str = ""
    unit: str = "s"
    limit: float | None = None
    """``ours`` must not exceed this."""
    at_least: float | None = None
    """``other / ours`` must not fall below this."""

    @property
    def ratio(self) -> float | None:
        """How many times more the other way costs."""
        return None if self.other is None or self.ours == 0 else self.other / self.ours

    @property
    def target(self) -> str:
        """What was promised, in words; empty where nothing was."""
        if self.at_least is not None:
            return f"≥ {self.at_least:g} ×"
        return "" if self.limit is None else f"≤ {self.limit:g} {self.unit}"

    @property
    def holds(self) -> bool:
        """Whether the promise is kept; true where there is none."""
        fast_enough = self.limit is None or self.ours <= self.limit
        return fast_enough and (self.at_least is None or (self.ratio or 0.0) >= self.at_least)


HEADINGS = ("what", "ours", "otherwise", "ratio", "target", "")


def cells(row: Row) -> tuple[str, ...]:
    """The row as text, one string a column."""
    other = "" if row.other is None else f"{row.other:.4g} {row.unit} {row.against}".rstrip()
    ratio = "" if row.ratio is None else f"{row.ratio:.3g} ×"
    mark = "" if not row.target else ("ok" if row.holds else "MISSED")
    return (row.what, f"{row.ours:.4g} {row.unit}", other, ratio, row.target, mark)


def render(title: str, rows: Sequence[Row]) -> str:
    """A table with its title, columns aligned."""
    lines = [HEADINGS, *map(cells, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    body = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join([title, "-" * max(map(len, body)), *body])
