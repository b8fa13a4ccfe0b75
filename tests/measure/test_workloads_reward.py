"""Completions run as programs: outcomes, deadlines, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pytest_prereg.measure.workloads.reward import (
    Outcome,
    ProgramLostError,
    marked_processes,
    new_mark,
    run_programs,
)

SPIN = "while True: pass"
ESCAPED_CHILD = """\
import os, time
if os.fork() == 0:
    os.setsid()
    open({path!r}, "w").write(str(os.getpid()))
    os.replace({path!r}, {ready!r})
    time.sleep(60)
"""


def outcomes(*programs: str, deadline: float = 10.0, parallel: int = 4) -> list[Outcome]:
    return run_programs(programs, deadline=deadline, parallel=parallel)


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for(path: Path) -> str:
    end = time.monotonic() + 10
    while not path.exists():
        assert time.monotonic() < end, f"{path} never appeared"
        time.sleep(0.01)
    return path.read_text()


def test_outcomes_come_in_the_programs_order_whatever_ends_first():
    slow = "import time; time.sleep(0.3)"
    assert outcomes(slow, "assert False", "pass", "raise SystemExit(3)") == [
        Outcome.PASSED,
        Outcome.FAILED,
        Outcome.PASSED,
        Outcome.FAILED,
    ]


@pytest.mark.parametrize(
    "program",
    [
        "def (",
        "import os; os.kill(os.getpid(), 11)",
        "import os; os.abort()",
        "import os; os._exit(1)",
        "1 / 0",
        "sys.exit(0)",
    ],
    ids=["syntax-error", "segmentation-fault", "abort", "exit", "exception", "name-that-was-not-imported"],
)
def test_a_program_that_ends_badly_has_failed_not_timed_out(program):
    assert outcomes(program) == [Outcome.FAILED]


def end_it(mark: str, number: int) -> None:
    """End the only program of a batch once it is there, as the kernel does when memory is short."""
    end = time.monotonic() + 10
    while not (found := marked_processes(mark)):
        assert time.monotonic() < end
    os.kill(found[0], number)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_program_that_something_else_ended_has_no_outcome(number):
    mark = new_mark()
    other = threading.Thread(target=end_it, args=(mark, number))
    other.start()
    with pytest.raises(ProgramLostError, match=f"signal {int(number)}|ended before the program began"):
        run_programs([SPIN], deadline=10, parallel=1, mark=mark)
    other.join()


def test_a_program_that_used_up_its_processor_time_has_timed_out():
    itself = "import os, signal; os.kill(os.getpid(), signal.SIGXCPU)"
    assert outcomes(itself) == [Outcome.TIMED_OUT]


def test_the_kernel_ends_a_program_whose_own_keeper_was_killed():
    limited = "import resource\nwhile resource.getrlimit(resource.RLIMIT_CPU) != (4, 5): pass"
    assert outcomes(limited, deadline=2.5) == [Outcome.PASSED]


def test_a_program_that_spins_does_not_outlive_for_long_whoever_was_to_end_it(tmp_path):
    mark, spins = new_mark(), str(tmp_path / "spins")
    program = f"open({spins!r}, 'w')\n{SPIN}"
    keeper = f"""\
import os
from {run_programs.__module__.rpartition(".")[0]} import reward
def die(*_):
    while not os.path.exists({spins!r}): pass
    os.kill(os.getpid(), 9)
reward._ends_within = die
reward.run_programs([{program!r}], deadline=0, parallel=1, mark={mark!r})
"""
    assert subprocess.run([sys.executable, "-c", keeper], check=False).returncode == -9
    assert marked_processes(mark)
    give_up = time.monotonic() + 30
    while marked_processes(mark):
        assert time.monotonic() < give_up
        time.sleep(0.05)


@pytest.mark.parametrize("interpreter", ["/bin/false", "/nonexistent/python"])
def test_an_interpreter_that_does_not_start_is_no_failure_of_the_program(monkeypatch, interpreter):
    monkeypatch.setattr(sys, "executable", interpreter)
    with pytest.raises(OSError, match=r"ended before the program began, with status 1|No such file"):
        outcomes("pass")


@pytest.mark.parametrize("deadline", [3e6, 1e308])
def test_a_deadline_may_be_as_far_away_as_one_likes(deadline):
    assert outcomes("pass", deadline=deadline) == [Outcome.PASSED]


def test_a_program_that_never_ends_is_cut_off_at_its_deadline():
    start = time.perf_counter()
    assert outcomes(SPIN, "pass", deadline=1.0) == [Outcome.TIMED_OUT, Outcome.PASSED]
    assert 1.0 <= time.perf_counter() - start < 4.0


def test_the_deadline_of_each_program_counts_from_its_own_start():
    assert outcomes(SPIN, SPIN, "pass", deadline=0.5, parallel=1)[-1] is Outcome.PASSED


def test_a_program_that_floods_its_output_does_not_block_on_it():
    assert outcomes("print('x' * 10_000_000)") == [Outcome.PASSED]


def test_a_program_does_not_see_our_environment(monkeypatch):
    monkeypatch.setenv("SECRET", "1")
    assert outcomes("import os; assert 'SECRET' not in os.environ") == [Outcome.PASSED]


@pytest.mark.parametrize("ending", ["pass", SPIN], ids=["ends", "hangs"])
def test_a_grandchild_in_a_session_of_its_own_does_not_survive_its_batch(tmp_path, ending):
    ready = tmp_path / "ready"
    start = ESCAPED_CHILD.format(path=str(tmp_path / "path"), ready=str(ready))
    wait = f"import os, time\nwhile not os.path.exists({str(ready)!r}): time.sleep(0.01)\n"
    mark = new_mark()
    run_programs([start + wait + ending], deadline=1.0, parallel=1, mark=mark)
    assert not is_alive(int(wait_for(ready)))
    assert marked_processes(mark) == []


def test_marked_processes_sees_a_living_grandchild(tmp_path):
    """Otherwise a count of no survivors would say nothing."""
    mark = new_mark()
    pid = os.posix_spawn("/bin/sleep", ["sleep", "60"], {"PYTEST_PREREG_REWARD": mark}, setsid=True)
    try:
        end = time.monotonic() + 10
        while pid not in marked_processes(mark):
            assert time.monotonic() < end
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    assert marked_processes(mark) == []


def test_batches_do_not_kill_each_others_processes():
    mark = new_mark()
    pid = os.posix_spawn("/bin/sleep", ["sleep", "60"], {"PYTEST_PREREG_REWARD": mark}, setsid=True)
    try:
        outcomes("pass")
        assert is_alive(pid)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
