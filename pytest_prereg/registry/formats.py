"""Names of the result files that can be read, as ``format`` and ``--format`` have them."""

from __future__ import annotations

FORMATS = (
    "csv",
    "json",
    "pytest-benchmark",
    "pyperf",
    "hyperfine",
    "google-benchmark",
    "nvbench",
    "criterion",
    "vllm-bench",
    "sglang",
    "mlperf",
)
"""Those that come with the package."""
