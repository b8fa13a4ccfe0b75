"""Trying an experiment out: repeats that are kept, listed, and never judged."""

from __future__ import annotations

import os
import statistics
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.errors import Problem, UsageError
from pytest_prereg.evidence.cost import rates_of
from pytest_prereg.evidence.environment import describe_machine, describe_versions
from pytest_prereg.evidence.holds import ExperimentHold
from pytest_prereg.evidence.model import Header
from pytest_prereg.evidence.naming import utc_now
from pytest_prereg.evidence.parsing import FORMAT_VERSION
from pytest_prereg.evidence.sessions import SessionWriter, known_digests, read_study_evidence
from pytest_prereg.measure.loop import measure
from pytest_prereg.measure.schedule import seed_base
from pytest_prereg.registry.evaluation import evaluated
from pytest_prereg.registry.refusals import quoted, suggestion
from pytest_prereg.registry.sources import source_digest
from pytest_prereg.registry.uses import arms_of, quantities_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pytest_prereg.evidence.model import Finished, Started, Version
    from pytest_prereg.measure.executors.base import Executor
    from pytest_prereg.measure.progress import Progress
    from pytest_prereg.registry.model import Experiment, Study

NO_SERIES = 0
"""Series number of pilots, which belong to none."""


def pilot(
    study: Study,
    experiment: Experiment,
    executor: Executor,
    *,
    planned: Mapping[str, int],
    head: str | None,
    dirty: bool | None,
    observe: Callable[[Started, Finished], None],
    progress: Callable[[Progress], None] | None = None,
    trees: Mapping[str, Version] | None = None,
    built: float = 0.0,
) -> Path:
    """Run ``planned`` repeats of each arm and return the session file that keeps them.

    Seeds are drawn anew each time, so that a pilot never runs what a registered repeat will. No warm-ups come
    before: nothing of a pilot counts, so its first repeats are as good as any.

    Args:
        study: The study.
        experiment: The experiment to try.
        executor: Where to run; started.
        planned: Repeats by arm.
        head: Commit at HEAD.
        dirty: Whether the work tree differs from it.
        observe: Called with the two lines of every repeat.
        progress: Called before each repeat, and while one has to wait.
        trees: What the arms are that are versions of the code.
        built: Seconds that it took to have these.

    Raises:
        MeasureError: If nothing can be launched any more.
        EvidenceError: If nothing can be written, or another session measures the experiment.
    """
    with ExperimentHold.take(study.evidence_folder, experiment.id) as hold:
        header = _header(study, experiment, executor.name, planned=planned, head=head, dirty=dirty)
        header = msgspec.structs.replace(header, trees=dict(trees or {}), built=built)
        writer = SessionWriter.open(study.evidence_folder, header, hold=hold)
        measure(study, experiment, None, writer, executor, header=header, progress=progress, observe=observe)
        return writer.path


def _header(
    study: Study,
    experiment: Experiment,
    executor: str,
    *,
    planned: Mapping[str, int],
    head: str | None,
    dirty: bool | None,
) -> Header:
    session = os.urandom(8).hex()
    evidence = read_study_evidence(study)
    return Header(
        version=FORMAT_VERSION,
        study=study.id,
        experiment=experiment.id,
        series=NO_SERIES,
        origin="pilot",
        planned=dict(planned),
        pairing=experiment.pairing,
        seed=seed_base([session], NO_SERIES),
        source=source_digest(study, experiment),
        predictions={},
        head=head,
        dirty=dirty,
        session=session,
        created=utc_now(),
        executor=executor,
        environment=describe_machine(),
        versions=describe_versions(),
        known=known_digests(file for files in evidence.values() for file in files),
        rates=rates_of(study, experiment, executor),
    )


def tried_arms(experiment: Experiment, arm: str | None) -> list[str]:
    """Return the arms to try: all, or the one that was named.

    Raises:
        UsageError: PR007, if there is no such arm.
    """
    if arm is None:
        return list(experiment.arms)
    if arm in experiment.arms:
        return [arm]
    names = [name for name in experiment.arms if name]
    hint = suggestion(arm, names, "its arms") if names else "; it has none"
    message = f"experiment {quoted(experiment.id)} has no arm {quoted(arm)}{hint}"
    raise UsageError(Problem(code="PR007", message=message))


def unreduced(study: Study, experiment: Experiment, arm: str, finished: Finished) -> Iterator[str]:
    """Yield a line for each quantity of which a tried repeat has samples: none could be judged (PR140)."""
    values = {**finished.values, "completed": 1.0}
    constants = {name: table.value for name, table in study.constants.items()}
    for prediction in study.predictions.values():
        if arm not in arms_of(prediction, experiment.id):
            continue
        for quantity in quantities_of(prediction, experiment.id):
            with suppress(KeyError, ValueError, ArithmeticError):  # told of where repeats are judged
                if isinstance(found := evaluated(quantity.node, values, constants), list):
                    many = f"{quoted(quantity.text)} is {len(found)} samples in a repeat"
                    instead = f"write mean({quantity.text}), or another number of them"
                    yield f"prediction {quoted(prediction.id)} could never be judged: {many}; {instead}"


def whole_duration(experiment: Experiment, seconds: Mapping[str, list[float]]) -> float | None:
    """Return how long all registered repeats would take, from the ``seconds`` of tried ones by arm.

    An arm that was not tried is taken to be like the others; ``None`` where no number is registered.
    """
    planned = experiment.planned
    if planned is None:
        return None
    every = statistics.fmean([one for values in seconds.values() for one in values])
    return sum(count * statistics.fmean(seconds.get(arm) or [every]) for arm, count in planned.items())
