"""What runs in a sandbox on Modal beside the program: it starts each test, and holds it to its limits.

It is sent in as text behind the driver, which it has as ``driver``, and needs no more than an interpreter.
Where it is root, tests run as a user that nobody else is, so that no program can end it, speak in its place
or look into it. Nothing that it says decides an outcome but by what the client makes of it: answers are
compared there, and the deadline is kept there.
"""

import _signal  # type: ignore[import-not-found]
import fcntl
import posix
import resource
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from pytest_prereg.measure.workloads.sandbox import driver  # noqa: TC004  # it is put here before this runs

WORKLOAD_VERSION = "1"

_LENGTH = 4
_HELD_TRIES = 1000
_CHUNK = 1 << 16
_LOOK = 0.03
_REST = 4.0
"""Time between two looks, in times of what a look takes."""
_PR_SET_NO_NEW_PRIVS = 38
_OWN_USERS = ((1_000_000_000, 2_000_000_000), (60_000, 64_000))
"""Users that nobody is; the second where a namespace has no more."""
_BESIDE_ANSWER = 4096
"""As much may come where an answer does: the text of an exception can be longer than an answer may be."""


def main() -> None:
    """Run what is sent, until there is no more."""
    _make_quiet()
    _hold()
    line = _Line()
    _signal.alarm(0)  # it keeps the time from now on
    setting = driver._loaded(line.next())  # noqa: SLF001
    line.patience = setting["alone_seconds"]
    user = _own_user()
    _enter_folder(user)
    _prove(setting, user)
    _tell(b"R", b"%d.%d %d" % (sys.version_info[0], sys.version_info[1], user is not None))
    program = driver._loaded(line.next())  # noqa: SLF001
    while True:
        test = _Test(program, driver._loaded(line.next()), setting, user)  # noqa: SLF001
        test.run(line)
        if test.problem is not None:
            _tell(b"K", test.problem)
            return
        _tell(b"T", test.report())


def _make_quiet() -> None:
    """Keep what is printed by mistake away from what the client reads."""
    global _out  # noqa: PLW0603
    _out = posix.dup(1)
    nothing = posix.open("/dev/null", posix.O_RDWR)
    for descriptor in (1, 2):
        posix.dup2(nothing, descriptor)


_out = 1


def _hold() -> None:
    """Keep the sandbox: it ends soon after this process has closed what its own command reads."""
    for _ in range(_HELD_TRIES):
        try:
            posix.open("held", posix.O_WRONLY)
        except FileNotFoundError:
            time.sleep(0.01)
        else:
            return
    raise SystemExit


class _Alone(Exception):  # noqa: N818  # of this module alone
    """Nobody has been heard for so long that there is nobody any more."""


class _Line:
    """What the client sends: frames, of which empty ones say that it is still there."""

    def __init__(self) -> None:
        self.patience = 60.0
        self._bytes = b""
        self._heard = time.monotonic()

    def next(self) -> bytes:
        """Return the next frame that is not empty."""
        while not (frame := self._cut()):
            if frame is None:
                if select.select([0], [], [], 1.0)[0]:
                    self.listen()
                self.check()
        return frame

    def listen(self) -> None:
        """Take what is there."""
        data = posix.read(0, _CHUNK)
        if not data:
            raise _Alone
        self._bytes += data
        self._heard = time.monotonic()

    def check(self) -> None:
        """Give up where nobody is heard any more."""
        if time.monotonic() - self._heard > self.patience:
            raise _Alone

    def _cut(self) -> bytes | None:
        length = int.from_bytes(self._bytes[:_LENGTH], "big")
        if len(self._bytes) < _LENGTH + length:
            return None
        frame = self._bytes[_LENGTH : _LENGTH + length]
        self._bytes = self._bytes[_LENGTH + length :]
        return frame


def _tell(kind: bytes, text: bytes) -> None:
    data = (len(text) + 1).to_bytes(_LENGTH, "big") + kind + text
    while data:
        data = data[posix.write(_out, data) :]


def _own_user() -> int | None:
    """Return a user that nobody else is; ``None`` where this process can't become another."""
    if posix.geteuid():
        return None
    for first, end in _OWN_USERS:
        user = first + int.from_bytes(posix.urandom(4), "big") % (end - first)
        pid = posix.fork()
        if not pid:
            _end_with(lambda user=user: _become(user))
        if not posix.waitpid(pid, 0)[1]:
            return user
    return None


def _become(user: int) -> None:
    posix.setgroups([])
    posix.setresgid(user, user, user)
    posix.setresuid(user, user, user)


