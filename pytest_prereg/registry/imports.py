"""Which modules of a repository a module imports, found without importing any.

Names are looked up where the fork server would find them (the study's folder comes first on ``sys.path``),
then in the repository's root and its ``src``, then beside the importing file. What is found nowhere there is
somebody else's and does not count; what is computed at run time (``import_module(name)``) can't be seen.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.registry.trees import MODULES_KEPT, parse, walk_in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Imported(msgspec.Struct, kw_only=True, frozen=True):
    """A dotted name as an import statement has it."""

    level: int
    """Leading dots."""
    name: str
    """Without the dots; may be empty (``from . import b``, where ``b`` is looked up as well)."""


class Scope(msgspec.Struct, kw_only=True, frozen=True):
    """Where modules are looked for."""

    roots: tuple[Path, ...]
    """Folders for absolute names, the first to have it wins; the importing file's own is asked last."""
    within: Path
    """The folder that a file must lie in to count, with symbolic links resolved."""


def repository_root(path: Path) -> Path | None:
    """The work tree of the git repository that holds ``path``, found without running git."""
    return next((parent for parent in path.resolve().parents if (parent / ".git").exists()), None)


@lru_cache(maxsize=MODULES_KEPT)
def imported_names(text: bytes) -> tuple[Imported, ...]:
    """Every module that the text may import, in the order of the text; none where it is no Python.

    ``from a import b`` yields ``a.b``, since ``b`` may be a module; looking it up finds ``a`` on the way.
    """
    try:
        tree = parse(text)
    except SyntaxError:
        return ()
    return tuple(_names(tree))


def _names(tree: ast.Module) -> Iterator[Imported]:
    for node in walk_in_order(tree):
        if isinstance(node, ast.Import):
            yield from (Imported(level=0, name=alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                parts = [node.module, alias.name if alias.name != "*" else None]
                yield Imported(level=node.level, name=".".join(part for part in parts if part))


def resolve(imported: Imported, importer: Path, scope: Scope) -> list[Path]:
    """Files that an import runs: the module's, after the ``__init__.py`` of every package on the way.

    Args:
        imported: The name.
        importer: File of the importing module, absolute.
        scope: Where to look.
    """
    if imported.level:
        base = importer.parents[min(imported.level, len(importer.parents)) - 1]
        return _existing([base / "__init__.py", *_files(base, imported.name)], scope)
    found = (_existing(_files(root, imported.name), scope) for root in (*scope.roots, importer.parent))
    return next(filter(None, found), [])


def _files(base: Path, name: str) -> Iterator[Path]:
    """Candidates for ``a.b.c`` below ``base``: each may be a package or a module, the package first."""
    for part in name.split(".") if name else ():
        package = base / part / "__init__.py"
        yield package if package.is_file() else base / f"{part}.py"
        base /= part


def _existing(files: Iterable[Path], scope: Scope) -> list[Path]:
    found = [path.resolve() for path in files if path.is_file()]
    return [path for path in found if path.is_relative_to(scope.within)]
