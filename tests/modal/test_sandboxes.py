"""How programs end in sandboxes on Modal: as they do in this machine's, and whatever they claim."""

from __future__ import annotations

import marshal
import os
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from modal_sandboxes import RIGHT, SLEEPS, SMALL, asking, nothing_is_left, opened
from msgspec.structs import replace

from pytest_prereg.measure.workloads.sandbox.completions import Completion, ScriptTest
from pytest_prereg.measure.workloads.sandbox.messages import End
from pytest_prereg.measure.workloads.sandbox.modal import boxes, frames
from pytest_prereg.measure.workloads.sandbox.outcomes import Outcome

if TYPE_CHECKING:
    from standin_handle import Service

ENDS = {
    "right": (RIGHT, Outcome.PASS, "answered 5"),
    "wrong": ("def f(): return 4", Outcome.FAIL, "answered 4, expected 5"),
    "no_answer": ("import os\ndef f(): os._exit(0)", Outcome.FAIL, "ended with status 0 and no answer"),
    "left": ("import sys\ndef f(): sys.exit()", Outcome.FAIL, "ended with status 0 and no answer"),
    "no_data": ("def f(): return {1, 2}", Outcome.FAIL, "answered a value of type set"),
    "exception": (
        "def f():\n    return [][0]",
        Outcome.CRASH,
        "IndexError: list index out of range (line 2)",
    ),
    "no_python": ("def f(: return 5", Outcome.CRASH, "SyntaxError"),
    "status": ("import sys\ndef f(): sys.exit('bad luck')", Outcome.CRASH, "status 1 bad luck"),
    "killed_itself": ("import os\ndef f(): os.kill(os.getpid(), 9)", Outcome.CRASH, "SIGKILL"),
    "timed_out_by_itself": ("import sys\ndef f(): sys.exit(124)", Outcome.CRASH, "status 124"),
    "killed_as_modal_kills": ("import os\ndef f(): os._exit(137)", Outcome.CRASH, "status 137"),
    "memory": ("def f(): return len(bytearray(2**30))", Outcome.MEMORY, "MemoryError"),
    "output": (
        "def f():\n    while True: print('x' * 1000)",
        Outcome.OUTPUT,
        "more than 10000 bytes of output",
    ),
    "errors": (
        "import os\ndef f():\n    while True: os.write(2, bytes(1000))",
        Outcome.OUTPUT,
        "more than 10000 bytes of output",
    ),
    "long_answer": ("def f(): return 'x' * 20_000", Outcome.OUTPUT, "longer than an answer may be"),
    "flooded_answer": (
        "import os\ndef f():\n    while True: os.write(4, b'A' * 1000)",
        Outcome.OUTPUT,
        "an answer of more than 10000 bytes",
    ),
    "large_file": ("def f(): open('x', 'wb').write(bytes(2**21))", Outcome.OUTPUT, "File too large"),
}

FORGERIES = {
    "frames in every pipe": """
        import os
        def f():
            said = b'T0 0 0 0 0 2\\nA5'
            for number in range(256):
                try:
                    os.write(number, len(said).to_bytes(4, 'big') + said)
                except OSError:
                    pass
            return 4
        """,
    "frames in place of what holds it": """
        import os
        def f():
            said = b'T0 0 0 0 0 2\\nA5'
            for pid in os.listdir('/proc'):
                try:
                    with open(f'/proc/{pid}/fd/1', 'wb', 0) as pipe:
                        pipe.write(len(said).to_bytes(4, 'big') + said)
                except OSError:
                    pass
            return 4
        """,
    "an end of what holds it": "import os\ndef f():\n    os.kill(os.getppid(), 9)\n    return 4",
    "an end of all": "import os\ndef f():\n    os.kill(-1, 9)\n    return 4",
    "a stop of what holds it": "import os\ndef f():\n    os.kill(os.getppid(), 19)\n    return 4",
    "an answer behind its own": "import os\ndef f():\n    os.write(4, b'A5')\n    return 4",
    "an equal of all": "class Any(int):\n    def __eq__(self, other): return True\ndef f(): return Any(4)",
    "another driver": "import sys\ndef f():\n    sys.modules.clear()\n    return 4",
}
"""None of them knows that 5 is expected; those that say so have guessed."""

