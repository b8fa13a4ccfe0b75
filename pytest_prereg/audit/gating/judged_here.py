"""What one pull request registered and measured as well: PR204; and a rule against that, which went."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.order import ADVICE
from pytest_prereg.audit.findings.telling import short, told
from pytest_prereg.audit.gating.places import registered_in
from pytest_prereg.audit.history.grades import PRECEDING, Grade
from pytest_prereg.audit.history.past import Past
from pytest_prereg.audit.history.tags import tag_name
from pytest_prereg.audit.history.witnessing import TAG, Witnessing
from pytest_prereg.audit.withdrawn import files_of
from pytest_prereg.evidence.naming import shown
from pytest_prereg.registry.refusals import quoted
from pytest_prereg.registry.registered import registered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.gating.sequence import Sequence, Sequences
    from pytest_prereg.audit.gating.sides import Base

_SEPARATE = "separate"
_ASK = "Ask whether the expectation was there before the numbers."
_MERGED = (
    f"{_ASK} Merge it with its commits: a squash makes one commit of both, and the verdict counts no more."
)
_SQUASHED = "Whoever squashes all the same keeps the registration by a tag first, and pushes that:"
_TAGGED = f"{_ASK} A tag holds the registration by itself, whoever squashes."


def judged_here(state: StudyState, base: Base, sequences: Sequences) -> Iterator[Finding]:
    """Yield one finding for each registration that is not the base's, and that evidence was taken for.

    Where evidence came first, or something else was registered, that is told as the order that it is.
    """
    keeping = _Keeping(state)
    for name in state.study.predictions:
        if is_registered_here(state, base, name) and _is_measured(state, name):
            grade = state.orders[name].grade
            if grade is Grade.SIMULTANEOUS:
                yield _in_one_commit(state, name, sequences.of(name))
            elif grade in PRECEDING:
                if _is_separate(state, base):
                    yield _apart(state, name, sequences.of(name))
                else:
                    yield _in_order(
                        state, name, sequences.of(name), keeping.told(name, sequences.of(name).registered)
                    )


def is_registered_here(state: StudyState, base: Base, name: str) -> bool:
    """Whether the lock registers a prediction as it is now, and the base's did not."""
    entry, before = state.lock.predictions.get(name) if state.lock else None, base.entry(name)
    is_known = before is not None and entry is not None and before.digest == entry.digest
    if base.unread and base.lock is None:  # nobody can read it there, and the history tells all the same
        commit = registered_in(state, name)
        is_known = commit is not None and state.timeline.leads(commit, base.commit)
    return entry is not None and entry.digest == state.digests[name] and not is_known


def loosened(state: StudyState, base: Base) -> Iterator[Finding]:
    """Yield a review if the study asked for pull requests of their own, and does so no more."""
    if base.table is None or base.table.registration != _SEPARATE or _asks(state):
        return
    yield Finding(
        code="PR209",
        id=state.study.id,
        level=Level.REVIEW,
        message=f"{quoted(state.study.id)} no longer wants registrations in a pull request of their own",
        path=shown(state.study.path),
        line=1,
        about="registration: separate -> any",
        advice='Put registration = "separate" back, or say why it goes.',
    )


def _is_measured(state: StudyState, name: str) -> bool:
    return any(file.attempts for file in files_of(state, name, {state.digests[name]}))


def _asks(state: StudyState) -> bool:
    return state.study.table.registration == _SEPARATE


def _is_separate(state: StudyState, base: Base) -> bool:
    """Whether registrations need a pull request of their own: what the base asks can't be lifted beside."""
    return _asks(state) or (base.table is not None and base.table.registration == _SEPARATE)


def _in_one_commit(state: StudyState, name: str, sequence: Sequence) -> Finding:
    order = state.orders[name]
    where = f", {order.commit[:8]}" if order.commit else ""
    message = f"{quoted(name)} is registered and measured in one commit{where}"
    finding = _finding(state, name, Level.ERROR, message, ADVICE[Grade.SIMULTANEOUS])
    return replace(finding, commit=sequence.measured)


def _apart(state: StudyState, name: str, sequence: Sequence) -> Finding:
    message = f'{_both(name, sequence)}, and its study says registration = "separate"'
    advice = "Its study asks for two: one that registers it and, once that is merged, one with the evidence."
    return replace(_finding(state, name, Level.ERROR, message, advice), commit=sequence.measured)


def _in_order(state: StudyState, name: str, sequence: Sequence, advice: str) -> Finding:
    finding = _finding(state, name, Level.REVIEW, _both(name, sequence), advice)
    return replace(finding, commit=sequence.measured)


def _both(name: str, sequence: Sequence) -> str:
    registered, measured = _in(sequence.registered), _in(sequence.measured)
    return f"{quoted(name)} is registered{registered} and measured{measured}, in the same pull request"


class _Keeping:
    """How a registration is kept that would be squashed; the history is gone through once for all of them."""

    def __init__(self, state: StudyState) -> None:
        self._state = state
        self._pushing: dict[str, list[str]] = {}

    def told(self, name: str, commit: str | None) -> str:
        """Return what to ask and, unless a tag keeps the registration already, what keeps it in a squash.

        Args:
            name: Of the prediction.
            commit: That registered it. All others are looked through only if that has the evidence, too.
        """
        state, past, digest = self._state, self._state.past, self._state.digests[name]
        assert isinstance(past, Past)
        files = state.references(state.study.predictions[name])
        if any(past.witness(one.blob, name, digest) for one in files):
            return _TAGGED
        if commit is None or self._witnessing.is_measured(commit, name, digest):
            commit = self._witnessing.of(name, digest)
        if commit is None:
            return _MERGED
        if commit not in self._pushing:
            self._pushing[commit] = list(self._push(past, commit))
        return "\n".join([f"{_MERGED} {_SQUASHED}", TAG.format(commit=commit[:8]), *self._pushing[commit]])

    @cached_property
    def _witnessing(self) -> Witnessing:
        assert isinstance(self._state.past, Past)
        return Witnessing(self._state, self._state.past)

    def _push(self, past: Past, commit: str) -> Iterator[str]:
        """Yield the command that pushes a tag of the lock that a commit has."""
        place = past.repository.relative(self._state.study.lock_path)
        text = next(past.repository.contents([f"{commit}:{place}"]))
        if text is not None and (lock := registered(text)) is not None:
            yield f"git push origin {tag_name(lock)}"


def _in(commit: str | None) -> str:
    return f" in {commit[:8]}" if commit else ""


def _finding(state: StudyState, name: str, level: Level, message: str, advice: str) -> Finding:
    return told(state, "PR204", name, level, message, about=short(state.digests[name]), advice=advice)
