"""What a session writes down, in which order, and what it does about faults and interruptions."""

from __future__ import annotations

import os
import re
import signal

import pytest
from loop_bench import FAILED, FAULT, OK, Script, finished
from msgspec.structs import replace

from pytest_prereg.errors import MeasureError
from pytest_prereg.evidence.model import Finished, Footer, Outcome, Started
from pytest_prereg.evidence.series import assemble
from pytest_prereg.measure import source_watch
from pytest_prereg.measure.executors.base import Result
from pytest_prereg.measure.executors.local import LocalExecutor
from pytest_prereg.measure.planning import schedule
from pytest_prereg.measure.schedule import block_order, repeat_seed
from pytest_prereg.registry.tables import RepeatsTable


def test_a_series_is_filled_in_the_order_of_its_seed(bench):
    executor = Script()
    lines = bench.run(executor)
    order = block_order({"a": 3, "b": 3}, bench.header().seed)
    assert [(job.arm, job.index) for job in executor.jobs] == [(slot.arm, slot.index) for slot in order]
    assert [type(line) for line in lines] == [Started, Finished] * 6 + [Footer]
    assert bench.error is None
    assert lines[-1].ended == "finished"
    assert bench.series().complete


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [("record('t', 1)", "record('t', 2)", 1), ("record('t', 1)", "record('t', 1)  # a second", 6)],
    ids=["other code", "a comment"],
)
def test_code_that_changes_meanwhile_ends_the_session(bench, old, new, kept):
    module = bench.experiment.source.path

    def edited(job):
        module.write_text(module.read_text().replace(old, new))
        return OK

    lines = bench.run(Script(OK, edited))

    assert len(finished(lines)) == kept
    if kept == 1:
        assert isinstance(bench.error, MeasureError)
        assert 'PR103: the code of experiment "lab" changed while it was measured' in str(bench.error)
        assert lines[-1].ended == "failed"
        assert bench.series().faults == (lines[2].repeat,)


@pytest.mark.parametrize("key", ["subject", "data"])
class TestFilesThatChangeMeanwhile:
    """A series is of one subject, and of one set of data."""

    def run(self, bench, key, *answers):
        bench.declare(**{key: ["kernel*.py"]})
        bench.lines = bench.run(Script(*answers), header=bench.header())

    def test_it_ends_the_session(self, bench, key):
        kernel = bench.laboratory.folder / "kernel.py"
        kernel.write_text("SIZE = 1")
        self.run(bench, key, OK, lambda _: kernel.write_text("SIZE = 20") and OK)

        assert len(finished(bench.lines)) == 1
        assert f'PR103: the {key} of experiment "lab" changed while it was measured' in str(bench.error)
        assert ("amend" in str(bench.error)) is (key == "data")
        assert bench.lines[-1].ended == "failed"

    def test_a_file_that_a_glob_matches_only_now_does_so_too(self, bench, key):
        kernel = bench.laboratory.folder / "kernel.py"
        kernel.write_text("SIZE = 1")
        second = kernel.with_name("kernel_2.py")
        self.run(bench, key, OK, OK, lambda _: second.write_text("SIZE = 2") and OK)

        assert len(finished(bench.lines)) == 2
        assert f"the {key} of" in str(bench.error)

    def test_so_does_one_that_is_gone(self, bench, key):
        kernel = bench.laboratory.folder / "kernel.py"
        kernel.write_text("SIZE = 1")
        self.run(bench, key, OK, lambda _: kernel.unlink() or OK)

        assert len(finished(bench.lines)) == 1
        assert f"the {key} of" in str(bench.error)

    def test_one_that_is_only_touched_does_not(self, bench, key):
        kernel = bench.laboratory.folder / "kernel.py"
        kernel.write_text("SIZE = 1")
        self.run(bench, key, OK, lambda _: kernel.touch() or OK)

        assert bench.error is None
        assert len(finished(bench.lines)) == 6