def _end_with(act: "Any") -> "NoReturn":
    """Do something in a fork of this process, and end it."""
    status = 1
    try:
        act()
        status = 0
    finally:
        posix._exit(status)  # noqa: SLF001


def _enter_folder(user: int | None) -> None:
    """Be in a folder of the program's own, even where its user could not pass those above."""
    name = f"{posix.getcwd()}/program-{int.from_bytes(posix.urandom(6), 'big'):x}"
    posix.mkdir(name, 0o700)
    if user is not None:
        posix.chown(name, user, user)
    posix.chdir(name)


def _prove(setting: "dict[str, Any]", user: int | None) -> None:
    """Try once, without a program, all that a test does before its program runs."""
    pid = posix.fork()
    if not pid:
        _end_with(lambda: _confine(setting, user))
    if posix.waitpid(pid, 0)[1]:
        _tell(b"X", b"the limits that programs are to be held to can't be set there")
        raise SystemExit


def _confine(setting: "dict[str, Any]", user: int | None) -> None:
    """Hold this process to its limits, those of time apart, which the driver sets."""
    import _ctypes  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415  # without all that ctypes imports

    prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
    _ctypes.call_function(prctl, (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    driver._volunteer()  # noqa: SLF001
    if user is not None:
        _become(user)
    for number, most in setting["limits"]:
        # Of a user that others are as well, theirs would count too.
        if number != resource.RLIMIT_CPU and (user is not None or number != resource.RLIMIT_NPROC):
            resource.setrlimit(number, most)


class _Test:
    """One test, run in a process of its own."""

    def __init__(
        self, program: str, test: "tuple[Any, ...]", setting: "dict[str, Any]", user: int | None
    ) -> None:
        self.problem: bytes | None = None
        """The limit that it went over: a letter, and how far."""
        self._program, self._test, self._setting = program, test, setting
        self._user = user
        self._kept = [bytearray(), bytearray(), bytearray()]
        self._sources: dict[int, int] = {}
        self._status = self._milliseconds = self._peak = 0
        self._pid = 0
        self._look_at = 0.0

    def run(self, line: _Line) -> None:
        """Run it to its end, and end all that it left behind."""
        pipes = [posix.pipe() for _ in self._kept]
        ended, woken = posix.pipe()
        posix.set_blocking(woken, False)
        _signal.signal(_signal.SIGCHLD, lambda *_: None)
        _signal.set_wakeup_fd(woken)
        self._pid = posix.fork()
        if not self._pid:
            self._be_it([sink for _, sink in pipes])
        for number, (source, sink) in enumerate(pipes):
            posix.close(sink)
            posix.set_blocking(source, False)
            self._sources[source] = number
        try:
            self._attend(ended, line)
        finally:
            self._kill()
        _signal.set_wakeup_fd(-1)
        for descriptor in (*self._sources, ended, woken):
            posix.close(descriptor)

    def report(self) -> bytes:
        """Return what is seen of it."""
        numbers = (self._status, self._milliseconds, self._peak, *map(len, self._kept))
        return b" ".join(b"%d" % number for number in numbers) + b"\n" + b"".join(self._kept)

    def _be_it(self, sinks: list[int]) -> "NoReturn":
        """Be the process that runs the test."""
        try:
            _signal.set_wakeup_fd(-1)
            _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
            nothing = posix.open("/dev/null", posix.O_RDWR)
            moved = [_high(descriptor) for descriptor in (nothing, *sinks)]
            for source, target in zip(moved, (0, 1, 2, driver.ANSWERS), strict=True):
                posix.dup2(source, target)
            posix.dup2(0, driver.CONTROL)  # which the driver closes
            posix.closerange(driver.ANSWERS + 1, 1024)
            _confine(self._setting, self._user)
        except BaseException:  # noqa: BLE001  # proven to work before
            posix._exit(71)  # noqa: SLF001
        driver._run(self._program, self._test, self._setting)  # noqa: SLF001

    def _attend(self, ended: int, line: _Line) -> None:
        """Take what it writes until it has ended, and hold it to its limits meanwhile."""
        open_sources = dict(self._sources)
        while not self._has_ended():
            line.check()
            ready, _, _ = select.select([*open_sources, ended, 0], [], [], _LOOK)
            for source in ready:
                if source == 0:
                    line.listen()
                elif source == ended:
                    posix.read(ended, _CHUNK)
                elif not self._take(source):
                    del open_sources[source]
            self._look()
            if self.problem is not None:
                self._kill()
        self._kill()
        for source in open_sources:
            self._take(source)

    def _has_ended(self) -> bool:
        pid, status, used = posix.wait4(self._pid, posix.WNOHANG)
        if not pid:
            return False
        self._status, self._pid = status, 0
        self._milliseconds = int(1000 * (used.ru_utime + used.ru_stime))
        return True

    def _take(self, source: int) -> bool:
        """Take what is in a pipe; return whether there may be more."""
        kept = self._kept[self._sources[source]]
        while True:
            try:
                data = posix.read(source, _CHUNK)
            except BlockingIOError:
                return True
            if not data or self.problem is not None:
                return bool(data)
            kept += data
            self._check_output()

    def _check_output(self) -> None:
        output, errors, answer = map(len, self._kept)
        most = self._setting["answer"]
        if answer > most + _BESIDE_ANSWER:
            self.problem = b"Oan answer of more than %d bytes" % most
        elif output + errors > self._setting["output"]:
            self.problem = b"Omore than %d bytes of output" % self._setting["output"]

    def _look(self) -> None:
        """Hold what its processes take against the limits, in no more than a part of the time."""
        now = time.monotonic()
        if now < self._look_at or self.problem is not None:
            return
        taken = [of for _, of in _members(self._user)]
        memory, threads = sum(each[0] for each in taken), sum(each[1] for each in taken)
        self._peak = max(self._peak, memory)
        if memory > self._setting["memory"]:
            self.problem = b"M%d bytes of memory, where %d are the most" % (memory, self._setting["memory"])
        elif threads > self._setting["processes"]:
            most = self._setting["processes"]
            self.problem = b"P%d processes and threads, where %d are the most" % (threads, most)
        after = time.monotonic()
        self._look_at = after + max(_LOOK, _REST * (after - now))

    def _kill(self) -> None:
        """Kill what is left of it, at once where it has a user of its own."""
        if self._user is None:
            for pid, _ in _members(None):
                _kill_one(pid)
        else:
            killer = posix.fork()
            if not killer:
                _end_with(self._kill_all)
            posix.waitpid(killer, 0)
        if self._pid:
            _kill_one(self._pid)

    def _kill_all(self) -> None:
        """Kill all processes of the program's user: this one is it, and can kill no others."""
        assert self._user
        _become(self._user)
        if posix.getresuid() == (self._user,) * 3:
            posix.kill(-1, 9)


def _high(descriptor: int) -> int:
    """Return the descriptor under another number, out of the way of those that a test has."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD, 64)


def _kill_one(pid: int) -> None:
    try:
        posix.kill(pid, 9)
    except OSError:
        return  # it is gone


def _members(user: int | None) -> "list[tuple[int, tuple[int, int]]]":
    """Return the pid, memory and number of threads of each process of the program."""
    named = {int(name): _status(name) for name in posix.listdir("/proc") if name.isdigit()}
    found = {pid: status for pid, status in named.items() if status}
    if user is not None:
        chosen = [pid for pid, status in found.items() if status[b"Uid:"] == user]
    else:
        chosen = [posix.getpid()]
        for parent in chosen:
            chosen += [pid for pid, status in found.items() if status[b"PPid:"] == parent]
        del chosen[0]
    return [(pid, (_memory(found[pid]), found[pid].get(b"Threads:", 1))) for pid in chosen]


def _memory(status: "dict[bytes, int]") -> int:
    """Return the bytes that no file backs; all that are resident where no kernel tells them apart."""
    if b"RssAnon:" not in status:
        return 1024 * status.get(b"VmRSS:", 0)
    return 1024 * sum(status.get(key, 0) for key in (b"RssAnon:", b"RssShmem:", b"VmSwap:"))


_TOLD = (b"Uid:", b"PPid:", b"Threads:", b"VmRSS:", b"RssAnon:", b"RssShmem:", b"VmSwap:")


def _status(name: str) -> "dict[bytes, int]":
    """Return what the kernel tells of a process, nothing if it is gone."""
    try:
        descriptor = posix.open(f"/proc/{name}/status", posix.O_RDONLY)
        try:
            text = posix.read(descriptor, _CHUNK)
        finally:
            posix.close(descriptor)
    except OSError:
        return {}
    words = (line.split() for line in text.split(b"\n"))
    return {each[0]: int(each[1]) for each in words if len(each) > 1 and each[0] in _TOLD}


if __name__ == "inside":
    import _json  # noqa: F401  # while there is nobody yet who may not read it

    try:
        main()
    except _Alone:
        raise SystemExit from None
