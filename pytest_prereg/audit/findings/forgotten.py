"""Studies that stood here under another id, and are gone: PR203. Nothing else would tell what they found.

Everything is known by the id of its study: who changes that has a study without a history.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.telling import acknowledging, short, told
from pytest_prereg.audit.history.past import Past
from pytest_prereg.evidence.naming import shown
from pytest_prereg.judge.findings import plural
from pytest_prereg.registry.refusals import listed, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState

PREDICTIONS = ".toml"


@dataclass
class Other:
    """What HEAD's ancestry has had of another study."""

    id: str
    places: set[str] = field(default_factory=set)
    """Where its locks lay, and the folders above its sessions'."""
    known: set[str] = field(default_factory=set)
    """Predictions that its locks have had."""
    judged: set[str] = field(default_factory=set)
    """Those with a recorded verdict."""
    measured: set[str] = field(default_factory=set)
    """Those for which evidence was taken."""
    experiments: set[str] = field(default_factory=set)
    """Of its sessions, pilots excepted."""
    sessions: int = 0
    now: dict[str, bool] | None = None
    """Predictions that its locks have at HEAD, and whether they are withdrawn; ``None`` without a lock."""
    commit: str = ""
    """The last that brought in anything of it."""

    @property
    def counts(self) -> bool:
        """Whether it had found anything."""
        return bool(self.judged or self.sessions)

    @property
    def lost(self) -> set[str]:
        """Predictions with a verdict, or evidence, that no lock has any more."""
        return (self.judged | self.measured) - (self.now or {}).keys()

    @property
    def is_gone(self) -> bool:
        """Whether HEAD has no lock of it, or one without what had been found."""
        return self.now is None or bool(self.lost)

    @property
    def waits(self) -> bool:
        """Whether HEAD's lock of it has anything that is not withdrawn, and so needs a prediction file."""
        return not all((self.now or {}).values())


def forgotten(state: StudyState) -> Iterator[Finding]:
    """Yield a finding for each study that this one has taken the place, or the predictions, of."""
    for other in gone(state):
        if _stood_here(state, other):
            yield _replaced(state, other)
        elif shared := _shared(state, other):
            yield _moved(state, other, shared)


def untold(state: StudyState) -> list[Other]:
    """Return the studies that are gone with what they found, and that this one has nothing of."""
    return [
        other
        for other in gone(state)
        if other.counts and not _stood_here(state, other) and not _shared(state, other)
    ]


def gone(state: StudyState) -> list[Other]:
    """Return the other studies that HEAD's ancestry has had, and HEAD does not have any more."""
    past = state.past
    if not isinstance(past, Past):
        return []
    _ = state.chronicle  # for which every lock is read
    others: dict[str, Other] = {}
    _of_locks(past, others)
    _of_sessions(past, others)
    found = [other for other in others.values() if other.is_gone or _stood_here(state, other)]
    named = _named_at_head(past) if found else set()
    return [other for other in found if _is_gone(state, other, is_named=other.id in named)]


def _is_gone(state: StudyState, other: Other, *, is_named: bool) -> bool:
    """Whether nothing at HEAD goes on with a study.

    One that was never registered lives by its prediction file; what a lock has needs one as well, and without
    it nobody audits that.
    """
    if not other.known:
        return not is_named and _stood_here(state, other)
    return other.is_gone or (other.waits and not is_named)


def _of_locks(past: Past, others: dict[str, Other]) -> None:
    locks = past.locks.of_others
    for commit in past.commits:
        for change in commit.changes:
            if (lock := locks.get(change.blob)) is not None:
                other = others.setdefault(lock.study, Other(lock.study, commit=commit.id))
                other.places.add(change.path)
                other.known |= lock.predictions.keys()
                other.judged |= {name for name, one in lock.predictions.items() if one.verdict is not None}
    for _, files in past.lock_files.at({past.head}, locks):
        for blob in files.values():
            other = others[locks[blob].study]
            entries = locks[blob].predictions.items()
            other.now = (other.now or {}) | {name: one.withdrawal is not None for name, one in entries}


def _of_sessions(past: Past, others: dict[str, Other]) -> None:
    for session in past.of_others:
        header = session.header
        if header is None or header.origin == "pilot":
            continue
        other = others.setdefault(header.study, Other(header.study, commit=session.places[0].commit))
        other.places |= {place.path.rpartition("/")[0].rpartition("/")[0] for place in session.places}
        other.measured |= header.predictions.keys()
        other.experiments.add(header.experiment)
        other.sessions += 1


def _named_at_head(past: Past) -> set[str]:
    """The studies that prediction files at HEAD name."""
    paths = [path for path in past.repository.files_at(past.head) if path.endswith(PREDICTIONS)]
    texts = past.repository.contents(f"{past.head}:{path}" for path in paths)
    return {name for text in texts if text is not None and (name := _named_in(text)) is not None}


def _named_in(text: bytes) -> str | None:
    try:
        table = tomllib.loads(text.decode("utf-8")).get("study")
    except (ValueError, RecursionError):
        return None
    name = table.get("id") if isinstance(table, dict) else None
    return name if isinstance(name, str) else None


def _stood_here(state: StudyState, other: Other) -> bool:
    """Whether a lock of it lay where one of this study does, or did, or a session where this study reads."""
    past, repository = state.past, state.repository
    assert isinstance(past, Past)
    assert repository is not None
    own = {change.path for commit in past.commits for change in commit.changes if change.blob in past.locks}
    now = (state.study.lock_path, state.study.evidence_folder)
    own |= {place for path in now if (place := repository.relative(path)) is not None}
    return not own.isdisjoint(other.places)


def _shared(state: StudyState, other: Other) -> list[str]:
    """What it had found anything of, and what this study has under the same name."""
    own = {*state.study.predictions, *(state.lock.predictions if state.lock else ())}
    return sorted((own & other.lost) | (state.study.experiments.keys() & other.experiments))


def _replaced(state: StudyState, other: Other) -> Finding:
    if not other.counts:
        return told(
            state,
            "PR203",
            other.id,
            Level.REVIEW,
            f"the study was {quoted(other.id)}, which is gone; it had nothing measured yet",
            commit=other.commit,
            about=other.id,
            advice=f"If it only got another name: {acknowledging('PR203', other.id)}",
        )
    return told(
        state,
        "PR203",
        other.id,
        Level.ERROR,
        f"study {quoted(other.id)} stood here, with {_findings(other)}, and {_fate(other)}: what it found "
        "counts nowhere",
        commit=other.commit,
        about=other.id,
        advice=f"Give the study its id back in {shown(state.study.path)}, with its lock and its evidence, or "
        f"keep these beside this one. Where they were last: git show --stat {short(other.commit)}",
    )


def _moved(state: StudyState, other: Other, shared: list[str]) -> Finding:
    return told(
        state,
        "PR203",
        other.id,
        Level.REVIEW,
        f"study {quoted(other.id)}, which had {listed(shared)} as well, is gone with {_findings(other)}",
        commit=other.commit,
        about=" ".join([other.id, *shared]),
        advice="Bring its lock and its evidence back, or say what became of it: "
        f"{acknowledging('PR203', other.id)}",
    )


def _fate(other: Other) -> str:
    return "is gone" if other.is_gone else "no prediction file at HEAD names it"


def _findings(other: Other) -> str:
    verdicts = plural(len(other.judged), "recorded verdict")
    sessions = plural(other.sessions, "session")
    return " and ".join(
        text for text, count in ((verdicts, len(other.judged)), (sessions, other.sessions)) if count
    )
