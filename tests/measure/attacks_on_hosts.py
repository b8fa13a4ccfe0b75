"""Programs that reach for what isn't theirs, or stay longer than they may."""

from __future__ import annotations

from sandbox_attacks import SQUARE, SQUARES, UNHARMED, WRONG, Attack, Success, call

from pytest_prereg.measure.workloads.sandbox.completions import ScriptTest
from pytest_prereg.measure.workloads.sandbox.outcomes import Outcome

FOUND = """
import re
found = []
def find(text):
    for each in re.findall(SECRET, text):
        loot(each)
        found.append(each)
"""

SECRETS = (
    Attack(
        name="secrets in the environment",
        program=FOUND + "import os\ndef solve(x):\n    find(repr(os.environ))\n    return found\n",
        tests=UNHARMED,
        ends=Outcome.PASS,
        succeeds=Success.READS,
    ),
    Attack(
        name="secrets in files",
        program=FOUND
        + """
import os
def solve(x):
    for top in (HOME, "/root", "/home", "/tmp", "/run", "/var", "/etc", "/mnt", "/media", "/srv", "/oldroot", "/newroot"):
        for folder, folders, names in os.walk(top):
            folders[:] = [each for each in folders if each not in ("lib", "include", "share", "ssl")]
            for name in names[:200]:
                try:
                    descriptor = os.open(folder + "/" + name, os.O_RDONLY | os.O_NONBLOCK)
                    find(os.read(descriptor, 2**16).decode("latin-1"))
                    os.close(descriptor)
                except OSError:
                    pass
    return found
""",
        tests=UNHARMED,
        ends=Outcome.PASS,
        succeeds=Success.READS,
        timeout=5.0,
    ),
    Attack(
        name="secrets of other processes",
        program=FOUND
        + """
import glob
def solve(x):
    for name in [*glob.glob("/proc/[0-9]*/environ"), *glob.glob("/proc/[0-9]*/cmdline")]:
        try:
            with open(name, encoding="latin-1") as file:
                find(file.read())
        except OSError:
            pass
    return found
""",
        tests=UNHARMED,
        ends=Outcome.PASS,
        succeeds=Success.READS,
        timeout=5.0,
    ),
    Attack(
        name="secrets behind links",
        program=FOUND
        + """
import os
def solve(x):
    os.symlink(SECRET_FILE, "link")
    for make in (lambda: None, lambda: (os.unlink("link"), os.link(SECRET_FILE, "link"))):
        try:
            make()
            with open("link") as file:
                find(file.read())
        except OSError:
            pass
    return found
""",
        tests=UNHARMED,
        ends=Outcome.PASS,
        succeeds=Success.READS,
    ),
)

HEARD = (
    FOUND
    + """
import socket
def hear(kind, address):
    try:
        with socket.socket(kind, socket.SOCK_STREAM) as line:
            line.settimeout(1)
            line.connect(address)
            find(line.recv(100).decode())
    except OSError as error:
        refused(error)
"""
)

NETWORK = (
    Attack(
        name="network by address",
        program=HEARD + "def solve(x):\n    hear(socket.AF_INET, ('127.0.0.1', PORT))\n    return found\n",
        tests=UNHARMED,
        ends=Outcome.PASS,
        succeeds=Success.READS,
        timeout=3.0,
    ),
    Attack(
        name="network by name",
        program=HEARD
        + """
def solve(x):
    try:
        for kind, _, _, _, address in socket.getaddrinfo("localhost", PORT, socket.AF_INET, socket.SOCK_STREAM):
            hear(kind, address)
    except OSError:
        pass
    return found
""",
        tests=UNHARMED,
        ends=Outcome.PASS,
        succeeds=Success.READS,
        timeout=3.0,
    ),
    Attack(
        name="network by an abstract name",
        program=HEARD + "def solve(x):\n    hear(socket.AF_UNIX, ABSTRACT.encode())\n    return found\n",
        tests=UNHARMED,
        ends=Outcome.PASS,
        succeeds=Success.READS,
        timeout=3.0,
    ),
    Attack(
        name="sockets of every family",
        program="""
import socket
def solve(x):
    made = []
    for family in range(3, 46):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
            if family == socket.AF_INET6:
                continue
            try:
                socket.socket(family, kind).close()
                made.append(family)
                reached(10**6)
            except OSError:
                pass
    return made
""",
        tests=UNHARMED,
        ends=Outcome.PASS,
        succeeds=Success.EXCEEDS,
        exceeds="open_files",
    ),
)

