"""Programs that use up the machine."""

from __future__ import annotations

from sandbox_attacks import SQUARES, WITHIN, Attack, Success, call

from pytest_prereg.measure.workloads.sandbox.completions import ScriptTest
from pytest_prereg.measure.workloads.sandbox.outcomes import Outcome

CHILDREN = """
import os, time
def in_children(work, number=8):
    '''Lets as many children do a piece of the work each and then stay, until all are done.'''
    source, sink = os.pipe()
    made = 0
    for _ in range(number):
        if os.fork():
            made += 1
            continue
        os.closerange(1, 3)  # nobody waits for the end of these
        try:
            kept = work()
            os.write(sink, b"d")
            time.sleep(60)
        finally:
            os._exit(0)
    os.close(sink)
    for done in range(made):
        if not os.read(source, 1):
            break
        yield done + 1
"""
PIECE = 16 * 2**20

PROCESSES = (
    Attack(
        name="fork bomb",
        program="""
import os, time
told = False
def solve(x):
    global told
    while True:
        try:
            os.fork()
        except OSError:
            if not told:
                told = True
                reached(len([name for name in os.listdir("/proc") if name.isdigit()]))
            time.sleep(0.02)
""",
        tests=SQUARES,
        ends=Outcome.TIMEOUT,
        succeeds=Success.EXCEEDS,
        exceeds="processes",
        quick=False,
    ),
    Attack(
        name="fork bomb of system calls",
        program="""
import os, signal, time
def solve(x):
    made = 0
    try:
        while True:
            if called(56, signal.SIGCHLD, 0, 0, 0, 0) == 0:
                time.sleep(60)
            made += 1
    except OSError:
        reached(made)
    time.sleep(60)
""",
        tests=SQUARES,
        ends=Outcome.TIMEOUT,
        succeeds=Success.EXCEEDS,
        exceeds="processes",
        quick=False,
    ),
    Attack(
        name="threads without end",
        program="""
import threading, time
threading.stack_size(2**16)
def solve(x):
    started = 0
    try:
        while started < 60:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
            started += 1
            reached(started)
    except RuntimeError:
        pass
    return started < 16
""",
        tests=WITHIN,
        ends=Outcome.PASS,
        succeeds=Success.EXCEEDS,
        exceeds="processes",
    ),
    Attack(
        name="descriptors without end",
        program="""
import os
def solve(x):
    import resource
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000))
    except (ValueError, OSError):
        pass
    most = 0
    try:
        while most < 200:
            most = max(most, os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    reached(most + 1)
    return most < 48
""",
        tests=WITHIN,
        ends=Outcome.PASS,
        succeeds=Success.EXCEEDS,
        exceeds="open_files",
    ),
    Attack(
        name="spins in many processes",
        program="""
import os
def solve(x):
    for _ in range(6):
        if not os.fork():
            os.setsid()
            os.closerange(0, 256)
            while True:
                pass
    while True:
        pass
""",
        tests=SQUARES,
        ends=Outcome.TIMEOUT,
        succeeds=Success.SURVIVES,
        timeout=0.5,
        quick=False,
    ),
)

