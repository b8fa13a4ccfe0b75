"""Run the benchmarks and print their tables: ``python benchmarks/run.py [name ...]``.

A benchmark is a module beside this file with a function ``rows() -> list[Row]``, or with a ``main()`` that
prints for itself. The exit status is 1 if a promise was missed.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import sys
from pathlib import Path

from table import Row, render

HERE = Path(__file__).parent


def discover(folder: Path = HERE) -> dict[str, str]:
    """First line of the docstring of every benchmark, by name; nothing is imported."""
    found = {}
    for path in sorted(folder.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        if path.stem != "run" and functions & {"rows", "main"}:
            found[path.stem] = (ast.get_docstring(tree) or path.stem).splitlines()[0]
    return found


def run(name: str, title: str) -> bool:
    """Run one benchmark and print its table; whether every promise is kept."""
    module = importlib.import_module(name)
    if not hasattr(module, "rows"):
        print(title)
        module.main()
        return True
    rows: list[Row] = module.rows()
    print(render(f"{name}: {title}", rows))
    return all(row.holds for row in rows)


def main(arguments: list[str] | None = None) -> int:
    """Run what was named, or everything."""
    known = discover()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="*", metavar="NAME", help=f"of {', '.join(known)}; all by default")
    names = parser.parse_args(arguments).name or list(known)
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(known)}")
    kept = []
    for name in names:
        kept.append(run(name, known[name]))
        print(flush=True)
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
