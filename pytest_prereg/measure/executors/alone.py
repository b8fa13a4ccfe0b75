"""Runs one repeat wherever it is started: what to run comes in by standard input, how it ended goes out.

``python -m pytest_prereg.measure.executors.alone`` is for executors that plugins bring: they take bytes to a
machine that has the study and its environment, and bytes back. The repeat is run there as on any machine.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.evidence.environment import describe_machine
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.executors import wire
from pytest_prereg.measure.executors.base import Job, Result

if TYPE_CHECKING:
    from pytest_prereg.registry.model import Experiment, Study

COMMAND = (sys.executable, "-m", __name__)
"""What runs a repeat on this machine, by the Python that runs this."""
TOLD = ("cpu", "cores", "memory_gib", "gpu", "driver", "os", "kernel", "python", "torch", "cuda", "container")
"""What a repeat says of the machine that it ran on."""


class Order(msgspec.Struct, kw_only=True, frozen=True):
    """A repeat, and whose it is."""

    study: str
    """The prediction file, as the machine has it that runs the repeat."""
    experiment: str
    job: Job


def order(study: Study, experiment: Experiment, job: Job, *, path: str | None = None) -> bytes:
    """Return what to write to the command's standard input.

    Args:
        study: The study.
        experiment: The experiment that the repeat is of.
        job: The repeat.
        path: Where the other machine has the study's file; ``None``: where this one has it.
    """
    if path is not None:  # what outlives an attempt here is not there
        job = msgspec.structs.replace(job, checkpoint=None)
    whole = Order(study=path or str(study.path), experiment=experiment.id, job=job)
    return wire.encode(whole)[wire.LENGTH :]


def result(answer: bytes, **environment: Any) -> Result:
    """Return how a repeat ended, from what the command has written to its standard output.

    Args:
        answer: All of it; what is none came of a command that was lost.
        environment: What is known of where it ran and the machine can't tell: ``backend``, ``region``.
    """
    try:
        ended: Result = wire.decode(answer, Result)
    except wire.GarbledError as error:
        return Result(outcome=Outcome.INFRASTRUCTURE, cause="lost", error=f"no answer: {error}")
    return msgspec.structs.replace(ended, environment={**ended.environment, **environment})


def main() -> None:
    """Run the repeat of one :class:`Order`."""
    sys.stdout.buffer.write(wire.encode(_run(sys.stdin.buffer.read()))[wire.LENGTH :])


def _run(given: bytes) -> Result:
    from pytest_prereg.errors import PreregError  # noqa: PLC0415
    from pytest_prereg.measure.executors.local import LocalExecutor  # noqa: PLC0415
    from pytest_prereg.registry.load import load_study  # noqa: PLC0415

    asked: Order = wire.decode(given, Order)
    try:
        study = load_study(Path(asked.study))
        with LocalExecutor(study, study.experiments[asked.experiment]) as executor:
            ended = executor.run(asked.job)
    except PreregError as error:  # another machine could: it never began
        return Result(outcome=Outcome.INFRASTRUCTURE, cause="start", error=str(error))
    machine = describe_machine()
    here = {name: machine[name] for name in TOLD}
    return msgspec.structs.replace(ended, environment={**here, **ended.environment})


if __name__ == "__main__":
    main()
