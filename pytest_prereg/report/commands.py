"""What the commands say: how a prediction will be decided, what a repeat recorded, what was imported."""

from __future__ import annotations

import math
import os
import shlex
from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_prereg.errors import one_line
from pytest_prereg.evidence.file_origins import origins_of
from pytest_prereg.evidence.import_commands import import_command
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.evidence.naming import shown
from pytest_prereg.judge.numbers import short, suffix
from pytest_prereg.measure.failures import words
from pytest_prereg.registry.builtins import MODULES
from pytest_prereg.registry.commands import AT_MOST, BUILT_IN, EXIT_CODE, MAX_RSS, WALL
from pytest_prereg.registry.digest import USUAL_CONFIDENCE
from pytest_prereg.registry.instruments import INSTRUMENTS
from pytest_prereg.registry.model import ONLY_ARM
from pytest_prereg.registry.refusals import listed, quoted
from pytest_prereg.registry.regions import describe
from pytest_prereg.report.columns import padded, width_of, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_prereg.audit.stamping.anchoring import Anchored
    from pytest_prereg.evidence.model import Finished, Series, Started, Value
    from pytest_prereg.evidence.sessions import SessionFile
    from pytest_prereg.judge.design import DesignReport
    from pytest_prereg.registry.model import Experiment, Input, Metric, Prediction, Study
    from pytest_prereg.registry.regions import Region

_INDENT = 12
_NO_OPTIONS: Mapping[str, str | None] = {}
_WORDS = 3
"""Fewer are no reason that anybody could check."""
_DEADLINE, _EXIT = "deadline", "exit"
"""Causes of a failure, as the evidence has them."""
_MINUTES, _HOURS = 120, 7200
"""Seconds from which a duration is told in minutes, and in hours."""


def registered_lines(
    prediction: Prediction,
    experiments: Mapping[str, Experiment],
    regions: tuple[Region, Region],
    design: DesignReport,
    width: int = 80,
) -> list[str]:
    """Return how a prediction will be decided: what is estimated, from what, by which rule."""
    power = "; ".join(_power(design, is_composite=bool(prediction.members)))
    texts = (estimand(prediction, experiments), decision_rule(prediction, *regions), power)
    below = (line for text in texts for line in wrapped(text, width - _INDENT))
    return [f"{'registered':<{_INDENT}}{prediction.id}", *(" " * _INDENT + line for line in below)]


def estimand(prediction: Prediction, experiments: Mapping[str, Experiment]) -> str:
    """Return what is estimated: ``geometric mean of t_sort, sorted / shuffled, paired over 10 blocks``."""
    if prediction.members:
        return f"all of {listed(prediction.members)}"
    if prediction.formula is not None:
        return f"{prediction.formula.text}, where {'; '.join(map(_input, prediction.formula.inputs))}"
    parts = [_of_quantity(prediction)]
    if prediction.contrast is not None and prediction.contrast.operator in ("-", "/"):
        parts.append(prediction.table.contrast or "")
    elif not prediction.points and len(prediction.arms) == 1 and prediction.arms[0] != ONLY_ARM:
        parts.append(f"arm {prediction.arms[0]}")
    if prediction.points:
        parts.append(f"{_REDUCTIONS[prediction.reduction or 'all']} {len(prediction.points)} points")
    return ", ".join([*parts, _repeats(prediction, experiments[prediction.experiment])])


_REDUCTIONS = {"geometric-mean": "geometric mean of", "min": "least of", "all": "each of"}


def _of_quantity(prediction: Prediction) -> str:
    statistic, quantity = prediction.statistic.replace("-", " "), prediction.quantity.text
    if prediction.statistic == "all":
        return quantity
    if prediction.contrast is not None and prediction.contrast.operator not in ("-", "/"):
        return f"{prediction.table.contrast} of {quantity}"
    if prediction.statistic == "proportion" and prediction.divisor is not None:
        return f"proportion of successes {quantity} in trials {prediction.divisor.text}"
    if prediction.divisor is not None:
        return f"sum of {quantity} over sum of {prediction.divisor.text}"
    argument = "" if prediction.q is None else f"({prediction.q:g})"
    return f"{statistic}{argument} of {quantity}"


