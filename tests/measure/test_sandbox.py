"""Completions in sandboxes: how each can end, on time and with nothing left behind."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
import sandboxes
from hypothesis import given
from hypothesis import strategies as st
from sandboxes import SMALL, calling, completion, graded, needs_namespaces, script

import pytest_prereg
from pytest_prereg.measure.executors import processes
from pytest_prereg.measure.workloads.sandbox import ends, watching
from pytest_prereg.measure.workloads.sandbox.boxes import Box, Recipe
from pytest_prereg.measure.workloads.sandbox.client import Sandbox, SandboxUnavailableError
from pytest_prereg.measure.workloads.sandbox.completions import CallTest, Completion
from pytest_prereg.measure.workloads.sandbox.limits import Limits
from pytest_prereg.measure.workloads.sandbox.messages import End
from pytest_prereg.measure.workloads.sandbox.outcomes import Outcome
from pytest_prereg.measure.workloads.sandbox.reactor import Reactor
from pytest_prereg.measure.workloads.sandbox.weaker import WeakBox

HANGS = "def f():\n    while True: pass"
SLEEPS = "import time\ndef f(): time.sleep(60)"


@pytest.fixture(scope="module", params=["namespaces", "processes"])
def sandbox(request):
    """Both isolations must tell the same of the same program."""
    if request.param == "namespaces" and sandboxes.needs_namespaces.args[0]:
        pytest.skip(sandboxes.needs_namespaces.kwargs["reason"])
    with Sandbox(limits=SMALL, isolation=request.param) as opened:
        yield opened


ENDS = {
    "right": ("def f(): return 5", Outcome.PASS, "answered 5"),
    "wrong": ("def f(): return 4", Outcome.FAIL, "4"),
    "no_answer": ("import os\ndef f(): os._exit(0)", Outcome.FAIL, "ended with status 0 and no answer"),
    "left": ("import sys\ndef f(): sys.exit()", Outcome.FAIL, "ended with status 0 and no answer"),
    "replaced": (
        "import os, sys\ndef f(): os.execv(sys.executable, [sys.executable, '-c', 'print(5)'])",
        Outcome.FAIL,
        "ended with status 0 and no answer",
    ),
    "no_data": ("def f(): return {1, 2}", Outcome.FAIL, "answered a value of type set"),
    "no_number": ("def f(): return [1.0, float('nan')]", Outcome.FAIL, "the number nan"),
    "odd_key": ("def f(): return {1: 2}", Outcome.FAIL, "a key of type int"),
    "cycle": ("def f():\n    x = []\n    x.append(x)\n    return x", Outcome.FAIL, "or a cycle"),
    "exception": (
        "def f():\n    return [][0]",
        Outcome.CRASH,
        "IndexError: list index out of range (line 2)",
    ),
    "no_function": ("def g(): return 5", Outcome.CRASH, "the program defines no 'f'"),
    "no_python": ("def f(: return 5", Outcome.CRASH, "SyntaxError"),
    "null_byte": ("def f(): return 5\n\0", Outcome.CRASH, "null bytes"),
    "status": ("import sys\ndef f(): sys.exit('bad luck')", Outcome.CRASH, "status 1 bad luck"),
    "killed_itself": ("import os\ndef f(): os.kill(os.getpid(), 9)", Outcome.CRASH, "SIGKILL"),
    "aborted": ("import os\ndef f(): os.abort()", Outcome.CRASH, "SIGABRT"),
    "too_deep": ("def f(): return f()", Outcome.CRASH, "RecursionError"),
    "memory": ("def f(): return len(bytearray(2**30))", Outcome.MEMORY, "MemoryError"),
    "memory_of_a_mapping": (
        "import mmap\ndef f(): mmap.mmap(-1, 2**30, mmap.MAP_PRIVATE)",
        Outcome.MEMORY,
        "OSError: [Errno 12]",
    ),
    "output": (
        "def f():\n    while True: print('x' * 1000)",
        Outcome.OUTPUT,
        "more than 10000 bytes of output",
    ),
    "errors": (
        "import sys\ndef f():\n    while True: print('x' * 1000, file=sys.stderr)",
        Outcome.OUTPUT,
        "more than 10000 bytes of output",
    ),
    "long_answer": ("def f(): return 'x' * 20_000", Outcome.OUTPUT, "longer than an answer may be"),
    "long_list": ("def f(): return [0] * 10**7", Outcome.OUTPUT, "longer than an answer may be"),
    "forged_answer": (
        "import os\ndef f():\n    while True: os.write(4, b'A' * 1000)",
        Outcome.OUTPUT,
        "an answer of more than 10000 bytes",
    ),
    "large_file": ("def f(): open('x', 'wb').write(bytes(2**22))", Outcome.OUTPUT, "File too large"),
}


@pytest.mark.parametrize("name", ENDS)
def test_each_way_to_end_has_its_outcome_and_evidence(sandbox, name):
    program, outcome, evidence = ENDS[name]
    result = graded(sandbox, program, expected=5)
    assert result.outcome is outcome, result
    assert evidence in result.tests[0].evidence


@pytest.mark.parametrize("program", [HANGS, SLEEPS], ids=["busy", "asleep"])
def test_what_does_not_end_is_ended_at_the_deadline(program):
    with Sandbox(limits=Limits(deadline=0.5), isolation="auto") as opened:
        result = graded(opened, program)
    assert result.outcome is Outcome.TIMEOUT
    assert result.seconds >= 0.5
    assert "no end after 0.5" in result.tests[0].evidence


def test_processor_time_that_is_used_up_is_a_timeout_even_if_the_signal_is_ignored():
    ignoring = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\n" + HANGS
    with Sandbox(limits=Limits(cpu=0.5, deadline=20.0), workers=2, isolation="auto") as opened:
        results = opened.grade([calling(HANGS), calling(ignoring)])
    for result in results:
        assert result.outcome is Outcome.TIMEOUT
        assert "s of processor time, where 1 s are the most" in result.tests[0].evidence


def test_tests_after_a_crash_go_on_in_a_fresh_process(sandbox):
    program = """
        calls = []
        def f(x):
            calls.append(x)
            if x == 2:
                raise ValueError("two")
            return calls
    """
    tests = [CallTest(function="f", args=[x], expected=[x]) for x in (1, 2, 3, 4)]
    (result,) = sandbox.grade([completion(program, *tests)])
    assert [test.outcome for test in result.tests] == [
        Outcome.PASS,
        Outcome.CRASH,
        Outcome.PASS,
        Outcome.PASS,
    ]
    assert result.outcome is Outcome.CRASH
    assert result.credit == 0.75


def test_tests_after_the_deadline_count_as_timed_out_and_those_before_it_as_they_ended():
    with Sandbox(limits=Limits(deadline=1.0), isolation="auto") as opened:
        tests = [CallTest(function="f", args=[x], expected=x) for x in (1, 2, 3)]
        program = "import time\ndef f(x):\n    time.sleep(60 if x == 2 else 0)\n    return x"
        (result,) = opened.grade([completion(program, *tests)])
    assert [test.outcome for test in result.tests] == [Outcome.PASS, Outcome.TIMEOUT, Outcome.TIMEOUT]
    assert result.credit == pytest.approx(1 / 3)


def test_a_script_is_judged_by_what_it_prints(sandbox):
    adds = "import sys\nprint(sum(map(int, sys.stdin)))\nif __name__ == '__main__':\n    print('main')\n    exit()"
    long = "".join(f"{number}\n" for number in range(100_000))
    results = sandbox.grade(
        [
            script(adds, stdin="1\n2\n", expected="3\nmain"),
            script(adds, stdin=long, expected=f"{sum(range(100_000))}\nmain\n"),
            script("print(1)", stdin=long, expected="1"),
            script("import sys\nprint(1)\nsys.exit(3)", expected="1"),
            script("import atexit\natexit.register(print, 2)\nprint(1)", expected="1\n2"),
            script("import threading\nthreading.Timer(0.1, print, (2,)).start()\nprint(1)", expected="1\n2"),
            script("print(input())", expected=""),
        ]
    )
    assert [result.outcome for result in results] == [Outcome.PASS] * 3 + [
        Outcome.CRASH,
        Outcome.PASS,
        Outcome.PASS,
        Outcome.CRASH,
    ]
    assert "status 3" in results[3].tests[0].evidence
    assert "EOFError" in results[6].tests[0].evidence


def test_answers_are_data_of_any_kind_that_json_has(sandbox):
    value = [None, True, 1, -(10**30), 1.5, 'a"\\\n\0é\U0001f600', [], {}, {"k": [1, {"l": 2}]}]
    assert graded(sandbox, "def f(x): return x", value, expected=value).outcome is Outcome.PASS
    derived = """
        import collections, enum
        class Text(str):
            def __str__(self): return "other"
        class Number(int):
            def __repr__(self): return "0"
            def __eq__(self, other): return True
        class Colour(enum.IntEnum):
            RED = 1
        def f():
            return [Text("text"), Number(7), Colour.RED, collections.OrderedDict(a=1), (1, 2)]
    """
    assert graded(sandbox, derived, expected=["text", 7, 1, {"a": 1}, [1, 2]]).outcome is Outcome.PASS


def test_a_fork_that_comes_back_from_the_function_answers_nothing(sandbox):
    program = """
        import os
        def f():
            child = os.fork()
            if not child:
                return "child"
            os.waitpid(child, 0)
            return "parent"
    """
    assert graded(sandbox, program, expected="parent").outcome is Outcome.PASS


def test_what_one_test_leaves_behind_is_gone_before_the_next(sandbox):
    program = """
        import os, sys, time
        def f(first):
            if first and not os.fork():
                os.setsid()
                if os.fork():
                    os._exit(0)
                time.sleep(0.2)
                while True:
                    print("from the first test", flush=True)
            time.sleep(0.5 * (not first))
            return True
    """
    tests = [CallTest(function="f", args=[first], expected=True) for first in (True, False)]
    (result,) = sandbox.grade([completion(program, *tests)])
    assert result.outcome is Outcome.PASS, result
    assert sandbox.alive() == 0


def test_a_program_gets_no_expected_answer(monkeypatch):
    sent = []
    with Sandbox(limits=SMALL, isolation="auto") as opened:
        send = opened._socket.sendall
        monkeypatch.setattr(
            Sandbox, "_send", lambda _self, message: (sent.append(repr(message)), send(_encoded(message)))
        )
        result = graded(opened, "def f(): return 'given'", expected="wanted-by-the-test")
    assert result.outcome is Outcome.FAIL
    assert "given" in "".join(sent)
    assert "wanted-by-the-test" not in "".join(sent)


def _encoded(message):
    from pytest_prereg.measure.workloads.sandbox import messages

    return messages.encode(message)


@needs_namespaces
def test_64_programs_that_hang_at_once_all_end_at_their_deadline():
    with Sandbox(limits=Limits(deadline=0.5, memory=64 * 2**20), workers=64) as opened:
        results = opened.grade([calling(SLEEPS)] * 64)
        assert opened.alive() == 0
    assert {result.outcome for result in results} == {Outcome.TIMEOUT}
    assert max(result.seconds for result in results) < 10.0


@needs_namespaces
def test_no_more_than_so_many_run_at_a_time():
    program = "import time\ndef f():\n    time.sleep(0.2)\n    return True"
    with Sandbox(limits=SMALL, workers=2) as opened:
        began = time.monotonic()
        results = opened.grade([calling(program)] * 6)
        assert time.monotonic() - began >= 0.6
    assert {result.outcome for result in results} == {Outcome.PASS}
    assert max(result.waited for result in results) >= 0.4


@needs_namespaces
def test_warm_sandboxes_are_ready_before_they_are_wanted():
    with Sandbox(limits=SMALL, warm=3) as opened:
        sandboxes.wait_for(lambda: len(opened.creations()) == 3)
        made = opened.creations()
        submitted = time.monotonic()
        result = graded(opened, "def f(): return True")
        assert result.outcome is Outcome.PASS
        assert all(began < ready < submitted for began, ready in made)
        assert result.creation in [pytest.approx(ready - began) for began, ready in made]
        sandboxes.wait_for(lambda: len(opened.creations()) == 4)
        sandboxes.wait_for(lambda: len(sandboxes.inits_of(opened)) == 3)


@needs_namespaces
def test_without_warm_ones_a_sandbox_is_made_when_there_is_a_completion_for_it():
    with Sandbox(limits=SMALL) as opened:
        before = len(opened.creations())
        assert opened.alive() == 0
        result = graded(opened, "def f(): return True")
        assert len(opened.creations()) == before + 1
    assert result.waited >= result.creation > 0
    assert result.peak_memory > 0
    assert result.isolation == "namespaces"


def test_any_number_of_threads_may_submit(sandbox):
    found: dict[int, list[Outcome]] = {}

    def work(number: int) -> None:
        results = sandbox.grade([calling("def f(x): return x * x", x, expected=x * x) for x in range(4)])
        found[number] = [result.outcome for result in results]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [Outcome.PASS] * 4 for number in range(4)}


CLIENT = """
import sys, time
sys.path.insert(0, {folder!r})
import sandboxes
from pytest_prereg.measure.workloads.sandbox.client import Sandbox
from pytest_prereg.measure.workloads.sandbox.limits import Limits
if __name__ == "__main__":
    with Sandbox(limits=Limits(deadline=60.0), workers=3, warm=1) as opened:
        for _ in range(5):
            opened.submit(sandboxes.calling({program!r}))
        sandboxes.wait_for(lambda: len(sandboxes.inits_of(opened)) == 4)
        time.sleep(0.2)
        print(*sandboxes.members_of(opened), flush=True)
        time.sleep(60)
