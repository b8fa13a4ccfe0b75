"""Arms of an experiment: their parameters, and what they may set of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pytest_prereg.registry.durations import parse_duration
from pytest_prereg.registry.instruments import CALIBRATES, INSTRUMENTS
from pytest_prereg.registry.model import ONLY_ARM, Arm
from pytest_prereg.registry.refusals import RefusedError, listed, quoted, suggestion
from pytest_prereg.registry.resources import resources_of
from pytest_prereg.registry.structure import label
from pytest_prereg.registry.sweeps import RESERVED_IN_ARMS, cross
from pytest_prereg.registry.tables import ExperimentTable, RepeatsTable
from pytest_prereg.registry.versions import check_versions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_prereg.registry.declarations import Declared
    from pytest_prereg.registry.positions import Path
    from pytest_prereg.registry.structure import Complaints

_INSTRUMENT = "instrument"
"""The parameter by which experiments of the package are told what to read with."""

__all__ = ["RESERVED_IN_ARMS", "build_arms", "fed_by_import", "pairing_of"]


def fed_by_import(table: ExperimentTable) -> bool:
    """Whether nothing is run, and results come from elsewhere."""
    return table.fixture is None and table.command is None


def pairing_of(table: ExperimentTable) -> Literal["block", "none"]:
    """As written, else blocks for what is measured here and none for imports."""
    return table.pairing or ("none" if fed_by_import(table) else "block")


def build_arms(
    keys: Path, table: ExperimentTable, known: Declared | None, complaints: Complaints
) -> dict[str, Arm]:
    """The arms of an experiment, or its one unnamed arm, each at every point of the sweep if there is one.

    What is wrong with them is complained about.
    """
    _check_params((*keys, "params"), table.params or {}, known, complaints)
    _check_params((*keys, "sweep"), table.sweep or {}, known, complaints)
    _check_variables(keys, table.env or {}, complaints)
    _check_instruments(keys, table, known, complaints)
    if table.arms is not None and not table.arms and not complaints.told(*keys, "arms"):
        complaints.add((*keys, "arms"), "PR004", f'{label(keys)}: "arms" names no arm')
    arms = {}
    for name, written in (table.arms or {ONLY_ARM: {}}).items():
        here = (*keys, "arms", name)
        params = {key: value for key, value in written.items() if key not in RESERVED_IN_ARMS}
        _check_params(here, params, known, complaints)
        merged = (table.params or {}) | params
        if table.arms is None or not complaints.told(*keys, "params"):
            _require_params(here if name else keys, merged, table, known, complaints)
        arms[name] = Arm(
            name=name,
            params=merged,
            env=(table.env or {}) | _env(here, written.get("env", {}), complaints),
            timeout=_timeout(here, keys, written, table, complaints),
            repeats=_repeats(here, written, table, complaints),
            resources=resources_of(here, table.resources, written.get("resources"), complaints),
        )
        _check_reserved(here, written, complaints)
    check_versions(keys, table, complaints)
    return cross(keys, table, arms, complaints)


def _planned(repeats: int | RepeatsTable | None) -> int | None:
    if isinstance(repeats, RepeatsTable):
        return repeats.looks[-1] if repeats.looks else repeats.max
    return repeats


def _check_params(
    keys: Path, params: Mapping[str, Any], known: Declared | None, complaints: Complaints
) -> None:
    for name in params:
        if not name.isidentifier():
            complaints.add(
                (*keys, name), "PR006", f"{label(keys)}: parameter {quoted(name)} is no Python identifier"
            )
        elif known is not None and name not in known.parameters:
            hint = suggestion(name, known.parameters, "it takes")
            function = quoted(known.source.function)
            complaints.add((*keys, name), "PR007", f"{label(keys)}: {function} takes no {quoted(name)}{hint}")


def _check_instruments(
    keys: Path, table: ExperimentTable, known: Declared | None, complaints: Complaints
) -> None:
    """Whether an experiment of the package is to read with an instrument, and one that it can check."""
    if known is None or known.source.path is not None or _INSTRUMENT not in known.parameters:
        return
    places = [((*keys, "params"), table.params or {})]
    places += [((*keys, "arms", name), written) for name, written in (table.arms or {}).items()]
    given = [(here, params[_INSTRUMENT]) for here, params in places if _INSTRUMENT in params]
    given += [((*keys, "sweep"), value) for value in (table.sweep or {}).get(_INSTRUMENT, [])]
    function = known.source.function
    able = CALIBRATES.get(function, tuple(INSTRUMENTS))
    for here, value in given:
        wrong = None
        if not isinstance(value, str) or value not in INSTRUMENTS:
            wrong = f"and the package has no such{suggestion(str(value), able, 'it calibrates')}"
        elif value not in able:
            wrong = f"which {function} can't check; it calibrates {listed(able)}"
        if wrong is not None:
            message = f'{label(here)}: "instrument" is {quoted(value)}, {wrong}'
            complaints.add((*here, _INSTRUMENT), "PR007", message)


def _require_params(
    keys: Path,
    params: Mapping[str, Any],
    table: ExperimentTable,
    known: Declared | None,
    complaints: Complaints,
) -> None:
    required = known.parameters.items() if known else ()
    given = {*params, *(table.sweep or {})}
    missing = [name for name, needed in required if needed and name not in given]
    if missing and known:
        function = quoted(known.source.function)
        complaints.add(keys, "PR004", f"{label(keys)}: {function} needs a value for {listed(missing)}")


def _env(keys: Path, written: Any, complaints: Complaints) -> dict[str, str]:
    if isinstance(written, dict) and all(isinstance(value, str) for value in written.values()):
        _check_variables(keys, written, complaints)
        return written
    complaints.add((*keys, "env"), "PR005", f'{label(keys)}: "env" must be a table of text')
    return {}


def _check_variables(keys: Path, variables: Mapping[str, str], complaints: Complaints) -> None:
    """Whether a process can be given the variables: a name is no empty text, and nothing has a NUL."""
    for name, value in variables.items():
        if not name or "=" in name or "\0" in f"{name}{value}":
            what = f'"env" has {quoted(name)} = {quoted(value)}, which no process can be given'
            complaints.add((*keys, "env"), "PR005", f"{label(keys)}: {what}")


def _check_reserved(keys: Path, written: Mapping[str, Any], complaints: Complaints) -> None:
    for key, kind, wanted in (("ref", str, "text"), ("resources", dict, "a table")):
        if not isinstance(written.get(key, kind()), kind):
            complaints.add((*keys, key), "PR005", f"{label(keys)}: {quoted(key)} must be {wanted}")


def _timeout(
    here: Path, keys: Path, written: Mapping[str, Any], table: ExperimentTable, complaints: Complaints
) -> float | None:
    own = "timeout" in written
    text, place = (written["timeout"], here) if own else (table.timeout, keys)
    if text is None or complaints.told(*place, "timeout"):
        return None
    try:
        return parse_duration(text)
    except RefusedError as refusal:
        complaints.refuse((*place, "timeout"), f'{label(place)}, "timeout"', refusal)
        return None


def _repeats(
    here: Path, written: Mapping[str, Any], table: ExperimentTable, complaints: Complaints
) -> int | None:
    if "repeats" not in written:
        return _planned(table.repeats)
    number = written["repeats"]
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        message = f'{label(here)}: "repeats" is {quoted(number)}; it must be a whole number of at least 1'
        complaints.add((*here, "repeats"), "PR005", message)
        return None
    if pairing_of(table) == "block":
        message = (
            f'{label(here)}: "repeats" of one arm needs pairing = "none"; blocks hold one repeat of every arm'
        )
        complaints.add((*here, "repeats"), "PR005", message)
    return number
