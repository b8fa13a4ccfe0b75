"""An importer that a plugin brings, held to what the package's own do: it raises nothing but what is told."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.errors import EvidenceError
from pytest_prereg.evidence.importers.found import FoundBenchmark
from pytest_prereg.evidence.importers.numbers import value_of
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from pytest_prereg.evidence.importers.complaints import Complaints
    from pytest_prereg.registry.plugins import Brought


class ForeignImporter:
    """Fulfils :class:`~pytest_prereg.evidence.importers.found.Importer` with what a plugin brings."""

    def __init__(self, brought: Brought) -> None:
        self._brought = brought
        self._importer = brought.what
        self.name: str = brought.what.name
        self.repeat: str = brought.what.repeat

    def recognises(self, name: str, data: bytes) -> bool:
        """Whether the plugin's importer takes the file; one that raises doesn't."""
        try:
            return bool(self._importer.recognises(name, data))
        except (Exception, SystemExit):  # noqa: BLE001  # it was only asked; what is wrong is told when it reads
            return False

    def read(self, data: bytes, complaints: Complaints) -> list[FoundBenchmark]:
        """Return what the plugin found, checked.

        Raises:
            EvidenceError: What the plugin complained of; PR127: it failed, or returned no benchmarks.
        """
        try:
            found = msgspec.convert(self._importer.read(data, complaints), list[FoundBenchmark])
            builtins = msgspec.to_builtins(found)
            checked = msgspec.convert(builtins, list[FoundBenchmark])
        except EvidenceError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever a plugin raises is told as its own
            complaints.fail("PR127", f"{self._named}: {self._brought.failed_as(error, self._importer.read)}")
        self._check_numbers(checked, complaints)
        if not checked:
            complaints.add("PR110", f"the file holds no benchmark of format {quoted(self.name)}")
        complaints.raise_if_any()
        return checked

    def _check_numbers(self, found: list[FoundBenchmark], complaints: Complaints) -> None:
        for benchmark in found:
            readings: Any = (repeat.readings.items() for repeat in benchmark.repeats)
            for name, value in chain(benchmark.summaries.items(), *readings):
                if isinstance(wrong := value_of(value), str):
                    complaints.add("PR127", f"{self._named}: reading {quoted(name)} {wrong}")

    @property
    def _named(self) -> str:
        return f"plugin {quoted(self._brought.plugin)} could not read it as {quoted(self.name)}"
