"""The last words of a run: what was kept, what had to be run again, and the command that comes next."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_prereg.errors import HistoryError
from pytest_prereg.evidence.naming import shown
from pytest_prereg.evidence.sessions import read_session
from pytest_prereg.judge.faults import allowed_faults
from pytest_prereg.measure.reruns import reruns_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.campaign import Campaign

UNPRICED = "nothing that was measured has a price, so --prereg-budget stops nothing: [study.prices] local"


def closing_lines(campaign: Campaign, *, again: str, interrupted: bool, recorded: bool) -> Iterator[str]:
    """Yield what a person has to know after a run.

    Args:
        campaign: What was measured.
        again: The command that goes on with it.
        interrupted: Whether somebody stopped the run.
        recorded: Whether a verdict was written to the lock.
    """
    yield from _refusals(campaign)
    yield from campaign.abandoned
    yield from _reruns(campaign)
    files, repeats = kept(campaign)
    if files:
        yield f"evidence: {files} file{'s' * (files != 1)}, {repeats} repeat{'s' * (repeats != 1)} kept"
    yield from (f"output of repeats that failed: {folder}" for folder in campaign.outputs)
    if campaign.limits.budget is not None and campaign.measured and not campaign.priced:
        yield UNPRICED
    if campaign.limits.reached is not None:
        yield f"stopped: {campaign.limits.reached}"
    if interrupted or campaign.limits.reached is not None:
        yield from _lost(campaign)
        yield f"resume:  {again}   (what is kept is not run again)"
    elif changed := _uncommitted(campaign, recorded=recorded):
        study = campaign.state.study.id
        yield f"next:  git add {' '.join(changed)} && git commit -m 'Evidence for {study}'"


def kept(campaign: Campaign) -> tuple[int, int]:
    """Return how many files and settled repeats the series have that were measured in this run."""
    series = [
        one
        for several in campaign.measured.values()
        for due in several
        for one in campaign.state.series[due.experiment]
        if one.number == due.number
    ]
    return sum(len(one.sessions) for one in series), sum(len(one.repeats) for one in series)


def _lost(campaign: Campaign) -> Iterator[str]:
    """How many attempts the series that go on have lost, of those that they may lose."""
    for experiment, several in campaign.measured.items():
        numbers = {due.number for due in several}
        for one in campaign.state.series[experiment]:
            if one.number in numbers and one.faults and not one.complete:
                allowed = f"{allowed_faults(min((one.planned or {}).values(), default=0)):g}"
                lost = f"{len(one.faults)} attempt{'s' * (len(one.faults) != 1)}"
                yield f"{experiment}: {lost} lost; more than {allowed} of the same arms are inconclusive"


def _refusals(campaign: Campaign) -> Iterator[str]:
    refused = campaign.refused.values()
    yield from (str(replace(problem, advice=None)) for problem in refused)
    yield from (f"    {advice}" for advice in dict.fromkeys(problem.advice for problem in refused))


def _reruns(campaign: Campaign) -> Iterator[str]:
    for experiment, paths in campaign.written.items():
        if text := reruns_text(read_session(path) for path in paths):
            yield f"{experiment}: {text}"


def _uncommitted(campaign: Campaign, *, recorded: bool) -> list[str]:
    """Lock and evidence, where there is something new in them that a clone would lack."""
    study, repository = campaign.state.study, campaign.state.repository
    if repository is None:
        return []
    evidence = study.evidence_folder
    with suppress(HistoryError):  # what kept git from answering was told where an answer was needed
        lock = [shown(study.lock_path)] if recorded and repository.differs(study.lock_path) else []
        return [*lock, *([shown(evidence)] if evidence.is_dir() and repository.differs(evidence) else [])]
    return []
