"""The two commits that a gate compares: where a pull request began, and where it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.history.commit_graph import CommitGraph
from pytest_prereg.errors import HistoryError, Problem
from pytest_prereg.registry.refusals import quoted, typed

if TYPE_CHECKING:
    from pytest_prereg.audit.history.git import Repository

_ORIGIN = "origin"
FETCH = "Fetch all of it: git fetch --unshallow --tags, or in CI fetch-depth: 0 and fetch-tags: true."


class Ends(msgspec.Struct, kw_only=True, frozen=True):
    """The commits, by their whole names."""

    base: str
    """The latest commit from which both come: the merge base."""
    head: str
    tip: str
    """Of the branch that it is to be merged into, as that is now."""


def ends_of(repository: Repository, base: str, head: str) -> Ends:
    """Return where a pull request began, and where it is now.

    Args:
        repository: Where to look.
        base: A revision of the branch that it is to be merged into.
        head: A revision of the pull request.

    Raises:
        HistoryError: One of them is not here, or nothing shows where they parted (PR212).
    """
    tip, commit = repository.commit(base), repository.commit(head)
    if twice := [name for name in (base, head) if _is_two(repository, name)]:
        raise HistoryError([_ambiguous(name) for name in twice])
    if tip is None or commit is None:
        named = {base: tip, head: commit}
        raise HistoryError([_missing(repository, name) for name, found in named.items() if found is None])
    # Any of several would do: what is found at it stands in the base's history too.
    shared = repository.merge_bases(tip, commit)
    if not shared:
        raise HistoryError(_unrelated(repository, base, head))
    return Ends(base=shared[0], head=commit, tip=tip)


def before(repository: Repository, ends: Ends) -> dict[str, str]:
    """Return the branches and tags, by full name, that have nothing of what the pull request brings.

    What else is known of them was known where it began.
    """
    refs = repository.refs()
    commits = repository.names(f"{target}^{{commit}}" for target in refs.values())
    tips = {name: commit for name, commit in zip(refs, commits, strict=True) if commit is not None}
    graph = CommitGraph(repository.ancestry({ends.head, *tips.values()}))
    brought = graph.of([ends.head]) - graph.of([ends.base])
    first = {commit for commit in brought if brought.isdisjoint(graph.parents[commit])}
    holding = {name for names in graph.holders(first, tips).values() for name in names}
    return {name: target for name, target in refs.items() if name not in holding}


def _is_two(repository: Repository, name: str) -> bool:
    """Whether a tag and a branch have a name, and not the same commit.

    Git takes the tag, and whoever may push one could so make the base what the pull request is.
    """
    refs = (f"refs/{kind}/{name}^{{commit}}" for kind in ("tags", "heads", "remotes"))
    return len({commit for commit in repository.names(refs) if commit is not None}) > 1


def _ambiguous(name: str) -> Problem:
    message = f"{quoted(name)} is a branch and a tag, of different commits"
    return Problem(
        code="PR212",
        message=message,
        advice="Name it in full, refs/heads/… or refs/remotes/…, or the commit.",
    )


def _missing(repository: Repository, revision: str) -> Problem:
    lacks = "; this clone is shallow" if repository.shallow else ""
    remotes = repository.remotes()
    first, _, rest = revision.partition("/")
    name = rest if rest and first in (*remotes, _ORIGIN) else revision
    is_name = bool(name) and not name.startswith("-")
    if not remotes:
        advice = _nearer(repository, name if is_name else "")
    elif is_name:
        remote = (
            first if first in remotes else next((each for each in remotes if each == _ORIGIN), remotes[0])
        )
        advice = f"git fetch {typed(remote)} {typed(name)}, or in CI fetch-depth: 0."
    else:
        advice = "Name a branch or a commit, or in CI fetch-depth: 0."
    return Problem(code="PR212", message=f"no commit {quoted(revision)} is here{lacks}", advice=advice)


def _nearer(repository: Repository, name: str) -> str:
    """Return what to name where nothing can be fetched."""
    if name and repository.commit(name) is not None:
        return (
            f"There is no remote, and a branch of that name is here: pytest-prereg gate --base {typed(name)}"
        )
    return "There is no remote to fetch it from. Name a branch or a commit that is here: git branch --all"


def _unrelated(repository: Repository, base: str, head: str) -> Problem:
    message = f"nothing here shows where {quoted(head)} left {quoted(base)}"
    if repository.shallow:
        cut = ", ".join(sorted(commit[:8] for commit in repository.shallow)[:3])
        return Problem(code="PR212", message=f"{message}: history is cut at {cut}", advice=FETCH)
    return Problem(
        code="PR212", message=f"{message}: they have no commit in common", advice="Name another --base."
    )
