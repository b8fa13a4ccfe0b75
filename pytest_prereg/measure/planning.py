"""What a session is to run: the slots of its series in order, its warm-ups, and the job that each makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.evidence.naming import repeat_id, warmup_id
from pytest_prereg.measure.checkpoints import checkpoint_folder
from pytest_prereg.measure.commands import command_of
from pytest_prereg.measure.executors.base import Job
from pytest_prereg.measure.executors.local import arm_environment
from pytest_prereg.measure.executors.services import service_of
from pytest_prereg.measure.schedule import Slot, block_order, repeat_seed, sequential_order, warmup_order

if TYPE_CHECKING:
    from pytest_prereg.evidence.model import Header, Series
    from pytest_prereg.registry.model import Experiment, Stopping, Study

FIRST_LOOK = 3
"""No interval has fewer blocks, so nothing can be decided before."""


def is_look(stopping: Stopping | None, block: int) -> bool:
    """Whether a stopping rule lets a series end after so many blocks."""
    if stopping is None:
        return False
    return block >= FIRST_LOOK if stopping.anytime else block in stopping.looks


def schedule(experiment: Experiment, header: Header) -> list[Slot]:
    """Return all planned slots of a series in the order in which they are to run."""
    planned = header.planned or {}
    if experiment.table.order == "sequential":
        return sequential_order(planned)
    return block_order(planned, header.seed)


def first_launches(experiment: Experiment, header: Header, series: Series | None) -> list[str]:
    """Return the arms of what a session launches first, warm-ups and a repeat; none if all is settled."""
    settled = settled_slots(series)
    opened = (slot for slot in schedule(experiment, header) if (slot.arm, slot.index) not in settled)
    first = next(opened, None)
    return [slot.arm for slot in (*warmups(experiment, header), first)] if first else []


def job_for(study: Study, experiment: Experiment, header: Header, slot: Slot) -> Job:
    """Return what an executor needs to run one slot."""
    arm = experiment.arms[slot.arm]
    name = warmup_id if slot.is_warmup else repeat_id
    repeat = name(experiment.id, header.series, slot.arm, slot.index)
    counts = header.origin == "measured" and not slot.is_warmup
    return Job(
        repeat=repeat,
        arm=slot.arm,
        index=slot.index,
        seed=repeat_seed(header.seed, slot.block),
        metrics={name: metric.unit for name, metric in experiment.metrics.items()},
        params=arm.params,
        env=arm_environment(experiment, arm),
        timeout=arm.timeout,
        checkpoint=str(checkpoint_folder(study.path, header.seed, repeat)) if counts else None,
        service=service_of(experiment),
        command=command_of(study, experiment),
        cache=experiment.table.cache,
        exclusive=experiment.table.exclusive,
    )


def settled_slots(series: Series | None) -> set[tuple[str, int]]:
    """Return arm and index of what earlier sessions settled."""
    return {(repeat.arm, repeat.index) for repeat in (series.repeats if series else ())}


def warmups(experiment: Experiment, header: Header) -> list[Slot]:
    """Return the warm-ups of a session; a pilot has none, since nothing of it counts either."""
    planned = (header.planned or {}) if header.origin == "measured" else {}
    return warmup_order(planned, experiment.table.warmup)
