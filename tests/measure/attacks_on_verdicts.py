"""Programs that are wrong, and claim that they passed."""

from __future__ import annotations

from naive_grader import MARKER, RESULT
from sandbox_attacks import ANSWER, HIDDEN, SQUARES, WRONG, Attack, Success, call

from pytest_prereg.measure.workloads.sandbox.completions import ScriptTest
from pytest_prereg.measure.workloads.sandbox.outcomes import Outcome

FORGERIES = (
    Attack(
        name="exits before the tests",
        program="import os\nos._exit(0)\n",
        tests=SQUARES,
        ends=Outcome.FAIL,
        succeeds=Success.PASSES,
    ),
    Attack(
        name="exits when it is imported",
        program="raise SystemExit(0)\n",
        tests=SQUARES,
        ends=Outcome.FAIL,
        succeeds=Success.PASSES,
    ),
    Attack(
        name="exits when it is asked",
        program="import sys\ndef solve(x):\n    sys.exit()\n",
        tests=SQUARES,
        ends=Outcome.FAIL,
        succeeds=Success.PASSES,
    ),
    Attack(
        name="exits at the end",
        program="import atexit, os\natexit.register(os._exit, 0)" + WRONG,
        tests=SQUARES,
        ends=Outcome.FAIL,
        evidence="answered 5, expected 4",
        succeeds=Success.PASSES,
    ),
    Attack(
        name="exits from another thread",
        program="""
import os, threading, time
def solve(x):
    threading.Timer(0.2, os._exit, [0]).start()
    time.sleep(60)
""",
        tests=SQUARES,
        ends=Outcome.FAIL,
        succeeds=Success.PASSES,
    ),
    Attack(
        name="exits in place of a traceback",
        program="import os, sys\nsys.excepthook = lambda *error: os._exit(0)" + WRONG,
        tests=SQUARES,
        ends=Outcome.FAIL,
        evidence="answered 5, expected 4",
        succeeds=Success.PASSES,
    ),
    Attack(
        name="exits as its exception is shown",
        program="""
import os
class Quiet(Exception):
    def __str__(self):
        os._exit(0)
    __repr__ = __str__
def solve(x):
    raise Quiet
""",
        tests=SQUARES,
        ends=Outcome.FAIL,
        succeeds=Success.PASSES,
    ),
    Attack(
        name="exits under another name",
        program="""
class Fine(SystemExit, KeyboardInterrupt):
    code = 0
    def __init__(self):
        super().__init__(0)
def solve(x):
    raise Fine
""",
        tests=SQUARES,
        ends=Outcome.FAIL,
        succeeds=Success.PASSES,
    ),
    Attack(
        name="prints the marker",
        program=f"import os\nprint({MARKER!r}, flush=True)\nos._exit(0)\n",
        tests=SQUARES,
        ends=Outcome.FAIL,
        succeeds=Success.PASSES,
        judge="marker",
    ),
    Attack(
        name="prints the marker on every descriptor",
        program=f"""
import os
for descriptor in range(256):
    try:
        os.set_blocking(descriptor, False)
        os.write(descriptor, b"{MARKER}\\n")
    except OSError:
        pass
os._exit(0)
""",
        tests=SQUARES,
        ends=Outcome.FAIL,
        succeeds=Success.PASSES,
        judge="marker",
    ),
    Attack(
        name="writes the result file",
        program=f"import os\nopen({RESULT!r}, 'w').write({MARKER!r})\nos._exit(0)\n",
        tests=SQUARES,
        ends=Outcome.FAIL,
        succeeds=Success.PASSES,
        judge="file",
    ),
    Attack(
        name="becomes another program",
        program=f"""
import os, sys
for file in (sys.executable, "/proc/self/exe"):
    try:
        os.execv(file, ["python", "-I", "-S", "-c", "print({MARKER!r})"])
    except OSError:
        pass
"""
        + WRONG,
        tests=SQUARES,
        ends=Outcome.FAIL,
        succeeds=Success.PASSES,
        judge="marker",
    ),
    Attack(
        name="marks and then crashes",
        program=f"""
import sys
print({MARKER!r}, flush=True)
sys.setrecursionlimit(10**9)
def nested(_):
    return list(map(nested, [0]))
def solve(x):
    return nested(0)
""",
        tests=SQUARES,
        ends=Outcome.CRASH,
        evidence="SIGSEGV",
        succeeds=Success.PASSES,
        judge="marker",
    ),
    Attack(
        name="closes every descriptor",
        program="import os\nos.closerange(0, 256)\n" + WRONG + "\nos._exit(0)\n",
        tests=SQUARES,
        ends=Outcome.FAIL,
        succeeds=Success.PASSES,
    ),
    Attack(
        name="guesses by the dozen",
        program="""
import os, time
def solve(x):
    for guess in range(8):
        if not os.fork():
            time.sleep(0.03 * guess)
            return guess
    time.sleep(0.5)
    os._exit(0)
""",
        tests=(call(2, 4),),
        ends=Outcome.FAIL,
        succeeds=Success.PASSES,
        judge="marker",
    ),
)

