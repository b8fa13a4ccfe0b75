"""Asking a time-stamp authority over HTTP to sign that the lock at HEAD exists now."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import time
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pytest_prereg.audit.history.git import Repository
from pytest_prereg.audit.stamping import time_stamps
from pytest_prereg.audit.stamping.anchors import folder_of, keep
from pytest_prereg.audit.stamping.time_stamps import Stamp
from pytest_prereg.errors import AnchorError, Problem, StudyError
from pytest_prereg.evidence.naming import shown
from pytest_prereg.registry.refusals import quoted

if TYPE_CHECKING:
    from http.client import HTTPResponse

    from cryptography.x509 import Certificate

    from pytest_prereg.audit.stamping.time_stamps import Query
    from pytest_prereg.registry.model import Study

PATIENCE = 20.0
"""Seconds without a byte after which an authority is given up."""
DEADLINE = 60.0
"""Seconds for a whole answer, however steadily it drips."""
LARGEST = 1 << 20
"""Bytes of an answer; one with all of its certificates has less than ten thousand."""


class Anchored(msgspec.Struct, kw_only=True, frozen=True):
    """An anchor as it was kept."""

    path: Path
    stamp: Stamp


def anchor(study: Study, url: str, roots: Path | None = None) -> Anchored:
    """Have the lock at HEAD signed by the authority at ``url``, verify what it answers, and keep that.

    Only the lock's SHA-256 and a random number are sent.

    Args:
        study: Whose lock it is.
        url: Of the authority, ``http`` or ``https``.
        roots: Certificates (PEM) that the signature has to lead to; those that the system trusts without it.

    Raises:
        StudyError: The lock is not at HEAD as it is on disk (PR107).
        AnchorError: No answer, or none that holds (PR153); nothing is kept then.
    """
    asked = time_stamps.query(_committed(study))
    trusted = time_stamps.roots_of(roots)
    try:
        answer = _post(url, asked.body)
        stamp = _checked(answer, asked, trusted)
    except AnchorError as error:
        where = f"no anchor from {quoted(_shown(url))}"
        told = [dataclasses.replace(one, message=f"{where}: {one.message}") for one in error.problems]
        raise AnchorError(told) from error
    return Anchored(path=keep(study, asked.digest, answer), stamp=stamp)


def commit_command(study: Study) -> str:
    """Return the git command that commits the anchors, as typed in the current folder."""
    folder = shlex.quote(os.path.relpath(folder_of(study)))
    return f"git add {folder} && git commit -m {shlex.quote(f'Anchor {study.lock_path.name}')}"


def _committed(study: Study) -> bytes:
    """Return the lock's bytes, which HEAD has as well: an anchor over anything else would prove nothing.

    Raises:
        StudyError: HEAD has another lock, or none (PR107).
    """
    path = study.lock_path
    repository = Repository.find(study.folder)
    there = None
    if repository is not None and repository.head() is not None:
        there = repository.file_at("HEAD", path)
    if path.is_file() and path.read_bytes() == there:
        return path.read_bytes()
    what = "is not as HEAD has it" if path.is_file() else "is not there"
    message = f"the lock {what}, and only a committed lock can be anchored"
    advice = f"First commit it: pytest-prereg lock, then git add {shlex.quote(shown(path))} && git commit"
    raise StudyError(Problem(code="PR107", message=message, path=str(path), advice=advice))


def _checked(answer: bytes, asked: Query, trusted: list[Certificate]) -> Stamp:
    """Return what an answer states, if it is one to this question, and signed."""
    stamp = time_stamps.read(answer)
    if stamp.digest != asked.digest:
        raise _failure(f'its time-stamp is over something else, "{stamp.digest[:16]}…"')
    if stamp.nonce != asked.nonce:
        raise _failure("its time-stamp answers another question: the nonce differs")
    return time_stamps.verify(answer, trusted)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirected question would arrive without its body."""

    def redirect_request(self, *_: object) -> None:
        """Return nothing, so that it is told as the failure that it is."""
        return


def _post(url: str, body: bytes) -> bytes:
    """Return what the authority answers.

    Raises:
        AnchorError: It does not, or not with a time-stamp (PR153).
    """
    if not url.startswith(("http://", "https://")):
        raise _failure("the address of an authority begins with http:// or https://")
    if _shown(url) != url.partition("?")[0]:
        raise _failure("an address with a name or a password in it can't be asked")
    headers = {"Content-Type": "application/timestamp-query", "Accept": "application/timestamp-reply"}
    try:
        request = urllib.request.Request(url, body, headers)  # noqa: S310 - the scheme has been checked
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=PATIENCE) as response:
            kind = response.headers.get_content_type()
            answer = _read(response)
    except urllib.error.HTTPError as error:
        error.close()
        raise _failure(f"it answered {error.code} {error.reason}".rstrip()) from error
    except urllib.error.URLError as error:
        raise _failure(_said(error.reason)) from error
    except (OSError, HTTPException, ValueError) as error:
        raise _failure(_said(error)) from error
    if kind.startswith("text/"):
        raise _failure(f"it answered with {kind}, which is no time-stamp; is that its address?")
    return answer


def _read(response: HTTPResponse) -> bytes:
    """Return the whole body, unless that takes for ever or never ends."""
    end = time.monotonic() + DEADLINE
    body = bytearray()
    while part := response.read1(1 << 16):
        body += part
        if len(body) > LARGEST:
            raise _failure(f"its answer is larger than {LARGEST >> 20} MiB")
        if time.monotonic() > end:
            raise _failure(f"its answer was not complete after {DEADLINE:g} s")
    return bytes(body)


def _said(reason: object) -> str:
    if isinstance(reason, TimeoutError):
        return f"no answer within {PATIENCE:g} s"
    text = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason)
    return text or type(reason).__name__


def _failure(message: str) -> AnchorError:
    return AnchorError(Problem(code="PR153", message=message))


def _shown(url: str) -> str:
    """Return an address without what may be secret in it."""
    return re.sub(r"//[^/]*@", "//", url.partition("?")[0])
