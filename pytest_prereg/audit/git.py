"""Questions to a git repository, asked through the git command and answered as bytes.

What a clone can be made to lie with is switched off: replaced objects, grafts, a commit graph written for
other parents. What a user has configured for people to read is never seen, since only plumbing is run.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.errors import HistoryError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

ENVIRONMENT = {
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}

REDIRECTIONS = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
)
"""Set by git around its hooks: they send a question to another repository, or change its meaning."""

_OBJECT = re.compile(rb"([0-9a-f]{40,64}) (\w+)(?: (\d+))?")


class Change(msgspec.Struct, kw_only=True, frozen=True):
    """A file that a commit has and none of its parents has at that place with that content."""

    path: str
    blob: str


class Commit(msgspec.Struct, kw_only=True, frozen=True):
    """A commit with the files that it brought in."""

    id: str
    parents: tuple[str, ...]
    changes: tuple[Change, ...]


class Repository:
    """The repository that a folder lies in."""

    def __init__(self, root: Path, *, shallow: frozenset[str] = frozenset(), algorithm: str = "sha1") -> None:
        self.root = root
        self.shallow = shallow
        """Commits whose parents were cut off."""
        self.algorithm = algorithm
        """The hash that objects are named by."""

    @classmethod
    def find(cls, path: Path) -> Repository | None:
        """The repository whose work tree holds ``path``; ``None`` without git, or where there is none.

        Raises:
            HistoryError: There is one, and git refuses to open it (PR212).
        """
        folder = path if path.is_dir() else path.parent
        question = ["--show-toplevel", "--show-object-format", "--git-path", "shallow"]
        try:
            done = _run(folder, ["rev-parse", *question])
        except FileNotFoundError:
            return None
        if done.returncode:
            if b"not a git repository" in done.stderr or b"must be run in a work tree" in done.stderr:
                return None
            raise _refused("rev-parse", done.stderr)
        root, algorithm, shallow = done.stdout.rstrip(b"\n").split(b"\n")
        cut = folder / os.fsdecode(shallow)
        commits = frozenset(cut.read_text(encoding="ascii").split()) if cut.is_file() else frozenset()
        return cls(Path(os.fsdecode(root)), shallow=commits, algorithm=algorithm.decode())

    def head(self) -> str | None:
        """The commit at HEAD; ``None`` before the first one."""
        return next(self.names(["HEAD^{commit}"]))

    def dirty(self) -> bool:
        """Whether files that git keeps differ from HEAD; files it does not know don't count."""
        return bool(self._git("status", "--porcelain", "--untracked-files=no", "-z"))

    def differs(self, path: Path) -> bool:
        """Whether a file, or anything below a folder, is not as HEAD has it; new files count."""
        place = self.relative(path)
        if place is None:
            return False
        return bool(
            self._git("status", "--porcelain", "--untracked-files=normal", "-z", "--", f":(literal){place}")
        )

    def file_at(self, revision: str, path: Path) -> bytes | None:
        """What a file of the work tree was at a revision; ``None`` where it was not."""
        place = self.relative(path)
        return None if place is None else next(self.contents([f"{revision}:{place}"]))

    def relative(self, path: Path) -> str | None:
        """A path as git's trees have it; ``None`` outside the work tree.

        A file that is a symbolic link stays one; the folders above it are resolved.
        """
        whole = path.parent.resolve() / path.name
        return whole.relative_to(self.root).as_posix() if whole.is_relative_to(self.root) else None

    def files_at(self, revision: str) -> list[str]:
        """Paths of all files at a revision, from the root of the repository."""
        listed = self._git("ls-tree", "-r", "-z", "--name-only", "--full-tree", revision)
        return [os.fsdecode(name) for name in listed.split(b"\0") if name]

    def files_below(self, folder: Path) -> list[Path]:
        """Files below a folder of the work tree that git tracks, or would: what it ignores is left out."""
        place = self.relative(folder)
        if place is None:
            return []
        which = ["--cached", "--others", "--exclude-standard", "-z", "--full-name"]
        listed = self._git("ls-files", *which, "--", f":(literal){place}")
        names = dict.fromkeys(os.fsdecode(name) for name in listed.split(b"\0") if name)
        return [self.root / name for name in names]

    def blobs_at(self, revision: str, folder: str) -> dict[str, str]:
        """Name of the content of every file below a folder at a revision, by path from the root."""
        listed = self._git("ls-tree", "-r", "-z", "--full-tree", revision, "--", f":(literal){folder}/")
        entries = (entry.partition(b"\t") for entry in listed.split(b"\0") if entry)
        return {os.fsdecode(path): what.split()[2].decode("ascii") for what, _, path in entries}

    def names(self, questions: Iterable[str]) -> Iterator[str | None]:
        """Object names of revisions (``HEAD^{commit}``, ``main:a/b``), in one process; else ``None``."""
        asked = list(questions)
        for answer in self._batch("--batch-check", asked).split(b"\n")[: len(asked)]:
            found = _OBJECT.fullmatch(answer)
            yield found[1].decode() if found else None

    def contents(self, questions: Iterable[str]) -> Iterator[bytes | None]:
        """Bytes of files (``HEAD:a/b``, or a blob's name), in one process; else ``None``."""
        answers = self._batch("--batch", list(questions))
        start = 0
        while start < len(answers):
            end = answers.index(b"\n", start)
            found = _OBJECT.fullmatch(answers, start, end)
            start = end + 1
            if found is None:
                yield None
                continue
            data = answers[start : start + int(found[3])]
            start += len(data) + 1
            yield data if found[2] == b"blob" else None

    def _batch(self, mode: str, questions: Sequence[str]) -> bytes:
        if not questions:
            return b""
        # A name with a line break can't be asked for; an empty question is answered as unknown.
        lines = b"".join(os.fsencode("" if "\n" in question else question) + b"\n" for question in questions)
        return self._git("cat-file", mode, feed=lines)

    def history(self, patterns: Sequence[str]) -> Iterator[Commit]:
        """Commits on HEAD's ancestry that brought in files of these patterns, by whatever branch they came.

        A merge is listed with what none of its parents has at that place.
        """
        commits = self._git("rev-list", "--full-history", "HEAD", "--", *patterns)
        shown = [
            "--stdin",
            "-r",
            "-c",
            "--root",
            "--raw",
            "-z",
            "--no-renames",
            "--no-abbrev",
            "--format=%H %P",
        ]
        raw = self._git("diff-tree", *shown, "--", *patterns, feed=commits)
        yield from _commits(raw)

    def lineage(self, paths: Iterable[str] | None = None) -> list[tuple[str, tuple[str, ...]]]:
        """Every commit on HEAD's ancestry with its parents, parents first.

        With ``paths`` only those commits in which one of these files is not as a parent has it, merges too.
        """
        chosen = [] if paths is None else ["--full-history"]
        places = [] if paths is None else [f":(literal){path}" for path in paths]
        if paths is not None and not places:
            return []
        listed = self._git(
            "rev-list", "--topo-order", "--reverse", "--format=%H %P", *chosen, "HEAD", "--", *places
        )
        lines = (
            line.split() for line in listed.decode("ascii").splitlines() if not line.startswith("commit ")
        )
        return [(commit, tuple(parents)) for commit, *parents in lines]

    def _git(self, *arguments: str, feed: bytes = b"") -> bytes:
        done = _run(self.root, arguments, feed)
        if done.returncode:
            raise _refused(arguments[0], done.stderr)
        return done.stdout