MEMORY = (
    Attack(
        name="memory of one process",
        program="""
def solve(x):
    hoard = []
    while len(hoard) < 20:
        hoard.append(bytearray(b"x") * 2**23)
        reached(len(hoard) * 2**23)
""",
        tests=(call(2, 4),),
        ends=Outcome.MEMORY,
        succeeds=Success.EXCEEDS,
        exceeds="memory",
        timeout=2.5,
    ),
    Attack(
        name="memory of many processes",
        program=CHILDREN
        + f"""
def solve(x):
    for done in in_children(lambda: bytearray(b"x") * {PIECE}):
        reached(done * {PIECE})
    time.sleep(0.5)
""",
        tests=(call(2, 4),),
        ends=Outcome.MEMORY,
        succeeds=Success.EXCEEDS,
        exceeds="memory",
        timeout=2.5,
    ),
    Attack(
        name="memory that processes share",
        program=CHILDREN
        + f"""
import mmap
def shared():
    piece = mmap.mmap(-1, {PIECE})
    for at in range(0, {PIECE}, 4096):
        piece[at] = 1
    return piece
def solve(x):
    done = 0
    for done in in_children(shared):
        reached(done * {PIECE})
    return done * {PIECE} <= 2**26
""",
        tests=WITHIN,
        ends=Outcome.PASS,
        succeeds=Success.EXCEEDS,
        exceeds="memory",
        timeout=2.5,
    ),
    Attack(
        name="memory that looks like more than it is",
        program="""
import os, time
held = bytearray(b"x") * (20 * 2**20)
def solve(x):
    for _ in range(6):
        if not os.fork():
            os.closerange(0, 256)
            time.sleep(30)
            os._exit(held[x])
    time.sleep(0.3)
    return x * x
""",
        tests=(call(2, 4),),
        ends=Outcome.PASS,
        succeeds=Success.SURVIVES,
    ),
    Attack(
        name="memory that no process shows",
        program=f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
def solve(x):
    try:
        zeros = os.open("/dev/zero", os.O_RDWR)
    except OSError:
        zeros = -1
    total = 0
    for number in range(10):
        descriptor, flags = ((-1, 0x21), (-1, 0x23), (zeros, 1))[number % 3]
        start = libc.mmap(None, {PIECE}, 3, flags, descriptor, 0)
        if start != 2**64 - 1:
            ctypes.memset(start, 1, {PIECE})
            libc.munmap(start + 4096, {PIECE} - 4096)  # what is left keeps all of it
            total += {PIECE}
    reached(total)
    return total <= 2**26
""",
        tests=WITHIN,
        ends=Outcome.PASS,
        succeeds=Success.EXCEEDS,
        exceeds="memory",
        timeout=2.5,
    ),
    Attack(
        name="memory of sockets",
        program=CHILDREN
        + """
import socket
def connected():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        calling = socket.create_connection(listening.getsockname())
        return calling, listening.accept()[0]
def filled(most=2**25):
    file = open("filled", "a")
    total, kept = 0, [file]
    for number in range(40):
        try:
            kept += (connected, socket.socketpair)[number % 2]()
        except OSError:
            continue
        for line in kept[-2:]:
            line.setblocking(False)
            total += poured(line, most - total)
    file.write("%d " % total)
    file.flush()
    return kept
def poured(line, most):
    total = 0
    try:
        for size in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            line.setsockopt(socket.SOL_SOCKET, size, 2**26)
    except OSError:
        pass
    try:
        while total < most:
            total += line.send(bytes(2**15))
    except OSError:
        pass
    return total
def solve(x):
    for _ in in_children(filled):
        pass
    with open("filled") as file:
        total = sum(map(int, file.read().split()))
    reached(total)
    return total <= 12 * 48 * 212992  # of each descriptor that all processes can have, what the kernel starts with
""",
        tests=WITHIN,
        ends=Outcome.PASS,
        succeeds=Success.EXCEEDS,
        exceeds="memory",
        timeout=2.5,
    ),
    Attack(
        name="memory in files without a name",
        program=CHILDREN
        + f"""
def solve(x):
    def filled():
        kept = []
        for _ in range(8):
            kept.append(os.memfd_create("x"))
            os.write(kept[-1], bytes(2**21))
        return kept
    for done in in_children(filled):
        reached(done * {PIECE})
    return True
""",
        tests=WITHIN,
        ends=Outcome.PASS,
        succeeds=Success.EXCEEDS,
        exceeds="memory",
        timeout=2.5,
    ),
    Attack(
        name="memory of System V",
        program="""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
libc.shmget.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_int]
libc.shmdt.argtypes = [ctypes.c_void_p]
def solve(x):
    for done in range(5):
        segment = libc.shmget(0, 2**25, 0o1600)
        if segment < 0:
            break
        at = libc.shmat(segment, None, 0)
        ctypes.memset(at, 1, 2**25)
        libc.shmdt(at)
        reached((done + 1) * 2**25)
    return True
""",
        tests=WITHIN,
        ends=Outcome.PASS,
        succeeds=Success.EXCEEDS,
        exceeds="memory",
        timeout=2.5,
    ),
    Attack(
        name="memory of a bomb of compressed zeros",
        program="""
import zlib
def solve(x):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    bomb, unpacker, text = piece * 120, zlib.decompressobj(-15), []
    while bomb:
        text.append(unpacker.decompress(bomb, 2**24))
        bomb = unpacker.unconsumed_tail
        reached(len(text) * 2**24)
""",
        tests=(call(2, 4),),
        ends=Outcome.MEMORY,
        succeeds=Success.EXCEEDS,
        exceeds="memory",
        timeout=2.5,
    ),
    Attack(
        name="address space without end",
        program="""
import mmap
def solve(x):
    try:
        mmap.mmap(-1, 2**28, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
    except OSError:
        return True
    reached(2**28)
    return False
""",
        tests=WITHIN,
        ends=Outcome.PASS,
        succeeds=Success.EXCEEDS,
        exceeds="memory",
    ),
    Attack(
        name="recursion without end",
        program="""
import sys
sys.setrecursionlimit(2**30)
def solve(x, depth=0):
    if depth % 1000 == 0:
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[1]) * 4096
        reached(used)
        if used > 100 * 2**20:
            raise SystemExit
    kept = (depth,) * 1000
    return solve(kept[-1], depth + 1)
""",
        tests=(call(2, 4),),
        ends=Outcome.MEMORY,
        or_ends=Outcome.CRASH,  # a frame: CPython 3.11 reports that as a SystemError
        succeeds=Success.EXCEEDS,
        exceeds="memory",
        timeout=2.5,
    ),
    Attack(
        name="a stack without end",
        program="""
import sys, threading
sys.setrecursionlimit(2**30)
def deeper(depth):
    if depth % 5000 == 0:
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[1]) * 4096
        reached(used)
        if used > 100 * 2**20:
            raise SystemExit
    return list(map(deeper, [depth + 1]))
def solve(x):
    threading.stack_size(2**28)
    thread = threading.Thread(target=deeper, args=(0,))
    thread.start()
    thread.join()