"""


@needs_namespaces
def test_nothing_outlives_a_client_that_is_killed(tmp_path):
    path = tmp_path / "client.py"
    path.write_text(CLIENT.format(folder=str(Path(__file__).parent), program=SLEEPS))
    with subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, text=True) as client:
        pids = [int(word) for word in client.stdout.readline().split()]
        client.kill()
    assert len(pids) >= 1 + 4 * 2 + 3
    assert sandboxes.wait_until_gone(pids, 5.0) == []


@needs_namespaces
def test_nothing_outlives_a_supervisor_that_is_killed_and_there_is_no_verdict():
    with Sandbox(limits=Limits(deadline=60.0), workers=3, warm=1) as opened:
        futures = [opened.submit(calling(SLEEPS)) for _ in range(5)]
        sandboxes.wait_for(lambda: len(sandboxes.inits_of(opened)) == 4)
        pids = sandboxes.members_of(opened)
        sandboxes.kill(sandboxes.supervisor_of(opened))
        results = [future.result(timeout=10) for future in futures]
        assert sandboxes.wait_until_gone(pids, 5.0) == []
        results.append(graded(opened, "def f(): return True"))
    for result in results:
        assert result.outcome is Outcome.INFRASTRUCTURE
        assert "the supervisor of the sandboxes ended (status -9)" in result.evidence
        with pytest.raises(ValueError, match="no verdict"):
            _ = result.credit


@needs_namespaces
@pytest.mark.parametrize("which", ["init", "bubblewrap"])
def test_a_sandbox_that_something_outside_ended_has_no_verdict(which):
    with Sandbox(limits=Limits(deadline=60.0)) as opened:
        tests = [CallTest(function="f", args=[x], expected=x) for x in (0, 60)]
        future = opened.submit(completion("import time\ndef f(x):\n    time.sleep(x)\n    return x", *tests))
        sandboxes.wait_for(lambda: len(sandboxes.members_of(opened)) >= 4)
        time.sleep(0.3)
        (init,) = sandboxes.inits_of(opened)
        victim = init if which == "init" else int(sandboxes.status_of(init)["PPid"])
        sandboxes.kill(victim)
        result = future.result(timeout=10)
        assert opened.alive() == 0
        assert graded(opened, "def f(): return True").outcome is Outcome.PASS
    assert result.outcome is Outcome.INFRASTRUCTURE
    assert {test.outcome for test in result.tests} == {Outcome.INFRASTRUCTURE}
    assert "ended from outside" in result.evidence


def _descriptors(pid: int) -> int:
    return len([*Path(f"/proc/{pid}/fd").iterdir()])


def _traces() -> dict[str, object]:
    return {
        "mounts": Path("/proc/self/mountinfo").read_text(),
        "files": {str(path) for path in Path(tempfile.gettempdir()).glob("prereg-sandbox*")},
        "descriptors": _descriptors(os.getpid()),
        "threads": threading.active_count(),
    }


@pytest.mark.parametrize("isolation", ["namespaces", "processes"])
def test_nothing_is_left_after_a_batch(isolation):
    if isolation == "namespaces" and sandboxes.needs_namespaces.args[0]:
        pytest.skip(sandboxes.needs_namespaces.kwargs["reason"])
    leaves = """
        import os, time
        def f():
            for _ in range(3):
                if not os.fork():
                    os.setsid()
                    if os.fork():
                        os._exit(0)
                    open(f"file{os.getpid()}", "w").write("x")
                    time.sleep(60)
            return True
    """
    before = _traces()
    with Sandbox(limits=SMALL, workers=3, warm=2, isolation=isolation) as opened:
        graded(opened, leaves)
        descriptors = _descriptors(sandboxes.supervisor_of(opened))
        results = opened.grade(
            [calling(program) for program in [leaves, HANGS.replace("True", "0"), leaves] * 8]
        )
        pids = sandboxes.members_of(opened)
        sandboxes.wait_for(lambda: _descriptors(pids[0]) <= descriptors + 10)
    assert {result.outcome for result in results} == {Outcome.PASS, Outcome.FAIL}
    assert sandboxes.wait_until_gone(pids, 0.0) == []
    assert _traces() == before


def test_what_can_not_be_is_refused_all_at_once():
    with pytest.raises(
        ValueError, match=r"workers = 0.*warm = -1.*isolation = .docker.*packages holds 'nowhere'"
    ):
        Sandbox(workers=0, warm=-1, isolation="docker", packages=[Path("nowhere")])
    with pytest.raises(ValueError, match="workers = 1000"):
        Sandbox(workers=1000)


def test_completions_that_can_not_be_graded_are_refused_before_any_is_run():
    with Sandbox(limits=SMALL, isolation="auto") as opened:
        before = len(opened.creations())
        with pytest.raises(ValueError, match=r"completion 2: tests is empty.*completion 3: .*not json"):
            opened.grade(
                [
                    calling("def f(): return True"),
                    Completion(program="", tests=()),
                    calling("", "x", function="not json"),
                ]
            )
        assert len(opened.creations()) == before


def test_without_bubblewrap_it_says_so_and_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        SandboxUnavailableError, match=r"install it, or write isolation = .processes., which is weaker"
    ):
        Sandbox(limits=SMALL).__enter__()
    with Sandbox(limits=SMALL, isolation="auto") as opened:
        assert opened.isolation == "processes"
        assert opened.missing[0].startswith("no namespaces: bubblewrap (bwrap) is not installed")
        assert graded(opened, "def f(): return True").isolation == "processes"


def test_bubblewrap_s_own_words_are_told_when_it_fails(monkeypatch, tmp_path):
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    tmp_path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailableError, match="No permissions to create new namespace; allow user"):
        Sandbox(limits=SMALL).__enter__()


def test_the_weaker_mode_says_what_is_weaker():
    with Sandbox(limits=SMALL, isolation="processes") as opened:
        assert any(sentence.startswith("no namespaces") for sentence in opened.missing)
        assert graded(opened, "def f(): return True").isolation == "processes"


CONTAINER_S_ROOT = """
import ctypes, sys
sys.path.insert(0, {folder!r})
import msgspec, sandboxes
from pathlib import Path
from pytest_prereg.measure.workloads.sandbox.client import Sandbox
for capability in {dropped}:
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP: for what is started from here on
hung = sandboxes.calling("import os, time\\nif os.fork() == 0: os.setsid(); time.sleep(99)\\ndef f():\\n while 1: 0")
brief = msgspec.structs.replace(sandboxes.SMALL, deadline=0.5)
with Sandbox(limits=brief, isolation={isolation!r}, packages=[Path({packages!r})]) as opened:
    found = opened.grade([sandboxes.calling("import theirs\\ndef f(): return True"), hung])
    print(*(each.outcome.value for each in found), opened.alive(), *opened.missing, sep="\\n")
