"""The command of the review gate: what a pull request changes, from the commits at its two ends."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from pytest_prereg.commands.group import main, roots_option, study_option
from pytest_prereg.commands.showing import Showing, report_options
from pytest_prereg.errors import HistoryError, PreregError, Problem, UsageError
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.finding import Finding
    from pytest_prereg.audit.gating.ends import Ends
    from pytest_prereg.audit.gating.sides import Base, Side
    from pytest_prereg.audit.gating.studies import Wanted
    from pytest_prereg.audit.history.git import Repository
    from pytest_prereg.report.findings.rendering import Format
    from pytest_prereg.report.findings.reported import Reported


@main.command(short_help="Say what a pull request changes, and what a person has to see.")
@click.option("--base", required=True, metavar="REV", help="The branch that it is to be merged into.")
@click.option("--head", default="HEAD", show_default=True, metavar="REV", help="The pull request.")
@report_options
@click.option(
    "--acknowledge",
    type=click.Choice(["lock"]),
    help="Take a review as acknowledged once the lock answers it, whoever has to approve that.",
)
@click.option(
    "--default-branch",
    "on_default_branch",
    is_flag=True,
    help="It is what everybody builds on: a guard that was not measured on it needs a person's eyes.",
)
@roots_option
@study_option
def gate(
    *,
    base: str,
    head: str,
    form: Format,
    every: bool,
    output: Path | None,
    acknowledge: str | None,
    on_default_branch: bool,
    roots: Path | None,
    file: Path | None,
) -> None:
    """Compare the merge base of two revisions with the later one, from committed files alone.

    Nothing is run, and no experiment is imported. Exit status: 0 fine, 1 errors or reviews that nobody has
    acknowledged, 4 it could not be told.
    """
    asked = _Asked(
        base=base,
        head=head,
        file=file,
        roots=roots and roots.absolute(),
        is_trusted=acknowledge is not None,
        on_default_branch=on_default_branch,
    )
    showing = Showing.of(form, every=every, output=output)
    with _reported(asked) as found:
        text = showing.text(found)
    showing.show(text, found)


def gated_findings(base: str, file: Path | None) -> tuple[Finding, ...]:
    """Return what the gate finds between a revision and HEAD; what the lock answers is acknowledged.

    Raises:
        HistoryError: The revision is not here, or nothing shows where they parted (PR212).
        UsageError: Neither has such a study (PR100).
    """
    asked = _Asked(base=base, head="HEAD", file=file, roots=None, is_trusted=True, on_default_branch=True)
    with contextlib.ExitStack() as stack:
        return _found(asked, stack).findings


class _Asked(NamedTuple):
    """What was typed."""

    base: str
    head: str
    file: Path | None
    roots: Path | None
    is_trusted: bool
    on_default_branch: bool


@contextlib.contextmanager
def _reported(asked: _Asked) -> Iterator[Reported]:
    """Yield what is to be shown, inside the tree of the later commit: paths are told as they are there."""
    from pytest_prereg.measure.interrupts import sigterm_interrupts  # noqa: PLC0415
    from pytest_prereg.report.findings.reported import reported_refusal  # noqa: PLC0415

    with sigterm_interrupts(), contextlib.ExitStack() as stack:
        try:
            found = _found(asked, stack)
        except HistoryError as error:
            found = reported_refusal(error, asked.file or Path("predictions.toml"), "gate")
        yield found


def _found(asked: _Asked, stack: contextlib.ExitStack) -> Reported:
    """Return what a gate says; the trees that it looks at last as long as ``stack``.

    Raises:
        HistoryError: A commit is not here, or nothing shows where they parted (PR212).
        UsageError: Neither has such a study, or head no longer, and nothing of it was registered (PR100).
    """
    from msgspec.structs import replace  # noqa: PLC0415

    from pytest_prereg.audit.gating.ends import before, ends_of  # noqa: PLC0415
    from pytest_prereg.audit.gating.studies import (  # noqa: PLC0415
        Place,
        base_of,
        left,
        places,
        removed,
        side_of,
    )
    from pytest_prereg.report.findings.reported import reported_refusal  # noqa: PLC0415

    repository = _repository()
    ends = ends_of(repository, asked.base, asked.head)
    wanted = _wanted(repository, asked.file, ends)
    old, new = places(repository, wanted, ends)
    if new is None:
        gone = removed(repository, ends.base, old or wanted.place)
        if isinstance(gone, UsageError):
            raise gone
        return reported_refusal(gone, Path(os.path.relpath(repository.root / (old or wanted.place))), "gate")
    here = _vantage(repository, new)
    first = Place(repository=repository, commit=ends.base, refs=before(repository, ends), here=here)
    last = Place(repository=repository, commit=ends.head, refs=repository.refs(), here=here)
    tree, base = stack.enter_context(base_of(first, old, asked.roots))
    stack.enter_context(last.entered(stack.enter_context(last.written(tree))))
    try:
        side = side_of(last, new, asked.roots)
    except HistoryError:
        raise
    except PreregError as error:
        return reported_refusal(error, last.file(new), "gate")
    known = base()
    others = tuple(left(repository, wanted, ends, side.audit.study))
    return _gated(asked, repository, ends, side, replace(known, left=others))


def _vantage(repository: Repository, place: str) -> str:
    """Return from which folder paths are told: this one, or the root if the file is elsewhere."""
    here = repository.relative(Path.cwd()) or "."
    return here if place.startswith(f"{here}/") else ""


def _gated(asked: _Asked, repository: Repository, ends: Ends, side: Side, base: Base) -> Reported:
    """Return what came between the study at head and what there was of it at the base."""
    from pytest_prereg.audit.gating.approving import Approval, covering  # noqa: PLC0415
    from pytest_prereg.audit.gating.gate import gate as gate_of  # noqa: PLC0415
    from pytest_prereg.report.findings.gated import reported_gate  # noqa: PLC0415

    study = side.state.study
    assert side.state.repository is not None
    lock = side.state.repository.relative(study.lock_path) or study.lock_path.name
    approval = Approval(
        ends=ends, lock=lock, path=covering(repository, ends.tip, lock), is_trusted=asked.is_trusted
    )
    found = gate_of(side, base, approval, on_default_branch=asked.on_default_branch)
    uncommitted = tuple(_uncommitted(repository, ends, side))
    return reported_gate(found, study.path, side.state.repository.root, uncommitted)


def _uncommitted(repository: Repository, ends: Ends, side: Side) -> Iterator[str]:
    """Yield files of the study that are not in the work tree as head has them, where head is checked out."""
    from pytest_prereg.audit.finding import sound  # noqa: PLC0415
    from pytest_prereg.audit.gating.uncommitted import uncommitted  # noqa: PLC0415

    study, tree = side.state.study, side.state.repository
    if repository.head() != ends.head or tree is None:
        return
    sources = (one.source.path for one in study.experiments.values() if one.source and one.source.path)
    files = filter(None, map(tree.relative, (study.path, study.lock_path, *sources)))
    here, folder = tree.relative(Path.cwd()) or ".", tree.relative(study.evidence_folder)
    for place in uncommitted(repository, ends.head, files, folder):
        yield sound(os.path.relpath(place, here))


def _repository() -> Repository:
    from pytest_prereg.audit.history.git import Repository  # noqa: PLC0415

    repository = Repository.find(Path.cwd())
    if repository is None:
        message = "there is no git repository here, so there is nothing to compare"
        raise HistoryError(Problem(code="PR212", message=message))
    return repository


def _wanted(repository: Repository, file: Path | None, ends: Ends) -> Wanted:
    """Return which study was asked for: a file that may be gone here, or that of a folder."""
    from pytest_prereg.audit.gating.studies import Wanted, is_file  # noqa: PLC0415

    named = Path() if file is None else file
    place = repository.relative(named.absolute())
    if place is None:
        message = f"{quoted(str(named))} lies outside of the repository"
        raise UsageError(Problem(code="PR100", message=message, advice="Name a file that is committed."))
    place = "" if place == "." else place
    return Wanted(place=place, is_file=file is not None and is_file(repository, place, ends))
