"""Questions to a git repository, asked through the git command and answered as bytes.

What a clone can be made to lie with is switched off: replaced objects, grafts, a commit graph written for
other parents. What a user has configured for people to read is never seen, since only plumbing is run.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from pytest_prereg.audit.history.changed_files import read_commits
from pytest_prereg.errors import HistoryError, Problem
from pytest_prereg.evidence.git_environment import environment
from pytest_prereg.evidence.naming import blob_id

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pytest_prereg.audit.history.changed_files import Commit

__all__ = ["Repository", "blob_id", "environment"]

_SETTINGS = ("-c", "core.commitGraph=false", "-c", "core.fsmonitor=false")

_SHOWN = (
    "--stdin",
    "-r",
    "-c",
    "--root",
    "--raw",
    "-z",
    "--no-renames",
    "--no-abbrev",
    "--format=%H %P",
)
"""Of ``diff-tree``: what :func:`read_commits` reads."""

_OBJECT = re.compile(rb"([0-9a-f]{40,64}) (\w+) (\d+)")
_NAME = re.compile(r"[0-9a-f]{40,64}")
_DAY = re.compile(rb"([0-9a-f]{40,64}) (\d{4}-\d\d-\d\d)")
_SUBMODULE = b"160000 "
"""How git's trees begin the line of a folder that another repository keeps."""


_WHOLE = "Fetch all of it: git fetch --refetch --no-filter, or in CI no filter."


