"""What comes of a window: its own reading of its last block, whatever the body does with it, and nothing else."""

from __future__ import annotations

from contextlib import suppress
from threading import Thread

import pytest

from pytest_prereg.measure.instruments.readers import READERS
from pytest_prereg.measure.instruments.reading import Reading, UnreadableError
from pytest_prereg.measure.repeat import Repeat


class Count:
    """Stands in for a reader that keeps what it has read: the first reads 1, the second 2."""

    made = 0

    def __init__(self) -> None:
        Count.made += 1
        self.which = Count.made

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def reading(self) -> Reading:
        return Reading(value=self.which, instrument="kernel-intervals", details={"seen": [self.which]})


class Fickle(Count):
    """Reads now and then."""

    def start(self) -> None:
        if self.which % 2 == 0:
            raise UnreadableError("it is off")


@pytest.fixture
def repeat(monkeypatch: pytest.MonkeyPatch) -> Repeat:
    monkeypatch.setattr(Count, "made", 0)
    monkeypatch.setitem(READERS, "kernel-intervals", f"{__name__}:Count")
    monkeypatch.setitem(READERS, "operator-intervals", f"{__name__}:Fickle")
    return Repeat(metrics={"busy": {"unit": "1", "instrument": "kernel-intervals"}})


def test_a_body_cannot_say_what_a_window_read(repeat):
    window = repeat.instrument("kernel-intervals").window("busy")
    forged = Reading(value=0.1, instrument="kernel-intervals")
    with pytest.raises(AttributeError), window:
        window.reading = forged
    assert repeat.readings().values == {}


def test_nor_take_the_reading_of_the_block_before_for_one_that_raised(repeat):
    window = repeat.instrument("kernel-intervals").window("busy")
    with window:
        pass
    for _ in range(2):
        with suppress(TimeoutError), window:
            raise TimeoutError
    assert repeat.readings().values == {"busy": 1}
    assert window.reading is None
    assert repeat.readings().discarded == [
        'metric "busy": 2 readings were begun and thrown away; what may fail is caught inside the block'
    ]


def test_a_window_that_is_entered_again_reads_anew(repeat):
    window = repeat.instrument("kernel-intervals").window("busy")
    for _ in range(3):
        with window:
            pass
    assert repeat.readings().values == {"busy": [1, 2, 3]}
    assert window.reading.value == 3
    assert repeat.readings().discarded == []


def test_what_held_the_highest_memory_once_does_not_hold_it_again():
    repeat = Repeat(metrics={"peak": "MiB"})
    window = repeat.instrument("process-memory").window("peak")
    for size in (200 << 20, 1):
        with window:
            bytearray(size)
    first, second = repeat.readings().values["peak"]
    assert first - second > 100


def test_host_load_can_be_read_twice_with_one_window():
    repeat = Repeat()
    window = repeat.instrument("host-load").window("load")
    for _ in range(2):
        with window:
            sum(range(10**7))
    assert len(repeat.readings().diagnostics["load: host-load"]) == 2


def test_a_window_is_not_entered_within_itself_nor_by_another_thread(repeat):
    window = repeat.instrument("kernel-intervals").window("busy")
    refusals = []

    def enter() -> None:
        try:
            with window:
                pass
        except RuntimeError as error:
            refusals.append(str(error))

    with window:
        enter()
        thread = Thread(target=enter)
        thread.start()
        thread.join()
        with repeat.instrument("kernel-intervals").window("busy"):
            pass
    assert len(refusals) == 2
    assert all("this window is under way already" in said for said in refusals)
    assert repeat.readings().values == {"busy": [2, 1]}


def test_what_an_instrument_saw_beside_its_reading_is_out_of_the_bodys_reach(repeat):
    repeat.record("busy: kernel-intervals", {"mine": 1})
    window = repeat.instrument("kernel-intervals").window("busy")
    with window:
        pass
    repeat.record("busy: kernel-intervals", [{"seen": 0}])
    window.reading.details["seen"] = 0
    repeat.readings().diagnostics["busy: kernel-intervals"][0]["seen"].clear()
    assert repeat.readings().diagnostics["busy: kernel-intervals"] == [{"seen": [1]}]


def test_neither_is_why_it_could_not_be_read(repeat):
    repeat.record("seen", 5)
    for _ in range(2):
        with repeat.instrument("operator-intervals").window("seen"):
            pass
    told = repeat.readings().diagnostics
    assert told["seen"] == 1
    assert told["seen: operator-intervals"] == ['metric "seen": operator-intervals can\'t be read: it is off']
    assert told["seen: kernel-intervals"] == [{"seen": [1]}]


def test_a_window_that_could_not_be_read_was_not_thrown_away(repeat):
    window = repeat.instrument("operator-intervals").window("busy")
    with window:
        pass
    with suppress(TimeoutError), window:
        raise TimeoutError
    assert window.reading is None
    assert repeat.readings().discarded == []
    assert len(repeat.readings().problems) == 1


def test_calls_are_expected_of_the_block_that_runs(repeat):
    window = repeat.instrument("kernel-intervals").window("busy")
    with pytest.raises(RuntimeError, match="only while that runs"):
        window.expect(1, "aten::mm")
    with pytest.raises(TypeError, match="Count counts no calls"), window:
        window.expect(1, "aten::mm")