"""


@sandboxes.needs_root
@pytest.mark.parametrize(
    "dropped", [[21], [*range(41)]], ids=["may mount nothing", "may do nothing that others may not"]
)
def test_a_root_who_can_t_show_python_to_others_runs_programs_itself_and_says_so(tmp_path, dropped):
    """In most containers Python lies below /root, and root may not mount."""
    done, packages = as_a_container_s_root(tmp_path, dropped, "processes")
    assert done.returncode == 0, done.stderr
    passed, hung, left, *missing = done.stdout.splitlines()
    assert (passed, hung, left) == ("pass", "timeout", "0")
    assert any(sentence.startswith("no namespaces: programs run as root,") for sentence in missing)
    if dropped == [21]:
        assert any("only root can enter" in sentence and str(packages) in sentence for sentence in missing)


@sandboxes.needs_root
def test_a_root_who_leaves_the_choice_does_not_run_programs_itself(tmp_path):
    done, _ = as_a_container_s_root(tmp_path, [21], "auto", PATH="/nowhere")
    assert done.returncode == 1
    assert "SandboxUnavailableError" in done.stderr
    assert "only root can enter" in done.stderr


def as_a_container_s_root(
    tmp_path: Path, dropped: list[int], isolation: str, **environment: str
) -> tuple[subprocess.CompletedProcess[str], Path]:
    packages = tmp_path / "closed" / "packages"
    packages.mkdir(parents=True)
    packages.parent.chmod(0o700)
    packages.joinpath("theirs.py").touch()
    source = CONTAINER_S_ROOT.format(
        folder=str(Path(__file__).parent), dropped=dropped, packages=str(packages), isolation=isolation
    )
    command = [sys.executable, "-c", source]
    environ = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    return done, packages


FEWER_LIMITS = """
import ctypes, errno, sys
sys.path.insert(0, {folder!r})
import sandboxes
from pytest_prereg.measure.workloads.sandbox import seccomp
from pytest_prereg.measure.workloads.sandbox.client import Sandbox
library = ctypes.CDLL("libseccomp.so.2")
library.seccomp_init.restype = ctypes.c_void_p
context = ctypes.c_void_p(library.seccomp_init(seccomp._ALLOW))
message_queues, anything = seccomp._is(1, 12), seccomp._Comparison(2, seccomp._NE, 0, 0)
seccomp._refuse(library, context, "prlimit64", errno.EPERM, message_queues, anything)
assert library.seccomp_load(context) == 0
with Sandbox(limits=sandboxes.SMALL, isolation="processes") as opened:
    (found,) = opened.grade([sandboxes.calling("def f(): return True")])
    print(found.outcome.value, *opened.missing, sep="\\n")
