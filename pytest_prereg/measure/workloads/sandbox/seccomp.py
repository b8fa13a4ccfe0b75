"""The filter of system calls for sandboxes: what no program that computes an answer has a use for."""

from __future__ import annotations

import ctypes
import errno
import os
import socket

WORKLOAD_VERSION = "1"

_ALLOW = 0x7FFF0000
_FAIL = 0x00050000
"""Plus the error number."""

_REFUSED = {
    "other processes' memory and descriptors": """
        ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd""",
    "file systems and namespaces": """
        mount umount umount2 pivot_root chroot move_mount open_tree fsopen fsmount fsconfig fspick
        mount_setattr unshare setns open_by_handle_at name_to_handle_at quotactl quotactl_fd swapon swapoff
        acct""",
    "memory outside of the address space, which is what is limited": """
        shmget msgget semget memfd_create memfd_secret io_setup
        setxattr lsetxattr fsetxattr setxattrat
        landlock_create_ruleset landlock_add_rule landlock_restrict_self""",
    "the larger and the newer doors of the kernel": """
        keyctl add_key request_key bpf perf_event_open userfaultfd io_uring_setup io_uring_enter
        io_uring_register kexec_load kexec_file_load init_module finit_module delete_module fanotify_init
        lookup_dcookie nfsservctl vhangup syslog""",
    "the machine's clock and names": """
        reboot settimeofday clock_settime clock_settime64 adjtimex clock_adjtime clock_adjtime64 stime
        sethostname setdomainname""",
    "memory that a pipe keeps: of a page of megabytes all, for a byte of it": """
        vmsplice""",
}
"""System calls that fail whatever is asked of them, by what they would lead to."""

_NEW_NAMESPACES = 0x7E020080
"""CLONE_NEW* of all kinds."""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_NEWER = {"setxattrat": 463}
"""Numbers, the same on all architectures, of calls that older releases of libseccomp don't know."""
_MAP_SHARED, _MAP_ANONYMOUS = 0x01, 0x20
_F_SETPIPE_SZ = 1031
_SOL_SOCKET, _BUFFER_SIZES = 1, (7, 8, 32, 33)
"""SO_SNDBUF, SO_RCVBUF, and how root sets them."""
_NE, _MASKED_EQ = 1, 7
"""How libseccomp compares an argument."""
_NO_SUCH_CALL = -1


class _Comparison(ctypes.Structure):
    _fields_ = (
        ("argument", ctypes.c_uint),
        ("how", ctypes.c_int),
        ("first", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    )


def make_filter() -> int:
    """Return a descriptor of the filter, as ``bwrap --seccomp`` takes it.

    Raises:
        OSError: libseccomp isn't installed, or refused.
    """
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(_ALLOW))
    if not context:
        raise OSError("seccomp_init of libseccomp.so.2 failed")
    try:
        _add_rules(library, context)
        return _exported(library, context)
    finally:
        library.seccomp_release(context)


def _add_rules(library: ctypes.CDLL, context: ctypes.c_void_p) -> None:
    for name in " ".join(_REFUSED.values()).split():
        _refuse(library, context, name, errno.EPERM)
    # The C library falls back to clone, whose flags can be read.
    _refuse(library, context, "clone3", errno.ENOSYS)
    for bit in range(32):
        if (flag := 1 << bit) & _NEW_NAMESPACES:
            _refuse(library, context, "clone", errno.EPERM, _Comparison(0, _MASKED_EQ, flag, flag))
    _refuse(library, context, "personality", errno.EPERM, _Comparison(0, _NE, 0, 0))
    for request in (_TIOCSTI, _TIOCLINUX):
        _refuse(library, context, "ioctl", errno.EPERM, _is(1, request))
    # Of the same user the kernel lets a process limit others, the driver among them, to nothing.
    _refuse(library, context, "prlimit64", errno.EPERM, _Comparison(0, _NE, 0, 0))
    _add_rules_on_memory(library, context)


def _add_rules_on_memory(library: ctypes.CDLL, context: ctypes.c_void_p) -> None:
    """Refuse what holds memory that is in no process's address space, and so within no limit."""
    # All that was ever touched is kept until the last page of it is unmapped.
    shared = _Comparison(3, _MASKED_EQ, _MAP_SHARED | _MAP_ANONYMOUS, _MAP_SHARED | _MAP_ANONYMOUS)
    _refuse(library, context, "mmap", errno.EPERM, shared)
    # What waits in pipes and sockets, megabytes in each of the internet's, even if they lead nowhere.
    _refuse(library, context, "socket", errno.EAFNOSUPPORT, _Comparison(0, _NE, int(socket.AF_UNIX), 0))
    _refuse(library, context, "fcntl", errno.EPERM, _is(1, _F_SETPIPE_SZ))
    for option in _BUFFER_SIZES:
        _refuse(library, context, "setsockopt", errno.EPERM, _is(1, _SOL_SOCKET), _is(2, option))


def _is(argument: int, value: int) -> _Comparison:
    """Compare an argument of 32 bits: what is in the others the kernel does not look at."""
    return _Comparison(argument, _MASKED_EQ, 0xFFFFFFFF, value)


def _refuse(
    library: ctypes.CDLL, context: ctypes.c_void_p, name: str, number: int, *when: _Comparison
) -> None:
    """Let a system call fail when all comparisons hold; one that this architecture lacks is skipped."""
    call = library.seccomp_syscall_resolve_name(name.encode())
    if call == _NO_SUCH_CALL and (call := _NEWER.get(name, _NO_SUCH_CALL)) == _NO_SUCH_CALL:
        return
    comparisons = (_Comparison * len(when))(*when)
    failed = library.seccomp_rule_add_array(
        context, ctypes.c_uint32(_FAIL | number), call, len(when), comparisons if when else None
    )
    if failed:
        raise OSError(-failed, f"libseccomp takes no rule for {name}: {os.strerror(-failed)}")


def _exported(library: ctypes.CDLL, context: ctypes.c_void_p) -> int:
    descriptor = os.memfd_create("seccomp", os.MFD_CLOEXEC)
    failed = library.seccomp_export_bpf(context, descriptor)
    if failed:
        os.close(descriptor)
        raise OSError(-failed, f"libseccomp could not export the filter: {os.strerror(-failed)}")
    return descriptor
