"""Commands about repeats: try, import, exclude, void."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_prereg.commands.group import (
    EXIT_ERRORS,
    elsewhere,
    experiment_of,
    head_of,
    load,
    main,
    say,
    say_wrapped,
    study_option,
    tell,
    width,
)

if TYPE_CHECKING:
    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.evidence.model import Finished, Series, Started
    from pytest_prereg.evidence.sessions import SessionFile
    from pytest_prereg.registry.lock import Lock
    from pytest_prereg.registry.model import Experiment, Study


HERE = "tried on this machine; it is measured on {executor}"
BUILT_ANEW = "each version is built for this trial alone, and again when it is measured"


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
    from pytest_prereg.measure.progress import WaitNotice  # noqa: PLC0415
    from pytest_prereg.measure.versions.checkout import checkout_of  # noqa: PLC0415
    from pytest_prereg.registry.executors import LOCAL  # noqa: PLC0415

    study = load(file)
    tried = experiment_of(study, experiment)
    arms = tried_arms(tried, arm)
    head, dirty = head_of(study)
    told = _Told(study, tried, arms)
    checkout = checkout_of(study, tried, say=partial(click.echo, err=True), kept=False, arms=arms)
    if tried.table.executor != LOCAL:
        click.echo(HERE.format(executor=tried.table.executor), err=True)
    if checkout and tried.table.build:
        click.echo(BUILT_ANEW, err=True)
    with sigterm_interrupts(), LocalExecutor(study, tried, checkout=checkout) as executor:
        planned = dict.fromkeys(arms, count)
        path = pilot(
            study,
            tried,
            executor,
            planned=planned,
            head=head,
            dirty=dirty,
            observe=told.repeat,
            progress=WaitNotice(partial(click.echo, err=True)).repeat,
            trees=checkout.versions if checkout else None,
            built=checkout.seconds if checkout else 0.0,
        )
    told.end(shown(path))
    for folder in executor.outputs:
        say(f"output of repeats that failed: {folder}")
    for line in elsewhere(study, [experiment]):
        say_wrapped(line)
    if told.failed or told.unreduced:
        raise SystemExit(EXIT_ERRORS)


class _Told:
    """Prints the repeats of a pilot as they end, and remembers how long they took."""

    def __init__(self, study: Study, experiment: Experiment, arms: list[str]) -> None:
        self.study = study
        self.experiment = experiment
        self.arms = arms
        self.seconds: dict[str, list[float]] = {}
        self.failed = False
        self.fallbacks: dict[str, None] = {}
        self.unreduced: dict[str, None] = {}
        """What of it no prediction could be judged by."""
        self.diagnostics: list[str] = []
        """Of the last one that failed: what is true of several is told once."""

    def repeat(self, started: Started, finished: Finished) -> None:
        """Print one repeat, and why it failed unless the one before failed for the same reason."""
        from pytest_prereg.measure.pilot import unreduced  # noqa: PLC0415
        from pytest_prereg.report.commands import diagnostic_lines, fallback_lines, repeat_lines  # noqa: PLC0415

        for line in repeat_lines(self.experiment, started, finished, arms=self.arms, width=width()):
            say(line)
        self.fallbacks |= dict.fromkeys(fallback_lines(self.experiment, finished))
        self.unreduced |= dict.fromkeys(unreduced(self.study, self.experiment, started.arm, finished))
        if finished.cause:
            self.failed = True
            lines = diagnostic_lines(self.experiment, finished)
            for line in lines if lines != self.diagnostics else ():
                click.echo(line, err=True)
            self.diagnostics = lines
        self.seconds.setdefault(started.arm, []).append(finished.seconds.get("total", 0.0))

    def end(self, path: str) -> None:
        """Print where the pilot is kept, and how long the whole would take, if none failed."""
        from pytest_prereg.measure.pilot import whole_duration  # noqa: PLC0415
        from pytest_prereg.report.commands import whole_text  # noqa: PLC0415

        for line in (*self.fallbacks, *self.unreduced):
            say_wrapped(line)
        say_wrapped(f"pilot, never judged; kept in {path}")
        seconds = whole_duration(self.experiment, self.seconds)
        if seconds is not None and self.experiment.planned and not self.failed:
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
    for line in effect_lines(state, effects, width()):
        say(line)
    say(f"next:  {next_command(state, effects, message)}")


@main.command(name="import", short_help="Take in repeats measured elsewhere.")
@click.argument("sources", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--experiment", required=True, metavar="ID", help="Which experiment they are repeats of.")
@click.option("--arm", metavar="ID", help="The arm of repeats that name none, as a tool's files do.")
@click.option(
    "--format", "format_", metavar="NAME", help="Of all files; told from their content unless given."
)
@click.option("--select", metavar="NAME", help="The benchmark that is meant, or its number in the file.")
@study_option
def import_(
    sources: tuple[Path, ...],
    *,
    experiment: str,
    arm: str | None,
    format_: str | None,
    select: str | None,
    file: Path | None,
) -> None:
    """Take in repeats that were measured elsewhere, as registered evidence: all FILEs are one session."""
    from pytest_prereg import registration  # noqa: PLC0415
    from pytest_prereg.audit.assess import StudyState  # noqa: PLC0415
    from pytest_prereg.audit.foreknown import refuse_foreknown  # noqa: PLC0415
    from pytest_prereg.evidence.importing import import_files  # noqa: PLC0415
    from pytest_prereg.evidence.naming import shown  # noqa: PLC0415
    from pytest_prereg.report.commands import imported_lines  # noqa: PLC0415

    study = load(file)
    fed = experiment_of(study, experiment)
    bound = registration.bound_predictions(study, fed)
    tell(registration.uncommitted(study, bound))
    head, dirty = head_of(study)
    state = StudyState(study)
    refuse_foreknown(state, fed, sources, bound)
    path = import_files(
        study,
        fed,
        sources,
        predictions=bound,
        arm=arm,
        form=format_,
        select=select,
        head=head,
        dirty=dirty,
        closed=_closed(state, fed),
        **({"algorithm": state.repository.algorithm} if state.repository else {}),
    )
    say(f"kept in {shown(path)}")
    found, series, was_decided = series_of(study, fed, path)
    options = {"--arm": arm, "--format": format_, "--select": select}
    for line in imported_lines(fed, found, series, was_decided=was_decided, options=options):
        say(line)


def _closed(state: StudyState, experiment: Experiment) -> list[int]:
    """Return the series that are voided, or have all that they were begun for without a number of repeats."""
    several = state.series[experiment.id]
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
