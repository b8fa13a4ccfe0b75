"""What a program in a sandbox can see, reach and take: asked of the kernel, from inside."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import sandboxes
from sandboxes import MEBIBYTE, SMALL, calling, graded, needs_namespaces, needs_root

from pytest_prereg.measure.workloads.sandbox.client import Sandbox
from pytest_prereg.measure.workloads.sandbox.limits import Limits
from pytest_prereg.measure.workloads.sandbox.outcomes import Outcome

pytestmark = needs_namespaces


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(limits=SMALL) as opened:
        assert opened.missing == ()
        yield opened


def answer(sandbox: Sandbox, program: str, expected: object) -> None:
    """Assert that the program's ``f()`` answers so."""
    result = graded(sandbox, program, expected=expected)
    assert result.outcome is Outcome.PASS, result.tests[0].evidence


def test_it_is_nobody_without_any_capability_in_namespaces_of_its_own(sandbox):
    program = """
        import os
        def f():
            status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
            names = {name: os.readlink(f"/proc/self/ns/{name}") for name in ("user", "pid", "net", "ipc", "uts", "mnt")}
            return [
                os.getuid(), os.getgid(), os.getgroups(), os.getppid(), os.uname().nodename,
                [int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
                status["NoNewPrivs"], status["Seccomp"], [name for name, link in names.items() if link in {ours!r}],
            ]
    """.replace("{ours!r}", repr({str(path.readlink()) for path in Path("/proc/self/ns").iterdir()}))
    answer(sandbox, program, [65534, 65534, [], 1, "sandbox", [0] * 5, "1", "2", []])


def test_it_sees_only_its_own_processes_and_descriptors(sandbox):
    program = """
        import os
        def f():
            pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
            return [pids == [1, os.getpid()], sorted(map(int, os.listdir("/proc/self/fd")))]
    """
    # Input, output, errors, the listing itself, and the pipe for answers.
    answer(sandbox, program, [True, [0, 1, 2, 3, 4]])


