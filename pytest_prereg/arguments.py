"""What ``--prereg`` does to the command line before anybody else reads it.

Studies are selected in place of tests, and whatever would run an item twice, in parallel, under coverage or
under a timer is refused where it was typed, and switched off where configuration asks for it: measuring again
until a prediction is supported is not a test.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pytest_prereg.registry.load import find_studies

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

AGAIN = "measuring again until a prediction is supported is not a test. Register more\n    repeats instead."
PARALLEL = (
    "two predictions measured at once disturb each other. Leave it out; an\n"
    "    experiment's max-parallel says what may overlap."
)


class Rival(NamedTuple):
    """An option of another plugin that has no place beside ``--prereg``."""

    flags: tuple[str, ...]
    refusal: str | None
    """Why it is a usage error when typed; ``None``: it is only switched off."""
    off: tuple[str, ...]
    """Arguments that switch it off; the last one given wins."""
    plugin: tuple[str, ...]
    """Any of these is registered where the option exists."""


RIVALS = (
    Rival(("--reruns",), AGAIN, ("--reruns=0",), ("rerunfailures", "pytest_rerunfailures")),
    Rival(("--force-reruns", "--retries", "--force-flaky", "--flake-finder", "--flake-runs"), AGAIN, (), ()),
    Rival(("--count",), AGAIN, ("--count=1",), ("repeat", "pytest_repeat")),
    Rival(("-n", "--numprocesses"), PARALLEL, ("-n0",), ("xdist",)),
    Rival(("--timeout",), None, ("--timeout=0",), ("timeout", "pytest_timeout")),
    Rival(("--cov",), None, ("--no-cov",), ("pytest_cov",)),
)


class Taken(NamedTuple):
    """What was decided about the command line, kept for the session."""

    studies: tuple[Path, ...]
    neutralised: tuple[str, ...]


TAKEN = pytest.StashKey[Taken]()


def take_over(config: pytest.Config, args: list[str]) -> None:
    """Point ``args`` at the selected studies and switch rivals off.

    Raises:
        pytest.UsageError: an argument makes no sense beside ``--prereg``.
    """
    typed = [str(argument) for argument in config.invocation_params.args]
    for rival in RIVALS:
        for flag in given(rival.flags, typed):
            if rival.refusal:
                raise pytest.UsageError(f"{flag} cannot be combined with --prereg: {rival.refusal}")
    configured = args[: len(args) - len(typed)]
    neutralised = tuple(flag for rival in RIVALS for flag in given(rival.flags, configured))
    named = list(config.known_args_namespace.file_or_dir or ())
    studies = selected_studies(config, named)
    config.stash[TAKEN] = Taken(studies, neutralised)
    args.extend(off for rival in RIVALS if is_installed(config, rival) for off in rival.off)
    # pytest-cov reads the namespace that was parsed before this hook.
    config.known_args_namespace.no_cov = True
    if not named:
        args.extend(str(study) for study in studies)


def given(flags: Iterable[str], arguments: Sequence[str]) -> list[str]:
    """Those of ``flags`` that ``arguments`` hold, in any spelling (``-n 2``, ``-n2``, ``--reruns=2``)."""
    return [flag for flag in flags if any(is_spelling(flag, argument) for argument in arguments)]


def is_spelling(flag: str, argument: str) -> bool:
    """Whether ``argument`` gives ``flag``."""
    if flag.startswith("--"):
        return argument.partition("=")[0] == flag
    return argument.startswith(flag) and not argument.startswith("--")


def is_installed(config: pytest.Config, rival: Rival) -> bool:
    """Whether the plugin that owns the option is active."""
    return any(config.pluginmanager.hasplugin(name) for name in rival.plugin)


def selected_studies(config: pytest.Config, named: Sequence[str]) -> tuple[Path, ...]:
    """The studies that the positional arguments select; without any, those at rootdir."""
    if not named:
        places = dict.fromkeys((config.rootpath, config.invocation_params.dir))
        return next((tuple(found) for found in map(find_studies, places) if found), ())
    studies: dict[Path, None] = {}
    for argument in named:
        path = config.invocation_params.dir / argument.partition("::")[0]
        if path.is_dir():
            studies.update(dict.fromkeys(find_below(path)))
        elif path.suffix == ".toml":
            studies[path.resolve()] = None
        else:
            raise pytest.UsageError(
                f"{argument} is not a study: --prereg collects predictions only. "
                "Run tests without it, or name a predictions.toml."
            )
    return tuple(studies)


def find_below(folder: Path) -> list[Path]:
    """Every study in ``folder`` and below it, hidden folders and environments left out."""
    found: list[Path] = []
    for current, folders, _ in os.walk(folder):
        place = type(folder)(current)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and not (place / name / "pyvenv.cfg").exists()
        )
        found.extend(study.resolve() for study in find_studies(place))
    return found
