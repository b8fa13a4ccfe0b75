"""Other locks of the study in a commit, that say what the study's own never said: PR202, PR203 and PR205.

Whoever keeps two can choose between them later; it may also be a copy that somebody left behind, which says
what the lock said before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.finding import Level
from pytest_prereg.audit.findings.fingerprints import fingerprint
from pytest_prereg.audit.findings.records import record_of
from pytest_prereg.audit.findings.telling import acknowledging, in_commit, short, told
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.audit.finding import Finding
    from pytest_prereg.audit.history.chronicle import Beside


def beside(state: StudyState) -> Iterator[Finding]:
    """Yield a review for each thing that another lock says of a prediction, where it is said first."""
    done: set[tuple[str, str, str]] = set()
    for version in state.chronicle.versions:
        for one in version.beside:
            code, about, message = _difference(one, in_commit(version.commit))
            if (code, one.id, about) not in done:
                done.add((code, one.id, about))
                yield told(
                    state,
                    code,
                    one.id,
                    Level.REVIEW,
                    message,
                    commit=version.commit,
                    about=about,
                    advice="Keep one lock for a study, where its prediction file is, and say what the other "
                    f"is: {acknowledging(code, one.id)}",
                )


def _difference(one: Beside, where: str) -> tuple[str, str, str]:
    """Code, what an acknowledgement names, and the weightiest difference in words."""
    own, other, name = one.own, one.other, quoted(one.id)
    lies = "beside the lock lies another one of this study"
    if own.digest != other.digest:
        digest = short(other.digest)
        what = f"{name} was registered twice{where}, and differently: {lies}, with digest {digest}"
        return "PR202", f"beside: {digest}", what
    if own.withdrawal != other.withdrawal:
        tombstone = f"withdrawn {other.withdrawal.at}" if other.withdrawal else "not withdrawn"
        return "PR203", f"beside: {tombstone}", f"{lies}{where}, in which {name} is {tombstone}"
    if record_of(own) != record_of(other):
        recorded = f"recorded as {other.verdict}" if other.verdict else "without a verdict"
        about = f"beside: {recorded} {fingerprint(*record_of(other))}"
        return "PR205", about, f"{lies}{where}, in which {name} is {recorded}"
    return "PR202", f"beside: {fingerprint(other)}", f"{lies}{where}, which says something else of {name}"
