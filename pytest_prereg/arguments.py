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
from pytest_prereg.registry.plain_files import kind_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

AGAIN = "measuring again until a prediction is supported is not a test. Register more\n    repeats instead."
PARALLEL = (
    "two predictions measured at once disturb each other. Leave it out; an\n"
    "    experiment's max-parallel says what may overlap."
)

TIMEOUT = ("timeout", "pytest_timeout")


class Rival(NamedTuple):
    """An option of another plugin that has no place beside ``--prereg``."""

    flags: tuple[str, ...]
    destination: str
    """What the option is parsed into."""
    refusal: str | None
    """Why it is a usage error when typed; ``None``: it is only switched off."""
    off: str | None = None
    """Switches it off, as the last one given wins; ``None``: it does nothing to predictions."""
    ini: str | None = None
    """The ini key that asks for the same."""
    variable: str = ""
    """The environment variable that does."""
    plugins: tuple[str, ...] = ()
    """Any of these is registered where the option is the one that is meant."""


RIVALS = (
    Rival(
        ("--reruns",), "reruns", AGAIN, "--reruns=0", "reruns", "", ("rerunfailures", "pytest_rerunfailures")
    ),
    Rival(("--force-reruns",), "force_reruns", AGAIN),
    Rival(("--retries",), "retries", AGAIN),
    Rival(("--force-flaky",), "force_flaky", AGAIN),
    Rival(("--flake-finder", "--flake-runs"), "flake_finder_enable", AGAIN),
    Rival(("--count",), "count", AGAIN, "--count=1", None, "", ("repeat", "pytest_repeat")),
    Rival(("--looponfail", "-f"), "looponfail", AGAIN),
    Rival(("-n", "--numprocesses"), "numprocesses", PARALLEL, "-n0", None, "", ("xdist",)),
    Rival(("--tx", "-d"), "tx", PARALLEL, "-n0", None, "", ("xdist",)),
    Rival(("--timeout",), "timeout", None, "--timeout=0", "timeout", "PYTEST_TIMEOUT", TIMEOUT),
    Rival(
        ("--session-timeout",),
        "session_timeout",
        None,
        "--session-timeout=1e9",  # 0 is none left, not no limit
        "session_timeout",
        "",
        TIMEOUT,
    ),
    Rival(("--cov",), "cov_source", None, "--no-cov", None, "", ("pytest_cov",)),
)

NEUTRALISED = pytest.StashKey[tuple[str, ...]]()
"""What was switched off, as it was asked for."""
STUDIES = pytest.StashKey["tuple[Path, ...]"]()
"""The studies that this session is about."""


def switch_off_rivals(config: pytest.Config, args: list[str]) -> None:
    """Extend ``args`` by what switches rivals off, before their plugins read it.

    Raises:
        pytest.UsageError: one of them was typed that makes no sense beside ``--prereg``.
    """
    for rival in RIVALS:
        for flag in given(rival, typed(config)):
            if rival.refusal:
                raise pytest.UsageError(f"{flag} cannot be combined with --prereg: {rival.refusal}")
    asked = {rival: asked_for(config, rival) for rival in RIVALS if is_installed(config, rival)}
    config.stash[NEUTRALISED] = tuple(word for words in asked.values() for word in words)
    args.extend(rival.off for rival, words in asked.items() if words and rival.off)
    # pytest-cov reads the namespace that was parsed before this hook.
    config.known_args_namespace.no_cov = True


def select(config: pytest.Config, parser: pytest.Parser, args: list[str]) -> None:
    """Point ``args`` at the studies; to be called once conftests are loaded, since they may add options.

    Raises:
        pytest.UsageError: something else than studies was named.
    """
    named = list(parser.parse_known_args(typed(config)).file_or_dir)
    studies = selected_studies(config, named)
    for study in studies:
        if kind := kind_of(study):
            raise pytest.UsageError(f"{study} is {kind}, and not a study")
    config.stash[STUDIES] = studies
    if not named:
        args.extend(str(study) for study in studies)


