"""Which executor an experiment runs on: this machine, or a service that somebody asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.errors import Problem, UsageError
from pytest_prereg.registry.refusals import listed, quoted

if TYPE_CHECKING:
    from pytest_prereg.measure.executors.base import Checkout, Executor
    from pytest_prereg.registry.model import Experiment, Study

LOCAL = "local"
KNOWN = (LOCAL,)
"""Executors of the package's own."""


def check_executor(name: str | None) -> None:
    """Refuse an executor that is not there.

    Raises:
        UsageError: PR008.
    """
    if name is not None and name not in KNOWN:
        message = f"executor {quoted(name)} is not there yet; there is {listed(KNOWN)}"
        raise UsageError(Problem(code="PR008", message=message))


def place_of(experiment: Experiment, asked: str | None) -> str | None:
    """Return the executor that an experiment is to run on now; ``None`` where it waits for its own.

    One that names no executor runs where it was asked for. What names a service runs there alone, and only if
    it was asked for: that costs money.

    Args:
        experiment: What is to be run.
        asked: What ``--prereg-executor`` said.
    """
    own = experiment.table.executor
    wanted = asked or LOCAL
    return wanted if own in (wanted, LOCAL) else None


def executor_for(
    name: str, study: Study, experiment: Experiment, *, checkout: Checkout | None = None
) -> Executor:
    """Return an executor for one experiment; nothing of it runs before it is started.

    Raises:
        MeasureError: It can't run this experiment.
        UsageError: There is none of that name (PR008).
    """
    check_executor(name)
    from pytest_prereg.measure.executors.local import LocalExecutor  # noqa: PLC0415

    return LocalExecutor(study, experiment, checkout=checkout)