def test_it_sees_no_file_but_those_of_the_interpreter(sandbox, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    program = f"""
        import os
        def f():
            gone = ["/etc", "/home", "/var", "/run", "/sys", "/usr/bin/env", "/bin", {str(secret)!r}, {str(Path(__file__))!r}]
            return [[path for path in gone if os.path.exists(path)], os.listdir("/tmp"), os.listdir({_installed()!r})]
    """
    answer(sandbox, program, [[], [], []])


def _installed() -> str:
    standard = Path(sysconfig.get_path("stdlib"))
    return os.path.realpath(next(path for path in (standard / "site-packages", standard) if path.is_dir()))


def test_its_environment_holds_nothing_of_the_machine(monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "secret")
    program = """
        import os, subprocess, sys
        def f():
            own = sorted(name for name in os.environ if name not in ("PWD", "LC_CTYPE"))
            code = "print(open('/proc/self/environ').read())"
            return [own, "secret" in subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout]
    """
    with Sandbox(limits=SMALL) as opened:
        answer(opened, program, [["LANG", "PATH"], False])


def test_it_can_write_to_its_own_folder_alone(sandbox):
    program = """
        import os
        def f():
            written = []
            for folder, _, _ in os.walk("/", followlinks=False):
                try:
                    open(f"{folder}/x", "w").close()
                    written.append(folder)
                except OSError:
                    pass
                if folder == "/":
                    os.chdir("/tmp")
            return [name for name in written if not name.startswith("/proc/")]
    """
    answer(sandbox, program, ["/tmp"])


def test_nothing_can_be_reached_from_its_network(sandbox):
    program = """
        import socket
        def f():
            found = [line.split(":")[0].strip() for line in open("/proc/net/dev").read().splitlines()[2:]]
            errors = []
            for family in (socket.AF_INET, socket.AF_INET6):
                try:
                    socket.socket(family).close()
                except OSError:
                    errors.append(True)
            try:
                socket.getaddrinfo("example.org", 80)
            except socket.gaierror:
                errors.append(True)
            return [[name for name in found if name != "lo"], errors]
    """
    answer(sandbox, program, [[], [True, True, True]])


def test_only_sockets_of_the_file_system_can_be_made(sandbox):
    program = """
        import socket
        def f():
            made = []
            for domain in range(64):
                try:
                    socket.socket(domain, socket.SOCK_DGRAM).close()
                    made.append(domain)
                except OSError:
                    pass
            return [domain for domain in made if domain != socket.AF_UNIX]
    """
    answer(sandbox, program, [])


CALLS = {
    "ptrace": "libc.ptrace(16, 1, 0, 0)",
    "process_vm_readv": "libc.process_vm_readv(os.getppid(), 0, 0, 0, 0, 0)",
    "mount": "libc.mount(b'none', b'/tmp', b'tmpfs', 0, 0)",
    "umount2": "libc.umount2(b'/tmp', 2)",
    "unshare": "libc.unshare(0x10000000)",
    "setns": "libc.setns(0, 0)",
    "clone": "libc.syscall(SYS_clone, 0x10000000 | 17, 0, 0, 0, 0)",
    "memfd_create": "libc.memfd_create(b'x', 0)",
    "shmget": "libc.shmget(0, 4096, 0o1600)",
    "personality": "libc.personality(0x0040000)",
    "tiocsti": "libc.ioctl(0, 0x5412, b'x')",
    "sethostname": "libc.sethostname(b'x', 1)",
    "quotactl": "libc.quotactl(0, 0, 0, 0)",
    "add_key": "libc.syscall(SYS_add_key, b'user', b'x', b'y', 1, -3)",
    "bpf": "libc.syscall(SYS_bpf, 0, 0, 0)",
    "perf_event_open": "libc.syscall(SYS_perf_event_open, 0, 0, -1, -1, 0)",
    "io_uring_setup": "libc.syscall(425, 1, 0)",
    "open_by_handle_at": "libc.open_by_handle_at(-100, 0, 0)",
    "fsopen": "libc.syscall(430, b'tmpfs', 0)",
    "vmsplice": "libc.vmsplice(1, 0, 0, 0)",
    "memory of the init": "-1 if not_readable('/proc/1/mem') else 0",
}
NUMBERS = {
    "x86_64": {"SYS_clone": 56, "SYS_add_key": 248, "SYS_bpf": 321, "SYS_perf_event_open": 298},
    "aarch64": {"SYS_clone": 220, "SYS_add_key": 217, "SYS_bpf": 280, "SYS_perf_event_open": 241},
}


@pytest.mark.skipif(os.uname().machine not in NUMBERS, reason="the numbers of calls are not known here")
def test_calls_that_lead_out_or_around_the_limits_are_not_permitted(sandbox):
    program = f"""
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        globals().update({NUMBERS[os.uname().machine]!r})
        def not_readable(path):
            try:
                open(path, "rb")
            except OSError as error:
                ctypes.set_errno(1)
                return True
        def f():
            done = []
            for name, call in {CALLS!r}.items():
                ctypes.set_errno(0)
                if (eval(call), ctypes.get_errno()) != (-1, 1):
                    done.append([name, ctypes.get_errno()])
            return done
    """
    answer(sandbox, program, [])


def test_threads_can_still_be_made_though_the_newer_way_is_refused(sandbox):
    program = """
        import ctypes, threading
        def f():
            libc = ctypes.CDLL(None, use_errno=True)
            refused = libc.syscall(435, 0, 0), ctypes.get_errno()
            found = []
            thread = threading.Thread(target=found.append, args=(1,))
            thread.start()
            thread.join()
            return [found, refused]
    """
    answer(sandbox, program, [[1], [-1, 38]])


def test_processes_and_threads_are_limited(sandbox):
    program = """
        import os, threading, time
        def f(threads):
            count = 0
            try:
                while count < 100:
                    if threads:
                        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
                    elif not os.fork():
                        time.sleep(60)
                    count += 1
            except (OSError, RuntimeError):
                return count
    """
    # Its init and the test's own process count, too.
    for threads in (False, True):
        result = graded(sandbox, program, threads, expected=SMALL.processes - 2)
        assert result.outcome is Outcome.PASS, result.tests[0].evidence


@pytest.mark.parametrize("isolation", ["namespaces", "processes"])
@pytest.mark.parametrize("text", ["\\rRssAnon: x", "\\rRssAnon:", "\\rRssAnon: -999"])
def test_its_name_can_neither_end_the_supervisor_nor_hide_memory(isolation, text):
    program = f"""
        import ctypes, time
        def f():
            ctypes.CDLL(None).prctl(15, b"{text}", 0, 0, 0)
            time.sleep(0.2)
            return True
    """
    with Sandbox(limits=SMALL, isolation=isolation) as opened:
        answer(opened, program, expected=True)
        result = graded(opened, program, expected=True)
    assert result.peak_memory > MEBIBYTE


def test_memory_is_limited_in_sum_over_processes():
    program = """
        import os, time
        def f():
            for _ in range(6):
                if not os.fork():
                    kept = bytearray(40 * 2**20)
                    time.sleep(60)
            time.sleep(60)
    """
    with Sandbox(limits=Limits(deadline=20.0, memory=100 * MEBIBYTE)) as opened:
        result = graded(opened, program)
    assert result.outcome is Outcome.MEMORY, result
    assert f"where {100 * MEBIBYTE} are the most" in result.evidence
    assert result.peak_memory > 100 * MEBIBYTE


def test_memory_that_processes_share_counts_once():
    program = """
        import os, time
        def f():
            shared = bytearray(40 * 2**20)
            children = []
            for _ in range(5):
                child = os.fork()
                if not child:
                    time.sleep(0.4)
                    os._exit(0)
                children.append(child)
            for child in children:
                os.waitpid(child, 0)
            return True
    """
    with Sandbox(limits=Limits(deadline=20.0, memory=150 * MEBIBYTE)) as opened:
        answer(opened, program, expected=True)


def test_files_and_bytes_of_its_disk_are_limited(sandbox):
    many = """
        import time
        def f():
            for number in range(10**6):
                open(f"/tmp/{number}", "w").close()
    """
    result = graded(sandbox, many)
    assert result.outcome is Outcome.OUTPUT, result
    assert f"where {SMALL.files} are the most" in result.evidence
    large = """
        def f():
            for number in range(10):
                open(f"/tmp/{number}", "wb").write(bytes(10**6))
    """
    result = graded(sandbox, large)
    assert result.outcome is Outcome.OUTPUT, result
    assert "No space left" in result.tests[0].evidence
    within = "def f():\n    for n in range(40): open(f'/tmp/{n}', 'w').write('x')\n    return True"
    answer(sandbox, within, expected=True)


def test_open_files_are_limited(sandbox):
    program = """
        import errno
        def f():
            kept = []
            try:
                while True:
                    kept.append(open("/dev/null"))
            except OSError as error:
                return [len(kept) < 64, error.errno == errno.EMFILE]
    """
    answer(sandbox, program, [True, True])


def test_limits_can_not_be_raised_again(sandbox):
    program = """
        import resource
        def f():
            raised = []
            for name in ("AS", "CPU", "FSIZE", "NOFILE", "NPROC", "CORE"):
                kind = getattr(resource, f"RLIMIT_{name}")
                try:
                    resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                    raised.append(name)
                except (ValueError, OSError):
                    pass
            return raised
    """
    answer(sandbox, program, [])


def test_the_init_has_no_limit_on_time_that_reaping_for_a_program_could_use_up():
    with Sandbox(limits=Limits(deadline=60.0, cpu=1.0)) as opened:
        opened.submit(calling("import time\ndef f(): time.sleep(60)"))
        sandboxes.wait_for(lambda: len(sandboxes.inits_of(opened)) == 1)
        (init,) = sandboxes.inits_of(opened)
        sandboxes.wait_for(lambda: len(sandboxes.processes.descendants(init)) == 1)
        (test,) = sandboxes.processes.descendants(init)
        times = [
            line.split()[3:5]
            for pid in (init, test)
            for line in Path(f"/proc/{pid}/limits").read_text("ascii").splitlines()
            if line.startswith("Max cpu time")
        ]
    assert times == [["unlimited", "unlimited"], ["1", "2"]]


def test_nothing_inside_can_kill_or_stop_the_init(sandbox):
    program = """
        import os, signal
        def f():
            for number in set(signal.valid_signals()):
                os.kill(1, number)
            return True
    """
    answer(sandbox, program, expected=True)


def test_packages_can_be_imported_and_not_written_to(tmp_path):
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "helpful.py").write_text("VALUE = 7\n")
    program = """
        import helpful, os
        def f():
            return [helpful.VALUE, os.access(helpful.__file__, os.W_OK), os.access(os.path.dirname(helpful.__file__), os.W_OK)]
    """
    with Sandbox(limits=SMALL, packages=[folder]) as opened:
        answer(opened, program, [7, False, False])