"""


def test_a_kernel_that_has_fewer_limits_runs_programs_and_says_so():
    """As gVisor, under which containers of Modal run: it refuses to set some."""
    source = FEWER_LIMITS.format(folder=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    outcome, *missing = done.stdout.splitlines()
    assert outcome == "pass"
    assert "this kernel sets no limit on message queues, core dumps or locked memory" in missing


def test_whose_child_a_process_is_is_known_without_the_kernel_s_files_of_it(monkeypatch):
    started = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        told = sorted(watching.children(os.getpid()))
        monkeypatch.setattr(watching, "tells_children", lambda: False)
        assert started.pid in told
        assert sorted(watching.children(os.getpid())) == told
        assert watching.children(started.pid) == []
    finally:
        started.communicate()


@pytest.mark.parametrize(
    "program",
    [
        "\ufeffprint(1)",
        "import sys\nprint(1)\nsys.stdout.close()",
        "import sys\nprint(1, flush=True)\nsys.stdout = None",
    ],
    ids=["begins with a mark", "closes its output", "drops its output"],
)
def test_what_an_interpreter_takes_of_a_script_is_taken_here(sandbox, program):
    (result,) = sandbox.grade([script(program, expected="1")])
    assert result.outcome is Outcome.PASS, result


UNDER_LIMITS = """
import resource, sys
sys.path.insert(0, {folder!r})
import sandboxes
from pytest_prereg.measure.workloads.sandbox.client import Sandbox, SandboxUnavailableError
resource.setrlimit(resource.RLIMIT_NOFILE, {files!r})
try:
    with Sandbox(limits=sandboxes.SMALL, workers=12, isolation="auto") as opened:
        graded = opened.grade([sandboxes.calling("import time\\ndef f(): return not time.sleep(1)")] * 12)
    print(*{{each.outcome.value for each in graded}})
