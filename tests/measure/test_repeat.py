"""What a body can do with its repeat, and what is read back."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_prereg.measure.readings import ReadingError
from pytest_prereg.measure.repeat import Repeat


@pytest.fixture
def repeat():
    return Repeat(metrics={"t": "s", "k": "token"}, index=3, arm="fast", seed=11)


def test_a_repeat_knows_its_setting(repeat):
    assert (repeat.index, repeat.arm, repeat.seed) == (3, "fast", 11)


def test_a_timer_reads_the_wall_clock(repeat):
    with repeat.timer("t"):
        time.sleep(0.01)
    readings = repeat.readings()
    assert 0.01 <= readings.values["t"] < 0.5
    assert readings.instruments == {"t": "wall-clock"}


def test_a_timer_that_is_entered_again_appends_a_sample(repeat):
    for _ in range(3):
        with repeat.timer("t"):
            pass
    assert len(repeat.readings().values["t"]) == 3


def test_one_timer_object_can_be_entered_again(repeat):
    timer = repeat.timer("t")
    for _ in range(2):
        with timer:
            pass
    assert len(repeat.readings().values["t"]) == 2


def test_a_timer_reads_in_the_unit_of_its_metric():
    repeat = Repeat(metrics={"t": "ms"})
    with repeat.timer("t"):
        time.sleep(0.01)
    assert 10 <= repeat.readings().values["t"] < 500


def test_a_timer_cannot_fill_a_metric_that_is_no_time(repeat):
    with pytest.raises(ReadingError, match='metric "k" is declared in token, which a timer cannot read'):
        repeat.timer("k")


def test_a_block_that_raises_has_no_reading(repeat):
    with pytest.raises(RuntimeError), repeat.timer("t"):
        raise RuntimeError
    assert "t" not in repeat.readings().values


def test_readings_that_the_body_throws_away_are_told_and_an_honest_failure_inside_a_block_is_not(repeat):
    for _ in range(2):
        with suppress(TimeoutError), repeat.timer("t"):
            raise TimeoutError
    with suppress(TimeoutError), repeat.timer("aside"):
        raise TimeoutError
    with repeat.timer("t"), suppress(TimeoutError):
        raise TimeoutError
    repeat.record("k", 1)
    readings = repeat.readings()
    assert len(readings.discarded) == 1
    assert readings.discarded[0].startswith('metric "t": 2 readings were begun and thrown away')
    assert readings.diagnostics["discarded"] == {"t": 2, "aside": 1}
    assert (readings.problems, list(readings.values)) == ([], ["t", "k"])


def test_a_timer_that_is_left_behind_and_a_benchmark_that_raises_are_thrown_away_too(repeat):
    repeat.timer("t").__enter__()
    with pytest.raises(ZeroDivisionError):
        repeat.bench("t", lambda: 1 / 0)
    assert repeat.readings().diagnostics["discarded"] == {"t": 2}


def test_a_timer_is_not_entered_within_itself_where_it_would_read_too_little(repeat):
    timer = repeat.timer("t")
    with timer:
        with (
            pytest.raises(RuntimeError, match=r"this timer is under way already: .* make another for each"),
            timer,
        ):
            pass
        time.sleep(0.01)
    assert repeat.readings().values["t"] >= 0.01
    assert repeat.readings().discarded == []


def test_a_timer_hands_a_body_no_way_to_say_what_it_read(repeat):
    assert [name for name in dir(repeat.timer("t")) if not name.startswith("_")] == []


def test_the_accelerator_is_synchronised_at_both_ends_if_it_is_in_use(repeat, monkeypatch):
    waits = []
    cuda = SimpleNamespace(is_initialized=lambda: True, synchronize=lambda: waits.append(time.perf_counter()))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    with repeat.timer("t"):
        began = time.perf_counter()
    assert len(waits) == 2
    assert waits[0] < began < waits[1]


def test_an_accelerator_that_is_not_in_use_is_left_alone(repeat, monkeypatch):
    cuda = SimpleNamespace(is_initialized=lambda: False)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    with repeat.timer("t"):
        pass
    assert "t" in repeat.readings().values


def test_a_bare_record_names_no_instrument(repeat):
    repeat.record("k", 4)
    readings = repeat.readings()
    assert readings.values == {"k": 4.0}
    assert readings.instruments == {}


def test_a_named_instrument_is_kept_with_its_reading(repeat):
    repeat.instrument("token-counter").record("k", 4)
    assert repeat.readings().instruments == {"k": "token-counter"}


def test_a_reading_of_two_instruments_names_neither(repeat):
    with repeat.timer("t"):
        pass
    repeat.samples("t", [0.5])
    assert repeat.readings().instruments == {}


def test_samples_are_a_vector_even_if_there_is_only_one(repeat):
    repeat.samples("k", [4])
    assert repeat.readings().values == {"k": [4.0]}
    repeat.samples("k", [5, 6])
    assert repeat.readings().values == {"k": [4.0, 5.0, 6.0]}


def test_no_samples_are_no_reading(repeat):
    with pytest.raises(ReadingError, match='metric "k": no samples'):
        repeat.samples("k", [])


def test_recording_twice_is_refused(repeat):
    repeat.record("k", 4)
    with pytest.raises(ReadingError, match='metric "k" was recorded twice'):
        repeat.record("k", 5)
    assert repeat.readings().values["k"] == 4


def test_another_unit_is_refused(repeat):
    with pytest.raises(ReadingError, match='metric "k" was recorded in step, but is declared in token'):
        repeat.record("k", 5, unit="step")


def test_a_refused_reading_stays_a_problem_though_the_body_catches_it(repeat):
    with pytest.raises(ReadingError):
        repeat.record("k", float("nan"))
    assert repeat.readings().problems == ['metric "k": nan is not a finite number']


def test_declared_metrics_without_a_value_are_missing(repeat):
    repeat.record("k", 1)
    assert repeat.readings().missing == ['metric "t" was not recorded']


def test_undeclared_metrics_are_diagnostics_whatever_they_are(repeat):
    repeat.record("note", "warm")
    repeat.record("extra", float("nan"))
    repeat.samples("more", [1, "two"])
    with repeat.timer("aside"):
        pass
    readings = repeat.readings()
    assert readings.values == {}
    assert readings.problems == []
    assert readings.diagnostics["note"] == "warm"
    assert readings.diagnostics["more"] == [1, "two"]
    assert readings.diagnostics["aside"] >= 0


def test_samples_go_after_what_was_recorded_of_that_name(repeat):
    repeat.record("more", "first")
    repeat.samples("more", [1])
    assert repeat.readings().diagnostics["more"] == ["first", 1]


@pytest.mark.parametrize(
    "act",
    [
        lambda repeat: repeat.record(5, 1),
        lambda repeat: repeat.samples(None, [1]),
        lambda repeat: repeat.timer(("t",)),
        lambda repeat: repeat.bench(b"t", int),
        lambda repeat: repeat.censor(5, at_least=1),
        lambda repeat: repeat.instrument("wall-clock").window(5),
    ],
)
def test_a_metric_is_named_by_a_text(repeat, act):
    with pytest.raises(TypeError, match="a metric has a text for its name, not "):
        act(repeat)


@pytest.mark.parametrize("name", [5, None, ["probe"], Path("probe")])
def test_so_is_an_instrument(repeat, name):
    with pytest.raises(TypeError, match="an instrument has a text for its name, not "):
        repeat.instrument(name)


@pytest.mark.parametrize("name", ["", " ", "\ud800", "a\nb", "x" * 101])
def test_and_by_one_that_can_be_read(repeat, name):
    with pytest.raises(ReadingError, match="no instrument has the name"):
        repeat.instrument(name)
    assert len(repeat.readings().problems) == 1
    repeat.instrument("CPU probe, 2nd").record("k", 1)
    assert repeat.readings().instruments == {"k": "CPU probe, 2nd"}


def test_an_invalid_repeat_has_a_reason_even_where_none_is_given():
    repeat = Repeat(metrics={"t": "s"})
    repeat.record("t", 1.0)
    repeat.invalidate(" ")
    assert repeat.readings().problems == ["invalidated without a reason"]


def test_invalidating_keeps_what_is_recorded(repeat):
    repeat.record("k", 1)
    repeat.invalidate("the clock jumped")
    with repeat.timer("t"):
        pass
    readings = repeat.readings()
    assert set(readings.values) == {"k", "t"}
    assert readings.problems == ["the clock jumped"]


def test_a_censored_metric_is_marked(repeat):
    repeat.censor("t", at_least=30)
    repeat.censor("aside", at_least=1)
    readings = repeat.readings()
    assert readings.diagnostics["censored"] == {"t": [30], "aside": [1]}
    assert readings.problems == ['metric "t" is censored at 30']


def test_bench_records_the_mean_of_many_calls(repeat):
    value = repeat.bench("t", lambda: time.sleep(0.001), seconds=0.03)
    readings = repeat.readings()
    assert readings.values == {"t": value}
    assert 0.001 <= value < 0.05
    assert readings.samples["t"] >= 10
    assert readings.instruments == {"t": "wall-clock"}


def test_bench_times_what_is_shorter_than_a_look_at_the_clock(repeat):
    calls = []
    value = repeat.bench("t", lambda: calls.append(1), seconds=0.01)
    assert 1e-9 < value < 1e-4
    assert len(calls) > repeat.readings().samples["t"] > 100


def test_bench_reads_device_events_and_flushes_the_cache_before_each_call(repeat, monkeypatch):
    log = []

    class Event:
        def __init__(self, *, enable_timing):
            assert enable_timing

        def record(self):
            log.append("event")

        def elapsed_time(self, end):
            assert isinstance(end, Event)
            return 2.0

    cuda = SimpleNamespace(
        is_initialized=lambda: True,
        synchronize=lambda: None,
        Event=Event,
        get_device_properties=lambda: SimpleNamespace(L2_cache_size=1000),
    )
    buffer = SimpleNamespace(zero_=lambda: log.append("flush"))
    sizes = []
    torch = SimpleNamespace(cuda=cuda, int8="int8", empty=lambda size, **_: sizes.append(size) or buffer)
    monkeypatch.setitem(sys.modules, "torch", torch)
    value = repeat.bench("t", lambda: log.append("call"), seconds=0.1)
    assert value == pytest.approx(0.002)
    assert repeat.readings().instruments == {"t": "cuda-events"}
    assert sizes == [2000]
    assert log[1:5] == ["flush", "event", "call", "event"]
    assert repeat.readings().samples["t"] == 50


def test_a_repeat_on_its_own_has_folders_too(repeat):
    (repeat.workdir / "file").write_text("x")
    assert repeat.checkpoint().is_dir()
    assert repeat.checkpoint() == repeat.checkpoint()


def test_a_metric_recorded_under_a_misspelt_name_is_told_with_that_name():
    repeat = Repeat(metrics={"t_shuffled": "s"})
    with repeat.timer("t_shufled"):
        pass
    assert repeat.readings().missing == [
        'metric "t_shuffled" was not recorded; "t_shufled", which is not declared, was'
    ]
