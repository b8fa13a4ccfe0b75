"""Dimensions of units: what pint knows, and counting units that it doesn't.

pint takes a second to import, so only what looks a name up imports it; ``lock`` does, judging doesn't.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

from pytest_prereg.registry.refusals import RefusedError, quoted
from pytest_prereg.registry.unit_text import Powers, parse_unit, raised, times

COUNTING = frozenset({"token", "request", "step", "sample", "nat", "USD", "cycle", "turn"})
"""Ours before pint is asked: to pint ``nats`` is a pressure, ``cycle`` and ``turn`` are angles."""

_UNCOUNTED = ("radian", "count")
"""Base units of pint that are pure numbers."""


def root(powers: Powers) -> tuple[float, Powers]:
    """The factor to base units and the powers of these, which are empty where the unit is a pure number."""
    factor, base = 1.0, dict[str, Fraction]()
    for name, power in powers.items():
        own_factor, own_base = _name_root(name)
        factor *= own_factor ** float(power)
        base = times(base, raised(own_base, power))
    if not 0 < factor < math.inf:
        raise RefusedError(
            "PR021", f"unit {quoted('*'.join(powers))} is too large or too small to be converted"
        )
    return factor, base


def convert(value: float, from_: str, to: str) -> float:
    """``value``, which is in ``from_``, in ``to``, at 15 significant digits; raises a PR021 refusal."""
    return float(f"{value * ratio(parse_unit(from_), parse_unit(to), from_, to):.15g}")


def ratio(from_: Powers, to: Powers, from_text: str, to_text: str) -> float:
    """What a value in ``from_`` is multiplied by to be in ``to``; raises a PR021 refusal."""
    if from_ == to:
        return 1.0
    (factor, base), (wanted_factor, wanted_base) = root(from_), root(to)
    if base != wanted_base:
        raise RefusedError("PR021", f"{quoted(from_text)} can't be converted to {quoted(to_text)}")
    return float(f"{factor / wanted_factor:.15g}")


PLAIN: dict[str, tuple[float, Powers]] = {
    "%": (0.01, {}),
    **{
        name: (seconds, {"second": Fraction(1)})
        for name, seconds in (
            ("ns", 1e-9),
            ("us", 1e-6),
            ("ms", 1e-3),
            ("s", 1.0),
            ("min", 60.0),
            ("h", 3600.0),
        )
    },
}
"""What most studies convert, as pint has it, so that judging them needs no pint."""


@functools.cache
def _name_root(name: str) -> tuple[float, Powers]:
    if name in PLAIN:
        return PLAIN[name]
    singular = _singular(name)
    if name in COUNTING or singular in COUNTING:
        return 1.0, {(singular if singular in COUNTING else name): Fraction(1)}
    registry = _registry()
    found = registry.parse_unit_name("percent" if name == "%" else name)
    if not found:
        return 1.0, {singular: Fraction(1)}
    prefix, unit, _ = found[0]
    if not registry._units[unit].is_multiplicative:  # noqa: SLF001  # pint says it nowhere else
        raise RefusedError(
            "PR021", f"unit {quoted(name)} has an offset or a logarithm; declare a plain one, such as K"
        )
    factor, base = registry.get_root_units({prefix + unit: 1})
    powers = {
        str(part): Fraction(power).limit_denominator(1000)
        for part, power in base._units.items()  # noqa: SLF001
        if part not in _UNCOUNTED
    }
    return float(f"{float(factor):.15g}"), powers


def _singular(name: str) -> str:
    return name[:-1] if len(name) > 2 and name.endswith("s") and not name.endswith("ss") else name  # noqa: PLR2004


@functools.cache
def _registry() -> Any:
    import pint  # noqa: PLC0415  # a second that only `lock` pays

    registry: Any = pint.UnitRegistry()
    for name in sorted(COUNTING - {"cycle", "turn"}):
        registry.define(f"{name} = [{name}]")
    return registry
