"""Whether Modal can be used from here, told within a second and without anything that can hang.

Modal's client waits 56 seconds for a port that is closed, or for a proxy that does not answer.
"""

from __future__ import annotations

import importlib.metadata
import socket
import threading
import urllib.request
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from pytest_prereg.errors import MeasureError, Problem

CODE = "PR137"
OLDEST, TOO_NEW = (1, 6), (1, 7)
SECONDS = 0.8
"""What the look at the network may take. What has not answered by then may be far away."""
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
PORTS = {"http": 80, "https": 443}
PROXIES = "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY"


class Target(NamedTuple):
    """What the client connects to first."""

    host: str
    port: int
    proxy: bool
    server: str
    """The service's host, for whoever a proxy stands before."""


def check() -> str:
    """Return the version of Modal's client, if it can be used.

    Raises:
        MeasureError: PR137: no client or one of another version, no token, nobody at the address, or a
            proxy in between that does not answer.
    """
    version = _version()
    _check_token()
    target = _target()
    if target is not None and (problem := _asked(target)) is not None:
        raise MeasureError(problem)
    return version


def _version() -> str:
    try:
        version = importlib.metadata.version("modal")
    except importlib.metadata.PackageNotFoundError:
        raise _refused("Modal's client is not installed", "pip install 'pytest-prereg[modal]'") from None
    parts = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if not OLDEST <= parts < TOO_NEW:
        told = f"Modal's client is {version}, and 1.6 is what this release was tried with"
        raise _refused(told, "pip install 'modal>=1.6,<1.7'")
    return version


def _check_token() -> None:
    """Refuse where the client has nothing to say who it is; what it has is looked at by nobody."""
    from modal.config import config  # noqa: PLC0415

    has_token = bool(config.get("token_id")) and bool(config.get("token_secret"))
    if not has_token and not config.get("oauth_refresh_token"):
        advice = "modal setup\nor set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET, as a job of CI would."
        raise _refused("there is no token for Modal", advice)


def _target() -> Target | None:
    """Return whom the client asks first, ``None`` where that is no address of a network."""
    from modal.config import config  # noqa: PLC0415

    url = urlsplit(config.get("server_url"))
    if url.scheme not in PORTS or url.hostname is None:
        _check_socket(url)
        return None
    server = Target(url.hostname, url.port or PORTS[url.scheme], proxy=False, server=url.hostname)
    proxy = None if config.get("disable_api_proxy") else _proxy(url.scheme, server.host)
    return server if proxy is None else proxy


def _check_socket(url: SplitResult) -> None:
    if url.scheme == "unix" and not Path(url.path).exists():
        raise _refused(f"nobody answers at {url.path}", "Look at MODAL_SERVER_URL.")


def _proxy(scheme: str, server: str) -> Target | None:
    """Return the proxy that requests to a host go through; the client asks for one as ``urllib`` does."""
    if urllib.request.proxy_bypass(server):
        return None
    proxies = urllib.request.getproxies()
    named = proxies.get(scheme) or proxies.get("all")
    if not named:
        return None
    if server in LOCAL:
        told = f"the environment names a proxy, and requests to {server} would go through it"
        raise _refused(told, f"NO_PROXY={server}, or MODAL_DISABLE_API_PROXY=1")
    url = urlsplit(named if "://" in named else f"http://{named}")
    return Target(url.hostname or "", url.port or PORTS.get(url.scheme, 1080), proxy=True, server=server)


def _asked(target: Target) -> Problem | None:
    """Return why nobody answers there, ``None`` where somebody does, or time ran out."""
    found: list[OSError] = []

    def connect() -> None:
        try:
            socket.create_connection((target.host, target.port), timeout=SECONDS).close()
        except TimeoutError:
            pass
        except OSError as error:
            found.append(error)

    # A name server that does not answer can't be told to be quick: it is left alone.
    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(SECONDS)
    return _unanswered(target, found[0]) if found else None


def _unanswered(target: Target, error: OSError) -> Problem:
    place, why = f"{target.host}:{target.port}", error.strerror or str(error)
    if target.proxy:
        told = f"the proxy at {place}, through which Modal would be asked, does not answer: {why}"
        advice = f"Mend {PROXIES}, or go round it: NO_PROXY={target.server}, or MODAL_DISABLE_API_PROXY=1"
    else:
        told = f"Modal can't be reached at {place}: {why}"
        advice = "Is there a network, and is MODAL_SERVER_URL what it should be?"
    return Problem(code=CODE, message=told, advice=advice)


def _refused(message: str, advice: str) -> MeasureError:
    return MeasureError(Problem(code=CODE, message=message, advice=advice))
