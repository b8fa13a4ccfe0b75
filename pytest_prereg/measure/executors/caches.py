"""Compile caches that are empty when a repeat begins.

A server sets their variables before it imports anything, since some libraries read them when imported, and
the folders that they name are made anew for each repeat. What a module has compiled into memory while it was
imported is in the server, and every repeat has it; so has it what the kernel keeps of files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.measure.executors import scratch
from pytest_prereg.registry.caches import COMPILE_CACHES

if TYPE_CHECKING:
    from pathlib import Path


def fresh(folder: Path) -> dict[str, str]:
    """Make empty caches in a server's ``folder``; return the variables that name them."""
    renew(folder)
    return {name: str(folder / scratch.CACHES / cache) for name, cache in COMPILE_CACHES.items()}


def renew(folder: Path) -> None:
    """Empty the caches in a server's ``folder``."""
    remove(folder)
    for cache in COMPILE_CACHES.values():
        (folder / scratch.CACHES / cache).mkdir(parents=True)


def remove(folder: Path) -> None:
    """Remove the caches in a server's ``folder``."""
    scratch.remove_tree(folder / scratch.CACHES)
