"""The last words of a run: what was kept, what had to be run again, and the command that comes next."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_prereg.audit.citing.behind import cite_first, pages_behind
from pytest_prereg.audit.history.git_commands import Place, commit_command, is_ignored, newest
from pytest_prereg.errors import HistoryError, PreregError
from pytest_prereg.evidence.naming import shown
from pytest_prereg.evidence.sessions import read_session
from pytest_prereg.judge.faults import allowed_faults
from pytest_prereg.measure.reruns import reruns_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_prereg.audit.history.git import Repository
    from pytest_prereg.campaign import Campaign
    from pytest_prereg.evidence.sessions import SessionFile

UNPRICED = "nothing that was measured has a price, so --prereg-budget stops nothing: [study.prices] local"


def closing_lines(campaign: Campaign, *, again: str, interrupted: bool, recorded: bool) -> Iterator[str]:
    """Yield what a person has to know after a run.

    Args:
        campaign: What was measured.
        again: The command that goes on with it.
        interrupted: Whether somebody stopped the run.
        recorded: Whether this run has written a verdict to the lock.
    """
    recorded = recorded or _has_more_verdicts(campaign)
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
    elif places := _uncommitted(campaign, recorded=recorded):
        yield from _ignored(campaign, recorded=recorded)
        study = campaign.state.study
        needed = [study.lock_path, *_newest(campaign, recorded=recorded)]
        has_evidence = any(place.path == study.evidence_folder for place in places)
        message = f"{'Evidence for' if has_evidence else 'Record verdicts of'} {study.id}"
        pages = pages_behind(study) if recorded else []
        command = commit_command(study.folder, [*places, *map(Place, pages)], message, needed=needed)
        yield f"next:  {cite_first(study, pages)}{command}"


def _has_more_verdicts(campaign: Campaign) -> bool:
    """Whether the lock has verdicts of an earlier run that HEAD lacks: they go with the evidence."""
    state, committed = campaign.state, None
    if state.lock is None:
        return False
    with suppress(PreregError):  # a lock at HEAD that can't be read is told of where it is needed
        committed = state.head_lock
    there = committed.predictions if committed else {}
    return any(
        entry.verdict is not None and (name not in there or there[name].evidence != entry.evidence)
        for name, entry in state.lock.predictions.items()
    )


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


def _uncommitted(campaign: Campaign, *, recorded: bool) -> list[Place]:
    """Lock and evidence, where there is something new in them that a clone would lack."""
    study, repository = campaign.state.study, campaign.state.repository
    if repository is None:
        return []
    evidence = study.evidence_folder
    with suppress(HistoryError):  # what kept git from answering was told where an answer was needed
        news = [path for path in ([study.lock_path] if recorded else []) if _is_news(repository, path)]
        is_news = evidence.is_dir() and repository.differs(evidence) and _has_more_than_pilots(campaign)
        if is_news or (evidence.is_dir() and any(_ignored(campaign, recorded=recorded))):
            news.append(evidence)
        return [Place(path) for path in news]
    return []


def _has_more_than_pilots(campaign: Campaign) -> bool:
    """Whether HEAD lacks evidence as it is on disk, or has some that is gone: no verdict rests on a pilot."""
    state, repository = campaign.state, campaign.state.repository
    place = repository.relative(state.study.evidence_folder) if repository else None
    if repository is None or place is None or repository.head() is None:
        return True
    there = repository.blobs_at("HEAD", place)
    files = [file for several in state.files.values() for file in several]
    own = {repository.relative(one.path): state.blob(one) for one in files if not _is_pilot(one)}
    is_gone = any(not (repository.root / path).is_file() for path in there)
    return is_gone or any(there.get(path or "") != blob for path, blob in own.items())


def _is_pilot(file: SessionFile) -> bool:
    return file.header is not None and file.header.origin == "pilot"


def _is_news(repository: Repository, path: Path) -> bool:
    return repository.differs(path) or is_ignored(repository, path)


def _newest(campaign: Campaign, *, recorded: bool) -> list[Path]:
    """The last session file of each experiment, of this run or of all that a recorded verdict may rest on."""
    if recorded:
        return newest(campaign.state.files)
    return [paths[-1] for paths in campaign.written.values() if paths]


def _ignored(campaign: Campaign, *, recorded: bool) -> Iterator[str]:
    """Say what git is told to ignore: nobody would miss it in a commit, and every clone would lack it.

    The same is so of evidence that a repository of its own keeps, and for that there is no remedy.
    """
    repository = campaign.state.repository
    if kept := repository and repository.keeper(campaign.state.study.evidence_folder):
        yield f"{shown(kept)} is another repository: what is committed there counts for no verdict here"
        return
    for path in _newest(campaign, recorded=recorded):
        if repository is not None and is_ignored(repository, path):
            yield f"git is told to ignore {shown(path)}: unless it is committed, no clone has the verdict"
