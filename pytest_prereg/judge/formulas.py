"""The verdict on a formula over quantities of several experiments, and constants from elsewhere."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from pytest_prereg.judge.censoring import cut_off, untested_tail
from pytest_prereg.judge.drift import drifting
from pytest_prereg.judge.exclusions import NONE, alternatives, by_author, choices, disagreement
from pytest_prereg.judge.findings import APPROXIMATE, Drift, Finding, conclude, too_few
from pytest_prereg.judge.fitness import SMALLEST_N
from pytest_prereg.judge.gradients import gradient
from pytest_prereg.judge.inputs import parts_of, read_part
from pytest_prereg.judge.instruments import UNSTATED, are_unstated
from pytest_prereg.judge.intervals import moments
from pytest_prereg.judge.model import Judgement, Reason, Verdict
from pytest_prereg.judge.obstacles import against, failures, first_of, losses, obstacles_to
from pytest_prereg.judge.propagation import propagate
from pytest_prereg.judge.resolution import few_values, too_few_values, widening
from pytest_prereg.judge.samples import SET_ASIDE
from pytest_prereg.judge.valueless import unjudgeable
from pytest_prereg.registry.evaluation import evaluate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_prereg.evidence.model import Series
    from pytest_prereg.judge.exclusions import Choice
    from pytest_prereg.judge.findings import Doubt
    from pytest_prereg.judge.inputs import Group, Part
    from pytest_prereg.judge.intervals import Moments
    from pytest_prereg.judge.propagation import Propagated
    from pytest_prereg.judge.question import Question
    from pytest_prereg.judge.samples import Reading
    from pytest_prereg.registry.model import Experiment, Formula, Prediction
    from pytest_prereg.registry.regions import Region
    from pytest_prereg.registry.tables import ConstantTable

METHOD = "linear propagation"
LINEAR_TO = 0.1
"""How far the formula may depart from a straight line, as a share of the interval's half-width."""
_UNDEFINED = (ArithmeticError, ValueError)


class Case(NamedTuple):
    """A formula, what it takes from each experiment, and what is known against a verdict from outside."""

    prediction: Prediction
    formula: Formula
    parts: list[Part]
    constants: Mapping[str, ConstantTable]
    scale: float
    obstacles: Sequence[Doubt]

    @property
    def question(self) -> Question:
        """Any of the questions asked: all have the regions and the confidence of the prediction."""
        return self.parts[0].question


class Measured(NamedTuple):
    """One measured input: its question, and its values in run order."""

    question: Question
    values: list[float]
    sample: Moments
    grain: float


def judge_formula(
    prediction: Prediction,
    experiments: Mapping[str, Experiment],
    series: Mapping[str, Series],
    *,
    predicts: Region,
    falsifier: Region,
    scale: float = 1.0,
    constants: Mapping[str, ConstantTable],
    obstacles: Sequence[Doubt] = (),
    confidence: float | None = None,
) -> Judgement:
    """Judge the value of a formula at the means of its inputs, from complete series.

    Linear propagation (JCGM 100:2008, 5.1), with inputs of one repeat or block taken jointly and Welch and
    Satterthwaite's degrees of freedom over independent arms and experiments.

    Args:
        prediction: What was claimed; it has a formula.
        experiments: The experiments of its inputs as registered, by id.
        series: The series of each that decides, by experiment id.
        predicts: The predicted region, in the unit shown.
        falsifier: The falsifying region, in the unit shown.
        scale: Factor from the formula's natural unit to the one shown.
        constants: The study's constants; one with an interval is as uncertain as that says.
        obstacles: What is known against a verdict from outside the series.
        confidence: Confidence in place of the registered one, for families and conjunctions.

    Returns:
        The verdict with its numbers; n is that of the arm or the blocks with fewest.

    Raises:
        JudgeError: An input has no finite value in a repeat that counts, two repeats claim one place in a
            block, or values are too close together to judge.
    """
    if prediction.formula is None:
        raise ValueError(f"prediction: {prediction.id!r} has no formula")
    parts = parts_of(
        prediction,
        prediction.formula.inputs,
        experiments,
        series,
        predicts=predicts,
        falsifier=falsifier,
        constants={name: table.value for name, table in constants.items()},
        confidence=confidence,
    )
    case = Case(prediction, prediction.formula, parts, constants, scale, obstacles)
    judgement = _concluded(case, NONE)
    if not judgement.set_aside:
        return judgement
    own = frozenset[str]().union(*(by_author(part.repeats) for part in parts))
    others = [(choice, _concluded(case, choice)) for choice in choices(judgement.set_aside, own)]
    doubt = disagreement(judgement, [each for each in others if own.issuperset(each[0])], {})
    judgement = replace(judgement, alternatives=alternatives(others))
    return judgement if doubt is None else against(judgement, doubt)


