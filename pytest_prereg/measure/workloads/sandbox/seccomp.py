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
        shmget msgget semget memfd_create memfd_secret""",
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
_NE, _EQ, _GREATER, _MASKED_EQ = 1, 4, 6, 7
"""How libseccomp compares an argument."""
_NO_SUCH_CALL = -1


class _Comparison(ctypes.Structure):
    _fields_ = (
        ("argument", ctypes.c_uint),
        ("how", ctypes.c_int),
        ("first", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    )


def filter_for(*, networked: bool) -> int:
    """Return a descriptor of the filter, as ``bwrap --seccomp`` takes it.

    Args:
        networked: Whether there is a network namespace, in which internet sockets lead nowhere; without one
            only sockets of the file system can be made.

    Raises:
        OSError: libseccomp isn't installed, or refused.
    """
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(_ALLOW))
    if not context:
        raise OSError("seccomp_init of libseccomp.so.2 failed")
    try:
        _add_rules(library, context, networked=networked)
        return _exported(library, context)
    finally:
        library.seccomp_release(context)


def _add_rules(library: ctypes.CDLL, context: ctypes.c_void_p, *, networked: bool) -> None:
    for name in " ".join(_REFUSED.values()).split():
        _refuse(library, context, name, errno.EPERM)
    # The C library falls back to clone, whose flags can be read.
    _refuse(library, context, "clone3", errno.ENOSYS)
    for bit in range(32):
        if (flag := 1 << bit) & _NEW_NAMESPACES:
            _refuse(library, context, "clone", errno.EPERM, _Comparison(0, _MASKED_EQ, flag, flag))
    _refuse(library, context, "personality", errno.EPERM, _Comparison(0, _NE, 0, 0))
    for request in (_TIOCSTI, _TIOCLINUX):
        _refuse(library, context, "ioctl", errno.EPERM, _Comparison(1, _MASKED_EQ, 0xFFFFFFFF, request))
    allowed = [socket.AF_UNIX, *([socket.AF_INET, socket.AF_INET6] if networked else [])]
    last = int(max(allowed))
    for domain in set(range(last)) - {int(each) for each in allowed}:
        _refuse(library, context, "socket", errno.EAFNOSUPPORT, _Comparison(0, _EQ, domain, 0))
    _refuse(library, context, "socket", errno.EAFNOSUPPORT, _Comparison(0, _GREATER, last, 0))


def _refuse(
    library: ctypes.CDLL, context: ctypes.c_void_p, name: str, number: int, *when: _Comparison
) -> None:
    """Let a system call fail when all comparisons hold; one that this architecture lacks is skipped."""
    call = library.seccomp_syscall_resolve_name(name.encode())
    if call == _NO_SUCH_CALL:
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
