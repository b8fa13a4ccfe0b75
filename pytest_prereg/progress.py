"""Progress of a measurement on the terminal: which repeat runs, how long is left; never a value."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pytest_prereg.measure.limits import duration_text
from pytest_prereg.measure.progress import FailureNotice, WaitNotice

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator

    import pytest

    from pytest_prereg.evidence.model import Finished, Started
    from pytest_prereg.measure.progress import Progress as Repeating

REWRITE = "\r\x1b[K"
"""To the start of the line, and what is there erased."""


class Progress:
    """A line for each experiment, which a terminal shows being rewritten before each repeat."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._line: str | None = None
        self._notice = WaitNotice(self._say)

    def start(self, experiment: str, missing: int, planned: int, *, may_end_early: bool = False) -> None:
        """Say what is going to be measured, on a line of its own."""
        most = "at most " if may_end_early else ""
        self.note(f"{experiment}: measuring {most}{missing} of {planned} repeats")

    def note(self, text: str) -> None:
        """Say something on a line of its own, before anything is measured."""
        with self._terminal() as reporter:
            if reporter:
                if self._line is not None:
                    reporter.write("\n")
                self._line = text
                reporter.ensure_newline()
                reporter.write(self._line, flush=True)

    def repeat(self, now: Repeating) -> None:
        """Say which repeat is about to run, or that it has to wait; of a long wait a line stays."""
        self._notice.repeat(now)
        text = progress_text(now)
        with self._terminal() as reporter:
            if reporter and reporter.isatty:
                reporter.write(REWRITE + text[: reporter._tw.fullwidth - 1], flush=True)  # noqa: SLF001

    def failures(self, experiment: str, arms: Collection[str]) -> Callable[[Started, Finished], None]:
        """Return what is told how each repeat ended, to say so where every arm fails from the start."""
        return FailureNotice(experiment, arms, self._say).ended

    def end(self, item: pytest.Item) -> None:
        """Go back to the line that pytest writes about the item, if there was anything to say."""
        if self._line is None:
            return
        with self._terminal() as reporter:
            if reporter.isatty:
                reporter.write(REWRITE + self._line)
            reporter.pytest_runtest_logstart(item.nodeid, item.location)
        self._line = None

    def _say(self, text: str) -> None:
        """Leave a line between what is measured and its progress."""
        with self._terminal() as reporter:
            if reporter:
                reporter.write(f"{REWRITE}{text}\n" if reporter.isatty else f"\n{text}\n", flush=True)

    @contextmanager
    def _terminal(self) -> Generator[Any]:
        """The terminal, with nothing captured; ``None`` where there is none, or it is to be quiet."""
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        capture: Any = self._config.pluginmanager.get_plugin("capturemanager")
        if reporter is None or reporter.verbosity < 0:
            yield None
        elif capture is None:
            yield reporter
        else:
            with capture.global_and_fixture_disabled():
                yield reporter


def progress_text(now: Repeating) -> str:
    """Return the line: experiment, block, arm, how many are done, time that is left, cost so far."""
    most = "at most " if now.may_end_early else ""
    arm = [now.arm] if now.arm else []
    repeat = "warm-up" if now.warmup else f"{now.done + 1} of {most}{now.planned}"
    again = [f"attempt {now.attempt}"] if now.attempt > 1 and not now.warmup else []
    waiting = ["waiting for the machine"] if now.waiting else []
    left = [f" {most}{duration_text(round(now.seconds_left))} left"] if now.seconds_left is not None else []
    block = f"block {now.block} of {most}{now.blocks}"
    return "  ".join([now.experiment, block, *arm, repeat, *again, *waiting, *left, f" ${now.usd:.2f}"])
