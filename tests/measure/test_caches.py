"""A repeat that asks for fresh caches finds none of what an earlier one compiled, not even in its own process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_prereg.measure.executors.caches import COMPILE_CACHES

COMPILE = """
def compiled():
    "What earlier repeats have compiled, by cache; then compile something in each."
    seen = {}
    for name in NAMES:
        folder = Path(os.environ[name])
        folder.mkdir(exist_ok=True)
        seen[name] = sorted(path.name for path in folder.iterdir())
        (folder / f"kernel-{os.getpid()}").write_text("compiled")
    return seen
"""
BODY = "repeat.record('seen', compiled()); repeat.record('at', {name: os.environ[name] for name in NAMES}); repeat.record('t', 1)"
TOP = f"NAMES = {sorted(COMPILE_CACHES)!r}\n{COMPILE}"


def results(laboratory, make_job, **options) -> list:
    executor = laboratory.executor(BODY, top=options.pop("top", TOP), **options)
    executor.start()
    return [executor.run(make_job(executor, index=index)) for index in (1, 2)]


def test_two_repeats_with_fresh_caches_find_them_empty(laboratory, make_job):
    first, second = results(laboratory, make_job, cache="fresh")
    for result in (first, second):
        assert result.diagnostics["seen"] == {name: [] for name in COMPILE_CACHES}
        assert result.environment["cache"] == "fresh"
        assert not any(Path(folder).exists() for folder in result.diagnostics["at"].values())


def test_what_importing_compiled_into_the_caches_is_gone_when_a_repeat_begins(laboratory, make_job):
    for result in results(
        laboratory, make_job, cache="fresh", top=f"{TOP}\nassert not any(compiled().values())"
    ):
        assert result.diagnostics["seen"] == {name: [] for name in COMPILE_CACHES}


def test_shared_caches_are_the_users_own(laboratory, make_job, tmp_path):
    own = {name: str(tmp_path / cache) for name, cache in COMPILE_CACHES.items()}
    first, second = results(laboratory, make_job, environ={**os.environ, **own})
    assert first.diagnostics["at"] == second.diagnostics["at"] == own
    assert all(second.diagnostics["seen"].values())
    assert "cache" not in second.environment


def test_fresh_caches_are_set_before_anything_is_imported(laboratory, make_job):
    (laboratory.folder / "compiler.py").write_text("import os\nFOLDER = os.environ['NUMBA_CACHE_DIR']\n")
    top = f"{TOP}\nimport compiler"
    executor = laboratory.executor(
        "repeat.record('same', compiler.FOLDER == os.environ['NUMBA_CACHE_DIR']); repeat.record('t', 1)",
        top=top,
        preload=("compiler",),
        cache="fresh",
        environ={**os.environ, "NUMBA_CACHE_DIR": "/somewhere/else"},
    )
    executor.start()
    assert executor.run(make_job(executor)).diagnostics["same"] == 1.0


def test_downloads_are_not_fetched_anew(laboratory, make_job):
    environ = {**os.environ, "HF_HOME": "/weights", "XDG_CACHE_HOME": "/cache"}
    body = (
        "repeat.record('kept', [os.environ['HF_HOME'], os.environ['XDG_CACHE_HOME']]); repeat.record('t', 1)"
    )
    executor = laboratory.executor(body, cache="fresh", environ=environ)
    executor.start()
    assert executor.run(make_job(executor)).diagnostics["kept"] == ["/weights", "/cache"]


def test_nothing_of_them_is_left_when_the_executor_is_closed(laboratory, make_job):
    executor = laboratory.executor(BODY, top=TOP, cache="fresh")
    executor.start()
    folder = next(iter(executor._servers.values())).folder
    executor.run(make_job(executor))
    executor.close()
    assert not folder.exists()


@pytest.mark.torch
def test_torch_compiles_into_the_fresh_cache(laboratory, make_job):
    pytest.importorskip("torch")
    body = """
from torch._inductor.runtime.cache_dir_utils import cache_dir, triton_cache_dir
repeat.record("at", [cache_dir(), triton_cache_dir(0)])
repeat.record("t", 1)
"""
    executor = laboratory.executor(body, cache="fresh", preload=("torch",), top="import torch")
    executor.start()
    folder = next(iter(executor._servers.values())).folder
    at = executor.run(make_job(executor)).diagnostics["at"]
    assert at == [str(folder / "caches" / "inductor"), str(folder / "caches" / "triton")]
