"""The command ``pytest-prereg``, whole: importing a module of commands adds them to it."""

from __future__ import annotations

from pytest_prereg.commands import gating, measuring, reading, registering, starting
from pytest_prereg.commands.group import main

__all__ = ["gating", "main", "measuring", "reading", "registering", "starting"]
