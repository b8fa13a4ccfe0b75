"""Entry point of the pytest plugin: options and markers only; the rest loads when ``--prereg`` is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from pytest_prereg.fixtures import Prereg

MODES = (
    ("--prereg", "judge the registered predictions; first measure what is committed and missing"),
    ("--prereg-verify", "judge from recorded evidence; launch nothing"),
    ("--prereg-measure", "measure even where CI is set"),
    ("--prereg-fresh", "measure a new series of every selected experiment (a replication)"),
    ("--prereg-explore", "also measure what is not committed; its verdicts are exploratory"),
    ("--prereg-record", "write the verdict of every complete series to the lock"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of ``--prereg``; there are no ini keys."""
    group = parser.getgroup("prereg", "pre-registered predictions")
    for flag, text in MODES:
        group.addoption(flag, action="store_true", default=False, help=text)
    group.addoption(
        "--prereg-locked",
        action="store_true",
        default=None,
        dest="prereg_locked",
        help="fail on anything unregistered, unrecorded or exploratory (default where CI is set)",
    )
    group.addoption("--no-prereg-locked", action="store_false", dest="prereg_locked", help="the opposite")
    group.addoption("--prereg-executor", metavar="NAME", default=None, help="measure on this executor")
    group.addoption(
        "--prereg-budget", metavar="USD", default=None, help="stop before the run would cost more than this"
    )
    group.addoption(
        "--prereg-max-time", metavar="T", default=None, help='stop before measuring takes longer: "90 min"'
    )
    group.addoption("--prereg-json", metavar="FILE", default=None, help="write the records as JSON")


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Offer the hooks that other plugins may implement."""
    from pytest_prereg import hookspecs  # noqa: PLC0415

    pluginmanager.add_hookspecs(hookspecs)


def is_asked(option: object) -> bool:
    """Whether any of the flags that judge predictions was given."""
    flags = (flag.removeprefix("--").replace("-", "_") for flag, _ in MODES)
    limits = ("prereg_budget", "prereg_max_time")
    return any(getattr(option, name, False) for name in (*flags, "prereg_locked", "prereg_json")) or any(
        getattr(option, name, None) is not None for name in limits
    )


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None]:
    """Under ``--prereg``, take over the arguments."""
    if not is_asked(early_config.known_args_namespace):
        return (yield)
    from pytest_prereg import arguments  # noqa: PLC0415

    arguments.switch_off_rivals(early_config, args)
    yield
    arguments.select(early_config, parser, args)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and the session where it is asked for."""
    config.addinivalue_line(
        "markers", "prereg(experiment, kind, tags): carried by predictions, for selection with -m"
    )
    if is_asked(config.option):
        from pytest_prereg.session import PreregSession  # noqa: PLC0415
        from pytest_prereg.termination import Termination  # noqa: PLC0415

        config.pluginmanager.register(PreregSession.from_config(config), "prereg-session")
        config.pluginmanager.register(Termination(), "prereg-termination")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Show the predictions of a file named on the command line as skipped, where ``--prereg`` is missing."""
    if file_path.suffix != ".toml" or is_asked(parent.config.option):
        return None
    if not parent.session.isinitpath(file_path):
        return None
    from pytest_prereg.collection import UnaskedFile  # noqa: PLC0415

    return UnaskedFile.from_parent(parent, path=file_path) if UnaskedFile.suits(file_path) else None


@pytest.fixture(scope="session")
def prereg(request: pytest.FixtureRequest) -> Generator[Prereg]:
    """Hand out experiments and verdict records to ordinary tests, without judging anything.

    ``prereg("grpo_step").run(n=3)`` measures three pilot repeats; ``prereg.verdict("training-is-free")``
    returns the committed record of a prediction.
    """
    from pytest_prereg.fixtures import Prereg  # noqa: PLC0415

    handle = Prereg(request.config.rootpath)
    yield handle
    handle.close()
