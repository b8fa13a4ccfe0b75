"""How the calibration is shown: Markdown tables, each with the claims that it holds or misses."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from calibration_cases import TAIL, Case, Standard

from pytest_prereg.judge.model import Reason

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from calibration_studies import Tally

ERRORS = 4
"""How many standard errors a share may be off."""
DRIFTING = 0.01
"""The nominal share of studies that the drift test takes for drifting though they are not."""
WORTH_TELLING = 0.01
"""Smaller shares of studies without a verdict are not listed."""


class Cell(NamedTuple):
    """What one case gave at one n."""

    case: Case
    n: int
    tally: Tally


@dataclass
class Claim:
    """What has to hold in some cells, and those where it does not."""

    text: str
    kept: int = 0
    missed: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By row, the cells in which it does not hold, with their figures."""
    is_promise: bool = True
    """Whether the engine is held to it; else those cells are only named."""

    def check(self, row: str, where: str, figure: str, holds: bool) -> None:  # noqa: FBT001 - an outcome
        """Note one outcome."""
        if holds:
            self.kept += 1
        else:
            self.missed[row].append(f"{where} ({figure})")

    def __str__(self) -> str:
        count = f"{self.kept} of {self.kept + sum(map(len, self.missed.values()))}"
        if not self.missed:
            return f"- ok: {self.text} ({count})."
        rows = "; ".join(f"{row}: {', '.join(cells)}" for row, cells in self.missed.items())
        if not self.is_promise:
            return f"- {self.text} ({count}). Others look like normal values to most studies: {rows}."
        return f"- **MISSED**: {self.text} ({count}). Not for {rows}."


class Page(NamedTuple):
    """A table as Markdown, and its claims."""

    table: str
    claims: tuple[Claim, ...]

    @property
    def holds(self) -> bool:
        """Whether no claim was missed."""
        return not any(claim.missed for claim in self.claims if claim.is_promise)

    def __str__(self) -> str:
        return "\n".join([self.table, "", *map(str, self.claims), ""])


def error(share: float, studies: int) -> float:
    """Standard error of a share of so many studies."""
    return math.sqrt(share * (1 - share) / studies)


def allowed(share: float, studies: int) -> float:
    """The largest share that chance alone explains."""
    return share + ERRORS * error(share, studies)