def _concluded(case: Case, choice: Choice) -> Judgement:
    """Judge with a ``choice`` of the repeats that were set aside."""
    doubts, groups, set_aside = list(case.obstacles), [], []
    for part in case.parts:
        sample, own = read_part(part, choice)
        groups += own
        allowed = part.experiment.table.max_excluded
        doubts += _told(case, part, [*_obstacles(part), *losses(sample, allowed, choice)])
        set_aside += [repeat.id for repeat in part.repeats if repeat.outcome in SET_ASIDE]
    doubts += _across(case.parts)
    finding = _find(case, groups)
    if finding.doubt is not None:
        doubts.append(finding.doubt)
    reason, detail = first_of(doubts) or (None, finding.note)
    hidden = reason is Reason.TASK_FAILED  # as for a single experiment
    planned = [part.planned for part in case.parts if part.planned is not None]
    return Judgement(
        prediction=case.prediction.id,
        verdict=finding.verdict if reason is None else Verdict.INCONCLUSIVE,
        reason=reason,
        detail=detail,
        estimate=None if hidden else finding.estimate,
        interval=None if hidden else finding.interval,
        confidence=finding.level,
        method=finding.method,
        statistic=case.prediction.statistic,
        n=finding.n,
        planned=min(planned, default=None),
        excluded=len(set_aside),
        flags=(*finding.flags, *([UNSTATED] if _are_unstated(case) else [])),
        repeats=finding.repeats,
        set_aside=tuple(set_aside),
    )


def _are_unstated(case: Case) -> bool:
    return any(
        part.series.origin == "measured" and are_unstated(part.question.metrics, part.repeats)
        for part in case.parts
    )


def _obstacles(part: Part) -> Iterator[Doubt]:
    n = part.planned or len(part.repeats) // len(part.arms)
    yield from obstacles_to(part.question, part.series, part.repeats, part.series.faults, n)
    yield from failures(part.question, part.repeats)


def _told(case: Case, part: Part, doubts: Sequence[Doubt]) -> list[Doubt]:
    """Say which experiment it is, where there are several."""
    if len(case.parts) == 1:
        return list(doubts)
    return [(reason, f"{part.experiment.id}: {detail}") for reason, detail in doubts]


def _across(parts: Sequence[Part]) -> Iterator[Doubt]:
    """Inputs that were measured on different machines are not one claim."""
    machines = {
        part.experiment.id: sorted({repeat.machine for repeat in part.repeats if repeat.machine is not None})
        for part in parts
    }
    if len(parts) > 1 and len({machine for on in machines.values() for machine in on}) > 1:
        ran = "; ".join(
            f"{name} on {' and '.join(on) or 'an unknown machine'}" for name, on in machines.items()
        )
        yield Reason.SCOPE, f"the experiments ran on different machines: {ran}"


def _find(case: Case, groups: Sequence[Group]) -> Finding:
    """The finding on what was read, before anything outside it is weighed."""
    blank = Finding(
        level=case.question.confidence,
        method=METHOD,
        n=min(len(group.rows) for group in groups),
        repeats=tuple(dict.fromkeys(reading.repeat.id for group in groups for reading in group.readings())),
    )
    for group in groups:
        if len(group.rows) < SMALLEST_N:
            short = too_few(SMALLEST_N, len(group.rows), group.noun, f" of {group.experiment}")
            return replace(blank, doubt=short)
    if doubt := cut_off(case.question, _most_cut(groups)):
        return replace(blank, doubt=doubt)
    measured = _measured(case, groups)
    point = {name: one.sample.mean for name, one in measured.items()}
    point |= {name: value for name, (value, _, _) in _fixed(case).items()}
    try:
        estimate = evaluate(case.formula.node, point)
    except _UNDEFINED as error:
        return replace(blank, doubt=(Reason.UNBOUNDED, f"the formula has no value at the means: {error}"))
    if not math.isfinite(estimate):
        return replace(blank, doubt=(Reason.UNBOUNDED, f"the formula is {estimate} at the means"))
    return _propagated(case, groups, measured, point, blank)


