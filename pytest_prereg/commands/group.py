"""The command ``pytest-prereg``: its exit codes, its errors, and what its commands share.

Exit codes: 0 fine, 1 errors, 2 usage, 4 could not tell.
"""

from __future__ import annotations

import dataclasses
import errno
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pytest_prereg.errors import HistoryError, PreregError, Problem, UsageError, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_prereg.registry.model import Experiment, Prediction, Study

EXIT_ERRORS, EXIT_USAGE, EXIT_UNKNOWN = 1, 2, 4
_WIDTHS = (40, 100)
"""Narrowest and widest text."""


class Commands(click.Group):
    """The group of all commands; errors of ours become lines on stderr and an exit code, bugs stay bugs."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except PreregError as error:
            tell(error.problems)
            ctx.exit(exit_code(error))
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            click.echo(_of_system(error), err=True)
            ctx.exit(EXIT_ERRORS)


def exit_code(error: PreregError) -> int:
    """Return the exit code for an error."""
    if isinstance(error, UsageError):
        return EXIT_USAGE
    return EXIT_UNKNOWN if isinstance(error, HistoryError) else EXIT_ERRORS


def tell(problems: Iterable[Problem]) -> None:
    """Print problems to stderr, paths as they are seen from here."""
    from pytest_prereg.registry.toml import shown  # noqa: PLC0415

    for problem in problems:
        path = problem.path and shown(Path(problem.path))
        click.echo(str(dataclasses.replace(problem, path=path)), err=True)


def say(line: str) -> None:
    """Print a line, in ASCII where the terminal can't do better."""
    from pytest_prereg.report.columns import ascii_text, can_draw  # noqa: PLC0415

    line = "\n".join(map(visible, line.split("\n")))
    click.echo(line if can_draw(sys.stdout.encoding) else ascii_text(line))


def say_wrapped(sentence: str) -> None:
    """Print a sentence in lines no wider than the terminal; a command to copy is said in one."""
    from pytest_prereg.report.columns import hanging  # noqa: PLC0415

    for line in hanging(sentence, width()):
        say(line)


def _of_system(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pytest-prereg", message="%(package)s %(version)s")
def main() -> None:
    """Pre-registered performance predictions: register them here, judge them with pytest --prereg."""


study_option = click.option(
    "--study",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The prediction file; the one in the current folder unless given.",
)


roots_option = click.option(
    "--anchor-roots",
    "roots",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Root certificates (PEM) that time-stamps must lead to; those that the system trusts unless given.",
)


def load(file: Path | None) -> Study:
    """Load the study that was named, or the one of the current folder.

    Raises:
        UsageError: PR100, if there is none, or more than one.
        StudyError: Everything that is wrong with it.
    """
    from pytest_prereg.registry.load import load_study  # noqa: PLC0415

    return load_study(study_file(file))


def study_file(file: Path | None) -> Path:
    """Return the prediction file that was named, or the one of the current folder.

    Raises:
        UsageError: PR100, if there is none, or more than one.
    """
    from pytest_prereg.registry.load import find_studies  # noqa: PLC0415

    folder = Path() if file is None else file
    if file is not None and not file.is_dir():
        return file
    found = find_studies(folder)
    if len(found) != 1:
        raise UsageError(_not_one(found, folder))
    return found[0]


def _not_one(found: Sequence[Path], folder: Path) -> Problem:
    if found:
        names = ", ".join(str(path) for path in found)
        return Problem(
            code="PR100", message=f"there are {len(found)} studies here; name one with --study: {names}"
        )
    place = "here" if folder == Path() else f"in {folder}"
    advice = "pytest-prereg init writes an example; --study FILE names one elsewhere."
    return Problem(code="PR100", message=f"there is no predictions.toml {place}", advice=advice)


def experiment_of(study: Study, name: str) -> Experiment:
    """Return the experiment of that name.

    Raises:
        UsageError: PR007, if there is none.
    """
    from pytest_prereg.registry.refusals import quoted, suggestion  # noqa: PLC0415

    if name in study.experiments:
        return study.experiments[name]
    hint = suggestion(name, study.experiments, "there are")
    raise UsageError(Problem(code="PR007", message=f"there is no experiment {quoted(name)}{hint}"))


def predictions_of(study: Study, name: str) -> list[Prediction]:
    """Return the prediction of that id, or all that the for-each table of that name makes.

    Raises:
        UsageError: PR007, if there is none.
    """
    from pytest_prereg.registry.refusals import quoted, suggestion  # noqa: PLC0415
    from pytest_prereg.registry.uses import named  # noqa: PLC0415

    if ids := named(name, study.predictions):
        return [study.predictions[one] for one in ids]
    hint = suggestion(name, study.predictions, "there are")
    raise UsageError(Problem(code="PR007", message=f"there is no prediction {quoted(name)}{hint}"))


def head_of(study: Study) -> tuple[str | None, bool | None]:
    """Return the commit at HEAD and whether the work tree differs from it; ``None`` where there is none."""
    from pytest_prereg.audit.history.git import Repository  # noqa: PLC0415

    repository = Repository.find(study.folder)
    return (None, None) if repository is None else (repository.head(), repository.dirty())


def width() -> int:
    """Return how many columns text may take."""
    import shutil  # noqa: PLC0415

    return max(_WIDTHS[0], min(_WIDTHS[1], shutil.get_terminal_size((80, 24)).columns))


def elsewhere(study: Study, experiments: Iterable[str]) -> Iterator[str]:
    """Yield a line for each experiment that runs here, and whose conditions this machine does not meet."""
    from pytest_prereg.evidence.environment import describe_machine  # noqa: PLC0415
    from pytest_prereg.registry.environment_conditions import machine_outside  # noqa: PLC0415
    from pytest_prereg.registry.executors import LOCAL  # noqa: PLC0415

    for name in sorted(experiments):
        table = study.experiments[name].table
        conditions = table.conditions if table.executor == LOCAL else None
        if conditions and (outside := machine_outside(conditions, describe_machine())):
            yield f"this machine is outside the conditions of {name}: {outside}"