except SandboxUnavailableError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ((64, 1000), "pass"),
        ((64, 80), "workers and warm: so many need 160 open files, and this process may have 80 itself"),
        ((50, 50), "open_files: 64 are wanted, and this process may have 50 itself"),
    ],
)
def test_open_files_of_the_supervisor_are_enough_or_it_says_so(files, expected):
    source = UNDER_LIMITS.format(folder=str(Path(__file__).parent), files=files)
    told = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert expected in told.stdout


def test_a_fork_of_the_client_neither_ends_the_sandboxes_nor_waits_for_them():
    with Sandbox(limits=SMALL, isolation="auto") as opened:
        child = processes.fork()
        if not child:
            try:
                opened.submit(calling("def f(): return True"))
            except RuntimeError:
                opened.__exit__()
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert graded(opened, "def f(): return True").outcome is Outcome.PASS


def test_a_sandbox_that_was_not_entered_gives_no_verdict():
    result = Sandbox().submit(calling("def f(): return True")).result(timeout=1)
    assert result.outcome is Outcome.INFRASTRUCTURE
    assert "not entered" in result.evidence


def test_a_sandbox_can_be_entered_again():
    reused = Sandbox(limits=SMALL, isolation="auto")
    for _ in range(2):
        with reused as opened:
            assert graded(opened, "def f(): return True").outcome is Outcome.PASS


