"""How often verdicts are wrong where the true value lies on the edge: every estimand, simulated and judged.

``python benchmarks/calibration.py --write`` writes the documentation's tables. Each study goes through
:func:`pytest_prereg.judge.verdicts.judge`, as ``--prereg-verify`` has it, from a prediction that was read
from TOML. The figures depend on the seed and the number of studies alone, not on ``--jobs``.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import calibration_peeking as peeking
import calibration_pooling as pooling
import calibration_tables as tables
from calibration_estimands import TABLES
from calibration_studies import SEED, tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from calibration_tables import Page

FOLDER = Path(__file__).parent.parent / "docs" / "tables"
STUDIES = 20_000


@dataclass(frozen=True)
class Table:
    """What is computed for one table, and how it is shown."""

    tasks: tuple[Callable[[], Any], ...]
    """Each can be computed in another process."""
    page: Callable[[list[Any]], Page]


def cell(table: str, row: int, n: int, studies: int) -> tables.Cell:
    """One cell, found by name and place: what a case holds can't be sent to another process."""
    case = TABLES[table][row]
    return tables.Cell(case, n, tally(case, n, studies))


def counted(table: str, row: int, n: int, studies: int) -> tuple[str, int, int, Any]:
    """The same, as it travels back."""
    return table, row, n, cell(table, row, n, studies).tally


def known(studies: int) -> dict[str, Table]:
    """Every table by name."""
    found = {
        name: Table(
            tuple(
                partial(counted, name, row, n, studies) for row, case in enumerate(cases) for n in case.sizes
            ),
            _page_of_cells,
        )
        for name, cases in TABLES.items()
    }
    found["pooling"] = Table(tuple(partial(pooling.held, n, studies) for n in pooling.SIZES), pooling.page)
    found["peeking"] = Table(
        tuple(partial(peeking.seen, place, studies) for place in range(len(peeking.ASKED))),
        peeking.page,
    )
    return found


def pages(wanted: Iterable[Table], jobs: int) -> Iterator[Page]:
    """The tables in order, each as soon as it is done; work is shared among processes."""
    wanted = list(wanted)
    with get_context("spawn").Pool(jobs) as pool:
        results = pool.imap(_call, [task for table in wanted for task in table.tasks])
        for table in wanted:
            yield table.page([next(results) for _ in table.tasks])


def command(arguments: list[str] | None = None) -> int:
    """Compute what was asked for, print it, and write it if told so; 1 if a claim was missed.

    (Not called ``main``: ``run.py`` runs whatever has one, and this takes minutes.)
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = list(known(1))
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--studies", type=int, default=STUDIES, help=f"a cell; {STUDIES:,} by default")
    parser.add_argument("--jobs", type=int, default=2, help="processes; 2 by default")
    parser.add_argument("--write", action="store_true", help=f"write {FOLDER.name}/calibration-NAME.md")
    options = parser.parse_args(arguments)
    chosen = options.only or names
    every, kept = known(options.studies), []
    for name, page in zip(chosen, pages((every[name] for name in chosen), options.jobs), strict=True):
        text = f"{options.studies:,} studies a cell, seed {SEED}.\n\n{page}"
        print(f"# {name}\n\n{text}", flush=True)
        if options.write:
            (FOLDER / f"calibration-{name}.md").write_text(text, encoding="utf-8")
        kept.append(page.holds)
    return 0 if all(kept) else 1


def _call(task: Callable[[], Any]) -> Any:
    return task()


def _page_of_cells(results: list[tuple[str, int, int, Any]]) -> Page:
    return tables.page([tables.Cell(TABLES[table][row], n, found) for table, row, n, found in results])


if __name__ == "__main__":
    sys.exit(command())