separated = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes other users")


@pytest.fixture(autouse=True)
def _interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "PYTHON", sys.executable)


def test_each_way_to_end_has_its_outcome_and_evidence(service: Service):
    with opened() as sandbox:
        found = sandbox.grade([asking(program) for program, _, _ in ENDS.values()])
    for name, result in zip(ENDS, found, strict=True):
        _, outcome, evidence = ENDS[name]
        assert (result.outcome, result.isolation) == (outcome, "modal"), (name, result)
        assert evidence in result.tests[0].evidence, (name, result)
    assert nothing_is_left(service)


def test_each_completion_has_a_sandbox_of_its_own_and_each_test_a_fresh_process(service: Service):
    counts = (
        "import os\nrun = []\ndef f():\n    run.append(1)\n    open('x', 'a').close()\n    return len(run)"
    )
    with opened() as sandbox:
        first, *_ = found = sandbox.grade([asking(counts, 1, tests=3) for _ in range(4)])
    assert [result.outcome for result in found] == [Outcome.PASS] * 4
    assert first.credit == 1
    assert len(service.events("sandbox_started")) == 5  # one to see whether any can be made
    assert all(count == 1 for count in executions(service).values())
    assert len(sandbox.creations()) == 5
    assert (sandbox.left, service.state()["missing"]) == (0, {})


def executions(service: Service) -> dict[str, int]:
    boxes_of = [event["sandbox"] for event in service.events("executed")]
    return {box: boxes_of.count(box) for box in boxes_of}


def test_a_sandbox_has_no_network_no_token_and_an_end_of_its_own(service: Service):
    tells = "import os\ndef f(): return sorted(os.environ)"
    with opened() as sandbox:
        (result,) = sandbox.grade([asking(tells, ["LANG", "PATH"])])
    assert result.outcome is Outcome.PASS, result
    for started in service.events("sandbox_started"):
        assert started["offline"]
        assert started["seconds"] == boxes.lifetime(SMALL) == 310


@pytest.mark.parametrize("how", ["asleep", "busy", "forking"])
def test_what_does_not_end_is_ended_at_the_deadline_by_the_clock_here(service: Service, how: str):
    programs = {
        "asleep": SLEEPS,
        "busy": "import _signal\ndef f():\n    _signal.signal(15, lambda *_: None)\n    while True: pass",
        "forking": "import os, time\ndef f():\n    for _ in range(3): os.fork()\n    time.sleep(60)",
    }
    with opened(limits=replace(SMALL, deadline=0.7)) as sandbox:
        (result,) = sandbox.grade([asking(programs[how], tests=2)])
    assert result.outcome is Outcome.TIMEOUT
    assert result.tests[1].outcome is Outcome.TIMEOUT
    assert "no end after 0.7" in result.evidence
    assert 0.7 <= result.seconds < 3
    assert nothing_is_left(service)


@separated
def test_memory_and_processes_are_limited_in_sum(service: Service):
    programs = [
        """
        import os, time
        def f():
            if not (os.fork() and os.fork()):
                held = b'x' * (60 * 2**20)
            time.sleep(60)
        """,
        "import os, time\ndef f():\n    for _ in range(20): os.fork() or time.sleep(60)\n    time.sleep(60)",
    ]
    with opened(limits=replace(SMALL, cpu=20.0)) as sandbox:
        memory, processes = sandbox.grade([asking(program) for program in programs])
    assert memory.outcome is Outcome.MEMORY, memory
    assert processes.outcome is Outcome.CRASH, processes


