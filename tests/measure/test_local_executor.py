"""How one repeat ends, for every way it can end, with real processes."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

from pytest_prereg.errors import MeasureError
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.devices import DeviceLocks, claims_of

GOOD = "repeat.record('t', 0.5)"


def test_a_repeat_that_records_its_metrics_is_ok(laboratory):
    result = laboratory.run(GOOD)
    assert result.outcome is Outcome.OK
    assert result.values == {"t": 0.5}
    assert (result.cause, result.error, result.diagnostics) == (None, None, {})


def test_times_are_told_apart(laboratory):
    seconds = laboratory.run(f"time.sleep(0.2); {GOOD}").seconds
    assert 0.2 <= seconds["body"] < 1.0
    assert seconds["launch"] > 0
    assert seconds["launch"] + seconds["body"] <= seconds["total"]


def test_the_body_gets_its_setting_and_its_parameters(laboratory, make_job):
    executor = laboratory.executor(
        "repeat.record('t', 0.5); repeat.record('seen', [repeat.arm, repeat.index, repeat.seed, params])",
        arms={"fast": {}},
    )
    executor.start()
    result = executor.run(make_job(executor, index=4, seed=99, params={"rate": 0.5, "names": ["a", "b"]}))
    assert result.diagnostics["seen"] == ["fast", 4, 99, {"rate": 0.5, "names": ["a", "b"]}]


def test_every_repeat_is_a_fresh_process_with_randomness_of_its_own(laboratory, make_job):
    executor = laboratory.executor(
        """
