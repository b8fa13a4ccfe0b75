"""Names of the result files that can be read, as ``format`` and ``--format`` have them."""

from __future__ import annotations

from pytest_prereg.registry.plugins import brought_importers

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


def is_format(name: str) -> bool:
    """Whether a file of format ``name`` can be read; plugins are loaded only for one that is not ours.

    Raises:
        RefusedError: PR127: a plugin can't be loaded.
    """
    return name in known_formats(name)


def known_formats(wanted: str | None = None) -> tuple[str, ...]:
    """Return the names of all formats, those of plugins as well unless ``wanted`` is one of the package's.

    Raises:
        RefusedError: PR127: a plugin can't be loaded.
    """
    if wanted in FORMATS:
        return FORMATS
    return (*FORMATS, *(name for name in brought_importers() if name not in FORMATS))
