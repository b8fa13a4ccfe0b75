"""Commands that write what is promised: init, lock, amend, withdraw, and merging of locks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_prereg.commands.group import (
    EXIT_ERRORS,
    elsewhere,
    experiment_of,
    load,
    main,
    roots_option,
    say,
    say_wrapped,
    study_option,
    tell,
    width,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.registration import Review
    from pytest_prereg.registry.model import Study


@main.command(short_help="Write an example study here.")
@click.option(
    "--merge-driver", is_flag=True, help="Write no study: have git merge locks by prediction in this clone."
)
def init(*, merge_driver: bool) -> None:
    """Write an example study here: predictions.toml, an experiment, the schema for editors."""
    from pytest_prereg.audit.namesakes import ids_taken  # noqa: PLC0415
    from pytest_prereg.registry.starter import write_starter  # noqa: PLC0415

    if merge_driver:
        _set_up_merge_driver()
        return
    written = write_starter(Path(), ids_taken(Path()))
    say(f"wrote {', '.join(map(str, written))}")
    say("try it:    pytest-prereg try sorting")
    say("register:  pytest-prereg lock")
    say("merging:   pytest-prereg init --merge-driver, once in each clone")


def _set_up_merge_driver() -> None:
    from pytest_prereg.audit.history.merge_driver import set_up  # noqa: PLC0415

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
    from pytest_prereg.audit.stamping.anchoring import anchor, commit_command  # noqa: PLC0415
    from pytest_prereg.report.commands import anchored_lines  # noqa: PLC0415

    for line in anchored_lines(anchor(study, authority, roots)):
        say(line)
    say(f"next:  {commit_command(study)}")


def _tag_lock(study: Study) -> None:
    from pytest_prereg.audit.history.git_commands import push_command  # noqa: PLC0415
    from pytest_prereg.registration import tag_registrations  # noqa: PLC0415
    from pytest_prereg.registry.refusals import listed  # noqa: PLC0415
    from pytest_prereg.report.columns import wrapped  # noqa: PLC0415

    tagged = tag_registrations(study)
    said = "tagged" if tagged.is_new else "already tagged"
    say(f"{said}  {tagged.name} at {tagged.commit[:8]}")
    if tagged.late:
        what = (
            f"it shows what came first for {listed(tagged.shows)}; of {listed(tagged.late)} there is evidence"
        )
        for line in wrapped(what, width() - 8):
            say(" " * 8 + line)
    say(f"next:  {push_command(study.folder, tagged.name)}")


def _check_lock(study: Study) -> None:
    from pytest_prereg.registration import unregistered  # noqa: PLC0415

    problems = unregistered(study)
    tell(problems)
    if problems:
        raise SystemExit(EXIT_ERRORS)
    say(f"{study.id}: {_as_they_stand(len(study.predictions))}")


def _as_they_stand(count: int) -> str:
    if count == 1:
        return "1 prediction is registered as it stands"
    return f"{count} predictions are registered as they stand"


def _say_registered(study: Study, found: Review) -> None:
    from pytest_prereg import registration  # noqa: PLC0415
    from pytest_prereg.audit.citing.behind import pages_behind  # noqa: PLC0415
    from pytest_prereg.report.commands import doubtful_lines, registered_lines, tried_lines  # noqa: PLC0415

    if found.registration is None:
        return
    for name in found.registration.new:
        prediction, design = study.predictions[name], found.designs[name]
        regions = (design.predicts, design.falsifier)
        for line in registered_lines(prediction, study.experiments, regions, design.report, width()):
            say(line)
    if found.registration.new:
        for line in elsewhere(
            study, {name for new in found.registration.new for name in study.predictions[new].experiments}
        ):
            say(line)
        for line in doubtful_lines(study):
            say(line)
        _say_uncommitted(study, found.registration.new)
        for experiment, names in registration.tried(study, found.registration.new).items():
            for line in tried_lines(experiment, names):
                say(line)
        pages = pages_behind(study)
        commit = registration.commit_command(study, found.registration.new, "Register", pages=pages)
        say(f"next:  {commit}")
    else:
        say(f"nothing new: {_as_they_stand(len(found.registration.unchanged))}")


def _say_uncommitted(study: Study, names: Iterable[str]) -> None:
    """Say which files commands of new predictions name, and no commit has."""
    from pytest_prereg.audit.history.committed import uncommitted_files  # noqa: PLC0415
    from pytest_prereg.report.commands import uncommitted_text  # noqa: PLC0415

    used = dict.fromkeys(each for name in names for each in study.predictions[name].experiments)
    files = dict.fromkeys(path for each in used for path in uncommitted_files(study, study.experiments[each]))
    for path in files:
        say_wrapped(uncommitted_text(study, path))


@main.command(short_help="Register what has changed, with a reason.")
@click.argument("names", metavar="ID...", nargs=-1)
@click.option("--experiment", metavar="ID", help="All registered predictions of this experiment.")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is kept in the lock.")
@study_option
def amend(names: tuple[str, ...], experiment: str | None, reason: str, file: Path | None) -> None:
    """Register changed predictions as they stand now; what they were stays in the lock."""
    from pytest_prereg import registration  # noqa: PLC0415
    from pytest_prereg.audit.citing.behind import pages_behind  # noqa: PLC0415
    from pytest_prereg.registry.reasons import given_reason  # noqa: PLC0415
    from pytest_prereg.report.amendments import amended_lines  # noqa: PLC0415

    study = load(file)
    if bool(names) == bool(experiment):
        raise click.UsageError("name predictions, or --experiment")
    given_reason(reason)
    if names:
        chosen = registration.changed_under(study, names)
    else:
        chosen = registration.changed_of(study, experiment_of(study, experiment or ""))
    for amended in registration.amend_registered(study, chosen, reason):
        for line in amended_lines(amended, width()):
            say(line)
    commit = registration.commit_command(study, chosen, "Amend", pages=pages_behind(study))
    say(f"next:  {commit}")


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
        for line in withdrawn_lines(state, name, changed.predictions[name], width()):
            say(line)
    for line in effect_lines(state, effects, width()) if effects else ():
        say(line)
    also = withdrawing.uncommitted_evidence(state)
    commit = registration.commit_command(state.study, chosen, "Withdraw", also=also)
    say(f"next:  {record_again(state, effects)}{commit}")
