"""A checkpoint outlives the attempts that were lost, and nothing else; who went on from one is in the evidence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from loop_bench import Bench

from pytest_prereg.evidence.model import Finished, Outcome
from pytest_prereg.measure.checkpoints import (
    checkpoint_folder,
    discard,
    discard_settled,
    has_content,
    make_private,
)
from pytest_prereg.measure.planning import job_for, schedule

SEED, OTHER = "sha256:1", "sha256:2"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def bench(laboratory, monkeypatch):
    return Bench(laboratory, monkeypatch)


def test_each_slot_of_each_series_of_each_copy_has_a_folder_of_its_own(cache, tmp_path):
    places = [
        (tmp_path / "one" / "predictions.toml", SEED, "lab/1/1"),
        (tmp_path / "copy" / "predictions.toml", SEED, "lab/1/1"),
        (tmp_path / "one" / "predictions.toml", OTHER, "lab/1/1"),
        (tmp_path / "one" / "predictions.toml", SEED, "lab/1/2"),
    ]
    folders = {checkpoint_folder(*place) for place in places}
    assert len(folders) == len(places)
    assert all(folder.is_relative_to(cache) for folder in folders)


def test_nobody_else_can_look_into_it(cache, tmp_path):
    before = os.umask(0)
    try:
        folder = make_private(checkpoint_folder(tmp_path / "predictions.toml", SEED, "lab/1/1"))
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder.parent.stat().st_mode & 0o777 == 0o700


def test_the_last_slot_takes_the_folder_of_the_series_with_it(cache, tmp_path):
    one, two = (make_private(checkpoint_folder(tmp_path / "p.toml", SEED, f"lab/1/{n}")) for n in (1, 2))
    (one / "step").write_text("1")
    discard(one)
    assert two.is_dir()
    discard(two)
    assert not two.parent.exists()


def test_what_settled_slots_left_is_removed_and_nothing_else(cache, tmp_path):
    study = tmp_path / "predictions.toml"
    settled, opened, elsewhere = (
        make_private(checkpoint_folder(study, seed, f"lab/1/{n}"))
        for seed, n in ((SEED, 1), (SEED, 2), (OTHER, 1))
    )
    discard_settled(study, SEED, {"lab/1/2", "lab/1/3"})
    assert [folder.exists() for folder in (settled, opened, elsewhere)] == [False, True, True]


def test_a_repeat_is_resumed_only_by_what_was_there_when_it_began(laboratory, make_job, cache):
    executor = laboratory.executor(
        "folder = repeat.checkpoint()\nif params: (folder / 'step').write_text('1')\nrepeat.record('t', 1)"
    )
    executor.start()
    folder = cache / "one"
    runs = [make_job(executor, checkpoint=str(folder), params=params) for params in ({}, {"save": 1}, {})]
    assert [executor.run(job).resumed for job in runs] == [False, False, True]
    assert not executor.run(make_job(executor)).resumed
    assert has_content(folder)


LOSES = """
folder = repeat.checkpoint()
repeat.record("found", sorted(path.name for path in folder.iterdir()))
if not (folder / repeat.arm).exists():
    (folder / repeat.arm).touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(
    ("then", "outcome"),
    [
        ("repeat.record('t', 1)", Outcome.OK),
        ("repeat.record('t', 1); repeat.invalidate('no')", Outcome.INVALID),
        ("raise RuntimeError", Outcome.TASK_FAILED),
        ("time.sleep(60)", Outcome.TIMEOUT),
    ],
)
def test_the_next_attempt_finds_it_and_however_that_ends_no_other_repeat_does(bench, then, outcome):
    bench.arrange(LOSES + then, arms={"a": {}}, repeats=2, timeout=0.7)
    with_executor = bench.laboratory.executor(LOSES + then, arms={"a": {}}, repeats=2, timeout=0.7)
    with_executor.start()
    ended = [line for line in bench.run(with_executor) if isinstance(line, Finished)]
    assert [(line.outcome, line.resumed) for line in ended] == [
        (Outcome.INFRASTRUCTURE, False),
        (outcome, True),
    ] * 2
    if outcome in {Outcome.OK, Outcome.INVALID}:
        assert [line.diagnostics["found"] for line in ended[1::2]] == [["a"]] * 2
    assert left() == []


def left() -> list[Path]:
    folder = Path(os.environ["XDG_CACHE_HOME"]) / "pytest-prereg" / "checkpoints"
    return list(folder.iterdir()) if folder.is_dir() else []


def test_a_slot_that_is_given_up_leaves_nothing(bench):
    body = "(repeat.checkpoint() / 'step').touch(); os.kill(os.getpid(), signal.SIGKILL)"
    bench.arrange(body, arms={"a": {}}, repeats=1)
    executor = bench.laboratory.executor(body, arms={"a": {}}, repeats=1)
    executor.start()
    bench.run(executor)
    assert left() == []


def test_a_pilot_finds_none_and_leaves_none(bench):
    bench.arrange(LOSES, arms={"a": {}})
    header = bench.header(origin="pilot")
    slot = schedule(bench.experiment, header)[0]
    assert job_for(bench.study, bench.experiment, header, slot).checkpoint is None
    measured = bench.header()
    assert job_for(bench.study, bench.experiment, measured, slot).checkpoint is not None
