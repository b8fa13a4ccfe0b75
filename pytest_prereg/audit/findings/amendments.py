"""What the lock itself says was amended, and whether its evidence was there: PR202."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.finding import Level
from pytest_prereg.audit.findings.fingerprints import fingerprint
from pytest_prereg.audit.findings.telling import acknowledging, in_commit, short, told
from pytest_prereg.registry.refusals import quoted, typed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.finding import Finding
    from pytest_prereg.audit.history.chronicle import Step
    from pytest_prereg.registry.lock import Amendment, LockEntry

WHAT = {"digest": "registration", "claim": "words", "experiment": "code"}

_Key = tuple[str, str, str, str | None]
"""What makes an amendment the one that it is, whatever its reason says."""


def amendments(state: StudyState) -> Iterator[Finding]:
    """Yield what becomes of each amendment that a version of the lock has.

    One before any evidence is a notice, one after it a review that its own reason acknowledges. One that is
    no longer there is an error, and another reason than was given first a review.
    """
    changes = state.chronicle.changes
    ever = dict.fromkeys(one.id for one in changes if one.after is not None and one.after.amendments)
    for name in ever:
        if entry := state.chronicle.now.predictions.get(name):
            yield from (_amended(state, name, entry, index) for index in range(len(entry.amendments)))
            yield from _lost(state, name, entry)


def about(amendment: Amendment) -> str:
    """Return how an acknowledgement names an amendment."""
    return f"{WHAT[amendment.key]} {short(amendment.old)} -> {short(amendment.new)}"


def _amended(state: StudyState, name: str, entry: LockEntry, index: int) -> Finding:
    amendment = entry.amendments[index]
    own = state.chronicle.of(name)
    commit = next((one.commit for one in own if one.after and _has(one.after, amendment)), None)
    before, replaced = _digests_before(entry, index)
    seen = state.timeline.seen(name, before, commit, replaced)
    if amendment.verdict is not None:
        seen = f"its verdict was {amendment.verdict}"
    when = f", after the data ({seen})" if seen else ""
    message = f"the {WHAT[amendment.key]} of {quoted(name)} (digest {short(amendment.old)}) was amended"
    return told(
        state,
        "PR202",
        name,
        Level.REVIEW if seen else Level.NOTICE,
        f"{message}{in_commit(commit)}{when}: {amendment.reason}",
        commit=commit,
        about=about(amendment),
        acknowledged=f"amended: {amendment.reason}" if seen else None,
    )


def _has(entry: LockEntry, amendment: Amendment) -> bool:
    return any(_key(one) == _key(amendment) for one in entry.amendments)


def _key(amendment: Amendment) -> _Key:
    return amendment.key, amendment.old, amendment.new, amendment.verdict


def _digests_before(entry: LockEntry, index: int) -> tuple[set[str], set[str]]:
    """Digests under which it had been registered when an amendment was made, and those never used again.

    All earlier ones count: else whoever amends twice amends the second time when there are no data for it.
    """
    done, left = entry.amendments[: index + 1], entry.amendments[index + 1 :]
    olds = {one.old for one in done if one.key == "digest"}
    if entry.amendments[index].key == "digest":
        used = {entry.amendments[index].new}
    else:
        used = {next((one.old for one in left if one.key == "digest"), entry.digest)}
        olds |= used
    return olds, olds - used - {one.new for one in left if one.key == "digest"}


def _lost(state: StudyState, name: str, entry: LockEntry) -> Iterator[Finding]:
    """Yield what was changed of the list of amendments, which only ever grows.

    One that a merge left with the side that it did not take, and that was made again, is there.
    """
    now = {_key(one) for one in entry.amendments}
    reasons = {(_key(one), one.reason) for one in entry.amendments}
    done = {*entry.amendments}
    for step in state.chronicle.steps[name]:
        left = {_key(one) for one in step.after.amendments} if step.after else now
        known = [(parent, one) for parent, each in step.before.items() for one in each.amendments]
        for parent, one in known:
            if one in done or (_key(one) in left and _key(one) not in now):
                continue
            done.add(one)
            if again := _again(entry, one, step, parent):
                yield from _made_again(state, name, one, again, step.version.commit)
            elif _key(one) not in now:
                yield _vanished(state, name, one, step, parent)
            elif (_key(one), one.reason) not in reasons:
                yield _reworded(state, name, one, step.version.commit, entry)


def _again(entry: LockEntry, one: Amendment, step: Step, parent: str) -> Amendment | None:
    """Return the amendment that came to what one did, or its whole side, which a merge had not taken.

    A verdict that an amendment names must be named again: else it would be lost.
    """
    after, side = step.after, step.before[parent]
    if after is None or len(step.version.before) == 1 or _has(after, one):
        return None
    later = [each for each in entry.amendments if each.key == one.key and each not in side.amendments]
    if one.verdict is not None and one.verdict not in {each.verdict for each in later}:
        return None
    reached = {digest_of(after, one.key), *(each.old for each in side.amendments if each.key == one.key)}
    last = None
    for each in later:
        if each.old in reached:
            reached.add(each.new)
            last = each if each.new == digest_of(side, one.key) else last
    return last


def digest_of(entry: LockEntry, key: str) -> str:
    """Return what an entry has of what an amendment's key names."""
    return {"digest": entry.digest, "claim": entry.claim, "experiment": entry.experiment or "none"}[key]


def leads(amendments: tuple[Amendment, ...], key: str, old: str, new: str) -> bool:
    """Return whether amendments lead from one digest to another, in however many steps."""
    reached = {old}
    own = [one for one in amendments if one.key == key]
    for _ in own:
        reached |= {one.new for one in own if one.old in reached}
    return new in reached


def _made_again(
    state: StudyState, name: str, one: Amendment, again: Amendment, commit: str | None
) -> Iterator[Finding]:
    """Yield a review where an amendment was made again for another reason, which acknowledges it."""
    if one.reason != again.reason:
        yield told(
            state,
            "PR202",
            name,
            Level.REVIEW,
            f"an amendment of {quoted(name)} ({about(one)}) was not taken by a merge{in_commit(commit)}, and "
            f"was made again for another reason than it was given at first: {one.reason}",
            commit=commit,
            about=f"again: {about(one)}",
            acknowledged=f"amended: {again.reason}",
        )


def _vanished(state: StudyState, name: str, amendment: Amendment, step: Step, parent: str) -> Finding:
    what = f"{about(amendment)}, {amendment.reason}"
    commit = step.version.commit
    again = f"pytest-prereg amend {typed(name)} --reason '…'"
    is_merge = len(step.version.before) > 1
    return told(
        state,
        "PR202",
        name,
        Level.ERROR,
        f"an amendment of {quoted(name)} ({what}) was taken out of the lock{in_commit(commit)}",
        commit=commit,
        about=f"gone: {about(amendment)}",
        advice=f"Amendments are only ever added: put it back as {parent[:8]} has it"
        + (f", or make it again:\n{again}" if is_merge else "."),
    )


def _reworded(
    state: StudyState, name: str, amendment: Amendment, commit: str | None, entry: LockEntry
) -> Finding:
    now = [one.reason for one in entry.amendments if _key(one) == _key(amendment)]
    message = (
        f"an amendment of {quoted(name)} ({about(amendment)}) has another reason than it was given at first: "
        f"{amendment.reason}"
    )
    return told(
        state,
        "PR202",
        name,
        Level.REVIEW,
        message,
        commit=commit,
        about=f"reworded: {about(amendment)} to {fingerprint(*now)}",
        advice=f"Put it back, or say why: {acknowledging('PR202', name)}",
    )
