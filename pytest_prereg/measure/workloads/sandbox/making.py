"""How sandboxes are made on this machine, and what they lack there."""

from __future__ import annotations

import marshal
import os
import platform
import pwd
import re
import resource
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_prereg.measure.workloads.sandbox import bubblewrap, seccomp, staging, watching
from pytest_prereg.measure.workloads.sandbox.boxes import FILTER, Recipe

if TYPE_CHECKING:
    from pytest_prereg.measure.workloads.sandbox.messages import Setup

WORKLOAD_VERSION = "1"

WEAKER = (
    'write isolation = "processes", which is weaker: programs then see this machine\'s files and processes'
)
"""What to do where namespaces can't be made."""

_START = "import marshal,posix;exec(marshal.loads(posix.pread(5,1048576,0)),{'__name__':'driver'})"
_DRIVER = Path(__file__).with_name("driver.py")
_DESCRIPTORS, _DESCRIPTORS_EACH = 64, 8
"""Open files of the supervisor, and with each sandbox."""
_COUNTS_BY_NAMESPACE = (5, 14)
"""Since this kernel, processes are counted for each namespace apart, and not for a user as a whole."""


_BESIDE = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_MSGQUEUE: 0,
    resource.RLIMIT_MEMLOCK: resource.getpagesize() * 16,
}
"""Of what no setting tells, and what some kernels won't limit, such as gVisor's (``setableLimits``)."""


class UnavailableError(RuntimeError):
    """No such sandbox can be made here; the text says why, and what to do."""


def advised(isolation: str, problem: str | None) -> str | None:
    """Return what was wrong with a first sandbox, and what to do."""
    if problem is None:
        return None
    if isolation != "namespaces":
        return f"no process could be started for a program: {problem}"
    return (
        f"bubblewrap could not make a sandbox: {problem}; allow user namespaces to users who are not root "
        f"(user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns), or {WEAKER}"
    )


class Made(NamedTuple):
    """How sandboxes can be made here."""

    recipe: Recipe
    users: list[int]
    """Whom they run as, each as another; none: as whoever makes them."""
    missing: list[str]
    """What is weaker than it should be, a sentence each."""


def in_namespaces(setup: Setup, users: list[int]) -> Made:
    """Return how to make sandboxes in namespaces of their own.

    Raises:
        UnavailableError: That is not possible here.
    """
    bwrap = bubblewrap.installed()
    if bwrap is None:
        raise UnavailableError(
            "bubblewrap (bwrap) is not installed, or not on the PATH (apt and dnf call it bubblewrap): "
            f"install it, or {WEAKER}"
        )
    interpreter = bubblewrap.this_interpreter()
    _show([*_needed(setup, interpreter), Path(bwrap)], users)
    filtered, missing = _filter()
    if not bubblewrap.can_disable_namespaces(bwrap) and filtered is None:
        missing.append("programs can make namespaces of their own: this bubblewrap has no --disable-userns")
    counted = bool(users) or _kernel() >= _COUNTS_BY_NAMESPACE
    if not counted:
        missing.append("processes are counted only every few milliseconds: this kernel is older than 5.14")
    missing += [*_unwatched(), *_unlimited()]
    command = bubblewrap.command(
        bwrap,
        interpreter,
        packages=setup.packages,
        disk=setup.limits.disk,
        filtered=None if filtered is None else FILTER,
    )
    recipe = Recipe(
        command=[*command, *_driver(interpreter)],
        environment=bubblewrap.ENVIRONMENT,
        code=_code(),
        filter=filtered,
        setting={
            "alone": True,
            "answer": setup.limits.answer,
            "limits": _resources(setup, setup.limits.processes if counted else None),
            "packages": [str(path) for path in bubblewrap.packages_inside(setup.packages)],
        },
        limits=setup.limits,
        contained=True,
    )
    return Made(recipe, users, missing)


def in_processes(setup: Setup, users: list[int]) -> Made:
    """Return how to make sandboxes that are mere processes.

    Raises:
        UnavailableError: Even that is not possible here.
    """
    interpreter = bubblewrap.this_interpreter()
    users, unseen = _those_who_see(_needed(setup, interpreter), users)
    if unseen and setup.isolation == "auto":  # who leaves the choice does not ask for root
        raise UnavailableError(f'{unseen[0]}; isolation = "processes" runs them as root')
    filtered, missing = _filter()
    count = setup.limits.processes
    if not users:
        count = _running(os.getuid()) + count * (setup.workers + setup.warm)
    recipe = Recipe(
        command=_driver(interpreter),
        environment=bubblewrap.ENVIRONMENT,
        code=_code(),
        filter=None,
        setting={
            "alone": False,
            "answer": setup.limits.answer,
            "filter": b"" if filtered is None else os.pread(filtered, 1 << 16, 0),
            "limits": _resources(setup, count),
            "packages": [str(path) for path in setup.packages],
        },
        limits=setup.limits,
        contained=False,
    )
    return Made(recipe, users, [*missing, *_of_processes(users), *unseen, *_unwatched(), *_unlimited()])


