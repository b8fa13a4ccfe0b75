"""Buying what is registered and missing: which series is due, and running it into the evidence.

Nothing is launched that the lock at HEAD does not register, unless exploring was asked for.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.audit.conditions import unmet
from pytest_prereg.audit.deciding import candidates
from pytest_prereg.audit.guards import wants_confirmation
from pytest_prereg.audit.series_states import series_states
from pytest_prereg.errors import PreregError, Problem
from pytest_prereg.evidence.cost import rates_of
from pytest_prereg.evidence.environment import PACKAGES, describe_machine, describe_versions
from pytest_prereg.evidence.holds import ExperimentHold
from pytest_prereg.evidence.model import Header, Series, Version
from pytest_prereg.evidence.naming import utc_now
from pytest_prereg.evidence.parsing import FORMAT_VERSION
from pytest_prereg.evidence.series import is_current, next_number, unfindable, was_left
from pytest_prereg.evidence.sessions import SessionWriter, known_digests
from pytest_prereg.judge.question import counts_failures
from pytest_prereg.measure.executors.choosing import executor_for, place_of
from pytest_prereg.measure.interrupts import sigterm_interrupts
from pytest_prereg.measure.limits import Forecast, Limits
from pytest_prereg.measure.loop import measure
from pytest_prereg.measure.planning import first_launches
from pytest_prereg.measure.schedule import seed_base
from pytest_prereg.measure.versions.checkout import checkout_of
from pytest_prereg.permission import is_withdrawn, refusal
from pytest_prereg.registry.environment_conditions import MACHINE, machine_outside
from pytest_prereg.registry.executors import LOCAL
from pytest_prereg.registry.uses import stated_of_instruments
from pytest_prereg.registry.versions import refs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.evidence.files import SessionFile
    from pytest_prereg.evidence.model import Finished, Started
    from pytest_prereg.measure.executors.base import Executor
    from pytest_prereg.measure.versions.checkout import Checkout
    from pytest_prereg.progress import Progress
    from pytest_prereg.registry.model import Experiment, Prediction


OUR_VERSIONS = ("pytest-prereg", "instruments")
"""Of what repeats run with elsewhere, too: an executor brings the package along."""
THEIR_VERSIONS = frozenset({"python", *PACKAGES})
"""What an executor may say of what repeats run with there."""


class Due(msgspec.Struct, kw_only=True, frozen=True):
    """A series that is to be opened, or gone on with."""

    experiment: str
    number: int
    series: Series | None
    """What earlier sessions settled of it."""
    predictions: dict[str, str]
    """Registration digests that it binds."""
    missing: int
    planned: int
    """The most that there can be, where a stopping rule may end the series early."""
    may_end_early: bool = False


class Campaign:
    """Measures for one study, each experiment once in a run, and once more to confirm that a guard fails."""

    def __init__(
        self,
        state: StudyState,
        *,
        fresh: bool = False,
        explore: bool = False,
        progress: Progress | None = None,
        limits: Limits | None = None,
        executor: str | None = None,
    ) -> None:
        self.state = state
        self.executor = executor
        """Where to measure, as it was asked for."""
        self.fresh = fresh
        self.explore = explore
        self.progress = progress
        self.limits = limits or Limits()
        self.measured: dict[str, list[Due]] = {}
        self.written: dict[str, list[Path]] = {}
        """Session files of this run, by experiment."""
        self.refused: dict[str, Problem] = {}
        self.abandoned: list[str] = []
        """What became of the series in whose place this run has opened another."""
        self.priced = False
        """Whether anything that was measured has a price."""
        self.outputs: list[Path] = []
        self._failed: dict[str, PreregError] = {}
        self._withheld: dict[tuple[str, str], str] = {}
        self._unpriced: dict[str, str] = {}
        """Why what a service would run can't be bought within a budget, by experiment."""

    def measure(self, prediction: Prediction) -> None:
        """Measure what the prediction lacks, if it is registered at HEAD; ``refused`` says where it is not.

        Raises:
            MeasureError: nothing could be launched, or no more.
            EvidenceError: nothing could be written.
            KeyboardInterrupt: the run was interrupted, also by SIGTERM; what had finished is kept.
        """
        for name in prediction.experiments:
            self._measure(prediction, name)
            if wants_confirmation(self.state, prediction):
                self._measure(prediction, name)

    def _measure(self, prediction: Prediction, name: str) -> None:
        failed = self._failed.get(name)
        confirming = wants_confirmation(self.state, prediction)
        is_done = name in self.measured and failed is None and self.limits.reached is None
        if (is_done and not confirming) or not self.due(prediction, name):
            return
        if failed is not None:
            raise failed
        if self.limits.reached is None:
            try:
                self._run(prediction, name)
            except PreregError as error:
                self._failed[name] = said_before(error)
                raise
        self._note_stop(prediction, name)

    def _note_stop(self, prediction: Prediction, name: str) -> None:
        """Note what a limit has kept from being bought, if it has."""
        if name in self._unpriced:
            self._withheld[prediction.id, name] = self._unpriced[name]
        if self.limits.reached is not None and (due := self.due(prediction, name)):
            kept = f"{due.planned - due.missing} of {due.planned} repeats are kept"
            self._withheld[prediction.id, name] = f"stopped: {self.limits.reached}, {kept}"

    def withheld(self, prediction: Prediction) -> str | None:
        """Why nothing, or no more, was measured for a prediction that may be: its machine, or a limit."""
        for name in prediction.experiments:
            if why := self._withheld.get((prediction.id, name)):
                return why if len(prediction.experiments) == 1 else f"{name}: {why}"
        return None

    def due(self, prediction: Prediction, name: str) -> Due | None:
        """The series of an experiment that a prediction waits for; ``None`` if none is, or may be run."""
        experiment = self.state.study.experiments[name]
        if experiment.kind == "import" or self.state.is_withdrawn(prediction.id):
            return None
        complete = candidates(self.state, prediction, name)
        bound = any(self.state.binds(one, prediction) for one in complete)
        if bound and not self.fresh and not wants_confirmation(self.state, prediction):
            return None
        if unmet(self.state, prediction):
            return None
        problem = refusal(self.state, prediction)
        if problem is not None:
            consequence = "its verdict is exploratory" if self.explore else "nothing was measured for it"
            self.refused[prediction.id] = replace(problem, message=f"{problem.message}, so {consequence}.")
            if not self.explore or (complete and not self.fresh) or is_withdrawn(self.state, prediction):
                return None
        if why := self._elsewhere(experiment):
            self._withheld[prediction.id, name] = why
            return None
        return self._next(experiment, self.state.series[experiment.id])

    def _elsewhere(self, experiment: Experiment) -> str | None:
        """Why the experiment must not be measured here: it names an executor, or its conditions a machine."""
        place, own = self.place_of(experiment), experiment.table.executor
        if place is None:
            return f"needs executor {own} (pytest --prereg --prereg-executor {own})"
        if experiment.id in self._unpriced:
            return self._unpriced[experiment.id]
        if self.explore or place != LOCAL or not experiment.table.conditions:
            return None
        outside = machine_outside(experiment.table.conditions, self._machine)
        return f"this machine is outside its conditions: {outside}" if outside else None

    def place_of(self, experiment: Experiment) -> str | None:
        """Where an experiment runs in this run, if it may."""
        return place_of(experiment, self.executor, budgeted=self.limits.budget is not None)

    @cached_property
    def _machine(self) -> dict[str, Any]:
        return describe_machine()

    # What may run

    def bound(self, experiment: Experiment) -> dict[str, str]:
        """Registration digests of those predictions of the experiment that HEAD registers as they stand."""
        state = self.state
        every = state.study.predictions.values()
        predictions = (one for one in every if experiment.id in one.experiments)
        return {one.id: state.digests[one.id] for one in predictions if refusal(state, one) is None}

    def _next(self, experiment: Experiment, every: Sequence[Series]) -> Due:
        """Go on with the open series that binds what is registered, else open a new one."""
        bound = self.bound(experiment)
        source = self.state.source(experiment)
        opened = (
            one for one in every if not one.complete and one.voided is None and not was_left(one, every)
        )
        opened = (one for one in opened if one.seed and serves(one, bound))
        opened = (one for one in opened if {*(one.planned or {})} <= {*experiment.arms})
        refs = refs_of(experiment)
        opened = (one for one in opened if {arm: each.ref for arm, each in one.trees.items()} == refs)
        versions = self.state.subject(experiment), self.state.data(experiment)
        started = next((one for one in opened if is_current(one, source, bound, versions)), None)
        planned = sum(((started or experiment).planned or {}).values())
        return Due(
            experiment=experiment.id,
            number=started.number if started else next_number(every),
            series=started,
            predictions=self._unburied(started.predictions) if started else bound,
            missing=planned - len(started.repeats) if started else planned,
            planned=planned,
            may_end_early=experiment.stopping is not None,
        )

    def _unburied(self, predictions: Mapping[str, str]) -> dict[str, str]:
        """What a series that is gone on with binds still: not what was withdrawn meanwhile."""
        return {name: digest for name, digest in predictions.items() if not self.state.is_withdrawn(name)}

    # Running it

    def _run(self, prediction: Prediction, name: str) -> None:
        """Take the experiment, look again what is due, and measure it."""
        state = self.state
        experiment = state.study.experiments[name]
        with ExperimentHold.take(state.study.evidence_folder, experiment.id) as hold:
            state.reread()
            due = self.due(prediction, name)
            if due is None:
                return
            checkout = self._checkout(experiment, due)
            place = self.place_of(experiment) or LOCAL
            executor = executor_for(place, state.study, experiment, checkout=checkout)
            header = self._header(experiment, due, executor, checkout.versions if checkout else {})
            if self._is_beyond_limits(experiment, header, due):
                return
            try:
                with sigterm_interrupts(), self.limits.measuring():
                    executor.start()
                    built = checkout.seconds if checkout else 0.0
                    header = msgspec.structs.replace(with_its_own(header, executor), built=built)
                    if not self._is_too_dear(experiment, header, due):
                        self._fill(experiment, due, header, hold, executor)
            finally:
                executor.close()
                self.outputs.extend(executor.outputs)
                state.reread()

    def _checkout(self, experiment: Experiment, due: Due) -> Checkout | None:
        """The versions that the arms are: those of their series or, where it begins now, what refs mean."""
        say = self.progress.note if self.progress else None
        return checkout_of(self.state.study, experiment, due.series, say=say)

    def _is_beyond_limits(self, experiment: Experiment, header: Header, due: Due) -> bool:
        """Whether not even the first repeat may be bought: then nothing is started, and no file is begun."""
        files = self.state.files[experiment.id]
        forecast = Forecast(experiment, header.rates, files, executor=header.executor)
        return self.limits.refuses(forecast.of(first_launches(experiment, header, due.series)))

    def _is_too_dear(self, experiment: Experiment, header: Header, due: Due) -> bool:
        """Whether a service must not begin, now that its rates are known: without any no budget is held."""
        if not header.elsewhere or self.limits.budget is None:
            return False
        if not header.rates:
            name = header.executor
            why = f"nobody knows what {name} costs, so --prereg-budget can't be kept: [study.prices] {name}"
            self._unpriced[experiment.id] = why
        return not header.rates or self._is_beyond_limits(experiment, header, due)

    def _fill(
        self, experiment: Experiment, due: Due, header: Header, hold: ExperimentHold, executor: Executor
    ) -> None:
        """Run what is missing into a session file of its own."""
        state = self.state
        if abandoned := left_behind(state, due):
            self.abandoned.append(abandoned)
        notes = list(left_there(state.files[experiment.id], due, executor))
        self.measured.setdefault(experiment.id, []).append(due)
        writer = SessionWriter.open(state.study.evidence_folder, header, hold=hold)
        self.written.setdefault(experiment.id, []).append(writer.path)
        self.priced |= bool(header.rates)
        if self.progress:
            self.progress.start(experiment.id, due.missing, due.planned, may_end_early=due.may_end_early)
            for note in notes:
                self.progress.note(note)
        measure(
            state.study,
            experiment,
            due.series,
            writer,
            executor,
            header=header,
            progress=self.progress.repeat if self.progress else None,
            observe=self._failures(experiment),
            files=state.files[experiment.id],
            enough=lambda _block: state.is_enough(experiment, due.number),
            limits=self.limits,
        )

    def _failures(self, experiment: Experiment) -> Callable[[Started, Finished], None] | None:
        """Return what tells that every arm fails; nothing where a failure is an answer: that is sealed."""
        served = [one for one in self.state.study.predictions.values() if experiment.id in one.experiments]
        if self.progress is None or any(counts_failures(one.statistic, one.divisor) for one in served):
            return None
        return self.progress.failures(experiment.id, experiment.arms)

    def _header(
        self, experiment: Experiment, due: Due, executor: Executor, trees: dict[str, Version]
    ) -> Header:
        state = self.state
        repository = state.repository
        digests = due.predictions.values() or [state.digests[one] for one in sorted(state.digests)]
        return Header(
            version=FORMAT_VERSION,
            study=state.study.id,
            experiment=experiment.id,
            series=due.number,
            origin="measured",
            planned=due.series.planned if due.series else experiment.planned,
            pairing=experiment.pairing,
            seed=due.series.seed if due.series else seed_base(digests, due.number),
            source=state.source(experiment),
            subject=state.subject(experiment),
            data=state.data(experiment),
            predictions=due.predictions,
            head=repository.head() if repository else None,
            dirty=repository.dirty() if repository else None,
            session=os.urandom(8).hex(),
            created=utc_now(),
            executor=executor.name,
            environment={**describe_machine(), "scrubbed": list(executor.scrubbed)},
            versions=describe_versions(),
            known=known_digests(file for files in state.files.values() for file in files),
            instruments=stated_of_instruments(state.study),
            rates=rates_of(state.study, experiment, executor.name),
            trees=trees,
        )


