"""Repeats that run side by side, elsewhere: launched, found again by another session, begun again by a service."""

from __future__ import annotations

from collections import Counter

import pytest
from loop_bench import FAULT, OK, Bench
from msgspec.structs import replace

from pytest_prereg.errors import MeasureError
from pytest_prereg.evidence.model import Finished, Launched, Outcome, Started
from pytest_prereg.measure.limits import Limits


class Service:
    """A service that runs what it is given, and ends it in whatever order ``pick`` says."""

    name = "script"
    waiting = None

    def __init__(
        self, parallel=3, pick=lambda running: running[0], answer=lambda _job: OK, known=(), calls="fc"
    ):
        self.parallel = parallel
        self.pick, self.answer, self.known, self.calls = pick, answer, set(known), calls
        self.running, self.launched, self.attached, self.most = [], [], [], 0

    def start(self):
        pass

    def prepare(self, _job):
        pass

    def launch(self, job):
        self.running.append(job)
        self.launched.append(job.repeat)
        self.most = max(self.most, len(self.running))
        return f"{self.calls}-{len(self.launched)}"

    def attach(self, job, call):
        if call not in self.known:
            return False
        self.running.append(job)
        self.attached.append((job.repeat, call))
        return True

    def mark_for(self, _job):
        return None

    def collect(self):
        job = self.pick(self.running)
        self.running.remove(job)
        answer = self.answer(job)
        if isinstance(answer, BaseException):
            raise answer
        return job, answer

    def close(self):
        self.running.clear()


class MarkingService(Service):
    """One that knows what it has begun by its mark; what is asked of ``strikes`` first befalls a launch."""

    def __init__(self, *strikes, begun=None, **options):
        super().__init__(**options)
        self.strikes, self.begun, self.marks = list(strikes), {} if begun is None else begun, []

    def mark_for(self, _job):
        return f"{self.calls}/{len(self.marks)}"

    def launch(self, job):
        self.marks.append(job.mark)
        strike = self.strikes.pop(0) if self.strikes else lambda _service, _job: None
        strike(self, job)
        call = super().launch(job)
        self.begun.setdefault(job.mark, call)
        return call

    def remembers(self, _mark):
        return self.begun is not FORGOTTEN

    def find(self, job):
        return self.begun.get(job.mark)


FORGOTTEN: dict[str, str] = {}


def killed_once_it_is_begun(service, job):
    service.begun[job.mark] = "fc-unwritten"
    raise KeyboardInterrupt


def killed_before_it_arrives(_service, _job):
    raise KeyboardInterrupt


def nothing(_service, _job):
    pass


@pytest.fixture
def bench(laboratory, monkeypatch) -> Bench:
    bench = Bench(laboratory, monkeypatch)
    bench.arrange(repeats=4)
    bench.declare(max_parallel=3)
    return bench


def kinds(lines, kind):
    return [line for line in lines if isinstance(line, kind)]


def test_no_more_run_at_a_time_than_both_allow_and_blocks_are_launched_together(bench):
    service = Service(parallel=2)
    bench.run(service)
    assert service.most == 2
    assert [name.rpartition("/")[2] for name in service.launched] == [*"11223344"]
    bench.declare(max_parallel=1)
    alone = Service(parallel=9)
    bench.run(alone)
    assert alone.most <= 1


def test_every_call_is_written_down_before_it_is_waited_for(bench):
    lines = bench.run(Service())
    first = next(index for index, line in enumerate(lines) if isinstance(line, Finished))
    assert [type(line) for line in lines[:first]] == [Started, Launched] * 3
    assert len({line.call for line in kinds(lines, Launched)}) == 8


@pytest.mark.parametrize("last", [False, True])
def test_run_order_is_that_of_the_launches_whatever_ends_first(bench, last):
    service = Service(pick=lambda running: running[-1 if last else 0])
    bench.run(service)
    assert [repeat.id for repeat in bench.series().repeats] == service.launched
    assert bench.series().complete


def test_what_failed_for_no_reason_of_its_own_is_run_again_beside_the_others(bench):
    failed = Counter()

    def answer(job):
        failed[job.repeat] += 1
        return FAULT if job.repeat.endswith("a/2") and failed[job.repeat] == 1 else OK

    service = Service(answer=answer)
    bench.run(service)
    assert bench.series().complete
    assert bench.series().faults == ("lab/1/a/2",)
    assert Counter(service.launched)["lab/1/a/2"] == 2


def test_three_faults_in_a_row_stop_it_and_what_ran_beside_is_lost(bench):
    bench.run(Service(answer=lambda _job: FAULT))
    assert isinstance(bench.error, MeasureError)
    assert bench.error.problems[0].code == "PR132"


def test_a_session_that_was_killed_is_gone_on_with_and_nothing_is_bought_twice(bench):
    bench.run(Service(answer=lambda _job: KeyboardInterrupt()))
    assert isinstance(bench.error, KeyboardInterrupt)
    calls = {f"fc-{number}" for number in (1, 2, 3)}
    second = Service(known=calls, calls="second")
    lines = bench.run(second)
    assert {call for _, call in second.attached} == calls
    assert bench.series().complete
    assert bench.series().faults == ()
    assert [line.attached for line in kinds(lines, Started)].count(True) == 3
    assert len(second.launched) == 5


