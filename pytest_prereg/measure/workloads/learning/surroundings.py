"""What numbers depend on to the last bit and no parameter states: releases, switches, versions."""

from __future__ import annotations

import torch
import transformers

from pytest_prereg.registry.builtins import workload_versions

WORKLOAD_VERSION = "1"


def surroundings(module: str) -> dict[str, object]:
    """Return it by name, for a built-in experiment's ``module``; its version counts, and what it imports."""
    return {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "threads": torch.get_num_threads(),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "processor": torch.backends.cpu.get_cpu_capability(),
        **{f"version of {name}": version for name, version in workload_versions(module)},
    }
