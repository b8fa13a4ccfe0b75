"""What describing the machine at the head of a session costs, beside PyTorch's ``collect_env``."""

from __future__ import annotations

import statistics
import subprocess
import sys

from table import Row

OURS_ROUNDS = 11
OTHER_ROUNDS = 3

MEASURE = """
import time
from {module} import {function}
began = time.perf_counter()
{function}()
print(time.perf_counter() - began)
"""


def rows() -> list[Row]:
    """Medians, each time in a new process that has imported what it needs."""
    ours = [
        milliseconds("pytest_prereg.evidence.environment", "describe_machine") for _ in range(OURS_ROUNDS)
    ]
    other = [milliseconds("torch.utils.collect_env", "get_env_info") for _ in range(OTHER_ROUNDS)]
    return [
        Row(
            what="describe the machine",
            ours=statistics.median(ours),
            other=statistics.median(other),
            against="collect_env",
            unit="ms",
            limit=20,
        )
    ]


def milliseconds(module: str, function: str) -> float:
    """How long the first call of the function takes."""
    program = MEASURE.format(module=module, function=function)
    command = [sys.executable, "-c", program]
    return 1000 * float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
