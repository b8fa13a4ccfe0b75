"""Bytecode of what every container imports of this package: it would compile the source anew.

A container's Python believes a file of it only if the source beside it is the one that was compiled, and only
if it is of the same release as the one here.
"""

from __future__ import annotations

import dis
import importlib.util
import marshal
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

PACKAGE = "pytest_prereg"
STARTS = (f"{PACKAGE}.measure.executors.modal.inside", f"{PACKAGE}.measure.executors.forkserver")
"""What the two processes of a container import first."""
CHECKED = (0b11).to_bytes(4, "little")
"""That the hash of the source is compared (PEP 552): dates are not those of the files here."""


def write(folder: Path) -> None:
    """Write the bytecode into a folder, laid out as the package; none where asserts are left out here."""
    if sys.flags.optimize or sys.implementation.cache_tag is None:
        return
    home = Path(__file__).parents[3]
    for path, compiled in _compiled(home.parent):
        place = folder / path.relative_to(home).parent / "__pycache__"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{path.stem}.{sys.implementation.cache_tag}.pyc").write_bytes(compiled)


def _compiled(root: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield each module that is imported as a container starts, with its bytecode."""
    seen, left = set[Path](), [*STARTS]
    while left:
        path = _file(root, left.pop())
        if path is None or path in seen:
            continue
        seen.add(path)
        source = path.read_bytes()  # never what was compiled before, which may be of other text
        head = importlib.util.MAGIC_NUMBER + CHECKED + importlib.util.source_hash(source)
        code = SourceFileLoader(PACKAGE, str(path)).source_to_code(source, str(path))
        yield path, head + marshal.dumps(code)
        left += _imported(code)


def _file(root: Path, name: str) -> Path | None:
    if name.partition(".")[0] != PACKAGE:
        return None
    place = root.joinpath(*name.split("."))
    found = (place.with_suffix(".py"), place / "__init__.py")
    return next((path for path in found if path.is_file()), None)


def _imported(code: CodeType) -> Iterator[str]:
    """Yield what a module imports as it is imported itself, and every package on the way.

    What it imports for type checkers alone is left out, and so is what its functions import.
    """
    module, skipped, guarded = "", 0, False
    for step in dis.get_instructions(code):
        if step.offset < skipped:
            continue
        if guarded and step.opcode in (*dis.hasjrel, *dis.hasjabs):
            skipped, guarded = step.argval, False
        guarded = guarded or (step.opname.startswith("LOAD_") and step.argval == "TYPE_CHECKING")
        if step.opname == "IMPORT_NAME":
            module = step.argval
            parts = module.split(".")
            yield from (".".join(parts[: n + 1]) for n in range(len(parts)))
        elif step.opname == "IMPORT_FROM":
            yield f"{module}.{step.argval}"
