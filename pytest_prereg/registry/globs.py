"""Files by glob, found the same way on every Python, and none of them unnoticed.

``pathlib`` differs between versions in what ``**`` and symbolic links mean, so folders are walked here. Case
matters; ``*`` and ``**`` pass over hidden names and over what Python's own tools leave behind, which a glob
can still spell out.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.registry.refusals import RefusedError, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

ANY_DEPTH = "**"
LEFTOVERS = ("__pycache__", "*.pyc", "*.egg-info")
"""Written by running or installing the code, so that they change when it doesn't."""


class Ground(msgspec.Struct, kw_only=True, frozen=True):
    """Where globs are looked for, and what they may not reach."""

    folder: Path
    """What they are relative to, with symbolic links resolved."""
    within: Path | None
    """The folder that they may not leave, by no link either; ``None``: they may, and links are read."""
    skipped: frozenset[Path]
    """Files and folders that never match."""
    code: str
    """Of a refusal."""


def matching(glob: str, ground: Ground) -> list[Path]:
    """Files that a glob matches, sorted; none where there are none.

    Args:
        glob: Relative to the ground's folder, with ``/``. ``**`` stands for any number of folders; at the
            end, for every file below. ``..`` may come first.
        ground: Where to look.

    Raises:
        RefusedError: The glob is no relative path, leaves its ground, or matches a symbolic link that may
            not be followed or leads nowhere.
        OSError: A folder can't be read.
    """
    parts = _parts(glob, ground)
    folder = ground.folder
    while parts[0] == "..":
        folder, parts = folder.parent, parts[1:]
        if ground.within is not None and not folder.is_relative_to(ground.within):
            raise RefusedError(ground.code, f"{quoted(glob)} leads out of {quoted(ground.within)}")
    return sorted(set(_below(folder, parts, ground)))


def _parts(glob: str, ground: Ground) -> list[str]:
    """A glob's parts, of which at least one names something; ``**`` twice in a row is ``**``."""
    parts = [part for part in glob.split("/") if part not in ("", ".")]
    upwards = next((index for index, part in enumerate(parts) if part != ".."), len(parts))
    if PurePosixPath(glob).is_absolute() or ".." in parts[upwards:] or not parts[upwards:]:
        message = f"{quoted(glob)} is no path relative to the prediction file"
        raise RefusedError(ground.code, message, 'Write it with "/", and with ".." at most in front.')
    return [
        part
        for index, part in enumerate(parts)
        if index == 0 or part != ANY_DEPTH or parts[index - 1] != part
    ]


def _below(folder: Path, parts: list[str], ground: Ground) -> Iterator[Path]:
    part, rest = parts[0], parts[1:]
    if part == ANY_DEPTH:
        yield from _below(folder, rest or ["*"], ground)
    for path in _named(folder, part, ground):
        if not path.is_dir():
            if (part != ANY_DEPTH and not rest) and _is_there(path, ground):
                yield path
        elif part == ANY_DEPTH or rest:
            _enter(path, part, ground)
            yield from _below(path, parts if part == ANY_DEPTH else rest, ground)


def _named(folder: Path, part: str, ground: Ground) -> list[Path]:
    """What a folder has under the names that one part of a glob stands for."""
    if not any(sign in part for sign in "*?["):
        found = [folder / part] if os.path.lexists(folder / part) else []
    else:
        names = sorted(os.listdir(folder)) if folder.is_dir() else []  # noqa: PTH208  # half the time of iterdir
        found = [folder / name for name in names if _stands_for(part, name)]
    return [path for path in found if path not in ground.skipped]


def _stands_for(part: str, name: str) -> bool:
    hidden = name.startswith(".") and not part.startswith(".")
    return fnmatchcase(name, part) and not hidden and not any(fnmatchcase(name, each) for each in LEFTOVERS)


def _is_there(path: Path, ground: Ground) -> bool:
    """Whether a path is a file, and one that may be read; pipes and the like are none."""
    if path.is_symlink() and (ground.within is not None or not path.exists()):
        raise _link(path, ground)
    return path.is_file()


def _enter(folder: Path, part: str, ground: Ground) -> None:
    """Refuse a link to a folder where none is followed: by ``**`` never, since it may lead in a circle."""
    if folder.is_symlink() and (ground.within is not None or part == ANY_DEPTH):
        raise _link(folder, ground)


def _link(path: Path, ground: Ground) -> RefusedError:
    shown = os.path.relpath(path, ground.folder)
    target = os.readlink(path)  # noqa: PTH115  # as it is written
    message = f"{quoted(shown)} is a symbolic link, to {quoted(target)}"
    return RefusedError(ground.code, message, "Name what it leads to, and match the link by no glob.")