def _input(each: Input) -> str:
    if each.quantity is None:
        return f"{each.name} = constant {each.constant}"
    arm = f"[{each.arm}]" if each.arm != ONLY_ARM else ""
    return f"{each.name} = mean of {each.quantity.text} in {each.experiment}{arm}"


def _repeats(prediction: Prediction, experiment: Experiment) -> str:
    counts = [experiment.arms[arm].repeats for arm in prediction.arms]
    planned = [count for count in counts if count is not None]
    if len(planned) < len(counts):
        return "over all repeats that are imported"
    stopping = experiment.stopping
    most = "at most " if stopping is not None else ""
    if len(planned) == 1:
        text = f"over {most}{planned[0]} repeats"
    elif experiment.pairing == "block":
        text = f"paired over {most}{min(planned)} blocks"
    else:
        text = f"over {most}{' and '.join(map(str, planned))} repeats, unpaired"
    if stopping is not None and stopping.looks:
        return f"{text}, looks at {' and '.join(map(str, stopping.looks))}"
    return text


def decision_rule(prediction: Prediction, predicts: Region, falsifier: Region) -> str:
    """Return the rule in a sentence: where the interval must lie for each verdict."""
    if prediction.members:
        level = 100 * (1 - (1 - prediction.confidence) / len(prediction.members))
        return f"supported: every one of them is; refuted: any of them is, at {level:.4g} %"
    level = prediction.confidence * 100
    rule = (
        f"supported: whole {level:g} % interval {_lying(predicts)}; "
        f"refuted: whole interval {_lying(falsifier)}"
    )
    return rule if prediction.confidence >= USUAL_CONFIDENCE else f"{rule}; exploratory, at less than 95 %"


def _lying(region: Region) -> str:
    text = describe(region)
    return f"in {text}" if text.startswith("[") else text


def _power(design: DesignReport, *, is_composite: bool) -> Iterator[str]:
    if design.power is not None:
        at = f"at {short(design.power.at)}"
        supported, refuted = _chance(design.power.supported), _chance(design.power.refuted)
        yield f"P(supported) {supported} and P(refuted) {refuted} {at}"
    yield from design.notes
    if design.power is None and not design.notes and not is_composite:
        yield "no expected value given, power unknown"


def _chance(probability: float) -> str:
    """Return a probability to two digits, never as a certainty."""
    text = f"{probability:.2f}"
    return {"1.00": "> 0.99", "0.00": "< 0.01"}.get(text, text)


def repeat_lines(
    experiment: Experiment, started: Started, finished: Finished, *, arms: Sequence[str], width: int = 80
) -> list[str]:
    """Return what a tried repeat recorded: ``sorted   t_sort 0.0021 s``, and that it failed if it did."""
    values = [
        f"{name} {value_text(finished.values[name], metric)}"
        for name, metric in experiment.metrics.items()
        if name in finished.values
    ]
    if experiment.kind == "command":
        values = list(_of_command(experiment, finished))
    failure = [f"FAILED: {_failure(experiment, started, finished)}"] if finished.cause else []
    label = max((width_of(arm) + 3 for arm in arms if arm), default=0)
    return _beside(padded(started.arm, label), [*values, *failure], width)


def _failure(experiment: Experiment, started: Started, finished: Finished) -> str:
    """Return the cause, with the limit that was reached; of a command how it ended, which nothing repeats."""
    limit = experiment.arms[started.arm].timeout
    if finished.cause == _DEADLINE and limit is not None:
        return f"{finished.cause}, after {duration_text(limit)}, its timeout"
    if _is_status(experiment, finished) and (sentence := words(finished)):
        return sentence
    return str(finished.cause)


def _is_status(experiment: Experiment, finished: Finished) -> bool:
    """Whether a command failed by its status alone, or could not be started."""
    return experiment.kind == "command" and finished.cause == _EXIT