def _most_cut(groups: Sequence[Group]) -> list[Reading]:
    """One reading of each repeat: that with most samples cut off."""
    most: dict[str, Reading] = {}
    for group in groups:
        for reading in group.readings():
            other = most.setdefault(reading.repeat.id, reading)
            if reading.cut > other.cut:
                most[reading.repeat.id] = reading
    return list(most.values())


def _measured(case: Case, groups: Sequence[Group]) -> dict[str, Measured]:
    questions = {name: question for part in case.parts for name, question in part.questions.items()}
    found = {}
    for group in groups:
        for name in group.names:
            readings = group.column(name)
            values = [reading.low for reading in readings]
            try:
                sample = moments(values)
            except OverflowError as error:
                what = f'input "{name}" of prediction "{case.prediction.id}"'
                message = f"{what} has values too large, or too close together, to judge"
                raise unjudgeable(case.prediction.id, message) from error
            size = max(reading.grain for reading in readings)
            found[name] = Measured(questions[name], values, sample, size)
    return found


def _fixed(case: Case) -> dict[str, tuple[float, float, float]]:
    """Value and limits of each constant, by the input's name."""
    fixed = {}
    for each in case.formula.inputs:
        if each.constant is not None:
            table = case.constants[each.constant]
            fixed[each.name] = (table.value, *(table.interval or (table.value, table.value)))
    return fixed


def _propagated(
    case: Case,
    groups: Sequence[Group],
    measured: Mapping[str, Measured],
    point: Mapping[str, float],
    blank: Finding,
) -> Finding:
    node, question = case.formula.node, case.question
    values = [{name: measured[name].values for name in group.names} for group in groups]
    try:
        interval = propagate(node, values, _fixed(case), question.confidence)
        coarse = [name for name, one in measured.items() if widening(one.grain, one.sample.variance)]
        slopes = gradient(node, point, coarse) if coarse else {}
    except _UNDEFINED as error:
        why = str(error).removeprefix("node: ")
        return replace(blank, doubt=(Reason.LINEARISATION, f"no straight line at the means: {why}"))
    by = math.fsum(
        abs(slope) * widening(measured[name].grain, measured[name].sample.variance)
        for name, slope in slopes.items()
    )
    shown = replace(
        interval,
        estimate=interval.estimate * case.scale,
        low=(interval.low - by) * case.scale,
        high=(interval.high + by) * case.scale,
    )
    trend = drifting([one.values for one in measured.values()])
    return conclude(
        question,
        _described(measured, blank),
        shown,
        doubt=_coarse(measured) or _bent(interval),
        drift=Drift(trend) if trend else None,
    )


def _described(measured: Mapping[str, Measured], blank: Finding) -> Finding:
    for name, one in measured.items():
        if tail := untested_tail(one.question, one.sample.n):
            flag, note = tail
            return replace(blank, flags=(APPROXIMATE, flag), note=f"input {name}: {note}")
    return replace(blank, flags=(APPROXIMATE,))


def _coarse(measured: Mapping[str, Measured]) -> Doubt | None:
    """Why an input whose values hardly differ has no interval to propagate."""
    for name, one in measured.items():
        if one.question.exact and set(one.values) <= {0.0, 1.0}:
            return Reason.RESOLUTION, f"input {name}: every value is 0 or 1, whose mean has no t interval"
        if not one.question.exact and too_few_values(one.values, max(map(abs, one.values))):
            return Reason.RESOLUTION, f"input {name}: {few_values(one.question)}"
    return None


def _bent(interval: Propagated) -> Doubt | None:
    """Why the formula may not be taken as a straight line over the intervals of its inputs."""
    half = (interval.high - interval.low) / 2
    if interval.departure <= LINEAR_TO * half:
        return None
    share = f"{100 * interval.departure / half:.2g} %" if half else "more than all"
    allowed = f"{100 * LINEAR_TO:.0f} % allowed"
    return Reason.LINEARISATION, f"departs from a straight line by {share} of the half-width, {allowed}"