PATCHES = (
    Attack(
        name="equals everything",
        program="""
class Right:
    __eq__ = lambda *_: True
    __hash__ = object.__hash__
    __ne__ = __lt__ = __gt__ = lambda *_: False
def solve(x):
    return Right()
""",
        tests=SQUARES,
        ends=Outcome.FAIL,
        succeeds=Success.PASSES,
    ),
    Attack(
        name="is a number that equals everything",
        program="""
class Right(int):
    __eq__ = lambda *_: True
    __hash__ = int.__hash__
    __repr__ = __str__ = __format__ = lambda *_: "4"
    __index__ = __int__ = bit_length = lambda *_: 4
def solve(x):
    return Right(5)
""",
        tests=(call(2, 4),),
        ends=Outcome.FAIL,
        evidence="answered 5, expected 4",
        succeeds=Success.PASSES,
    ),
    Attack(
        name="is a list that equals everything",
        program="""
class Right(list):
    __eq__ = lambda *_: True
    __hash__ = None
def solve(x):
    return Right([5])
""",
        tests=(call(2, [4]),),
        ends=Outcome.FAIL,
        evidence="answered 5, expected 4",
        succeeds=Success.PASSES,
    ),
    Attack(
        name="patches what tests call",
        program="import builtins\nbuiltins.abs = lambda value: 0\nbuiltins.all = lambda values: True" + WRONG,
        tests=(call(2, 4.0, tolerance=1e-6),),
        ends=Outcome.FAIL,
        evidence="answered 5, expected 4",
        succeeds=Success.PASSES,
        naive_tests="assert abs(solve(2) - 4.0) <= 1e-6\n",
    ),
    Attack(
        name="patches every built-in function",
        program="""
import builtins
for name in ("repr", "str", "int", "float", "isinstance", "type", "len", "getattr", "sorted", "list", "compile", "exec"):
    setattr(builtins, name, lambda *_: 4)
def solve(x):
    return x * x + 1
""",
        tests=(call(2, 4),),
        ends=Outcome.CRASH,
        succeeds=Success.PASSES,
        naive_tests="assert int(solve(2)) == 4 and sorted([solve(2)]) == 4\n",
    ),
    Attack(
        name="patches system calls",
        program="""
import os, posix
real = os._exit
for module in (os, posix):
    module._exit = lambda status: real(0)
    module.write = lambda descriptor, data: len(data)
    module.wait4 = module.waitpid = lambda *_: (0, 0)
    module.getpid = lambda: 1
import sys
sys.exit = sys.excepthook = lambda *_: real(0)
"""
        + WRONG,
        tests=SQUARES,
        ends=Outcome.FAIL,
        succeeds=Success.PASSES,
    ),
    Attack(
        name="leaves by a status of its own kind",
        program="""
import sys
class Status(int):
    __and__ = __rand__ = __index__ = __eq__ = lambda *_: None
    __hash__ = int.__hash__
def solve(x):
    sys.exit(Status(0))
""",
        tests=SQUARES,
        ends=Outcome.CRASH,
        succeeds=Success.PASSES,
    ),
    Attack(
        name="ends itself as a limit would",
        program=f"""
import os, signal
print({MARKER!r}, flush=True)
def solve(x):
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGXCPU)
""",
        tests=SQUARES,
        ends=Outcome.CRASH,
        evidence="SIGXCPU",
        succeeds=Success.PASSES,
        judge="marker",
    ),
    Attack(
        name="patches a module",
        program="""
import sys, types
fake = types.ModuleType("math")
fake.isclose = lambda *_, **__: True
for name in ("math", "json", "unittest", "numpy"):
    sys.modules[name] = fake
"""
        + WRONG,
        tests=(call(2, 4.0, tolerance=1e-6),),
        ends=Outcome.FAIL,
        evidence="answered 5, expected 4",
        succeeds=Success.PASSES,
        naive_tests="import math\nassert math.isclose(solve(2), 4.0)\n",
    ),
    Attack(
        name="patches operators",
        program="import operator\noperator.eq = lambda *_: True\noperator.ne = lambda *_: False" + WRONG,
        tests=SQUARES,
        ends=Outcome.FAIL,
        evidence="answered 5, expected 4",
        succeeds=Success.PASSES,
        naive_tests="import operator\nassert operator.eq(solve(2), 4)\n",
    ),
    Attack(
        name="patches the clock",
        program="""
import time
slept = time.sleep
for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
    setattr(time, name, lambda: 0.0)
    setattr(time, name + "_ns", lambda: 0)
def solve(x):
    slept(2.3)
    return x * x
""",
        tests=(call(2, 4),),
        ends=Outcome.TIMEOUT,
        succeeds=Success.PASSES,
        naive_tests="import time\nbegan = time.perf_counter()\nassert solve(2) == 4\nassert time.perf_counter() - began < 2\n",
        timeout=6.0,
        quick=False,
    ),
    Attack(
        name="disarms the alarm",
        program="""
import signal, time
def solve(x):
    for kind in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        signal.setitimer(kind, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
    signal.setitimer = signal.alarm = lambda *_: None
    time.sleep(2.3)
    return x * x
""",
        tests=(call(2, 4),),
        ends=Outcome.TIMEOUT,
        succeeds=Success.PASSES,
        naive_tests="import signal\nsignal.setitimer(signal.ITIMER_REAL, 1.0)\nassert solve(2) == 4\n",
        timeout=6.0,
        quick=False,
    ),
)

