"""What is bought stays, and nothing runs on, however a run is cut short: the experiment itself is the witness.

``PREREG_STORM=full`` kills ten times instead of three.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from real_study import RealStudy, complaints, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KILLS = 10 if os.environ.get("PREREG_STORM") == "full" else 3
SECONDS_TO_STOP = 2.0
REPEATS = 14

STUDY = """\
[study]
id = "storm"

[experiments.work]
fixture = "work"
repeats = 7
[experiments.work.arms]
slow = { weight = 3 }
fast = { weight = 1 }

[predictions.slow-is-slower]
claim = "Slow takes at least twice as long as fast."
experiment = "work"
contrast = "slow / fast"
quantity = "t"
predicts = ">= 2"
falsifier = "< 1"
"""

WORK = """\
import os
import time

from pytest_prereg import Repeat, experiment

WITNESS = os.open(os.environ["WITNESS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
time.sleep(float(os.environ.get("IMPORT_SECONDS", "0")))


@experiment(metrics={"t": "s"})
def work(repeat: Repeat, *, weight: int) -> None:
    os.write(WITNESS, f"began {repeat.arm} {repeat.index}\\n".encode())
    time.sleep(float(os.environ.get("WORK_SECONDS", "0.25")))
    repeat.record("t", weight + repeat.index / 100)
    os.write(WITNESS, f"ended {repeat.arm} {repeat.index}\\n".encode())
"""


@pytest.fixture(scope="module")
def registered(tmp_path_factory: pytest.TempPathFactory) -> RealStudy:
    made = RealStudy(tmp_path_factory.mktemp("registered") / "study")
    made.write("predictions.toml", STUDY)
    made.write("experiments/work.py", WORK)
    made.register()
    return made


@pytest.fixture
def study(registered: RealStudy, tmp_path: Path) -> Iterator[RealStudy]:
    copied = registered.copy(tmp_path / "study")
    yield copied
    for pid in copied.processes():
        os.kill(pid, signal.SIGKILL)


def finishes(study: RealStudy) -> str:
    """Runs to the end without haste, and returns the output."""
    status, output = study.run("--prereg-json=records.json", WORK_SECONDS="0.01")
    assert status == 0, output
    assert not list(complaints(output))
    return output


def record(study: RealStudy) -> dict[str, object]:
    (only,) = json.loads((study.path / "records.json").read_text())["predictions"]
    return only


# kill -9


class Storm:
    """One study that is killed again and again, with what has to hold after every kill."""

    def __init__(self, study: RealStudy) -> None:
        self.study = study
        self.kept: dict[str, bytes] = {}
        self.unwritten = 0
        """Repeats that ended without a finished line, so far."""
        self.seconds: list[float] = []
        """From each kill until nothing ran any more."""

    def strike(self, process: subprocess.Popen[str]) -> None:
        """Kills at a random moment: one in four while pytest starts, else in the first or second repeat."""
        if random.random() < 0.25:
            time.sleep(random.uniform(0.0, 0.9))
        else:
            began = len(self.study.seen("began")) + random.randrange(2)
            wait_until(lambda: len(self.study.seen("began")) > began, what="a repeat")
            time.sleep(random.uniform(0.0, 0.28))
        assert process.poll() is None, "over before it was killed"
        process.kill()
        process.communicate()
        self.seconds.append(wait_until(lambda: not self.study.processes(), what="all to die"))

    def check(self) -> None:
        """Nothing kept has changed, nothing kept was bought again, and the kill cost one repeat at most."""
        now = self.study.files("work")
        assert {name: now.get(name) for name in self.kept} == self.kept
        self.kept = now
        unwritten = len(self.study.seen("ended")) - self.study.slots("work", "finished").total()
        assert unwritten - self.unwritten in {0, 1}
        self.unwritten = unwritten


def begun_after_they_finished(study: RealStudy, finished: set[object], began: int) -> set[object]:
    """Slots that were settled and ran all the same, after the first ``began`` beginnings."""
    return finished & set(study.seen("began")[began:])


def test_kill_9_at_random_moments_loses_at_most_the_repeat_in_flight(study):
    storm = Storm(study)
    for _ in range(KILLS):
        finished, began = set(study.slots("work", "finished")), len(study.seen("began"))
        storm.strike(study.start())
        storm.check()
        assert not begun_after_they_finished(study, finished, began)
    kept = study.slots("work", "finished").total()
    output = finishes(study)
    finished = study.slots("work", "finished")
    lost = study.slots("work", "started").total() - finished.total()
    print(
        f"{KILLS} kills: {kept} of {REPEATS} repeats kept, {lost} lost, {storm.unwritten} of them after their body "
        f"had ended; nothing ran {max(storm.seconds):.3f} s after a kill at the latest"
    )

    assert max(storm.seconds) < SECONDS_TO_STOP
    assert {name: study.files("work")[name] for name in storm.kept} == storm.kept
    assert len(finished) == REPEATS
    assert set(finished.values()) == {1}
    assert len(study.seen("ended")) == REPEATS + storm.unwritten
    assert study.slots("work", "started") >= type(finished)(study.seen("began"))
    assert f"{REPEATS} repeats kept" in output
    expected = ("inconclusive", "infrastructure") if lost > 2 else ("supported", None)
    assert (record(study)["verdict"], record(study)["reason"]) == expected
    assert not [path for folder in study.left_over() for path in folder.iterdir()]


def test_a_session_that_was_killed_before_its_first_line_is_no_obstacle(study):
    folder = study.path / "experiments" / "evidence" / "work"
    folder.mkdir(parents=True)
    (folder / "20200101T000000Z-00000000.jsonl").write_bytes(b"")
    (folder / "20200101T000001Z-00000000.jsonl").write_bytes(b'{"type":"header","version":1,"study":"st')

    finishes(study)

    assert record(study)["verdict"] == "supported"


def test_kill_9_while_the_experiment_is_imported_leaves_nothing(study):
    process = study.start(IMPORT_SECONDS="60")
    wait_until(study.witness.exists, what="the import")
    process.kill()
    process.communicate()

    assert wait_until(lambda: not study.processes(), what="all to die") < SECONDS_TO_STOP
    assert study.left_over() == []


# Ctrl-C and SIGTERM


def interrupt_one(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)


def interrupt_group(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGINT)


def terminate(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)


def ends(process: subprocess.Popen[str], study: RealStudy, stop: Callable[..., None]) -> tuple[str, float]:
    """Stops a run; returns what it printed, and how long anything but pytest itself ran on."""
    stop(process)
    seconds = wait_until(lambda: set(study.processes()) <= {process.pid}, what="all to stop")
    output, _ = process.communicate(timeout=30)
    print(f"stopped within {seconds:.3f} s")
    return output, seconds


@pytest.mark.parametrize("stop", [interrupt_one, interrupt_group, terminate])
def test_an_interrupted_run_stops_at_once_and_says_what_is_kept_and_how_to_go_on(study, stop):
    process = study.start()
    wait_until(lambda: study.slots("work", "finished").total() >= 2, what="two repeats")
    time.sleep(random.uniform(0, 0.25))
    output, seconds = ends(process, study, stop)
    *_, last = study.lines("work")
    kept = study.slots("work", "finished").total()

    assert process.returncode == pytest.ExitCode.INTERRUPTED
    assert seconds < SECONDS_TO_STOP
    assert study.processes() == []
    assert (last["type"], last["ended"]) == ("footer", "interrupted")
    assert f"evidence: 1 file, {kept} repeats kept" in output
    assert "resume:  pytest --prereg   (what is kept is not run again)" in output
    assert not list(complaints(output))
    assert study.left_over() == []


def test_an_interrupted_run_goes_on_where_it_stopped(study):
    process = study.start()
    wait_until(lambda: study.slots("work", "finished").total() >= 2, what="two repeats")
    ends(process, study, terminate)
    kept = study.slots("work", "finished")
    output = finishes(study)

    assert f"work: measuring {REPEATS - kept.total()} of {REPEATS} repeats" in output
    assert study.slots("work", "finished").total() == REPEATS
    assert record(study)["verdict"] == "supported"
    assert record(study)["sessions"] == list(study.files("work"))


def test_an_interrupted_replication_is_resumed_by_the_command_that_is_named(study):
    finishes(study)
    process = study.start("--prereg-fresh")
    wait_until(lambda: study.slots("work", "finished").total() >= REPEATS + 2, what="two more repeats")
    output, _ = ends(process, study, terminate)
    kept = study.slots("work", "finished").total() - REPEATS

    (named,) = (line for line in output.splitlines() if line.startswith("resume:"))
    assert named.split("   ")[0] == "resume:  pytest --prereg --prereg-fresh"
    status, resumed = study.run("--prereg-fresh", WORK_SECONDS="0.01")
    assert status == 0
    assert f"work: measuring {REPEATS - kept} of {REPEATS} repeats" in resumed


def test_an_exploratory_series_that_was_cut_short_is_not_gone_on_with_once_all_is_registered(tmp_path):
    study = RealStudy(tmp_path / "study")
    study.write("predictions.toml", STUDY)
    study.write("experiments/work.py", WORK)
    study.register()
    subprocess.run(["git", "rm", "-q", "--cached", "predictions.lock"], cwd=study.path, check=True)
    subprocess.run(["git", "commit", "-qm", "Nothing is registered"], cwd=study.path, check=True)
    process = study.start("--prereg-explore")
    wait_until(lambda: study.slots("work", "finished").total() >= 2, what="two repeats")
    ends(process, study, terminate)
    subprocess.run(["git", "add", "predictions.lock"], cwd=study.path, check=True)
    subprocess.run(["git", "commit", "-qm", "Register"], cwd=study.path, check=True)

    output = finishes(study)

    assert f"work: measuring {REPEATS} of {REPEATS} repeats" in output
    assert (record(study)["series"], record(study)["standing"]) == (2, "confirmatory")
    assert "abandoned series" in record(study)["flags"]


@pytest.mark.parametrize("stop", [interrupt_group, terminate])
def test_an_interruption_while_the_experiment_is_imported_leaves_nothing(study, stop):
    process = study.start(IMPORT_SECONDS="60")
    wait_until(study.witness.exists, what="the import")
    output, seconds = ends(process, study, stop)

    assert process.returncode == pytest.ExitCode.INTERRUPTED
    assert seconds < SECONDS_TO_STOP
    assert "resume:  pytest --prereg" in output
    assert study.files("work") == {}
    assert not list(complaints(output))
    assert study.left_over() == []


def test_an_impatient_second_interrupt_costs_no_evidence(study):
    def stop(process: subprocess.Popen[str]) -> None:
        for _ in range(3):
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(random.uniform(0, 0.02))

    process = study.start()
    wait_until(lambda: study.slots("work", "finished").total() >= 2, what="two repeats")
    _, seconds = ends(process, study, stop)
    kept = study.slots("work", "finished")
    finishes(study)

    assert seconds < SECONDS_TO_STOP
    assert process.returncode in {pytest.ExitCode.INTERRUPTED, -signal.SIGINT}
    assert study.slots("work", "finished") >= kept
    assert study.slots("work", "finished").total() == REPEATS


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT])
def test_a_terminal_that_goes_away_takes_everything_with_it(study, number):
    process = study.start()
    wait_until(lambda: study.slots("work", "finished").total() >= 1, what="a repeat")
    _, seconds = ends(process, study, lambda process: os.killpg(process.pid, number))

    assert process.returncode == -number
    assert seconds < SECONDS_TO_STOP


def test_ctrl_c_on_a_terminal_ends_it_the_same_way(study):
    master, slave = os.openpty()
    process = study.start(terminal=slave)
    os.close(slave)
    screen = Screen(master)
    wait_until(lambda: study.slots("work", "finished").total() >= 2, what="two repeats")
    os.write(master, b"\x03")
    seconds = wait_until(lambda: not study.processes(), what="all to stop")
    text = screen.close()

    assert process.wait(10) == pytest.ExitCode.INTERRUPTED
    assert seconds < SECONDS_TO_STOP + 1  # pytest's own end included
    assert "\r\x1b[Kwork  block 1 of 7  " in text
    assert f"evidence: 1 file, {study.slots('work', 'finished').total()} repeats kept" in text
    untimed = re.sub(r" in \d+\.\d+s", "", text)  # pytest's own clock may read 1.01
    assert not [value for value in ("1.01", "3.01") if value in untimed], "a value was shown before the end"
    assert "Traceback" not in text


class Screen:
    """What a terminal shows, read in the background so that nobody waits for it."""

    def __init__(self, master: int) -> None:
        self.master = master
        self.data = bytearray()
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self) -> None:
        with suppress(OSError):  # the other end is gone
            while data := os.read(self.master, 4096):
                self.data += data

    def close(self) -> str:
        self.thread.join(10)
        os.close(self.master)
        return self.data.decode("utf-8", "replace")


# Processes of ours that die


def servers(study: RealStudy) -> list[int]:
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in study.processes()}
    ours = [pid for pid, command in commands.items() if b"forkserver" in command]
    return [pid for pid in ours if os.getsid(pid) == pid and parent(pid) not in ours]


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_fork_server_that_is_killed_costs_one_attempt(study):
    process = study.start(WORK_SECONDS="0.1")
    wait_until(lambda: study.seen("began"), what="a repeat")
    (server,) = servers(study)
    os.kill(server, signal.SIGKILL)
    output, _ = process.communicate(timeout=60)
    ended = [line for line in study.lines("work") if line["type"] == "finished"]

    assert process.returncode == 0, output
    assert [line["cause"] for line in ended if line["outcome"] == "infrastructure"] == ["server"]
    assert sum(line["outcome"] == "ok" for line in ended) == REPEATS
    assert "1 supported" in output
    assert not list(complaints(output))


# Two at once


def test_a_second_run_on_the_same_study_is_turned_away(study):
    first = study.start(WORK_SECONDS="0.4")
    wait_until(lambda: study.seen("began"), what="the first run")
    status, output = study.run()
    first_output, _ = first.communicate(timeout=60)

    assert status == pytest.ExitCode.TESTS_FAILED
    problem = f'PR120: another session is measuring or importing "work" (process {first.pid})'
    assert output.count(problem) == 1
    assert "Wait until it has ended, or stop it" in output
    assert not list(complaints(output))
    assert first.returncode == 0, first_output
    assert len(study.files("work")) == 1
    assert set(study.slots("work", "finished").values()) == {1}


def test_two_runs_that_start_together_buy_every_repeat_once(study):
    both = [study.start(WORK_SECONDS="0.02") for _ in range(2)]
    outputs = [process.communicate(timeout=60)[0] for process in both]

    assert 0 in {process.returncode for process in both}, outputs
    assert not [word for output in outputs for word in complaints(output)]
    assert len(study.seen("began")) == REPEATS
    assert study.slots("work", "finished").total() == REPEATS


def test_two_experiments_of_a_study_can_be_measured_side_by_side(tmp_path):
    study = RealStudy(tmp_path / "study")
    other = STUDY[STUDY.index("[experiments.work]") :].replace("work]", "more]").replace("work.", "more.")
    study.write("predictions.toml", STUDY + other.replace('"work"\nc', '"more"\nc').replace(".slow", ".more"))
    study.write("experiments/work.py", WORK)
    study.register()
    both = [study.start("-k", name, WORK_SECONDS="0.05") for name in ("slow-is", "more-is")]
    outputs = [process.communicate(timeout=60)[0] for process in both]
    status, output = study.run("--prereg-verify")

    assert [process.returncode for process in both] == [0, 0], outputs
    assert status == 0
    assert "2 supported" in output
    assert "PR207" not in output
