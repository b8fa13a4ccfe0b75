"""A body that has seen a value it dislikes: no way to end its supervisor, and so to have another go, unseen.

Attempts with what a body can reach of its report and its processes, and honest twins.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.executors import scratch, wire
from pytest_prereg.measure.executors.messages import Began, Report, flaw_of
from pytest_prereg.measure.repeat import Readings

GOOD = "repeat.record('t', 0.5)"
PIPE = """
def send(data):
    for number in range(3, 64):
        try:
            if 'pipe:' in os.readlink(f'/proc/self/fd/{number}'):
                os.write(number, data)
        except OSError:
            pass

def message(text):
    return len(text).to_bytes(8, 'big') + text.encode()

def report(values='{"t": 0.1}', **parts):
    told = {'values': values, 'problems': '[]', **parts}
    inner = ', '.join(f'"{name}": {each}' for name, each in told.items())
    return message('{"type": "report", "ended": "returned", "at": 1.0, "readings": {%s}}' % inner)
"""


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ("b'garbage, and more of it'", "bytes, where 268435456 are the most"),
        ("message('no JSON')", "JSON is malformed"),
        ("message('{\"type\": \"report\"}')", "missing required field"),
        ("report(diagnostics='{\"a\": ' + '[' * 10**6 + ']' * 10**6 + '}')", "while deserializing an object"),
        ("report('{\"t\": null}')", "got `null`"),
        ("report('{\"t\": 1e999}')", "out of range"),
        ("report('{\"t\": []}')", "a value without a number"),
        ("report('{\"t\": 1, \"other\": 2}')", "a value of 'other', which is not declared"),
        ("report('{}')", 'no value of "t", and no word of it'),
        ("report(instruments='{\"t\": 5}')", "Expected `str`, got `int`"),
        ("report(samples='{\"t\": 1' + '0' * 5000 + '}')", "$.readings.samples"),
        ("report(diagnostics='{\"\\\\udc80\": 1}')", "surrogate"),
    ],
    ids=lambda text: text[:40],
)  # fmt: skip
def test_a_report_that_cannot_be_read_is_the_bodys_own_failure(laboratory, sent, said):
    result = laboratory.run(f"{GOOD}\nsend({sent})\ntime.sleep(20)", top=PIPE)
    assert (result.outcome, result.cause) == (Outcome.TASK_FAILED, "report"), result
    assert said in result.error
    assert result.values == {}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("d = 1\nfor _ in range(5000): d = {'a': d}\nrepeat.record('deep', d)", "deep"),
        ("sys.setrecursionlimit(10**6)\nd = 1\nfor _ in range(2000): d = [d]\nrepeat.record('deep', d)", "deep"),
        ("repeat.record('big', 'x' * (5 << 20))", "big"),
        ("repeat.record('odd', {1: float('nan'), 'n': 10**40})", "odd"),
        ("repeat.record('\\udc80', '\\ud800')", "\\udc80"),
        ("with repeat.timer('\\ud800'): pass", "\\ud800"),
        ("with repeat.timer('x' * 10**6): pass", "x" * 99 + "…"),
    ],
    ids=["deep", "deeper than others read", "long", "no JSON", "half characters", "timed half", "long name"],
)  # fmt: skip
def test_what_it_notes_beside_its_metrics_costs_it_nothing(laboratory, body, told):
    result = laboratory.run(f"{GOOD}\n{body}")
    assert (result.outcome, result.values) == (Outcome.OK, {"t": 0.5}), result
    assert told in result.diagnostics
    assert len(wire.encode(result)) < 100_000


def test_half_a_character_in_its_reasons_is_spelled_out(laboratory):
    result = laboratory.run(f"{GOOD}; repeat.invalidate('\\udc80 is off')")
    assert (result.outcome, result.cause) == (Outcome.INVALID, "\\udc80 is off")


def test_an_instrument_that_is_none_is_an_error_of_the_bodys(laboratory):
    result = laboratory.run(f"{GOOD}; repeat.instrument(5).record('note', 1)")
    assert (result.outcome, result.cause) == (Outcome.TASK_FAILED, "exception")
    assert result.error.endswith("TypeError: an instrument has a text for its name, not 5")


def test_readings_that_are_thrown_away_make_the_repeat_invalid(laboratory):
    body = """
for attempt in range(3):
    try:
        with repeat.timer('t'):
            if attempt < 2: raise TimeoutError
    except TimeoutError: pass
