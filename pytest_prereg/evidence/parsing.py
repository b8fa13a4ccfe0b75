"""From the bytes of a session file to a :class:`SessionFile`, block by block, so that a million repeats fit.

A torn last line is normal, and so is a missing footer: the session was killed. Whatever else does not fit
is a problem of the file, never an exception, so that one bad file spoils one experiment and not the study.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import sys
from typing import TYPE_CHECKING, Annotated, BinaryIO

import msgspec
from msgspec.structs import asdict

from pytest_prereg.errors import Problem
from pytest_prereg.evidence.files import Attempt, SessionFile, Spent
from pytest_prereg.evidence.lines import whole_lines
from pytest_prereg.evidence.model import Footer, Header, Outcome, Value
from pytest_prereg.evidence.naming import names_warmup, shown
from pytest_prereg.evidence.sidecars import Reference, SidecarError, resolved
from pytest_prereg.registry.lock_file import ID
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_prereg.evidence.sidecars import Read

FORMAT_VERSION = 1
_LAST_SERIES = 1 << 31
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_WARMUP = Outcome.WARMUP
_NO_INSTRUMENTS: dict[str, str] = {}
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _Started(msgspec.Struct, kw_only=True, frozen=True, gc=False, tag_field="type", tag="started"):
    """What judging needs of a ``started`` line."""

    repeat: str
    arm: str
    index: int
    attempt: int
    block: int | None = None
    warmup: bool = False
    attached: bool = False
    mark: str | None = None


class _Launched(msgspec.Struct, kw_only=True, frozen=True, gc=False, tag_field="type", tag="launched"):
    """A ``launched`` line."""

    repeat: str
    attempt: int
    call: str


_Duration = Annotated[float, msgspec.Meta(ge=0)]


class _Seconds(msgspec.Struct, kw_only=True, frozen=True, gc=False):
    """What accounting needs of the durations: a negative one would hide what others cost."""

    body: _Duration = 0.0
    total: _Duration = 0.0


class _Finished(msgspec.Struct, kw_only=True, frozen=True, gc=False, tag_field="type", tag="finished"):
    """What judging needs of a ``finished`` line."""

    repeat: str
    attempt: int
    outcome: Outcome
    values: dict[str, Value] = {}
    instruments: dict[str, str] = {}
    machine: str | None = None
    cause: str | None = None
    outside: str | None = None
    resumed: bool = False
    unreadable: dict[str, str] = {}
    seconds: _Seconds = _Seconds()


class _Named(_Finished, kw_only=True, frozen=True, gc=False, tag="finished"):
    """A ``finished`` line whose large vectors are only named: what is judged has their numbers."""

    values: dict[str, Value | Reference] = {}  # type: ignore[assignment]  # only until they are read


_Line = Header | _Started | _Launched | _Finished | Footer
_decoder = msgspec.json.Decoder(_Line)
_decoder_of_names = msgspec.json.Decoder(Header | _Started | _Launched | _Named | Footer)


def parse(path: Path, stream: BinaryIO, read: Read | None = None) -> SessionFile:
    """Read a session file from ``stream``; ``path`` is only its name, and ``read`` gives its sidecars."""
    parser = Parser(path, read)
    torn = False
    for block in whole_lines(stream):
        if block.endswith(b"\n"):
            parser.feed(block)
        else:
            torn = True
    return parser.result(torn=torn)


class Parser:
    """State while one file is read: :meth:`feed` it blocks of whole lines, then take the :meth:`result`."""

    def __init__(self, path: Path, read: Read | None = None) -> None:
        self._path = path
        self._read = read
        self._header: Header | None = None
        self._footer: Footer | None = None
        self._attempts: list[Attempt] = []
        self._begun: dict[str, _Started] = {}
        self._calls: dict[str, str] = {}
        self._places: list[int] = []
        """For each attempt, which of those that were started it is."""
        self._place: dict[str, int] = {}
        self._problems: list[Problem] = []
        self._instruments: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
        self._spent: dict[str, _Account] = {}
        self._count = 0
        self._digest = hashlib.sha256()
        self._digest_before_last_line = self._digest

    def problem(self, message: str, *, line: int | None, code: str = "PR207") -> None:
        """Note what is wrong with the file."""
        self._problems.append(Problem(code=code, message=message, path=shown(self._path), line=line))

    def feed(self, block: bytes) -> None:
        """Take whole lines, the last newline included."""
        last = block.rfind(b"\n", 0, -1) + 1
        view = memoryview(block)
        self._digest.update(view[:last])
        self._digest_before_last_line = self._digest.copy()
        self._digest.update(view[last:])
        try:
            lines = _decoder.decode_lines(block)
        except _UNREADABLE:
            self._feed_one_by_one(block)
        else:
            for line in lines:
                self._line(line)

    def result(self, *, torn: bool) -> SessionFile:
        """Return the file; ``torn`` says that bytes follow the last whole line."""
        if self._footer is not None:
            self._check_footer(self._footer, torn=torn)
        for started in self._begun.values():
            self._lose(started)
        return SessionFile(
            path=self._path,
            header=self._header,
            attempts=self._in_order(),
            footer=self._footer,
            torn=torn,
            digest=f"sha256:{self._digest.hexdigest()}",
            problems=tuple(self._problems),
            spent={arm: account.spent() for arm, account in self._spent.items()},
        )

    def _in_order(self) -> list[Attempt]:
        """Return the attempts as they were started; side by side they end in any order."""
        places = self._places
        if all(before < after for before, after in itertools.pairwise(places)):
            return self._attempts
        return [self._attempts[one] for one in sorted(range(len(places)), key=places.__getitem__)]

    def _feed_one_by_one(self, block: bytes) -> None:
        for raw in block[:-1].split(b"\n"):
            try:
                line = self._whole(_decoder_of_names.decode(raw))
            except _UNREADABLE as error:
                self._count += 1
                self.problem(f"this line is not what was written: {error}", line=self._count)
            except SidecarError as error:
                self._count += 1
                self.problem(f"{error}, and without it this line is none", line=self._count)
            else:
                self._line(line)

    def _whole(self, line: _Line) -> _Line:
        """Return the line with the numbers of vectors that it only names."""
        if not isinstance(line, _Named):
            return line
        return _Finished(**asdict(line) | {"values": resolved(line.values, self._read)})

    def _line(self, line: _Line) -> None:
        self._count += 1
        if self._footer is not None:
            self.problem("lines follow the footer, but a finished file never changes", line=self._count)
            self._footer = None
        if self._header is None or isinstance(line, Header):
            self._take_header(line)
        elif isinstance(line, _Started):
            self._start(line)
        elif isinstance(line, _Finished):
            self._finish(line)
        elif isinstance(line, _Launched):
            self._launch(line)
        else:
            self._footer = line

    def _take_header(self, header: _Line) -> None:
        if self._count > 1:
            if self._header is not None:
                self.problem("a second header: two files were joined", line=self._count)
        elif not isinstance(header, Header):
            self.problem("the file does not begin with a header", line=1)
        elif header.version > FORMAT_VERSION:
            newer = f"evidence format {header.version} is newer than this pytest-prereg can read; upgrade it"
            self.problem(newer, line=1, code="PR122")
        else:
            self._header = header
            for wrong in _wrong_in(header):
                self.problem(f"its header was never written so: {wrong}", line=1)
            if header.experiment != self._path.parent.name:
                moved = (
                    f'evidence of "{header.experiment}" was moved to the folder of "{self._path.parent.name}"'
                )
                self.problem(moved, line=1)

    def _start(self, started: _Started) -> None:
        if started.warmup and not names_warmup(started.repeat):
            self.problem(
                f'"{started.repeat}" was started as warm-up, which goes by another name', line=self._count
            )
        earlier = self._begun.get(started.repeat)
        if earlier is not None:
            self._lose(earlier)
        self._begun[started.repeat] = started
        self._place[started.repeat] = self._count

    def _launch(self, launched: _Launched) -> None:
        started = self._begun.get(launched.repeat)
        if started is None or started.attempt != launched.attempt or launched.repeat in self._calls:
            self.problem(f'"{launched.repeat}" was launched without having been started', line=self._count)
            return
        self._calls[launched.repeat] = launched.call

    def _finish(self, finished: _Finished) -> None:
        started = self._begun.pop(finished.repeat, None)
        if started is None or started.attempt != finished.attempt:
            self.problem(f'"{finished.repeat}" finished without having been started', line=self._count)
            return
        outcome = finished.outcome
        if started.warmup:
            outcome = _WARMUP
        elif outcome is _WARMUP:
            wrong = f'"{finished.repeat}" ended as warm-up without having been started as such'
            self.problem(wrong, line=self._count)
        account = self._spent.get(started.arm) or self._account(started.arm)
        account.busy += finished.seconds.body
        account.total += finished.seconds.total
        self._places.append(self._place[started.repeat])
        self._attempts.append(
            Attempt(
                repeat=started.repeat,
                arm=sys.intern(started.arm),
                index=started.index,
                number=started.attempt,
                block=started.block,
                outcome=outcome,
                values=finished.values,
                instruments=self._shared(finished.instruments) if finished.instruments else _NO_INSTRUMENTS,
                machine=finished.machine and sys.intern(finished.machine),
                cause=finished.cause,
                outside=finished.outside and sys.intern(finished.outside),
                resumed=finished.resumed,
                unreadable=self._shared(finished.unreadable) if finished.unreadable else _NO_INSTRUMENTS,
                call=self._calls.pop(started.repeat, None) if self._calls else None,
                attached=started.attached,
                mark=started.mark,
            )
        )

    def _lose(self, started: _Started) -> None:
        self._account(started.arm).unfinished += 1
        self._places.append(self._place[started.repeat])
        self._attempts.append(_lost(started, self._calls.pop(started.repeat, None)))

    def _account(self, arm: str) -> _Account:
        return self._spent.setdefault(arm, _Account())

    def _shared(self, instruments: dict[str, str]) -> dict[str, str]:
        """Return the one dict that all attempts with these instruments have."""
        return self._instruments.setdefault(tuple(instruments.items()), instruments)

    def _check_footer(self, footer: Footer, *, torn: bool) -> None:
        before = self._count - 1
        if torn:
            self.problem("text follows the footer, but a finished file never changes", line=self._count + 1)
        if footer.lines != before:
            self.problem(f"{footer.lines} lines were written, {before} are there", line=self._count)
        elif footer.digest != f"sha256:{self._digest_before_last_line.hexdigest()}":
            self.problem("the lines are not those that were written: their digest differs", line=self._count)


def _wrong_in(header: Header) -> Iterator[str]:
    """What no session has in its header: what it says then is not read as if it were nothing."""
    if header.version < 1:
        yield f'"version" is {header.version}'
    first = 0 if header.origin == "pilot" else 1
    if not first <= header.series <= _LAST_SERIES:
        yield f'"series" is {header.series}'
    if header.planned is not None and (not header.planned or min(header.planned.values()) < 1):
        yield f'"planned" is {msgspec.json.encode(header.planned).decode()}'
    for name in header.predictions:
        if not ID.fullmatch(name):
            yield f'"predictions" names {quoted(name)}'
    if header.head is not None and not _COMMIT.fullmatch(header.head):
        yield f'"head" is {quoted(header.head)}'
    for arm, version in header.trees.items():
        if not _COMMIT.fullmatch(version.commit) or not _COMMIT.fullmatch(version.tree):
            yield f'"trees" has {quoted(version.commit)} and {quoted(version.tree)} for {quoted(arm)}'


class _Account:
    """What an arm has taken so far."""

    __slots__ = ("busy", "total", "unfinished")

    def __init__(self) -> None:
        self.busy = 0.0
        self.total = 0.0
        self.unfinished = 0

    def spent(self) -> Spent:
        return Spent(busy=self.busy, total=self.total, unfinished=self.unfinished)


def _lost(started: _Started, call: str | None) -> Attempt:
    """Return an attempt without end; a warm-up that has none is no fault."""
    return Attempt(
        repeat=started.repeat,
        arm=sys.intern(started.arm),
        index=started.index,
        number=started.attempt,
        block=started.block,
        outcome=Outcome.WARMUP if started.warmup else Outcome.LOST,
        call=call,
        attached=started.attached,
        mark=started.mark,
    )
