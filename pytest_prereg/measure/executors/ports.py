"""TCP ports that nothing on this machine listens on."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

LOWEST_PORT = 15_000
PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """Return a TCP port that nothing on this machine listens on.

    Drawn at random from below those that the kernel hands out by itself, so that no connection that somebody
    makes meanwhile takes it; what is left is another server that draws the same.
    """
    highest = _first_handed_out()
    for _ in range(100 if highest > LOWEST_PORT else 0):
        port = LOWEST_PORT + int.from_bytes(os.urandom(8)) % (highest - LOWEST_PORT)
        if is_free(port):
            return port
    with socket.socket() as any_one:
        any_one.bind(("", 0))
        return int(any_one.getsockname()[1])


def _first_handed_out() -> int:
    try:
        return int(PORT_RANGE.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 0


def is_free(port: int) -> bool:
    """Return whether a server could listen on a port, at any address of either version."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            with socket.socket(family) as probe:
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind(("", port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
    return True
