"""Where compilers keep what they have compiled, so that ``cache = "fresh"`` can take it from a repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_prereg.registry.model import Arm
    from pytest_prereg.registry.positions import Path
    from pytest_prereg.registry.structure import Complaints
    from pytest_prereg.registry.tables import ExperimentTable

COMPILE_CACHES = {
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "CUDA_CACHE_PATH": "cuda",
    "NUMBA_CACHE_DIR": "numba",
    "TORCH_EXTENSIONS_DIR": "torch-extensions",
    "JAX_COMPILATION_CACHE_DIR": "jax",
}
"""Folder by the variable that names it. Downloads, such as weights, are no compilations and stay."""


def check_cache(keys: Path, table: ExperimentTable, arms: Mapping[str, Arm], complaints: Complaints) -> None:
    """Complain where a fresh cache and a folder for it are both asked for: one of them would be ignored."""
    if table.cache != "fresh":
        return
    from pytest_prereg.registry.structure import label  # noqa: PLC0415 - a fork server checks nothing

    for arm in arms.values():
        for name in sorted(COMPILE_CACHES.keys() & arm.env.keys()):
            message = f'{label(keys)}: "env" sets {quoted(name)}, which cache = "fresh" sets; leave one out'
            complaints.add((*keys, "cache"), "PR005", message)
            return
