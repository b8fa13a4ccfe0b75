"""What took the readings that a verdict rests on, and why each may decide: for ``explain``.

How wide a region may be that a calibration has to lie in, no tool can tell: so it is shown, with the claim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.audit.calibration import calibrators_of
from pytest_prereg.audit.conditions import finding
from pytest_prereg.audit.dependencies import calibrators
from pytest_prereg.audit.provenance import repeats_read
from pytest_prereg.errors import PreregError, one_line
from pytest_prereg.registry.builtins import MODULES
from pytest_prereg.registry.instruments import INSTRUMENTS, SELF_BOUND
from pytest_prereg.registry.refusals import quoted
from pytest_prereg.registry.regions import describe
from pytest_prereg.registry.uses import arms_of, metrics_of
from pytest_prereg.report.commands import estimand

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_prereg.audit.assess import StudyState
    from pytest_prereg.evidence.model import Series
    from pytest_prereg.registry.model import Experiment, Prediction

BY_HAND = "recorded by hand"
FROM_A_FILE = "read from what the command left"
COUNTED = "counted by the body"
_NOBODY = (BY_HAND, FROM_A_FILE, COUNTED)


def read_by(state: StudyState, prediction: Prediction) -> list[str]:
    """Return a line for each instrument, what it reads and why it may decide, then one for each calibration.

    Where there is evidence it is what that says, else what the metrics declare.
    """
    lines: dict[str, None] = {}
    by: dict[str, None] = {}
    parts = [state.study.predictions[name] for name in prediction.members] or [prediction]
    for part in parts:
        for name in part.experiments:
            series = (state.bases[prediction.id] or {}).get(name)
            for taker, metrics in sorted(_takers(state, part, name, series).items()):
                what = _what(taker, _declared(state, name, metrics))
                names = _calibrations_of(state, part, series, taker)
                lines[f"{what} ({', '.join(metrics)}): {_why(state, part, names, taker)}"] = None
                by |= dict.fromkeys(names or ())
    calibrations = (state.study.predictions[name] for name in by if name in state.study.predictions)
    return [*lines, *(_calibration(state, each) for each in calibrations)]


def _declared(state: StudyState, experiment: str, metrics: list[str]) -> set[str]:
    known = state.study.experiments[experiment].metrics
    return {known[name].instrument or "" for name in metrics}


def _what(taker: str, declared: set[str]) -> str:
    """An instrument as people are told of it: whose it is, and in whose place it read."""
    if taker in _NOBODY:
        return taker
    if taker not in INSTRUMENTS and taker not in SELF_BOUND:
        return f"{taker}, an instrument of this study's own"
    replaced = [one for one in sorted(declared - {taker}) if taker in _fallbacks(one)]
    return f"{taker}, in place of {' and '.join(replaced)}" if replaced else taker


def _fallbacks(declared: str) -> set[str | None]:
    return {INSTRUMENTS[declared].falls_back_to} if declared in INSTRUMENTS else set()


def _takers(
    state: StudyState, prediction: Prediction, experiment: str, series: Series | None
) -> dict[str, list[str]]:
    """Metrics that a prediction reads in one experiment, by what took them."""
    takers: dict[str, list[str]] = {}
    by_nobody = FROM_A_FILE if state.study.experiments[experiment].kind == "command" else BY_HAND
    for name in metrics_of(prediction, experiment):
        metric = state.study.experiments[experiment].metrics[name]
        unnamed = COUNTED if metric.exact else None
        if series is None or series.origin == "imported":
            found = {metric.instrument or unnamed}
        else:
            with_values = (one for one in repeats_read(prediction, series) if name in one.values)
            found = {one.instruments.get(name, unnamed or by_nobody) for one in with_values}
        for taker in found - {None}:
            takers.setdefault(str(taker), []).append(name)
    return takers


def _calibrations_of(
    state: StudyState, prediction: Prediction, series: Series | None, taker: str
) -> list[str] | None:
    """Ids of what calibrates an instrument; ``None`` where nothing spoke for it when it was measured."""
    if series is None or taker in _NOBODY:
        return calibrators(state.study, taker)
    return calibrators_of(state, prediction, series, taker)


def _why(state: StudyState, prediction: Prediction, names: list[str] | None, taker: str) -> str:
    """Why what an instrument reads may decide."""
    if taker in (BY_HAND, FROM_A_FILE):
        return "no instrument is named"
    if taker == COUNTED:
        return "exact, and no instrument is named"
    if names is None:
        return "neither calibrated nor trusted when it was measured"
    if names:
        return f"calibrated by {' and '.join(_found(state, prediction, one) for one in names)}"
    table, kind = state.study.instruments.get(taker), INSTRUMENTS.get(taker)
    if table is not None and table.trusted:
        return f"trusted, since {one_line(table.trusted)}"
    return f"trusted, since {kind.trusted}" if kind and kind.trusted else "the study does not say what it is"


def _found(state: StudyState, prediction: Prediction, name: str) -> str:
    if name not in state.study.predictions:
        return f"{quoted(name)}, which is not in the study any more"
    return f"{quoted(name)}, which {finding(state, name, prediction)}"


def _calibration(state: StudyState, prediction: Prediction) -> str:
    """What a calibration claims, in which region it has to lie, and what was run for it, and where."""
    parts = [state.study.predictions[name] for name in prediction.members] or [prediction]
    regions = _listed(_region(state, one) for one in parts)
    names = dict.fromkeys(name for one in parts for name in one.experiments)
    ran = _listed(_experiment(state.study.experiments[name]) + _given(state, parts, name) for name in names)
    basis = (state.bases[prediction.id] or {}).values()
    machines = sorted({one.machine for series in basis for one in series.repeats if one.machine is not None})
    on = f", on {_listed(map(one_line, machines))}" if machines else ""
    claim = one_line(prediction.claim).removesuffix(".")
    return f"{quoted(prediction.id)}: {claim}; wants {regions}, of {ran}{on}"


def _region(state: StudyState, prediction: Prediction) -> str:
    what = estimand(prediction, state.study.experiments).partition(",")[0]
    try:
        predicts = describe(state.terms(prediction).predicts)
    except PreregError:
        return what
    return f"{what} {'in ' if predicts.startswith('[') else ''}{predicts}"


def _experiment(experiment: Experiment) -> str:
    """Which code a calibration runs: a study's own is not checked by anybody but who reads it."""
    name, source = quoted(experiment.id), experiment.source
    if source is None:
        return name
    if source.path is None:
        return f"{name}, the package's {source.function}"
    also = ", and not the package's" if source.function in MODULES else ""
    return f"{name}, the study's own {source.function}{also}"


def _given(state: StudyState, parts: Iterable[Prediction], experiment: str) -> str:
    """The parameters that a calibration's arms were given, with their values: it shows no more than those."""
    values: dict[str, dict[str, None]] = {}
    for arm in dict.fromkeys(arm for one in parts for arm in arms_of(one, experiment)):
        for name, value in state.study.experiments[experiment].arms[arm].params.items():
            values.setdefault(name, {})[quoted(value) if isinstance(value, str) else _short(value)] = None
    told = _listed(f"{name} = {_few([*several])}" for name, several in values.items())
    return f" with {told}" if told else ""


def _short(value: object) -> str:
    return quoted(f"{value:g}" if isinstance(value, float) else value).strip('"')


def _few(values: list[str]) -> str:
    """Two values, or the first and the last of more."""
    return " or ".join(values) if len(values) <= 2 else f"{values[0]} … {values[-1]}"  # noqa: PLR2004


def _listed(texts: Iterable[str]) -> str:
    """``a, b and c``."""
    several = [*texts]
    return " and ".join(part for part in (", ".join(several[:-1]), *several[-1:]) if part)