def _those_who_see(paths: list[Path], users: list[int]) -> tuple[list[int], list[str]]:
    """Return ``users`` if they can be shown ``paths``; else none, and why: a machine without is no rarity.

    In most containers root may not mount anything, and its Python often lies below ``/root``.
    """
    try:
        _show(paths, users)
    except UnavailableError as error:
        return [], [f"programs don't run as users of their own: {error}"]
    return users, []


def _of_processes(users: list[int]) -> list[str]:
    who = "a user of their own" if users else _user_name()
    shared = [
        f"no namespaces: programs run as {who}, may read what this user may, and see all processes",
        "no limit on the number and sum of files, but on the size of each",
        "sockets of other programs in the file system can be connected to",
        "if the supervisor is killed, what a program has started may outlive it",
    ]
    if users:
        return shared
    return [
        *shared,
        "programs may write to this user's files, and kill this user's processes, the supervisor among them",
        "processes are counted together with all others of this user",
        "a process that leaves its parent is killed when that is noticed, some 30 ms later",
    ]


def _user_name() -> str:
    """Return the name of the user of this process."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"


def _needed(setup: Setup, interpreter: bubblewrap.Interpreter) -> list[Path]:
    return [*interpreter.folders, interpreter.executable, *setup.packages]


def _show(paths: list[Path], users: list[int]) -> None:
    if not users:
        return
    closed = ", ".join(sorted(str(path) for path in paths if staging.closed(path)))
    try:
        staging.show(paths)
    except OSError as error:
        raise UnavailableError(
            f"only root can enter {closed}, and that can't be shown to others ({error}): install Python "
            "where all may enter, or run as another user"
        ) from None


def _filter() -> tuple[int | None, list[str]]:
    try:
        return seccomp.make_filter(), []
    except OSError as error:
        return None, [f"no filter of system calls: {error}"]


def _unlimited() -> list[str]:
    refused = [number for number in _BESIDE if not _can_be_set(number)]
    return ["this kernel sets no limit on message queues, core dumps or locked memory"] if refused else []


def _unwatched() -> list[str]:
    if watching.tells_memory():
        return []
    return ["memory is limited per process and not in sum: this kernel has no RssAnon in /proc/PID/status"]


def _code() -> int:
    descriptor = os.memfd_create("driver", os.MFD_CLOEXEC)
    source = _DRIVER.read_text("utf-8")
    os.write(descriptor, marshal.dumps(compile(source, "<driver>", "exec", dont_inherit=True)))
    return descriptor


def _driver(interpreter: bubblewrap.Interpreter) -> list[str]:
    return [str(interpreter.executable), "-I", "-S", "-X", "utf8", "-c", _START]


def _resources(setup: Setup, processes: int | None) -> list[tuple[int, tuple[int, int]]]:
    """Return what the driver sets its limits to.

    Raises:
        UnavailableError: This process has less itself.
    """
    limits, cpu = setup.limits, setup.limits.cpu_seconds
    asked = [
        ("memory", resource.RLIMIT_AS, limits.memory),
        ("file_size", resource.RLIMIT_FSIZE, limits.file_size),
        ("open_files", resource.RLIMIT_NOFILE, limits.open_files),
        *([] if processes is None else [("processes", resource.RLIMIT_NPROC, processes)]),
        ("cpu", resource.RLIMIT_CPU, cpu + 1),  # one more for a program that does not mind the signal
    ]
    _refuse_more_than_own(setup, asked)
    values: list[tuple[int, Any]] = [(number, value) for _, number, value in asked[:-1]]
    values += [(number, most) for number, most in _BESIDE.items() if _can_be_set(number)]
    return [*((number, (value, value)) for number, value in values), (resource.RLIMIT_CPU, (cpu, cpu + 1))]


def _can_be_set(number: int) -> bool:
    try:
        resource.setrlimit(number, resource.getrlimit(number))
    except (OSError, ValueError):
        return False
    return True


def _refuse_more_than_own(setup: Setup, asked: list[tuple[str, int, int]]) -> None:
    """Refuse what would fail later, or with many workers only."""
    problems = []
    for name, number, value in asked:
        own = resource.getrlimit(number)[1]
        if own != resource.RLIM_INFINITY and own < value:
            problems.append(f"{name}: {value} are wanted, and this process may have {own} itself")
    own = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = _DESCRIPTORS + _DESCRIPTORS_EACH * (setup.workers + setup.warm)
    if own != resource.RLIM_INFINITY and own < wanted:
        problems.append(
            f"workers and warm: so many need {wanted} open files, and this process may have {own} itself"
        )
    if problems:
        raise UnavailableError(f"{'; '.join(problems)}: give less, or raise the hard limits (ulimit -H)")


def _kernel() -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", platform.release())[:2])


def _running(user: int) -> int:
    """Return how many threads a user has now."""
    from pytest_prereg.measure.workloads.sandbox.weaker import processes_of  # noqa: PLC0415

    return watching.threads(processes_of(user))
