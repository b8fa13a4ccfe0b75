"""What a study has paid: repeats lost or set aside, hours that nothing used, money."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.evidence.cost import Account, account, dollars
from pytest_prereg.evidence.model import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.evidence.model import RecordedRepeat

RULE, INVALID = "rule", "invalid"
"""Causes that no entry of the lock gives: a registered rule, and the body of the experiment."""


class Toll(msgspec.Struct, kw_only=True, frozen=True):
    """What was lost of one study or several, and what all of it took."""

    lost: int = 0
    """Attempts lost to the machinery, or to an interruption; each was run again."""
    set_aside: Mapping[str, int] = {}
    """Repeats by what they were set aside for."""
    account: Account

    def lines(self) -> Iterator[str]:
        """Yield what the scoreboard says of it, one phrase each."""
        counts = {"lost": self.lost, **dict(sorted(self.set_aside.items()))}
        causes = ", ".join(f"{count} {cause}" for cause, count in counts.items() if count)
        total = sum(counts.values())
        if total:
            yield f"{total} repeat{'s' * (total != 1)} lost or excluded ({causes})"
        if self.account.charged:
            yield f"idle share {100 * self.account.idle / self.account.charged:.0f} %"
            least = "at least " if self.account.usd and self.account.is_least else ""
            yield f"{least}{dollars(self.account.usd)}"


def toll_of(states: Iterable[StudyState]) -> Toll:
    """Add up all series and pilots of some studies."""
    lost, set_aside, files = 0, Counter[str](), []
    for state in states:
        causes = {one.repeat: one.cause for one in (state.lock.exclusions if state.lock else ())}
        for several in state.series.values():
            lost += sum(len(one.faults) for one in several)
            aside = (_cause(repeat, causes) for one in several for repeat in one.repeats)
            set_aside.update(cause for cause in aside if cause is not None)
        files += [file for own in state.files.values() for file in own]
    return Toll(lost=lost, set_aside=set_aside, account=account(files))


def _cause(repeat: RecordedRepeat, causes: Mapping[str, str]) -> str | None:
    """Return what a repeat was set aside for; ``None`` if it was not."""
    if repeat.outcome is Outcome.INVALID:
        return INVALID
    if repeat.outcome is not Outcome.EXCLUDED:
        return None
    return causes.get(repeat.id, INVALID) if repeat.by_author else RULE
