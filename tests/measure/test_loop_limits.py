"""Where a session stops because of what it may spend, by a clock that the executor itself moves."""

from __future__ import annotations

import pytest
from loop_bench import FAULT, OK, Script, finished
from msgspec.structs import replace

from pytest_prereg.errors import MeasureError
from pytest_prereg.evidence.model import Footer, Outcome
from pytest_prereg.measure.limits import Forecast, Limits, Need, duration_text

RATE = 3600.0
"""USD an hour: a dollar a second."""
RATES = {"a": RATE, "b": RATE}


class Hours:
    """An executor whose repeats take as long as they say, by a clock of their own."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def taking(self, seconds: float, result=OK):
        def run(_job):
            self.now += seconds
            return replace(result, seconds={"total": seconds})

        return run

    def script(self, seconds: float, count: int = 20, **options) -> Script:
        return Script(*[self.taking(seconds) for _ in range(count)], **options)


@pytest.fixture
def hours():
    return Hours()


@pytest.fixture
def priced(bench):
    header = bench.header

    def with_rates(**fields):
        return header(**{"rates": RATES, **fields})

    bench.header = with_rates
    bench.arrange(timeout=None)
    return bench


class TestBudget:
    def test_what_building_versions_took_is_spent_already(self, priced, hours):
        with_rates = priced.header
        priced.header = lambda **fields: with_rates(built=4.0, **fields)

        assert len(finished(priced.run(hours.script(2.0), limits=Limits(budget=9.0, clock=hours)))) == 2

    def test_it_stops_before_the_repeat_that_would_exceed_it(self, priced, hours):
        lines = priced.run(hours.script(2.0), limits=Limits(budget=9.0, clock=hours))

        assert len(finished(lines)) == 4  # after 8 of 9 dollars a fifth would make it 10
        assert priced.stopped == (
            "$8.00 of the budget of $9.00 are spent, and the next repeat is likely to cost $2.00"
        )
        assert isinstance(lines[-1], Footer)
        assert lines[-1].ended == "stopped"
        assert not priced.series().complete

    def test_one_that_fits_exactly_is_bought(self, priced, hours):
        priced.run(hours.script(2.0), limits=Limits(budget=12.0, clock=hours))

        assert priced.stopped is None
        assert priced.series().complete

    def test_the_next_session_goes_on_and_knows_how_long_repeats_take(self, priced, hours):
        priced.run(hours.script(2.0), limits=Limits(budget=9.0, clock=hours))
        executor = hours.script(2.0)
        priced.run(executor, limits=Limits(budget=3.0, clock=hours))

        assert len(executor.jobs) == 1
        assert len(priced.series().repeats) == 5

    def test_pilots_tell_how_long_they_take(self, priced, hours):
        pilots = priced.header(origin="pilot", planned={"a": 1, "b": 1})
        priced.run(hours.script(5.0), header=pilots)
        executor = hours.script(5.0)
        priced.run(executor, limits=Limits(budget=4.0, clock=hours))

        assert executor.jobs == []
        assert priced.stopped == (
            "$0.00 of the budget of $4.00 are spent, and the next repeat is likely to cost $5.00"
        )

    def test_before_anything_is_known_the_timeout_is_the_most_that_it_may_cost(self, priced, hours):
        priced.arrange(timeout=20.0)
        executor = hours.script(1.0)
        priced.run(executor, limits=Limits(budget=19.0, clock=hours))

        assert executor.jobs == []

    def test_what_takes_an_unknown_time_is_launched_while_anything_is_left(self, priced, hours):
        executor = hours.script(7.0)
        priced.run(executor, limits=Limits(budget=5.0, clock=hours))

        assert len(executor.jobs) == 1
        assert priced.stopped == "the budget of $5.00 is spent ($7.00)"

    def test_nothing_left_buys_nothing(self, priced, hours):
        executor = hours.script(7.0)
        priced.run(executor, limits=Limits(budget=0.0, clock=hours))

        assert executor.jobs == []

    def test_what_is_free_is_never_stopped(self, bench, hours):
        bench.arrange(timeout=None)
        bench.run(hours.script(7.0), limits=Limits(budget=0.0, clock=hours))

        assert bench.stopped is None
        assert bench.series().complete

    def test_faults_are_paid_for(self, priced, hours):
        executor = Script(*[hours.taking(2.0, FAULT if number == 0 else OK) for number in range(9)])
        lines = finished(priced.run(executor, limits=Limits(budget=9.0, clock=hours)))

        assert [line.outcome for line in lines] == [Outcome.INFRASTRUCTURE] + [Outcome.OK] * 3

    def test_warm_ups_are_paid_for_and_not_begun_where_no_repeat_could_follow(self, priced, hours):
        priced.run(hours.script(2.0), limits=Limits(budget=3.0, clock=hours))
        priced.declare(warmup=1)
        executor = hours.script(2.0)
        priced.run(executor, limits=Limits(budget=5.0, clock=hours))

        assert executor.jobs == []

        priced.run(executor, limits=Limits(budget=6.5, clock=hours))

        assert len(executor.jobs) == 3

    def test_two_sessions_of_a_run_share_it(self, priced, hours):
        limits = Limits(budget=9.0, clock=hours)
        pilots = priced.header(origin="pilot", planned={"a": 2, "b": 1})
        priced.run(hours.script(2.0), header=pilots, limits=limits)
        executor = hours.script(2.0)
        priced.run(executor, limits=limits)

        assert len(executor.jobs) == 1

    def test_once_stopped_nothing_smaller_slips_through(self, priced, hours):
        limits = Limits(budget=9.0, clock=hours)
        priced.run(hours.script(2.0), limits=limits)

        assert limits.refuses(Need(seconds=0.0, usd=0.0))


class TestTime:
    def run(self, bench, hours, executor, seconds):
        limits = Limits(time=seconds, clock=hours)
        with limits.measuring():
            bench.run(executor, limits=limits)

    def test_it_stops_before_the_repeat_that_would_exceed_it(self, priced, hours):
        executor = hours.script(120.0)
        self.run(priced, hours, executor, 420.0)

        assert len(executor.jobs) == 3
        assert priced.stopped == (
            "6 min of the time of 7 min are spent, and the next repeat is likely to take 2 min"
        )

    def test_waiting_is_measuring_time_and_ends_in_time(self, priced, hours):
        executor = hours.script(2.0)

        def prepare(_job):
            while True:
                hours.now += 60.0
                executor.waiting()

        executor.prepare = prepare
        self.run(priced, hours, executor, 600.0)

        assert priced.stopped == "the time of 10 min is spent (10 min)"
        assert executor.jobs == []
        assert priced.files()[0].attempts == []

    def test_what_lies_between_two_experiments_does_not_count(self, hours):
        limits = Limits(time=10.0, clock=hours)
        for _ in range(2):
            with limits.measuring():
                hours.now += 4.0
            hours.now += 100.0

        assert limits.seconds == 8.0
        assert not limits.refuses(Need(seconds=2.0, usd=0.0))
        assert limits.refuses(Need(seconds=2.1, usd=0.0))


class TestForecast:
    def test_an_arm_is_like_itself_before_it_is_like_others(self, bench):
        forecast = Forecast(bench.experiment, {"b": RATE})
        forecast.learn("a", 1.0)
        forecast.learn("a", 3.0)

        assert forecast.of(["a", "a"]) == Need(seconds=4.0, usd=0.0)
        assert forecast.of(["a", "b"]) == Need(seconds=22.0, usd=20.0)  # its timeout
        assert forecast.whole(["a", "b"]) == Need(seconds=4.0, usd=2.0)

    def test_of_nothing_known_it_says_nothing(self, bench):
        bench.arrange(timeout=None)
        forecast = Forecast(bench.experiment, {"b": RATE})

        assert forecast.of(["a"]) == Need(seconds=None, usd=0.0)
        assert forecast.whole(["a", "b"]) == Need(seconds=None, usd=None)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.5, "0.5 s"), (45, "45 s"), (119, "119 s"), (600, "10 min"), (5400, "90 min"), (9000, "2.5 h")],
)
def test_durations_read_as_people_say_them(seconds, text):
    assert duration_text(seconds) == text


def test_a_run_without_limits_is_never_stopped(priced, hours):
    executor = hours.script(1e6)
    priced.run(executor)

    assert priced.stopped is None
    assert not isinstance(priced.error, MeasureError)
    assert len(executor.jobs) == 6
