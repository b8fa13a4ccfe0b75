"""Submodules of a version that is checked out: taken from those of the user where they have it already.

Nothing is written to the configuration that all work trees of a repository share.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from pytest_prereg.measure.versions.git import GitError, git, is_there, line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path


class Submodule(NamedTuple):
    """An entry of ``.gitmodules`` that the tree has a commit for."""

    name: str
    path: str
    url: str
    commit: str


def check_out(folder: Path, root: Path) -> list[str]:
    """Check out all submodules of a work tree, those within them as well; return the paths of its own.

    An address in the files of this machine is gone to only where the repository itself names it: git takes
    what a submodule says of its own submodules for a stranger's word, and so does this.

    Args:
        folder: The work tree.
        root: That of the user, whose submodules may be there already.

    Raises:
        GitError: One can't be had.
    """
    # A linked work tree has its own clones of submodules, and may have commits that no other has.
    places = [line(root, "rev-parse", option) for option in ("--git-dir", "--git-common-dir")]
    return _check_out(folder, [root / place / "modules" for place in places], _origin(root), is_own=True)


def _check_out(folder: Path, modules: Sequence[Path], origin: str, *, is_own: bool) -> list[str]:
    """Check out the submodules of a repository; ``modules`` have those that are on this machine already."""
    found = list(_submodules(folder))
    for each in found:
        clones, address = [place / each.name for place in modules], _absolute(each.url, origin)
        there = _having(each.commit, clones)
        settings = {
            f"submodule.{each.name}.url": address if there is None else str(there),
            f"submodule.{each.name}.active": "true",
        }
        if there is not None or is_own:
            settings["protocol.file.allow"] = "always"
        git(folder, "submodule", "--quiet", "update", "--", each.path, settings=settings)
        _check_out(folder / each.path, [clone / "modules" for clone in clones], address, is_own=False)
    return [each.path for each in found]


def _having(commit: str, clones: Iterable[Path]) -> Path | None:
    """Return the clone that has a commit, else any that is there: it may be had from where that came from."""
    here = [clone for clone in clones if (clone / "HEAD").is_file()]
    return next((clone for clone in here if is_there(clone, commit)), here[0] if here else None)


def _submodules(folder: Path) -> Iterator[Submodule]:
    """Read ``.gitmodules``; entries that are half written, or that the tree has no commit for, are none."""
    if not (folder / ".gitmodules").is_file():
        return
    listed = git(folder, "config", "--file", ".gitmodules", "--list", "-z")
    found: dict[str, dict[str, str]] = {}
    for entry in listed.split(b"\0"):
        key, _, value = os.fsdecode(entry).partition("\n")
        section, _, rest = key.partition(".")
        name, _, field = rest.rpartition(".")
        if section == "submodule" and name:
            found.setdefault(name, {})[field] = value
    kept = {
        os.fsdecode(entry.partition(b"\t")[2]): entry.split(b" ")[1].decode()
        for entry in git(folder, "ls-files", "--stage", "-z").split(b"\0")
        if entry.startswith(b"160000 ")
    }
    for name, fields in found.items():
        if (path := fields.get("path")) in kept and "url" in fields:
            yield Submodule(name, path, fields["url"], kept[path])


def _absolute(url: str, origin: str) -> str:
    """Return an address that is relative to where its repository came from as one that is not."""
    while url.startswith(("./", "../")):
        part, _, url = url.partition("/")
        origin = origin.rstrip("/")
        if part == "..":
            origin = origin[: max(origin.rfind("/"), origin.rfind(":"))]
        if not url.startswith(("./", "../")):
            return f"{origin}/{url}"
    return url


def _origin(root: Path) -> str:
    """Return the address of the repository's remote, or its own place where it has none."""
    try:
        return line(root, "config", "--get", "remote.origin.url")
    except GitError:
        return str(root)
