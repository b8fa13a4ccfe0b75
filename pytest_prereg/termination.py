"""SIGTERM ends a ``--prereg`` session as Ctrl-C does, wherever it is: with what was kept, and how to go on.

Python's own handler makes a KeyboardInterrupt of SIGINT, which pytest catches around collection and running;
SIGTERM would kill the process at once.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    Handler = Callable[[int, FrameType | None], object]


class Termination:
    """Handles SIGTERM from the start of the session to its end, unless somebody else does."""

    def __init__(self) -> None:
        self._is_ours = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Begin: from here on pytest says what was kept, and not the kernel that the process was killed."""
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._is_ours = _handle(_interrupt)

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Let nothing interrupt what an interruption has to say."""
        self._finish()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Let the run write down what it has; it is about to end by itself."""
        self._finish()

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Leave the signal as it was."""
        if self._is_ours:
            self._is_ours = False
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _finish(self) -> None:
        if self._is_ours:
            _handle(_wait)


def _handle(handler: Handler) -> bool:
    try:
        signal.signal(signal.SIGTERM, handler)
    except ValueError:  # not the main thread: whoever has it decides
        return False
    return True


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _wait(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: unlike what is ignored, a handler is not handed on to programs that are started."""
