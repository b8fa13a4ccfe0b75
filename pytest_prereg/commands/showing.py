"""How commands show what they found: the options of all of them, and one way to a terminal or a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from pytest_prereg.commands.group import say, width
from pytest_prereg.errors import Problem, UsageError
from pytest_prereg.report.findings.rendering import FORMATS, Format

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_prereg.report.findings.reported import Reported

_OPTIONS = (
    click.option(
        "--format",
        "form",
        type=click.Choice(FORMATS),
        default="terminal",
        show_default=True,
        help="How to say it.",
    ),
    click.option(
        "--all",
        "every",
        is_flag=True,
        help="Show each notice, and each prediction, by itself: in a terminal and in Markdown.",
    ),
    click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file."),
)


def report_options(command: Callable[..., object]) -> Callable[..., object]:
    """Give a command the options of those that report findings: ``form``, ``every``, ``output``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


class Showing(NamedTuple):
    """How findings are to be shown, and where; made before the current folder becomes another one."""

    form: Format
    every: bool
    place: Path | None
    width: int

    @classmethod
    def of(cls, form: Format, *, every: bool, output: Path | None) -> Showing:
        """Return what was typed as what it means here."""
        return cls(form, every, output and output.absolute(), width())

    def text(self, found: Reported) -> bytes:
        """Return what is shown of findings."""
        from pytest_prereg.report.columns import can_draw  # noqa: PLC0415
        from pytest_prereg.report.findings.rendering import rendered  # noqa: PLC0415

        unicode = self.place is not None or can_draw(sys.stdout.encoding)
        return rendered(found, self.form, width=self.width, every=self.every, unicode=unicode)

    def show(self, text: bytes, found: Reported) -> None:
        """Print a text of findings, or write it, and end with the status that they amount to.

        Raises:
            UsageError: It can't be written (PR108).
            SystemExit: They amount to another status than 0.
        """
        from pytest_prereg.report.findings.summing_up import result  # noqa: PLC0415

        if self.place is None:
            click.echo(text, nl=False)
        else:
            _write(self.place, text)
            say(result(found))
        if found.exit:
            raise SystemExit(found.exit)


def _write(path: Path, text: bytes) -> None:
    """Write a report to a file.

    Raises:
        UsageError: It can't be written (PR108).
    """
    from pytest_prereg.registry.toml import shown  # noqa: PLC0415

    try:
        path.write_bytes(text)
    except OSError as error:
        message = f"the report can't be written: {error.strerror}"
        advice = "Name a file in a folder that is there: --output FILE"
        raise UsageError(Problem(code="PR108", path=shown(path), message=message, advice=advice)) from error