def test_nothing_is_looked_at_again_while_no_file_changes(bench, monkeypatch):
    (bench.laboratory.folder / "kernel.py").write_text("SIZE = 1")
    bench.declare(subject=["kernel.py"], data=["kernel.py"])
    header = bench.header()
    taken = []
    digest = source_watch.source_digest
    monkeypatch.setattr(source_watch, "source_digest", lambda *args: taken.append(1) or digest(*args))
    bench.run(Script(), header=header)

    assert bench.error is None
    assert len(taken) == 1


def test_arms_of_a_block_share_a_seed_and_blocks_do_not(bench):
    executor = Script()
    lines = bench.run(executor)
    for job in executor.jobs:
        assert job.seed == repeat_seed(bench.header().seed, job.index)
    seeds = {(line.block, line.seed) for line in lines if isinstance(line, Started)}
    assert len(seeds) == 3


def test_a_sequential_experiment_runs_arm_after_arm(bench):
    bench.arrange(order="sequential")
    executor = Script()
    bench.run(executor)
    assert [job.arm for job in executor.jobs] == ["a"] * 3 + ["b"] * 3


def test_a_job_carries_what_the_arm_says(bench):
    bench.arrange(arms={"a": {"X": "1"}}, timeout=7.0)
    arm = replace(bench.experiment.arms["a"], params={"rate": 0.5})
    bench.experiment = replace(bench.experiment, arms={"a": arm})
    executor = Script()
    bench.run(executor)
    job = executor.jobs[0]
    assert (job.params, job.env, job.timeout, job.metrics) == ({"rate": 0.5}, {"X": "1"}, 7.0, {"t": "s"})


def test_the_line_that_a_repeat_started_is_there_before_it_is_launched(bench):
    seen = []

    def look(job):
        seen.extend(bench.files()[0].lines[1:])
        return OK

    executor = Script(look)
    bench.run(executor)
    assert [(type(line), line.repeat, line.attempt) for line in seen] == [
        (Started, executor.jobs[0].repeat, 1)
    ]


def test_what_an_executor_says_is_written_down(bench):
    said = Result(
        outcome=Outcome.INVALID,
        values={"t": 0.5},
        diagnostics={"note": "x"},
        instruments={"t": "wall-clock"},
        samples={"t": 9},
        cause="because",
        error="tail",
        seconds={"launch": 0.1, "body": 0.2, "total": 0.3},
        environment={"pid": 3, "load_average": 0.5},
    )
    line = finished(bench.run(Script(said)))[0]
    for field in (name for name in said.__struct_fields__ if name != "restarts"):
        assert getattr(line, field) == getattr(said, field)
    assert line.machine == "Z80 | none | none"


def test_a_failure_of_the_task_settles_its_slot(bench):
    executor = Script(FAILED)
    bench.run(executor)
    assert len(executor.jobs) == 6
    assert bench.series().repeats[0].outcome is Outcome.TASK_FAILED


def test_an_infrastructure_fault_is_run_again_in_place(bench):
    executor = Script(OK, FAULT, FAULT)
    lines = bench.run(executor)
    assert executor.jobs[1].repeat == executor.jobs[2].repeat == executor.jobs[3].repeat
    assert [line.attempt for line in finished(lines)][:5] == [1, 1, 2, 3, 1]
    assert bench.series().complete
    assert len(bench.series().faults) == 2


def test_a_slot_that_keeps_failing_is_settled_as_that_and_the_rest_goes_on(bench):
    executor = Script(FAULT, FAULT, FAULT)
    bench.run(executor)
    assert len(executor.jobs) == 8
    assert bench.series().complete
    assert bench.series().repeats[0].outcome is Outcome.INFRASTRUCTURE


def test_faults_of_earlier_sessions_count(bench):
    def give_up(job):
        raise KeyboardInterrupt

    bench.run(Script(FAULT, FAULT, give_up))
    executor = Script(FAULT)
    lines = bench.run(executor)
    assert finished(lines)[0].attempt == 4  # two faults and one lost attempt before it
    assert executor.jobs[0].repeat != executor.jobs[1].repeat
    assert len(executor.jobs) == 6
    assert bench.series().complete


