"""What the executor and a container tell each other: JSON, and no object of anybody's."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from pytest_prereg.errors import Problem
from pytest_prereg.measure.executors import wire
from pytest_prereg.measure.executors.base import Job, Result
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
    whose: str = ""
    """What :func:`whose` says of the repeat."""
    mark: str = ""
    """Under which the attempt's body begins once, whatever calls are made for it; "" where none is."""
    app: str = ""


class Answer(msgspec.Struct, kw_only=True, frozen=True):
    """Container to executor: how a repeat ended, and which one that was."""

    whose: str
    result: Result
    instead: str = ""
    """The call that had begun the attempt before: nothing ran, and what that comes to is the result."""


class Look(msgspec.Struct, kw_only=True, frozen=True):
    """Container to executor: what it is, and why the experiment can't be imported there, if it can't."""

    versions: dict[str, str]
    """Of Python, and of what is installed there that measurements commonly run through."""
    environment: dict[str, Any]
    problem: Problem | None = None


class Mark(msgspec.Struct, kw_only=True, frozen=True):
    """One start of a call, as its container marked it."""

    container: str
    whose: str = ""
    """Which repeat it was asked to run."""
    imported: bool = False
    """Whether it had come to its body."""
    answer: str | None = None
    """What its body had come to: an :class:`Answer`, as JSON."""


def whose(study: str, experiment: str, job: Job) -> str:
    """Return a digest of a repeat: of whose study it is, and of all that its container is told to run.

    A call is found again by what evidence says, and evidence is a file that others write, too: only what has
    this is an answer for the repeat.
    """
    return hashlib.sha256(wire.encode([study, experiment, job])).hexdigest()