def test_what_a_script_prints_is_its_answer(service: Service):
    test = ScriptTest(stdin="21\n" * 50_000, expected="42")
    program = (
        "lines = 0\nwhile True:\n    try: line = input()\n    except EOFError: break\nprint(int(line) * 2)"
    )
    with opened() as sandbox:
        (result,) = sandbox.grade([Completion(program=program, tests=(test, test))])
    assert result.outcome is Outcome.PASS, result


@separated
def test_no_program_speaks_in_place_of_its_answer(service: Service):
    with opened(workers=4, limits=replace(SMALL, deadline=4.0)) as sandbox:
        assert sandbox.missing
        found = sandbox.grade([asking(program, 5, tests=2) for program in FORGERIES.values()])
    for name, result in zip(FORGERIES, found, strict=True):
        assert result.outcome in {Outcome.FAIL, Outcome.CRASH}, (name, result)
        assert result.credit == 0


LIMITS = replace(SMALL, output=64, answer=64)


@given(st.lists(st.binary(max_size=300)), st.booleans())
def test_no_bytes_from_inside_are_taken_for_a_fault_of_the_service(pieces: list[bytes], is_call: bool):  # noqa: FBT001
    """There is no verdict then, and a program could do for itself what it can't do for the service."""
    stream = frames.Stream(LIMITS)
    try:
        for piece in pieces:
            for frame in stream.feed(piece):
                assert frames.told(frame, is_call=is_call, limits=LIMITS).end is not End.LOST
    except frames.GarbledError:
        return
    assert len(stream.rest()) <= frames.MOST_SHOWN


@given(st.binary(max_size=40), st.integers(0, 70), st.sampled_from(sorted("TKRX?")))
def test_a_frame_is_taken_for_what_it_says_or_not_at_all(body: bytes, size: int, kind: str):
    text = b"0 5 100 %d 0 0\n" % size + body
    try:
        told = frames.told(kind.encode() + text, is_call=False, limits=LIMITS)
    except frames.GarbledError:
        assert kind != "T" or size != len(body)
    else:
        assert (kind, size, told.text, told.peak) == ("T", len(body), body, 100)


def test_a_frame_that_never_ends_is_no_frame():
    with pytest.raises(frames.GarbledError):
        list(frames.Stream(LIMITS).feed(b"\x7f\xff\xff\xff" + b"T"))


OF_ONE_USER = {
    "an end of what holds it": (
        "import os\ndef f():\n    os.kill(os.getppid(), 9)\n    return 5",
        Outcome.CRASH,
    ),
    "frames in place of what holds it": (
        """
        import os
        def f():
            said = b'T0 0 0 0 0 2\\nA4'
            for number in os.listdir(f'/proc/{os.getppid()}/fd'):
                try:
                    with open(f'/proc/{os.getppid()}/fd/{number}', 'wb', 0) as pipe:
                        pipe.write(len(said).to_bytes(4, 'big') + said)
                except OSError:
                    pass
            return 5
        """,
        Outcome.FAIL,
    ),
    "right": (RIGHT, Outcome.PASS),
}


def test_programs_that_are_not_kept_apart_earn_no_more_and_that_is_told(
    service: Service, monkeypatch: pytest.MonkeyPatch
):
    """As in an image whose user is not root."""
    driver, inside = marshal.loads(boxes._sources())
    inside = inside.replace("if posix.geteuid():", "if True:")
    monkeypatch.setattr(boxes, "_sources", lambda: marshal.dumps([driver, inside]))
    with opened() as sandbox:
        assert "programs run as the same user" in sandbox.missing[-1]
        found = sandbox.grade([asking(program, tests=2) for program, _ in OF_ONE_USER.values()])
    for (name, (_, outcome)), result in zip(OF_ONE_USER.items(), found, strict=True):
        assert result.outcome is outcome, (name, result)
    assert nothing_is_left(service)
