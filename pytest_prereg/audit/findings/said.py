"""What the lock says against evidence and findings, and no longer says: PR208, PR213, and any code."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.audit.finding import Finding, Level
from pytest_prereg.audit.findings.fingerprints import fingerprint
from pytest_prereg.audit.findings.telling import acknowledging, in_commit, told
from pytest_prereg.registry.lock import Acknowledgement, Exclusion, Void
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.registry.lock import Lock

Entry = Exclusion | Void | Acknowledgement

_Key = tuple[str, str, str]
"""Code, id and what exactly an entry of the lock is about."""


class _Life(NamedTuple):
    """Where an entry of the lock came in, and where one of its name went."""

    entry: Entry
    came: str | None
    went: str | None
    parent: str | None
    """A commit that has it still."""


def said(state: StudyState) -> Iterator[Finding]:
    """Yield a review for each exclusion and each voided series: they come after the data.

    The reason in the lock acknowledges it. One that is gone is an error, an acknowledgement that is gone a
    review; so is another reason, or cause, than was given first. What is acknowledged once more, beside the
    first time, is not.
    """
    now = {_key(one): one for one in _entries(state.chronicle.now)}
    kept = {*state.chronicle.now.acknowledged}
    for key, lives in _lives(state, now).items():
        last = now.get(key)
        if last is None:
            yield _gone(state, key, lives[-1])
            continue
        if not isinstance(last, Acknowledgement):
            yield _of(state, key, last, lives[0].came)
        for life in lives:
            is_same = (life.entry.reason, _cause(life.entry)) == (last.reason, _cause(last))
            if not is_same and life.entry not in kept:
                yield _reworded(state, key, life, last)


def _entries(lock: Lock) -> tuple[Entry, ...]:
    return (*lock.exclusions, *lock.voided, *lock.acknowledged)


def _key(entry: Entry) -> _Key:
    if isinstance(entry, Exclusion):
        return "PR208", entry.repeat.partition("/")[0], entry.repeat
    if isinstance(entry, Void):
        return "PR213", entry.series.partition("/")[0], entry.series
    return entry.code, entry.id, entry.about


def _cause(entry: Entry) -> str:
    return entry.cause if isinstance(entry, Exclusion) else ""


def _lives(state: StudyState, now: dict[_Key, Entry]) -> dict[_Key, list[_Life]]:
    """Every entry that any version has, in order of coming; a name that is not in ``now`` went for good."""
    came: dict[Entry, str | None] = {}
    went: dict[_Key, tuple[str | None, str | None]] = {}
    for version in state.chronicle.versions:
        here = {_key(one) for one in _entries(version.lock)}
        for one in _entries(version.lock):
            came.setdefault(one, version.commit)
        for parent, lock in zip(version.parents, version.before, strict=True):
            lost = (_key(one) for one in _entries(lock))
            for key in lost:
                if key not in here and key not in now:
                    went.setdefault(key, (version.commit, parent))
    lives: dict[_Key, list[_Life]] = {}
    for one, commit in came.items():
        lives.setdefault(_key(one), []).append(_Life(one, commit, *went.get(_key(one), (None, None))))
    return lives


def _of(state: StudyState, key: _Key, entry: Exclusion | Void, commit: str | None) -> Finding:
    code, experiment, about = key
    if isinstance(entry, Exclusion):
        what, how = f"repeat {quoted(about)} was excluded ({entry.cause})", "excluded"
    else:
        what, how = f"series {quoted(about)} was voided", "voided"
    return told(
        state,
        code,
        experiment,
        Level.REVIEW,
        f"{what} after the data{in_commit(commit)}: {entry.reason}",
        commit=commit,
        about=about,
        acknowledged=f"{how}: {entry.reason}",
    )


def _gone(state: StudyState, key: _Key, life: _Life) -> Finding:
    code, name, about = key
    entry = life.entry
    back = f"Put it back as {(life.parent or '')[:8]} has it."
    if isinstance(entry, Acknowledgement):
        what = f"that {code} of {quoted(name)} ({about}) was acknowledged"
        message = f"{what} was taken out of the lock{in_commit(life.went)}: {entry.reason}"
        return told(state, code, name, Level.REVIEW, message, commit=life.went, about=about, advice=back)
    what = "the exclusion of repeat" if isinstance(entry, Exclusion) else "the voiding of series"
    message = f"{what} {quoted(about)} was taken out of the lock{in_commit(life.went)}: {entry.reason}"
    return told(
        state,
        code,
        name,
        Level.ERROR,
        message,
        commit=life.went,
        about=f"gone: {about}",
        advice=f"{back} What is said against evidence stays said.",
    )


def _reworded(state: StudyState, key: _Key, life: _Life, last: Entry) -> Finding:
    code, name, about = key
    message = (
        f"what the lock says of {quoted(about or name)} ({code}) has another reason than it was given"
        f"{in_commit(life.came)}: {life.entry.reason}"
    )
    return told(
        state,
        code,
        name,
        Level.REVIEW,
        message,
        commit=life.came,
        about=f"reworded: {about} to {fingerprint(last.reason, _cause(last))}",
        advice=f"Put it back, or say why: {acknowledging(code, name)}",
    )
