"""Repeats that are measured on one machine keep out of each other's way, whoever runs them and whoever dies."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from pytest_prereg.errors import MeasureError
from pytest_prereg.evidence import gpu_readings
from pytest_prereg.evidence.model import Outcome
from pytest_prereg.measure.devices import FOLDER, Claim, DeviceLocks, claims_of, gpus_here

ALONE = [Claim("machine", exclusive=True)]
SHARED = [Claim("machine", exclusive=False)]

CLIENT = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from laboratories import Laboratory, job

executor = Laboratory(Path({folder!r})).executor({body!r}, **{options!r})
executor.start()
for index in range(1, {repeats} + 1):
    result = executor.run(job(executor, index=index))
    print(result.outcome, result.cause, result.seconds, flush=True)
executor.close()
"""

TOLD = """
import json
witness = os.open(os.environ["WITNESS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def say(what):
    os.write(witness, (json.dumps([os.environ["WHO"], what, time.monotonic(), os.getpid()]) + "\\n").encode())
say("began")
{work}
say("ended")
repeat.record("t", 1)
"""


class Sessions:
    """Sessions of studies of their own that share a machine, each a process, and what their bodies tell."""

    def __init__(self, folder: Path, herd) -> None:
        self.folder = folder
        self.herd = herd
        self.witness = folder / "witness"

    def start(
        self, who: str, *, work: str = "time.sleep(0.02)", repeats: int = 1, **options
    ) -> subprocess.Popen[str]:
        folder = self.folder / who
        folder.mkdir()
        program = CLIENT.format(
            tests=str(Path(__file__).parent),
            folder=str(folder),
            body=TOLD.format(work=work),
            options=options,
            repeats=repeats,
        )
        environ = {
            **self.herd.environ,
            "TMPDIR": tempfile.gettempdir(),
            "WITNESS": str(self.witness),
            "WHO": who,
        }
        return subprocess.Popen(
            [sys.executable, "-c", program], env=environ, stdout=subprocess.PIPE, text=True
        )

    def told(self, what: str = "") -> list[tuple[str, str, float, int]]:
        lines = self.witness.read_text().splitlines() if self.witness.exists() else []
        return [tuple(line) for line in map(json.loads, lines) if what in line[1]]

    def overlaps(self) -> list[tuple[str, str]]:
        """Pairs of repeats that ran at the same time."""
        spans: dict[int, list] = {}
        for who, what, at, pid in self.told():
            spans.setdefault(pid, [who, at, float("inf")])[1 if what == "began" else 2] = at
        ordered = sorted(spans.values(), key=lambda span: span[1])
        return [
            (one[0], other[0])
            for place, one in enumerate(ordered)
            for other in ordered[place + 1 :]
            if other[1] < one[2]
        ]


@pytest.fixture
def sessions(tmp_path, laboratory, herd):
    return Sessions(tmp_path, herd)


