"""The CODEOWNERS file at a commit: who has to approve a change of a path.

Nothing in a repository says which host it is on, and hosts read one file in different ways. So a path has
owners only where each host that finds a file there would ask somebody. Whether the host waits for them, and
whether the people exist, can't be seen in a repository.
"""

from __future__ import annotations

import re
import stat
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.gating.owners_on_github import asked_on_github
from pytest_prereg.audit.gating.owners_on_gitlab import asked_on_gitlab, has_sections

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_prereg.audit.history.git import Repository, TreeEntry

_PLACES = {
    "github": (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"),
    "gitlab": ("CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"),
}
"""Where hosts that can wait for an owner's approval look; they read the first that is there."""

_ASKED: Mapping[str, Callable[[str, str], tuple[str, ...]]] = {
    "github": asked_on_github,
    "gitlab": asked_on_gitlab,
}

_LIMIT = 3_000_000
"""Bytes. GitHub loads no file that is larger."""

_UNSURE = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029\ufeff]|\r(?!\n)")
"""What one host may leave out, or take for the end of a line, and another not."""


class CodeOwners(msgspec.Struct, kw_only=True, frozen=True):
    """What a commit says about who owns what."""

    path: str
    """Of the file, from the root; of the first one where hosts read different files."""
    readings: tuple[tuple[str, str], ...]
    """Hosts, and the text that each reads: none where what is there can't be relied on."""

    def owners(self, place: str) -> tuple[str, ...]:
        """Who has to approve a change of a path, from the root; nobody where any host would ask nobody."""
        asked = [_ASKED[host](text, place) for host, text in self.readings]
        return tuple(dict.fromkeys(owner for each in asked for owner in each)) if all(asked) else ()


def code_owners(repository: Repository, commit: str, host: str | None = None) -> CodeOwners | None:
    """Return what the host reads at a commit; ``None`` where it finds no file.

    Args:
        repository: Whose files they are.
        commit: The tip of the branch that is merged into: hosts look at no other.
        host: ``github`` or ``gitlab``, where that is known. Otherwise both count that find a file; one with
            sections is GitLab's alone.
    """
    entries = {entry.path: entry for entry in repository.tree(commit)}
    hosts = [name for name in _PLACES if host in (None, name)]
    found = {name: place for name in hosts if (place := _first(entries, _PLACES[name])) is not None}
    texts = {place: _text(repository, entries.get(place)) for place in dict.fromkeys(found.values())}
    if found.get("github") == found.get("gitlab") and any(has_sections(text) for text in texts.values()):
        found.pop("github", None)
    if not found:
        return None
    readings = tuple((name, texts[place]) for name, place in found.items())
    return CodeOwners(path=next(iter(found.values())), readings=readings)


def _first(entries: Mapping[str, TreeEntry], places: tuple[str, ...]) -> str | None:
    """The first place where anything is, a folder too, or that a link or a submodule stands before."""
    return next((place for place in places if _is_there(entries, place)), None)


def _is_there(entries: Mapping[str, TreeEntry], place: str) -> bool:
    folder = entries.get(place.rpartition("/")[0])
    is_led_away = folder is not None and not stat.S_ISREG(folder.mode)
    return place in entries or is_led_away or any(path.startswith(f"{place}/") for path in entries)


def _text(repository: Repository, entry: TreeEntry | None) -> str:
    """What a plain file says; nothing where hosts may read something else, or not at all."""
    if entry is None or not stat.S_ISREG(entry.mode) or next(repository.sizes([entry.blob])) >= _LIMIT:
        return ""
    try:
        text = (next(repository.contents([entry.blob])) or b"").decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return "" if _UNSURE.search(text) else text