def test_two_faults_in_a_row_restart_the_executor_once_and_three_more_end_the_session(bench):
    executor = Script(then=FAULT)
    lines = bench.run(executor)
    assert isinstance(bench.error, MeasureError)
    assert 'PR132: experiment "lab": 3 repeats in a row' in str(bench.error)
    assert "killed from outside" in str(bench.error)
    assert (executor.starts, executor.closes) == (1, 1)
    assert len(executor.jobs) == 5
    assert len(finished(lines)) == 5
    assert lines[-1].ended == "failed"


def test_what_was_broken_for_a_moment_is_started_anew_before_a_slot_is_given_up(bench):
    executor = Script(FAULT, FAULT)
    bench.run(executor)
    assert executor.starts == 1
    series = bench.series()
    assert series.complete
    assert {repeat.outcome for repeat in series.repeats} == {Outcome.OK}


def test_faults_that_are_not_in_a_row_end_nothing(bench):
    executor = Script(*[FAULT, FAULT, OK] * 6)
    bench.run(executor)
    assert bench.error is None
    assert executor.starts == 1
    assert bench.series().complete


def test_an_interrupted_repeat_is_lost_and_nothing_else_is(bench):
    def interrupt(job):
        raise KeyboardInterrupt

    lines = bench.run(Script(OK, OK, interrupt))
    assert isinstance(bench.error, KeyboardInterrupt)
    assert [type(line) for line in lines] == [Started, Finished, Started, Finished, Started, Footer]
    assert lines[-1].ended == "interrupted"
    series = bench.series()
    assert len(series.repeats) == 2
    assert series.faults == (lines[4].repeat,)


def test_the_next_session_runs_what_is_left_in_the_order_that_was_planned(bench):
    def interrupt(job):
        raise KeyboardInterrupt

    first, second = Script(OK, OK, interrupt), Script()
    bench.run(first)
    lines = bench.run(second)
    order = [f"lab/1/{slot.arm}/{slot.index}" for slot in schedule(bench.experiment, bench.header())]
    assert [job.repeat for job in first.jobs[:2] + second.jobs] == order
    assert finished(lines)[0].attempt == 2
    assert bench.series().complete


def test_a_complete_series_launches_nothing(bench):
    bench.run(Script())
    executor = Script()
    assert len(bench.run(executor)) == 1
    assert executor.jobs == []


def test_progress_tells_how_far_it_is_and_no_value(bench):
    seen = []
    bench.run(Script(then=replace(OK, values={"t": 123456.0})), progress=seen.append)
    assert [one.done for one in seen] == [0, 1, 2, 3, 4, 5]
    assert {one.planned for one in seen} == {6}
    assert [one.seconds_left for one in seen] == [None, 10.0, 8.0, 6.0, 4.0, 2.0]
    assert "123456" not in repr(seen)


def test_it_tells_that_a_repeat_waits_before_it_is_written_down(bench):
    seen = []

    def look(progress):
        seen.append((progress.waiting, len(bench.files()[0].attempts)))

    bench.arrange(arms={"a": {}}, repeats=1)
    bench.run(Script(waits=2), progress=look)
    assert seen == [(False, 0), (True, 0), (True, 0), (False, 0)]


def test_a_fault_is_written_down_with_the_time_it_took(bench):
    line = finished(bench.run(Script(FAULT)))[0]
    assert (line.outcome, line.cause) == (Outcome.INFRASTRUCTURE, "killed")
    assert line.seconds["total"] >= 0


def test_that_it_went_on_from_a_checkpoint_is_written_down(bench):
    lines = finished(bench.run(Script(replace(OK, resumed=True))))
    assert [line.resumed for line in lines] == [True] + [False] * 5


def test_vectors_that_no_prediction_reads_are_reduced_to_their_mean(bench):
    line = finished(bench.run(Script(then=replace(OK, values={"t": [1.0, 3.0]}))))[0]
    assert line.values == {"t": 2.0}
    assert line.samples == {"t": 2}


def test_pilots_are_marked_and_may_be_seen_and_count_for_nothing(bench):
    seen = []
    header = bench.header(origin="pilot", planned={"b": 2})
    lines = bench.run(Script(FAILED), header=header, observe=lambda *pair: seen.append(pair))
    assert [line.outcome for line in finished(lines)] == [Outcome.PILOT] * 2
    assert [line.cause for line in finished(lines)] == ["exception", None]
    assert [(started.arm, ended.values) for started, ended in seen] == [("b", {}), ("b", {"t": 0.5})]
    assert assemble(bench.experiment, bench.files()) == []


