"""What an hour of an arm's container costs, by the rates that the workspace pays now."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

    from pytest_prereg.registry.model import Resources

LEAST_CORES = 0.125
"""What a container has, and pays, where none are asked for."""
LEAST_BYTES = 128 << 20
GIB = 1 << 30
OLD_NAMES = {"a10": "a10g", "a100": "a100_40gb"}
"""GPUs that rates know by another name."""


def live_rates() -> Mapping[str, Decimal]:
    """Return the workspace's rates by name, asked of Modal now."""
    import modal  # noqa: PLC0415

    return dict(modal.Workspace.from_context().billing.rates())


def usd_per_hour(asked: Resources, rates: Mapping[str, Decimal]) -> float | None:
    """Return what a container with these resources costs an hour, ``None`` where a rate is missing.

    Modal charges for the greater of what was asked for and what is used: this is the least that it can be.
    Keys as ``modal billing rates --json`` has them: ``cpu_hour_cost`` (a core), ``mem_gib_hour_cost``,
    ``gpu_hour_cost_h100``.
    """
    parts = [
        (rates.get("cpu_hour_cost"), max(asked.cpu or 0.0, LEAST_CORES)),
        (rates.get("mem_gib_hour_cost"), max(asked.memory or 0, LEAST_BYTES) / GIB),
    ]
    if asked.gpu is not None:
        name, _, count = asked.gpu.partition(":")
        parts.append((_of_gpu(name, rates), float(count or 1)))
    if any(rate is None for rate, _ in parts):
        return None
    return sum(float(rate or 0) * amount for rate, amount in parts)


def _of_gpu(name: str, rates: Mapping[str, Decimal]) -> Decimal | None:
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    names = (plain, OLD_NAMES.get(plain, plain))
    return next((rates[key] for each in names if (key := f"gpu_hour_cost_{each}") in rates), None)
