"""What runs in a sandbox beside the program: forks one child per hidden test, and says how it ended.

It is not imported but sent in as code, and imports nothing that has to be searched for: most of what a
sandbox costs is the start of an interpreter. It is trusted no more than the program, which may take it over,
and knows nothing that the program may not know.
"""

import _signal  # type: ignore[import-not-found]
import marshal
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

WORKLOAD_VERSION = "1"

CONTROL, ANSWERS, CODE = 3, 4, 5
"""Descriptors: the supervisor's socket, its pipe for answers, and this code."""

DEEPEST = 200
"""Lists in lists of an answer."""

_INIT = 1
"""Pid of the driver in a namespace of its own: nothing in there can kill or stop it."""
_LENGTH = 4
_DISK_FULL = frozenset({27, 28, 122})
"""EFBIG, ENOSPC, EDQUOT."""
_NO_MEMORY = 12
"""ENOMEM, which is how a mapping fails and not as a MemoryError."""
_MOST_TEXT = 1000
_MOST_DIGITS = 4300
_OWN_FRAMES = 8
"""Between the interpreter and the program; they shall not count as the program's."""
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
_SECCOMP_MODE_FILTER = 2

_tester: "list[int]" = []
"""Pid of the process that runs the test."""


class _Refused(Exception):  # noqa: N818  # of this module alone
    """What a function returned is no plain data."""


class _TooLong(Exception):  # noqa: N818
    """It is, but there is too much of it."""


def main() -> None:
    """Run what the supervisor sends, until it hangs up."""
    posix.closerange(CODE, 64)
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # an init gets no signal that it has no handler for
    setting = _loaded(_received())
    _confine(setting)
    posix.write(CONTROL, b"ready\n")
    program = _loaded(_received())
    while (sent := _received()) is not None:
        status, seconds = _in_child(program, _loaded(sent), setting)
        posix.write(CONTROL, b"%d %d\n" % (status, seconds * 1000))


def _loaded(sent: bytes | None) -> "Any":
    if sent is None:
        raise SystemExit
    return marshal.loads(sent)  # noqa: S302  # from the supervisor


def _received() -> bytes | None:
    head = _read(_LENGTH)
    return None if head is None else _read(int.from_bytes(head, "big"))


def _read(wanted: int) -> bytes | None:
    found = b""
    while len(found) < wanted:
        some = posix.read(CONTROL, wanted - len(found))
        if not some:
            return None
        found += some
    return found


def _confine(setting: "dict[str, Any]") -> None:
    import resource  # noqa: PLC0415  # not built in, as those above are

    sys.path.extend(setting["packages"])
    if not setting["alone"]:
        _confine_here(setting["folder"], setting["filter"])
    _volunteer()
    for number, most in setting["limits"]:
        if number != resource.RLIMIT_CPU:  # a program can have this process reap as much as it likes
            resource.setrlimit(number, most)
    _hide()


def _limit_time(setting: "dict[str, Any]") -> None:
    import resource  # noqa: PLC0415  # loaded before

    resource.setrlimit(resource.RLIMIT_CPU, dict(setting["limits"])[resource.RLIMIT_CPU])