def test_the_standard_library_is_there(sandbox):
    program = """
        import asyncio, bz2, collections, ctypes, dataclasses, datetime, decimal, fractions, hashlib, heapq, itertools
        import json, lzma, math, multiprocessing, random, re, sqlite3, ssl, statistics, subprocess, typing, zoneinfo
        def f():
            return hashlib.sha256(b"").hexdigest()[:4] + str(math.isqrt(10**20))
    """
    answer(sandbox, program, "e3b0" + str(10**10))


def test_a_program_may_do_what_an_ordinary_script_may(sandbox):
    program = """
        import asyncio, subprocess, sys, tempfile
        async def twice(x):
            await asyncio.sleep(0.01)
            return 2 * x
        def f():
            told = subprocess.run([sys.executable, "-c", "print(3)"], capture_output=True, text=True).stdout
            with tempfile.TemporaryFile() as file:
                file.write(b"kept")
                file.seek(0)
                return [asyncio.run(twice(2)), told, file.read().decode()]
    """
    answer(sandbox, program, [4, "3\n", "kept"])


@needs_root
def test_each_sandbox_is_another_user_of_the_machine_and_none_is_root():
    program = "import time\ndef f(): time.sleep(60)"
    with Sandbox(limits=Limits(deadline=60.0), workers=3) as opened:
        for _ in range(3):
            opened.submit(calling(program))
        sandboxes.wait_for(lambda: len(sandboxes.inits_of(opened)) == 3)
        users = [sandboxes.status_of(pid)["Uid"].split() for pid in sandboxes.inits_of(opened)]
    assert len({uid for ids in users for uid in ids}) == 3
    assert all(int(uid) > 100_000 for ids in users for uid in ids)


