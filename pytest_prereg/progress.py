"""Progress of a measurement on the terminal: which repeat runs, how long is left; never a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

    from pytest_prereg.measure.loop import Progress as Repeating


class Progress:
    """A line that is rewritten on a terminal, and a line per experiment elsewhere."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def start(self, experiment: str, missing: int, planned: int) -> None:
        """Say what is going to be measured."""
        self._show(f"{experiment}: measuring {missing} of {planned} repeats", last=True)

    def repeat(self, now: Repeating) -> None:
        """Say which repeat is about to run."""
        left = (now.planned - now.done) * now.seconds_per_repeat if now.seconds_per_repeat else None
        about = f"   {left:.0f} s left" if left is not None else ""
        self._show(
            f"{now.experiment}  block {now.block}  {now.arm}  {now.done + 1} of {now.planned}{about}",
            last=False,
        )

    def _show(self, text: str, *, last: bool) -> None:
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or reporter.verbosity < 0:
            return
        if not reporter.isatty:
            if last:
                self._write(reporter, f"{text}\n")
            return
        self._write(reporter, f"\r\x1b[K{text}" + ("\n" if last else ""))

    def _write(self, reporter: Any, text: str) -> None:
        capture: Any = self._config.pluginmanager.get_plugin("capturemanager")
        if capture is None:
            reporter.write(text, flush=True)
            return
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline() if not reporter.isatty else None
            reporter.write(text, flush=True)