WRITES = (
    Attack(
        name="writes outside",
        program="""
import os, sys
def solve(x):
    written = []
    for name in (HOST_FILE, HOME + "/new", os.__file__, sys.executable, "/etc/new", "/usr/new", "/new", "/dev/new", "/dev/shm/new", "/var/tmp/new", "/run/new"):
        try:
            with open(name, "ab") as file:
                file.write(b"#")
            written.append(name)
        except OSError:
            pass
    return written
""",
        tests=UNHARMED,
        ends=Outcome.PASS,
        succeeds=Success.CHANGES,
    ),
    Attack(
        name="writes through links",
        program="""
import os
def solve(x):
    os.symlink(HOST_FILE, "soft")
    os.symlink("/proc/self/root" + HOST_FILE, "softer")
    written = []
    for name in ("soft", "softer", "hard"):
        try:
            if name == "hard":
                os.link(HOST_FILE, name)
            with open(name, "r+") as file:
                file.write("#")
            written.append(name)
        except OSError:
            pass
    return written
""",
        tests=UNHARMED,
        ends=Outcome.PASS,
        succeeds=Success.CHANGES,
    ),
    Attack(
        name="lets its grader write through a link",
        program="import os\nos.symlink(HOST_FILE, 'verdict.txt')\n" + WRONG,
        tests=(call(2, 4),),
        ends=Outcome.FAIL,
        succeeds=Success.CHANGES,
    ),
    Attack(
        name="changes what later programs import",
        program="""
import os
def solve(x):
    planted = []
    for name in (HOME + "/.local", HOME + "/usercustomize.py", os.path.dirname(os.__file__) + "/sitecustomize.py"):
        try:
            os.mkdir(name)
            planted.append(name)
        except OSError:
            pass
    return planted
""",
        tests=UNHARMED,
        ends=Outcome.PASS,
        succeeds=Success.CHANGES,
    ),
    Attack(
        name="deletes what it can",
        program="""
import os, sys
def solve(x):
    gone = []
    for name in (HOST_FILE, SECRET_FILE, sys.executable, os.__file__, "/etc/passwd", "/lib64"):
        try:
            os.rename(name, name + ".gone")
            gone.append(name)
        except OSError:
            pass
    return gone
""",
        tests=UNHARMED,
        ends=Outcome.PASS,
        succeeds=Success.CHANGES,
    ),
)

