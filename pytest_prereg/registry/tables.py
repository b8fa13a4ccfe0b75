"""The tables of ``predictions.toml`` exactly as they are written: keys, types, defaults.

The JSON Schema is generated from these structs, and the loader takes its list of valid keys from them.
Parsing of regions, quantities and references happens in :mod:`pytest_prereg.registry.load`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

Id = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Duration = str | float | int


class Table(msgspec.Struct, kw_only=True, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """A closed table: keys are kebab-case, unknown ones are errors."""


class StudyTable(Table, kw_only=True, frozen=True):
    """``[study]``."""

    id: Id
    title: str | None = None
    experiments: list[str] | None = None
    evidence: str = "experiments/evidence"
    confidence: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.95
    family: Literal["none", "holm"] = "none"
    registration: Literal["any", "separate"] = "any"
    prices: dict[str, Annotated[float, msgspec.Meta(ge=0)]] | None = None
    notes: str | None = None


class ConstantTable(Table, kw_only=True, frozen=True):
    """``[constants.N]``: a number from elsewhere."""

    value: float
    interval: tuple[float, float] | None = None
    unit: str = "1"
    source: str


class InstrumentTable(Table, kw_only=True, frozen=True):
    """``[instruments.N]``: why what it reads may decide."""

    calibrated_by: list[str] | None = None
    trusted: str | None = None


class ModalTable(Table, kw_only=True, frozen=True):
    """``[executors.modal]``."""

    image: str | None = None
    volumes: dict[str, str] | None = None
    secrets: list[str] | None = None
    region: str | None = None


class SlurmTable(Table, kw_only=True, frozen=True):
    """``[executors.slurm]``."""

    partition: str | None = None
    account: str | None = None
    time: Duration | None = None


class ExecutorsTable(Table, kw_only=True, frozen=True):
    """``[executors]``."""

    modal: ModalTable | None = None
    slurm: SlurmTable | None = None


class ResourcesTable(Table, kw_only=True, frozen=True):
    """``resources`` of an experiment or an arm: what each of its repeats runs on."""

    gpu: str | None = None
    cpu: Annotated[float, msgspec.Meta(gt=0)] | None = None
    memory: str | None = None


class MetricTable(Table, kw_only=True, frozen=True):
    """A metric: its unit, its instrument, and what its values can and cannot say."""

    unit: str
    from_: str | None = msgspec.field(default=None, name="from")
    instrument: str | None = None
    exact: bool = False
    resolution: Annotated[float, msgspec.Meta(gt=0)] | None = None
    cap: float | None = None


class ReadTable(Table, kw_only=True, frozen=True):
    """``read``: the file that a command leaves behind."""

    file: str
    format: str
    select: str | None = None


class ServiceTable(Table, kw_only=True, frozen=True):
    """``service``: a server that a repeat talks to."""

    command: list[str]
    ready: str | None = None
    scope: Literal["repeat", "series"] = "repeat"
    timeout: Duration = "60 s"


class RepeatsTable(Table, kw_only=True, frozen=True):
    """``repeats`` when it is more than a number: registered looks, or the anytime rule."""

    looks: list[Annotated[int, msgspec.Meta(ge=1)]] | None = None
    max: Annotated[int, msgspec.Meta(ge=1)] | None = None
    stopping: Literal["anytime"] | None = None


class ExperimentTable(Table, kw_only=True, frozen=True):
    """``[experiments.N]``."""

    fixture: str | None = None
    command: list[str] | None = None
    read: ReadTable | None = None
    params: dict[str, Any] | None = None
    arms: dict[Id, dict[str, Any]] | None = None
    sweep: dict[str, list[Any]] | None = None
    env: dict[str, str] | None = None
    service: ServiceTable | None = None
    build: list[str] | None = None
    metrics: dict[str, str | MetricTable] | None = None
    data: list[str] | None = None
    subject: list[str] | None = None
    repeats: Annotated[int, msgspec.Meta(ge=1)] | RepeatsTable | None = None
    pairing: Literal["block", "none"] | None = None
    order: Literal["interleaved", "sequential"] = "interleaved"
    unit: Literal["process", "container", "node", "build", "seed", "server", "session"] = "process"
    warmup: Annotated[int, msgspec.Meta(ge=0)] = 0
    timeout: Duration | None = None
    exclude: list[str] | None = None
    max_excluded: Annotated[int, msgspec.Meta(ge=0)] = 0
    bounds: dict[str, tuple[float, float]] | None = None
    executor: str = "local"
    resources: ResourcesTable | None = None
    conditions: dict[str, Any] | None = None
    max_parallel: Annotated[int, msgspec.Meta(ge=1)] = 1
    exclusive: bool = True
    preload: list[str] | None = None
    cache: Literal["shared", "fresh"] = "shared"
    tags: list[str] | None = None
    notes: str | None = None


class PredictionTable(Table, kw_only=True, frozen=True):
    """``[predictions.N]``."""

    claim: str
    kind: Literal["claim", "guard"] = "claim"
    basis: Literal["measured", "model", "identity"] = "measured"
    experiment: str | None = None
    arm: str | None = None
    contrast: str | None = None
    quantity: str | None = None
    successes: str | None = None
    trials: str | None = None
    numerator: str | None = None
    denominator: str | None = None
    inputs: dict[str, str] | None = None
    formula: str | None = None
    all: list[str] | None = None
    statistic: str | None = None
    unit: str | None = None
    predicts: str | None = None
    falsifier: str | None = None
    expected: float | None = None
    detect: float | None = None
    cv: Annotated[float, msgspec.Meta(gt=0)] | None = None
    sd: Annotated[float, msgspec.Meta(gt=0)] | None = None
    credence: Annotated[float, msgspec.Meta(gt=0, lt=1)] | None = None
    requires: list[str] | None = None
    assumes: list[str] | None = None
    follows: str | None = None
    for_each: str | list[str] | None = None
    over: str | list[str] | None = None
    on_inconclusive: Literal["pass", "fail"] | None = None
    one_sided: bool = False
    data_seen: Literal["none", "pilot", "full"] = "none"
    source: str | None = None
    tags: list[str] | None = None
    notes: str | None = None


class PredictionsFile(Table, kw_only=True, frozen=True):
    """A whole ``predictions.toml``."""

    study: StudyTable
    constants: dict[Name, ConstantTable] | None = None
    instruments: dict[str, InstrumentTable] | None = None
    executors: ExecutorsTable | None = None
    experiments: dict[Id, ExperimentTable] | None = None
    predictions: dict[Id, PredictionTable] | None = None
