"""The command ``pytest-prereg``: a thin layer that reads options, calls, prints and exits.

Exit codes: 0 fine, 1 errors, 2 usage, 4 could not tell.
"""

from __future__ import annotations

import dataclasses
import errno
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pytest_prereg.errors import HistoryError, PreregError, Problem, UsageError
from pytest_prereg.report.findings.rendering import FORMATS, Format

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.evidence.importers.rows import Form
    from pytest_prereg.evidence.model import Finished, Series, Started
    from pytest_prereg.evidence.sessions import SessionFile
    from pytest_prereg.registration import Review
    from pytest_prereg.registry.lock import Lock
    from pytest_prereg.registry.model import Experiment, Prediction, Study

_EXIT_ERRORS, _EXIT_USAGE, _EXIT_UNKNOWN = 1, 2, 4
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
            ctx.exit(_EXIT_ERRORS)


def exit_code(error: PreregError) -> int:
    """Return the exit code for an error."""
    if isinstance(error, UsageError):
        return _EXIT_USAGE
    return _EXIT_UNKNOWN if isinstance(error, HistoryError) else _EXIT_ERRORS


def tell(problems: Iterable[Problem]) -> None:
    """Print problems to stderr, paths as they are seen from here."""
    from pytest_prereg.registry.toml import shown  # noqa: PLC0415

    for problem in problems:
        path = problem.path and shown(Path(problem.path))
        click.echo(str(dataclasses.replace(problem, path=path)), err=True)


def say(line: str) -> None:
    """Print a line, in ASCII where the terminal can't do better."""
    from pytest_prereg.report.columns import ascii_text, can_draw  # noqa: PLC0415

    click.echo(line if can_draw(sys.stdout.encoding) else ascii_text(line))


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
    from pytest_prereg.registry.load import find_studies, load_study  # noqa: PLC0415

    folder = Path() if file is None else file
    if file is not None and not file.is_dir():
        return load_study(file)
    found = find_studies(folder)
    if len(found) != 1:
        raise UsageError(_not_one(found, folder))
    return load_study(found[0])


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
    from pytest_prereg.audit.git import Repository  # noqa: PLC0415

    repository = Repository.find(study.folder)
    return (None, None) if repository is None else (repository.head(), repository.dirty())


def _width() -> int:
    import shutil  # noqa: PLC0415

    return max(_WIDTHS[0], min(_WIDTHS[1], shutil.get_terminal_size((80, 24)).columns))


@main.command(short_help="Write an example study here.")
@click.option(
    "--merge-driver", is_flag=True, help="Write no study: have git merge locks by prediction in this clone."
)
def init(*, merge_driver: bool) -> None:
    """Write an example study here: predictions.toml, an experiment, the schema for editors."""
    from pytest_prereg.registry.starter import write_starter  # noqa: PLC0415

    if merge_driver:
        _set_up_merge_driver()
        return
    written = write_starter(Path())
    say(f"wrote {', '.join(map(str, written))}")
    say("try it:    pytest-prereg try sorting")
    say("register:  pytest-prereg lock")
    say("merging:   pytest-prereg init --merge-driver, once in each clone")


def _set_up_merge_driver() -> None:
    from pytest_prereg.audit.merge_driver import set_up  # noqa: PLC0415

    for line in set_up(Path()):
        say(line)


@main.command(name="merge-lock", short_help="Merge a lock by prediction, for git.")
@click.argument("base", metavar="BASE", type=click.Path(path_type=Path))
@click.argument("ours", metavar="OURS", type=click.Path(path_type=Path))
@click.argument("theirs", metavar="THEIRS", type=click.Path(path_type=Path))
@click.argument("name", metavar="[PATH]", required=False)
def merge_lock(base: Path, ours: Path, theirs: Path, name: str | None) -> None:
    """Merge THEIRS into OURS as git's merge driver (%O %A %B %P): exit 1 leaves conflicts between markers.

    pytest-prereg init --merge-driver has git call it.
    """
    from pytest_prereg.registry.merged_files import merge_files  # noqa: PLC0415

    outcome = merge_files(base, ours, theirs, name or str(ours))
    tell(outcome.problems)
    for remark in outcome.remarks:
        click.echo(remark, err=True)
    raise SystemExit(outcome.status)


