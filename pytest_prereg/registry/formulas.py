"""Formulas: predictions of what follows from several quantities, measured here or published elsewhere.

``inputs`` names them, ``formula`` is an expression over the names. Each measured input is the mean of a
quantity in one arm of an experiment; a constant counts with its interval.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_prereg.registry.declarations import wrong_metric_name
from pytest_prereg.registry.judging import regions_of
from pytest_prereg.registry.model import ONLY_ARM, Formula, Input, Prediction, Quantity
from pytest_prereg.registry.quantities import (
    is_binary,
    names_used,
    node_text,
    parse_expression,
    parse_quantity,
)
from pytest_prereg.registry.refusals import RefusedError, listed, quoted, suggestion
from pytest_prereg.registry.structure import label
from pytest_prereg.registry.unit_text import normal_unit

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pytest_prereg.registry.model import Experiment, Node
    from pytest_prereg.registry.positions import Path
    from pytest_prereg.registry.structure import Complaints
    from pytest_prereg.registry.tables import PredictionsFile, PredictionTable

__all__ = ["build_formula", "is_formula", "parse_formula"]

OPERATORS = frozenset({"+", "-", "*", "/", "**"})
FUNCTIONS = frozenset({"min", "max", "log", "exp", "sqrt", "abs"})

NOT_BESIDE = (
    "experiment",
    "arm",
    "contrast",
    "quantity",
    "successes",
    "trials",
    "numerator",
    "denominator",
    "statistic",
    "for-each",
    "over",
    "detect",
    "cv",
    "sd",
)
"""Keys that say what a formula says itself, or that would ask for the spread of one quantity."""

FORMS = 'write "experiment:quantity", "experiment[arm]:quantity" or "constants:NAME"'

_CONSTANT = re.compile(r"\s*constants\s*:\s*(\w+)\s*")
_MEASURED = re.compile(r"\s*([^\s\[\]:]+)\s*(?:\[(.*)\])?\s*:([^:]+)", re.DOTALL)


def is_formula(table: PredictionTable) -> bool:
    """Whether a prediction's table writes a formula, or half of one."""
    return table.all is None and (table.formula is not None or table.inputs is not None)


def build_formula(
    keys: Path,
    table: PredictionTable,
    file: PredictionsFile,
    experiments: Mapping[str, Experiment],
    complaints: Complaints,
) -> Prediction | None:
    """The prediction that a formula makes; ``None`` once something that it needs was complained about."""
    return _Builder(keys, table, file, experiments, complaints).build()


def parse_formula(text: str, inputs: Collection[str]) -> Node:
    """The expression that ``text`` writes over the names of the inputs, each of which it uses.

    Raises:
        RefusedError: PR020 for what is no formula, PR007 for a name that is no input, or an input not used.
    """
    try:
        node = parse_expression(text)
    except RefusedError as refusal:
        message = str(refusal).replace("quantity ", "formula ", 1).partition("; use numbers, metrics")[0]
        raise RefusedError(refusal.code, message, refusal.advice) from None
    _check_operators(node, text)
    used = set(names_used(node))
    for name in sorted(used - set(inputs)):
        hint = suggestion(name, sorted(inputs), "its inputs")
        raise RefusedError("PR007", f"formula {quoted(text)} uses unknown input {quoted(name)}{hint}")
    if unused := sorted(set(inputs) - used):
        raise RefusedError("PR007", f"formula {quoted(text)} doesn't use input {listed(unused)}")
    return node


def _check_operators(node: Node, text: str) -> None:
    if not isinstance(node, list):
        return
    name, operands = node[0], node[1:]
    least = 2 if name in ("min", "max") else 1
    if name not in OPERATORS | FUNCTIONS or len(operands) < least:
        offered = f"numbers, inputs, + - * / ** and {' '.join(sorted(FUNCTIONS))} of numbers"
        raise RefusedError("PR020", f"formula {quoted(text)} has {quoted(node_text(node))}; use {offered}")
    for operand in operands:
        _check_operators(operand, text)


