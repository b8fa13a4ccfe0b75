"""What the plugin costs a project that has it installed and doesn't use it."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from table import Row

HEAVY = {"numpy", "scipy", "torch", "msgspec", "pint", "click", "tomllib", "tomli_w"}
ROUNDS = 11

IMPORT = """
import json, pytest, sys, time
import _pytest.config
before = set(sys.modules)
began = time.perf_counter(), time.process_time()
import pytest_prereg.plugin
wall, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
print(json.dumps([wall, cpu, sorted(set(sys.modules) - before)]))
"""


def environment() -> dict[str, str]:
    """This one, with no plugin loaded by itself, and compiled modules kept."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def import_once() -> tuple[float, float, list[str]]:
    """Import the entry point where pytest is imported already: wall and CPU milliseconds, modules added."""
    command = [sys.executable, "-c", IMPORT]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, env=environment()).stdout
    wall, cpu, modules = json.loads(printed)
    return 1000 * wall, 1000 * cpu, modules


def collect_once(folder: Path, *options: str) -> float:
    """Milliseconds of ``pytest --co -q`` in an empty folder."""
    command = [sys.executable, "-m", "pytest", "--co", "-q", "-p", "no:cacheprovider", *options]
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, capture_output=True, check=False, env=environment())
    return 1000 * (time.perf_counter() - began)


def modules_loaded(folder: Path, *options: str) -> set[str]:
    """Top-level modules that a whole run of bare pytest, or of pytest with us, has loaded at its end."""
    script = (
        "import pytest, sys; pytest.main(sys.argv[1:]); "
        "print('\\n' + ' '.join(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    command = [sys.executable, "-c", script, "--co", "-q", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, env=environment())
    return set(done.stdout.splitlines()[-1].split())


def rows() -> list[Row]:
    """Import time, modules, and a whole empty collection with and without the plugin, interleaved."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        imports = [import_once() for _ in range(ROUNDS)]
        pairs = [
            (collect_once(folder, "-p", "pytest_prereg.plugin"), collect_once(folder)) for _ in range(ROUNDS)
        ]
        added = modules_loaded(folder, "-p", "pytest_prereg.plugin") - modules_loaded(folder)
    ours, bare = (min(column) for column in zip(*pairs, strict=True))
    walls, cpus, modules = zip(*imports, strict=True)
    return [
        Row(what="import of the plugin, median", ours=statistics.median(walls), unit="ms", limit=5),
        Row(what="the same, CPU time alone", ours=statistics.median(cpus), unit="ms"),
        Row(what="the same, fastest", ours=min(walls), unit="ms"),
        Row(what="modules it imports", ours=len(modules[0]), unit=""),
        Row(what="heavy modules it adds to a run", ours=len(added & HEAVY), unit="", limit=0),
        Row(
            what="pytest --co -q on nothing, fastest", ours=ours, other=bare, against="without it", unit="ms"
        ),
    ]
