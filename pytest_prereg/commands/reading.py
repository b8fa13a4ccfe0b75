"""Commands that say what is known: power, explain, cite, audit; and acknowledge, which answers an audit."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_prereg.commands.gating import gated_findings
from pytest_prereg.commands.group import (
    EXIT_ERRORS,
    load,
    main,
    predictions_of,
    roots_option,
    say,
    study_file,
    study_option,
    tell,
    width,
)
from pytest_prereg.commands.showing import Showing, report_options
from pytest_prereg.errors import PreregError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.report.findings.rendering import Format
    from pytest_prereg.report.findings.reported import Reported


_positive = click.FloatRange(min=0, min_open=True)


@main.command(short_help="Show the chance of each verdict.")
@click.argument("name", metavar="ID")
@click.option("--at", "values", type=float, multiple=True, metavar="VALUE", help="A true value to look at.")
@click.option("-n", "repeats", type=click.IntRange(min=1), multiple=True, help="A number of repeats to try.")
@click.option("--cv", type=_positive, help="Spread of repeats over their mean.")
@click.option("--sd", type=_positive, help="Spread of repeats, in the unit.")
@click.option("--sample-sd", type=_positive, help="Spread of the samples inside a repeat.")
@click.option("--run-sd", type=_positive, help="Spread from repeat to repeat, beside that of samples.")
@click.option("--sample-cost", type=_positive, help="What one sample costs.")
@click.option("--run-cost", type=_positive, help="What a repeat costs before its first sample.")
@study_option
def power(
    *,
    name: str,
    values: tuple[float, ...],
    repeats: tuple[int, ...],
    cv: float | None,
    sd: float | None,
    file: Path | None,
    **inner: float | None,
) -> None:
    """Show the chance of each verdict on a prediction, by true value and by number of repeats.

    With the spread and the cost of repeats and of the samples inside them, it also says how many samples a
    repeat is worth.
    """
    from pytest_prereg.report.power import outlook, samples_line  # noqa: PLC0415

    study = load(file)
    predictions = predictions_of(study, name)
    if not all(math.isfinite(each) for each in (*values, cv, sd, *inner.values()) if each is not None):
        raise click.UsageError("a value or a spread is a finite number")
    given = {key: value for key, value in inner.items() if value is not None}
    if given and len(given) < len(inner):
        raise click.UsageError("--run-cost, --sample-cost, --run-sd and --sample-sd belong together")
    for number, one in enumerate(predictions):
        lines = outlook(study, one, values=values, repeats=repeats, cv=cv, sd=sd, width=width())
        for line in _apart(lines, number):
            say(line)
    if given:
        say(samples_line(**given))


@main.command(short_help="Say in words why a verdict is what it is.")
@click.argument("name", metavar="ID")
@study_option
def explain(name: str, file: Path | None) -> None:
    """Say in words why a verdict is what it is, what would have decided, and what would be p-hacking."""
    from pytest_prereg.audit.again import is_open  # noqa: PLC0415
    from pytest_prereg.audit.assess import StudyState  # noqa: PLC0415
    from pytest_prereg.audit.conditions import was_refuted  # noqa: PLC0415
    from pytest_prereg.audit.series_states import series_states  # noqa: PLC0415
    from pytest_prereg.audit.withdrawn import tombstones  # noqa: PLC0415
    from pytest_prereg.registry.uses import named  # noqa: PLC0415
    from pytest_prereg.report.blocked import way_on  # noqa: PLC0415
    from pytest_prereg.report.buried import buried_lines  # noqa: PLC0415
    from pytest_prereg.report.explanation import explanation_lines  # noqa: PLC0415
    from pytest_prereg.report.failed import failed_lines  # noqa: PLC0415
    from pytest_prereg.report.read_by import read_by  # noqa: PLC0415

    study = load(file)
    state = StudyState(study)
    buried = [one for one in tombstones(state) if one.id.partition("[")[0] == name or one.id == name]
    predictions = [] if buried and not named(name, study.predictions) else predictions_of(study, name)
    assessments = [state.assess(one) for one in predictions]
    for number, assessment in enumerate(assessments):
        tell(assessment.problems)
        series = {name: series_states(state, name) for name in assessment.prediction.experiments}
        lines = explanation_lines(
            assessment,
            study,
            width(),
            series=series,
            files=state.files,
            was_refuted=was_refuted(state, assessment.prediction),
            read_by=read_by(state, assessment.prediction),
            failed=failed_lines(state, assessment),
            is_open=is_open(state, assessment.prediction),
            way_on=way_on(state, assessment.prediction),
        )
        for line in _apart(lines, number):
            say(line)
    for number, tombstone in enumerate(buried, len(assessments)):
        tell(tombstone.problems)
        for line in _apart(buried_lines(state, tombstone, width()), number):
            say(line)
    if any(one.problems for one in assessments) or any(one.problems for one in buried):
        raise SystemExit(EXIT_ERRORS)


def _apart(lines: Iterable[str], number: int) -> list[str]:
    """Return the lines on one of several predictions, after an empty one from the second on."""
    return ["", *lines] if number else [*lines]


@main.command(short_help="Write and check numbers quoted in Markdown.")
@click.argument(
    "files", metavar="[FILE...]", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a number is not what the lock records.")
@study_option
def cite(files: tuple[Path, ...], *, check: bool, file: Path | None) -> None:
    """Write the numbers that Markdown quotes from the lock, or check them.

    Without FILE it is all Markdown below the study's folder that git tracks, or would.
    """
    from pytest_prereg.audit.assess import StudyState  # noqa: PLC0415
    from pytest_prereg.audit.citing.citations import read_page, write_page  # noqa: PLC0415
    from pytest_prereg.audit.citing.figures import Figures  # noqa: PLC0415
    from pytest_prereg.audit.citing.neighbours import Neighbours  # noqa: PLC0415
    from pytest_prereg.audit.citing.pages import listing, uncheckable  # noqa: PLC0415
    from pytest_prereg.report.citing import cited_lines, written_lines  # noqa: PLC0415

    state = StudyState(load(file))
    listed = listing(state, files)
    figures, neighbours = Figures(state), Neighbours(state)
    pages = [read_page(path, figures, neighbours) for path in listed.pages]
    problems = uncheckable(listed.documents)
    for page in pages:
        problems += page.complaints if check else page.problems
        if page.changes and not check:
            write_page(page)
            for line in written_lines(page):
                say(line)
    tell(problems)
    for line in cited_lines(pages, listed.absent, failed=bool(problems)):
        say(line)
    if problems:
        raise SystemExit(EXIT_ERRORS)


@main.command(short_help="Say what history, evidence and lock show, and what they can't.")
@report_options
@roots_option
@study_option
def audit(*, form: Format, every: bool, output: Path | None, roots: Path | None, file: Path | None) -> None:
    """Say all that history, evidence and lock show of a study, and what can't be proven.

    Nothing is run or changed. Exit status: 0 fine, 1 errors or open reviews, 4 it could not be told.
    """
    showing = Showing.of(form, every=every, output=output)
    found = _audit(study_file(file), roots)
    showing.show(showing.text(found), found)


def _audit(path: Path, roots: Path | None) -> Reported:
    """Audit a study; one that can't be loaded is a report, too, of why."""
    from pytest_prereg.audit.assess import StudyState  # noqa: PLC0415
    from pytest_prereg.audit.auditing import audit_study  # noqa: PLC0415
    from pytest_prereg.report.findings.reported import reported_audit, reported_refusal  # noqa: PLC0415

    try:
        state = StudyState(load(path))
        state.anchor_roots = roots
        return reported_audit(audit_study(state), state)
    except PreregError as error:
        return reported_refusal(error, path)


@main.command(short_help="Say why what an audit found may stand.")
@click.argument("code", metavar="CODE")
@click.argument("name", metavar="ID")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is kept in the lock.")
@click.option("--base", metavar="REV", help="What the gate of a pull request finds, not an audit, is meant.")
@study_option
def acknowledge(code: str, name: str, reason: str, base: str | None, file: Path | None) -> None:
    """Acknowledge each open review of this CODE and ID that an audit finds now, and none that comes later.

    With --base it is what the gate finds between that revision and HEAD, as it is committed.
    """
    from pytest_prereg.audit.acknowledging import acknowledge as acknowledged  # noqa: PLC0415
    from pytest_prereg.audit.assess import StudyState  # noqa: PLC0415
    from pytest_prereg.registry.lock import write_lock  # noqa: PLC0415
    from pytest_prereg.report.findings.acknowledged import acknowledged_lines  # noqa: PLC0415

    state = StudyState(load(file))
    gated = None if base is None else gated_findings(base, file)
    lock, findings = acknowledged(state, code, name, reason, gated)
    write_lock(state.study.lock_path, lock)
    for line in acknowledged_lines(state.study, findings, width()):
        say(line)
