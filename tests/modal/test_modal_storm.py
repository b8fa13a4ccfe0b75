"""How long repeats take side by side on Modal, and what is left of a run that is killed or stopped at any moment.

``PREREG_STORM=full`` has repeats of five seconds, kills ten times and stops at twelve moments.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest
from modal_desk import HERE_OR_THERE, STUDY, StormDesk, slot_of, unwritten

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from standin_handle import Service

FULL = os.environ.get("PREREG_STORM") == "full"
SECONDS_TO_STOP = 5.0
EACH = 7 if FULL else 3
"""Repeats of each of two arms."""
STARTS = 2.0
"""How late a run may be to be struck as it starts."""


def sized(text: str) -> str:
    return text.replace("repeats = 7", f"repeats = {EACH}")


def most_at_once(desk: StormDesk) -> int:
    changes = sorted((each.at, 1 if each.what == "began" else -1) for each in desk.said())
    running, most = 0, 0
    for _, change in changes:
        running += change
        most = max(most, running)
    return most


def test_fourteen_repeats_seven_at_a_time_take_little_more_than_two(service: Service, tmp_path: Path):
    seconds = 5.0 if FULL else 1.0
    desk = StormDesk(service, tmp_path, sized(STUDY))
    desk.pace(seconds)
    began = time.time()
    desk.run()
    took = time.time() - began
    said = sorted(desk.said(), key=lambda each: each.at)
    start, end = said[0].at - began, began + took - said[-1].at
    print(
        f"{2 * EACH} repeats of {seconds:g} s, 7 at a time: {took:.1f} s; {start:.1f} s before the first, {end:.1f} s after all"
    )
    assert desk.begun() == dict.fromkeys(desk.begun(), 1)
    assert len(desk.begun()) == 2 * EACH
    assert 1 < most_at_once(desk) <= 7
    if FULL:  # two waves, on a machine whose cores have nothing else to do
        assert took - start - end <= 2.5 * seconds


# kill -9


def before_anything(service: Service, desk: StormDesk) -> None:
    time.sleep(random.uniform(0.2, STARTS))


def until_one_is_in_between(service: Service, desk: StormDesk) -> None:
    """The service has a repeat, and has not yet said under which call."""
    until_sending_takes(service, desk, linger=60.0)
    time.sleep(random.uniform(0, 1))  # its container starts, or its body has begun


def until_one_is_on_its_way(service: Service, desk: StormDesk) -> None:
    """What is sent off has not reached the service, and never will."""
    until_sending_takes(service, desk, delay=60.0)


def until_sending_takes(service: Service, desk: StormDesk, **seconds: float) -> None:
    """One of the session's first repeats is sent off, and takes so long: nothing else is written meanwhile."""
    looks, written = len(looked(service)), [{}]
    service.wait_for(lambda: len(looked(service)) > looks)
    service.fail("FunctionMap", status="OK", **seconds)

    def is_sending() -> bool:
        before, written[:] = [*written], desk.lines()[-1:]
        time.sleep(0.7)  # more than what is sent off four times a second
        return written == before and written[0]["type"] == "started"

    service.wait_for(is_sending)


def looked(service: Service) -> list[dict[str, Any]]:
    """The containers that have looked whether repeats could run, one a session."""
    calls = {each["call"] for each in service.events("call", function="look")}
    return [each for each in service.events("output") if each["call"] in calls]


def while_it_waits(service: Service, desk: StormDesk) -> None:
    launched = len(desk.of("launched"))
    service.wait_for(lambda: len(desk.of("launched")) > launched, 30)
    time.sleep(random.uniform(0, 0.4))


def while_a_result_is_written(service: Service, desk: StormDesk) -> None:
    finished = len(desk.of("finished"))
    service.wait_for(lambda: len(desk.of("finished")) > finished, 30)
    time.sleep(random.uniform(0, 0.02))


MOMENTS = (
    before_anything,
    until_one_is_in_between,
    while_it_waits,
    until_one_is_on_its_way,
    while_a_result_is_written,
)
KILLS = 10 if FULL else 1