def _of_command(experiment: Experiment, finished: Finished) -> Iterator[str]:
    """Yield what a command took, then what was read of it, then its memory and status: ``exit 0``.

    The CPU time is told where the study declares it, to spare the line.
    """
    values, declared = finished.values, experiment.table.metrics or {}
    last = (MAX_RSS, EXIT_CODE)
    for name in (*BUILT_IN, *(name for name in experiment.metrics if name not in BUILT_IN)):
        if name in values and name not in last and (name == WALL or name in declared):
            yield f"{name} {value_text(values[name], experiment.metrics[name])}"
    if MAX_RSS in values:
        yield f"{MAX_RSS} {_megabytes(values[MAX_RSS])}"
    elif AT_MOST in finished.diagnostics:
        yield f"{MAX_RSS} ≤ {_megabytes(finished.diagnostics[AT_MOST])}"
    if EXIT_CODE in values and not _is_status(experiment, finished):
        yield f"exit {value_text(values[EXIT_CODE], experiment.metrics[EXIT_CODE])}"


def _megabytes(count: Any) -> str:
    return f"{count / 1e6:.3g} MB" if isinstance(count, float | int) else str(count)


def _beside(label: str, items: Iterable[str], width: int) -> list[str]:
    """Return the items in as many lines as they need beside the label, none of them broken."""
    lines = [label]
    for item in items:
        if width_of(lines[-1]) + width_of(item) > width and lines[-1].strip() not in ("", label.strip()):
            lines.append(" " * width_of(label))
        lines[-1] += f"{item}   "
    return [line.rstrip() for line in lines]


def value_text(value: Value, metric: Metric) -> str:
    """Return a recorded value in four digits with its unit; of samples their mean and number."""
    if not isinstance(value, list):
        return f"{_four_digits(value)}{suffix(metric.unit)}"
    mean = math.fsum(value) / len(value)
    return f"{_four_digits(mean)}{suffix(metric.unit)} (mean of {len(value)})"


def _four_digits(value: float) -> str:
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.4g}"  # noqa: PLR2004


def fallback_lines(experiment: Experiment, finished: Finished) -> list[str]:
    """Return which metrics of a tried repeat another instrument read than they declare, in its place."""
    lines = []
    for name, metric in experiment.metrics.items():
        kind, taker = INSTRUMENTS.get(metric.instrument or ""), finished.instruments.get(name)
        if kind is not None and taker is not None and taker == kind.falls_back_to:
            lines.append(f"{name} was read by {taker}, in place of {kind.name}: no CUDA device is used here")
    return lines


def diagnostic_lines(experiment: Experiment, finished: Finished) -> list[str]:
    """Return, indented, the sentence that a failed repeat ended with, then what it printed or raised.

    How a command ended is told beside its values.
    """
    lines = (finished.error or "").strip().splitlines()
    if _is_status(experiment, finished):
        return [f"    {line}" for line in lines[1:]]
    sentence = words(finished) if lines else None
    first = [sentence] if sentence is not None and lines[0] != sentence else []
    return [f"    {line}" for line in (*first, *lines)]


def whole_text(planned: Mapping[str, int], seconds: float) -> str:
    """Return how long all registered repeats would take."""
    count = sum(planned.values())
    return f"{count} repeats would take about {duration_text(seconds)}"


def imported_lines(
    experiment: Experiment,
    file: SessionFile,
    series: Series,
    *,
    was_decided: bool = False,
    options: Mapping[str, str | None] = _NO_OPTIONS,
) -> list[str]:
    """Return what an import brought, what its series still wants, and the next command.

    Args:
        experiment: What was imported.
        file: The session file that it became.
        series: The one that this belongs to; one that a stopping rule ended wants nothing.
        was_decided: Whether the series was complete without the file.
        options: What it was given with, by option: a file of the same kind wants the same.
    """
    brought = Counter(attempt.arm for attempt in file.attempts)
    wanting = {} if series.complete else dict(_wanting(experiment, series))
    lines = [f"imported {_arms(brought)} of {experiment.id} into series {series.number}"]
    lines.extend(_taken_for_granted(experiment, file))
    if was_decided:
        lines.append(f"series {series.number} was decided before: these are surplus, kept, and left out")
    elif series.surplus:
        lines.append(f"{series.surplus} more than registered: kept, and left out")
    if not wanting:
        return [*lines, "next:  pytest --prereg-verify --prereg-record"]
    lines.append(f"series {series.number} still wants {_arms(wanting)}")
    return [*lines, f"next:  {import_command(experiment.id, next(iter(wanting)), options)}"]