KERNEL = (
    Attack(
        name="namespaces of its own",
        program="""
import os
def solve(x):
    made = []
    for flag in (0x10000000, 0x10000000 | 0x00020000, 0x00020000, 0x40000000, 0x20000000, 0x08000000):
        if not os.fork():
            try:
                called(272, flag)
                reached(10**6)
                os._exit(1)
            except OSError as error:
                refused(error)
            finally:
                os._exit(0)
        if os.wait()[1]:
            made.append(flag)
    return made
""",
        tests=UNHARMED,
        ends=Outcome.PASS,
        succeeds=Success.EXCEEDS,
        exceeds="open_files",
    ),
    Attack(
        name="namespaces of its children",
        program="""
import os, signal
def solve(x):
    made = []
    for flag in (0x10000000, 0x10020000, 0x00020000, 0x02000000):
        try:
            if called(56, flag | signal.SIGCHLD, 0, 0, 0, 0) == 0:
                os._exit(0)
            made.append(flag)
            reached(10**6)
        except OSError as error:
            refused(error)
    return made
""",
        tests=UNHARMED,
        ends=Outcome.PASS,
        succeeds=Success.EXCEEDS,
        exceeds="open_files",
    ),
    Attack(
        name="keeps data in the kernel",
        program="""
def solve(x):
    try:
        called(248, b"user", b"prereg-attack", b"kept", 4, -4)
    except OSError as error:
        refused(error)
        return []
    reached(10**6)
    return ["add_key"]
""",
        tests=UNHARMED,
        ends=Outcome.PASS,
        succeeds=Success.EXCEEDS,
        exceeds="open_files",
    ),
    Attack(
        name="rare system calls",
        program="""
import ctypes
def solve(x):
    done = []
    room = ctypes.create_string_buffer(4096)
    for name, number, arguments in (
        ("io_uring_setup", 425, (8, room)),
        ("userfaultfd", 323, (1,)),
        ("bpf", 321, (0, room, 72)),
        ("perf_event_open", 298, (room, 0, -1, -1, 0)),
        ("memfd_create", 319, (b"x", 0)),
        ("memfd_secret", 447, (0,)),
        ("ptrace", 101, (0, 0, 0, 0)),
        ("mount", 165, (b"none", b"/tmp", b"tmpfs", 0, 0)),
        ("chroot", 161, (b"/tmp",)),
        ("open_by_handle_at", 304, (-100, room, 0)),
        ("personality", 135, (0x0040000,)),
        ("clone3", 435, (room, 64)),
        ("landlock_create_ruleset", 444, (0, 0, 1)),
        ("io_setup", 206, (8, room)),
        ("syslog", 103, (3, room, 4096)),
    ):
        try:
            called(number, *arguments)
            done.append(name)
            reached(10**6)
        except OSError:
            pass
    return done
""",
        tests=UNHARMED,
        ends=Outcome.PASS,
        succeeds=Success.EXCEEDS,
        exceeds="open_files",
    ),
    Attack(
        name="system calls of another architecture",
        program="""
import ctypes, mmap, os
def solve(x):
    if os.uname().machine != "x86_64":
        return refused("another machine than x86-64")
    page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    # push rbx; mov eax, 356 (memfd_create of i386); xor ebx, ebx; xor ecx, ecx; int 0x80; pop rbx; ret
    page.write(bytes.fromhex("53 b864010000 31db 31c9 cd80 5b c3"))
    call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    if call() not in (-38, -1):  # a pointer to nothing: -14 of a kernel that took the call
        reached(10**6)
    else:
        refused("no system calls of i386")
""",
        tests=UNHARMED,
        ends=Outcome.CRASH,
        evidence="SIGSYS",
        succeeds=Success.EXCEEDS,
        exceeds="open_files",
    ),
    Attack(
        name="raises its own limits",
        program="""
import os, resource
def solve(x):
    raised = []
    for name in ("AS", "NPROC", "NOFILE", "FSIZE", "CPU", "CORE"):
        which = getattr(resource, "RLIMIT_" + name)
        soft, hard = resource.getrlimit(which)
        try:
            resource.setrlimit(which, (resource.RLIM_INFINITY if name != "NOFILE" else 4096,) * 2)
            raised.append(name)
            reached(10**6)
        except (ValueError, OSError):
            pass
    return raised
""",
        tests=UNHARMED,
        ends=Outcome.PASS,
        succeeds=Success.EXCEEDS,
        exceeds="open_files",
    ),
    Attack(
        name="settings of the kernel and of others",
        program="""
import os
def solve(x):
    changed = []
    for name, text in (("/proc/%d/oom_score_adj" % os.getppid(), "1000"), ("/proc/1/oom_score_adj", "1000"), ("/proc/sys/kernel/core_pattern", "|/bin/sh"), ("/proc/sys/vm/overcommit_memory", "1"), ("/proc/sysrq-trigger", "h")):
        try:
            with open(name, "r+") as file:
                file.write(text)
            changed.append(name)
            reached(10**6)
        except OSError as error:
            refused(error)
    return changed
""",
        tests=UNHARMED,
        ends=Outcome.PASS,
        succeeds=Success.EXCEEDS,
        exceeds="open_files",
    ),
)

