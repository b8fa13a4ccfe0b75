"""The weaker mode, asked for by name: a process and its limits, where no namespaces can be made.

What a program starts is found by whom it belongs to: by its user where the supervisor is root, and else by
its parents. What has lost its parent comes to the supervisor and is killed at once.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_prereg.measure.executors import processes, scratch
from pytest_prereg.measure.workloads.sandbox import staging, watching
from pytest_prereg.measure.workloads.sandbox.boxes import Box
from pytest_prereg.measure.workloads.sandbox.priority import come_first

if TYPE_CHECKING:
    from pytest_prereg.measure.workloads.sandbox.boxes import Owner, Recipe
    from pytest_prereg.measure.workloads.sandbox.reactor import Reactor

WORKLOAD_VERSION = "2"

_PLACES = ("/tmp", "/var/tmp")  # noqa: S108  # a new folder of a name that nobody knows, in either
_LOOKS = 2
_PASSES = 1000
"""How often processes that fork meanwhile are killed; with their number limited, few are enough."""


class WeakBox(Box):
    """A sandbox without namespaces."""

    drivers: set[int] = set()  # noqa: RUF012  # of all that live
    """Pids of the drivers of all of them."""

    def __init__(self, recipe: Recipe, user: int | None, reactor: Reactor, owner: Owner) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="prereg-sandbox-", dir=_place(user)))
        if user is not None:
            os.chown(self._folder, user, user)
        try:
            super().__init__(recipe, user, reactor, owner)
        except BaseException:
            scratch.remove_tree(self._folder)
            raise
        self.drivers.add(self.pid)
        self._handle = os.pidfd_open(self.pid)

    def kill(self) -> None:
        """Kill the driver, and all that belongs to the program."""
        self.killed_at = self.killed_at or time.monotonic()
        self._kill_members(spare=None)

    def force(self) -> None:
        """Kill whatever is left of it."""
        self.kill()

    def _setting(self) -> dict[str, Any]:
        return {**self.recipe.setting, "folder": str(self._folder)}

    def _become_ready(self) -> None:
        self.init = self.pid
        self._note_ready()

    def _hung_up(self) -> None:
        self.kill()

    def _clear_up(self) -> None:
        self._kill_members(spare=self.pid)

    def look(self) -> None:
        """Hold what its processes take against the limits, and kill those that lost their parents."""
        if self.user is None:
            _kill(_orphans(self.drivers))
        super().look()

    def _members(self) -> list[int]:
        if self.user is None:
            return watching.family(self.pid)
        return processes_of(self.user)

    def _files_problem(self) -> str | None:
        return None  # they are among everyone's

    def _kill_members(self, *, spare: int | None) -> None:
        """Kill its processes but ``spare``, until looking twice finds none that was not known to be dead.

        Once is not enough: one that is found may fork unseen, and be dead when its turn comes.
        """
        dead: set[int] = set()
        quiet = 0
        for _ in range(_PASSES):
            found = {*self._members(), *(_orphans(self.drivers) if self.user is None else ())} - {spare}
            quiet = quiet + 1 if found <= dead else 0
            if quiet == _LOOKS:
                break
            living = [pid for pid in found if _lives(pid)]
            dead |= found.difference(living)
            _kill(living)
            _reap(_orphans(self.drivers))

    def _all_ended(self) -> None:
        self._kill_members(spare=None)
        self.drivers.discard(self.pid)
        scratch.remove_tree(self._folder)
        super()._all_ended()


def _place(user: int | None) -> str | None:
    """Return where ``user`` can have a folder; ``None`` is where this process has its own."""
    if user is None or staging.closed(Path(tempfile.gettempdir()) / "any") is None:
        return None
    return next((name for name in _PLACES if Path(name).is_dir()), None)


def processes_of(user: int) -> list[int]:
    """Return the pids of all processes of a user."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _belongs(name, user)]  # noqa: PTH208


def _belongs(name: str, user: int) -> bool:
    try:
        return os.stat(f"/proc/{name}").st_uid == user  # noqa: PTH116  # a Path for each would cost more
    except OSError:
        return False


def _orphans(drivers: set[int]) -> list[int]:
    return [pid for pid in watching.children(os.getpid()) if pid not in drivers]


def _lives(pid: int) -> bool:
    fields = processes.stat_of(pid)
    return fields is not None and fields[0] not in {b"Z", b"X"}


def _kill(pids: list[int]) -> None:
    """Kill them, and let them come first: each has to run once more for that, behind all that spin."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
            come_first(pid)


def _reap(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