class TreeEntry(NamedTuple):
    """What a commit's tree has at a path."""

    path: str
    mode: int
    """As git has it: ``0o100644``, ``0o100755``, ``0o120000`` for a link, ``0o160000`` for a submodule."""
    blob: str
    """The name of its content; of a submodule the commit."""


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
        question = ["--show-object-format", "--is-shallow-repository", "--show-toplevel"]
        try:
            done = _run(folder, ["rev-parse", *question])
        except FileNotFoundError:
            return None
        if done.returncode:
            if b"not a git repository" in done.stderr or b"must be run in a work tree" in done.stderr:
                return None
            raise _refused("rev-parse", done.stderr)
        algorithm, is_shallow, root = done.stdout.removesuffix(b"\n").split(b"\n", 2)
        commits = _cut_off(folder) if is_shallow == b"true" else frozenset[str]()
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

    def staged(self, places: Iterable[str]) -> dict[str, str]:
        """Name of the content that the index has of some files, by place from the root."""
        paths = [f":(top,literal){place}" for place in places]
        listed = self._git("ls-files", "--full-name", "--stage", "-z", "--", *paths)
        entries = (entry.partition(b"\t") for entry in listed.split(b"\0") if entry)
        return {os.fsdecode(path): what.split()[1].decode("ascii") for what, _, path in entries}

    def remotes(self) -> list[str]:
        """Names of the repositories that can be fetched from."""
        return os.fsdecode(self._git("remote")).split()

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

    def keeper(self, path: Path) -> Path | None:
        """The folder at or above a path that another repository keeps, as a submodule; else ``None``."""
        place = self.relative(path)
        parts = [] if place is None else place.split("/")
        folders = (self.root.joinpath(*parts[:count]) for count in range(1, len(parts) + 1))
        return next((folder for folder in folders if (folder / ".git").exists()), None)

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

    def tracked(self, pattern: str) -> list[Path]:
        """Files of the work tree that git tracks and whose names match, those of submodules aside."""
        listed = self._git("ls-files", "--cached", "-z", "--", pattern)
        names = dict.fromkeys(os.fsdecode(name) for name in listed.split(b"\0") if name)
        return [self.root / name for name in names]

    def is_tracked(self, path: Path) -> bool:
        """Whether a file of the work tree is in the index, and so in the next commit if in none yet."""
        place = self.relative(path)
        return place is not None and bool(self.tracked(f":(literal){place}"))

    def tree(self, revision: str) -> list[TreeEntry]:
        """All files, links and submodules at a revision."""
        listed = self._git("ls-tree", "-r", "-z", "--full-tree", revision)
        entries = (entry.partition(b"\t") for entry in listed.split(b"\0") if entry)
        return [
            TreeEntry(os.fsdecode(path), int(mode, 8), blob.decode("ascii"))
            for what, _, path in entries
            for mode, _, blob in [what.split()]
        ]

    def objects(self) -> Path:
        """The folder of this repository's objects."""
        shown = self._git("rev-parse", "--path-format=absolute", "--git-path", "objects")
        return Path(os.fsdecode(shown.removesuffix(b"\n")))

    def write_index(self, revision: str) -> None:
        """Make the index that of a work tree which is as a revision has it."""
        self._git("read-tree", revision)

    def commit(self, revision: str) -> str | None:
        """The commit that a revision names; ``None`` for one that is not here."""
        return next(self.names([f"{revision}^{{commit}}"]))

    def merge_bases(self, one: str, other: str) -> list[str]:
        """The latest commits from which two come; none where nothing shows any."""
        done = _run(self.root, ["merge-base", "--all", one, other])
        if done.returncode not in (0, 1):
            raise _refused("merge-base", done.stderr)
        return done.stdout.decode("ascii").split()

    def blobs_at(self, revision: str, folder: str) -> dict[str, str]:
        """Name of the content of every file below a folder at a revision, by path from the root."""
        listed = self._git("ls-tree", "-r", "-z", "--full-tree", revision, "--", f":(literal){folder}/")
        entries = (entry.partition(b"\t") for entry in listed.split(b"\0") if entry)
        return {
            os.fsdecode(path): what.split()[2].decode("ascii")
            for what, _, path in entries
            if not what.startswith(_SUBMODULE)
        }

    def names(self, questions: Iterable[str]) -> Iterator[str | None]:
        """Object names of revisions (``HEAD^{commit}``, ``main:a/b``), in one process; else ``None``."""
        asked = list(questions)
        for answer in self._batch("--batch-check", asked).split(b"\n")[: len(asked)]:
            found = _OBJECT.fullmatch(answer)
            yield found[1].decode() if found else None

    def sizes(self, blobs: Iterable[str]) -> Iterator[int]:
        """Bytes of files, by the names that git has for their content, in one process; 0 for no file."""
        asked = list(blobs)
        for answer in self._batch("--batch-check", asked).split(b"\n")[: len(asked)]:
            found = _OBJECT.fullmatch(answer)
            yield int(found[3]) if found else 0

    def contents(self, questions: Iterable[str]) -> Iterator[bytes | None]:
        """Bytes of files (``HEAD:a/b``, or a blob's name), in one process; else ``None``.

        Raises:
            HistoryError: The repository lacks a blob that is asked for by its name (PR212).
        """
        asked = list(questions)
        if not asked:
            return
        with self._answers("cat-file", "--batch", feed=_lines(asked)) as answers:
            for question in asked:
                line = answers.readline()
                if not line:  # it ended before its time, and says why
                    break
                found = _OBJECT.fullmatch(line.removesuffix(b"\n"))
                if found is None and _NAME.fullmatch(question):
                    raise _refused("cat-file", f"object {question} is missing (git fsck)".encode())
                data = answers.read(int(found[3]) + 1)[:-1] if found else None
                yield data if found and found[2] == b"blob" else None

    def _batch(self, mode: str, questions: Sequence[str]) -> bytes:
        return self._git("cat-file", mode, feed=_lines(questions)) if questions else b""

    def refs(self) -> dict[str, str]:
        """What branches, remote branches and tags name, by full name of the ref: commits, tags, anything."""
        listed = self._git(
            "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/remotes", "refs/tags"
        )
        pairs = (line.split(b" ", 1) for line in listed.splitlines())
        return {os.fsdecode(name): target.decode("ascii") for target, name in pairs}

    def ancestry(self, tips: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """The tips and all commits from which they come, with their parents; each before its parents."""
        feed = "".join(f"{tip}\n" for tip in tips).encode("ascii")
        listed = self._git("rev-list", "--topo-order", "--parents", "--stdin", feed=feed)
        lines = (line.split() for line in listed.decode("ascii").splitlines())
        return {commit: tuple(parents) for commit, *parents in lines}

    def days(self, commits: Iterable[str]) -> dict[str, str]:
        """The day on which each commit says that it was made, as ``2026-11-30``; whoever commits sets it.

        For people to find their way, and never for what came first. What is no such day is left out.
        """
        feed = "".join(f"{commit}\n" for commit in commits).encode("ascii")
        if not feed:
            return {}
        asked = ["--no-walk=unsorted", "--format=%H %cs", "--stdin"]
        found = map(_DAY.fullmatch, self._git("rev-list", *asked, feed=feed).splitlines())
        return {one[1].decode(): one[2].decode() for one in found if one}

    def make_tag(self, name: str, commit: str) -> None:
        """Make a lightweight tag, which must not be there yet.

        Raises:
            HistoryError: It is, or its name is taken by another (PR212).
        """
        self._git("update-ref", f"refs/tags/{name}", commit, "")

    def history(
        self, commits: Iterable[str], suffixes: tuple[str, ...], blobs: Collection[str] = ()
    ) -> Iterator[Commit]:
        """What commits brought in and took away; those of them that did neither are left out.

        A merge is listed with what none of its parents has at that place.

        Args:
            commits: Which, in the order in which they come back.
            suffixes: How the names of files end that are asked for.
            blobs: Contents that are asked for as well, whatever the file is called.
        """
        names = tuple(os.fsencode(suffix) for suffix in suffixes)
        contents = frozenset(blob.encode("ascii") for blob in blobs)
        feed = "".join(f"{commit}\n" for commit in commits).encode("ascii")
        with self._answers("diff-tree", *_SHOWN, feed=feed) as answers:
            yield from read_commits(answers, names, contents)

    def merged(self, merges: Mapping[str, tuple[str, ...]], suffix: str) -> Iterator[Commit]:
        """As :meth:`history` of merges, but with all that their first parent does not have as they do.

        Args:
            merges: Their parents, by commit.
            suffix: How the names of files end that are asked for.
        """
        if merges:
            feed = "".join(f"{commit} {parents[0]}\n" for commit, parents in merges.items()).encode("ascii")
            with self._answers("diff-tree", *_SHOWN, "--", f"*{suffix}", feed=feed) as answers:
                yield from read_commits(answers, (os.fsencode(suffix),), frozenset())

    def _git(self, *arguments: str, feed: bytes = b"") -> bytes:
        done = _run(self.root, arguments, feed)
        if done.returncode:
            raise _refused(arguments[0], done.stderr)
        return done.stdout

    @contextlib.contextmanager
    def _answers(self, *arguments: str, feed: bytes) -> Iterator[IO[bytes]]:
        """What git answers, to be read while it answers: it may be more than memory should hold."""
        with contextlib.ExitStack() as files:
            try:
                asked, said = (files.enter_context(_in_memory()) for _ in range(2))
                asked.write(feed)
                asked.seek(0)
                process = files.enter_context(_started(self.root, arguments, asked, said))
            except OSError as error:
                raise _no_process(arguments[0], error) from error
            assert process.stdout is not None
            yield process.stdout
            if process.wait():
                said.seek(0)
                raise _refused(arguments[0], said.read())


def _in_memory() -> IO[bytes]:
    """A file that another process can have, and that no full disk refuses."""
    return os.fdopen(os.memfd_create("git"), "w+b")


def _cut_off(folder: Path) -> frozenset[str]:
    """The commits whose parents a shallow clone lacks; git has read the list, and would refuse another."""
    done = _run(folder, ["rev-parse", "--git-path", "shallow"])
    place = folder / os.fsdecode(done.stdout.removesuffix(b"\n"))
    return frozenset(place.read_text(encoding="ascii").split())


def _run(folder: Path, arguments: Sequence[str], feed: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = ["git", *_SETTINGS, *arguments]
    try:
        return subprocess.run(
            command, cwd=folder, env=environment(os.environ), input=feed, capture_output=True, check=False
        )
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _no_process(arguments[0], error) from error


def _started(
    folder: Path, arguments: Sequence[str], feed: IO[bytes], said: IO[bytes]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["git", *_SETTINGS, *arguments],
        cwd=folder,
        env=environment(os.environ),
        stdin=feed,
        stdout=subprocess.PIPE,
        stderr=said,
    )


def _lines(questions: Iterable[str]) -> bytes:
    """One line for each; a name with a line break can't be asked for: an empty one is answered as unknown."""
    return b"".join(os.fsencode("" if "\n" in question else question) + b"\n" for question in questions)


def _no_process(command: str, error: OSError) -> HistoryError:
    """No process, or no file, can be had any more."""
    return _refused(command, os.fsencode(error.strerror or str(error)))


def _refused(command: str, said: bytes) -> HistoryError:
    if b"promisor remote" in said:
        message = "this is a partial clone, and what it lacks can't be fetched"
        return HistoryError(Problem(code="PR212", message=message, advice=_WHOLE))
    lines = said.decode("utf-8", "replace").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("hint:")).strip()
    message = f"git {command} failed: {text or 'it said nothing'}"
    return HistoryError(Problem(code="PR212", message=message))