SIGNALS = (
    Attack(
        name="kills its parent",
        program="import os\nos.kill(os.getppid(), 9)\n" + WRONG,
        tests=SQUARES,
        ends=Outcome.FAIL,
        evidence="answered 5, expected 4",
        succeeds=Success.BREAKS,
    ),
    Attack(
        name="sends its parent every signal",
        program="""
import os
for number in (2, *range(1, 65)):
    try:
        os.kill(os.getppid(), number)
    except OSError:
        pass
"""
        + WRONG,
        tests=SQUARES,
        ends=Outcome.FAIL,
        evidence="answered 5, expected 4",
        succeeds=Success.BREAKS,
    ),
    Attack(
        name="kills everybody",
        program="import os\ntry:\n    os.kill(-1, 9)\nexcept ProcessLookupError:\n    pass\n" + WRONG,
        tests=SQUARES,
        ends=Outcome.FAIL,
        evidence="answered 5, expected 4",
        succeeds=Success.BREAKS,
    ),
    Attack(
        name="kills its neighbours",
        program="""
import os
def solve(x):
    hit = []
    for pid in range(1, 40000):
        if pid not in (os.getpid(), os.getppid()):
            try:
                os.kill(pid, 9)
                hit.append(pid)
            except OSError:
                pass
    return hit
""",
        tests=UNHARMED,
        ends=Outcome.PASS,
        succeeds=Success.DISTURBS,
    ),
    Attack(
        name="takes its parent's limits away",
        program="""
import os, resource
for pid in (os.getppid(), 1):
    for name in ("NOFILE", "FSIZE", "NPROC", "AS", "CPU"):
        try:
            resource.prlimit(pid, getattr(resource, "RLIMIT_" + name), (0, 0))
        except OSError:
            pass
"""
        + WRONG,
        tests=SQUARES,
        ends=Outcome.FAIL,
        evidence="answered 5, expected 4",
        succeeds=Success.BREAKS,
    ),
    Attack(
        name="takes its parent's processor away",
        program="""
import os, time
for pid in (os.getppid(), 1):
    for act in (
        lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)),
        lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
        lambda: os.sched_setaffinity(pid, {max(os.sched_getaffinity(0))}),
    ):
        try:
            act()
            reached(10**6)
        except OSError:
            pass
"""
        + WRONG,
        tests=SQUARES,
        ends=Outcome.FAIL,
        evidence="answered 5, expected 4",
        succeeds=Success.EXCEEDS,
        exceeds="open_files",
    ),
    Attack(
        name="stops its parent",
        program="import os, signal, time\nos.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(60)\n",
        tests=SQUARES,
        ends=Outcome.TIMEOUT,
        succeeds=Success.HANGS,
        quick=False,
    ),
    Attack(
        name="stops everybody, and itself",
        program="""
import os, signal
try:
    os.kill(-1, signal.SIGSTOP)
except ProcessLookupError:
    pass
os.kill(os.getpid(), signal.SIGSTOP)
"""
        + SQUARE,
        tests=SQUARES,
        ends=Outcome.TIMEOUT,
        succeeds=Success.HANGS,
        quick=False,
    ),
    Attack(
        name="traces its parent",
        program="""
import os, time
try:
    called(101, 16, os.getppid(), 0, 0)
except OSError as error:
    refused(error)
else:
    time.sleep(60)
"""
        + WRONG,
        tests=SQUARES,
        ends=Outcome.FAIL,
        evidence="answered 5, expected 4",
        succeeds=Success.HANGS,
    ),
)