import random, numpy
count.append(1)
repeat.record('seen', [os.getpid(), len(count), random.random(), float(numpy.random.random())])
repeat.record('t', 1)
""",
        top="import random, numpy\ncount = []",
    )
    executor.start()
    first, second = (executor.run(make_job(executor, index=index)).diagnostics["seen"] for index in (1, 2))
    assert first[1] == second[1] == 1
    for one, other in zip(first[::2] + first[3:], second[::2] + second[3:], strict=True):
        assert one != other


def test_the_body_leads_a_session_in_the_study_folder_with_nothing_to_read(laboratory):
    seen = laboratory.run(
        f"{GOOD}; repeat.record('seen', [os.getsid(0) == os.getpid(), os.getcwd(), sys.stdin.read()])"
    ).diagnostics["seen"]
    assert seen == [True, str(laboratory.folder), ""]


def test_the_working_folder_is_fresh_and_removed(laboratory, make_job):
    executor = laboratory.executor(
        f"repeat.record('seen', [str(repeat.workdir), os.listdir(repeat.workdir)]); {GOOD}\n"
        "(repeat.workdir / 'big').write_text('x')"
    )
    executor.start()
    folders = [executor.run(make_job(executor)).diagnostics["seen"] for _ in range(2)]
    assert folders[0] != folders[1]
    for folder, content in folders:
        assert content == []
        assert not Path(folder).exists()


def test_a_checkpoint_outlives_the_attempt(laboratory, make_job, tmp_path):
    executor = laboratory.executor(
        "file = repeat.checkpoint() / 'step'\nrepeat.record('t', 1 + file.exists())\nfile.write_text('1')"
    )
    executor.start()
    job = make_job(executor, checkpoint=str(tmp_path / "checkpoints" / "one"))
    assert [executor.run(job).values["t"] for _ in range(2)] == [1.0, 2.0]


def test_an_exception_is_a_task_failure_with_the_end_of_its_traceback(laboratory):
    result = laboratory.run("repeat.record('t', 1)\nraise RuntimeError('x' * 9000 + 'the end')")
    assert (result.outcome, result.cause) == (Outcome.TASK_FAILED, "exception")
    assert result.error.endswith("the end")
    assert len(result.error) <= 4096
    assert result.values == {"t": 1.0}


def test_a_traceback_begins_in_the_body(laboratory):
    error = laboratory.run("raise RuntimeError('no')").error
    frames = re.findall(r'File "(.*?)"', error)
    assert frames == [str(laboratory.folder / "experiments/lab.py")]
    assert error.endswith("RuntimeError: no")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("os._exit(3)", "exited with status 3 and without a result"),
        ("os._exit(0)", "exited with status 0 and without a result"),
        ("sys.exit(2)", "sys.exit(2)"),
        ("sys.exit('no data')", "sys.exit('no data')"),
        ("os.closerange(3, 64)", "Bad file descriptor"),
    ],
)
def test_leaving_early_is_a_task_failure(laboratory, body, message):
    result = laboratory.run(f"{GOOD}\n{body}")
    assert (result.outcome, result.cause) == (Outcome.TASK_FAILED, "exit")
    assert message in result.error


def test_leaving_with_status_zero_after_recording_is_ok(laboratory):
    assert laboratory.run(f"{GOOD}\nsys.exit(0)").outcome is Outcome.OK


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGTERM", "SIGABRT"])
def test_a_fatal_signal_is_a_task_failure(laboratory, name):
    result = laboratory.run(f"print('about to', flush=True); os.kill(os.getpid(), signal.{name})")
    assert (result.outcome, result.cause) == (Outcome.TASK_FAILED, "signal")
    assert result.error.startswith(f"killed by {name}")
    assert "about to" in result.error


def test_want_of_memory_is_a_task_failure_of_its_own(laboratory):
    result = laboratory.run("raise MemoryError")
    assert (result.outcome, result.cause) == (Outcome.TASK_FAILED, "oom")


def test_a_kill_from_outside_is_infrastructure(laboratory):
    result = laboratory.run("os.kill(os.getpid(), signal.SIGKILL)")
    assert (result.outcome, result.cause) == (Outcome.INFRASTRUCTURE, "killed")


def test_a_body_that_hangs_is_stopped_at_its_deadline(laboratory):
    began = time.monotonic()
    result = laboratory.run("print('waiting', flush=True); time.sleep(60)", timeout=0.4)
    assert (result.outcome, result.cause) == (Outcome.TIMEOUT, "deadline")
    assert 0.4 <= result.seconds["body"] < 0.8
    assert time.monotonic() - began < 5
    assert result.error == "waiting"
    assert result.values == {}


def test_a_body_that_ignores_signals_is_stopped_all_the_same(laboratory):
    body = "[signal.signal(n, signal.SIG_IGN) for n in (signal.SIGTERM, signal.SIGINT)]\nwhile True: pass"
    assert laboratory.run(body, timeout=0.3).outcome is Outcome.TIMEOUT


def test_the_deadline_does_not_count_what_comes_before_the_body(laboratory, make_job):
    # A launch that is stopped for longer than the timeout lasts, before the body has begun.
    executor = laboratory.executor(
        GOOD, timeout=0.3, top="os.register_at_fork(after_in_child=lambda: time.sleep(0.4))"
    )
    executor.start()
    result = executor.run(make_job(executor))
    assert result.outcome is Outcome.OK
    assert result.seconds["launch"] > 0.4


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("pass", 'metric "t" was not recorded'),
        ("repeat.record('t', float('nan'))", 'metric "t": nan is not a finite number'),
        ("repeat.record('t', time.time())", "is a point in time"),
        ("repeat.record('t', 5, unit='ms')", 'metric "t" was recorded in ms, but is declared in s'),
        ("import numpy; repeat.record('t', numpy.float32(1))", "float32 is too coarse for a time"),
        ("repeat.record('t', 1); repeat.invalidate('the clock jumped')", "the clock jumped"),
        ("repeat.record('t', 1); repeat.censor('t', at_least=30)", 'metric "t" is censored at 30'),
    ],
)
def test_a_broken_contract_makes_the_repeat_invalid_and_names_the_metric(laboratory, body, cause):
    result = laboratory.run(body)
    assert result.outcome is Outcome.INVALID
    assert cause in result.cause


def test_an_invalid_repeat_keeps_its_values(laboratory):
    result = laboratory.run("repeat.record('t', 1)\nrepeat.record('k', None)", metrics={"t": "s", "k": "1"})
    assert result.outcome is Outcome.INVALID
    assert result.values == {"t": 1.0}


def test_an_invalidation_does_not_hide_a_failure(laboratory):
    result = laboratory.run("repeat.invalidate('never mind')\nraise RuntimeError")
    assert result.outcome is Outcome.TASK_FAILED
    assert result.diagnostics["problems"] == ["never mind"]


def test_a_hundred_megabytes_of_output_neither_block_nor_stay(laboratory, make_job):
    executor = laboratory.executor(f"[print('x' * 999_999) for _ in range(105)]\n{GOOD}")
    executor.start()
    folder = next(iter(executor._servers.values())).folder
    assert executor.run(make_job(executor)).outcome is Outcome.OK
    assert {file.name for file in folder.iterdir()} == {"server.log"}


def test_of_endless_output_only_the_end_is_kept(laboratory):
    result = laboratory.run(
        "for n in range(105): print('x' * 999_999, flush=True)\nprint('the end', flush=True)\nos._exit(1)"
    )
    assert result.error.endswith("the end")
    assert len(result.error) < 5000


def test_output_that_grows_too_large_is_cut_back_while_the_body_runs(laboratory):
    result = laboratory.run(
        "print('x' * (65 << 20), flush=True)\n"
        "time.sleep(2.5)\n"
        "repeat.record('left', os.fstat(1).st_size)\n"
        "repeat.record('t', 1)"
    )
    assert result.diagnostics["left"] == 0


def test_the_output_of_a_failure_is_kept_until_someone_has_looked(laboratory, make_job):
    executor = laboratory.executor("print('why', flush=True); os._exit(1)")
    executor.start()
    folder = next(iter(executor._servers.values())).folder
    executor.run(make_job(executor))
    executor.close()
    assert [file.read_text() for file in folder.iterdir()] == ["why\n"]


def test_diagnostics_may_be_anything(laboratory):
    result = laboratory.run(
        f"{GOOD}\nrepeat.record('odd', {{(1, 2): object, 'text': '\\udc80'}})\nrepeat.record('where', Path('/'))"
    )
    assert result.outcome is Outcome.OK
    assert "object" in result.diagnostics["odd"]


def test_a_hundred_thousand_samples_come_back(laboratory):
    result = laboratory.run("repeat.samples('t', [i * 0.5 for i in range(100_000)])")
    assert len(result.values["t"]) == 100_000


def test_arms_have_their_environment_from_the_first_import_on(laboratory, make_job):
    executor = laboratory.executor(
        f"repeat.record('seen', [SEEN, os.environ.get('ARM')]); {GOOD}",
        top="SEEN = os.environ.get('ARM')",
        arms={"one": {"ARM": "1"}, "two": {"ARM": "2"}, "none": {}},
    )
    executor.start()
    seen = {
        arm: executor.run(make_job(executor, arm=arm)).diagnostics["seen"] for arm in ("one", "two", "none")
    }
    assert seen == {"one": ["1", "1"], "two": ["2", "2"], "none": [None, None]}


def test_children_see_no_coverage_no_pytest_and_no_debugger(laboratory, make_job):
    noise = {"COVERAGE_PROCESS_START": "x", "COV_CORE_SOURCE": "x", "PYTEST_ADDOPTS": "-v", "PYDEVD_USE": "1"}
    executor = laboratory.executor(
        f"repeat.record('seen', sorted(os.environ)); {GOOD}", environ={**os.environ, **noise, "KEPT": "1"}
    )
    assert set(noise) <= set(executor.scrubbed)
    executor.start()
    seen = executor.run(make_job(executor)).diagnostics["seen"]
    assert "KEPT" in seen
    assert not set(noise) & set(seen)


def test_a_module_beside_the_study_does_not_become_the_standard_library(laboratory):
    for name in ("select", "random", "json", "tempfile", "traceback", "tokenize", "linecache", "shutil"):
        (laboratory.folder / f"{name}.py").write_text(f"raise RuntimeError('{name} is shadowed')")
    result = laboratory.run("raise ValueError('mine')")
    assert result.error.endswith("ValueError: mine")


def test_a_module_beside_the_study_can_be_imported_and_preloaded(laboratory):
    (laboratory.folder / "helper.py").write_text("VALUE = 0.25")
    result = laboratory.run(
        "repeat.record('t', helper.VALUE)", top="import helper", preload=("helper", "json")
    )
    assert result.values == {"t": 0.25}


def test_an_experiment_is_found_in_a_folder_of_its_own_too(laboratory):
    assert laboratory.run(GOOD, name="bench.gpu.steps").outcome is Outcome.OK


def test_a_failing_import_is_told_with_its_place_and_nothing_is_started(laboratory, herd):
    executor = laboratory.executor(
        GOOD, top="import no_such_module", environ={**os.environ, "LAB": str(os.getpid())}
    )
    with pytest.raises(MeasureError) as caught:
        executor.start()
    text = str(caught.value)
    assert re.search(
        r"experiments/lab.py:4: PR130: experiment \"lab\" could not be imported: ModuleNotFound", text
    )
    assert "no_such_module" in text
    assert herd.pids() == []


@pytest.mark.parametrize(
    ("top", "said"),
    [
        ("def broken(:", "SyntaxError"),
        ("sys.exit(4)", "SystemExit: 4"),
        ("os._exit(4)", "ended with status 4"),
        ("print('last words', flush=True); os.abort()", "last words"),
    ],
)
def test_a_module_that_cannot_even_be_run_is_told(laboratory, top, said):
    executor = laboratory.executor(GOOD, top=top)
    with pytest.raises(MeasureError, match=said):
        executor.start()


def test_another_module_of_the_same_name_is_not_run_instead(laboratory, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("installed")
    (elsewhere / "experiments").mkdir()
    (elsewhere / "experiments" / "__init__.py").write_text("")
    (elsewhere / "experiments" / "lab.py").write_text("def trial(repeat): repeat.record('t', 9)")
    executor = laboratory.executor(GOOD, environ={**os.environ, "PYTHONPATH": str(elsewhere)})
    with pytest.raises(MeasureError, match=r"experiments\.lab was found at .*, which hides .*__init__\.py"):
        executor.start()


def test_a_server_that_was_killed_is_infrastructure_and_started_anew(laboratory, make_job):
    executor = laboratory.executor("if params: time.sleep(60)\nrepeat.record('t', 1)")
    executor.start()
    server = next(iter(executor._servers.values()))
    assert executor.run(make_job(executor)).outcome is Outcome.OK
    server.process.kill()
    result = executor.run(make_job(executor, params={"hang": True}))
    assert (result.outcome, result.cause) == (Outcome.INFRASTRUCTURE, "server")
    assert executor.run(make_job(executor)).outcome is Outcome.OK


def test_an_executor_can_be_closed_twice_and_started_again(laboratory, make_job):
    executor = laboratory.executor(GOOD)
    for _ in range(2):
        executor.start()
        assert executor.run(make_job(executor)).outcome is Outcome.OK
        executor.close()
        executor.close()


def test_what_is_fed_by_import_has_nothing_to_run(laboratory):
    from msgspec.structs import replace

    from pytest_prereg.measure.executors.local import LocalExecutor

    study, experiment = laboratory.study(GOOD)
    with pytest.raises(MeasureError, match='experiment "lab" has nothing to run here'):
        LocalExecutor(study, replace(experiment, source=None, kind="import"))


PARENT = 'repeat.record("t", float(os.getppid()))'


def test_a_supervisor_takes_the_next_repeat_unless_one_has_not_ended_well(laboratory, make_job):
    body = "if repeat.index == 3: raise SystemExit(1)\n" + PARENT
    executor = laboratory.executor(body)
    executor.start()
    first, second, failed, third = (executor.run(make_job(executor, index=index)) for index in (1, 2, 3, 4))
    assert first.values == second.values
    assert failed.outcome is Outcome.TASK_FAILED
    assert third.values != second.values


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_supervisor_that_is_killed_between_two_repeats_costs_none(laboratory, make_job, wait_until, number):
    executor = laboratory.executor(PARENT)
    executor.start()
    supervisor = int(executor.run(make_job(executor, index=1)).values["t"])
    os.kill(supervisor, number)
    stat = Path(f"/proc/{supervisor}/stat")
    wait_until(lambda: not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z")
    result = executor.run(make_job(executor, index=2))
    assert result.outcome is Outcome.OK
    assert result.values["t"] != supervisor


def test_between_two_repeats_nobody_holds_the_machine(laboratory, make_job):
    executor = laboratory.executor(PARENT)
    executor.start()
    for index in (1, 2):
        executor.run(make_job(executor, index=index))
        locks = DeviceLocks()
        locks.take(claims_of(exclusive=True, gpus=(), environ={}))
        assert locks.waited == 0.0
        locks.release()
