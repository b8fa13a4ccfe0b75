"""Published numbers, recomputed: of the study that this project starts from, and of an article beside it.

``python benchmarks/published_numbers.py --write`` writes the documentation's table; without it the table is
printed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from calibration_tables import markdown
from published_article import ARTICLE_NUMBERS
from published_model import Found, Number, Status
from published_study import STUDY_NUMBERS

FILE = Path(__file__).parent.parent / "docs" / "tables" / "published-numbers.md"
NUMBERS = (*STUDY_NUMBERS.noted, *ARTICLE_NUMBERS.noted)
HEADINGS = ("number", "where", "published", "rounded to", "recomputed", "what it rests on, or would take")


def found() -> dict[Status, list[tuple[Number, Found]]]:
    """Every number with what was found, by what came of it."""
    made = [(number, number.recompute()) for number in NUMBERS]
    return {status: [each for each in made if each[0].status(each[1]) is status] for status in Status}


def page() -> str:
    """The table as Markdown, one part for each status."""
    parts = []
    for status, numbers in found().items():
        rows = [_row(number, found) for number, found in numbers]
        parts += [f"## {status}", "", markdown(HEADINGS, rows, left=len(HEADINGS)), ""]
    return "\n".join(parts)


def command(arguments: list[str] | None = None) -> int:
    """Print the table, or write it if told so.

    (Not called ``main``: ``run.py`` runs whatever has one, and nothing is measured here.)
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write docs/tables/{FILE.name}")
    if parser.parse_args(arguments).write:
        FILE.write_text(page(), encoding="utf-8")
    else:
        print(page())
    return 0


def _row(number: Number, found: Found) -> tuple[str, ...]:
    missing = f"Missing: {found.missing}." if found.missing else ""
    return (
        number.what,
        f"{number.source}: “{number.quote}”",
        f"{number.published} {number.unit}".rstrip(),
        number.rounding,
        "" if found.value is None else number.shown(found.value),
        f"{missing} {found.note}".strip(),
    )


if __name__ == "__main__":
    sys.exit(command())