def with_its_own(header: Header, executor: Executor) -> Header:
    """Return a header with what a started executor says of itself, in place of what is true of this machine.

    Where the repeats ran each of them says. What a study has for a price counts where nobody knows better.
    """
    if not header.elsewhere:
        return header
    about, live = executor.about, executor.rates()
    ours = {name: header.versions[name] for name in OUR_VERSIONS if name in header.versions}
    theirs = {name: str(version) for name, version in about.items() if version and name in THEIR_VERSIONS}
    machine = {name: each for name, each in about.items() if name not in theirs or name in MACHINE}
    return msgspec.structs.replace(
        header,
        versions={**ours, **theirs},
        environment={**machine, "scrubbed": list(executor.scrubbed)},
        rates=header.rates if live is None else {arm: rate for arm, rate in live.items() if rate},
    )


def serves(series: Series, bound: Mapping[str, str]) -> bool:
    """Whether going on with a series decides what is registered; an exploratory one never does."""
    return not series.predictions if not bound else any(name in bound for name in series.predictions)


def left_there(files: Sequence[SessionFile], due: Due, executor: Executor) -> Iterator[str]:
    """Say what a service may run of a killed session that nobody finds again, and so runs once more.

    Raises:
        MeasureError: PR137: it can't be asked.
    """
    settled = {(one.arm, one.index) for one in due.series.repeats} if due.series else set()
    for app, attempts in unfindable(files, due.number, settled, executor.remembers).items():
        which = ", ".join(dict.fromkeys(one.repeat for one in attempts))
        where = f"{executor.name}, {app}" if app else executor.name
        yield f"a session was killed as it sent off {which}: lost, but may run and be paid for ({where})"


def left_behind(state: StudyState, due: Due) -> str | None:
    """Say what became of the series before one that is opened now, if it was never complete."""
    if due.series is not None:
        return None
    begun = [one for one in series_states(state, due.experiment) if one.number == due.number - 1]
    for one in begun:
        if one.state != "complete":
            became = "voided" if one.state == "voided" else "abandoned"
            repeats = f"{one.repeats} of {one.planned}" if one.planned else str(one.repeats)
            why = one.why or "it was not begun for what is registered"
            return f"series {one.number} of {due.experiment} was {became} after {repeats} repeats: {why}"
    return None


def said_before(error: PreregError) -> PreregError:
    """Return the error for the experiment's other predictions: what is wrong, without the advice again."""
    return type(error)([replace(problem, advice=None) for problem in error.problems])
