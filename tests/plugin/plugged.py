"""Packages with an entry point, written as an installer would, from what the documentation shows."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "plugins.md"
_EXAMPLE = re.compile(r"^## [^\n]*`(pytest_prereg_\w+)`$.*?^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = dict(_EXAMPLE.findall(DOCS.read_text(encoding="utf-8")))
"""Module by hook: the first that is shown of each."""


def write_package(folder: Path, source: str, name: str = "plugged") -> Path:
    """Writes a module with its metadata, and returns the folder that has to be on the path."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[pytest_prereg]\n{name} = {name}_module\n")
    (folder / f"{name}_module.py").write_text(source)
    return folder
