"""The modules of a repository that an experiment runs, and what counts of each in its source digest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_prereg.registry.builtins import modules_of_package, workload_versions
from pytest_prereg.registry.declarations import is_ours
from pytest_prereg.registry.imports import Imported, Scope, imported_names, resolve
from pytest_prereg.registry.trees import tree_digest

if TYPE_CHECKING:
    from collections.abc import Iterable


def module_graph(
    start: Iterable[Path], last: Iterable[Path], scope: Scope, subject: frozenset[Path]
) -> dict[Path, list[Any]]:
    """Modules as they are met, each as the digest of its tree and the numbers of those that it imports.

    Numbers stand for paths: files may move, and yet two modules that trade places make a difference.

    Args:
        start: Files to begin with.
        last: Files of which those that nothing has led to come after all others.
        scope: Where modules are looked for.
        subject: Files that are left out, and yet followed: what they import counts, after all that is reached
            without them and whatever the order in which they import it.
    """
    graph = _Graph(scope, subject)
    graph.follow(start)
    graph.follow(last)
    while beyond := graph.beyond():
        graph.follow(beyond)
    return graph.modules


class _Graph:
    """Follows imports from module to module; the subject's are put off."""

    def __init__(self, scope: Scope, subject: frozenset[Path]) -> None:
        self.scope = scope
        self.subject = subject
        self.modules: dict[Path, list[Any]] = {}
        self._met: list[Path] = []
        self._of_subject: list[Path] = []
        self._passed = 0
        """How many modules of the subject were looked into."""

    def follow(self, start: Iterable[Path]) -> None:
        """Take in these modules, and all that they lead to."""
        self._meet(start)
        while len(self.modules) < len(self._met):
            path = self._met[len(self.modules)]
            text = path.read_bytes()
            found = self._imports(path, text)
            self._meet(edge for edge in found if isinstance(edge, Path))
            counted = (edge for edge in found if edge not in self.subject)
            numbers = [self._met.index(edge) if isinstance(edge, Path) else edge for edge in counted]
            self.modules[path] = [tree_digest(text), numbers]

    def beyond(self) -> list[Path]:
        """Modules that the subject alone has led to since this was last asked, by path."""
        found: set[Path] = set()
        while self._passed < len(self._of_subject):
            path = self._of_subject[self._passed]
            self._passed += 1
            paths = [edge for edge in self._imports(path, path.read_bytes()) if isinstance(edge, Path)]
            self._meet(edge for edge in paths if edge in self.subject)
            found.update(edge for edge in paths if edge not in self.subject)
        return sorted(found.difference(self._met))

    def _meet(self, paths: Iterable[Path]) -> None:
        for path in paths:
            known = self._of_subject if path in self.subject else self._met
            if path not in known:
                known.append(path)

    def _imports(self, path: Path, text: bytes) -> list[Any]:
        return [edge for imported in imported_names(text) for edge in edges(imported, path, self.scope)]


def edges(imported: Imported, importer: Path, scope: Scope) -> list[Any]:
    """Files that an import leads to; of this package versions of workloads, which stand for code."""
    if imported.level or not is_ours(imported.name):
        return list(resolve(imported, importer, scope))
    modules = modules_of_package(imported, importer)
    return [version for module in modules for version in workload_versions(module)]