@main.command(short_help="Register what is new.")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if study and lock differ.")
@click.option("--tag", "tagged", is_flag=True, help="Register nothing; tag HEAD as having all that is here.")
@click.option(
    "--anchor", "authority", metavar="URL", help="Register nothing; have the lock at HEAD time-stamped there."
)
@roots_option
@study_option
def lock(*, check: bool, tagged: bool, authority: str | None, roots: Path | None, file: Path | None) -> None:
    """Register the predictions that are new, and check those that are registered."""
    from pytest_prereg import registration  # noqa: PLC0415

    if check and (tagged or authority is not None):
        raise click.UsageError("--check writes nothing, and --tag and --anchor do")
    if tagged and authority is not None:
        raise click.UsageError("--tag and --anchor are two commands")
    if roots is not None and authority is None:
        raise click.UsageError("--anchor-roots belongs to --anchor")
    study = load(file)
    if authority is not None:
        _anchor_lock(study, authority, roots)
        return
    if check:
        _check_lock(study)
        return
    if tagged:
        _tag_lock(study)
        return
    found = registration.register_new(study)
    _say_registered(study, found)


def _anchor_lock(study: Study, authority: str, roots: Path | None) -> None:
    from pytest_prereg.audit.anchoring import anchor, commit_command  # noqa: PLC0415
    from pytest_prereg.report.commands import anchored_lines  # noqa: PLC0415

    for line in anchored_lines(anchor(study, authority, roots)):
        say(line)
    say(f"next:  {commit_command(study)}")


def _tag_lock(study: Study) -> None:
    from pytest_prereg.audit.git_commands import push_command  # noqa: PLC0415
    from pytest_prereg.registration import tag_registrations  # noqa: PLC0415

    tagged = tag_registrations(study)
    said = "tagged" if tagged.is_new else "already tagged"
    say(f"{said}  {tagged.name} at {tagged.commit[:8]}")
    say(f"next:  {push_command(study.folder, tagged.name)}")


def _check_lock(study: Study) -> None:
    from pytest_prereg.registration import unregistered  # noqa: PLC0415

    problems = unregistered(study)
    tell(problems)
    if problems:
        raise SystemExit(_EXIT_ERRORS)
    say(f"{study.id}: {_as_they_stand(len(study.predictions))}")


def _as_they_stand(count: int) -> str:
    if count == 1:
        return "1 prediction is registered as it stands"
    return f"{count} predictions are registered as they stand"


def _say_registered(study: Study, found: Review) -> None:
    from pytest_prereg import registration  # noqa: PLC0415
    from pytest_prereg.report.commands import registered_lines, tried_lines  # noqa: PLC0415

    if found.registration is None:
        return
    for name in found.registration.new:
        prediction, design = study.predictions[name], found.designs[name]
        regions = (design.predicts, design.falsifier)
        for line in registered_lines(prediction, study.experiments, regions, design.report, _width()):
            say(line)
    if found.registration.new:
        for line in _elsewhere(
            study, {name for new in found.registration.new for name in study.predictions[new].experiments}
        ):
            say(line)
        for experiment, names in registration.tried(study, found.registration.new).items():
            for line in tried_lines(experiment, names):
                say(line)
        say(f"next:  {registration.commit_command(study, found.registration.new, 'Register')}")
    else:
        say(f"nothing new: {_as_they_stand(len(found.registration.unchanged))}")


@main.command(short_help="Register what has changed, with a reason.")
@click.argument("names", metavar="ID...", nargs=-1)
@click.option("--experiment", metavar="ID", help="All registered predictions of this experiment.")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is kept in the lock.")
@study_option
def amend(names: tuple[str, ...], experiment: str | None, reason: str, file: Path | None) -> None:
    """Register changed predictions as they stand now; what they were stays in the lock."""
    from pytest_prereg import registration  # noqa: PLC0415

    study = load(file)
    if bool(names) == bool(experiment):
        raise click.UsageError("name predictions, or --experiment")
    if not reason.strip():
        raise click.UsageError("--reason is empty")
    if names:
        chosen = registration.changed_under(study, names)
    else:
        chosen = registration.changed_of(study, experiment_of(study, experiment or ""))
    registration.amend_registered(study, chosen, reason)
    for name in chosen:
        say(f"amended  {name}")
    say(f"next:  {registration.commit_command(study, chosen, 'Amend')}")


