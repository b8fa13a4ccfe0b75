"""Evidence of the same code under another name: of experiments that were copied, or renamed after a run."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_prereg.audit.standing import read_arms
from pytest_prereg.errors import StudyError
from pytest_prereg.registry.canonical import canonical_json
from pytest_prereg.registry.uses import metrics_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.registry.model import Experiment, Prediction

_Setting = tuple[tuple[str, ...], bytes]
"""What is run, and with which parameters."""


class Copies:
    """The settings of a study's experiments, and where else each of them was run."""

    def __init__(self, state: StudyState) -> None:
        self.state = state
        self._places: dict[_Setting, list[tuple[str, str]]] = defaultdict(list)
        for name, experiment in state.study.experiments.items():
            for arm in experiment.arms if state.files[name] else ():
                if (setting := _setting(experiment, arm)) is not None:
                    self._places[setting].append((name, arm))
        self._gone = [name for name in state.files if name not in state.study.experiments]

    def data_for(self, prediction: Prediction, experiment: str) -> Iterator[SessionFile]:
        """Yield the sessions with data of what a prediction reads of an experiment, under whatever name.

        Of the experiment itself those with a value of an arm that it reads. Of another one those that ran the
        same code: with the same parameters, if that is still in the study, else with the same metrics.
        """
        read = read_arms(self.state.study, prediction, experiment)
        yield from (one for one in self.state.files[experiment] if _has_data(one, read))
        known = self.state.study.experiments[experiment]
        elsewhere: dict[str, set[str]] = defaultdict(set)
        for arm in read & known.arms.keys():
            for name, other in self._places.get(_setting(known, arm) or ((), b""), ()):
                if name != experiment:
                    elsewhere[name].add(other)
        for name, arms in elsewhere.items():
            yield from (one for one in self._same(known, name) if _has_data(one, arms))
        metrics = set(metrics_of(prediction, experiment))
        for name in self._gone:
            yield from (one for one in self._same(known, name) if _has_data(one, None, metrics))

    def _same(self, known: Experiment, name: str) -> Iterator[SessionFile]:
        """Yield the sessions of another experiment that ran the code of this one, as that is now."""
        for file in self.state.files[name]:
            source = file.header.source if file.header else None
            if source is not None and source == self._source(known):
                yield file

    def _source(self, experiment: Experiment) -> str | None:
        with suppress(StudyError):
            return self.state.source(experiment)
        return None


def _setting(experiment: Experiment, arm: str) -> _Setting | None:
    """Return what is run in an arm; ``None`` where the experiment is fed."""
    if experiment.source is not None:
        runs: tuple[str, ...] = (experiment.source.module, experiment.source.function)
    elif experiment.table.command:
        runs = tuple(map(str, experiment.table.command))
    else:
        return None
    return runs, canonical_json(experiment.arms[arm].params)


def _has_data(file: SessionFile, arms: Collection[str] | None, metrics: Collection[str] = ()) -> bool:
    return any(
        one.values and (arms is None or one.arm in arms) and one.values.keys() >= {*metrics}
        for one in file.attempts
    )
