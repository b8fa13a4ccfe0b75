"""What a citation asks for: ``[STUDY:]ID.FIELD [OPTION…]``.

========================  ===================================================================================
``ID.FIELD``              a field of a prediction's recorded verdict: ``estimate``, ``interval``, ``low``,
                          ``high``, ``n``, ``planned``, ``excluded``, ``verdict``, ``reason``, ``standing``,
                          ``confidence``, ``method``, ``unit``, ``series``, ``cost_usd``
``ID[AXIS=VALUE].FIELD``  the same of one prediction that a ``for-each`` table makes
``study.FIELD``           a total over the study: ``supported``, ``refuted``, ``inconclusive``, ``pending``,
                          ``registered``, ``repeats``, ``excluded``
``STUDY:…``               of the study with that id, where several are beside each other
========================  ===================================================================================

Options, each at most once:

===============  ============================================================================================
``digits=N``     N significant digits, instead of what the interval supports
``unit=U``       in a compatible unit, written as in a prediction file
``percent``      a pure number times 100; the sign is printed with it
``with-unit``    the unit is printed with it, which else is left to the prose
``exploratory``  quotes what is exploratory, which is said behind it
===============  ============================================================================================
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from pytest_prereg.registry.refusals import RefusedError, quoted, suggestion

NUMBERS = ("estimate", "interval", "low", "high")
"""Fields in the unit of the prediction."""
COUNTS = ("n", "planned", "excluded", "series")
WORDS = ("verdict", "reason", "standing", "method", "unit")
FIELDS = (*NUMBERS, *COUNTS, *WORDS, "confidence", "cost_usd")
TOTALS = ("supported", "refuted", "inconclusive", "pending", "registered", "repeats", "excluded")
STUDY = "study"
"""Stands for the study itself in the place of a prediction's id."""

_CODE = "PR210"
_MOST_DIGITS = 15
"""Significant digits that are recorded."""
_REFERENCE = re.compile(
    r"(?:(?P<study>[a-z0-9][a-z0-9_-]*+):)?"
    r"(?P<id>[a-z0-9][a-z0-9_-]*+(?:\[[^\[\]\s]++\])?)\.(?P<field>[\w-]++)(?P<options>(?: \S++)*+)"
)
_OPTIONS = ("digits", "unit", "percent", "with-unit", "exploratory")
_FORMS = "ID.FIELD, study.FIELD, or STUDY:ID.FIELD, and then options"


class Reference(msgspec.Struct, kw_only=True, frozen=True):
    """One quantity that is quoted, and how it is written."""

    study: str | None
    id: str
    field: str
    digits: int | None = None
    unit: str | None = None
    percent: bool = False
    with_unit: bool = False
    exploratory: bool = False

    @property
    def is_total(self) -> bool:
        """Whether it is about the study as a whole."""
        return self.id == STUDY and self.field in TOTALS


def parse_reference(text: str) -> Reference:
    """Return what a citation asks for; ``text`` has single spaces.

    Raises:
        RefusedError: PR210, another form, an unknown field or option, options that don't go together.
    """
    found = _REFERENCE.fullmatch(text)
    if found is None:
        raise RefusedError(_CODE, f"{quoted(text)} cites nothing; write {_FORMS}")
    given: dict[str, str | None] = {}
    for option in found["options"].split():
        name, _, value = option.partition("=")
        if name in given:
            raise RefusedError(_CODE, f"option {quoted(name)} is given twice")
        given[name] = value if "=" in option else None
    reference = Reference(study=found["study"], id=found["id"], field=found["field"], **_options(given))
    _check(reference)
    return reference


def _options(given: dict[str, str | None]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name, value in given.items():
        if name not in _OPTIONS:
            raise RefusedError(_CODE, f"unknown option {quoted(name)}{suggestion(name, _OPTIONS)}")
        if (value is not None) != (name in ("digits", "unit")):
            wrong = "needs a value" if value is None else "takes no value"
            raise RefusedError(_CODE, f"option {quoted(name)} {wrong}")
        options[name.replace("-", "_")] = _digits(value) if name == "digits" else value or True
    return options


def _digits(value: str | None) -> int:
    if value is None or not re.fullmatch(r"[1-9][0-9]?", value) or int(value) > _MOST_DIGITS:
        raise RefusedError(_CODE, f'"digits" is {quoted(value)}; it is a number from 1 to {_MOST_DIGITS}')
    return int(value)


def _check(reference: Reference) -> None:
    known: tuple[str, ...] = FIELDS
    if reference.id == STUDY and reference.field not in FIELDS:
        known = TOTALS
    if reference.field not in known and not reference.is_total:
        raise RefusedError(
            _CODE, f"unknown field {quoted(reference.field)}{suggestion(reference.field, known)}"
        )
    for option, fields in (
        ("digits", (*NUMBERS, "confidence")),
        ("unit", NUMBERS),
        ("percent", (*NUMBERS, "confidence")),
        ("with_unit", (*NUMBERS, "cost_usd")),
    ):
        if getattr(reference, option) and (reference.field not in fields or reference.is_total):
            name = option.replace("_", "-")
            raise RefusedError(_CODE, f"option {quoted(name)} does not apply to {quoted(reference.field)}")
    if reference.percent and (reference.unit or reference.with_unit):
        raise RefusedError(_CODE, '"percent" is a unit already, and prints its sign')
