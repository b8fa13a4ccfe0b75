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
    ExecutorsTable,
    ExperimentTable,
    InstrumentTable,
    PredictionTable,
    RepeatsTable,
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


class Resources(Model, kw_only=True, frozen=True):
    """The hardware that each repeat of an arm is to have; ``None`` is whatever the executor gives."""

    gpu: str | None = None
    """Kind, as the service calls it, and how many where it is more than one: ``H100:2``."""
    cpu: float | None = None
    """Cores."""
    memory: int | None = None
    """Bytes."""


class Arm(Model, kw_only=True, frozen=True):
    """One setting that is compared with others; ``params`` are merged over the experiment's."""

    name: str
    params: dict[str, Any]
    env: dict[str, str]
    timeout: float | None
    """Seconds from the start of the body; ``None`` is no limit."""
    repeats: int | None
    """Planned repeats of this arm; ``None`` for an import that registers none."""
    base: str = ""
    """Name in the file, where a sweep made several arms of it; else empty."""
    resources: Resources = Resources()
    """What it asks for, its own over its experiment's."""
    point: dict[str, Any] = {}
    """Value of each sweep axis; empty without a sweep."""


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
    def stopping(self) -> Stopping | None:
        """The rule by which a series may end early; ``None`` where every repeat is run."""
        repeats = self.table.repeats
        if not isinstance(repeats, RepeatsTable):
            return None
        return Stopping(looks=tuple(repeats.looks or ()), anytime=repeats.stopping == "anytime")

    @property
    def planned(self) -> dict[str, int] | None:
        """Repeats per arm, or ``None`` where the number was not registered."""
        counts = {name: arm.repeats for name, arm in self.arms.items()}
        return None if None in counts.values() else counts  # type: ignore[return-value]


class Stopping(Model, kw_only=True, frozen=True):
    """When a series may end before its last repeat: at registered looks, or after any block."""

    looks: tuple[int, ...] = ()
    """Repeats of each arm at which to look, rising; the last is all of them."""
    anytime: bool = False


Operator = Literal["-", "/", "plateau", "increasing", "exponent"]


class Contrast(Model, kw_only=True, frozen=True):
    """What is compared across arms."""

    operator: Operator
    arms: tuple[str, ...]
    """As written, left first: two for ``-`` and ``/``, none for ``exponent``, which takes all that differ."""
    parameter: str | None = None
    """What a slope of ``exponent`` is taken over."""


class Quantity(Model, kw_only=True, frozen=True):
    """An expression over metrics, evaluated inside a repeat: one number per repeat."""

    text: str
    node: Node
    metrics: tuple[str, ...]
    """Metric names used, sorted."""


class Input(Model, kw_only=True, frozen=True):
    """One input of a formula: the mean of a quantity in one arm, or a constant."""

    name: str
    experiment: str | None = None
    arm: str = ONLY_ARM
    quantity: Quantity | None = None
    constant: str | None = None
    """Name of the constant; then there is no experiment and no quantity."""


class Formula(Model, kw_only=True, frozen=True):
    """An expression over inputs that may come from several experiments."""

    text: str
    node: Node
    """Over the names of the inputs."""
    inputs: tuple[Input, ...]
    """Sorted by name."""


class Prediction(Model, kw_only=True, frozen=True):
    """A claim with the region of values that it predicts and the region that falsifies it."""

    id: str
    """With the values of ``for-each`` in square brackets, where one table makes several predictions."""
    claim: str
    table: PredictionTable
    experiments: tuple[str, ...]
    """Whose evidence it is judged from, sorted; one, unless it is a formula or a conjunction."""
    arms: tuple[str, ...]
    """Arms of its one experiment, left first; those of all points in turn, where a sweep is reduced."""
    contrast: Contrast | None
    quantity: Quantity
    """Numerator or successes, where there is a ``divisor``; of a formula or a conjunction, its text alone."""
    divisor: Quantity | None = None
    """Denominator of a ratio of sums, or the trials of successes."""
    statistic: str
    """One of ``STATISTICS`` without its argument, ``formula``, or ``all`` of ``members`` or of ``points``."""
    q: float | None = None
    """The argument of ``quantile``."""
    levels: tuple[float, ...] = ()
    """The parameter's value in each arm, for ``exponent``."""
    points: tuple[tuple[str, ...], ...] = ()
    """Arms at each value of the swept axes, where ``over`` reduces them; empty without ``over``."""
    reduction: Literal["geometric-mean", "min", "all"] | None = None
    """How ``over`` reduces its points inside a block."""
    formula: Formula | None = None
    members: tuple[str, ...] = ()
    """Ids of the predictions that a conjunction is made of."""
    predicts: Region
    """Without spans for a conjunction of ``members``, which has regions through them alone."""
    falsifier: Region
    confidence: float
    line: int
    name: str = ""
    """Id of the table that it comes from, where ``for-each`` made several of it; else empty."""

    @property
    def experiment(self) -> str:
        """The experiment that it is shown with: the first of them."""
        return self.experiments[0]


class Study(Model, kw_only=True, frozen=True):
    """One prediction file, with its experiments."""

    id: str
    table: StudyTable
    path: Path
    """The TOML file."""
    constants: dict[str, ConstantTable] = {}
    instruments: dict[str, InstrumentTable] = {}
    executors: ExecutorsTable = ExecutorsTable()
    """How services are to run what is run on them."""
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