def test_checkpoints_stay_until_the_slot_is_settled(bench):
    found = []

    def leave(job):
        folder = os.path.join(job.checkpoint, "x")  # noqa: PTH118
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        return FAULT

    def look(job):
        found.append(os.listdir(job.checkpoint))  # noqa: PTH208
        return OK

    executor = Script(leave, look)
    bench.run(executor)
    assert found == [["x"]]
    assert not any(os.path.exists(job.checkpoint) for job in executor.jobs)  # noqa: PTH110
    assert len({job.checkpoint for job in executor.jobs}) == 6


def test_ctrl_c_in_a_real_repeat_loses_that_repeat_alone(bench, herd):
    bench.arrange("if repeat.index == 2: time.sleep(60)\nrepeat.record('t', 1)", arms={"a": {}})
    with LocalExecutor(bench.study, bench.experiment, environ=herd.environ) as executor:

        def soon(progress):
            if progress.index == 2:
                signal.setitimer(signal.ITIMER_REAL, 0.5)

        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            lines = bench.run(executor, progress=soon)
        finally:
            signal.signal(signal.SIGALRM, before)
    assert isinstance(bench.error, KeyboardInterrupt)
    assert [line.values for line in finished(lines)] == [{"t": 1.0}]
    assert lines[-1].ended == "interrupted"
    assert herd.pids() == []


def test_a_real_series_is_complete_and_judgeable(bench):
    bench.arrange("with repeat.timer('t'): time.sleep(0.01)", arms={"": {}})
    with LocalExecutor(bench.study, bench.experiment) as executor:
        bench.run(executor)
    series = bench.series()
    assert series.complete
    assert [repeat.id for repeat in series.repeats] == ["lab/1/1", "lab/1/2", "lab/1/3"]
    assert all(repeat.values["t"] >= 0.01 for repeat in series.repeats)
    assert {repeat.instruments["t"] for repeat in series.repeats} == {"wall-clock"}


class TestStopping:
    """A session under a stopping rule ends at the first look that finds it decided, and not one repeat later."""

    LOOKS = RepeatsTable(looks=[2, 4, 6])
    ANYTIME = RepeatsTable(max=6, stopping="anytime")

    @pytest.mark.parametrize(
        ("repeats", "last", "asked", "bought"),
        [(LOOKS, 4, [2, 4], 8), (LOOKS, None, [2, 4, 6], 12), (ANYTIME, 4, [3, 4], 8), (6, 2, [], 12)],
        ids=["looks", "never decided", "anytime", "no rule"],
    )
    def test_it_is_asked_at_looks_alone_and_a_yes_ends_it(self, bench, repeats, last, asked, bought):
        bench.arrange_rule(repeats)
        seen: list[int] = []
        executor = Script()

        lines = bench.run(executor, enough=lambda block: seen.append(block) or block == last)

        assert (seen, len(executor.jobs)) == (asked, bought)
        assert lines[-1].ended == "finished"

    def test_a_look_that_earlier_sessions_settled_is_taken_before_anything_is_bought(self, bench):
        bench.arrange_rule(self.LOOKS)

        def killed(_job):
            raise KeyboardInterrupt

        bench.run(Script(OK, OK, OK, OK, killed), enough=lambda _block: False)
        executor = Script()
        lines = bench.run(executor, enough=lambda block: block == 2)

        assert executor.jobs == []
        assert [line.ended for line in lines] == ["finished"]


def test_a_pilot_runs_nothing_again_and_is_told_of_no_series(bench):
    executor = Script(then=FAULT)
    bench.run(executor, header=bench.header(origin="pilot", series=0))

    assert len(executor.jobs) == 5
    assert len({job.repeat for job in executor.jobs}) == 5
    assert "Nothing more was launched." in str(bench.error)
    assert not {"resumes", "void"} & {*re.findall(r"\w+", str(bench.error))}