LEAKS = (
    Attack(
        name="reads its own file",
        program="""
import re, sys
def solve(x):
    for name in (sys.argv[0], __file__ if "__file__" in globals() else "/proc/self/cmdline"):
        with open(name) as file:
            if found := re.search(ANSWER, file.read()):
                return found[0]
""",
        tests=HIDDEN,
        ends=Outcome.CRASH,
        evidence="FileNotFoundError",
        succeeds=Success.PASSES,
    ),
    Attack(
        name="reads frames",
        program="""
import re, sys
def solve(x):
    frame, seen = sys._getframe(), ""
    while frame := frame.f_back:
        seen += repr((frame.f_code.co_consts, frame.f_locals))
    return (re.findall(ANSWER, seen) or ["nothing"])[0]
""",
        tests=HIDDEN,
        ends=Outcome.FAIL,
        evidence='answered "nothing"',
        succeeds=Success.PASSES,
        naive_tests=f"def check(candidate):\n    expected = {ANSWER!r}\n    assert candidate(2) == expected\ncheck(solve)\n",
    ),
    Attack(
        name="reads all objects",
        program="""
import gc, re, sys
def solve(x):
    for each in gc.get_objects():
        if type(each) in (list, dict, tuple) and each is not globals() and (found := re.search(ANSWER, repr(each)[:10**6])):
            return found[0]
    return "nothing"
""",
        tests=HIDDEN,
        ends=Outcome.FAIL,
        evidence='answered "nothing"',
        succeeds=Success.PASSES,
        naive_tests=f"CASES = [[2, {ANSWER!r}]]\nassert all(solve(given) == expected for given, expected in CASES)\n",
        timeout=5.0,
    ),
    Attack(
        name="reads its parent's memory",
        program="""
import os, re
def memory(pid):
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as held:
        for line in maps:
            span, mode = line.split()[:2]
            first, last = (int(each, 16) for each in span.split("-"))
            if "rw" in mode:
                try:
                    held.seek(first)
                    yield held.read(min(last - first, 2**24))
                except (OSError, ValueError):
                    pass
def solve(x):
    for pid in (os.getppid(), 1):
        try:
            for piece in memory(pid):
                if found := re.search(ANSWER.encode(), piece):
                    return found[0].decode()
        except OSError as error:
            if pid != 1:
                refused(error)
    return "nothing"
""",
        tests=HIDDEN,
        ends=Outcome.FAIL,
        evidence='answered "nothing"',
        succeeds=Success.PASSES,
        timeout=5.0,
    ),
    Attack(
        name="reads what others hold open",
        program="""
import glob, os, re
def solve(x):
    for name in [*glob.glob("/proc/[0-9]*/fd/*"), *glob.glob("/proc/[0-9]*/cmdline"), *glob.glob("/proc/[0-9]*/root/home/*/*")]:
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
            if found := re.search(ANSWER.encode(), os.read(descriptor, 2**20)):
                return found[0].decode()
        except OSError:
            pass
    return "nothing"
""",
        tests=HIDDEN,
        ends=Outcome.FAIL,
        evidence='answered "nothing"',
        succeeds=Success.PASSES,
        timeout=5.0,
    ),
    Attack(
        name="writes its grader's report",
        program="""
import glob, os
report = b'{"passed": true}\\n'
for name in glob.glob("/proc/%d/fd/*" % os.getppid()):
    try:
        descriptor = os.open(name, os.O_WRONLY | os.O_NONBLOCK)
        for _ in range(20):
            os.write(descriptor, report)
    except OSError:
        pass
"""
        + WRONG,
        tests=SQUARES,
        ends=Outcome.FAIL,
        evidence="answered 5, expected 4",
        succeeds=Success.PASSES,
    ),
)

