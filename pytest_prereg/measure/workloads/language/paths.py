"""The ways from hidden states to log-probabilities, by the names that experiments give them."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from pytest_prereg.measure.workloads.language.log_probs import selective_log_probs
from pytest_prereg.measure.workloads.language.naive_log_probs import naive_log_probs

if TYPE_CHECKING:
    from pytest_prereg.measure.workloads.language.scoring import Path

WORKLOAD_VERSION = "1"

PATHS: dict[str, Path] = {"fused": selective_log_probs, "naive": naive_log_probs}


def path_named(name: str) -> Path:
    """Return the path of that name; ValueError if there is none."""
    if name in PATHS:
        return PATHS[name]
    near = get_close_matches(str(name), PATHS, 1, 0.4)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"path = {name!r}: give one of {', '.join(PATHS)}{meant}")
