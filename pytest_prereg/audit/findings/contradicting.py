"""Claims of one question of which not both can be right, or one is for certain: PR214."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.audit.comparing.changes import Revision
from pytest_prereg.audit.comparing.opposites import Clash, clashes
from pytest_prereg.audit.finding import Level
from pytest_prereg.audit.findings.telling import acknowledging, short, told
from pytest_prereg.audit.history.past import Past
from pytest_prereg.audit.history.revisions import NoRevision, Revisions, commits_with
from pytest_prereg.registry.digest import registration_digest
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.finding import Finding

SAYING: dict[Clash, str] = {
    "opposite": "what refutes one supports the other",
    "certain": "whatever is found, one of them holds",
    "exclusive": "nothing that is found can support both",
}


class _Given(NamedTuple):
    """A prediction that is given up, as the lock last had it."""

    id: str
    digest: str
    commits: list[str]
    how: str


def contradicting(state: StudyState) -> Iterator[Finding]:
    """Yield a review for each pair of registered predictions that answer one question against each other.

    One that was given up counts as long as the other stands: to register the opposite of what was claimed
    before is no fault, and has to be seen.
    """
    how: dict[str, str] = {}
    given_up: list[Revision] = []
    for one in _given_up(state):
        revision = _revision(state, one)
        if isinstance(revision, NoRevision):
            yield _untold(state, one, revision)
        else:
            how[one.id] = one.how
            given_up.append(revision)
    for left, right, clash in clashes([*_standing(state), *given_up]):
        first, second = (left, right) if left.prediction.id < right.prediction.id else (right, left)
        if not {left.prediction.id, right.prediction.id} <= how.keys():
            yield _finding(state, first, second, clash, how)


def _standing(state: StudyState) -> Iterator[Revision]:
    """Yield what is registered and not given up."""
    for name, prediction in state.study.predictions.items():
        if state.entry(prediction) is not None and not state.is_withdrawn(name):
            yield Revision(study=state.study, prediction=prediction)


def _given_up(state: StudyState) -> Iterator[_Given]:
    record = state.chronicle
    for name, entry in record.now.predictions.items():
        if entry.withdrawal is not None:
            commits = commits_with(record, name, entry.digest)
            yield _Given(name, entry.digest, commits, "was withdrawn")
    gone = {
        one.id: one for one in record.changes if one.after is None and one.id not in record.now.predictions
    }
    for name, change in gone.items():
        digest = change.before[0].digest
        yield _Given(name, digest, [*change.parents, *commits_with(record, name, digest)], "was taken out")


def _revision(state: StudyState, one: _Given) -> Revision | NoRevision:
    if state.digests.get(one.id) == one.digest:
        return Revision(study=state.study, prediction=state.study.predictions[one.id])
    if not isinstance(state.past, Past):
        return NoRevision(why=state.past.detail)
    return Revisions.of(state.past, state.study).registered(one.commits, one.id, one.digest)


def _finding(
    state: StudyState, one: Revision, other: Revision, clash: Clash, given_up: dict[str, str]
) -> Finding:
    """Return what is told of a pair, by id: an acknowledgement names it so, whichever is given up later."""
    names = (one.prediction.id, other.prediction.id)
    pair = [
        f"{quoted(name)}, which {given_up[name]}," if name in given_up else quoted(name) for name in names
    ]
    return told(
        state,
        "PR214",
        names[0],
        Level.REVIEW,
        f"{' and '.join(pair)} ask the same, and {SAYING[clash]}",
        about=", ".join(f"{each.prediction.id} {_digest(each)}" for each in (one, other)),
        advice="Say which of them was expected, and what the other one is for: "
        f"{acknowledging('PR214', names[0])}",
    )


def _digest(one: Revision) -> str:
    return short(registration_digest(one.study, one.prediction))


def _untold(state: StudyState, one: _Given, missing: NoRevision) -> Finding:
    message = f"could not tell whether another prediction contradicts {quoted(one.id)}, which {one.how}"
    about = f"{short(one.digest)} unknown"
    return told(state, "PR214", one.id, Level.NOTICE, f"{message}: {missing.why}", about=about)
