"""What setting evidence aside changes: a line for each verdict that is another now, and the next command."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_prereg.audit.history.git_commands import Place, commit_command, newest
from pytest_prereg.judge.numbers import number_text
from pytest_prereg.registry.load import find_studies
from pytest_prereg.registry.regions import edges
from pytest_prereg.report.columns import wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.setting_aside import Effect
    from pytest_prereg.judge.model import Judgement

_INDENT = 10


def effect_lines(state: StudyState, effects: Sequence[Effect], width: int = 80) -> list[str]:
    """Return how each verdict and its numbers were, and how they are now, no line wider than ``width``."""
    if not effects:
        return [" " * _INDENT + "no verdict rests on it"]
    texts = (
        f"{one.prediction}: {_text(state, one, one.before)} → {_text(state, one, one.after)}"
        for one in effects
    )
    return [" " * _INDENT + line for text in texts for line in wrapped(text, width - _INDENT)]


def _text(state: StudyState, effect: Effect, judgement: Judgement | None) -> str:
    if judgement is None:
        return "pending"
    terms = state.terms(state.study.predictions[effect.prediction])
    held = (*edges(terms.predicts), *edges(terms.falsifier))
    reason = f" ({judgement.reason})" if judgement.reason else ""
    numbers = number_text(judgement.estimate, judgement.interval, terms.unit, held)
    return f"{judgement.verdict}{reason}, {numbers}, n {judgement.n}"


def next_command(state: StudyState, effects: Iterable[Effect], message: str) -> str:
    """Return what to type now: recorded verdicts are recorded again, then lock and evidence are committed.

    The evidence is named as well: without it a clone would have an entry of what isn't there (PR151).
    """
    study = state.study
    places = [Place(path) for path in (study.lock_path, study.evidence_folder)]
    needed = [study.lock_path, *newest(state.files)]
    return f"{record_again(state, effects)}{commit_command(study.folder, places, message, needed=needed)}"


def record_again(state: StudyState, effects: Iterable[Effect]) -> str:
    """Return the command that records verdicts anew that are others now; nothing where none is recorded.

    The run that records them fails, since what was recorded before no longer follows; hence the semicolon.
    """
    entries = state.lock.predictions if state.lock else {}
    if not any(entries[one.prediction].verdict for one in effects if one.prediction in entries):
        return ""
    path = state.study.path
    is_here = path in {one.absolute() for one in find_studies(Path())}
    study = "" if is_here else f" {shlex.quote(os.path.relpath(path))}"
    return f"pytest --prereg --prereg-verify --prereg-record{study}; "