class _Builder:
    """One formula while it is read; what is wrong is complained about, and the rest still looked at."""

    def __init__(
        self,
        keys: Path,
        table: PredictionTable,
        file: PredictionsFile,
        experiments: Mapping[str, Experiment],
        complaints: Complaints,
    ) -> None:
        self.keys = keys
        self.table = table
        self.file = file
        self.experiments = experiments
        self.complaints = complaints
        self.label = label(keys)

    def build(self) -> Prediction | None:
        """The prediction, or ``None`` once something that it needs was complained about."""
        self._check_keys()
        if self.table.unit is not None:
            self.complaints.attempt((*self.keys, "unit"), self.label, normal_unit, self.table.unit)
        formula = self._formula(self.table.formula or "", self._inputs())
        regions = regions_of(self.keys, self.table, "formula", self.complaints)
        if formula is None or regions is None:
            return None
        names = tuple(sorted({each.experiment for each in formula.inputs if each.experiment is not None}))
        predicts, falsifier = regions
        return Prediction(
            id=str(self.keys[1]),
            claim=self.table.claim,
            table=self.table,
            experiments=names,
            arms=_arms(formula) if len(names) == 1 else (),
            contrast=None,
            quantity=Quantity(text=formula.text, node=formula.node, metrics=()),
            statistic="formula",
            formula=formula,
            predicts=predicts,
            falsifier=falsifier,
            confidence=self.file.study.confidence,
            line=self.complaints.positions.line(*self.keys),
        )

    def _check_keys(self) -> None:
        for key in ("inputs", "formula"):
            missing = getattr(self.table, key) is None
            if missing and not self.complaints.told(*self.keys, key):
                other = "formula" if key == "inputs" else "inputs"
                message = f"{self.label} has {quoted(other)} and lacks {quoted(key)}"
                self.complaints.add((*self.keys, key), "PR004", message)
        for key in NOT_BESIDE:
            if getattr(self.table, key.replace("-", "_")) is not None:
                message = f'{self.label} has {quoted(key)} beside "formula", which says it all'
                self.complaints.add((*self.keys, key), "PR005", message)

    def _inputs(self) -> tuple[Input, ...] | None:
        """All inputs, or ``None`` where one was refused."""
        if self.table.inputs is None:
            return None
        read = [
            self.complaints.attempt(
                (*self.keys, "inputs", name), f"{self.label}, input {quoted(name)}", self._input, name, text
            )
            for name, text in sorted(self.table.inputs.items())
        ]
        inputs = tuple(each for each in read if each is not None)
        return inputs if len(inputs) == len(read) else None

    def _formula(self, text: str, inputs: tuple[Input, ...] | None) -> Formula | None:
        if self.table.formula is None or self.table.inputs is None:
            return None
        keys = (*self.keys, "formula")
        node = self.complaints.attempt(keys, self.label, parse_formula, text, list(self.table.inputs))
        if node is None or inputs is None:
            return None
        formula = Formula(text=text, node=node, inputs=inputs)
        return self.complaints.attempt(keys, self.label, _measured, formula)

    def _input(self, name: str, text: str) -> Input | None:
        """One input; ``None`` where what is wrong with its experiment has been told.

        Raises:
            RefusedError: PR004 to PR007, PR020, PR024 or PR033, where it is none.
        """
        if wrong := wrong_metric_name(name):
            raise RefusedError("PR006", f"the name {wrong}")
        if match := _CONSTANT.fullmatch(text):
            return Input(name=name, constant=self._constant(match[1]))
        match = _MEASURED.fullmatch(text)
        if match is None:
            raise RefusedError("PR005", f"{quoted(text)} is no input; {FORMS}")
        experiment = self._experiment(match[1])
        if experiment is None:
            return None
        quantity = parse_quantity(match[3].strip(), experiment.metrics, self.file.constants or {})
        if is_binary(quantity.node):
            what = f"quantity {quoted(quantity.text)} is 0 or 1, and its mean has no honest interval"
            raise RefusedError("PR033", f"{what}; let each repeat record the share, as a metric")
        arm = _arm(experiment, match[2])
        return Input(name=name, experiment=experiment.id, arm=arm, quantity=quantity)

    def _constant(self, name: str) -> str:
        constants = self.file.constants or {}
        if name not in constants:
            hint = suggestion(name, constants, "known")
            raise RefusedError("PR007", f"unknown constant {quoted(name)}{hint}")
        return name

    def _experiment(self, name: str) -> Experiment | None:
        if name not in self.experiments:
            tables = self.file.experiments or {}
            if name in tables or self.complaints.told("experiments", name):
                return None
            hint = suggestion(name, tables, "known")
            raise RefusedError("PR007", f"unknown experiment {quoted(name)}{hint}")
        experiment = self.experiments[name]
        if experiment.stopping is not None:
            what = f"experiment {quoted(name)} may end early, and no rule decides a formula at a look"
            raise RefusedError("PR024", f'{what}; plan a number of "repeats"')
        return experiment


def _arm(experiment: Experiment, written: str | None) -> str:
    """The arm that an input names, or the only one."""
    if written is None:
        if len(experiment.arms) == 1:
            return next(iter(experiment.arms))
        what = f"experiment {quoted(experiment.id)} has arms {listed(experiment.arms, 'and')}"
        raise RefusedError("PR004", f'{what}; say which, as in "{experiment.id}[arm]:quantity"')
    for name in (written.strip(), f"[{written.strip()}]"):  # an experiment without arms has only its sweep's
        if name in experiment.arms and name != ONLY_ARM:
            return name
    arms = [name for name in experiment.arms if name]
    where = f"{quoted(written)} of experiment {quoted(experiment.id)}"
    raise RefusedError("PR007", f"unknown arm {where}{suggestion(written, arms, 'its arms')}")


def _arms(formula: Formula) -> tuple[str, ...]:
    return tuple(sorted({each.arm for each in formula.inputs if each.experiment is not None}))


def _measured(formula: Formula) -> Formula:
    """``formula``, unless constants are all that it rests on."""
    if all(each.experiment is None for each in formula.inputs):
        what = f"formula {quoted(formula.text)} rests on constants alone, so there is nothing to measure"
        raise RefusedError("PR020", what)
    return formula