def test_kill_9_at_any_moment_loses_no_repeat_and_runs_none_twice(service: Service, tmp_path: Path):
    desk = StormDesk(service, tmp_path, sized(STUDY))
    desk.pace(1.5 if FULL else 0.5)
    moments = [MOMENTS[number % len(MOMENTS)] for number in range(1, KILLS + 1)]
    struck = 0
    for moment in moments:
        process = desk.begin()
        strike(moment, service, desk)
        struck += process.poll() is None
        process.kill()
        process.communicate()
    desk.pace(0.0)
    output = desk.run("--prereg-json=records.json")
    begun, left = desk.begun(), unwritten(desk.lines())
    record = desk.records(desk.folder / "records.json")
    print(
        f"{struck} kills: {begun.total()} bodies of {2 * EACH} repeats, {left.total()} sent off by who could not write their call, "
        f"{sum(line.get('attached', False) for line in desk.lines())} taken up; {record['verdict']} ({record['reason']})"
    )
    slots = {f"{arm}/{index}" for arm in ("fast", "slow") for index in range(1, EACH + 1)}
    assert begun == dict.fromkeys(slots, 1)
    assert sorted(slot_of(line["repeat"]) for line in desk.of("finished")) == sorted(slots)
    assert {line["attempt"] for line in desk.of("started")} == {1}
    assert record["n"] == EACH
    assert "a session was killed as it sent off" not in output
    assert record["verdict"] == "supported", output
    service.wait_for(lambda: service.state()["containers"] == {})


def strike(moment: Callable[[Service, StormDesk], None], service: Service, desk: StormDesk) -> None:
    """Waits for the moment, unless all is over before it."""
    try:
        moment(service, desk)
    except AssertionError as error:
        if desk.begun().total() < 2 * EACH:
            raise AssertionError(desk.begun(), desk.lines()[-9:]) from error


# Ctrl-C and SIGTERM


def to_pytest(process: subprocess.Popen[str], number: int) -> None:
    process.send_signal(number)


def to_the_group(process: subprocess.Popen[str], number: int) -> None:
    os.killpg(process.pid, number)


STOPS = [(to, number) for number in (signal.SIGINT, signal.SIGTERM) for to in (to_pytest, to_the_group)]


@pytest.mark.parametrize("nth", range(12 if FULL else 2))
def test_a_run_that_is_stopped_at_any_moment_leaves_nothing_running_there(
    service: Service, tmp_path: Path, nth: int
):
    desk = StormDesk(service, tmp_path, sized(STUDY))
    desk.pace(30.0)
    to, number = STOPS[nth % 4] if FULL else STOPS[(1, 2)[nth]]
    process = desk.begin()
    moment = random.uniform(0.7, 5.0)  # from pytest's start to all seven at their bodies
    time.sleep(moment)
    to(process, number)
    struck = time.monotonic()
    output = process.communicate(timeout=30)[0]
    ended = time.monotonic() - struck
    time.sleep(max(0.0, SECONDS_TO_STOP - ended))
    begun, left = len(service.events("container_started")), service.state()["containers"]
    print(
        f"{to.__name__} {signal.Signals(number).name} after {moment:.2f} s: {begun} containers, ended after {ended:.2f} s"
    )
    assert left == {}, output
    assert ended < SECONDS_TO_STOP
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert "Traceback" not in output


def test_what_follows_from_a_seed_is_the_same_here_and_there(service: Service, tmp_path: Path):
    ways = {"local": "here.json", "modal": "there.json"}
    desk = StormDesk(service, tmp_path, sized(HERE_OR_THERE))
    records = {}
    for way, name in ways.items():
        desk.run(f"--prereg-json={tmp_path / name}", executor=way)
        records[way] = desk.records(tmp_path / name)
        shutil.rmtree(desk.folder / "experiments" / "evidence")
    here, there = ({**records[way], "cost_usd": None, "sessions": None} for way in ways)
    assert here == there
    assert there["interval"]