def _confine_here(folder: str, filter_: bytes) -> None:
    """Do what bubblewrap does, as far as a process without namespaces can."""
    import ctypes  # noqa: PLC0415

    posix.chdir(folder)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)
    if not filter_:
        return
    kept = ctypes.create_string_buffer(filter_, len(filter_))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("start", ctypes.c_void_p))

    program = ctypes.byref(Program(len(kept) // 8, ctypes.addressof(kept)))
    failed = libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if failed or libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, program, 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel takes no filter of system calls")


def _volunteer() -> None:
    """Ask the kernel to kill these processes first, if it has to for want of memory."""
    try:
        descriptor = posix.open("/proc/self/oom_score_adj", posix.O_WRONLY)
        posix.write(descriptor, b"1000")
        posix.close(descriptor)
    except OSError:
        pass  # a kernel built without; contextlib is no built-in module


def _hide() -> None:
    """Keep a program from reading and writing this process's memory, and that of each other's tests."""
    try:
        import _ctypes  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415  # without all that ctypes imports

        prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
        _ctypes.call_function(prctl, (_PR_SET_DUMPABLE, 0, 0, 0, 0))
    except (ImportError, OSError):
        pass  # nothing in there decides an outcome


def _in_child(program: str, test: "tuple[Any, ...]", setting: "dict[str, Any]") -> "tuple[int, float]":
    """Return the status with which the child that ran the test ended, and its seconds of processor time."""
    pid = posix.fork()
    if not pid:
        _run(program, test, setting)
    ended, status, used = posix.wait4(-1, 0)
    while ended != pid:  # orphans come to an init
        ended, status, used = posix.wait4(-1, 0)
    if setting["alone"] and posix.getpid() == _INIT:
        _be_rid_of_all()
    return status, used.ru_utime + used.ru_stime


def _be_rid_of_all() -> None:
    """Kill all other processes of this namespace, at once, and wait until none is left."""
    try:
        posix.kill(-1, 9)
        while True:
            posix.wait4(-1, 0)
    except OSError:
        return  # there is nobody


def _run(program: str, test: "tuple[Any, ...]", setting: "dict[str, Any]") -> "NoReturn":
    """Run one test in this process, and end it."""
    ended = 1
    _tester[:] = [posix.getpid()]
    try:
        _limit_time(setting)
        posix.setsid()
        posix.close(CONTROL)
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        if test[0] == "script":
            ended = _as_script(program, test[1])
        else:
            ended = _called(program, test[1], test[2], test[3], setting["answer"])
    except _TooLong as error:
        _tell(b"L", str(error))
    except _Refused as error:
        _tell(b"N", str(error))
    except MemoryError:
        _send(b"M")
    except SystemExit as error:
        ended = _status(error)
    except BaseException as error:  # noqa: BLE001  # whatever the program raises
        _tell(_kind(error), _described(error))
    finally:
        _flush()
        posix._exit(ended)  # noqa: SLF001  # os has it from here


def _kind(error: BaseException) -> bytes:
    """Return the letter under which an exception is told."""
    number = getattr(error, "errno", None)
    if number == _NO_MEMORY:
        return b"M"
    return b"D" if number in _DISK_FULL else b"E"


def _module(name: str, program: str) -> "dict[str, Any]":
    """Run the program as the module ``name``, in a process as it expects it; return what it defined."""
    import builtins  # noqa: PLC0415

    builtins.exit = builtins.quit = sys.exit  # type: ignore[assignment]  # by site, which is left out
    sys.argv[:] = ["program"]
    sys.setrecursionlimit(sys.getrecursionlimit() + _OWN_FRAMES)
    module = type(sys)(name)
    sys.modules[name] = module
    # Not compiled first: compile() makes the types of syntax trees, which takes longer than all else here.
    exec(program.removeprefix("\ufeff"), module.__dict__)  # noqa: S102  # a mark that a file may begin with
    return module.__dict__


def _feed(text: bytes) -> None:
    """Make the text this process's standard input; what a pipe does not hold, a process of its own writes."""
    source, sink = posix.pipe()
    posix.set_blocking(sink, False)
    try:
        rest = text[posix.write(sink, text) :]
    except BlockingIOError:
        rest = text
    posix.set_blocking(sink, True)
    if rest and not posix.fork():
        posix.close(source)
        for descriptor in (1, 2, ANSWERS):
            posix.close(descriptor)
        try:
            while rest:
                rest = rest[posix.write(sink, rest) :]
        finally:
            posix._exit(0)  # noqa: SLF001
    posix.dup2(source, 0)
    posix.close(source)
    posix.close(sink)


def _as_script(program: str, stdin: str) -> int:
    """Return the status with which the program ended; its answer is what it printed."""
    if stdin:
        _feed(stdin.encode())
    try:
        _module("__main__", program)
    except SystemExit as error:
        status = _status(error)
    else:
        status = 0
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()  # noqa: SLF001  # waits for threads, as an interpreter's end does
    import atexit  # noqa: PLC0415

    atexit._run_exitfuncs()  # noqa: SLF001
    if sys.stdout is not None and not getattr(sys.stdout, "closed", False):
        sys.stdout.flush()
    return status


def _called(program: str, function: str, args: "list[Any]", kwargs: "dict[str, Any]", most: int) -> int:
    """Send what the function returned; return the status to end with."""
    namespace = _module("program", program)
    if function not in namespace:
        _tell(b"E", f"NameError: the program defines no {function!r}")
        return 1
    parts: list[str] = []
    _encode(namespace[function](*args, **kwargs), parts, [most], 0)
    _send(b"A" + "".join(parts).encode("ascii"))
    return 0


def _encode(value: "Any", parts: "list[str]", left: "list[int]", depth: int) -> None:
    """Append ``value`` as JSON to ``parts``; ``left`` holds how many more bytes it may have.

    Of classes derived from the plain ones only what they hold counts, not what they override.
    """
    if depth > DEEPEST:
        raise _Refused(f"lists in lists more than {DEEPEST} deep, or a cycle")
    if value is None or value is True or value is False:
        _append({None: "null", True: "true", False: "false"}[value], parts, left)
    elif isinstance(value, str):
        _append(_quoted(str.__str__(value), left[0]), parts, left)
    elif isinstance(value, int):
        _append(_digits(value), parts, left)
    elif isinstance(value, float):
        _append(_finite(float.__repr__(value)), parts, left)
    elif isinstance(value, list | tuple):
        _encode_items(value, parts, left, depth)
    elif isinstance(value, dict):
        _encode_pairs(value, parts, left, depth)
    else:
        raise _Refused(f"answered a value of type {type(value).__name__}, which is not of JSON")


def _append(text: str, parts: "list[str]", left: "list[int]") -> None:
    left[0] -= len(text)
    if left[0] < 0:
        raise _TooLong("the answer is longer than an answer may be")
    parts.append(text)


def _encode_items(
    value: "list[Any] | tuple[Any, ...]", parts: "list[str]", left: "list[int]", depth: int
) -> None:
    before = "["
    for item in value:
        _append(before, parts, left)
        _encode(item, parts, left, depth + 1)
        before = ","
    _append("[]" if before == "[" else "]", parts, left)


def _encode_pairs(value: "dict[Any, Any]", parts: "list[str]", left: "list[int]", depth: int) -> None:
    before = "{"
    for key, item in value.items():
        if not isinstance(key, str):
            raise _Refused(f"a dictionary with a key of type {type(key).__name__}; keys have to be str")
        _append(before + _quoted(key, left[0]) + ":", parts, left)
        _encode(item, parts, left, depth + 1)
        before = ","
    _append("{}" if before == "{" else "}", parts, left)


def _digits(value: int) -> str:
    if int.bit_length(value) > _MOST_DIGITS * 3.32:
        raise _Refused(f"an integer of more than {_MOST_DIGITS} digits")
    return int.__repr__(value)


def _finite(text: str) -> str:
    if text in {"inf", "-inf", "nan"}:
        raise _Refused(f"the number {text}")
    return text


def _quoted(text: str, most: int) -> str:
    if len(text) > most:
        raise _TooLong("the answer is longer than an answer may be")
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    from _json import encode_basestring_ascii  # noqa: PLC0415  # a file of its own, and seldom needed

    return encode_basestring_ascii(text)


def _described(error: BaseException) -> str:
    """Return its type, text and place."""
    try:
        text = str(error)
    except BaseException as worse:  # noqa: BLE001
        text = f"(its text raised {type(worse).__name__})"
    line, at = None, error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == "<string>":
            line = at.tb_lineno
        at = at.tb_next
    where = "" if line is None else f" (line {line})"
    return f"{type(error).__name__}: {text[:_MOST_TEXT]}{where}"


def _status(error: SystemExit) -> int:
    """Return the status that an interpreter would have ended with."""
    code = error.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 255
    sys.stderr.write(str(code)[:_MOST_TEXT])
    return 1


def _tell(kind: bytes, text: str) -> None:
    _send(kind + text[: 2 * _MOST_TEXT].encode("utf-8", "backslashreplace"))


def _send(data: bytes) -> None:
    """Send what becomes of the test; a fork of it that comes here has nothing to say."""
    if [posix.getpid()] != _tester:
        return
    while data:
        data = data[posix.write(ANSWERS, data) :]


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:  # noqa: BLE001, S112  # they may be the program's own
            continue


if __name__ == "driver":
    main()
