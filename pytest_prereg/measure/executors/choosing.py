"""Which executor an experiment runs on: this machine, or a service that somebody asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pytest_prereg.errors import MeasureError, Problem, UsageError
from pytest_prereg.registry import executors
from pytest_prereg.registry.executors import LOCAL, MODAL
from pytest_prereg.registry.refusals import RefusedError, quoted

if TYPE_CHECKING:
    from pytest_prereg.measure.executors.base import Checkout, Executor
    from pytest_prereg.registry.model import Experiment, Study


def check_executor(name: str | None) -> None:
    """Refuse an executor that nothing brings.

    Raises:
        UsageError: PR007, PR008, PR127.
    """
    if name is not None:
        try:
            executors.check_executor(name)
        except RefusedError as refusal:
            message = f"--prereg-executor: {refusal}"
            raise UsageError(Problem(code=refusal.code, message=message, advice=refusal.advice)) from refusal


def place_of(experiment: Experiment, asked: str | None, *, budgeted: bool = False) -> str | None:
    """Return the executor that an experiment is to run on now; ``None`` where it waits for its own.

    One that names no executor runs where it was asked for. What names a service runs there alone, and only if
    that was asked for, or an amount was said that it may cost.

    Args:
        experiment: What is to be run.
        asked: What ``--prereg-executor`` said.
        budgeted: Whether ``--prereg-budget`` was typed.
    """
    own = experiment.table.executor
    if own == LOCAL:
        return asked or LOCAL
    return own if asked == own or (asked is None and budgeted) else None


def executor_for(
    name: str, study: Study, experiment: Experiment, *, checkout: Checkout | None = None
) -> Executor:
    """Return an executor for one experiment; nothing of it runs before it is started.

    Raises:
        MeasureError: It can't run this experiment; PR127, where it is a plugin's and fails.
        UsageError: There is none of that name (PR007, PR008).
    """
    check_executor(name)
    if name != LOCAL and checkout is not None:
        message = f"arms of experiment {quoted(experiment.id)} are versions of the code, which are built here"
        raise MeasureError(Problem(code="PR008", message=f"{message}: {quoted(name)} can't run them"))
    if name == LOCAL:
        from pytest_prereg.measure.executors.local import LocalExecutor  # noqa: PLC0415

        return LocalExecutor(study, experiment, checkout=checkout)
    if name == MODAL:
        from pytest_prereg.measure.executors.modal.executor import ModalExecutor  # noqa: PLC0415

        return ModalExecutor(study, experiment, checkout=checkout)
    return _brought(name, study, experiment, checkout)


def _brought(name: str, study: Study, experiment: Experiment, checkout: Checkout | None) -> Executor:
    """Return what a plugin brings under a name; whatever it raises is told as its own."""
    from pytest_prereg.registry.plugins import brought_executors  # noqa: PLC0415

    brought = brought_executors()[name]
    try:
        return cast("Executor", brought.what(study, experiment, checkout=checkout))
    except MeasureError:
        raise
    except (Exception, SystemExit) as error:  # whatever a plugin raises is told as its own
        message = f"plugin {quoted(brought.plugin)} could not make executor {quoted(name)}"
        told = f"{message}: {brought.failed_as(error)}"
        raise MeasureError(Problem(code="PR127", message=told)) from error