@given(line=st.binary(max_size=12) | st.from_regex(rb"[0-9]{1,5} [0-9]{1,9}", fullmatch=True))
def test_whatever_a_driver_that_was_taken_over_says_is_a_status_or_nothing(line):
    status = ends.status_of(line)
    if status is not None:
        seen = ends.Seen(*status, output=b"", errors=b"", answer=b"A5")
        end, text = ends.ended(seen, is_call=True, limits=SMALL)
        assert (end, text) == (End.ANSWER, b"5") if status[0] == 0 else end is not End.ANSWER


@pytest.mark.parametrize("kind", [Box, WeakBox])
def test_nothing_is_left_of_a_sandbox_that_could_not_be_started(monkeypatch, tmp_path, kind):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = os.memfd_create("code", os.MFD_CLOEXEC)
    recipe = Recipe(
        command=["/no/such/program"],
        environment={},
        code=code,
        filter=None,
        setting={},
        limits=SMALL,
        contained=kind is Box,
    )
    before = sorted(path.name for path in Path("/proc/self/fd").iterdir())
    with pytest.raises(FileNotFoundError):
        kind(recipe, None, Reactor(), None)
    gc.collect()  # of the reactor
    assert sorted(path.name for path in Path("/proc/self/fd").iterdir()) == before
    assert list(tmp_path.iterdir()) == []
    os.close(code)


@needs_namespaces
def test_a_sandbox_that_was_left_says_so_and_can_be_entered_again() -> None:
    sandbox = Sandbox(limits=SMALL)
    with sandbox:
        pass
    [late] = sandbox.grade([calling("def f(): return True")])
    assert late.outcome is Outcome.INFRASTRUCTURE
    assert "was left before" in late.evidence
    with sandbox:
        assert sandbox.grade([calling("def f(): return True")])[0].outcome is Outcome.PASS


def test_the_supervisor_is_of_the_copy_that_the_client_is_of(tmp_path: Path) -> None:
    package = Path(pytest_prereg.__file__).parent
    shutil.copytree(package, tmp_path / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    supervisor = tmp_path / package.name / "measure/workloads/sandbox/supervisor.py"
    supervisor.write_text("def main(_): raise SystemExit('I am the copy')")
    code = "from pytest_prereg.measure.workloads.sandbox.client import Sandbox\nSandbox().__enter__()"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "I am the copy" in done.stderr