def blob_id(data: bytes, algorithm: str = "sha1") -> str:
    """The name under which git keeps a file of these bytes."""
    return hashlib.new(algorithm, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment that git is run in."""
    kept = {name: value for name, value in inherited.items() if name not in REDIRECTIONS}
    return kept | ENVIRONMENT


def _run(folder: Path, arguments: Sequence[str], feed: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = ["git", "-c", "core.commitGraph=false", *arguments]
    try:
        return subprocess.run(
            command, cwd=folder, env=environment(os.environ), input=feed, capture_output=True, check=False
        )
    except FileNotFoundError:
        raise
    except OSError as error:  # no process, or no file, can be had any more
        raise _refused(arguments[0], os.fsencode(error.strerror or str(error))) from error


def _refused(command: str, said: bytes) -> HistoryError:
    message = f"git {command} failed: {said.decode('utf-8', 'replace').strip() or 'it said nothing'}"
    return HistoryError(Problem(code="PR212", message=message))


def _commits(raw: bytes) -> Iterator[Commit]:
    """Reads ``diff-tree -c --raw -z --format='%H %P'``: a part for a commit, then two for each file."""
    header: list[str] = []
    changes: list[Change] = []
    parts = iter(raw.split(b"\0"))
    for part in parts:
        text = part.lstrip(b"\n")
        if text.startswith(b":"):
            *_, blob, status = text.decode("ascii").split(" ")
            path = os.fsdecode(next(parts))
            changes += [] if set(status) == {"D"} else [Change(path=path, blob=blob)]
        elif text:
            if header:
                yield Commit(id=header[0], parents=tuple(header[1:]), changes=tuple(changes))
            header, changes = text.decode("ascii").split(), []
    if header:
        yield Commit(id=header[0], parents=tuple(header[1:]), changes=tuple(changes))