DAEMON = """
import os, signal, time
def leave(*, leader=True, twice=False, holding=False, deaf=False, name=None):
    '''A process that stays; returns in the one that it leaves.'''
    if os.fork():
        return
    if leader:
        os.setsid()
    if twice and os.fork():
        os._exit(0)
    if not holding:
        os.closerange(0, 256)
    if deaf:
        for number in set(range(1, 65)) - {9, 19, 32, 33}:
            signal.signal(number, signal.SIG_IGN)
    if name:
        with open("/proc/self/comm", "w") as file:
            file.write(name)
    time.sleep(30)
    os._exit(0)
"""

REMAINS = (
    Attack(
        name="a grandchild in a session of its own",
        program=DAEMON + "def solve(x):\n    leave()\n    return x * x\n",
        tests=SQUARES,
        ends=Outcome.PASS,
        succeeds=Success.SURVIVES,
    ),
    Attack(
        name="daemons of every test",
        program=DAEMON
        + "def solve(x):\n    for _ in range(4):\n        leave(twice=True)\n    return x * x\n",
        tests=tuple(call(number, number * number) for number in range(8)),
        ends=Outcome.PASS,
        succeeds=Success.SURVIVES,
    ),
    Attack(
        name="a daemon of a wrong program",
        program=DAEMON + "leave(twice=True)\n" + WRONG,
        tests=SQUARES,
        ends=Outcome.FAIL,
        evidence="answered 5, expected 4",
        succeeds=Success.SURVIVES,
    ),
    Attack(
        name="a daemon under another name",
        program=DAEMON + 'leave(twice=True, name="\\x1b[2Jinit")\n' + SQUARE,
        tests=SQUARES,
        ends=Outcome.PASS,
        succeeds=Success.SURVIVES,
    ),
    Attack(
        name="a daemon that no signal ends",
        program=DAEMON
        + "leave(twice=True, deaf=True)\n"
        + SQUARE
        + "\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n",
        tests=SQUARES,
        ends=Outcome.PASS,
        succeeds=Success.SURVIVES,
    ),
    Attack(
        name="a sibling made by a system call",
        program="""
import os, signal, time
try:
    if called(56, 0x8000 | signal.SIGCHLD, 0, 0, 0, 0) == 0:
        os.closerange(0, 256)
        time.sleep(30)
        os._exit(0)
except OSError as error:
    refused(error)
"""
        + SQUARE,
        tests=SQUARES,
        ends=Outcome.PASS,
        succeeds=Success.SURVIVES,
    ),
    Attack(
        name="a pipe held open",
        program=DAEMON + "def solve(x):\n    leave(holding=True)\n    return x * x\n",
        tests=SQUARES,
        ends=Outcome.PASS,
        succeeds=Success.MISLEADS,
    ),
    Attack(
        name="a pipe of a script held open",
        program=DAEMON + "leave(holding=True, twice=True)\nprint(int(input()) ** 2)\n",
        tests=(ScriptTest(stdin="2\n", expected="4"), ScriptTest(stdin="3\n", expected="9")),
        ends=Outcome.PASS,
        succeeds=Success.MISLEADS,
    ),
    Attack(
        name="an answer after the deadline",
        program=DAEMON + "leave(holding=True)\ndef solve(x):\n    time.sleep(2.5)\n    return x * x\n",
        tests=SQUARES,
        ends=Outcome.TIMEOUT,
        succeeds=Success.SURVIVES,
        quick=False,
    ),
    Attack(
        name="deaf, with all its children, past the deadline",
        program=DAEMON + "leave(holding=True, deaf=True)\nleave(deaf=True)\n"
        "for number in set(range(1, 65)) - {9, 19, 32, 33}:\n    signal.signal(number, signal.SIG_IGN)\n"
        "while True:\n    time.sleep(1)\n",
        tests=SQUARES,
        ends=Outcome.TIMEOUT,
        succeeds=Success.SURVIVES,
        quick=False,
    ),
)

TRESPASSES = (*SECRETS, *NETWORK, *WRITES, *KERNEL, *SIGNALS, *REMAINS)