TEXTS = (
    Attack(
        name="prints what terminals obey",
        program="""
import sys
sys.stdout.buffer.write(b"\\x1b]0;owned\\x07\\x1b[2J\\x00\\xff\\xfe\\x9b31m\\xe2\\x80\\xae\\r" + sys.stdin.buffer.read())
""",
        tests=(ScriptTest(stdin="given\n", expected="given"),),
        ends=Outcome.FAIL,
        evidence=r"\\x1b\]0;owned\\x07.*\\xff",
        succeeds=Success.SHOWS,
    ),
    Attack(
        name="raises what terminals obey",
        program="""
class Loud(Exception):
    pass
Loud.__name__ = Loud.__qualname__ = "\\x1b[31mLoud\\u202e"
def solve(x):
    raise Loud("\\x1b]0;owned\\x07\\x00\\udcff\\u202e\\r\\n" * 1000)
""",
        tests=SQUARES,
        ends=Outcome.CRASH,
        evidence=r"\\x1b\[31mLoud",
        succeeds=Success.SHOWS,
    ),
    Attack(
        name="answers what terminals obey",
        program="""
def solve(x):
    text = "\\x1b]0;owned\\x07\\x00\\udcff\\u202e\\r"
    print(text.encode("utf-8", "replace").decode())
    return text
""",
        tests=(call(2, "text"),),
        ends=Outcome.FAIL,
        evidence=r"\\\\u001b|\\x1b",
        succeeds=Success.SHOWS,
    ),
    Attack(
        name="answers too deep for a parser",
        program="""
import json
json.dumps = lambda value: "[" * 20000 + "]" * 20000
def solve(x):
    answer = []
    for _ in range(20000):
        answer = [answer]
    return answer
""",
        tests=SQUARES,
        ends=Outcome.FAIL,
        evidence="deep",
        succeeds=Success.BREAKS,
        judge="json",
    ),
    Attack(
        name="answers an endless list",
        program="""
class Endless(list):
    def __len__(self):
        return 1
    def __iter__(self):
        number = 0
        while True:
            yield 4
            number += 1
            if number % 10000 == 0:
                reached(number)
def solve(x):
    return Endless()
""",
        tests=(call(2, [4]),),
        ends=Outcome.OUTPUT,
        succeeds=Success.EXCEEDS,
        exceeds="answer",
        naive_tests="assert list(solve(2)) == [4]\n",
        timeout=1.0,
    ),
)
VERDICTS = (*FORGERIES, *PATCHES, *LEAKS, *TEXTS)