def markdown(headings: Sequence[str], lines: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table, of which all but the first columns are aligned right."""
    rule = "|" + "---|" * left + "--:|" * (len(headings) - left)
    return "\n".join([_row(headings), rule, *map(_row, lines)])


def percent(share: float) -> str:
    """A share, in per cent."""
    return f"{100 * share:.2f}"


def pair(shares: Sequence[float]) -> str:
    """False *supported* and false *refuted*, in per cent."""
    return " / ".join(map(percent, shares))


def page(cells: Sequence[Cell]) -> Page:
    """The table of one estimand, or of a few that a first column tells apart."""
    sizes = sorted({cell.n for cell in cells})
    rows: dict[str, dict[int, Cell]] = defaultdict(dict)
    for cell in cells:
        rows[cell.case.key][cell.n] = cell
    several = len({cell.case.estimand for cell in cells}) > 1
    headings = (
        *(["estimand"] if several else []),
        "values",
        *(f"n = {n}" for n in sizes),
        "flagged",
        "drift",
        "otherwise undecided",
        "held to",
    )
    lines = [_line(row, sizes)[not several :] for row in rows.values()]
    return Page(markdown(headings, lines, left=1 + several), tuple(claims(cells)))


def claims(cells: Sequence[Cell]) -> Iterator[Claim]:
    """What the cells of a table have to hold; claims about none of them are left out."""
    made = [_exact(cells), _at_most(cells), _limits(cells), _flags(cells), _drift(cells)]
    return (claim for claim in made if claim.kept or claim.missed)


def _row(entries: Iterable[str]) -> str:
    return f"| {' | '.join(entries)} |"


def _line(row: dict[int, Cell], sizes: Sequence[int]) -> tuple[str, ...]:
    case = next(iter(row.values())).case
    return (
        case.estimand,
        case.values,
        *(_shares(row[n]) if n in row else "" for n in sizes),
        _flagged(row.values()),
        _range([cell.tally.share(Reason.DRIFT) for cell in row.values()]),
        _undecided(row.values()),
        _held_to(row.values()),
    )


def _shares(cell: Cell) -> str:
    """The two shares, or a dash where nothing could ever be decided."""
    reasons = cell.tally.reasons
    unable = reasons[Reason.N_TOO_SMALL] + reasons[Reason.RESOLUTION]
    return "–" if unable == cell.tally.studies else pair(cell.tally.wrong)


def _range(shares: Sequence[float]) -> str:
    ends = [f"{100 * share:.1f}".removesuffix(".0") for share in (min(shares), max(shares))]
    return "–".join(dict.fromkeys(ends))


def _flagged(cells: Iterable[Cell]) -> str:
    shares = [cell.tally.flagged for cell in cells]
    found = [share for share in shares if share is not None]
    return _range(found) if found else ""


def _undecided(cells: Collection[Cell]) -> str:
    """Why more than a few studies had no verdict, straddling and drift apart: per cent, by n."""
    found: dict[str, dict[int, str]] = defaultdict(dict)
    sizes = [cell.n for cell in cells]
    for cell in cells:
        for reason in set(cell.tally.reasons) - {Reason.STRADDLES, Reason.DRIFT}:
            if (share := cell.tally.share(reason)) > WORTH_TELLING:
                found[reason.value][cell.n] = f"{100 * share:.0f}"
    return "; ".join(f"`{reason}`: {_by_n(shares, sizes)}" for reason, shares in sorted(found.items()))


def _by_n(shares: dict[int, str], sizes: Sequence[int]) -> str:
    if list(shares) == list(sizes) and len(set(shares.values())) == 1:
        return shares[sizes[0]]
    return ", ".join(f"{share} at {n}" for n, share in shares.items())


def _held_to(cells: Iterable[Cell]) -> str:
    case = next(iter(cells)).case
    if case.standard is Standard.AT_MOST:
        return f"≤ {percent(TAIL)}"
    if case.standard is Standard.STATED:
        return ", ".join(f"≤ {percent(limit)} at {n}" for n, limit in case.limits.items())
    nominal = {case.nominal(cell.n) for cell in cells}
    return percent(TAIL) if nominal == {(TAIL, TAIL)} else "its own level"


def _exact(cells: Sequence[Cell]) -> Claim:
    claim = Claim(f"exact methods are within {ERRORS} standard errors of their level in both directions")
    for case, n, tally in cells:
        if case.standard is Standard.EXACT:
            pairs = zip(tally.wrong, case.nominal(n), strict=True)
            near = all(abs(ours - level) <= ERRORS * error(level, tally.studies) for ours, level in pairs)
            claim.check(case.key, _at(n), pair(tally.wrong), near)
    return claim


def _at_most(cells: Sequence[Cell]) -> Claim:
    claim = Claim(f"discrete ones exceed {percent(TAIL)} % by at most {ERRORS} standard errors")
    for case, n, tally in cells:
        if case.standard is Standard.AT_MOST:
            holds = max(tally.wrong) <= allowed(TAIL, tally.studies)
            claim.check(case.key, _at(n), pair(tally.wrong), holds)
    return claim


def _limits(cells: Sequence[Cell]) -> Claim:
    found = [cell for cell in cells if cell.n in cell.case.limits]
    limits = "; ".join(f"{case.key}, {_at(n)}: {percent(case.limits[n])} %" for case, n, _ in found)
    claim = Claim(f"neither share exceeds what was promised ({limits})")
    for case, n, tally in found:
        claim.check(case.key, _at(n), pair(tally.wrong), max(tally.wrong) <= case.limits[n])
    return claim


def _flags(cells: Sequence[Cell]) -> Claim:
    claim = Claim(
        f"where a share exceeds {percent(TAIL)} % by more than {ERRORS} standard errors, every verdict that "
        "decides says `approximate` or `assumes normal`",
        is_promise=False,
    )
    for case, n, tally in cells:
        if case.standard is Standard.STATED and max(tally.wrong) > allowed(TAIL, tally.studies):
            flagged = tally.flagged or 0.0
            claim.check(case.key, _at(n), f"{100 * flagged:.1f} %", flagged == 1)
    return claim


def _drift(cells: Sequence[Cell]) -> Claim:
    claim = Claim(f"`drift` takes at most {percent(DRIFTING)} % and {ERRORS} standard errors")
    for case, n, tally in cells:
        share = tally.share(Reason.DRIFT)
        claim.check(case.key, _at(n), percent(share), share <= allowed(DRIFTING, tally.studies))
    return claim


def _at(n: int) -> str:
    return f"n = {n}"
