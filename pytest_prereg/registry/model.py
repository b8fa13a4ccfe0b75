"""The study as the rest of the package sees it: parsed, resolved, immutable.

``load`` builds these from the tables; nothing here reads a file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from pytest_prereg.registry.regions import Region
from pytest_prereg.registry.tables import (
    ConstantTable,
    ExperimentTable,
    InstrumentTable,
    PredictionTable,
    StudyTable,
)

ONLY_ARM = ""
"""Name of the arm of an experiment that declares none; it is left out of ids and never shown."""

Node = float | str | list[Any]
"""A parsed expression: a number, a metric name, or ``[operator-or-function, operand, ...]``."""


class Model(msgspec.Struct, kw_only=True, frozen=True):
    """Base of the resolved structs."""


class Metric(Model, kw_only=True, frozen=True):
    """A declared metric: what one repeat records under ``name``, in ``unit``."""

    name: str
    unit: str
    source: str | None = None
    """Where a command's result file has it (``from``)."""
    instrument: str | None = None
    exact: bool = False
    resolution: float | None = None
    cap: float | None = None


class Arm(Model, kw_only=True, frozen=True):
    """One setting that is compared with others; ``params`` are merged over the experiment's."""

    name: str
    params: dict[str, Any]
    env: dict[str, str]
    timeout: float | None
    """Seconds from the start of the body; ``None`` is no limit."""
    repeats: int | None
    """Planned repeats of this arm; ``None`` for an import that registers none."""


class Source(Model, kw_only=True, frozen=True):
    """Where an experiment's code is: a function of a module of the study, or a built-in."""

    function: str
    path: Path | None
    """The module's file; ``None`` for a built-in."""
    module: str
    """Importable name, with the experiments folder's parent first on ``sys.path``."""
    line: int = 1
    preload: tuple[str, ...] = ()


class Experiment(Model, kw_only=True, frozen=True):
    """Code or an import that yields named metrics once per repeat."""

    id: str
    kind: Literal["fixture", "command", "import"]
    table: ExperimentTable
    arms: dict[str, Arm]
    metrics: dict[str, Metric]
    pairing: Literal["block", "none"]
    source: Source | None
    line: int

    @property
    def planned(self) -> dict[str, int] | None:
        """Repeats per arm, or ``None`` where the number was not registered."""
        counts = {name: arm.repeats for name, arm in self.arms.items()}
        return None if None in counts.values() else counts  # type: ignore[return-value]


class Contrast(Model, kw_only=True, frozen=True):
    """``left op right`` across two arms."""

    operator: Literal["-", "/"]
    left: str
    right: str


class Quantity(Model, kw_only=True, frozen=True):
    """An expression over metrics, evaluated inside a repeat: one number per repeat."""

    text: str
    node: Node
    metrics: tuple[str, ...]
    """Metric names used, sorted."""


class Prediction(Model, kw_only=True, frozen=True):
    """A claim with the region of values that it predicts and the region that falsifies it."""

    id: str
    claim: str
    table: PredictionTable
    experiment: str
    arms: tuple[str, ...]
    """One arm, or the two of the contrast, left first."""
    contrast: Contrast | None
    quantity: Quantity
    statistic: str
    """``mean``, ``geometric-mean``, ``median`` or ``proportion``."""
    predicts: Region
    falsifier: Region
    confidence: float
    line: int


class Study(Model, kw_only=True, frozen=True):
    """One prediction file, with its experiments."""

    id: str
    table: StudyTable
    path: Path
    """The TOML file."""
    constants: dict[str, ConstantTable] = {}
    instruments: dict[str, InstrumentTable] = {}
    experiments: dict[str, Experiment]
    predictions: dict[str, Prediction]

    @property
    def folder(self) -> Path:
        """The folder that holds the TOML file; everything else is relative to it."""
        return self.path.parent

    @property
    def lock_path(self) -> Path:
        """``predictions.lock`` beside ``predictions.toml``."""
        return self.path.with_suffix(".lock")

    @property
    def evidence_folder(self) -> Path:
        """Where session files are kept, one sub-folder per experiment."""
        return self.folder / self.table.evidence
