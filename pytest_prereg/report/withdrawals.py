"""What withdrawing says: what each prediction counts as now, and whether its text may go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.withdrawing import calibrates, rests_on_it
from pytest_prereg.audit.withdrawn import repeats_of
from pytest_prereg.evidence.naming import shown
from pytest_prereg.judge.findings import plural
from pytest_prereg.judge.model import Verdict
from pytest_prereg.registry.refusals import listed
from pytest_prereg.report.columns import wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.registry.lock import LockEntry

_INDENT = 11


def withdrawn_lines(state: StudyState, name: str, entry: LockEntry, width: int = 80) -> Iterator[str]:
    """Yield what is told of a prediction that was withdrawn, no line wider than ``width``.

    Args:
        state: The study.
        name: The prediction's id.
        entry: Its table, with the tombstone.
        width: Of the text, in characters.
    """
    yield f"{'withdrawn':<{_INDENT}}{name}"
    for text in (_counts(state, name, entry), _text(state, name, entry)):
        yield from (" " * _INDENT + line for line in wrapped(text, width - _INDENT))


def _counts(state: StudyState, name: str, entry: LockEntry) -> str:
    """What it counts as: a refutation stays one."""
    if entry.verdict == Verdict.REFUTED:
        return "it was refuted, and stays counted as refuted"
    if entry.was_refuted:
        return "it was refuted before it was amended, and stays counted as refuted"
    if entry.verdict is not None:
        return f"it was {entry.verdict}, and counts no more"
    if repeats := repeats_of(state, name, entry):
        return f"it has no verdict that counts, after {plural(repeats, 'repeat')}, and says so for good"
    return "it was never measured"


def _text(state: StudyState, name: str, entry: LockEntry) -> str:
    """Whether its text may go from the study."""
    file = shown(state.study.path)
    if name not in state.study.predictions:
        return f"{file} no longer has it, and needs not"
    if others := rests_on_it(state, name):
        return f"leave it in {file}: {listed(others)} {'rests' if len(others) == 1 else 'rest'} on it"
    if instruments := calibrates(state, name):
        return f"leave it in {file}: it calibrates {listed(instruments)}"
    if entry.verdict is not None and state.family is not None and name in state.family.levels:
        return f"leave it in {file}: the levels of its family rest on its evidence"
    return f"it may be deleted from {file}, or stay; its id is never used again"