""",
        tests=(call(2, 4),),
        ends=Outcome.CRASH,
        succeeds=Success.EXCEEDS,
        exceeds="memory",
        timeout=6.0,
    ),
)

FILES = (
    Attack(
        name="fills its folder",
        program="""
def solve(x):
    for number in range(32):
        with open("filler%d" % number, "wb") as file:
            file.write(bytes(2**20))
        reached((number + 1) * 2**20)
""",
        tests=SQUARES,
        ends=Outcome.OUTPUT,
        succeeds=Success.EXCEEDS,
        exceeds="disk",
        timeout=3.0,
    ),
    Attack(
        name="fills every folder",
        program="""
import os
def solve(x):
    total = 0
    for folder, folders, _ in os.walk("/"):
        folders[:] = [each for each in folders if (folder, each) not in (("/", "proc"), ("/", "sys"), ("/", "usr"))]
        for number in range(16):
            try:
                with open(folder + "/filler%d" % number, "wb", 0) as file:
                    total += file.write(bytes(2**20))
            except OSError:
                break
    reached(total)
    return total <= 4 * 2**20
""",
        tests=WITHIN,
        ends=Outcome.PASS,
        succeeds=Success.EXCEEDS,
        exceeds="disk",
        timeout=5.0,
    ),
    Attack(
        name="a file of nothing but holes",
        program="""
def solve(x):
    with open("holes", "wb") as file:
        file.truncate(2**24)
        reached(2**24)
""",
        tests=SQUARES,
        ends=Outcome.OUTPUT,
        succeeds=Success.EXCEEDS,
        exceeds="file_size",
    ),
    Attack(
        name="a file of compressed zeros",
        program="""
import zlib
def solve(x):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    bomb, unpacker = piece * 10240, zlib.decompressobj(-15)
    with open("unpacked", "wb", 0) as file:
        while bomb and file.tell() < 2**24:
            file.write(unpacker.decompress(bomb, 2**20))
            bomb = unpacker.unconsumed_tail
            reached(file.tell())
""",
        tests=SQUARES,
        ends=Outcome.OUTPUT,
        succeeds=Success.EXCEEDS,
        exceeds="file_size",
        timeout=2.5,
    ),
    Attack(
        name="files without number",
        program="""
import os
def solve(x):
    for number in range(4000):
        open("file%d" % number, "w").close()
        if number % 50 == 0:
            reached(number)
""",
        tests=SQUARES,
        ends=Outcome.OUTPUT,
        succeeds=Success.EXCEEDS,
        exceeds="files",
        timeout=3.0,
    ),
    Attack(
        name="attributes of files",
        program="""
import ctypes, os
room = ctypes.create_string_buffer(2**15)
value = (ctypes.c_uint64 * 2)(ctypes.addressof(room), 2**15)
def newer(name, key):
    called(463, -100, name.encode(), 0, key.encode(), value, 16)  # setxattrat
def solve(x):
    total = 0
    for number in range(20):
        name = "file%d" % number
        open(name, "w").close()
        for each in range(20):
            for way in (lambda key: os.setxattr(name, key, bytes(2**15)), lambda key: newer(name, key)):
                try:
                    way("user.%d" % each)
                    total += 2**15
                    break
                except OSError as error:
                    last = error
    if not total:
        refused(last)
    reached(total)
    return total <= 2**22
""",
        tests=WITHIN,
        ends=Outcome.PASS,
        succeeds=Success.EXCEEDS,
        exceeds="disk",
        timeout=2.5,
    ),
    Attack(
        name="folders too deep to remove",
        program="""
import os
def solve(x):
    for _ in range(3000):
        os.mkdir("deeper")
        os.chdir("deeper")
    return x * x
""",
        tests=SQUARES,
        ends=Outcome.OUTPUT,
        succeeds=Success.BREAKS,
        timeout=3.0,
    ),
)

OUTPUT = (
    Attack(
        name="output without end",
        program="""
import os
def solve(x):
    written = 0
    while True:
        written += os.write(1, b"y" * 2**16)
        if written % 2**22 == 0:
            reached(written)
""",
        tests=SQUARES,
        ends=Outcome.OUTPUT,
        succeeds=Success.EXCEEDS,
        exceeds="output",
        timeout=0.3,
    ),
    Attack(
        name="errors without end",
        program="""
import os
written = 0
while True:
    written += os.write(2, b"y" * 2**16)
    if written % 2**22 == 0:
        reached(written)
""",
        tests=(ScriptTest(expected=""),),
        ends=Outcome.OUTPUT,
        succeeds=Success.EXCEEDS,
        exceeds="output",
        timeout=0.3,
    ),
    Attack(
        name="an answer without end",
        program="""
def solve(x):
    answer = "y" * 2**24
    reached(len(answer))
    return answer
""",
        tests=(call(2, "y"),),
        ends=Outcome.OUTPUT,
        succeeds=Success.EXCEEDS,
        exceeds="answer",
        timeout=3.0,
    ),
)

EXHAUSTION = (*PROCESSES, *MEMORY, *FILES, *OUTPUT)