@main.command(short_help="Withdraw predictions, with a reason.")
@click.argument("names", metavar="ID...", nargs=-1, required=True)
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is kept in the lock.")
@study_option
def withdraw(names: tuple[str, ...], reason: str, file: Path | None) -> None:
    """Withdraw predictions for good: each keeps its verdict, and one that was refuted stays counted."""
    from pytest_prereg import registration  # noqa: PLC0415
    from pytest_prereg.audit import withdrawing  # noqa: PLC0415
    from pytest_prereg.audit.assess import StudyState  # noqa: PLC0415
    from pytest_prereg.audit.setting_aside import effect_of  # noqa: PLC0415
    from pytest_prereg.registry.lock import write_lock  # noqa: PLC0415
    from pytest_prereg.report.effects import effect_lines, record_again  # noqa: PLC0415
    from pytest_prereg.report.withdrawals import withdrawn_lines  # noqa: PLC0415

    state = StudyState(load(file))
    changed, chosen = withdrawing.withdraw(state, names, reason)
    effects = [one for one in effect_of(state, state.with_lock(changed)) if one.prediction not in chosen]
    write_lock(state.study.lock_path, changed)
    for name in chosen:
        for line in withdrawn_lines(state, name, changed.predictions[name], _width()):
            say(line)
    for line in effect_lines(state, effects, _width()) if effects else ():
        say(line)
    also = withdrawing.uncommitted_evidence(state)
    commit = registration.commit_command(state.study, chosen, "Withdraw", also=also)
    say(f"next:  {record_again(state, effects)}{commit}")


def _elsewhere(study: Study, experiments: Iterable[str]) -> Iterator[str]:
    """Yield a line for each experiment whose conditions this machine does not meet."""
    from pytest_prereg.evidence.environment import describe_machine  # noqa: PLC0415
    from pytest_prereg.registry.environment_conditions import machine_outside  # noqa: PLC0415

    for name in sorted(experiments):
        conditions = study.experiments[name].table.conditions
        if conditions and (outside := machine_outside(conditions, describe_machine())):
            yield f"this machine is outside the conditions of {name}: {outside}"


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
        lines = outlook(study, one, values=values, repeats=repeats, cv=cv, sd=sd, width=_width())
        for line in _apart(lines, number):
            say(line)
    if given:
        say(samples_line(**given))


@main.command(short_help="Say in words why a verdict is what it is.")
@click.argument("name", metavar="ID")
@study_option
def explain(name: str, file: Path | None) -> None:
    """Say in words why a verdict is what it is, what would have decided, and what would be p-hacking."""
    from pytest_prereg.audit.assess import StudyState  # noqa: PLC0415
    from pytest_prereg.audit.series_states import series_states  # noqa: PLC0415
    from pytest_prereg.report.explanation import explanation_lines  # noqa: PLC0415

    study = load(file)
    predictions = predictions_of(study, name)
    state = StudyState(study)
    assessments = [state.assess(one) for one in predictions]
    for number, assessment in enumerate(assessments):
        tell(assessment.problems)
        series = {name: series_states(state, name) for name in assessment.prediction.experiments}
        for line in _apart(explanation_lines(assessment, study, _width(), series=series), number):
            say(line)
    if any(assessment.problems for assessment in assessments):
        raise SystemExit(_EXIT_ERRORS)


def _apart(lines: Iterable[str], number: int) -> list[str]:
    """Return the lines on one of several predictions, after an empty one from the second on."""
    return ["", *lines] if number else [*lines]


@main.command(name="try", short_help="Run an experiment once, as a pilot.")
@click.argument("experiment")
@click.option("--arm", metavar="ID", help="This arm alone.")
@click.option(
    "-n", "count", type=click.IntRange(min=1), default=1, show_default=True, help="Repeats of each arm."
)
@study_option
def try_(experiment: str, arm: str | None, count: int, file: Path | None) -> None:
    """Run an experiment to see whether it works; what comes out is a pilot, never judged."""
    from pytest_prereg.evidence.naming import shown  # noqa: PLC0415
    from pytest_prereg.measure.executors.local import LocalExecutor  # noqa: PLC0415
    from pytest_prereg.measure.interrupts import sigterm_interrupts  # noqa: PLC0415
    from pytest_prereg.measure.pilot import pilot, tried_arms  # noqa: PLC0415

    study = load(file)
    tried = experiment_of(study, experiment)
    arms = tried_arms(tried, arm)
    head, dirty = head_of(study)
    told = _Told(tried, arms)
    with sigterm_interrupts(), LocalExecutor(study, tried) as executor:
        planned = dict.fromkeys(arms, count)
        path = pilot(study, tried, executor, planned=planned, head=head, dirty=dirty, observe=told.repeat)
    told.end(shown(path))
    for line in _elsewhere(study, [experiment]):
        say(line)
    if told.failed:
        raise SystemExit(_EXIT_ERRORS)


