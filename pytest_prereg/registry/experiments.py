"""Experiment tables to experiments: what runs, in which arms, how often, and what each repeat records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from pytest_prereg.registry.arms import build_arms, fed_by_import, pairing_of
from pytest_prereg.registry.caches import check_cache
from pytest_prereg.registry.command_tables import check_command
from pytest_prereg.registry.commands import BUILT_IN
from pytest_prereg.registry.declarations import metric, wrong_metric_name
from pytest_prereg.registry.environment_conditions import parse_condition
from pytest_prereg.registry.instruments import INSTRUMENTS, READS, SELF_BOUND, in_unit, needs_calibration
from pytest_prereg.registry.model import Arm, Experiment, Metric
from pytest_prereg.registry.refusals import RefusedError, listed, nearest, quoted, suggestion
from pytest_prereg.registry.resources import check_resources
from pytest_prereg.registry.rules import parse_rule
from pytest_prereg.registry.services import check_service
from pytest_prereg.registry.structure import label
from pytest_prereg.registry.tables import ExperimentTable, MetricTable, PredictionsFile, RepeatsTable
from pytest_prereg.registry.unit_text import normal_unit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_prereg.registry.declarations import Declared
    from pytest_prereg.registry.positions import Path
    from pytest_prereg.registry.structure import Complaints

_TABLE = """\
Name the claims that calibrate it, or say why it may be trusted:
[instruments.{name}]
calibrated-by = ["its-bias", "its-spread"]   # or: trusted = "reason"
"""


def build_experiments(
    file: PredictionsFile, declared: Mapping[str, Declared], complaints: Complaints
) -> dict[str, Experiment]:
    """The experiments whose metrics are known; all that is wrong with any is complained about."""
    built = {}
    for name, table in (file.experiments or {}).items():
        keys = ("experiments", name)
        known = _known(keys, table, declared, complaints)
        metrics = _metrics(keys, table, known, file, complaints)
        arms = build_arms(keys, table, known, complaints)
        _check_table(keys, table, metrics, arms, complaints)
        if metrics:
            built[name] = Experiment(
                id=name,
                kind=_kind(table),
                table=table,
                arms=arms,
                metrics=metrics,
                pairing=pairing_of(table),
                source=known.source if known else None,
                line=complaints.positions.line(*keys),
            )
    return built


def _kind(table: ExperimentTable) -> Literal["fixture", "command", "import"]:
    if fed_by_import(table):
        return "import"
    return "fixture" if table.fixture is not None else "command"


def _known(
    keys: Path, table: ExperimentTable, declared: Mapping[str, Declared], complaints: Complaints
) -> Declared | None:
    if table.fixture is None or table.fixture in declared:
        return declared.get(table.fixture) if table.fixture is not None else None
    if not complaints.told("fixtures"):
        hint = suggestion(table.fixture, declared, "known")
        complaints.add(
            (*keys, "fixture"),
            "PR040",
            f"{label(keys)}: no @experiment function is called {quoted(table.fixture)}{hint}",
        )
    return None


def _metrics(
    keys: Path, table: ExperimentTable, known: Declared | None, file: PredictionsFile, complaints: Complaints
) -> dict[str, Metric]:
    """Metrics of the experiment's module, and over them the table's; empty where they can't be known."""
    if table.fixture is not None and known is None:
        return {}
    metrics = dict(known.metrics if known else {} if table.command is None else BUILT_IN)
    for name, value in (table.metrics or {}).items():
        here = (*keys, "metrics", name)
        if wrong := wrong_metric_name(name):
            complaints.add(here, "PR006", f"{label(keys)}: metric {quoted(name)} {wrong}")
        written = metric(name, value if isinstance(value, MetricTable) else MetricTable(unit=value))
        if name in metrics and metrics[name].unit != written.unit:
            where = f"in {quoted(metrics[name].unit)}, not {quoted(written.unit)}"
            whose = "its module declares" if known else "every command has"
            complaints.add(here, "PR005", f"{label(keys)}: {whose} metric {quoted(name)} {where}")
        metrics[name] = _merged(metrics.get(name), written)
    for name, each in metrics.items():
        _check_metric(keys, name, each, file, complaints)
    if not metrics and not any(complaints.told(*keys, key) for key in ("metrics", "command", "fixture")):
        message = (
            f'{label(keys)} has no "fixture" or "command"; if it is fed by import, declare its "metrics"'
        )
        complaints.add((*keys, "metrics"), "PR004", message)
    return metrics


def _merged(declared: Metric | None, written: Metric) -> Metric:
    """What a table says of a metric, over what its module says."""
    if declared is None:
        return written
    defaults = Metric(name=written.name, unit=written.unit)
    changed = {
        field: getattr(written, field)
        for field in Metric.__struct_fields__
        if getattr(written, field) != getattr(defaults, field)
    }
    return msgspec.structs.replace(declared, **changed)


def _check_metric(keys: Path, name: str, each: Metric, file: PredictionsFile, complaints: Complaints) -> None:
    here = (*keys, "metrics", name)
    try:
        normal_unit(each.unit)
    except RefusedError as refusal:
        complaints.refuse(here, f"{label(keys)}, metric {quoted(name)}", refusal)
    if each.instrument is not None:
        _check_instrument(keys, each, each.instrument, file, complaints)


