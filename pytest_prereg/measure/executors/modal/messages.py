"""What the executor and a container tell each other: JSON, and no object of anybody's."""

from __future__ import annotations

from typing import Any

import msgspec

from pytest_prereg.errors import Problem
from pytest_prereg.measure.executors.base import Job
from pytest_prereg.measure.executors.messages import Setup

STUDY = "prereg_study"
"""Folder beside the package, in a container, that holds what the study is made of."""


class Errand(msgspec.Struct, kw_only=True, frozen=True):
    """Executor to container: what to import, and the repeat to run."""

    experiment: str
    setup: Setup
    """Its files and folders are relative to :data:`STUDY`."""
    folder: str
    """The study's own folder, relative to that."""
    env: dict[str, str] = {}
    fresh: bool = False
    marks: str
    """Name of the Dict in which starts are marked."""
    job: Job | None = None
    """``None`` where nothing is to run: only whether it could is asked."""


class Look(msgspec.Struct, kw_only=True, frozen=True):
    """Container to executor: what it is, and why the experiment can't be imported there, if it can't."""

    versions: dict[str, str]
    """Of Python, and of what is installed there that measurements commonly run through."""
    environment: dict[str, Any]
    problem: Problem | None = None


class Mark(msgspec.Struct, kw_only=True, frozen=True):
    """One start of a call, as its container marked it."""

    container: str
    imported: bool = False
    """Whether it had come to its body."""
    answer: str | None = None
    """What its body had come to: a result, as JSON."""