def test_repeats_of_two_sessions_never_overlap_and_both_finish(sessions):
    both = [sessions.start(who, repeats=12) for who in ("one", "two")]
    outputs = [process.communicate(timeout=60)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert all(output.count("ok None") == 12 for output in outputs), outputs
    assert len(sessions.told("ended")) == 24
    assert sessions.overlaps() == []


MEET = """
Path(os.environ["WITNESS"] + os.environ["WHO"]).touch()
while len(list(Path(os.environ["WITNESS"]).parent.glob("witness?*"))) < 2: time.sleep(0.01)
"""


def test_repeats_that_share_the_machine_may_overlap(sessions):
    both = [sessions.start(who, work=MEET, exclusive=False) for who in ("one", "two")]
    outputs = [process.communicate(timeout=60)[0] for process in both]
    assert all(output.startswith("ok") for output in outputs), outputs
    assert len(sessions.overlaps()) == 1


def test_a_repeat_that_needs_the_machine_alone_gets_it_from_many_that_share_it(sessions):
    sharing = [sessions.start(who, repeats=15, exclusive=False) for who in ("one", "two")]
    alone = sessions.start("alone", repeats=5)
    outputs = [process.communicate(timeout=60)[0] for process in (alone, *sharing)]
    assert [output.count("ok None") for output in outputs] == [5, 15, 15]
    assert not [pair for pair in sessions.overlaps() if "alone" in pair]


def test_a_session_that_measures_without_a_pause_lets_another_in_between():
    taken, over = [], threading.Event()

    def measure() -> None:
        while not over.is_set():
            locks = DeviceLocks()
            locks.take(ALONE)
            taken.append(len(taken))
            time.sleep(0.01)
            locks.release()

    other = threading.Thread(target=measure)
    other.start()
    try:
        while not taken:
            time.sleep(0.001)
        seen = []
        for _ in range(5):
            locks = DeviceLocks()
            told: list[int] = []
            locks.take(ALONE, waiting=lambda told=told: told.append(len(taken)))
            seen.append(len(taken) - told[0] if told else 0)
            locks.release()
    finally:
        over.set()
        other.join()
    # The one that ran when the wait began, and perhaps one more that had the turn already.
    assert max(seen) <= 2


def test_waiting_is_told_and_is_no_time_of_the_repeat(laboratory, make_job):
    executor = laboratory.executor("repeat.record('t', 1)")
    executor.start()
    held = DeviceLocks()
    held.take(ALONE)
    told = []
    executor.waiting = lambda: told.append(time.monotonic())
    threading.Timer(0.7, held.release).start()
    result = executor.run(make_job(executor))
    assert result.outcome is Outcome.OK
    assert told
    assert result.seconds["waited"] >= 0.6
    assert result.seconds["total"] < 0.6
    executor.waiting = None
    assert "waited" not in executor.run(make_job(executor)).seconds


def test_what_is_prepared_is_held_until_it_has_run(laboratory, make_job):
    executor = laboratory.executor("repeat.record('t', 1)")
    executor.start()
    job = make_job(executor)
    executor.prepare(job)
    assert not free()
    executor.run(job)
    assert free()
    executor.prepare(make_job(executor))
    executor.close()
    assert free()


def test_the_devices_are_held_while_the_body_runs(laboratory):
    result = laboratory.run(
        """
import fcntl, tempfile
from pytest_prereg.measure.devices import FOLDER
with (Path(os.environ.get("TMPDIR_SEEN", tempfile.gettempdir())) / FOLDER / "machine").open() as file:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        repeat.record("t", 1)
repeat.record("open", [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if fd != "3"])
""",
        environ={**os.environ, "TMPDIR_SEEN": tempfile.gettempdir()},
    )
    assert result.values == {"t": 1.0}
    # The body could unlock what it had open itself.
    assert not [name for name in result.diagnostics["open"] if FOLDER in name]


def test_what_measures_inside_of_a_repeat_does_not_wait_for_it(laboratory):
    inner = (
        "from pytest_prereg.measure.devices import *; DeviceLocks().take([Claim('machine', exclusive=True)])"
    )
    body = f"subprocess.run([sys.executable, '-c', {inner!r}], check=True, timeout=15); repeat.record('t', 1)"
    result = laboratory.run(body, environ={**os.environ, "TMPDIR": tempfile.gettempdir()})
    assert result.outcome is Outcome.OK, result


def test_a_lock_that_is_open_above_and_not_held_there_is_waited_for(sessions, wait_until):
    client = sessions.start("one", work="time.sleep(2)")
    wait_until(lambda: sessions.told("began"), seconds=20)
    inner = (
        "from pytest_prereg.measure.devices import *; DeviceLocks().take([Claim('machine', exclusive=True)])"
    )
    environ = {**os.environ, "TMPDIR": tempfile.gettempdir()}
    with (locks_folder() / "machine").open():
        subprocess.run([sys.executable, "-c", inner], env=environ, timeout=20, check=True)
    assert sessions.told("ended")
    client.communicate(timeout=10)


class EnoughError(Exception):
    pass


def test_an_interrupt_ends_the_wait_and_leaves_nothing_held():
    held = DeviceLocks()
    held.take(ALONE)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    waiting = DeviceLocks()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            waiting.take(ALONE)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert waiting.descriptors == []
    held.release()
    assert free()


def test_a_limit_that_is_reached_ends_the_wait():
    held = DeviceLocks()
    held.take(ALONE)

    def give_up() -> None:
        raise EnoughError

    waiting = DeviceLocks()
    with pytest.raises(EnoughError):
        waiting.take(ALONE, waiting=give_up)
    assert waiting.descriptors == []
    held.release()


def free() -> bool:
    """Whether nobody has the machine."""
    return try_to_take() is not None


def try_to_take() -> DeviceLocks | None:
    def give_up() -> None:
        raise EnoughError

    locks = DeviceLocks()
    try:
        locks.take(ALONE, waiting=give_up)
    except EnoughError:
        return None
    locks.release()
    return locks


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("victim", ["client", "server", "supervisor", "body"])
def test_whoever_is_killed_the_machine_is_free_only_when_nothing_of_the_repeat_runs(
    sessions, herd, wait_until, victim
):
    client = sessions.start("one", work="time.sleep(60)")
    wait_until(lambda: sessions.told("began"), seconds=20)
    body = sessions.told("began")[0][3]
    supervisor = parent(body)
    pids = {"client": client.pid, "server": parent(supervisor), "supervisor": supervisor, "body": body}
    assert not free()
    time.sleep(random.uniform(0, 0.05))
    os.kill(pids[victim], signal.SIGKILL)
    wait_until(free)
    assert not alive(body)
    client.communicate(timeout=10)
    wait_until(lambda: not herd.pids())
    assert free()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


# The folder, which others can write to


def locks_folder() -> Path:
    return Path(tempfile.gettempdir()) / FOLDER


def test_everybody_may_use_the_folder_whatever_the_umask_of_who_made_it(laboratory):
    before = os.umask(0o077)
    try:
        assert free()
    finally:
        os.umask(before)
    assert locks_folder().stat().st_mode & 0o7777 == 0o1777
    assert {file.stat().st_mode & 0o777 for file in locks_folder().iterdir()} == {0o666}


def refused() -> str:
    with pytest.raises(MeasureError) as caught:
        DeviceLocks().take(ALONE)
    (problem,) = caught.value.problems
    assert problem.code == "PR133"
    assert "TMPDIR" in problem.advice
    return str(problem)


def test_a_link_in_place_of_the_folder_is_refused(laboratory, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    locks_folder().symlink_to(elsewhere)
    assert str(locks_folder()) in refused()
    assert list(elsewhere.iterdir()) == []


def test_a_link_in_place_of_a_lock_is_refused_and_not_followed(laboratory, tmp_path):
    locks_folder().mkdir(mode=0o1777)
    (locks_folder() / "machine").symlink_to(tmp_path / "precious")
    assert "Too many levels of symbolic links" in refused()
    assert not (tmp_path / "precious").exists()


def test_a_pipe_in_place_of_a_lock_is_refused_and_not_waited_for(laboratory):
    locks_folder().mkdir(mode=0o1777)
    os.mkfifo(locks_folder() / "machine")
    assert "it is no regular file" in refused()


def test_a_file_in_place_of_the_folder_is_refused(laboratory):
    locks_folder().write_text("")
    assert "Not a directory" in refused()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize("first", ["root", "nobody"])
def test_two_users_share_the_locks_whoever_made_them(laboratory, monkeypatch, first):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o1777)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        assert free() if first == "root" else free_to_nobody()
        assert free_to_nobody()
        held = DeviceLocks()
        held.take(ALONE)
        assert not free_to_nobody()
        held.release()


def free_to_nobody() -> bool:
    """Whether another user finds the machine free."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setgid(65534)
            os.setuid(65534)
            os._exit(0 if free() else 1)
        finally:
            os._exit(2)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status in {0, 1}
    return status == 0


def test_a_lock_file_that_was_removed_locks_nothing(laboratory):
    first, second, third = DeviceLocks(), DeviceLocks(), DeviceLocks()
    first.take(SHARED)
    waits = threading.Event()
    waiter = threading.Thread(target=lambda: second.take(ALONE, waiting=waits.set))
    waiter.start()
    waits.wait(10)
    for file in locks_folder().iterdir():
        file.unlink()
    third.take(SHARED)
    first.release()
    waiter.join(0.5)
    assert waiter.is_alive(), "two have the machine"
    third.release()
    waiter.join(10)
    assert not waiter.is_alive()
    second.release()


# GPUs

SMI = """#!/bin/sh
case "$*" in
*query-gpu*) cat {folder}/gpus ;;
*query-compute-apps*) cat {folder}/processes ;;
esac
"""


@pytest.fixture
def gpus(tmp_path, monkeypatch):
    """``gpus("GPU-a", "GPU-b")``: a machine with these, as ``nvidia-smi`` tells."""
    folder = tmp_path / "nvidia"
    folder.mkdir()
    (folder / "nvidiactl").touch()
    (folder / "processes").write_text("")
    (folder / "nvidia-smi").write_text(SMI.format(folder=folder))
    (folder / "nvidia-smi").chmod(0o755)
    monkeypatch.setattr(gpu_readings, "DEVICES", folder)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def make(*uuids: str, processes: str = "") -> Path:
        rows = (f"{index}, {uuid}, NVIDIA H200, 1980, 40, 0x1\n" for index, uuid in enumerate(uuids))
        (folder / "gpus").write_text("".join(rows))
        (folder / "processes").write_text(processes)
        return folder

    return make


def claimed(environ: dict[str, str], *, exclusive: bool = True) -> dict[str, bool]:
    return {claim.device: claim.exclusive for claim in claims_of(exclusive, gpus_here(), environ)}


@pytest.mark.parametrize(
    ("visible", "seen"),
    [
        (None, ["gpu-GPU-aa", "gpu-GPU-ab", "gpu-GPU-b"]),
        ("1", ["gpu-GPU-ab"]),
        ("2,0", ["gpu-GPU-aa", "gpu-GPU-b"]),
        ("GPU-b", ["gpu-GPU-b"]),
        ("", []),
        ("-1", []),
        ("0,7,1", ["gpu-GPU-aa"]),
    ],
)
def test_each_gpu_that_a_repeat_can_see_is_its_own(gpus, visible, seen):
    gpus("GPU-aa", "GPU-ab", "GPU-b")
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert claimed(environ, exclusive=False) == {"machine": False, **dict.fromkeys(seen, True)}


def test_two_repeats_share_a_machine_but_no_gpu(gpus, laboratory, make_job):
    gpus("GPU-a", "GPU-b")
    one, same, other = (
        laboratory.executor(
            "repeat.record('t', 1)",
            exclusive=False,
            environ={**os.environ, "CUDA_VISIBLE_DEVICES": visible},
        )
        for visible in ("0", "0", "1")
    )
    for executor in (one, same, other):
        executor.start()
    one.prepare(make_job(one))
    assert other.run(make_job(other)).outcome is Outcome.OK

    def give_up() -> None:
        raise EnoughError

    same.waiting = give_up
    with pytest.raises(EnoughError):
        same.prepare(make_job(same))
    one.close()
    assert same.run(make_job(same)).outcome is Outcome.OK


def test_what_an_arm_can_see_is_what_it_locks(gpus, laboratory, make_job):
    gpus("GPU-a", "GPU-b")
    executor = laboratory.executor(
        "repeat.record('t', 1)",
        arms={"first": {"CUDA_VISIBLE_DEVICES": "0"}, "second": {"CUDA_VISIBLE_DEVICES": "1"}},
    )
    executor.start()
    executor.prepare(make_job(executor, arm="second"))
    held = [Path(f"/proc/self/fd/{lock}").readlink() for lock in executor._locks.descriptors]
    assert [path.name for path in held] == ["machine", "gpu-GPU-b"]


def test_where_the_gpus_cannot_be_told_the_machine_is_taken_alone(gpus, laboratory):
    (gpus("GPU-a") / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    assert gpus_here() is None
    assert claimed({}, exclusive=False) == {"machine": True}


def test_a_foreign_process_on_a_gpu_keeps_the_body_from_being_run(gpus, laboratory, tmp_path):
    # The body runs in a fork of a server that knows nothing of this test's folders.
    folder = gpus("GPU-a", processes=f"GPU-a, {os.getppid()}\n")
    top = f"from pytest_prereg.evidence import gpu_readings\ngpu_readings.DEVICES = Path({str(folder)!r})"
    began = tmp_path / "began"
    body = f"Path({str(began)!r}).touch(); repeat.record('t', 1)"
    result = laboratory.run(body, top=top)
    assert (result.outcome, result.cause) == (Outcome.INFRASTRUCTURE, "foreign process")
    assert result.environment["gpu_foreign_processes"] == 1
    assert not began.exists()
    (folder / "processes").write_text("")
    assert laboratory.run(body, top=top).outcome is Outcome.OK


def test_a_foreign_process_that_comes_later_changes_no_outcome(gpus, laboratory):
    folder = gpus("GPU-a")
    top = f"from pytest_prereg.evidence import gpu_readings\ngpu_readings.DEVICES = Path({str(folder)!r})"
    body = (
        f"Path({str(folder / 'processes')!r}).write_text('GPU-a, {os.getppid()}\\n'); repeat.record('t', 1)"
    )
    result = laboratory.run(body, top=top)
    assert result.outcome is Outcome.OK
    assert result.environment["gpu_foreign_processes"] == 1
