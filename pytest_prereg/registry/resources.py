"""Resources: the hardware that an experiment or an arm asks of a service that has several kinds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_prereg.registry.model import Resources
from pytest_prereg.registry.refusals import RefusedError, quoted
from pytest_prereg.registry.structure import checked_table, label
from pytest_prereg.registry.tables import ResourcesTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_prereg.registry.positions import Path
    from pytest_prereg.registry.structure import Complaints

_GPU = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+/-]*!?(:[1-9][0-9]*)?")
"""A name as the service has it, and how many: ``H100:2``."""
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]i?B|kB)\s*")
_BYTES = {
    **{unit: 1000**power for power, unit in enumerate(("kB", "MB", "GB", "TB"), 1)},
    **{unit: 1024**power for power, unit in enumerate(("KiB", "MiB", "GiB", "TiB"), 1)},
}
NOT_FIXED = "with a choice the hardware is not fixed, and what is compared may be the hardware"


def resources_of(keys: Path, shared: ResourcesTable | None, own: object, complaints: Complaints) -> Resources:
    """Return what an arm asks for: its own keys over those of its experiment.

    Args:
        keys: Of the arm's table.
        shared: What the experiment's table asks for.
        own: ``resources`` as the arm's table has it.
        complaints: Where what is wrong with the arm's is told.
    """
    table = _table((*keys, "resources"), own, complaints)
    written = _written(shared) | _written(table)
    try:
        return parsed(written)
    except RefusedError:  # told where it is written
        return Resources()


def check_resources(keys: Path, table: ResourcesTable | None, complaints: Complaints) -> None:
    """Complain about values of ``resources`` that no service could be asked for."""
    for key, value in _written(table).items():
        complaints.attempt((*keys, key), label(keys), parsed, {key: value})


def parsed(written: Mapping[str, Any]) -> Resources:
    """Return resources from a table's keys.

    Raises:
        RefusedError: PR005: a GPU that is no name of one, or a size without its unit.
    """
    gpu, cpu, memory = (written.get(key) for key in ("gpu", "cpu", "memory"))
    return Resources(
        gpu=None if gpu is None else _gpu(gpu),
        cpu=None if cpu is None else float(cpu),
        memory=None if memory is None else _memory(memory),
    )


def canonical_resources(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return resources as a digest holds them: parsed, so that two ways of writing one are one."""
    asked = parsed(written)
    values = {"gpu": asked.gpu, "cpu": asked.cpu, "memory": asked.memory}
    return {key: value for key, value in values.items() if value is not None}


def resources_text(asked: Resources) -> str:
    """Return resources as messages name them: ``gpu = "L4", cpu = 4``."""
    memory = None if asked.memory is None else quoted(f"{asked.memory / (1 << 30):g} GiB")
    gpu = None if asked.gpu is None else quoted(asked.gpu)
    cpu = None if asked.cpu is None else f"{asked.cpu:g}"
    values = {"gpu": gpu, "cpu": cpu, "memory": memory}
    return ", ".join(f"{key} = {value}" for key, value in values.items() if value is not None)


def _table(keys: Path, own: object, complaints: Complaints) -> ResourcesTable | None:
    if not isinstance(own, dict):
        return None
    table = checked_table(ResourcesTable, own, keys, complaints)
    check_resources(keys, table, complaints)
    return table


def _written(table: ResourcesTable | None) -> dict[str, Any]:
    values = {} if table is None else {key: getattr(table, key) for key in ("gpu", "cpu", "memory")}
    return {key: value for key, value in values.items() if value is not None}


def _gpu(text: str) -> str:
    name = " ".join(text.split())
    if name.casefold() == "any" or "," in name:
        raise RefusedError("PR005", f'"gpu" is {quoted(text)}: {NOT_FIXED}', "Name one kind of GPU.")
    if not _GPU.fullmatch(name):
        message = f'"gpu" is {quoted(text)}; it must be the name of one kind, and may say how many'
        raise RefusedError("PR005", message, 'Write gpu = "L4", or gpu = "H100:2".')
    return name.removesuffix(":1")


def _memory(text: str) -> int:
    found = _SIZE.fullmatch(text)
    size = round(float(found[1]) * _BYTES[found[2]]) if found else 0
    if not size:
        message = f'"memory" is {quoted(text)}; it must be a size with its unit'
        raise RefusedError("PR005", message, 'Write memory = "16 GiB".')
    return size