def test_what_had_begun_when_its_session_was_killed_is_found_without_its_call(bench):
    first = MarkingService(nothing, killed_once_it_is_begun)
    bench.run(first)
    assert isinstance(bench.error, KeyboardInterrupt)
    second = MarkingService(known={"fc-1", "fc-unwritten"}, begun=first.begun, calls="second")
    bench.run(second)
    assert [call for _, call in second.attached] == ["fc-1", "fc-unwritten"]
    assert len(second.launched) == 6
    assert bench.series().complete
    assert bench.series().faults == ()


def test_what_never_reached_the_service_is_sent_off_again_as_the_same_attempt(bench):
    first = MarkingService(nothing, nothing, killed_before_it_arrives)
    bench.run(first)
    second = MarkingService(known={"fc-1", "fc-2"}, begun=first.begun, calls="second")
    lines = bench.run(second)
    assert second.marks[0] == first.marks[2]
    assert len(second.attached) == 2
    assert len(second.launched) == 6
    assert {line.attempt for line in kinds(lines, Started)} == {1}
    assert bench.series().complete
    assert bench.series().faults == ()


def test_whoever_is_killed_again_and_again_as_it_sends_off_loses_nothing(bench):
    begun = {}
    for number in range(5):
        bench.run(MarkingService(killed_before_it_arrives, begun=begun, calls=f"s{number}"))
    bench.run(MarkingService(begun=begun))
    assert bench.series().complete
    assert bench.series().faults == ()


def test_what_the_service_cannot_tell_of_is_lost_as_ever(bench):
    bench.run(MarkingService(killed_before_it_arrives))
    lines = bench.run(MarkingService(begun=FORGOTTEN, calls="second"))
    assert sorted(line.attempt for line in kinds(lines, Started)) == [1] * 7 + [2]
    assert bench.series().complete
    assert len(bench.series().faults) == 1


def test_whoever_takes_the_line_with_a_call_out_of_the_evidence_gets_that_call_again(bench):
    bench.run(first := MarkingService(answer=lambda _job: KeyboardInterrupt()))
    (path,) = bench.study.evidence_folder.glob("lab/*.jsonl")
    kept = [line for line in path.read_bytes().splitlines(keepends=True) if b'"launched"' not in line]
    path.write_bytes(b"".join(kept[:-1]))
    second = MarkingService(known={"fc-1", "fc-2", "fc-3"}, begun=first.begun, calls="second")
    bench.run(second)
    assert [call for _, call in second.attached] == ["fc-1", "fc-2", "fc-3"]
    assert bench.series().faults == ()


def test_what_was_ended_before_its_body_had_begun_was_no_attempt(bench):
    bench.run(first := MarkingService(answer=lambda _job: KeyboardInterrupt()))
    second = MarkingService(begun={}, calls="second")
    lines = bench.run(second)
    assert {*first.marks} < {*second.marks}
    assert {line.attempt for line in kinds(lines, Started)} == {1}
    assert bench.series().complete
    assert bench.series().faults == ()


class DeafOnce(MarkingService):
    """One whose first launch fails, and may have been heard nevertheless."""

    def launch(self, job):
        call = super().launch(job)
        return call if len(self.marks) > 1 else None

    def collect(self):
        job, result = super().collect()
        return job, FAULT if job.mark == self.marks[0] and self.marks.count(job.mark) == 1 else result


def test_a_launch_that_failed_may_have_been_heard_and_is_repeated_under_the_same_mark(bench):
    service = DeafOnce()
    bench.run(service)
    marks = [mark for mark, each in zip(service.marks, service.launched, strict=True) if each == "lab/1/a/1"]
    assert len(marks) == 2
    assert len({*marks}) == 1
    assert len({*service.marks}) == 8


@pytest.mark.parametrize("remembered", [True, False])
def test_so_is_it_by_the_next_session_if_the_service_remembers_it(bench, remembered):
    class KilledAfterIt(DeafOnce):
        def prepare(self, _job):
            if self.marks:
                raise KeyboardInterrupt

    bench.declare(max_parallel=1)
    first = KilledAfterIt()
    bench.run(first)
    second = MarkingService(begun=first.begun if remembered else FORGOTTEN, calls="second")
    bench.run(second)
    assert (second.marks[0] == first.marks[0]) is remembered
    assert bench.series().faults == ("lab/1/a/1",)
    assert bench.series().complete


def test_what_the_service_has_forgotten_is_lost_and_run_again(bench):
    bench.run(Service(answer=lambda _job: KeyboardInterrupt()))
    bench.run(Service())
    assert bench.series().complete
    assert len(bench.series().faults) == 3


def test_what_the_service_began_again_without_a_word_is_a_fault_each_time(bench):
    service = Service(answer=lambda job: replace(OK, restarts=1) if job.repeat.endswith("b/1") else OK)
    lines = bench.run(service)
    told = [
        (line.attempt, line.outcome, line.cause)
        for line in kinds(lines, Finished)
        if line.repeat.endswith("b/1")
    ]
    assert told == [(1, Outcome.INFRASTRUCTURE, "preempted"), (2, Outcome.OK, None)]
    calls = [line.call for line in kinds(lines, Launched) if line.repeat.endswith("b/1")]
    assert len(calls) == 2
    assert len(set(calls)) == 1
    assert bench.series().faults == ("lab/1/b/1",)


def test_a_limit_stops_the_launches_and_what_runs_is_kept(bench):
    service = Service()
    bench.run(service, header=bench.header(rates={"a": 3600.0, "b": 3600.0}), limits=Limits(budget=7.0))
    assert bench.stopped is not None
    assert len(bench.series().repeats) == len(service.launched) < 8