def typed(config: pytest.Config) -> list[str]:
    """The arguments of the command line alone, without those from configuration and environment."""
    return [str(argument) for argument in config.invocation_params.args]


def given(rival: Rival, arguments: Sequence[str]) -> list[str]:
    """The flags of a rival that ``arguments`` hold, in any spelling (``-n 2``, ``-n2``, ``--reruns=2``).

    One that switches it off itself does not count.
    """
    pairs = list(zip(arguments, [*arguments[1:], ""], strict=True))
    return [
        flag
        for flag in rival.flags
        if any(is_spelling(flag, first) and not is_off(rival, first, then) for first, then in pairs)
    ]


def is_spelling(flag: str, argument: str) -> bool:
    """Whether ``argument`` gives ``flag``."""
    if flag.startswith("--"):
        return argument.partition("=")[0] == flag
    return argument.startswith(flag) and not argument.startswith("--")


def is_off(rival: Rival, argument: str, following: str) -> bool:
    """Whether an argument, alone or with the next one, is what switches the rival off."""
    return rival.off in (argument, f"{argument}{following}", f"{argument}={following}")


def asked_for(config: pytest.Config, rival: Rival) -> list[str]:
    """By which words configuration, environment or command line ask for what the rival does."""
    value = getattr(config.known_args_namespace, rival.destination)
    words = [rival.flags[0]] if value and f"{rival.flags[0]}={value}" != rival.off else []
    if rival.ini and str(config.getini(rival.ini) or 0) != "0":
        words.append(f"{rival.ini} (ini)")
    if os.environ.get(rival.variable):
        words.append(rival.variable)
    return words


def is_installed(config: pytest.Config, rival: Rival) -> bool:
    """Whether the plugin that owns the option is active, and new enough to have it."""
    is_active = not rival.plugins or any(config.pluginmanager.hasplugin(name) for name in rival.plugins)
    return is_active and hasattr(config.known_args_namespace, rival.destination)


def selected_studies(config: pytest.Config, named: Sequence[str]) -> tuple[Path, ...]:
    """The studies that the positional arguments select; without any, those at rootdir."""
    here = config.invocation_params.dir
    if not named:
        places = dict.fromkeys((config.rootpath, here))
        return next((tuple(found) for found in map(find_studies, places) if found), ())
    ignored = {absolute(here / path) for path in config.known_args_namespace.ignore or ()}
    studies: dict[Path, None] = {}
    for argument in named:
        path = absolute(here / argument.partition("::")[0])
        if path.is_dir():
            studies.update(dict.fromkeys(find_below(path, ignored)))
        elif path.suffix == ".toml":
            studies[path] = None
        else:
            raise pytest.UsageError(
                f"{argument} is not a study: --prereg collects predictions only. "
                "Run tests without it, or name a predictions.toml."
            )
    return tuple(studies)


def absolute(path: Path) -> Path:
    """The path as pytest has it: without ``..``, symbolic links as they are."""
    return type(path)(os.path.abspath(path))  # noqa: PTH100


def find_below(folder: Path, ignored: Collection[Path]) -> list[Path]:
    """Every study in ``folder`` and below it; hidden folders, environments and ignored ones left out."""
    found: list[Path] = []
    for current, folders, _ in os.walk(folder):
        place = type(folder)(current)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and place / name not in ignored
            and not (place / name / "pyvenv.cfg").exists()
        )
        found.extend(find_studies(place))
    return found


def nothing_here(config: pytest.Config) -> list[str]:
    """What to say where no study was found: one further up is most likely the one that was meant."""
    here = config.invocation_params.dir
    above = next((found[0] for found in map(find_studies, here.parents) if found), None)
    if above is None:
        return ["no study here: pytest-prereg init writes one, or name a predictions.toml"]
    path, folder = os.path.relpath(above, here), os.path.relpath(above.parent, here)
    return [f"no study here, but there is {path}: pytest --prereg --rootdir {folder}"]
