"""Whether the verdict that the lock records is what the evidence gives."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.errors import Problem
from pytest_prereg.evidence.naming import shown
from pytest_prereg.judge.model import Reason
from pytest_prereg.registry.refusals import listed, typed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_prereg.audit.staleness import Since
    from pytest_prereg.judge.model import Judgement
    from pytest_prereg.registry.lock import LockEntry
    from pytest_prereg.registry.model import Prediction, Study


class Evidenced(NamedTuple):
    """A verdict that the evidence gives."""

    series: int
    judgement: Judgement
    digest: str
    """Of the repeats used."""


def check_recorded(
    study: Study,
    prediction: Prediction,
    entry: LockEntry | None,
    *,
    is_registered: bool,
    found: Evidenced | None,
    waiting: str | None = None,
    before: Evidenced | None = None,
    since: Callable[[], Since | None] = lambda: None,
) -> tuple[Problem, ...]:
    """Return what is wrong with a recorded verdict: its evidence is gone, or it does not follow.

    Args:
        study: The study.
        prediction: One of its predictions.
        entry: Its table in the lock.
        is_registered: Whether the prediction stands as that registers it; where it does not, a verdict that
            differs is a change, not a lie.
        found: What the evidence gives now.
        waiting: Why it gives nothing, where all of it is there.
        before: What the first series gave, where the next one decides: it may be recorded still.
        since: Asked where it rests on other repeats than were recorded: what was excluded since.
    """
    if entry is None or entry.verdict is None:
        return ()
    if before is not None and (entry.series, entry.evidence) == (before.series, before.digest):
        was = before.judgement.verdict
        lies = is_registered and entry.verdict != was
        return (unfounded(prediction, entry, f"gave {was}", study),) if lies else ()
    if found is None and waiting is not None:
        return (unfounded(prediction, entry, f"is not enough: {waiting}", study),)
    if found is None or (entry.series, entry.evidence) != (found.series, found.digest):
        changed = since() if found is not None and is_registered else None
        if changed is not None:
            return (stale(prediction, entry, changed, study),)
        return (gone(prediction, entry, study) if is_registered else outdated(prediction, entry, study),)
    lies = is_registered and not follows(entry, found.judgement)
    return (unfounded(prediction, entry, _gives(found.judgement), study),) if lies else ()


def _gives(judgement: Judgement) -> str:
    told = f": {judgement.detail}" if judgement.reason is Reason.INTEGRITY and judgement.detail else ""
    return f"gives {judgement.verdict}{told}"


def stale(prediction: Prediction, entry: LockEntry, since: Since, study: Study) -> Problem:
    """Return PR211: repeats that the recorded verdict rests on were excluded, or no longer are."""
    if since.removed:
        message = f"was recorded without {listed(since.removed)}, which the lock no longer excludes"
        advice = (
            f"An exclusion stays. Find it, and bring it back: git log --oneline -- {_word(study.lock_path)}\n"
            "If it was wrong, the verdict is recorded anew: pytest --prereg-verify --prereg-record"
        )
    else:
        message = f"was recorded when {listed(since.added)} still counted, which is excluded since"
        advice = "Record it as it is now: pytest --prereg-verify --prereg-record"
    what = f'the verdict of "{prediction.id}", "{entry.verdict}", {message}'
    return Problem(code="PR211", message=what, path=shown(study.lock_path), advice=advice)


def gone(prediction: Prediction, entry: LockEntry, study: Study) -> Problem:
    """Return PR207: the repeats that the recorded verdict rests on are not there."""
    return Problem(
        code="PR207",
        message=f'the evidence of the recorded verdict of "{prediction.id}" '
        f"(series {entry.series}, {short(entry.evidence)}) is gone or altered",
        path=shown(study.lock_path),
        advice=f"Find it, and bring it back: git log --oneline -- {_word(study.evidence_folder)}\n"
        "If no commit has it, commit it where it was measured. An exclusion that was taken out of the lock\n"
        f"changes it, too: git log --oneline -- {_word(study.lock_path)}",
    )


def outdated(prediction: Prediction, entry: LockEntry, study: Study) -> Problem:
    """Return PR104: a verdict is recorded, of something else than what the prediction says now."""
    return Problem(
        code="PR104",
        message=f'"{prediction.id}" is no longer what was registered, and the lock has a verdict on that, '
        f'"{entry.verdict}"',
        path=shown(study.path),
        line=prediction.line,
        advice=f"Restore it, or say why it changed: pytest-prereg amend {typed(prediction.id)} --reason '…'",
    )


def unfounded(prediction: Prediction, entry: LockEntry, found: str, study: Study) -> Problem:
    """Return PR211: the evidence is there, and gives something else."""
    return Problem(
        code="PR211",
        message=f'the recorded verdict of "{prediction.id}", "{entry.verdict}", does not follow from the '
        f"evidence, which {found}",
        path=shown(study.lock_path),
        advice="Restore the lock, or record again: pytest --prereg-verify --prereg-record",
    )


def unmeasured(prediction: Prediction, entry: LockEntry, study: Study) -> Problem:
    """Return PR211: the series that decides was not measured for what the verdict is recorded of."""
    return Problem(
        code="PR211",
        message=f'the lock records "{entry.verdict}" of "{prediction.id}" as it is registered now '
        f"({short(entry.digest)}), and its evidence was taken for another registration",
        path=shown(study.lock_path),
        advice="Where branches that amended it and recorded it were merged by lines, take one table whole,\n"
        f"and do anew what the other did: git log --oneline -- {_word(study.lock_path)}",
    )


def follows(entry: LockEntry, judgement: Judgement) -> bool:
    """Whether the record in the lock is, to the last stored digit, what the evidence gives."""
    reason = judgement.reason.value if judgement.reason else None
    return (entry.verdict, entry.reason, entry.estimate, entry.interval, entry.n) == (
        judgement.verdict.value,
        reason,
        judgement.estimate,
        judgement.interval,
        judgement.n,
    )


def _word(path: Path) -> str:
    """A path, for a shell."""
    return shlex.quote(shown(path))


def short(digest: str | None) -> str:
    """The first eight digits of a digest, for people."""
    return (digest or "none").removeprefix("sha256:")[:8]