class _Told:
    """Prints the repeats of a pilot as they end, and remembers how long they took."""

    def __init__(self, experiment: Experiment, arms: list[str]) -> None:
        self.experiment = experiment
        self.arms = arms
        self.seconds: dict[str, list[float]] = {}
        self.failed = False

    def repeat(self, started: Started, finished: Finished) -> None:
        """Print one repeat."""
        from pytest_prereg.report.commands import diagnostic_lines, repeat_lines  # noqa: PLC0415

        for line in repeat_lines(self.experiment, started, finished, arms=self.arms, width=_width()):
            say(line)
        if finished.cause:
            self.failed = True
            for line in diagnostic_lines(finished):
                click.echo(line, err=True)
        self.seconds.setdefault(started.arm, []).append(finished.seconds.get("total", 0.0))

    def end(self, path: str) -> None:
        """Print where the pilot is kept, and how long the whole experiment would take."""
        from pytest_prereg.measure.pilot import whole_duration  # noqa: PLC0415
        from pytest_prereg.report.commands import whole_text  # noqa: PLC0415

        say(f"pilot, never judged; kept in {path}")
        seconds = whole_duration(self.experiment, self.seconds)
        if seconds is not None and self.experiment.planned:
            say(whole_text(self.experiment.planned, seconds))


_CAUSES = ("instrument", "subject", "tool", "service")


@main.command(short_help="Take a repeat out, with a reason.")
@click.argument("repeat")
@click.option("--cause", required=True, type=click.Choice(_CAUSES), help="What failed.")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is kept in the lock.")
@study_option
def exclude(repeat: str, cause: str, reason: str, file: Path | None) -> None:
    """Take out a repeat whose values could be seen: with it and without it the verdict has to be the same."""
    from pytest_prereg.audit import setting_aside  # noqa: PLC0415
    from pytest_prereg.audit.assess import StudyState  # noqa: PLC0415

    state = StudyState(load(file))
    changed = setting_aside.exclude(state, repeat, reason, cause)
    _set_aside(state, changed, f"excluded  {repeat} ({cause}: {reason.strip()})", f"Exclude {repeat}")


@main.command(short_help="Declare a series broken, with a reason.")
@click.argument("series")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is kept in the lock.")
@study_option
def void(series: str, reason: str, file: Path | None) -> None:
    """Declare SERIES, which is experiment/number, broken: it supports nothing, and is not measured anew."""
    from pytest_prereg.audit import setting_aside  # noqa: PLC0415
    from pytest_prereg.audit.assess import StudyState  # noqa: PLC0415

    state = StudyState(load(file))
    changed = setting_aside.void(state, series, reason)
    _set_aside(state, changed, f"voided  {series} ({reason.strip()})", f"Void {series}")


def _set_aside(state: StudyState, lock: Lock, done: str, message: str) -> None:
    """Write the lock and say which verdicts are others now, and what to type next."""
    from pytest_prereg.audit.setting_aside import effect_of  # noqa: PLC0415
    from pytest_prereg.registry.lock import write_lock  # noqa: PLC0415
    from pytest_prereg.report.effects import effect_lines, next_command  # noqa: PLC0415

    effects = effect_of(state, state.with_lock(lock))
    write_lock(state.study.lock_path, lock)
    say(done)
    for line in effect_lines(state, effects, _width()):
        say(line)
    say(f"next:  {next_command(state, effects, message)}")