@needs_root
@pytest.mark.parametrize("isolation", ["namespaces", "processes"])
def test_an_ordinary_user_can_make_sandboxes(tmp_path_factory, isolation):
    """In a process that became another user, on an interpreter which that user can read."""
    python = Path(f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}")
    root, packages = Path(__file__).parents[2], Path(sysconfig.get_path("purelib"))
    way = {*root.parents, *packages.parents}
    if not python.is_file() or any(not path.stat().st_mode & 0o001 for path in way):
        pytest.skip("no interpreter, no tree or no packages that everyone may read")
    environment = _environment_of(python, root, tmp_path_factory.mktemp("environment"))
    code = ORDINARY.format(isolation=isolation, folder=str(Path(__file__).parent))
    done = subprocess.run(
        [environment / "bin/python", "-c", code],
        user=sandboxes.ORDINARY,
        group=sandboxes.ORDINARY,
        extra_groups=[],
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "TMPDIR": "/tmp"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        isolation,
        "pass",
        "timeout",
        "output-limit",
        "out-of-memory",
        "crash",
        "0",
    ]


ORDINARY = """
import sys
sys.path.insert(0, {folder!r})
from pytest_prereg.measure.workloads.sandbox.client import Sandbox
from pytest_prereg.measure.workloads.sandbox.limits import Limits
from pytest_prereg.measure.workloads.sandbox.completions import CallTest, Completion
programs = [
    "import os\\ndef f(): return os.getuid() > 0",
    "import os, time\\ndef f():\\n    os.fork() or os.setsid() or os.fork()\\n    time.sleep(60)",
    "def f():\\n    while True: print('x' * 1000)",
    "def f(): return bytearray(2**40)",
    "import os\\ndef f(): os.kill(os.getpid(), 9)",
]
with Sandbox(limits=Limits(deadline=1.5), isolation={isolation!r}) as opened:
    tests = (CallTest(function="f", expected=True),)
    results = opened.grade([Completion(program=program, tests=tests) for program in programs])
    print(opened.isolation, *[result.outcome for result in results], opened.alive())
"""


def _environment_of(python: Path, root: Path, folder: Path) -> Path:
    """A virtual environment that everyone may read, with what this one has installed."""
    packages = folder / f"lib/{python.name}/site-packages"
    packages.mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "bin/python").symlink_to(python)
    (folder / "pyvenv.cfg").write_text(f"home = {python.parent}\n")
    (packages / "paths.pth").write_text(f"{sysconfig.get_path('purelib')}\n{root}\n")
    for path in (folder, *folder.parents):
        if path.owner() == "root" and path != Path("/") and path.stat().st_mode & 0o7777 == 0o700:
            path.chmod(0o711)
    return folder
