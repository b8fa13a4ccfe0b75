"""Imported data that were known before what they decide was registered: committed, or evidence already.

A prediction that is registered after that is no prediction of them, whatever commit they are imported at.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.audit.history.past import Past
from pytest_prereg.audit.history.preceding import came_first, is_before
from pytest_prereg.errors import EvidenceError, Problem
from pytest_prereg.evidence.file_origins import blob_of, digests_of, origins_of
from pytest_prereg.evidence.importers.complaints import Complaints
from pytest_prereg.evidence.importers.contents import contents_of
from pytest_prereg.evidence.lines import digest
from pytest_prereg.evidence.naming import shown
from pytest_prereg.evidence.same_numbers import exact_metrics, holds_the_same, numbers_of
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.history.committed_sessions import CommittedSession
    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.evidence.model import Header
    from pytest_prereg.registry.model import Experiment, Prediction


_SEEN = (
    "What was seen is predicted no more: measure again. A claim about it that says so "
    '(data-seen = "full") is a replication.'
)


class Foreknown(NamedTuple):
    """A session with data that were there before a prediction was registered."""

    file: SessionFile
    where: str
    """Where they were, in words that follow "they"."""
    commit: str | None
    """The commit that shows it, if there is one."""


class Twins:
    """The sessions of a study that hold the numbers of others; found when there is an import.

    What is counted exactly comes out the same again, and tells nothing.
    """

    def __init__(self, state: StudyState) -> None:
        self._state = state
        self._found: dict[Path, list[SessionFile]] = {}

    def of(self, file: SessionFile) -> list[SessionFile]:
        """Return the sessions of other experiments with the same data as an imported one."""
        if file.path not in self._found:
            self._found[file.path] = list(self._of(file))
        return self._found[file.path]

    def _of(self, file: SessionFile) -> Iterator[SessionFile]:
        own = self._numbers[file.path]
        sharing = {path for number in own for path in self._with[number]}
        for other in self._every:
            if other.path.parent != file.path.parent and (
                _share_a_file(file.header, other.header)
                or (other.path in sharing and holds_the_same(own, self._numbers[other.path]))
            ):
                yield other

    @cached_property
    def _every(self) -> list[SessionFile]:
        return [one for several in self._state.files.values() for one in several if one.header is not None]

    @cached_property
    def _numbers(self) -> dict[Path, Counter[str]]:
        experiments = self._state.study.experiments
        exact = {name: exact_metrics(one) for name, one in experiments.items()}
        return {
            one.path: numbers_of(one.attempts, without=exact.get(one.path.parent.name, frozenset()))
            for one in self._every
        }

    @cached_property
    def _with(self) -> dict[str, set[Path]]:
        """Sessions by the numbers that they have."""
        found: dict[str, set[Path]] = defaultdict(set)
        for path, numbers in self._numbers.items():
            for number in numbers:
                found[number].add(path)
        return found


def foreknown(state: StudyState, twins: Twins, prediction: Prediction) -> Iterator[Foreknown]:
    """Yield the imported sessions of a prediction's experiments with data that were there before it.

    Each once, with the first that shows it. The data that decide it are never "pilot": of a prediction that
    says so they are told all the same, other sessions are not.
    """
    seen = prediction.table.data_seen
    if seen == "full" or not isinstance(state.past, Past):
        return
    deciding = {name for one in (state.bases[prediction.id] or {}).values() for name in one.sessions}
    for experiment in prediction.experiments:
        for file in state.files[experiment]:
            if origins_of(file.header) and file.attempts and (seen == "none" or file.path.name in deciding):
                every = (*_committed(state, prediction, file), *_taken_in(state, twins, prediction, file))
                yield from every[:1]


def _share_a_file(one: Header | None, other: Header | None) -> bool:
    return not digests_of(one).isdisjoint(digests_of(other))


def _committed(state: StudyState, prediction: Prediction, file: SessionFile) -> Iterator[Foreknown]:
    """Yield commits that had the file that was imported, where the prediction was not registered."""
    past, known = state.past, state.digests[prediction.id]
    assert isinstance(past, Past)
    for origin in origins_of(file.header):
        for each in past.known.get(blob_of(origin) or "", ()):
            if is_before(past, each, prediction.id, known, is_bound=True):
                where = f"were committed as {quoted(origin.get('name', '?'))} in {each.commit[:8]}"
                yield Foreknown(file, where, each.commit)


def _taken_in(
    state: StudyState, twins: Twins, prediction: Prediction, file: SessionFile
) -> Iterator[Foreknown]:
    """Yield other evidence with the same data that was there before the prediction was registered."""
    for twin in twins.of(file):
        if twin.header is not None and came_first(state, prediction, state.blob(twin), twin.header):
            yield Foreknown(
                file, f"were evidence of {quoted(twin.path.parent.name)}, {quoted(twin.name)}", None
            )
    for one in state.origins.foreign:
        if _share_a_file(file.header, one.header) and came_first(state, prediction, one.blob, one.header):
            study = quoted(one.header.study)
            yield Foreknown(file, f"were evidence of study {study}, {quoted(one.name)}", None)
    yield from _were_taken_in(state, prediction, file)


def _were_taken_in(state: StudyState, prediction: Prediction, file: SessionFile) -> Iterator[Foreknown]:
    """Yield sessions that a study had once, with the same data, where the prediction was not registered."""
    past, known = state.past, state.digests[prediction.id]
    assert isinstance(past, Past)
    for one in past.imports:
        if one.header is None or not _share_a_file(file.header, one.header):
            continue
        if commit := _first_without(past, one, prediction.id, known):
            of = "this study" if one.header.study == past.study else f"study {quoted(one.header.study)}"
            yield Foreknown(file, f"were evidence of {of} in {commit[:8]}", commit)


def _first_without(past: Past, session: CommittedSession, prediction: str, known: str) -> str | None:
    """The first commit that brought a session in, and comes from none that registers a prediction."""
    for place in reversed(session.places):
        if place.commit in past.graph.parents and not any(
            known in past.registered(each, prediction)
            for each in (place.commit, *past.graph.parents[place.commit])
        ):
            return place.commit
    return None


def refuse_foreknown(
    state: StudyState, experiment: Experiment, paths: Iterable[Path], bound: Mapping[str, str]
) -> None:
    """Refuse a file that another study had taken in before anything was registered that it would decide.

    Args:
        state: The study, read for this alone.
        experiment: Which is to take the file in.
        paths: The files; that one can't be read is told by who reads it.
        bound: What the import would bind, by prediction id.

    Raises:
        EvidenceError: PR119.
    """
    offered = {digest(data): path for path in paths if (data := _content(path)) is not None}
    state.offered = frozenset(offered)
    predictions = [state.study.predictions[name] for name in bound]
    problems: list[Problem] = []
    for one in state.origins.foreign:
        known = [offered[each] for each in digests_of(one.header) if each in offered]
        if known and all(
            each.table.data_seen != "full" and came_first(state, each, one.blob, one.header)
            for each in predictions
        ):
            message = (
                f"study {quoted(one.header.study)} took it in as {quoted(one.name)}, before what "
                f"{quoted(experiment.id)} would decide was registered"
            )
            problems += (
                Problem(code="PR119", message=message, path=shown(path), advice=_SEEN) for path in known
            )
    if problems:
        raise EvidenceError(problems)


def _content(path: Path) -> bytes | None:
    try:
        return contents_of(path, Complaints(shown(path)))
    except EvidenceError:
        return None