@main.command(name="import", short_help="Take in repeats measured elsewhere.")
@click.argument("source", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--experiment", required=True, metavar="ID", help="Which experiment the rows are repeats of.")
@click.option("--arm", metavar="ID", help="The arm of rows that name none.")
@click.option(
    "--format", "format_", type=click.Choice(["csv", "json"]), help="Taken from the name unless given."
)
@study_option
def import_(source: Path, experiment: str, arm: str | None, format_: Form | None, file: Path | None) -> None:
    """Take in repeats that were measured elsewhere, as registered evidence."""
    from pytest_prereg import registration  # noqa: PLC0415
    from pytest_prereg.evidence.importing import import_file  # noqa: PLC0415
    from pytest_prereg.evidence.naming import shown  # noqa: PLC0415
    from pytest_prereg.report.commands import imported_lines  # noqa: PLC0415

    study = load(file)
    fed = experiment_of(study, experiment)
    bound = registration.bound_predictions(study, fed)
    tell(registration.uncommitted(study, bound))
    head, dirty = head_of(study)
    path = import_file(
        study,
        fed,
        source,
        predictions=bound,
        arm=arm,
        form=format_,
        head=head,
        dirty=dirty,
        closed=_closed(study, fed),
    )
    say(f"kept in {shown(path)}")
    found, series, was_decided = series_of(study, fed, path)
    for line in imported_lines(fed, found, series, was_decided=was_decided):
        say(line)


def _closed(study: Study, experiment: Experiment) -> list[int]:
    """Return the series that are voided, or have all that they were begun for without a number of repeats."""
    from pytest_prereg.audit.assess import StudyState  # noqa: PLC0415

    several = StudyState(study).series[experiment.id]
    ended = (one for one in several if one.voided is not None or (one.complete and one.planned is None))
    return [one.number for one in ended]


def series_of(study: Study, experiment: Experiment, path: Path) -> tuple[SessionFile, Series, bool]:
    """Return a session file as read, its series, and whether that was complete without it."""
    from pytest_prereg.audit.assess import StudyState  # noqa: PLC0415

    state = StudyState(study)
    files = state.files[experiment.id]
    file = next(each for each in files if each.path == path)
    series = next(each for each in state.series[experiment.id] if path.name in each.sessions)
    before = state.assembled(experiment, [each for each in files if each is not file])
    return file, series, any(each.complete for each in before if each.number == series.number)


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
    from pytest_prereg.audit.citations import read_page, write_page  # noqa: PLC0415
    from pytest_prereg.audit.figures import Figures  # noqa: PLC0415
    from pytest_prereg.audit.neighbours import Neighbours  # noqa: PLC0415
    from pytest_prereg.audit.pages import listing, uncheckable  # noqa: PLC0415
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
        raise SystemExit(_EXIT_ERRORS)


@main.command(short_help="Say what history, evidence and lock show, and what they can't.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="terminal",
    show_default=True,
    help="How to say it.",
)
@click.option("--all", "every", is_flag=True, help="Show each notice by itself; in a terminal alone.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file.")
@roots_option
@study_option
def audit(*, form: Format, every: bool, output: Path | None, roots: Path | None, file: Path | None) -> None:
    """Say all that history, evidence and lock show of a study, and what can't be proven.

    Nothing is run or changed. Exit status: 0 fine, 1 errors or open reviews, 4 it could not be told.
    """
    from pytest_prereg.audit.assess import StudyState  # noqa: PLC0415
    from pytest_prereg.audit.auditing import audit_study  # noqa: PLC0415
    from pytest_prereg.report.columns import can_draw  # noqa: PLC0415
    from pytest_prereg.report.findings.rendering import rendered  # noqa: PLC0415
    from pytest_prereg.report.findings.reported import reported_audit  # noqa: PLC0415
    from pytest_prereg.report.findings.summing_up import result  # noqa: PLC0415

    state = StudyState(load(file))
    state.anchor_roots = roots
    found = reported_audit(audit_study(state), state)
    unicode = output is not None or can_draw(sys.stdout.encoding)
    text = rendered(found, form, width=_width(), every=every, unicode=unicode)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_bytes(text)
        say(result(found))
    if found.exit:
        raise SystemExit(found.exit)


@main.command(short_help="Say why what an audit found may stand.")
@click.argument("code", metavar="CODE")
@click.argument("name", metavar="ID")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is kept in the lock.")
@study_option
def acknowledge(code: str, name: str, reason: str, file: Path | None) -> None:
    """Acknowledge each open review of this CODE and ID that an audit finds now, and none that comes later."""
    from pytest_prereg.audit.acknowledging import acknowledge as acknowledged  # noqa: PLC0415
    from pytest_prereg.audit.assess import StudyState  # noqa: PLC0415
    from pytest_prereg.registry.lock import write_lock  # noqa: PLC0415
    from pytest_prereg.report.findings.acknowledged import acknowledged_lines  # noqa: PLC0415

    state = StudyState(load(file))
    lock, findings = acknowledged(state, code, name, reason)
    write_lock(state.study.lock_path, lock)
    for line in acknowledged_lines(state.study, findings, _width()):
        say(line)