def _check_instrument(
    keys: Path, each: Metric, instrument: str, file: PredictionsFile, complaints: Complaints
) -> None:
    """Whether a metric's instrument is known, and may decide.

    One that has to be calibrated fills in its readings itself, so the metric's unit must be one of theirs;
    what is derived from the readings of another may be in any.
    """
    here, own = (*keys, "metrics", each.name), file.instruments or {}
    whose = f"{label(keys)}: metric {quoted(each.name)}"
    kind = INSTRUMENTS.get(instrument)
    if each.exact and needs_calibration(instrument):
        message = f'{whose} is "exact", and {instrument} reads it: only a count is exact'
        complaints.add(here, "PR005", message, 'Leave "exact" out.')
    if kind is not None and kind.trusted is None:
        if not complaints.told(*here) and in_unit(kind, each.unit) is None:
            reads = f"{kind.name} reads {READS[kind.unit]} ({quoted(kind.unit)})"
            advice = f"Declare it in {quoted(kind.unit)}, or name what does read it."
            complaints.add(here, "PR007", f"{whose} is in {quoted(each.unit)}, and {reads}", advice)
        if kind.name not in own:
            message = f"{whose} is read by {kind.name}, which decides nothing uncalibrated"
            near = nearest(kind.name, [name for name in own if name not in INSTRUMENTS])
            message += f"; there is a table {quoted(near)}: was it meant for this one?" if near else ""
            complaints.add(here, "PR007", message, _TABLE.format(name=kind.name))
    elif instrument not in own and instrument not in SELF_BOUND:
        near = nearest(instrument, [*own, *SELF_BOUND, *INSTRUMENTS])
        hint = suggestion(instrument, [near] if near else own, "known")
        complaints.add(here, "PR007", f"{whose} names unknown instrument {quoted(instrument)}{hint}")


def _check_table(
    keys: Path,
    table: ExperimentTable,
    metrics: Mapping[str, Metric],
    arms: Mapping[str, Arm],
    complaints: Complaints,
) -> None:
    if table.fixture is not None and table.command is not None:
        complaints.add(keys, "PR005", f'{label(keys)} has both "fixture" and "command"; keep one')
    is_told = complaints.told(*keys, "command")
    if table.read is not None and table.command is None and not is_told:
        complaints.add((*keys, "read"), "PR005", f'{label(keys)} has "read", which needs a "command"')
    unplanned = any(arm.repeats is None for arm in arms.values())
    if unplanned and not fed_by_import(table) and not complaints.told(*keys, "repeats"):
        complaints.add((*keys, "repeats"), "PR004", f'{label(keys)} lacks "repeats"')
    check_command(keys, table, metrics, arms, complaints)
    check_service(keys, table, arms, complaints)
    check_cache(keys, table, arms, complaints)
    check_resources((*keys, "resources"), table.resources, complaints)
    if isinstance(table.repeats, RepeatsTable):
        _check_stopping(keys, table.repeats, complaints)
        _check_pace(keys, table, arms, complaints)
    for name, (low, high) in (table.bounds or {}).items():
        here = (*keys, "bounds", name)
        if metrics and name not in metrics:
            hint = suggestion(name, metrics, "declared")
            complaints.add(here, "PR007", f'{label(keys)}: "bounds" has unknown metric {quoted(name)}{hint}')
        if low > high:
            message = f"{label(keys)}: bounds of {quoted(name)} are empty: {low} is above {high}"
            complaints.add(here, "PR005", message)
    for rule in table.exclude or ():
        complaints.attempt((*keys, "exclude"), label(keys), parse_rule, rule)
    for key, value in (table.conditions or {}).items():
        complaints.attempt((*keys, "conditions", key), label(keys), parse_condition, key, value)


def _check_stopping(keys: Path, repeats: RepeatsTable, complaints: Complaints) -> None:
    if any(complaints.told(*keys, "repeats", key) for key in ("looks", "max", "stopping")):
        return  # read as if it were not there
    looks = repeats.looks
    anytime = repeats.max is not None and repeats.stopping is not None
    at_looks = repeats.max is None and repeats.stopping is None and bool(looks)
    if not (at_looks or (anytime and looks is None)) or (looks or []) != sorted(set(looks or [])):
        complaints.add(
            (*keys, "repeats"),
            "PR005",
            f'{label(keys)}: "repeats" must be a number, {{ looks = [5, 10] }} in rising order, '
            'or { max = 30, stopping = "anytime" }',
        )


def _check_pace(keys: Path, table: ExperimentTable, arms: Mapping[str, Arm], complaints: Complaints) -> None:
    """A series that may end early has as many repeats of each arm whenever that is decided."""
    what = "a series that may end early needs as many repeats of every arm at each step"
    if table.order == "sequential":
        message = f'{label(keys)}: {what}; write order = "interleaved", or repeats as a number'
        complaints.add((*keys, "order"), "PR024", message)
    own = [name for name, arm in (table.arms or {}).items() if "repeats" in arm]
    if own and len({arm.repeats for arm in arms.values()}) > 1:
        message = f'{label(keys)}: {what}; leave "repeats" out of {listed(own)}, or write it as a number'
        complaints.add((*keys, "arms", own[0], "repeats"), "PR024", message)