def anchored_lines(anchored: Anchored) -> list[str]:
    """Return what an authority has signed of the lock at HEAD, and where that is kept."""
    return [f"anchored  the lock at HEAD {anchored.stamp.statement}", f"kept in {shown(anchored.path)}"]


def _taken_for_granted(experiment: Experiment, file: SessionFile) -> Iterator[str]:
    """Yield what was read as a repeat, and a line for each thing that the files did not say."""
    origins = origins_of(file.header)
    told = [one for one in origins if "repeat" in one]
    yield from sorted({f"{one['format']}: {one['benchmark']}; a repeat is {one['repeat']}" for one in told})
    for name in dict.fromkeys(name for one in origins for name in one.get("units-assumed", ())):
        yield f"no unit is given for {name}: taken to be in {experiment.metrics[name].unit}"
    for declared in (one["declared-independent"] for one in told if "declared-independent" in one):
        yield f'{declared["although"]}; taken to be independent, as unit = "{declared["unit"]}" declares'
        break
    for one in told:
        yield from (f"{one['name']}: {notice}" for notice in one.get("notices", ()))
    if failed := sum(attempt.outcome is Outcome.TASK_FAILED for attempt in file.attempts):
        yield f"{failed} of them failed, and {'count' if failed > 1 else 'counts'} as such"


def _wanting(experiment: Experiment, series: Series) -> Iterator[tuple[str, int]]:
    """Yield how many repeats each arm lacks; at least one where no number is registered."""
    settled = Counter(repeat.arm for repeat in series.repeats)
    for arm in experiment.arms:
        missing = (series.planned or {}).get(arm, 1) - settled[arm]
        if missing > 0:
            yield arm, missing


def _arms(counts: Mapping[str, int]) -> str:
    """Return ``12 repeats (new 6, base 6)``."""
    total = sum(counts.values())
    arms = ", ".join(f"{arm} {count}" for arm, count in counts.items() if arm != ONLY_ARM)
    return f"{total} repeat{'s' * (total != 1)}" + (f" ({arms})" if arms else "")


def duration_text(seconds: float) -> str:
    """Return a duration to two digits: ``0.25 s``, ``25 s``, ``4 min``, ``3 h``."""
    if seconds < _MINUTES:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"  # noqa: PLR2004
    return f"{seconds / 60:.0f} min" if seconds < _HOURS else f"{seconds / 3600:.1f} h"


def doubtful_lines(study: Study) -> Iterator[str]:
    """Yield what ``lock`` notes of a study: what has a name of the package's, and trust without a reason."""
    for name, each in study.experiments.items():
        function = each.source.function if each.source is not None and each.source.path is not None else None
        if function in MODULES:
            yield f"note: {function}, which {name} runs, is this study's own, and not the package's"
    for name, table in study.instruments.items():
        if table.trusted is not None and len(table.trusted.split()) < _WORDS:
            why = quoted(one_line(table.trusted))
            yield f"note: instrument {name} is trusted because {why}; say why, in a sentence"


def uncommitted_text(study: Study, path: Path) -> str:
    """Return what ``new`` and ``lock`` say of a file that a command names, and that no commit has."""
    name = os.path.relpath(path, study.folder.resolve())
    return (
        f"note: {shown(path)} is named by the command and in no commit, so nobody can repeat this: commit "
        f"it, or have its content registered by data = [{quoted(name)}]"
    )


def tried_lines(experiment: str, names: Sequence[str]) -> Iterator[str]:
    """Yield what ``lock`` says where an experiment was tried, and claims of it say that nothing was seen."""
    whose = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    yield f'{experiment} was tried before: data-seen = "pilot" in {whose} would say so, and an audit asks;'
    yield f"  then:  pytest-prereg amend {' '.join(map(shlex.quote, names))} --reason 'it was tried'"