"""
    result = laboratory.run(body)
    assert result.outcome is Outcome.INVALID
    assert result.cause.startswith('metric "t": 2 readings were begun and thrown away')
    assert result.diagnostics["discarded"] == {"t": 2}


@pytest.mark.parametrize("sent", ["report('{\"t\": 0.1}')", "b'x' * 30"])
def test_what_comes_after_the_report_changes_nothing(laboratory, sent):
    top = PIPE + f"late = lambda: send({sent})"
    body = f"{GOOD}\nend = os._exit\nos._exit = lambda status: (late(), end(status))"
    assert laboratory.run(body, top=top).values == {"t": 0.5}


def test_a_body_that_never_stops_sending_meets_its_deadline(laboratory):
    endless = 'began = message(\'{"type": "began", "at": 1.0}\') * 1000\nwhile True: send(began)'
    result = laboratory.run(endless, top=PIPE, timeout=0.5)
    assert (result.outcome, result.cause) == (Outcome.TIMEOUT, "deadline")


@pytest.mark.parametrize("number", ["signal.SIGRTMIN + 3", "signal.SIGRTMAX"])
def test_a_signal_without_a_name_is_one_like_others(laboratory, number):
    result = laboratory.run(f"{GOOD}\nos.kill(os.getpid(), {number})")
    assert (result.outcome, result.cause) == (Outcome.TASK_FAILED, "signal")


def test_folders_nested_deeper_than_python_recurses_go_with_the_rest(laboratory):
    body = f"""
for _ in range(3000):
    os.mkdir('nested', dir_fd=here) if (here := globals().get('at')) else os.mkdir(repeat.workdir / 'nested')
    globals()['at'] = os.open('nested', os.O_RDONLY, dir_fd=here) if here else os.open(repeat.workdir / 'nested', 0)
    here and os.close(here)
repeat.record('seen', str(repeat.workdir))
{GOOD}
"""
    result = laboratory.run(body)
    assert result.outcome is Outcome.OK, result
    assert not Path(result.diagnostics["seen"]).exists()


def test_a_pipe_in_place_of_its_output_keeps_nobody_waiting(laboratory):
    result = laboratory.run(
        "out = os.readlink('/proc/self/fd/1')\nos.unlink(out)\nos.mkfifo(out)\nos._exit(3)"
    )
    assert (result.outcome, result.cause) == (Outcome.TASK_FAILED, "exit")


@pytest.mark.parametrize(
    ("victim", "cause"),
    [("os.getppid()", "supervisor"), ("int(open(f'/proc/{os.getppid()}/stat').read().split()[3])", "server")],
)
@pytest.mark.parametrize("number", ["SIGKILL", "SIGTERM"])
def test_who_kills_its_keepers_is_run_again_which_is_written_down_with_the_time_it_took(
    laboratory, victim, number, cause
):
    result = laboratory.run(f"{GOOD}\ntime.sleep(0.2)\nos.kill({victim}, signal.{number})\ntime.sleep(20)")
    assert (result.outcome, result.cause) == (Outcome.INFRASTRUCTURE, cause), result
    assert result.seconds["total"] >= 0.2
    assert result.values == {}


def test_an_honest_report_has_no_flaw():
    metrics = ("t", "k")
    for readings in (
        Readings(values={"t": 1.0, "k": [1.0]}),
        Readings(values={"t": 1.0}, missing=['metric "k" was not recorded']),
        Readings(problems=["the clock jumped"]),
    ):
        assert flaw_of(Report(ended="returned", at=0.0, readings=readings), metrics) is None
    assert flaw_of(Report(ended="exception", at=0.0, readings=Readings(), error="no"), metrics) is None


def test_a_message_between_the_tools_own_processes_may_be_of_any_length():
    frames, limited = wire.Frames(), wire.Frames(most=10)
    for each in (frames, limited):
        each.feed(wire.encode(Began(at=1.0)))
    assert frames.next() is not None
    with pytest.raises(wire.GarbledError, match="where 10 are the most"):
        limited.next()


def test_a_folder_that_may_not_be_emptied_is_left(tmp_path):
    outside = tmp_path / "outside"
    (outside / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to(outside)
    scratch.remove_tree(tmp_path / "link")
    scratch.remove_tree(tmp_path / "none")
    assert (outside / "a" / "b").is_dir()
